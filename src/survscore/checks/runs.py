"""A run: the scores of one day's data as rows of plain tables, which is what is checked, stored and compared."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, shown
from survscore._version import __version__
from survscore.causes import ALL_CAUSES
from survscore.checks.rules import LAST, nearest
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
Key = tuple[str, str, str, str, str, str]

NAMES = ("metric", "weighting", "model")
NUMBERS = ("se", "lower", "upper")
#: Of each table: texts, numbers, and numbers that may be missing.
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "scores": (NAMES, ("score", *NUMBERS), ("n_events",)),
    "contrasts": ((*NAMES, "reference"), ("difference", *NUMBERS), ()),
    "recommendations": (
        (*NAMES, "reference", "verdict", "sentence"), (), ("hazard_ratio", "ratio_lower", "ratio_upper"),
    ),
}  # fmt: skip
#: Where results have them: by time, and of means.
PARTS = {"scores": ("scores", "means"), "contrasts": ("contrasts", "verdicts"), "recommendations": ("recommendations",)}
TAKEN = {"time", "from", "to", "when", "encodes"}.union(*(group for groups in TABLES.values() for group in groups))
FEW_TIMES = 20  # at each of so many there is a recommendation
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


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
        The rows of ``scores``, of ``contrasts``, and, where there are administrative and projected scores, of
        ``recommendations`` for all individuals. Each has a segment (empty for all individuals), metric, weighting,
        model, (reference,) from and to, which are the same at one time, and the numbers. Of means, the whole one is
        the first. Recommendations have a verdict and a sentence (`Comparison.recommendation`), the models that they
        say to encode the entry date, and the hazard ratio of late starters.
    """

    id: str
    date: str
    version: str
    settings: Mapping[str, Any]
    tables: Mapping[str, list[Row]]

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
        >>> means = [row for row in run.tables["scores"] if row["from"] < row["to"]]
        >>> [(row["model"], row["from"], row["to"], round(row["score"], 3)) for row in means]
        [('truth', 10.0, 80.0, 0.202), ('Kaplan-Meier', 10.0, 80.0, 0.202)]
        """
        by: tuple[str, ...] = ()
        every: dict[tuple[str, ...], Comparison] = {}
        if isinstance(comparison, SegmentedComparison):
            by, every, comparison = comparison.by, {**comparison.parts}, comparison.total
        total = comparison
        spans, chosen = [whole, *ranges], list(dict.fromkeys(references or [total.reference]))
        tables: dict[str, list[Any]] = {}
        for label, one in {(ALL,) * len(by): total, **every}.items():
            frames = [*_frames(one, spans, chosen)]
            frames += _recommendations(one, spans, chosen, times) if one is total else []
            for name, frame in frames:
                tables.setdefault(name, []).extend(frame.assign(**dict(zip(by, label, strict=True))).to_dict("records"))
        described = {
            "level": total.level,
            "null": total.null,
            "individuals": total.n,
            "directions": {one.metric: one.direction for one in total.scored},
            "cause": total.scored[0].cause,
        }
        about = {**described, **(settings or {}), "segment_columns": list(by)}
        return run_of_results({"settings": about, **tables}, id=id, date=date)

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
                key = (name, row["metric"], row["weighting"], row["model"], row.get("reference", ""), row["segment"])
                found.setdefault(key, {}).setdefault(same((row["from"], row["to"])), row)
        return found

    def names(self, column: str) -> list[str]:
        """Return the metrics, weightings, models or segments there are, in their order."""
        return list(dict.fromkeys(row[column] for row in self.tables["scores"]))

    def direction(self, metric: str) -> Direction:
        """Return which values of a metric are better."""
        listed = self.settings.get("directions")
        given = listed.get(metric) if isinstance(listed, Mapping) else None
        if given is None and metric in METRICS:
            return METRICS[metric].direction
        return next((one for one in get_args(Direction) if one == given), "lower")


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
    """Return the run that results are about, as ``survscore compare --json`` writes them.

    Columns before ``metric`` say of which segment a row is.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("settings"), Mapping) or "scores" not in data:
        raise InputError("does not hold settings and scores, as survscore compare --json writes them")
    if data["scores"] == []:
        raise InputError("scores is empty")
    settings, first = plain(data["settings"]), data["scores"][0] if isinstance(data["scores"], list) else {}
    columns = settings.get("segment_columns")
    if columns is None:
        names = list(first) if isinstance(first, Mapping) else []
        columns = names[: names.index("metric")] if "metric" in names else []
    if not isinstance(columns, list) or not all(isinstance(one, str) for one in columns):
        raise InputError("settings: segment_columns must be a list of names")
    for column in columns:
        if column in TAKEN:
            raise InputError(f"a segment column must not be called {column!r}, which is the name of another column")
    tables = {
        table: [row for name in parts for row in checked(table, name, data.get(name) or [], columns)]
        for table, parts in PARTS.items()
    }
    _add_events(tables["scores"])
    moment = (date or datetime.now(UTC)).astimezone(UTC)
    if id is None:
        digest = hashlib.sha256(json.dumps([str(moment), settings, plain(tables)]).encode()).hexdigest()[:8]
        id = f"{moment:%Y-%m-%dT%H%M%SZ}-{digest}"
    check_id(id)
    return Run(id, moment.isoformat(), __version__, settings, tables)


def same(when: When) -> When:
    """Return a time or range that can be held against others; computed ones may differ in the last bits."""
    return float(f"{when[0]:.12g}"), float(f"{when[1]:.12g}")


def check_id(id: str) -> None:
    """Raise unless a run can be called so."""
    if not RUN_ID.fullmatch(id) or id == LAST:
        raise InputError(
            f"a run's id must be letters, digits and . _ + -, at most 100, and not {LAST!r}, not {shown(id)!r}"
        )


def plain(value: Any) -> Any:
    """Return what JSON can hold: None for numbers that are not finite, texts of what it does not know."""
    return json.loads(json.dumps(value, default=shown, skipkeys=True), parse_constant=lambda name: None)


def _frames(
    comparison: Comparison, ranges: Sequence[Range], references: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of one comparison; the first mean stops where scores do, others are NaN without all scores."""
    chosen = [comparison.against(one) for one in references]
    yield "scores", comparison.scores
    yield from (("contrasts", one.contrasts) for one in chosen)
    for k, given in enumerate(dict.fromkeys(ranges) if comparison.times.size > 1 else ()):
        over = _over(comparison, given, nan="raise" if k else "stop")
        yield "means", IntegratedComparison(comparison, over).scores
        means = (IntegratedComparison(one, over).contrasts for one in chosen)
        yield from (("verdicts", contrasts) for contrasts in means if contrasts is not None)


def _over(comparison: Comparison, given: Range, nan: WhereNaN) -> dict[str, MeanOver]:
    """Return over which time means are, by metric; their weights are NaN where there is no such mean."""
    first, last = float(comparison.times[0]), float(comparison.times[-1])
    low, high = (end if asked is None else asked for end, asked in zip((first, last), given, strict=True))
    if not first <= low < high <= last:
        raise InputError(
            f"a mean over {low:g} to {high:g} needs evaluation times that cover it, and they go from {first:g} to "
            f"{last:g}; --horizons names others"
        )
    try:
        return comparison.means_over(low, high, nan=nan)
    except InputError:  # the range is within the times, so scores are missing
        return dict.fromkeys(comparison.metrics, (np.full(comparison.times.size, np.nan), (low, high)))


def _recommendations(
    compared: Comparison, ranges: Sequence[Range], references: Sequence[str], times: Iterable[float] | None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield what to conclude of means over ranges and at some times, by each loss."""
    if not compared.has_recommendation:
        return
    if times is None:
        times = compared.times if compared.times.size <= FEW_TIMES else ()
    asked: list[dict[str, Any]] = [{"lower": lower, "upper": upper} for lower, upper in dict.fromkeys(ranges)]
    known = compared.times[compared.times.size == 1 :]  # the only time is that of the mean as well
    asked += [{"time": float(one)} for time in times for one in known if same((one, one)) == same((time, time))]
    for reference in references:
        for metric in dict.fromkeys(one.metric for one in compared.scored if one.by_theta is not None):
            for when in asked:
                frame = compared.against(reference).recommendation(**when, metric=metric).to_frame()
                yield "recommendations", frame


def checked(table: str, name: str, rows: Any, columns: Sequence[str] | None) -> list[Row]:
    """Return rows with what a table has, after holding their values against it; `columns` say of which segment one is.

    Without `columns`, rows are those of a history, which name their segment.
    """
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{name} must be a list of rows")
    texts, numbers, optional = TABLES[table]
    found = []
    for k, row in enumerate(rows):
        ends = ("from", "to") if row.get("time") is None and (table != "scores" or "from" in row) else ("time", "time")
        for column in (*(columns or ()), *texts, *ends, *numbers):
            if column not in row:
                raise InputError(f"{name}: row {k} has no {column!r}; {nearest(column, map(str, row))}")
        where = f"{name}: row {k}: "
        labels = {one: text(where + one, _label(row[one])) for one in columns or ()}
        told = ", ".join(f"{column} = {label}" for column, label in labels.items() if label != ALL)
        kept: Row = {"segment": told if columns is not None else text(where + "segment", row.get("segment", ""))}
        kept |= {column: text(where + column, row[column]) for column in texts}
        kept |= {end: _number(where + column, row[column]) for end, column in zip(("from", "to"), ends, strict=True)}
        kept |= {column: _number(where + column, row.get(column)) for column in (*numbers, *optional)}
        if table == "recommendations":
            encodes = row.get("encodes", [])
            if not isinstance(encodes, (list, tuple)):
                raise InputError(f"{where}encodes must be a list of models, not {shown(encodes)!r}")
            kept["encodes"] = [text(where + "encodes", model) for model in encodes]
        found.append(kept)
    return found


def _add_events(scores: list[Row]) -> None:
    """Give means their number of events: the mean over the same time of how many had it by then."""
    by_time: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    keys = ("segment", *NAMES)
    for row in scores:
        if row["from"] == row["to"]:
            by_time.setdefault(tuple(row[key] for key in keys), []).append((row["from"], row["n_events"]))
    for row in scores:
        times, events = np.array(sorted(by_time.get(tuple(row[key] for key in keys), []))).reshape(-1, 2).T
        if times.size > 1 and row["from"] < row["to"]:
            weights = trapezoid_weights(times, row["from"], row["to"])
            used = weights > 0
            row["n_events"] = float(weights[used] @ events[used] / weights[used].sum()) if used.any() else math.nan


def text(where: str, value: Any) -> str:
    """Return a text of a file."""
    if not isinstance(value, str):
        raise InputError(f"{where} must be a text, not {shown(value)!r}")
    if any("\ud800" <= char <= "\udfff" for char in value):  # half of a character, which no file can hold
        raise InputError(f"{where} is no text: {shown(ascii(value))}")
    return value


def _label(value: Any) -> str:
    """Return a segment's value as text, so that 1, 1.0 and "1" are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(where: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer)):
        raise InputError(f"{where} must be a number or null, not {shown(value)!r}")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{where} is too large a number") from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
