"""How much memory an evaluation takes, known before it takes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from survscore._validation import InputError, check_whole, plural
from survscore.io.limits import machine_memory
from survscore.scale.files import AHEAD, REMOTE_BLOCK, ROWS
from survscore.scale.specification import Specification
from survscore.scale.sums import bytes_of, sizes_of

MOST_SEGMENTS = 100_000
FEWEST_ROWS = 1 << 14  # at a time; fewer take hardly less memory, and more time
LIBRARIES = 200 << 20  # before the first row is read
COLUMN = 4 << 20  # a page of a Parquet column as it is stored and as it is read, and its dictionary
ROW, CELL = 200, 16  # of outcomes and what is computed from them; of a prediction, read and in the order of segments
COPIES = 3  # of sums: where they are added up, and for every thread, with those that wait to be added
FOR_SUMS = 8  # the part of the memory that is left to them in any case
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


class MemoryLimitError(InputError):
    """The evaluation would take more memory than `memory_limit` allows."""


@dataclass(frozen=True)
class Budget:
    """How many rows each thread may read at a time, how many threads there may be, and how large sums may become."""

    rows: int
    threads: int
    table_bytes: int

    @classmethod
    def of(cls, limit: int | None, columns: int, threads: int, *, remote: bool, lean: bool = False) -> Budget:
        """Return a budget for a limit in bytes: fewer rows at a time if need be, then fewer threads.

        Without limit, sums may fill half of the machine's memory, and reading takes what it takes. If `lean`, most is
        left to sums: one thread reads little at a time. Of files that are `remote`, row groups are read ahead.
        """

        def reading(rows: int) -> int:
            ahead = max(AHEAD, columns * REMOTE_BLOCK) if remote else 0
            return threads * (columns * COLUMN + rows * (ROW + CELL * columns) + ahead)

        if limit is None:
            return cls(ROWS, threads, machine_memory() // 2 // (COPIES * (1 + threads)))
        room, rows, threads = limit - LIBRARIES - limit // FOR_SUMS, ROWS, 1 if lean else threads
        while threads > 1 and reading(FEWEST_ROWS) > room:
            threads -= 1
        while rows > FEWEST_ROWS and (lean or reading(rows) > room):
            rows //= 2
        left = limit - LIBRARIES - reading(rows)
        if left < 0:
            raise MemoryLimitError(
                f"`memory_limit` of {as_text(limit)} is too little: {as_text(limit - left)} are needed to read "
                f"{columns} columns; raise it, or score fewer models or times at once"
            )
        return cls(rows, threads, left // (COPIES * (1 + threads)))


def table_bytes(what: Specification, segments: int, bins: int) -> int:
    """Return how large the sums of so many segments and bins are."""
    return len(what.in_one_pass) * bytes_of(sizes_of(what, segments=segments, bins=bins))


def check_tables(what: Specification, segments: int, bins: int, limit: int | None) -> None:
    """Raise if there are too many segments, or sums of them are too large, before they are made."""
    if segments > MOST_SEGMENTS:
        raise MemoryLimitError(
            f"by={list(what.by)} makes more than {MOST_SEGMENTS:,} segments: probably one of them is a column of ids, "
            "not of labels that many share"
        )
    factors = [f"{segments:,} segments"] if what.by else []
    factors += [f"{bins:,} times of leaving"] if bins > 1 else []
    counts = {"time": len(what.times), "model": len(what.models), "weighting": len(what.weightings)}
    factors += [plural(count, noun) for noun, count in counts.items()]
    check_bytes(table_bytes(what, segments, bins), limit, f"sums of {' x '.join(factors)}")


def check_bytes(size: int, limit: int | None, what: str) -> None:
    """Raise if something takes more memory than there may be, before it is made."""
    if limit is not None and size > limit:
        raise MemoryLimitError(
            f"{what} take {as_text(size)}, several times over, and {as_text(limit)} fit in memory: "
            "have fewer segments, fewer times or a coarser unit of time, fewer threads, or raise `memory_limit`"
        )


def as_bytes(limit: Any) -> int | None:
    """Return a number of bytes from a number, or from a text such as ``"1GB"`` or ``"512 MiB"``."""
    if limit is None:
        return None
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", limit.lower())
        if match is None or match[2] not in UNITS:
            raise InputError(f"`memory_limit` must be a number of bytes, or like '1GB' or '512MiB', not {limit!r}")
        return int(float(match[1]) * UNITS[match[2]])
    check_whole("memory_limit", limit, 1)
    return int(limit)


def as_text(size: int) -> str:
    """Return a number of bytes in words."""
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{max(size / 1e6, 0.1):.3g} MB"
