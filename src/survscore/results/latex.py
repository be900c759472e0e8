"""Tables as LaTeX, in UTF-8: with the rules of the package booktabs, and no wider than the text, by graphicx."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, several, shown
from survscore.results.rounding import DOUBT, Number, typical_decimals

if TYPE_CHECKING:
    from survscore.results.tables import Tables

MATRIX = "models x metrics"
Layout = Literal["long", "models x metrics"]
LAYOUTS = ("long", MATRIX)
MOST_METRICS, HEADING = 5, 16  # columns of a table, and letters of a line of their headings
#: As wide as it is, or as the text is where that is less.
FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
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
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
}
#: Other signs that LaTeX knows in both encodings, OT1 and T1, those after the caret left out.
KNOWN = re.compile(r"[ -~–—‘’“”†‡…]|(?![«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲų])[¡-ž]")
GREEK = re.compile(r"GREEK (?:SMALL|(CAPITAL)) LETTER (\w+)")
GREEK_COMMANDS = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
LIGATURES = re.compile(r"([-,`'])(?=\1)|([!?])(?=`)")  # in one encoding or both, such pairs become another sign


class MatrixEntry(NamedTuple):
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
    p $<$0.001, Müller \& Søn, 50 \%
    """
    signs = text.replace(">=", "\N{GREATER-THAN OR EQUAL TO}").replace("<=", "\N{LESS-THAN OR EQUAL TO}")
    apart = LIGATURES.sub(lambda pair: pair[0] + "\0", unicodedata.normalize("NFC", signs))
    return "".join(map(_sign, apart))


def _sign(sign: str) -> str:
    if sign == "\0":
        return "{}"
    if sign in SIGNS or KNOWN.match(sign):
        return SIGNS.get(sign, sign)
    greek = GREEK.fullmatch(unicodedata.name(sign, ""))
    if greek is not None:
        command = greek[2].lower().replace("lamda", "lambda")
        command = command.capitalize() if greek[1] else command
        if GREEK_COMMANDS.fullmatch(command):
            return f"$\\{command}$"
    return " " if sign.isspace() else f"[U+{ord(sign):04X}]"


def as_latex(
    tables: Tables, *, caption: str | None = None, label: str | None = None, notes: bool | Sequence[str] = True
) -> str:
    """Return all tables, each as it is printed; see `PrintedAsTables.to_latex`."""
    result = [f"{escaped(sentence)}\n" for sentence in tables.lead]
    for number, part in enumerate(tables.parts, start=1):
        title = "; ".join(text for text in (part.title, tables.caption if caption is None else caption) if text)
        header: Sequence[str] = part.header
        rows: Sequence[Sequence[str]] = [[_cell(cell) for cell in row] for row in part.rows]
        if part.n_words == 2:
            header, rows = first_as_headings(header, rows, r"\quad ")
            wide = rf"\multicolumn{{{len(header)}}}{{@{{}}l@{{}}}}"
            rows = [[f"{wide}{{{row[0]}}}"] if len(row) == 1 else row for row in rows]
        below, numbered = part.notes if notes is True else notes or (), _numbered(label, number, len(tables.parts))
        result += _table(title, numbered, part.align[-len(header) :], map(escaped, header), [rows], below)
    return "\n".join(result)


def first_as_headings(
    header: Sequence[str], rows: Iterable[Sequence[str]], indent: str
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return a table with its first column as headings, rows of one cell, above names that are set in.

    A heading may be longer than its column.
    """
    merged: list[Sequence[str]] = []
    for row in rows:
        merged += [(row[0],)] if row[0] else []
        merged.append((f"{indent}{row[1]}", *row[2:]))
    return (header[0] or header[1], *header[2:]), merged


def _cell(cell: str | Number) -> str:
    """Return a cell; of numbers, minus is a sign and no hyphen."""
    return escaped(cell) if isinstance(cell, str) else str(cell).replace("-", "$-$")


def _numbered(label: str | None, number: int, count: int) -> str | None:
    return label if label is None or count == 1 else f"{label}-{number}"


def _table(
    caption: str,
    label: str | None,
    align: str,
    header: Iterable[str],
    blocks: Iterable[Iterable[Iterable[str]]],
    notes: Iterable[str],
) -> list[str]:
    """Return a table of rows of escaped cells, with a rule between blocks."""
    if label is not None and not re.fullmatch(r"[A-Za-z0-9:._/+-]+", label):
        raise InputError(f"label must be letters, digits and : . _ / + -, not {shown(label)!r}")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        *([rf"\label{{{label}}}"] if label is not None else []),
        r"\footnotesize",
        FITTED,
        rf"\begin{{tabular}}{{@{{}}{align}@{{}}}}",
        r"\toprule",
        rf"{' & '.join(header)} \\",
    ]
    for rows in blocks:
        lines += [r"\midrule", *(rf"{' & '.join(row)} \\" for row in rows)]
    lines += [r"\bottomrule", r"\end{tabular}}"]
    sentences = [f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in dict.fromkeys(notes)]
    if sentences:
        below = " ".join(map(escaped, sentences))
        lines += ["", r"\smallskip", rf"\parbox{{\linewidth}}{{\raggedright {below}}}"]
    return [*lines, r"\end{table}", ""]


@dataclass(frozen=True)
class Matrix:
    """The layout "models x metrics": a row for each model, a column for each metric, intervals below the numbers.

    Blocks of rows, of one time and weighting, are below each other if they have the same metrics. More than five
    metrics go on in another table.
    """

    entries: Sequence[MatrixEntry]
    caption: str
    label: str | None
    best: bool
    notes: Sequence[str]

    def to_latex(self) -> str:
        """Return the tables."""
        blocks: dict[str, list[MatrixEntry]] = {}
        for one in self.entries:
            blocks.setdefault(one.block, []).append(one)
        parts = []
        for metrics, names in groupby(blocks, key=lambda block: tuple(dict.fromkeys(e.metric for e in blocks[block]))):
            here = {name: blocks[name] for name in names}
            parts += [(here, metrics[k : k + MOST_METRICS]) for k in range(0, len(metrics), MOST_METRICS)]
        tables = [
            self._tabular(of, columns, _numbered(self.label, number, len(parts)))
            for number, (of, columns) in enumerate(parts, start=1)
        ]
        return "\n".join(line for table in tables for line in table)

    @cached_property
    def texts(self) -> dict[MatrixEntry, tuple[str, str]]:
        """The numbers and their intervals, with as many decimals for all of a metric."""
        errors: dict[str, list[float]] = {}
        for one in self.entries:
            errors.setdefault(one.metric, []).append(one.number.se)
        return {one: _parts(one.number.rounded(typical_decimals(errors[one.metric]))) for one in self.entries}

    def _tabular(
        self, blocks: Mapping[str, Sequence[MatrixEntry]], metrics: Sequence[str], label: str | None
    ) -> list[str]:
        """Return one table: some metrics of all models, in blocks."""
        models = dict.fromkeys(one.model for entries in blocks.values() for one in entries)
        folded = (textwrap.wrap(metric, HEADING, break_long_words=False) for metric in metrics)
        header = [r"\shortstack{" + r" \\ ".join(map(escaped, lines)) + "}" for lines in folded]
        body = []
        for name, entries in blocks.items():
            title = rf"\multicolumn{{{len(metrics) + 1}}}{{@{{}}l@{{}}}}{{\emph{{{escaped(name)}}}}}"
            rows = [[title]] if len(blocks) > 1 else []
            best = {metric: self._best([one for one in entries if one.metric == metric]) for metric in metrics}
            for model in models:
                of_metric = {one.metric: one for one in entries if one.model == model}
                if of_metric:
                    cells = [self._cell(of_metric.get(metric), best[metric]) for metric in metrics]
                    above, below = zip(*cells, strict=True)
                    rows.append([rf"\addlinespace[2pt] {escaped(model)}", *above])
                    rows += [["", *below]] if any(below) else []
            body.append(rows)
        caption = self.caption if len(blocks) > 1 else "; ".join(filter(None, (self.caption, *blocks)))
        shown_here = [one for entries in blocks.values() for one in entries if one.metric in metrics]
        notes = [*_about(shown_here, len(models)), *self.notes]
        return _table(caption, label, f"l{'c' * len(metrics)}", ["", *header], body, notes)

    def _best(self, entries: Sequence[MatrixEntry]) -> set[str]:
        """Return the best of a column as printed, where there is a choice; what is printed alike is as good."""
        known = {one: distance for one in entries if not math.isnan(distance := _distance(one))}
        if not self.best or len(known) < 2:
            return set()
        return {self.texts[one][0] for one, distance in known.items() if distance == min(known.values())}

    def _cell(self, entry: MatrixEntry | None, best: set[str]) -> tuple[str, str]:
        """Return a number and its interval below it, as LaTeX."""
        above, below = ("", "") if entry is None else self.texts[entry]
        number = above.replace("-", "$-$") or "--"
        small = rf"{{\scriptsize {below.replace('-', '$-$')}}}" if below else ""
        return (rf"\textbf{{{number}}}" if above in best else number), small


def _about(entries: Iterable[MatrixEntry], n_models: int) -> list[str]:
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


def _distance(entry: MatrixEntry) -> float:
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
