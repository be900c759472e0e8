"""One table of what a reviewer asks for: accuracy, discrimination, calibration and benefit of several models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.dates import Unit, plural_word
from survscore._utils.parallel import LONG_VECTOR, each
from survscore._validation import InputError, UnfitError, as_list, as_times, check_choice, check_number, plural
from survscore._version import __version__
from survscore.analysis.assumptions import warn_if_entry_is_late
from survscore.analysis.calibration_measures import Distance, Spline, distance_limits
from survscore.analysis.compare import Request, Segments
from survscore.analysis.diagnose import leak_warnings
from survscore.analysis.distribution_calibration import distribution_calibration
from survscore.causes import ALL_STATUSES, Cause, takes_cause
from survscore.engine.blocks import GivenPredictions
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.inputs import (
    Null,
    any_event,
    check_predictions,
    curves_read,
    is_coarse,
    of_cause,
    one_or_more,
    reads_whole_curves,
)
from survscore.engine.null import KaplanMeierNull
from survscore.engine.placing import check_on_processor
from survscore.engine.pooled import SampleView
from survscore.engine.times import FEW_TIMES, default_horizon, shared_times
from survscore.inference.units import Groups
from survscore.metrics import CRPS, E50, E90, ICI, METRICS, Brier, FollowUpMetric, Metric, as_metric, metric_label
from survscore.metrics.calibration import fit_spline
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison
from survscore.results.estimates import Columns, Estimates
from survscore.results.long_tables import ALL, Key, padded
from survscore.results.printing import warn_about, warn_about_interpolation
from survscore.results.score_table import DISTRIBUTION, ScoreTable, TableRow
from survscore.results.segments import check_names
from survscore.weighting import Administrative, Projected, Uncensored, Weighting, as_weighting, default_weightings

NO_ERROR = 1e-12  # a standard error that is rounding
SKILL, INTEGRATED = "skill", "integrated_brier"
#: What a table can hold that is made of a metric of the engine, or is a test.
MADE = {SKILL: "scaled Brier score", INTEGRATED: "integrated Brier score", DISTRIBUTION: "distribution calibration"}
#: In the order in which they answer: accuracy, discrimination, calibration on average and throughout; over all time.
DEFAULT = ("brier", SKILL, "auc", "oe", "slope", "miscalibration", INTEGRATED, "crps", "concordance", DISTRIBUTION)
AT_HORIZONS = ("brier", SKILL, "log", "auc", "oe", "in_the_large", "slope", "miscalibration", "ici", "e50", "e90")
EVERY = (*AT_HORIZONS, INTEGRATED, "crps", "log_score", "concordance", DISTRIBUTION)
#: Multi-class, over event-free and all causes.
OF_ALL_CAUSES = ("brier", SKILL, "log", INTEGRATED)
DISTANCES = (ICI.name, E50.name, E90.name)
N_INTEGRATED = 101  # times over which a mean is taken
#: What columns of a difference are called beside those of an estimate.
DIFFERENCE = {"estimate": "difference", **{name: f"difference_{name}" for name in ("se", "lower", "upper", "reliable")}}


@takes_cause
def score_table(
    y: Outcomes,
    models: Mapping[str, GivenPredictions] | Iterable[tuple[str, GivenPredictions]],
    *,
    horizons: ArrayLike | None = None,
    metric: str | Metric | Sequence[str | Metric] | None = None,
    thresholds: Sequence[float] = (),
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    reference: str | None = None,
    null: Null = True,
    groups: ArrayLike | None = None,
    by: Any = None,
    level: float = 0.95,
    cause: Cause | None = None,
    unit: Unit | str | None = None,
) -> ScoreTable:
    r"""Evaluate several models at some horizons and over all time, in one table.

    Parameters
    ----------
    y, models, weighting, reference, null, groups, level, cause
        As for `compare`.
    horizons : array_like, optional
        At which times; by default one, the median of follow-up, or the last time up to then that the models share, if
        these predict at few (at most 20). What is over all time goes up to the last of them. Where models predict at
        few times, and `interpolation` was not given, the integrated Brier score is the mean
        from the first to the last time that they share.
    metric : str or Metric, or several
        Names of `compare`'s metrics, ``"skill"`` (the scaled Brier score, against the null model),
        ``"integrated_brier"`` and ``"distribution"`` (a test, see `distribution_calibration`); ``"all"`` for
        everything. By default Brier, skill, AUC, observed/expected, slope, corrected miscalibration, integrated Brier,
        CRPS, concordance and distribution; CRPS, which needs whole curves, only if all models predict at more than 20
        times or say how they are read between these (`interpolation`), and of one of several causes only without
        drop-outs.
    thresholds : sequence of float
        Threshold probabilities: for each, the net benefit.
    by : mapping of str to labels, data frame, or labels, optional
        Columns that segment the individuals: the table of all, then of every segment as if it were scored alone.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        What times are counted in, for titles.

    Returns
    -------
    ScoreTable
        Prints as a table, models that encode :math:`C^*` first; `to_frame`, `to_html`, `to_latex`, `to_markdown`,
        `to_json`.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    An estimate has the interval that suits it (a Brier score's is made on the logarithmic scale, an AUC's on the logit
    scale), a difference to the reference the paired standard error of both models' influences. ICI, E50 and E90 are
    larger than 0 by chance alone: their intervals are those of `calibration`, and the note has the value expected of a
    perfectly calibrated model. P-values are not adjusted for multiple comparisons.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 800)
    >>> event_time, end = rng.exponential(1 / rate), rng.uniform(5, 25, 800)
    >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    >>> times = np.arange(1.0, 21.0)
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
    ...     "biased": ss.SurvivalCurves(np.exp(-1.5 * rate[:, None] * times), times),
    ... }
    >>> asked = {"weighting": "administrative", "metric": ["brier", "auc", "oe"], "null": False}
    >>> print(ss.score_table(y, models, horizons=[5], **asked))
    800 individuals; 95 % intervals
    <BLANKLINE>
    at 5; administrative; 800 counted, 292 with event
                             estimate       difference to truth       p
    ------------------------------------------------------------------------------
    Brier score
      truth   0.2048 (0.1920, 0.2185)
      biased  0.2162 (0.2041, 0.2292)  +0.0115 (0.0037, 0.0192)   0.004  worse
    AUC
      truth      0.702 (0.663, 0.738)
      biased     0.702 (0.663, 0.738)   +0.000 ( 0.000,  0.000)   1.000  undecided
    observed/expected (closer to 1)
      truth      1.040 (0.954, 1.133)
      biased     0.791 (0.725, 0.862)   -0.249 (-0.271, -0.227)  <0.001  lower
    """
    null, entry = True if null is y else null, getattr(y, "entry", None)
    y, named = of_cause(y, models, cause, times=horizons, multiclass=True)
    any_kind, of_any_event = any_event(y, named)
    for name, curves in of_any_event.items():
        check_predictions(any_kind, curves, f"the curves of {name!r}")
    check_on_processor("score_table", any_kind, of_any_event)
    if metric is None and y.interest == ALL_STATUSES:
        metric = [name for name in OF_ALL_CAUSES if name != SKILL or null is not False]
    wanted = asked_metrics(metric, thresholds, with_null=null is not False, coarse=is_coarse(of_any_event))
    times = default_horizon(y, named) if horizons is None else np.unique(as_times(horizons))
    several = default_weightings(y) if weighting is None else one_or_more(weighting, Weighting, "weighting")
    weightings = [as_weighting(given, y) for given in several]
    if metric is None and y.causes:
        unfit = _unfit_for_a_cause(y, weightings)
        wanted = [entry for entry in wanted if _name(entry) not in unfit]
    codes = None if groups is None else Groups.of(groups, len(y)).codes
    compared_with = next(iter(named)) if reference is None else reference
    request = Request(None, weightings, times, compared_with, null, codes, level, variances="times")
    segments = Segments((), {}) if by is None else Segments.of(by, y)
    if segments.by:
        check_names(segments.by, y.chosen_cause)
    total = TablePart(y, named, (ALL,) * len(segments.by), wanted, request)
    table_rows, scored = total.rows()
    warn_about(scored)
    # whole curves are read by threads, whose warnings would not point at the caller's line
    whole = reads_whole_curves(wanted)
    read = curves_read(named, times, whole=whole)
    if whole or not scored:
        warn_about_interpolation(read)
    for key, rows in segments.rows.items():
        table_rows += total.segment_of(key, rows).rows()[0]
    settings = {
        "metric": [_name(metric_or_name) for metric_or_name in wanted],
        "horizons": times.tolist(),
        "reference": reference,
        "groups": groups is not None,
        "level": level,
        "curves": read,
        "survscore": __version__,
        **({} if unit is None else {"unit": plural_word(unit)}),
        **({"cause": y.chosen_cause} if y.interest else {}),
        **({"clock": y.clock} if y.clock else {}),
        **({} if y.weights is None else {"sample_weights": y.weight_kind}),
        **({} if y.n_individuals == len(y) else {"rows": len(y)}),
    }
    leaking = leak_warnings(any_kind, of_any_event, weightings, groups=codes, level=level)
    if entry is None:
        warn_if_entry_is_late(any_kind, of_any_event)
    return ScoreTable(tuple(table_rows), segments.by, level, y.n_individuals, y.n_dropped_out, settings, leaking)


def _unfit_for_a_cause(y: Outcomes, weightings: Sequence[Weighting]) -> set[str]:
    """Return the usual metrics that cannot be computed of one cause.

    The test is of whole distributions, which the incidence of one cause is not; CRPS needs statuses known without
    weights (see `Histories.of`).
    """
    complete = any(
        isinstance(weighting, Uncensored) or (isinstance(weighting, Administrative) and y.n_dropped_out == 0)
        for weighting in weightings
    )
    return {DISTRIBUTION, *(() if complete or not y.competing else (CRPS.name,))}


def asked_metrics(
    metric: str | Metric | Sequence[str | Metric] | None, thresholds: Sequence[float], *, with_null: bool, coarse: bool
) -> list[str | Metric]:
    """Return the metrics that were asked for, each once; what is `MADE` of them, and the test, by name.

    Unasked, there is no CRPS of `coarse` curves: it would be that of straight lines between few times.
    """
    if metric is None or (isinstance(metric, str) and metric == "all"):
        every = DEFAULT if metric is None else EVERY
        unfit = {*(() if with_null else (SKILL,)), *((CRPS.name,) if coarse and metric is None else ())}
        names_or_metrics: list[str | Metric] = [name for name in every if name not in unfit]
    else:
        names_or_metrics = one_or_more(metric, Metric, "metric")
    for threshold in as_list(thresholds, "thresholds", "a sequence of numbers"):
        check_number("threshold", threshold, "between 0 and 1", lambda value: 0 < value < 1)
        names_or_metrics.append(f"net_benefit@{float(threshold):g}")
    for entry in names_or_metrics:
        if isinstance(entry, str) and entry.split("@")[0] not in METRICS:
            check_choice("metric", entry, (*METRICS, *MADE))
    if SKILL in names_or_metrics and not with_null:
        raise InputError("metric: 'skill' needs the null model, which was left out (null=False)")
    metrics = [entry if isinstance(entry, str) and entry in MADE else as_metric(entry) for entry in names_or_metrics]
    names = [_name(entry) for entry in metrics]
    return [entry for place, entry in enumerate(metrics) if names[place] not in names[:place]]


def _name(metric: str | Metric) -> str:
    return metric if isinstance(metric, str) else metric.name


def engine_metrics(metrics: Sequence[str | Metric]) -> list[Metric]:
    """Return what the engine scores: skill is made of Brier scores."""
    wanted = [metric for metric in metrics if isinstance(metric, Metric)]
    if SKILL in metrics and Brier.name not in {metric.name for metric in wanted}:
        wanted.append(Brier())
    return wanted


@dataclass(frozen=True, eq=False)
class TablePart:
    """The rows of all individuals, or of a segment."""

    y: Outcomes
    models: Mapping[str, Any]
    segment: Key
    metrics: list[str | Metric]  # in the order asked for
    request: Request

    def segment_of(self, key: Key, rows: NDArray[np.intp]) -> TablePart:
        """Return the same for a segment."""
        request = self.request.of_rows(self.y, rows)
        metrics = [metric if isinstance(metric, str) else metric.of_rows(rows) for metric in self.metrics]
        models = {name: curves[rows] for name, curves in self.models.items()}
        return TablePart(self.y[rows], models, key, metrics, request)

    def rows(self) -> tuple[list[TableRow], list[ScoreArrays]]:
        """Return the rows, by metric in the order asked for, then by horizon; and what was scored at the horizons."""
        # one null model for all that is scored
        null = self.request.null
        if null is True and self.y.interest != ALL_STATUSES and self.y.weights is None:
            null = KaplanMeierNull.of(self.y, scored=True)
        with_null = replace(self, request=replace(self.request, null=null))
        wanted = engine_metrics(self.metrics)
        at_times = [metric for metric in wanted if not isinstance(metric, FollowUpMetric)]
        up_to = [metric for metric in wanted if isinstance(metric, FollowUpMetric)]
        scored: list[ScoreArrays] = []
        parts: list[Callable[[], list[TableRow]]] = []
        if at_times:
            parts.append(partial(with_null._at_horizons, at_times, scored))
        if up_to:
            # these have no projected form; where nothing else was asked for, the table says so
            others = [weighting for weighting in self.request.weighting if not isinstance(weighting, Projected)]
            parts.append(partial(with_null._up_to, up_to, others or self.request.weighting))
        if INTEGRATED in self.metrics:
            parts.append(with_null._integrated)
        if DISTRIBUTION in self.metrics:
            parts += [partial(self._distribution, name) for name in self.models]
        by_metric: dict[str, list[TableRow]] = {}
        for rows in each(lambda part: part(), parts, threads=len(self.y) >= LONG_VECTOR):
            for row in rows:
                by_metric.setdefault(row.metric, []).append(row)
        return [row for metric in self.metrics for row in by_metric[_name(metric)]], scored

    def _at_horizons(self, metrics: Sequence[Metric], scored: list[ScoreArrays]) -> list[TableRow]:
        """Return what is known at each horizon; what the engine made of it is added to what was `scored`."""
        limits: dict[tuple[int, int, int], dict[str, Distance]] = {}

        def on_sample(weighting: int, view: SampleView) -> None:
            """Keep the limits of distances, of the curves that the metrics are made of: nothing is fitted again."""
            fit = view.sample.once(fit_spline) if view.model < len(self.models) else ""
            if not isinstance(fit, str):
                spline = Spline(fit, view.covariance(fit.regression.influences))
                distances = distance_limits(view.sample, spline, view.n_units, self.request.level)
                if distances is not None:
                    limits[weighting, view.model, view.time] = distances

        wanted = any(metric.name in DISTANCES for metric in metrics)
        of = replace(self.request, metric=metrics).run(self.y, self.models, on_sample if wanted else None)
        scored += of.scored
        rows: list[TableRow] = []
        for arrays in of.scored:
            estimates = Estimates(arrays, of.level)
            for row in rows_of(self.segment, of, estimates):
                weighting, model = of.weightings.index(row.weighting), of.models.index(row.model)
                place = (weighting, model, of.times.tolist().index(row.time))
                rows.append(_with_limits(row, limits.get(place)) if arrays.metric in DISTANCES else row)
            if arrays.metric == Brier.name and SKILL in self.metrics:
                rows += self._skill_rows(of, estimates)
        return rows

    def _up_to(self, metrics: Sequence[Metric], weightings: Sequence[Weighting]) -> list[TableRow]:
        """Return what happened up to the last horizon, or why that is undefined for these curves, or weights."""
        time = np.asarray(self.request.times)[-1:]
        try:
            last = replace(self.request, metric=metrics, weighting=weightings, times=time).run(self.y, self.models)
        except UnfitError as error:
            if len(metrics) * len(weightings) > 1:  # others may be defined
                alone = [self._up_to([metric], [weighting]) for metric in metrics for weighting in weightings]
                return [row for rows in alone for row in rows]
            labels = (metrics[0].name, metric_label(metrics[0].name), metrics[0].direction)
            of = (self.segment, *labels, float(time[0]), True, weightings[0].label(self.y))
            return [TableRow(*of, name, str(self.request.reference), math.nan, note=str(error)) for name in self.models]
        estimates = [Estimates(arrays, last.level) for arrays in last.scored]
        return [row for of_metric in estimates for row in rows_of(self.segment, last, of_metric, over_time=True)]

    def _integrated(self) -> list[TableRow]:
        """Return mean Brier scores over the times up to the last horizon, or as far as there are scores."""
        grid, about = self._integration_times(float(np.asarray(self.request.times)[-1]))
        first, horizon = float(grid[0]), float(grid[-1])
        request = replace(self.request, metric=Brier(), times=grid, ranges=[(first, horizon)], variances="means")
        of_grid = request.run(self.y, self.models)
        try:
            weights, (_, until) = of_grid.means_over(first, horizon, nan="stop")[Brier.name]
        except InputError as error:
            weights, until, note = np.full(grid.size, np.nan), horizon, about if grid.size == 1 else str(error)
        else:
            note = about if until == horizon else f"up to {until:g}: {'; '.join(of_grid.scored[0].undefined)}"
        at_end, labels = replace(of_grid, times=np.array([until])), (INTEGRATED, MADE[INTEGRATED], Brier.direction)
        means = [Estimates(scored, of_grid.level, weights) for scored in of_grid.scored]
        rows = [row for mean in means for row in rows_of(self.segment, at_end, mean, labels=labels, over_time=True)]
        return [replace(row, note=note) for row in rows]

    def _integration_times(self, horizon: float) -> tuple[NDArray[np.float64], str]:
        """Return the times over which a mean is taken, and what to know about them; a single time has no mean."""
        try:
            shared = shared_times(self.models, horizon) if is_coarse(self.models) else None
        except InputError as error:
            return np.array([horizon]), str(error)
        if shared is None:  # many predicted times, or the interpolation between few was chosen
            return np.linspace(0.0, horizon, N_INTEGRATED), ""
        if shared.size == 1:
            return np.array([horizon]), f"a mean over time needs two predicted times up to {horizon:g}"
        return shared, f"mean over the {shared.size} predicted times from {shared[0]:g} to {shared[-1]:g}"

    def _distribution(self, name: str) -> list[TableRow]:
        """Return the test of whole distributions of one model, which needs no weights."""
        shown = (DISTRIBUTION, MADE[DISTRIBUTION], "lower", math.inf, True, "", name, str(self.request.reference))
        try:
            result = distribution_calibration(
                self.y, self.models[name], groups=self.request.groups, level=self.request.level
            )
        except UnfitError as error:
            return [TableRow(self.segment, *shown, math.nan, note=str(error))]
        degrees, n_times = "degree" if result.df == 1 else "degrees", self.models[name].times.size
        coarse = f"; by the probabilities of {plural(n_times, 'interval')}" if n_times <= FEW_TIMES else ""
        row = TableRow(
            self.segment,
            *shown,
            result.statistic,
            p_value=result.p_value,
            reliable=result.reliable,
            n_counted=float(result.n),
            n_events=float(result.n_events),
            n_lost=float(result.n_dropped_out or 0),
            n_groups=float(result.n_groups or math.nan),
            note=result.reason
            or f"{result.test} test, chi-square with {result.df} {degrees}: {result.conclusion}{coarse}",
        )
        return [row]

    def _skill_rows(self, of: Comparison, estimates: Estimates) -> list[TableRow]:
        """Return the rows of the Brier score scaled by that of the null model."""
        r, null, scored = of.models.index(of.reference), of.null_index(), estimates.scored
        quantities = [
            None
            if a == null
            else (estimates.skill(a, null), {} if r in (a, null) else estimates.skill_difference(a, r, null))
            for a in range(len(of.models))
        ]
        nothing = {} if scored.scores[null].all() else {"the null model makes no errors": 1}
        scaled = Estimates(replace(scored, undefined={**scored.undefined, **nothing}), of.level)
        return rows_of(self.segment, of, scaled, quantities, labels=(SKILL, MADE[SKILL], "higher"))


def rows_of(
    segment: Key,
    of: Comparison,
    estimates: Estimates,
    quantities: Sequence[tuple[Columns, Columns] | None] | None = None,
    *,
    labels: tuple[str, str, str] | None = None,
    over_time: bool = False,
) -> list[TableRow]:
    """Return rows by time, then by model, of an estimate and a difference for each model, by default its score."""
    scored, support, r = estimates.scored, estimates.support, of.models.index(of.reference)
    labels = labels or (scored.metric, metric_label(scored.metric), scored.direction)
    if quantities is None:
        quantities = [(estimates.score(a), {} if a == r else estimates.difference(a, r)) for a in range(len(of.models))]
    counts = {
        name: numbers for name, numbers in estimates.counts().items() if name in ("n_counted", "n_events", "n_groups")
    }
    counts["n_lost"] = support.n_counted - support.n_events - support.n_event_free
    blocks = {}
    for model, both in zip(of.models, quantities, strict=True):
        if both is not None and (model != of.null or scored.has_null):
            difference = {DIFFERENCE.get(name, name): values for name, values in both[1].items()}
            columns = {**both[0], **difference, **counts}
            blocks[model] = {name: padded(values, of.times.size).tolist() for name, values in columns.items()}
    reasons, rows = "; ".join(scored.undefined), []
    for j, time in enumerate(of.times.tolist()):
        for model, columns in blocks.items():
            cells = {name: values[j] for name, values in columns.items()}
            missing = math.isnan(cells["estimate"])
            # where order is all, a prediction that is the same for all individuals says nothing
            if model != of.null or not (cells["se"] < NO_ERROR or missing):
                names = (*labels, time, over_time, scored.weighting, model, of.reference)
                rows.append(TableRow(segment, *names, **cells, note=reasons if missing else ""))
    return rows


def _with_limits(row: TableRow, limits: dict[str, Distance] | None) -> TableRow:
    """Return a distance from calibration with the interval that allows for chance making it larger."""
    if limits is None:
        return replace(row, reliable=False)
    limit = limits[row.metric]
    note = row.note or f"{limit.if_right:.2g} is expected of a model that is right"
    return replace(row, lower=limit.lower, upper=limit.upper, reliable=not math.isnan(limit.lower), note=note)
