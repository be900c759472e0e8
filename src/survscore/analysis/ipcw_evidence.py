"""Evidence on IPCW: its agreement with the administrative score, its weights, and covariates that predict C*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import columns_of
from survscore._utils.parallel import row_blocks
from survscore._validation import InputError, check_length, plural
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import averaging_weights
from survscore.engine.evaluation import Evaluation
from survscore.engine.inputs import NULL_MODEL
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.weighting import IPCW, Administrative
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Contrast:
    """A model against another, by the mean Brier score under both weightings, and how these differ."""

    model: str
    reference: str
    ipcw: Estimate
    administrative: Estimate
    difference: Estimate

    @property
    def contradicts(self) -> bool:
        """Whether both weightings are sure which is better, and disagree."""
        first, second = self.ipcw, self.administrative
        return (first.upper < 0 < second.lower) or (second.upper < 0 < first.lower)


def contrasts_of(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weighting: IPCW,
    times: NDArray[np.float64] | None,
    groups: Groups | None,
    level: float,
) -> tuple[list[Contrast], tuple[float, float]]:
    """Return every model against the null model, then all other pairs, and the range of time."""
    both = [weighting, Administrative()]
    add_null = NULL_MODEL not in models
    evaluation = Evaluation.of(
        y, models, weighting=both, times=times, null=add_null, level=level, needs_numpy="diagnose"
    )
    scored, time_range = evaluation.mean_influences()
    names = evaluation.names
    null = names.index(NULL_MODEL)
    others = [a for a in range(len(names)) if a != null]

    def contrast(a: int, b: int) -> Contrast:
        values = [float(one.scores[a] - one.scores[b]) for one in scored]
        influences = [one.values[a] - one.values[b] for one in scored]
        # the variance of a G that was fitted to others
        added = [float(one.steps @ np.square(one.moved[a] - one.moved[b])) for one in scored]
        parts = [*zip(values, influences, added, strict=True)]
        parts.append((values[0] - values[1], influences[0] - influences[1], sum(added)))
        found = [Estimate.of(value, own, groups, level, added_variance=more) for value, own, more in parts]
        return Contrast(names[a], names[b], *found)

    return [contrast(a, b) for a, b in [*((a, null) for a in others), *combinations(others, 2)]], time_range


CAPS = (1.0, 2.0, 5.0, 10.0, None)
MOST_TIMES = 21


def weights_over_time(y: Outcomes, weighting: IPCW, times: NDArray[np.float64]) -> pd.DataFrame:
    """Return how many have a weight at each time, Kish's effective number, and the largest weight with its share."""
    import pandas as pd

    some = times[np.unique(np.linspace(0, times.size - 1, min(times.size, MOST_TIMES)).round().astype(np.intp))]
    index = TimeIndex(y, some)
    stretches = weighting.prepare(index)
    count, total, squares, largest = np.zeros((4, some.size))
    for rows in row_blocks(len(y), some.size, compiled=False):
        with np.errstate(invalid="ignore", over="ignore"):
            cells = sum(stretches.rows(rows).cells(some), np.zeros(()))
            count += (cells > 0).sum(axis=0)
            total += cells.sum(axis=0)
            squares += np.square(cells).sum(axis=0)
        largest = np.maximum(largest, cells.max(axis=0))
    undefined = ~np.isfinite(total) | (total == 0)
    if stretches.support_end is not None:
        undefined[stretches.support_end :] = True
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = {"n_effective": total**2 / squares, "largest_weight": largest, "largest_share": largest / total}
    table = {name: np.where(undefined, np.nan, values) for name, values in columns.items()}
    return pd.DataFrame({"time": some, "n_weighted": count.astype(np.int64), **table})


def scores_by_cap(
    y: Outcomes, models: Mapping[str, SurvivalCurves], weighting: IPCW, times: NDArray[np.float64] | None
) -> pd.DataFrame:
    """Return every model's mean Brier score under each cap, and its rank; empty where there is no score."""
    import pandas as pd

    weightings = [replace(weighting, max_weight=cap) for cap in CAPS]
    evaluation = Evaluation.of(y, models, weighting=weightings, times=times, errors=False, needs_numpy="diagnose")
    scored = evaluation.run()
    worst = np.full(evaluation.times.size, np.nan)
    worst[: evaluation.index.times.size] = sum(one.scores.sum(axis=0) for one in scored)
    try:
        mean, _ = averaging_weights(evaluation.times, worst, None, None, "stop", scored[0].undefined)
    except InputError:  # at no time is there a score
        return pd.DataFrame(columns=["max_weight", "model", "score", "rank"])
    used, parts = np.flatnonzero(mean), []
    for cap, one in zip(CAPS, scored, strict=True):
        scores = one.scores[:, used] @ mean[used]
        ranks = 1 + (scores[:, None] > scores).sum(axis=1)
        limit = np.inf if cap is None else cap
        parts.append({"max_weight": limit, "model": evaluation.names, "score": scores, "rank": ranks})
    return stacked(parts)


MOST_ROWS = 20_000
N_FOLDS = 5
#: More categories than the trees can tell apart are taken by their order, as numbers given in order are.
MOST_CATEGORIES = 255


def explained_variance(
    X: Any, censoring_time: NDArray[np.float64], groups: Groups | None, level: float, seed: int
) -> Estimate:
    r"""Return which share of the variance of C* gradient boosting tells from covariates, for those it has not seen.

    :math:`R^2 = 1 - \sum_i (C^*_i - \hat C_i)^2 / \sum_i (C^*_i - \bar C)^2`, with :math:`\hat C_i` from the folds
    without i (and without its group). Its standard error is that of a ratio of two means.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.model_selection import GroupKFold, KFold
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
        return Estimate()  # nothing varies that could be told
    of_rows = None if groups is None else Groups.of(groups.codes[rows], rows.size)
    if of_rows is not None and of_rows.n_groups < N_FOLDS:
        raise InputError(f"X: {plural(of_rows.n_groups, 'group')} are too few for {N_FOLDS} folds")
    folds = KFold(N_FOLDS) if of_rows is None else GroupKFold(N_FOLDS)
    told = np.empty(rows.size)
    for train, test in folds.split(features, groups=None if of_rows is None else of_rows.codes):
        model = HistGradientBoostingRegressor(categorical_features=categorical, random_state=seed)
        told[test] = model.fit(features[train], target[train]).predict(features[test])
    errors, spread = np.square(target - told), np.square(target - target.mean())
    missed = float(errors.sum() / spread.sum())
    influence = -(errors - missed * spread) / spread.sum()
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
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return np.where(np.isinf(numbers), np.sign(numbers) * 1e300, numbers), False
    if values.dtype.kind in "mM":  # dates tell C* better than anything
        numbers = values.astype(np.int64).astype(np.float64)
        return np.where(np.isnat(values), np.nan, numbers), False
    if values.dtype.kind not in "OUST":
        raise InputError(
            f"X: column {name!r} must hold numbers, booleans, text, categories or dates, not {values.dtype}"
        )
    absent = np.array([value is None or value != value for value in values.tolist()])  # noqa: PLR0124
    there = [value for value, gone in zip(values.tolist(), absent, strict=True) if not gone]
    if all(isinstance(value, (bool, int, float, np.number)) for value in there):
        numbers = np.full(values.size, np.nan)
        numbers[~absent] = np.array(there, dtype=np.float64)
        return numbers, False
    # in the order of the values, for dates and numbers given in order; as text where they can't be compared
    comparable = len({type(value) for value in there}) == 1 and hasattr(there[0], "__lt__")
    keys = there if comparable else [str(value) for value in there]
    codes = {value: code for code, value in enumerate(sorted(set(keys)))}
    encoded = np.full(values.size, np.nan)
    encoded[~absent] = [codes[key] for key in keys]
    return encoded, isinstance(keys[0], str) and len(codes) <= MOST_CATEGORIES
