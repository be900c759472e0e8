"""Whether predictions fall at each individual's own C*, as they fall at no other age and for no other individual.

C* is the same date for all, so what happens on that date, trends over calendar time, and differences between those
who started early and late all depend on C*, and any predictions may show them. Three comparisons, one within the
other, take them out: the same model's fall over a window that starts at C*, with that of others over the *same ages*
whose own C* comes long after the window; and the ratio of these two with the ratio of the same individuals and the same
others at *placebo dates*, some windows before C*. A constant ratio of hazards between early and late starters cancels,
and so does a log-linear trend over calendar time: both are the same at every placebo date. What began some time before
the cut-off, such as an epidemic, shows in the window right before C* as well, which is looked at for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import columns_of
from survscore._validation import InputError, check_length, plural
from survscore.curves import SurvivalCurves
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups

if TYPE_CHECKING:
    import pandas as pd

Vector = NDArray[np.float64]
#: Where placebo windows start, in widths before C*, and by how many widths the C* of others must be later. Both are far
#: from C*, since predictions that encode it only roughly fall before it, and earlier for others. Nearer ones, which see
#: such predictions less well, are for data in which too few have room.
DESIGNS = (((3.5, 4.0), 5.0), ((3.0, 3.5), 3.0), ((2.0, 2.5), 1.0))
#: Fewer in the windows, or to compare with, are too few.
LEAST_INDIVIDUALS, LEAST_OTHERS = 50, 20
#: A fall by more counts as this, so that a fall to zero has a logarithm.
LARGEST_FALL = 0.99
#: Added to all falls, as cumulative hazards: ratios of falls far below this mean nothing.
TRIFLE = 0.002
MOST_AGES = 200


@dataclass(frozen=True, eq=False)
class CensoringLeak:
    """One model's fall at C* against its fall elsewhere."""

    after: Estimate  # the share of the predicted survival that is lost over the window that starts at C*
    elsewhere: float  # what would be lost there by the comparison with others and placebo dates
    excess: Estimate  # the difference of the two
    ratio: Estimate  # the ratio of the two, as cumulative hazards
    onset: Estimate  # the ratio of the fall to the same individuals' right before C*, as cumulative hazards
    falls: Vector  # at the dates of `Windows.offsets`
    falls_of_others: Vector


@dataclass(frozen=True, eq=False)
class Windows:
    """Whose falls are looked at, at which ages, and with whom they are compared; the same for all models."""

    width: float
    order: NDArray[np.intp]  # all individuals, by censoring time
    own: NDArray[np.intp]  # places in that order of those whose windows are looked at
    others_from: NDArray[np.intp]  # for each of them, from which place on others have a C* late enough to compare with
    starts: Vector  # (dates, own): the age at which each one's window starts, at C*, a width before, placebo dates
    offsets: Vector  # the same dates in time since C*
    ages: Vector  # at which the others are read; between them, linearly

    @classmethod
    def of(cls, censoring_time: Vector, width: float, last: float) -> Windows | None:
        """Return the windows of the first design for which enough individuals have room; None without any."""
        order = np.argsort(censoring_time, kind="stable")
        end = censoring_time[order]
        for placebo, later in DESIGNS:
            others_from = np.searchsorted(end, end + later * width, side="left")
            compared = (end + width <= last) & (end.size - others_from >= LEAST_OTHERS)
            own = np.flatnonzero(compared & (end >= placebo[-1] * width))
            if own.size >= LEAST_INDIVIDUALS:
                offsets = 0.0 - width * np.array([0.0, 1.0, *placebo])
                starts = np.maximum(end[own] + offsets[:, None], 0.0)  # never below zero by rounding
                ages = np.unique(starts)
                if ages.size > MOST_AGES:
                    ages = np.linspace(ages[0], ages[-1], MOST_AGES)
                return cls(width, order, own, others_from[own], starts, offsets, ages)
        return None

    def leak(self, curves: SurvivalCurves, groups: Groups | None, level: float) -> CensoringLeak:
        """Compare one model's falls."""
        ordered = curves[self.order]
        start, end = (
            np.stack([ordered.before(np.full(len(curves), age)) for age in ages])
            for ages in (self.ages, self.ages + self.width)
        )
        fall = start - end
        # at each age, over those whose C* is at least as late
        sums = [np.cumsum(values[:, ::-1], axis=1)[:, ::-1] for values in (start, fall)]
        dates = [self._falls(ordered[self.own], begin, start, fall, *sums) for begin in self.starts]
        # of those whose windows they are, and of others: (2, dates) and (2, dates, n)
        falls, influence = (np.stack(parts, axis=1) for parts in zip(*dates, strict=True))
        hazard = TRIFLE - np.log1p(-np.clip(falls, 0.0, LARGEST_FALL))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where((falls >= 0) & (falls < LARGEST_FALL), 1.0 / ((1.0 - falls) * hazard), 0.0)
        log_hazard, of_log = np.log(hazard), slope[:, :, None] * influence
        log_ratio, of_ratio = log_hazard[0] - log_hazard[1], of_log[0] - of_log[1]
        log_elsewhere, of_elsewhere = log_ratio[2:].mean(), of_ratio[2:].mean(axis=0)
        expected = math.exp(log_hazard[1, 0] + log_elsewhere)
        survived = math.exp(-max(expected - TRIFLE, 0.0))
        of_expected = survived * expected * (of_log[1, 0] + of_elsewhere)

        def estimate(value: float, in_order: Vector) -> Estimate:
            given = np.empty_like(in_order)
            given[self.order] = in_order
            return Estimate.of(float(value), given, groups, level)

        return CensoringLeak(
            after=estimate(falls[0, 0], influence[0, 0]),
            elsewhere=1.0 - survived,
            excess=estimate(falls[0, 0] - (1.0 - survived), influence[0, 0] - of_expected),
            ratio=estimate(log_ratio[0] - log_elsewhere, of_ratio[0] - of_elsewhere).exp(),
            onset=estimate(log_hazard[0, 0] - log_hazard[0, 1], of_log[0, 0] - of_log[0, 1]).exp(),
            falls=falls[0],
            falls_of_others=falls[1],
        )

    def _falls(
        self, own: SurvivalCurves, begin: Vector, start: Vector, fall: Vector, start_sums: Vector, fall_sums: Vector
    ) -> tuple[Vector, Vector]:
        """Return the falls at one date of those whose windows they are and of others, with the influences of all.

        `start` and `fall` are those at the ages of all individuals, by C*; and their sums over those who come later.
        """
        n, ages = len(self.order), self.ages
        alive = own.before(begin)
        lost = alive - own.before(begin + self.width)
        lower = np.clip(np.searchsorted(ages, begin, side="right") - 1, 0, max(ages.size - 2, 0))
        upper = np.minimum(lower + 1, ages.size - 1)
        step = ages[upper] - ages[lower]
        part = np.divide(begin - ages[lower], step, out=np.zeros(begin.size), where=step > 0)

        others_alive, others_lost = (
            (1.0 - part) * sums[lower, self.others_from] + part * sums[upper, self.others_from]
            for sums in (start_sums, fall_sums)
        )
        usable = others_alive > 0
        alive, lost = np.where(usable, alive, 0.0), np.where(usable, lost, 0.0)
        weight = np.divide(1.0, others_alive, out=np.zeros(alive.size), where=usable)
        share = others_lost * weight
        total = float(alive.sum())
        influence = np.zeros((2, n))
        if total <= 0:  # predicted survival is zero
            return np.full(2, np.nan), influence
        falls = np.array([lost.sum(), (alive * share).sum()]) / total
        influence[0, self.own] = (lost - falls[0] * alive) / total
        influence[1, self.own] = alive * (share - falls[1]) / total
        # those with a later C* move the share of each individual with whom they are compared
        by_lost, by_alive = np.zeros((ages.size, n)), np.zeros((ages.size, n))
        coefficient = alive * weight / total
        for column, of_column in ((lower, 1.0 - part), (upper, part)):
            np.add.at(by_lost, (column, self.others_from), coefficient * of_column)
            np.add.at(by_alive, (column, self.others_from), coefficient * share * of_column)
        influence[1] += np.einsum("ji,ji->i", np.cumsum(by_lost, axis=1), fall)
        influence[1] -= np.einsum("ji,ji->i", np.cumsum(by_alive, axis=1), start)
        return falls, influence


# How well covariates predict C*

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
    features = as_features(X)
    check_length("X", len(features), "y", censoring_time.size)
    rows = np.flatnonzero(np.isfinite(censoring_time))
    rows = np.random.default_rng(seed).permutation(rows)[:MOST_ROWS]
    if rows.size < 2 * N_FOLDS:
        raise InputError(f"X: {plural(rows.size, 'individual')} with a finite censoring_time are too few to learn from")
    features, target = features.iloc[rows], censoring_time[rows]
    if np.ptp(target) == 0:
        return Estimate()  # nothing varies that could be predicted
    of_rows = None if groups is None else Groups.of(groups.codes[rows], rows.size)
    if of_rows is not None and of_rows.n_groups < N_FOLDS:
        raise InputError(f"X: {plural(of_rows.n_groups, 'group')} are too few for {N_FOLDS} folds")
    folds = KFold(N_FOLDS) if of_rows is None else GroupKFold(N_FOLDS)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=seed)
    predicted = cross_val_predict(model, features, target, groups=None if of_rows is None else of_rows.codes, cv=folds)
    errors, squares = np.square(target - predicted), np.square(target - target.mean())
    missed = float(errors.sum() / squares.sum())
    influence = -(errors - missed * squares) / squares.sum()
    return Estimate.of(1.0 - missed, influence, of_rows, level)


def as_features(X: Any) -> pd.DataFrame:
    """Return numbers, NaN where missing, and categories; from an array or any data frame."""
    import pandas as pd

    columns = columns_of(X)
    if not columns:
        raise InputError("X has no columns")
    return pd.DataFrame({name: _feature(values, name) for name, values in columns.items()})


def _feature(values: NDArray[Any], name: str) -> pd.Series[Any]:
    """Return numbers, which dates become, or categories: text, and whatever else there are few of."""
    import pandas as pd

    column = pd.Series(values.tolist() if values.dtype.kind in "OUST" else values)
    known = column.dropna()
    if column.dtype.kind in "mM":  # they predict C* better than anything
        return column.astype(np.int64).where(column.notna())
    if column.dtype.kind not in "biufOUST":
        raise InputError(
            f"X: column {name!r} must hold numbers, booleans, text, categories or dates, not {column.dtype}"
        )
    if all(isinstance(value, (bool, int, float, np.number)) for value in known):
        return column.astype(np.float64).clip(-1e300, 1e300)
    texts = known.map(str).reindex(column.index).astype("category")
    return texts if texts.cat.categories.size <= MOST_CATEGORIES else texts.cat.codes.where(column.notna())
