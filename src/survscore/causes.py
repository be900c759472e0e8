"""Competing risks: the causes of events, their numbers and their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import beside, to_host
from survscore._validation import InputError, as_list, check_rule, one_dimensional, several, shown

CauseNames = Sequence[str] | Mapping[str, int]
Cause = str | int
Function = TypeVar("Function", bound=Callable[..., Any])
MOST_CAUSES = 100
#: The number of all statuses together, in place of a cause of interest.
ALL_STATUSES = -1
#: Stands for all causes: scores are then multi-class, over event-free and all of them.
ALL_CAUSES = "all"


@dataclass(frozen=True)
class Causes:
    """The names of the causes 1, 2, ..., in order, and their codes where these are others."""

    names: tuple[str, ...]
    codes: tuple[int, ...] = ()

    def number(self, cause: Any, name: str = "cause") -> int:
        """Return the number of a cause, which is given by its name or its number."""
        known = f"the causes are {several([repr(one) for one in self.names])}"
        if isinstance(cause, str) and cause == ALL_CAUSES:
            return ALL_STATUSES
        if isinstance(cause, str) and cause in self.names:
            return self.names.index(cause) + 1
        if _is_whole(cause):
            if str(cause) in self.names and all(map(str.isdigit, self.names)):
                return self.names.index(str(cause)) + 1
            if self.codes:
                coded = several([str(code) for code in self.codes])
                raise InputError(
                    f"{name} must be the name of a cause, not the number {cause}, since their codes are {coded} "
                    f"and not 1, 2, ...; {known}"
                )
            if 1 <= cause <= len(self.names):
                return int(cause)
        rule = "the name of a cause, or its number from 1 on"
        raise InputError(f"{name} must be {rule}, not {shown(repr(cause))}; {known}")

    @classmethod
    def read(cls, event: Any, names: CauseNames | None, *, device: Any = None) -> tuple[Causes, Any]:
        """Return the causes, and the number of each event's; nothing and None without competing risks.

        `event` has codes of causes if it has whole numbers larger than 1, or if `names` are given.
        """
        array = one_dimensional(event, "event", device)
        codes = to_host(array)
        if codes.dtype.kind == "O":
            _check_one_kind(codes.tolist())
            if names is not None:
                check_rule("event", "without missing values", np.array([code is None for code in codes]), codes)
            if all(isinstance(code, (int, float)) and not isinstance(code, bool) for code in codes.tolist()):
                codes = codes.astype(np.float64)
        numeric = codes.dtype.kind in "iuf"
        if names is None and (not numeric or not _has_causes(codes)):
            return cls(()), None
        if isinstance(event, (list, tuple)):  # NumPy makes numbers of booleans among numbers
            _check_one_kind(event)
        if not numeric:
            raise InputError(
                f"event must hold the causes as numbers (0 without event) where causes are named, not {codes.dtype}"
            )
        known = _codes(codes, names)
        found = np.zeros(codes.size, dtype=np.int8)
        for number, code in enumerate(known.values(), start=1):
            found[codes == code] = number
        check_rule("event", _rule(known), (found == 0) & (codes != 0), codes)
        found.flags.writeable = False
        return cls.of_codes(known), found if device is None else beside(found, array)

    @classmethod
    def of_codes(cls, known: Mapping[str, int]) -> Causes:
        """Return causes of which the names and the codes are known, in order."""
        codes = tuple(int(code) for code in known.values())
        return cls(tuple(known), () if codes == tuple(range(1, len(codes) + 1)) else codes)

    @classmethod
    def of_labels(
        cls, labels: Any, happened: NDArray[np.bool_], dated: NDArray[np.bool_], names: CauseNames | None
    ) -> tuple[Causes, NDArray[np.int8]]:
        """Return the causes, and the number of each event's, from labels such as text; 0 where nothing happened.

        Without `names` they are those of individuals with a date of the event, also if it was not seen.
        """
        import pandas as pd

        given = one_dimensional(labels, "cause")
        places, found = pd.factorize(given)
        check_rule("cause", "given for each individual with event", (places < 0) & happened, given)
        distinct = [_as_written(label) for label in found]
        if names is None:
            low = [isinstance(label, (int, float, np.number)) and label < 1 for label in found]
            below = np.array([*low, False], dtype=np.bool_)
            rule = "the number of a cause, 1 or larger, where there is a date of the event, unless causes= names it"
            check_rule("cause", rule, below[places] & dated, given)
        if isinstance(names, Mapping):
            known = {str(name): _as_written(label) for name, label in names.items()}
            if all(map(_is_code, known.values())):
                known = dict(sorted(known.items(), key=lambda pair: int(pair[1])))
        elif names is not None:
            listed = _listed_names(names)
            # the names of 1, 2, ..., unless numbers are named as they are
            numbered = given.dtype.kind in "iuf" and not all(map(str.isdigit, listed))
            known = {name: str(code) if numbered else name for code, name in enumerate(listed, start=1)}
        else:
            occur = {distinct[place] for place in np.unique(places[dated & (places >= 0)])}
            known = {label: label for label in sorted(occur, key=_by_number)}
            if not known:
                raise InputError("cause has no label, since there is no event: name the causes (causes=)")
        check_names(list(known))
        number_of = {label: number for number, label in enumerate(known.values(), start=1)}
        numbers = np.array([*(number_of.get(label, 0) for label in distinct), 0], dtype=np.int8)[places]
        check_rule("cause", f"one of {several([repr(label) for label in number_of])}", (numbers == 0) & happened, given)
        numeric = all(map(_is_code, known.values()))
        causes = cls.of_codes({name: int(label) for name, label in known.items()}) if numeric else cls(tuple(known))
        return causes, np.where(happened, numbers, np.int8(0))


def takes_cause(function: Function) -> Function:
    """Let users say `event_of_interest` for `cause`, as in scikit-survival, lifelines and yardstick."""

    @wraps(function)
    def spelled(*args: Any, **kwargs: Any) -> Any:
        if "event_of_interest" in kwargs:
            if kwargs.get("cause") is not None:
                raise InputError("cause and event_of_interest are two spellings of one argument: give one of them")
            kwargs["cause"] = kwargs.pop("event_of_interest")
        return function(*args, **kwargs)

    return cast("Function", spelled)


def in_words(name: str) -> str:
    """Return a cause for a count of events: its name, and "of cause 1" where that is a number."""
    return f"of cause {name}" if name.isdigit() else shown(name)


def _check_one_kind(values: Sequence[Any]) -> None:
    kinds = {isinstance(value, (bool, np.bool_)) for value in values if value is not None}
    if len(kinds) > 1:
        raise InputError("event must be all boolean or all codes of causes (0, 1, 2, ...), not both")


def _as_written(label: Any) -> str:
    """Return a label as text; whole numbers without a point, however they are held."""
    whole = isinstance(label, (float, np.floating)) and float(label).is_integer()
    return str(int(label) if whole else label)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def _is_code(label: str) -> bool:
    """Whether a label is a whole number."""
    return label.removeprefix("-").isdecimal()


def _by_number(name: str) -> tuple[bool, int, str]:
    """Sort numbers by size, and before text."""
    return not name.isdigit(), int(name) if name.isdigit() else 0, name


def _listed_names(names: Any) -> list[str]:
    rule = "a sequence of names, or map names to codes"
    if isinstance(names, str):
        raise InputError(f"causes must be {rule}, not {names!r}")
    listed = [str(name) for name in as_list(names, "causes", rule)]
    check_names(listed)
    return listed


def _has_causes(codes: NDArray[Any]) -> bool:
    """Whether numbers larger than 1 are the codes of causes; other numbers are no events at all."""
    with np.errstate(invalid="ignore"):  # infinity has no remainder
        larger = (codes > 1) & (codes % 1 == 0)
    if not larger.any() or ((codes != 0) & (codes != 1) & ~larger).any():
        return False
    if not (codes == 0).any():
        raise InputError(
            "event has several codes and no 0, which stands for no event. If 1 means censored and 2 the event, pass "
            "event == 2; if each individual had an event, name the causes (causes=)"
        )
    return True


def _codes(codes: NDArray[Any], names: CauseNames | None) -> dict[str, int]:
    """Return the code of each cause, by its name, in the order of the codes."""
    if isinstance(names, Mapping):
        known = {str(name): code for name, code in names.items()}
        given = list(known.values())
        if not all(map(_is_whole, given)) or 0 in given or len(set(given)) < len(known):
            raise InputError(f"causes must map names to different whole numbers other than 0, not {shown(names)}")
        known = dict(sorted(known.items(), key=lambda pair: pair[1]))
    elif names is None:
        largest = int(codes.max())
        if largest > MOST_CAUSES:
            raise InputError(f"event must be the number of a cause, at most {MOST_CAUSES}, and one is {largest}")
        known = {str(code): code for code in range(1, largest + 1)}
    else:
        known = {name: code for code, name in enumerate(_listed_names(names), start=1)}
    check_names(list(known))
    return known


def check_names(names: Sequence[str]) -> None:
    """Raise unless these can be the names of causes."""
    if len(set(names)) < len(names):
        raise InputError(f"causes must have different names: {several([repr(name) for name in names])}")
    if not names or len(names) > MOST_CAUSES:
        raise InputError(f"causes must name 1 to {MOST_CAUSES} causes, not {len(names)}")
    if any(not name.strip() for name in names):
        raise InputError(f"causes must not have empty names: {several([repr(name) for name in names])}")
    if ALL_CAUSES in names:
        raise InputError(f"no cause may be called {ALL_CAUSES!r}, which stands for all causes together")


def check_named_alike(predicted: Sequence[str], observed: Sequence[str], whose: str) -> None:
    """Raise if a cause that is predicted is unknown while an observed one is not predicted: another spelling of it."""
    if set(predicted) - set(observed) and set(observed) - set(predicted):
        seen, given = (several([repr(name) for name in names]) for names in (observed, predicted))
        raise InputError(f"{whose} must be of the causes of y, {seen}, not of {given}: name them alike (causes=)")


def _rule(known: Mapping[str, int]) -> str:
    listed = several([f"{code} ({name})" if name != str(code) else name for name, code in known.items()])
    return f"0 or the code of a cause, {listed}"
