"""What segments are called, and which comparisons can be parts of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from survscore._validation import InputError, plural
from survscore.results.comparison import Comparison

Key = tuple[str, ...]
ALL = "(all)"
#: Columns of tables, which segmenting columns can't be called.
TAKEN = frozenset(
    [
        "metric",
        "weighting",
        "model",
        "reference",
        "time",
        "from",
        "to",
        "score",
        "difference",
        "skill",
        "se",
        "lower",
        "upper",
        "p_value",
        "p_adjusted",
        "verdict",
        "reliable",
        "reason",
        "n_counted",
        "n_events",
        "n_effective",
        "n_groups",
        "largest_share",
        "bound_lower",
        "bound_upper",
        "against",
        "n",
        "n_dropped_out",
        "others",
        "q",
        "df",
        "p_value",
        "estimate",
        "n_segments",
        "times",
        "sentence",
        "segment_label",
    ]
)


def check_names(by: tuple[str, ...]) -> None:
    """Raise unless these can be columns beside those of the tables."""
    if not by:
        raise InputError("by is empty: name at least one column")
    repeated = sorted({name for name in by if by.count(name) > 1})
    if repeated:
        raise InputError(f"by must name different columns; repeated: {', '.join(map(repr, repeated))}")
    taken = [name for name in by if name in TAKEN]
    if taken:
        raise InputError(f"by must not be called {taken[0]!r}, which is a column of the results: rename it")


def check_part(by: tuple[str, ...], total: Comparison, key: Any, part: Any) -> None:
    """Raise unless a comparison can be a part of the total, under this key."""
    if not isinstance(key, tuple) or len(key) != len(by) or not all(isinstance(label, str) for label in key):
        raise InputError(f"parts must have keys of {plural(len(by), 'label')} as text, one for each of by, not {key!r}")
    if ALL in key:
        raise InputError(f"by: the label {ALL!r} stands for everybody in the results: rename it")
    if not isinstance(part, Comparison):
        raise InputError(f"parts must be Comparisons, not {type(part).__name__}, as that of {key} is")
    same = {
        "models": part.models == total.models,
        "reference": part.reference == total.reference,
        "level": part.level == total.level,
        "times": np.array_equal(part.times, total.times),
        "metrics and weightings": [one.metric for one in part.scored] == [one.metric for one in total.scored],
    }
    for what, agree in same.items():
        if not agree:
            raise InputError(f"parts must have the {what} of the total; that of {key} has others")


def in_order(key: Key) -> list[tuple[int, float, str]]:
    """Return what to sort labels by: numbers by their value, before texts."""
    found = []
    for label in key:
        try:
            number = float(label)
        except ValueError:
            number = np.nan
        found.append((0, number, label) if np.isfinite(number) else (1, 0.0, label))
    return found
