"""skpro's survival regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from survscore._validation import InputError
from survscore.adapters.survival_model import Adapter, as_pandas
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes


class Skpro(Adapter):
    """A skpro survival regressor: its predicted distributions, as survival curves.

    Parameters
    ----------
    estimator : skpro survival regressor
        With ``fit(X, y, C)`` and ``predict_proba(X)``, such as ``AFTWeibull``. It is cloned.
    times : array_like, optional
        The grid of predicted curves, at which the distributions are computed, also after the training data; by
        default up to 200 quantiles of the times in training, linear between.

    Attributes
    ----------
    estimator_ : skpro survival regressor
        The fitted clone.
    end_ : float
        The last time in the training data.

    Notes
    -----
    Those of skpro's regressors that are scikit-survival's or lifelines' inside and predict empirical distributions are
    refused: skpro leaves out the survival after the last time, and puts jumps at other individuals' places. Wrap the
    inner estimator with `ScikitSurvival` or `Lifelines`.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from skpro.survival.aft import AFTWeibull
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(300, 1))
    >>> time = rng.exponential(np.exp(X[:, 0]))
    >>> y = ss.Outcomes(np.minimum(time, 2), time <= 2, np.full(300, 2))
    >>> model = ss.adapters.Skpro(AFTWeibull(), times=[0.5, 1, 1.5]).fit(X, y)
    >>> model.predict([[-1.0], [1.0]]).round(1)
    array([[0.3, 0.1, 0. ],
           [0.8, 0.7, 0.6]])
    """

    def _fitted(self, X: Any, y: Outcomes) -> Any:
        import pandas as pd

        censored = (~y.event).astype(int)  # which skpro marks, and not the events
        return clone(self.estimator).fit(
            as_pandas(X), pd.DataFrame({"time": y.time}), C=pd.DataFrame({"censored": censored})
        )

    def _curves(self, X: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        import pandas as pd

        distribution = self.estimator_.predict_proba(as_pandas(X))
        self._refuse_misplaced(distribution)
        grid = self._observed if times is None else times
        survival = np.empty((len(distribution.index), grid.size))
        for j, t in enumerate(grid):
            at = pd.DataFrame(t, index=distribution.index, columns=distribution.columns)
            survival[:, j] = 1.0 - np.asarray(distribution.cdf(at))[:, 0]
        return SurvivalCurves(survival, grid)

    def _refuse_misplaced(self, distribution: Any) -> None:
        inside = {base.__name__: base for base in type(self.estimator_).__mro__}
        wrapped = [name for name in ("_SksurvAdapter", "_LifelinesAdapter") if name in inside]
        if wrapped and type(distribution).__name__ == "Empirical":
            there = "ScikitSurvival" if wrapped[0] == "_SksurvAdapter" else "Lifelines"
            raise InputError(
                f"estimator can't be {type(self.estimator_).__name__}, whose distributions are not those of the model "
                f"inside it: wrap that with adapters.{there}"
            )
