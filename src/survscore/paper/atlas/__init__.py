"""The atlas: every data set with known closing date, the same models, and which of them each score prefers."""

from survscore.paper.atlas.results import Atlas
from survscore.paper.atlas.running import atlas

__all__ = ["Atlas", "atlas"]
