"""Rules of what scores must be, read from a small TOML file."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from survscore._validation import InputError, shown
from survscore.io.files import check_regular

Severity = Literal["error", "warning"]

LAST = "last"
LARGEST = 1e300  # of numbers
LIMITS = ("below", "above", "worse_by")


class Value(NamedTuple):
    """What a rule's `value` is called, what it is compared with ("": nothing), and whether it takes thresholds."""

    label: str
    references: tuple[str, ...] = ("",)
    has_limits: bool = True


VALUES = {
    "score": Value("score"),
    "upper": Value("upper limit"),
    "lower": Value("lower limit"),
    "difference": Value("difference", ("model", "run")),
    "difference-upper": Value("upper limit of the difference", ("model", "run")),
    "difference-lower": Value("lower limit of the difference", ("model", "run")),
    "skill": Value("skill"),
    "recommendation": Value("recommendation", ("model",), has_limits=False),
    "leak": Value("encoding of the entry date", has_limits=False),
    "hazard-ratio": Value("hazard ratio of late starters", ("", "run")),
}
DIFFERENCES = ("difference", "difference-upper", "difference-lower")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One check: of which numbers, and what they must be. `parse_rules` makes them.

    Attributes
    ----------
    number, name : int, str
        Its place in the file, from 1, and what it is called, if it has a name.
    value, metric, model, weighting, cause : str, or tuple of str, or None
        Of which numbers, as rules name them; None is the default.
    at, range, segment
        At which evaluation time, or over which range of time; of all individuals ("total"), or of "each" segment.
    reference : str or None
        What is compared with: a model, or ``"last"``, the last run of the history.
    below, above, worse_by : float or None
        What the value must be, and how much worse than the reference a model may be.
    severity : {"error", "warning"}
        Whether a failure counts, or is only reported.
    """

    number: int
    name: str = ""
    value: str = "score"
    metric: tuple[str, ...] | None = None
    model: tuple[str, ...] | None = None
    weighting: str | None = None
    at: float | None = None
    range: tuple[float, float] | None = None
    segment: str = "total"
    reference: str | None = None
    below: float | None = None
    above: float | None = None
    worse_by: float | None = None
    severity: Severity = "error"
    cause: str | None = None

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return self.name or f"check {self.number}"

    def allows(self, value: float) -> bool:
        """Whether a value is allowed; NaN never is. Under `worse_by`, values count how much worse a model is."""
        below, above = (math.inf if self.below is None else self.below), self.above
        is_within = value < below and (above is None or value > above)
        return is_within and (self.worse_by is None or value <= self.worse_by)

    def threshold(self, *, higher_is_better: bool = False) -> str:
        """Return what the value must be, in words."""
        if not VALUES[self.value].has_limits:
            return "none" if self.value == "leak" else "better or undecided"
        if self.worse_by is not None:
            return f"at least {0.0 - self.worse_by:g}" if higher_is_better else f"at most {self.worse_by:g}"
        limits = {"above": self.above, "below": self.below}
        return " and ".join(f"{name} {limit:g}" for name, limit in limits.items() if limit is not None)

    def wrong(self, message: str) -> InputError:
        """Return the error that says what is wrong with it."""
        return _wrong(self.number, self.name, message)


def example() -> str:
    """Return rules to begin with, with comments, as a TOML file has them."""
    return (files("survscore.checks") / "example.toml").read_text(encoding="utf-8")


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
    if not path.exists():
        raise InputError(f"{path}: there is no such file; survscore check --init {path} writes an example")
    check_regular(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (RecursionError, ValueError) as error:  # ValueError: also whole numbers of thousands of digits
        raise InputError(f"{path}: is not TOML: {shown(error, most=200)}") from None
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
    >>> rule.value, rule.threshold()
    ('difference-lower', 'at most 0')
    >>> parse_rules({"check": [{"model": "new", "belw": 0.2}]})
    Traceback (most recent call last):
    survscore._validation.InputError: check 1: unknown key 'belw'; did you mean 'below'?
    """
    for key in data:
        if key != "check":
            raise InputError(f"unknown key {shown(key)!r}; rules are [[check]] tables")
    tables = data.get("check")
    if not isinstance(tables, list) or not tables:
        raise InputError("rules must hold at least one [[check]] table")
    return tuple(_rule(number, table) for number, table in enumerate(tables, start=1))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint: the nearest of the known names, or all of them."""
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {shown(close[0])!r}?"
    some = ", ".join(repr(shown(known_name)) for known_name in names[:8])
    return f"there is {some}{', ...' if len(names) > 8 else ''}" if names else "there is none"


def rounded(time: float) -> float:
    """Return a time that can be compared with others; computed ones may differ in the last bits."""
    return float(f"{time:.12g}")


def _wrong(number: int, name: Any, message: str) -> InputError:
    called = f" ({shown(name)!r})" if isinstance(name, str) and name else ""
    return InputError(f"check {number}{called}: {message}")


def _rule(number: int, table: Any) -> Rule:
    if not isinstance(table, Mapping):
        raise _wrong(number, "", "must be a table of keys")
    given: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            raise _wrong(number, table.get("name"), f"unknown key {shown(key)!r}; {nearest(str(key), KEYS)}")
        must_be, is_right = KEYS[key]
        if not is_right(value):
            raise _wrong(number, table.get("name"), f"{key} must be {must_be}, not {shown(repr(value))}")
        given[key] = value
    for key in ("metric", "model"):
        if key in given:
            given[key] = tuple(dict.fromkeys(given[key] if isinstance(given[key], list) else [given[key]]))
    given |= {"at": rounded(given["at"])} if "at" in given else {}
    given |= {"range": tuple(map(rounded, given["range"]))} if "range" in given else {}
    try:
        return _consistent(number, given)
    except InputError as error:
        raise _wrong(number, given.get("name"), str(error)) from None


def _consistent(number: int, given: dict[str, Any]) -> Rule:
    """Return the rule that checked keys say, with the value and threshold that others imply."""
    limits = [key for key in LIMITS if key in given]
    against = "" if "reference" not in given else "run" if given["reference"] == LAST else "model"
    if "value" not in given:
        simple = "below" in given or "above" in given
        differs = "difference" if simple else "difference-lower"
        given["value"] = differs if against or (limits and not simple) else "score"
    name = given["value"]
    _, references, has_limits = VALUES[name]
    if against and name == "difference-lower" and not limits:
        # a model and a reference alone: the model must not be significantly worse
        given["worse_by"], limits = 0.0, ["worse_by"]
    value, is_difference = f"value = {name!r}", name in DIFFERENCES
    needed = " or ".join({"model": "a model of the results", "run": "the 'last' run"}[one] for one in references if one)
    mistakes = {
        "worse_by is for differences, and excludes below and above": "worse_by" in given
        and (len(limits) > 1 or not is_difference),
        f"{value} takes no {', '.join(limits)}": limits and not has_limits,
        "says no threshold: give below, above or worse_by": has_limits and not limits,
        f"{value} has no use for a reference": against and references == ("",),
        f"{value} needs a reference: {needed}": not against and "" not in references,
        f"{value} is compared with {needed}, with nothing else": against not in references,
        "at and range exclude each other; give one": "at" in given and "range" in given,
        "above must be smaller than below": given.get("above", -math.inf) >= given.get("below", math.inf),
    }
    for message, is_wrong in mistakes.items():
        if is_wrong:
            raise InputError(message)
    return Rule(number=number, **given)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return all(map(_is_text, value)) and bool(value) if isinstance(value, list) else _is_text(value)


def is_number(value: Any, least: float = -LARGEST) -> bool:
    """Whether this is a finite number, and not less than the least; huge whole numbers are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= LARGEST


def _is_positive(value: Any) -> bool:
    return is_number(value, 0.0)


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_positive, value)) and value[0] < value[1]


def _one_of(*choices: str) -> tuple[str, Callable[[Any], bool]]:
    return f"one of {', '.join(map(repr, choices))}", lambda value: isinstance(value, str) and value in choices


TEXT, TEXTS = ("a text that is not empty", _is_text), ("a text, or a list of texts, that is not empty", _is_texts)
NUMBER, POSITIVE = ("a number", is_number), ("a number, zero or larger", _is_positive)
#: What the value of each key must be, and whether it is.
KEYS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "name": TEXT,
    "cause": TEXT,
    "metric": TEXTS,
    "weighting": TEXT,
    "model": TEXTS,
    "at": POSITIVE,
    "range": ("a pair [a, b] of numbers, zero or larger, that must go up", _is_range),
    "segment": _one_of("total", "each"),
    "reference": TEXT,
    "value": _one_of(*VALUES),
    "below": NUMBER,
    "above": NUMBER,
    "worse_by": POSITIVE,
    "severity": _one_of("error", "warning"),
}
