r"""Whether segments differ: each against the others, and all at once.

Segments are disjoint, so their estimates are independent and variances add. A difference has the degrees of freedom of
Satterthwaite's approximation, :math:`(\sum_g c_g^2 V_g)^2 / \sum_g (c_g^2 V_g)^2 / \nu_g`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_choice
from survscore.engine.evaluation import Scored
from survscore.inference.intervals import ROUNDING, fisher_p, student_p, student_quantile
from survscore.inference.multiplicity import adjusted
from survscore.inference.support import FEW_FOR_DIFFERENCE, MUCH_ADDED
from survscore.results.comparison import padded
from survscore.results.segment_labels import Key
from survscore.results.segment_tables import SegmentTables, verdicts_by_p

if TYPE_CHECKING:
    import pandas as pd

Quantity = Literal["difference", "score"]
QUANTITIES = ("difference", "score")
OTHERS = "(others)"


@dataclass(frozen=True, eq=False)
class Estimates:
    """One quantity in every segment, (segments, times): NaN where a segment has none, or too few for an interval.

    Attributes
    ----------
    value, variance, degrees : ndarray
        The estimates, their variances, and what these are worth.
    n_counted : ndarray
        For how many individuals they speak.
    """

    value: NDArray[np.float64]
    variance: NDArray[np.float64]
    degrees: NDArray[np.float64]
    n_counted: NDArray[np.float64]

    @classmethod
    def of(cls, seen: list[Scored], a: int, r: int | None) -> Estimates:
        """Take the scores of a model, or its differences to another."""
        rows = [_estimate(one, a, r) for one in seen]
        value, variance, degrees, n_counted = (np.array(column) for column in zip(*rows, strict=True))
        return cls(value, variance, degrees, n_counted)

    def mean_of(self, rows: NDArray[np.bool_]) -> tuple[Any, Any, Any]:
        """Return the mean of some segments, weighted by whom they count; its variance; and a sum for its degrees."""
        use = rows[:, None] & ~np.isnan(self.value)
        share = np.where(use, self.n_counted, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = share / share.sum(axis=0)
            each = share**2 * np.where(use, self.variance, 0.0)
            value = np.sum(share * np.where(use, self.value, 0.0), axis=0)
            return value, each.sum(axis=0), np.sum(each**2 / np.where(use, self.degrees, 1.0), axis=0)

    def against(self, other: int | None) -> tuple[NDArray[np.float64], ...]:
        """Return, for each segment, the others' value, the variance of the difference, and its degrees of freedom."""
        n = len(self.value)
        found = []
        for g in range(n):
            rows = np.arange(n) != g if other is None else np.arange(n) == other
            value, variance, part = self.mean_of(rows)
            total = self.variance[g] + variance
            with np.errstate(invalid="ignore", divide="ignore"):
                degrees = total**2 / (self.variance[g] ** 2 / self.degrees[g] + part)
            found.append((value, total, degrees))
        return tuple(np.array(column) for column in zip(*found, strict=True))

    def heterogeneity(self) -> list[tuple[int, float, float, float]]:
        r"""Return at each time how many segments there are, Cochran's Q, its degrees of freedom and a p-value.

        :math:`Q = \sum_g w_g (d_g - \bar d)^2` with :math:`w_g = 1/V_g`. Since these weights are estimated, Q is judged
        by Welch's approximation: :math:`Q / (k - 1) / [1 + 2 (k - 2) \Lambda / (k^2 - 1)]` by Fisher's F with k - 1 and
        :math:`(k^2 - 1) / (3 \Lambda)` degrees of freedom, :math:`\Lambda = \sum_g (1 - w_g / \sum w)^2 / \nu_g`. With
        many individuals that is the chi-square of Q.
        """
        found = []
        for j in range(self.value.shape[1]):
            known = ~np.isnan(self.value[:, j])
            k = int(known.sum())
            if k < 2:
                found.append((k, np.nan, np.nan, np.nan))
                continue
            weight = 1.0 / self.variance[known, j]
            share = weight / weight.sum()
            q = float(np.sum(weight * (self.value[known, j] - share @ self.value[known, j]) ** 2))
            spread = float(np.sum((1.0 - share) ** 2 / self.degrees[known, j]))
            statistic = q / (k - 1) / (1.0 + 2.0 * (k - 2) * spread / (k**2 - 1))
            found.append((k, q, k - 1.0, fisher_p(statistic, k - 1.0, (k**2 - 1) / (3.0 * spread))))
        return found


def _estimate(one: Scored, a: int, r: int | None) -> tuple[NDArray[np.float64], ...]:
    if one.moments is None:
        raise TypeError("a comparison always has moments")
    b = a if r is None else r
    value = one.scores[a] if r is None else one.scores[a] - one.scores[b]
    degrees = one.support.score_degrees if r is None else one.support.difference_degrees
    rounding = ROUNDING * np.maximum(np.abs(one.scores[a]), np.abs(one.scores[b]))  # nothing is known more exactly
    with np.errstate(invalid="ignore"):
        variance = np.maximum(one.moments.variance(a, b), rounding**2)
        known = one.support.enough(FEW_FOR_DIFFERENCE) & np.isfinite(value) & np.isfinite(variance) & (variance > 0)
        known &= one.scale != "none"  # chance makes more of it in small segments
        known &= one.moments.added_share(a, b) <= MUCH_ADDED
    gone = (np.where(known, column, np.nan) for column in (value, variance, degrees))
    return (*gone, one.support.n_counted)


def between(tables: SegmentTables, of: Quantity, model: str | None, against: Key | None) -> pd.DataFrame:
    """Return each segment against all others, or against one of them; see `SegmentedComparison.between`."""
    import pandas as pd

    keys = list(tables.parts)
    if against is not None and against not in tables.parts:
        raise InputError(f"against must be one of the {len(keys)} segments, such as {keys[0]}, not {against!r}")
    other = None if against is None else keys.index(against)
    parts = []
    for k, estimates, names in _each(tables, of, model):
        one, size = tables.total.scored[k], tables.look.size
        rest, variance, degrees = estimates.against(other)
        difference, se = estimates.value - rest, np.sqrt(variance)
        p_value = student_p(difference / se, degrees)
        compared = [g for g in range(len(keys)) if g != other]
        p_adjusted = np.full_like(p_value, np.nan)
        p_adjusted[compared] = adjusted(p_value[compared], tables.correction)
        half = student_quantile(tables.total.level, degrees) * se
        known = ~np.isnan(estimates.value)
        directions = [one.direction] * difference.shape[1]
        for g in compared:
            numbers = {
                "estimate": estimates.value[g], "others": rest[g], "difference": difference[g], "se": se[g],
                "lower": difference[g] - half[g], "upper": difference[g] + half[g], "p_value": p_value[g],
                "p_adjusted": p_adjusted[g],
                "verdict": verdicts_by_p(
                    np.where(known[g], difference[g], 0.0), p_adjusted[g], known[g], directions, tables.total.level
                ),
            }  # fmt: skip
            parts.append(pd.DataFrame({
                **dict(zip(tables.by, keys[g], strict=True)), **names,
                "against": OTHERS if against is None else ", ".join(against),
                **tables.look.before(one.metric),
                **{name: padded(values, size) for name, values in numbers.items()},
                **tables.look.after(one.metric),
            }, index=range(size)))  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def heterogeneity(tables: SegmentTables, of: Quantity, model: str | None) -> pd.DataFrame:
    """Return whether all segments could be the same; see `SegmentedComparison.heterogeneity`."""
    import pandas as pd

    parts = []
    for k, estimates, names in _each(tables, of, model):
        metric, size = tables.total.scored[k].metric, tables.look.size
        columns = (np.array(column, dtype=np.float64) for column in zip(*estimates.heterogeneity(), strict=True))
        numbers = dict(zip(("n_segments", "q", "df", "p_value"), columns, strict=True))
        parts.append(pd.DataFrame({
            **names, **tables.look.before(metric),
            **{name: padded(values, size) for name, values in numbers.items()},
            **tables.look.after(metric),
        }, index=range(size)))  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _each(tables: SegmentTables, of: Quantity, model: str | None) -> Iterator[tuple[int, Estimates, dict[str, str]]]:
    """Yield, for every metric, weighting and model, the estimates of all segments, and what to call them."""
    check_choice("of", of, QUANTITIES)
    total = tables.total
    if model is not None:
        check_choice("model", model, total.models)
    reference = total.models.index(total.reference) if of == "difference" else None
    for k, one in enumerate(total.scored):
        seen = [tables.look.of(part.scored[k]) for part in tables.parts.values()]
        for a, name in enumerate(total.models):
            if a == reference or (model is not None and name != model):
                continue
            names = {"metric": one.metric, "weighting": one.weighting, "model": name}
            if reference is not None:
                names["reference"] = total.reference
            yield k, Estimates.of(seen, a, reference), names
