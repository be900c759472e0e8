"""Which model is better, and how certain that is: all models on the same individuals, paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import Unit
from survscore._validation import InputError, UndefinedScoreWarning, check_choice, check_level, warn
from survscore.engine.averaging import WhereNaN, averaging_weights
from survscore.engine.evaluation import ScoreArrays
from survscore.inference.late_starters import LateStarters
from survscore.metrics import cause_label
from survscore.results import printing
from survscore.results.estimates import Estimates, defined_models, has_skill
from survscore.results.latex import MatrixEntry
from survscore.results.long_tables import LongTable, MeanOver, Tabulated, padded, parts_table, stacked
from survscore.results.recommendation import Recommendation, recommend, scored_by_both
from survscore.results.sensitivity import Sensitivity, times_text
from survscore.results.tables import Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.analysis.assumptions import DropoutTest
    from survscore.plots import DifferenceDisplay, ScoresDisplay


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Tabulated):
    """Scores of several models and their paired differences. Numbers only; prints as a table.

    Attributes
    ----------
    models : tuple of str
        Their names, the null model last.
    reference : str
        What the others are compared with.
    null : str or None
        The null model's name, where there is one.
    times : ndarray
        The evaluation times.
    level : float
        Level of the confidence intervals.
    n : int
        The number of individuals.
    n_dropped_out : int or None
        How many of them dropped out; None where that is unknown.
    scored : tuple of ScoreArrays
        The numbers, for every metric under every weighting.
    dropout_test : DropoutTest or None
        Whether drop-out depends on predicted risk or on C*, where individuals dropped out and `compare` looked at it.
    late_starters : LateStarters or None
        The hazard of those with C* < t, as a multiple of that of the others, where statuses are projected.
    leak_warnings : mapping of str to str
        Of each model that encodes C*, to whom its scores refer, as far as no recommendation says so.
    """

    models: tuple[str, ...]
    reference: str
    null: str | None
    times: NDArray[np.float64]
    level: float
    n: int
    n_dropped_out: int | None
    scored: tuple[ScoreArrays, ...]
    dropout_test: DropoutTest | None = None
    late_starters: LateStarters | None = None
    leak_warnings: Mapping[str, str] = field(default_factory=dict)

    def against(self, reference: str) -> Comparison:
        """Return the same comparison with another model as reference; nothing is computed anew."""
        check_choice("reference", reference, self.models)
        return replace(self, reference=reference)

    @property
    def metrics(self) -> list[str]:
        """What was computed."""
        return list(dict.fromkeys(scored.metric for scored in self.scored))

    @property
    def weightings(self) -> list[str]:
        """The weightings, in words."""
        return list(dict.fromkeys(scored.weighting for scored in self.scored))

    @property
    def parts(self) -> pd.DataFrame | None:
        """Long table of both parts of projected scores; see `ScoreCurve.parts`."""
        return parts_table(self.models, self.times, self.scored)

    def sensitivity(self, lower: float | None = None, upper: float | None = None) -> Sensitivity:
        """Return for which hazards of those with hidden status the sign of each projected difference holds.

        Also the estimated hazard of late starters, as a multiple of that of the others at the same ages. It has
        ``to_frame()``, and ``plot()``, which draws the differences over that multiple. Its means over time are from
        `lower` to `upper`, as far as there are scores.
        """
        if len(self.models) < 2 or not any(scored.by_theta is not None for scored in self.scored):
            raise InputError(
                "sensitivity needs two models by a loss, such as 'brier', under a projected weighting with theta above "
                "0: compare(..., weighting='projected')"
            )
        over: dict[str, MeanOver] = {}
        if (lower, upper) != (None, None):
            over = self.means_over(lower, upper, nan="stop")
        elif self.times.size > 1:
            with suppress(InputError):  # nothing is left to average: single times are
                over = self.means_over(nan="stop")
        return Sensitivity(self, over)

    def place(self, time: float) -> int:
        """Return which of the evaluation times this is; raise unless it is one that all models predict."""
        times = self.times[: self.scored[0].scores.shape[1]]
        if not (times == time).any():
            raise InputError(f"time must be one of the evaluation times ({times_text(times)}), not {time!r}")
        return int(np.flatnonzero(times == time)[0])

    def usable_place(self, metric: str) -> int:
        """Return the last time with a score of each model under each weighting, where there is no mean; 0 without."""
        scores = [scored.scores for scored in self.of_metric(metric)]
        usable = np.flatnonzero(~np.isnan(np.concatenate(scores)).any(axis=0))
        return int(usable[-1]) if usable.size else 0

    def recommendation(
        self,
        lower: float | None = None,
        upper: float | None = None,
        *,
        metric: str | None = None,
        time: float | None = None,
    ) -> Recommendation:
        """Return which of each two models to use, for whom and under which assumption, from two weightings.

        It needs administrative and projected scores. A model is better where the interval of the projected difference
        excludes zero, and its sign is the same for all plausible hazards of those with hidden status: from the assumed
        to the estimated one of late starters, with its interval (`Sensitivity`). Where the administrative score prefers
        the other model, both populations are named; and a model whose predictions fit late starters far worse than the
        others probably encodes the entry date.

        Parameters
        ----------
        lower, upper : float, optional
            Of the mean over time, as for `integrated`, as far as there are scores.
        metric : str, optional
            A loss; by default the first.
        time : float, optional
            One of the evaluation times, in place of the mean over all. Where there is no mean, the last time with a
            projected score is taken.

        Returns
        -------
        Recommendation
            Prints as sentences; ``verdicts`` has for each model the verdict, its numbers, and what would change it.

        Examples
        --------
        >>> import numpy as np
        >>> import survscore as ss
        >>> rng = np.random.default_rng(1)
        >>> rate = rng.gamma(2, 0.05, 2000)
        >>> event_time, end = rng.exponential(1 / rate), rng.uniform(2, 20, 2000)
        >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
        >>> truth = np.exp(-12 * rate[:, None])
        >>> models = {"truth": truth, "leaking": np.where(end[:, None] < 12, 0.1, truth)}
        >>> models = {name: ss.SurvivalCurves(values, [12]) for name, values in models.items()}
        >>> result = ss.compare(y, models, weighting=["administrative", "projected"], times=[12], null=False)
        >>> for sentence in result.recommendation().verdicts[0].sentences:
        ...     print(sentence)
        Among individuals with C* >= 12, by the administrative score, leaking is not significantly different from
        truth; among those with C* < 12 (54 %), its projected Brier score is 1.7 times as high.
        leaking probably encodes the entry date: among individuals with C* < 12 its mean predicted risk is 0.90
        against a projected proportion of 0.63, among the others 0.60 against 0.60. Do not use it for new individuals.
        truth is significantly better than leaking at 12: its projected Brier score is lower by 0.067 (95 % interval
        0.046 to 0.088, p < 0.001). The sign would change with more than 3.1 times the assumed hazard of those with
        hidden status.
        """
        return recommend(self, lower, upper, metric=metric, time=time)

    @property
    def has_recommendation(self) -> bool:
        """Whether there are administrative and projected scores of several models."""
        with suppress(InputError):
            return bool(scored_by_both(self)) and len(self.models) > 1
        return False

    @property
    def encodes(self) -> tuple[str, ...]:
        """Which models probably encode C*, by the recommendation, or where there is none by the rule of `diagnose`."""
        return self.recommendation().encodes if self.has_recommendation else tuple(self.leak_warnings)

    def _table(self) -> LongTable:
        return LongTable({(): self})

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> IntegratedComparison:
        """Return the same for the scores' mean over a range of time; see `ScoreCurve.integrated`.

        For each metric the range is the same for all models and weightings: with ``nan="stop"``, up to the first time
        at which any of them has no score. Of several metrics, those without a mean are NaN, and a warning says why.
        """
        means = self.means_over(lower, upper, nan=nan)
        for metric, (weights, _) in means.items():
            if np.isnan(weights).any():
                reasons = (reason for scored in self.of_metric(metric) for reason in scored.undefined)
                why = "; ".join(dict.fromkeys(reasons))
                message = f"{metric} has no mean over this range, since some time has no score ({why})"
                warn(message, UndefinedScoreWarning)
        return IntegratedComparison(self, means)

    def means_over(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> dict[str, MeanOver]:
        """Return over which range means are taken, by metric, as weights of the times; see `integrated`.

        Weights are NaN where a metric has no mean, and another one has.
        """
        means: dict[str, MeanOver] = {}
        failed: dict[str, InputError] = {}
        for metric in self.metrics:
            of_metric = self.of_metric(metric)
            # NaN where any of the models, or weightings, has no score
            total = padded(np.sum([defined_models(one).sum(axis=0) for one in of_metric], axis=0), self.times.size)
            reasons = dict.fromkeys(reason for scored in of_metric for reason in scored.undefined)
            try:
                means[metric] = averaging_weights(self.times, total, lower, upper, nan, reasons)
            except InputError as error:
                failed[metric] = error
        if not means:  # a range that is wrong is so for all of them
            raise next(iter(failed.values()))
        ends = next(iter(means.values()))[1]
        nothing: MeanOver = (np.full(self.times.size, np.nan), ends)
        return {metric: means.get(metric, nothing) for metric in self.metrics}

    def band(self, *, level: float | None = None, n_draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
        """Return simultaneous confidence bands of the differences: they hold the whole true curve with this confidence.

        From a multiplier bootstrap of the influences, whose critical value is turned into Student's at each time, with
        the degrees of freedom there. Needs a comparison with ``ranges="any"``.

        Parameters
        ----------
        level : float, optional
            By default that of the comparison.
        n_draws, seed : int
            Of the bootstrap.

        Returns
        -------
        pandas.DataFrame
            metric, weighting, model, reference, time, difference, lower, upper, critical_value, reliable.
        """
        level = self.level if level is None else level
        check_level(level)
        if n_draws < 1:
            raise InputError(f"n_draws must be at least 1, not {n_draws}")
        r, table = self.models.index(self.reference), self._table()
        others = [a for a in range(len(self.models)) if a != r] or [r]
        blocks = []
        for scored in self.scored:
            for a in others:
                columns = Estimates(scored, level).band(a, r, n_draws, seed)
                columns = {"difference": columns.pop("estimate"), **columns}
                blocks.append(table.block(scored, {"model": self.models[a], "reference": self.reference}, columns))
        return stacked(blocks)[: 0 if others == [r] else None]

    def disagreements(self) -> pd.DataFrame:
        """Return where the weightings rank a model and the reference differently.

        One row per metric, model and time, one column per weighting with the difference to the reference.
        """
        import pandas as pd

        r, rows = self.models.index(self.reference), []
        for metric in self.metrics:
            for a, name in enumerate(self.models):
                differences = np.array([scored.scores[a] - scored.scores[r] for scored in self.of_metric(metric)])
                differ = (differences < 0).any(axis=0) & (differences > 0).any(axis=0)  # NaN is neither
                for j in np.flatnonzero(differ):
                    row = {"metric": metric, "model": name, "reference": self.reference, "time": self.times[j]}
                    rows.append({**row, **dict(zip(self.weightings, differences[:, j], strict=True))})
        return pd.DataFrame(rows, columns=["metric", "model", "reference", "time", *self.weightings])

    def plot(
        self,
        ax: Any = None,
        *,
        metric: str | None = None,
        band: bool = True,
        counts: bool | None = None,
        unit: Unit | str | None = None,
        width: float | None = None,
    ) -> DifferenceDisplay:
        """Draw the differences to the reference over time with their pointwise intervals, or without.

        Parameters
        ----------
        metric : str, optional
            Which metric's; by default the first. All others as for `ScoreCurve.plot`.

        Returns
        -------
        DifferenceDisplay
        """
        from survscore.plots import DifferenceDisplay

        display = DifferenceDisplay(self, self.checked_metric(metric))
        return display.plot(ax=ax, band=band, counts=counts, unit=unit, width=width)

    def plot_scores(
        self,
        *,
        metric: str | None = None,
        band: bool = True,
        unit: Unit | str | None = None,
        width: float | None = None,
    ) -> ScoresDisplay:
        """Draw the scores of all models over time, one panel per weighting, all on one scale; arguments as for `plot`.

        Whether bands of two models overlap does not show whether they differ: both are judged on the same individuals.
        That is what `plot` shows. The display has all axes in ``axes_``, the figure in ``figure_``, and
        ``save("figure.pdf")``.
        """
        from survscore.plots import ScoresDisplay

        return ScoresDisplay(self, self.checked_metric(metric)).plot(band=band, unit=unit, width=width)

    def checked_metric(self, metric: str | None) -> str:
        """Return one of the metrics, by default the first."""
        metric = self.metrics[0] if metric is None else metric
        check_choice("metric", metric, tuple(self.metrics))
        return metric

    def of_metric(self, metric: str) -> list[ScoreArrays]:
        """Return the numbers of a metric under every weighting."""
        return [scored for scored in self.scored if scored.metric == metric]

    @property
    def has_skill(self) -> bool:
        """Whether some metric has skill scores, which need the null model."""
        return self.null is not None and any(has_skill(scored) for scored in self.scored)

    def null_index(self) -> int:
        """Return the place of the null model among the models; raise where there is none."""
        if self.null is None:
            raise InputError("skill scores need the null model, which was left out (null=False)")
        return self.models.index(self.null)

    def _printed(self) -> Tables:
        return printing.of_comparison(self)

    def _entries(self, unit: str | None) -> tuple[list[MatrixEntry], Sequence[str]]:
        over = None
        with suppress(InputError):  # one time
            over = self.means_over(nan="stop")
        return printing.entries(self, over, unit)

    def __repr__(self) -> str:
        lost = f", {self.n_dropped_out} of {self.n} dropped out" if self.n_dropped_out else ""
        directions = dict.fromkeys(
            f"{cause_label(scored.metric, scored.cause)} ({scored.direction} is better)" for scored in self.scored
        )
        return (
            f"Comparison({', '.join(map(repr, self.models))}; reference {self.reference!r}, {', '.join(directions)}, "
            f"{'; '.join(self.weightings)}, {self.times.size} times from {self.times[0]:g} to {self.times[-1]:g}{lost})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class IntegratedComparison(Tabulated):
    """Mean scores over a range of time, and their paired differences; prints as a table.

    Attributes
    ----------
    compared : Comparison
        What they are the means of.
    over : dict
        By metric, the weights of the times, and from when to when.
    """

    compared: Comparison
    over: Mapping[str, MeanOver]

    @property
    def level(self) -> float:
        """Of the confidence intervals."""
        return self._table().total.level

    @property
    def range(self) -> tuple[float, float]:
        """From when to when, of the first metric."""
        return next(iter(self.over.values()))[1]

    @property
    def contrasts(self) -> Any:
        """As in `Comparison`, with the range (from, to) in place of time; None with one model alone."""
        return super().contrasts if len(self._table().total.models) > 1 else None

    @property
    def skill(self) -> Any:
        """As in `Comparison`, with the range (from, to) in place of time; None without null model."""
        return super().skill if self._table().total.has_skill else None

    def _table(self) -> LongTable:
        return replace(self.compared._table(), over=self.over)

    def _printed(self) -> Tables:
        return printing.of_means(self.compared, self.over)

    def _entries(self, unit: str | None) -> tuple[list[MatrixEntry], Sequence[str]]:
        return printing.entries(self.compared, self.over, unit)
