"""From a table of a package to a `Dataset`: what is said of it, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from survscore._utils.dates import Unit
from survscore._validation import InputError
from survscore.datasets.dataset import Dataset, Described
from survscore.datasets.origins import RFrame, TextFile, first_line
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd


class Made(NamedTuple):
    """What a table comes to: covariates, and dates as for `Outcomes.from_dates`."""

    X: pd.DataFrame
    start: Any
    event_date: Any
    cutoff: Any
    last_seen: Any = None
    groups: Any = None
    cause: Any = None


class Counts(NamedTuple):
    """How many there must be: what is said of a set was found in these data, and may not hold for others."""

    individuals: int
    events: int
    lost: int
    by_cause: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Recipe(Described):
    """What is said of a set, and how it is made.

    Attributes
    ----------
    origin : TextFile or RFrame
        Where the table lies.
    columns : tuple of str
        Those of the table that are used.
    make : callable
        Makes covariates and dates of the table.
    counts : Counts
        Of the individuals that it makes.
    unit : str
        Of their times.
    causes : mapping of str to labels
        The names of the causes, and what `make` has for each; empty where all events are of one kind.
    """

    origin: TextFile | RFrame
    columns: tuple[str, ...]
    make: Callable[[pd.DataFrame], Made]
    counts: Counts
    unit: Unit
    causes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counted_causes(self) -> str:
        """The causes, each with its number of events, in words."""
        return ", ".join(f"{name} ({n})" for name, n in zip(self.causes, self.counts.by_cause, strict=True))

    def dataset(self, table: pd.DataFrame, where: str) -> Dataset:
        """Return the set that a table holds; `where` is what messages call it."""
        missing = [column for column in self.columns if column not in table.columns]
        if missing:
            raise InputError(
                f"{where} has no column {missing[0]!r}, so it is not the table of {self.name!r}; "
                f"its columns are {list(map(str, table.columns[:20]))}"
            )
        try:
            made = self.make(table[list(self.columns)])
            named = {"cause": made.cause, "causes": self.causes} if self.causes else {}
            y = Outcomes.from_dates(
                made.start, made.event_date, made.cutoff, unit=self.unit, last_seen=made.last_seen, **named
            )
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise InputError(f"{where} is not the table of {self.name!r} that is known: {first_line(error)}") from None
        words = {one.name: getattr(self, one.name) for one in fields(Described)}
        found = Dataset(X=made.X, y=y, groups=made.groups, **words)
        counts = Counts(found.n, found.n_events, found.n_lost, tuple(y.n_by_cause.values()))
        if counts != self.counts:
            raise InputError(
                f"{where} is another version of the table of {self.name!r} than the one that is known: it has "
                f"{_words(counts)}, not {_words(self.counts)}"
            )
        absent = found.X.columns[found.X.isna().any()]
        if len(absent):  # a category that is not known becomes missing
            raise InputError(
                f"{where} is another version of the table of {self.name!r}: {absent[0]} has missing values"
            )
        return found


def _words(counts: Counts) -> str:
    by_cause = f" ({', '.join(map(str, counts.by_cause))} by cause)" if counts.by_cause else ""
    return f"{counts.individuals} individuals, {counts.events} events{by_cause} and {counts.lost} lost"
