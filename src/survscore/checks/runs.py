"""A run: the scores of one day's data as plain tables, which is what is checked, stored and compared.

A history holds earlier runs, each a line of a JSON Lines file that only grows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from survscore._validation import InputError, shown
from survscore._version import __version__
from survscore.checks.rules import LAST, Rule, is_number, nearest, rounded
from survscore.engine.averaging import Range
from survscore.io.files import append_line, check_regular, locked
from survscore.metrics import METRICS, Direction
from survscore.results.comparison import Comparison, IntegratedComparison
from survscore.results.long_tables import ALL
from survscore.results.segments import IntegratedSegments, SegmentedComparison

ENDS = ["from", "to"]
NAMES = ["metric", "weighting", "model"]
#: Of each table of a run: its texts, its numbers, and which tables of results it is made of.
TABLES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "scores": (NAMES, ["score", "se", "lower", "upper"], ["scores", "means"]),
    "contrasts": ([*NAMES, "reference"], ["difference", "se", "lower", "upper"], ["contrasts", "verdicts"]),
    "recommendations": (
        [*NAMES, "reference", "verdict", "sentence"],
        ["hazard_ratio", "ratio_lower", "ratio_upper"],
        ["recommendations"],
    ),
}
FEW_TIMES = 20  # at each of so many there is a recommendation
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
FORM = 2  # of what a history stores; a later one may be another
BEGINS = b'{"survscore_run": '


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
    tables : mapping of str to pandas.DataFrame
        ``scores``, ``contrasts``, and, where there are administrative and projected scores, ``recommendations`` for
        all individuals. Each has a segment (empty for all individuals), metric, weighting, model, (reference,) from and
        to, which are the same at one time, and the numbers. Of means, the whole one is the first. Recommendations have
        a verdict and a sentence (`Comparison.recommendation`), the models that they say to encode the entry date, and
        the hazard ratio of late starters.
    """

    id: str
    date: str
    version: str
    settings: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]

    @classmethod
    def of(
        cls,
        comparison: Comparison | SegmentedComparison,
        rules: Iterable[Rule] = (),
        *,
        whole: Range = (None, None),
        settings: Mapping[str, Any] | None = None,
        id: str | None = None,
        date: datetime | None = None,
    ) -> Run:
        """Return the run of a comparison.

        Parameters
        ----------
        comparison : Comparison or SegmentedComparison
            From `compare` or `evaluate`; of large data, made with the ranges of the rules.
        rules : iterable of Rule, optional
            Whose ranges, references and times are needed, too. Means over ranges are undefined where scores are.
        whole : tuple of float, optional
            Over which time the first mean is taken, which stops where there is no score any more.
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
        >>> means = run.tables["scores"].query("`from` < to")
        >>> means[["model", "from", "to", "score"]].round(3)
                  model  from    to  score
        16        truth  10.0  80.0  0.202
        17  Kaplan-Meier  10.0  80.0  0.202
        """
        total = comparison.total if isinstance(comparison, SegmentedComparison) else comparison
        rules = list(rules)
        ranges = list(dict.fromkeys([whole, *(rule.range for rule in rules if rule.range is not None)]))
        names = dict.fromkeys(rule.reference for rule in rules if rule.reference in total.models)
        references = [name for name in names if name is not None] or [total.reference]
        described = {
            "level": total.level,
            "null": total.null,
            "individuals": total.n,
            "directions": {scored.metric: scored.direction for scored in total.scored},
            "cause": total.scored[0].cause,
            **(settings or {}),
        }
        tables: dict[str, list[Any]] = {}
        for name, frame in (
            *_frames(comparison, total, [comparison.against(name) for name in references], ranges),
            *_recommendations([total.against(name) for name in references], ranges, {rule.at for rule in rules}),
        ):
            tables.setdefault(name, []).extend(frame.to_dict("records"))
        return run_of_results({"settings": described, **tables}, id=id, date=date)

    def setting(self, name: str, default: Any) -> Any:
        """Return a setting, or the default if there is none of its type; a file may hold anything."""
        value = self.settings.get(name)
        return value if isinstance(value, type(default)) else default

    @property
    def cause(self) -> str:
        """The cause of events that scores are of, ``"all"`` for all together; empty without competing risks."""
        return str(self.setting("cause", ""))

    def names(self, column: str) -> list[str]:
        """Return the metrics, weightings, models or segments there are, in their order."""
        return list(self.tables["scores"][column].unique())

    def direction(self, metric: str) -> Direction:
        """Return which values of a metric are better."""
        given = self.setting("directions", {}).get(metric)
        usual: Direction = METRICS[metric].direction if metric in METRICS else "lower"
        return next((known for known in get_args(Direction) if known == given), usual)


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
    names = list(first) if isinstance(first, Mapping) else []
    by = names[: names.index("metric")] if "metric" in names else []
    tables = {
        name: pd.concat([_table(name, part, data.get(part), by) for part in parts], ignore_index=True)
        for name, (*_, parts) in TABLES.items()
    }
    moment = (date or datetime.now(UTC)).astimezone(UTC)
    if id is None:
        stored = [str(moment), settings, tables["scores"].to_csv()]
        id = f"{moment:%Y-%m-%dT%H%M%SZ}-{hashlib.sha256(json.dumps(stored).encode()).hexdigest()[:8]}"
    check_id(id)
    return Run(id, moment.isoformat(), __version__, settings, tables)


def check_id(id: str) -> None:
    """Raise unless a run can be called so."""
    if not RUN_ID.fullmatch(id) or id == LAST:
        rule = f"letters, digits and . _ + -, at most 100, and not {LAST!r}"
        raise InputError(f"a run's id must be {rule}, not {shown(id)!r}")


def plain(value: Any) -> Any:
    """Return what JSON can hold: None for numbers that are not finite, texts of what it does not know."""
    return json.loads(json.dumps(value, default=shown, skipkeys=True), parse_constant=lambda name: None)


def _frames(
    compared: Comparison | SegmentedComparison,
    total: Comparison,
    against: Sequence[Comparison | SegmentedComparison],
    ranges: Sequence[Range],
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield scores and differences, by time and as means; the first mean stops where scores do."""
    yield "scores", compared.scores
    yield from (("contrasts", other.contrasts) for other in against)
    integrated: Any = IntegratedComparison if compared is total else IntegratedSegments
    first, last = float(total.times[0]), float(total.times[-1])
    for k, given in enumerate(ranges if total.times.size > 1 else ()):
        low, high = (end if asked is None else asked for end, asked in zip((first, last), given, strict=True))
        if not first <= low < high <= last:
            raise InputError(
                f"a mean over {low:g} to {high:g} needs evaluation times that cover it, and they go from {first:g} to "
                f"{last:g}; --horizons names others"
            )
        try:
            over = total.means_over(low, high, nan="raise" if k else "stop")
        except InputError:  # the range is within the times, so scores are missing
            over = dict.fromkeys(total.metrics, (np.full(total.times.size, np.nan), (low, high)))
        yield "means", integrated(compared, over).scores
        means = (integrated(other, over).contrasts for other in against)
        yield from (("verdicts", contrasts) for contrasts in means if contrasts is not None)


def _recommendations(
    against: Sequence[Comparison], ranges: Sequence[Range], times: set[float | None]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield what to conclude of means over ranges and at some times, or at all of few, by each loss."""
    total = against[0]
    asked: list[dict[str, Any]] = [{"lower": lower, "upper": upper} for lower, upper in ranges]
    known = total.times if total.times.size > 1 else ()  # the only time is that of the mean as well
    asked += [{"time": float(time)} for time in known if len(known) <= FEW_TIMES or rounded(time) in times]
    for other in against if total.has_recommendation else ():
        for metric in dict.fromkeys(scored.metric for scored in total.scored if scored.by_theta is not None):
            for when in asked:
                yield "recommendations", other.recommendation(**when, metric=metric).to_frame()


def _table(name: str, part: str, rows: Any, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table after checking its rows; the columns `by` say of which segment each is, else it names that."""
    rows = rows or []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{part} must be a list of rows")
    texts, numbers, _ = TABLES[name]
    columns = ["segment", *texts, *ENDS, *numbers, *(["encodes"] if name == "recommendations" else [])]
    if not rows:
        return pd.DataFrame(columns=columns).astype(dict.fromkeys([*ENDS, *numbers], float))
    frame = pd.DataFrame(rows, dtype=object)
    if by is not None:
        labels = [{column: _label(row[column]) for column in by if row.get(column, ALL) != ALL} for row in rows]
        frame["segment"] = [", ".join(f"{column} = {label}" for column, label in row.items()) for row in labels]
    for end in ENDS if "time" in frame else ():
        frame[end] = frame[end].where(frame[end].notna(), frame["time"]) if end in frame else frame["time"]
    for column in columns:
        if column not in frame:
            raise InputError(f"{part} has no {column!r}; {nearest(column, map(str, frame))}")
        rule, is_right = ("a number or null", _is_number) if column in (*ENDS, *numbers) else ("a text", _is_text)
        if column == "encodes":
            rule, is_right = "a list of models", _is_list
        right = frame[column].map(is_right)
        if not right.all():
            k = int(np.argmin(right))
            raise InputError(f"{part}: row {k}: {column} must be {rule}, not {shown(ascii(frame[column].iloc[k]))}")
    frame = frame[columns].astype(dict.fromkeys([*ENDS, *numbers], float))
    return frame.assign(**{end: frame[end].map(rounded) for end in ENDS})


def _is_text(value: Any) -> bool:
    """Whether this is a text that a file can hold: without half of a character."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_number(value: Any) -> bool:
    """Whether this is a number or missing, and no whole number that is too large."""
    return value is None or isinstance(value, (float, np.number)) or is_number(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value))


def _label(value: Any) -> str:
    """Return a segment's value as text, so that 1, 1.0 and "1" are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


@dataclass(frozen=True, eq=False)
class History:
    """The runs of a history.

    Attributes
    ----------
    runs : tuple of Run
        The oldest first.
    notes : tuple of str
        What could not be read, such as the broken line of a run that was killed.
    """

    runs: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()


def read_history(path: Path | str) -> History:
    """Read earlier runs.

    Parameters
    ----------
    path : path
        A file ending in .jsonl; where there is none yet, the history is empty.

    Returns
    -------
    History

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from survscore.checks import read_history
    >>> read_history(pathlib.Path(tempfile.mkdtemp()) / "history.jsonl").runs
    ()
    """
    path = _history_file(path)
    if not path.exists():
        return History()
    with path.open("rb") as file, locked(file, shared=True):
        return _history(path, file.read())


def append_run(path: Path | str, run: Run, *, times: Iterable[float] = ()) -> None:
    """Append a run to a history: its mean scores, the scores at some times, and its recommendations.

    It is appended whole or not at all, also if several processes append at once.

    Parameters
    ----------
    path : path
        A file ending in .jsonl.
    run : Run
        Whose id must not be there yet.
    times : iterable of float
        At which times to keep the scores, too.
    """
    path = _history_file(path)
    check_id(run.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    scores = run.tables["scores"]
    is_mean = scores["from"] < scores["to"]
    kept = scores[is_mean | scores["from"].isin([rounded(time) for time in times])] if is_mean.any() else scores
    tables = {"scores": kept, "recommendations": run.tables["recommendations"]}
    rows = plain({name: table.to_dict("records") for name, table in tables.items()})
    about = {"id": run.id, "date": run.date, "version": run.version, "settings": run.settings}
    line = json.dumps({"survscore_run": FORM, **about, **rows}, allow_nan=False).encode() + b"\n"
    with append_line(path, line) as before:
        if any(stored.id == run.id for stored in _history(path, before).runs):
            raise InputError(f"{path}: there is a run {run.id!r} already; --run-id names this one otherwise")


def _history_file(path: Path | str) -> Path:
    path = Path(path)
    if path.is_dir() or path.suffix.lower() != ".jsonl":
        raise InputError(f"{path}: a history must be a file that ends in .jsonl, with one run a line")
    if path.exists():
        check_regular(path)
    return path


def _history(path: Path, content: bytes) -> History:
    runs, notes = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        text = line.strip(b"\0 \t\r")  # a machine that lost its power may leave zeros
        try:
            runs += [_stored_run(json.loads(text))] if text else []
        except InputError as error:
            raise InputError(f"{path}: line {number}: {error}") from None
        except (ValueError, RecursionError):
            if not (text.startswith(BEGINS) or BEGINS.startswith(text)):
                raise InputError(f"{path}: line {number} is no run of a history") from None
            notes.append(f"{path}: line {number} is broken, of a run that was killed; it is skipped")
    # by date; those of the same moment stay in their order
    return History(tuple(sorted(runs, key=lambda run: run.date)), tuple(notes))


def _stored_run(stored: Any) -> Run:
    if not isinstance(stored, dict) or "survscore_run" not in stored:
        raise InputError("is no run of a history")
    if stored["survscore_run"] != FORM:
        form = shown(stored["survscore_run"])
        raise InputError(f"is of form {form}, which this version of survscore does not know")
    for name, kind in (("id", str), ("date", str), ("version", str), ("settings", dict)):
        if not isinstance(stored.get(name), kind):
            raise InputError(f"{name} must be a {'text' if kind is str else 'table'}, not {shown(stored.get(name))!r}")
    check_id(stored["id"])
    try:
        date = datetime.fromisoformat(stored["date"]).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise InputError(f"date must be as ISO 8601 writes it, not {shown(stored['date'])!r}") from None
    tables = {name: _table(name, name, stored.get(name)) for name in TABLES}
    return Run(stored["id"], date, stored["version"], stored["settings"], tables)
