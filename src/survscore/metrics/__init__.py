"""Metrics: what is computed of predictions and statuses by a time, and whether low or high values are good.

A metric is the weighted mean of what each individual's prediction costs (`Loss`: Brier, log), a number of all who are
counted at a time taken together (`PooledMetric`: AUC), or one of everything that happened up to it (`HistoryMetric`).
All know their per-individual influence, so that standard errors, comparisons, tables and reports take any of them.
"""

from __future__ import annotations

from survscore._validation import check_choice
from survscore.metrics.base import (
    Direction,
    Found,
    History,
    HistoryMetric,
    JointMetric,
    Loss,
    Metric,
    PooledMetric,
    Scale,
)
from survscore.metrics.concordance import Concordance
from survscore.metrics.discrimination import AUC
from survscore.metrics.losses import DEFAULT_EPSILON, Brier, Log
from survscore.metrics.whole_scores import CRPS, LogScore

__all__ = [
    "AUC",
    "CRPS",
    "DEFAULT_EPSILON",
    "LOSSES",
    "METRICS",
    "Brier",
    "Concordance",
    "Direction",
    "Found",
    "History",
    "HistoryMetric",
    "JointMetric",
    "Log",
    "LogScore",
    "Loss",
    "Metric",
    "PooledMetric",
    "Scale",
    "as_metric",
    "metric_label",
]

METRICS: dict[str, type[Metric]] = {metric.name: metric for metric in (Brier, Log, AUC, Concordance, CRPS, LogScore)}
LOSSES = tuple(name for name, metric in METRICS.items() if issubclass(metric, Loss))


def metric_label(name: str) -> str:
    """Return what the metric of this name is called in a sentence."""
    return (METRICS[name].label if name in METRICS else "") or name


def as_metric(metric: str | Metric) -> Metric:
    """Return a metric by its name, or as it is."""
    if isinstance(metric, Metric):
        return metric
    check_choice("metric", metric, tuple(METRICS))
    return METRICS[metric]()
