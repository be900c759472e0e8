"""What `pool` returns: a score table whose numbers are those of several imputed data sets together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from survscore.results.score_table import ScoreTable
from survscore.results.tables import Tables

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class MissingInformation:
    """Of one row: degrees of freedom, and the fraction of missing information; NaN where there is no standard error."""

    degrees: float
    missing_information: float
    difference_degrees: float
    difference_missing_information: float


@dataclass(frozen=True, eq=False, repr=False)
class PooledTable(ScoreTable):
    """What `pool` returns. Numbers only; prints as a score table.

    Attributes
    ----------
    n_imputations : int
        How many results were pooled.
    information : tuple of MissingInformation
        For each row, how much was lost with the values that are missing.
    rows, by, level, n, n_dropped_out, settings, leak_warnings
        As for `ScoreTable`.
    """

    n_imputations: int = 0
    information: tuple[MissingInformation, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return all numbers as a long table, with degrees of freedom and fractions of missing information."""
        import pandas as pd

        frame = super().to_frame()
        more = pd.DataFrame([vars(one) for one in self.information], index=frame.index)
        return pd.concat([frame, more], axis=1)

    def _printed(self) -> Tables:
        tables = super()._printed()
        return replace(tables, caption=f"{tables.caption}; {self.n_imputations} imputations pooled by Rubin's rules")
