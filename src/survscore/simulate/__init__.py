"""Simulated data with the truth attached."""

from survscore.simulate._sample import Sample
from survscore.simulate.constant_hazard import ConstantHazardStudy
from survscore.simulate.mixture_study import SineConstantAcceleratingStudy

__all__ = ["ConstantHazardStudy", "Sample", "SineConstantAcceleratingStudy"]
