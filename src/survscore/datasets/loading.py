"""Real data with a known end, out of packages that are installed."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from survscore._utils.dates import Dates, Unit, plural_word
from survscore._validation import InputError, check_choice
from survscore.datasets import recipes
from survscore.datasets.origins import RFrame, TextFile, first_line
from survscore.outcomes import Outcomes


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Described:
    """What is said of a set, whether it is loaded or not; see `Dataset`."""

    name: str
    horizons: tuple[float, ...]
    cutoffs: tuple[str, ...]
    event: str
    start: str
    closing: str
    lost: str
    licence: str
    source: str
    notes: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset(Described):
    r"""Real data with a known data cut-off, so that :math:`C^*` of each individual is known.

    Made by `survscore.datasets.load`.

    Attributes
    ----------
    name : str
        By which it is loaded.
    X : pandas.DataFrame
        Covariates as they were known at each individual's start, without the date of the start; missing values are NaN.
    y : Outcomes
        With the dates from which they were made, for `Outcomes.as_of` and `backtest`.
    groups : ndarray or None
        Labels of individuals that belong together, such as the governments of a country.
    horizons : tuple of float
        A few times at which predictions may be judged, in the unit of `y`.
    cutoffs : tuple of str
        A few earlier dates on which the data might have ended, for `backtest`: on each, some who had started could be
        seen up to every horizon, and nearly all can today.
    event : str
        What happens.
    start : str
        What time zero is.
    closing : str
        How the closing date, and with it :math:`C^*`, is known.
    lost : str
        Who is lost before the closing date, and how the data tell.
    licence : str
        Of the package that holds the data.
    source : str
        The package, the object in it, and who collected the data.
    notes : str
        What else must be known to use them well: rows that are left out, and what the score's assumptions meet.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.datasets.load("senators")
    Dataset(senators: 930 individuals, 831 events, none lost, follow-up ends on 2013-10-01)
        event: leaves the Senate of Canada, by death, resignation or retirement
        start: appointment
        X: party, region
        horizons: 5, 10, 15 years
    """

    X: pd.DataFrame
    y: Outcomes
    groups: NDArray[Any] | None

    @property
    def n(self) -> int:
        """How many individuals there are."""
        return len(self.y)

    @property
    def n_events(self) -> int:
        """How many had the event before the data cut-off."""
        return int(self.y.event.sum())

    @property
    def n_lost(self) -> int:
        """How many were lost before the data cut-off."""
        return int(self.y.dropped_out.sum())

    @property
    def dates(self) -> Dates:
        """The dates of `y`: ``dates.start`` is when each individual started."""
        if self.y.dates is None:
            raise TypeError("outcomes of a Dataset are made by Outcomes.from_dates")
        return self.y.dates

    @property
    def unit(self) -> Unit:
        """The unit of the times of `y` and of `horizons`."""
        return self.dates.unit

    @property
    def closing_date(self) -> str:
        """The data cut-off."""
        return str(np.max(self.dates.cutoff).astype("datetime64[D]"))

    def __repr__(self) -> str:
        lost = f"{self.n_lost} lost" if self.n_lost else "none lost"
        causes = ", ".join(f"{count} {name}" for name, count in self.y.n_by_cause.items())
        events = f"{self.n_events} events" + f" ({causes})" * bool(causes)
        horizons = ", ".join(f"{horizon:g}" for horizon in self.horizons)
        return (
            f"Dataset({self.name}: {self.n} individuals, {events}, {lost}, "
            f"follow-up ends on {self.closing_date})\n"
            f"    event: {self.event}\n    start: {self.start}\n    X: {', '.join(self.X.columns)}\n"
            f"    horizons: {horizons} {plural_word(self.unit)}"
        )


class Counts(NamedTuple):
    """How many there must be: what is said of a set was found in these data, and may not hold for others."""

    individuals: int
    events: int
    lost: int
    by_cause: tuple[int, ...] = ()

    def __str__(self) -> str:
        by_cause = f" ({', '.join(map(str, self.by_cause))} by cause)" if self.by_cause else ""
        return f"{self.individuals} individuals, {self.events} events{by_cause} and {self.lost} lost"


@dataclass(frozen=True, eq=False, kw_only=True)
class Recipe(Described):
    """What is said of a set, where its table lies, which columns are used, and what is made of these.

    `causes` are the names of the causes of events, and what `make` has for each; empty where all are of one kind.
    """

    origin: TextFile | RFrame
    columns: tuple[str, ...]
    make: Callable[[pd.DataFrame], recipes.Made]
    counts: Counts
    unit: Unit
    causes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, entry: Mapping[str, Any]) -> Recipe:
        """Return what an entry of ``sets.toml`` says."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        frame, text = values.pop("r_frame", None), values.pop("text_file", None)
        values["origin"] = RFrame(**frame) if frame is not None else TextFile(**text)
        counts = {**values["counts"], "by_cause": tuple(values["counts"].get("by_cause", ()))}
        values["make"], values["counts"] = getattr(recipes, values["make"]), Counts(**counts)
        return cls(name=name, **values)

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
        description = {one.name: getattr(self, one.name) for one in fields(Described)}
        found = Dataset(X=made.X, y=y, groups=made.groups, **description)
        counts = Counts(found.n, found.n_events, found.n_lost, tuple(y.n_by_cause.values()))
        if counts != self.counts:
            raise InputError(
                f"{where} is another version of the table of {self.name!r} than the one that is known: it has "
                f"{counts}, not {self.counts}"
            )
        absent = found.X.columns[found.X.isna().any()]
        if len(absent):  # a category that is not known becomes missing
            raise InputError(
                f"{where} is another version of the table of {self.name!r}: {absent[0]} has missing values"
            )
        return found


SETS = tomllib.loads(Path(__file__).with_name("sets.toml").read_text(encoding="utf-8"))
_CAUSES = {name: entry.pop("causes") for name, entry in SETS.items() if "causes" in entry}
RECIPES = {name: Recipe.of(name, entry) for name, entry in SETS.items()}
#: The same tables with the causes of events, where they are recorded.
BY_CAUSE = {name: Recipe.of(name, {**SETS[name], **entry}) for name, entry in _CAUSES.items()}


def names(*, causes: bool = False) -> list[str]:
    """Return the names of all sets that `load` knows, whether their packages are installed or not.

    Parameters
    ----------
    causes : bool, default False
        Only those whose events have causes.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import survscore as ss
    >>> ss.datasets.names()
    ['aids2', 'cdnow', 'dd', 'dmlate', 'jasa', 'senators', 'sibr', 'sire', 'thoro']
    >>> ss.datasets.names(causes=True)
    ['dmlate', 'senators', 'sibr', 'sire', 'thoro']
    """
    return list(BY_CAUSE if causes else RECIPES)


def load(name: str, *, causes: bool = False, path: str | os.PathLike[str] | None = None) -> Dataset:
    r"""Load real data with a known data cut-off, and so with :math:`C^*` of each individual.

    Two small tables come with this library; others are read from packages that are installed, of Python or of R, and
    neither these nor R are run.

    Parameters
    ----------
    name : str
        One of `names`.
    causes : bool, default False
        Whether `y` distinguishes the causes of events, as competing risks. Without, an event is one of any cause. With
        it, ``"dmlate"`` has two events, the start of insulin and death without it, and leaves out those who had insulin
        from the start.
    path : path, optional
        Where the data are, if not where packages are usually installed. For sets out of R packages an ``.rda``,
        ``.RData`` or ``.rdb`` file, or a folder: an R library, a package, or its data. For others the table's own file.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the package is not there, with how to get it; or if the data are not those that this was written for, since
        what is said of them may not hold then.

    Examples
    --------
    >>> import survscore as ss
    >>> data = ss.datasets.load("dd")
    >>> data.y
    Outcomes(1737 individuals, 1545 events (88.9 %), time 0 to 47, censoring_time known (0 to 61), no drop-outs)
    >>> data.closing
    'documented: the data cover 1946 to 2008'

    With the causes of events:

    >>> ss.datasets.load("senators", causes=True).y.n_by_cause
    {'death': 494, 'resignation': 201, 'retirement': 136}
    """
    check_choice("name", name, tuple(RECIPES))
    if causes and name not in BY_CAUSE:
        raise InputError(f"causes: {name!r} has events of one kind; those with causes are {', '.join(BY_CAUSE)}")
    recipe = BY_CAUSE[name] if causes else RECIPES[name]
    found = recipe.origin.find() if path is None else Path(path)
    if found is None:
        raise InputError(f"name: {name!r} is in the package {recipe.origin.package}: {recipe.origin.how_to_get}")
    return recipe.dataset(recipe.origin.read(found), str(found))


def available() -> list[str]:
    """Return the names of the sets whose packages are installed here; `describe` says how to get the others.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import survscore as ss
    >>> set(ss.datasets.available()) <= set(ss.datasets.names())
    True
    """
    return [name for name, recipe in RECIPES.items() if recipe.origin.find() is not None]


def describe() -> pd.DataFrame:
    """Return what is known of all sets, whether their packages are installed or not.

    Returns
    -------
    pandas.DataFrame
        Of each set, by its name: how many ``individuals``, ``events`` and ``lost``, the ``unit``, and in words what the
        ``event`` and the ``start`` are, the ``causes`` with their numbers of events where these are recorded, how the
        ``closing`` date is known, who is lost (``who_is_lost``), ``licence``, ``source``, ``notes``, the ``package``
        and ``how_to_get`` it.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.datasets.describe().loc["thoro", ["individuals", "events", "lost", "closing"]]
    individuals                                                 2470
    events                                                      1966
    lost                                                          40
    closing        documented: the study closed on 1992-02-20
    Name: thoro, dtype: object
    """
    rows = [
        {
            "name": name,
            **{key: getattr(recipe.counts, key) for key in ("individuals", "events", "lost")},
            "unit": recipe.unit,
            "event": recipe.event,
            "causes": BY_CAUSE[name].counted_causes if name in BY_CAUSE else "",
            "start": recipe.start,
            "closing": recipe.closing,
            "who_is_lost": recipe.lost,
            **{key: getattr(recipe, key) for key in ("licence", "source", "notes")},
            **{key: getattr(recipe.origin, key) for key in ("package", "how_to_get")},
        }
        for name, recipe in RECIPES.items()
    ]
    return pd.DataFrame(rows).set_index("name")
