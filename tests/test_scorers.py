import copy
import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis

import survscore as ss
from survscore.models import HorizonClassifiers
from survscore.outcomes import as_outcomes

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
        y = as_outcomes(y)
        self.base_ = y.event.sum() / y.time.sum()
        return self

    def predict_curves(self, X):
        rate = self.base_ * np.exp(self.strength * X[:, 0])
        return ss.SurvivalCurves(np.exp(-rate[:, None] * TIMES), TIMES)


# Targets


@pytest.mark.parametrize("metric", ["brier", "auc", "concordance", "crps", "net_benefit@0.3"])
@pytest.mark.parametrize("form", ["outcomes", "three fields", "renamed"])
def test_every_metric_that_can_choose_takes_every_target(data, metric, form):
    X, y = data
    target = y.to_structured(censoring_time=True)
    if form == "renamed":
        target = target.astype([("dead", bool), ("days", float), ("censoring_time", float)])
    scorer = ss.make_scorer(metric, weighting="administrative", times=[4])
    scores = cross_val_score(
        Exponential(), X, y if form == "outcomes" else target, scoring=scorer, cv=3, error_score="raise"
    )
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        curves = Exponential().fit(X[train], y[train]).predict_curves(X[test])
        (expected,) = ss.score_all(y[test], curves, metric=metric, weighting="administrative", times=[4])
        sign = -1 if metric in ("brier", "crps") else 1
        assert scores[fold] == pytest.approx(sign * expected.scores[0], rel=1e-12)


def test_scikit_survival_as_it_is(data):
    """A bare estimator, and its own kind of target: it fits, is scored, and searched."""
    X, y = data
    target = y.to_structured()
    scorer = ss.make_scorer("brier", weighting="ipcw", times=[2, 4, 6])
    scores = cross_val_score(CoxPHSurvivalAnalysis(), X, target, scoring=scorer, cv=3, error_score="raise")
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        functions = CoxPHSurvivalAnalysis().fit(X[train], target[train]).predict_survival_function(X[test])
        curves = ss.SurvivalCurves.from_step_functions(functions)
        expected = ss.brier_score(y[test], curves, weighting="ipcw", times=[2, 4, 6]).integrated().value
        assert scores[fold] == pytest.approx(-expected, rel=1e-12)
    search = GridSearchCV(CoxPHSurvivalAnalysis(), {"alpha": [1e-3, 1e4]}, scoring=scorer, cv=3, error_score="raise")
    assert search.fit(X, target).best_params_ == {"alpha": 1e-3}
    nested = cross_val_score(search, X, target, scoring=scorer, cv=3, error_score="raise")
    np.testing.assert_allclose(nested, scores, atol=1e-4)


def test_a_target_without_censoring_times_says_how_to_carry_them(data):
    X, y = data
    scorer = ss.make_scorer("brier", weighting="administrative", times=[4])
    model = CoxPHSurvivalAnalysis().fit(X, y.to_structured())
    with pytest.raises(ss.InputError, match=r"third field: to_structured\(censoring_time=True\)"):
        scorer(model, X, y.to_structured())
    with pytest.raises(ss.InputError, match="the predictions has length 239, but y has length 240"):
        scorer(model, X[1:], y)


# Wrappers


def test_pipelines_of_our_own_models(data):
    """scikit-survival lends predict_survival_function to every Pipeline, also where the last step takes times."""
    X, y = data
    scorer = ss.make_scorer("auc", weighting="administrative", times=[4])
    classifiers = HorizonClassifiers(LogisticRegression(), [2, 4, 6], keep="administrative")
    pipeline = make_pipeline(StandardScaler(), classifiers)
    scores = cross_val_score(pipeline, X, y, scoring=scorer, cv=3, error_score="raise")
    assert (scores > 0.5).all()
    assert scorer(make_pipeline(classifiers).fit(X, y), X, y) > 0.5  # one step alone


@pytest.mark.parametrize(
    "search",
    [
        lambda model, scorer: GridSearchCV(model, {"strength": [-1.0, 1.0]}, scoring=scorer, cv=2),
        lambda model, scorer: HalvingGridSearchCV(
            model, {"strength": [-1.0, 1.0]}, scoring=scorer, cv=2, random_state=0, min_resources=100
        ),
    ],
    ids=["grid", "halving"],
)
def test_searches_are_scored_by_what_they_found(data, search):
    X, y = data
    scorer = ss.make_scorer("brier", weighting="administrative", times=TIMES)
    found = search(Exponential(), scorer).fit(X, y)
    assert found.best_params_ == {"strength": 1.0}
    assert scorer(found, X, y) == found.score(X, y) == scorer(found.best_estimator_, X, y)
    assert scorer(FrozenEstimator(found), X, y) == found.score(X, y)
    steps = make_pipeline(FunctionTransformer(), search(Exponential(), scorer)).fit(X, y)
    assert scorer(steps, X, y) == found.score(X, y)


def test_a_wrapper_that_picks_columns(data):
    X, y = data
    wide = np.column_stack((np.zeros((len(y), 2)), X))
    model = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis(alpha=0.1))
    picked = RFE(model, n_features_to_select=1, importance_getter="estimator_.coef_").fit(wide, y)
    assert picked.support_.tolist() == [False, False, True, False]
    scorer = ss.make_scorer("brier", weighting="administrative", times=[2, 4])
    alone = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis(alpha=0.1)).fit(X[:, :1], y)
    assert scorer(picked, wide, y) == pytest.approx(scorer(alone, X[:, :1], y), rel=1e-12)


def test_what_can_not_be_scored_is_named(data):
    X, y = data
    scorer = ss.make_scorer("brier", weighting="administrative", times=[2])
    with pytest.raises(ss.InputError, match="LinearRegression, inside Pipeline, has neither predict_curves nor"):
        scorer(make_pipeline(StandardScaler(), LinearRegression()).fit(X, y.time), X, y)
    unrefitted = GridSearchCV(Exponential(), {"strength": [0.0]}, scoring=scorer, cv=2, refit=False).fit(X, y)
    with pytest.raises(ss.InputError, match=r"GridSearchCV has neither .* searches need refit=True"):
        scorer(unrefitted, X, y)


def test_nothing_is_nan_without_a_word(data):
    X, y = data
    partly = ss.make_scorer("brier", weighting="administrative", times=[4, 9])  # a mean over less is another number
    with pytest.warns(UserWarning, match="Scoring failed"), pytest.warns(ss.UndefinedScoreWarning):
        assert np.isnan(cross_val_score(Exponential(), X, y, scoring=partly, cv=2)).all()
    with pytest.warns(ss.UndefinedScoreWarning), pytest.raises(ss.InputError, match="the predictions end"):
        cross_val_score(Exponential(), X, y, scoring=partly, cv=2, error_score="raise")


def test_two_processes_and_copies(data):
    X, y = data
    scorer = ss.make_scorer("auc", weighting=ss.IPCW(), times=[2, 4])
    cox = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis())
    alone, shared = (
        cross_val_score(cox, X, y, scoring=scorer, cv=2, error_score="raise", n_jobs=n_jobs) for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(alone, shared)
    model = Exponential().fit(X, y)
    for copied in (copy.deepcopy(scorer), clone(scorer, safe=False), pickle.loads(pickle.dumps(scorer))):
        assert copied(model, X, y) == scorer(model, X, y)


def test_groups_are_routed_to_the_splitter(data):
    X, y = data
    groups = np.arange(len(y)) // 4
    scorer = ss.make_scorer("brier", weighting="administrative", times=[4])
    options = {"scoring": scorer, "cv": ss.EventKFold(3), "error_score": "raise"}
    expected = cross_val_score(Exponential(), X, y, groups=groups, **options)
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(Exponential(), X, y, params={"groups": groups}, **options)
        without = cross_val_score(Exponential(), X, y, **options)
    np.testing.assert_array_equal(routed, expected)
    assert not np.array_equal(without, expected)


# Splitters


@pytest.mark.parametrize("grouped", [False, True])
def test_events_are_shared_out(data, grouped):
    X, y = data
    groups = np.repeat(np.arange(60), 4) if grouped else None
    splitter = ss.EventKFold(4, shuffle=True, random_state=3)
    folds = list(splitter.split(X, y, groups))
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(240))
    for train, test in folds:
        assert np.intersect1d(train, test).size == 0
        assert abs(y[test].event.mean() - y.event.mean()) < (0.08 if grouped else 0.02)
        if grouped:
            assert np.intersect1d(groups[train], groups[test]).size == 0
    for one, other in zip(folds, splitter.split(X, y.to_structured(), groups), strict=True):
        np.testing.assert_array_equal(one[1], other[1])


# Copies, and what is wrong


def test_bad_scorers_are_named(data):
    with pytest.raises(ss.InputError, match="weighting must be one of"):
        ss.make_scorer("brier", weighting="admin", times=[1])
    with pytest.raises(ss.InputError, match="metric must be one of"):
        ss.make_scorer("hinge", weighting="ipcw", times=[1])
    with pytest.raises(ss.InputError, match="times"):
        ss.make_scorer("brier", weighting="ipcw", times=[2, 1])
    scorer = ss.make_scorer("brier", weighting="ipcw", times=[2])
    with pytest.raises(ss.InputError, match="BaseEstimator has neither predict_curves nor predict_survival_function"):
        scorer(BaseEstimator(), *data)

    class Wrong(BaseEstimator):
        def predict_curves(self, X):
            return np.ones((len(X), 1))

    with pytest.raises(ss.InputError, match="must return SurvivalCurves or IncidenceCurves, not ndarray"):
        scorer(Wrong(), *data)
