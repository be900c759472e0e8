"""Finished parts of a long run, kept in a folder so that an interrupted run continues where it stopped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd

from survscore._validation import InputError
from survscore.analysis.backtest_results import Day
from survscore.io.files import check_regular, written_whole

KEY_LENGTH = 16  # of the digest in names of files
MOST_BYTES = 1 << 28  # of a day
#: Of every array of a day, its types, and its axes: weightings, models, pairs, horizons, draws, halves.
AXES = {
    "date": ("M", ""),
    "weightings": ("U", "w"),
    "n": ("iu", ""),
    "n_events": ("iu", ""),
    "judged": ("f", "h"),
    "scores": ("f", "wmh"),
    "truth": ("f", "mh"),
    "truth_se": ("f", "mh"),
    "sure": ("b", "ph"),
    "claimed": ("b", "wph"),
    "recommended": ("i", "ph"),
    "drawn_scores": ("f", "dwmh"),
    "drawn_truth": ("f", "dmh"),
    "half_scores": ("f", "swmh"),
    "half_truth": ("f", "smh"),
    "half_sure": ("b", "sph"),
    "half_claimed": ("b", "swph"),
    "half_recommended": ("i", "sph"),
    "undefined": ("Uf", "u"),
}


class Checkpoints:
    """Finished days, one file each, named after the day and a digest of all that determines it."""

    def __init__(self, folder: Path | str, key: str) -> None:
        self.folder = Path(folder)
        self.key = key[:KEY_LENGTH]
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"state must be a folder, and {str(folder)!r} is a file")

    def read(self, date: np.datetime64) -> Day | None:
        """Return a day that was finished; None if it was not."""
        path = self._path(date)
        if not path.exists():
            return None
        check_regular(path)
        try:
            with ZipFile(path) as members:  # before anything is unpacked
                inside = members.infolist()
            size = sum(member.file_size for member in inside)
            if {member.filename for member in inside} != {f"{name}.npy" for name in AXES} or size > MOST_BYTES:
                raise ValueError(f"it holds {len(inside)} arrays of {size} bytes, not those of a day")
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                values: dict[str, Any] = {name: stored[name] for name in AXES}
            _check_shapes(values)
        except (BadZipFile, KeyError, ValueError, EOFError, OSError) as error:
            raise InputError(
                f"state: {path.name} can't be read ({error}); remove it to have that day done anew"
            ) from None
        values |= {name: tuple(values[name].tolist()) for name in ("weightings", "undefined")}
        values |= {"date": values["date"][()], "n": int(values["n"]), "n_events": int(values["n_events"])}
        return Day(**values)

    def write(self, day: Day) -> None:
        """Keep a finished day, whole or not at all."""
        path = self._path(day.date)
        with written_whole(path) as temporary, temporary.open("wb") as file:
            values: dict[str, Any] = {name: np.asarray(getattr(day, name)) for name in AXES}
            np.savez(file, **values)

    def _path(self, date: np.datetime64) -> Path:
        stamp = str(date.astype("datetime64[s]")).replace(":", "")
        return self.folder / f"{stamp}-{self.key}.npz"


def _check_shapes(found: Mapping[str, Any]) -> None:
    """Raise unless arrays have the axes and the types of a day's."""
    sizes: dict[str, int] = {}
    for name, values in found.items():
        kinds, axes = AXES[name]
        if values.dtype.kind not in kinds or values.ndim != len(axes):
            raise ValueError(f"{name} is of type {values.dtype} with {values.ndim} axes")
        for axis, size in zip(axes, values.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(f"{name} has {size} along an axis on which others have {sizes[axis]}")
    if found["n"] < 0 or not 0 <= found["n_events"] <= found["n"]:
        raise ValueError(f"it claims {found['n']} individuals and {found['n_events']} events")


ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in what Python prints of an object without a description of its own


def digest(*parts: Any) -> str:
    """Return a hash of arrays, frames, dataclasses, mappings, sequences, estimators' parameters and plain values.

    Of functions and classes it uses the names alone, not what they do.
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
    elif isinstance(part, pd.DataFrame):
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
