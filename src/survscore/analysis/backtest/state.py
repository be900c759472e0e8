"""The days of a backtest that are done, kept in a folder so that a run goes on where it was interrupted."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from survscore._utils.files import written_whole
from survscore._validation import InputError
from survscore.analysis.backtest.results import Day

KEY_LENGTH = 16  # of the digest in names of files


class Kept:
    """Finished days, one file each, named after the day and a digest of all that determines it.

    Parameters
    ----------
    folder : path, optional
        Made when the first day is kept; None keeps nothing.
    key : str
        The digest.
    """

    def __init__(self, folder: Path | str | None, key: str) -> None:
        self.folder = None if folder is None else Path(folder)
        self.key = key[:KEY_LENGTH]
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"state must be a folder, and {str(folder)!r} is a file")

    def read(self, date: np.datetime64) -> Day | None:
        """Return a day that was finished; None if it was not."""
        path = self._path(date)
        if path is None or not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                found = {field.name: stored[field.name] for field in fields(Day)}
        except (BadZipFile, KeyError, ValueError, EOFError, OSError) as error:
            raise InputError(
                f"state: {path.name} can't be read ({error}); remove it to have that day done anew"
            ) from None
        found["weightings"] = tuple(found["weightings"].tolist())
        return Day(**{name: value.item() if name in ("n", "n_events") else value[()] if name == "date" else value
                      for name, value in found.items()})  # fmt: skip

    def write(self, day: Day) -> None:
        """Keep a finished day, whole or not at all."""
        path = self._path(day.date)
        if path is None:
            return
        with written_whole(path) as temporary, temporary.open("wb") as file:
            values: dict[str, Any] = {field.name: np.asarray(getattr(day, field.name)) for field in fields(Day)}
            np.savez(file, **values)

    def _path(self, date: np.datetime64) -> Path | None:
        if self.folder is None:
            return None
        stamp = str(date.astype("datetime64[s]")).replace(":", "")
        return self.folder / f"{stamp}-{self.key}.npz"
