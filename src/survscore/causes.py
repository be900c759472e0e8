"""Competing risks: the causes of events, their numbers and their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import as_int8, beside, is_tensor, to_host
from survscore._validation import InputError, check_rule, one_dimensional, plural, several, shown

CauseNames = Sequence[str] | Mapping[str, int]
Cause = str | int
MOST_CAUSES = 100


@dataclass(frozen=True)
class Causes:
    """The names of the causes 1, 2, ..., in order."""

    names: tuple[str, ...]

    def number(self, cause: Any, name: str = "cause") -> int:
        """Return the number of a cause, which is given by its name or its number."""
        known = f"the causes are {several([repr(one) for one in self.names])}"
        if isinstance(cause, str) and cause in self.names:
            return self.names.index(cause) + 1
        whole = isinstance(cause, (int, np.integer)) and not isinstance(cause, (bool, np.bool_))
        if whole and 1 <= cause <= len(self.names):
            return int(cause)
        rule = "the name of a cause, or its number from 1 on"
        raise InputError(f"{name} must be {rule}, not {shown(repr(cause))}; {known}")

    @classmethod
    def read(cls, event: Any, names: CauseNames | None, *, device: Any = None) -> tuple[tuple[str, ...], Any]:
        """Return the names of the causes, and the number of each event's; nothing and None without competing risks.

        `event` has codes of causes if it has whole numbers larger than 1, or if `names` are given.
        """
        array = one_dimensional(event, "event", device)
        if not is_tensor(array) and array.dtype == object:
            kinds = {isinstance(value, (bool, np.bool_)) for value in array.tolist()}
            if len(kinds) > 1:
                raise InputError("event must be all boolean or all codes of causes (0, 1, 2, ...), not both")
        codes = to_host(array)
        if codes.dtype.kind == "O" and names is not None and not any(isinstance(code, str) for code in codes):
            codes = codes.astype(np.float64) if not any(code is None for code in codes) else codes
        boolean, numeric = codes.dtype.kind == "b", codes.dtype.kind in "iuf"
        if names is None and (not numeric or not _has_causes(codes)):
            return (), None
        if boolean or not numeric:
            raise InputError(
                f"event must hold the causes as numbers (0 without event) where causes are named, not {codes.dtype}"
            )
        known = _codes(codes, names)
        found = np.zeros(codes.size, dtype=np.int8)
        for number, code in enumerate(known.values(), start=1):
            found[codes == code] = number
        check_rule("event", _rule(known), (found == 0) & (codes != 0), codes)
        found.flags.writeable = False
        return tuple(known), found if device is None else beside(found, array)

    @classmethod
    def of_labels(
        cls, labels: Any, happened: NDArray[np.bool_], names: CauseNames | None
    ) -> tuple[tuple[str, ...], NDArray[np.int8]]:
        """Return the names of the causes, and their numbers, from labels such as text; 0 where nothing happened."""
        import pandas as pd

        given = one_dimensional(labels, "cause")
        missing = np.asarray(pd.isna(given), dtype=np.bool_)
        check_rule("cause", "given for each individual with event", missing & happened, given)
        if names is None:
            distinct = sorted({str(label) for label in given[~missing]})
            known: dict[str, Any] = {label: label for label in distinct}
        elif isinstance(names, Mapping):
            known = {str(name): label for name, label in names.items()}
        else:
            known = {str(name): name for name in names}
        check_names(list(known))
        found = np.zeros(given.size, dtype=np.int8)
        for number, label in enumerate(known.values(), start=1):
            # an array of objects compares element by element, whatever its types
            found[np.asarray([value == label or str(value) == str(label) for value in given])] = number
        check_rule("cause", f"one of {several([repr(name) for name in known])}", (found == 0) & happened, given)
        return tuple(known), as_int8(np.where(happened, found, 0))


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
    """Return the code of each cause, by its name."""
    if isinstance(names, Mapping):
        known = {str(name): code for name, code in names.items()}
        whole = [isinstance(code, (int, np.integer)) and not isinstance(code, bool) for code in known.values()]
        if not all(whole) or any(code == 0 for code in known.values()) or len(set(known.values())) < len(known):
            raise InputError(f"causes must map names to different whole numbers other than 0, not {shown(names)}")
    elif names is None:
        largest = int(codes.max())
        if largest > MOST_CAUSES:
            raise InputError(f"event must be the number of a cause, at most {MOST_CAUSES}, and one is {largest}")
        known = {str(code): code for code in range(1, largest + 1)}
    else:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"causes must be a sequence of names, or map names to codes, not {shown(repr(names))}")
        listed = [str(name) for name in names]
        known = {name: code for code, name in enumerate(listed, start=1)}
    check_names(list(known))
    return known


def check_names(names: Sequence[str]) -> None:
    """Raise unless these can be the names of causes."""
    if len(set(names)) < len(names):
        raise InputError(f"causes must have different names: {several([repr(name) for name in names])}")
    if not names or len(names) > MOST_CAUSES:
        raise InputError(f"causes must be 1 to {MOST_CAUSES}, not {plural(len(names), 'cause')}")


def _rule(known: Mapping[str, int]) -> str:
    listed = several([f"{code} ({name})" if name != str(code) else name for name, code in known.items()])
    return f"0 or the code of a cause, {listed}"
