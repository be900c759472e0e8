"""Numbers as people read them, and tables of them: what scripts print, and what the documentation shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: What values are multiplied by to be shown in a unit; files hold seconds, bytes and shares.
UNITS = {"s": 1, "ms": 1e3, "MB": 1e-6, "GB": 1e-9, "%": 1e2}
FIELD = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")


def filled(template: str, row: Mapping[str, Any]) -> str:
    """Return a template with the values of a row in it: ``{seconds:ms} ({floors:.1f})`` becomes ``4.75 (1.0)``.

    After the colon comes a unit, or a format of Python's, or both. Text where there is one says why there is no number,
    and stands alone. If a value is missing, there is nothing to show.
    """
    fields = [(row.get(name), form) for name, form in FIELD.findall(template)]
    reason = next((value for value, form in fields if form and isinstance(value, str)), None)
    if reason is not None:
        return reason
    if any(value is None for value, _ in fields):
        return ""
    return FIELD.sub(lambda field: formatted(row[field[1]], field[2] or ""), template)


def formatted(value: Any, form: str = "") -> str:
    """Return a value in a form such as ``ms``, ``.1f`` or ``ms.1f``; without one, three digits, and counts in full."""
    if isinstance(value, str):
        return value
    unit = next((unit for unit in UNITS if form.startswith(unit)), "")
    if rest := form.removeprefix(unit):
        if not value and rest.endswith("e"):
            return "0"
        return format(value * UNITS.get(unit, 1), rest)
    return spaced(value) if isinstance(value, int) and not unit else number(value * UNITS.get(unit, 1))


def cells(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return what is shown of each row, by the templates of the columns."""
    return [[filled(template, row) for template in columns.values()] for row in rows]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown whose columns line up; all but the first are set to the right."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = cells
        padded = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        return f"| {' | '.join(padded)} |"

    rule = line(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    return "\n".join([line(header), rule, *map(line, rows)])


def spaced(count: int) -> str:
    """Return a count in groups of three digits."""
    return f"{count:,}".replace(",", " ")


def number(value: float) -> str:
    """Return three digits, and no exponent."""
    if abs(value) >= 10_000:
        return spaced(round(value))
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
