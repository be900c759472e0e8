"""The directive ``conformance-table``: conventions as ``benchmarks/conformance.py`` found and wrote them."""

import json
from pathlib import Path

from conformance_lines import LISTS
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList


class ConformanceTable(Directive):
    """One of the tables, by its name: those of `conformance_lines.LISTS`."""

    required_arguments = 1

    def run(self):
        """Return it as nodes."""
        environment = self.state.document.settings.env
        source = Path(environment.srcdir) / "conformance.json"
        environment.note_dependency(str(source))
        packages = json.loads(source.read_text())["packages"]
        lines = LISTS[self.arguments[0]](packages)
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, str(source)), self.content_offset, holder)
        return holder.children


def setup(app):
    """Make the directive known."""
    app.add_directive("conformance-table", ConformanceTable)
    return {"parallel_read_safe": True}
