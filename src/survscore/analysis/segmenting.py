"""Which individuals make a segment, and every segment compared as if it were alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import as_frame
from survscore._validation import (
    FewGroupsWarning,
    InputError,
    UndefinedScoreWarning,
    as_array,
    check_length,
    plural,
    shown,
    warn,
)
from survscore.engine.blocks import Predictions
from survscore.engine.evaluation import Scored
from survscore.engine.inputs import as_models, check_outcomes, one_or_more
from survscore.inference.units import Groups
from survscore.metrics import Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.results.comparison import Comparison, compared
from survscore.results.segment_labels import ALL, Key, check_names
from survscore.results.segments import SegmentedComparison
from survscore.results.undefined import undefined_times, warn_about
from survscore.weighting.weightings import Weighting, as_weighting

MOST_SEGMENTS = 1000
#: Numbers that covariances over time of all segments together may take: so many are 128 MiB.
KEPT = 1 << 24


@dataclass(frozen=True, eq=False)
class Segments:
    """Who belongs to which segment.

    Attributes
    ----------
    by : tuple of str
        Names of the segmenting columns.
    rows : dict
        By their labels, the positions of the individuals of every segment.
    """

    by: tuple[str, ...]
    rows: dict[Key, NDArray[np.intp]]

    @classmethod
    def of(cls, given: Any, n: int) -> Segments:
        """Take a mapping of names to labels, a data frame, or labels."""
        columns = _columns(given)
        by = tuple(columns)
        check_names(by)
        texts, codes = zip(*(_coded(name, values, n) for name, values in columns.items()), strict=True)
        shape = tuple(len(some) for some in texts)
        # one number for each combination, as far as they occur; columns of very many labels might overflow together
        together = np.zeros(n, dtype=np.int64)
        for size, code in zip(shape, codes, strict=True):
            _, together = np.unique(together * size + code, return_inverse=True)
        n_segments = int(together.max()) + 1
        if n_segments > MOST_SEGMENTS:
            finest = int(np.argmax(shape))
            raise InputError(
                f"by makes {n_segments} segments of {plural(n, 'individual')}, and at most {MOST_SEGMENTS} are scored; "
                f"take a coarser column, or fewer: {by[finest]!r} has {plural(shape[finest], 'label')}"
            )
        order = np.argsort(together, kind="stable")
        starts = np.searchsorted(together[order], np.arange(n_segments + 1))
        members = [order[start:stop] for start, stop in pairwise(starts)]
        return cls(by, {tuple(some[code[m[0]]] for some, code in zip(texts, codes, strict=True)): m for m in members})


def compare_segments(
    y: Outcomes,
    models: Mapping[str, Predictions] | Iterable[tuple[str, Predictions]],
    by: Any,
    asked: Mapping[str, Any],
) -> SegmentedComparison:
    """Compare everybody, then every segment at the same times; the arguments are those of `compare`."""
    check_outcomes(y)
    named = as_models(models)
    segments = Segments.of(by, len(y))
    weightings = [as_weighting(one, y) for one in one_or_more(asked["weighting"], Weighting, "weighting")]
    metrics = [as_metric(one) for one in one_or_more(asked["metric"], Metric, "metric")]
    groups = None if asked["groups"] is None else Groups.of(asked["groups"], len(y))
    total = compared(y, named, **{**asked, "weighting": weightings})
    of_parts = {**asked, "times": total.times, "reference": total.reference, "ranges": _ranges(total, asked["ranges"])}
    keep = asked["ranges"] == "any" or _covariances(total) * len(segments.rows) <= KEPT
    of_parts["unasked"] = keep
    parts = {}
    for key, rows in segments.rows.items():
        own = {
            "metric": [one.of_rows(rows) for one in metrics],
            "weighting": [one.of_rows(rows) for one in weightings],
            "groups": None if groups is None else groups.codes[rows],
        }
        try:
            part = compared(y[rows], {name: curves[rows] for name, curves in named.items()}, **{**of_parts, **own})
        except InputError as error:
            raise InputError(f"segment {_named(segments.by, key)}: {error}") from None
        parts[key] = part if keep else replace(part, scored=tuple(_lean(one) for one in part.scored))
    spanning = 0 if groups is None else _spanning(groups, segments)
    found = SegmentedComparison(segments.by, total, parts, n_spanning=spanning)
    warn_about(total.scored)
    _warn_about_parts(found)
    return found


def _columns(given: Any) -> dict[str, Any]:
    """Return the segmenting columns by name, whichever way they were given."""
    if isinstance(given, str):
        raise InputError(f"by must hold everybody's labels, not the name {shown(given)!r} of a column")
    if isinstance(given, Mapping):
        return {str(name): values for name, values in given.items()}
    try:
        frame = as_frame(given)
    except InputError as error:
        raise InputError(f"by: {str(error).removeprefix('X ')}") from None
    if frame is not None:
        return {str(series.name): series.to_list() for series in frame.iter_columns()}
    name = getattr(given, "name", None)
    return {"segment" if name is None or callable(name) else str(name): given}


def _coded(name: str, values: Any, n: int) -> tuple[list[str], NDArray[np.intp]]:
    """Return the labels of a column as text, and everybody's place among them."""
    import pandas as pd

    what = f"by: {name!r}"
    if isinstance(values, list):  # NumPy would make one type of mixed labels
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = as_array(values, what)
    if array.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, not of shape {array.shape}")
    check_length(what, array.size, "y", n)
    try:
        codes, labels = pd.factorize(array)
    except TypeError:
        raise InputError(f"{what} must hold labels, such as numbers or text") from None
    missing = codes < 0
    if missing.any():
        raise InputError(
            f"{what} must be given for everybody: {missing.sum()} of {n} are missing, the first at position "
            f"{int(np.argmax(missing))}; give them a label of their own, such as 'unknown'"
        )
    texts = [_as_text(label) for label in labels]
    if ALL in texts:
        raise InputError(f"{what} has the label {ALL!r}, which stands for everybody in the results: rename it")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"{what} has labels of several kinds that read the same, such as {shown(twice)!r}")
    return texts, codes.astype(np.intp)


def _as_text(label: Any) -> str:
    if isinstance(label, (float, np.floating)):
        return repr(float(label)).removesuffix(".0")
    return label.decode(errors="replace") if isinstance(label, bytes) else str(label)


def _ranges(total: Comparison, asked: Any) -> Any:
    """Return the ranges asked for, and those over which the total has its means: segments will be asked for these."""
    if isinstance(asked, str) or total.times.size == 1:
        return asked
    found = [] if asked is None else list(asked)
    for lower, upper in [(None, None), *found]:
        try:
            found += [ends for _, ends in total.means_over(lower, upper, nan="stop").values()]
        except InputError:  # nothing is left to average, which is told when it is asked for
            continue
    return list(dict.fromkeys(found))


def _covariances(total: Comparison) -> int:
    """Return how many numbers the covariances over time of one segment are."""
    k = len(total.models)
    return len(total.scored) * k * (k + 1) // 2 * total.times.size**2


def _lean(one: Scored) -> Scored:
    """Leave out what serves means over ranges that nobody asked for."""
    return one if one.bounds is None else replace(one, bounds=replace(one.bounds, kept=None))


def _spanning(groups: Groups, segments: Segments) -> int:
    """Return how many groups have individuals in several segments."""
    seen = np.zeros(groups.n_groups, dtype=np.intp)
    for rows in segments.rows.values():
        seen[np.unique(groups.codes[rows])] += 1
    return int(np.count_nonzero(seen > 1))


def _named(by: tuple[str, ...], key: Key) -> str:
    return ", ".join(f"{name} {shown(label)!r}" for name, label in zip(by, key, strict=True))


def _warn_about_parts(found: SegmentedComparison) -> None:
    """Warn once about all segments without score at some time, and once about those whose groups are few."""
    undefined = {key: told for key, part in found.parts.items() if (told := undefined_times(part.scored))}
    n = plural(len(found.parts), "segment")
    if undefined:
        key, told = next(iter(undefined.items()))
        warn(
            f"in {len(undefined)} of {n} some scores are NaN, such as in {_named(found.by, key)}: {told}; the table "
            "`undefined` has all",
            UndefinedScoreWarning,
        )
    few = [key for key, part in found.parts.items() if any(one.support.cautions() for one in part.scored)]
    if few:
        warn(
            f"in {len(few)} of {n} standard errors rest on few groups, such as in {_named(found.by, few[0])}: "
            "intervals allow for that, and there are none below five groups",
            FewGroupsWarning,
        )
