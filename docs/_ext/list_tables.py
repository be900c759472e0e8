"""Tables of cells as lines of reStructuredText, for the directives that make them."""

import re

CODE = re.compile(r"(``.+?``)")
MARKUP = re.compile(r"([\\*`|_])")


def list_table(rows, *, classes=()):
    """Return the lines of a table whose first row is its head."""
    lines = [".. list-table::", "   :header-rows: 1", *([f"   :class: {' '.join(classes)}"] if classes else []), ""]
    for cells in rows:
        lines += [f"   {'* -' if k == 0 else '  -'} {plain(cell)}" for k, cell in enumerate(cells)]
    return [*lines, ""]


def plain(text):
    """Return text in which nothing is mark-up, but for what is code already."""
    return "".join(part if CODE.fullmatch(part) else MARKUP.sub(r"\\\1", part) for part in CODE.split(str(text)))
