r"""The censoring distribution :math:`G_i(t) = P(C^*_i > t)`, as IPCW weights need it.

They need two things of it: :math:`G_i(t)` at the evaluation times, for those still event-free, and the left limit
:math:`G_i(T_i-)` at each individual's own time, for those who had the event: an individual with an event at
:math:`T_i` was observed if its censoring came at :math:`T_i` or later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._validation import InputError, check_length, check_rule, plural
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes


class CensoringDistribution(ABC):
    """Interface of censoring distributions for IPCW."""

    curves: SurvivalCurves | None = None  # The curves of G, one per individual, where it depends on the individual.

    @abstractmethod
    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return G(t), the same for each individual who is still event-free at t."""

    @abstractmethod
    def before(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return G_i(T_i-) for every individual."""

    @abstractmethod
    def __str__(self) -> str:
        """Name it in a result."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


class KaplanMeierCensoring(CensoringDistribution):
    r"""Kaplan-Meier estimate of the censoring distribution, the same for all individuals.

    .. math:: \hat G(t) = \prod_{s \le t} \left(1 - \frac{c_s}{Y_s - d_s}\right)

    with :math:`c_s` censored and :math:`d_s` events at time :math:`s`, and :math:`Y_s` individuals under observation
    just before. Events leave the risk set first, since an individual with event and censoring at the
    same time counts as having had the event. Fitted on the outcomes that are scored, the weights then
    sum to n at every time.

    Parameters
    ----------
    outcomes : Outcomes
        The data to fit on: those to be scored, or training data.

    Attributes
    ----------
    outcomes : Outcomes
        The data it was fitted on.
    curve : ProductLimit
        Its jumps, and the curve from each of them on. After the last one the curve stays.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 2, 3], event=[1, 1, 0, 0])
    >>> G = ss.KaplanMeierCensoring(y)
    >>> G.at([1, 2, 2.5])
    array([1. , 0.5, 0.5])
    >>> G.before(y)
    array([1. , 1. , 1. , 0.5])
    """

    def __init__(self, outcomes: Outcomes) -> None:
        if not isinstance(outcomes, Outcomes):
            raise InputError(f"outcomes must be Outcomes, not {type(outcomes).__name__}")
        self.outcomes = outcomes
        # an event at the time of a censoring comes first
        self.curve = ProductLimit.of(
            outcomes.time, ~outcomes.event, others_first=True, weights=outcomes.weights, entry=outcomes.entry
        )

    @property
    def times(self) -> NDArray[np.float64]:
        """The times at which it falls."""
        return self.curve.times

    @property
    def survival(self) -> NDArray[np.float64]:
        """The curve from each of them on."""
        return self.curve.survival

    def at(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return G(t)."""
        return self.curve.at(np.asarray(times, dtype=np.float64))

    def before(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return G(T_i-)."""
        return self.curve.before(outcomes.time)

    def __str__(self) -> str:
        return f"Kaplan-Meier of {plural(self.curve.n, 'given outcome')}"


class KnownCensoring(CensoringDistribution):
    r"""The step function :math:`G_i(t) = 1\{C^*_i > t\}` of administrative censoring (eq:ipcw_admin_n).

    Each individual who is counted has weight one: the censored are left out from their censoring on. The score is then
    minimised by :math:`S_i(t) 1\{C^*_i > t\}`, not by the true survival: use it to show that, not to judge.
    """

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one: those still event-free at t have C* > t."""
        return np.ones(len(times))

    def before(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return one: an observed event has C* >= T."""
        ones: NDArray[np.float64] = arrays.repeated(1.0, len(outcomes), outcomes.time)
        return ones

    def __str__(self) -> str:
        return "known censoring times"


class CensoringCurves(CensoringDistribution):
    """Curves of G from any model, one per scored individual, in the same order.

    Parameters
    ----------
    curves : SurvivalCurves
        Predicted by a model of the censoring distribution. Their `interpolation` says where G jumps:
        only ``"step"`` curves have a left limit of their own.
    """

    curves: SurvivalCurves

    def __init__(self, curves: SurvivalCurves) -> None:
        self.curves = curves

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Not asked for: G differs between individuals, and is read from `curves`."""
        raise TypeError("individual censoring curves have no common G(t)")

    def before(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return G_i(T_i-)."""
        check_length("censoring curves", len(self.curves), "outcomes", len(outcomes))
        return self.curves.before(outcomes.time)

    def __str__(self) -> str:
        return "individual censoring curves"


class CensoringFunction(CensoringDistribution):
    """A known function G(t), the same for all individuals.

    Parameters
    ----------
    function : callable
        Takes an array of times and returns G there.
    left_limit : callable, optional
        The same for G(t-). Without it G is taken to be continuous.

    Examples
    --------
    >>> import survscore as ss
    >>> uniform = ss.CensoringFunction(lambda t: 1 - t / 100)
    >>> uniform.at([0, 25])
    array([1.  , 0.75])
    """

    def __init__(
        self,
        function: Callable[[NDArray[np.float64]], ArrayLike],
        left_limit: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    ) -> None:
        self.function = function
        self.left_limit = function if left_limit is None else left_limit

    def at(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return G(t)."""
        return _evaluate(self.function, np.asarray(times, dtype=np.float64))

    def before(self, outcomes: Outcomes) -> NDArray[np.float64]:
        """Return G(T_i-)."""
        values: NDArray[np.float64] = arrays.beside(
            _evaluate(self.left_limit, arrays.to_host(outcomes.time)), outcomes.time
        )
        return values

    def __str__(self) -> str:
        return "a given function"


def _evaluate(function: Callable[[NDArray[np.float64]], ArrayLike], times: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.asarray(function(times), dtype=np.float64)
    if values.shape != times.shape:
        raise InputError(f"the censoring function returned shape {values.shape} for times of shape {times.shape}")
    check_rule("the censoring function", "between 0 and 1", ~((values >= 0) & (values <= 1)), values)
    rises = np.diff(values[np.argsort(times)]) > 1e-12
    if rises.any():
        raise InputError("the censoring function rises with time; G(t) is the probability of not being censored by t")
    return values


def as_censoring(given: Any) -> CensoringDistribution:
    """Return the distribution that a user gave in one of several forms."""
    match given:
        case CensoringDistribution():
            return given
        case str() if given == "known":
            return KnownCensoring()
        case Outcomes():
            return KaplanMeierCensoring(given)
        case SurvivalCurves():
            return CensoringCurves(given)
        case _ if callable(given):
            return CensoringFunction(given)
    raise InputError(
        "censoring must be 'kaplan-meier', 'known', Outcomes to fit Kaplan-Meier on, SurvivalCurves of G, "
        f"a function of time, or a CensoringDistribution, not {given!r}"
    )
