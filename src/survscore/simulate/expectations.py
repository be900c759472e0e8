"""What scores are expected to be where the truth is known: the paper's expectations, computed instead of sampled."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import FloatArray, InputError, as_times, as_vector, check_length, several
from survscore.causes import ALL_CAUSES, Cause
from survscore.censoring.distributions import CensoringDistribution, KnownCensoring
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.metrics import Loss, as_metric
from survscore.outcomes import Outcomes
from survscore.weighting import IPCW, Administrative, Uncensored, Weighting, as_weighting
from survscore.weighting.interval_weights import inverse

Array = NDArray[np.float64]
Curves = SurvivalCurves | IncidenceCurves


def expected_score(
    truth: Curves,
    curves: Curves,
    censoring_time: ArrayLike,
    *,
    weighting: str | Weighting,
    metric: str | Loss = "brier",
    times: ArrayLike,
    cause: Cause | None = None,
) -> Array:
    r"""Return the expectation of a score over event times, with censoring times and predictions fixed.

    With the loss :math:`\ell_1` of those event-free and :math:`\ell_0` of the others,

    - uncensored: the mean of :math:`\ell_0(\pi_i) [1 - S_i(t)] + \ell_1(\pi_i) S_i(t)`;
    - administrative: the same over those with :math:`C^*_i \ge t`;
    - IPCW with a G that is the same for all, or known: the mean of

      .. math::

          \ell_0(\pi_i) \int_0^{\min(t, C^*_i)} \frac{f_i(u)}{G(u-)}\,du
              + \ell_1(\pi_i) \frac{S_i(t)}{G(t)} 1\{C^*_i > t\}

      where :math:`G = 1` for known censoring times. Divided by the sum of the weights, as by default, it is the ratio
      of two expectations, which a score approaches as individuals get many; divided by n it is exact.

    Under competing risks :math:`1 - F_{ik}` takes the place of :math:`S_i`, and :math:`1 - \pi_i` is what is predicted
    for :math:`F_{ik}`. Under IPCW those who had an event of another cause get :math:`\ell_1`, weighted from their event
    on as those with an event of the cause are.

    Parameters
    ----------
    truth : SurvivalCurves or IncidenceCurves
        The true survival, or incidences. For IPCW, steps on the grid of all possible event times.
    curves : SurvivalCurves or IncidenceCurves
        What is predicted, for the same individuals.
    censoring_time : array_like of shape (n,)
        :math:`C^*`.
    weighting : str or Weighting
        ``"uncensored"``, ``"administrative"`` (no drop-outs), or `IPCW` with known censoring times, a function, or
        Kaplan-Meier of given outcomes. What is estimated from the scored outcomes themselves has no exact expectation.
    metric : {"brier", "log"} or Loss, default "brier"
    times : array_like of shape (m,)
    cause : str or int, optional
        Of incidence curves with several causes, the one that the score is of.

    Returns
    -------
    ndarray of shape (m,)
        NaN where no individual is counted.

    Examples
    --------
    The true survival is best under the administrative score, but not under IPCW with known censoring times:

    >>> import survscore as ss
    >>> from survscore.simulate import ConstantHazardStudy, expected_score
    >>> study = ConstantHazardStudy()
    >>> sample = study.sample(1000, seed=1)
    >>> truth, end = sample.survival(study.grid), sample.outcomes.censoring_time
    >>> falling = ss.SurvivalCurves(truth.probabilities * (end[:, None] > study.grid), study.grid, interpolation="step")
    >>> for weighting in ("administrative", ss.IPCW("known")):
    ...     scores = [expected_score(truth, one, end, weighting=weighting, times=[50]) for one in (truth, falling)]
    ...     print(*(f"{score[0]:.3f}" for score in scores))
    0.225 0.225
    0.259 0.189
    """
    check_length("curves", len(curves), "truth", len(truth))
    end = as_vector(censoring_time, "censoring_time", allow_infinite=True)
    check_length("censoring_time", end.size, "truth", len(truth))
    wanted, loss = as_times(times), as_metric(metric)
    if not isinstance(loss, Loss):
        raise InputError(f"metric must be a loss, which is known for each individual, not {loss.name!r}")
    chosen = as_weighting(weighting, Outcomes([0.0], [0]))
    predicted = np.asarray(_of_cause(curves, cause).at(wanted), dtype=np.float64)
    event_free, with_event = _expected_weights(truth, cause, end, chosen, wanted)
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = event_free * loss.of_event_free(predicted) + with_event * loss.of_event(predicted)
        by_n = isinstance(chosen, IPCW) and chosen.normalize == "n"  # the others' weights sum to the number counted
        divisor = float(len(truth)) if by_n else (event_free + with_event).sum(axis=0)
        return np.asarray(losses.sum(axis=0) / divisor)


def mean_squared_error(truth: Curves, curves: Curves, times: ArrayLike, *, cause: Cause | None = None) -> Array:
    r"""Return :math:`\mathrm{MSE}(t) = \frac1n \sum_i [S_i(t) - \pi_i(t)]^2` (eq:mse).

    The expected uncensored Brier score is this plus `irreducible_error`. Under competing risks it is that of the
    incidence of a cause, or the sum over event-free and all causes, as the multi-class score is.

    Parameters
    ----------
    truth, curves : SurvivalCurves or IncidenceCurves
        The true and the predicted survival of the same individuals, or their incidences.
    times : array_like of shape (m,)
    cause : str or int, optional
        Of incidence curves with several causes, the one in question; ``"all"`` for the sum over all statuses.

    Examples
    --------
    >>> import survscore as ss
    >>> truth, guess = (ss.SurvivalCurves([row], [1, 2]) for row in ([0.9, 0.5], [0.8, 0.5]))
    >>> ss.simulate.mean_squared_error(truth, guess, [1, 2]).round(4)
    array([0.01, 0.  ])
    """
    check_length("curves", len(curves), "truth", len(truth))
    wanted = as_times(times)
    if cause != ALL_CAUSES:
        differences = _of_cause(truth, cause).at(wanted) - _of_cause(curves, cause).at(wanted)
        return np.asarray(np.mean(np.square(differences), axis=0, dtype=np.float64))
    names = _all_causes(truth, "truth")
    if set(_all_causes(curves, "curves")) != set(names):
        raise InputError(f"curves must be of the causes of truth, {several([repr(name) for name in names])}")
    each = [mean_squared_error(truth, curves, wanted, cause=name) for name in names]
    free = mean_squared_error(truth.event_free(), curves.event_free(), wanted)  # type: ignore[union-attr]
    return np.asarray(free + sum(each))


def irreducible_error(truth: Curves, times: ArrayLike, *, cause: Cause | None = None) -> Array:
    r"""Return :math:`\frac1n \sum_i S_i(t) [1 - S_i(t)]`: the Brier score that even the truth has, at each time.

    Its arguments are those of `mean_squared_error`.
    """
    if cause == ALL_CAUSES:
        names = _all_causes(truth, "truth")
        free = irreducible_error(truth.event_free(), times)  # type: ignore[union-attr]
        return np.asarray(free + sum(irreducible_error(truth, times, cause=name) for name in names))
    survival = _of_cause(truth, cause).at(as_times(times))
    return np.asarray(np.mean(survival * (1.0 - survival), axis=0, dtype=np.float64))


def _all_causes(curves: Curves, name: str) -> tuple[str, ...]:
    if not isinstance(curves, IncidenceCurves):
        raise InputError(f"{name} must be IncidenceCurves, of all causes, for cause='all'")
    return curves.causes


def _of_cause(curves: Curves, cause: Cause | None) -> SurvivalCurves:
    """Return the probabilities of being without the event of interest."""
    if isinstance(curves, SurvivalCurves):
        return curves
    if cause is None and len(curves.causes) > 1:
        listed = several([repr(name) for name in curves.causes])
        raise InputError(f"the curves are of several causes ({listed}): say which one (cause=)")
    return curves.for_cause(curves.causes[0] if cause is None else cause)


def _expected_weights(
    curves: Curves, cause: Cause | None, end: Array, weighting: Weighting, times: Array
) -> tuple[Array, Array]:
    """Return the expected weights, (n, m), of individuals without the event of interest, and with it."""
    truth = _of_cause(curves, cause)
    survival = np.asarray(truth.at(times), dtype=np.float64)
    match weighting:
        case Uncensored():
            return survival, 1.0 - survival
        case Administrative(population=None):  # there is no drop-out here
            counted = end[:, None] >= times
            return survival * counted, (1.0 - survival) * counted
        case IPCW(estimated=False, censoring=CensoringDistribution() as censoring) if censoring.curves is None:
            pass
        case _:
            raise InputError(
                f"the expectation under {weighting} is not known: its weights depend on the scored outcomes or rows"
            )
    if truth.interpolation != "step":
        raise InputError("truth must be step curves on the grid of the event times, for the expectation under IPCW")
    grid = truth.times
    cap = np.inf if weighting.max_weight is None else weighting.max_weight
    if isinstance(censoring, KnownCensoring):
        at_events, at_times = np.ones(grid.size), np.ones(times.size)
    else:
        at_events = inverse(censoring.before(Outcomes(grid, np.ones(grid.size))), cap)
        at_times = inverse(censoring.at(times), cap)
    last = np.minimum(np.searchsorted(grid, times, side="right"), np.searchsorted(grid, end, side="right")[:, None])

    def seen(survival: FloatArray) -> Array:
        """Return the expected weights of events that end this curve, up to the times and to C*."""
        happens = -np.diff(survival.astype(np.float64), axis=1, prepend=1.0)
        weighted = np.multiply(happens, at_events, out=np.zeros_like(happens), where=happens > 0)
        cumulative = np.concatenate((np.zeros((len(happens), 1)), np.cumsum(weighted, axis=1)), axis=1)
        return np.take_along_axis(cumulative, last, axis=1)

    with_event, followed = seen(truth.probabilities), at_times * (end[:, None] > times)
    if isinstance(curves, SurvivalCurves):
        return survival * followed, with_event
    any_event = curves.event_free()
    others = seen(any_event.probabilities) - with_event
    return np.asarray(any_event.at(times)) * followed + others, with_event
