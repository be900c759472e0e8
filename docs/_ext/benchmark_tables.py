"""What the pages show of ``docs/benchmarks``, the files that benchmarks write, so that no number is typed in.

- ``.. benchmark-run:: scores`` says which command made the numbers of a file, where, and with which versions.
- ``.. benchmark:: scores | memory`` is one of its tables, without columns that are empty. ``:columns: data | pycox``
  shows some of its columns, and ``:bars: ms`` draws a bar below the name of each row, for the numbers of one.
- ``:measured:`scores | growth | 67 | {seconds:ms} ms``` is part of a sentence: a template, filled from that row.
"""

import re
import sys
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from list_tables import list_table, plain
from sphinx.util.docutils import SphinxDirective, SphinxRole

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from report import FIELD, cells, filled
from results import Results, UnknownResultError, in_words, quote

FOLDER = "benchmarks"


class _BenchmarkDirective(SphinxDirective):
    """Something that a file of results says, asked for in a form such as ``file | table``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Return its nodes, or an error that says what there is in place of what was asked for."""
        asked = _parts(self.arguments[0])
        if len(asked) != len(_parts(self.form)):
            raise self.error(f"{self.name}: {self.arguments[0]!r} is not in the form {self.form!r}")
        try:
            return self.shown(*asked)
        except UnknownResultError as error:
            raise self.error(f"{self.name}: {error}") from None

    def read(self, name):
        """Read a file, and have the page made anew when it changes."""
        results = Results.read(name, Path(self.env.srcdir) / FOLDER)
        self.env.note_dependency(str(results.path))
        return results

    def parsed(self, lines):
        """Return lines as nodes."""
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, self.arguments[0]), self.content_offset, holder)
        return holder.children


class BenchmarkRun(_BenchmarkDirective):
    """Which command, where, with which versions; and the file itself."""

    form = "file"

    def shown(self, name):
        """Return a paragraph."""
        content = self.read(name).content
        versions = ", ".join(f"{package} {version}" for package, version in content["versions"].items())
        said = [f"``{content['command']}``", *map(plain, filter(None, [in_words(content["machine"]), versions]))]
        file = f":download:`all numbers </{FOLDER}/{name}.json>`"
        note = f" {plain(content['note'])}" if "note" in content else ""
        return self.parsed([".. rst-class:: benchmark-run", "", f"{'; '.join([*said, file])}.{note}", ""])


class BenchmarkTable(_BenchmarkDirective):
    """One table."""

    form = "file | table"
    option_spec: ClassVar = {"columns": directives.unchanged_required, "bars": directives.unchanged_required}

    def shown(self, name, table):
        """Return it, with bars if they are wanted."""
        results = self.read(name)
        columns, rows = (results.table(table)[key] for key in ("columns", "rows"))
        chosen = _parts(self.options["columns"]) if "columns" in self.options else list(columns)
        columns = {title: _column(columns, title) for title in chosen}
        columns = {title: one for title, one in columns.items() if any(filled(one, row) for row in rows)}
        head = [_whole_numbers(title) for title in columns]
        shown = [[_unbroken(cell) for cell in line] for line in cells(columns, rows)]
        found = self.parsed(list_table([head, *shown], classes=["benchmark"]))
        if "bars" in self.options:
            _draw_bars(found[0], _values(_column(columns, self.options["bars"]), rows))
        return found


def _parts(text):
    return [part.strip() for part in text.split("|")]


def _column(columns, title):
    if title not in columns:
        raise UnknownResultError(f"no column {title!r}; there are {', '.join(map(repr, columns))}")
    return columns[title]


def _whole_numbers(text):
    """Return text whose numbers do not break over lines."""
    return re.sub(r"(?<=\d) (?=\d{3}\b)", "\N{NO-BREAK SPACE}", text)


def _unbroken(text):
    """Return the same; without words, such as ``4.75 (1.0)``, nothing breaks."""
    return _whole_numbers(text) if re.search("[a-z]{2}", text) else text.replace(" ", "\N{NO-BREAK SPACE}")


def _values(template, rows):
    """Return the numbers that come first in a column; zero where there is none."""
    name = FIELD.search(template)[1]
    return [row.get(name) if isinstance(row.get(name), (int, float)) else 0 for row in rows]


def _draw_bars(table, values):
    """Put a bar below the name of each row, as long as its value's share of the largest."""
    most = max(values, default=0) or 1
    for row, value in zip(next(iter(table.findall(nodes.tbody))).children, values, strict=True):
        if not value:
            continue
        bar = f'<span class="benchmark-bar" aria-hidden="true" style="width: {100 * value / most:.1f}%"></span>'
        row[0] += nodes.raw("", bar, format="html")


class Measured(SphinxRole):
    """A number in a sentence."""

    def run(self):
        """Return it as text."""
        folder = Path(self.env.srcdir) / FOLDER
        try:
            text = quote(self.text, folder)
        except UnknownResultError as error:
            message = self.inliner.reporter.error(f"measured: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        self.env.note_dependency(str(folder / f"{_parts(self.text)[0]}.json"))
        return [nodes.Text(_whole_numbers(text))], []


def setup(app):
    """Make them known."""
    app.add_directive("benchmark-run", BenchmarkRun)
    app.add_directive("benchmark", BenchmarkTable)
    app.add_role("measured", Measured())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
