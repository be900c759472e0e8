"""Scores of several imputed data sets together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, as_array, check_level, check_rule, plural, shown
from survscore.analysis.score_tables import INTEGRATED, SKILL, rows_of
from survscore.inference.estimate import Pooled, rubin
from survscore.inference.intervals import (
    difference_interval,
    ratio_interval,
    score_interval,
    student_quantile,
    verdicts,
)
from survscore.inference.support import Support
from survscore.inference.units import Units
from survscore.metrics import Brier, Metric, as_metric
from survscore.results.comparison import Comparison
from survscore.results.estimates import Estimates
from survscore.results.score_table import DISTRIBUTION, MissingInformation, PooledTable, ScoreTable, TableRow

Values = NDArray[np.float64]
LEAST = 2


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
    several = list(results)  # type: ignore[arg-type]
    tables = [_as_table(one) for one in several]
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
    if not complete > 0:
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
    rows = [row for scored in given.scored for row in rows_of((), given, Estimates(scored, given.level))]
    settings = {**given.scored[0].settings, "groups": given.scored[0].support.grouped, "reference": given.reference}
    return ScoreTable(tuple(rows), (), given.level, given.n, given.n_dropped_out, settings, given.leak_warnings)


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
    used, rows_pooled, information = first.level if level is None else level, [], []
    for key, row in by_key[0].items():
        if row.metric == DISTRIBUTION:
            continue
        pooled, lost = _pooled_row([rows[key] for rows in by_key], used)
        rows_pooled.append(pooled)
        information.append(lost)
    warnings = {model: text for table in tables for model, text in table.leak_warnings.items()}
    settings = {**first.settings, "level": used, "imputations": len(tables)}
    return PooledTable(
        tuple(rows_pooled),
        first.by,
        used,
        first.n,
        first.n_dropped_out,
        settings,
        warnings,
        n_imputations=len(tables),
        information=tuple(information),
    )


def _column(rows: Sequence[TableRow], name: str) -> Values:
    return np.array([[getattr(row, name)] for row in rows], dtype=np.float64)


def _pooled_row(rows: Sequence[TableRow], level: float) -> tuple[TableRow, MissingInformation]:
    """Return one row for that of every imputation."""
    counts: dict[str, Any] = {
        name: float(_column(rows, name).mean()) for name in ("n_counted", "n_events", "n_lost", "n_groups")
    }
    units = counts["n_groups"] if not math.isnan(counts["n_groups"]) else counts["n_counted"]
    free = counts["n_counted"] - counts["n_events"] - counts["n_lost"]
    rarer = min(counts["n_events"], free)
    of_score = units - 1.0 if units > 1 else math.inf
    of_difference = min(of_score, max(rarer - 1.0, 1.0)) if not math.isnan(rarer) else of_score
    score = rubin(_column(rows, "estimate"), _column(rows, "se"), of_score)
    contrast = rubin(_column(rows, "difference"), _column(rows, "difference_se"), of_difference)

    def support(degrees: Values) -> Support:
        n = np.array([units])
        events, without = np.array([counts["n_events"]]), np.array([free])
        return Support(n, n, events, without, Units(n, np.full(1, np.nan), degrees), True)

    row, metric = rows[0], _scored_by(rows[0].metric)
    limits = _limits(score, metric, row.metric, level, support(score.degrees))
    lower, upper, p_value, judged = _difference(
        score, contrast, metric, row.direction, level, support(contrast.degrees)
    )
    absent = sum(math.isnan(one.estimate) for one in rows)
    note = f"no estimate in {absent} of {len(rows)} imputations: {rows[0].note}".rstrip(": ") if absent else row.note
    pooled = replace(
        row,
        estimate=float(score.estimate[0]),
        se=float(score.se[0]),
        lower=limits[0],
        upper=limits[1],
        difference=float(contrast.estimate[0]),
        difference_se=float(contrast.se[0]),
        difference_lower=lower,
        difference_upper=upper,
        p_value=p_value,
        verdict=judged if row.verdict else "",
        reliable=all(one.reliable for one in rows),
        difference_reliable=all(one.difference_reliable for one in rows),
        note=note,
        **counts,
    )
    lost = (score.degrees, score.missing_information, contrast.degrees, contrast.missing_information)
    return pooled, MissingInformation(*(float(value[0]) for value in lost))


def _scored_by(name: str) -> Metric | None:
    """Return the metric whose scale intervals are made on; none of skill, which is one minus a ratio."""
    return None if name == SKILL else Brier() if name == INTEGRATED else as_metric(name)


def _limits(score: Pooled, metric: Metric | None, name: str, level: float, support: Support) -> tuple[float, float]:
    if metric is None:
        ratio = ratio_interval(1.0 - score.estimate, score.se, level, support)
        return float(1.0 - ratio.upper[0]), float(1.0 - ratio.lower[0])
    interval = score_interval(score.estimate, score.se, level, metric.scale, support, possible=metric.possible)
    return float(interval.lower[0]), float(interval.upper[0])


def _difference(
    score: Pooled, contrast: Pooled, metric: Metric | None, direction: Any, level: float, support: Support
) -> tuple[float, float, float, str]:
    scale = "plain" if metric is None else metric.scale
    critical = student_quantile(level, contrast.degrees)
    found = difference_interval(
        score.estimate,
        score.estimate - contrast.estimate,
        contrast.se,
        critical,
        scale,
        support,
        possible=(-np.inf, np.inf) if metric is None else metric.possible,
    )
    judged = verdicts(found.lower, found.upper, direction)[0]
    return float(found.lower[0]), float(found.upper[0]), float(found.p_value[0]), str(judged)
