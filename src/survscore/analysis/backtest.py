"""Backtests: what each score would have said on an earlier day, judged by what happened since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.jobs import Progress, results_of, silent
from survscore._validation import InputError, as_times, check_length, check_level, check_whole, plural
from survscore._version import __version__
from survscore.analysis.backtest_days import (
    BacktestRequest,
    Cohort,
    Fitting,
    Index,
    Study,
    WeightingOf,
    dates_of,
    shown_day,
)
from survscore.analysis.backtest_results import Backtest, Day
from survscore.engine.inputs import as_models, one_or_more
from survscore.inference.units import Groups
from survscore.metrics import Metric, as_metric, metric_label
from survscore.outcomes import Outcomes
from survscore.weighting import Weighting

DRAWS_AT_ONCE = 10  # that a process makes


def backtest(
    y: Outcomes,
    models: Mapping[str, Any] | Iterable[tuple[str, Any]],
    *,
    as_of: Any,
    horizons: ArrayLike,
    X: Any = None,
    cv: Any = 5,
    weighting: str | Weighting | WeightingOf | Sequence[str | Weighting | WeightingOf] = ("administrative", "ipcw"),
    metric: str | Metric = "brier",
    predicted_on: Any = None,
    groups: ArrayLike | None = None,
    n_draws: int = 200,
    level: float = 0.95,
    ids: ArrayLike | None = None,
    n_jobs: int | None = None,
    state: Path | str | None = None,
    seed: int = 1,
    progress: Progress = silent,
) -> Backtest:
    r"""Pretend that the data had ended earlier, score models with what was known then, and let the rest be the judge.

    On each earlier day, those who had started are scored as of then under every weighting. In truth, a model is as good
    as its administrative score by the later follow-up of the same individuals says, who then are known at the
    horizon, or weighted for if lost. A score did well if it put models in the order of the truth, and if the model that
    it would have chosen was not much worse than the best:

    .. math:: \mathrm{regret} = \frac{S_{\mathrm{truth}}(\text{chosen}) - \min_k S_{\mathrm{truth}}(k)}
        {\min_k S_{\mathrm{truth}}(k)}

    Parameters
    ----------
    y : Outcomes
        As they are known now, made by `Outcomes.from_dates`.
    models : mapping of str to SurvivalCurves or estimators, or pairs
        What each model predicted for everybody, from what was known at their start. Or estimators, which are fitted to
        what was known on each earlier day, as by `cross_validate`: so that everybody who had started has a prediction
        by a fit that has not seen them.
    as_of : date, or several
        Earlier cut-offs.
    horizons : array_like
        The times at which predictions are judged, in the unit of the outcomes.
    X : array_like or data frame, optional
        Covariates, as known at everybody's start; for estimators.
    cv : int, splitter or iterable, default 5
        Folds; for estimators.
    weighting : str, Weighting, function, or several
        The scores that are tried. The first is what the others are compared with. A function is given the outcomes as
        of each day, with their dates, and returns the weighting: for one with a model that must know no more than that.
        In draws, such a model is taken as known.
    metric : str or Metric
        Of which lower or higher values are better.
    predicted_on : date, or array_like of dates, optional
        When predictions were made. Those made after an earlier cut-off know what happened, and are refused.
    groups : array_like, optional
        Labels of individuals that belong together: these are resampled together, and kept together in folds; whether
        an order in truth is sure allows for them.
    n_draws : int, default 200
        How often individuals are resampled for the intervals, which hold for all cut-offs together; 0 for none. Draws
        without a score at some horizon are left out, and counted in the settings.
    level : float, default 0.95
        Of intervals.
    ids : array_like, optional
        Names of the individuals. Somebody who is there twice is refused.
    n_jobs : int, optional
        How many fits and how many draws at once, as for scikit-learn. It changes no number.
    state : path, optional
        A folder in which each day is kept once it is finished: an interrupted run goes on from there. Days of other
        data, models, settings or versions are not taken for these; of functions and estimators only names and
        parameters are looked at, so take another folder if their code has changed.
    seed : int, default 1
        Of the draws, and of folds and estimators.
    progress : callable, optional
        Is told (done, total, what).

    Returns
    -------
    Backtest

    Notes
    -----
    Intervals are as wide as draws vary, about the estimates. They contain the chance of who was observed, not that of
    which days were chosen: `Backtest.summary` has the smallest and largest regret of single days. Days overlap in
    their individuals, and the same draws are used for all.

    Relative regrets are shares of the best's score, or of the largest where higher is better. Of metrics whose zero
    does not mean that nothing is wrong, such as AUC, look at ``regret`` in `Backtest.table`, which is a difference.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> day, risk = rng.integers(0, 1500, 2000), rng.normal(size=2000)
    >>> event = day + rng.exponential(900 * np.exp(-risk))
    >>> start, date = (np.datetime64("2010-01-01") + days.astype("m8[D]") for days in (day, event))
    >>> y = ss.Outcomes.from_dates(start, date, "2019-12-31")
    >>> honest = np.exp(-np.exp(risk)[:, None] * [1 / 3, 2 / 3, 1])
    >>> models = {
    ...     "honest": ss.SurvivalCurves(honest, [300, 600, 900]),
    ...     "coarse": ss.SurvivalCurves(np.full((2000, 3), honest.mean(axis=0)), [300, 600, 900]),
    ... }
    >>> found = ss.backtest(y, models, as_of=["2013-06-30", "2014-06-30"], horizons=[600, 900], n_draws=20)
    >>> found.summary[["ordered", "relative_regret", "chose_best", "of"]]
       ordered  relative_regret  chose_best  of
    0      1.0              0.0           4   4
    1      1.0              0.0           4   4
    """
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    dates_of(y)
    check_level(level)
    check_whole("n_draws", n_draws, 0)
    chosen = as_metric(metric)
    if chosen.direction not in ("lower", "higher"):
        raise InputError(f"metric must be one to choose models by, of which lower or higher is better, not {metric!r}")
    labels = None if groups is None else Groups.of(groups, len(y)).codes
    weightings = tuple(one_or_more(weighting, Weighting, "weighting"))
    request = BacktestRequest(as_times(horizons, "horizons"), weightings, chosen, level, labels)
    given = as_models(models)
    if len(given) < 2:
        raise InputError(f"models must be at least two, to choose among, not {len(given)}")
    fitting = Fitting.of(given, X, cv, labels, n_jobs, seed)
    if ids is not None:
        _check_ids(ids, len(y))
    cohorts = [Cohort.of(y, date, request.horizons) for date in _cut_offs(as_of, y)]
    _check_predicted_on(predicted_on, y, cohorts)
    checkpoints = None
    if state is not None:
        from survscore.io.checkpoints import Checkpoints, digest

        fitted = () if fitting is None else (fitting.X, cv)
        checkpoints = Checkpoints(state, digest(__version__, y, given, request, n_draws, seed, *fitted))
    draws = _Draws(len(y), None if labels is None else _members(labels), n_draws, seed)
    steps, days = 1 + n_draws, list[Day]()
    for place, cohort in enumerate(cohorts):

        def report(done: int, what: str, before: int = place * steps) -> None:
            progress(before + done, len(cohorts) * steps, what)

        day = None if checkpoints is None else checkpoints.read(cohort.date)
        if day is None:
            report(0, f"{'scores' if fitting is None else 'fitting'} as of {shown_day(cohort.date)}")
            study = Study.of(cohort, given, request, fitting)
            day = _with_draws(study, request, draws, n_jobs, report)
            if checkpoints is not None:
                checkpoints.write(day)
        days.append(day)
    progress(len(cohorts) * steps, len(cohorts) * steps, "done")
    missing = [
        np.isnan(drawn).any(axis=tuple(range(1, drawn.ndim)))
        for day in days
        for drawn in (day.drawn_scores, day.drawn_truth)
    ]
    settings = {
        "survscore": __version__,
        "metric": chosen.name,
        "weightings": list(days[-1].weightings),
        "seed": seed,
        "n_draws": n_draws,
        "n_draws_without_score": int(np.any(missing, axis=0).sum()),
        "as_of": [str(cohort.date) for cohort in cohorts],
        "horizons": request.horizons.tolist(),
        "grouped": groups is not None,
    }
    names = (tuple(given), days[-1].weightings, chosen.name, metric_label(chosen.name))
    return Backtest(*names, chosen.direction, request.horizons, tuple(days), level, settings)


@dataclass(frozen=True, eq=False)
class _Draws:
    """Individuals drawn with replacement, or all of groups drawn so; each draw from a seed of its own."""

    n: int
    members: list[Index] | None
    number: int
    seed: int

    def __getitem__(self, draw: int) -> Index:
        rng = np.random.default_rng([self.seed, draw])
        if self.members is None:
            return rng.integers(0, self.n, self.n)
        return np.concatenate([self.members[k] for k in rng.integers(0, len(self.members), len(self.members))])


def _with_draws(
    study: Study, request: BacktestRequest, draws: _Draws, n_jobs: int | None, report: Callable[[int, str], None]
) -> Day:
    """Return the scores and the truth of an earlier day, with those of resampled individuals."""
    day = study.day(request)
    starts = range(0, draws.number, DRAWS_AT_ONCE)
    parts = [range(start, min(start + DRAWS_AT_ONCE, draws.number)) for start in starts]
    if not parts:
        return day
    results = []
    with results_of([(_of_draws, study, request, draws, part) for part in parts], n_jobs) as finished:
        for part, result in zip(parts, finished, strict=True):
            results.append(result)
            report(1 + part.stop, f"resampling as of {shown_day(day.date)}")
    scores, truth = (np.concatenate(several) for several in zip(*results, strict=True))
    return replace(day, drawn_scores=scores, drawn_truth=truth)


def _of_draws(study: Study, request: BacktestRequest, draws: _Draws, part: range) -> tuple[Any, Any]:
    return study.drawn(request, [draws[draw] for draw in part])


def _members(codes: NDArray[Any]) -> list[Index]:
    """Return the individuals of each group."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _cut_offs(as_of: Any, y: Outcomes) -> list[np.datetime64]:
    """Return the earlier cut-offs, in order."""
    single = isinstance(as_of, str) or np.ndim(as_of) == 0
    given = [as_of] if single else list(as_of)
    if not given:
        raise InputError("as_of is empty: name at least one earlier day")
    from survscore._utils import dates as _dates  # pandas is loaded only where dates need it

    dates = np.unique(_dates.instants(np.array(given, dtype=object), "as_of", len(given)))
    end = dates_of(y).cutoff.max()
    late = dates >= end
    if late.any():
        raise InputError(
            f"as_of must be before the data end ({shown_day(end)}): {int(late.sum())} of {dates.size} are "
            f"not, the first {shown_day(dates[np.argmax(late)])}"
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


def _check_predicted_on(predicted_on: Any, y: Outcomes, cohorts: Sequence[Cohort]) -> None:
    if predicted_on is None:
        return
    from survscore._utils import dates as _dates

    made = _dates.instants(predicted_on, "predicted_on", len(y))
    for cohort in cohorts:
        late = cohort.there & (made > cohort.date)
        if late.any():
            first = int(np.argmax(late))
            raise InputError(
                f"predicted_on must not be after the cut-off {shown_day(cohort.date)}, since such predictions know "
                f"what happened: {int(late.sum())} of {plural(int(cohort.there.sum()), 'individual')} are, the first "
                f"at position {first} ({shown_day(made[first])})"
            )
