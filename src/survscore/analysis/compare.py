"""Compare models on the same individuals: all of them together, and within segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._utils.frames import as_frame
from survscore._validation import (
    FewFollowedWarning,
    FewGroupsWarning,
    InputError,
    UndefinedScoreWarning,
    as_array,
    check_length,
    plural,
    shown,
    warn,
)
from survscore.analysis.assumptions import dropout_test, warn_if_entry_is_late
from survscore.analysis.diagnose import leak_warnings
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import Ranges
from survscore.engine.blocks import GivenPredictions
from survscore.engine.entry import looked_at_after_entry
from survscore.engine.evaluation import Evaluation, ScoreArrays
from survscore.engine.inputs import (
    Null,
    any_event,
    as_models,
    check_outcomes,
    null_name,
    of_cause,
    one_or_more,
    reads_whole_curves,
)
from survscore.engine.plan import Variances
from survscore.engine.pooled import OnSample
from survscore.inference.late_starters import LateStarters
from survscore.inference.units import Groups
from survscore.metrics import Brier, Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison
from survscore.results.long_tables import ALL, Key
from survscore.results.printing import undefined_times, warn_about
from survscore.results.segments import SegmentedComparison, check_names
from survscore.weighting import Weighting, as_weighting, default_weightings

if TYPE_CHECKING:
    import pandas as pd

Models = Mapping[str, GivenPredictions] | Iterable[tuple[str, GivenPredictions]]
MOST_SEGMENTS = 1000


class CompareSettings(TypedDict, total=False):
    """What `compare` takes by keyword, whether there are segments or not."""

    metric: str | Metric | Sequence[str | Metric]
    weighting: str | Weighting | Sequence[str | Weighting] | None
    times: ArrayLike | None
    reference: str | None
    null: Null
    groups: ArrayLike | None
    level: float
    ranges: Ranges
    cause: Cause | None


@overload
def compare(y: Outcomes, models: Models, *, by: None = ..., **settings: Unpack[CompareSettings]) -> Comparison: ...


@overload
def compare(y: Outcomes, models: Models, *, by: Any, **settings: Unpack[CompareSettings]) -> SegmentedComparison: ...


@takes_cause
def compare(
    y: Outcomes,
    models: Models,
    *,
    metric: str | Metric | Sequence[str | Metric] = "brier",
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    times: ArrayLike | None = None,
    reference: str | None = None,
    null: Null = True,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    ranges: Ranges = None,
    cause: Cause | None = None,
    by: Any = None,
) -> Comparison | SegmentedComparison:
    r"""Score several models on the same individuals and test their differences.

    The difference of two scores is a sum over individuals of the differences of their influences, so its standard
    error allows for both models being evaluated on the same data. Quantiles are Student's; the degrees of freedom are
    at most the number of groups, or of individuals with the rarer status, minus one. A difference within rounding
    error of the scores has no verdict.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : mapping of str to SurvivalCurves, or pairs
        What each model predicted, for the same individuals in the same order.
    metric : str or Metric, or several
        What to compute: "brier", "log", "auc"; "oe", "slope", "in_the_large", "miscalibration", "ici", "e50", "e90" for
        calibration; "net_benefit@0.1" with its threshold; "concordance", "crps", "log_score" of all that happened up
        to a time. Where values should be close to a target, as a slope to 1, verdicts on differences say lower or
        higher.
    weighting : str, Weighting, or several
        As for `brier_score`; several show the same models side by side. By default, where :math:`C^*` is known,
        ``"administrative"`` and ``"projected"``: those with :math:`C^* \ge t`, and all individuals. Metrics of all that
        happened up to a time have no projected form.
    times : array_like, optional
        The evaluation times; by default as for `brier_score`, within the reach of all models. Where some models predict
        at few times, it is the times that these share; it is an error if they share none. Intervals and p-values allow
        for the error of interpolation between models on different grids, unless their `interpolation` was named.
    reference : str, optional
        The model that the others are compared with; by default the first.
    null : bool, Outcomes or "counted", default True
        Whether to add the null model, and skill scores against it. True: the Kaplan-Meier curve of `y`, the same for
        all individuals. Outcomes: the curve of these, such as the training data. What estimating it adds is part of
        the standard errors. ``"counted"``: the proportion event-free among those counted at t, under each weighting its
        own: the best constant for them, which Kaplan-Meier is not if risks depend on the start date.
    groups, ranges, level, cause
        As for `brier_score`. The null model of one of several causes is the Aalen-Johansen estimate.
    by : mapping of str to labels, data frame, or labels, optional
        Columns that segment the individuals, such as country and plan; one array is called by its name, or "segment".
        All individuals are scored together, and every segment as if it were scored alone: what is estimated inside
        weights, and the null model, are of the segment's own outcomes. Times are the same for all.

    Returns
    -------
    Comparison
        Or, with `by`, a `SegmentedComparison`. Where individuals dropped out, a test of whether drop-out depends on
        predicted risk or on :math:`C^*` is printed below it. Models that encode :math:`C^*` are named first, by the
        recommendation or by the rule of `diagnose`. There is a warning if the Brier score of a model is far
        above that of Kaplan-Meier, and that of one minus its predictions is not: probabilities of the event were taken
        for survival.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    Models are compared on the same individuals: with :math:`\phi_i` the influence of individual i on a score, the
    difference of models a and b and its standard error are

    .. math:: D(t) = \mathrm{score}_a(t) - \mathrm{score}_b(t), \qquad
        \mathrm{se}^2 = \frac{n}{n - 1} \sum_i \left[\phi_{a,i}(t) - \phi_{b,i}(t)\right]^2,

    with n the individuals, or groups, that the scores refer to. Intervals and p-values use Student's t.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 500)
    >>> event_time, end = rng.exponential(1 / rate), rng.uniform(5, 25, 500)
    >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    >>> times = np.arange(1.0, 21.0)
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
    ...     "pessimistic": ss.SurvivalCurves(np.exp(-2 * rate[:, None] * times), times),
    ... }
    >>> result = ss.compare(y, models, weighting="administrative", times=times, reference="truth")
    >>> result.integrated(1, 20).contrasts.drop(columns=["metric", "weighting", "from", "to", "reliable"]).round(4)
              model reference  difference      se   lower   upper  p_value verdict
    0   pessimistic     truth      0.0447  0.0072  0.0304  0.0589      0.0   worse
    1  Kaplan-Meier     truth      0.0444  0.0068  0.0311  0.0578      0.0   worse
    """
    null, entry = True if null is y else null, getattr(y, "entry", None)
    metrics = [as_metric(given) for given in one_or_more(metric, Metric, "metric")]
    outcomes, predicted = y, as_models(models)
    # with delayed entry, predictions are made only where they are needed
    whole = times is None or reads_whole_curves(metrics) or bool(getattr(y, "causes", ()))
    y, models = of_cause(y, predicted, cause, times=times, whole=whole, multiclass=True)
    if weighting is None:
        weighting = default_weightings(y, metrics)
    request = Request(metric, weighting, times, reference, null, groups, level, ranges, by_theta=True)
    segmented = None if by is None else _run_by(y, as_models(models), request, by)
    total = request.run(y, models) if segmented is None else segmented.total
    any_kind, of_any_event = any_event(y, models)
    if y.n_dropped_out:
        total = replace(total, dropout_test=dropout_test(any_kind, of_any_event, total.times))
    if not total.has_recommendation or by is not None:  # which names these models, but is not printed by segment
        weightings = [as_weighting(given, y) for given in one_or_more(weighting, Weighting, "weighting")]
        looked_at: Mapping[str, Any] = of_any_event
        if entry is not None and times is not None and not whole:
            looked_at = looked_at_after_entry(outcomes, predicted, times)
        total = replace(total, leak_warnings=leak_warnings(any_kind, looked_at, weightings, groups=groups, level=level))
    warn_about(total.scored)
    if entry is None:
        warn_if_entry_is_late(any_kind, of_any_event)
    if segmented is not None:
        _warn_about_parts(segmented)
    if _looks_far_worse(total):
        first = next(iter(one_or_more(weighting, Weighting, "weighting")))
        warn_if_reversed(y, models, weighting=first, times=total.times)
    return total if segmented is None else replace(segmented, total=total)


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be computed: the arguments of `compare`, then those of `Evaluation`."""

    metric: Any = "brier"
    weighting: Any = None
    times: ArrayLike | None = None
    reference: str | None = None
    null: Any = False
    groups: Any = None
    level: float = 0.95
    ranges: Any = None
    errors: bool = True
    variances: Variances = "both"
    by_theta: bool = False

    def run(self, y: Outcomes, models: Models, on_sample: OnSample | None = None) -> Comparison:
        """Compare models, without warnings; `on_sample` is that of `Evaluation.run`."""
        settings = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "reference"}
        evaluation = Evaluation.of(y, models, **settings)
        if evaluation.index.times.size == 0:
            raise InputError(f"times start at {evaluation.times[0]:g}, after the last time that all models predict")
        names = evaluation.names
        reference = names[0] if self.reference is None else str(self.reference)
        if reference not in names:
            raise InputError(f"reference must be one of the models {list(names)}, not {reference!r}")
        scored = tuple(evaluation.run(on_sample))
        late = LateStarters.of(y, evaluation.times) if any(arrays.by_theta is not None for arrays in scored) else None
        scored_of = evaluation.index.outcomes  # those with weight
        return Comparison(
            names,
            reference,
            evaluation.null_name,
            evaluation.times,
            evaluation.level,
            scored_of.n_individuals,
            scored_of.n_dropped_out,
            scored,
            late_starters=late,
        )

    def of_rows(self, y: Outcomes, rows: NDArray[np.intp]) -> Request:
        """Return the same for some of the individuals: what holds one value for each of them is cut."""
        metrics = [] if self.metric is None else one_or_more(self.metric, Metric, "metric")
        weightings = [as_weighting(given, y) for given in one_or_more(self.weighting, Weighting, "weighting")]
        return replace(
            self,
            metric=[as_metric(metric).of_rows(rows) for metric in metrics] or None,
            weighting=[weighting.of_rows(rows) for weighting in weightings],
            groups=None if self.groups is None else Groups.of(self.groups, len(y)).codes[rows],
        )


def _run_by(y: Outcomes, models: Mapping[str, Any], request: Request, by: Any) -> SegmentedComparison:
    """Compare models on all individuals, then on every segment at the same times."""
    check_outcomes(y)
    segments = Segments.of(by, y)
    total = request.run(y, models)
    keep = isinstance(request.ranges, str) and request.ranges == "any"
    ranges = _ranges(total, request.ranges)
    request = replace(request, times=total.times, reference=total.reference, ranges=ranges, by_theta=False)
    parts = {}
    for key, rows in segments.rows.items():
        try:
            selected = {name: curves[rows] for name, curves in models.items()}
            part = request.of_rows(y, rows).run(y[rows], selected)
        except InputError as error:
            raise InputError(f"segment {segment_name(segments.by, key)}: {error}") from None
        if not keep:  # leave out what serves means over ranges that were not asked for
            scored = (
                replace(arrays, bounds=arrays.bounds and replace(arrays.bounds, kept=None)) for arrays in part.scored
            )
            part = replace(part, scored=tuple(scored))
        parts[key] = part
    spanning = 0 if request.groups is None else segments.n_spanning(Groups.of(request.groups, len(y)))
    return SegmentedComparison(segments.by, total, parts, n_spanning=spanning)


def _ranges(total: Comparison, asked: Ranges) -> Any:
    """Return the ranges asked for, and those over which the total has its means: segments will be asked for these."""
    if isinstance(asked, str) or total.times.size == 1:
        return asked
    ranges = [] if asked is None else list(asked)
    for lower, upper in [(None, None), *ranges]:
        try:
            ranges += [ends for _, ends in total.means_over(lower, upper, nan="stop").values()]
        except InputError:  # nothing is left to average, which raises an error when it is asked for
            continue
    return list(dict.fromkeys(ranges))


def _warn_about_parts(segmented: SegmentedComparison) -> None:
    """Warn once about all segments without score at some time, and once about those that rest on few."""
    parts, n = segmented.parts, plural(len(segmented.parts), "segment")
    undefined = {key: message for key, part in parts.items() if (message := undefined_times(part.scored))}
    if undefined:
        key, message = next(iter(undefined.items()))
        warn(
            f"in {len(undefined)} of {n} some scores are NaN, such as in {segment_name(segmented.by, key)}: {message}",
            UndefinedScoreWarning,
        )
    few = [key for key, part in parts.items() if any(arrays.support.cautions() for arrays in part.scored)]
    if few:
        warn(
            f"in {len(few)} of {n} standard errors are based on few groups, such as in "
            f"{segment_name(segmented.by, few[0])}: intervals allow for that, and there are none below five groups",
            FewGroupsWarning,
        )
    few = [key for key, part in parts.items() if any(arrays.support.few_followed() for arrays in part.scored)]
    if few:
        warn(
            f"in {len(few)} of {n} projected statuses come from few, such as in {segment_name(segmented.by, few[0])}",
            FewFollowedWarning,
        )


FAR_WORSE = 1.5  # so many times the Brier score of the null model
MOST_TIMES = 5
FEW = 50  # individuals, whom chance alone may put on the wrong side


def warn_if_reversed(
    y: Outcomes, models: Mapping[str, Any] | Iterable[tuple[str, Any]], *, weighting: Any, times: ArrayLike
) -> None:
    r"""Warn about models that look as if probabilities of the event had been taken for survival, or otherwise.

    Their mean Brier score is more than 1.5 times that of Kaplan-Meier, which is the same for all, and that of
    :math:`1 - \pi_i` is smaller than theirs, and not far worse than Kaplan-Meier. Up to five of the times are enough to
    see it, fewer than 50 individuals are not. Models that come in batches are not looked at.
    """
    if len(y) < FEW:
        return
    if y.entry is not None:
        y, models = of_cause(y, models, times=times, multiclass=True)
    every = np.atleast_1d(np.asarray(times, dtype=np.float64))
    chosen = every[np.unique(np.linspace(0, every.size - 1, MOST_TIMES).round().astype(np.intp))]
    for name, curves in dict(models).items():
        if not isinstance(curves, SurvivalCurves):
            continue
        reached = chosen[curves.reaches(chosen) & (chosen > 0)]
        if reached.size == 0:
            continue
        # the opposite starts from S(0) = 1 as well, so it is made of the grid, of which few columns are read
        lower = curves.interpolate(reached).lower
        columns = np.unique(np.concatenate([lower, lower + 1]).clip(0, curves.times.size - 1))
        values, grid = curves.probabilities[:, columns], curves.times[columns]
        read: Any = {"extrapolation": curves.extrapolation, "interpolation": curves.interpolation, "monotone": "keep"}
        opposite_curves = SurvivalCurves.from_event_probabilities(values, grid, **read)
        both = {"given": SurvivalCurves(values, grid, **read), "opposite": opposite_curves}
        with suppress(InputError):  # which is raised where scores are asked for
            (scored,) = Evaluation.of(y, both, weighting=weighting, times=reached, null=True, errors=False).run()
            given, opposite, null = _defined_means(scored)
            constant = null_name(True, y)
            if given > FAR_WORSE * null and opposite < min(given, FAR_WORSE * null):
                warn(
                    f"predictions of {name!r} are far worse than {constant}: their mean Brier score is {given:.2g}, "
                    f"that of {constant} {null:.2g}, and that of one minus the predictions {opposite:.2g}. Were "
                    "probabilities of the event taken for those of survival, or otherwise? "
                    "`from_event_probabilities` takes the former, `SurvivalCurves` the latter"
                )


def _looks_far_worse(comparison: Comparison) -> bool:
    """Whether any model's Brier score, over all times that have one, is far above the null model's."""
    if comparison.null is None:
        return False
    means = [_defined_means(arrays) for arrays in comparison.scored if arrays.metric == Brier.name]
    return any((means_of_all > FAR_WORSE * means_of_all[comparison.null_index()]).any() for means_of_all in means)


def _defined_means(scored: ScoreArrays) -> NDArray[np.float64]:
    """Return every model's mean over the times at which all have a score; zero without any."""
    defined = np.isfinite(scored.scores).all(axis=0)
    return np.asarray(scored.scores[:, defined].mean(axis=1)) if defined.any() else np.zeros(len(scored.scores))


@dataclass(frozen=True, eq=False)
class Segments:
    """The individuals of each segment."""

    by: tuple[str, ...]  # names of the segmenting columns
    rows: dict[Key, NDArray[np.intp]]  # by their labels, the positions of the individuals of every segment

    @classmethod
    def of(cls, given: Any, y: Outcomes) -> Segments:
        """Take a mapping of names to labels, a data frame, or labels; who has weight zero is in no segment."""
        import pandas as pd

        columns, n = _columns(given), len(y)
        by = tuple(columns)
        check_names(by)
        labels = pd.DataFrame({name: _labels(name, values, n) for name, values in columns.items()})
        if y.weights is not None:
            labels = labels[arrays.to_host(y.weights) > 0]
        grouped = labels.groupby(list(by), sort=True, observed=True)  # labels in the order in which they come
        if grouped.ngroups > MOST_SEGMENTS:
            n_labels = labels.nunique().to_dict()
            finest = max(by, key=lambda name: n_labels[name])
            raise InputError(
                f"by makes {grouped.ngroups} segments of {plural(n, 'individual')}, and at most {MOST_SEGMENTS} are "
                f"scored; take a coarser column, or fewer: {finest!r} has {plural(n_labels[finest], 'label')}"
            )
        return cls(by, {tuple(map(str, key)): members.index.to_numpy() for key, members in grouped})

    def n_spanning(self, groups: Groups) -> int:
        """Return how many groups have individuals in several segments."""
        n_segments = np.zeros(groups.n_groups, dtype=np.intp)
        for rows in self.rows.values():
            n_segments[np.unique(groups.codes[rows])] += 1
        return int(np.count_nonzero(n_segments > 1))


def _columns(given: Any) -> dict[str, Any]:
    """Return the segmenting columns by name, whichever way they were given."""
    if isinstance(given, str):
        raise InputError(f"by must hold a label for each individual, not the name {shown(given)!r} of a column")
    if isinstance(given, Mapping):
        return {str(name): values for name, values in given.items()}
    try:
        frame = as_frame(given)
    except InputError as error:
        raise InputError(f"by: {str(error).removeprefix('X ')}") from None
    if frame is not None:
        return {str(series.name): series.to_list() for series in frame.iter_columns()}
    name = getattr(given, "name", None)
    return {"segment" if name is None or callable(name) else str(name): given}


def _labels(name: str, values: Any, n: int) -> pd.Categorical:
    """Return the labels of a column as text, in the order in which they come."""
    import pandas as pd

    what = f"by: {name!r}"
    if isinstance(values, list):  # NumPy would make one type of mixed labels
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = as_array(values, what)
    if array.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, not of shape {array.shape}")
    check_length(what, array.size, "y", n)
    try:
        codes, labels = pd.factorize(array)
    except TypeError:
        raise InputError(f"{what} must hold labels, such as numbers or text") from None
    missing = codes < 0
    if missing.any():
        raise InputError(
            f"{what} must be given for each individual: {missing.sum()} of {n} are missing, the first at position "
            f"{int(np.argmax(missing))}; give them a label of their own, such as 'unknown'"
        )
    texts = [_as_text(label) for label in labels]
    if ALL in texts:
        raise InputError(f"{what} has the label {ALL!r}, which stands for all individuals in the results: rename it")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"{what} has labels of several kinds that read the same, such as {shown(twice)!r}")
    return pd.Categorical(np.array(texts, dtype=object)[codes], categories=texts)


def _as_text(label: Any) -> str:
    if isinstance(label, (float, np.floating)):
        return repr(float(label)).removesuffix(".0")
    return label.decode(errors="replace") if isinstance(label, bytes) else str(label)


def segment_name(by: tuple[str, ...], key: Key) -> str:
    """Return what a segment is called in a message."""
    return ", ".join(f"{name} {shown(label)!r}" for name, label in zip(by, key, strict=True))
