"""Which model is better, and how sure that is: all models on the same individuals, paired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore import _loops
from survscore._validation import InputError, as_times, check_choice
from survscore.curves import SurvivalCurves
from survscore.inference import Groups, limits, normal_quantile, shared_curve, simultaneous_quantile, two_sided_p
from survscore.influence import Influence, ScoredModel
from survscore.losses import Loss, as_loss
from survscore.outcomes import Outcomes
from survscore.results import averaging_weights
from survscore.scores import check_inputs, default_times, sum_up, warn_undefined
from survscore.weighting import TimeIndex, Weighting, as_weighting

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import DifferenceDisplay

NULL_MODEL = "Kaplan-Meier"


def compare(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves] | Iterable[tuple[str, SurvivalCurves]],
    *,
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    loss: str | Loss = "brier",
    times: ArrayLike | None = None,
    reference: str | None = None,
    null: bool | Outcomes = True,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> Comparison:
    r"""Score several models on the same individuals and test their differences.

    The difference of two scores is a sum over individuals of the differences of their influences, so its
    standard error allows for the models being judged on the same data. Intervals and p-values are normal.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : mapping of str to SurvivalCurves, or pairs
        What each model predicted, for the same individuals in the same order.
    weighting : str, Weighting, or a list of them
        As for `brier_score`; several show the same models side by side.
    loss : {"brier", "log"} or Loss
        What a prediction costs.
    times : array_like, optional
        The evaluation times; by default as for `brier_score`, within the reach of all models.
    reference : str, optional
        The model that the others are compared with; by default the first.
    null : bool or Outcomes, default True
        Whether to add the null model, the Kaplan-Meier curve of `y` for everybody, and skill scores against it.
        Outcomes give the curve of these, such as the training data. Its own estimation error is not counted.
    groups : array_like of shape (n,), optional
        As for `brier_score`.
    level : float, default 0.95
        Of all confidence intervals.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 500)
    >>> event_time, end = rng.exponential(1 / rate), rng.uniform(5, 25, 500)
    >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    >>> times = np.arange(1.0, 21.0)
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
    ...     "gloomy": ss.SurvivalCurves(np.exp(-2 * rate[:, None] * times), times),
    ... }
    >>> result = ss.compare(y, models, weighting="administrative", times=times, reference="truth")
    >>> result.integrated(1, 20).contrasts.drop(columns="weighting").round(4)
              model reference  difference      se   lower   upper  p_value
    0        gloomy     truth      0.0447  0.0072  0.0305  0.0588      0.0
    1  Kaplan-Meier     truth      0.0444  0.0069  0.0310  0.0579      0.0
    """
    named = as_models(models)
    for name, curves in named.items():
        check_inputs(y, curves, f"the curves of {name!r}")
    normal_quantile(level)
    several = [weighting] if isinstance(weighting, (str, Weighting)) or weighting is None else list(weighting)
    weightings = [as_weighting(one, y) for one in several]
    if not weightings:
        raise InputError("weighting is empty: name at least one")
    labels = _distinct([str(one) for one in weightings])
    chosen = as_loss(loss)
    grouping = None if groups is None else Groups.of(groups, len(y))
    wanted = default_times(y, named.values()) if times is None else as_times(times)
    scored = wanted[np.logical_and.reduce([curves.reaches(wanted) for curves in named.values()])]
    if scored.size == 0:
        raise InputError(f"times start at {wanted[0]:g}, after the last time that all models predict")
    if null is not False and NULL_MODEL in named:
        raise InputError(f"models must not be called {NULL_MODEL!r}, the name of the null model; or say null=False")
    names = [*named, *([] if null is False else [NULL_MODEL])]
    reference = names[0] if reference is None else str(reference)
    if reference not in names:
        raise InputError(f"reference must be one of the models {names}, not {reference!r}")

    index = TimeIndex(y, scored)
    null_curve = None if null is False else kaplan_meier(y if null is True else null)
    far = {"not all models predict": wanted.size - scored.size} if wanted.size > scored.size else {}
    sums = {name: sum_up(curves, index, [chosen], weightings) for name, curves in named.items()}
    under = []
    for q, label in enumerate(labels):
        found = [sums[name][q] for name in named]
        scored_models = [
            part.scored_model(curves, chosen, part.sums[:, 0], len(y))
            for part, curves in zip(found, named.values(), strict=True)
        ]
        if null_curve is not None:
            scored_models.append(
                found[0].scored_model(null_curve, chosen, _null_sums(null_curve, chosen, found[0], scored), len(y))
            )
        influence = Influence(index, found[0].weights, scored_models, grouping)
        under.append(
            Under(
                label,
                scored_models,
                influence,
                influence.pointwise(),
                found[0].n_effective,
                {**found[0].undefined, **far},
            )
        )
    warn_undefined({one.weighting: one.undefined for one in under}, stacklevel=3)
    return Comparison(tuple(names), reference, wanted, scored.size, chosen.name, level, tuple(under))


@dataclass(frozen=True, eq=False)
class Under:
    """All models under one weighting."""

    weighting: str
    models: list[ScoredModel]
    influence: Influence
    covariance: NDArray[np.float64]  # (models, models, times)
    n_effective: NDArray[np.float64]
    undefined: dict[str, int]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Shape (models, times)."""
        return np.array([model.scores for model in self.models])


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Scores of several models and their paired differences. Lower scores are better.

    Attributes
    ----------
    models : tuple of str
        Their names, the null model last.
    reference : str
        What the others are compared with.
    times : ndarray
        The evaluation times.
    loss : str
        What was computed.
    level : float
        Of the confidence intervals.
    """

    models: tuple[str, ...]
    reference: str
    times: NDArray[np.float64]
    _n_scored: int
    loss: str
    level: float
    _under: tuple[Under, ...]

    def against(self, reference: str) -> Comparison:
        """Return the same comparison with another model as reference; nothing is computed anew."""
        check_choice("reference", reference, self.models)
        return replace(self, reference=reference)

    @property
    def weightings(self) -> list[str]:
        """The weightings, in words."""
        return [one.weighting for one in self._under]

    @property
    def scores(self) -> pd.DataFrame:
        """Long table: loss, weighting, model, time, score, se, lower, upper, n_effective."""
        return self._table(lambda one, a: _with_interval("score", one.scores[a], one.covariance[a, a], self.level))

    @property
    def contrasts(self) -> pd.DataFrame:
        """Long table: loss, weighting, model, reference, time, difference, se, lower, upper, p_value."""
        r = self.models.index(self.reference)
        return self._table(
            lambda one, a: _contrast(one.scores[a] - one.scores[r], _variance(one.covariance, a, r), self.level),
            against=self.reference,
        )

    @property
    def skill(self) -> pd.DataFrame:
        """Long table of skill scores, 1 - score / null score: loss, weighting, model, time, skill, se, lower, upper."""
        null = self._null()
        return self._table(
            lambda one, a: _skill(one.scores[a], one.scores[null], one.covariance, a, null, self.level), skip=NULL_MODEL
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the contrasts."""
        return self.contrasts

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: str = "raise"
    ) -> IntegratedComparison:
        """Return the same for the scores' mean over a range of time; see `ScoreCurve.integrated`."""
        import pandas as pd

        r = self.models.index(self.reference)
        tables: dict[str, list[pd.DataFrame]] = {"scores": [], "contrasts": [], "skill": []}
        # one range for all models and weightings, so the first undefined score of any stops it
        worst = np.full(self.times.size, np.nan)
        worst[: self._n_scored] = np.sum([one.scores.sum(axis=0) for one in self._under], axis=0)
        reasons = dict.fromkeys(reason for one in self._under for reason in one.undefined)
        weights, used_range = averaging_weights(self.times, worst, lower, upper, nan, reasons)
        used = weights[: self._n_scored] > 0
        for one in self._under:
            values = one.scores[:, used] @ weights[: self._n_scored][used]
            covariance = one.influence.of_averages(weights[: self._n_scored, None])
            for a, name in enumerate(self.models):
                row = {"weighting": one.weighting, "model": name}
                table = _with_interval("score", values[a, None], covariance[a, a], self.level)
                tables["scores"].append(pd.DataFrame({**row, **table}))
                if name != self.reference:
                    table = _contrast(values[a, None] - values[r], _variance(covariance, a, r), self.level)
                    tables["contrasts"].append(pd.DataFrame({**row, "reference": self.reference, **table}))
                if NULL_MODEL in self.models and name != NULL_MODEL:
                    null = self._null()
                    table = _skill(values[a, None], values[null, None], covariance, a, null, self.level)
                    tables["skill"].append(pd.DataFrame({**row, **table}))
        frames = {key: pd.concat(some, ignore_index=True) if some else None for key, some in tables.items()}
        return IntegratedComparison(
            used_range, self.loss, self.level, frames["scores"], frames["contrasts"], frames["skill"]
        )

    def band(self, *, level: float | None = None, n_draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
        """Return simultaneous confidence bands of the differences: they hold the whole true curve with this confidence.

        From a multiplier bootstrap of the influences (Gaussian multipliers).

        Parameters
        ----------
        level : float, optional
            By default that of the comparison.
        n_draws, seed : int
            Of the bootstrap.

        Returns
        -------
        pandas.DataFrame
            weighting, model, reference, time, difference, lower, upper, critical_value.
        """
        level = self.level if level is None else level
        normal_quantile(level)
        if n_draws < 1:
            raise InputError(f"n_draws must be at least 1, not {n_draws}")
        r = self.models.index(self.reference)

        def one_band(one: Under, a: int) -> dict[str, Any]:
            difference = one.scores[a] - one.scores[r]
            contrast = np.zeros(len(self.models))
            contrast[a], contrast[r] = 1.0, -1.0
            critical = simultaneous_quantile(one.influence.over_time(contrast), level, n_draws, seed)
            se = np.sqrt(np.maximum(_variance(one.covariance, a, r), 0.0))
            half = np.where(se == 0, 0.0, critical * se)
            return {
                "difference": difference,
                "lower": difference - half,
                "upper": difference + half,
                "critical_value": np.full(difference.size, critical),
            }

        return self._table(one_band, against=self.reference)

    def disagreements(self) -> pd.DataFrame:
        """Return where the weightings rank a model and the reference differently.

        One row per model and time, one column per weighting with the difference to the reference: positive
        where the reference is better.
        """
        import pandas as pd

        r = self.models.index(self.reference)
        rows = []
        for a, name in enumerate(self.models):
            if name == self.reference:
                continue
            differences = np.array([one.scores[a] - one.scores[r] for one in self._under])
            signs = np.sign(differences)
            for j in np.flatnonzero((signs < 0).any(axis=0) & (signs > 0).any(axis=0)):  # NaN is neither
                row = {"model": name, "reference": self.reference, "time": self.times[j]}
                rows.append({**row, **dict(zip(self.weightings, differences[:, j], strict=True))})
        return pd.DataFrame(rows, columns=["model", "reference", "time", *self.weightings])

    def plot(self, ax: Any = None, *, band: bool = True) -> DifferenceDisplay:
        """Draw the differences to the reference over time with their pointwise intervals, or without.

        Returns
        -------
        DifferenceDisplay
        """
        from survscore.plots import DifferenceDisplay

        return DifferenceDisplay(self.contrasts, self.loss, self.reference).plot(ax=ax, band=band)

    def _null(self) -> int:
        if NULL_MODEL not in self.models:
            raise InputError("skill scores need the null model, which was left out (null=False)")
        return self.models.index(NULL_MODEL)

    def _table(self, columns: Any, *, against: str | None = None, skip: str | None = None) -> pd.DataFrame:
        """Return a long table, one part per weighting and model; `columns` gives a part's columns at scored times."""
        import pandas as pd

        parts = []
        for one in self._under:
            for a, name in enumerate(self.models):
                if name == skip or (name == against and len(self.models) > 1):
                    continue
                part: dict[str, Any] = {"loss": self.loss, "weighting": one.weighting, "model": name}
                if against is not None:
                    part["reference"] = against
                part["time"] = self.times
                found = columns(one, a)
                if "score" in found:
                    found["n_effective"] = one.n_effective
                missing = np.full(self.times.size - self._n_scored, np.nan)
                part |= {column: np.concatenate((values, missing)) for column, values in found.items()}
                parts.append(pd.DataFrame(part))
        table = pd.concat(parts, ignore_index=True)
        return table if len(self.models) > 1 or against is None else table.iloc[:0]  # nothing to compare with

    def __repr__(self) -> str:
        return (
            f"Comparison({', '.join(map(repr, self.models))}; reference {self.reference!r}, {self.loss}, "
            f"{'; '.join(self.weightings)}, {self.times.size} times from {self.times[0]:g} to {self.times[-1]:g}, "
            "lower is better)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class IntegratedComparison:
    """Mean scores over a range of time, and their paired differences. Lower scores are better.

    Attributes
    ----------
    range : tuple of float
        From when to when.
    scores, contrasts, skill : pandas.DataFrame
        As in `Comparison`, without time; `skill` is None without null model.
    """

    range: tuple[float, float]
    loss: str
    level: float
    scores: Any
    contrasts: Any
    skill: Any

    def __repr__(self) -> str:
        return (
            f"Mean {self.loss} over [{self.range[0]:g}, {self.range[1]:g}], lower is better\n{self.scores.to_string()}"
            + ("" if self.contrasts is None else f"\n\nDifferences\n{self.contrasts.to_string()}")
        )


def as_models(models: Any) -> dict[str, SurvivalCurves]:
    """Return the models by name, whichever way they were given."""
    pairs = list(models.items()) if isinstance(models, Mapping) else list(models)
    if not pairs:
        raise InputError("models is empty")
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise InputError("models must map names to SurvivalCurves, or be pairs of a name and SurvivalCurves")
    names = [str(name) for name, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"models must have different names; repeated: {', '.join(repeated)}")
    return dict(zip(names, (curves for _, curves in pairs), strict=True))


def _distinct(labels: list[str]) -> list[str]:
    """Return the labels, numbered where two weightings would have the same."""
    return [
        f"{label} #{labels[: i + 1].count(label)}" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def kaplan_meier(outcomes: Outcomes) -> SurvivalCurves:
    """Return the Kaplan-Meier curve of the event times, to stand for everybody."""
    if not isinstance(outcomes, Outcomes):
        raise InputError(f"null must be True, False or Outcomes, not {type(outcomes).__name__}")
    times, survival = _loops.product_limit(outcomes.time, outcomes.event, others_leave_first=False)
    if times.size == 0:
        times, survival = np.zeros(1), np.ones(1)
    return shared_curve(survival, times)


def _null_sums(curve: SurvivalCurves, loss: Loss, found: Any, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the null model's sums by status: with one prediction for all, only the weights need summing."""
    survival = curve.at(times)[0]
    return np.asarray(np.array([loss.of_event_free(survival), loss.of_event(survival)]) * found.weight_sums)


def _variance(covariance: NDArray[np.float64], a: int, b: int) -> NDArray[np.float64]:
    """Return the variance of the difference of two models' scores."""
    return np.asarray(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b])


def _with_interval(
    name: str, value: NDArray[np.float64], variance: NDArray[np.float64], level: float
) -> dict[str, NDArray[np.float64]]:
    se = np.where(np.isnan(value), np.nan, np.sqrt(np.maximum(variance, 0.0)))
    lower, upper = limits(value, se, level)
    return {name: value, "se": se, "lower": lower, "upper": upper}


def _contrast(
    difference: NDArray[np.float64], variance: NDArray[np.float64], level: float
) -> dict[str, NDArray[np.float64]]:
    table = _with_interval("difference", difference, variance, level)
    return {**table, "p_value": two_sided_p(difference, table["se"])}


def _skill(
    score: NDArray[np.float64], null: NDArray[np.float64], covariance: NDArray[np.float64], a: int, b: int, level: float
) -> dict[str, NDArray[np.float64]]:
    """Return 1 - score/null, with the variance of that ratio to first order; NaN where the null score is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(null > 0, score / null, np.nan)
        variance = (covariance[a, a] - 2 * ratio * covariance[a, b] + ratio**2 * covariance[b, b]) / null**2
    return _with_interval("skill", 1.0 - ratio, variance, level)
