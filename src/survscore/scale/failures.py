"""Errors of workers as plain data: a cluster would try again what can't succeed, and log it as its own trouble."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from survscore._validation import InputError
from survscore.scale.files import BadFileError
from survscore.scale.memory import MemoryLimitError
from survscore.scale.specification import BinsNeededError

KINDS: dict[str, type[InputError]] = {
    one.__name__: one for one in (InputError, BadFileError, BinsNeededError, MemoryLimitError)
}


@dataclass(frozen=True)
class Failure:
    """What was wrong with the data of a task.

    Attributes
    ----------
    kind : str
        The class of the error.
    told : tuple of str
        What it was made of.
    """

    kind: str
    told: tuple[str, ...]

    @classmethod
    def of(cls, error: InputError) -> Failure:
        """Return an error as plain data."""
        if isinstance(error, BadFileError):
            return cls(BadFileError.__name__, (error.file, error.what))
        kind = next(name for name in (type(error).__name__, InputError.__name__) if name in KINDS)
        return cls(kind, (str(error),))

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps([self.kind, *self.told])

    @classmethod
    def from_json(cls, text: str) -> Failure:
        """Take what `to_json` returned."""
        kind, *told = json.loads(text)
        return cls(kind, tuple(told))

    def throw(self) -> NoReturn:
        """Raise what was raised on the worker."""
        raise KINDS[self.kind](*self.told)


def attempted(do: Callable[..., bytes], *arguments: Any) -> bytes | Failure:
    """Return what a function returns, or why the data are refused; other errors are the cluster's."""
    try:
        return do(*arguments)
    except InputError as error:
        return Failure.of(error)


def check_importable(error: BaseException, cluster: str) -> None:
    """Raise in plain words if what went wrong is that a worker has no survscore."""
    seen: BaseException | None = error
    while seen is not None:
        if "No module named 'survscore" in str(seen):
            raise InputError(
                f"the workers of {cluster} can't import survscore: install the same version there as here, or send it "
                "to them (see the page on clusters)"
            ) from None
        seen = seen.__cause__ or seen.__context__
