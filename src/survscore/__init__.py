"""Scores for time-to-event predictions when the data end on a known date.

Every score is a loss under a weighting::

    score(t) = sum_i w_i(t) * loss(event-free at t or not, pi_i(t)) / sum_i w_i(t)

Outcomes and survival curves go in, score curves come out; see `brier_score`.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from survscore._validation import InputError, UndefinedScoreWarning
from survscore._version import __version__
from survscore.censoring import (
    CensoringCurves,
    CensoringDistribution,
    CensoringFunction,
    KaplanMeierCensoring,
    KnownCensoring,
)
from survscore.comparison import Comparison, IntegratedComparison, compare
from survscore.curves import SurvivalCurves
from survscore.diagnostics import Diagnosis, diagnose
from survscore.horizon import AUCCurve, Calibration, at_horizon, auc, calibration
from survscore.outcomes import Outcomes
from survscore.reports import Report, report
from survscore.results import IntegratedScore, ScoreCurve, ScoreTerms
from survscore.scorers import make_scorer
from survscore.scores import brier_score, log_loss, score_all
from survscore.weighting import IPCW, Administrative, Uncensored

__all__ = [
    "IPCW",
    "AUCCurve",
    "Administrative",
    "Calibration",
    "CensoringCurves",
    "CensoringDistribution",
    "CensoringFunction",
    "Comparison",
    "Diagnosis",
    "InputError",
    "IntegratedComparison",
    "IntegratedScore",
    "KaplanMeierCensoring",
    "KnownCensoring",
    "Outcomes",
    "Report",
    "ScoreCurve",
    "ScoreTerms",
    "SurvivalCurves",
    "Uncensored",
    "UndefinedScoreWarning",
    "__version__",
    "at_horizon",
    "auc",
    "brier_score",
    "calibration",
    "compare",
    "diagnose",
    "log_loss",
    "make_scorer",
    "report",
    "score_all",
]

_ROOMS = ("io", "models", "plots", "simulate")


def __getattr__(name: str) -> _Any:
    """Import a room with extras of its own when it is first asked for."""
    if name in _ROOMS:
        return _import_module(f"survscore.{name}")
    raise AttributeError(f"module 'survscore' has no attribute {name!r}")
