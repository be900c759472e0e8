"""Put the numbers of ``scores.py --json FILE`` into the tables of docs/performance.rst: python tables.py FILE."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from report import number, spaced

PAGE = Path(__file__).parent.parent / "docs" / "performance.rst"
SIZES = ("100000", "1000000")
Rows = list[list[str]]


def main(path: str) -> None:
    """Replace the first six tables of the page, which are those of the scores."""
    results = json.loads(Path(path).read_text())
    tables = [times(results), peers(results), memory(results), growth(results), start(results), targets(results)]
    page = PAGE.read_text()
    found = list(re.finditer(r"\.\. list-table::\n   :header-rows: 1\n\n(?:   .*\n)+", page))
    for place, rows in reversed(list(zip(found, tables, strict=False))):
        page = page[: place.start()] + list_table(rows) + page[place.end() :]
    PAGE.write_text(page)


def list_table(rows: Rows) -> str:
    """Return a table in reStructuredText."""
    lines = [f"   {'* ' if k == 0 else '  '}- {cell}" for row in rows for k, cell in enumerate(row)]
    return ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(lines) + "\n"


def _sizes(first: str) -> list[str]:
    return [first, *(f"{spaced(int(n))} x 150" for n in SIZES)]


def _milliseconds(row: dict[str, Any], ratio: str) -> str:
    if "seconds" not in row:
        return str(row["note"])
    return f"{number(1e3 * row['seconds']['median'])} ({row[ratio]:.1f})"


def times(results: dict[str, Any]) -> Rows:
    """Return floors and our own calls."""
    columns = [[row for row in results["scores"][n] if row["kind"] != "peer"] for n in SIZES]
    rows = [_sizes("milliseconds (times the floor)")]
    both = zip(*columns, strict=True)
    return rows + [[a["name"], *(_milliseconds(row, "to_floor") for row in (a, b))] for a, b in both]


def peers(results: dict[str, Any]) -> Rows:
    """Return what other libraries take."""
    columns = [[row for row in results["scores"][n] if row["kind"] == "peer"] for n in SIZES]
    rows = [_sizes("other libraries: milliseconds (times survscore's counterpart)")]
    both = zip(*columns, strict=True)
    return rows + [[a["name"], *(_milliseconds(row, "times_survscore") for row in (a, b))] for a, b in both]


def memory(results: dict[str, Any]) -> Rows:
    """Return extra memory at its peak."""
    found: dict[str, dict[int, str]] = {}
    for row in results["memory"]:
        measured = row.get("note") or f"{row['bytes'] / 1e6:.1f} ({100 * row['share']:.1f})"
        found.setdefault(row["name"], {})[row["rows"]] = measured
    rows = [_sizes("peak memory beyond the inputs, MB (% of the matrix)")]
    return rows + [[name, *(by_size.get(int(n), "not run") for n in SIZES)] for name, by_size in found.items()]


def growth(results: dict[str, Any]) -> Rows:
    """Return time by size."""
    return [["rows", "cells", "path", "ms", "ns per cell"]] + [
        [
            spaced(row["rows"]),
            spaced(row["cells"]),
            row["path"],
            number(1e3 * row["seconds"]["median"]),
            number(row["ns_per_cell"]),
        ]
        for row in results["growth"]
    ]


def start(results: dict[str, Any]) -> Rows:
    """Return what a fresh process pays."""
    return [["start, in a fresh process", "milliseconds"]] + [
        [row["name"], number(1e3 * row["seconds"])] for row in results["start"]
    ]


def targets(results: dict[str, Any]) -> Rows:
    """Return targets, and whether they were met."""
    return [["target", "rows", "measured", "met"]] + [
        [row["target"], spaced(row["rows"]), number(row["value"]), "met" if row["met"] else "NOT met"]
        for row in results["targets"]
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
