"""Scores at each landmark, and their means over landmarks, with influences added up by individual."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.analysis.compare import Request
from survscore.analysis.landmark_parts import LandmarkPart
from survscore.analysis.score_tables import MADE, SKILL, TablePart, rows_of
from survscore.engine.evaluation import Evaluation, IndividualInfluences, ScoreArrays
from survscore.engine.inputs import of_cause
from survscore.engine.moments import Moments, contrast, pairs
from survscore.inference.intervals import difference_interval, ratio_interval, student_quantile, verdicts
from survscore.inference.support import Support
from survscore.inference.units import Groups, PowerSums, SampleWeights, Units, small_sample
from survscore.metrics import Brier, Metric, metric_label
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison
from survscore.results.estimates import Columns, Estimates
from survscore.results.long_tables import ALL
from survscore.results.score_table import TableRow

Values = NDArray[np.float64]
Where = NDArray[np.bool_]


def engine_metrics(metrics: Sequence[str | Metric]) -> list[Metric]:
    """Return what the engine scores: skill is made of Brier scores."""
    wanted = [entry for entry in metrics if isinstance(entry, Metric)]
    if SKILL in metrics and Brier.name not in {entry.name for entry in wanted}:
        wanted.append(Brier())
    return wanted


@dataclass(frozen=True, eq=False)
class LandmarkScores:
    """What was scored at one landmark."""

    part: LandmarkPart
    #: Reduced to one cause, where there are several.
    y: Outcomes
    models: dict[str, Any]
    rows: list[TableRow]
    #: By metric, then by weighting; none where no model reaches the first horizon.
    scored: list[ScoreArrays]
    influences: list[IndividualInfluences]

    @classmethod
    def of(
        cls, part: LandmarkPart, metrics: list[str | Metric], request: Request, groups: Groups | None, given: Outcomes
    ) -> LandmarkScores:
        """Score the models on those at risk; `given` are the outcomes whose rows weightings hold something for."""
        y, models = of_cause(part.y, part.models)
        codes = None if groups is None else groups.codes[part.rows]
        request = replace(replace(request, metric=Brier()).of_rows(given, part.rows), groups=codes)
        if not all(curves.reaches(np.asarray(request.times)[:1])[0] for curves in models.values()):
            return cls(part, y, models, _nothing(part, y, metrics, request, models), [], [])
        rows, scored = TablePart(y, models, (part.label,), metrics, request).rows()
        evaluation = Evaluation.of(
            y,
            models,
            metric=engine_metrics(metrics),
            weighting=request.weighting,
            times=request.times,
            null=request.null,
            groups=codes,
            level=request.level,
            variances="times",
        )
        return cls(part, y, models, rows, scored, evaluation.individual_influences())

    @property
    def weights(self) -> Values:
        """The sample weight of each individual, 1 where there are none."""
        return np.ones(len(self.y)) if self.y.weights is None else np.asarray(arrays.to_host(self.y.weights))

    @property
    def repeats(self) -> Values:
        """How many individuals each row stands for."""
        return self.weights if self.y.weight_kind == "frequency" else np.ones(len(self.y))

    def counted(self, k: int, n_times: int) -> Where:
        """Return to whom the k-th score refers, (individuals, times)."""
        if not self.scored:
            return np.zeros((len(self.y), n_times), dtype=np.bool_)
        return _padded(self.influences[k].counted, n_times, fill=0.0).astype(np.bool_)

    def statuses(self, times: Values) -> tuple[Where, Where]:
        """Return who is known to have had the event by each time, and who not to have had it: (individuals, times)."""
        time, event = (arrays.to_host(values)[:, None] for values in (self.y.time, self.y.event_of_interest))
        ended = arrays.to_host(self.y.event)[:, None] & (time <= times)  # also by another cause
        return ended & event, np.where(ended, ~event, time >= times)


def _nothing(
    part: LandmarkPart, y: Outcomes, metrics: Sequence[str | Metric], request: Request, models: dict[str, Any]
) -> list[TableRow]:
    """Return rows without numbers, where some model does not reach the first horizon."""
    end = min(float(curves.times[-1]) for curves in models.values() if curves.extrapolation == "nan")
    rows = []
    for entry in metrics:
        of_metric = (entry, MADE[SKILL], "higher") if isinstance(entry, str) else _named(entry)
        for weighting in request.weighting:
            for time in np.asarray(request.times).tolist():
                of = ((part.label,), *of_metric, time, False, weighting.label(y))
                note = f"predictions end {end:g} after the landmark"
                rows += [TableRow(*of, model, str(request.reference), math.nan, note=note) for model in models]
    return rows


def _named(metric: Metric) -> tuple[str, str, str]:
    return metric.name, metric_label(metric.name), metric.direction


@dataclass(frozen=True, eq=False)
class Landmarks:
    """All landmarks, and how they are averaged."""

    each: list[LandmarkScores]
    #: The independent units at each landmark: whose influences are added up.
    units: list[NDArray[np.int32]]
    #: The sample weight of each unit, where units are individuals and these have weights.
    sample: SampleWeights | None
    metrics: list[str | Metric]
    request: Request
    #: "counted", or "equal".
    weights: str
    #: The models, the null model last.
    names: tuple[str, ...]
    null: str | None

    @property
    def times(self) -> Values:
        """The horizons."""
        return np.asarray(self.request.times)

    @property
    def n_units(self) -> int:
        """How many units there may be."""
        return 1 + max(int(codes.max()) for codes in self.units)

    def means(self) -> list[TableRow]:
        """Return the means over landmarks, by metric, weighting, horizon and model; none of a single landmark."""
        first = next((one for one in self.each if one.scored), None)
        if first is None or len(self.each) < 2:
            return []
        rows: dict[str, list[TableRow]] = {}
        for k, scored in enumerate(first.scored):
            mean = _Mean.of(self, k, self.scores(k), lambda one, k=k: one.influences[k].values)  # type: ignore[misc]
            rows.setdefault(scored.metric, []).extend(self._rows_of(mean, ()))
            if scored.metric == Brier.name and SKILL in self.metrics:
                null = self.names.index(str(self.null))
                skill = self._skill(k, null)
                rows.setdefault(SKILL, []).extend(self._rows_of(skill, (skill.skill_columns(self, null),)))
        return [row for entry in self.metrics for row in rows[entry if isinstance(entry, str) else entry.name]]

    def scores(self, k: int) -> Values:
        """Return the k-th scores at all landmarks, (landmarks, models, times)."""
        nothing = np.full((len(self.names), self.times.size), np.nan)
        return np.array(
            [_padded(one.scored[k].scores, self.times.size) if one.scored else nothing for one in self.each]
        )

    def _skill(self, k: int, null: int) -> _Mean:
        """Return the mean of 1 - score / null score, with its influences to first order."""
        scores = self.scores(k)
        of_null = np.where(scores[:, null] > 0, scores[:, null], np.nan)
        ratio = scores / of_null[:, None]

        def influences(one: LandmarkScores) -> Values:
            values, place = one.influences[k].values, self.each.index(one)
            m = values.shape[2]
            moved = (ratio[place][:, None, :m] * values[null] - values) / of_null[place][:m]
            return np.asarray(np.nan_to_num(moved))

        return _Mean.of(self, k, 1.0 - ratio, influences)

    def _rows_of(self, mean: _Mean, quantities: tuple[Any, ...]) -> list[TableRow]:
        request, n = self.request, sum(len(one.y) for one in self.each)
        of = Comparison(
            self.names, str(request.reference), self.null, self.times, request.level, n, None, (mean.scored,)
        )
        labels = (SKILL, MADE[SKILL], "higher") if quantities else None
        rows = rows_of((ALL,), of, Estimates(mean.scored, request.level), *quantities, labels=labels)
        return [mean.row(row, self.times.tolist().index(row.time)) for row in rows]


@dataclass(frozen=True, eq=False)
class _Counts:
    """Who is counted at each landmark, by horizon; of shape (landmarks, times) where nothing else is said."""

    n: Values
    n_events: Values
    n_lost: Values
    #: The sums of the sample weights of those counted: their number, without weights.
    mass: Values
    #: By landmark, the sample weights of those counted, 0 of the others: (individuals, times).
    weights: list[Values]
    units: Units
    #: What the influences of units are multiplied by before they are squared; see `InfluenceFactors`. Shape (units,
    #: times), or 1 where units count alike.
    factors: Values | float
    #: How many different units had the event, and were seen without it. Shape (times,).
    with_event: Values
    without: Values

    @classmethod
    def of(cls, landmarks: Landmarks, k: int, defined: Where) -> Self:
        """Count them; where a score is not defined, none."""
        m, rows = landmarks.times.size, []
        sizes, had_event, was_free = (np.zeros((landmarks.n_units, m)) for _ in range(3))
        of_each: list[Values] = []
        for place, (one, codes) in enumerate(zip(landmarks.each, landmarks.units, strict=True)):
            here = one.counted(k, m) & defined[place]
            event, free = (known & here for known in one.statuses(landmarks.times))
            weights = here * one.weights[:, None]
            for table, values in ((sizes, weights), (had_event, event), (was_free, free)):
                arrays.add_rows(table, codes, values.astype(np.float64))
            n, n_events, n_known = (one.repeats @ flags for flags in (here, event, event | free))
            rows.append((n, n_events, n - n_known, weights.sum(axis=0)))
            of_each.append(weights)
        n, n_events, n_lost, mass = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
        sample = landmarks.sample
        repeats = np.ones(len(sizes)) if sample is None or sample.counts is None else sample.counts
        if sample is not None and sample.frequency:  # f individuals, each with its own number of landmarks
            units = Units(*PowerSums.of(sizes / np.where(repeats > 0, repeats, 1.0)[:, None], repeats).units())
        else:
            units = Units(*PowerSums.of(sizes).units())
        factors = 1.0 if sample is None else _factors(sample, sizes > 0, units.counted)
        status = (repeats @ (table > 0) for table in (had_event, was_free))
        return cls(n, n_events, n_lost, mass, of_each, units, factors, *status)


def _factors(sample: SampleWeights, counted: Where, n_units: Values) -> Values:
    r"""Return what influences of individuals are multiplied by before they are squared, (units, times).

    That of frequency weights is :math:`f^{-1/2}`, that of others :math:`(1 - 1/n) / (1 - h_i)`, the jackknife's, with
    the share :math:`h_i` in the weights of all who are counted at any landmark; see `InfluenceFactors`.
    """
    own = sample.values[:, None]
    if sample.frequency:
        return np.broadcast_to(np.where(own > 0, own, 1.0) ** -0.5, counted.shape)
    mass, several = np.sum(own * counted, axis=0), n_units > 1
    shares = np.where(counted & several, own / np.where(mass > 0, mass, 1.0), 0.0)
    return np.where(counted & several, (1.0 - 1.0 / np.maximum(n_units, 1.0)) / (1.0 - shares), 1.0)


@dataclass(frozen=True, eq=False)
class _Mean:
    """Means over landmarks of scores by one metric under one weighting."""

    scored: ScoreArrays
    counts: _Counts
    #: Whether a landmark has a part in the mean. Shape (landmarks, times).
    used: Where

    @classmethod
    def of(cls, landmarks: Landmarks, k: int, scores: Values, influences: Callable[[LandmarkScores], Values]) -> _Mean:
        """Average scores, (landmarks, models, times), which have these influences at each landmark."""
        has_any = np.isfinite(scores).any(axis=(0, 2))  # a null model without discrimination has none
        any_counted = np.array([one.counted(k, scores.shape[2]).any(axis=0) for one in landmarks.each])
        defined = np.isfinite(scores[:, has_any]).all(axis=1) & any_counted
        counts = _Counts.of(landmarks, k, defined)
        weight = counts.mass if landmarks.weights == "counted" else defined * 1.0
        total = np.where(weight.sum(axis=0) > 0, weight.sum(axis=0), np.nan)
        omega = weight / total
        means = np.einsum("lt,lmt->mt", omega, np.where(defined[:, None], scores, 0.0))
        means[~has_any] = np.nan
        phi = np.zeros((len(means), landmarks.n_units, means.shape[1]))
        for place, (one, codes) in enumerate(zip(landmarks.each, landmarks.units, strict=True)):
            if not one.scored:
                continue
            of_models = _padded(influences(one), means.shape[1], fill=0.0) * omega[place]
            if landmarks.weights == "counted":  # these weights are estimated
                excess = np.where(defined[place], scores[place] - means, 0.0) / total
                of_models = of_models + counts.weights[place] * excess[:, None]
            for a, of_model in enumerate(np.nan_to_num(of_models)):
                arrays.add_rows(phi[a], codes, of_model)
        variance = np.array([np.sum((counts.factors * contrast(phi, a, b)) ** 2, axis=0) for a, b in pairs(len(phi))])
        variance *= small_sample(counts.units.counted)
        reference = next(one for one in landmarks.each if one.scored).scored[k]
        n_units = counts.units.counted
        support = Support(
            n_units, n_units, counts.with_event, counts.without, counts.units, True, reference.support.projected
        )
        why = dict.fromkeys(reason for one in landmarks.each if one.scored for reason in one.scored[k].undefined)
        moments = Moments(variance, np.zeros((0, means.shape[1])), np.zeros((len(variance), 0)))
        scored = replace(
            reference,
            scores=means,
            moments=moments,
            bounds=None,
            weight_sums=np.full(means.shape[1], np.nan),
            support=support,
            undefined=dict.fromkeys(why, 1),
            parts=None,
            by_theta=None,
            interpolation=None,
        )
        return cls(scored, counts, defined)

    def skill_columns(self, landmarks: Landmarks, null: int) -> list[tuple[Columns, Columns] | None]:
        """Return estimates of mean skill and of its differences, for each model but the null model."""
        level, support = landmarks.request.level, self.scored.support
        estimates, r = Estimates(self.scored, level), landmarks.names.index(str(landmarks.request.reference))
        critical = student_quantile(level, support.difference_degrees)
        result: list[tuple[Columns, Columns] | None] = []
        for a, value in enumerate(self.scored.scores):
            if a == null:
                result.append(None)
                continue
            se = estimates.se(a, a)
            ratio = ratio_interval(1.0 - value, se, level, support)
            limits: Columns = {"lower": 1.0 - ratio.upper, "upper": 1.0 - ratio.lower, "reliable": ratio.reliable}
            difference: Columns = {}
            if r not in (a, null):
                reference, error = self.scored.scores[r], estimates.se(a, r)
                contrasted = difference_interval(value, reference, error, critical, "plain", support)
                judged = verdicts(contrasted.lower, contrasted.upper, "higher")
                difference = {"estimate": value - reference, "se": error, **contrasted._asdict(), "verdict": judged}
            result.append(({"estimate": value, "se": se, **limits}, difference))
        return result

    def row(self, row: TableRow, j: int) -> TableRow:
        """Return a row with the numbers of predictions that it is the mean of, and of how many landmarks."""
        used, counts = int(self.used[:, j].sum()), self.counts
        note = f"mean over {used} of {len(self.used)} landmarks" if used < len(self.used) else ""
        return replace(
            row,
            n_counted=float(counts.n[:, j].sum()),
            n_events=float(counts.n_events[:, j].sum()),
            n_lost=float(counts.n_lost[:, j].sum()),
            n_groups=float(counts.units.counted[j]),
            note=note if used else row.note,
        )


def _padded(values: Any, m: int, fill: float = np.nan) -> Values:
    """Return values at the scored times as values at all of them, the last axis."""
    missing = m - values.shape[-1]
    return np.concatenate((values, np.full((*values.shape[:-1], missing), fill)), axis=-1)
