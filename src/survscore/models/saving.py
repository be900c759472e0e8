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
    """Write a model, whole or not at all.

    Parameters
    ----------
    path : path
        Of the file.
    model : str
        The name of its class.
    params, learnt : mapping
        Plain data: what the user set, and what was learnt.
    arrays : mapping of str to ndarray
        The weights.
    """
    from safetensors.numpy import save_file

    described = {"model": model, "version": __version__, "params": _plain(params), "learnt": _plain(learnt)}
    header = {"format": FORMAT, "survscore": json.dumps(described, allow_nan=False)}
    contents = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    from survscore.io.files import written_whole

    with written_whole(Path(path)) as temporary:
        save_file(contents, temporary, metadata=header)


def read(path: str | Path, *, expected: str | None = None) -> Stored:
    """Read a file made by `write`, or say what is wrong with it.

    Parameters
    ----------
    path : path
        Of the file.
    expected : str, optional
        The class it must hold.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"there is no file {where}")
    try:
        content = where.read_bytes()  # not mapped into memory: if somebody shortens the file, the process is killed
        arrays = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__") or {}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where} is no model file, or a damaged one: {error}") from None
    if header.get("format") != FORMAT:
        raise InputError(f"{where} was not saved by survscore: its format is {header.get('format')!r}, not {FORMAT!r}")
    try:
        described = json.loads(header["survscore"])
        parts = {name: described[name] for name in ("model", "params", "learnt")}
        kinds = {"model": str, "params": dict, "learnt": dict}
        if not all(isinstance(parts[name], kind) for name, kind in kinds.items()):
            raise TypeError("settings of another kind")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{where} is damaged: its settings can't be read ({error})") from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{where} is damaged: {name} holds numbers that are not finite")
    stored = Stored(where, parts["model"], parts["params"], parts["learnt"], arrays)
    if expected is not None and stored.model != expected:
        raise InputError(f"{where} holds a {stored.model}, not a {expected}")
    return stored


def as_causes(stored: Any) -> tuple[str, ...]:
    """Return the names of causes that a file holds."""
    if not isinstance(stored, list) or not all(isinstance(name, str) for name in stored):
        raise ValueError("causes are a list of names")
    if stored:
        check_names(stored)
    return tuple(stored)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with arrays and NumPy numbers as plain ones; what JSON can't hold is refused there."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _plain(value)
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value

    return {name: plain(value) for name, value in settings.items()}
