import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sksurv.linear_model import CoxPHSurvivalAnalysis

import survscore as ss

TIMES = np.linspace(1, 8, 8)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    rate = 0.1 * np.exp(X[:, 0])
    star, end = rng.exponential(1 / rate), rng.uniform(4, 12, 240)
    return X, ss.Outcomes(np.minimum(star, end), star <= end, end)


class Exponential(BaseEstimator):
    def __init__(self, strength=1.0):
        self.strength = strength

    def fit(self, X, y):
        self.base_ = y.event.sum() / y.time.sum()
        return self

    def predict_curves(self, X):
        rate = self.base_ * np.exp(self.strength * X[:, 0])
        return ss.SurvivalCurves(np.exp(-rate[:, None] * TIMES), TIMES)


class Cox(CoxPHSurvivalAnalysis):
    """scikit-survival's own, fitted on outcomes."""

    def fit(self, X, y):
        return super().fit(X, y.to_structured())


def test_grid_search_finds_the_right_strength(data):
    scorer = ss.make_scorer("brier", weighting="administrative", times=TIMES)
    search = GridSearchCV(Exponential(), {"strength": [-1.0, 0.0, 1.0]}, scoring=scorer, cv=4).fit(*data)
    assert search.best_params_ == {"strength": 1.0}
    assert -0.25 < search.best_score_ < 0


def test_cross_validate_gives_minus_the_score(data):
    X, y = data
    scorers = {
        "brier": ss.make_scorer("brier", weighting="administrative", times=TIMES),
        "log at 4": ss.make_scorer("log", weighting=ss.IPCW(), times=[4]),
    }
    results = cross_validate(Exponential(), X, y, scoring=scorers, cv=KFold(3), return_estimator=True)
    for fold, (_, test) in enumerate(KFold(3).split(X)):
        curves = results["estimator"][fold].predict_curves(X[test])
        expected = ss.brier_score(y[test], curves, weighting="administrative", times=TIMES).integrated().value
        assert results["test_brier"][fold] == pytest.approx(-expected, rel=1e-12)
        expected = ss.log_loss(y[test], curves, weighting="ipcw", times=[4]).scores[0]
        assert results["test_log at 4"][fold] == pytest.approx(-expected, rel=1e-12)


def test_scikit_survival_estimators(data):
    X, y = data
    scorer = ss.make_scorer("brier", weighting="administrative", times=[2, 4, 6])
    scores = cross_validate(Cox(), X, y, scoring=scorer, cv=3, error_score="raise")["test_score"]
    assert ((scores > -0.25) & (scores < -0.05)).all()


def test_scorers_pickle(data):
    scorer = ss.make_scorer("log", weighting="administrative", times=TIMES)
    model = Exponential().fit(*data)
    assert pickle.loads(pickle.dumps(scorer))(model, *data) == scorer(model, *data)


def test_bad_scorers_are_named(data):
    with pytest.raises(ss.InputError, match="weighting must be one of"):
        ss.make_scorer("brier", weighting="admin", times=[1])
    with pytest.raises(ss.InputError, match="metric must be one of"):
        ss.make_scorer("hinge", weighting="ipcw", times=[1])
    with pytest.raises(ss.InputError, match="times"):
        ss.make_scorer("brier", weighting="ipcw", times=[2, 1])
    with pytest.raises(ss.InputError, match=r"weighting must be one of .* not None"):
        ss.make_scorer("brier", weighting=None, times=[1])
    with (
        pytest.warns(ss.UndefinedScoreWarning),
        pytest.raises(ss.InputError, match="no score at 9: the predictions end"),
    ):
        ss.make_scorer("brier", weighting="ipcw", times=[9])(Exponential().fit(*data), *data)
    scorer = ss.make_scorer("brier", weighting="ipcw", times=[2])
    with pytest.raises(ss.InputError, match="BaseEstimator has neither predict_curves nor predict_survival_function"):
        scorer(BaseEstimator(), *data)

    class Wrong(BaseEstimator):
        def predict_curves(self, X):
            return np.ones((len(X), 1))

    with pytest.raises(ss.InputError, match="must return SurvivalCurves, not ndarray"):
        scorer(Wrong(), *data)
