"""Files that the command line names, each with options of its own: ``name=file.csv[columns=month_{time},percent]``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._validation import InputError
from survscore.cli import options

if TYPE_CHECKING:
    from survscore.io import Form

FLAGS = ("percent", "transposed", "long")
SETTINGS = ("columns", "time-column", "grid", "interpolation", "extrapolation", "monotone", "predicts", "unit")


@dataclass(frozen=True)
class Source:
    """A file of predictions: what to call its model, where it is, and what is said of it alone."""

    name: str | None
    path: Path
    own: dict[str, Any]

    @classmethod
    def of(cls, given: Path | Source) -> Source:
        """Return what is meant by ``[NAME=]FILE[OPTIONS]``; a file that is called just so is that file."""
        if isinstance(given, Source):
            return given
        if given.exists():
            return cls(None, given, {})
        text, own = str(given), {}
        opens = text.rfind("[")
        if text.endswith("]") and opens > 0 and not _is_there(text.partition("=")[2]):
            own = own_options(text[opens + 1 : -1], text)
            text = text[:opens]
        name, equals, rest = text.partition("=")
        if equals and name and rest and not Path(text).exists():
            return cls(name, Path(rest), own)
        return cls(None, Path(text), own)

    @staticmethod
    def settings(name: str, value: str, whole: str) -> dict[str, Any]:
        """Return what one of `SETTINGS` says."""
        return {name.replace("-", "_"): _times(value, whole) if name == "grid" else value}

    def form(self, shared: Form) -> Form:
        """Return what the file looks like: as it is said of all, but for what is said of it alone."""
        try:
            return replace(shared, **self.own)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None


def _is_there(text: str) -> bool:
    return bool(text) and Path(text).exists()


def own_options(text: str, whole: str) -> dict[str, Any]:
    """Return the options that are in the brackets of a source."""
    own: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name.replace("-", "_") in own:
            raise InputError(f"{whole}: {name} is said twice")
        if name in FLAGS and not equals:
            own[name] = True
        elif name in SETTINGS and value:
            own |= Source.settings(name, value, whole)
        else:
            raise InputError(
                f"{whole}: in brackets there may be {', '.join(f'{setting}=...' for setting in SETTINGS)}, "
                f"{', '.join(FLAGS)}, separated by commas, not {part.strip()!r}"
            )
    return own


def _times(text: str, whole: str) -> Any:
    try:
        return options.Times().convert(text, None, click.get_current_context())
    except click.UsageError as error:
        raise InputError(f"{whole}: grid: {error.message}") from None


def shared_form(arguments: dict[str, Any]) -> Form:
    """Return what the options say of all files of predictions."""
    from survscore.io import Form

    names = ("grid", "columns", "time_column", "interpolation", "extrapolation", "monotone", "predicts", *FLAGS)
    return Form(**{name: arguments[name] for name in names}, unit=arguments["predictions_unit"])


def sources(paths: tuple[Path | Source, ...]) -> list[Source]:
    """Return the files of predictions that were named."""
    return [Source.of(path) for path in paths]
