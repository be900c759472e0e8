"""Rules of what scores must be, read from a small TOML file."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from survscore._validation import InputError, shown
from survscore.io.files import check_regular

Severity = Literal["error", "warning"]

LAST = "last"
OF_SCORES = ("score", "upper", "lower")
OF_DIFFERENCES = ("difference", "difference-upper", "difference-lower")
#: These need administrative and projected scores.
OF_RECOMMENDATIONS = ("recommendation", "leak", "hazard-ratio")
VALUES = (*OF_SCORES, *OF_DIFFERENCES, "skill", *OF_RECOMMENDATIONS)
CODES = ("better", "worse", "undecided", "depends", "too few")
LIMITS = ("below", "above", "worse_by")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One check: of which numbers, and what they must be. `parse_rules` makes them.

    Attributes
    ----------
    number : int
        Its place in the file, from 1.
    name : str
        What it is called; empty where it has no name.
    value : str
        Which number: one of `VALUES`.
    metric, model : tuple of str, or None
        Which; None is the Brier score, and all models but the null model and the reference.
    weighting : str or None
        Its label or the first word of it. None: of differences between models and of recommendations the projected
        one, where there is one; of all else the first.
    at : float or None
        An evaluation time.
    range : tuple of float, or None
        From when to when the mean is taken; without `at` and `range`, the mean is the whole one.
    segment : {"total", "each"}
        Whose scores: of all individuals, or of each segment.
    reference : str or None
        What is compared with: a model, ``"last"``, or the id of a stored run.
    below, above : float or None
        What the value must be.
    worse_by : float or None
        How much worse than the reference a model may be.
    verdict : tuple of str
        Which recommendations pass.
    severity : {"error", "warning"}
        Whether a failure counts, or is only reported.
    min_events : float
        With fewer events the check is skipped.
    cause : str or None
        Under competing risks, the cause of events whose scores it is about; None is any.
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
    verdict: tuple[str, ...] = ("better", "undecided")
    severity: Severity = "error"
    min_events: float = 0.0
    cause: str | None = None

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return self.name or f"check {self.number}"

    def allows(self, value: float) -> bool:
        """Whether a value is allowed; NaN never is. Under `worse_by`, values count how much worse a model is."""
        return (
            not math.isnan(value)
            and (self.below is None or value < self.below)
            and (self.above is None or value > self.above)
            and (self.worse_by is None or value <= self.worse_by)
        )

    def threshold(self, *, higher_is_better: bool = False) -> str:
        """Return what the value must be, in words."""
        if self.value in ("recommendation", "leak"):
            return "none" if self.value == "leak" else " or ".join(self.verdict)
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
    some = ", ".join(repr(shown(one)) for one in names[:8])
    return f"there is {some}{', ...' if len(names) > 8 else ''}" if names else "there is none"


def _wrong(number: int, name: Any, message: str) -> InputError:
    called = f" ({shown(name)!r})" if isinstance(name, str) and name else ""
    return InputError(f"check {number}{called}: {message}")


def _rule(number: int, table: Any) -> Rule:
    try:
        if not isinstance(table, Mapping):
            raise InputError("must be a table of keys")
        for key in table:
            if key not in KEYS:
                raise InputError(f"unknown key {shown(key)!r}; {nearest(str(key), KEYS)}")
        return _consistent({"number": number, **{key: KEYS[key](key, given) for key, given in table.items()}})
    except InputError as error:
        raise _wrong(number, table.get("name") if isinstance(table, Mapping) else "", str(error)) from None


def _consistent(given: dict[str, Any]) -> Rule:
    """Return the rule that checked keys say, with the value and threshold that others imply."""
    compared, limits = "reference" in given, [key for key in LIMITS if key in given]
    if "value" not in given:
        simple = "below" in given or "above" in given
        differs = "difference" if simple else "difference-lower"
        given["value"] = differs if compared or (limits and not simple) else "score"
    value = given["value"]
    if compared and value == "difference-lower" and not limits:
        # a model and a reference alone: the model must not be significantly worse
        given["worse_by"], limits = 0.0, ["worse_by"]
    no_limits = value in ("recommendation", "leak")
    mistakes = {
        "worse_by is for differences, and excludes below and above": "worse_by" in given
        and (len(limits) > 1 or value not in OF_DIFFERENCES),
        f"value = {value!r} takes no {', '.join(limits)}": no_limits and limits,
        "says no threshold: give below, above or worse_by": not no_limits and not limits,
        "verdict is for value = 'recommendation'": "verdict" in given and value != "recommendation",
        f"value = {value!r} needs a reference: a model, or a run of the history such as 'last'": not compared
        and value in (*OF_DIFFERENCES, "recommendation"),
        f"value = {value!r} has no use for a reference": compared and value in (*OF_SCORES, "leak"),
        f"value = {value!r} is against a model, not against a run of the history": given.get("reference") == LAST
        and value in ("skill", "recommendation"),
        "at and range exclude each other; give one": "at" in given and "range" in given,
        "above must be smaller than below": given.get("above", -math.inf) >= given.get("below", math.inf),
    }
    for message, found in mistakes.items():
        if found:
            raise InputError(message)
    return Rule(**given)


def _text(key: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InputError(f"{key} must be a text that is not empty, not {_printed(given)}")
    return given


def _names(key: str, given: Any) -> tuple[str, ...]:
    given = given if isinstance(given, list) else [given]
    if not given:
        raise InputError(f"{key} must name at least one")
    return tuple(dict.fromkeys(_text(key, one) for one in given))


def _choice(*choices: str) -> Callable[[str, Any], str]:
    def chosen(key: str, given: Any) -> str:
        if not isinstance(given, str) or given not in choices:
            raise InputError(f"{key} must be one of {', '.join(map(repr, choices))}, not {_printed(given)}")
        return given

    return chosen


def _codes(key: str, given: Any) -> tuple[str, ...]:
    return tuple(_choice(*CODES)(key, one) for one in _names(key, given))


def _number(key: str, given: Any, least: float = -math.inf, rule: str = "a number") -> float:
    number = math.nan
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        number = math.inf if isinstance(given, int) and given.bit_length() > 1000 else float(given)
    if not math.isfinite(number) or number < least:
        raise InputError(f"{key} must be {rule}, not {_printed(given)}")
    return number


def _positive(key: str, given: Any) -> float:
    return _number(key, given, 0.0, "a number, zero or larger")


def _pair(key: str, given: Any) -> tuple[float, float]:
    if not isinstance(given, list) or len(given) != 2:
        raise InputError(f"{key} must be a pair [a, b], not {_printed(given)}")
    low, high = (_positive(key, end) for end in given)
    if not low < high:
        raise InputError(f"{key} must go up, from a smaller to a larger number, not {_printed(given)}")
    return low, high


def _printed(given: Any) -> str:
    """Return a value for a message; a whole number may have too many digits to be written."""
    try:
        return shown(repr(given))
    except (ValueError, RecursionError):
        return f"such {type(given).__name__}"


KEYS: dict[str, Callable[[str, Any], Any]] = {
    "name": _text, "cause": _text, "metric": _names, "weighting": _text, "model": _names, "at": _positive,
    "range": _pair, "segment": _choice("total", "each"), "reference": _text, "value": _choice(*VALUES),
    "below": _number, "above": _number, "worse_by": _positive, "verdict": _codes,
    "severity": _choice("error", "warning"), "min_events": _positive,
}  # fmt: skip
