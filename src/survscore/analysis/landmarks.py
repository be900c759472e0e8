"""Scores of predictions made at several landmarks for those still at risk, and a summary of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._utils.dates import Unit, plural_word
from survscore._validation import (
    InputError,
    UnequalWeightsWarning,
    UnfitError,
    as_times,
    check_choice,
    check_level,
    warn,
)
from survscore._version import __version__
from survscore.analysis.compare import Request
from survscore.analysis.diagnose import leak_warnings
from survscore.analysis.landmark_curves import (
    LandmarkCurves,
    LandmarkPart,
    Missing,
    check_weighting,
    how_many,
    individual_weights,
    parts_of,
    refuse_stacked,
    stacked_parts,
)
from survscore.analysis.score_tables import MADE, SKILL, TablePart, asked_metrics, engine_metrics, rows_of
from survscore.causes import Cause, takes_cause
from survscore.engine.blocks import Predictions
from survscore.engine.evaluation import Evaluation, IndividualInfluences, ScoreArrays
from survscore.engine.inputs import (
    as_models,
    check_one_cause,
    check_outcomes,
    curves_read,
    null_name,
    of_cause,
    one_or_more,
)
from survscore.engine.moments import Moments, contrast, pairs
from survscore.engine.placing import check_on_processor
from survscore.incidence import IncidenceCurves
from survscore.inference.intervals import difference_interval, ratio_interval, student_quantile, verdicts
from survscore.inference.support import Support
from survscore.inference.units import Groups, PowerSums, SampleWeights, Units, small_sample
from survscore.metrics import Brier, FollowUpMetric, Metric, metric_label
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison
from survscore.results.estimates import Columns, Estimates
from survscore.results.long_tables import ALL
from survscore.results.score_table import LandmarkCounts, LandmarkTable, TableRow
from survscore.weighting import Weighting, as_weighting, default_weightings

DEFAULT = ("brier", SKILL, "auc", "oe")
SUMMARIES = ("counted", "equal")
Made = Predictions | IncidenceCurves | LandmarkCurves
Values = NDArray[np.float64]
Where = NDArray[np.bool_]
SKILL_LABELS = (SKILL, MADE[SKILL], "higher")


@takes_cause
def landmark_table(
    y: Outcomes,
    models: Mapping[str, Made] | Iterable[tuple[str, Made]],
    *,
    horizons: ArrayLike,
    landmarks: Any = None,
    id: ArrayLike | None = None,
    missing: Missing = "raise",
    summary: Literal["counted", "equal"] = "counted",
    metric: str | Metric | Sequence[str | Metric] | None = None,
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    reference: str | None = None,
    null: bool = True,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    cause: Cause | None = None,
    unit: Unit | str | None = None,
) -> LandmarkTable:
    r"""Score dynamic predictions, made at several landmarks for the individuals still at risk.

    At a landmark s those with :math:`T_i > s` count. Time is counted from there: a horizon u asks for the status at
    s + u, and predictions are :math:`P(T^*_i > s + u \mid T^*_i > s)`, with what was known at s. Weights, the null
    model and strata are made anew at each landmark. See the guide to landmarks.

    Parameters
    ----------
    y : Outcomes
        One row for each individual, with time counted from its start. With `id` one row for each individual and
        landmark, with time counted from the landmark.
    models : mapping of str to LandmarkCurves, SurvivalCurves or IncidenceCurves, or pairs
        What each model predicted. `LandmarkCurves` hold predictions that were made at each landmark. Curves from the
        start are read as :math:`\pi_i(s + u) / \pi_i(s)`. With `id` the curves of each row, counted from its landmark.
    horizons : array_like
        How far ahead, counted from the landmark.
    landmarks : sequence of float or of dates, optional
        Ages, or days on which each one is scored at its own age (`y` then has dates, by `Outcomes.from_dates`). By
        default those of the `LandmarkCurves`. With `id` one for each row.
    id : array_like, optional
        Which individual each row is of, where rows are stacked. They are never taken as independent.
    missing : {"raise", "drop"}, default "raise"
        What to do with individuals at risk for whom a model has no prediction at a landmark.
    summary : {"counted", "equal"}, default "counted"
        How landmarks weigh in the summary: by how many individuals they count, or all alike.
    metric : str or Metric, or several
        Metrics of statuses at one time: losses, ``"skill"`` (the scaled Brier score), ``"auc"``, ``"oe"``, ``"slope"``,
        ``"in_the_large"``, ``"net_benefit@0.1"``. By default Brier, skill, AUC and observed/expected.
    weighting, reference, level, cause
        As for `compare`. Distributions of censoring that are given can't be used, since the clock starts anew.
    null : bool, default True
        Whether to add the null model: at each landmark the Kaplan-Meier curve of those at risk.
    groups : array_like, optional
        Clusters larger than individuals, such as hospitals.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        What times are counted in, for titles.

    Returns
    -------
    LandmarkTable
        Prints as tables with one row for each landmark; `to_frame`, `to_latex`, `to_html`, `to_markdown`, `to_json`,
        and `plot`, a heat map over landmarks and horizons.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    The summary of a metric at a horizon is :math:`\theta = \sum_s \omega_s \theta_s`, over the landmarks at which all
    models have a score. An individual is at risk at several landmarks, so that scores at these depend on each other.
    So its influences are added up, :math:`\phi_i = \sum_s \omega_s \phi_{is}`, zero where it is not at risk, and the
    variance is :math:`\frac{n}{n - 1} \sum_i \phi_i^2`. Weights by numbers counted, :math:`\omega_s = N_s / N`, are
    estimated, which adds :math:`\sum_s 1\{i \text{ counted at } s\} (\theta_s - \theta) / N` to :math:`\phi_i`.

    With sample weights, those of an individual are the same at all landmarks, and stand in for its one in these sums:
    :math:`N_s` are sums of weights. The variance has the corrections of :doc:`/weights`.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 800)
    >>> event_time, end = rng.exponential(1 / rate), rng.uniform(5, 25, 800)
    >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    >>> times = np.arange(1.0, 26.0)
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
    ...     "biased": ss.SurvivalCurves(np.exp(-1.5 * rate[:, None] * times), times),
    ... }
    >>> asked = {"weighting": "administrative", "metric": "brier", "null": False}
    >>> print(ss.landmark_table(y, models, landmarks=[0, 4, 8], horizons=[5], **asked))
    800 individuals; 95 % intervals
    <BLANKLINE>
    Brier score at 5 after the landmark; administrative
    landmark (n)                estimate       difference to truth     p
    ------------------------------------------------------------------------------
    0 (800)
      truth      0.2048 (0.1920, 0.2185)
      biased     0.2162 (0.2041, 0.2292) +0.0115 ( 0.0037, 0.0192) 0.004 worse
    4 (419)
      truth      0.1974 (0.1799, 0.2165)
      biased     0.2052 (0.1897, 0.2220) +0.0078 (-0.0026, 0.0182) 0.139 undecided
    8 (232)
      truth      0.1701 (0.1467, 0.1974)
      biased     0.1732 (0.1537, 0.1952) +0.0031 (-0.0094, 0.0155) 0.625 undecided
    mean (1451)
      truth      0.1971 (0.1857, 0.2092)
      biased     0.2062 (0.1954, 0.2175) +0.0091 ( 0.0030, 0.0151) 0.003 worse
    """
    check_outcomes(y, entry=True)  # at a landmark those are at risk who had entered
    check_level(level)
    check_choice("summary", summary, SUMMARIES)
    if not isinstance(null, bool):
        raise InputError("null must be True or False: the null model is made anew at each landmark")
    y = y if cause is None else y.for_cause(cause)
    _ = y.event_of_interest  # raises, if there are several causes and none was chosen
    check_one_cause(y, "landmark_table")
    named = as_models(models)
    curves = [curve for given in named.values() for curve in _curves_of(given)]
    check_on_processor("landmark_table", y, {str(k): curve for k, curve in enumerate(curves)})
    times = np.unique(as_times(horizons, "horizons"))
    if times[0] <= 0:
        raise InputError("horizons must be after the landmark, above 0")
    metrics = _metrics(metric, with_null=null)
    several = default_weightings(y) if weighting is None else one_or_more(weighting, Weighting, "weighting")
    weightings = [as_weighting(given, y) for given in several]
    for chosen in weightings:
        check_weighting(chosen)
    if id is None:
        refuse_stacked(y, landmarks)
        parts = parts_of(y, named, landmarks, times, missing)
    else:
        parts = stacked_parts(y, named, landmarks, id)
    parts = [part.with_weight() for part in parts]
    own = individual_weights(parts)
    names = [*named, *([null_name(True, y)] if null else [])]
    compared_with = names[0] if reference is None else str(reference)
    check_choice("reference", compared_with, tuple(names))
    grouping = None if groups is None else Groups.of(groups, len(y))
    request = Request(None, weightings, times, compared_with, null, None, level, variances="times")
    each = [LandmarkScores.of(part, metrics, request, grouping, y) for part in parts]
    unequal = [
        f"at landmark {landmark.part.label}, {caution}"
        for landmark in each
        for scored in landmark.scored
        for caution in scored.support.unequal_weights()
    ]
    if unequal:
        warn(unequal[-1], UnequalWeightsWarning)  # of the last landmark, with the fewest individuals
    units, of_units = _units(parts, grouping), own if grouping is None else None
    null_model = names[-1] if null else None
    every = Landmarks(each, units, of_units, metrics, request, summary, tuple(names), null_model)
    rows = [row for landmark in each for row in landmark.rows] + every.means()
    counts = tuple(LandmarkCounts.of(part.landmark, part.label, part.y, part.n_left_out) for part in parts)
    settings = {
        "metric": [name if isinstance(name, str) else name.name for name in metrics],
        "horizons": times.tolist(),
        "landmarks": [part.label for part in parts],
        "reference": compared_with,
        "summary": summary,
        "groups": True,
        "level": level,
        "curves": curves_read(each[0].models, times),
        "survscore": __version__,
        **({} if unit is None else {"unit": plural_word(unit)}),
        **({"cause": y.causes[y.interest - 1]} if y.interest else {}),
        **({"sample_weights": y.weight_kind} if y.weights is not None else {}),
    }
    leaking = leak_warnings(each[0].y, each[0].models, weightings, level=level)
    return LandmarkTable(
        tuple(_relabelled(rows, weightings, y)),
        ("landmark",),
        level,
        how_many([part.individuals for part in parts], own),
        None if y.censoring_time is None else how_many([part.individuals[part.y.dropped_out] for part in parts], own),
        settings,
        leaking,
        landmarks=counts,
    )


def _curves_of(given: Any) -> list[Any]:
    return [made.curves for made in given.made.values()] if isinstance(given, LandmarkCurves) else [given]


def _metrics(metric: Any, *, with_null: bool) -> list[str | Metric]:
    """Return what was asked for, if it is of statuses at one time."""
    asked: Any = [name for name in DEFAULT if with_null or name != SKILL] if metric is None else metric
    metrics = asked_metrics(asked, (), with_null=with_null, coarse=True)
    for entry in metrics:
        if isinstance(entry, FollowUpMetric) or (isinstance(entry, str) and entry != SKILL):
            name = entry if isinstance(entry, str) else entry.name
            raise UnfitError(
                f"metric {name!r} has no form for landmarks: it is not of statuses at one time. At one landmark, "
                "score_table of what at_landmark and conditional_on return has it"
            )
    return metrics


def _units(parts: Sequence[LandmarkPart], groups: Groups | None) -> list[NDArray[np.int32]]:
    """Return the independent units at each landmark: individuals, or groups that hold all rows of each individual."""
    if groups is None:
        return [part.individuals for part in parts]
    several = [groups.codes[part.rows] for part in parts]
    both = np.unique(np.stack((np.concatenate([part.individuals for part in parts]), np.concatenate(several))), axis=1)
    if np.unique(both[0]).size < both.shape[1]:
        raise InputError("groups must hold all rows of an individual: one is in several groups")
    return several


def _relabelled(rows: Sequence[TableRow], weightings: Sequence[Weighting], y: Outcomes) -> list[TableRow]:
    """Return rows whose weightings have one name at all landmarks, also where none dropped out after some of them."""
    known = {chosen.named(somebody_left=left): chosen.label(y) for chosen in weightings for left in (False, True)}
    return [replace(row, weighting=known.get(row.weighting, row.weighting)) for row in rows]


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
        request = replace(request.of_rows(given, part.rows), groups=codes)
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
    return values if not missing else np.concatenate((values, np.full((*values.shape[:-1], missing), fill)), axis=-1)
