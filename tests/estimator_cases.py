"""Estimators of several packages, ready to be cross-validated, each with a parameter to search over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import survscore as ss

TIMES = np.array([2.0, 4.0, 6.0])


@dataclass(frozen=True)
class Case:
    """How to make an estimator, and what to search over; `needs` are the packages it comes from."""

    make: Callable[[], Any]
    search: dict[str, list[Any]]
    needs: tuple[str, ...] = ()

    def estimator(self) -> Any:
        """Return the estimator, or skip the test where a package is missing."""
        for package in self.needs:
            pytest.importorskip(package)
        return self.make()


def sample(n: int = 100, seed: int = 0) -> tuple[np.ndarray, ss.Outcomes]:
    """Return covariates and outcomes: proportional hazards, everybody's end known."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    event_time, end = rng.exponential(8 * np.exp(-X[:, 0])) + 0.01, rng.uniform(5, 15, n)
    return X, ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)


def small_net(n_inputs: int, n_outputs: int) -> Any:
    """Return a small net, as pycox and our own models ask for one."""
    import torch

    return torch.nn.Sequential(torch.nn.Linear(n_inputs, 4), torch.nn.ReLU(), torch.nn.Linear(4, n_outputs))


def _case(
    wrap: Callable[[Any], Any], module: str, name: str, search: dict[str, list[Any]], *needs: str, **params: Any
) -> Case:
    """Return the case of an object of another package, which is imported only when it is made."""
    return Case(lambda: wrap(getattr(pytest.importorskip(module), name)(**params)), search, needs)


def _pycox_case(name: str) -> Case:
    def make() -> Any:
        settings = {"epochs": 2, "validation_share": 0, "batch_size": 64, "random_state": 0}
        model = getattr(pytest.importorskip("pycox.models"), name)
        return ss.adapters.Pycox(model, small_net, times=TIMES, **settings)

    return Case(make, {"epochs": [1, 2]}, ("pycox", "torchtuples"))


def _sksurv(estimator: Any) -> Any:
    return ss.adapters.ScikitSurvival(estimator, times=TIMES)


def _lifelines(estimator: Any) -> Any:
    return ss.adapters.Lifelines(estimator, times=TIMES)


def _xgboost(estimator: Any) -> Any:
    return ss.adapters.XGBoost(estimator, times=TIMES)


def _per_horizon(classifier: Any) -> Any:
    return ss.models.HorizonClassifiers(classifier, TIMES)


def _administrative(classifier: Any) -> Any:
    return ss.models.HorizonClassifiers(classifier, TIMES, keep="administrative")


QUICK = {"times": TIMES, "epochs": 2, "n_layers": 1, "width": 4, "device": "cpu", "random_state": 0, "progress": False}
TREES = {"n_estimators": 5, "max_depth": 2, "n_jobs": 1}
FEW = {"n_estimators": 4, "random_state": 0}
PENALTY, DEPTH = "estimator__penalizer", {"estimator__max_depth": [1, 2]}
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
CASES = {
    "KaplanMeier": Case(lambda: ss.models.KaplanMeier(times=TIMES), {"n_times": [5, 50]}),
    "AalenJohansen": Case(lambda: ss.models.AalenJohansen(times=TIMES), {"n_times": [5, 50]}),
    "LogisticHazard": Case(lambda: ss.models.LogisticHazard(**QUICK), {"width": [2, 4]}),
    "classifiers": Case(lambda: _administrative(LogisticRegression()), {"estimator__C": [0.01, 1.0]}),
    "pipelines per horizon": Case(lambda: _per_horizon(SCALED), {"estimator__logisticregression__C": [0.01, 1.0]}),
    "sksurv Cox": _case(_sksurv, "sksurv.linear_model", "CoxPHSurvivalAnalysis", {"estimator__alpha": [0.0, 100.0]}),
    "sksurv Coxnet": _case(
        _sksurv, "sksurv.linear_model", "CoxnetSurvivalAnalysis", {"estimator__alphas": [[0.01], [0.5]]},
        fit_baseline_model=True, alphas=[0.01],
    ),
    "sksurv forest": _case(
        _sksurv, "sksurv.ensemble", "RandomSurvivalForest", {"estimator__min_samples_leaf": [3, 20]}, **FEW
    ),
    "sksurv boosting": _case(_sksurv, "sksurv.ensemble", "GradientBoostingSurvivalAnalysis", DEPTH, **FEW),
    "lifelines Cox": _case(_lifelines, "lifelines", "CoxPHFitter", {PENALTY: [0.0, 10.0]}),
    "lifelines Weibull": _case(_lifelines, "lifelines", "WeibullAFTFitter", {PENALTY: [0.0, 1.0]}),
    "xgboost Cox": _case(_xgboost, "xgboost", "XGBRegressor", DEPTH, objective="survival:cox", **TREES),
    "xgboost AFT": _case(
        _xgboost, "xgboost", "XGBRegressor", {"estimator__aft_loss_distribution_scale": [0.5, 1.0]},
        objective="survival:aft", aft_loss_distribution="logistic", **TREES,
    ),
    "xgboost per horizon": _case(_per_horizon, "xgboost", "XGBClassifier", DEPTH, **TREES),
    "lightgbm per horizon": _case(
        _administrative, "lightgbm", "LGBMClassifier", {"estimator__num_leaves": [2, 4]},
        n_estimators=5, num_leaves=4, n_jobs=1, verbose=-1,
    ),
    "pycox LogisticHazard": _pycox_case("LogisticHazard"),
    "pycox CoxPH": _pycox_case("CoxPH"),
    "skpro Weibull": _case(
        lambda estimator: ss.adapters.Skpro(estimator, times=TIMES), "skpro.survival.aft", "AFTWeibull",
        {"estimator__alpha": [0.05, 0.1]}, "lifelines",
    ),
}  # fmt: skip
