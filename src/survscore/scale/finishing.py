"""From sums to results: weights, scores, standard errors, bounds; the same objects as of data in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError
from survscore._version import __version__
from survscore.engine.averaging import averaging_weights
from survscore.engine.bounds import AllBounds
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.inputs import distinct, read_as
from survscore.engine.moments import Moments, contrast, n_pairs, pairs
from survscore.engine.prepared import Undefined, undefined_times
from survscore.inference.support import Support
from survscore.inference.units import Units
from survscore.metrics import Loss
from survscore.outcomes import SINCE_ENTRY
from survscore.results.comparison import Comparison
from survscore.scale.cells import Cells
from survscore.scale.influences import FirstPass, Known, of_pair
from survscore.scale.projected import ProjectedSums, Strata, UnitScores, early_and_late, late_starters
from survscore.scale.specification import Specification
from survscore.scale.sums import Sums
from survscore.weighting import Administrative, Projected, Weighting
from survscore.weighting.interval_weights import IntervalWeights, inverse

if TYPE_CHECKING:
    from survscore.results.segments import SegmentedComparison
    from survscore.scale.looks import Look
    from survscore.scale.state import State

Values = NDArray[np.float64]

AS_GOOD_AS_NONE = 1e-6  # individuals


def finish(state: State) -> Comparison | SegmentedComparison:
    """Return the results of all rows that a state has seen."""
    if state.n == 0:
        raise InputError("there are no rows to score")
    total = _comparison(state, None)
    if not state.specification.by:
        return total
    from survscore.results.segments import SegmentedComparison

    parts = {label: _comparison(state, label) for label in sorted(state.segments)}
    spanning = 0 if state.influences is None else state.influences.n_spanning
    return SegmentedComparison(state.specification.by, total, parts, n_spanning=spanning)


def sampled(look: Look, what: Specification, strata: Strata) -> State:
    """Return the sums of the sample of a first look, whose predictions are read at few of the times."""
    from survscore.scale.state import State

    if strata.drawn is None:
        raise TypeError("no sample was drawn")
    own = replace(strata.drawn.specification, bins=what.bins)
    state = State(own, projected=ProjectedSums.of(replace(strata, specification=own)))
    if what.bins == "units":  # others may leave later than any of the sample
        state.reach(int(look.exits[-1]))
    state.update(strata.drawn.table)
    if state.projected is not None:
        # Others have their events when nobody of the sample has: without a jump, what their own event does to the curve
        # would be missing from their influence, and standard errors be too small. Not where the sample has ended.
        counts = state.projected.values["counts"]
        stay = np.cumsum(counts[..., ::-1, :].sum(axis=-1), axis=-1)[..., ::-1] > 0
        counts[..., 1:] += AS_GOOD_AS_NONE * stay[..., None]
    return state


def first_pass(state: State, *, groups: NDArray[np.uint64] | None = None, preliminary: int = 0) -> FirstPass:
    """Return what there is to know before influences are added up, of all individuals and of each segment.

    Preliminary, from a sample of so many rows, of which sums are so much smaller.
    """
    what, segments = state.specification, sorted(state.segments)
    finished = [_finished(state, label) for label in (None, *(segments if what.by else ()))]
    known = []
    for q in range(len(what.weightings)):
        of_weighting = []
        for metric in range(len(what.metrics)):
            several = []
            for of_unit in finished:
                undefined = [own.undefined(metric) for own in of_unit]
                averages = _averages(what, [undefined[q], np.logical_or.reduce(undefined)])
                own, share = of_unit[q].known(metric), state.n / (preliminary or state.n)
                several.append(replace(
                    own, averages=averages[:, :, None], scale=own.scale * share, added=own.added * share,
                ))  # fmt: skip
            stacked = _stacked(several)
            of_weighting.append(replace(stacked, averages=np.unique(stacked.averages, axis=0)))
        known.append(of_weighting)
    strata = None if state.projected is None else state.projected.strata
    return FirstPass(segments, known, strata, groups, bool(preliminary))


def _averages(what: Specification, several: Sequence[NDArray[np.bool_]]) -> Values:
    """Return the means over time that have standard errors, as weights of the times, (means, times).

    Up to the first time without score under one weighting, and under any; zeros where there is none.
    """
    found = np.zeros((len(several) if what.at.size > 1 else 0, what.at.size))
    for r in range(len(found)):
        if not several[r][:2].any():
            found[r], _ = averaging_weights(what.at, np.where(several[r], np.nan, 0.0), None, None, "stop", ())
    return found


def _stacked(units: list[Known]) -> Known:
    """Return what is known of several units as one."""
    axes = {"centre": 2, "base": 1, "share": 1, "later": 2, "added": 2, "own": 0}
    return Known(**{
        name: np.concatenate([getattr(one, name) for one in units], axis=axes.get(name, -1)) for name in vars(units[0])
    })  # fmt: skip


def _inverse(values: Values, counted: Values) -> Values:
    """Return one over some values, 0 where nobody is counted, or one individual, as one unit."""
    return np.divide(1.0, values, out=np.zeros(values.size), where=counted > 1)[:, None]


def _finished(state: State, label: tuple[str, ...] | None) -> list[_Weighted | _Projected]:
    """Return what the sums of all individuals, or of a segment, are under each weighting."""
    own, place = iter(state.sums), None if label is None else state.segments.index(label)
    return [
        _Projected.of(state, label)
        if isinstance(weighting, Projected)
        else _Weighted.of(state.specification, weighting, next(own).segment(place), state.largest_weight)
        for weighting in state.specification.weightings
    ]


def _comparison(state: State, label: tuple[str, ...] | None) -> Comparison:
    what, which = state.specification, None if label is None else state.segments.index(label)
    unit = 0 if label is None else 1 + sorted(state.segments).index(label)
    scored, names = [], []
    finished = _finished(state, label)
    for q, own in enumerate(finished):
        names.append(own.name)
        scored.append([own.scored(k) for k in range(len(what.metrics))])
        if state.influences is not None:
            scored[q] = [state.influences.added_to(one, unit, q, k) for k, one in enumerate(scored[q])]
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
    n = round(finished[0].n)  # with frequency weights more than rows
    late = None
    if label is None and state.projected is not None and state.n_dropped_out is not None and not what.outcomes.weights:
        late = late_starters(state.projected)
    dropped_out = state.n_dropped_out if which is None else _dropped_out(state, which)
    return Comparison(
        what.names, what.names[0], None, what.at, what.level, n, dropped_out, tuple(flat), late_starters=late
    )


def _dropped_out(state: State, which: int) -> int | None:
    for weighting, sums in zip(state.specification.in_one_pass, state.sums, strict=True):
        if isinstance(weighting, Administrative):
            return int(sums.segment(which).number("left").sum())
    return None


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
    if what.outcomes.entry_column is not None:
        settings["clock"] = SINCE_ENTRY
    if what.outcomes.weights is not None:
        settings["sample_weights"] = what.outcomes.weight_kind
    if loss.epsilon:
        settings["epsilon"] = loss.epsilon
    return settings


@dataclass(frozen=True, eq=False)
class _Projected:
    """Projected scores of one unit."""

    state: State
    scores: UnitScores
    unit: int

    @classmethod
    def of(cls, state: State, label: tuple[str, ...] | None) -> _Projected:
        """Finish the sums of a unit."""
        if state.projected is None:
            raise InputError("projected scores take a second pass over the data: use evaluate")
        strata = state.projected.strata
        unit = 0 if label is None else 1 + strata.segments.index(label)
        return cls(state, UnitScores.of(state.projected, unit), unit)

    @property
    def weighting(self) -> Projected:
        """The weighting; with those labels that occur, where a column has them."""
        weighting = self.state.specification.projected or Projected()
        labels = np.array(self.state.projected.strata.labels)  # type: ignore[union-attr]
        if not labels.size:
            return weighting
        occurs = self.scores.cells[0].counts.sum(axis=(1, 2)) > 0
        return Projected(labels[occurs], min_followed=weighting.min_followed)

    @property
    def name(self) -> str:
        """What it is called in results."""
        return str(self.weighting)

    @property
    def n(self) -> float:
        """How many individuals there are."""
        return self.state.projected.strata.units[self.unit].n  # type: ignore[union-attr]

    def undefined(self, metric: int) -> NDArray[np.bool_]:
        """Return at which times there is no score."""
        return self.scores.undefined[metric].where

    def scored(self, metric: int) -> ScoreArrays:
        """Return the scores, and where influences were added up, what comes of these."""
        state, what, weighting, scores = self.state, self.state.specification, self.weighting, self.scores
        if state.projected is None:
            raise TypeError("there are no sums of projected scores")
        own, loss, undefined = state.projected.strata.units[self.unit], what.metrics[metric], scores.undefined[metric]
        several = own.n_strata if weighting.strata == "own-ranks" else own.n_strata[:1]
        if not isinstance(weighting.strata, str | None):
            several = (np.unique(weighting.strata.labels).size,)
        told = {"strata": weighting.strata if isinstance(weighting.strata, str | None) else "given"}
        settings = _settings(what, weighting, loss) | {**told, "n_strata": list(several), "theta": 1.0}
        settings |= {"rank_rows": what.rank_rows} if state.n > what.rank_rows else {}
        counted = np.full(what.at.size, own.n)
        units = Units(counted, np.full(counted.size, state.largest_weight / scores.mass), counted - 1.0)
        hidden, squares = bool((own.n_known < own.n).any()), scores.squares
        support = Support(
            counted, np.where(undefined.where, np.nan, scores.mass**2 / squares), own.n_cases,
            own.n_known - own.n_cases, units, False, hidden, weighted=what.outcomes.weighted,
        )  # fmt: skip
        one = ScoreArrays(
            loss.name, str(weighting), loss.direction, scores.scores[metric], None, None, loss.scale,
            np.where(undefined.where, np.nan, scores.mass), support, undefined.reasons, settings,
            possible=loss.possible,
        )  # fmt: skip
        if state.influences is None:
            return one
        q = what.weightings.index(what.projected)
        parts = state.influences.sums[q, metric]["parts"][:, :, self.unit]
        sizes = None if state.n_dropped_out is None else early_and_late(state.projected, self.unit)
        by_theta = scores.theta_scores(parts, metric, weighting, sizes) if self.unit == 0 else None
        return replace(one, parts=None if sizes is None else scores.parts(parts, metric, sizes), by_theta=by_theta)

    def known(self, metric: int) -> Known:
        """Return what influences are made of."""
        what, scores, undefined = self.state.specification, self.scores, self.undefined(metric)
        m, n = what.at.size, np.full(what.at.size, self.n)
        mass = np.full(m, scores.mass)
        return Known(
            centre=np.where(undefined, 0.0, scores.scores[metric])[:, :, None],
            scale=np.where(undefined, 0.0, 1.0 / mass)[:, None], at_risk=np.ones((m, 1)),
            own=np.ones(scores.share.shape[1:]), base=scores.base, share=scores.share, later=scores.later,
            added=scores.added(metric),
            averages=np.zeros((0, m, 1)), inflation=np.nan_to_num(Units(n, n, n).inflation)[:, None],
            inverse_n=_inverse(n, n), inverse_mass=_inverse(mass, n),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Part:
    """Individuals that are weighted alike at a time, or in a bin: (bins, times), or (1, times)."""

    weight: Values  # of each of them
    count: Values  # the sum of their sample weights
    number: Values  # how many they are
    squares: Values  # the sum of their squared sample weights
    bin_of: NDArray[np.intp]  # in which bin their own time is, or where those are who stay as long

    def total(self, values: Values, power: int = 1) -> Values:
        """Return weighted sums, (..., times); an infinite weight of nobody counts nothing."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(values == 0, 0.0, self.weight**power * values).sum(axis=-2))

    def moving(self, cap: float) -> Values:
        """Return the weights that are finite and below a cap: they move with the curve that they come from."""
        return np.where(np.isfinite(self.weight) & (self.weight < cap), self.weight, 0.0)


@dataclass(frozen=True, eq=False)
class _Weighted:
    """One weighting's sums with their weights: of the first stretch, of the second while event-free, and with event."""

    what: Specification
    weighting: Weighting
    sums: Sums
    cells: Cells | None
    cap: float
    parts: tuple[_Part, _Part, _Part]
    largest: float

    @classmethod
    def of(cls, what: Specification, weighting: Weighting, sums: Sums, largest: float = 1.0) -> _Weighted:
        """Estimate the curve, and take the weights from it."""
        times, m, n_bins = what.at, what.at.size, sums.sizes["bin"]
        given = getattr(weighting, "max_weight", None)
        cap = np.inf if given is None else float(given)
        cells, last = None, n_bins - 1
        if weighting.estimated and sums.mass("left").any():
            left = sums.mass("left")
            cells = Cells.of_exits(
                what, np.stack((sums.mass("everybody") - left, left), axis=-1)[None].astype(np.float64)
            )
            last = int(np.flatnonzero(sums.mass("everybody"))[-1])
        bins = np.broadcast_to(np.arange(n_bins)[:, None], (n_bins, m))
        if cells is None:
            weights, late_bin = [np.ones((1, m)), np.ones((1, m)), np.ones((n_bins, m))], np.full((1, m), last)
        else:
            (at,), (before,) = cells.curves
            own = before[:, 1]
            late_bin = np.searchsorted(cells.index.outcomes.time[::2], times, side="left").clip(max=n_bins - 1)[None]
            weights = [inverse(at, cap)[None], inverse(own[late_bin], cap), np.repeat(inverse(own, cap)[:, None], m, 1)]
        counts = []
        for name in ("mass", "number", "squares"):
            of = getattr(sums, name)
            first = (of("first_stops").sum() - np.cumsum(of("first_stops"))[:m])[None]
            several = (first, of("late_counts")[None], np.cumsum(of("event_changes"), axis=1)[:, :m])
            counts.append([np.asarray(one, dtype=np.float64) for one in several])
        mass, number, squares = counts  # differences of sums of weights are not quite 0 where nobody is left
        mass, squares = (
            [np.where(n > 0, of, 0.0) for of, n in zip(one, number, strict=True)] for one in (mass, squares)
        )
        # those who stay so long as to see no bin end count with the last
        first, late, event = map(_Part, weights, mass, number, squares, (np.full((1, m), last), late_bin, bins))
        return cls(what, weighting, sums, cells, cap, (first, late, event), largest)

    @property
    def name(self) -> str:
        """What it is called in results."""
        return self.weighting.named(
            somebody_left=bool(self.sums.mass("lost_counts").any() or self.sums.mass("left").any())
        )

    @property
    def n(self) -> float:
        """How many individuals there are."""
        return float(self.sums.number("everybody").sum())

    def _values(self, metric: int) -> list[Values]:
        """Return the sums of all quantities, (quantities, bins or 1, times), of each part."""
        first, late, event = (self.sums[name][metric] for name in ("first", "late", "event"))
        return [first.T[:, None], late.T[:, None], event.transpose(2, 1, 0)]

    def _counted(self, name: str) -> Values:
        """Return how many belong to the population at each time."""
        stops = getattr(self.sums, name)("population_stops")
        return np.asarray(stops.sum() - np.cumsum(stops)[:-1], dtype=np.float64)

    def scored(self, metric: int) -> ScoreArrays:
        """Return one metric's scores and their moments."""
        what, loss, sums = self.what, self.what.metrics[metric], self.sums
        undefined, total, scores = self._scores(metric)
        others = np.cumsum(sums.number("other_changes"))[: what.at.size]  # of another cause: scored as none
        first, late, event = self.parts
        counted, mass = self._counted("number"), self._counted("mass")
        with np.errstate(invalid="ignore", divide="ignore"):
            n_effective = total**2 / sum(part.total(part.squares, 2) for part in self.parts)
            share = np.where(counted > 0, np.minimum(self.largest / mass, 1.0), np.nan)
        units = Units(counted, share, counted - 1.0)
        n_events = event.number.sum(axis=0) - others
        n_event_free = first.number[0] + late.number[0] + others
        support = Support(
            counted, n_effective, n_events, n_event_free, units, grouped=False, weighted=what.outcomes.weighted
        )
        moments = None if what.outcomes.weights else self._moments(metric, scores, total, units)
        return ScoreArrays(
            loss.name, str(self.weighting), loss.direction, scores, moments, self._bounds(metric), loss.scale, total,
            support, undefined.reasons, _settings(what, self.weighting, loss), possible=loss.possible,
        )  # fmt: skip

    def _scores(self, metric: int) -> tuple[Undefined, Values, Values]:
        """Return where there is no score, the sums of weights, and the scores."""
        values, k = self._values(metric), len(self.what.models)
        weight_sums = np.array([part.total(part.count) for part in self.parts])
        undefined = self._undefined(metric, weight_sums)
        total = np.where(undefined.where, np.nan, weight_sums.sum(axis=0))
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = sum(part.total(one[:k]) for part, one in zip(self.parts, values, strict=True)) / total
        return undefined, total, scores

    def undefined(self, metric: int) -> NDArray[np.bool_]:
        """Return at which times there is no score."""
        return self._scores(metric)[0].where

    def _undefined(self, metric: int, weight_sums: Values) -> Undefined:
        what, nobody, blind = self.what, np.zeros(0, dtype=np.int32), None
        if self.cells is not None and self.cells.last_left is not None:
            blind = int(np.searchsorted(what.at, self.cells.last_left, side="left"))
        # of nobody: all that matters is where there are no weights
        weights = IntervalWeights(
            nobody, nobody, nobody.astype(np.int8), self.parts[0].weight, np.zeros(0), nobody, support_end=blind
        )
        return undefined_times(what.metrics[metric], what.at, self.weighting.weights_for, weights, weight_sums)

    def _of_cells(self, values: Sequence[Values], centre: Values, cap: float) -> Values:
        """Return sums of weighted deviations, (models, times, 1, bins, 2), over the individuals of each cell.

        Of those who stay, in the last bin: what estimation adds to them is the same there.
        """
        (k, m), n_bins = centre.shape, self.sums.sizes["bin"]
        found = np.zeros((k, m, n_bins))
        for part, one in zip(self.parts, values, strict=True):
            deviations = part.moving(cap) * (one[:k] - centre[:, None] * part.count)
            for a in range(k):
                np.add.at(found[a], (np.arange(m), part.bin_of), deviations[a])
        return np.stack((found, np.zeros(found.shape)), axis=-1)[:, :, None]

    def _added(self, metric: int, centre: Values, scale: Values) -> tuple[Values, Values]:
        """Return deviations by cell, and what estimating the curve adds to an individual's influence there."""
        values = self._values(metric)
        deviations = self._of_cells(values, centre, np.inf) * scale[:, None, None, None]
        if self.cells is None:
            return deviations, np.zeros(deviations.shape)
        moving = (
            deviations if np.isinf(self.cap) else self._of_cells(values, centre, self.cap) * scale[:, None, None, None]
        )
        return deviations, self.cells.estimation(moving, of_weights=True)

    def known(self, metric: int) -> Known:
        """Return what influences are made of."""
        what, (undefined, total, scores) = self.what, self._scores(metric)
        m, n_bins = what.at.size, self.sums.sizes["bin"]
        scale = np.where(undefined.where, 0.0, 1.0 / np.where(undefined.where, 1.0, total))
        centre = np.where(undefined.where, 0.0, scores)
        # an infinite weight is that of nobody who counts
        first, _late, event = (np.where(np.isfinite(part.weight), part.weight, 0.0) for part in self.parts)
        counted = self._counted("number")
        own = event[:, :1].T if n_bins > 1 else np.ones((1, 1))
        return Known(
            centre=centre[:, :, None], scale=scale[:, None], at_risk=first.T, own=own,
            base=np.zeros((0, 1, n_bins)), share=np.zeros((0, 1, n_bins)), later=np.zeros((len(what.models), m, 1)),
            added=self._added(metric, centre, scale)[1], averages=np.zeros((0, m, 1)),
            inflation=np.nan_to_num(Units(counted, counted, counted).inflation)[:, None],
            inverse_n=_inverse(counted, counted), inverse_mass=_inverse(self._counted("mass"), counted),
        )  # fmt: skip

    def _moments(self, metric: int, scores: Values, total: Values, units: Units) -> Moments:
        """Return the variances: sums of squares of deviations, and of what estimation adds to them, cell by cell."""
        (k, m), sums = scores.shape, self.sums
        defined = np.isfinite(total)
        scale, centre = np.where(defined, 1.0 / np.where(defined, total, 1.0), 0.0), np.where(defined, scores, 0.0)
        values, pointwise = self._values(metric), np.zeros((n_pairs(k), m))
        deviations, added = self._added(metric, centre, scale)
        for p, (a, b) in enumerate(pairs(k)):
            mean = contrast(centre, a, b)
            for part, one in zip(self.parts, values, strict=True):
                squares = one[k + p] - 2.0 * mean * contrast(one[:k], a, b) + mean**2 * part.count
                pointwise[p] += ((part.moving(np.inf) * scale) ** 2 * squares).sum(axis=0)
            if self.cells is not None:
                more = contrast(added, a, b)
                pointwise[p] += (more * (2.0 * contrast(deviations, a, b) + more * self.cells.counts)).sum(
                    axis=(1, 2, 3)
                )
        inflation, over_time = units.inflation, None
        if sums.sizes["column"]:
            factor = np.where(defined, np.sqrt(inflation), 0.0) * scale
            over_time = _covariances(sums["products"][metric], centre) * np.outer(factor, factor)
        none = np.zeros((0, m))
        return Moments(np.where(defined, pointwise * inflation, 0.0), none, np.zeros((n_pairs(k), 0)), over_time)

    def _bounds(self, metric: int) -> AllBounds | None:
        """Return what the lost could change."""
        sums, k, m, values = self.sums, len(self.what.models), self.what.at.size, self._values(metric)
        if not isinstance(self.weighting, Administrative) or not sums.mass("left").any():
            return None
        lost = np.where(sums.number("lost_counts") > 0, sums.mass("lost_counts"), 0.0)
        divisor = sum(part.count.sum(axis=0) for part in self.parts) + sums.mass("known_counts") + lost
        losses = sum(one[:k].sum(axis=1) for one in values) + sums["known"][metric].T
        with np.errstate(invalid="ignore", divide="ignore"):
            lower, upper = (sums[name][metric].T / divisor for name in ("lowest", "highest"))
            return AllBounds(losses / divisor, lower, upper, np.zeros((0, m)), np.zeros((2, n_pairs(k), 0)), None)


def _covariances(products: Values, centre: Values) -> Values:
    """Return sums of products of deviations from `centre`, (models, times), of all pairs: (pairs, times, times)."""
    k, m = centre.shape
    whole = products.reshape(k + 1, m, k + 1, m)
    counted = whole[:k, :, k]  # the loss at the first time, if counted at the second
    found = []
    for a, b in pairs(k):
        mean, once = contrast(centre, a, b), contrast(counted, a, b)
        found.append(of_pair(whole, a, b) - once * mean - (once * mean).T + np.outer(mean, mean) * whole[k, :, k])
    return np.array(found)
