"""Whether an IPCW score can be trusted on these data: do predictions, or covariates, tell the censoring times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_length, check_number, check_whole, plural
from survscore.curves import SurvivalCurves
from survscore.engine.evaluation import NULL_MODEL, as_models, check_outcomes, check_predictions, null_curve
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import DiagnosisDisplay

N_POINTS = 41
DEFAULT_SHARE = 0.1
MOST_ROWS = 50_000
N_FOLDS = 5


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What predictions do around everybody's own censoring time.

    Attributes
    ----------
    offsets : ndarray of shape (k,)
        Time since :math:`C^*`, from minus to plus `width`.
    survival : dict of str to ndarray of shape (k,)
        Mean prediction at each of these, for each model and for Kaplan-Meier.
    width : float
        How far is looked before and after :math:`C^*`.
    n : int
        How many individuals are averaged: those whose :math:`C^*` is so far from 0 and from the end of the grids.
    censoring_r2 : float or None
        Which share of the variance of :math:`C^*` the covariates tell, where they were given.
    """

    offsets: NDArray[np.float64]
    survival: dict[str, NDArray[np.float64]]
    width: float
    n: int
    censoring_r2: float | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return a table: model, lost_before, lost_after.

        The shares of the predicted survival that are lost over `width` before, and over as long after, everybody's
        :math:`C^*`.
        """
        import pandas as pd

        middle = self.offsets.size // 2
        rows = []
        for name, mean in self.survival.items():
            with np.errstate(invalid="ignore", divide="ignore"):
                before, after = 1.0 - mean[middle] / mean[0], 1.0 - mean[-1] / mean[middle]
            rows.append({"model": name, "lost_before": before, "lost_after": after})
        return pd.DataFrame(rows)

    def plot(self, ax: Any = None) -> DiagnosisDisplay:
        """Draw the mean predictions around :math:`C^*`."""
        from survscore.plots import DiagnosisDisplay

        return DiagnosisDisplay(self).plot(ax=ax)

    def __repr__(self) -> str:
        told = "" if self.censoring_r2 is None else f"; covariates tell C* with R2 {self.censoring_r2:.2f}"
        rows = ", ".join(
            f"{row['model']} {row['lost_before']:.1%} and {row['lost_after']:.1%}"
            for row in self.to_frame().to_dict("records")
        )
        return f"Diagnosis(survival lost in the {self.width:g} before and after C*, {self.n} individuals: {rows}{told})"


def diagnose(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves] | Iterable[tuple[str, SurvivalCurves]],
    *,
    X: Any = None,
    width: float | None = None,
    seed: int = 0,
) -> Diagnosis:
    r"""Look for what makes IPCW scores fail under administrative censoring: predictions that know :math:`C^*`.

    Nothing happens to anybody at their own :math:`C^*`: the data end there, lives do not. Honest predictions go on
    falling after it as before. A method that has learnt from covariates that nobody is seen event-free after
    :math:`C^*` predicts a cliff there, and an IPCW score rewards it for that.

    Parameters
    ----------
    y : Outcomes
        With censoring times.
    models : mapping of str to SurvivalCurves, or pairs
        What each model predicted. Kaplan-Meier stands beside them.
    X : array_like or data frame of shape (n, p), optional
        Numeric covariates: how well gradient boosting tells :math:`C^*` from them, on individuals it has not
        learnt from (needs scikit-learn).
    width : float, optional
        How far to look before and after :math:`C^*`; by default a tenth of the time that all predictions reach.
    seed : int
        Of the folds, for `X`.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Over those with :math:`C^*_i` from `width` w to w before the end of the shortest grid, the mean prediction at the
    offset d is

    .. math:: m(d) = \frac{1}{n} \sum_i \pi_i((C^*_i + d)-),

    with left limits, so that a fall at :math:`C^*_i` itself comes after it. What is lost before and after is
    :math:`1 - m(0)/m(-w)` and :math:`1 - m(w)/m(0)`. The paper has no such quantity; its figure 2 shows the fall for
    single censoring times.

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(2000, seed=1)
    >>> truth = sample.survival(range(1, 101))
    >>> leaking = ss.SurvivalCurves(truth.probabilities * (sample.outcomes.censoring_time[:, None] > truth.times),
    ...                             truth.times, "step")
    >>> found = ss.diagnose(sample.outcomes, {"truth": truth, "leaking": leaking}).to_frame()
    >>> found[found.model != "Kaplan-Meier"].round(2)
         model  lost_before  lost_after
    0    truth         0.08        0.08
    1  leaking         0.08        1.00
    """
    check_outcomes(y)
    named = as_models(models)
    for name, curves in named.items():
        check_predictions(y, curves, f"the curves of {name!r}")
    if y.censoring_time is None:
        raise InputError("diagnose needs outcomes with censoring_time (Outcomes.from_dates derives it)")
    check_whole("seed", seed, 0)
    last = min(float(curves.times[-1]) for curves in named.values())
    width = DEFAULT_SHARE * last if width is None else width
    check_number("width", width, f"positive, and less than half of {last:g}, the time that all predictions reach",
                 lambda value: 0 < value < last / 2)  # fmt: skip
    end = y.censoring_time
    rows = np.flatnonzero((end >= width) & (end <= last - width))
    if rows.size == 0:
        raise InputError(
            f"nobody has a censoring_time from {width:g} to {last - width:g}, as a width of {width:g} needs"
        )
    offsets = np.linspace(-width, width, N_POINTS)
    around = np.maximum(end[rows, None] + offsets, 0.0)
    survival = {name: _means_before(curves[rows], around) for name, curves in named.items()}
    if NULL_MODEL not in named:
        everybody = null_curve(y)
        steps = np.concatenate(([1.0], everybody.probabilities[0]))
        survival[NULL_MODEL] = steps[np.searchsorted(everybody.times, around, side="left")].mean(axis=0)
    told = None if X is None else _told(X, end, seed)
    return Diagnosis(offsets, survival, float(width), int(rows.size), told)


def _means_before(curves: SurvivalCurves, own_times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean prediction at each column of times, everybody's own; left limits, so that C* is before it."""
    return np.array([curves.before(own_times[:, j]).mean() for j in range(own_times.shape[1])])


def _told(X: Any, censoring_time: NDArray[np.float64], seed: int) -> float:
    """Return which share of the variance of C* can be told from covariates, by cross-validation."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_score

    try:
        features = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("X must hold numbers only; turn text and categories into numbers first") from None
    if features.ndim != 2:
        raise InputError(f"X must have shape (individuals, covariates), not {features.shape}")
    check_length("X", len(features), "y", censoring_time.size)
    rows = np.flatnonzero(np.isfinite(censoring_time))
    rows = np.random.default_rng(seed).permutation(rows)[:MOST_ROWS]
    if rows.size < 2 * N_FOLDS:
        raise InputError(f"X: {plural(rows.size, 'individual')} with a finite censoring_time are too few to learn from")
    folds = KFold(N_FOLDS, shuffle=True, random_state=seed)
    model = HistGradientBoostingRegressor(random_state=seed)
    return float(cross_val_score(model, features[rows], censoring_time[rows], cv=folds).mean())
