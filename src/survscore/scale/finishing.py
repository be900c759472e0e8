"""From sums to results: weights, scores, standard errors, bounds; the same objects as of data in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError
from survscore._version import __version__
from survscore.engine.bounds import AllBounds
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.inputs import distinct, read_as
from survscore.engine.moments import Moments, contrast, n_pairs, pairs
from survscore.engine.prepared import Undefined, undefined_times
from survscore.inference.support import Support
from survscore.inference.units import Units
from survscore.metrics import Loss
from survscore.results.comparison import Comparison
from survscore.scale.influences import FirstPass, Influences, Known, of_pair
from survscore.scale.projected import ProjectedScores, late_starters, parts_of, support_of, theta_scores
from survscore.scale.specification import Specification
from survscore.scale.sums import Sums
from survscore.weighting import Administrative, Projected, Weighting
from survscore.weighting.interval_weights import IntervalWeights, inverse

if TYPE_CHECKING:
    from survscore.results.segments import SegmentedComparison
    from survscore.scale.state import State


def finish(state: State, influences: Influences | None = None) -> Comparison | SegmentedComparison:
    """Return the results of all rows that a state has seen, with the sums of a second pass where one is needed."""
    if state.n == 0:
        raise InputError("there are no rows to score")
    total = _comparison(state, None, influences)
    if not state.specification.by:
        return total
    from survscore.results.segments import SegmentedComparison

    parts = {label: _comparison(state, place, influences) for place, label in enumerate(state.segments)}
    spanning = 0 if influences is None else influences.n_spanning
    return SegmentedComparison(state.specification.by, total, dict(sorted(parts.items())), n_spanning=spanning)


def first_pass(state: State) -> FirstPass:
    """Return what the second pass needs to know: of all individuals, and of each segment."""
    what = state.specification
    levels: list[Sequence[int | None]] = [[None], *([range(len(state.segments))] if what.by else [])]
    known: list[list[list[Known | None]]] = []
    for places in levels:
        of_level: list[list[Known | None]] = []
        sums = iter(state.sums)
        for weighting in what.weightings:
            if isinstance(weighting, Projected):
                of_level.append([None] * len(what.metrics))
                continue
            own = next(sums)
            finished = [_Finished.of(what, weighting, own.segment(place)) for place in places]
            of_level.append([_stacked([one.known(k) for one in finished]) for k in range(len(what.metrics))])
        known.append(of_level)
    return FirstPass(
        list(state.segments), known, None if state.projected is None else ProjectedScores.of(state.projected)
    )


def _stacked(several: list[Known]) -> Known:
    """Return what is known of several segments as one."""
    axes = dict.fromkeys(("score", "scale", "first", "late", "moved", "drift"), 1)
    return Known(**{
        field.name: np.concatenate([getattr(one, field.name) for one in several], axis=axes.get(field.name, 0))
        for field in fields(Known)
    })  # fmt: skip


def _comparison(state: State, which: int | None, influences: Influences | None) -> Comparison:
    what = state.specification
    scored, names = [], []
    own = iter(state.sums)
    for q, weighting in enumerate(what.weightings):
        if isinstance(weighting, Projected):
            of_weighting = _projected(state, which, influences, q)
            scored.append(of_weighting)
            names.append(of_weighting[0].weighting)
            continue
        sums = next(own).segment(which)
        names.append(weighting.named(somebody_left=bool(sums["lost_counts"].any() or sums["left"].any())))
        finished = _Finished.of(what, weighting, sums)
        of_weighting = []
        for k in range(len(what.metrics)):
            one = finished.scored(k)
            if influences is not None:
                one = influences.added_to(one, which, q, k)
            of_weighting.append(one)
        scored.append(of_weighting)
    labels = distinct(names)
    files: dict[str, Any] = {}
    if state.files:
        files = {"files_read": len(state.files) - len(state.skipped), "skipped_files": list(state.skipped)}
    flat = [
        replace(
            of_weighting[k], weighting=labels[q], settings={**of_weighting[k].settings, "weighting": labels[q], **files}
        )
        for k in range(len(what.metrics))
        for q, of_weighting in enumerate(scored)
    ]
    n = state.n if which is None else int(_counted(state, which))
    dropped_out = state.n_dropped_out if which is None else _dropped_out(state, which)
    late = None
    if which is None and state.projected is not None and state.n_dropped_out is not None:
        late = late_starters(state.projected)
    return Comparison(
        what.names, what.names[0], None, what.at, what.level, n, dropped_out, tuple(flat), late_starters=late
    )


def _counted(state: State, which: int) -> float:
    """Return how many individuals a segment has."""
    if state.sums:
        return float(state.sums[0].segment(which)["everybody"].sum())
    if state.projected is None:
        raise TypeError("there are no sums")
    strata = state.projected.strata
    return strata.units[1 + strata.segments.index(state.segments[which])].n


def _projected(state: State, which: int | None, influences: Influences | None, q: int) -> list[ScoreArrays]:
    """Return projected scores of all individuals, or of a segment, by all metrics."""
    what, weighting = state.specification, state.specification.projected
    if influences is None or influences.first.projected is None or influences.parts is None or weighting is None:
        raise InputError("projected scores take a second pass over the data: use evaluate")
    known, parts, strata = influences.first.projected, influences.parts, influences.first.projected.sums.strata
    unit = 0 if which is None else 1 + strata.segments.index(state.segments[which])
    if strata.labels:
        weighting = Projected(np.array(strata.labels), min_followed=weighting.min_followed)
    own, scores, ends = strata.units[unit], known.units[unit], state.n_dropped_out is not None
    found = []
    for k, loss in enumerate(what.metrics):
        several = own.n_strata if weighting.strata == "own-ranks" else own.n_strata[:1]
        told = {"strata": weighting.strata if isinstance(weighting.strata, str | None) else "given"}
        settings = _settings(what, weighting, loss) | {**told, "n_strata": list(several), "theta": 1.0}
        if state.n > what.rank_rows and isinstance(weighting.strata, str):
            settings["rank_rows"] = what.rank_rows
        undefined = scores.undefined[k]
        one = ScoreArrays(
            loss.name, str(weighting), loss.direction, scores.scores[k], None, None, loss.scale,
            np.where(undefined.where, np.nan, own.n), support_of(own, undefined), undefined.reasons, settings,
            possible=loss.possible,
            parts=parts_of(scores, parts, unit, k) if ends else None,
            by_theta=theta_scores(known, parts, k, weighting, known_ends=ends) if which is None else None,
        )  # fmt: skip
        found.append(influences.added_to(one, which, q, k))
    return found


def _settings(what: Specification, weighting: Weighting, loss: Loss) -> dict[str, Any]:
    """Return what was computed, in a form for machines."""
    settings: dict[str, Any] = {
        "survscore": __version__,
        "metric": loss.name,
        "weighting": str(weighting),
        "max_weight": getattr(weighting, "max_weight", None),
        "normalize": "weights",
        "variance": getattr(weighting, "variance", None),
        "curves": {
            one.name: read_as(
                np.array(one.grid), one.interpolation or "linear", one.extrapolation, what.at,
                unsaid=one.interpolation is None,
            )
            for one in what.models
        },
    }  # fmt: skip
    if what.outcomes.cause is not None:
        settings["cause"] = what.outcomes.cause_name
    if loss.epsilon:
        settings["epsilon"] = loss.epsilon
    return settings


def _dropped_out(state: State, which: int) -> int | None:
    for weighting, sums in zip(state.specification.in_one_pass, state.sums, strict=True):
        if isinstance(weighting, Administrative):
            return int(sums.segment(which)["left"].sum())
    return None


@dataclass(frozen=True, eq=False)
class _Curve:
    """The product-limit estimate of leaving, by bins: who leaves does so at a bin's end.

    Attributes
    ----------
    ends : ndarray of shape (bins,)
        Where bins end; infinite for the last, where nobody leaves.
    steps, own : ndarray of shape (bins,)
        Greenwood's, and one over those at risk, where somebody leaves.
    before : ndarray of shape (bins,)
        The curve before each bin: of all individuals whose time is in it.
    """

    ends: NDArray[np.float64]
    steps: NDArray[np.float64]
    own: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    blind_from: float | None

    @classmethod
    def of(cls, what: Specification, sums: Sums) -> _Curve:
        everybody, left = sums["everybody"], sums["left"]
        later = everybody.sum() - np.cumsum(everybody)
        at_risk = left + later
        ends = np.arange(everybody.size, dtype=np.float64)
        if what.bins != "units":
            ends = np.array([*(what.bins or ()), np.inf])
        share = np.divide(later, at_risk, out=np.ones(later.size), where=left > 0)
        pair = np.multiply(at_risk, later, dtype=np.float64)
        steps = np.divide(left, pair, out=np.zeros(later.size), where=(left > 0) & (later > 0))
        after = np.cumprod(share)
        last = int(np.flatnonzero(everybody)[-1])
        own = np.divide(1.0, at_risk, out=np.zeros(later.size), where=left > 0)
        return cls(
            ends, steps, own, np.concatenate(([1.0], after[:-1])), after, float(ends[last]) if left[last] else None
        )

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the curve at times."""
        return np.asarray(np.concatenate(([1.0], self.after))[np.searchsorted(self.ends, times, side="right")])

    def just_before(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return its left limits at times."""
        return np.asarray(np.concatenate(([1.0], self.after))[np.searchsorted(self.ends, times, side="left")])


@dataclass(frozen=True, eq=False)
class _Part:
    """Individuals that are weighted alike at a time, or in a bin: (bins, times), or (1, times).

    Attributes
    ----------
    weight : ndarray
        What each of them counts.
    count : ndarray
        How many they are.
    bin_of : ndarray of shape (bins or 1, times)
        In which bin their own time is; beyond all bins for those in their first stretch.
    """

    weight: NDArray[np.float64]
    count: NDArray[np.float64]
    bin_of: NDArray[np.intp]

    def total(self, values: NDArray[np.float64], power: int = 1) -> NDArray[np.float64]:
        """Return weighted sums, (..., times); an infinite weight of nobody counts nothing."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(values == 0, 0.0, self.weight**power * values).sum(axis=-2))

    def moving(self, cap: float) -> NDArray[np.float64]:
        """Return the weights that are finite and below a cap: they move with the curve that they come from."""
        return np.where(np.isfinite(self.weight) & (self.weight < cap), self.weight, 0.0)


@dataclass(frozen=True, eq=False)
class _Finished:
    """One weighting's sums with their weights: of the first stretch, of the second while event-free, and with event."""

    what: Specification
    weighting: Weighting
    sums: Sums
    curve: _Curve | None
    cap: float
    parts: tuple[_Part, _Part, _Part]

    @classmethod
    def of(cls, what: Specification, weighting: Weighting, sums: Sums) -> _Finished:
        """Estimate the curve, and take the weights from it."""
        times, m, n_bins = what.at, what.at.size, sums.sizes["bin"]
        in_first = (sums["first_stops"].sum() - np.cumsum(sums["first_stops"])[:m])[None]
        in_event = np.cumsum(sums["event_changes"], axis=1)[:, :m]
        given = getattr(weighting, "max_weight", None)
        cap = np.inf if given is None else float(given)
        if weighting.estimated and sums["left"].any():
            curve: _Curve | None = _Curve.of(what, sums)
        else:
            curve = None
        ones, nowhere = np.ones((1, m)), np.full((1, m), n_bins)
        bins = np.broadcast_to(np.arange(n_bins)[:, None], (n_bins, m))
        if curve is None:
            weights = [ones, ones, np.ones((n_bins, m))]
            late_bin = nowhere
        else:
            before = np.broadcast_to(inverse(curve.before, cap)[:, None], (n_bins, m))
            weights = [inverse(curve.at(times), cap)[None], inverse(curve.just_before(times), cap)[None], before]
            late_bin = np.searchsorted(curve.ends, times, side="left")[None]
        counts = [np.asarray(one, dtype=np.float64) for one in (in_first, sums["late_counts"][None], in_event)]
        first, late, event = map(_Part, weights, counts, (nowhere, late_bin, bins))
        return cls(what, weighting, sums, curve, cap, (first, late, event))

    def _values(self, metric: int) -> list[NDArray[np.float64]]:
        """Return the sums of all quantities, (quantities, bins or 1, times), of each part."""
        first, late, event = (self.sums[name][metric] for name in ("first", "late", "event"))
        return [first.T[:, None], late.T[:, None], event.transpose(2, 1, 0)]

    def scored(self, metric: int) -> ScoreArrays:
        """Return one metric's scores and their moments."""
        what, loss = self.what, self.what.metrics[metric]
        k = len(what.models)
        first, late, event = self.parts
        weight_sums = np.array([part.total(part.count) for part in self.parts])
        undefined = self._undefined(metric, weight_sums)
        total = np.where(undefined.where, np.nan, weight_sums.sum(axis=0))
        values = self._values(metric)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = sum(part.total(one[:k]) for part, one in zip(self.parts, values, strict=True)) / total
            n_effective = total**2 / sum(part.total(part.count, 2) for part in self.parts)
            stops = self.sums["population_stops"]
            counted = np.asarray(stops.sum() - np.cumsum(stops)[:-1], dtype=np.float64)
            share = np.where(counted > 0, 1.0 / counted, np.nan)
        units = Units(counted, share, counted - 1.0)
        others = np.cumsum(self.sums["other_changes"])[: what.at.size]  # of another cause: scored as none
        n_events, n_event_free = event.count.sum(axis=0) - others, first.count[0] + late.count[0] + others
        support = Support(counted, n_effective, n_events, n_event_free, units, grouped=False)
        moments = self._moments(values, scores, total, units, metric)
        settings = _settings(what, self.weighting, loss)
        return ScoreArrays(
            loss.name, str(self.weighting), loss.direction, scores, moments, self._bounds(metric, values),
            loss.scale, total, support, undefined.reasons, settings,
            possible=loss.possible,
        )  # fmt: skip

    def _undefined(self, metric: int, weight_sums: NDArray[np.float64]) -> Undefined:
        what, subject = self.what, self.weighting.weights_for
        return undefined_times(what.metrics[metric], what.at, subject, self._stretches(), weight_sums)

    def known(self, metric: int) -> Known:
        """Return what the second pass needs to know, with one segment."""
        what = self.what
        k, m = len(what.models), what.at.size
        values = self._values(metric)
        weight_sums = np.array([part.total(part.count) for part in self.parts])
        undefined = self._undefined(metric, weight_sums).where
        total = np.where(undefined, 1.0, weight_sums.sum(axis=0))
        sums = np.array([part.total(one[:k]) for part, one in zip(self.parts, values, strict=True)]).sum(axis=0)
        centre = np.where(undefined, 0.0, sums / total)
        scale = np.where(undefined, 0.0, 1.0 / total)
        # of those who are counted at some time at which there is a score
        used = [(part.count > 0) & ~undefined for part in self.parts]
        weights = [np.where(where, part.weight, 0.0) for where, part in zip(used, self.parts, strict=True)]
        moved, drift = np.zeros((m, 1, k, 0)), np.zeros((m, 1, k, 0))
        own = np.zeros((1, self.sums.sizes["bin"]))
        if self.curve is not None:
            after = np.where(undefined, 0.0, self._after_exits(values, centre, self.cap))
            moved = after.transpose(2, 0, 1)[:, None]
            steps = np.cumsum(self.curve.steps * moved, axis=-1)
            drift = np.concatenate((np.zeros((m, 1, k, 1)), steps), axis=-1)
            own = self.curve.own[None]
        return Known(
            score=centre.T[:, None], scale=scale[:, None], first=weights[0].T, late=weights[1].T,
            event=weights[2].max(axis=1)[None], own=own, moved=moved, drift=drift,
        )  # fmt: skip

    def _stretches(self) -> IntervalWeights:
        """Return weights of nobody, from which can be told when there is no score."""
        nobody, blind = np.zeros(0, dtype=np.int32), None
        if self.curve is not None and self.curve.blind_from is not None:
            blind = int(np.searchsorted(self.what.at, self.curve.blind_from, side="left"))
        label = nobody.astype(np.int8)
        return IntervalWeights(nobody, nobody, label, self.parts[0].weight, np.zeros(0), nobody, support_end=blind)

    def _moments(
        self,
        values: list[NDArray[np.float64]],
        scores: NDArray[np.float64],
        total: NDArray[np.float64],
        units: Units,
        metric: int,
    ) -> Moments:
        """Return the variances."""
        k, m = scores.shape
        defined = np.isfinite(total)
        divisor, centre = np.where(defined, total, 1.0), np.where(defined, scores, 0.0)
        pointwise = np.zeros((n_pairs(k), m))
        if self.curve is not None:
            moving, everybody = (
                np.where(defined, self._after_exits(values, centre, cap) / divisor, 0.0) for cap in (self.cap, np.inf)
            )
        for p, (a, b) in enumerate(pairs(k)):
            mean = contrast(centre, a, b)
            for part, one in zip(self.parts, values, strict=True):
                squares = one[k + p] - 2.0 * mean * contrast(one[:k], a, b) + mean**2 * part.count
                pointwise[p] += (part.moving(np.inf) ** 2 * squares).sum(axis=0) / divisor**2
            if self.curve is not None:
                some, whole = contrast(moving, a, b), contrast(everybody, a, b)
                pointwise[p] -= np.einsum("s,sj->j", self.curve.steps, some * (2.0 * whole - some))
        inflation = units.inflation
        over_time = None
        if self.sums.sizes["column"]:
            factor = np.where(defined, np.sqrt(inflation), 0.0) / divisor
            over_time = _covariances(self.sums["products"][metric], centre) * np.outer(factor, factor)
        none = np.zeros((0, m))
        return Moments(np.where(defined, pointwise * inflation, 0.0), none, np.zeros((n_pairs(k), 0)), over_time)

    def _after_exits(
        self, values: list[NDArray[np.float64]], centre: NDArray[np.float64], cap: float
    ) -> NDArray[np.float64]:
        """Return the sums of deviations, (models, exits, times), over those whose time comes after an exit."""
        if self.curve is None:
            raise TypeError("nobody left")
        k, m = centre.shape
        n_bins = self.curve.ends.size
        by_bin = np.zeros((k, n_bins + 1, m))
        for part, one in zip(self.parts, values, strict=True):
            deviations = part.moving(cap) * (one[:k] - centre[:, None] * part.count)
            for a in range(k):
                np.add.at(by_bin[a], (part.bin_of, np.arange(m)), deviations[a])
        after = np.cumsum(by_bin[:, ::-1], axis=1)[:, ::-1][:, 1:]
        return np.where(self.curve.ends[:, None] <= self.what.at, after, 0.0)

    def _bounds(self, metric: int, values: list[NDArray[np.float64]]) -> AllBounds | None:
        """Return what the lost could change."""
        sums, k, m = self.sums, len(self.what.models), self.what.at.size
        if not isinstance(self.weighting, Administrative) or not sums["left"].any():
            return None
        divisor = sum(part.count.sum(axis=0) for part in self.parts) + sums["known_counts"] + sums["lost_counts"]
        losses = sum(one[:k].sum(axis=1) for one in values) + sums["known"][metric].T
        with np.errstate(invalid="ignore", divide="ignore"):
            lower, upper = (sums[name][metric].T / divisor for name in ("lowest", "highest"))
            return AllBounds(losses / divisor, lower, upper, np.zeros((0, m)), np.zeros((2, n_pairs(k), 0)), None)


def _covariances(products: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums of products of deviations from `centre`, (models, times), of all pairs: (pairs, times, times)."""
    k, m = centre.shape
    whole = products.reshape(k + 1, m, k + 1, m)
    counted = whole[:k, :, k]  # the loss at the first time, if counted at the second
    found = []
    for a, b in pairs(k):
        mean, once = contrast(centre, a, b), contrast(counted, a, b)
        found.append(of_pair(whole, a, b) - once * mean - (once * mean).T + np.outer(mean, mean) * whole[k, :, k])
    return np.array(found)
