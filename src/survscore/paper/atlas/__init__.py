"""The atlas: every data set with known closing date, the same models, and which of them each score prefers."""

from survscore.paper.atlas.causes import AtlasByCause
from survscore.paper.atlas.results import Atlas
from survscore.paper.atlas.running import atlas, atlas_by_cause

__all__ = ["Atlas", "AtlasByCause", "atlas", "atlas_by_cause"]
