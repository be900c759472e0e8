"""Simulated data with the truth attached."""

from survscore.simulate._sample import Sample
from survscore.simulate.constant_hazard import ConstantHazardStudy
from survscore.simulate.expectations import expected_score, irreducible_error, mean_squared_error
from survscore.simulate.mixture_study import SineConstantAcceleratingStudy

__all__ = [
    "ConstantHazardStudy",
    "Sample",
    "SineConstantAcceleratingStudy",
    "expected_score",
    "irreducible_error",
    "mean_squared_error",
]
