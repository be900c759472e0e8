"""Backtests: what each score would have said on an earlier day, judged by what happened since."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._config import config
from survscore._frames import collected, n_rows_of, take_rows
from survscore._progress import Progress, silent
from survscore._validation import InputError, as_times, check_length, check_level, check_whole, plural
from survscore._version import __version__
from survscore.backtest_results import Backtest, Day
from survscore.comparison import Comparison, compared, contrast_columns, score_columns
from survscore.cross_validation import out_of_fold
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import as_models, one_or_more
from survscore.engine.units import Groups
from survscore.metrics import HistoryMetric, Metric, as_metric, metric_label
from survscore.outcomes import Outcomes
from survscore.weighting import Administrative, Weighting

if TYPE_CHECKING:
    from survscore._dates import Dates

Index = NDArray[np.intp]
#: Makes weights of the outcomes as of a day, for what is to be estimated from them.
WeightingOf = Callable[[Outcomes], Weighting]


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
    n_jobs: int | None = None,
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
        Labels of individuals that belong together: these are resampled together.
    n_draws : int, default 200
        How often individuals are resampled for the intervals, which hold for all cut-offs together; 0 for none. Draws
        without a score at some horizon are left out, and counted in the settings.
    level : float, default 0.95
        Of intervals.
    n_jobs : int, optional
        How many fits at once; for estimators.
    seed : int, default 1
        Of the draws, and of folds and estimators.
    progress : callable, optional
        Is told (done, total, what).

    Returns
    -------
    Backtest

    Notes
    -----
    Intervals are quantiles of draws, and contain the chance of who was observed, not that of which days were chosen:
    `Backtest.summary` has the smallest and largest regret of single days. Days overlap in their individuals, and the
    same draws are used for all.

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
    _dates_of(y)
    check_level(level)
    check_whole("n_draws", n_draws, 0)
    chosen = as_metric(metric)
    if chosen.direction not in ("lower", "higher"):
        raise InputError(f"metric must be one to choose models by, of which lower or higher is better, not {metric!r}")
    asked = _Asked(as_times(horizons, "horizons"), tuple(one_or_more(weighting, Weighting, "weighting")), chosen, level)
    given = as_models(models)
    if len(given) < 2:
        raise InputError(f"models must be at least two, to choose among, not {len(given)}")
    fitted = _Fitting.of(given, X, cv, groups, n_jobs, seed)
    days = _cut_offs(as_of, y)
    studies = []
    for place, date in enumerate(days):
        if fitted is not None:
            progress(place, len(days), f"fitting as of {_day(date)}")
        studies.append(_Study.of(y, given, date, asked, fitted))
    _check_predicted_on(predicted_on, y, studies)
    members = _members(groups, len(y))
    total, rng = 1 + n_draws, np.random.default_rng(seed)
    progress(0, total, "scores")
    judged = [study.day(asked, n_draws) for study in studies]
    for draw in range(n_draws):
        progress(1 + draw, total, "resampling")
        rows = _resampled(members, len(y), rng)
        for study, day in zip(studies, judged, strict=True):
            day.drawn_scores[draw], day.drawn_truth[draw] = study.drawn(asked, rows)
    progress(total, total, "done")
    labels = judged[-1].weightings
    settings = {
        "survscore": __version__, "metric": chosen.name, "weightings": list(labels), "seed": seed, "n_draws": n_draws,
        "n_draws_without_score": _n_without_score(judged),
        "as_of": [str(study.date) for study in studies], "horizons": asked.horizons.tolist(),
        "grouped": groups is not None,
    }  # fmt: skip
    return Backtest(
        tuple(given), labels, chosen.name, metric_label(chosen.name), chosen.direction, asked.horizons, tuple(judged),
        level, settings,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Asked:
    horizons: NDArray[np.float64]
    weightings: tuple[str | Weighting | WeightingOf, ...]
    metric: Metric
    level: float

    def weightings_on(self, then: Outcomes, there: Index) -> list[str | Weighting]:
        """Return the weightings of those who had started; what a function makes is estimated from what was known."""
        found: list[str | Weighting] = []
        for one in self.weightings:
            if isinstance(one, Weighting):
                found.append(one.of_rows(there))
            elif callable(one):
                made = one(then)
                if not isinstance(made, Weighting):
                    raise InputError(f"weighting: a function must return a Weighting, not {type(made).__name__}")
                found.append(made)
            else:
                found.append(one)
        return found

    def needed(self, name: str, curves: Any) -> SurvivalCurves:
        """Return what is looked at: the horizons alone, unless the metric is one of whole curves."""
        if not isinstance(curves, SurvivalCurves):
            raise InputError(
                f"models must be SurvivalCurves or estimators, not {type(curves).__name__}, as {name!r} is"
            )
        if curves.beyond == "nan" and self.horizons[-1] > curves.times[-1]:
            raise InputError(
                f"horizons must be within the reach of all models: {name!r} ends at {curves.times[-1]:g}, and the last "
                f"horizon is {self.horizons[-1]:g}; beyond='hold' holds its last value"
            )
        if isinstance(self.metric, HistoryMetric):
            return curves
        return curves.only_at(self.horizons, compiled=config.compiles(len(curves) * self.horizons.size))

    def in_truth(self, y: Outcomes, curves: Mapping[str, SurvivalCurves], *, errors: bool = True) -> Comparison:
        """Return how good models were, by all that is known now."""
        return self.compared(y, curves, [Administrative()], errors=errors)

    def compared(
        self, y: Outcomes, curves: Mapping[str, SurvivalCurves], weightings: Sequence[Any], *, errors: bool
    ) -> Comparison:
        """Return the scores of all models under every weighting."""
        return compared(
            y, curves, metric=self.metric, weighting=list(weightings), times=self.horizons, null=False, errors=errors,
            level=self.level,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Fitting:
    """How estimators are fitted on an earlier day."""

    X: Any
    cv: Any
    groups: NDArray[Any] | None
    n_jobs: int | None
    seed: int

    @classmethod
    def of(
        cls, models: Mapping[str, Any], X: Any, cv: Any, groups: Any, n_jobs: int | None, seed: int
    ) -> _Fitting | None:
        """Return it; None where predictions are given."""
        estimators = [name for name, one in models.items() if hasattr(one, "fit")]
        if not estimators:
            if X is not None:
                raise InputError("X is for estimators, and models are predictions")
            return None
        if len(estimators) < len(models):
            raise InputError("models must all be estimators, or all SurvivalCurves")
        if X is None:
            raise InputError("X must be given: estimators are fitted on each earlier day")
        return cls(collected(X), cv, None if groups is None else np.asarray(groups), n_jobs, seed)

    def curves(self, models: Mapping[str, Any], there: NDArray[np.bool_], then: Outcomes) -> dict[str, SurvivalCurves]:
        """Return what estimators predict for those who had started, from what was known then of the others."""
        check_length("X", n_rows_of(self.X), "y", there.size)
        made = out_of_fold(
            models, take_rows(self.X, np.flatnonzero(there)), then, cv=self.cv,
            groups=None if self.groups is None else self.groups[there], n_jobs=self.n_jobs, seed=self.seed,
            progress=False,
        )  # fmt: skip
        return made.curves()


@dataclass(frozen=True, eq=False)
class _Study:
    """The individuals who had started on an earlier day, as they were known then and as they are now."""

    date: np.datetime64
    there: NDArray[np.bool_]
    then: Outcomes
    now: Outcomes
    curves: dict[str, SurvivalCurves]
    weightings: list[str | Weighting]

    @classmethod
    def of(
        cls, y: Outcomes, models: Mapping[str, Any], date: np.datetime64, asked: _Asked, fitting: _Fitting | None
    ) -> _Study:
        """See who had started, and what is predicted for them."""
        start = _dates_of(y).start
        there = start <= date
        if not there.any():
            raise InputError(f"as_of: nobody had started on {_day(date)}; the first start is {_day(start.min())}")
        now = y[there]
        then = now.as_of(date)
        if fitting is None:
            curves = {name: asked.needed(name, one)[there] for name, one in models.items()}
        else:
            curves = {name: asked.needed(name, one) for name, one in fitting.curves(models, there, then).items()}
        study = cls(date, there, then, now, curves, asked.weightings_on(then, np.flatnonzero(there)))
        blind = study.judged(asked.horizons) == 0
        if blind.any():
            raise InputError(
                f"horizons: nobody who had started on {_day(date)} is followed up to "
                f"{asked.horizons[np.argmax(blind)]:g}, so the later data can't judge it; "
                "take an earlier horizon, or an earlier cut-off"
            )
        return study

    def judged(self, horizons: NDArray[np.float64]) -> NDArray[np.float64]:
        end = np.asarray(self.now.censoring_time)
        return np.array([np.mean(end >= horizon) for horizon in horizons])

    def day(self, asked: _Asked, n_draws: int) -> Day:
        """Return the scores as of then, and the truth, with room for those of draws."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # times without score are NaN, and told below
            said = asked.compared(self.then, self.curves, self.weightings, errors=False)
            true = asked.in_truth(self.now, self.curves)
        (truth,) = true.scored
        pairs = [
            np.isin(contrast_columns(truth, a, b, asked.level)["verdict"], ("better", "worse"))
            for b, a in combinations(range(len(self.curves)), 2)
        ]
        scores = np.array([one.scores for one in said.scored])
        _check_defined(said, self.date, asked.horizons, "as of then")
        _check_defined(true, self.date, asked.horizons, "in truth")
        se = np.array([score_columns(truth, a, asked.level)["se"] for a in range(len(self.curves))])
        return Day(
            self.date, tuple(one.weighting for one in said.scored), len(self.then), int(self.then.event.sum()),
            self.judged(asked.horizons), scores, truth.scores, se, np.array(pairs).reshape(-1, asked.horizons.size),
            np.full((n_draws, *scores.shape), np.nan), np.full((n_draws, *truth.scores.shape), np.nan),
        )  # fmt: skip

    def drawn(self, asked: _Asked, rows: Index) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the scores as of then, and the truth, of resampled individuals; NaN where there is none."""
        place = np.cumsum(self.there) - 1
        rows = place[rows[self.there[rows]]]
        if rows.size == 0:
            return np.array(np.nan), np.array(np.nan)
        curves = {name: one[rows] for name, one in self.curves.items()}
        weightings = [one.of_rows(rows) if isinstance(one, Weighting) else one for one in self.weightings]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = asked.compared(self.then[rows], curves, weightings, errors=False)
            (truth,) = asked.in_truth(self.now[rows], curves, errors=False).scored
        return np.array([one.scores for one in said.scored]), truth.scores


def _check_defined(found: Comparison, date: np.datetime64, horizons: NDArray[np.float64], when: str) -> None:
    for one in found.scored:
        missing = np.isnan(one.scores).any(axis=0)
        if missing.any():
            raise InputError(
                f"horizons: of those who had started on {_day(date)} there is no score {when} at "
                f"{horizons[np.argmax(missing)]:g} under {one.weighting}: {'; '.join(one.undefined)}; take an earlier "
                "horizon, or a later cut-off"
            )


def _n_without_score(days: Sequence[Day]) -> int:
    """Return in how many draws some score is missing."""
    missing = [np.isnan(drawn).any(axis=tuple(range(1, drawn.ndim)))
               for day in days for drawn in (day.drawn_scores, day.drawn_truth)]  # fmt: skip
    return int(np.any(missing, axis=0).sum())


def _members(groups: ArrayLike | None, n: int) -> list[Index] | None:
    """Return the individuals of each group."""
    if groups is None:
        return None
    codes = Groups.of(groups, n).codes
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _resampled(members: list[Index] | None, n: int, rng: np.random.Generator) -> Index:
    """Return individuals drawn with replacement, or all of groups drawn so."""
    if members is None:
        return rng.integers(0, n, n)
    return np.concatenate([members[k] for k in rng.integers(0, len(members), len(members))])


def _cut_offs(as_of: Any, y: Outcomes) -> list[np.datetime64]:
    """Return the earlier cut-offs, in order."""
    single = isinstance(as_of, str) or np.ndim(as_of) == 0
    given = [as_of] if single else list(as_of)
    if not given:
        raise InputError("as_of is empty: name at least one earlier day")
    from survscore import _dates  # pandas is loaded only where dates need it

    dates = np.unique(_dates.instants(np.array(given, dtype=object), "as_of", len(given)))
    end = _dates_of(y).cutoff.max()
    late = dates >= end
    if late.any():
        raise InputError(
            f"as_of must be before the data end ({_day(end)}): {int(late.sum())} of {dates.size} are "
            f"not, the first {_day(dates[np.argmax(late)])}"
        )
    return list(dates)


def _check_predicted_on(predicted_on: Any, y: Outcomes, studies: Sequence[_Study]) -> None:
    if predicted_on is None:
        return
    from survscore import _dates

    made = _dates.instants(predicted_on, "predicted_on", len(y))
    for study in studies:
        late = study.there & (made > study.date)
        if late.any():
            first = int(np.argmax(late))
            raise InputError(
                f"predicted_on must not be after the cut-off {_day(study.date)}, since such predictions know what "
                f"happened: {int(late.sum())} of {plural(int(study.there.sum()), 'individual')} are, the first at "
                f"position {first} ({_day(made[first])})"
            )


def _dates_of(y: Outcomes) -> Dates:
    if y.dates is None:
        raise InputError("y must know its dates: make it by Outcomes.from_dates")
    return y.dates


def _day(date: np.datetime64) -> str:
    text = str(date.astype("datetime64[s]"))
    return text.removesuffix("T00:00:00")
