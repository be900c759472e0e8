"""Kaplan-Meier for everybody, and classifiers per horizon."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lifelines import AalenJohansenFitter, KaplanMeierFitter
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import survscore as ss
from survscore.models import AalenJohansen, HorizonClassifiers, KaplanMeier


def censored(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    time, end = rng.exponential(np.exp(X[:, 0])), rng.uniform(0, 3, n)
    return X, ss.Outcomes(np.minimum(time, end).round(2), time.round(2) <= end.round(2), end.round(2))


# Kaplan-Meier


def test_kaplan_meier_agrees_with_lifelines():
    _, y = censored(300)
    model = KaplanMeier().fit(None, y)
    reference = KaplanMeierFitter().fit(y.time, y.event)
    times = np.linspace(0, 3, 50)
    curves = model.predict_curves(range(4), times)
    assert len(curves) == 4
    np.testing.assert_allclose(curves.probabilities[2], reference.predict(times), rtol=1e-12)


def test_kaplan_meier_thins_its_grid_but_not_its_values():
    _, y = censored(5000)
    model = KaplanMeier(n_times=20).fit(None, y)
    curves = model.predict_curves(y)
    assert curves.times.size == 20
    np.testing.assert_array_equal(curves.probabilities[0], model.survival_[np.searchsorted(model.times_, curves.times)])
    assert curves.probabilities[0, -1] == model.survival_[-1]
    assert np.abs(np.diff(curves.probabilities[0])).max() < 1.5 / 20
    few = KaplanMeier().fit(None, y[:30])
    np.testing.assert_array_equal(few.predict_curves(y).times, few.times_)


@pytest.mark.parametrize("model", [KaplanMeier, AalenJohansen])
def test_what_baselines_refuse(model):
    X, y = censored(200)
    with pytest.raises(ss.InputError, match="no events"):
        model().fit(None, ss.Outcomes([1, 2], [0, 0]))
    with pytest.raises(ss.InputError, match="y has length 200, but X has length 199"):
        model().fit(X[:199], y)
    with pytest.raises(ss.InputError, match="n_times"):
        model(n_times=0).fit(X, y)
    assert not hasattr(model(), "predict")  # without times of its own


# Aalen-Johansen


def of_causes(n, seed=0):
    X, y = censored(n, seed)
    cause = np.random.default_rng(seed + 1).integers(1, 4, n)
    return X, ss.Outcomes(y.time, np.where(y.event, cause, 0), y.censoring_time, causes=["a", "b", "c"])


@pytest.mark.filterwarnings("ignore:Tied event times")  # lifelines moves them apart
def test_aalen_johansen_agrees_with_lifelines():
    _, y = of_causes(300)
    y = y[np.unique(y.time, return_index=True)[1]]
    y = y[y.time > 0]  # where lifelines' incidence starts, whatever happens then
    times = np.linspace(0, 2, 50)
    predicted = AalenJohansen().fit(None, y).predict_cumulative_incidence(range(2), times)
    assert predicted.shape == (2, 3, 50)
    for k in range(3):
        expected = AalenJohansenFitter().fit(y.time, y.cause, event_of_interest=k + 1).predict(times)
        np.testing.assert_allclose(predicted[0, k], expected, rtol=1e-12, atol=1e-15)


def test_aalen_johansen_and_kaplan_meier_are_the_same_where_they_should_be():
    X, y = of_causes(500)
    survival = KaplanMeier(times=[0.5, 1.0]).fit(X, ss.Outcomes(y.time, y.event, y.censoring_time)).predict(X)
    model = AalenJohansen().fit(X, y)
    assert model.causes_ == ("a", "b", "c")
    np.testing.assert_allclose(model.predict_survival_function(X, [0.5, 1.0]), survival, rtol=1e-12)


# Classifiers per horizon


@pytest.mark.parametrize("frame", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_each_horizon_has_a_classifier_of_those_whose_status_is_known(frame):
    X, y = censored(500)
    model = HorizonClassifiers(LogisticRegression(), [0.5, 1.0, 2.0]).fit(frame(X), y)
    curves = model.predict_curves(frame(X))
    for j, t in enumerate([0.5, 1.0, 2.0]):
        known = (y.time > t) | y.event  # the censored at or before t are dropped
        expected = LogisticRegression().fit(X[known], y.time[known] > t).predict_proba(X)[:, 1]
        np.testing.assert_allclose(curves.probabilities[:, j], expected, rtol=1e-6)


def test_administrative_rows_are_weighted_for_drop_outs():
    X, y = censored(500)
    lost = np.random.default_rng(1).exponential(3.0, 500)
    y = ss.Outcomes(np.minimum(y.time, lost), y.event & (y.time <= lost), y.censoring_time)
    assert y.n_dropped_out > 20
    model = HorizonClassifiers(LogisticRegression(), [1.0], keep="administrative").fit(X, y)
    rows, event, weight = ss.at_horizon(y, 1.0)
    expected = LogisticRegression().fit(X[rows], ~event, sample_weight=weight).predict_proba(X)[:, 1]
    np.testing.assert_allclose(model.predict_curves(X).probabilities[:, 0], expected, rtol=1e-6)
    last = make_pipeline(FunctionTransformer(), make_pipeline(FunctionTransformer(), LogisticRegression()))
    piped = HorizonClassifiers(last, [1.0], keep="administrative").fit(X, y)
    np.testing.assert_array_equal(piped.predict_curves(X).probabilities, model.predict_curves(X).probabilities)
    with pytest.raises(ss.InputError, match=r"KNeighborsClassifier does not"):
        HorizonClassifiers(KNeighborsClassifier(), [1.0], keep="administrative").fit(X, y)


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"estimator": Perceptron()}, None, "estimator must have predict_proba, which Perceptron has not"),
        ({"times": [2, 1]}, None, "strictly increasing"),
        ({}, ss.Outcomes([0.1, 0.2], [0, 0]), "times must be before the follow-up ends, at 0.2"),
        ({}, ss.Outcomes([1.0], [1]), "y has length 1, but X has length 2"),
        ({"keep": "administrative"}, None, "censoring"),
    ],
)
def test_bad_input_is_refused(settings, y, message):
    model = HorizonClassifiers(**{"estimator": LogisticRegression(), "times": [1]} | settings)
    with pytest.raises(ss.InputError, match=message):
        model.fit(np.zeros((2, 1)), ss.Outcomes([1.0, 2.0], [1, 0]) if y is None else y)
