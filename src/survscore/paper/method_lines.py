"""How the lines of methods look in all figures of the studies: a method has one colour, and the truth is dashed."""

from __future__ import annotations

from typing import Any

from survscore.paper import studies as s
from survscore.plots import style

COLOURS = style.colours([s.HAZARD, s.BCE, s.BCE_TOLD, s.TRUTH], null=s.TRUTH)


def line_of(method: str) -> dict[str, Any]:
    """Return matplotlib's options for a method's line; the truth lies above others, which show between its dashes."""
    if method == s.TRUTH:
        return {"color": COLOURS[method], "linestyle": style.DASHES[1], "zorder": 2.5}
    return {"color": COLOURS[method]}
