"""How few individuals IPCW rests on, and whether its ranking depends on the cap of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import row_blocks
from survscore._validation import InputError
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import averaging_weights
from survscore.engine.evaluation import Evaluation
from survscore.outcomes import Outcomes
from survscore.weighting import IPCW
from survscore.weighting.interval_weights import TimeIndex

if TYPE_CHECKING:
    import pandas as pd

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
    parts = []
    try:
        mean, _ = averaging_weights(evaluation.times, worst, None, None, "stop", scored[0].undefined)
    except InputError:  # at no time is there a score
        return pd.DataFrame(columns=["max_weight", "model", "score", "rank"])
    used = np.flatnonzero(mean)
    for cap, one in zip(CAPS, scored, strict=True):
        scores = one.scores[:, used] @ mean[used]
        ranks = 1 + (scores[:, None] > scores).sum(axis=1)
        limit = np.inf if cap is None else cap
        parts.append(
            pd.DataFrame({"max_weight": limit, "model": list(evaluation.names), "score": scores, "rank": ranks})
        )
    return pd.concat(parts, ignore_index=True)
