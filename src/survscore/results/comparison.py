"""Which model is better, and how sure that is: all models on the same individuals, paired."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.units import Unit
from survscore._validation import InputError, check_choice, check_level
from survscore.engine.averaging import WhereNaN, averaging_weights
from survscore.engine.blocks import Predictions
from survscore.engine.evaluation import Evaluation, Ranges, Scored
from survscore.engine.inputs import Null
from survscore.engine.pooled import Look
from survscore.inference.intervals import (
    difference_interval,
    normal_quantile,
    ratio_interval,
    score_interval,
    simultaneous_quantile,
    verdicts,
    with_degrees,
)
from survscore.inference.student import student_quantile
from survscore.inference.support import FEW_FOR_BAND, Support
from survscore.inference.units import Units
from survscore.metrics import Direction, Metric
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.results.tables import PrintedAsTables, Tables
from survscore.results.undefined import warn_about
from survscore.weighting.weightings import Weighting

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import DifferenceDisplay, ScoresDisplay
    from survscore.results.segments import SegmentedComparison

Columns = dict[str, Any]
#: A mean over time, as weights of the times, and from when to when it is.
MeanOver = tuple[NDArray[np.float64], tuple[float, float]]


@overload
def compare(
    y: Outcomes,
    models: Mapping[str, Predictions] | Iterable[tuple[str, Predictions]],
    *,
    metric: str | Metric | Sequence[str | Metric] = ...,
    weighting: str | Weighting | Sequence[str | Weighting] | None = ...,
    times: ArrayLike | None = ...,
    reference: str | None = ...,
    null: Null = ...,
    groups: ArrayLike | None = ...,
    level: float = ...,
    ranges: Ranges = ...,
    by: None = ...,
) -> Comparison: ...


@overload
def compare(
    y: Outcomes,
    models: Mapping[str, Predictions] | Iterable[tuple[str, Predictions]],
    *,
    metric: str | Metric | Sequence[str | Metric] = ...,
    weighting: str | Weighting | Sequence[str | Weighting] | None = ...,
    times: ArrayLike | None = ...,
    reference: str | None = ...,
    null: Null = ...,
    groups: ArrayLike | None = ...,
    level: float = ...,
    ranges: Ranges = ...,
    by: Any,
) -> SegmentedComparison: ...


def compare(
    y: Outcomes,
    models: Mapping[str, Predictions] | Iterable[tuple[str, Predictions]],
    *,
    metric: str | Metric | Sequence[str | Metric] = "brier",
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    times: ArrayLike | None = None,
    reference: str | None = None,
    null: Null = True,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    ranges: Ranges = None,
    by: Any = None,
) -> Comparison | SegmentedComparison:
    r"""Score several models on the same individuals and test their differences.

    The difference of two scores is a sum over individuals of the differences of their influences, so its
    standard error allows for the models being judged on the same data. Quantiles are Student's, with as many degrees
    of freedom as the standard error is worth: at most the number of groups, or of those with the rarer status, minus
    one. A difference that is rounding beside the scores has no verdict.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : mapping of str to SurvivalCurves, or pairs
        What each model predicted, for the same individuals in the same order.
    metric : str or Metric, or several
        What to compute: "brier", "log", "auc"; "oe", "slope", "intercept", "miscalibration", "ici", "e50", "e90" for
        calibration; "net_benefit@0.1" with its threshold; "concordance", "crps", "log_score" of all that happened up
        to a time. Where values should be close to a target, as a slope to 1, verdicts on differences say lower or
        higher.
    weighting : str, Weighting, or several
        As for `brier_score`; several show the same models side by side.
    times : array_like, optional
        The evaluation times; by default as for `brier_score`, within the reach of all models.
    reference : str, optional
        The model that the others are compared with; by default the first.
    null : bool, Outcomes or "counted", default True
        Whether to add the null model, and skill scores against it. True: the Kaplan-Meier curve of `y`, the same for
        everybody. Outcomes: the curve of these, such as the training data. ``"counted"``: the share that is event-free
        among those counted at t, under each weighting its own. It is the best constant for them, which Kaplan-Meier is
        not where those who started at other times fare otherwise; and as the best constant it adds nothing to first
        order by being estimated. What estimating a Kaplan-Meier curve adds is part of the standard errors.
    groups, ranges
        As for `brier_score`.
    level : float, default 0.95
        Of all confidence intervals.
    by : mapping of str to labels, data frame, or labels, optional
        Columns that segment the individuals, such as country and plan; one array is called by its name, or "segment".
        Everybody is scored together, and every segment as if it were scored alone: what is estimated inside weights,
        and the null model, are of the segment's own outcomes. Times are the same for all.

    Returns
    -------
    Comparison
        Or, with `by`, a `SegmentedComparison`.

    Warns
    -----
    UserWarning
        If the Brier score of a model is far above that of Kaplan-Meier, and that of one minus its predictions is not:
        probabilities of the event were taken for survival.

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
    ...     "gloomy": ss.SurvivalCurves(np.exp(-2 * rate[:, None] * times), times),
    ... }
    >>> result = ss.compare(y, models, weighting="administrative", times=times, reference="truth")
    >>> result.integrated(1, 20).contrasts.drop(columns=["metric", "weighting", "from", "to", "reliable"]).round(4)
              model reference  difference      se   lower   upper  p_value verdict
    0        gloomy     truth      0.0447  0.0072  0.0304  0.0589      0.0   worse
    1  Kaplan-Meier     truth      0.0444  0.0068  0.0311  0.0578      0.0   worse
    """
    asked: dict[str, Any] = {
        "metric": metric, "weighting": weighting, "times": times, "reference": reference, "null": null,
        "groups": groups, "level": level, "ranges": ranges,
    }  # fmt: skip
    if not isinstance(models, Mapping):
        models = list(models)  # pairs may come only once, and are looked at twice
    if by is not None:
        from survscore.analysis.segmenting import compare_segments

        segmented = compare_segments(y, models, by, asked)
        _warn_if_reversed(y, models, segmented.total, weighting)
        return segmented
    found = compared(y, models, **asked)
    warn_about(found.scored)
    _warn_if_reversed(y, models, found, weighting)
    return found


def _warn_if_reversed(y: Outcomes, models: Any, found: Comparison, weighting: Any) -> None:
    """Warn whoever called `compare`, if predictions may be the opposite of what they were taken for."""
    from survscore.analysis import plausibility

    if plausibility.looks_far_worse(found):
        one = weighting if isinstance(weighting, (str, Weighting)) or weighting is None else next(iter(weighting))
        plausibility.warn_if_reversed(y, models, weighting=one, times=found.times)


def compared(
    y: Outcomes,
    models: Mapping[str, Predictions] | Iterable[tuple[str, Predictions]],
    *,
    reference: str | None = None,
    visit: Callable[[int, Look], None] | None = None,
    **asked: Any,
) -> Comparison:
    """Compare without a warning; the arguments are those of `compare`, and `visit` that of `Evaluation.run`."""
    evaluation = Evaluation.of(y, models, **asked)
    if evaluation.index.times.size == 0:
        raise InputError(f"times start at {evaluation.times[0]:g}, after the last time that all models predict")
    names = evaluation.names
    reference = names[0] if reference is None else str(reference)
    if reference not in names:
        raise InputError(f"reference must be one of the models {list(names)}, not {reference!r}")
    scored = tuple(evaluation.run(visit))
    return Comparison(
        names, reference, evaluation.null_name, evaluation.times, evaluation.level, len(y), y.n_dropped_out, scored
    )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(PrintedAsTables):
    """Scores of several models and their paired differences. Numbers only; prints as a table.

    Attributes
    ----------
    models : tuple of str
        Their names, the null model last.
    reference : str
        What the others are compared with.
    null : str or None
        The null model's name, where there is one.
    times : ndarray
        The evaluation times.
    level : float
        Of the confidence intervals.
    n : int
        The number of individuals.
    n_dropped_out : int or None
        How many of them dropped out; None where that is unknown.
    scored : tuple of Scored
        The numbers, for every metric under every weighting.
    """

    models: tuple[str, ...]
    reference: str
    null: str | None
    times: NDArray[np.float64]
    level: float
    n: int
    n_dropped_out: int | None
    scored: tuple[Scored, ...]

    def against(self, reference: str) -> Comparison:
        """Return the same comparison with another model as reference; nothing is computed anew."""
        check_choice("reference", reference, self.models)
        return replace(self, reference=reference)

    @property
    def metrics(self) -> list[str]:
        """What was computed."""
        return list(dict.fromkeys(one.metric for one in self.scored))

    @property
    def weightings(self) -> list[str]:
        """The weightings, in words."""
        return list(dict.fromkeys(one.weighting for one in self.scored))

    @property
    def scores(self) -> pd.DataFrame:
        """Long table: metric, weighting, model, time, score, se, lower, upper, reliable, and on how many that rests.

        With groups also n_groups and largest_share; where somebody dropped out, bound_lower and bound_upper.
        """

        def columns(one: Scored, a: int) -> Columns:
            support = one.support
            numbers: Columns = {
                "n_counted": support.n_counted, "n_events": support.n_events, "n_effective": support.n_effective
            }  # fmt: skip
            if support.grouped:
                numbers |= {"n_groups": support.units.counted, "largest_share": support.units.largest_share}
            return {**score_columns(one, a, self.level), **numbers, **bound_columns(one, a, a)}

        return self._table(columns)

    @property
    def contrasts(self) -> pd.DataFrame:
        """Long table: metric, weighting, model, reference, time, difference, se, interval, p_value, verdict, reliable.

        Where somebody dropped out, also bound_lower and bound_upper of the difference.
        """
        r = self.models.index(self.reference)

        def columns(one: Scored, a: int) -> Columns:
            return {**contrast_columns(one, a, r, self.level), **bound_columns(one, a, r)}

        return self._table(columns, against=self.reference)

    @property
    def skill(self) -> pd.DataFrame:
        """Long table of skill scores, 1 - score / null score.

        Columns: metric, weighting, model, time, skill, se, lower, upper, reliable. Only for metrics of which lower
        values are better, and that the null model has.
        """
        null = self.null_index()

        def columns(one: Scored, a: int) -> Columns:
            return skill_columns(one, a, null, self.level)

        return self._table(columns, skip=self.null, of=[one for one in self.scored if has_skill(one)])

    def to_frame(self) -> pd.DataFrame:
        """Return the contrasts."""
        return self.contrasts

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> IntegratedComparison:
        """Return the same for the scores' mean over a range of time; see `ScoreCurve.integrated`.

        For each metric the range is the same for all models and weightings: with ``nan="stop"``, up to the first time
        at which any of them has no score.
        """
        r = self.models.index(self.reference)
        tables: dict[str, list[Columns]] = {"scores": [], "contrasts": [], "skill": []}
        for metric, (weights, used_range) in self.means_over(lower, upper, nan=nan).items():
            for one in self.scored:
                if one.metric != metric:
                    continue
                mean = mean_of(one, weights)
                for a, name in enumerate(self.models):
                    row: Columns = {"metric": metric, "weighting": one.weighting, "model": name}
                    ends = {"from": used_range[0], "to": used_range[1]}
                    found = score_columns(mean, a, self.level)
                    tables["scores"].append({**row, **found, **bound_columns(mean, a, a), **ends})
                    if name != self.reference:
                        found = {**contrast_columns(mean, a, r, self.level), **bound_columns(mean, a, r), **ends}
                        tables["contrasts"].append({**row, "reference": self.reference, **found})
                    if self.null is not None and name != self.null and has_skill(one):
                        found = skill_columns(mean, a, self.null_index(), self.level)
                        tables["skill"].append({**row, **found, **ends})
        frames = {key: stacked(parts) if parts else None for key, parts in tables.items()}
        return IntegratedComparison(self.level, frames["scores"], frames["contrasts"], frames["skill"])

    def means_over(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> dict[str, MeanOver]:
        """Return over which range means are taken, by metric, as weights of the times; see `integrated`."""
        found = {}
        for metric in self.metrics:
            some = [one for one in self.scored if one.metric == metric]
            worst = np.full(self.times.size, np.nan)
            worst[: some[0].scores.shape[1]] = np.sum([defined_models(one).sum(axis=0) for one in some], axis=0)
            reasons = dict.fromkeys(reason for one in some for reason in one.undefined)
            found[metric] = averaging_weights(self.times, worst, lower, upper, nan, reasons)
        return found

    def band(self, *, level: float | None = None, n_draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
        """Return simultaneous confidence bands of the differences: they hold the whole true curve with this confidence.

        From a multiplier bootstrap of the influences (Gaussian multipliers), whose critical value is turned into
        Student's at each time, with the degrees of freedom there. For large data, compare with ``ranges="any"``.

        Parameters
        ----------
        level : float, optional
            By default that of the comparison.
        n_draws, seed : int
            Of the bootstrap.

        Returns
        -------
        pandas.DataFrame
            metric, weighting, model, reference, time, difference, lower, upper, critical_value, reliable.
        """
        level = self.level if level is None else level
        check_level(level)
        if n_draws < 1:
            raise InputError(f"n_draws must be at least 1, not {n_draws}")
        r = self.models.index(self.reference)

        def columns(one: Scored, a: int) -> Columns:
            normal = simultaneous_quantile(_of(one).covariance_over_time(a, r), level, n_draws, seed)
            if np.isnan(normal):  # nothing varies but rounding
                normal = normal_quantile(level)
            critical = with_degrees(normal, one.support.difference_degrees)
            found = difference_interval(
                one.scores[a], one.scores[r], _se(one, a, r), critical, one.scale, one.support,
                _of(one).added_share(a, r),
            )  # fmt: skip
            return {
                "difference": one.scores[a] - one.scores[r],
                "lower": found.lower,
                "upper": found.upper,
                "critical_value": critical,
                "reliable": one.support.enough(FEW_FOR_BAND) & found.reliable,
            }

        return self._table(columns, against=self.reference)

    def disagreements(self) -> pd.DataFrame:
        """Return where the weightings rank a model and the reference differently.

        One row per metric, model and time, one column per weighting with the difference to the reference.
        """
        import pandas as pd

        r = self.models.index(self.reference)
        rows = []
        for metric in self.metrics:
            some = [one for one in self.scored if one.metric == metric]
            for a, name in enumerate(self.models):
                if name == self.reference:
                    continue
                differences = np.array([one.scores[a] - one.scores[r] for one in some])
                signs = np.sign(differences)
                for j in np.flatnonzero((signs < 0).any(axis=0) & (signs > 0).any(axis=0)):  # NaN is neither
                    row = {"metric": metric, "model": name, "reference": self.reference, "time": self.times[j]}
                    rows.append({**row, **dict(zip(self.weightings, differences[:, j], strict=True))})
        return pd.DataFrame(rows, columns=["metric", "model", "reference", "time", *self.weightings])

    def plot(
        self,
        ax: Any = None,
        *,
        metric: str | None = None,
        band: bool = True,
        counts: bool | None = None,
        unit: Unit | str | None = None,
        width: float | None = None,
    ) -> DifferenceDisplay:
        """Draw the differences to the reference over time with their pointwise intervals, or without.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        metric : str, optional
            Which metric's; by default the first.
        band : bool, default True
            Whether to shade the confidence intervals.
        counts : bool, optional
            Whether to write below the axis how many are counted; by default in a new figure.
        unit : str, optional
            What times are counted in, for the label of the axis: "month".
        width : float, optional
            Of a new figure, in inches: 3.4 is a column of a journal, 7 its page, as by default.

        Returns
        -------
        DifferenceDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import DifferenceDisplay

        metric, direction = self._metric_of_plot(metric)
        scores, contrasts = (table[table["metric"] == metric] for table in (self.scores, self.contrasts))
        display = DifferenceDisplay(contrasts, metric, self.reference, direction, self.models, self.null, scores)
        return display.plot(ax=ax, band=band, counts=counts, unit=unit, width=width)

    def plot_scores(
        self,
        *,
        metric: str | None = None,
        band: bool = True,
        unit: Unit | str | None = None,
        width: float | None = None,
    ) -> ScoresDisplay:
        """Draw the scores of all models over time, one panel per weighting, all on one scale.

        Whether bands of two models overlap does not tell whether they differ: both are judged on the same individuals.
        That is what `plot` shows.

        Parameters
        ----------
        metric, band, unit, width
            As for `plot`.

        Returns
        -------
        ScoresDisplay
            With all axes in ``axes_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import ScoresDisplay

        metric, direction = self._metric_of_plot(metric)
        scores = self.scores
        display = ScoresDisplay(scores[scores["metric"] == metric], metric, direction, self.models, self.null)
        return display.plot(band=band, unit=unit, width=width)

    def _metric_of_plot(self, metric: str | None) -> tuple[str, Direction]:
        metric = self.metrics[0] if metric is None else metric
        check_choice("metric", metric, tuple(self.metrics))
        return metric, next(one.direction for one in self.scored if one.metric == metric)

    def null_index(self) -> int:
        """Return the place of the null model among the models; raise where there is none."""
        if self.null is None:
            raise InputError("skill scores need the null model, which was left out (null=False)")
        return self.models.index(self.null)

    def _parts(
        self, against: str | None, skip: str | None, of: Sequence[Scored] | None
    ) -> Iterator[tuple[Scored, int, Columns]]:
        for one in self.scored if of is None else of:
            for a, name in enumerate(self.models):
                if name not in (skip, against):
                    row: Columns = {"metric": one.metric, "weighting": one.weighting, "model": name}
                    yield one, a, row if against is None else {**row, "reference": against}

    def _table(
        self,
        columns: Callable[[Scored, int], Columns],
        *,
        against: str | None = None,
        skip: str | None = None,
        of: Sequence[Scored] | None = None,
    ) -> pd.DataFrame:
        """Return a long table, one part per metric, weighting and model; `columns` gives a part's at scored times."""
        parts = []
        for one, a, row in self._parts(against, skip, of):
            found = {name: padded(values, self.times.size) for name, values in columns(one, a).items()}
            parts.append({**row, "time": self.times, **found})
        if parts:
            return stacked(parts)
        one = self.scored[0]  # nothing to compare with: the columns alone
        reference = {} if against is None else {"reference": against}
        empty = {"metric": "", "weighting": "", "model": "", **reference, "time": 0.0}
        return stacked([{**empty, **{name: values[:1] for name, values in columns(one, 0).items()}}]).iloc[:0]

    def _printed(self) -> Tables:
        from survscore.results import comparison_tables

        return comparison_tables.of_comparison(self)

    def __repr__(self) -> str:
        lost = f", {self.n_dropped_out} of {self.n} dropped out" if self.n_dropped_out else ""
        directions = dict.fromkeys(f"{one.metric} ({one.direction} is better)" for one in self.scored)
        return (
            f"Comparison({', '.join(map(repr, self.models))}; reference {self.reference!r}, {', '.join(directions)}, "
            f"{'; '.join(self.weightings)}, {self.times.size} times from {self.times[0]:g} to {self.times[-1]:g}{lost})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class IntegratedComparison(PrintedAsTables):
    """Mean scores over a range of time, and their paired differences.

    Attributes
    ----------
    level : float
        Of the confidence intervals.
    scores, contrasts, skill : pandas.DataFrame
        As in `Comparison`, with the range (from, to) in place of time; `skill` is None without null model, `contrasts`
        with one model alone.
    """

    level: float
    scores: Any
    contrasts: Any
    skill: Any

    @property
    def range(self) -> tuple[float, float]:
        """From when to when, of the first metric."""
        return (float(self.scores["from"].iloc[0]), float(self.scores["to"].iloc[0]))

    def _printed(self) -> Tables:
        from survscore.results import comparison_tables

        return comparison_tables.of_means(self)

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False)
class _MeanMoments:
    """The moments of means over time, in the form of those at times."""

    one: Scored
    weights: NDArray[np.float64]

    def variance(self, a: int, b: int) -> NDArray[np.float64]:
        return np.array([_of(self.one).of_average(self.weights, a, b)])

    def added_share(self, a: int, b: int) -> NDArray[np.float64]:
        return np.array([_of(self.one).added_share_of_average(self.weights, a, b)])


@dataclass(frozen=True, eq=False)
class _MeanBounds:
    one: Scored
    weights: NDArray[np.float64]

    def at_times(self, a: int, b: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.one.bounds is None:
            raise TypeError("nobody is lost")
        lower, upper = self.one.bounds.of_average(self.weights, a, b)
        return np.array([lower]), np.array([upper])


def defined_models(one: Scored) -> NDArray[np.float64]:
    """Return the scores of the models that have any, or of all: one that has none can't have a mean anyway."""
    some = np.isfinite(one.scores).any(axis=1)
    return one.scores[some] if some.any() else one.scores


def mean_of(one: Scored, weights: NDArray[np.float64]) -> Any:
    """Return a mean over time as if it were a score at one time."""
    scored = weights[: one.scores.shape[1]]
    used = scored > 0
    return replace(
        one,
        scores=one.scores[:, used] @ scored[used][:, None],
        moments=_MeanMoments(one, scored),  # type: ignore[arg-type]
        support=one.support.mean(scored),
        bounds=None if one.bounds is None else _MeanBounds(one, scored),  # type: ignore[arg-type]
    )


def has_skill(one: Scored) -> bool:
    """Whether there are skill scores: the null model has a score, too, lower is better, and zero is no error at all."""
    return one.has_null and one.has_ratios and one.direction == "lower"


class _NoMoments:
    """The moments of what is not defined."""

    def variance(self, a: int, b: int) -> NDArray[np.float64]:
        return np.full(1, np.nan)

    def added_share(self, a: int, b: int) -> NDArray[np.float64]:
        return np.zeros(1)


def mean_where_defined(one: Scored, weights: NDArray[np.float64]) -> Any:
    """Return a mean over time as `mean_of` does, or, if a score is missing in the range, one that is NaN."""
    m = one.scores.shape[1]
    if not weights[m:].any() and np.isfinite(defined_models(one)[:, weights[:m] > 0]).all():
        return mean_of(one, weights)
    none, nobody = np.zeros(1), Units(np.zeros(1), np.full(1, np.nan), np.zeros(1))
    return replace(
        one,
        scores=np.full((len(one.scores), 1), np.nan),
        moments=_NoMoments(),  # type: ignore[arg-type]
        support=Support(none, none, none, none, nobody, one.support.grouped),
        bounds=None,
    )


def _of(one: Scored) -> Any:
    if one.moments is None:
        raise TypeError("a comparison always has moments")
    return one.moments


def padded(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return values at the scored times as values at all times."""
    missing = size - values.size
    if not missing:
        return values
    filler: NDArray[Any] = np.full(missing, np.nan)
    if values.dtype == object:  # verdicts
        filler = np.full(missing, "unknown", dtype=object)
    if values.dtype == np.bool_:
        filler = np.zeros(missing, dtype=np.bool_)
    return np.concatenate((values, filler))


def _se(one: Scored, a: int, b: int) -> NDArray[np.float64]:
    return np.where(np.isnan(one.scores[a] - one.scores[b]), np.nan, np.sqrt(_of(one).variance(a, b)))


def score_columns(one: Scored, a: int, level: float) -> Columns:
    """Return the scores of a model with their intervals."""
    se = _se(one, a, a)
    return {
        "score": one.scores[a],
        "se": se,
        **score_interval(one.scores[a], se, level, one.scale, one.support, _of(one).added_share(a, a))._asdict(),
    }


def contrast_columns(one: Scored, a: int, r: int, level: float) -> Columns:
    """Return the differences of a model to another with their intervals and p-values."""
    se = _se(one, a, r)
    critical = student_quantile(level, one.support.difference_degrees)
    found = difference_interval(
        one.scores[a], one.scores[r], se, critical, one.scale, one.support, _of(one).added_share(a, r)
    )
    return {
        "difference": one.scores[a] - one.scores[r],
        "se": se,
        "lower": found.lower,
        "upper": found.upper,
        "p_value": found.p_value,
        "verdict": verdicts(found.lower, found.upper, one.direction),
        "reliable": found.reliable,
    }


def bound_columns(one: Scored, a: int, b: int) -> Columns:
    """Return between which values a score or difference lies, whatever happened to the lost."""
    if one.bounds is None:
        return {}
    lower, upper = one.bounds.at_times(a, b)
    undefined = np.isnan(one.scores[a])
    return {"bound_lower": np.where(undefined, np.nan, lower), "bound_upper": np.where(undefined, np.nan, upper)}


def skill_columns(one: Scored, a: int, null: int, level: float) -> Columns:
    """Return 1 - score/null, with the variance of that ratio to first order; NaN where the null score is zero.

    The ratio is positive, so its interval is made on the logarithmic scale.
    """
    score, of_null_model = one.scores[a], one.scores[null]
    of_score, of_null, of_difference = (_of(one).variance(*pair) for pair in ((a, a), (null, null), (a, null)))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(of_null_model > 0, score / of_null_model, np.nan)
        covariance = (of_score + of_null - of_difference) / 2
        variance = (of_score - 2 * ratio * covariance + ratio**2 * of_null) / of_null_model**2
        se = np.sqrt(np.maximum(variance, 0.0))
    found = ratio_interval(ratio, se, level, one.support)
    return {"skill": 1.0 - ratio, "se": se, "lower": 1.0 - found.upper, "upper": 1.0 - found.lower,
            "reliable": found.reliable}  # fmt: skip


def skill_contrast_columns(one: Scored, a: int, r: int, null: int, level: float) -> Columns:
    """Return the differences of two models' skill scores, (reference - score) / null, to first order."""
    of_null_model = one.scores[null]
    moments = _of(one)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where(of_null_model > 0, of_null_model, np.nan)
        difference = (one.scores[r] - one.scores[a]) / scale
        # covariances with the null score: of each model from the variances of both and of their difference
        of_null = moments.variance(null, null)
        with_null = [(moments.variance(b, b) + of_null - moments.variance(b, null)) / 2 for b in (r, a)]
        variance = moments.variance(a, r) - 2 * difference * (with_null[0] - with_null[1]) + difference**2 * of_null
        se = np.sqrt(np.maximum(variance, 0.0)) / scale
        skills = 1.0 - one.scores[a] / scale, 1.0 - one.scores[r] / scale
    critical = student_quantile(level, one.support.difference_degrees)
    found = difference_interval(*skills, se, critical, "plain", one.support)
    return {
        "difference": difference, "se": se, "lower": found.lower, "upper": found.upper, "p_value": found.p_value,
        "verdict": verdicts(found.lower, found.upper, "higher"), "reliable": found.reliable,
    }  # fmt: skip
