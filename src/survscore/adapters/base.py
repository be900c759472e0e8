"""What adapters share: fitting a clone, and where curves are read and end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from survscore._utils.frames import as_frame, collected, n_rows_of, take_rows
from survscore._validation import as_times
from survscore.adapters.survival_model import SurvivalModel, as_training_data, check_within
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes

N_TIMES = 200  # of the default grid of a formula, which has none of its own
CELLS_AT_ONCE = 1 << 22


@dataclass(eq=False, repr=False)
class Adapter(MetaEstimatorMixin, SurvivalModel):  # type: ignore[misc]
    """An estimator of another package, fitted to `Outcomes`."""

    estimator: Any
    _: KW_ONLY
    times: ArrayLike | None = None

    estimator_: Any = field(init=False)
    end_: float = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a clone of the estimator.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        y : Outcomes or structured array
            What was observed. Censoring times are not for the estimator; they are there for scores.

        Returns
        -------
        The adapter.
        """
        X = collected(X)
        outcomes = as_training_data(y, n_rows_of(X)).numpy()
        if self.times is not None:
            as_times(self.times)  # refused now, not after a long fit
        self.estimator_ = self._fitted(X, outcomes)
        self.end_ = float(outcomes.time.max())
        self._observed = np.unique(np.quantile(outcomes.time, np.linspace(0, 1, N_TIMES + 1), method="lower"))
        return self

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> SurvivalCurves:
        """Return predicted survival.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        times : array_like, optional
            The grid; by default that of the parameter `times`, or the estimator's own.

        Returns
        -------
        SurvivalCurves
        """
        check_is_fitted(self)
        times = self.times if times is None else times
        return self._curves(collected(X), None if times is None else as_times(times))

    @abstractmethod
    def _fitted(self, X: Any, y: Outcomes) -> Any:
        """Return a fitted estimator, and leave the one that was given as it is."""

    @abstractmethod
    def _curves(self, X: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        """Return the curves, at `times` if they are given."""

    # Two kinds of curves

    def _read_steps(self, X: Any, steps: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        """Return step functions, which ``steps(X)`` gives as (survival, times), as they are or read at `times`.

        After its last jump a step function stays what it is for as long as training was followed up, and says nothing
        after that. Read at `times` it is linear between them: it falls somewhere there, and not at the next of them.
        """
        if times is None:
            survival, grid = steps(X)
            if grid[-1] < self.end_:
                survival = np.column_stack((survival, survival[:, -1]))
                grid = np.append(grid, self.end_)
            return SurvivalCurves(survival, grid, interpolation="step")
        check_within(times, np.array([self.end_]))
        n = n_rows_of(X)
        matrix = np.empty((n, times.size))
        size, start = 256, 0  # a first block, which tells how wide the others are
        while start < n:
            rows = np.arange(start, min(start + size, n))
            survival, grid = steps(take_rows(X, rows))
            places = np.searchsorted(grid, times, side="right")
            matrix[rows] = np.where(places > 0, survival[:, np.maximum(places, 1) - 1], 1.0)
            start, size = start + size, max(1, CELLS_AT_ONCE // grid.size)
        return SurvivalCurves(matrix, times)

    def _formula_grid(self, times: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return where to compute curves that have a value at any time: `times`, or quantiles of those in training."""
        return self._observed if times is None else times


def as_pandas(X: Any) -> Any:
    """Return a pandas frame with names of text, for packages that identify covariates by name."""
    import pandas as pd

    frame = as_frame(X)
    table = pd.DataFrame(np.asarray(X)) if frame is None else frame.to_pandas().reset_index(drop=True)
    return table.set_axis([str(name) if frame is not None else f"x{name}" for name in table.columns], axis=1)
