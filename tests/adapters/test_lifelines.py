import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import survscore as ss
from estimator_cases import TIMES, sample

pytest.importorskip("lifelines")
from lifelines import AalenAdditiveFitter, CoxPHFitter, LogNormalAFTFitter, WeibullAFTFitter

X, Y = sample()
TABLE = pd.DataFrame(X, columns=["x0", "x1"]).assign(T=Y.time, E=Y.event)
Lifelines = ss.adapters.Lifelines


def test_cox_is_read_as_a_step_function():
    frame = CoxPHFitter().fit(TABLE, "T", "E").predict_survival_function(TABLE[:5])
    expected = np.array([[frame[i][frame.index <= t].iloc[-1] for t in TIMES] for i in range(5)])
    model = Lifelines(CoxPHFitter()).fit(X, Y)
    np.testing.assert_allclose(model.predict_curves(X[:5]).at(TIMES), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_survival_function(X[:5], TIMES), expected, rtol=1e-12)
    assert np.isnan(model.predict_curves(X[:5]).at([model.end_ + 1])).all()


@pytest.mark.parametrize("fitter", [WeibullAFTFitter, LogNormalAFTFitter])
def test_parametric_models_are_computed_at_any_time(fitter):
    expected = fitter().fit(TABLE, "T", "E").predict_survival_function(TABLE[:5], times=[*TIMES, 40.0]).to_numpy().T
    model = Lifelines(fitter()).fit(X, Y)
    np.testing.assert_allclose(model.predict_survival_function(X[:5], [*TIMES, 40.0]), expected, rtol=1e-10)
    own = model.predict_curves(X[:5])
    np.testing.assert_allclose(own.at(TIMES), expected[:, :3], atol=2e-3)  # linear between many quantiles
    assert own.times[-1] == model.end_


def test_what_is_no_survival_curve_is_refused():
    model = Lifelines(AalenAdditiveFitter(coef_penalizer=1.0)).fit(X, Y)
    with pytest.raises(ss.InputError, match=r"must (be between 0 and 1|not increase with time)"):
        model.predict_curves(X)


def test_what_a_model_is_made_with_can_be_set():
    model = Lifelines(CoxPHFitter(penalizer=0.5), times=TIMES)
    assert model.get_params()["estimator__penalizer"] == 0.5
    changed = clone(model).set_params(estimator__penalizer=2.0, estimator__l1_ratio=0.5)
    assert (changed.estimator.penalizer, changed.estimator.l1_ratio) == (2.0, 0.5)
    assert model.estimator.penalizer == 0.5
    with pytest.raises(ValueError, match="Invalid parameter 'alpah' for CoxPHFitter; valid ones are"):
        model.set_params(estimator__alpah=1)
    frame = pl.DataFrame({"age": X[:, 0], "dose": X[:, 1]})
    named = Lifelines(CoxPHFitter(), fit_options={"formula": "age"}).fit(frame, Y)
    assert list(named.estimator_.params_.index) == ["age"]
    with pytest.raises(ss.InputError, match="estimator must be a lifelines regression model, not int"):
        Lifelines(3).fit(X, Y)
