"""One classifier per horizon: what most practitioners do, and the paper's warning."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from survscore._utils.frames import collected, n_rows_of, take_rows
from survscore._validation import InputError, as_times, check_choice, check_rule
from survscore.adapters.survival_model import Curves, SurvivalModel, as_training_data, check_within
from survscore.analysis.populations import at_horizon
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.models.grid import KEEPS, Keep, Status
from survscore.outcomes import Outcomes


class _Known(NamedTuple):
    """Those whose status at a horizon is known, that status, and their weights; None where all have weight one."""

    rows: NDArray[np.intp]
    #: Whether they are event-free; under competing risks the number of the cause, 0 if event-free.
    status: Status
    weight: NDArray[np.float64] | None


@dataclass(eq=False, repr=False)
class HorizonClassifiers(SurvivalModel):
    r"""A scikit-learn classifier for each time, fitted to those whose status there is known.

    At each time t a clone of `estimator` learns whether an individual is event-free at t. With ``keep="known"`` those
    censored at or before t are dropped, and all others kept (eq:bce_loss_t). Events are then seen whenever they came
    before the censoring, survivors only if their censoring comes after t: survival is estimated too low, and where the
    covariates encode the censoring time :math:`C^*`, predictions approach :math:`S_i(t) 1\{C^*_i > t\}`
    (eq:bce_optimal_pi), which IPCW scores reward. With ``keep="administrative"`` only those with
    :math:`C^*_i \ge t` are kept, events among them or not, as in the administrative score. That drops more, and is
    not biased if :math:`C^*` is independent of the event time given the covariates. Those who dropped out are left out,
    and weights of the others account for them (see `Administrative`).

    Under competing risks the classifier learns several classes, event-free and each cause, from the same individuals:
    an event of any cause settles the status. Those dropped under ``keep="known"`` are again event-free only, so that
    the incidence of every cause is estimated too high, and where the covariates encode :math:`C^*`, after it
    approaches the cause's share of the events. ``keep="administrative"`` is the option that does not learn this.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With ``predict_proba``, also a ``Pipeline`` that ends in one, or those of xgboost and lightgbm. It is cloned.
    times : array_like
        The horizons.
    keep : {"known", "administrative"}, default "known"
        Who is kept at each horizon.
    n_jobs : int, optional
        How many classifiers to fit at once, as for scikit-learn.

    Attributes
    ----------
    times_ : ndarray
        The horizons.
    estimators_ : list
        The fitted classifiers; None at a horizon where all labels were equal. Under competing risks their classes are
        0, 1, ... for those statuses that occur at the horizon, event-free first.
    causes_ : tuple of str
        The causes that predictions are of; empty where they are survival.

    Notes
    -----
    Classifiers of neighbouring times know nothing of each other, so survival may rise, and the incidence of a cause
    fall. They are kept as they are. Incidences at a horizon add up to at most 1, as a classifier's probabilities do.
    There is no `save`: the classifiers are any scikit-learn objects, and those are stored by running code (pickle).

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(500, 1))
    >>> time = rng.exponential(np.exp(X[:, 0]))
    >>> y = ss.Outcomes(np.minimum(time, 2.0), time <= 2.0, np.full(500, 2.0))
    >>> model = ss.models.HorizonClassifiers(LogisticRegression(), times=[0.5, 1, 1.5]).fit(X, y)
    >>> model.predict_curves([[-1.0], [1.0]]).probabilities.round(1)
    array([[0.3, 0.1, 0. ],
           [0.8, 0.7, 0.6]])
    """

    estimator: Any
    times: ArrayLike
    _: KW_ONLY
    keep: Keep = "known"
    n_jobs: int | None = None

    times_: NDArray[np.float64] = field(init=False)
    estimators_: list[Any] = field(init=False)
    causes_: tuple[str, ...] = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit one classifier per time.

        Parameters
        ----------
        X : array_like or data frame
            Covariates, whatever the classifier takes.
        y : Outcomes
            What was observed.

        Returns
        -------
        HorizonClassifiers
        """
        from joblib import Parallel, delayed

        check_choice("keep", self.keep, KEEPS)
        if not hasattr(self.estimator, "predict_proba"):
            raise InputError(f"estimator must have predict_proba, which {type(self.estimator).__name__} has not")
        X = collected(X)
        outcomes = as_training_data(y, n_rows_of(X), causes=True)
        times = as_times(self.times)
        last = outcomes.time.max()
        if not outcomes.event.all():  # otherwise the status of all is always known
            check_rule("times", f"before the follow-up ends, at {last:g}", times >= last, times)
        jobs = [delayed(_fit_one)(self.estimator, X, self._known(outcomes, t)) for t in times]
        fitted = Parallel(n_jobs=self.n_jobs)(jobs)
        self.estimators_, self._statuses = ([one[k] for one in fitted] for k in range(2))
        self.times_, self.causes_ = times, outcomes.causes
        return self

    def _known(self, y: Outcomes, t: float) -> _Known:
        """Return whom to learn from at t."""
        if self.keep == "administrative":
            one = y.for_cause((*y.causes, "1")[0])  # those known, and their weights, are the same for all causes
            horizon = at_horizon(one, t)
            weighted = bool((horizon.weight != 1.0).any())
            if weighted and not has_fit_parameter(_last_step(self.estimator)[0], "sample_weight"):
                raise InputError(
                    f"estimator must take sample_weight, to weight for the {y.n_dropped_out} of {len(y)} who dropped "
                    f"out; {type(self.estimator).__name__} does not"
                )
            return _Known(horizon.rows, _status(y, t)[horizon.rows], horizon.weight if weighted else None)
        rows = np.flatnonzero((y.time > t) | y.event)
        if rows.size == 0:
            raise InputError(f"times: no individual's status is known at {t:g}")
        return _Known(rows, _status(y, t)[rows], None)

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> Curves:
        """Return each classifier's probability of being event-free; under competing risks of each cause.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        times : array_like, optional
            Where to read the curves, linear between the horizons and from S(0) = 1; by default at the horizons.

        Returns
        -------
        SurvivalCurves or IncidenceCurves
        """
        check_is_fitted(self)
        X = collected(X)
        curves = self._curves(X)
        if times is None:
            return curves
        grid = as_times(times)
        check_within(grid, self.times_)
        if isinstance(curves, IncidenceCurves):
            return IncidenceCurves(curves.at(grid), grid, causes=self.causes_, monotone="keep")
        return SurvivalCurves(curves.at(grid), grid, monotone="keep")

    def _curves(self, X: Any) -> Curves:
        """Return what is predicted at the horizons."""
        # of each status: having had the event and event-free, or event-free and each cause
        values = np.zeros((n_rows_of(X), 1 + max(len(self.causes_), 1), self.times_.size))
        for j, (classifier, statuses) in enumerate(zip(self.estimators_, self._statuses, strict=True)):
            values[:, statuses, j] = 1.0 if classifier is None else classifier.predict_proba(X)
        if not self.causes_:
            return SurvivalCurves(values[:, 1], self.times_, monotone="keep")
        return IncidenceCurves(values[:, 1:], self.times_, causes=self.causes_, monotone="keep")


def _last_step(estimator: Any) -> tuple[Any, str]:
    """Return what takes the weights, and the prefix by which it gets them: a pipeline's last step, or the estimator."""
    if not hasattr(estimator, "steps"):
        return estimator, ""
    name, last = estimator.steps[-1]
    inner, prefix = _last_step(last)
    return inner, f"{name}__{prefix}"


def _status(y: Outcomes, t: float) -> Status:
    """Return who is event-free at t, or who has had an event of which cause by then, of those whose status is known."""
    happened = y.event & (y.time <= t)
    return ~happened if y.cause is None else y.cause * happened


def _fit_one(estimator: Any, X: Any, known: _Known) -> tuple[Any, NDArray[np.intp]]:
    """Return the classifier of a horizon, and the statuses that it tells apart; None where there is only one."""
    rows, status, weight = known
    statuses = np.unique(status)
    if statuses.size == 1:
        return None, statuses.astype(np.intp)
    weighted = {} if weight is None else {f"{_last_step(estimator)[1]}sample_weight": weight}
    # numbers without gaps, which some classifiers insist on, where no event of a cause happened so early
    label = status if status.dtype == np.bool_ else np.searchsorted(statuses, status)
    return clone(estimator).fit(take_rows(X, rows), label, **weighted), statuses.astype(np.intp)
