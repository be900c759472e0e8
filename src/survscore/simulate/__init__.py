"""Simulated data with the truth attached."""

from survscore.simulate.expectations import expected_score, irreducible_error, mean_squared_error
from survscore.simulate.studies import CompetingRisksStudy, ConstantHazardStudy, Sample, SineConstantAcceleratingStudy

__all__ = [
    "CompetingRisksStudy",
    "ConstantHazardStudy",
    "Sample",
    "SineConstantAcceleratingStudy",
    "expected_score",
    "irreducible_error",
    "mean_squared_error",
]
