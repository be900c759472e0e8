"""xgboost's two survival objectives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from survscore._validation import FloatArray, InputError, check_choice, check_rule
from survscore.adapters.survival_model import Adapter
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes

OBJECTIVES = ("survival:cox", "survival:aft")
DISTRIBUTIONS = ("normal", "logistic", "extreme")


class XGBoost(Adapter):
    r"""An ``XGBRegressor`` with ``objective="survival:cox"`` or ``"survival:aft"`` that predicts survival curves.

    xgboost itself gives a risk, or a typical time. Here they become curves.

    ``"survival:cox"``: with the log hazard ratio :math:`f(x)`, :math:`S(t \mid x) = \exp(-H_0(t) e^{f(x)})` and
    Breslow's estimate from the training data,

    .. math:: H_0(t) = \sum_{s \le t} \frac{d_s}{\sum_{i: T_i \ge s} e^{f(x_i)}}

    where :math:`d_s` had the event at s. Overfitted trees make that baseline too spread: it
    is one more reason to regularise.

    ``"survival:aft"``: :math:`\log T = f(x) + \sigma Z`, so :math:`S(t \mid x) = P(Z > [\log t - f(x)] / \sigma)`,
    with Z and :math:`\sigma` from ``aft_loss_distribution`` and ``aft_loss_distribution_scale``. Neither is estimated
    by xgboost: search over them.

    Parameters
    ----------
    estimator : xgboost.XGBRegressor
        It is cloned. Early stopping is not possible, since there are no data to stop by.
    times : array_like, optional
        The grid of predicted curves. By default Cox's are step functions with all event times in training, and AFT's
        are computed at up to 200 quantiles of the times in training, linear between. AFT extrapolates to any `times`.

    Attributes
    ----------
    estimator_ : xgboost.Booster
        What was fitted.
    end_ : float
        The last time in the training data, after which Cox's curves say nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from xgboost import XGBRegressor
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(500, 1))
    >>> time = rng.exponential(np.exp(X[:, 0]))
    >>> y = ss.Outcomes(np.minimum(time, 2), time <= 2, np.full(500, 2))
    >>> trees = XGBRegressor(objective="survival:cox", n_estimators=20, max_depth=2, learning_rate=0.3)
    >>> model = ss.adapters.XGBoost(trees, times=[0.5, 1, 1.5]).fit(X, y)
    >>> survival = model.predict(np.array([[-1.0], [1.0]]))
    >>> bool((survival[0] < survival[1]).all())
    True
    """

    def _fitted(self, X: Any, y: Outcomes) -> Any:
        import xgboost

        if not hasattr(self.estimator, "get_xgb_params"):
            raise InputError(f"estimator must be an XGBRegressor, not {type(self.estimator).__name__}")
        estimator = clone(self.estimator)
        params = estimator.get_xgb_params()
        check_choice("the objective of estimator", params.get("objective"), OBJECTIVES)
        self._distribution = params.get("aft_loss_distribution", "normal")
        check_choice("aft_loss_distribution", self._distribution, DISTRIBUTIONS)
        if estimator.early_stopping_rounds is not None:
            raise InputError("estimator can't stop early (early_stopping_rounds): there are no data to stop by")
        check_rule("time", "after 0 for xgboost", y.time <= 0, y.time)
        self._cox = params["objective"] == "survival:cox"
        self._scale = float(params.get("aft_loss_distribution_scale", 1.0))
        self._read_as = {"missing": estimator.missing, "enable_categorical": estimator.enable_categorical}
        data = self._matrix(X)
        if self._cox:
            data.set_label(np.where(y.event, y.time, -y.time))  # so xgboost marks the censored
        else:
            data.set_float_info("label_lower_bound", y.time)
            data.set_float_info("label_upper_bound", np.where(y.event, y.time, np.inf))
        booster = xgboost.train(params, data, estimator.get_num_boosting_rounds(), verbose_eval=False)
        if self._cox:
            self._jumps, self._baseline = breslow(y, booster.predict(data, output_margin=True).astype(np.float64))
        return booster

    def _curves(self, X: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        if self._cox:
            return self._read_steps(X, self._steps, times)
        grid = self._observed if times is None else times
        with np.errstate(divide="ignore"):  # the logarithm of time 0
            z = (np.log(grid) - self._margin(X)[:, None]) / self._scale
        return SurvivalCurves(_above(z, self._distribution), grid)

    def _steps(self, X: Any) -> tuple[FloatArray, NDArray[np.float64]]:
        return np.exp(-self._baseline * np.exp(self._margin(X))[:, None]), self._jumps

    def _margin(self, X: Any) -> NDArray[np.float64]:
        margin = self.estimator_.predict(self._matrix(X), output_margin=True)
        return np.asarray(margin, dtype=np.float64)

    def _matrix(self, X: Any) -> Any:
        import xgboost

        return xgboost.DMatrix(np.asarray(X) if isinstance(X, (list, tuple)) else X, **self._read_as)


def breslow(y: Outcomes, log_ratio: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the event times, and Breslow's estimate of the cumulative baseline hazard from each on."""
    if not y.event.any():
        raise InputError("y has no events: there is nothing to learn")
    order = np.argsort(-y.time, kind="stable")
    at_risk = np.cumsum(np.exp(log_ratio[order]))  # of those from each on, the latest first
    times, events = np.unique(y.time[y.event], return_counts=True)
    later = np.searchsorted(-y.time[order], -times, side="right")  # how many have this time or a later one
    return times, np.cumsum(events / at_risk[later - 1])


def _above(z: NDArray[np.float64], distribution: str) -> NDArray[np.float64]:
    """Return the probability to be above z."""
    from scipy.special import expit, ndtr

    if distribution == "normal":
        return np.asarray(ndtr(-z))
    if distribution == "logistic":
        return np.asarray(expit(-z))
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-np.exp(z)))  # the smallest-extreme-value distribution: T is then Weibull's
