"""One earlier day of a backtest: who had started, what was predicted for them, what scores said, and what was true."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import collected, n_rows_of, take_rows
from survscore._validation import InputError, check_length
from survscore.analysis.backtest_results import Day, pairs_of
from survscore.analysis.compare import Request
from survscore.analysis.cross_validation import out_of_fold
from survscore.curves import SurvivalCurves
from survscore.metrics import HistoryMetric, Metric
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison
from survscore.results.estimates import Estimates
from survscore.weighting import Administrative, Weighting

if TYPE_CHECKING:
    from survscore._utils.dates import Dates

Index = NDArray[np.intp]
#: Makes weights of the outcomes as of a day, for what is to be estimated from them.
WeightingOf = Callable[[Outcomes], Weighting]


@dataclass(frozen=True, eq=False)
class BacktestRequest:
    """At which horizons models are judged, under which weightings, by which metric, and who belongs together."""

    horizons: NDArray[np.float64]
    weightings: tuple[str | Weighting | WeightingOf, ...]
    metric: Metric
    level: float
    groups: NDArray[Any] | None = None

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
        if curves.extrapolation == "nan" and self.horizons[-1] > curves.times[-1]:
            raise InputError(
                f"horizons must be within the reach of all models: {name!r} ends at {curves.times[-1]:g}, and the last "
                f"horizon is {self.horizons[-1]:g}; extrapolation='hold' holds its last value"
            )
        if isinstance(self.metric, HistoryMetric):
            return curves
        return curves.only_at(self.horizons)

    def in_truth(self, cohort: Cohort, curves: Mapping[str, SurvivalCurves]) -> Comparison:
        """Return how good models were, by all that is known now, and how sure that is."""
        groups = None if self.groups is None else self.groups[cohort.there]
        request = Request(self.metric, [Administrative()], self.horizons, groups=groups, level=self.level)
        return request.run(cohort.now, curves)

    def scores(
        self, y: Outcomes, curves: Mapping[str, SurvivalCurves], weightings: Sequence[str | Weighting]
    ) -> Comparison:
        """Return the scores of all models under some weightings, without errors."""
        return Request(self.metric, list(weightings), self.horizons, errors=False).run(y, curves)


@dataclass(frozen=True, eq=False)
class Fitting:
    """How estimators are fitted on an earlier day."""

    X: Any
    cv: Any
    groups: NDArray[Any] | None
    n_jobs: int | None
    seed: int

    @classmethod
    def of(
        cls, models: Mapping[str, Any], X: Any, cv: Any, groups: NDArray[Any] | None, n_jobs: int | None, seed: int
    ) -> Fitting | None:
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
        return cls(collected(X), cv, groups, n_jobs, seed)

    def curves(self, models: Mapping[str, Any], there: NDArray[np.bool_], then: Outcomes) -> dict[str, SurvivalCurves]:
        """Return what estimators predict for those who had started, from what was known then of the others."""
        check_length("X", n_rows_of(self.X), "y", there.size)
        X, groups = take_rows(self.X, np.flatnonzero(there)), None if self.groups is None else self.groups[there]
        settings = {"cv": self.cv, "groups": groups, "n_jobs": self.n_jobs, "seed": self.seed}
        return out_of_fold(models, X, then, **settings, progress=False).curves()


@dataclass(frozen=True, eq=False)
class Cohort:
    """The individuals who had started on an earlier day, as they were known then and as they are now."""

    date: np.datetime64
    there: NDArray[np.bool_]
    then: Outcomes
    now: Outcomes

    @classmethod
    def of(cls, y: Outcomes, date: np.datetime64, horizons: NDArray[np.float64]) -> Cohort:
        """See who had started; refuse a day on which that is nobody, or nobody who can be judged later."""
        start = dates_of(y).start
        there = start <= date
        if not there.any():
            raise InputError(
                f"as_of: nobody had started on {shown_day(date)}; the first start is {shown_day(start.min())}"
            )
        now = y[there]
        cohort = cls(date, there, now.as_of(date), now)
        blind = cohort.judged(horizons) == 0
        if blind.any():
            raise InputError(
                f"horizons: nobody who had started on {shown_day(date)} is followed up to "
                f"{horizons[np.argmax(blind)]:g}, so the later data can't judge it; "
                "take an earlier horizon, or an earlier cut-off"
            )
        return cohort

    def judged(self, horizons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of them whose status at each horizon the later data can tell."""
        end = np.asarray(self.now.censoring_time)
        return np.array([np.mean(end >= horizon) for horizon in horizons])

    def places(self, rows: Index) -> Index:
        """Return where, among those who had started, some of all individuals are."""
        place = np.cumsum(self.there) - 1
        return np.asarray(place[rows[self.there[rows]]])


@dataclass(frozen=True, eq=False)
class Study:
    """What is predicted for those who had started on an earlier day, and how it is weighted."""

    cohort: Cohort
    curves: dict[str, SurvivalCurves]
    weightings: list[str | Weighting]

    @classmethod
    def of(cls, cohort: Cohort, models: Mapping[str, Any], request: BacktestRequest, fitting: Fitting | None) -> Study:
        """See what is predicted for those who had started."""
        there, then = cohort.there, cohort.then
        if fitting is None:
            curves = {name: request.needed(name, one)[there] for name, one in models.items()}
        else:
            curves = {name: request.needed(name, one) for name, one in fitting.curves(models, there, then).items()}
        return cls(cohort, curves, request.weightings_on(then, np.flatnonzero(there)))

    def day(self, request: BacktestRequest) -> Day:
        """Return the scores as of then, and the truth; without draws."""
        cohort = self.cohort
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # times without score are NaN, and told below
            said, true = (
                request.scores(cohort.then, self.curves, self.weightings),
                request.in_truth(cohort, self.curves),
            )
        (truth,) = true.scored
        seen = Estimates(truth, request.level)
        pairs = [
            np.isin(seen.difference(a, b)["verdict"], ("better", "worse"))
            for b, a in zip(*pairs_of(len(self.curves)), strict=True)
        ]
        scores = np.array([one.scores for one in said.scored])
        _check_defined(said, cohort.date, request.horizons, "as of then")
        _check_defined(true, cohort.date, request.horizons, "in truth")
        se = np.array([seen.se(a, a) for a in range(len(self.curves))])
        counts = (len(cohort.then), int(cohort.then.event.sum()), cohort.judged(request.horizons))
        sure = np.array(pairs).reshape(-1, request.horizons.size)
        weightings = tuple(one.weighting for one in said.scored)
        return Day(cohort.date, weightings, *counts, scores, truth.scores, se, sure, *self.drawn(request, []))

    def drawn(
        self, request: BacktestRequest, draws: Sequence[Index]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the scores as of then, and the truth, of resampled individuals; NaN where there is none.

        Of shape (draws, weightings, models, horizons) and (draws, models, horizons).
        """
        shape = (len(self.curves), request.horizons.size)
        scores = np.full((len(draws), len(self.weightings), *shape), np.nan)
        truths = np.full((len(draws), *shape), np.nan)
        for draw, everybody in enumerate(draws):
            rows = self.cohort.places(everybody)
            if rows.size == 0:
                continue
            curves = {name: one[rows] for name, one in self.curves.items()}
            weightings = [one.of_rows(rows) if isinstance(one, Weighting) else one for one in self.weightings]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = request.scores(self.cohort.then[rows], curves, weightings)
                (truth,) = request.scores(self.cohort.now[rows], curves, [Administrative()]).scored
            scores[draw], truths[draw] = [one.scores for one in said.scored], truth.scores
        return scores, truths


def _check_defined(found: Comparison, date: np.datetime64, horizons: NDArray[np.float64], when: str) -> None:
    for one in found.scored:
        missing = np.isnan(one.scores).any(axis=0)
        if missing.any():
            raise InputError(
                f"horizons: of those who had started on {shown_day(date)} there is no score {when} at "
                f"{horizons[np.argmax(missing)]:g} under {one.weighting}: {'; '.join(one.undefined)}; take an earlier "
                "horizon, or a later cut-off"
            )


def dates_of(y: Outcomes) -> Dates:
    """Return the dates of outcomes; raise if they have none."""
    if y.dates is None:
        raise InputError("y must know its dates: make it by Outcomes.from_dates")
    return y.dates


def shown_day(date: np.datetime64) -> str:
    """Return a day in words."""
    text = str(date.astype("datetime64[s]"))
    return text.removesuffix("T00:00:00")
