"""Scores of survival predictions under administrative censoring, that is where follow-up ends on a known date.

Every score is a loss under a weighting::

    score(t) = sum_i w_i(t) * loss(status of i at t, pi_i(t)) / sum_i w_i(t)

Outcomes and survival curves go in, score curves come out; see `brier_score`.

Names are imported when they are first asked for, so that ``import survscore`` loads next to nothing. Type checkers
read ``__init__.pyi``, which lists the same names; a test compares both.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from survscore._version import __version__

#: The public names, by the module that each comes from.
_NAMES = {
    "_config": "config",
    "_validation": (
        "DelayedEntryWarning DeviceMemoryError FewFollowedWarning FewGroupsWarning InputError InterpolationWarning "
        "UndefinedScoreWarning UnequalWeightsWarning UnfitError"
    ),
    "analysis.backtest": "backtest",
    "analysis.backtest_results": "Backtest",
    "analysis.calibration": "Calibration calibration",
    "analysis.compare": "compare",
    "analysis.cross_validation": "CrossValidation cross_validate",
    "analysis.decision_curves": "DecisionCurve decision_curve",
    "analysis.diagnose": "Diagnosis diagnose",
    "analysis.distribution_calibration": "DistributionCalibration distribution_calibration",
    "analysis.landmark_curves": "LandmarkCurves",
    "analysis.landmarks": "landmark_table",
    "analysis.pooling": "PooledEstimate across_datasets pool",
    "analysis.populations": "at_horizon counted_population",
    "analysis.score_tables": "score_table",
    "analysis.selection": "EventKFold make_scorer",
    "analysis.streaming": "StreamingScore",
    "censoring.distributions": (
        "CensoringCurves CensoringDistribution CensoringFunction KaplanMeierCensoring KnownCensoring"
    ),
    "curves": "SurvivalCurves",
    "engine.blocks": "CurveBatches",
    "incidence": "IncidenceCurves",
    "metrics": (
        "AUC CRPS E50 E90 ICI Brier CalibrationInTheLarge CalibrationSlope Concordance FollowUpMetric Log LogScore "
        "Loss Metric Miscalibration NetBenefit ObservedExpected SampleMetric"
    ),
    "outcomes": "Outcomes",
    "reports.page": "Report report",
    "results.comparison": "Comparison IntegratedComparison",
    "results.recommendation": "Recommendation",
    "results.score_curve": "Bounds IntegratedScore ScoreCurve ScoreTerms",
    "results.score_table": "AcrossDatasets LandmarkTable PooledTable ScoreTable",
    "results.segments": "IntegratedSegments SegmentedComparison",
    "results.sensitivity": "Sensitivity",
    "scale.evaluating": "evaluate",
    "scale.files": "BadFileError",
    "scale.memory": "MemoryLimitError",
    "scale.specification": "BinsNeededError",
    "scores": "auc brier_score log_loss score_all score_terms",
    "weighting": "IPCW Administrative Projected Uncensored Weighting weightings_that_fit",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
#: Public subpackages; others are internal, and may change.
_SUBPACKAGES = (
    "adapters",
    "censoring",
    "checks",
    "datasets",
    "io",
    "metrics",
    "models",
    "paper",
    "plots",
    "reports",
    "scale",
    "simulate",
    "weighting",
)

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604


def __getattr__(name: str) -> _Any:
    """Import a public name, or a public subpackage, when it is first asked for."""
    if name in _HOMES:
        value = getattr(_import_module(f"survscore.{_HOMES[name]}"), name)
    elif name in _SUBPACKAGES:
        value = _import_module(f"survscore.{name}")
    else:
        raise AttributeError(f"module 'survscore' has no attribute {name!r}")
    globals()[name] = value  # the next time, Python finds it without asking here
    return value


def __dir__() -> list[str]:
    """Return the public names and subpackages, whichever modules have been imported."""
    return sorted({*__all__, *_SUBPACKAGES})
