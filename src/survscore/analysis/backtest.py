"""Backtests: what each score would have been on an earlier day, judged by what happened since."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.frames import collected, n_rows_of, take_rows
from survscore._utils.jobs import Progress, results_of, silent
from survscore._validation import (
    MOST_DRAWS,
    InputError,
    UndefinedScoreWarning,
    as_times,
    check_length,
    check_level,
    check_whole,
    plural,
    several,
    warn,
)
from survscore._version import __version__
from survscore.analysis.backtest_results import Backtest, Day, pairs_of
from survscore.analysis.compare import Request
from survscore.analysis.cross_validation import OutOfFold, out_of_fold
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.inputs import (
    as_models,
    check_outcomes,
    curves_read,
    of_cause,
    one_or_more,
    reads_whole_curves,
    rows_of_individuals,
)
from survscore.inference.units import Groups
from survscore.metrics import FollowUpMetric, Metric, as_metric, cause_label, metric_label
from survscore.outcomes import SINCE_ENTRY, Outcomes
from survscore.results.comparison import Comparison
from survscore.results.estimates import Estimates
from survscore.results.printing import warn_about_interpolation
from survscore.results.recommendation import scored_by_both
from survscore.results.sensitivity import Sensitivity
from survscore.weighting import IPCW, Administrative, Projected, Weighting

#: Makes weights of the outcomes as of a day, for what is to be estimated from them.
WeightingOf = Callable[[Outcomes], Weighting]
Index = NDArray[np.intp]
Values = NDArray[np.float64]
DRAWS_AT_ONCE = 10  # that a process makes


@takes_cause
def backtest(
    y: Outcomes,
    models: Mapping[str, Any] | Iterable[tuple[str, Any]],
    *,
    as_of: Any,
    horizons: ArrayLike,
    X: Any = None,
    cv: Any = 5,
    weighting: str | Weighting | WeightingOf | Sequence[str | Weighting | WeightingOf] | None = None,
    metric: str | Metric = "brier",
    predicted_on: Any = None,
    groups: ArrayLike | None = None,
    n_draws: int = 200,
    n_splits: int = 0,
    level: float = 0.95,
    cause: Cause | None = None,
    ids: ArrayLike | None = None,
    n_jobs: int | None = None,
    state: Path | str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Backtest:
    r"""Score models as if follow-up had ended earlier, and judge the scores by what happened later.

    On each earlier day, the individuals who had started are scored as of then under every weighting. The truth is the
    administrative score by the later follow-up of the same individuals, whose status at the horizon is then known;
    weights account for those who were lost. A score did well if it ranked models in their true order, and if the model
    with the best score was not much worse than the truly best one:

    .. math:: \mathrm{regret} = \frac{S_{\mathrm{truth}}(\text{chosen}) - \min_k S_{\mathrm{truth}}(k)}
        {\min_k S_{\mathrm{truth}}(k)}

    Parameters
    ----------
    y : Outcomes
        As they are known now, made by `Outcomes.from_dates`. Sample weights are in all scores and in the truth; rows
        are resampled with their weights, which must be above zero, or repeated as often as frequencies say. With
        delayed entry (``entry_date=``) time counts from entry, as in all scores, and those who came under observation
        by the earlier day are scored.
    models : mapping of str to SurvivalCurves or estimators, or pairs
        Each model's predictions for all individuals, as known at the start. Or estimators, which are fitted on
        folds to what was known on each earlier day, so that predictions are by a fit that has not seen the individual;
        with delayed entry to times since entry.
    as_of : date, or several
        Earlier cut-offs.
    horizons : array_like
        The times at which predictions are judged, in the unit of the outcomes.
    X, cv, n_jobs
        For estimators, as for `cross_validate`: covariates as known at each one's start. `n_jobs` also for draws.
    weighting : str, Weighting, function, or several
        The scores that are tried; by default administrative, projected (where the metric has that form) and IPCW. The
        first is what the others are compared with; it must have a score at each horizon, while others are left out,
        with a warning, where they have none. A function is given the outcomes as of each day, with their dates unless
        entry is delayed, and returns the weighting: for one with a model that must know no more than that, and which is
        taken as known in draws.
    metric : str or Metric
        Of which lower or higher values are better.
    predicted_on : date, or array_like of dates, optional
        When predictions were made. Those made after an earlier cut-off know what happened, and are rejected.
    groups : array_like, optional
        Labels of individuals that belong together: they are resampled together, kept together in folds, and allowed for
        where the significance of an order in truth is judged.
    n_draws : int, default 200
        How often individuals are resampled for the intervals, which hold for all cut-offs together; 0 for none. Draws
        without a score at some horizon are left out, and counted in the settings.
    n_splits : int, default 0
        How often individuals are split into halves at random: one is scored as of then, the other is the truth, and
        then the other way round (`Backtest.halves`). Otherwise score and truth are of the same individuals, so that
        chance makes them agree more than they would on new individuals.
    level : float, default 0.95
        Of intervals.
    cause
        As for `brier_score`, but one at a time.
    ids : array_like, optional
        Names of the individuals. Repeated ones are rejected.
    state : path, optional
        A folder in which each day is kept once it is finished: an interrupted run goes on from there. Days of other
        data, models, settings or versions are not taken for these; of functions and estimators only names and
        parameters are looked at, so take another folder if their code has changed.
    seed : int, default 0
        Of the draws, and of folds and estimators.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Backtest

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    Intervals are as wide as draws vary, about the estimates. They contain the chance of who was observed, not that of
    which days were chosen: `Backtest.summary` has the smallest and largest regret of single days. Days overlap in
    their individuals, and the same draws are used for all. Relative regrets are shares of the best's score. Of metrics
    whose zero does not mean that nothing is wrong, such as AUC, look at ``regret`` in `Backtest.table`, a difference.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> day, risk = rng.integers(0, 1500, 2000), rng.normal(size=2000)
    >>> event = day + rng.exponential(900 * np.exp(-risk))
    >>> start, date = (np.datetime64("2010-01-01") + days.astype("m8[D]") for days in (day, event))
    >>> y = ss.Outcomes.from_dates(start, date, "2019-12-31")
    >>> strong = np.exp(-np.exp(risk)[:, None] * [1 / 3, 2 / 3, 1])
    >>> models = {
    ...     "strong": ss.SurvivalCurves(strong, [300, 600, 900]),
    ...     "coarse": ss.SurvivalCurves(np.full((2000, 3), strong.mean(axis=0)), [300, 600, 900]),
    ... }
    >>> found = ss.backtest(y, models, as_of=["2013-06-30", "2014-06-30"], horizons=[600, 900], n_draws=20)
    >>> found.summary[["ordered", "relative_regret", "chose_best", "of"]]
       ordered  relative_regret  chose_best  of
    0      1.0              0.0           4   4
    1      1.0              0.0           4   4
    2      1.0              0.0           4   4
    """
    _check_dated(y)
    check_level(level)
    check_whole("n_draws", n_draws, 0, MOST_DRAWS)
    check_whole("n_splits", n_splits, 0)
    chosen = as_metric(metric)
    if chosen.direction not in ("lower", "higher"):
        raise InputError(f"metric must be one to choose models by, of which lower or higher is better, not {metric!r}")
    codes = None if groups is None else Groups.of(groups, len(y)).codes
    times = as_times(horizons, "horizons")
    tried = weightings_tried(chosen) if weighting is None else one_or_more(weighting, Weighting, "weighting")
    request = Request(chosen, tried, times, groups=codes, level=level)
    named = as_models(models)
    if len(named) < 2:
        raise InputError(f"models must be at least two, to choose among, not {len(named)}")
    X = _covariates(named, X, len(y))
    if ids is not None:
        _check_ids(ids, len(y))
    if X is not None and y.entry is not None:  # predictions will be of that clock
        y = y.since_entry().on_clock(SINCE_ENTRY)
    y, named = of_cause(y, named, cause, times=times, whole=isinstance(chosen, FollowUpMetric), caller="backtest")
    if y.weight_kind == "frequency":  # it is individuals that are resampled
        rows = rows_of_individuals(y)
        y, named, request = _repeated(y, named, request, rows)
        X = None if X is None else take_rows(X, rows)
        predicted_on = predicted_on if np.ndim(predicted_on) == 0 else np.asarray(predicted_on)[rows]
    cohorts = [_Cohort.of(y, date, request) for date in _cut_offs(as_of, y)]
    _check_predicted_on(predicted_on, y, cohorts)
    fitted = () if X is None else (X, cv)
    checkpoints = _checkpoints(state, __version__, y, named, request, n_draws, n_splits, seed, *fitted)
    fit = partial(out_of_fold, cv=cv, n_jobs=n_jobs, seed=seed, progress=False)
    progress = progress or silent
    total, days = len(cohorts) * (1 + n_draws), list[Day]()
    for place, cohort in enumerate(cohorts):
        day = None if checkpoints is None else checkpoints.read(cohort.date)
        if day is None:
            done, when = place * (1 + n_draws), f"as of {_shown(cohort.date)}"
            progress(done, total, f"{'scores' if X is None else 'fitting'} {when}")
            study = cohort.with_predictions(named, X, fit)
            day = study.day(n_splits, seed)
            day = study.resampled(day, n_draws, seed, n_jobs, partial(_resampling, progress, done + 1, total, when))
            if checkpoints is not None:
                checkpoints.write(day)
        days.append(day)
    progress(total, total, "done")
    without_score = [
        (np.isnan(drawn) & ~np.isnan(known)).any(axis=tuple(range(1, drawn.ndim)))
        for day in days
        for drawn, known in ((day.drawn_scores, day.scores), (day.drawn_truth, day.truth))
    ]
    for message in (message for day in days for message in day.undefined):
        warn(message, UndefinedScoreWarning)
    settings = {
        "survscore": __version__,
        "metric": chosen.name,
        "weightings": list(days[-1].weightings),
        "seed": seed,
        "n_draws": n_draws,
        "n_splits": n_splits,
        "n_draws_without_score": int(np.any(without_score, axis=0).sum()),
        "as_of": [str(cohort.date) for cohort in cohorts],
        "horizons": times.tolist(),
        "grouped": groups is not None,
        **({"clock": y.clock} if y.clock else {}),
        "curves": curves_read(
            {name: curves for name, curves in named.items() if isinstance(curves, SurvivalCurves)}, times
        ),
    }
    names = (tuple(named), days[-1].weightings, chosen.name, cause_label(metric_label(chosen.name), y.chosen_cause))
    return Backtest(*names, chosen.direction, times, tuple(days), level, settings)


def _repeated(
    y: Outcomes, models: Mapping[str, Any], request: Request, rows: Index
) -> tuple[Outcomes, dict[str, Any], Request]:
    """Return what there is of each row for each of its individuals."""
    repeated = dict(models)
    for name, curves in models.items():
        if isinstance(curves, SurvivalCurves):
            check_length(f"the curves of {name!r}", len(curves), "y", len(y))
            repeated[name] = curves[rows]
    weightings = [given.of_rows(rows) if isinstance(given, Weighting) else given for given in request.weighting]
    codes = None if request.groups is None else Groups.of(request.groups[rows], rows.size).codes
    return y.weighted(None)[rows], repeated, replace(request, weighting=weightings, groups=codes)


def _check_dated(y: Any) -> None:
    """Raise unless these are outcomes with dates, and all have weight."""
    check_outcomes(y, entry=True)
    if y.weights is not None and y.weight_kind != "frequency" and not bool((y.weights > 0).all()):
        raise InputError("weights must be above zero for backtest: leave out the others, who have no part in scores")
    if y.dates is None:
        raise InputError("y must know its dates: make it by Outcomes.from_dates")


def weightings_tried(metric: Metric) -> tuple[str, ...]:
    """Return the weightings that are tried by default; metrics of the whole follow-up have no projected form."""
    names = (Administrative.name, Projected.name, IPCW.name)
    return tuple(name for name in names if name != Projected.name or not isinstance(metric, FollowUpMetric))


@dataclass(frozen=True, eq=False)
class _Cohort:
    """The individuals who had started on an earlier day, as known then and now; later also what is predicted for them.

    `there` says of all individuals whether they had started.
    """

    date: np.datetime64
    there: NDArray[np.bool_]
    then: Outcomes
    now: Outcomes
    request: Request  # with all individuals' groups, and the weightings as they were given
    curves: dict[str, SurvivalCurves] = field(default_factory=dict)
    weightings: list[str | Weighting] = field(default_factory=list)

    @classmethod
    def of(cls, y: Outcomes, date: np.datetime64, request: Request) -> _Cohort:
        """Select the individuals who had started; reject a day with none, or with none followed up to a horizon.

        With delayed entry, they had come under observation by then: who did so later is not in the data of that day.
        """
        known: Any = y.dates
        entered = known.start if known.entry_date is None else known.entry_date
        there = (known.start <= date) & ((entered < date) | (entered == known.start))
        if not there.any():
            what = "start" if known.entry_date is None else "entry"
            raise InputError(f"as_of: {_shown(date)} is before the first {what}, {_shown(entered.min())}")
        now = y[there]
        cohort = cls(date, there, now.as_of(date), now, request)
        blind = cohort.judged == 0
        if blind.any():
            raise InputError(
                f"horizons: no individual who had started on {_shown(date)} is followed up to "
                f"{cohort.horizons[np.argmax(blind)]:g}, so the later data can't judge it; "
                "take an earlier horizon, or an earlier cut-off"
            )
        return cohort

    @property
    def horizons(self) -> Values:
        """At which times scores are looked at."""
        return np.asarray(self.request.times)

    @property
    def judged(self) -> Values:
        """The share of them whose status at each horizon is known from the later data, by their sample weights."""
        known = np.asarray(self.now.censoring_time)[:, None] >= self.horizons
        return np.asarray(np.average(known, axis=0, weights=self.now.weights))

    @property
    def groups(self) -> NDArray[Any] | None:
        """The group of each of them."""
        return None if self.request.groups is None else self.request.groups[self.there]

    def with_predictions(self, models: Mapping[str, Any], X: Any, out_of_fold: Callable[..., OutOfFold]) -> _Cohort:
        """Add what is predicted, if by estimators from what was known then of the others; and the weightings."""
        there = np.flatnonzero(self.there)
        if X is None:
            needed = {name: self._needed(name, curves)[there] for name, curves in models.items()}
        else:
            made = out_of_fold(models, take_rows(X, there), self.then, groups=self.groups)
            needed = {name: self._needed(name, curves) for name, curves in made.curves().items()}
        weightings = list[str | Weighting]()
        for given in self.request.weighting:
            weighting = given(self.then) if callable(given) else given
            if callable(given) and not isinstance(weighting, Weighting):
                raise InputError(f"weighting: a function must return a Weighting, not {type(weighting).__name__}")
            weightings.append(given.of_rows(there) if isinstance(given, Weighting) else weighting)
        return replace(self, curves=needed, weightings=weightings)

    def _needed(self, name: str, curves: Any) -> SurvivalCurves:
        """Return what is looked at: the horizons alone, unless the metric is one of whole curves."""
        last = self.horizons[-1]
        if not isinstance(curves, SurvivalCurves):
            raise InputError(
                f"models must be SurvivalCurves or estimators, not {type(curves).__name__}, as {name!r} is"
            )
        if curves.extrapolation == "nan" and last > curves.times[-1]:
            raise InputError(
                f"horizons must be within the reach of all models: {name!r} ends at {curves.times[-1]:g}, and the last "
                f"horizon is {last:g}; extrapolation='hold' holds its last value"
            )
        metric = self.request.metric
        warn_about_interpolation(curves_read({name: curves}, self.horizons, whole=reads_whole_curves([metric])))
        return curves if isinstance(metric, FollowUpMetric) else curves.only_at(self.horizons)

    def day(self, n_splits: int, seed: int) -> Day:
        """Return the scores as of then, and the truth with its standard errors; without draws."""
        estimated, true = self._scores(self.then, self.weightings), self._scores(self.now, [Administrative()])
        # without the first, what the others are compared with, or the truth, there is nothing to judge
        for message in (*self._without_score(true.scored, "in truth"), *self._without_score(estimated.scored[:1])):
            raise InputError(f"horizons: {message}; take an earlier horizon, a later cut-off, or other weightings")
        whole, estimates = self._evidence(estimated, true), Estimates(true.scored[0], self.request.level)
        return Day(
            date=self.date,
            weightings=tuple(scored.weighting for scored in estimated.scored),
            n=len(self.then),
            n_events=int(self.then.event.sum()),
            judged=self.judged,
            truth_se=np.array([estimates.se(a, a) for a in range(len(self.curves))]),
            drawn_scores=np.zeros((0, *whole["scores"].shape)),
            drawn_truth=np.zeros((0, *whole["truth"].shape)),
            undefined=tuple(self._without_score(estimated.scored)),
            **whole,
            **self._halves(n_splits, seed, whole),
        )

    def _evidence(self, estimated: Comparison, true: Comparison) -> dict[str, NDArray[Any]]:
        """Return the fields of `Day` that scores as of then and the truth give, of all individuals or by halves."""
        return {
            "scores": np.array([scored.scores for scored in estimated.scored]),
            "truth": true.scored[0].scores,
            "sure": self._significant(true)[0],
            "claimed": self._significant(estimated),
            "recommended": self._recommended(estimated),
        }

    def _halves(self, n_splits: int, seed: int, whole: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the evidence from the scores of one half and the truth of the other, (halves, ...) as for the `whole`.

        Each split makes two halves, the same individuals on every day. There is none if a half is empty.
        """
        groups = self.request.groups
        codes = np.arange(self.there.size) if groups is None else groups
        evidence: list[dict[str, NDArray[Any]]] = []
        nothing: dict[str, Any] = {"f": np.nan, "b": False, "i": 0}
        for k in range(2 * n_splits):
            split, side = divmod(k, 2)
            order = np.random.default_rng([seed, split, 2]).permutation(int(codes.max()) + 1)
            first = (order[codes[self.there]] < order.size / 2) == bool(side)
            half, other = np.flatnonzero(first), np.flatnonzero(~first)
            if half.size and other.size:
                estimated = self._scores(self.then, self.weightings, half)
                evidence.append(self._evidence(estimated, self._scores(self.now, [Administrative()], other)))
            else:
                evidence.append({name: np.full_like(like, nothing[like.dtype.kind]) for name, like in whole.items()})
        return {
            f"half_{name}": np.array([half[name] for half in evidence], like.dtype).reshape(-1, *like.shape)
            for name, like in whole.items()
        }

    def _significant(self, comparison: Comparison) -> NDArray[np.bool_]:
        """Return which differences of models are significant, (weightings, pairs, horizons)."""
        pairs = list(zip(*pairs_of(len(self.curves)), strict=True))
        every = [Estimates(scored, self.request.level) for scored in comparison.scored]
        return np.array(
            [
                [np.isin(estimates.difference(a, b)["verdict"], ("better", "worse")) for b, a in pairs]
                for estimates in every
            ]
        )

    def _recommended(self, comparison: Comparison) -> NDArray[np.int8]:
        """Return which model of each pair is recommended, (pairs, horizons): -1 the first, 1 the second, 0 neither."""
        first, _ = pairs_of(len(self.curves))
        recommended = np.zeros((first.size, self.horizons.size), dtype=np.int8)
        if not comparison.has_recommendation:
            return recommended
        weighting = scored_by_both(comparison)[0].weighting
        for b, reference in enumerate(comparison.models[:-1]):
            points = Sensitivity(comparison.against(reference), {}).points(comparison.models[b + 1 :])
            of_pairs = [point for point in points if point.weighting == weighting]
            decided = [np.sign(point.difference) if point.decided else 0 for point in of_pairs]
            recommended[first == b] = -np.reshape(decided, (-1, self.horizons.size))
        return recommended

    def _scores(
        self, y: Outcomes, weightings: Sequence[str | Weighting], rows: Index | None = None, *, errors: bool = True
    ) -> Comparison:
        """Score all who are there, or some of them; times without score are NaN."""
        curves, groups = self.curves, self.groups
        if rows is not None:
            y, curves = y[rows], {name: of_model[rows] for name, of_model in curves.items()}
            groups = None if groups is None else groups[rows]
            weightings = [
                weighting.of_rows(rows) if isinstance(weighting, Weighting) else weighting for weighting in weightings
            ]
        request = replace(
            self.request, weighting=weightings, groups=groups if errors else None, errors=errors, by_theta=errors
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return request.run(y, curves)

    def _without_score(self, scored: Sequence[ScoreArrays], when: str = "as of then") -> Iterator[str]:
        """Yield under which weightings there is no score, at which horizons, and why."""
        for arrays in scored:
            missing = np.isnan(arrays.scores).any(axis=0)
            if missing.any():
                yield (
                    f"of those who had started on {_shown(self.date)} there is no score {when} at "
                    f"{several([f'{time:g}' for time in self.horizons[missing]])} under {arrays.weighting}: "
                    f"{'; '.join(arrays.undefined)}"
                )

    def resampled(self, day: Day, n_draws: int, seed: int, n_jobs: int | None, progress: Callable[[int], None]) -> Day:
        """Return a day with its draws; `progress` is called with how many there are."""
        parts = [range(start, min(start + DRAWS_AT_ONCE, n_draws)) for start in range(0, n_draws, DRAWS_AT_ONCE)]
        drawn = [(day.drawn_scores, day.drawn_truth)]
        with results_of([(self.drawn, part, seed) for part in parts], n_jobs) as finished:
            for part, result in zip(parts, finished, strict=True):
                drawn.append(result)
                progress(part.stop)
        scores, truth = (np.concatenate(arrays) for arrays in zip(*drawn, strict=True))
        return replace(day, drawn_scores=scores, drawn_truth=truth)

    def drawn(self, draws: range, seed: int) -> tuple[Values, Values]:
        """Return the scores as of then, and the truth, of resampled individuals, or groups; NaN where there is none.

        Of shape (draws, weightings, models, horizons) and (draws, models, horizons). Each draw has a seed of its own,
        and is the same individuals on every day.
        """
        n, groups, shape = self.there.size, self.request.groups, (len(self.curves), self.horizons.size)
        scores = np.full((len(draws), len(self.weightings), *shape), np.nan)
        truths = np.full((len(draws), *shape), np.nan)
        place = np.cumsum(self.there) - 1  # among those who had started
        members = list[Index]()
        if groups is not None:
            order = np.argsort(groups, kind="stable")
            members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
        for k, draw in enumerate(draws):
            size = len(members) or n
            drawn: Index = np.random.default_rng([seed, draw]).integers(0, size, size)
            if members:
                drawn = np.concatenate([members[g] for g in drawn])
            rows = place[drawn[self.there[drawn]]]
            if rows.size == 0:
                continue
            estimated = self._scores(self.then, self.weightings, rows, errors=False)
            (truth,) = self._scores(self.now, [Administrative()], rows, errors=False).scored
            scores[k], truths[k] = [scored.scores for scored in estimated.scored], truth.scores
        return scores, truths


def _checkpoints(state: Path | str | None, *determined_by: Any) -> Any:
    """Return where finished days are kept, if they are."""
    if state is None:
        return None
    from survscore.io.checkpoints import Checkpoints, digest

    return Checkpoints(state, digest(*determined_by))


def _resampling(progress: Progress, first: int, total: int, when: str, n_drawn: int) -> None:
    progress(first + n_drawn, total, f"resampling {when}")


def _covariates(models: Mapping[str, Any], X: Any, n: int) -> Any:
    """Return the covariates that estimators are fitted to; None where predictions are given."""
    estimators = [name for name, model in models.items() if hasattr(model, "fit")]
    if not estimators and X is not None:
        raise InputError("X is for estimators, and models are predictions")
    if 0 < len(estimators) < len(models):
        raise InputError("models must all be estimators, or all SurvivalCurves")
    if estimators and X is None:
        raise InputError("X must be given: estimators are fitted on each earlier day")
    if X is None:
        return None
    X = collected(X)
    check_length("X", n_rows_of(X), "y", n)
    return X


def _cut_offs(as_of: Any, y: Outcomes) -> list[np.datetime64]:
    """Return the earlier cut-offs, in order."""
    single = isinstance(as_of, str) or np.ndim(as_of) == 0
    given = [as_of] if single else list(as_of)
    if not given:
        raise InputError("as_of is empty: name at least one earlier day")
    from survscore._utils import dates as _dates  # pandas is loaded only where dates need it

    dates = np.unique(_dates.instants(np.array(given, dtype=object), "as_of", len(given)))
    end = y.dates.cutoff.max()  # type: ignore[union-attr]
    late = dates >= end
    if late.any():
        raise InputError(
            f"as_of must be before follow-up ends ({_shown(end)}): {int(late.sum())} of {dates.size} are "
            f"not, the first {_shown(dates[np.argmax(late)])}"
        )
    return list(dates)


def _check_ids(ids: ArrayLike, n: int) -> None:
    names = np.asarray(ids)
    check_length("ids", names.size, "y", n)
    _, first, counts = np.unique(names.astype(str), return_index=True, return_counts=True)
    again = first[counts > 1]
    if again.size:
        raise InputError(
            f"ids must be different: {again.size} of {plural(first.size, 'individual')} come more than once, the first "
            f"{names[again.min()]!r}, and would be judged by themselves; several spells of one individual belong "
            "together: give groups"
        )


def _check_predicted_on(predicted_on: Any, y: Outcomes, cohorts: Sequence[_Cohort]) -> None:
    if predicted_on is None:
        return
    from survscore._utils import dates as _dates

    made = _dates.instants(predicted_on, "predicted_on", len(y))
    for cohort in cohorts:
        late = cohort.there & (made > cohort.date)
        if late.any():
            first = int(np.argmax(late))
            raise InputError(
                f"predicted_on must not be after the cut-off {_shown(cohort.date)}, since such predictions know "
                f"what happened: {int(late.sum())} of {plural(int(cohort.there.sum()), 'individual')} are, the first "
                f"at position {first} ({_shown(made[first])})"
            )


def _shown(date: np.datetime64) -> str:
    """Return a day in words."""
    return str(date.astype("datetime64[s]")).removesuffix("T00:00:00")
