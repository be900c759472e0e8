"""How long work tells where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Is told (done, total, what is being done).
Progress: TypeAlias = Callable[[int, int, str], None]


def silent(done: int, total: int, what: str) -> None:
    """Tell nobody."""
