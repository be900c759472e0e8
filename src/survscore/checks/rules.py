"""Rules of what scores must be, read from a small TOML file."""

from __future__ import annotations

import datetime
import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from survscore._validation import InputError, shown
from survscore.io.files import check_regular
from survscore.metrics import Direction

Severity = Literal["error", "warning"]
OnTrouble = Literal["skip", "error"]
Segments = Literal["total", "each"] | tuple[dict[str, str], ...]

EVERY = "*"
LAST, FIRST = "last", "first"
OF_SCORES = ("score", "upper", "lower")
OF_DIFFERENCES = ("difference", "difference-upper", "difference-lower", "relative-difference")
VALUES = (*OF_SCORES, *OF_DIFFERENCES, "skill")
THRESHOLDS = ("below", "above", "between", "worse_by")
KEYS = (
    "name", "cause", "metric", "weighting", "model", "at", "range", "segment", "reference", "value", *THRESHOLDS,
    "severity", "min_events", "on_too_few", "undefined",
)  # fmt: skip


@dataclass(frozen=True)
class Threshold:
    """Which values are allowed.

    Attributes
    ----------
    kind : {"below", "above", "between", "worse_by"}
        Less than `high`; more than `low`; from `low` to `high`; or not worse than the reference by more than `high`.
    low, high : float or None
        The limits.
    """

    kind: str
    low: float | None
    high: float | None

    def allows(self, value: float) -> bool:
        """Whether a value is allowed; NaN never is. Under `worse_by`, values count how much worse a model is."""
        if math.isnan(value):
            return False
        if self.kind == "below":
            return self.high is not None and value < self.high
        if self.kind == "above":
            return self.low is not None and value > self.low
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def told(self, direction: Direction) -> str:
        """Return it in words."""
        if self.kind == "between":
            return f"between {self.low:g} and {self.high:g}"
        if self.kind == "worse_by":
            margin = self.high or 0.0
            return f"at most {margin:g}" if direction == "lower" else f"at least {0.0 - margin:g}"
        return f"{self.kind} {self.high if self.kind == 'below' else self.low:g}"


@dataclass(frozen=True)
class Reference:
    """What a value is compared with.

    Attributes
    ----------
    name : str
        A model, ``"last"`` or ``"first"``, or the id or date of a stored run.
    kind : {"model", "run"} or None
        Which of them; None, where only the name is given.
    """

    name: str
    kind: Literal["model", "run"] | None = None


@dataclass(frozen=True)
class Rule:
    """One check: of which numbers, and what they must be. `parse_rules` makes them.

    Attributes
    ----------
    number : int
        Its place in the file, from 1.
    name : str
        What it is called; empty where it has no name.
    metrics, models : tuple of str, or None
        Which; None is the default, ``"*"`` all.
    weighting : str or None
        Its label or the first word of it. None: of differences between models the projected one, where there is one,
        with the recommendation; of all else the first.
    at : float or None
        An evaluation time.
    range : tuple of float, or None
        From when to when the mean is taken; without `at` and `range`, the mean is the whole one.
    segment : {"total", "each"} or tuple of dict
        Whose scores: of all, of each segment, or of those with these values.
    reference : Reference or None
        What is compared with.
    value : str
        Which number: one of `VALUES`.
    threshold : Threshold
        What it must be.
    severity : {"error", "warning"}
        Whether a failure counts, or is only told.
    min_events : float or None
        How many events it takes to say something.
    on_too_few, undefined : {"skip", "error"}
        What holds if there are fewer, and if the number is not defined.
    cause : str or None
        Under competing risks, the cause of events whose scores it is about; None is any.
    """

    number: int
    name: str
    metrics: tuple[str, ...] | None
    weighting: str | None
    models: tuple[str, ...]
    at: float | None
    range: tuple[float, float] | None
    segment: Segments
    reference: Reference | None
    value: str
    threshold: Threshold
    severity: Severity = "error"
    min_events: float | None = None
    on_too_few: OnTrouble = "skip"
    undefined: OnTrouble = "error"
    cause: str | None = None

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return self.name or f"check {self.number}"

    def wrong(self, message: str) -> InputError:
        """Return the error that says what is wrong with it."""
        return _wrong(self.number, self.name, message)


def read_rules(path: Path | str) -> tuple[Rule, ...]:
    """Read rules from a TOML file.

    Parameters
    ----------
    path : path
        The file; ``survscore check --init`` writes an example.

    Returns
    -------
    tuple of Rule
    """
    path = Path(path)
    if path.exists():
        check_regular(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; survscore check --init {path} writes an example") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not TOML: {shown(error, most=200)}") from None
    except (RecursionError, ValueError):  # ValueError: whole numbers of thousands of digits
        raise InputError(f"{path}: is not TOML that can be read: too deep, or a number too long") from None
    try:
        return parse_rules(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def parse_rules(data: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules in what a TOML file says.

    Parameters
    ----------
    data : mapping
        With ``check``, a list of tables.

    Returns
    -------
    tuple of Rule

    Examples
    --------
    >>> from survscore.checks import parse_rules
    >>> (rule,) = parse_rules({"check": [{"model": "new", "reference": "old"}]})
    >>> rule.value, rule.threshold.told("lower")
    ('difference-lower', 'at most 0')
    >>> parse_rules({"check": [{"model": "new", "belw": 0.2}]})
    Traceback (most recent call last):
    survscore._validation.InputError: check 1: unknown key 'belw'; did you mean 'below'?
    """
    for key in data:
        if key != "check":
            raise InputError(f"unknown key {shown(key)!r}; rules are [[check]] tables")
    tables = data.get("check")
    if not isinstance(tables, Sequence) or isinstance(tables, (str, bytes)) or not tables:
        raise InputError("rules must hold at least one [[check]] table")
    return tuple(_rule(number, table) for number, table in enumerate(tables, start=1))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint: the nearest of the known names, or all of them."""
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {shown(close[0])!r}?"
    told = ", ".join(repr(shown(one)) for one in names[:8])
    return f"there is {told}{', ...' if len(names) > 8 else ''}" if names else "there is none"


def _wrong(number: int, name: str, message: str) -> InputError:
    called = f" ({shown(name)!r})" if name else ""
    return InputError(f"check {number}{called}: {message}")


def _rule(number: int, table: Any) -> Rule:
    name = table.get("name", "") if isinstance(table, Mapping) else ""
    name = name if isinstance(name, str) else ""
    try:
        if not isinstance(table, Mapping):
            raise InputError("must be a table of keys")
        return _parsed(number, name, table)
    except InputError as error:
        raise _wrong(number, name, str(error)) from None


def _parsed(number: int, name: str, table: Mapping[str, Any]) -> Rule:
    for key in table:
        if key not in KEYS:
            raise InputError(f"unknown key {shown(key)!r}; {nearest(str(key), KEYS)}")
    if "name" in table:
        _text(table, "name")
    reference = _reference(table["reference"]) if "reference" in table else None
    threshold = _threshold(table, reference)
    value = _value(table, reference, threshold)
    if "at" in table and "range" in table:
        raise InputError("at and range exclude each other; give one")
    if "on_too_few" in table and "min_events" not in table:
        raise InputError("on_too_few is for min_events")
    severity: Severity = "warning" if _choice(table, "severity", ("error", "warning")) == "warning" else "error"
    return Rule(
        number=number,
        name=name,
        metrics=_names(table, "metric") if "metric" in table else None,
        weighting=_text(table, "weighting") if "weighting" in table else None,
        models=_names(table, "model") if "model" in table else (EVERY,),
        at=_number("at", table["at"], "a time, zero or later", lambda time: time >= 0) if "at" in table else None,
        range=_pair("range", table["range"], least=0.0) if "range" in table else None,
        segment=_segments(table.get("segment", "total")),
        reference=reference,
        value=value,
        threshold=threshold,
        severity=severity,
        min_events=(
            _number("min_events", table["min_events"], "a number, zero or larger", lambda least: least >= 0)
            if "min_events" in table
            else None
        ),
        on_too_few="error" if _choice(table, "on_too_few", ("skip", "error")) == "error" else "skip",
        undefined="skip" if _choice(table, "undefined", ("error", "skip")) == "skip" else "error",
        cause=_text(table, "cause") if "cause" in table else None,
    )


def _threshold(table: Mapping[str, Any], reference: Reference | None) -> Threshold:
    given = [key for key in THRESHOLDS if key in table]
    if len(given) > 1:
        raise InputError(f"{given[0]} and {given[1]} exclude each other; for two limits, say between = [a, b]")
    if not given:
        if reference is None or table.get("value", "difference-lower") != "difference-lower":
            raise InputError("says no threshold: give below, above or between")
        return Threshold("worse_by", None, 0.0)  # a model and a reference alone: it must not be significantly worse
    (kind,) = given
    if kind == "between":
        return Threshold(kind, *_pair(kind, table[kind]))
    if kind == "worse_by":
        least = _number(kind, table[kind], "a number, zero or larger", lambda margin: margin >= 0)
        return Threshold(kind, None, least)
    limit = _number(kind, table[kind], "a number", lambda _: True)
    return Threshold(kind, None, limit) if kind == "below" else Threshold(kind, limit, None)


def _value(table: Mapping[str, Any], reference: Reference | None, threshold: Threshold) -> str:
    by_default = "score" if reference is None else "difference"
    if threshold.kind == "worse_by":
        by_default = "difference-lower"
    value = _choice(table, "value", VALUES, by_default)
    if value in OF_DIFFERENCES and reference is None:
        what = f"value = {value!r}" if "value" in table else threshold.kind
        raise InputError(f"{what} needs a reference: a model, or a run of the history such as 'last'")
    if value in OF_SCORES and reference is not None:
        hint = f"value = 'difference-{value}'" if value != "score" else "value = 'difference'"
        raise InputError(f"value = {value!r} has no use for a reference; {hint} does")
    if threshold.kind == "worse_by" and value not in OF_DIFFERENCES:
        raise InputError(f"worse_by is for differences, not for value = {value!r}")
    if value == "skill" and reference is not None and (reference.kind == "run" or reference.name in (LAST, FIRST)):
        raise InputError("value = 'skill' is against a model, not against a run of the history")
    return value


def _reference(given: Any) -> Reference:
    if isinstance(given, Mapping):
        if len(given) != 1 or next(iter(given)) not in ("model", "run"):
            raise InputError("reference must be a name, {model = NAME} or {run = ID}")
        ((kind, name),) = given.items()
        return Reference(_name("reference", _as_day(name)), "model" if kind == "model" else "run")
    if isinstance(given, (datetime.date, datetime.datetime)):
        return Reference(_as_day(given), "run")
    return Reference(_name("reference", given))


def _as_day(given: Any) -> Any:
    return given.isoformat() if isinstance(given, datetime.date) else given


def _segments(given: Any) -> Segments:
    if given in ("total", "each"):
        return "each" if given == "each" else "total"
    if isinstance(given, str):
        raise InputError(f"segment must be 'total', 'each' or a table such as {{country = 'DE'}}, not {shown(given)!r}")
    tables = [given] if isinstance(given, Mapping) else given
    if not isinstance(tables, Sequence) or not tables or not all(isinstance(one, Mapping) and one for one in tables):
        raise InputError("segment must be 'total', 'each', a table such as {country = 'DE'}, or a list of tables")
    return tuple({str(column): _label(column, value) for column, value in one.items()} for one in tables)


def _label(column: Any, value: Any) -> str:
    if not isinstance(value, (str, int, float, datetime.date)):
        raise InputError(f"segment: {shown(column)!r} must be a text or a number, not {shown(value)!r}")
    return segment_label(value)


def segment_label(value: Any) -> str:
    """Return a segment's value as text, so that 1, 1.0 and "1" are the same."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _names(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = table[key]
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        if not given:
            raise InputError(f"{key} must name at least one")
        return tuple(dict.fromkeys(_name(key, one) for one in given))
    return (_name(key, given),)


def _name(key: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InputError(f"{key} must be a text that is not empty, not {shown(given)!r}")
    return given


def _text(table: Mapping[str, Any], key: str) -> str:
    return _name(key, table[key])


def _choice(table: Mapping[str, Any], key: str, choices: tuple[str, ...], by_default: str = "") -> str:
    given = table.get(key, by_default or choices[0])
    if not isinstance(given, str) or given not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{key} must be one of {allowed}, not {shown(given)!r}")
    return given


def _number(key: str, given: Any, rule: str, allowed: Callable[[float], bool]) -> float:
    number = math.nan
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        try:
            number = float(given)
        except OverflowError:  # a whole number beyond all floats
            number = math.inf
    if not math.isfinite(number) or not allowed(number):
        raise InputError(f"{key} must be {rule}, not {_told(given)}")
    return number


def _told(given: Any) -> str:
    """Return a value for a message; a whole number may have too many digits to be written."""
    try:
        return shown(repr(given))
    except (ValueError, RecursionError):
        return f"such {type(given).__name__}"


def _pair(key: str, given: Any, least: float = -math.inf) -> tuple[float, float]:
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)) or len(given) != 2:
        raise InputError(f"{key} must be a pair [a, b], not {_told(given)}")
    rule = "a pair of numbers" + (", zero or larger" if least == 0 else "")
    low, high = (_number(key, end, rule, lambda number: number >= least) for end in given)
    if not low < high:
        raise InputError(f"{key} must go up, from a smaller to a larger number, not {_told(given)}")
    return low, high
