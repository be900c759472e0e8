"""Results as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Rows = Sequence[dict[str, Any]]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns line up; all but the first are set to the right."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = cells
        padded = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        return f"| {' | '.join(padded)} |"

    rule = line(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    return "\n".join([line(header), rule, *map(line, rows)])


def score_table(rows: Rows, floor: str) -> str:
    """Return times of floors, survscore and peers, and how well the peers' numbers agree."""
    own = [row for row in rows if row["kind"] != "peer"]
    peers = [row for row in rows if row["kind"] == "peer"]
    ours = table(
        ["", "ms", "fastest", "slowest", f"times {floor.partition(':')[0]}"],
        [[row["name"], *_spread(row), number(row.get("to_floor"))] for row in own],
    )
    theirs = table(
        [
            "other libraries",
            "ms",
            "fastest",
            "slowest",
            "times floor A",
            "times survscore",
            "max. difference",
            "convention",
        ],
        [
            [
                row["name"],
                *_spread(row),
                number(row.get("to_floor")),
                number(row.get("times_survscore")),
                f"{row['max_difference']:.0e}" if "max_difference" in row else "",
                row["convention"],
            ]
            for row in peers
        ],
    )
    return f"{ours}\n\n{theirs}"


def memory_table(rows: Rows) -> str:
    """Return the extra memory of each call."""
    return table(
        ["", "rows", "MB", "% of the matrix"],
        [
            [row["name"], spaced(row["rows"]), f"{row['bytes'] / 1e6:.1f}", f"{100 * row['share']:.1f}"]
            if "bytes" in row
            else [row["name"], spaced(row["rows"]), row["note"], ""]
            for row in rows
        ],
    )


def growth_table(rows: Rows) -> str:
    """Return times by size."""
    return table(
        ["rows", "cells", "path", "ms", "ns per cell"],
        [
            [
                spaced(row["rows"]),
                spaced(row["cells"]),
                row["path"],
                milliseconds(row["seconds"]["median"]) if "seconds" in row else "failed",
                number(row.get("ns_per_cell")),
            ]
            for row in rows
        ],
    )


def start_table(rows: Rows) -> str:
    """Return times of fresh processes."""
    return table(
        ["", "ms"],
        [
            [row["name"], row["seconds"] if isinstance(row["seconds"], str) else milliseconds(row["seconds"])]
            for row in rows
        ],
    )


def target_table(rows: Rows) -> str:
    """Return what was wanted and what was reached."""
    return table(
        ["target", "rows", "measured", ""],
        [
            [
                row["target"],
                spaced(row["rows"]),
                number(row["value"]),
                {True: "met", False: "NOT met", None: "-"}[row["met"]],
            ]
            for row in rows
        ],
    )


def _spread(row: dict[str, Any]) -> list[str]:
    if "seconds" not in row:
        return [row["note"], "", ""]
    return [milliseconds(row["seconds"][which]) for which in ("median", "fastest", "slowest")]


def spaced(count: int) -> str:
    """Return a count in groups of three digits."""
    return f"{count:,}".replace(",", " ")


def milliseconds(seconds: float) -> str:
    """Return three digits, and no exponent."""
    return number(1e3 * seconds)


def number(value: float | None) -> str:
    """Return three digits, and no exponent."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
