"""Which individuals a score at a time refers to: whose status is known, and how these change with time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.frames import columns_of
from survscore._validation import InputError, as_times, check_length, check_number
from survscore.curves import SurvivalCurves
from survscore.engine.evaluation import Evaluation, ScoreArrays
from survscore.engine.influence import Estimation
from survscore.engine.inputs import check_predictions, curves_read, of_cause, without_models
from survscore.engine.placing import check_on_processor, on_processor
from survscore.engine.times import default_times
from survscore.incidence import IncidenceCurves
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.results.printing import warn_about_interpolation
from survscore.weighting import Administrative, as_weighting
from survscore.weighting.base import check_censoring_time
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 20


def counted_population(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves | IncidenceCurves]
    | Iterable[tuple[str, SurvivalCurves | IncidenceCurves]]
    | None = None,
    *,
    X: Any = None,
    times: ArrayLike | None = None,
    horizon: float | None = None,
) -> pd.DataFrame:
    r"""Describe the individuals counted at each time: those with :math:`C^*_i \ge t`, and their covariates.

    An administrative score at t refers to these, the early starters. Where their covariates, or the risks that models
    predict for them at one and the same horizon, change with t, scores at different times are about different people,
    and their mean over time mixes them: ``Administrative(population="fixed")`` keeps to one population, and curves of
    :math:`P(C^*_i \ge t \mid X_i)` make scores refer to all. With sample weights :math:`a_i` the share is
    :math:`\sum_i a_i 1\{C^*_i \ge t\} / \sum_i a_i`, and means are weighted.

    Parameters
    ----------
    y : Outcomes
        With censoring times.
    models : mapping of str to SurvivalCurves, or pairs, optional
        For each, the mean risk predicted for those counted; under competing risks of the cause that was chosen by
        ``y.for_cause``.
    X : data frame or array of shape (n, p), optional
        For each number, its mean among those counted; for each category, its share.
    times : array_like, optional
        By default as for scores.
    horizon : float, optional
        By when the event is predicted; by default the last time that all models reach.

    Returns
    -------
    pandas.DataFrame
        time, n_counted, share; then one column per model, ``risk by <horizon>: <model>``, and per covariate.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 2], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 2])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.7], [0.9]], times=[2])
    >>> ss.counted_population(y, {"net": curves}, X={"age": [50, 60, 70, 20]}, times=[1, 3, 5])
       time  n_counted  share  risk by 2: net   age
    0   1.0          4   1.00           0.325  50.0
    1   3.0          3   0.75           0.400  60.0
    2   5.0          1   0.25           0.300  70.0
    """
    if horizon is not None:
        check_number("horizon", horizon, "a time, zero or later", lambda value: 0 <= value < np.inf)
    read_at = [moment for given in (times, horizon) if given is not None for moment in np.atleast_1d(given)]
    if models is None:
        y, named = without_models(y), dict[str, Any]()
    else:
        read_times = np.unique(read_at) if read_at else None
        y, named = of_cause(y, models, times=read_times, caller="counted_population")
    end = check_censoring_time(y, "counted_population", "without it each individual is counted")
    for name, curves in named.items():
        check_predictions(y, curves, f"the curves of {name!r}")
    check_on_processor("counted_population", y, named)
    wanted = default_times(y, named) if times is None else as_times(times)
    own = np.ones(len(y)) if y.weights is None else y.weights
    each = own if y.weight_kind == "frequency" else (own > 0) * 1.0  # how many individuals a row stands for
    eligible = end[:, None] >= wanted
    number, counted = (each @ eligible).astype(np.int64), eligible if y.weights is None else eligible * own[:, None]
    table: dict[str, NDArray[Any]] = {"time": wanted, "n_counted": number, "share": own @ eligible / own.sum()}
    if named:
        reach = min(float(curves.times[-1]) for curves in named.values())
        by = min(reach, float(wanted[-1])) if horizon is None else float(horizon)
        for name, curves in named.items():
            if not curves.reaches(np.array([by]))[0]:
                raise InputError(
                    f"horizon must be within the predictions of {name!r}, which end at {reach:g}, not {by:g}"
                )
            table[f"risk by {by:g}: {name}"] = _mean(1.0 - curves.at([by])[:, 0], counted)
    if X is not None:
        for column, values in _columns(X, len(y)).items():
            table[column] = _mean(values, counted)
    return stacked([table])


def _mean(values: NDArray[Any], counted: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean with the weights of those counted, (individuals, times); NaN at times when there are none."""
    known = np.isfinite(values)
    mass = known.astype(np.float64) @ counted
    total = np.where(known, values, 0.0) @ counted
    return np.asarray(np.divide(total, mass, out=np.full(mass.size, np.nan), where=mass > 0))


def _columns(X: Any, n: int) -> dict[str, NDArray[np.float64]]:
    """Return numbers as they are, and an indicator for each level of a category."""
    import pandas as pd

    columns: dict[str, NDArray[np.float64]] = {}
    for name, column in columns_of(X).items():
        check_length(f"X: column {name!r}", column.size, "y", n)
        if column.dtype.kind in "biuf":
            columns[name] = column.astype(np.float64)
            continue
        texts = [None if value is None else str(value) for value in column.tolist()]
        levels = pd.get_dummies(pd.Series(texts, dtype=object), prefix=name, prefix_sep=" = ", dtype=float)
        if levels.shape[1] > MOST_LEVELS:
            raise InputError(
                f"X: column {name!r} has {levels.shape[1]} different values, more than {MOST_LEVELS}; leave it out, or "
                "put values together"
            )
        columns |= {str(level): values.to_numpy() for level, values in levels.items()}
    return columns


@dataclass(frozen=True, eq=False)
class AtTime:
    """Predictions, weights and statuses of all individuals at one time, under one weighting."""

    evaluation: Evaluation
    scored: ScoreArrays  # the Brier scores, for the numbers of individuals behind them
    #: Where the weights come from, and what was estimated inside them: one for all models, or one for each and one for
    #: predictions that are the same for all individuals.
    estimations: list[Estimation]
    survival: list[NDArray[Any]]  # what each model predicts, (n,)
    weight: NDArray[np.float64]  # (estimations, n)
    label: NDArray[Any]
    event_free: list[NDArray[np.float64] | None]  # as `estimations`: the probabilities of projected statuses

    @classmethod
    def of(cls, y: Outcomes, models: Mapping[str, SurvivalCurves], time: float, what: str, **settings: Any) -> Self:
        """Weight individuals at a time; `what` is computed, and `settings` are those of `Evaluation.of`."""
        at, curves = as_times([time], "time"), dict[str, SurvivalCurves]()
        warn_about_interpolation(curves_read(models, at))
        for name, predicted in models.items():
            y, curves[name] = on_processor(y, predicted, at)
        evaluation = Evaluation.of(y, curves, times=at, errors=False, needs_numpy=what, **settings)
        if len(evaluation.weightings) > 1:
            raise InputError("weighting must be one, not several")
        (scored,) = evaluation.run()
        if scored.undefined:
            raise InputError(f"there is no {what} at {time:g}: {next(iter(scored.undefined))}")
        index = evaluation.index
        weighting = evaluation.weightings[0]
        several = weighting.prepare_models(index, evaluation.models.known_to(weighting, index), null=True)
        estimations = [Estimation(index, replace(weights, sample=index.sample)) for weights in several]
        survival = [predicted.at(index.times)[:, 0] for predicted in evaluation.models.matrices(what)]
        label, weight, event_free = zip(*(estimation.statuses(0) for estimation in estimations), strict=True)
        return cls(evaluation, scored, estimations, survival, np.array(weight), label[0], list(event_free))

    @property
    def time(self) -> float:
        """The time."""
        return float(self.evaluation.times[0])


class Horizon(NamedTuple):
    """Those whose status at a horizon is known from their censoring time, that status, and their weights."""

    rows: NDArray[np.intp]
    event: NDArray[np.bool_]
    weight: NDArray[np.float64]


def at_horizon(y: Outcomes, time: float, *, weighting: str | Administrative | None = None) -> Horizon:
    r"""Return the individuals with :math:`C^*_i \ge t` and known status at t, their status and weights.

    Whether the status is known does not depend on it, so with these weights they represent all individuals with such
    censoring times: any metric for binary outcomes, computed on them, is its administrative version.

    Parameters
    ----------
    y : Outcomes
        With censoring times.
    time : float
        The horizon t.
    weighting : "administrative" or Administrative, optional
        How to weight for drop-outs; by default by one Kaplan-Meier curve.

    Returns
    -------
    rows, event, weight : ndarray
        Positions of these individuals; whether :math:`T^*_i \le t`; and their weights, one without drop-outs, times
        their sample weights.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 2], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 2])
    >>> ss.at_horizon(y, 3)
    Horizon(rows=array([0, 1, 2]), event=array([ True, False, False]), weight=array([1., 1., 1.]))
    """
    y = without_models(y).numpy()
    end = check_censoring_time(y, "at_horizon", "IPCW scores need no censoring times")
    times = as_times([time], "time")
    chosen, kept = as_weighting(Administrative() if weighting is None else weighting, y), np.arange(len(y))
    if not isinstance(chosen, Administrative):
        raise InputError(f"weighting must be administrative, by which statuses are known at a horizon, not {chosen}")
    if y.weights is not None and not (y.weights > 0).all():  # who has no weight has no part
        kept = np.flatnonzero(y.weights)
        y, chosen = y[kept], chosen.of_rows(kept)
    index = TimeIndex(y, times)
    weight = sum(replace(chosen.prepare(index), sample=index.sample).cells(times), np.zeros(()))[:, 0]
    rows = np.flatnonzero(weight)
    if rows.size == 0 or not np.isfinite(weight).all():
        raise InputError(f"no individual's status is known at {time:g}: the largest censoring time is {end.max():g}")
    return Horizon(kept[rows], np.asarray(y.event_of_interest[rows] & (y.time[rows] <= times[0])), weight[rows])
