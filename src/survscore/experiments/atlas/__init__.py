"""The atlas: every data set with known closing date, the same models, and which of them each score prefers."""

from survscore.experiments.atlas.causes import AtlasByCause
from survscore.experiments.atlas.results import Atlas
from survscore.experiments.atlas.running import atlas, atlas_by_cause

__all__ = ["Atlas", "AtlasByCause", "atlas", "atlas_by_cause"]
