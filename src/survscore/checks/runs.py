"""A run: the scores of one day's data as rows of plain tables, which is what is checked, stored and compared."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, shown
from survscore._version import __version__
from survscore.causes import ALL_CAUSES
from survscore.checks.rules import LAST, nearest, segment_label
from survscore.engine.averaging import Range, WhereNaN, trapezoid_weights
from survscore.io.files import check_regular
from survscore.metrics import METRICS, Direction
from survscore.results.comparison import Comparison, IntegratedComparison
from survscore.results.long_tables import ALL, MeanOver
from survscore.results.segments import SegmentedComparison

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
When = tuple[float, float]  # from and to; a time twice
Segment = tuple[tuple[str, str], ...]  # the columns and values that it has; none for all individuals
Key = tuple[str, str, str, str, str, Segment]

NAMES = ("metric", "weighting", "model")
NUMBERS = ("se", "lower", "upper")
#: The columns of each table: texts, numbers, and numbers that may be missing.
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "scores": (NAMES, ("time", "score", *NUMBERS), ("n_events",)),
    "means": (NAMES, ("from", "to", "score", *NUMBERS), ("n_events",)),
    "contrasts": ((*NAMES, "reference"), ("difference", *NUMBERS), ("time", "from", "to")),
    "recommendations": (
        (*NAMES, "reference", "verdict", "sentence"), ("from", "to"), ("hazard_ratio", "ratio_lower", "ratio_upper"),
    ),
}  # fmt: skip
STORED = ("scores", "means", "recommendations")
TAKEN = {"when", "encodes"}.union(*(group for groups in TABLES.values() for group in groups))
FEW_TIMES = 20  # at each of so many there is a recommendation
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
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
    settings : mapping
        How it was made, as plain data; ``level`` of the intervals, ``null`` the name of the null model.
    tables : mapping of str to list of dict
        The rows of ``scores`` by time, ``means`` over ranges of time (the whole one first), and ``contrasts`` of both:
        segment columns, metric, weighting, model, (reference,) time or from and to, the numbers, and n_events. Where
        there are administrative and projected scores, ``recommendations`` for all individuals, each with its verdict
        and sentence (`Comparison.recommendation`), the models that it says to encode the entry date, and the hazard
        ratio of late starters; at one time, from and to are the same.
    segment_columns : tuple of str
        Columns that say whose scores a row has; ``"(all)"`` in all of them stands for all individuals.
    """

    id: str
    date: str
    version: str
    settings: Mapping[str, Any]
    tables: Mapping[str, list[Row]]
    segment_columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        comparison: Comparison | SegmentedComparison,
        *,
        whole: Range = (None, None),
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
        >>> [(row["model"], row["from"], row["to"], round(row["score"], 3)) for row in run.tables["means"]]
        [('truth', 10.0, 80.0, 0.202), ('Kaplan-Meier', 10.0, 80.0, 0.202)]
        """
        by = comparison.by if isinstance(comparison, SegmentedComparison) else ()
        total = comparison.total if isinstance(comparison, SegmentedComparison) else comparison
        parts = comparison.parts if isinstance(comparison, SegmentedComparison) else {}
        everyone = (ALL,) * len(by)
        tables: dict[str, list[Any]] = {name: [] for name in TABLES}
        for label, one in {everyone: total, **parts}.items():
            whose = dict(zip(by, label, strict=True))
            for name, frame in _frames(one, [whole, *ranges], references):
                tables[name] += frame.assign(**whose).to_dict("records")
        whose = dict.fromkeys(by, ALL)
        for frame in _recommendations(total, [whole, *ranges], references, times):
            tables["recommendations"] += frame.assign(**whose).to_dict("records")
        described = {
            "level": total.level,
            "null": total.null,
            "individuals": total.n,
            "directions": {one.metric: one.direction for one in total.scored},
            "cause": total.scored[0].cause,
        }
        return make_run({**described, **(settings or {})}, tables, segment_columns=by, id=id, date=date)

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

    @cached_property
    def index(self) -> dict[Key, dict[When, Row]]:
        """Rows by table, metric, weighting, model, reference (or empty) and segment, and then by time or range."""
        found: dict[Key, dict[When, Row]] = {}
        for name, rows in self.tables.items():
            for row in rows:
                segment = tuple((column, row[column]) for column in self.segment_columns if row[column] != ALL)
                key = (name, row["metric"], row["weighting"], row["model"], row.get("reference", ""), segment)
                found.setdefault(key, {}).setdefault(row["when"], row)
        return found

    def names(self, column: str) -> list[str]:
        """Return the metrics, weightings or models there are, in their order."""
        return list(dict.fromkeys(row[column] for name in ("scores", "means") for row in self.tables[name]))

    def direction(self, metric: str) -> Direction:
        """Return which values of a metric are better."""
        listed = self.settings.get("directions")
        given = listed.get(metric) if isinstance(listed, Mapping) else None
        if given is None and metric in METRICS:
            return METRICS[metric].direction
        return next((one for one in get_args(Direction) if one == given), "lower")

    def for_history(self, times: Iterable[float] = ()) -> Run:
        """Return what a history keeps: the means, the scores at these times, and the recommendations."""
        times = list(times)
        scores = self.tables["scores"]
        if self.tables["means"]:  # otherwise one time is all there is
            scores = [row for row in scores if any(same_time(row["time"], time) for time in times)]
        return replace(self, tables={**self.tables, "scores": scores, "contrasts": []})


def make_run(
    settings: Mapping[str, Any],
    tables: Mapping[str, Any],
    *,
    segment_columns: tuple[str, ...] = (),
    id: str | None = None,
    date: datetime | None = None,
) -> Run:
    """Return a run of tables that may have more columns than are needed; what is wrong with them is an `InputError`."""
    for column in segment_columns:
        if column in TAKEN:
            raise InputError(f"a segment column must not be called {column!r}, which is the name of another column")
    moment = (date or datetime.now(UTC)).astimezone(UTC)
    checked = {name: _checked(name, tables.get(name) or [], segment_columns) for name in TABLES}
    _add_events(checked, segment_columns)
    run = Run("", moment.isoformat(), __version__, plain(settings), checked, segment_columns)
    if id is None:
        content = [run.date, run.settings, plain(run.tables["means"] or run.tables["scores"])]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
        return replace(run, id=f"{moment:%Y-%m-%dT%H%M%SZ}-{digest}")
    check_id(id)
    return replace(run, id=id)


def read_results(path: Path | str, *, id: str | None = None, date: datetime | None = None) -> Run:
    """Read what ``survscore compare --json`` or ``survscore score --json`` wrote.

    Parameters
    ----------
    path : path
        The file.
    id, date
        Of the run; by default now, and an id made of the date and a digest.

    Returns
    -------
    Run
    """
    path = Path(path)
    check_regular(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON that survscore compare --json wrote: {shown(error)}") from None
    try:
        return run_of_results(data, id=id, date=date)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def run_of_results(data: Any, *, id: str | None = None, date: datetime | None = None) -> Run:
    """Return the run that results as plain data are about.

    Parameters
    ----------
    data : mapping
        With ``settings`` and the lists of rows ``scores``, ``means``, ``contrasts``, ``verdicts`` and
        ``recommendations``, as ``survscore compare --json`` writes them. Columns before ``metric`` say of which segment
        a row is.
    id, date
        See `read_results`.

    Returns
    -------
    Run
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("settings"), Mapping) or "scores" not in data:
        raise InputError("does not hold settings and scores, as survscore compare --json writes them")
    if data["scores"] == []:
        raise InputError("scores is empty")
    settings, tables = dict(data["settings"]), {name: data[name] for name in TABLES if name in data}
    columns = settings.get("segment_columns")
    if columns is None and isinstance(data["scores"], list) and isinstance(data["scores"][0], Mapping):
        names = list(data["scores"][0])
        columns = names[: names.index("metric")] if "metric" in names else []
    of_means = data.get("verdicts")  # contrasts of the means, or once more of the one time there is
    if isinstance(of_means, list) and of_means and isinstance(of_means[0], Mapping) and "from" in of_means[0]:
        tables["contrasts"] = [*(tables.get("contrasts") or []), *of_means]
    run = make_run(settings, tables, segment_columns=_columns(columns or []), id=id, date=date)
    if "null" not in settings and isinstance(settings.get("curves"), Mapping):
        added = [name for name in run.names("model") if name not in settings["curves"]]
        return replace(run, settings={**run.settings, "null": added[0] if len(added) == 1 else None})
    return run


def run_of_line(said: Any) -> Run:
    """Return a stored run: its id, date, version, settings and segment columns, and the rows of its tables."""
    for name in ("id", "date", "version"):
        _text(name, said.get(name))
    if not isinstance(said.get("settings"), Mapping):
        raise InputError("settings must be a table")
    try:
        date = datetime.fromisoformat(said["date"])
    except ValueError:
        raise InputError(f"date must be as ISO 8601 writes it, not {shown(said['date'])!r}") from None
    tables = {name: said[name] for name in STORED if name in said}
    columns = _columns(said.get("segment_columns", []))
    run = make_run(said["settings"], tables, segment_columns=columns, id=said["id"], date=date)
    return replace(run, version=said["version"])


def as_line(run: Run) -> Row:
    """Return what a history keeps of a run, as plain data; `run_of_line` reads it."""
    about = {"id": run.id, "date": run.date, "version": run.version, "segment_columns": list(run.segment_columns)}
    rows = {
        name: [plain({column: value for column, value in row.items() if column != "when"}) for row in run.tables[name]]
        for name in STORED
    }
    return {**about, "settings": run.settings, **rows}


def same_time(time: float, other: float) -> bool:
    """Whether two times are the same; one that was computed need not be the same number to the last bit."""
    return math.isclose(time, other, rel_tol=1e-9, abs_tol=1e-12)


def check_id(id: str) -> None:
    """Raise unless a run can be called so."""
    if not RUN_ID.fullmatch(id) or id == LAST:
        raise InputError(
            f"a run's id must be letters, digits and . _ + -, at most 100, and not {LAST!r}, not {shown(id)!r}"
        )


def plain(value: Any, depth: int = DEEPEST) -> Any:
    """Return what JSON can hold: None for numbers that are not finite, texts of what it does not know."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping) and depth:
        return {str(key): plain(one, depth - 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and depth:
        return [plain(one, depth - 1) for one in value]
    return shown(value) if depth else "..."


def _frames(
    comparison: Comparison, ranges: Sequence[Range], references: Iterable[str] | None
) -> Iterable[tuple[str, pd.DataFrame]]:
    """Yield the tables of one comparison; the first mean stops where scores do, others are NaN without all scores."""
    chosen = [comparison.against(one) for one in dict.fromkeys(references or [comparison.reference])]
    yield "scores", comparison.scores
    yield from (("contrasts", one.contrasts) for one in chosen)
    for k, given in enumerate(dict.fromkeys(ranges) if comparison.times.size > 1 else ()):
        over = _over(comparison, given, nan="raise" if k else "stop")
        yield "means", IntegratedComparison(comparison, over).scores
        means = (IntegratedComparison(one, over).contrasts for one in chosen)
        yield from (("contrasts", contrasts) for contrasts in means if contrasts is not None)


def _over(comparison: Comparison, given: Range, nan: WhereNaN) -> dict[str, MeanOver]:
    """Return over which time means are, by metric; their weights are NaN where there is no such mean."""
    first, last = float(comparison.times[0]), float(comparison.times[-1])
    low, high = (end if asked is None else asked for end, asked in zip((first, last), given, strict=True))
    if not first <= low < high <= last:
        raise InputError(
            f"a mean over {low:g} to {high:g} needs evaluation times that cover it, and they go from {first:g} to "
            f"{last:g}; --times names others"
        )
    try:
        means = comparison.means_over(low, high, nan=nan)
    except InputError:  # the range is within the times, so scores are missing
        means = {}
    nothing: MeanOver = (np.full(comparison.times.size, np.nan), (low, high))
    return {
        metric: nothing if metric not in means or np.isnan(means[metric][0]).any() else means[metric]
        for metric in comparison.metrics
    }


def _recommendations(
    compared: Comparison, ranges: Sequence[Range], references: Iterable[str] | None, times: Iterable[float] | None
) -> Iterable[pd.DataFrame]:
    """Yield what to conclude of means over ranges and at some times, by each loss."""
    if not compared.has_recommendation:
        return
    if times is None:
        times = compared.times if compared.times.size <= FEW_TIMES else ()
    asked: list[dict[str, Any]] = [{"lower": lower, "upper": upper} for lower, upper in dict.fromkeys(ranges)]
    known = compared.times[compared.times.size == 1 :]  # the only time is that of the mean as well
    asked += [{"time": float(one)} for time in times for one in known if same_time(one, time)]
    for reference in dict.fromkeys(references or [compared.reference]):
        for metric in dict.fromkeys(one.metric for one in compared.scored if one.by_theta is not None):
            for when in asked:
                yield compared.against(reference).recommendation(**when, metric=metric).to_frame()


def _checked(name: str, rows: Any, segment_columns: tuple[str, ...]) -> list[Row]:
    """Return rows with the columns that a table has, after holding their values against it."""
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{name} must be a list of rows")
    texts, numbers, optional = TABLES[name]
    checked = []
    for k, row in enumerate(rows):
        for column in (*segment_columns, *texts, *numbers):
            if column not in row:
                raise InputError(f"{name}: row {k} has no {column!r}; {nearest(column, map(str, row))}")
        where = f"{name}: row {k}: "
        found: Row = {column: _text(where + column, segment_label(row[column])) for column in segment_columns}
        found |= {column: _text(where + column, row[column]) for column in texts}
        found |= {column: _number(where + column, row.get(column)) for column in (*numbers, *optional)}
        if name == "recommendations":
            encodes = row.get("encodes", [])
            if not isinstance(encodes, (list, tuple)):
                raise InputError(f"{where}encodes must be a list of models, not {shown(encodes)!r}")
            found["encodes"] = [_text(where + "encodes", model) for model in encodes]
        at = found.get("time", math.nan)
        found["when"] = (found["from"], found["to"]) if math.isnan(at) else (at, at)
        checked.append(found)
    return checked


def _add_events(tables: dict[str, list[Row]], segment_columns: tuple[str, ...]) -> None:
    """Give means their number of events: the mean over the same time of how many had it by then."""
    by_time: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    keys = (*segment_columns, *NAMES)
    for row in tables["scores"]:
        by_time.setdefault(tuple(row[key] for key in keys), []).append((row["time"], row["n_events"]))
    for row in tables["means"]:
        times, events = np.array(sorted(by_time.get(tuple(row[key] for key in keys), []))).reshape(-1, 2).T
        if math.isnan(row["n_events"]) and times.size > 1 and row["from"] < row["to"]:
            weights = trapezoid_weights(times, row["from"], row["to"])
            used = weights > 0
            row["n_events"] = float(weights[used] @ events[used] / weights[used].sum()) if used.any() else math.nan


def _columns(given: Any) -> tuple[str, ...]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise InputError("settings: segment_columns must be a list of names")
    return tuple(given)


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where} must be a text, not {shown(value)!r}")
    if any("\ud800" <= char <= "\udfff" for char in value):  # half of a character, which no file can hold
        raise InputError(f"{where} is no text: {shown(ascii(value))}")
    return value


def _number(where: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer)):
        raise InputError(f"{where} must be a number or null, not {shown(value)!r}")
    if isinstance(value, int) and value.bit_length() > 1000:
        raise InputError(f"{where} is too large a number")
    return float(value)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
