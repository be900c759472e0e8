"""Where a score is computed: where the predictions live. Outcomes follow them; matrices are never moved unasked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._utils import arrays
from survscore._validation import DeviceMemoryError, InputError
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Predictions
from survscore.outcomes import Outcomes
from survscore.weighting import Weighting


def check_on_processor(subject: str, y: Any, models: Mapping[str, Any]) -> None:
    """Raise if tensors on a device are given to what needs NumPy arrays."""
    names = [f"the curves of {name!r}" for name, curves in models.items() if getattr(curves, "device", None)]
    named = [*(["y"] if getattr(y, "device", None) else []), *names]
    if named:
        raise InputError(
            f"{subject} works with NumPy arrays in the processor's memory, not with tensors: give .numpy() of "
            f"{' and '.join(named)}"
        )


def on_processor(y: Any, curves: SurvivalCurves, times: NDArray[np.float64]) -> tuple[Any, SurvivalCurves]:
    """Return outcomes and curves as NumPy arrays; of tensors only the predictions at these times are copied."""
    if curves.device is None:
        return (y.numpy() if isinstance(y, Outcomes) else y), curves
    if not curves.reaches(times).all():
        raise InputError(f"there are no predictions at {times[-1]:g}: they end at {curves.times[-1]:g}")
    read = SurvivalCurves(
        arrays.to_host(curves.at(times)), times, interpolation="step", extrapolation="hold", monotone="keep"
    )
    return (y.numpy() if isinstance(y, Outcomes) else y), read.numpy()


def placed(
    y: Outcomes, models: Mapping[str, Predictions], weightings: list[Weighting]
) -> tuple[Outcomes, dict[str, Predictions], list[Weighting]]:
    """Return everything where the predictions live.

    Outcomes are moved, which are three vectors. Curves are not: in the processor's memory, NumPy arrays and tensors
    share it.
    """
    device = _device_of(models)
    if device is None:
        return y.numpy(), dict(models), [weighting.placed(None) for weighting in weightings]
    curves = {name: model if model.device == device else model.to(device) for name, model in models.items()}
    return y if y.device == device else y.to(device), curves, [weighting.placed(device) for weighting in weightings]


@contextmanager
def device_memory(device: Any) -> Iterator[None]:
    """Turn a device's lack of memory into an error that says what to do."""
    if device is None:
        yield
        return
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        reason = str(error).split(". ")[0]
        raise DeviceMemoryError(
            f"{device} has too little memory left for what scoring needs beside the predictions: {reason}. Free other "
            "tensors, score fewer models or times in one call, predict in batches (CurveBatches), or score in the "
            "processor's memory (curves.numpy())"
        ) from error


def _device_of(models: Mapping[str, Predictions]) -> Any:
    """Return the device that holds the predictions: None for NumPy arrays, unless torch was asked for."""
    devices = {name: curves.device for name, curves in models.items()}
    if config.backend == "torch":
        try:
            import torch
        except ImportError:
            raise InputError("config.backend='torch' needs torch: pip install torch") from None
        devices = {name: torch.device("cpu") if device is None else device for name, device in devices.items()}
    if len(set(devices.values())) > 1:
        places = ", ".join(
            f"{name!r} " + ("in the processor's memory" if device is None else f"on {device}")
            for name, device in devices.items()
        )
        raise InputError(f"curves must all be in one place: {places}; move them with .to(device) or .numpy()")
    device = next(iter(devices.values()))
    if device is not None and device.type not in ("cpu", "cuda"):
        raise InputError(f"scores are computed on CUDA devices or the processor, not on {device}: give .numpy()")
    return device
