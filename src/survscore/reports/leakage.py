"""Signs that predictions encode C* and that IPCW is misled: in words, tables, and means around C*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError
from survscore.analysis.diagnose import diagnose
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.reports import verdicts
from survscore.reports.comparing import Table, as_table, plain, rows_of
from survscore.weighting import IPCW, Weighting


def around_censoring(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weightings: Sequence[Weighting],
    times: NDArray[np.float64],
    groups: ArrayLike | None,
    level: float,
) -> dict[str, Any]:
    """Return the signs that IPCW is misled and that predictions encode C*: in words, tables, and means around C*."""
    nothing: dict[str, Any] = {
        "curves": {}, "falls": {}, "weights": {}, "caps": {}, "ipcw": None, "sentences": [], "width": None, "n": 0,
    }  # fmt: skip
    if y.censoring_time is None:
        return {"missing": "that needs C* of each individual", **nothing}
    questioned = next((one for one in weightings if isinstance(one, IPCW)), "ipcw")
    try:
        diagnosis = diagnose(y, models, weighting=questioned, times=times, groups=groups, level=level)
    except InputError as error:
        return {"missing": str(error), **nothing}
    curves: Table = {"model": [], "offset": [], "survival": []}
    for name, mean in diagnosis.survival.items():
        curves["model"] += [name] * mean.size
        curves["offset"] += diagnosis.offsets.tolist()
        curves["survival"] += [plain(value) for value in mean.tolist()]
    return {
        "missing": None,
        "curves": curves,
        "falls": as_table(diagnosis.models),
        "weights": as_table(diagnosis.weights),
        "caps": as_table(diagnosis.caps),
        "ipcw": diagnosis.ipcw,
        "sentences": list(diagnosis.sentences),
        "width": diagnosis.width,
        "n": diagnosis.n,
    }


def leak_sentences(around: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each model how far it falls right after C*, and what that says."""
    return [
        {"model": row["model"], "verdict": row["verdict"], "sentence": verdicts.leak_sentence(row)}
        for row in rows_of(around["falls"])
    ]
