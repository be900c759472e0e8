"""The directives ``claims`` and ``integrated-scores``: what runs of ``survscore reproduce`` found, not typed in.

Each takes the name of a figure, such as ``.. claims:: figure-4``.
"""

from pathlib import Path

import reproduced_lines
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


class _Reproduced(SphinxDirective):
    """Lines made from the folder of a figure."""

    required_arguments = 1

    def run(self):
        """Return them as nodes, and have the page made anew when a file changes."""
        folder = Path(self.env.srcdir) / "reproduction" / self.arguments[0]
        if not folder.is_dir():
            raise self.error(f"{self.name}: no run of {self.arguments[0]!r} is kept in docs/reproduction")
        for path in folder.iterdir():
            self.env.note_dependency(str(path))
        holder = nodes.container()
        self.state.nested_parse(StringList(self.lines(folder), str(folder)), self.content_offset, holder)
        return holder.children


class Claims(_Reproduced):
    """What the paper says about a figure, and what became of it."""

    lines = staticmethod(reproduced_lines.claims)


class IntegratedScores(_Reproduced):
    """Integrated Brier scores."""

    lines = staticmethod(reproduced_lines.integrated_scores)


def setup(app):
    """Make them known."""
    app.add_directive("claims", Claims)
    app.add_directive("integrated-scores", IntegratedScores)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
