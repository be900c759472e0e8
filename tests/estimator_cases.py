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


def _sksurv(module: str, name: str, **params: Any) -> Callable[[], Any]:
    def make() -> Any:
        return ss.adapters.ScikitSurvival(getattr(pytest.importorskip(f"sksurv.{module}"), name)(**params), times=TIMES)

    return make


def _lifelines(name: str, **params: Any) -> Callable[[], Any]:
    def make() -> Any:
        return ss.adapters.Lifelines(getattr(pytest.importorskip("lifelines"), name)(**params), times=TIMES)

    return make


def _xgboost(objective: str, **params: Any) -> Callable[[], Any]:
    def make() -> Any:
        from xgboost import XGBRegressor

        trees = XGBRegressor(objective=objective, n_estimators=5, max_depth=2, n_jobs=1, **params)
        return ss.adapters.XGBoost(trees, times=TIMES)

    return make


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(n_estimators=5, num_leaves=4, n_jobs=1, verbose=-1)
    return ss.models.HorizonClassifiers(trees, TIMES, keep="administrative")


def _xgboost_classifier() -> Any:
    from xgboost import XGBClassifier

    return ss.models.HorizonClassifiers(XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1), TIMES)


def _pycox(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import pycox.models

        model = getattr(pycox.models, name)
        return ss.adapters.Pycox(
            model, small_net, times=TIMES, epochs=2, validation_share=0, batch_size=64, random_state=0
        )

    return make


def _skpro() -> Any:
    from skpro.survival.aft import AFTWeibull

    return ss.adapters.Skpro(AFTWeibull(), times=TIMES)


QUICK = {"times": TIMES, "epochs": 2, "n_layers": 1, "width": 4, "device": "cpu", "random_state": 0, "progress": False}
CASES = {
    "KaplanMeier": Case(lambda: ss.models.KaplanMeier(times=TIMES), {"n_times": [5, 50]}),
    "AalenJohansen": Case(lambda: ss.models.AalenJohansen(times=TIMES), {"n_times": [5, 50]}),
    "LogisticHazard": Case(lambda: ss.models.LogisticHazard(**QUICK), {"width": [2, 4]}),
    "classifiers": Case(
        lambda: ss.models.HorizonClassifiers(LogisticRegression(), TIMES, keep="administrative"),
        {"estimator__C": [0.01, 1.0]},
    ),
    "pipelines per horizon": Case(
        lambda: ss.models.HorizonClassifiers(make_pipeline(StandardScaler(), LogisticRegression()), TIMES),
        {"estimator__logisticregression__C": [0.01, 1.0]},
    ),
    "sksurv Cox": Case(
        _sksurv("linear_model", "CoxPHSurvivalAnalysis"), {"estimator__alpha": [0.0, 100.0]}, ("sksurv",)
    ),
    "sksurv Coxnet": Case(
        _sksurv("linear_model", "CoxnetSurvivalAnalysis", fit_baseline_model=True, alphas=[0.01]),
        {"estimator__alphas": [[0.01], [0.5]]},
        ("sksurv",),
    ),
    "sksurv forest": Case(
        _sksurv("ensemble", "RandomSurvivalForest", n_estimators=4, random_state=0),
        {"estimator__min_samples_leaf": [3, 20]},
        ("sksurv",),
    ),
    "sksurv boosting": Case(
        _sksurv("ensemble", "GradientBoostingSurvivalAnalysis", n_estimators=4, random_state=0),
        {"estimator__max_depth": [1, 2]},
        ("sksurv",),
    ),
    "lifelines Cox": Case(_lifelines("CoxPHFitter"), {"estimator__penalizer": [0.0, 10.0]}, ("lifelines",)),
    "lifelines Weibull": Case(_lifelines("WeibullAFTFitter"), {"estimator__penalizer": [0.0, 1.0]}, ("lifelines",)),
    "xgboost Cox": Case(_xgboost("survival:cox"), {"estimator__max_depth": [1, 2]}, ("xgboost",)),
    "xgboost AFT": Case(
        _xgboost("survival:aft", aft_loss_distribution="logistic"),
        {"estimator__aft_loss_distribution_scale": [0.5, 1.0]},
        ("xgboost",),
    ),
    "xgboost per horizon": Case(_xgboost_classifier, {"estimator__max_depth": [1, 2]}, ("xgboost",)),
    "lightgbm per horizon": Case(_lightgbm, {"estimator__num_leaves": [2, 4]}, ("lightgbm",)),
    "pycox LogisticHazard": Case(_pycox("LogisticHazard"), {"epochs": [1, 2]}, ("pycox", "torchtuples")),
    "pycox CoxPH": Case(_pycox("CoxPH"), {"epochs": [1, 2]}, ("pycox", "torchtuples")),
    "skpro Weibull": Case(_skpro, {"estimator__alpha": [0.05, 0.1]}, ("skpro", "lifelines")),
}
