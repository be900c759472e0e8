"""Every estimator through everything of scikit-learn: nothing is NaN, and scores are those computed by hand."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import survscore as ss
from estimator_cases import CASES, TIMES, sample

X, Y = sample()
FOLDS = ss.EventKFold(2, shuffle=True, random_state=1)
SCORER = ss.make_scorer("brier", weighting="administrative", times=TIMES)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def by_hand(estimator, transform=None, y=Y):
    """Return minus the integrated administrative Brier score of each fold, from literal sums over its individuals."""
    found = []
    for train, test in FOLDS.split(X, y):
        rows_train, rows_test = X[train], X[test]
        if transform is not None:
            scaler = transform.fit(rows_train)
            rows_train, rows_test = scaler.transform(rows_train), scaler.transform(rows_test)
        survival = clone(estimator).fit(rows_train, y[train]).predict_survival_function(rows_test, TIMES)
        survival = survival.astype(np.float64)
        briers = []
        for j, t in enumerate(TIMES):
            counted = [i for i, row in enumerate(test) if Y.censoring_time[row] >= t]
            briers.append(np.mean([((Y.time[test[i]] > t) - survival[i, j]) ** 2 for i in counted]))
        found.append(-np.trapezoid(briers, TIMES) / (TIMES[-1] - TIMES[0]))
    return np.array(found)


def survival_of(curves):
    return (curves.event_free() if isinstance(curves, ss.IncidenceCurves) else curves).at(TIMES)


def test_cross_val_score_is_the_score_by_hand(case):
    estimator = case.estimator()
    scores = cross_val_score(estimator, X, Y, scoring=SCORER, cv=FOLDS, error_score="raise")
    np.testing.assert_allclose(scores, by_hand(estimator), rtol=1e-12)
    carried = Y.to_structured(censoring_time=True)
    np.testing.assert_allclose(
        cross_val_score(estimator, X, carried, scoring=SCORER, cv=FOLDS, error_score="raise"), scores, rtol=1e-12
    )


def test_pipelines_and_searches(case):
    estimator = case.estimator()
    pipeline = Pipeline([("scale", StandardScaler()), ("model", estimator)])
    scores = cross_val_score(pipeline, X, Y, scoring=SCORER, cv=FOLDS, error_score="raise")
    np.testing.assert_allclose(scores, by_hand(estimator, StandardScaler()), rtol=1e-12)

    grid = {f"model__{name}": values for name, values in case.search.items()}
    search = GridSearchCV(pipeline, grid, scoring=SCORER, cv=FOLDS, error_score="raise").fit(X, Y)
    means = search.cv_results_["mean_test_score"]
    for params, mean in zip(search.cv_results_["params"], means, strict=True):
        inner = {name.removeprefix("model__"): value for name, value in params.items()}
        expected = by_hand(clone(estimator).set_params(**inner), StandardScaler())
        assert mean == pytest.approx(expected.mean(), rel=1e-12)
    assert search.best_score_ == means.max()
    best = search.best_estimator_
    survival = survival_of(best["model"].predict_curves(best["scale"].transform(X)))
    curves = ss.SurvivalCurves(survival, TIMES, monotone="keep")
    expected = ss.brier_score(Y, curves, weighting="administrative", times=TIMES)
    assert search.score(X, Y) == pytest.approx(-expected.integrated().value, rel=1e-12)


def test_cross_val_predict_gives_the_pooled_curves(case):
    estimator = case.estimator()
    survival = cross_val_predict(estimator, X, Y, cv=FOLDS)
    assert survival.shape == (len(Y), TIMES.size)
    expected = np.empty_like(survival)
    for train, test in FOLDS.split(X, Y):
        expected[test] = survival_of(clone(estimator).fit(X[train], Y[train]).predict_curves(X[test]))
    np.testing.assert_allclose(survival, expected, rtol=0, atol=1e-12)


def test_parameters_clones_and_pickles(case):
    estimator = case.estimator()
    (name, values), *_ = case.search.items()
    copy = clone(estimator).set_params(**{name: values[0]})
    assert copy.get_params()[name] == values[0]
    assert set(copy.get_params()) >= set(estimator.get_params())
    before = repr(estimator.get_params(deep=False)["estimator"]) if "estimator" in estimator.get_params() else ""
    fitted = clone(estimator).fit(X, Y)
    assert before == (repr(estimator.estimator) if before else "")  # fitting leaves what was given as it is
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_curves(X).probabilities, fitted.predict_curves(X).probabilities)
    with pytest.raises(ValueError, match=r"[Ii]nvalid parameter"):
        clone(estimator).set_params(no_such_parameter=1)


def test_unfitted_estimators_say_so(case):
    with pytest.raises(ValueError, match="not fitted"):
        case.estimator().predict_curves(X)
    with pytest.raises(ss.InputError, match="y has length 99, but X has length 100"):
        case.estimator().fit(X, Y[:-1])
