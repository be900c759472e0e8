"""Tables: the same cells as text, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import Unit, plural_word
from survscore._validation import InputError, check_choice
from survscore.results.latex import LAYOUTS, MATRIX, Layout, Matrix, MatrixEntry, as_latex, first_as_headings
from survscore.results.rounding import DOUBT, Number, typical_decimals

WIDTH = 80  # columns of a terminal
LONGEST_BESIDE = 14  # letters of a name beside its numbers, where there is little room
MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>"})  # after it nothing is a mark
LEFT = "text-align:left"
RIGHT = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
ON_TOO_FEW = f"{DOUBT.strip()} too few events for a reliable interval"
SCOPED = " (1)"  # behind an administrative verdict on a model that encodes C*
ON_SCOPED = f"{SCOPED.strip()} for individuals with C* >= t only: one of the two models encodes C*"

Cell = str | Number


class Line(NamedTuple):
    """A row of a printed result, before it is rounded; lines of one `unit` have the same number of decimals."""

    words: tuple[str, ...]
    numbers: tuple[Number | None, ...]
    rest: tuple[str, ...] = ()
    unit: str = ""


def spread_over(places: NDArray[np.intp], most: int) -> list[int]:
    """Return so many places at most, the first and the last among them, and others as far apart as can be."""
    chosen = np.linspace(0, places.size - 1, min(most, places.size)).round().astype(int)
    return [int(place) for place in places[chosen]]


@dataclass(frozen=True)
class Part:
    """One table as plain data, of texts and of numbers with intervals, for terminals, pages, notebooks and LaTeX.

    The first columns are words, as many as `align` begins with l; of two, the first is only printed where it changes.
    """

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    notes: tuple[str, ...]  # below
    align: str  # for each column, l or r; other letters are kinds of columns on pages, on the left
    split: int = 0  # where the columns are parted, if they don't fit beside each other; 0 for wherever they don't

    @property
    def n_words(self) -> int:
        """How many columns of words come first."""
        return len(self.align) - len(self.align.lstrip("l"))

    @classmethod
    def of(
        cls,
        title: str,
        header: tuple[str, ...],
        lines: Sequence[Line],
        notes: Iterable[str],
        align: str,
        split: int = 0,
        *,
        decimals: Callable[[Iterable[float]], int] = typical_decimals,
    ) -> Part:
        """Round the numbers of some lines by their standard errors, and say what marks mean.

        Lines of one unit have as many decimals; a later column never has fewer than those before it.
        """
        rows: list[tuple[Cell, ...]] = []
        for _, of_unit in groupby(lines, key=lambda line: line.unit):
            same, columns, places = list(of_unit), list[list[Cell]](), 0
            for values in zip(*(line.numbers for line in same), strict=True):
                places = max(places, decimals(value.se for value in values if value is not None))
                columns.append(["" if value is None else value.rounded(places) for value in values])
            numbers = zip(*columns, strict=True)
            rows += [(*line.words, *cells, *line.rest) for line, cells in zip(same, numbers, strict=True)]
        doubtful = any(isinstance(cell, Number) and cell.doubtful for row in rows for cell in row)
        scoped = any(word.endswith(SCOPED) for line in lines for word in line.rest)
        marks = [*([ON_SCOPED] if scoped else []), *([ON_TOO_FEW] if doubtful else [])]
        return cls(title, header, rows, (*dict.fromkeys(notes), *marks), align, split)


@dataclass(frozen=True)
class Tables:
    """Several tables, and what holds for all of them."""

    caption: str
    parts: Sequence[Part]
    lead: Sequence[str] = ()  # sentences that come first


class PrintedAsTables(ABC):
    """A result that prints as tables, and turns into those of a paper or a page."""

    @abstractmethod
    def _printed(self) -> Tables:
        """Return what is shown."""

    def to_text(self, width: int = WIDTH) -> str:
        """Return the tables for a terminal with so many columns."""
        return as_text(self._printed(), width)

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return as_markdown(self._printed())

    def to_latex(
        self,
        *,
        layout: Layout = "long",
        caption: str | None = None,
        label: str | None = None,
        unit: Unit | str | None = None,
        best: bool = False,
        notes: bool | Sequence[str] = True,
    ) -> str:
        r"""Return the tables as LaTeX in UTF-8, for the encodings OT1 and T1. It needs booktabs and graphicx.

        Parameters
        ----------
        layout : {"long", "models x metrics"}
            As printed; or, of comparisons and tables of scores, small enough for a paper: a row for each model, a
            column for each metric, intervals below the numbers. No table is wider than the text.
        caption : str, optional
            By default what is printed above the tables.
        label : str, optional
            For ``\ref``; several tables are numbered: ``label-1``, ``label-2``.
        unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
            What times are counted in; only in the layout "models x metrics".
        best : bool
            Whether the best numbers are bold; only in the layout "models x metrics".
        notes : bool or sequence of str
            Whether notes stand below, or which.

        Returns
        -------
        str
        """
        check_choice("layout", layout, LAYOUTS)
        printed = self._printed()
        if layout == "long":
            if best or unit is not None:
                raise InputError(f"best and unit are for layout={MATRIX!r}")
            return as_latex(printed, caption=caption, label=label, notes=notes)
        entries, own = self._entries(None if unit is None else plural_word(unit))
        below = [*own, *(["bold: the best of each column and block"] if best else [])] if notes is True else notes or ()
        return Matrix(entries, printed.caption if caption is None else caption, label, best, below).to_latex()

    def _entries(self, unit: str | None) -> tuple[list[MatrixEntry], Sequence[str]]:
        """Return the numbers of the layout "models x metrics" and notes; `unit` is that of times, in words."""
        raise InputError(f"layout={MATRIX!r} is for comparisons and tables of scores, not for {type(self).__name__}")

    def to_html(self) -> str:
        """Return the tables as HTML; names are escaped."""
        return as_html(self._printed())

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return str(self)


def _padded(part: Part, fill: str = " ") -> list[tuple[str, ...]]:
    """Return cells as text; in a column, numbers with as many decimals stand with their points below each other."""
    columns: list[list[str]] = []
    for cells in zip(*part.rows, strict=True):
        numbers = [cell for cell in cells if isinstance(cell, Number)]
        widths: dict[int, NDArray[np.intp]] = {}
        for number in numbers:
            own = np.array([len(text) for text in number.parts])
            widths[number.decimals] = np.maximum(own, widths.get(number.decimals, 0))
        # a mark behind one of them must not move the others
        room = len(DOUBT) * fill if any(number.doubtful for number in numbers) else ""
        columns.append(
            [cell if isinstance(cell, str) else cell.padded(widths[cell.decimals], fill, room) for cell in cells]
        )
    return list(zip(*columns, strict=True))


def as_text(tables: Tables, width: int = WIDTH) -> str:
    """Return the tables for a terminal with so many columns.

    A table that is wider has its columns closer, then its first column on lines of its own, then long names, too; and
    if all that is not enough, its columns in several blocks.
    """
    result = [_wrapped(sentence, width) for sentence in tables.lead]
    result += [""] if tables.lead else []
    result += [_wrapped(tables.caption, width)] if tables.caption else []
    for place, part in enumerate(tables.parts):
        result += [""] if place or (result and part.title) else []
        result += [_wrapped(part.title, width)] if part.title else []
        result += [*_fitted(part, width), *(_wrapped(note, width) for note in part.notes)]
    return "\n".join(result)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class _Grid:
    """Cells as they are printed. A row of one cell is a heading, which may be wider than its column."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    n_words: int

    def widths(self) -> list[int]:
        """Return how wide the columns are."""
        full_rows = (row for row in self.rows if len(row) == len(self.header))
        return [max(map(len, cells)) for cells in zip(self.header, *full_rows, strict=True)]

    def width(self, gap: int) -> int:
        """Return how wide all is."""
        return sum(self.widths()) + gap * (len(self.header) - 1)

    def lines(self, gap: int) -> list[str]:
        """Return the lines, with so many blanks between columns."""
        widths = self.widths()

        def line(cells: Sequence[str]) -> str:
            if len(cells) == 1:
                return cells[0]
            placed = (
                cell.ljust(wide) if side == "l" else cell.rjust(wide)
                for cell, wide, side in zip(cells, widths, self.align, strict=True)
            )
            return (" " * gap).join(placed).rstrip()

        return [line(self.header), "-" * self.width(gap), *map(line, self.rows)]

    def merged(self) -> _Grid:
        """Return the first column as headings, above names that are set in."""
        header, rows = first_as_headings(self.header, self.rows, "  ")
        return _Grid(header, rows, self.align[1:], self.n_words - 1)

    def with_headings(self, most: int, width: int) -> _Grid:
        """Return names of more than so many letters as headings above their numbers, in lines of this width."""
        rows: list[Sequence[str]] = []
        for row in self.rows:
            name = row[0].lstrip()
            indent = " " * (len(row[0]) - len(name))
            if len(row) > 1 and len(row[0]) > most:
                lines = textwrap.wrap(name, width, initial_indent=indent, subsequent_indent=f"{indent}  ")
                rows += [(line,) for line in lines]
                rows.append((f"{indent}  ", *row[1:]))
            else:
                rows.append(row)
        return replace(self, rows=rows)

    def columns(self, chosen: Sequence[int]) -> _Grid:
        """Return some columns beside the words, without the rows that say nothing in these."""
        places = [*range(self.n_words), *chosen]
        rows: list[Sequence[str]] = []
        heading: list[Sequence[str]] = []
        for row in self.rows:
            if len(row) == 1:  # below another heading, or in its place
                heading = [*heading, row] if row[0].startswith(" ") else [row]
                continue
            if any(row[column].strip() for column in chosen):
                rows += [*heading, tuple(row[column] for column in places)]
                heading = []
            heading = [one for one in heading if not one[0].startswith(" ")]
        header = tuple(self.header[column] for column in places)
        return _Grid(header, rows, "".join(self.align[column] for column in places), self.n_words)

    def blocks(self, width: int, split: int) -> list[str]:
        """Return the columns in blocks below each other, each with the names; a block begins with column `split`."""
        chosen: list[list[int]] = []
        for column in range(self.n_words, len(self.header)):
            if chosen and column != split and self.columns([*chosen[-1], column]).width(2) <= width:
                chosen[-1].append(column)
            else:
                chosen.append([column])
        result: list[str] = []
        for block in chosen:
            result += [*([""] if result else []), *self.columns(block).lines(2)]
        return result


def _fitted(part: Part, width: int) -> list[str]:
    """Return the lines of a table that is no wider."""
    grid = _Grid(part.header, _padded(part), part.align, part.n_words)
    tries = [grid, grid.merged()] if grid.n_words > 1 and part.rows else [grid]
    for attempt in tries:
        for gap in (2, 1):
            if attempt.width(gap) <= width:
                return attempt.lines(gap)
    grid = tries[-1]
    if grid.n_words:
        own = grid.widths()[0]
        grid = grid.with_headings(max(LONGEST_BESIDE, own - (grid.width(1) - width)), width)
    return grid.lines(1) if grid.width(1) <= width else grid.blocks(width, part.split - (part.n_words - grid.n_words))


def as_markdown(tables: Tables) -> str:
    """Return the tables as Markdown."""

    def line(cells: Iterable[Cell]) -> str:
        return "| " + " | ".join(str(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"

    result = [f"{sentence.translate(MARKDOWN)}\n" for sentence in tables.lead]
    result += [tables.caption.translate(MARKDOWN)] if tables.caption else []
    for part in tables.parts:
        sides = [":---" if side == "l" else "---:" for side in part.align]
        result += ["", f"**{part.title.translate(MARKDOWN)}**"] if part.title else []
        result += ["", line(part.header), "| " + " | ".join(sides) + " |", *map(line, part.rows)]
        result += ["", *(f"- {note.translate(MARKDOWN)}" for note in part.notes)] if part.notes else []
    return "\n".join(result) + "\n"


def as_html(tables: Tables) -> str:
    """Return the tables as HTML for notebooks; what users name is escaped."""
    result = ["<div class='survscore-table'>", *(f"<p>{html.escape(sentence)}</p>" for sentence in tables.lead)]
    result += [f"<p>{html.escape(tables.caption)}</p>"] if tables.caption else []
    for part in tables.parts:
        title = f"<caption style='{LEFT}'>{html.escape(part.title)}</caption>" if part.title else ""
        result.append(f"<table>{title}{html_rows(part)}</table>")
        result += [f"<p><small>{html.escape(note)}</small></p>" for note in part.notes]
    return "\n".join([*result, "</div>"])


def styled_cell(tag: str, align: str, text: str) -> str:
    """Return a cell that has its own style, since notebooks leave out style sheets."""
    return f'<{tag} style="{RIGHT if align == "r" else LEFT}">{html.escape(text)}</{tag}>'


def html_rows(
    part: Part,
    cell: Callable[[str, str, str], str] = styled_cell,
    row_attributes: Sequence[str] = (),
    headings: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """Return the head and the body of a table as HTML.

    `cell` makes a cell of the name of its element, the alignment (or kind) of its column, and its text, which it
    escapes. `headings` are rows of HTML that stand before rows, by the number of these.
    """

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(cell(tag, align, text) for align, text in zip(part.align, cells, strict=True))

    rows = _padded(part, "\u2007")  # as wide as a digit
    attributes = row_attributes or [""] * len(rows)
    body = [
        f"{headings.get(k, '')}<tr{more}>{line(row, 'td')}</tr>"
        for k, (row, more) in enumerate(zip(rows, attributes, strict=True))
    ]
    return "\n".join([f"<thead><tr>{line(part.header, 'th')}</tr></thead>", "<tbody>", *body, "</tbody>"])
