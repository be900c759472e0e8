"""Scores of predictions that come batch by batch and are not kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._validation import InputError, as_times, check_length
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Arrivals, Block, PushedCurves, check_batch
from survscore.engine.entry import after_entry, check_after_entry, grids_after_entry
from survscore.engine.evaluation import Evaluation
from survscore.engine.inputs import of_cause, one_or_more
from survscore.engine.prepared import PreparedWeights
from survscore.engine.sums import Sums
from survscore.incidence import IncidenceCurves
from survscore.metrics import Loss, Metric, as_metric
from survscore.outcomes import SINCE_ENTRY, Outcomes
from survscore.results.printing import warn_about
from survscore.results.score_curve import ScoreCurve
from survscore.weighting import Weighting, as_weighting


class StreamingScore:
    r"""Scores of predictions that come in batches, without a matrix of all predictions.

    Outcomes are given at once, predictions batch by batch in the same order:

    .. math:: \mathrm{score}(t) = \frac{\sum_b \sum_{i \in b} w_i(t) \, \ell_i(t)}{\sum_b \sum_{i \in b} w_i(t)}

    Only the sums are kept. Weights come from all outcomes, so the result is that of `score_all` with the whole matrix,
    means over time included, unless weights depend on predictions: where individuals dropped out, `Administrative` has
    one curve of dropping out here, and by default one for each stratum of predicted risk there, which
    ``dropout_strata=None`` makes the same; `Projected` needs given strata or curves. Standard errors, and the bounds
    where individuals dropped out, need the predictions a second time: they are not here. For them, give `brier_score` a
    `CurveBatches`, which goes through its batches twice.

    Parameters
    ----------
    y, weighting
        As for `score_all`; with delayed entry, time is counted from there, and batches have predictions from time 0 on.
    metric : {"brier", "log"} or Loss, or several
        What a prediction costs.
    times : array_like, optional
        The evaluation times, strictly increasing. By default those of `brier_score`, chosen when the first batch comes,
        whose grid says how far predictions reach.
    cause
        As for `brier_score`, but one at a time.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> stream = ss.StreamingScore(y, weighting="administrative", times=[2, 4])
    >>> for batch in ([[0.5, 0.2], [0.9, 0.7]], [[0.8, 0.6]]):
    ...     _ = stream.update(ss.SurvivalCurves(batch, times=[2, 4]))
    >>> stream.result().scores
    array([0.1, 0.2])
    """

    @takes_cause
    def __init__(
        self,
        y: Outcomes,
        *,
        metric: str | Loss | Sequence[str | Loss] = "brier",
        weighting: str | Weighting | Sequence[str | Weighting] | None = None,
        times: ArrayLike | None = None,
        cause: Cause | None = None,
    ) -> None:
        # with delayed entry, time is counted from there, and so are predictions when they come
        self._entry: NDArray[np.float64] | None = None
        if isinstance(y, Outcomes) and y.entry is not None and bool((y.entry > 0).any()):
            self._entry, y = arrays.to_host(y.entry), y.since_entry().on_clock(SINCE_ENTRY)
        y, _ = of_cause(y, {"curves": None}, cause, caller="StreamingScore")  # predictions come later
        metrics = [as_metric(given) for given in one_or_more(metric, Metric, "metric")]
        for chosen in metrics:
            if not isinstance(chosen, Loss):
                raise InputError(f"{chosen.name} needs all predictions at once, not batches")
        self._y = y
        self._metrics = metrics
        self._weightings = [as_weighting(given, y) for given in one_or_more(weighting, Weighting, "weighting")]
        self._times = None if times is None else as_times(times)
        # made when the first batch comes, of which it keeps the first curve
        self._first: SurvivalCurves | None = None
        self._grid: NDArray[np.float64] | None = None  # after entry
        self._evaluation: Evaluation | None = None
        self._weights: PreparedWeights | None = None
        self._arrivals = Arrivals(len(y))
        self._sums: Sums | None = None

    @property
    def n(self) -> int:
        """How many individuals there are."""
        return self._arrivals.n

    @property
    def n_seen(self) -> int:
        """How many of them have come."""
        return self._arrivals.n_arrived

    def update(self, curves: SurvivalCurves | IncidenceCurves) -> Self:
        """Add the predictions for the next individuals of `y`, as many as the curves have rows; all on one grid."""
        given = curves if self._entry is None else self._after_entry(curves)
        of_one: SurvivalCurves = of_cause(self._y, {"curves": given})[1]["curves"]
        check_batch(of_one, self._first)
        if self._evaluation is None:  # only now is it known how far predictions reach
            pushed = PushedCurves(of_one[[0]], self.n)
            self._first = pushed.first
            self._evaluation = Evaluation.of(
                self._y,
                {"curves": pushed},
                metric=self._metrics,
                weighting=self._weightings,
                times=self._times,
                errors=False,
            )
            self._weights = self._evaluation.prepare() if self._evaluation.index.times.size else None
        rows = self._arrivals.rows_of(len(of_one))
        if self._weights is not None:
            device = self._evaluation.index.outcomes.device
            sums = self._weights.update(Block(rows, [of_one if device is None else of_one.to(device)]))
            self._sums = sums if self._sums is None else self._sums + sums
        return self

    def _after_entry(self, curves: SurvivalCurves | IncidenceCurves) -> SurvivalCurves | IncidenceCurves:
        """Return the predictions of a batch for those event-free at entry, at times after it."""
        check_after_entry("curves", curves, self._y, "StreamingScore")
        entry = cast("NDArray[np.float64]", self._entry)
        if self._grid is None:
            grids = grids_after_entry(self._y, entry, {"curves": curves}, self._times, whole=False)
            self._grid = grids["curves"]
        rows = slice(self.n_seen, self.n_seen + len(curves))
        check_length("the curves", len(curves), "the individuals of y that are left", len(entry[rows]))
        found: SurvivalCurves | IncidenceCurves = after_entry("curves", curves, entry[rows], self._grid)
        return found

    def results(self) -> list[ScoreCurve]:
        """Return the scores, once all individuals have come: the first metric under each weighting, and so on.

        They have no standard errors; means over time are given by their `integrated`.
        """
        self._arrivals.check_complete()
        # made with the first of those who came
        evaluation, weights = cast("Evaluation", self._evaluation), self._weights
        # without times that predictions reach, there was nothing to sum
        results = evaluation.run() if weights is None else evaluation.finish(weights, cast("Sums", self._sums))
        warn_about(results)
        return [ScoreCurve.of(evaluation, scored, default_times=self._times is None) for scored in results]

    def result(self) -> ScoreCurve:
        """Return the score, as `results` does, of one metric under one weighting."""
        results = self.results()
        if len(results) > 1:
            raise InputError(
                f"there are {len(results)} scores, of several metrics or weightings: results() has them all"
            )
        return results[0]

    def reset(self) -> Self:
        """Forget the predictions, for others of the same individuals; weights and times stay."""
        self._arrivals, self._sums = Arrivals(self.n), None
        return self

    def __repr__(self) -> str:
        return f"StreamingScore({self.n_seen} of {self.n} individuals)"
