"""Scores at each landmark, and their means over landmarks, with influences added up by individual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.analysis.compare import Request
from survscore.analysis.landmark_curves import LandmarkPart
from survscore.analysis.score_tables import MADE, SKILL, TablePart, engine_metrics, rows_of
from survscore.engine.evaluation import Evaluation, ScoreArrays
from survscore.engine.individual import IndividualInfluences, individual_influences
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
SKILL_LABELS = (SKILL, MADE[SKILL], "higher")


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
        return cls(part, y, models, rows, scored, individual_influences(evaluation))

    def score(self, k: int, shape: tuple[int, int]) -> Values:
        """Return the k-th scores, (models, times); NaN at times that no model reaches."""
        return _padded(self.scored[k].scores, shape[1]) if self.scored else np.full(shape, np.nan)

    def influence(self, k: int, shape: tuple[int, int]) -> Values:
        """Return the influences on the k-th scores, (models, individuals, times)."""
        if not self.scored:
            return np.zeros((shape[0], len(self.y), shape[1]))
        return _padded(self.influences[k].values, shape[1], fill=0.0)

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
    note = f"predictions end {end:g} after the landmark"
    rows = []
    for entry in metrics:
        labels = SKILL_LABELS if isinstance(entry, str) else (entry.name, metric_label(entry.name), entry.direction)
        for weighting, time in product(request.weighting, np.asarray(request.times).tolist()):
            of = ((part.label,), *labels, time, False, weighting.label(y))
            rows += [TableRow(*of, model, str(request.reference), math.nan, note=note) for model in models]
    return rows


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
    weights: Literal["counted", "equal"]
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
        first = next((landmark for landmark in self.each if landmark.scored), None)
        if first is None or len(self.each) < 2:
            return []
        shape = (len(self.names), self.times.size)
        rows: dict[str, list[TableRow]] = {}
        for k, scored in enumerate(first.scored):
            scores = np.array([landmark.score(k, shape) for landmark in self.each])
            influences = [landmark.influence(k, shape) for landmark in self.each]
            rows.setdefault(scored.metric, []).extend(self._rows(k, scores, influences))
            if scored.metric == Brier.name and SKILL in self.metrics:
                null = self.names.index(str(self.null))
                # 1 - score / null score, with its influences to first order
                of_null = np.where(scores[:, null] > 0, scores[:, null], np.nan)
                ratio = scores / of_null[:, None]
                of_skill = [
                    np.nan_to_num((of_ratio[:, None] * values[null] - values) / score)
                    for of_ratio, values, score in zip(ratio, influences, of_null, strict=True)
                ]
                rows.setdefault(SKILL, []).extend(self._rows(k, 1.0 - ratio, of_skill, null))
        return [row for entry in self.metrics for row in rows[entry if isinstance(entry, str) else entry.name]]

    def _rows(self, k: int, scores: Values, influences: list[Values], null: int | None = None) -> list[TableRow]:
        """Return the rows of means of the k-th scores, (landmarks, models, times), or with `null` of skill."""
        mean, counts, used = self._mean(k, scores, influences)
        level, reference = self.request.level, str(self.request.reference)
        n = sum(len(landmark.y) for landmark in self.each)
        of = Comparison(self.names, reference, self.null, self.times, level, n, None, (mean,))
        estimates, labels, quantities = Estimates(mean, level), None, None
        if null is not None:
            labels, quantities = SKILL_LABELS, _skill_columns(estimates, self.names.index(reference), null)
        n_used = dict(zip(self.times.tolist(), used.sum(axis=0).tolist(), strict=True))
        rows = []
        for row in rows_of((ALL,), of, estimates, quantities, labels=labels):
            j = self.times.tolist().index(row.time)
            n_counted, n_events, n_lost, n_groups = counts[:, j].tolist()
            note = row.note
            if n_used[row.time]:
                every = n_used[row.time] == len(used)
                note = "" if every else f"mean over {n_used[row.time]} of {len(used)} landmarks"
            rows.append(
                replace(row, n_counted=n_counted, n_events=n_events, n_lost=n_lost, n_groups=n_groups, note=note)
            )
        return rows

    def _mean(self, k: int, scores: Values, influences: list[Values]) -> tuple[ScoreArrays, Values, Where]:
        """Average scores that have these influences at each landmark.

        Return also the numbers counted, with event, lost, and of units, (4, times), and which landmarks have a part,
        (landmarks, times).
        """
        has_any = np.isfinite(scores).any(axis=(0, 2))  # a null model without discrimination has none
        any_counted = np.array([landmark.counted(k, scores.shape[2]).any(axis=0) for landmark in self.each])
        defined = np.isfinite(scores[:, has_any]).all(axis=1) & any_counted
        weights, counts, sizes, status = self._counts(k, defined)
        (with_event, without), (units, factors) = status, self._units(sizes)
        of_landmarks = defined * 1.0
        if self.weights == "counted":
            of_landmarks = np.array([weight.sum(axis=0) for weight in weights])
        total = np.where(of_landmarks.sum(axis=0) > 0, of_landmarks.sum(axis=0), np.nan)
        omega = of_landmarks / total
        means = np.einsum("lt,lmt->mt", omega, np.where(defined[:, None], scores, 0.0))
        means[~has_any] = np.nan
        phi = np.zeros((len(means), self.n_units, means.shape[1]))
        for place, codes in enumerate(self.units):
            of_models = influences[place] * omega[place]
            if self.weights == "counted":  # these weights are estimated
                excess = np.where(defined[place], scores[place] - means, 0.0) / total
                of_models = of_models + weights[place] * excess[:, None]
            for a, of_model in enumerate(np.nan_to_num(of_models)):
                arrays.add_rows(phi[a], codes, of_model)
        variance = np.array([np.sum((factors * contrast(phi, a, b)) ** 2, axis=0) for a, b in pairs(len(phi))])
        variance *= small_sample(units.counted)
        scored = [landmark.scored[k] for landmark in self.each if landmark.scored]
        mean = replace(
            scored[0],
            scores=means,
            moments=Moments(variance, np.zeros((0, means.shape[1])), np.zeros((len(variance), 0))),
            bounds=None,
            weight_sums=np.full(means.shape[1], np.nan),
            support=Support(
                units.counted, units.counted, with_event, without, units, True, scored[0].support.projected
            ),
            undefined=dict.fromkeys((reason for at_landmark in scored for reason in at_landmark.undefined), 1),
            parts=None,
            by_theta=None,
            interpolation=None,
        )
        return mean, np.array([*counts, units.counted]), defined

    def _counts(self, k: int, defined: Where) -> tuple[list[Values], Values, Values, Values]:
        """Count to whom scores refer, where these are defined.

        Return, by landmark, the sample weights of those counted and 0 of the others, (individuals, times); the numbers
        counted, with event and lost, (3, times); the weight of each unit over all landmarks, (units, times); and how
        many different units had the event, and were seen without it, (2, times).
        """
        m, of_each = self.times.size, list[Values]()
        counts, tables = np.zeros((3, m)), np.zeros((3, self.n_units, m))
        for landmark, codes, has_score in zip(self.each, self.units, defined, strict=True):
            y, here = landmark.y, landmark.counted(k, m) & has_score
            event, free = (known & here for known in landmark.statuses(self.times))
            own = np.ones(len(y)) if y.weights is None else np.asarray(arrays.to_host(y.weights))
            repeats = own if y.weight_kind == "frequency" else np.ones(len(y))
            of_each.append(here * own[:, None])
            for table, values in zip(tables, (of_each[-1], event, free), strict=True):
                arrays.add_rows(table, codes, values.astype(np.float64))
            counts += np.array([repeats @ flags for flags in (here, event, here & ~(event | free))])
        repeats = np.ones(self.n_units) if self.sample is None or self.sample.counts is None else self.sample.counts
        return of_each, counts, tables[0], np.array([repeats @ (table > 0) for table in tables[1:]])

    def _units(self, sizes: Values) -> tuple[Units, Values | float]:
        r"""Return the units with these weights, (units, times), and what influences are multiplied by before squaring.

        That of frequency weights is :math:`f^{-1/2}`, that of others :math:`(1 - 1/n) / (1 - h_i)`, the jackknife's,
        with the share :math:`h_i` in the weights of all who are counted at any landmark; see `InfluenceFactors`.
        """
        if self.sample is None:
            return Units(*PowerSums.of(sizes).units()), 1.0
        own, counted = self.sample.values[:, None], sizes > 0
        if self.sample.frequency:  # f individuals, each with its own number of landmarks
            own = np.where(own > 0, own, 1.0)
            return Units(*PowerSums.of(sizes / own, self.sample.values).units()), own**-0.5
        units = Units(*PowerSums.of(sizes).units())
        mass, several = np.sum(own * counted, axis=0), units.counted > 1
        shares = np.where(counted & several, own / np.where(mass > 0, mass, 1.0), 0.0)
        factors = (1.0 - 1.0 / np.maximum(units.counted, 1.0)) / (1.0 - shares)
        return units, np.where(counted & several, factors, 1.0)


def _skill_columns(estimates: Estimates, r: int, null: int) -> list[tuple[Columns, Columns] | None]:
    """Return estimates of mean skill and of its differences, for each model but the null model."""
    scores, support = estimates.scores, estimates.support
    critical = student_quantile(estimates.level, support.difference_degrees)
    result: list[tuple[Columns, Columns] | None] = []
    for a, value in enumerate(scores):
        if a == null:
            result.append(None)
            continue
        se, difference = estimates.se(a, a), dict[str, Any]()
        ratio = ratio_interval(1.0 - value, se, estimates.level, support)
        limits: Columns = {"lower": 1.0 - ratio.upper, "upper": 1.0 - ratio.lower, "reliable": ratio.reliable}
        if r not in (a, null):
            error = estimates.se(a, r)
            interval = difference_interval(value, scores[r], error, critical, "plain", support)
            verdict = verdicts(interval.lower, interval.upper, "higher")
            difference = {"estimate": value - scores[r], "se": error, **interval._asdict(), "verdict": verdict}
        result.append(({"estimate": value, "se": se, **limits}, difference))
    return result


def _padded(values: Any, m: int, fill: float = np.nan) -> Values:
    """Return values at the scored times as values at all of them, the last axis."""
    missing = m - values.shape[-1]
    return np.concatenate((values, np.full((*values.shape[:-1], missing), fill)), axis=-1)
