"""A run: the scores of one day's data as tidy tables, which is what is checked, stored and compared."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from survscore._validation import InputError, shown
from survscore._version import __version__
from survscore.causes import ALL_CAUSES
from survscore.engine.averaging import Range, trapezoid_weights
from survscore.metrics import METRICS, Direction
from survscore.results.comparison import Comparison
from survscore.results.segments import SegmentedComparison

if TYPE_CHECKING:
    import pandas as pd

ALL = "(all)"  # in the segment columns of those rows that are about all individuals
WHOLE: Range = (None, None)
NAMES = ("metric", "weighting", "model")
NUMBERS = ("score", "se", "lower", "upper")
COLUMNS = {
    "scores": (*NAMES, "time", *NUMBERS, "n_events"),
    "means": (*NAMES, "from", "to", *NUMBERS, "n_events"),
    "contrasts": (*NAMES, "reference", "time", "from", "to", "difference", "se", "lower", "upper"),
    "recommendations": (*NAMES, "reference", "from", "to", "verdict", "sentence"),
}
TEXTS = (*NAMES, "reference", "verdict", "sentence")
FEW_TIMES = 20  # at each of so many there is a recommendation
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
RESERVED = ("last", "first")
DEEPEST = 20  # levels of settings that are kept


@dataclass(frozen=True, eq=False)
class Run:
    """The scores of one run.

    Attributes
    ----------
    id : str
        Its name in a history.
    date : str
        When it was made, in UTC, as ISO 8601 writes it.
    version : str
        Of survscore.
    settings : dict
        How it was made, as plain data; ``level`` of the intervals, ``null`` the name of the null model.
    tables : mapping of str to pandas.DataFrame
        ``scores`` by time, ``means`` over ranges of time (the whole one first), and ``contrasts`` of both: with the
        segment columns, metric, weighting, model, (reference,) time or from and to, the numbers and n_events. Where
        there are administrative and projected scores, ``recommendations`` for all individuals, each with its verdict
        and sentence (`Comparison.recommendation`); at one time, from and to are the same.
    segment_columns : tuple of str
        Columns that say whose scores a row has; ``"(all)"`` in all of them stands for all individuals.
    """

    id: str
    date: str
    version: str
    settings: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    segment_columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        comparison: Comparison | SegmentedComparison,
        *,
        whole: Range = WHOLE,
        ranges: Sequence[tuple[float, float]] = (),
        references: Iterable[str] | None = None,
        times: Iterable[float] | None = None,
        settings: Mapping[str, Any] | None = None,
        id: str | None = None,
        date: datetime | None = None,
    ) -> Run:
        """Return the run of a comparison.

        Parameters
        ----------
        comparison : Comparison or SegmentedComparison
            From `compare` or `evaluate`; of large data, made with these `ranges`.
        whole : tuple of float, optional
            Over which time the first mean is taken, which stops where there is no score any more.
        ranges : sequence of pairs
            Over which time to take means, too. They are not defined where there are times without score.
        references : iterable of str, optional
            The models to take differences to; by default the comparison's own.
        times : iterable of float, optional
            At which of the evaluation times recommendations are made, beside those of means; by default at all of
            them, if these are at most 20.
        settings, id, date
            See `Run`.

        Returns
        -------
        Run

        Examples
        --------
        >>> import survscore as ss
        >>> from survscore.checks import Run
        >>> from survscore.simulate import ConstantHazardStudy
        >>> sample = ConstantHazardStudy().sample(500, seed=1)
        >>> curves = {"truth": sample.survival(range(1, 91))}
        >>> compared = ss.compare(sample.outcomes, curves, weighting="administrative", times=range(10, 81, 10))
        >>> run = Run.of(compared, id="monday")
        >>> run.tables["means"][["model", "from", "to", "score"]].round(3)
                  model  from    to  score
        0         truth  10.0  80.0  0.202
        1  Kaplan-Meier  10.0  80.0  0.202
        """
        by = comparison.by if isinstance(comparison, SegmentedComparison) else ()
        total = comparison.total if isinstance(comparison, SegmentedComparison) else comparison
        total_label = (ALL,) * len(by)
        compared = {total_label: total, **(comparison.parts if isinstance(comparison, SegmentedComparison) else {})}
        found: dict[str, list[pd.DataFrame]] = {"scores": [], "means": [], "contrasts": []}
        for label, one in compared.items():
            for name, frames in _tables(one, whole, ranges, references, strictly=label == total_label).items():
                found[name] += [frame.assign(**dict(zip(by, label, strict=True))) for frame in frames]
        tables = {name: _joined(frames) for name, frames in found.items()}
        concluded = _recommendations(total, [whole, *ranges], references, times)
        tables["recommendations"] = None if concluded is None else concluded.assign(**dict.fromkeys(by, ALL))
        told = {
            "level": total.level,
            "null": total.null,
            "individuals": total.n,
            "directions": {one.metric: one.direction for one in total.scored},
            "cause": total.scored[0].cause,
        }
        return make_run({**told, **(settings or {})}, tables, segment_columns=by, id=id, date=date)

    @property
    def null(self) -> str | None:
        """The name of the null model, where there is one."""
        name = self.settings.get("null")
        return name if isinstance(name, str) else None

    @property
    def cause(self) -> str:
        """The cause of events that scores are of, ``"all"`` for all together; empty without competing risks."""
        name = self.settings.get("cause")
        return name if isinstance(name, str) else ""

    @property
    def known_causes(self) -> list[str]:
        """The causes that a rule may name, as far as the settings list them."""
        listed = self.settings.get("causes")
        names = [str(name) for name in listed] if isinstance(listed, (Mapping, list)) else []
        return [*names, ALL_CAUSES] if names else []

    @property
    def level(self) -> float:
        """Of the confidence intervals."""
        level = self.settings.get("level", 0.95)
        return float(level) if isinstance(level, (int, float)) and 0 < level < 1 else 0.95

    def names(self, column: str) -> list[str]:
        """Return the metrics, weightings or models there are, in their order."""
        return list(
            dict.fromkeys(str(name) for table in ("scores", "means") for name in self.tables[table][column].unique())
        )

    def direction(self, metric: str) -> Direction:
        """Return which values of a metric are better."""
        told = self.settings.get("directions")
        given = told.get(metric) if isinstance(told, Mapping) else None
        if given is None and metric in METRICS:
            return METRICS[metric].direction
        return next((one for one in get_args(Direction) if one == given), "lower")

    def for_history(self, times: Iterable[float] = ()) -> Run:
        """Return what a history keeps: the means, and the scores at these times."""
        scores = self.tables["scores"]
        at = scores["time"].to_numpy(dtype=np.float64)
        kept = np.zeros(at.size, dtype=np.bool_)
        for time in times:
            kept |= same_time(at, time)
        if self.tables["means"].empty:  # one time is all there is
            kept[:] = True
        tables = {"scores": scores[kept].reset_index(drop=True), "means": self.tables["means"]}
        return replace(self, tables=tables)


def _tables(
    comparison: Comparison,
    whole: Range,
    ranges: Sequence[tuple[float, float]],
    references: Iterable[str] | None,
    *,
    strictly: bool,
) -> dict[str, list[pd.DataFrame]]:
    """Return the tables of one comparison; if not `strictly`, what has no score somewhere has no mean there."""
    chosen = [comparison.against(one) for one in dict.fromkeys(references or [comparison.reference])]
    means, contrasts = [], [one.contrasts for one in chosen]
    for lower, upper in dict.fromkeys([whole, *ranges]) if comparison.times.size > 1 else ():
        _check_range(comparison, lower, upper)
        for metric in comparison.metrics:
            for k, one in enumerate(chosen):
                try:
                    scores, differences = _means(one, metric, lower, upper, strict=(lower, upper) != whole)
                except InputError:
                    if strictly:
                        raise
                    continue
                means += [scores] if k == 0 else []
                contrasts.append(differences)
    return {"scores": [comparison.scores], "means": means, "contrasts": contrasts}


def _recommendations(
    compared: Comparison, ranges: Sequence[Range], references: Iterable[str] | None, times: Iterable[float] | None
) -> pd.DataFrame | None:
    """Return what to conclude of means over ranges and at some times, by each loss; None where there is nothing."""
    if not compared.has_recommendation:
        return None
    metrics = dict.fromkeys(one.metric for one in compared.scored if one.by_theta is not None)
    if times is None:
        times = compared.times if compared.times.size <= FEW_TIMES else ()
    asked: list[dict[str, Any]] = [{"lower": lower, "upper": upper} for lower, upper in dict.fromkeys(ranges)]
    known = compared.times[compared.times.size == 1 :]  # the only time is that of the mean as well
    asked += [{"time": float(one)} for time in times for one in known[same_time(known, time)]]
    chosen = [compared.against(one) for one in dict.fromkeys(references or [compared.reference])]
    return _joined(
        [one.recommendation(**when, metric=metric).to_frame() for one in chosen for metric in metrics for when in asked]
    )


def make_run(
    settings: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame | None],
    *,
    segment_columns: tuple[str, ...] = (),
    id: str | None = None,
    date: datetime | None = None,
) -> Run:
    """Return a run of tables that may have more columns than are needed, or lack some that may be missing."""
    check_segment_columns(segment_columns)
    moment = datetime.now(UTC) if date is None else date.astimezone(UTC)
    tidy = {name: _tidy(name, tables.get(name), segment_columns) for name in COLUMNS}
    if not tidy["means"].empty and tidy["means"]["n_events"].isna().all():
        tidy["means"] = _with_events(tidy["means"], tidy["scores"], segment_columns)
    run = Run("", moment.isoformat(), __version__, plain(settings), tidy, segment_columns)
    if id is None:
        return replace(run, id=f"{moment:%Y-%m-%dT%H%M%SZ}-{_digest(run)}")
    check_id(id)
    return replace(run, id=id)


def same_time(times: Any, time: float) -> Any:
    """Return which times are this one; one that was computed need not be the same number to the last bit."""
    return np.isclose(times, time, rtol=1e-9, atol=1e-12)


def check_id(id: str) -> None:
    """Raise unless a run can be called so, also as a file."""
    if not RUN_ID.fullmatch(id) or id in RESERVED:
        raise InputError(
            f"a run's id must be letters, digits and . _ + -, at most 100, and not 'last' or 'first', not {shown(id)!r}"
        )


def check_segment_columns(columns: Sequence[str]) -> None:
    """Raise unless segments can be told by these columns."""
    taken = {name for names in COLUMNS.values() for name in names} | {"run", "date", "version", "settings", "table"}
    for column in columns:
        if column in taken:
            raise InputError(f"a segment column must not be called {column!r}, which is the name of another column")


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values, None for NaN."""
    columns = {str(name): [plain(value) for value in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def plain(value: Any, depth: int = DEEPEST) -> Any:
    """Return what JSON can hold: None for numbers that are not finite, texts of what it does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping) and depth:
        return {str(key): plain(one, depth - 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and depth:
        return [plain(one, depth - 1) for one in value]
    return shown(value) if depth else "..."


def _digest(run: Run) -> str:
    frame = run.tables["scores" if run.tables["means"].empty else "means"]
    content = [run.date, run.settings, rows_of(frame)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def _check_range(comparison: Comparison, lower: float | None, upper: float | None) -> None:
    first, last = float(comparison.times[0]), float(comparison.times[-1])
    if not first <= (first if lower is None else lower) < (last if upper is None else upper) <= last:
        raise InputError(
            f"a mean over {first if lower is None else lower:g} to {last if upper is None else upper:g} needs "
            f"evaluation times that cover it, and they go from {first:g} to {last:g}; --times names others"
        )


def _means(
    comparison: Comparison, metric: str, lower: float | None, upper: float | None, *, strict: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the mean scores of a metric and their contrasts; NaN where there is no such mean."""
    some = replace(comparison, scored=tuple(one for one in comparison.scored if one.metric == metric))
    try:
        found = some.integrated(lower, upper, nan="raise" if strict else "stop")
    except InputError:  # the range is within the times, so scores are missing
        first, last = float(comparison.times[0]), float(comparison.times[-1])
        ends = {"from": first if lower is None else lower, "to": last if upper is None else upper}
        return _undefined(some.scores, NAMES, ends), _undefined(some.contrasts, (*NAMES, "reference"), ends)
    return found.scores, some.contrasts.iloc[:0] if found.contrasts is None else found.contrasts


def _undefined(frame: pd.DataFrame, names: Sequence[str], ends: Mapping[str, float]) -> pd.DataFrame:
    return frame[list(names)].drop_duplicates().assign(**ends)


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame | None:
    import pandas as pd

    some = [frame for frame in frames if len(frame)]
    return pd.concat(some, ignore_index=True) if some else None


def _tidy(name: str, frame: pd.DataFrame | None, segment_columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a table with the columns that it must have, in their order."""
    import pandas as pd

    names = (*segment_columns, *COLUMNS[name])
    if frame is None:
        frame = pd.DataFrame({column: [] for column in names})
    texts = {*segment_columns, *TEXTS}
    return pd.DataFrame(
        {
            column: frame[column].astype(object if column in texts else np.float64) if column in frame else np.nan
            for column in names
        },
        columns=list(names),
    ).reset_index(drop=True)


def _with_events(means: pd.DataFrame, scores: pd.DataFrame, segment_columns: tuple[str, ...]) -> pd.DataFrame:
    """Return means with their number of events: the mean over the same time of how many had it by then."""
    keys = [*segment_columns, *NAMES]
    by_time = {
        key: (part["time"].to_numpy(dtype=np.float64), part["n_events"].to_numpy(dtype=np.float64))
        for key, part in scores.groupby(keys, sort=False, dropna=False)
    }
    events = []
    for row in means.to_dict("records"):
        found = by_time.get(tuple(row[key] for key in keys))
        events.append(math.nan if found is None else _mean_events(*found, row["from"], row["to"]))
    return means.assign(n_events=events)


def _mean_events(times: Any, events: Any, lower: float, upper: float) -> float:
    if times.size < 2 or not lower < upper:
        return math.nan
    weights = trapezoid_weights(times, lower, upper)
    used = weights > 0
    return float(weights[used] @ events[used] / weights[used].sum()) if used.any() else math.nan
