"""Checks of what comes in, and the words in which they fail.

Every check happens once, where a user's value enters the library. A message names the argument,
the rule, how many values break it, and the first offender.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import beside, count_true, first_true, is_tensor, namespace, resident, to_device, to_host

FloatArray: TypeAlias = NDArray[np.floating[Any]]
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


#: What to do about events in words.
OF_TEXT = "map it to 0 and the numbers of causes, 1, 2, ...; of dates, Outcomes.from_dates(cause=) takes text"


class InputError(ValueError):
    """An invalid argument; the message names it, the rule, and the first value that violates it."""


class UnfitError(InputError):
    """What was asked for is not defined for these data, predictions or weights; other metrics or analyses may be.

    It points to the page of the documentation that says what there is instead.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.add_note("Limitations, and what to use instead: https://survscore.readthedocs.io/limits.html")


class DeviceMemoryError(MemoryError):
    """A GPU has too little memory left; the message says what to do."""


class FewGroupsWarning(UserWarning):
    """Standard errors are based on few groups, or a few groups contain most of the individuals.

    Groups are of individuals that depend on each other, such as a customer's subscriptions. For scores of each country
    or plan, `compare` has ``by=``.
    """


class FewFollowedWarning(UserWarning):
    """Projected statuses are based on fewer than 50 individuals who were followed event-free, or had the event."""


class DelayedEntryWarning(UserWarning):
    """Fewer early events than predicted, as if individuals came under observation late, but no entry was given."""


class UnequalWeightsWarning(UserWarning):
    """The effective sample size of sample weights is below 100, or one individual has more than 5 % of the weight."""


class InterpolationWarning(UserWarning):
    """Predictions at few times are interpolated linearly between these, and `interpolation` was not given.

    Scores there are of the lines as much as of the model. Name times that were predicted (``times=``), or say how
    to read between them (``SurvivalCurves(..., interpolation=)``).
    """


class UndefinedScoreWarning(UserWarning):
    """Some requested times have no score, because the data or the predictions do not reach them."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller outside the package, however deep inside the mistake was noticed."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    """Whether code of the package runs; the methods that dataclasses generate have no file."""
    file = frame.f_code.co_filename
    generated = file == "<string>" and str(frame.f_globals.get("__name__")).partition(".")[0] == "survscore"
    return generated or file.startswith(_PACKAGE)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return `values` as a NumPy array, without a copy where that is possible.

    Takes sequences, NumPy arrays, series of data frame libraries and torch tensors on any device.
    """
    if not is_tensor(values) and not isinstance(values, np.ndarray):
        tensor = resident(values)  # of other libraries on a GPU
        values = values if tensor is None else tensor
    if is_tensor(values):
        return to_host(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged or not an array: {error}") from None


def as_list(values: Any, name: str, rule: str) -> list[Any]:
    """Return the elements of `values`; `rule` says in an error what these should be."""
    try:
        return list(values)
    except TypeError:
        raise InputError(f"{name} must be {rule}, not {shown(repr(values))}") from None


def as_labels(values: Any, name: str) -> NDArray[Any]:
    """Return labels, one for each individual: of one kind, and none is missing (None, NaN, or pandas' own)."""
    labels = as_array(values, name)
    if labels.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, one label per individual, not of shape {labels.shape}")
    if labels.dtype.kind in "biuSU":
        return labels
    import pandas as pd

    missing = np.asarray(pd.isna(labels), dtype=np.bool_)
    if missing.any():
        raise InputError(
            f"{name} must be given for each individual: {missing.sum()} of {labels.size} are missing, "
            f"the first at position {int(np.argmax(missing))}"
        )
    kinds = {type(label) for label in labels.tolist()} if labels.dtype.kind == "O" else set()
    if len(kinds) > 1 and not all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        raise InputError(f"{name} must be labels of one kind, such as numbers or text")
    return labels


def as_index(key: Any, array: Any) -> Any:
    """Return what picks rows of an array, where it lives: a slice, positions, or a boolean mask."""
    if isinstance(key, slice):
        falling = key.step is not None and key.step < 0
        return beside(np.arange(len(array))[key], array) if falling and is_tensor(array) else key
    if is_tensor(array) and is_tensor(key):
        return beside(key, array)
    picked = as_array(key, "index")
    return beside(picked.astype(np.intp) if picked.size == 0 else picked, array)  # an empty list has no type


def check_rule(name: str, rule: str, broken: NDArray[np.bool_], values: Any) -> None:
    """Raise unless `broken` is false everywhere."""
    count = count_true(broken)
    if count:
        first = first_true(broken)
        raise InputError(
            f"{name} must be {rule}: {count} of {len(broken)} {'is' if count == 1 else 'are'} not, "
            f"the first at position {first} ({shown(values[first])})"
        )


def one_dimensional(values: Any, name: str, device: Any = None) -> Any:
    """Return a vector: a NumPy array, or a tensor on a device."""
    array = as_array(values, name) if device is None else to_device(values, device).contiguous()
    if array.ndim != 1:
        # two columns may be meant as intervals between visits, which there is a page about
        error = UnfitError if name == "time" else InputError
        raise error(f"{name} must be one-dimensional, not of shape {tuple(array.shape)}")
    return array


def as_vector(values: Any, name: str, *, allow_infinite: bool = False, device: Any = None) -> Any:
    """Return a float64 vector of numbers that are not negative: new and read-only, or a tensor on a device.

    A tensor that is there already is shared, not copied.
    """
    array = one_dimensional(values, name, device)
    if is_tensor(array) and (array.is_complex() or str(array.dtype) == "torch.bool"):
        raise InputError(f"{name} must hold numbers, not {array.dtype}")
    vector = as_numbers(array, name) if device is None else array.double()
    if allow_infinite:
        check_rule(name, "a number", namespace(vector).isnan(vector), vector)
    else:
        check_rule(name, "finite", ~namespace(vector).isfinite(vector), vector)
    check_rule(name, "zero or larger", vector < 0, vector)
    if device is None:
        vector.flags.writeable = False
    return vector


def as_numbers(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return a copy in double precision of what holds numbers."""
    if array.dtype == object:
        check_rule(name, "without missing values", np.array([value is None for value in array]), array)
    if array.dtype.kind == "m":
        raise InputError(f"{name} holds time differences; divide by a unit, or use Outcomes.from_dates")
    if array.dtype.kind == "M":
        raise InputError(f"{name} holds dates; use Outcomes.from_dates")
    if array.dtype.kind not in "iufO" or (array.dtype == object and any(isinstance(v, (str, bool)) for v in array)):
        raise InputError(f"{name} must hold numbers, not {array.dtype}")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must hold numbers, not {array.dtype}") from None


def as_event(values: Any, device: Any = None) -> Any:
    """Return a boolean vector from booleans or zeros and ones, made as by `as_vector`."""
    array = one_dimensional(values, "event", device)
    if array.dtype == object:
        check_rule("event", "without missing values", np.array([value is None for value in array]), array)
        texts = np.array([isinstance(value, str) for value in array])
        check_rule("event", f"0 or 1 (or boolean), not text ({OF_TEXT})", texts, array)
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"event must hold booleans or 0 and 1, not {type(array[0]).__name__}") from None
    holds_numbers = not array.is_complex() if is_tensor(array) else array.dtype.kind in "biuf"
    if not holds_numbers:
        text = not is_tensor(array) and array.dtype.kind in "US"
        kind = f"text ({OF_TEXT})" if text else array.dtype
        raise InputError(f"event must hold booleans or 0 and 1, not {kind}")
    check_status("event", array)
    if device is not None:
        return array.bool()
    vector = array.astype(np.bool_)
    vector.flags.writeable = False
    return vector


def check_status(name: str, values: Any) -> None:
    """Raise unless an array or tensor holds 0 and 1 only; beside codes of causes, what is no code is named first."""
    if not is_tensor(values) and values.dtype.kind == "b":
        return
    other = ~((values == 0) | (values == 1))
    with np.errstate(invalid="ignore"):  # infinity has no remainder, and is no code
        coded = (values > 1) & (values % 1 == 0)
    codes = ", or the number of a cause (1, 2, ...)" if bool(coded.any()) else ""
    check_rule(name, f"0 or 1 (or boolean){codes}", other & ~coded, values)
    check_rule(name, "0 or 1 (or boolean)", other, values)


def as_times(values: Any, name: str = "times") -> NDArray[np.float64]:
    """Return a new, read-only vector of finite, strictly increasing times, zero or later."""
    vector: NDArray[np.float64] = as_vector(np.atleast_1d(as_array(values, name)), name)
    if vector.size == 0:
        raise InputError(f"{name} is empty")
    stalls = np.diff(vector) <= 0
    if stalls.any():
        first = int(np.argmax(stalls))
        raise InputError(
            f"{name} must be strictly increasing: {np.count_nonzero(stalls)} of {stalls.size} steps are not, "
            f"the first from {vector[first]} to {vector[first + 1]} at position {first + 1}"
        )
    return vector


def check_length(name: str, length: int, expected_by: str, expected: int) -> None:
    """Raise unless two lengths agree."""
    if length != expected:
        raise InputError(f"{name} has length {length}, but {expected_by} has length {expected}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless `value` is one of `choices`."""
    # an array is equal to each, element by element
    if not any(value is one or (isinstance(value, str) and value == one) for one in choices):
        allowed = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name} must be one of {allowed}, not {value!r}")


MOST_DRAWS = 100_000  # of resampling


def check_whole(name: str, value: Any, least: int, most: float = np.inf) -> None:
    """Raise unless `value` is a whole number, at least that, and at most that."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if value > most:
        raise InputError(f"{name} must be at most {most:g}, not {value!r}")


def check_number(name: str, value: Any, rule: str, allowed: Callable[[float], bool]) -> None:
    """Raise unless `value` is a finite number that is allowed; `rule` says what is."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not abs(value) < np.inf or not allowed(value):
        raise InputError(f"{name} must be {rule}, not {value!r}")


def check_level(level: Any) -> None:
    """Raise unless this can be the level of an interval."""
    check_number("level", level, "between 0 and 1", lambda share: 0 < share < 1)


def check_flag(name: str, value: Any) -> None:
    """Raise unless `value` is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, not {value!r}")


def shown(value: Any, most: int = 80) -> str:
    """Return a value for a message: on one line, without control characters, and not too long."""
    text = without_controls(str(value)[: most + 1])
    return text if len(text) <= most else text[:most] + "..."


def without_controls(text: str) -> str:
    """Return text with control characters spelt out, which would do something to a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def plural(count: int, noun: str) -> str:
    """Return ``"1 individual"`` or ``"5 individuals"``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def several(names: Sequence[str]) -> str:
    """Return ``"a"``, ``"a and b"`` or ``"a, b and c"``."""
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
