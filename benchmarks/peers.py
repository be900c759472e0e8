"""The same scores by other libraries: one small adapter each.

Every adapter takes the data as its library wants them and returns a call that gives the score at each time of the grid.
Where a library follows another convention, `Peer.expected` is survscore's result under that convention, so that the
two can be compared number by number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import survscore as ss
from data import Data
from ours import ADMINISTRATIVE, ADMINISTRATIVE_LOG, INDIVIDUAL, KAPLAN_MEIER, Prepare

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Peer:
    """A score of another library.

    Parameters
    ----------
    prepare : callable
        Makes the inputs ready, and returns the call to be timed.
    counterpart : str
        The call of survscore that computes the same.
    convention : str
        Where it differs from survscore's default.
    expected : callable
        survscore's result under that convention.
    most_rows : int, optional
        It is not run on more rows than this, because of `reason`.
    """

    prepare: Prepare
    counterpart: str
    convention: str
    expected: Callable[[Data], Scores]
    most_rows: int | None = None
    reason: str = ""


# pycox takes times x individuals. Its models return the transposed view of a matrix individuals x times, which is what
# `by_time=False` stands for; with `by_time=True` it gets a copy in the order in which it reads, made before the clock
# starts. Only its integrated scores need a function that SciPy has removed; they are not called.


def _pycox_administrative(by_time: bool) -> Prepare:
    def prepare(data: Data) -> Callable[[], Scores]:
        evaluation = _pycox_evaluation(data, by_time)
        return lambda: evaluation.brier_score_admin(data.grid).to_numpy()

    return prepare


def _pycox_administrative_log(by_time: bool) -> Prepare:
    def prepare(data: Data) -> Callable[[], Scores]:
        evaluation = _pycox_evaluation(data, by_time)
        return lambda: evaluation.nbll_admin(data.grid).to_numpy()

    return prepare


def _pycox_individual(by_time: bool) -> Prepare:
    def prepare(data: Data) -> Callable[[], Scores]:
        import pandas as pd

        evaluation = _pycox_evaluation(data, by_time)
        censoring = data.censoring_survival_by_time if by_time else data.censoring_survival.T
        evaluation.add_censor_est(pd.DataFrame(censoring, index=data.grid))
        return lambda: evaluation.brier_score(data.grid).to_numpy()

    return prepare


def _pycox_kaplan_meier(by_time: bool) -> Prepare:
    def prepare(data: Data) -> Callable[[], Scores]:
        from pycox.evaluation import ipcw
        from pycox.utils import kaplan_meier

        events = data.event.astype(np.int64)
        curve = kaplan_meier(data.time, 1 - events)
        # It wants a column of G per individual, at every jump: a view of one column, for nobody could hold them all.
        matrix = np.broadcast_to(curve.to_numpy()[:, None], (curve.size, len(data)))
        jumps = curve.index.to_numpy()
        survival = data.survival_by_time if by_time else data.survival.T
        return lambda: ipcw.brier_score(data.grid, data.time, events, survival, matrix, data.grid, jumps)

    return prepare


def _pycox_kaplan_meier_built(data: Data) -> Callable[[], Scores]:
    return lambda: _pycox_evaluation(data, by_time=False, censor_surv="km").brier_score(data.grid).to_numpy()


def _pycox_evaluation(data: Data, by_time: bool, **options: Any) -> Any:
    import pandas as pd
    from pycox.evaluation import EvalSurv

    frame = pd.DataFrame(data.survival_by_time if by_time else data.survival.T, index=data.grid)
    return EvalSurv(frame, data.time, data.event.astype(np.int64), censor_durations=data.censoring_time, **options)


# The others take individuals x times, the very matrix that survscore takes.


def _scikit_survival(data: Data) -> Callable[[], Scores]:
    from sksurv.metrics import brier_score

    y = data.outcomes.to_structured()
    return lambda: brier_score(y, y, data.survival, data.grid)[1]


def _hazardous(data: Data) -> Callable[[], Scores]:
    import pandas as pd
    from hazardous.metrics import brier_score_survival

    y = pd.DataFrame({"event": data.event.astype(np.int64), "duration": data.time})
    return lambda: brier_score_survival(y, y, data.survival, data.grid)


def _survival_eval(data: Data) -> Callable[[], Scores]:
    from SurvivalEVAL.evaluations.prediction_error.brier_score import brier_multiple_points

    return lambda: brier_multiple_points(
        data.survival, data.time, data.event, data.time, data.event, data.grid, ipcw=True
    )


def _torchsurv(data: Data) -> Callable[[], Scores]:
    """Weights are given. Its own are in `_torchsurv_built`."""
    import torch
    from torchsurv.metrics.brier_score import BrierScore

    censoring = ss.KaplanMeierCensoring(data.outcomes)
    event_weight = torch.from_numpy(1 / censoring.before(data.outcomes)).float()
    free_weight = torch.from_numpy(1 / censoring.at(data.grid)).float()
    tensors = _torch_inputs(data)
    # instate=False: do not keep sorted copies for confidence intervals
    return lambda: BrierScore()(*tensors, event_weight, free_weight, instate=False).numpy()


def _torchsurv_built(data: Data) -> Callable[[], Scores]:
    from torchsurv.metrics.brier_score import BrierScore
    from torchsurv.stats.ipcw import get_ipcw

    survival, event, time, grid = _torch_inputs(data)

    def call() -> Scores:
        event_weight, free_weight = get_ipcw(event, time), get_ipcw(event, time, grid)
        return BrierScore()(survival, event, time, grid, event_weight, free_weight, instate=False).numpy()

    return call


def _torch_inputs(data: Data) -> tuple[Any, Any, Any, Any]:
    import torch

    return (
        torch.from_numpy(data.survival),
        torch.from_numpy(data.event),
        torch.from_numpy(data.time).float(),  # it turns times into float32 in any case
        torch.from_numpy(data.grid).float(),
    )


# What survscore gives under the peers' conventions


def _brier(data: Data, weighting: str | ss.IPCW) -> Scores:
    return ss.brier_score(data.outcomes, data.curves, weighting=weighting, times=data.grid).scores


def _after_event(data: Data) -> ss.CensoringFunction:
    """Return the Kaplan-Meier estimate read at T, not just before it."""
    G = ss.KaplanMeierCensoring(data.outcomes)
    return ss.CensoringFunction(G.at, left_limit=G.at)


def _divided_by_n(data: Data) -> Scores:
    return _brier(data, ss.IPCW(normalize="n"))


def _divided_by_n_after_event(data: Data) -> Scores:
    return _brier(data, ss.IPCW(_after_event(data), normalize="n"))


def _divided_by_n_after_event_capped(data: Data) -> Scores:
    return _brier(data, ss.IPCW(_after_event(data), normalize="n", max_weight=20))


def _log(data: Data) -> Scores:
    return ss.log_loss(data.outcomes, data.curves, weighting="administrative", times=data.grid).scores


def _pycox_peers(by_time: bool) -> dict[str, Peer]:
    order = ", copied by time" if by_time else ""
    return {
        f"pycox, administrative Brier{order}": Peer(
            _pycox_administrative(by_time), ADMINISTRATIVE, "the same", lambda data: _brier(data, "administrative")
        ),
        f"pycox, administrative log-likelihood{order}": Peer(
            _pycox_administrative_log(by_time), ADMINISTRATIVE_LOG, "the same", _log
        ),
        f"pycox, Kaplan-Meier IPCW, G given{order}": Peer(
            _pycox_kaplan_meier(by_time), KAPLAN_MEIER, "the same", lambda data: _brier(data, "ipcw")
        ),
        f"pycox, individual G (n x m){order}": Peer(
            _pycox_individual(by_time),
            INDIVIDUAL,
            "the same",
            lambda data: _brier(data, ss.IPCW(data.censoring_curves)),
        ),
    }


PEERS: dict[str, Peer] = {
    **_pycox_peers(by_time=False),
    **_pycox_peers(by_time=True),
    "pycox, Kaplan-Meier IPCW, G built": Peer(
        _pycox_kaplan_meier_built,
        KAPLAN_MEIER,
        "the same",
        lambda data: _brier(data, "ipcw"),
        most_rows=10_000,
        reason="distinct times x n",
    ),
    "scikit-survival, brier_score": Peer(
        _scikit_survival, KAPLAN_MEIER, "G(T), divides by n", _divided_by_n_after_event
    ),
    "hazardous, brier_score_survival": Peer(
        _hazardous, KAPLAN_MEIER, "G(T) at least 0.05, divides by n", _divided_by_n_after_event_capped
    ),
    "SurvivalEVAL, brier_multiple_points": Peer(_survival_eval, KAPLAN_MEIER, "G(t-), divides by n", _divided_by_n),
    "torchsurv, BrierScore, weights given": Peer(_torchsurv, KAPLAN_MEIER, "divides by n; float32", _divided_by_n),
    "torchsurv, BrierScore, weights built": Peer(
        _torchsurv_built,
        KAPLAN_MEIER,
        "G(T), divides by n; float32",
        _divided_by_n_after_event,
        most_rows=100_000,
        reason="a loop in Python",
    ),
}
