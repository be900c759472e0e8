"""Metrics: what is computed of predictions and statuses by a time, and whether low or high values are good.

A metric is the weighted mean of a loss of each individual's prediction (`Loss`: Brier, log), a number of all who are
counted at a time taken together (`SampleMetric`: AUC, calibration, net benefit), or one of the whole follow-up up to it
(`FollowUpMetric`). All know their per-individual influence, so that standard errors, comparisons, tables and reports
take any of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from survscore._validation import InputError, check_choice, shown
from survscore.causes import ALL_CAUSES
from survscore.inference.intervals import Direction, Scale
from survscore.metrics.base import FollowUpMetric, History, JointMetric, Loss, Metric, MetricValue, SampleMetric
from survscore.metrics.benefit import NetBenefit
from survscore.metrics.calibration import (
    E50,
    E90,
    ICI,
    CalibrationInTheLarge,
    CalibrationSlope,
    Miscalibration,
    ObservedExpected,
)
from survscore.metrics.discrimination import AUC, CONTROLS, Concordance
from survscore.metrics.losses import DEFAULT_EPSILON, Brier, Log
from survscore.metrics.sample import MetricSample
from survscore.metrics.whole_scores import CRPS, LogScore

__all__ = [
    "AUC",
    "CRPS",
    "DEFAULT_EPSILON",
    "E50",
    "E90",
    "ICI",
    "LOSSES",
    "METRICS",
    "Brier",
    "CalibrationInTheLarge",
    "CalibrationSlope",
    "Concordance",
    "Direction",
    "FollowUpMetric",
    "History",
    "JointMetric",
    "Log",
    "LogScore",
    "Loss",
    "Metric",
    "MetricSample",
    "MetricValue",
    "Miscalibration",
    "NetBenefit",
    "ObservedExpected",
    "SampleMetric",
    "Scale",
]

_ACCURACY: list[type[Metric]] = [Brier, Log, AUC]
_CALIBRATION: list[type[Metric]] = [ObservedExpected, CalibrationSlope, CalibrationInTheLarge, Miscalibration]
_OTHERS: list[type[Metric]] = [ICI, E50, E90, NetBenefit, Concordance, CRPS, LogScore]
METRICS: dict[str, type[Metric]] = {metric.name: metric for metric in _ACCURACY + _CALIBRATION + _OTHERS}
LOSSES = tuple(name for name, metric in METRICS.items() if issubclass(metric, Loss))


def metric_label(name: str) -> str:
    """Return what the metric of this name is called in a sentence."""
    kind, _, setting = name.partition("@")
    if kind not in METRICS:
        return name
    return (as_metric(name).label if setting else METRICS[kind].label) or name


def cause_label(label: str, cause: str) -> str:
    """Return what a metric is called, of one cause where there are several, or of all statuses together."""
    if cause == ALL_CAUSES:
        return f"multi-class {label}"
    return f"{label} of cause {shown(cause)}" if cause else label


def controls_note(metrics: Iterable[str], cause: str) -> list[str]:
    """Return who the controls of AUC are, where scores are of a cause and AUC is among the metrics."""
    if not cause or cause == ALL_CAUSES or AUC.name not in metrics:
        return []
    return [f"{AUC.label}: controls are the event-free and those with an event of another cause"]


def survival_label(cause: str) -> str:
    """Return what predicted curves are: survival, or of a cause the probability of not having had its event."""
    return f"probability of no event of cause {shown(cause)}" if cause else "survival"


def as_metric(metric: str | Metric) -> Metric:
    """Return a metric by its name, such as ``"auc"``, ``"auc@event-free"`` or ``"net_benefit@0.1"``, or as it is."""
    if isinstance(metric, Metric):
        return metric
    kind, _, setting = metric.partition("@") if isinstance(metric, str) else ("", "", "")
    if kind == AUC.name and setting:
        check_choice("controls", setting, CONTROLS)
        return AUC(setting)  # type: ignore[arg-type]
    if kind != NetBenefit.name:
        check_choice("metric", metric, tuple(METRICS))
        return METRICS[metric]()
    try:
        threshold = float(setting)
    except ValueError:
        raise InputError(f"metric {metric!r} needs a threshold probability, such as '{NetBenefit.name}@0.1'") from None
    return NetBenefit(threshold)
