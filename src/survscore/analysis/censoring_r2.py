"""How well covariates predict C*: cross-validated, by gradient boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import columns_of
from survscore._validation import InputError, check_length, plural
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups

MOST_ROWS = 20_000
N_FOLDS = 5
#: More categories than the trees can distinguish are taken by their order, as numbers given in order are.
MOST_CATEGORIES = 255


def explained_variance(
    X: Any, censoring_time: NDArray[np.float64], groups: Groups | None, level: float, seed: int
) -> Estimate:
    r"""Return the cross-validated R2 of C* predicted from covariates by gradient boosting.

    :math:`R^2 = 1 - \sum_i (C^*_i - \hat C_i)^2 / \sum_i (C^*_i - \bar C)^2`, with :math:`\hat C_i` from the folds
    without i (and without its group). It is negative where the predictions are worse than the mean. Its standard error
    is that of a ratio of two means.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
    except ImportError:
        raise ImportError("X needs scikit-learn: pip install 'survscore[models]'") from None
    features, categorical = as_features(X)
    check_length("X", len(features), "y", censoring_time.size)
    rows = np.flatnonzero(np.isfinite(censoring_time))
    rows = np.random.default_rng(seed).permutation(rows)[:MOST_ROWS]
    if rows.size < 2 * N_FOLDS:
        raise InputError(f"X: {plural(rows.size, 'individual')} with a finite censoring_time are too few to learn from")
    features, target = features[rows], censoring_time[rows]
    if np.ptp(target) == 0:
        return Estimate()  # nothing varies that could be predicted
    of_rows = None if groups is None else Groups.of(groups.codes[rows], rows.size)
    if of_rows is not None and of_rows.n_groups < N_FOLDS:
        raise InputError(f"X: {plural(of_rows.n_groups, 'group')} are too few for {N_FOLDS} folds")
    folds = KFold(N_FOLDS) if of_rows is None else GroupKFold(N_FOLDS)
    model = HistGradientBoostingRegressor(categorical_features=categorical, random_state=seed)
    predicted = cross_val_predict(model, features, target, groups=None if of_rows is None else of_rows.codes, cv=folds)
    errors, squares = np.square(target - predicted), np.square(target - target.mean())
    missed = float(errors.sum() / squares.sum())
    influence = -(errors - missed * squares) / squares.sum()
    return Estimate.of(1.0 - missed, influence, of_rows, level)


def as_features(X: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return numbers, NaN where missing, and which columns are codes of categories; from an array or any data frame."""
    columns = columns_of(X)
    if not columns:
        raise InputError("X has no columns")
    encoded = [_encode(values, name) for name, values in columns.items()]
    return np.stack([values for values, _ in encoded], axis=1), np.array([category for _, category in encoded])


def _encode(values: NDArray[Any], name: str) -> tuple[NDArray[np.float64], bool]:
    """Return a column as numbers, and whether these are codes of categories."""
    import pandas as pd

    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return np.where(np.isinf(numbers), np.sign(numbers) * 1e300, numbers), False
    if values.dtype.kind in "mM":  # dates predict C* better than anything
        return np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64)), False
    if values.dtype.kind not in "OUST":
        raise InputError(
            f"X: column {name!r} must hold numbers, booleans, text, categories or dates, not {values.dtype}"
        )
    column = pd.Series(values.tolist(), dtype=object)
    there = column.dropna()
    if all(isinstance(value, (bool, int, float, np.number)) for value in there):
        return column.to_numpy(np.float64, na_value=np.nan), False
    # in the order of the values, for dates and numbers given in order; as text where they can't be compared
    comparable = len({type(value) for value in there}) == 1 and hasattr(there.iloc[0], "__lt__")
    codes, labels = pd.factorize(column if comparable else there.map(str).reindex(column.index), sort=True)
    return np.where(codes < 0, np.nan, codes.astype(np.float64)), isinstance(labels[0], str) and len(
        labels
    ) <= MOST_CATEGORIES
