"""Results of several data sets together: of imputations by Rubin's rules, of different ones by random effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.frames import as_frame
from survscore._validation import (
    InputError,
    as_array,
    check_choice,
    check_level,
    check_number,
    check_rule,
    plural,
    shown,
)
from survscore.analysis.score_tables import INTEGRATED, SKILL, rows_of
from survscore.inference.estimate import rubin
from survscore.inference.intervals import (
    chi_square_p,
    difference_interval,
    ratio_interval,
    score_interval,
    student_p,
    student_quantile,
    verdicts,
)
from survscore.inference.random_effects import RandomEffects
from survscore.inference.support import Support
from survscore.inference.units import Units
from survscore.metrics import Brier, Metric, as_metric
from survscore.results.comparison import Comparison
from survscore.results.estimates import Estimates
from survscore.results.long_tables import ALL
from survscore.results.score_table import (
    DISTRIBUTION,
    AcrossDatasets,
    DatasetDifference,
    MissingInformation,
    ModelRank,
    PooledTable,
    ScoreTable,
    TableRow,
)

Values = NDArray[np.float64]
LEAST = 2  # imputations
DIRECTIONS = ("lower", "higher", "closer to 1", "closer to 0")


class PooledEstimate(NamedTuple):
    """Pooled estimate of several imputed data sets; see `pool`."""

    estimate: Any
    se: Any
    lower: Any
    upper: Any
    degrees: Any
    missing_information: Any


def pool(
    results: Sequence[ScoreTable] | Sequence[Comparison] | ArrayLike,
    se: ArrayLike | None = None,
    *,
    complete_degrees: float = math.inf,
    level: float | None = None,
) -> PooledTable | PooledEstimate:
    r"""Pool the results of several imputed data sets by Rubin's rules.

    Impute covariates, fit or apply the models in each imputed data set, score each by `score_table` or `compare`, and
    give the results.

    Parameters
    ----------
    results : sequence of ScoreTable or Comparison, or array_like of shape (M,) or (M, k)
        One for each imputed data set, of the same models and settings. Of numbers: one row for each.
    se : array_like, optional
        The standard errors of numbers.
    complete_degrees : float, default infinite
        Of freedom, of the standard errors of numbers if nothing were missing. Those of results are known.
    level : float, optional
        Of the intervals; by default that of the results, or 0.95.

    Returns
    -------
    PooledTable or PooledEstimate
        A `ScoreTable`, whose `to_frame` also has degrees of freedom and fractions of missing information; of numbers, a
        tuple of estimate, se, lower, upper, degrees and missing_information.

    Notes
    -----
    With M estimates :math:`Q_m` of variance :math:`U_m`: :math:`\bar Q = \sum_m Q_m / M`, :math:`W = \sum_m U_m / M`,
    :math:`B = \sum_m (Q_m - \bar Q)^2 / (M - 1)`, and the variance is :math:`T = W + (1 + 1/M) B`. With
    :math:`\lambda = (1 + 1/M) B / T` and :math:`\nu` degrees of freedom of complete data, Barnard and Rubin's are

    .. math:: \left[\frac{\lambda^2}{M - 1} + \frac{\nu + 3}{(\nu + 1)\, \nu\, (1 - \lambda)}\right]^{-1}.

    Estimates and differences are pooled as they are; intervals are then made on the scale that suits the metric. A test
    of whole distributions is no estimate, and is left out.

    References
    ----------
    Rubin (1987), *Multiple Imputation for Nonresponse in Surveys*; Barnard and Rubin (1999), Biometrika 86,
    https://doi.org/10.1093/biomet/86.4.948

    Examples
    --------
    >>> import survscore as ss
    >>> pooled = ss.pool([0.20, 0.22, 0.21], [0.010, 0.011, 0.010])
    >>> print(f"{pooled.estimate:.3f} ({pooled.lower:.3f} to {pooled.upper:.3f}), {pooled.missing_information:.2f}")
    0.210 (0.173 to 0.247), 0.65
    """
    if level is not None:
        check_level(level)
    if se is not None:
        return _of_numbers(results, se, complete_degrees, 0.95 if level is None else level)
    tables = [_as_table(result) for result in results]  # type: ignore[union-attr]
    if len(tables) < LEAST:
        raise InputError(f"results must be of at least {LEAST} imputed data sets, not {len(tables)}")
    return _of_tables(tables, level)


def _of_numbers(results: Any, se: ArrayLike, complete: float, level: float) -> PooledEstimate:
    estimates, errors = (
        np.asarray(as_array(given, name), dtype=np.float64) for given, name in ((results, "results"), (se, "se"))
    )
    if estimates.shape != errors.shape or estimates.ndim not in (1, 2) or len(estimates) < LEAST:
        raise InputError(
            f"results and se must have the same shape, (imputations,) or (imputations, quantities), with at least "
            f"{LEAST} imputations, not {estimates.shape} and {errors.shape}"
        )
    check_rule("se", "at least 0", (errors < 0).ravel(), errors.ravel())
    if not isinstance(complete, (int, float, np.number)) or not complete > 0:
        raise InputError(f"complete_degrees must be above 0, not {complete!r}")
    pooled = rubin(estimates, errors, complete)
    half = student_quantile(level, pooled.degrees) * pooled.se
    values = (pooled.estimate, pooled.se, pooled.estimate - half, pooled.estimate + half, *pooled[2:])
    return PooledEstimate(*(float(value) if estimates.ndim == 1 else np.asarray(value) for value in values))


def _as_table(given: Any) -> ScoreTable:
    """Return a result as a table."""
    if isinstance(given, ScoreTable):
        return given
    if not isinstance(given, Comparison):
        raise InputError(
            f"results must be ScoreTables or Comparisons, or numbers with their standard errors (se=), not "
            f"{type(given).__name__}"
        )
    settings = {**given.scored[0].settings, "groups": given.scored[0].support.grouped, "reference": given.reference}
    return ScoreTable(
        tuple(_rows_at_times(given)), (), given.level, given.n, given.n_dropped_out, settings, given.leak_warnings
    )


def _rows_at_times(compared: Comparison) -> list[TableRow]:
    return [row for scored in compared.scored for row in rows_of((), compared, Estimates(scored, compared.level))]


def _key(row: TableRow) -> tuple[Any, ...]:
    return row.segment, row.metric, row.weighting, row.time, row.model, row.reference


def _of_tables(tables: Sequence[ScoreTable], level: float | None) -> PooledTable:
    first = tables[0]
    by_key = [{_key(row): row for row in table.rows} for table in tables]
    for place, rows in enumerate(by_key[1:], start=1):
        differ = [key for key in {**by_key[0], **rows} if key not in rows or key not in by_key[0]]
        if differ:
            _, metric, weighting, time, model, reference = differ[0]
            raise InputError(
                f"results must be of the same models, metrics, weightings and times: result {place} and the first "
                f"differ in {plural(len(differ), 'row')}, such as {metric} of {shown(model)} (reference "
                f"{shown(reference)}) at {time:g}, {weighting}"
            )
    level = first.level if level is None else level
    pooled = [
        _pooled_row([rows[key] for rows in by_key], level)
        for key, row in by_key[0].items()
        if row.metric != DISTRIBUTION
    ]
    warnings = {model: text for table in tables for model, text in table.leak_warnings.items()}
    settings = {**first.settings, "level": level, "imputations": len(tables)}
    return PooledTable(
        tuple(row for row, _ in pooled),
        first.by,
        level,
        first.n,
        first.n_dropped_out,
        settings,
        warnings,
        n_imputations=len(tables),
        information=tuple(information for _, information in pooled),
    )


def _pooled_row(rows: Sequence[TableRow], level: float) -> tuple[TableRow, MissingInformation]:
    """Return one row for that of every imputation."""

    def column(name: str) -> Values:
        return np.array([[getattr(row, name)] for row in rows], dtype=np.float64)

    counts: dict[str, Any] = {
        name: float(column(name).mean()) for name in ("n_counted", "n_events", "n_lost", "n_groups")
    }
    units = counts["n_counted"] if math.isnan(counts["n_groups"]) else counts["n_groups"]
    free = counts["n_counted"] - counts["n_events"] - counts["n_lost"]
    rarer = min(counts["n_events"], free)
    of_score = units - 1.0 if units > 1 else math.inf
    of_difference = of_score if math.isnan(rarer) else min(of_score, max(rarer - 1.0, 1.0))
    score = rubin(column("estimate"), column("se"), of_score)
    contrast = rubin(column("difference"), column("difference_se"), of_difference)

    def support(degrees: Values) -> Support:
        n, events, without = (np.array([number]) for number in (units, counts["n_events"], free))
        return Support(n, n, events, without, Units(n, np.full(1, np.nan), degrees), True)

    row = rows[0]
    reference, critical = score.estimate - contrast.estimate, student_quantile(level, contrast.degrees)
    if row.metric == SKILL:  # one minus a ratio
        ratio = ratio_interval(1.0 - score.estimate, score.se, level, support(score.degrees))
        lower, upper = 1.0 - ratio.upper, 1.0 - ratio.lower
        difference = difference_interval(
            score.estimate, reference, contrast.se, critical, "plain", support(contrast.degrees)
        )
    else:
        metric: Metric = Brier() if row.metric == INTEGRATED else as_metric(row.metric)
        lower, upper, _ = score_interval(
            score.estimate, score.se, level, metric.scale, support(score.degrees), possible=metric.possible
        )
        difference = difference_interval(
            score.estimate,
            reference,
            contrast.se,
            critical,
            metric.scale,
            support(contrast.degrees),
            possible=metric.possible,
        )
    verdict = verdicts(difference.lower, difference.upper, row.direction)[0]  # type: ignore[arg-type]
    absent = sum(math.isnan(imputed.estimate) for imputed in rows)
    note = f"no estimate in {absent} of {len(rows)} imputations: {row.note}".rstrip(": ") if absent else row.note
    pooled = replace(
        row,
        estimate=float(score.estimate[0]),
        se=float(score.se[0]),
        lower=float(lower[0]),
        upper=float(upper[0]),
        difference=float(contrast.estimate[0]),
        difference_se=float(contrast.se[0]),
        difference_lower=float(difference.lower[0]),
        difference_upper=float(difference.upper[0]),
        p_value=float(difference.p_value[0]),
        verdict=str(verdict) if row.verdict else "",
        reliable=all(imputed.reliable for imputed in rows),
        difference_reliable=all(imputed.difference_reliable for imputed in rows),
        note=note,
        **counts,
    )
    information = (score.degrees, score.missing_information, contrast.degrees, contrast.missing_information)
    return pooled, MissingInformation(*(float(value[0]) for value in information))


class _Dataset(NamedTuple):
    """One data set: its rows by model, and what was compared; empty where a data frame does not say."""

    rows: dict[str, DatasetDifference]
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
    for name, choice in (("metric", metric), ("weighting", weighting), ("reference", reference)):
        if not isinstance(choice, str | None):
            raise InputError(f"{name} must be a name, not {choice!r}")
    named = {}
    for key, result in results.items():
        time = times.get(key) if isinstance(times, Mapping) else times
        if time is not None:
            check_number("times", time, "a number, or a mapping of data sets to numbers", lambda _: True)
        if isinstance(result, (Comparison, ScoreTable)):
            named[str(key)] = _of_result(str(key), result, metric, weighting, time, reference)
        else:
            named[str(key)] = _of_frame(str(key), result, reference, level)
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
    better: Any = first.direction or "lower" if direction is None else direction
    check_choice("direction", better, DIRECTIONS)
    estimates = np.array([[dataset.rows[model].estimate for model in models] for dataset in named.values()])
    ranks, p_value = _ranks(models, estimates, better)
    differences = {
        model: [dataset.rows[model] for dataset in named.values()] for model in models if model != first.reference
    }
    means = {
        model: RandomEffects.of(np.array([row.difference for row in rows]), np.array([row.se for row in rows]), level)
        for model, rows in differences.items()
    }
    judged = {
        model: str(verdicts(np.array([mean.lower]), np.array([mean.upper]), better)[0]) for model, mean in means.items()
    }
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
        tuple(row for rows in differences.values() for row in rows),
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
    return tuple(sorted(each, key=lambda rank: rank.mean_rank)), chi_square_p(statistic, k - 1)


def _of_result(
    name: str, result: Comparison | ScoreTable, metric: str | None, weighting: str | None, time: Any, reference: Any
) -> _Dataset:
    """Return what a result says of each model, by one metric under one weighting."""
    where = f"data set {shown(name)!r}"
    if isinstance(result, ScoreTable):
        rows = [row for row in result.rows if not row.segment or set(row.segment) == {ALL}]
    else:
        rows = _of_comparison(result if reference is None else result.against(reference), time)
    if not rows:
        raise InputError(f"{where} has no rows")
    metric = rows[0].metric if metric is None else metric
    check_choice("metric", metric, tuple(dict.fromkeys(row.metric for row in rows)))
    rows = [row for row in rows if row.metric == metric]
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
    first = rows[0]
    if reference not in (None, first.reference):
        raise InputError(
            f"{where} has differences to {shown(first.reference)!r}, not to {shown(reference)!r}: score with reference="
        )
    by_model = {}
    for row in rows:
        limits = (row.difference_lower, row.difference_upper)
        by_model[row.model] = DatasetDifference(
            name, row.model, row.estimate, row.difference, row.difference_se, *limits, row.p_value
        )
    return _Dataset(by_model, first.reference, first.metric, first.label, first.weighting, first.direction)


def _of_comparison(compared: Comparison, time: Any) -> list[TableRow]:
    """Return the rows of a comparison: at each time, or of means over time if there are several, and none is named."""
    if time is not None or compared.times.size == 1:
        return _rows_at_times(compared)
    over = compared.means_over(nan="stop")
    rows = []
    for scored in compared.scored:
        weights, (_, until) = over[scored.metric]
        at_end = replace(compared, times=np.array([until]))
        rows += rows_of((), at_end, Estimates(scored, compared.level, weights), over_time=True)
    return rows


def _of_frame(name: str, given: Any, reference: str | None, level: float) -> _Dataset:
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
    difference, se = estimate - estimate[models.index(own)], np.full(len(models), np.nan)
    if {"difference", "difference_se"} <= set(frame.columns):
        difference, se = (
            np.asarray(frame[column].to_numpy(), dtype=np.float64) for column in ("difference", "difference_se")
        )
    half = float(student_quantile(level, np.inf)) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        p_value = student_p(difference / se, np.inf)
    columns = (estimate, difference, se, difference - half, difference + half, p_value)
    rows = [
        DatasetDifference(name, model, *map(float, values)) for model, *values in zip(models, *columns, strict=True)
    ]
    return _Dataset({row.model: row for row in rows}, own)
