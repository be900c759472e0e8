r"""Observed less expected scores of predicted distributions, summed over individuals, block of rows by block of rows.

An individual whose event comes at the predicted risk u has the score h(u), and each individual an expectation of it, in
one of two ways: for the *known exposure*, up to the risk at its own :math:`C^*`, whether or not the event came first;
or for the *observed* one, up to the end of follow-up, by the predicted hazard (a martingale, which needs no
:math:`C^*`). Curves are read in one of two forms: by the *intervals* of their grid, of which only the probabilities are
taken, with a score's mean over each; or as *continuous*, as they are between grid points.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils.parallel import cached_property, each, row_blocks
from survscore._validation import UnfitError
from survscore.curves import SurvivalCurves
from survscore.inference.smooth_test import N_SCORES, hankel, interval_scores, moments, powers
from survscore.metrics import DEFAULT_EPSILON
from survscore.outcomes import Outcomes

Exposure = Literal["known", "observed"]
Form = Literal["intervals", "continuous"]

Vector = NDArray[np.float64]
CONTINUOUS_COLUMNS = 32  # about as many numbers a row takes where no grid is gone through


@dataclass(frozen=True, eq=False)
class DistributionSums:
    """What adds up over individuals."""

    total: Vector  # observed less expected scores,
    covariance: Vector  # and the covariance of that if the curves are right
    observed: Vector  # the numbers of events in each bin of predicted risk
    expected: Vector
    bin_covariance: Vector
    square_expected: Vector  # what weights make of `expected`: sums of their squares, so that few are not many
    n_impossible: float  # to how many something happened that has probability zero
    deviations: Vector  # (individuals, scores + bins): observed less expected, where groups need them; otherwise empty


@dataclass(frozen=True, eq=False)
class Followed:
    """How long each individual was followed, within what the curves predict."""

    curves: SurvivalCurves  # as NumPy arrays
    exit: Vector  # end of follow-up, at most `end`
    end: Vector  # up to when an event would have been counted; -1 for those whose C* is before the first grid point
    event: NDArray[np.bool_]  # who had the event at `exit`
    exposure: Exposure
    form: Form
    mass: Vector  # how much each individual counts, and what that is in a variance
    square_mass: Vector

    @classmethod
    def of(cls, y: Outcomes, curves: SurvivalCurves, exposure: Exposure, form: Form) -> Followed:
        """Cut everything where the curves end: what comes later says nothing about them.

        By intervals, only whole ones up to C* count, where it is known: the probability of a part of an interval would
        depend on how curves are interpolated.
        """
        end = np.broadcast_to(curves.times[-1], len(y))
        if y.censoring_time is not None:
            end = np.minimum(y.censoring_time, end)
            if form == "intervals":
                whole = np.searchsorted(curves.times, end, side="right")
                end = np.where(whole > 0, curves.times[whole - 1], -1.0)
        event = y.event & (y.time <= end)
        exit_time, mass = np.minimum(y.time, end), np.ones(len(y))
        square = mass
        if y.weights is not None:  # one on average, unless they say how many individuals each stands for
            mass = y.weights if y.weight_kind == "frequency" else y.weights / y.weights.mean()
            square = mass if y.weight_kind == "frequency" else mass**2
        return cls(curves, exit_time, end, event, exposure, form, mass, square)

    def sums(self, n_bins: int, *, keep: bool) -> DistributionSums:
        """Return all sums, with the deviations of each individual if they are to be kept."""
        scale = self._largest_reach()
        if self.form == "continuous":
            self._check_falling()
            rows, work = row_blocks(len(self.exit), CONTINUOUS_COLUMNS + n_bins), self._continuous
        else:
            rows, work = row_blocks(*self.curves.shape), self._intervals

        def block(block_rows: slice) -> DistributionSums:
            with_event, scores, expected, covariance, bin_of, by_bin, bin_variance, impossible = work(
                block_rows, n_bins, scale
            )
            deviation, bins, bin_covariance = -expected, np.zeros_like(by_bin), np.diag(bin_variance)
            deviation[with_event] += scores.T
            bins[with_event, bin_of] = 1.0
            mass, square = self.mass[block_rows, None], self.square_mass[block_rows, None]
            if self.exposure == "known":
                covariance = covariance - (square * expected).T @ expected
                bin_covariance = bin_covariance - (square * by_bin).T @ by_bin
            own = mass * np.concatenate((deviation, bins - by_bin), axis=1)
            counts = ((mass * bins).sum(axis=0), (mass * by_bin).sum(axis=0))
            of_squares = (square * by_bin).sum(axis=0)
            n_impossible = float((mass**2 / square)[impossible].sum())
            total = own[:, :N_SCORES].sum(axis=0)
            return DistributionSums(
                total, covariance, *counts, bin_covariance, of_squares, n_impossible, own if keep else own[:0]
            )

        parts = each(block, rows, threads=True)
        summed = {
            f.name: sum(getattr(part, f.name) for part in parts)
            for f in fields(DistributionSums)
            if f.name != "deviations"
        }
        return DistributionSums(**summed, deviations=np.concatenate([part.deviations for part in parts]))

    @property
    def _stop(self) -> Vector:
        """When each exposure ends: whether or not the event comes first, or when follow-up ends."""
        return self.end if self.exposure == "known" else self.exit

    def _largest_reach(self) -> float:
        """Return the largest predicted risk where an exposure stops, or at the end of that interval; or one."""
        if self.form == "continuous":
            reached = float((1.0 - self.curves.before(self._stop)).max())
            return reached if reached > 0 else 1.0
        n_columns = self._n_columns
        last = self.curves.probabilities[np.arange(n_columns.size), n_columns - 1].astype(np.float64)
        smallest = float(np.min(np.where(n_columns > 0, last, 1.0)))
        return 1.0 - smallest if smallest < 1 else 1.0

    @cached_property
    def _n_columns(self) -> NDArray[np.intp]:
        """The number of intervals in which each individual is exposed."""
        if self.exposure == "known":
            return np.searchsorted(self.curves.times, self._stop, side="right")
        return np.where(self._stop >= 0, self._place + 1, 0)

    @cached_property
    def _place(self) -> NDArray[np.intp]:
        """The interval in which the follow-up of each individual ends."""
        return np.searchsorted(self.curves.times, self.exit, side="left")

    # Curves by the intervals of their grid

    def _intervals(self, rows: slice, n_bins: int, scale: float) -> tuple[NDArray[Any], ...]:
        n_columns, place = self._n_columns[rows], self._place[rows]
        width = max(int(n_columns.max()), 1)
        survival = self.curves.probabilities[rows, :width].astype(np.float64)
        before = np.concatenate((np.ones((len(survival), 1)), survival[:, :-1]), axis=1)
        inside = np.arange(width) < n_columns[:, None]
        rising = (survival - before > 4.0 * _arrays.rounding_unit(self.curves.probabilities)) & inside
        if rising.any():
            self._refuse_rising(rows, rising)
        probability = np.maximum(before - survival, 0.0) * inside
        weight, variance = self._expectations(rows, before, probability)
        variance = variance * self.square_mass[rows, None]
        start, stop = 1.0 - before, 1.0 - before + probability
        scores = np.stack((np.ones_like(start), *interval_scores(start, stop, scale)))
        expected = np.einsum("jrk,rk->rj", scores, weight)

        with_event = np.flatnonzero(self.event[rows] & (place < n_columns))
        cell = (with_event, place[with_event])
        flat = scores.reshape(N_SCORES, -1)
        covariance = (flat * variance.ravel()) @ flat.T

        # an interval is in the bin that holds its middle
        in_bin = np.minimum(((start + stop) * (0.5 * n_bins)).astype(np.intp), n_bins - 1)
        cells = in_bin + n_bins * np.arange(len(in_bin))[:, None]
        by_bin = np.bincount(cells.ravel(), weight.ravel(), cells.shape[0] * n_bins).astype(np.float64)
        bin_variance = np.bincount(in_bin.ravel(), variance.ravel(), n_bins).astype(np.float64)
        last = np.maximum(n_columns - 1, 0)
        outlived = (survival[np.arange(len(last)), last] <= 0) & (self._stop[rows] >= self.curves.times[last])
        outlived[with_event] = probability[cell] <= 0
        by_bin = by_bin.reshape(-1, n_bins)
        return with_event, scores[:, *cell], expected, covariance, in_bin[cell], by_bin, bin_variance, outlived

    def _expectations(self, rows: slice, before: Vector, probability: Vector) -> tuple[Vector, Vector]:
        r"""Return how many events are expected in each interval, and the variance that this adds.

        One who left within an interval, event-free, when a probability f of the event was over, of q in the whole
        interval, would have had the event before with probability f; then q was expected, as for all with event and all
        who stay to the end. So that observed and expected agree on average, those who leave count
        :math:`f (1 - q) / (1 - f)`; likewise for the variance. Only f depends on an assumption between grid points, a
        constant hazard.
        """
        if self.exposure == "known":
            return probability, probability
        hazard = np.divide(probability, before, out=np.zeros_like(before), where=before > 0)
        variance = hazard * (1.0 - hazard)
        times, exit_time, place = self.curves.times, self.exit[rows], self._place[rows]
        gone = np.flatnonzero(~self.event[rows] & (exit_time >= 0) & (exit_time < times[place]))
        cell = (gone, place[gone])
        q, stop = hazard[cell], times[place[gone]]
        opened = np.where(place[gone] > 0, times[place[gone] - 1], 0.0)
        f = 1.0 - (1.0 - q) ** ((exit_time[gone] - opened) / (stop - opened))
        # the probability of no event in the rest of the interval; zero where no individual survives it
        rest = np.divide(1.0 - q, 1.0 - f, out=np.zeros_like(f), where=f < 1)
        hazard[cell], variance[cell] = f * rest, f * rest * (rest - q)
        return hazard, variance

    # Curves as they are between grid points

    def _check_falling(self) -> None:
        matrix = self.curves.probabilities
        tolerance = matrix.dtype.type(4.0 * _arrays.rounding_unit(matrix))
        for rows in row_blocks(*matrix.shape):
            rising = np.diff(matrix[rows], axis=1, prepend=matrix.dtype.type(1)) > tolerance
            if rising.any():
                self._refuse_rising(rows, rising)

    def _refuse_rising(self, rows: slice, rising: NDArray[np.bool_]) -> None:
        row, column = np.unravel_index(int(np.argmax(rising)), rising.shape)
        raise UnfitError(
            f"curves must not rise with time to be distributions: row {rows.start + row} does at time "
            f"{self.curves.times[column]:g}; SurvivalCurves(..., monotone='enforce') replaces every value by the "
            "smallest so far"
        )

    def _continuous(self, rows: slice, n_bins: int, scale: float) -> tuple[NDArray[Any], ...]:
        curves = self.curves[rows]
        hazard = self.exposure == "observed"
        stop = 1.0 - curves.before(self._stop[rows])
        outlived = ~self.event[rows] & (stop >= 1.0)
        if hazard:
            stop = np.minimum(stop, 1.0 - DEFAULT_EPSILON)
        sums = moments(stop, scale, 2 * (N_SCORES - 1), hazard=hazard)
        with_event = np.flatnonzero(self.event[rows])
        risk = np.minimum(1.0 - curves.before(self.exit[rows])[with_event], stop[with_event])
        scores = powers(risk, scale)
        square = self.square_mass[rows]
        covariance = hankel((sums * square).sum(axis=1))
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        within = np.clip(stop[:, None], edges[:-1], edges[1:])
        if hazard:
            by_bin = np.log((1.0 - np.minimum(edges[:-1], 1.0 - DEFAULT_EPSILON)) / (1.0 - within))
            # few events make few expected ones, too, and either variance alone would be too small
            covariance = 0.5 * (covariance + (scores * square[with_event]) @ scores.T)
        else:
            by_bin = within - edges[:-1]
        bin_of = np.minimum((risk * n_bins).astype(np.intp), n_bins - 1)
        bin_variance = (square[:, None] * by_bin).sum(axis=0)
        return with_event, scores, sums[:N_SCORES].T, covariance, bin_of, by_bin, bin_variance, outlived
