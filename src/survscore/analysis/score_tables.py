"""One table of what a reviewer asks for: accuracy, discrimination, calibration and benefit of several models.

Every number is a metric of the engine (`compare` gives the same); this module asks for them together, and puts them
side by side with their intervals, their differences to a reference, and the number of individuals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.loops import side_by_side
from survscore._utils.parallel import each
from survscore._utils.units import Unit, plural_word
from survscore._validation import InputError, UnfitError, as_times, check_choice
from survscore.analysis.calibration.curves import Distance, Spline, distance_limits
from survscore.analysis.compare import compared
from survscore.analysis.distribution.calibration import distribution_calibration
from survscore.analysis.segmenting import Segments
from survscore.engine.blocks import Predictions
from survscore.engine.evaluation import Scored
from survscore.engine.inputs import Null, as_models, check_outcomes, default_horizon, one_or_more
from survscore.engine.null import KaplanMeierNull
from survscore.engine.placing import check_on_processor
from survscore.engine.pooled import Look
from survscore.inference.units import Groups
from survscore.metrics import E50, E90, ICI, METRICS, Brier, HistoryMetric, Metric, as_metric, metric_label
from survscore.metrics._spline import fit_spline
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison
from survscore.results.estimates import Columns, Estimates
from survscore.results.long_tables import ALL, Key, padded
from survscore.results.score_table import DISTRIBUTION, ScoreTable, TableRow
from survscore.results.undefined import warn_about
from survscore.weighting.weightings import Weighting, as_weighting

SKILL, INTEGRATED = "skill", "integrated_brier"
#: What a table can hold that is made of a metric of the engine, or is a test.
MADE = {SKILL: "scaled Brier score", INTEGRATED: "integrated Brier score", DISTRIBUTION: "distribution calibration"}
#: In the order in which they answer: accuracy, discrimination, calibration on average and throughout; over all time.
DEFAULT = ("brier", SKILL, "auc", "oe", "slope", "miscalibration", INTEGRATED, "crps", "concordance", DISTRIBUTION)
EVERY = (
    "brier", SKILL, "log", "auc", "oe", "intercept", "slope", "miscalibration", "ici", "e50", "e90", INTEGRATED, "crps",
    "log_score", "concordance", DISTRIBUTION,
)  # fmt: skip


DISTANCES = (ICI.name, E50.name, E90.name)
N_INTEGRATED = 101  # times over which a mean is taken
#: What columns of a difference are called beside those of an estimate.
DIFFERENCE = {
    "estimate": "difference",
    "se": "difference_se",
    "lower": "difference_lower",
    "upper": "difference_upper",
    "reliable": "difference_reliable",
}


def score_table(
    y: Outcomes,
    models: Mapping[str, Predictions] | Iterable[tuple[str, Predictions]],
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
    unit: Unit | str | None = None,
) -> ScoreTable:
    r"""Evaluate several models at some horizons and over all time, in one table.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : mapping of str to SurvivalCurves, or pairs
        What each model predicted, for the same individuals in the same order.
    horizons : array_like, optional
        At which times; by default one, the median of follow-up. What is over all time goes up to the last of them.
    metric : str or Metric, or several
        What to compute: names of `compare`'s metrics, and ``"skill"`` (the scaled Brier score, against the null model),
        ``"integrated_brier"``, ``"distribution"`` (a test, see `distribution_calibration`); ``"all"`` for everything.
        By default Brier, skill, AUC, observed/expected, calibration slope, corrected miscalibration, integrated Brier,
        CRPS, concordance and distribution calibration.
    thresholds : sequence of float
        Threshold probabilities: for each, the net benefit.
    weighting, reference, null, groups, level
        As for `compare`.
    by : mapping of str to labels, data frame, or labels, optional
        Columns that segment the individuals: the table of all, then of every segment as if it were scored alone.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        What times are counted in, for titles.

    Returns
    -------
    ScoreTable
        Prints as a table; `to_frame`, `to_html`, `to_latex`, `to_markdown`, `to_json`.

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
    check_outcomes(y)
    named = as_models(models)
    check_on_processor("score_table", y, named)
    wanted = _asked_metrics(metric, thresholds, with_null=null is not False)
    times = default_horizon(y, named.values()) if horizons is None else np.unique(as_times(horizons))
    weightings = [as_weighting(one, y) for one in one_or_more(weighting, Weighting, "weighting")]
    grouping = None if groups is None else Groups.of(groups, len(y))
    asked = _Asked(wanted, times, weightings, reference, null, None if grouping is None else grouping.codes, level)
    segments = None if by is None else Segments.of(by, len(y))
    everybody = () if segments is None else (ALL,) * len(segments.by)
    found = asked.of_outcomes(y).rows(y, named, everybody, warn=True)
    for key, rows in {} if segments is None else segments.rows.items():
        of_segment = {name: curves[rows] for name, curves in named.items()}
        found += asked.of_rows(rows).of_outcomes(y[rows]).rows(y[rows], of_segment, key, warn=False)
    settings = {**asked.settings(), **({} if unit is None else {"unit": plural_word(unit)})}
    return ScoreTable(tuple(found), () if segments is None else segments.by, level, len(y), y.n_dropped_out, settings)


def _asked_metrics(
    metric: str | Metric | Sequence[str | Metric] | None, thresholds: Sequence[float], *, with_null: bool
) -> list[str | Metric]:
    """Return what was asked for, each once; a test or what is made of a metric by its name."""
    if metric is None:
        found: list[str | Metric] = [one for one in DEFAULT if with_null or one != SKILL]
    elif isinstance(metric, str) and metric == "all":
        found = [one for one in EVERY if with_null or one != SKILL]
    else:
        found = [metric] if isinstance(metric, (str, Metric)) else list(metric)
    found = [*found, *(f"net_benefit@{float(threshold):g}" for threshold in thresholds)]
    if not found:
        raise InputError("metric must name at least one metric")
    for one in found:
        if isinstance(one, str) and one not in MADE:
            if one.split("@")[0] not in METRICS:
                check_choice("metric", one, (*METRICS, *MADE))
            as_metric(one)
    if SKILL in found and not with_null:
        raise InputError("metric: 'skill' needs the null model, which was left out (null=False)")
    names = [one if isinstance(one, str) else one.name for one in found]
    return [one for place, one in enumerate(found) if names[place] not in names[:place]]


@dataclass(frozen=True, eq=False)
class _Asked:
    """What was asked for, checked; and the rows that it makes."""

    metrics: list[str | Metric]
    times: NDArray[np.float64]
    weightings: list[Weighting]
    reference: str | None
    null: Null | KaplanMeierNull
    groups: NDArray[np.int32] | None
    level: float

    def of_rows(self, rows: NDArray[np.intp]) -> _Asked:
        """Return the same for some individuals."""
        return replace(
            self,
            metrics=[one if isinstance(one, str) else one.of_rows(rows) for one in self.metrics],
            weightings=[one.of_rows(rows) for one in self.weightings],
            groups=None if self.groups is None else self.groups[rows],
        )

    def settings(self) -> dict[str, Any]:
        """Return what was asked for, in a form for machines."""
        from survscore._version import __version__

        return {
            "metric": [one if isinstance(one, str) else one.name for one in self.metrics],
            "horizons": self.times.tolist(),
            "reference": self.reference,
            "groups": self.groups is not None,
            "level": self.level,
            "survscore": __version__,
        }

    def of_outcomes(self, y: Outcomes) -> _Asked:
        """Return the same with the null model of some outcomes, one for all that is scored."""
        return replace(self, null=KaplanMeierNull.of(y, scored=True)) if self.null is True else self

    def rows(self, y: Outcomes, models: Mapping[str, Predictions], segment: Key, *, warn: bool) -> list[TableRow]:
        """Return the rows of everybody, or of a segment: by metric in the order asked for, then by horizon."""
        as_objects = {one.name: one for one in map(as_metric, self._of_engine())}
        at_times = [one for one in as_objects.values() if not isinstance(one, HistoryMetric)]
        up_to = [one for one in as_objects.values() if isinstance(one, HistoryMetric)]
        scored: list[Scored] = []
        parts: list[Callable[[], list[TableRow]]] = []
        if at_times:
            parts.append(lambda: self._at_horizons(y, models, at_times, segment, scored))
        if up_to:
            parts.append(lambda: self._up_to(y, models, up_to, segment))
        if INTEGRATED in self.metrics:
            parts.append(lambda: self._integrated(y, models, segment))
        if DISTRIBUTION in self.metrics:
            parts += [partial(self._distribution, y, models, name, segment) for name in models]
        found: dict[str, list[TableRow]] = {}
        for rows in each(lambda part: part(), parts, threads=side_by_side(len(y))):
            for row in rows:
                found.setdefault(row.metric, []).append(row)
        if warn:
            warn_about(scored)
        names = [as_metric(one).name if one not in MADE else one for one in self.metrics]
        return [row for name in names for row in found[str(name)]]

    def _at_horizons(
        self,
        y: Outcomes,
        models: Mapping[str, Predictions],
        metrics: Sequence[Metric],
        segment: Key,
        scored: list[Scored],
    ) -> list[TableRow]:
        """Return what is known at each horizon; what the engine made of it is added to what was `scored`."""
        limits = _DistanceLimits(self.level, len(models))
        with_limits = any(one.name in DISTANCES for one in metrics)
        at_horizons = self._compared(y, models, metrics, self.times, limits.visit if with_limits else None)
        scored += at_horizons.scored
        found: list[TableRow] = []
        for one in at_horizons.scored:
            rows = _rows_of(at_horizons, Estimates(one, self.level), segment)
            found += [limits.put_into(row, at_horizons) for row in rows] if one.metric in DISTANCES else rows
            if one.metric == Brier.name and SKILL in self.metrics:
                found += _skill_rows(at_horizons, one, segment)
        return found

    def _up_to(
        self, y: Outcomes, models: Mapping[str, Predictions], metrics: Sequence[Metric], segment: Key
    ) -> list[TableRow]:
        """Return what happened up to the last horizon, or why it can't be told of these curves, or by these weights."""
        try:
            last = self._compared(y, models, metrics, self.times[-1:])
            seen = [Estimates(one, self.level) for one in last.scored]
            return [row for one in seen for row in _rows_of(last, one, segment, over_time=True)]
        except UnfitError as error:
            alone = [(metric, weighting) for metric in metrics for weighting in self.weightings]
            if len(alone) > 1:  # others may be had
                return [
                    row for metric, weighting in alone
                    for row in replace(self, weightings=[weighting])._up_to(y, models, [metric], segment)
                ]  # fmt: skip
            (metric, weighting), time = alone[0], float(self.times[-1])
            label, shown = weighting.label(y), (metric.name, metric_label(metric.name), metric.direction)
            return [
                TableRow(segment, *shown, time, True, label, name, self._reference(models), math.nan, note=str(error))
                for name in models
            ]

    def _reference(self, models: Mapping[str, Predictions]) -> str:
        return next(iter(models)) if self.reference is None else self.reference

    def _of_engine(self) -> list[str | Metric]:
        """Return the metrics that the engine computes: also those of which others are made."""
        wanted = [one for one in self.metrics if not (isinstance(one, str) and one in MADE)]
        named = {one if isinstance(one, str) else one.name for one in wanted}
        return [*wanted, *([Brier.name] if SKILL in self.metrics and Brier.name not in named else [])]

    def _compared(
        self,
        y: Outcomes,
        models: Mapping[str, Predictions],
        metrics: Sequence[Metric],
        times: NDArray[np.float64],
        visit: Callable[[int, Look], None] | None = None,
    ) -> Comparison:
        return compared(
            y, models, metric=metrics, weighting=self.weightings, times=times, reference=self.reference, null=self.null,
            groups=self.groups, level=self.level, unasked=False, variances="times", visit=visit,
        )  # fmt: skip

    def _integrated(self, y: Outcomes, models: Mapping[str, Predictions], segment: Key) -> list[TableRow]:
        """Return mean Brier scores from time 0 to the last horizon, or as far as there are scores."""
        horizon = float(self.times[-1])
        grid = np.linspace(0.0, horizon, N_INTEGRATED)
        of_grid = compared(
            y, models, metric=Brier(), weighting=self.weightings, times=grid, reference=self.reference,
            null=self.null, groups=self.groups, level=self.level, ranges=[(0.0, horizon)], unasked=False,
            variances="means",
        )  # fmt: skip
        try:
            weights, (_, until) = of_grid.means_over(0.0, horizon, nan="stop")[Brier.name]
        except InputError as error:
            weights, until, told = np.full(grid.size, np.nan), horizon, str(error)
        else:
            told = "" if until == horizon else f"up to {until:g}: {'; '.join(of_grid.scored[0].undefined)}"
        at_end, rows = replace(of_grid, times=np.array([until])), []
        for one in of_grid.scored:
            mean = Estimates(one, self.level, weights)
            rows += list(_rows_of(at_end, mean, segment, (INTEGRATED, MADE[INTEGRATED]), over_time=True))
        return [replace(row, note=told) for row in rows]

    def _distribution(self, y: Outcomes, models: Mapping[str, Predictions], name: str, segment: Key) -> list[TableRow]:
        """Return the test of whole distributions of one model, which needs no weights."""
        reference, curves = self._reference(models), models[name]
        shown = (DISTRIBUTION, MADE[DISTRIBUTION], "lower", math.inf, True, "")
        try:
            found = distribution_calibration(y, curves, groups=self.groups, level=self.level)  # type: ignore[arg-type]
        except UnfitError as error:
            return [TableRow(segment, *shown, name, reference, math.nan, note=str(error))]
        degrees = "degree" if found.df == 1 else "degrees"
        note = found.reason or f"{found.test} test, chi-square with {found.df} {degrees}: {found.conclusion}"
        return [TableRow(
            segment, *shown, name, reference, found.statistic, p_value=found.p_value, reliable=found.reliable,
            n_counted=float(found.n), n_events=float(found.n_events), n_lost=float(found.n_dropped_out or 0),
            n_groups=float(found.n_groups or math.nan), note=note,
        )]  # fmt: skip


class _DistanceLimits:
    """The limits of distances from calibration, of the curves that the metrics are made of: nothing is fitted again.

    Parameters
    ----------
    level : float
        Of the intervals.
    n_models : int
        How many models there are, without the null model.
    """

    def __init__(self, level: float, n_models: int) -> None:
        self.level, self.n_models = level, n_models
        self.found: dict[tuple[int, int, int], dict[str, Distance]] = {}

    def visit(self, weighting: int, look: Look) -> None:
        """Take what `Evaluation.run` shows."""
        fit = look.sample.once(fit_spline) if look.model < self.n_models else ""
        if isinstance(fit, str):
            return
        spline = Spline(fit, look.covariance(fit.regression.influences))
        limits = distance_limits(look.sample, spline, look.n_units, self.level)
        if limits is not None:
            self.found[weighting, look.model, look.time] = limits

    def put_into(self, row: TableRow, of: Comparison) -> TableRow:
        """Return a distance with the interval that allows for chance making it larger."""
        place = of.weightings.index(row.weighting), of.models.index(row.model), of.times.tolist().index(row.time)
        if place not in self.found:
            return replace(row, reliable=False)
        limits = self.found[place][row.metric]
        note = row.note or f"{limits.if_right:.2g} is expected of a model that is right"
        return replace(row, lower=limits.lower, upper=limits.upper, reliable=not math.isnan(limits.lower), note=note)


def _rows_of(
    of: Comparison, seen: Estimates, segment: Key, name: tuple[str, str] | None = None, *, over_time: bool = False
) -> Iterator[TableRow]:
    """Yield the rows of a metric under a weighting: every horizon's models."""
    r, metric = of.models.index(of.reference), seen.scored.metric
    found = [(seen.score(a), None if a == r else seen.difference(a, r)) for a in range(len(of.models))]
    labels = (*(name or (metric, metric_label(metric))), seen.scored.direction)
    return _at_times(of, seen, segment, labels, found, over_time=over_time)


def _skill_rows(of: Comparison, one: Scored, segment: Key) -> Iterator[TableRow]:
    """Yield the rows of the Brier score scaled by that of the null model."""
    r, null, seen = of.models.index(of.reference), of.null_index(), Estimates(one, of.level)
    found = [
        None if a == null else (seen.skill(a, null), None if r in (a, null) else seen.skill_difference(a, r, null))
        for a in range(len(of.models))
    ]
    nothing = {} if one.scores[null].all() else {"the null model makes no errors": 1}
    scaled = Estimates(replace(one, undefined={**one.undefined, **nothing}), of.level)
    return _at_times(of, scaled, segment, (SKILL, MADE[SKILL], "higher"), found)


def _at_times(
    of: Comparison,
    seen: Estimates,
    segment: Key,
    labels: tuple[str, str, str],
    found: Sequence[tuple[Columns, Columns | None] | None],
    *,
    over_time: bool = False,
) -> Iterator[TableRow]:
    """Yield rows by time, then by model, of what was found for each model: an estimate, and a difference."""
    support = seen.support
    counts = {name: values for name, values in seen.counts().items() if name in ("n_counted", "n_events", "n_groups")}
    counts["n_lost"] = support.n_counted - support.n_events - support.n_event_free
    blocks = {}
    for model, both in zip(of.models, found, strict=True):
        if both is not None and (model != of.null or seen.scored.has_null):
            difference = {} if both[1] is None else {DIFFERENCE.get(name, name): v for name, v in both[1].items()}
            columns = {**both[0], **difference, **counts}
            blocks[model] = {name: padded(values, of.times.size).tolist() for name, values in columns.items()}
    reasons = "; ".join(seen.scored.undefined)
    for j, time in enumerate(of.times.tolist()):
        for model, columns in blocks.items():
            cells = {name: values[j] for name, values in columns.items()}
            missing = math.isnan(cells["estimate"])
            # where order is all, a prediction that is the same for all individuals says nothing
            if model != of.null or not (cells["se"] == 0 or missing):
                names = (*labels, time, over_time, seen.scored.weighting, model, of.reference)
                yield TableRow(segment, *names, **cells, note=reasons if missing else "")
