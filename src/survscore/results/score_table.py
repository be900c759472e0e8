"""What `score_table`, `pool`, `landmark_table` and `across_datasets` return: rows of numbers, printed as tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError, check_choice, plural, shown
from survscore.causes import ALL_CAUSES
from survscore.inference.random_effects import RandomEffects
from survscore.metrics import controls_note
from survscore.outcomes import Outcomes
from survscore.results.latex import MatrixEntry
from survscore.results.long_tables import ALL, cause_column
from survscore.results.printing import caption, interpolation_note, verdict_text
from survscore.results.rounding import Number, decimals, p_text
from survscore.results.tables import Line, Part, PrintedAsTables, Tables
from survscore.weighting import Projected

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import LandmarksDisplay

DISTRIBUTION = "distribution"  # the one row that is a test
MEAN = "mean"  # over landmarks


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
        words = [f"{row.label}{_target(row)}" for row in rows]
        notes = [f"{row.label}, {shown(row.model)}: {row.note}" for row in rows if row.note]
        return self._table(self._title(rows[0]), "", list(zip(words, rows, strict=True)), notes)

    def _table(self, title: str, heading: str, rows: Sequence[tuple[str, TableRow]], notes: Sequence[str]) -> Part:
        """Return a table of rows, each with what stands before its model where that changes."""
        first, lines, previous = rows[0][1], list[Line](), ""
        is_test = all(row.metric == DISTRIBUTION for _, row in rows)
        compares = not is_test and any(row.model != row.reference for _, row in rows)
        beside = (f"difference to {shown(first.reference)}", "p", "") if compares else ()
        header = (heading, "", "chi-square", "p") if is_test else (heading, "", "estimate", *beside)
        for word, row in rows:
            numbers = [Number(row.estimate, row.lower, row.upper, se=row.se, reliable=row.reliable)]
            rest = [p_text(row.p_value)] if is_test or compares else []
            if compares:
                limits, reliable = (row.difference_lower, row.difference_upper), row.difference_reliable
                numbers.append(Number(row.difference, *limits, se=row.difference_se, reliable=reliable, sign="+"))
                encoded = not {row.model, row.reference}.isdisjoint(self.leak_warnings)
                rest.append(verdict_text(row.verdict, row.weighting, encoded=encoded))
            words = ("" if word == previous else word, shown(row.model))
            lines.append(Line(words, tuple(numbers), tuple(rest), row.metric))
            previous = word
        align = "llrr" if is_test else "llrrrl" if compares else "llr"
        return Part.of(title, header, lines, notes, align, 3, decimals=decimals)

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


def _target(row: TableRow) -> str:
    """Return what a metric should be close to, in brackets; nothing of others."""
    return f" ({row.direction})" if row.direction.startswith("closer") else ""


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


# Landmarks


@dataclass(frozen=True)
class LandmarkCounts:
    """Who is at risk at a landmark."""

    landmark: float | str  # an age, or a date
    label: str
    n: int  # how many are scored
    n_events: int  # how many of them are known to have the event later
    n_left_out: int  # how many more were at risk, and had no prediction by some model

    @classmethod
    def of(cls, landmark: Any, label: str, y: Outcomes, n_left_out: int) -> LandmarkCounts:
        """Count."""
        given = landmark if isinstance(landmark, float) else label
        return cls(given, label, y.n_individuals, y.n_of(y.event_of_interest), n_left_out)


@dataclass(frozen=True, eq=False, repr=False)
class LandmarkTable(ScoreTable):
    """Result of `landmark_table`; prints as tables with one row for each landmark and model.

    Attributes
    ----------
    rows : tuple of TableRow
        One for each landmark, metric, weighting, horizon and model; the segment is the landmark, and ``"(all)"`` for
        the mean over landmarks.
    landmarks : tuple of LandmarkCounts
        Who is at risk at each.
    by, level, n, n_dropped_out, settings, leak_warnings
        As for `ScoreTable`; n counts individuals, each once.
    """

    landmarks: tuple[LandmarkCounts, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return all numbers as a long table: landmark, metric, weighting, horizon (time), model.

        The landmark is a number, or a date; it is missing in the rows of the mean over landmarks, where ``summary`` is
        true.
        """
        import pandas as pd

        frame = super().to_frame().drop(columns=["segment", "over_time"], errors="ignore")
        summary = frame["landmark"] == ALL
        named = {one.label: one.landmark for one in self.landmarks}
        dated = any(isinstance(one.landmark, str) for one in self.landmarks)
        values = [named.get(label) for label in frame["landmark"]]
        frame["landmark"] = pd.to_datetime(pd.Series(values)) if dated else pd.Series(values, dtype="float64")
        frame.insert(1, "summary", summary)
        return frame

    def plot(
        self,
        metric: str | None = None,
        *,
        model: str | None = None,
        weighting: str | None = None,
        difference: bool | None = None,
        ax: Any = None,
        width: float | None = None,
    ) -> LandmarksDisplay:
        """Draw a heat map over landmarks and horizons.

        Parameters
        ----------
        metric, weighting : str, optional
            By default the first; a weighting may be named by how it begins.
        model : str, optional
            By default the first that is not the reference, where differences are drawn, or the reference.
        difference : bool, optional
            Whether to draw differences to the reference; by default where there are several models.
        ax, width
            As for other displays.
        """
        from survscore.plots import LandmarksDisplay

        metrics, weightings, models = (
            list(dict.fromkeys(getattr(row, name) for row in self.rows)) for name in ("metric", "weighting", "model")
        )
        metric = metrics[0] if metric is None else metric
        check_choice("metric", metric, tuple(metrics))
        fitting = [name for name in weightings if name.startswith(weighting or "")]
        if not fitting:
            raise InputError(f"weighting must be one of {weightings}, not {weighting!r}")
        reference = str(self.settings["reference"])
        others = [name for name in models if name != reference]
        difference = bool(others) if difference is None else difference
        model = (others[0] if difference and others else reference) if model is None else model
        check_choice("model", model, tuple(models))
        if difference and model == reference:
            raise InputError(f"model must be another than the reference, {reference!r}, for a difference")
        display = LandmarksDisplay(self, metric, fitting[0], model, reference if difference else None)
        if not display.rows:
            raise InputError(f"there is no {metric!r} of {model!r}")
        return display.plot(ax, width=width)

    def _printed(self) -> Tables:
        order = {name: k for k, name in enumerate(dict.fromkeys((row.metric, row.weighting) for row in self.rows))}
        ordered = sorted(self.rows, key=lambda row: (order[row.metric, row.weighting], row.time))
        parts = groupby(ordered, key=lambda row: (row.metric, row.weighting, row.time))
        tables = [self._of_horizon(list(rows)) for _, rows in parts]
        left_out = [f"{one.n_left_out} at {one.label}" for one in self.landmarks if one.n_left_out]
        notes = [*interpolation_note(self.settings["curves"])]
        if left_out:
            notes.append(f"left out, without prediction: {', '.join(left_out)}")
        tables[0] = replace(tables[0], notes=(*tables[0].notes, *notes))
        cause = f"; cause {shown(self.settings['cause'])}" if "cause" in self.settings else ""
        about = caption(self.n, self.n_dropped_out, self.level, cause, settings=self.settings)
        return Tables(about, tables, list(self.leak_warnings.values()))

    def _of_horizon(self, rows: Sequence[TableRow]) -> Part:
        """Return the table of one metric, weighting and horizon: by landmark, then by model."""
        places = {one.label: k for k, one in enumerate(self.landmarks)}
        in_order = sorted(rows, key=lambda row: places.get(row.segment[0], len(places)))
        where = [MEAN if row.segment[0] == ALL else row.segment[0] for row in in_order]
        counts = ["" if math.isnan(row.n_counted) else f" ({row.n_counted:.0f})" for row in in_order]
        by_note: dict[str, list[str]] = {}
        for row in rows:
            if row.note:
                place = MEAN if row.segment[0] == ALL else row.segment[0]
                by_note.setdefault(row.note, []).append(f"{place}, {shown(row.model)}")
        notes = [f"{'; '.join(at[:3])}{' ...' if len(at) > 3 else ''}: {note}" for note, at in by_note.items()]
        first, words = rows[0], map("".join, zip(where, counts, strict=True))
        when = " ".join(filter(None, ("at", f"{first.time:g}", self.settings.get("unit"))))
        title = f"{first.label}{_target(first)} {when} after the landmark; {first.weighting}"
        return self._table(title, "landmark (n)", list(zip(words, in_order, strict=True)), notes)


# Several data sets


@dataclass(frozen=True)
class ModelRank:
    """How a model ranks over data sets."""

    model: str
    mean_rank: float
    n_best: float  # in how many data sets it is the best; ties are shared
    n: int


@dataclass(frozen=True)
class DatasetDifference:
    """The difference of a model to the reference in one data set."""

    dataset: str
    model: str
    estimate: float
    difference: float
    se: float
    lower: float
    upper: float
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class AcrossDatasets(PrintedAsTables):
    """Result of `across_datasets`; prints as tables.

    Attributes
    ----------
    metric, label, weighting, direction, reference : str
        What was compared, and with what; empty where data frames do not say.
    datasets : tuple of str
        Their names.
    level : float
        Of the intervals.
    ranks : tuple of ModelRank
        Mean ranks, the best first.
    friedman_p_value : float
        Of the hypothesis that all models rank alike.
    differences : tuple of DatasetDifference
        By model, then by data set.
    means : dict of str to RandomEffects
        For each model but the reference, the random-effects mean of its differences.
    verdicts : dict of str to str
        Whether that is better, worse or undecided.
    """

    metric: str
    label: str
    weighting: str
    direction: str
    reference: str
    datasets: tuple[str, ...]
    level: float
    ranks: tuple[ModelRank, ...]
    friedman_p_value: float
    differences: tuple[DatasetDifference, ...]
    means: Mapping[str, RandomEffects]
    verdicts: Mapping[str, str]

    def to_frame(self) -> pd.DataFrame:
        """Return the random-effects means: one row for each model but the reference."""
        import pandas as pd

        rows = [
            {"model": model, "reference": self.reference, **asdict(mean), "verdict": self.verdicts[model]}
            for model, mean in self.means.items()
        ]
        return pd.DataFrame(rows)

    def _printed(self) -> Tables:
        ranked = [
            Line((shown(one.model),), (Number(one.mean_rank),), (f"{one.n_best:g}",), "rank") for one in self.ranks
        ]
        note = f"Friedman test of equal ranks: p {_of_p(self.friedman_p_value)}"
        parts = [
            Part.of("mean rank, 1 is best", ("", "mean rank", "best in"), ranked, [note], "lrr", decimals=decimals)
        ]
        parts += [self._of_model(model, mean) for model, mean in self.means.items()]
        what = f"{self.label} ({self.direction} is better)" if self.metric else f"{self.direction} is better"
        weighting = f"; {self.weighting}" if self.weighting else ""
        return Tables(
            f"{plural(len(self.datasets), 'data set')}; {what}{weighting}; {100 * self.level:g} % intervals", parts
        )

    def _of_model(self, model: str, mean: RandomEffects) -> Part:
        lines = [
            Line(
                (shown(one.dataset),),
                (Number(one.difference, one.lower, one.upper, se=one.se, sign="+"),),
                (p_text(one.p_value), ""),
            )
            for one in self.differences
            if one.model == model
        ]
        total = Number(mean.estimate, mean.lower, mean.upper, se=mean.se, sign="+")
        lines.append(Line(("random effects",), (total,), (p_text(mean.p_value), verdict_text(self.verdicts[model]))))
        notes = ["no standard errors, so that there is no mean"] if mean.n < 2 else self._heterogeneity(mean)
        title = f"{shown(model)}, difference to {shown(self.reference)}"
        return Part.of(title, ("", "difference", "p", ""), lines, notes, "lrrl", decimals=decimals)

    def _heterogeneity(self, mean: RandomEffects) -> list[str]:
        places = decimals([mean.se])
        notes = [
            f"heterogeneity: tau {mean.tau:.{places}f}, I^2 {mean.i_squared:.0%}, Q {mean.q:.1f} with {mean.n - 1} "
            f"degrees of freedom, p {_of_p(mean.q_p_value)}"
        ]
        if mean.prediction_lower == mean.prediction_lower:
            limits = f"{mean.prediction_lower:+.{places}f} to {mean.prediction_upper:+.{places}f}"
            notes.append(f"in another data set, a difference of {limits} is expected ({100 * self.level:g} %)")
        return notes


def _of_p(value: float) -> str:
    text = p_text(value)
    return text if text.startswith("<") else f"= {text}" if text else "unknown"
