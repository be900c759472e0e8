"""Text in files that a spreadsheet may open: names that somebody else has chosen must not be formulas there.

The report's script does the same to its downloads.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any, Literal

from survscore._validation import without_controls

if TYPE_CHECKING:
    import pandas as pd

#: A sign that begins a formula, also a full-width one, and also after blanks, marks and what can't be seen.
FORMULA = re.compile(r"[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]|[\t\r]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def as_text(text: str) -> str:
    """Return text that a spreadsheet shows as it is: a quotation mark in front of what it would take for a formula.

    Examples
    --------
    >>> [as_text(text) for text in ("net", "=1+1", " @SUM(A1)", "-2.5", "-2+3")]
    ['net', "'=1+1", "' @SUM(A1)", '-2.5', "'-2+3"]
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def quoting(table: pd.DataFrame) -> Literal[0, 2]:
    r"""Return how the cells of a CSV file are quoted: all text, if some holds a carriage return.

    Python's writer leaves that as it is; a spreadsheet begins a new row there, whose first cell may be a formula.

    Examples
    --------
    >>> import csv
    >>> import pandas as pd
    >>> quoting(pd.DataFrame({"model": ["\r=HYPERLINK(1)"]})) == csv.QUOTE_NONNUMERIC
    True
    """
    texts = [*map(str, table.columns)]
    for _, column in table.items():
        texts += (
            [value for value in column.unique() if isinstance(value, str)] if column.dtype.kind not in "biufcmM" else []
        )
    return csv.QUOTE_NONNUMERIC if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL


def without_formulas(table: pd.DataFrame, *, printable: bool = False) -> pd.DataFrame:
    """Return a table for a CSV file, its text and the names of its columns by `as_text`; numbers stay numbers.

    Parameters
    ----------
    table : pandas.DataFrame
        What to write.
    printable : bool
        Spell out control characters as well, which would do something to a terminal.
    """

    def safe(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return as_text(without_controls(value) if printable else value)

    changed = table.copy(deep=False)
    for position, kind in enumerate(table.dtypes):
        if kind.kind not in "biufcmM":  # categories too
            changed.isetitem(position, [safe(value) for value in table.iloc[:, position]])
    return changed.set_axis([safe(name) for name in table.columns], axis=1)
