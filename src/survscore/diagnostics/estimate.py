"""An estimate with its interval, from everybody's influence on it."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from survscore.engine.units import Groups
from survscore.student import student_quantile


class Estimate(NamedTuple):
    """A number and the limits of its confidence interval; NaN where there is none."""

    value: float
    lower: float
    upper: float

    @classmethod
    def of(
        cls,
        value: float,
        influence: NDArray[np.float64],
        groups: Groups | None,
        level: float,
        *,
        added_variance: float = 0.0,
    ) -> Self:
        """Take everybody's influence; those of a group are added up. Student's t, since groups may be few."""
        if groups is not None:
            influence = np.bincount(groups.codes, influence, groups.n_groups).astype(np.float64)
        n = influence.size
        if n < 2 or not math.isfinite(value):
            return cls(value, math.nan, math.nan)
        se = math.sqrt(float(influence @ influence) * n / (n - 1) + added_variance)
        half = float(student_quantile(level, n - 1)) * se
        return cls(value, value - half, value + half)

    @classmethod
    def unknown(cls) -> Self:
        """Return no number at all."""
        return cls(math.nan, math.nan, math.nan)

    def exp(self) -> Estimate:
        """Return the same on the scale of ratios, for an estimate of a logarithm."""
        return Estimate(math.exp(self.value), math.exp(self.lower), math.exp(self.upper))

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.lower) or math.isnan(self.upper))
