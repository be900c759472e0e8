import numpy as np
import pandas as pd
import pytest
from scipy import stats

import survscore as ss
from estimator_cases import TIMES, sample

pytest.importorskip("xgboost")
from xgboost import XGBRegressor

from survscore.adapters.xgboost import breslow

X, Y = sample()


def trees(objective, **params):
    return XGBRegressor(objective=objective, n_estimators=10, max_depth=2, n_jobs=1, **params)


def test_breslow_is_the_sum_over_event_times():
    y = ss.Outcomes([3, 1, 2, 2, 5, 3], [1, 1, 1, 0, 0, 1])
    ratio = np.array([0.1, -0.5, 0.3, 0.0, 1.0, 0.2])
    times, hazard = breslow(y, ratio)
    expected, total = [], 0.0
    for t in sorted(set(y.time[y.event])):
        events = sum(1 for i in range(6) if y.event[i] and y.time[i] == t)
        total += events / sum(np.exp(ratio[i]) for i in range(6) if y.time[i] >= t)
        expected.append(total)
    assert times.tolist() == [1, 2, 3]
    np.testing.assert_allclose(hazard, expected, rtol=1e-12)
    with pytest.raises(ss.InputError, match="no events"):
        breslow(ss.Outcomes([1.0], [0]), np.zeros(1))


def test_cox_curves_are_ordered_by_the_risk_of_xgboost():
    model = ss.adapters.XGBoost(trees("survival:cox"), times=TIMES).fit(X, Y)
    risk = trees("survival:cox").fit(X, np.where(Y.event, Y.time, -Y.time)).predict(X)
    survival = model.predict(X)[:, 1]
    times, hazard = breslow(Y, np.log(risk.astype(float)))
    expected = np.exp(-hazard[times <= TIMES[1]][-1] * risk)
    np.testing.assert_allclose(survival, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "distribution"), [("normal", stats.norm), ("logistic", stats.logistic), ("extreme", stats.gumbel_l)]
)
def test_aft_curves_are_those_of_the_distribution(name, distribution):
    params = {"aft_loss_distribution": name, "aft_loss_distribution_scale": 0.7}
    model = ss.adapters.XGBoost(trees("survival:aft", **params)).fit(X, Y)
    predicted = model.estimator_.predict(model._matrix(X[:20]))  # exp(f)
    late = np.array([0.0, *TIMES, 100.0])
    with np.errstate(divide="ignore"):
        expected = distribution.sf((np.log(late) - np.log(predicted.astype(float))[:, None]) / 0.7)
    np.testing.assert_allclose(model.predict_survival_function(X[:20], late), expected, atol=1e-6)
    np.testing.assert_allclose(model.predict_curves(X[:20]).at(TIMES), expected[:, 1:-1], atol=5e-3)


def test_frames_with_categories_and_missing_values():
    kinds = pd.Categorical(np.where(X[:, 1] > 0, "u", "v"))
    frame = pd.DataFrame({"a": np.where(X[:, 0] > 1, np.nan, X[:, 0]), "b": kinds})
    model = ss.adapters.XGBoost(trees("survival:cox", enable_categorical=True), times=TIMES).fit(frame, Y)
    assert np.isfinite(model.predict(frame)).all()


def test_what_does_not_fit_is_named():
    XGBoost = ss.adapters.XGBoost
    with pytest.raises(ss.InputError, match="objective of estimator must be one of 'survival:cox', 'survival:aft', no"):
        XGBoost(XGBRegressor()).fit(X, Y)
    with pytest.raises(ss.InputError, match="estimator must be an XGBRegressor, not str"):
        XGBoost("survival:cox").fit(X, Y)
    with pytest.raises(ss.InputError, match="early_stopping_rounds"):
        XGBoost(trees("survival:cox", early_stopping_rounds=3)).fit(X, Y)
    with pytest.raises(ss.InputError, match="time must be after 0 for xgboost: 1 of 2"):
        XGBoost(trees("survival:cox")).fit(X[:2], ss.Outcomes([0, 1], [0, 1]))
