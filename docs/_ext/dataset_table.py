"""The directive ``dataset-table``: what the loaders themselves say of their sets, so that no page can say otherwise."""

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from list_tables import list_table, plain

from survscore import datasets


class DatasetTable(Directive):
    """One table with the numbers of all sets, then a section of words for each."""

    def run(self):
        """Return them as nodes."""
        described = datasets.describe()
        heads = ["name", "individuals", "events", "lost", "event", "package", "licence"]
        rows = [
            [f"``{name}``", row.individuals, row.events, row.lost, row.event, row.package, row.licence]
            for name, row in described.iterrows()
        ]
        lines = list_table([heads, *rows])
        for name, row in described.iterrows():
            lines += [f"``{name}``", f"   {plain(row.source)}.", ""]
            said = {
                "Start": row.start, "Causes": row.causes, "Closing date": row.closing, "Lost": row.who_is_lost,
                "Beware": row.notes,
            }  # fmt: skip
            lines += [f"   - {word}: {plain(text)}" for word, text in said.items() if text]
            lines.append("")
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, "survscore.datasets"), self.content_offset, holder)
        return holder.children


def setup(app):
    """Make the directive known."""
    app.add_directive("dataset-table", DatasetTable)
    return {"parallel_read_safe": True}
