"""The form of a file of predictions: what its numbers are, and how they are laid out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from survscore._utils.dates import Unit, as_unit
from survscore._validation import InputError, check_choice, check_flag
from survscore.curves import PREDICTS, ExtrapolationKind, InterpolationKind, Monotone, Predicts


@dataclass(frozen=True, eq=False)
class Form:
    """What a file of predictions looks like, for `read_study` to take files of different forms at once.

    Parameters
    ----------
    grid, columns, interpolation, extrapolation, monotone, predicts, percent, transposed, long, unit, time_column
        As for `read_predictions`.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.io.Form(columns="month_{time}", unit="month", predicts="event").unit
    'M'
    """

    grid: ArrayLike | None = None
    columns: str | None = None
    interpolation: InterpolationKind | None = None
    extrapolation: ExtrapolationKind | None = None
    monotone: Monotone = "check"
    predicts: Predicts = "survival"
    percent: bool = False
    transposed: bool = False
    long: bool = False
    unit: Unit | str | None = None
    time_column: str | None = None

    def __post_init__(self) -> None:
        check_choice("predicts", self.predicts, PREDICTS)
        for name in ("percent", "transposed", "long"):
            check_flag(name, getattr(self, name))
        if self.transposed and self.long:
            raise InputError("transposed and long are two forms; a file has one")
        other = "transposed" if self.transposed else "long" if self.long else None
        if other and self.columns is not None:
            raise InputError(f"columns is for a column per time, not for {other} files")
        if self.time_column is not None and (self.transposed or self.columns is not None or self.grid is not None):
            raise InputError("time_column is for long files, with a row per individual and time")
        if other and self.grid is not None:
            raise InputError(f"grid is for list columns; {other} files say their times themselves")
        if self.unit is not None:
            object.__setattr__(self, "unit", as_unit("unit", self.unit))

    @property
    def said(self) -> dict[str, Any]:
        """What is not as usual, as plain data."""
        told = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        plain = {name: value for name, (value, usual) in told.items() if name != "grid" and value != usual}
        return plain if self.grid is None else {"grid": np.asarray(self.grid).tolist(), **plain}
