"""Models in files that can't run code: safetensors, with the settings as JSON in the same file's header."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError
from survscore._version import __version__
from survscore.causes import check_names

FORMAT = "survscore model, form 1"


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: the model's class, its parameters, what it learnt besides arrays, and the arrays."""

    path: Path
    model: str
    params: dict[str, Any]
    learnt: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @contextmanager
    def refusing_damage(self) -> Iterator[None]:
        """Turn whatever goes wrong with contents that don't fit together into one clear error."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError, IndexError) as error:
            raise InputError(f"{self.path} is damaged: its contents do not fit together ({error})") from None


def write(
    path: str | Path,
    model: str,
    params: Mapping[str, Any],
    learnt: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a model, whole or not at all: its class, what the user set and what was learnt as JSON, and the weights."""
    from safetensors.numpy import save_file

    from survscore.io.files import written_whole

    described = {"model": model, "version": __version__, "params": params, "learnt": learnt}
    header = {"format": FORMAT, "survscore": json.dumps(described, allow_nan=False, default=lambda of: of.tolist())}
    contents = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with written_whole(Path(path)) as temporary:
        save_file(contents, temporary, metadata=header)


def read(path: str | Path, *, expected: str | None = None) -> Stored:
    """Read a file made by `write`, or say what is wrong with it; `expected` is the class it must hold."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"there is no file {where}")
    try:
        content = where.read_bytes()  # not mapped into memory: if the file is shortened, the process is killed
        arrays = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__") or {}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where} is no model file, or a damaged one: {error}") from None
    if header.get("format") != FORMAT:
        raise InputError(f"{where} was not saved by survscore: its format is {header.get('format')!r}, not {FORMAT!r}")
    try:
        described = json.loads(header["survscore"])
        model, params, learnt = (described[name] for name in ("model", "params", "learnt"))
        if not (isinstance(model, str) and isinstance(params, dict) and isinstance(learnt, dict)):
            raise TypeError("settings of another kind")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{where} is damaged: its settings can't be read ({error})") from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{where} is damaged: {name} holds numbers that are not finite")
    if expected is not None and model != expected:
        raise InputError(f"{where} holds a {model}, not a {expected}")
    return Stored(where, model, params, learnt, arrays)


def as_causes(stored: Any) -> tuple[str, ...]:
    """Return the names of causes that a file holds."""
    if not isinstance(stored, list) or not all(isinstance(name, str) for name in stored):
        raise ValueError("causes are a list of names")
    if stored:
        check_names(stored)
    return tuple(stored)
