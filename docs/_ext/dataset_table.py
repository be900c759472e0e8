"""The directive ``dataset-table``: what the loaders themselves say of their sets, so that no page can say otherwise."""

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from survscore import datasets


class DatasetTable(Directive):
    """One table with the numbers of all sets, then a section of words for each."""

    def run(self):
        """Return them as nodes."""
        described = datasets.describe()
        lines = [".. list-table::", "   :header-rows: 1", ""]
        heads = ["name", "individuals", "events", "lost", "event", "package", "licence"]
        rows = [
            [f"``{name}``", row.individuals, row.events, row.lost, row.event, row.package, row.licence]
            for name, row in described.iterrows()
        ]
        for cells in [heads, *rows]:
            lines += [f"   {'* -' if k == 0 else '  -'} {_plain(cell)}" for k, cell in enumerate(cells)]
        lines.append("")
        for name, row in described.iterrows():
            lines += [f"``{name}``", f"   {_plain(row.source)}.", ""]
            said = {"Start": row.start, "Closing date": row.closing, "Lost": row.who_is_lost, "Beware": row.notes}
            lines += [f"   - {word}: {_plain(text)}" for word, text in said.items()]
            lines.append("")
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, "survscore.datasets"), self.content_offset, holder)
        return holder.children


def _plain(text):
    """Return text in which nothing is mark-up, but for what is code already."""
    return str(text) if str(text).startswith("``") else str(text).replace("\\", "\\\\").replace("*", "\\*")


def setup(app):
    """Make the directive known."""
    app.add_directive("dataset-table", DatasetTable)
    return {"parallel_read_safe": True}
