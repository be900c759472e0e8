"""What `landmark_table` returns: one row for each metric, horizon, weighting, landmark and model, and their means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import InputError, check_choice, shown
from survscore.metrics import cause_label
from survscore.outcomes import Outcomes
from survscore.results.long_tables import ALL
from survscore.results.printing import caption, interpolation_note
from survscore.results.rounding import decimals
from survscore.results.score_table import ScoreTable, TableRow, printed_line
from survscore.results.tables import Line, Part, Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import LandmarksDisplay

MEAN = "mean"


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
        rows = [row for row in self.rows if (row.metric, row.weighting, row.model) == (metric, fitting[0], model)]
        if not rows:
            raise InputError(f"there is no {metric!r} of {model!r}")
        labels = [*(one.label for one in self.landmarks), ALL]
        horizons = list(self.settings["horizons"])
        values = np.full((3, len(labels), len(horizons)), np.nan)
        for row in rows:
            place = labels.index(row.segment[0]), horizons.index(row.time)
            numbers = (row.difference, row.difference_lower, row.difference_upper)
            values[:, *place] = numbers if difference else (row.estimate, row.lower, row.upper)
        reliable = np.zeros(values.shape[1:], dtype=np.bool_)
        for row in rows:
            place = labels.index(row.segment[0]), horizons.index(row.time)
            reliable[place] = row.difference_reliable if difference else row.reliable
        if np.isnan(values[0, -1]).all():
            labels, values, reliable = labels[:-1], values[:, :-1], reliable[:-1]
        direction: Any = rows[0].direction
        label = cause_label(rows[0].label, self.settings.get("cause", ""))
        display = LandmarksDisplay(
            tuple(MEAN if label == ALL else label for label in labels),
            tuple(horizons),
            values,
            reliable,
            label,
            direction,
            fitting[0],
            model,
            reference if difference else None,
            self.level,
            self.settings.get("unit"),
        )
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
        first, lines = rows[0], list[Line]()
        compares = any(row.model != row.reference for row in rows)
        beside = (f"difference to {shown(first.reference)}", "p", "") if compares else ()
        header = ("landmark (n)", "", "estimate", *beside)
        places = {one.label: k for k, one in enumerate(self.landmarks)}
        previous = ""
        for row in sorted(rows, key=lambda row: places.get(row.segment[0], len(places))):
            label = MEAN if row.segment[0] == ALL else row.segment[0]
            counted = "" if np.isnan(row.n_counted) else f" ({row.n_counted:.0f})"
            first_word = label + counted if label != previous else ""
            lines.append(printed_line(row, header, first_word, self.leak_warnings.keys()))
            previous = label
        by_note: dict[str, list[str]] = {}
        for row in rows:
            if row.note:
                where = MEAN if row.segment[0] == ALL else row.segment[0]
                by_note.setdefault(row.note, []).append(f"{where}, {shown(row.model)}")
        notes = [f"{'; '.join(where[:3])}{' ...' if len(where) > 3 else ''}: {note}" for note, where in by_note.items()]
        words = ("at", f"{first.time:g}", self.settings.get("unit"))
        better = f" ({first.direction})" if first.direction.startswith("closer") else ""
        title = f"{first.label}{better} {' '.join(filter(None, words))} after the landmark; {first.weighting}"
        align = "llrrrl" if compares else "llr"
        return Part.of(title, header, lines, notes, align, 3, decimals=decimals)
