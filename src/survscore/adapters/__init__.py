"""Estimators of other packages with `Outcomes` as target and `SurvivalCurves` as predictions.

Each wraps an estimator, which keeps its own parameters (``estimator__alpha`` in searches), and is one itself by
scikit-learn's conventions. The packages are imported when something is fitted.
"""

from __future__ import annotations

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError:
    raise ImportError("adapters need scikit-learn: pip install scikit-learn") from None

from survscore.adapters.lifelines import Lifelines
from survscore.adapters.pycox import Pycox
from survscore.adapters.scikit_survival import ScikitSurvival
from survscore.adapters.skpro import Skpro
from survscore.adapters.torch import TorchModule
from survscore.adapters.xgboost import XGBoost

__all__ = ["Lifelines", "Pycox", "ScikitSurvival", "Skpro", "TorchModule", "XGBoost"]
