"""What `score_table` returns: one row for each metric, horizon, weighting and model."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from survscore._validation import shown
from survscore.causes import ALL_CAUSES
from survscore.metrics import controls_note
from survscore.results.latex import MatrixEntry
from survscore.results.long_tables import ALL, cause_column
from survscore.results.printing import caption, interpolation_note, verdict_text
from survscore.results.rounding import Number, decimals, p_text
from survscore.results.tables import Line, Part, PrintedAsTables, Tables
from survscore.weighting import Projected

if TYPE_CHECKING:
    import pandas as pd

DISTRIBUTION = "distribution"  # the one row that is a test


@dataclass(frozen=True)
class TableRow:
    """One metric of one model, at one horizon or over all time; NaN where there is nothing."""

    segment: tuple[str, ...]  # its labels; "(all)" for all individuals, empty without segments
    metric: str
    label: str  # what the metric is called
    direction: str  # which values are better
    time: float  # the horizon; of what is over all time, up to when; infinite for all follow-up
    over_time: bool
    weighting: str
    model: str
    reference: str
    estimate: float
    se: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    difference: float = math.nan  # to the reference
    difference_se: float = math.nan
    difference_lower: float = math.nan
    difference_upper: float = math.nan
    p_value: float = math.nan
    verdict: str = ""  # better, worse, undecided or unknown; lower or higher where values should be close to a target
    reliable: bool = False  # whether there is enough for a reliable interval
    difference_reliable: bool = False
    n_counted: float = math.nan  # to how many individuals it refers
    n_events: float = math.nan  # how many of them are known to have the event
    n_lost: float = math.nan  # how many of them have an unknown status: by drop-out, or, if projected, by C* < t
    n_groups: float = math.nan
    note: str = ""  # why there is no number, or what to know about it


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable(PrintedAsTables):
    """Result of `score_table`; prints as a table.

    Attributes
    ----------
    rows : tuple of TableRow
        One for each metric, horizon, weighting and model.
    by : tuple of str
        Names of the segmenting columns.
    level : float
        Level of the confidence intervals.
    n : int
        The number of individuals.
    n_dropped_out : int or None
        How many of them dropped out; None where that is unknown.
    settings : dict
        What was asked for, and the version.
    leak_warnings : mapping of str to str
        Of each model that encodes C*, to whom its scores refer.
    """

    rows: tuple[TableRow, ...]
    by: tuple[str, ...]
    level: float
    n: int
    n_dropped_out: int | None
    settings: dict[str, Any]
    leak_warnings: Mapping[str, str] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return all numbers as a long table, one row for each metric, horizon, weighting and model.

        Under competing risks, the cause follows the metric.
        """
        import pandas as pd

        records, cause = [], self.settings.get("cause", "")
        for row in self.rows:
            cells = asdict(row)
            labels = dict(zip(self.by, cells.pop("segment"), strict=False))
            records.append({**labels, "metric": cells.pop("metric"), **cause_column(cause), **cells})
        frame = pd.DataFrame(records)
        return frame if self.settings["groups"] else frame.drop(columns="n_groups")

    def to_json(self) -> str:
        """Return the same with settings and version, as JSON; missing values are null."""
        rows = [
            {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row}
            for row in (asdict(row).items() for row in self.rows)
        ]
        others = {of.name: getattr(self, of.name) for of in fields(self) if of.name != "rows"}
        return json.dumps({**others, "rows": rows}, indent=1, ensure_ascii=False, default=asdict)

    def _printed(self) -> Tables:
        places = {(row.segment, row.weighting): None for row in self.rows}
        order = {place: k for k, place in enumerate(places)}
        # stable: metrics stay in the order asked for
        ordered = sorted(self.rows, key=lambda row: (order[row.segment, row.weighting], row.over_time, row.time))
        parts = groupby(ordered, key=lambda row: (row.segment, row.weighting, row.over_time, row.time))
        tables = [self._part(list(rows)) for _, rows in parts]
        note = [
            *interpolation_note(self.settings["curves"]),
            *controls_note({row.metric for row in self.rows}, self.settings.get("cause", "")),
        ]
        tables[0] = replace(tables[0], notes=(*tables[0].notes, *note))
        cause = ""
        if "cause" in self.settings:
            every = self.settings["cause"] == ALL_CAUSES
            cause = "; multi-class: event-free and all causes" if every else f"; cause {shown(self.settings['cause'])}"
        about = caption(self.n, self.n_dropped_out, self.level, cause, settings=self.settings)
        return Tables(about, tables, list(self.leak_warnings.values()))

    def _part(self, rows: list[TableRow]) -> Part:
        """Return the table of one segment, weighting and horizon."""
        first = rows[0]
        if all(row.metric == DISTRIBUTION for row in rows):
            header: tuple[str, ...] = ("", "", "chi-square", "p")
            align = "llrr"
        elif any(row.model != row.reference for row in rows):
            header, align = ("", "", "estimate", f"difference to {shown(first.reference)}", "p", ""), "llrrrl"
        else:
            header, align = ("", "", "estimate"), "llr"
        lines, metrics = [], set[str]()
        for row in rows:
            better = f" ({row.direction})" if row.direction.startswith("closer") else ""
            first_word = "" if row.metric in metrics else row.label + better
            lines.append(printed_line(row, header, first_word, self.leak_warnings.keys()))
            metrics.add(row.metric)
        notes = [f"{row.label}, {shown(row.model)}: {row.note}" for row in rows if row.note]
        return Part.of(self._title(first), header, lines, notes, align, 3, decimals=decimals)

    def _entries(self, unit: str | None) -> tuple[list[MatrixEntry], Sequence[str]]:
        entries = []
        for row in self.rows:
            if row.metric != DISTRIBUTION:  # a test, and no number to compare
                number = Number(row.estimate, row.lower, row.upper, se=row.se, reliable=row.reliable)
                block = self._title(row, unit, counts=False)
                entries.append(MatrixEntry(block, shown(row.model), row.label, row.direction, number, row.note))
        return entries, list(self.leak_warnings.values())

    def _title(self, row: TableRow, unit: str | None = None, *, counts: bool = True) -> str:
        labels = zip(self.by, row.segment, strict=False)
        of = ", ".join(f"{name} {shown(label)}" for name, label in labels if label != ALL)
        when = "over all follow-up"
        if not math.isinf(row.time):
            words = ("up to" if row.over_time else "at", f"{row.time:g}", unit or self.settings.get("unit"))
            when = " ".join(filter(None, words))
        counted = ""
        if counts and not row.over_time and not math.isnan(row.n_counted):
            word = "hidden" if row.weighting.startswith(Projected.name) else "lost"
            lost = f", {row.n_lost:.0f} {word}" if row.n_lost >= 0.5 else ""
            groups = f", {row.n_groups:.0f} groups" if not math.isnan(row.n_groups) else ""
            counted = f"{row.n_counted:.0f} counted, {row.n_events:.0f} with event{lost}{groups}"
        return "; ".join(filter(None, (of or ("all individuals" if self.by else ""), when, row.weighting, counted)))


def printed_line(row: TableRow, header: tuple[str, ...], first: str, encodes: Collection[str]) -> Line:
    """Return a line of a printed table, as long as its header; `first` is what stands before the model.

    `encodes` names the models that encode C*.
    """
    words = (first, shown(row.model))
    numbers = (Number(row.estimate, row.lower, row.upper, se=row.se, reliable=row.reliable),)
    if "chi-square" in header:
        return Line(words, numbers, (p_text(row.p_value),), row.metric)
    if "p" not in header:
        return Line(words, numbers, (), row.metric)
    difference = Number(
        row.difference,
        row.difference_lower,
        row.difference_upper,
        se=row.difference_se,
        reliable=row.difference_reliable,
        sign="+",
    )
    encoded = not {row.model, row.reference}.isdisjoint(encodes)
    verdict = verdict_text(row.verdict, row.weighting, encoded=encoded)
    return Line(words, (*numbers, difference), (p_text(row.p_value), verdict), row.metric)


@dataclass(frozen=True)
class MissingInformation:
    """Of one row: degrees of freedom, and the fraction of missing information; NaN where there is no standard error."""

    degrees: float
    missing_information: float
    difference_degrees: float
    difference_missing_information: float


@dataclass(frozen=True, eq=False, repr=False)
class PooledTable(ScoreTable):
    """Result of `pool`; prints as a score table.

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
