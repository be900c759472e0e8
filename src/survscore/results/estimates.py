"""From scores and their moments to estimates with intervals: the formulas behind every table of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import cached_property
from survscore.engine.evaluation import ScoreArrays
from survscore.inference.intervals import (
    Contrast,
    difference_interval,
    few_for_score,
    ratio_interval,
    score_interval,
    sides,
    simultaneous_quantile,
    student_p,
    student_quantile,
    verdicts,
    with_degrees,
)
from survscore.inference.support import FEW_FOR_BAND, FEW_FOR_DIFFERENCE, Support
from survscore.inference.units import Units
from survscore.metrics import Direction

Vector = NDArray[np.float64]
Columns = dict[str, Any]
TOO_FEW = "too few"


def has_skill(scored: ScoreArrays) -> bool:
    """Whether there are skill scores: the null model has a score, too, lower is better, and zero is no error at all."""
    return scored.has_null and scored.has_ratios and scored.direction == "lower"


def defined_models(scored: ScoreArrays) -> NDArray[np.float64]:
    """Return the scores of the models that have any, or of all: a model without scores has no mean anyway."""
    defined = np.isfinite(scored.scores).any(axis=1)
    return scored.scores[defined] if defined.any() else scored.scores


@dataclass(frozen=True, eq=False)
class Estimates:
    """Scores by one metric under one weighting, at each time or as means over time, with all that follows from them.

    Models are named by their place. Columns have one row for each time, and one for a mean; a mean is NaN if a score
    within the range is missing.
    """

    scored: ScoreArrays
    level: float = 0.95
    weights: Vector | None = None  # of each time, for a mean over time

    @property
    def _used(self) -> Vector | None:
        """The weights of the scored times; None at each time."""
        return None if self.weights is None else self.weights[: self.scored.scores.shape[1]]

    @cached_property
    def _missing(self) -> bool:
        """Whether there is no mean, since some score within the range is missing."""
        if self.weights is None or self._used is None:
            return False
        used = self._used > 0
        beyond = self.weights[self._used.size :].any()
        return bool(beyond or not used.any() or not np.isfinite(defined_models(self.scored)[:, used]).all())

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """The scores, of shape (models, rows)."""
        if self._used is None:
            return self.scored.scores
        if self._missing:
            return np.full((len(self.scored.scores), 1), np.nan)
        used = self._used > 0
        return self.scored.scores[:, used] @ self._used[used][:, None]

    @cached_property
    def support(self) -> Support:
        """How many individuals, events and groups there are."""
        if self._used is None:
            return self.scored.support
        if self._missing:
            none, no_units = np.zeros(1), Units(np.zeros(1), np.full(1, np.nan), np.zeros(1))
            return Support(none, none, none, none, no_units, self.scored.support.grouped)
        return self.scored.support.mean(self._used)

    def _over_time(self, by_time: Callable[..., Vector], average: Callable[..., float], *models: int) -> Vector:
        """Return numbers about some models at each time, or of the mean over time."""
        return by_time(*models) if self._used is None else np.array([average(self._used, *models)])

    def variance(self, a: int, b: int) -> Vector:
        """Return the variance of a score, or of the difference of two; NaN where errors were not asked for."""
        moments = self.scored.moments
        if moments is None or self._missing:
            return np.full(self.scores.shape[1], np.nan)
        return self._over_time(moments.variance, moments.of_average, a, b)

    @property
    def without_error(self) -> str:
        """What a mean lacks for a standard error, where the scores that it is the mean of have one."""
        moments = self.scored.moments
        if moments is None or self._used is None or self._missing or not np.isnan(self.variance(0, 0)).any():
            return ""
        return "" if np.isnan(moments.variance(0, 0)[self._used > 0]).any() else "name ranges= when scoring"

    def added_share(self, a: int, b: int) -> Vector:
        """Return which share of the variance is not that of influences."""
        moments = self.scored.moments
        if moments is None or self._missing:
            return np.zeros(self.scores.shape[1])
        return self._over_time(moments.added_share, moments.added_share_of_average, a, b)

    def interpolation(self, a: int, b: int) -> Vector:
        """Return by how much interpolation may have changed the difference of two models."""
        effect = self.scored.interpolation
        if effect is None or self._missing:
            return np.zeros(self.scores.shape[1])
        return self._over_time(effect.of, lambda weights, *models: float(effect.of(*models) @ weights), a, b)

    def se(self, a: int, b: int) -> Vector:
        """Return the standard error of a score, or of the difference of two."""
        return np.where(np.isnan(self.scores[a] - self.scores[b]), np.nan, np.sqrt(self.variance(a, b)))

    def score(self, a: int) -> Columns:
        """Return the scores of a model with their intervals."""
        se = self.se(a, a)
        scale, possible = self.scored.scale, self.scored.possible
        interval = score_interval(self.scores[a], se, self.level, scale, self.support, self.added_share(a, a), possible)
        return {"estimate": self.scores[a], "se": se, **interval._asdict()}

    def difference(self, a: int, r: int) -> Columns:
        """Return the differences of a model to another with their intervals and p-values."""
        contrast = self._difference(a, r, student_quantile(self.level, self.support.difference_degrees))
        return self._judged(self.scores[a] - self.scores[r], self.se(a, r), contrast, self.scored.direction)

    def skill(self, a: int, null: int) -> Columns:
        """Return 1 - score / null score, with the variance of that ratio to first order; NaN if the null score is zero.

        The ratio is positive, so its interval is made on the logarithmic scale.
        """
        ratio, se = self._relative(self.scores[a], self.variance(a, a), self._covariance(a, null), null)
        limits_of_ratio = ratio_interval(ratio, se, self.level, self.support)
        limits = {"lower": 1.0 - limits_of_ratio.upper, "upper": 1.0 - limits_of_ratio.lower}
        return {"estimate": 1.0 - ratio, "se": se, **limits, "reliable": limits_of_ratio.reliable}

    def skill_difference(self, a: int, r: int, null: int) -> Columns:
        """Return the differences of two models' skill scores, (reference - score) / null, to first order."""
        with_null = self._covariance(r, null) - self._covariance(a, null)
        difference, se = self._relative(self.scores[r] - self.scores[a], self.variance(a, r), with_null, null)
        of_model, of_reference = (1.0 - self.scores[b] / self._null_score(null) for b in (a, r))
        critical = student_quantile(self.level, self.support.difference_degrees)
        tolerance = self.interpolation(a, r) / self._null_score(null)
        contrast = difference_interval(of_model, of_reference, se, critical, "plain", self.support, tolerance=tolerance)
        return self._judged(difference, se, contrast, "higher")

    def band(self, a: int, r: int, n_draws: int, seed: int) -> Columns:
        """Return simultaneous confidence bands of the differences of a model to another."""
        if self.scored.moments is None:
            raise TypeError("bands need moments")
        normal = simultaneous_quantile(self.scored.moments.covariance_over_time(a, r), self.level, n_draws, seed)
        critical = with_degrees(normal, self.support.difference_degrees)
        contrast = self._difference(a, r, critical)
        return {
            "estimate": self.scores[a] - self.scores[r],
            "lower": contrast.lower,
            "upper": contrast.upper,
            "critical_value": critical,
            "reliable": self.support.enough(FEW_FOR_BAND) & contrast.reliable,
        }

    def bounds(self, a: int, b: int, *, where_undefined: bool = False) -> Columns:
        """Return within which values a score or difference lies, whatever happened to those who dropped out.

        They may be known where there is no score: NaN there, unless asked for. Of a difference also its largest p-value
        over all that can have happened to them, 1 where its sign may change.
        """
        bounds = self.scored.bounds
        if bounds is None or self._missing:
            return {}
        lower, upper = (
            bounds.at_times(a, b) if self._used is None else np.array(bounds.of_average(self._used, a, b))[:, None]
        )
        undefined = np.isnan(self.scores[a]) & (not where_undefined)
        columns = {"bound_lower": lower, "bound_upper": upper}
        if a != b:
            z = self._over_time(bounds.z_at_times, bounds.z_of_average, a, b)
            with np.errstate(invalid="ignore"):
                z = np.where(lower * upper > 0, z, 0.0)
            # completed data have no fewer events and individuals than those observed
            columns["bound_p_value"] = student_p(z, self.support.difference_degrees)
        return {name: np.where(undefined, np.nan, values) for name, values in columns.items()}

    def counts(self) -> Columns:
        """Return how many individuals, events and groups there are."""
        support = self.support
        columns = {"n_counted": support.n_counted, "n_events": support.n_events, "n_effective": support.n_effective}
        if support.grouped:
            columns |= {"n_groups": support.units.counted, "largest_share": support.units.largest_share}
        return columns

    def reason(self, models: Sequence[int], *, of_difference: bool, reliable: bool) -> str:
        """Return why the mean of some models, or its interval, is missing; nothing where neither is."""
        if np.isnan(self.scores[models]).any():
            return "; ".join(self.scored.undefined) or "there is no score"
        if self.scored.scale == "none":
            return "chance alone makes much of it, so that it has no interval"
        few = FEW_FOR_DIFFERENCE if of_difference else few_for_score(self.scored.scale)
        if reliable:
            return ""
        if self.support.enough(few)[0]:
            return "too much of its variance comes from individuals who are not observed"
        if float(self.support.n_rarer[0]) < few:
            return f"fewer than {few} with event, or without"
        return "too few groups, or groups of too different size" if self.support.grouped else "too few individuals"

    def _difference(self, a: int, r: int, critical: Vector) -> Contrast:
        return difference_interval(
            self.scores[a],
            self.scores[r],
            self.se(a, r),
            critical,
            self.scored.scale,
            self.support,
            self.added_share(a, r),
            self.scored.possible,
            self.interpolation(a, r),
        )

    def _judged(self, value: Vector, se: Vector, contrast: Contrast, direction: Direction) -> Columns:
        verdict = verdicts(contrast.lower, contrast.upper, direction)
        limits = {"lower": contrast.lower, "upper": contrast.upper, "p_value": contrast.p_value}
        return {"estimate": value, "se": se, **limits, "verdict": verdict, "reliable": contrast.reliable}

    def _relative(self, value: Vector, variance: Vector, with_null: Vector, null: int) -> tuple[Vector, Vector]:
        """Return a value divided by the null model's score, and its standard error to first order."""
        of_null = self._null_score(null)
        ratio = value / of_null
        variance = variance - 2 * ratio * with_null + ratio**2 * self.variance(null, null)
        return ratio, np.sqrt(np.maximum(variance, 0.0)) / of_null

    def _null_score(self, null: int) -> Vector:
        return np.where(self.scores[null] > 0, self.scores[null], np.nan)

    def _covariance(self, a: int, b: int) -> Vector:
        return (self.variance(a, a) + self.variance(b, b) - self.variance(a, b)) / 2


def verdicts_by_p(
    difference: Vector, p_value: Vector, reliable: NDArray[np.bool_], directions: Sequence[Direction], level: float
) -> NDArray[np.object_]:
    """Return whether models are better, worse or undecided by p-values; too few, where there is no interval for that.

    `directions` says of each difference which values are better; see `sides`.
    """
    below, above = np.array([sides(direction) for direction in directions], dtype=object).reshape(-1, 2).T
    with np.errstate(invalid="ignore"):
        sure = p_value < 1.0 - level
        lower = sure & (difference < 0)
    conditions = [np.isnan(difference), ~reliable, np.isnan(p_value), lower, sure]
    return np.select(conditions, ["unknown", TOO_FEW, "unknown", below, above], "undecided").astype(object)
