r"""Whether segments differ: each against the others, and all at once.

Segments are disjoint, so their estimates are independent and variances add. A difference has the degrees of freedom of
Satterthwaite's approximation, :math:`(\sum_g c_g^2 V_g)^2 / \sum_g (c_g^2 V_g)^2 / \nu_g`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_choice, plural
from survscore.engine.evaluation import ScoreArrays
from survscore.inference.intervals import ROUNDING, fisher_p, student_p, student_quantile
from survscore.inference.multiplicity import adjusted
from survscore.inference.support import FEW_FOR_DIFFERENCE, MUCH_ADDED
from survscore.results.estimates import Columns, Estimates, verdicts_by_p
from survscore.results.long_tables import LongTable, stacked

if TYPE_CHECKING:
    import pandas as pd

Comparand = Literal["difference", "score"]
Matrix = NDArray[np.float64]
OTHERS = "(others)"


@dataclass(frozen=True, eq=False)
class BySegment:
    """One quantity in every segment, (segments, times): NaN where a segment has none, or too few for an interval."""

    value: Matrix
    variance: Matrix
    degrees: Matrix  # of freedom, of the variance
    n_counted: Matrix  # to how many individuals it refers

    @classmethod
    def of(cls, segments: Sequence[Estimates], a: int, r: int | None) -> BySegment:
        """Take the scores of a model, or its differences to another."""
        b, by_segment = a if r is None else r, []
        for estimates in segments:
            value = estimates.scores[a] if r is None else estimates.scores[a] - estimates.scores[b]
            degrees = estimates.support.score_degrees if r is None else estimates.support.difference_degrees
            rounding = ROUNDING * np.abs(estimates.scores[[a, b]]).max(axis=0)  # nothing is known more exactly
            with np.errstate(invalid="ignore"):
                variance = np.maximum(estimates.variance(a, b), rounding**2)
                known = estimates.support.enough(FEW_FOR_DIFFERENCE) & np.isfinite(value)
                known &= np.isfinite(variance) & (variance > 0) & (estimates.added_share(a, b) <= MUCH_ADDED)
                known &= estimates.scored.scale != "none"  # chance makes more of it in small segments
            columns = (np.where(known, column, np.nan) for column in (value, variance, degrees))
            by_segment.append((*columns, estimates.support.n_counted))
        return cls(*map(np.array, zip(*by_segment, strict=True)))

    def against(self, other: int | None) -> tuple[Matrix, Matrix, Matrix]:
        """Return, for each segment, the others' value, the variance of the difference, and its degrees of freedom.

        The others are one segment, or all but this, weighted by how many individuals they count.
        """
        known, place, pooled = ~np.isnan(self.value), np.arange(len(self.value)), []
        with np.errstate(invalid="ignore", divide="ignore"):
            for g in place:
                chosen = known & (place != g if other is None else place == other)[:, None]
                share = np.where(chosen, self.n_counted, 0.0)
                share /= share.sum(axis=0)
                each = share**2 * np.where(chosen, self.variance, 0.0)
                total = self.variance[g] + each.sum(axis=0)
                parts = np.sum(each**2 / np.where(chosen, self.degrees, 1.0), axis=0)
                degrees = total**2 / (self.variance[g] ** 2 / self.degrees[g] + parts)
                pooled.append((np.sum(share * np.where(chosen, self.value, 0.0), axis=0), total, degrees))
        value, variance, degrees = (np.array(column) for column in zip(*pooled, strict=True))
        return value, variance, degrees

    def heterogeneity(self) -> Columns:
        r"""Return at each time how many segments there are, Cochran's Q, its degrees of freedom and a p-value.

        :math:`Q = \sum_g w_g (d_g - \bar d)^2` with :math:`w_g = 1/V_g`. Since these weights are estimated, Q is judged
        by Welch's approximation: :math:`Q / (k - 1) / [1 + 2 (k - 2) \Lambda / (k^2 - 1)]` by Fisher's F with k - 1 and
        :math:`(k^2 - 1) / (3 \Lambda)` degrees of freedom, :math:`\Lambda = \sum_g (1 - w_g / \sum w)^2 / \nu_g`. With
        many individuals that is the chi-square of Q.
        """
        k = np.sum(~np.isnan(self.value), axis=0).astype(np.float64)
        several = np.where(k > 1, k, np.nan)
        weight = np.where(k > 1, 1.0 / self.variance, np.nan)
        share = weight / np.nansum(weight, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            q = np.nansum(weight * (self.value - np.nansum(share * self.value, axis=0)) ** 2, axis=0)
            welch_term = np.nansum((1.0 - share) ** 2 / self.degrees, axis=0)
            statistic = q / (several - 1) / (1.0 + 2.0 * (several - 2) * welch_term / (several**2 - 1))
            rest = (several**2 - 1) / (3.0 * welch_term)
        p_value = np.array([fisher_p(*three) for three in zip(statistic, several - 1, rest, strict=True)])
        return {"n_segments": k, "q": np.where(k > 1, q, np.nan), "df": several - 1, "p_value": p_value}


def between(table: LongTable, of: Comparand, model: str | None, against: str | Sequence[str] | None) -> pd.DataFrame:
    """Return each segment against all others, or against one of them; see `SegmentedComparison.between`."""
    keys, key = list(table.comparisons)[1:], None
    if against is not None:
        key = (against,) if isinstance(against, str) else tuple(str(label) for label in against)
        if key not in keys:
            raise InputError(f"against must be one of the {len(keys)} segments, such as {keys[0]}, not {key!r}")
    other = None if key is None else keys.index(key)
    compared = [g for g in range(len(keys)) if g != other]
    blocks = []
    for scored, labels, segments in _each(table, of, model):
        labels["against"] = OTHERS if key is None else ", ".join(key)
        rest, variance, degrees = segments.against(other)
        difference, se = segments.value - rest, np.sqrt(variance)
        half = student_quantile(table.total.level, degrees) * se
        p_value = student_p(difference / se, degrees)
        p_adjusted = np.full_like(p_value, np.nan)
        p_adjusted[compared] = adjusted(p_value[compared], table.correction)
        columns = {
            "estimate": segments.value,
            "others": rest,
            "difference": difference,
            "se": se,
            "lower": difference - half,
            "upper": difference + half,
            "p_value": p_value,
            "p_adjusted": p_adjusted,
        }
        for g in compared:
            known = ~np.isnan(segments.value[g])
            numbers: Columns = {name: values[g] for name, values in columns.items()}
            there, directions = np.where(known, difference[g], 0.0), [scored.direction] * known.size
            numbers["verdict"] = verdicts_by_p(there, p_adjusted[g], known, directions, table.total.level)
            blocks.append({**dict(zip(table.by, keys[g], strict=True)), **table.block(scored, labels, numbers)})
    return stacked(blocks)


def heterogeneity(table: LongTable, of: Comparand, model: str | None) -> pd.DataFrame:
    """Return whether all segments could be the same; see `SegmentedComparison.heterogeneity`."""
    each = _each(table, of, model)
    return stacked([table.block(scored, labels, segments.heterogeneity()) for scored, labels, segments in each])


def _each(table: LongTable, of: Comparand, model: str | None) -> Iterator[tuple[ScoreArrays, Columns, BySegment]]:
    """Yield, for every metric, weighting and model, the estimates of all segments, and their labels."""
    if table.n_spanning is None:
        raise InputError(
            "segments can't be compared with each other: `groups` are in random buckets, so it is not known "
            "whether some have individuals in several segments; write files that hold whole groups"
        )
    if table.n_spanning:
        raise InputError(
            f"segments can't be compared with each other: {plural(table.n_spanning, 'group')} of `groups` "
            f"{'has' if table.n_spanning == 1 else 'have'} individuals in several segments, which therefore depend "
            "on each other; segment by something that is the same for all of a group"
        )
    check_choice("of", of, ("difference", "score"))
    total = table.total
    if model is not None:
        check_choice("model", model, total.models)
    reference = total.models.index(total.reference) if of == "difference" else None
    for k, scored in enumerate(total.scored):
        estimates = [table.estimates(part.scored[k]) for part in list(table.comparisons.values())[1:]]
        for a, name in enumerate(total.models):
            if a == reference or (model is not None and name != model):
                continue
            labels = {"model": name} | ({} if reference is None else {"reference": total.reference})
            yield scored, labels, BySegment.of(estimates, a, reference)
