"""What a loaded set of data is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import Unit, plural_word
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd

    from survscore._utils.dates import Dates


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
