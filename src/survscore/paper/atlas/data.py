"""A data set as all models get it: not too large, and with the date of entry as a column of its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError
from survscore.io.checkpoints import digest
from survscore.outcomes import Outcomes
from survscore.paper.atlas.models import ENTRY

if TYPE_CHECKING:
    import pandas as pd

    from survscore._utils.dates import Dates

#: What a horizon needs on a day: so many who could be followed up to it, with event before, and event-free after.
FEWEST_FOLLOWED = 40
FEWEST_WITH_STATUS = 10
DAY = np.timedelta64(1, "D")
IN_WORDS = ("event", "start", "closing", "lost", "licence", "source")
ATTRIBUTES = ("name", "X", "y", "groups", "horizons", "cutoffs", *IN_WORDS)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is known of a data set, and the individuals that are analysed."""

    name: str
    #: Covariates known at the start, and `ENTRY`.
    X: pd.DataFrame
    #: With dates.
    y: Outcomes
    groups: NDArray[Any] | None
    #: In the unit of `y`.
    horizons: NDArray[np.float64]
    #: Earlier closing dates, in order.
    cutoffs: tuple[np.datetime64, ...]
    #: Individuals before some were drawn.
    n_all: int
    #: Event, start, licence and so on, in words.
    about: dict[str, str]

    @property
    def dates(self) -> Dates:
        """Those of the outcomes."""
        return dates_of(self.name, self.y)

    def digest(self) -> str:
        """Return what identifies the numbers, so that results of other data are not taken for those of these."""
        return digest(self.X, self.y, self.horizons, [str(day) for day in self.cutoffs], self.groups)


def prepare(dataset: Any, most: int, seed: int) -> Prepared:
    """Return a data set with at most so many individuals, drawn without replacement; groups stay whole.

    `dataset` is as `survscore.datasets.load` returns it, or anything with its attributes. The draw depends on the seed
    and the set's name, not on other sets.
    """
    lacking = [key for key in ATTRIBUTES if not hasattr(dataset, key)]
    if lacking:
        raise InputError(
            f"sets must be names, or have the attributes of a Dataset: {type(dataset).__name__} lacks "
            f"{', '.join(lacking)}"
        )
    name, n = str(dataset.name), len(dataset.y)
    start = dates_of(name, dataset.y).start
    if ENTRY in dataset.X.columns:
        raise InputError(f"{name}: X must not hold a column {ENTRY!r}, which is added")
    X = dataset.X.reset_index(drop=True).assign(**{ENTRY: (start - start.min()) / DAY})
    groups = None if dataset.groups is None else np.asarray(dataset.groups)
    rows = np.arange(n)
    if n > most:
        own_seed = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:4], "big")
        rows = _drawn(n, groups, most, np.random.default_rng(own_seed))
    return Prepared(
        name,
        X.iloc[rows].reset_index(drop=True),
        dataset.y[rows],
        None if groups is None else groups[rows],
        np.asarray(dataset.horizons, dtype=np.float64),
        tuple(np.unique(np.asarray(dataset.cutoffs, dtype="datetime64[ns]"))),
        n,
        {key: str(getattr(dataset, key)) for key in IN_WORDS},
    )


def _drawn(n: int, groups: NDArray[Any] | None, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return who is analysed, in the order of the data."""
    if groups is None:
        return np.sort(rng.choice(n, most, replace=False))
    codes = np.unique(groups, return_inverse=True)[1]
    counts = np.bincount(codes)
    order = rng.permutation(counts.size)
    return np.flatnonzero(np.isin(codes, order[np.cumsum(counts[order]) <= most]))


def dates_of(name: str, y: Outcomes) -> Dates:
    """Return the dates of outcomes; raise if they have none."""
    if y.dates is None:
        raise InputError(f"{name}: y must know its dates: make it by Outcomes.from_dates")
    return y.dates


def hidden_share(y: Outcomes, horizon: float) -> float:
    """Return the share whose status at a horizon the closing date hides: event-free at their C*, which is before it."""
    end = np.asarray(y.censoring_time)
    return float(np.mean(~y.event & ~y.dropped_out & (end < horizon)))


def scoreable(y: Outcomes, horizons: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return at which horizons enough is known for models to be fitted and scored under every weighting."""
    followed = np.asarray(y.censoring_time)[:, None] >= horizons
    before = followed & y.event[:, None] & (y.time[:, None] <= horizons)
    after = y.time[:, None] > horizons
    enough = before.sum(axis=0) >= FEWEST_WITH_STATUS
    enough &= (after.sum(axis=0) >= FEWEST_WITH_STATUS) & (followed.sum(axis=0) >= FEWEST_FOLLOWED)
    return np.asarray(enough)
