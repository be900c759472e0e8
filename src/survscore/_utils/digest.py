"""What identifies inputs, so that results of others are not taken for theirs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in what Python prints of an object without a description of its own


def digest(*parts: Any) -> str:
    """Return a hash of arrays, frames, dataclasses, mappings, sequences, estimators' parameters and plain values.

    Of functions and classes it knows the names alone, not what they do.

    Examples
    --------
    >>> import numpy as np
    >>> from survscore._utils.digest import digest
    >>> digest(np.arange(3), {"seed": 1}) == digest(np.arange(3), {"seed": 1})
    True
    >>> digest(np.arange(3), {"seed": 1}) == digest(np.arange(3), {"seed": 2})
    False
    """
    whole = hashlib.sha256()
    for part in parts:
        _add(whole, part)
    return whole.hexdigest()


def _add(whole: Any, part: Any) -> None:
    whole.update(f"<{type(part).__module__}.{type(part).__qualname__}>".encode())
    if isinstance(part, np.ndarray) and part.dtype != object:
        whole.update(f"{part.dtype.str}{part.shape}".encode())
        whole.update(np.ascontiguousarray(part).view(np.uint8).data if part.size else b"")
    elif hasattr(part, "iloc") and hasattr(part, "columns"):
        import pandas as pd

        _add(whole, [(str(name), str(kind)) for name, kind in part.dtypes.items()])
        whole.update(pd.util.hash_pandas_object(part, index=False).to_numpy().tobytes())
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            _add(whole, getattr(part, field.name))
    elif isinstance(part, Mapping):
        _add(whole, list(part.items()))
    elif isinstance(part, (list, tuple, np.ndarray)):
        whole.update(str(len(part)).encode())
        for one in part:
            _add(whole, one)
    elif hasattr(part, "get_params") and not isinstance(part, type):
        _add(whole, sorted(part.get_params(deep=False).items()))
    elif callable(part):
        whole.update(f"{part.__module__}.{getattr(part, '__qualname__', '')}".encode())
    else:
        whole.update(ADDRESS.sub("", repr(part)).encode(errors="backslashreplace"))
