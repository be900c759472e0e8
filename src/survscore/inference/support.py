"""The numbers of individuals, events and groups behind a score at each time, and whether they allow an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore._validation import plural
from survscore.inference.units import Units, Vector

# Measured by benchmarks/coverage.py: intervals cover as they should from here on.
FEW_FOR_SCORE = 2  # individuals of each status: the logarithmic scale, on which scores have their intervals, suits few
FEW_FOR_DIFFERENCE = 20
FEW_FOR_PROJECTION = 50
FEW_FOR_BAND = 40  # that hold at all times at once
MUCH_ADDED = 0.1  # of a variance, for what influences don't see: more makes intervals conservative
FEW_DEGREES = 4.0  # as five groups of equal size have
#: With sample weights, below so many individuals of equal weight, or with a larger share of one of them, a warning.
FEW_EFFECTIVE, MUCH_OF_ONE = 100, 0.05
FEW_GROUPS = 30  # from here on it hardly matters how groups are counted


@dataclass(frozen=True, eq=False)
class Support:
    """The numbers of individuals behind scores at each time; the same for all models."""

    n_counted: Vector  # to how many individuals the score refers
    #: Kish's effective sample size, (sum w)^2 / sum w^2 over those with a weight: at most their number. Groups do not
    #: count in it. Of metrics of the whole follow-up, whose weights change along it, the number with known status.
    n_effective: Vector
    n_events: Vector  # how many are counted with either status; the others are lost
    n_event_free: Vector
    units: Units
    grouped: bool  # whether units are groups
    projected: bool = False  # whether some statuses are; then the event-free are those who were followed so long
    weighted: bool = False  # whether individuals have sample weights other than counts

    @property
    def n_rarer(self) -> Vector:
        """How many have the rarer status: differences of scores are made of them."""
        return np.minimum(self.n_events, self.n_event_free)

    @property
    def score_degrees(self) -> Vector:
        """Degrees of freedom of the variance of a score."""
        if self.grouped:
            return self.units.degrees
        with np.errstate(invalid="ignore"):
            return np.minimum(self.units.degrees, self.n_effective - 1.0)

    @property
    def difference_degrees(self) -> Vector:
        """Degrees of freedom of the variance of a difference: at most as many as have the rarer status."""
        with np.errstate(invalid="ignore"):
            fewest = np.minimum(self.score_degrees, np.maximum(self.n_rarer - 1.0, 1.0))
        return np.where(self.score_degrees > 0, fewest, np.nan)

    def enough(self, rarer: int) -> NDArray[np.bool_]:
        """Whether there are so many of the rarer status, and enough groups of similar size."""
        with np.errstate(invalid="ignore"):
            return (self.n_rarer >= rarer) & (self.score_degrees >= FEW_DEGREES)

    def mean(self, weights: Vector) -> Support:
        """Return the same for a mean over time: the means of these numbers, as one time."""
        used = weights > 0

        def mean(values: Vector) -> Vector:
            return np.array([float(np.sum(weights[used] * values[used]) / np.sum(weights[used]))])

        counted, effective = mean(self.n_counted), mean(self.n_effective)
        units = Units(mean(self.units.counted), mean(self.units.largest_share), mean(self.units.degrees))
        events, event_free = mean(self.n_events), mean(self.n_event_free)
        return Support(counted, effective, events, event_free, units, self.grouped, self.projected, self.weighted)

    def few_followed(self, place: int | None = None, when: str = "at the last time with a score") -> list[str]:
        """Return a caution if projected statuses come from few: at a place, by default the last time with a score."""
        scored = np.flatnonzero(~np.isnan(self.n_effective))
        last = place if place is not None or not scored.size else int(scored[-1])
        if last is None or not (self.projected and self.n_rarer[last] < FEW_FOR_PROJECTION):
            return []
        followed, events = int(self.n_event_free[last]), int(self.n_events[last])
        return [
            f"projected statuses come from few: {when} {plural(followed, 'individual')} "
            f"{'was' if followed == 1 else 'were'} followed event-free, and {plural(events, 'event')} observed; "
            f"intervals are reliable from {FEW_FOR_PROJECTION} of each on"
        ]

    def unequal_weights(self) -> list[str]:
        """Return a caution if individuals with sample weights are worth few, or one of them has much of all weights."""
        counted = np.flatnonzero((self.units.counted > 0) & ~np.isnan(self.n_effective))
        if not self.weighted or not counted.size:
            return []
        fewest = int(counted[np.argmin(self.n_effective[counted])])
        share = 0.0 if self.grouped else float(self.units.largest_share[counted].max())
        n_effective, n = float(self.n_effective[fewest]), int(self.n_counted[fewest])
        if n_effective >= FEW_EFFECTIVE and share <= MUCH_OF_ONE:
            return []
        largest = f", and the largest sample weight is up to {share:.0%} of all" if share > MUCH_OF_ONE else ""
        return [
            f"with their weights, {plural(n, 'individual')} are worth {n_effective:.0f} of equal weight at some "
            f"times{largest}: standard errors are rough below {FEW_EFFECTIVE}"
        ]

    def cautions(self) -> list[str]:
        """Return what readers of standard errors by group should know."""
        counted = self.units.counted[self.units.counted > 0]
        if not self.grouped or counted.size == 0:
            return []
        fewest = int(counted.min())
        share = float(np.nanmax(self.units.largest_share))
        degrees = float(np.nanmin(self.units.degrees[self.units.counted > 0]))
        if fewest < FEW_GROUPS:
            return [
                f"standard errors come from {plural(fewest, 'group')} at some times, the largest with {share:.0%} of "
                f"the individuals: intervals allow for that (Student's t, {degrees:.1f} degrees of freedom), but are "
                f"rough below {FEW_GROUPS} groups (`groups` is for individuals that depend on each other; `by` gives "
                "scores for each of them)"
            ]
        if degrees < FEW_GROUPS / 2:
            return [
                f"few of the {fewest} groups hold most of the individuals, the largest {share:.0%}: standard errors "
                f"are worth {degrees:.1f} degrees of freedom"
            ]
        return []
