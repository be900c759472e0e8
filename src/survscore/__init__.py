"""Scores for time-to-event predictions when the data end on a known date.

Every score is a loss under a weighting::

    score(t) = sum_i w_i(t) * loss(status of i at t, pi_i(t)) / sum_i w_i(t)

Outcomes and survival curves go in, score curves come out; see `brier_score`.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from survscore._config import config
from survscore._utils import starting as _starting  # noqa: F401
from survscore._validation import DeviceMemoryError, FewGroupsWarning, InputError, UndefinedScoreWarning
from survscore._version import __version__
from survscore.analysis.backtest.backtesting import backtest
from survscore.analysis.backtest.results import Backtest
from survscore.analysis.calibration.calibrating import Calibration, calibration
from survscore.analysis.cross_validation import CrossValidation, cross_validate
from survscore.analysis.decision_curves import DecisionCurve, decision_curve
from survscore.analysis.diagnostics import Diagnosis, diagnose
from survscore.analysis.distribution.calibration import distribution_calibration
from survscore.analysis.distribution.results import DistributionCalibration
from survscore.analysis.horizon import at_horizon
from survscore.analysis.populations import counted_population
from survscore.analysis.score_tables import ScoreTable, score_table
from survscore.analysis.scorers import make_scorer
from survscore.analysis.splitters import EventKFold
from survscore.analysis.streaming import StreamingScore
from survscore.censoring.distributions import (
    CensoringCurves,
    CensoringDistribution,
    CensoringFunction,
    KaplanMeierCensoring,
    KnownCensoring,
)
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import CurveBatches
from survscore.metrics import (
    AUC,
    CRPS,
    E50,
    E90,
    ICI,
    Brier,
    CalibrationInTheLarge,
    CalibrationSlope,
    Concordance,
    HistoryMetric,
    Log,
    LogScore,
    Loss,
    Metric,
    Miscalibration,
    NetBenefit,
    ObservedExpected,
    PooledMetric,
)
from survscore.outcomes import Outcomes
from survscore.reports import Report, report
from survscore.results.comparison import Comparison, IntegratedComparison, compare
from survscore.results.score_curve import Bounds, IntegratedScore, ScoreCurve, ScoreTerms
from survscore.results.segments import IntegratedSegments, SegmentedComparison
from survscore.scale.evaluating import evaluate
from survscore.scores import auc, brier_score, log_loss, score_all, score_terms
from survscore.weighting import IPCW, Administrative, Uncensored, weightings_that_fit

__all__ = [
    "AUC",
    "CRPS",
    "E50",
    "E90",
    "ICI",
    "IPCW",
    "Administrative",
    "Backtest",
    "Bounds",
    "Brier",
    "Calibration",
    "CalibrationInTheLarge",
    "CalibrationSlope",
    "CensoringCurves",
    "CensoringDistribution",
    "CensoringFunction",
    "Comparison",
    "Concordance",
    "CrossValidation",
    "CurveBatches",
    "DecisionCurve",
    "DeviceMemoryError",
    "Diagnosis",
    "DistributionCalibration",
    "EventKFold",
    "FewGroupsWarning",
    "HistoryMetric",
    "InputError",
    "IntegratedComparison",
    "IntegratedScore",
    "IntegratedSegments",
    "KaplanMeierCensoring",
    "KnownCensoring",
    "Log",
    "LogScore",
    "Loss",
    "Metric",
    "Miscalibration",
    "NetBenefit",
    "ObservedExpected",
    "Outcomes",
    "PooledMetric",
    "Report",
    "ScoreCurve",
    "ScoreTable",
    "ScoreTerms",
    "SegmentedComparison",
    "StreamingScore",
    "SurvivalCurves",
    "Uncensored",
    "UndefinedScoreWarning",
    "__version__",
    "at_horizon",
    "auc",
    "backtest",
    "brier_score",
    "calibration",
    "compare",
    "config",
    "counted_population",
    "cross_validate",
    "decision_curve",
    "diagnose",
    "distribution_calibration",
    "evaluate",
    "log_loss",
    "make_scorer",
    "report",
    "score_all",
    "score_table",
    "score_terms",
    "weightings_that_fit",
]

_LAZY = ("adapters", "checks", "datasets", "io", "models", "plots", "simulate")


def __getattr__(name: str) -> _Any:
    """Import a module with extras of its own when it is first asked for."""
    if name in _LAZY:
        return _import_module(f"survscore.{name}")
    raise AttributeError(f"module 'survscore' has no attribute {name!r}")
