"""Single numbers out of a run's tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from survscore._utils.parallel import cached_property
from survscore._validation import shown
from survscore.checks.rules import EVERY, Rule, nearest, segment_label
from survscore.checks.runs import ALL, NAMES, Run, same_time

Segment = tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """Of whom and what a number is."""

    segment: Segment
    metric: str
    weighting: str
    model: str

    def of(self, model: str) -> Key:
        """Return the same of another model."""
        return replace(self, model=model)


@dataclass(frozen=True)
class When:
    """A time, or a range of time over which a mean is taken."""

    start: float
    stop: float | None = None

    @property
    def told(self) -> str:
        """It in words."""
        return f"at {self.start:.6g}" if self.stop is None else f"mean over {self.start:.6g} to {self.stop:.6g}"

    def same(self, other: When) -> bool:
        """Whether both are the same but for rounding."""
        if (self.stop is None) != (other.stop is None):
            return False
        ends = [(self.start, other.start), (self.stop or 0.0, other.stop or 0.0)]
        return all(bool(same_time(*pair)) for pair in ends)


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, and on how many events it rests."""

    value: float = math.nan
    se: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    n_events: float = math.nan


@dataclass(frozen=True)
class Conclusion:
    """What a recommendation says about a model and a reference."""

    verdict: str
    sentence: str


class Numbers:
    """The numbers of a run, by whom and what they are of and when."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._scores: dict[Key, dict[When, Estimate]] = {}
        self._means: dict[Key, dict[When, Estimate]] = {}
        self._differences: dict[tuple[Key, str], dict[When, Estimate]] = {}
        for name, into in (("scores", self._scores), ("means", self._means)):
            for row in self._rows(name):
                into.setdefault(self._key(row), {})[_when(row)] = _estimate(row, "score")
        self._conclusions: dict[tuple[Key, str], dict[When, Conclusion]] = {}
        for row in self._rows("recommendations"):
            concluded = self._conclusions.setdefault((self._key(row), row["reference"]), {})
            concluded[_when(row)] = Conclusion(row["verdict"], row["sentence"])
        for row in self._rows("contrasts"):
            found = self._differences.setdefault((self._key(row), row["reference"]), {})
            found[_when(row)] = _estimate(row, "difference")

    def _rows(self, name: str) -> list[dict[str, Any]]:
        rows: list[Any] = self.run.tables[name].to_dict("records") if name in self.run.tables else []
        return rows

    def _key(self, row: Mapping[str, Any]) -> Key:
        segment = tuple(segment_label(row[column]) for column in self.run.segment_columns)
        return Key(segment, *(row[name] for name in NAMES))

    @cached_property
    def _all_segments(self) -> list[Segment]:
        return list(dict.fromkeys(key.segment for key in (*self._means, *self._scores)))

    @cached_property
    def _times(self) -> list[When]:
        return list(dict.fromkeys(when for found in self._scores.values() for when in found))

    @cached_property
    def _ranges(self) -> list[When]:
        return list(dict.fromkeys(when for found in self._means.values() for when in found))

    @cached_property
    def _weightings(self) -> dict[Key, list[str]]:
        """The weightings by all else, without a weighting."""
        found: dict[Key, dict[str, None]] = {}
        for key in (*self._means, *self._scores):
            found.setdefault(replace(key, weighting=""), {})[key.weighting] = None
        return {key: list(labels) for key, labels in found.items()}

    @property
    def references(self) -> list[str]:
        """The models that differences are to."""
        return list(dict.fromkeys(reference for _, reference in self._differences))

    def told_segment(self, segment: Segment) -> dict[str, str]:
        """Return which segment it is by its columns; nothing for all individuals."""
        return {name: value for name, value in zip(self.run.segment_columns, segment, strict=True) if value != ALL}

    def segments(self, rule: Rule) -> list[Segment]:
        """Return the segments that a rule is about."""
        columns = self.run.segment_columns
        if rule.segment == "total":
            total = (ALL,) * len(columns)
            if total not in self._all_segments:
                raise rule.wrong("the results hold scores of segments only; say segment = 'each'")
            return [total]
        if not columns:
            raise rule.wrong("segment: the results have no segments")
        if rule.segment == "each":
            found = [one for one in self._all_segments if any(value != ALL for value in one)]
            if not found:
                raise rule.wrong("segment: the results have no segment but the total")
            return found
        return list(dict.fromkeys(one for wanted in rule.segment for one in self._matching(rule, wanted)))

    def _matching(self, rule: Rule, wanted: Mapping[str, str]) -> list[Segment]:
        """Return the segments with these values, of all else where there are such rows."""
        columns = self.run.segment_columns
        for name, value in wanted.items():
            if name not in columns:
                raise rule.wrong(f"segment: there is no column {shown(name)!r}; {nearest(name, columns)}")
            there = [one[columns.index(name)] for one in self._all_segments]
            if value != EVERY and value not in there:
                raise rule.wrong(f"segment: {shown(name)} = {shown(value)!r} is not there; {nearest(value, there)}")

        def has(segment: Segment, name: str) -> bool:
            value = segment[columns.index(name)]
            return value != ALL if wanted[name] == EVERY else value == wanted[name]

        found = [one for one in self._all_segments if all(has(one, name) for name in wanted)]
        if not found:
            told = ", ".join(f"{shown(name)} = {shown(value)!r}" for name, value in wanted.items())
            raise rule.wrong(f"segment: none has {told} together")
        others = [k for k, name in enumerate(columns) if name not in wanted]
        return [one for one in found if all(one[k] == ALL for k in others)] or found

    def when(self, rule: Rule, key: Key) -> When:
        """Return the time or range of a rule as the results have it."""
        means, scores = self._means.get(key, {}), self._scores.get(key, {})
        if rule.at is not None:
            return _found(rule, When(rule.at), self._times, "an evaluation time")
        if rule.range is not None:
            return _found(rule, When(*rule.range), self._ranges, "a range of means")
        if means:
            return next(iter(means))
        if len(scores) == 1:
            return next(iter(scores))
        if not self._means:
            raise rule.wrong("the results hold no means over time; name a time with at")
        return next(iter(next(iter(self._means.values()))))

    def score(self, key: Key, when: When) -> Estimate | None:
        """Return a score."""
        return (self._scores if when.stop is None else self._means).get(key, {}).get(when)

    def difference(self, key: Key, reference: str, when: When) -> Estimate | None:
        """Return the difference to a model on the same individuals; turned round, where only that is there."""
        found = self._differences.get((key, reference), {}).get(when)
        if found is not None:
            return found
        other = self._differences.get((key.of(reference), key.model), {}).get(when)
        return None if other is None else Estimate(-other.value, other.se, -other.upper, -other.lower)

    def has_conclusions(self, key: Key) -> bool:
        """Whether there are recommendations by a metric under a weighting, for these individuals."""
        wanted = (key.segment, key.metric, key.weighting)
        return any((one.segment, one.metric, one.weighting) == wanted for one, _ in self._conclusions)

    def conclusion(self, key: Key, reference: str, when: When) -> Conclusion | None:
        """Return what to conclude about a model and a reference; turned round, where only that is there."""
        for (one, other), turned in ((key, reference), False), ((key.of(reference), key.model), True):
            for known, found in self._conclusions.get((one, other), {}).items():
                if known.same(when):
                    opposite = {"better": "worse", "worse": "better"}.get(found.verdict, found.verdict)
                    return replace(found, verdict=opposite) if turned else found
        return None

    def stored_score(self, key: Key, whose: Mapping[str, str], when: When) -> tuple[Estimate | None, str]:
        """Return the score of an earlier run that is of the same as a new one, and why there is none.

        `whose` is the segment by its columns, since runs may be divided by different ones.
        """
        absent = [column for column in whose if column not in self.run.segment_columns]
        if absent:
            return None, f"that run has no segments by {absent[0]}"
        key = replace(key, segment=tuple(whose.get(column, ALL) for column in self.run.segment_columns))
        labels = self._weightings.get(replace(key, weighting=""))
        if labels is None:
            return None, f"that run has no {key.metric} score of {key.model} in this segment"
        alike = [one for one in labels if one.split(maxsplit=1)[:1] == key.weighting.split(maxsplit=1)[:1]]
        weighting = key.weighting if key.weighting in labels else alike[0] if len(alike) == 1 else None
        if weighting is None:
            return None, "that run has no score under this weighting"
        among = self._scores if when.stop is None else self._means
        there = among.get(replace(key, weighting=weighting), {})
        for known, estimate in there.items():
            if known.same(when):
                return estimate, ""
        if when.stop is not None and there:
            return (
                None,
                f"that run has the {next(iter(there)).told}, not the {when.told}; range = [from, to] keeps it the same",
            )
        return None, f"that run has no score {when.told}"


def _when(row: Mapping[str, Any]) -> When:
    time = row.get("time", math.nan)
    if time == time:  # noqa: PLR0124 - NaN
        return When(time)
    return When(row["from"], None if row["from"] == row["to"] else row["to"])


def _estimate(row: Mapping[str, Any], value: str) -> Estimate:
    return Estimate(row[value], row["se"], row["lower"], row["upper"], row.get("n_events", math.nan))


def _found(rule: Rule, wanted: When, known: list[When], what: str) -> When:
    """Return a time or range as the results have it."""
    if wanted in known:
        return wanted
    same = [when for when in known if when.same(wanted)]
    if same:
        return same[0]
    near = sorted(known, key=lambda one: abs(one.start - wanted.start) + abs((one.stop or 0) - (wanted.stop or 0)))
    hint = "--times" if wanted.stop is None else "--range"
    there = " and ".join(one.told for one in near[:2])
    told = f"nearest are scores {there}; {hint} names others" if there else "there is none"
    raise rule.wrong(f"{wanted.told} is not {what} of the results; {told}")
