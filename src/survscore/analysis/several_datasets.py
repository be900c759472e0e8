"""Models over several data sets: ranks, differences, and their random-effects means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import as_frame
from survscore._validation import InputError, check_choice, check_level, plural, shown
from survscore.analysis.score_tables import rows_of
from survscore.inference.intervals import chi_square_p, student_p, student_quantile, verdicts
from survscore.inference.random_effects import RandomEffects
from survscore.results.comparison import Comparison
from survscore.results.estimates import Estimates
from survscore.results.long_tables import ALL
from survscore.results.score_table import AcrossDatasets, DatasetDifference, ModelRank, ScoreTable, TableRow

Values = NDArray[np.float64]
DIRECTIONS = ("lower", "higher", "closer to 1", "closer to 0")


@dataclass(frozen=True)
class _Row:
    """One model in one data set."""

    model: str
    estimate: float
    difference: float
    se: float
    lower: float
    upper: float
    p_value: float


@dataclass(frozen=True)
class _Dataset:
    rows: dict[str, _Row]
    reference: str
    metric: str = ""
    label: str = ""
    weighting: str = ""
    direction: str = ""


def across_datasets(
    results: Mapping[str, Any],
    *,
    metric: str | None = None,
    weighting: str | None = None,
    times: float | Mapping[str, float] | None = None,
    reference: str | None = None,
    direction: str | None = None,
    level: float = 0.95,
) -> AcrossDatasets:
    r"""Compare models over several data sets: mean ranks, differences, and a random-effects mean of these.

    Parameters
    ----------
    results : mapping of str to Comparison, ScoreTable or data frame
        By the name of the data set, of the same models. A data frame has one row for each model, with columns ``model``
        and ``estimate``, and for means also ``difference`` and ``difference_se``, to the reference.
    metric, weighting : str, optional
        Of results that have several: by default the first. A weighting may be named by how it begins.
    times : float or mapping of str to float, optional
        One of the times of each result, or by data set. By default the only one, or, of comparisons at several, their
        mean over time.
    reference : str, optional
        The model that the others are compared with; by default that of the results, of frames the first model. Results
        know differences to their own reference only: `Comparison.against` changes it.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}, optional
        Which values are better, of data frames; by default lower.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    AcrossDatasets
        Prints as tables; `to_frame` has the means.

    Notes
    -----
    The mean difference :math:`\mu` is that of the model :math:`d_k = \mu + b_k + e_k`: :math:`\tau^2`, the variance of
    :math:`b_k`, is Paule and Mandel's estimate, the standard error that of Hartung, Knapp, Sidik and Jonkman, with
    Student's t of K - 1 degrees of freedom. :math:`I^2 = 1 - (K - 1) / Q` is the share of the variation between data
    sets that is not chance.

    Differences have to mean the same in all data sets. Brier scores are larger where events are as frequent as not:
    differences of ``"skill"`` (of `score_table`) allow for that. Ranks are those of estimates, whatever their errors,
    so a mean rank says which model won more often, not by how much.

    Examples
    --------
    >>> import pandas as pd
    >>> import survscore as ss
    >>> columns = ["model", "estimate", "difference", "difference_se"]
    >>> results = {
    ...     "a": pd.DataFrame([("Cox", 0.20, 0, 0), ("net", 0.19, -0.010, 0.004)], columns=columns),
    ...     "b": pd.DataFrame([("Cox", 0.15, 0, 0), ("net", 0.14, -0.012, 0.003)], columns=columns),
    ...     "c": pd.DataFrame([("Cox", 0.22, 0, 0), ("net", 0.22, -0.001, 0.003)], columns=columns),
    ... }
    >>> ss.across_datasets(results).to_frame()[["model", "estimate", "se", "tau", "i_squared", "n"]].round(4)
      model  estimate      se    tau  i_squared  n
    0   net   -0.0075  0.0035  0.005     0.7268  3
    """
    check_level(level)
    if not isinstance(results, Mapping) or len(results) < 2:
        raise InputError("results must map the names of at least two data sets to their results")
    named = {
        str(name): _read(name, given, metric, weighting, times, reference, level) for name, given in results.items()
    }
    first = next(iter(named.values()))
    models = list(first.rows)
    for name, dataset in named.items():
        if set(dataset.rows) != set(models):
            differ = sorted(set(models) ^ set(dataset.rows))
            raise InputError(
                f"results must be of the same models: data set {shown(name)!r} differs in {shown(', '.join(differ))}"
            )
        if dataset.reference != first.reference:
            raise InputError(
                f"results must have the same reference: data set {shown(name)!r} has {shown(dataset.reference)!r}, the "
                f"first {shown(first.reference)!r}"
            )
    better = direction or first.direction or "lower"
    check_choice("direction", better, DIRECTIONS)
    estimates = np.array([[dataset.rows[model].estimate for model in models] for dataset in named.values()])
    ranks, p_value = _ranks(models, estimates, better)
    others = [model for model in models if model != first.reference]
    by_model = {model: {name: dataset.rows[model] for name, dataset in named.items()} for model in others}
    means = {
        model: RandomEffects.of(
            np.array([row.difference for row in rows.values()]), np.array([row.se for row in rows.values()]), level
        )
        for model, rows in by_model.items()
    }
    judged = {
        model: str(verdicts(np.array([mean.lower]), np.array([mean.upper]), better)[0])  # type: ignore[arg-type]
        for model, mean in means.items()
    }
    differences = tuple(
        DatasetDifference(name, model, row.estimate, row.difference, row.se, row.lower, row.upper, row.p_value)
        for model, rows in by_model.items()
        for name, row in rows.items()
    )
    return AcrossDatasets(
        first.metric,
        first.label,
        first.weighting,
        better,
        first.reference,
        tuple(named),
        level,
        ranks,
        p_value,
        differences,
        means,
        judged,
    )


def _ranks(models: list[str], estimates: Values, direction: str) -> tuple[tuple[ModelRank, ...], float]:
    """Return mean ranks over data sets that have all estimates, and the p-value of Friedman's test."""
    from scipy.stats import rankdata

    whole = estimates[np.isfinite(estimates).all(axis=1)]
    target = float(direction[-1]) if direction.startswith("closer") else 0.0
    loss = {"lower": whole, "higher": -whole}.get(direction, np.abs(whole - target))
    rank = np.array([rankdata(row) for row in loss]).reshape(-1, len(models))
    n, k = rank.shape
    best = rank == rank.min(axis=1, keepdims=True) if n else rank
    wins = (best / np.maximum(best.sum(axis=1, keepdims=True), 1)).sum(axis=0)
    mean = rank.mean(axis=0) if n else np.full(k, np.nan)
    each = [ModelRank(model, float(mean[a]), float(wins[a]), n) for a, model in enumerate(models)]
    spread = float(np.sum(np.square(rank - (k + 1) / 2)))  # with ties smaller than n k (k^2 - 1) / 12
    statistic = (k - 1) * n**2 * float(np.sum(np.square(mean - (k + 1) / 2))) / spread if n and spread > 0 else math.nan
    return tuple(sorted(each, key=lambda one: one.mean_rank)), chi_square_p(statistic, k - 1)


def _read(
    name: Any, given: Any, metric: str | None, weighting: str | None, times: Any, reference: str | None, level: float
) -> _Dataset:
    """Return what a result says of each model."""
    time = times.get(name) if isinstance(times, Mapping) else times
    if isinstance(given, Comparison):
        rows = _of_comparison(given if reference is None else given.against(reference), metric, weighting, time)
    elif isinstance(given, ScoreTable):
        rows = [row for row in given.rows if not row.segment or set(row.segment) == {ALL}]
    else:
        return _of_frame(name, given, reference, level)
    where = f"data set {shown(name)!r}"
    chosen = _chosen(where, rows, metric, weighting, time)
    own = chosen[0].reference
    if reference not in (None, own):
        raise InputError(
            f"{where} has differences to {shown(own)!r}, not to {shown(reference)!r}: score with reference="
        )
    kept = {
        row.model: _Row(
            row.model,
            row.estimate,
            row.difference,
            row.difference_se,
            row.difference_lower,
            row.difference_upper,
            row.p_value,
        )
        for row in chosen
    }
    first = chosen[0]
    return _Dataset(kept, own, first.metric, first.label, first.weighting, first.direction)


def _of_comparison(compared: Comparison, metric: str | None, weighting: str | None, time: Any) -> list[TableRow]:
    """Return the rows of a comparison: at each time, or of means over time if there are several, and none is named."""
    if time is not None or compared.times.size == 1:
        return [row for scored in compared.scored for row in rows_of((), compared, Estimates(scored, compared.level))]
    over = compared.means_over(nan="stop")
    rows = []
    for scored in compared.scored:
        weights, (_, until) = over[scored.metric]
        at_end = compared.__class__(
            compared.models,
            compared.reference,
            compared.null,
            np.array([until]),
            compared.level,
            compared.n,
            compared.n_dropped_out,
            compared.scored,
        )
        rows += rows_of((), at_end, Estimates(scored, compared.level, weights), over_time=True)
    return rows


def _chosen(where: str, rows: list[TableRow], metric: str | None, weighting: str | None, time: Any) -> list[TableRow]:
    """Return one row for each model."""
    if not rows:
        raise InputError(f"{where} has no rows")
    name = rows[0].metric if metric is None else metric
    check_choice("metric", name, tuple(dict.fromkeys(row.metric for row in rows)))
    rows = [row for row in rows if row.metric == name]
    fitting = [row.weighting for row in rows if row.weighting.startswith(weighting or "")]
    if not fitting:
        known = ", ".join(dict.fromkeys(row.weighting for row in rows))
        raise InputError(f"{where} has no weighting {shown(weighting)!r}; it has {known}")
    rows = [row for row in rows if row.weighting == fitting[0]]
    known_times = list(dict.fromkeys(row.time for row in rows))
    if time is None and len(known_times) > 1:
        raise InputError(
            f"{where} has {plural(len(known_times), 'time')}: name one by times= (a number, or a mapping by data set)"
        )
    rows = [row for row in rows if time is None or row.time == time]
    if not rows:
        raise InputError(f"{where} has no time {time:g}; it has {', '.join(f'{known:g}' for known in known_times)}")
    return rows


def _of_frame(name: Any, given: Any, reference: str | None, level: float) -> _Dataset:
    """Return the rows of a data frame."""
    where = f"data set {shown(name)!r}"
    frame = as_frame(given)
    if frame is None:
        raise InputError(f"{where} must be a Comparison, a ScoreTable or a data frame, not {type(given).__name__}")
    absent = [column for column in ("model", "estimate") if column not in frame.columns]
    if absent:
        raise InputError(f"{where} has no column {absent[0]!r}; the columns are {frame.columns}")
    models = [str(model) for model in frame["model"].to_list()]
    if len(set(models)) < len(models):
        raise InputError(f"{where} must have one row for each model")
    own = models[0] if reference is None else reference
    check_choice("reference", own, tuple(models))
    estimate = np.asarray(frame["estimate"].to_numpy(), dtype=np.float64)
    both = {"difference", "difference_se"} <= set(frame.columns)
    nothing = np.full(len(models), np.nan)
    difference = (
        np.asarray(frame["difference"].to_numpy(), dtype=np.float64) if both else estimate - estimate[models.index(own)]
    )
    se = np.asarray(frame["difference_se"].to_numpy(), dtype=np.float64) if both else nothing
    half = float(student_quantile(level, np.inf)) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        p_value = student_p(difference / se, np.inf)
    columns = (estimate, difference, se, difference - half, difference + half, p_value)
    rows = [_Row(model, *map(float, values)) for model, *values in zip(models, *columns, strict=True)]
    return _Dataset({row.model: row for row in rows}, own)
