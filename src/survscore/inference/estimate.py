"""An estimate with its standard error and interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from survscore.inference.intervals import student_quantile
from survscore.inference.units import Groups, PowerSums, SampleWeights, Units, Vector


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error and the limits of its confidence interval; NaN where there is none."""

    value: float = math.nan
    se: float = math.nan
    lower: float = math.nan
    upper: float = math.nan

    @classmethod
    def of(
        cls,
        value: float,
        influence: Vector,
        groups: Groups | None,
        level: float,
        *,
        added_variance: float = 0.0,
        sample: SampleWeights | None = None,
    ) -> Estimate:
        """Take each individual's influence; those of a group are added up. Student's t, since groups may be few.

        `sample` are the sample weights that the influences contain; see `InfluenceFactors`.
        """
        n, degrees = float(influence.size), influence.size - 1.0
        if groups is not None:
            own = None if sample is None else sample.values
            influence = np.bincount(groups.codes, influence, groups.n_groups).astype(np.float64)
            sizes = np.bincount(groups.codes, own, groups.n_groups)
            n, degrees = float(np.count_nonzero(sizes)), float(PowerSums.of(sizes[:, None]).units()[2][0])
        elif sample is not None:
            stop = np.ones(influence.size, dtype=np.int32)  # shares are those of all individuals
            units = Units.of(stop, None, 1, sample=sample)
            n = float(units.counted[0])
            effective = float(sample.values.sum() ** 2 / sample.squares.sum())
            degrees = min(n, effective) - 1.0
            if units.factors is not None:
                influence = influence * units.factors.of_rows(slice(None), slice(0, 1))[:, 0]
        if n < 2 or not math.isfinite(value):
            return Estimate(value)
        se = math.sqrt(float(influence @ influence) * n / (n - 1) + added_variance)
        half = float(student_quantile(level, degrees)) * se
        return Estimate(value, se, value - half, value + half)

    def exp(self) -> Estimate:
        """Return the same on the scale of ratios, for an estimate of a logarithm."""
        value = math.exp(self.value)
        return Estimate(value, value * self.se, math.exp(self.lower), math.exp(self.upper))

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, self.se, -self.upper, -self.lower)

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.lower) or math.isnan(self.upper))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "undefined"
        return f"{self.value:.3g}" + (f" ({self.lower:.3g} to {self.upper:.3g})" if self.known else "")
