"""What is timed of survscore, and the floor: the time it takes to read the predictions at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import survscore as ss
from data import Data

#: Makes everything ready, and returns what is to be timed.
Prepare = Callable[[Data], Callable[[], Any]]

FLOOR, FLOOR_VECTORISED = "floor A: one parallel sum over the matrix", "floor B: the same, vectorised"
ADMINISTRATIVE, KAPLAN_MEIER = "administrative Brier", "Kaplan-Meier IPCW Brier"
ADMINISTRATIVE_LOG = "administrative log loss"
TWO, FOUR = "both Briers (administrative, IPCW)", "both Briers, both log losses"
TWO_BETWEEN, TWO_RAW = "both Briers, between grid points", "both Briers, from raw arrays"
INDIVIDUAL = "IPCW Brier, individual G (n x m)"
PLAIN_OF_TWO = "two models, Brier, {}: scores alone"
ERRORS_OF_ONE = "one model, Brier, {}: with standard errors"
COMPARED = "two models, Brier, {}: compared"
COMPARED_WITH_NULL = "two models and Kaplan-Meier, Brier, {}: compared"

BOTH_WEIGHTINGS = ("administrative", "ipcw")
DROP_OUTS = "administrative with drop-outs"
WITH_ERRORS = (*BOTH_WEIGHTINGS, DROP_OUTS)


@cache
def _row_sums(vectorised: bool) -> Callable[[NDArray[Any], NDArray[np.float64]], None]:
    import numba

    # Only fastmath lets the compiler reorder a sum, which vectorising one means.
    @numba.njit(parallel=True, fastmath=vectorised)
    def row_sums(matrix, out):
        for i in numba.prange(matrix.shape[0]):
            total = 0.0
            for j in range(matrix.shape[1]):
                total += matrix[i, j]
            out[i] = total

    return row_sums


def _floor(vectorised: bool) -> Prepare:
    def prepare(data: Data) -> Callable[[], Any]:
        out = np.empty(len(data))
        return lambda: _row_sums(vectorised)(data.survival, out)

    return prepare


def _administrative(data: Data) -> Callable[[], Any]:
    y, curves = data.outcomes, data.curves
    return lambda: ss.brier_score(y, curves, weighting="administrative", times=data.grid, errors=False)


def _administrative_log(data: Data) -> Callable[[], Any]:
    y, curves = data.outcomes, data.curves
    return lambda: ss.log_loss(y, curves, weighting="administrative", times=data.grid, errors=False)


def _kaplan_meier(data: Data) -> Callable[[], Any]:
    y, curves = data.outcomes, data.curves
    return lambda: ss.brier_score(y, curves, weighting="ipcw", times=data.grid, errors=False)


def _two(data: Data) -> Callable[[], Any]:
    y, curves = data.outcomes, data.curves
    return lambda: ss.score_all(y, curves, metric="brier", weighting=BOTH_WEIGHTINGS, times=data.grid, errors=False)


def _two_between(data: Data) -> Callable[[], Any]:
    y, curves = data.outcomes, data.curves
    times = data.grid - data.grid[0] / 2
    return lambda: ss.score_all(y, curves, metric="brier", weighting=BOTH_WEIGHTINGS, times=times, errors=False)


def _two_raw(data: Data) -> Callable[[], Any]:
    def call() -> Any:
        y = ss.Outcomes(data.time, data.event, data.censoring_time)
        curves = ss.SurvivalCurves(data.survival, data.grid)
        return ss.score_all(y, curves, metric="brier", weighting=BOTH_WEIGHTINGS, times=data.grid, errors=False)

    return call


def _four(data: Data) -> Callable[[], Any]:
    y, curves = data.outcomes, data.curves
    return lambda: ss.score_all(y, curves, weighting=BOTH_WEIGHTINGS, times=data.grid, errors=False)


def _individual(data: Data) -> Callable[[], Any]:
    y, curves, weighting = data.outcomes, data.curves, ss.IPCW(data.censoring_curves)
    return lambda: ss.brier_score(y, curves, weighting=weighting, times=data.grid, errors=False)


def _outcomes(data: Data, weighting: str) -> tuple[ss.Outcomes, str]:
    """Return the outcomes to score and the weighting's name; with drop-outs, where that is asked for."""
    return (data.with_drop_outs, "administrative") if weighting == DROP_OUTS else (data.outcomes, weighting)


def _plain_of_two(weighting: str) -> Prepare:
    def prepare(data: Data) -> Callable[[], Any]:
        y, name = _outcomes(data, weighting)
        several = (data.curves, data.second_curves)
        return lambda: [ss.brier_score(y, c, weighting=name, times=data.grid, errors=False) for c in several]

    return prepare


def _errors_of_one(weighting: str) -> Prepare:
    def prepare(data: Data) -> Callable[[], Any]:
        y, name = _outcomes(data, weighting)
        return lambda: ss.brier_score(y, data.curves, weighting=name, times=data.grid)

    return prepare


def _compared(weighting: str, *, null: bool) -> Prepare:
    def prepare(data: Data) -> Callable[[], Any]:
        y, name = _outcomes(data, weighting)
        models = {"first": data.curves, "second": data.second_curves}
        return lambda: ss.compare(y, models, weighting=name, times=data.grid, null=null)

    return prepare


FLOORS: dict[str, Prepare] = {FLOOR: _floor(False), FLOOR_VECTORISED: _floor(True)}

OURS: dict[str, Prepare] = {
    ADMINISTRATIVE: _administrative,
    KAPLAN_MEIER: _kaplan_meier,
    TWO: _two,
    TWO_RAW: _two_raw,
    TWO_BETWEEN: _two_between,
    INDIVIDUAL: _individual,
    ADMINISTRATIVE_LOG: _administrative_log,
    FOUR: _four,
}
for _weighting in WITH_ERRORS:
    OURS[PLAIN_OF_TWO.format(_weighting)] = _plain_of_two(_weighting)
    OURS[ERRORS_OF_ONE.format(_weighting)] = _errors_of_one(_weighting)
    OURS[COMPARED.format(_weighting)] = _compared(_weighting, null=False)
    OURS[COMPARED_WITH_NULL.format(_weighting)] = _compared(_weighting, null=True)
