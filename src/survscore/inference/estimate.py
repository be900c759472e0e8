"""An estimate with its standard error and interval; one estimate of those from several imputed data sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

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


class Pooled(NamedTuple):
    """Estimates over imputations."""

    estimate: Vector
    se: Vector
    degrees: Vector  # Of freedom.
    #: The fraction of missing information: how much of the precision was lost with the values that are missing.
    missing_information: Vector


def rubin(estimates: Vector, errors: Vector, complete_degrees: Vector | float = np.inf) -> Pooled:
    r"""Pool estimates, (imputations, quantities), with their standard errors by Rubin's rules; NaN where any is.

    With M estimates :math:`Q_m` and their variances :math:`U_m`, the estimate is their mean, and its variance
    :math:`T = W + (1 + 1/M) B` has a part within, the mean of the :math:`U_m`, and a part between, the sample variance
    of the :math:`Q_m`. Degrees of freedom are those of Barnard and Rubin (1999), which never exceed those of complete
    data.
    """
    m = len(estimates)
    within, between = np.mean(np.square(errors), axis=0), np.var(estimates, axis=0, ddof=1)
    added = (1.0 + 1.0 / m) * between
    total = within + added
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, added / total, 0.0)
        old = np.where(share > 0, (m - 1) / np.square(share), np.inf)
        complete = np.broadcast_to(np.asarray(complete_degrees, dtype=np.float64), share.shape)
        known = np.where(np.isfinite(complete), (complete + 1) / (complete + 3) * complete * (1.0 - share), np.inf)
        degrees = np.where(np.isinf(old), known, np.where(np.isinf(known), old, old * known / (old + known)))
        ratio = added / within
        missing = np.where(within > 0, (ratio + 2.0 / (degrees + 3.0)) / (ratio + 1.0), 1.0)
        missing = np.where(added > 0, missing, 0.0)
    absent = np.isnan(total)
    return Pooled(
        np.mean(estimates, axis=0), np.sqrt(total), np.where(absent, np.nan, degrees), np.where(absent, np.nan, missing)
    )
