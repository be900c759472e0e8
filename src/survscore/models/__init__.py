"""Models that make survival curves: the paper's two methods, classifiers per horizon, and baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import safetensors as _safetensors  # noqa: F401
    import sklearn as _sklearn  # noqa: F401
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError(f"models need {_error.name}: pip install 'survscore[models]'") from None

from survscore._validation import InputError
from survscore.models import saving as _saving
from survscore.models.baselines import AalenJohansen, KaplanMeier
from survscore.models.estimators import BCESurvival, LogisticHazard
from survscore.models.history import TrainingHistory, ValidationScore
from survscore.models.horizon_classifiers import HorizonClassifiers

__all__ = [
    "AalenJohansen",
    "BCESurvival",
    "HorizonClassifiers",
    "KaplanMeier",
    "LogisticHazard",
    "TrainingHistory",
    "ValidationScore",
    "load",
]

_STORED = {model.__name__: model for model in (LogisticHazard, BCESurvival)}


def load(path: str | Path, **options: Any) -> LogisticHazard | BCESurvival:
    """Read whichever network a file holds that was made by its `save`.

    Parameters
    ----------
    path : path
        Of the file.
    **options
        For the network's own `load`: `net` and `device`.

    Returns
    -------
    The fitted network.
    """
    name = _saving.read(path).model
    if name not in _STORED:
        raise InputError(f"{path} holds a {name!r}, which this version does not know")
    return _STORED[name].load(path, **options)
