"""Tables as LaTeX with the rules of the package booktabs, of characters that the encodings OT1 and T1 both have."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, several, shown
from survscore.results.rounding import DOUBT, Number, typical_decimals

if TYPE_CHECKING:
    from survscore.results.tables import Tables

MATRIX = "models x metrics"
Layout = Literal["long", "models x metrics"]
LAYOUTS = ("long", MATRIX)
#: In points: the width of a page's text (article, 10pt), what is between two columns, and what names of models have at
#: least.
TEXT_WIDTH, GAP, LEAST_NAME = 345.0, 6.0, 65.0
#: Sizes of letters, and the mean width of one; and those of names and of intervals in the layout "models x metrics".
SIZES = {r"\footnotesize": 4.4, r"\scriptsize": 3.8}
LETTER, SMALL_LETTER = 4.4, 3.6  # intervals are mostly digits
MOST_METRICS = 5
NARROWEST_HEADING = 8  # letters
#: What stands for itself in no text, or for something else in one of the encodings.
SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{DEGREE SIGN}": r"$^\circ$",
    "\N{MICRO SIGN}": r"$\mu$",
    "\N{MIDDLE DOT}": r"$\cdot$",
    "\N{SUPERSCRIPT TWO}": "$^2$",
    "\N{SECTION SIGN}": r"\S{}",
    "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": "``",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
    "\N{LATIN SMALL LETTER SHARP S}": r"\ss{}",
    "\N{LATIN SMALL LETTER AE}": r"\ae{}",
    "\N{LATIN CAPITAL LETTER AE}": r"\AE{}",
    "\N{LATIN SMALL LIGATURE OE}": r"\oe{}",
    "\N{LATIN CAPITAL LIGATURE OE}": r"\OE{}",
    "\N{LATIN SMALL LETTER O WITH STROKE}": r"\o{}",
    "\N{LATIN CAPITAL LETTER O WITH STROKE}": r"\O{}",
    "\N{LATIN SMALL LETTER L WITH STROKE}": r"\l{}",
    "\N{LATIN CAPITAL LETTER L WITH STROKE}": r"\L{}",
    "\N{LATIN SMALL LETTER DOTLESS I}": r"\i{}",
}
#: Combining marks whose accents both encodings can make.
ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0323": "d",
    "\u0327": "c",
}
SIGNS |= {
    unicodedata.lookup(f"GREEK {case} LETTER {name.replace('ambda', 'amda')}"): f"$\\{name}$"
    for case, names in (
        (
            "SMALL",
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi",
        ),
        ("SMALL", "upsilon omega"),
        ("CAPITAL", "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"),
    )
    for name in names.split()
}
LIGATURES = re.compile(r"([-,`'])(?=\1)|([!?])(?=`)")  # in one encoding or both, such pairs become another sign


class Entry(NamedTuple):
    """A number of the layout "models x metrics"."""

    block: str  # what rows have in common: when, under which weighting
    model: str
    metric: str
    direction: str  # which values are better
    number: Number
    note: str = ""  # what stands below the table about it


def escaped(text: str) -> str:
    r"""Return text for LaTeX, with the same signs in the encodings OT1 and T1; what neither has is named by its number.

    Examples
    --------
    >>> from survscore.results.latex import escaped
    >>> print(escaped("p <0.001, Müller & Søn, 50 %"))
    p $<$0.001, M\"{u}ller \& S\o{}n, 50 \%
    """
    signs = text.replace(">=", "\N{GREATER-THAN OR EQUAL TO}").replace("<=", "\N{LESS-THAN OR EQUAL TO}")
    apart = LIGATURES.sub(lambda pair: pair[0] + "\0", signs)
    return "".join(map(_sign, apart))


def _sign(sign: str) -> str:
    if sign == "\0":
        return "{}"
    if sign in SIGNS:
        return SIGNS[sign]
    if " " <= sign <= "~":
        return sign
    decomposed = unicodedata.normalize("NFD", sign)
    base, marks = decomposed[0], decomposed[1:]
    if len(marks) == 1 and marks[0] in ACCENTS and base.isascii() and base.isalpha():
        dotless = {"i": r"\i", "j": r"\j"}.get(base, base) if marks[0] not in ("\u0323", "\u0327") else base
        return f"\\{ACCENTS[marks[0]]}{{{dotless}}}"
    return " " if sign.isspace() else f"[U+{ord(sign):04X}]"


def as_latex(
    tables: Tables, *, caption: str | None = None, label: str | None = None, notes: bool | Sequence[str] = True
) -> str:
    """Return all tables, each as it is printed; see `PrintedAsTables.to_latex`."""
    result = [f"{escaped(sentence)}\n" for sentence in tables.lead]
    for number, part in enumerate(tables.parts, start=1):
        told = "; ".join(text for text in (part.title, tables.caption if caption is None else caption) if text)
        rows = [[str(cell) for cell in row] for row in part.rows]
        letters = [max(map(len, column)) for column in zip(part.header, *rows, strict=True)]
        room = TEXT_WIDTH - GAP * (len(letters) - 1)
        size = next((size for size, letter in SIZES.items() if sum(letters) * letter <= room), list(SIZES)[-1])
        # what is still too wide has the longest names folded
        folds = int(np.argmax(letters[: part.n_words])) if part.n_words else -1
        left = room - SIZES[size] * (sum(letters) - letters[folds])
        folds = folds if left < SIZES[size] * letters[folds] else -1
        rows = [
            [_folded(_cell(cell), max(left, LEAST_NAME)) if k == folds else _cell(cell) for k, cell in enumerate(row)]
            for row in part.rows
        ]
        result += _table(
            told,
            _numbered(label, number, len(tables.parts)),
            f"@{{}}{part.align}@{{}}",
            [map(escaped, part.header)],
            [rows],
            part.notes if notes is True else notes or (),
            size,
        )
    return "\n".join(result)


def _cell(cell: str | Number) -> str:
    """Return a cell; of numbers, minus is a sign and no hyphen."""
    return escaped(cell) if isinstance(cell, str) else str(cell).replace("-", "$-$")


def _folded(text: str, width: float) -> str:
    return rf"\parbox[t]{{{width:.0f}pt}}{{\raggedright {text}\strut}}"


def _numbered(label: str | None, number: int, count: int) -> str | None:
    return label if label is None or count == 1 else f"{label}-{number}"


def _table(
    caption: str,
    label: str | None,
    align: str,
    header: Iterable[Iterable[str]],
    blocks: Iterable[Iterable[Iterable[str]]],
    notes: Iterable[str],
    size: str = r"\footnotesize",
) -> list[str]:
    """Return a table of rows of escaped cells, with a rule between blocks."""
    if label is not None and not re.fullmatch(r"[A-Za-z0-9:._/+-]+", label):
        raise InputError(f"label must be letters, digits and : . _ / + -, not {shown(label)!r}")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        *([rf"\label{{{label}}}"] if label is not None else []),
        size,
        rf"\setlength{{\tabcolsep}}{{{GAP / 2:g}pt}}",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        *(rf"{' & '.join(row)} \\" for row in header),
    ]
    for rows in blocks:
        lines += [r"\midrule", *(rf"{' & '.join(row)} \\" for row in rows)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    sentences = [f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in dict.fromkeys(notes)]
    if sentences:
        told = " ".join(map(escaped, sentences))
        lines += ["", r"\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize\raggedright {told}}}"]
    return [*lines, r"\end{table}", ""]


@dataclass(frozen=True)
class Matrix:
    """The layout "models x metrics": a row for each model, a column for each metric, intervals below the numbers.

    Blocks of rows, of one time and weighting, are below each other if they have the same metrics. Columns that are
    wider together than a page's text go on in another table.
    """

    entries: Sequence[Entry]
    caption: str
    label: str | None
    best: bool
    notes: Sequence[str]

    def to_latex(self) -> str:
        """Return the tables."""
        blocks: dict[str, list[Entry]] = {}
        for one in self.entries:
            blocks.setdefault(one.block, []).append(one)
        parts = []
        for metrics, names in groupby(blocks, key=lambda block: tuple(dict.fromkeys(e.metric for e in blocks[block]))):
            here = {name: blocks[name] for name in names}
            parts += [(here, columns) for columns in self._columns(metrics)]
        result: list[str] = []
        for number, (of, columns) in enumerate(parts, start=1):
            result += self._tabular(of, columns, _numbered(self.label, number, len(parts)))
        return "\n".join(result)

    @cached_property
    def texts(self) -> dict[Entry, tuple[str, str]]:
        """The numbers and their intervals, with as many decimals for all of a metric.

        So many that standard errors show two digits; or one, where then five metrics fit beside each other.
        """
        metrics = list(dict.fromkeys(one.metric for one in self.entries))
        usual, shorter = self._texts(0), self._texts(1)
        found: dict[Entry, tuple[str, str]] = {}
        for k in range(0, len(metrics), MOST_METRICS):
            some = metrics[k : k + MOST_METRICS]
            fits = sum(self._width(metric, usual) for metric in some) <= TEXT_WIDTH - LEAST_NAME
            found |= {one: text for one, text in (usual if fits else shorter).items() if one.metric in some}
        return found

    def _texts(self, fewer: int) -> dict[Entry, tuple[str, str]]:
        found: dict[Entry, tuple[str, str]] = {}
        for metric in dict.fromkeys(one.metric for one in self.entries):
            column = [one for one in self.entries if one.metric == metric]
            places = max(typical_decimals(one.number.se for one in column) - fewer, 0)
            found |= {one: _parts(one.number.rounded(places)) for one in column}
        return found

    def _width(self, metric: str, texts: Mapping[Entry, tuple[str, str]]) -> float:
        """Return the width of a column in points."""
        cells = [text for one, text in texts.items() if one.metric == metric]
        letters = max(*map(len, metric.split()), NARROWEST_HEADING, *(len(above) for above, _ in cells))
        return GAP + max(LETTER * letters, *(SMALL_LETTER * len(below) for _, below in cells))

    def _columns(self, metrics: Sequence[str]) -> list[dict[str, float]]:
        """Return metrics and the widths of their columns, as many together as fit beside the names."""
        chunks: list[dict[str, float]] = []
        for metric in metrics:
            width = self._width(metric, self.texts)
            fits = chunks and sum(chunks[-1].values()) + width <= TEXT_WIDTH - LEAST_NAME
            if fits and len(chunks[-1]) < MOST_METRICS:
                chunks[-1][metric] = width
            else:
                chunks.append({metric: width})
        return chunks

    def _tabular(
        self, blocks: Mapping[str, Sequence[Entry]], columns: Mapping[str, float], label: str | None
    ) -> list[str]:
        """Return one table: some metrics of all models, in blocks."""
        models = dict.fromkeys(one.model for entries in blocks.values() for one in entries)
        room, widest = TEXT_WIDTH - sum(columns.values()), LETTER * max(map(len, models))
        # headings stand at the bottom of as many lines as the longest takes
        folded = [
            textwrap.wrap(name, int((width - GAP) / LETTER), break_long_words=False) for name, width in columns.items()
        ]
        deepest = max(map(len, folded))
        above_each = zip(*([""] * (deepest - len(lines)) + [*map(escaped, lines)] for lines in folded), strict=True)
        across = min(widest, room) + sum(columns.values())
        body = []
        for name, entries in blocks.items():
            title = rf"\parbox{{{across:.0f}pt}}{{\raggedright\emph{{{escaped(name)}}}}}"
            rows = [[rf"\multicolumn{{{len(columns) + 1}}}{{@{{}}l@{{}}}}{{{title}}}"]] if len(blocks) > 1 else []
            best = {metric: self._best([one for one in entries if one.metric == metric]) for metric in columns}
            for model in models:
                of_metric = {one.metric: one for one in entries if one.model == model}
                cells = [self._cell(of_metric.get(metric), best[metric]) for metric in columns]
                rows += _row(model, cells, room, folds=widest > room) if of_metric else []
            body.append(rows)
        caption = self.caption if len(blocks) > 1 else "; ".join(filter(None, (self.caption, *blocks)))
        shown_here = [one for entries in blocks.values() for one in entries if one.metric in columns]
        align = f"@{{}}l{'c' * len(columns)}@{{}}"
        notes = [*_about(shown_here, len(models)), *self.notes]
        return _table(caption, label, align, [["", *row] for row in above_each], body, notes)

    def _best(self, entries: Sequence[Entry]) -> set[str]:
        """Return the best of a column as printed, where there is a choice; what is printed alike is as good."""
        known = {one: distance for one in entries if not math.isnan(distance := _distance(one))}
        if not self.best or len(known) < 2:
            return set()
        return {self.texts[one][0] for one, distance in known.items() if distance == min(known.values())}

    def _cell(self, entry: Entry | None, best: set[str]) -> tuple[str, str]:
        """Return a number and its interval below it, as LaTeX."""
        above, below = ("", "") if entry is None else self.texts[entry]
        told = above.replace("-", "$-$") or "--"
        small = rf"{{\scriptsize {below.replace('-', '$-$')}}}" if below else ""
        return (rf"\textbf{{{told}}}" if above in best else told), small


def _row(model: str, cells: Sequence[tuple[str, str]], room: float, *, folds: bool) -> list[list[str]]:
    """Return the lines of a model: numbers, and below them intervals; a long name takes the same lines, and more."""
    above, below = zip(*cells, strict=True)
    name, n_lines = escaped(model), 1
    if folds:
        name = rf"\smash{{{_folded(name, room)}}}"
        n_lines = len(textwrap.wrap(model, max(int(room / LETTER), 1))) or 1
    lines = [[rf"\addlinespace[2pt] {name}", *above]]
    lines += [["", *below]] if any(below) or n_lines > 1 else []
    return lines + [[""] * (len(cells) + 1)] * (n_lines - 2)


def _about(entries: Iterable[Entry], n_models: int) -> list[str]:
    """Return what is noted about numbers, once for all models of which it is true."""
    models: dict[tuple[str, str], dict[str, None]] = {}
    for one in entries:
        if one.note:
            models.setdefault((one.metric, one.note), {})[one.model] = None
    return [
        f"{metric}: {note}" if len(who) == n_models else f"{metric}, {several(list(who))}: {note}"
        for (metric, note), who in models.items()
    ]


def _parts(number: Number) -> tuple[str, str]:
    """Return a number with its mark, and its interval."""
    value, lower, upper = number.parts
    mark = DOUBT if number.doubtful else ""
    return value and value + mark, f"({lower}, {upper})" if lower else ""


def _distance(entry: Entry) -> float:
    """Return how far a value is from the best there could be; NaN where no value is better than another."""
    value = entry.number.value
    match entry.direction.split():
        case ["lower"]:
            return value
        case ["higher"]:
            return -value
        case ["closer", "to", target]:
            return abs(value - float(target))
    return math.nan
