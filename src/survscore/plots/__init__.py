"""Displays: numbers that can be drawn with matplotlib (extra ``plots``), in one style.

Every result has a method ``plot``, which draws into axes of yours or a new figure and returns a display: with the axes
in ``ax_``, the figure in ``figure_``, and a method ``save``.
"""

from __future__ import annotations

try:
    import matplotlib  # noqa: F401
except ImportError:
    raise ImportError("plots need matplotlib: pip install 'survscore[plots]'") from None

from survscore.plots.calibration import CalibrationDisplay, DistributionCalibrationDisplay
from survscore.plots.decisions import BacktestDisplay, DecisionCurveDisplay
from survscore.plots.diagnosis import DiagnosisDisplay, SensitivityDisplay, TrainingDisplay
from survscore.plots.display import Display, save_figure
from survscore.plots.scores import DifferenceDisplay, ScoreCurveDisplay, ScoresDisplay
from survscore.plots.segments import LandmarksDisplay, SegmentsDisplay
from survscore.plots.style import COLUMN, PAGE, colours

__all__ = [
    "COLUMN",
    "PAGE",
    "BacktestDisplay",
    "CalibrationDisplay",
    "DecisionCurveDisplay",
    "DiagnosisDisplay",
    "DifferenceDisplay",
    "Display",
    "DistributionCalibrationDisplay",
    "LandmarksDisplay",
    "ScoreCurveDisplay",
    "ScoresDisplay",
    "SegmentsDisplay",
    "SensitivityDisplay",
    "TrainingDisplay",
    "colours",
    "save_figure",
]
