"""Checks of vectors that live on a device, made there; see `_validation`, whose words these are."""

from __future__ import annotations

from typing import Any

import torch

from survscore._utils.arrays import to_device
from survscore._validation import InputError, check_rule


def as_vector(values: Any, name: str, device: Any, *, allow_infinite: bool = False) -> Any:
    """Return a float64 vector of numbers that are not negative; one that is so already is shared, not copied."""
    tensor = _one_dimensional(values, name, device)
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise InputError(f"{name} must hold numbers, not {tensor.dtype}")
    vector = tensor.to(torch.float64)
    if allow_infinite:
        check_rule(name, "a number", vector.isnan(), vector)
    else:
        check_rule(name, "finite", ~vector.isfinite(), vector)
    check_rule(name, "zero or larger", vector < 0, vector)
    return vector


def as_event(values: Any, device: Any, name: str = "event") -> Any:
    """Return a boolean vector from booleans or zeros and ones."""
    tensor = _one_dimensional(values, name, device)
    if tensor.dtype == torch.bool:
        return tensor
    if tensor.is_complex():
        raise InputError(f"{name} must hold booleans or 0 and 1, not {tensor.dtype}")
    check_rule(name, "0 or 1 (or boolean)", ~((tensor == 0) | (tensor == 1)), tensor)
    return tensor.to(torch.bool)


def _one_dimensional(values: Any, name: str, device: Any) -> Any:
    tensor = to_device(values, device)
    if tensor.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, not of shape {tuple(tensor.shape)}")
    return tensor.contiguous()
