import numpy as np
import pandas as pd
import pytest

import survscore as ss
from estimator_cases import TIMES, sample

pytest.importorskip("sksurv")
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.svm import FastSurvivalSVM

X, Y = sample()


def test_curves_are_the_step_functions_of_scikit_survival():
    model = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis()).fit(X[:70], Y[:70])
    functions = CoxPHSurvivalAnalysis().fit(X[:70], Y[:70].to_structured()).predict_survival_function(X[70:])
    expected = np.array([function(TIMES) for function in functions])
    np.testing.assert_array_equal(model.predict_curves(X[70:]).at(TIMES), expected)
    np.testing.assert_array_equal(model.predict_survival_function(X[70:], TIMES), expected)
    np.testing.assert_array_equal(model.set_params(times=TIMES).predict(X[70:]), expected)


def test_curves_end_where_training_was_last_followed_up():
    late = ss.Outcomes(np.append(Y.time, 14.9), np.append(Y.event, False))  # nobody has the event then
    model = ss.adapters.ScikitSurvival(RandomSurvivalForest(n_estimators=3, random_state=0))
    model.fit(np.append(X, [[0.0, 0.0]], axis=0), late)
    curves = model.predict_curves(X[:3])
    end = max(14.9, Y.time.max())
    assert model.end_ == end
    assert np.isfinite(curves.at([end])).all()
    assert np.isnan(curves.at([end + 0.1])).all()
    with pytest.raises(ss.InputError, match=f"they end at 20, its grid at {end:g}"):
        model.predict_curves(X, [1, 20])


def test_many_rows_are_read_in_blocks(monkeypatch):
    model = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis()).fit(X, Y)
    many = np.tile(X, (7, 1))
    whole = model.predict_curves(many).at(TIMES)
    monkeypatch.setattr("survscore.adapters.survival_model.CELLS_AT_ONCE", 1000)
    np.testing.assert_array_equal(model.predict_curves(many, TIMES).probabilities, whole)
    frame = pd.DataFrame(many, columns=["a", "b"])
    model = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis()).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    np.testing.assert_allclose(model.predict_curves(frame, TIMES).probabilities, whole, rtol=1e-12)


def test_what_does_not_fit_is_named():
    with pytest.raises(ss.InputError, match="FastSurvivalSVM has neither predict_curves nor predict_survival_function"):
        ss.adapters.ScikitSurvival(FastSurvivalSVM(max_iter=200)).fit(X, Y).predict_curves(X)
    with pytest.raises(ss.InputError, match="y must be Outcomes"):
        ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis()).fit(X, Y.time)
