"""Models of competing causes: literal versions, special cases that must agree, and what is refused."""

import numpy as np
import pytest
from lifelines import CoxPHFitter
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import survscore as ss
from survscore.models import (
    AalenJohansen,
    BCESurvival,
    HorizonClassifiers,
    KaplanMeier,
    LogisticHazard,
    ValidationScore,
    load,
)

STUDY = ss.simulate.CompetingRisksStudy()
SAMPLE = STUDY.sample(400, seed=1)
X, Y = SAMPLE.covariates, SAMPLE.outcomes
TIMES = np.array([20.0, 40.0, 60.0])
QUICK = {"times": TIMES, "width": 4, "n_layers": 1, "epochs": 3, "random_state": 0, "device": "cpu", "progress": False}

# Logistic-Hazard


@pytest.fixture(scope="module")
def net():
    return LogisticHazard(**QUICK).fit(X, Y)


def test_one_named_cause_is_the_net_of_boolean_events():
    plain, named = (
        LogisticHazard(**QUICK).fit(X, ss.Outcomes(Y.time, event, Y.censoring_time, causes=causes))
        for event, causes in ((Y.event, None), (Y.event.astype(int), ["any"]))
    )
    assert (plain.causes_, named.causes_) == ((), ("any",))
    np.testing.assert_allclose(
        plain.predict_cumulative_incidence(X, TIMES), named.predict_cumulative_incidence(X, TIMES), atol=1e-6
    )


def test_predictions_in_all_forms(net, tmp_path):
    curves = net.predict_curves(X)
    assert (curves.causes, curves.shape, curves.probabilities.dtype) == (Y.causes, (400, 2, 3), np.float32)
    between = np.array([10.0, 30.0])
    np.testing.assert_allclose(net.predict_cumulative_incidence(X, between), curves.at(between), rtol=1e-6)
    np.testing.assert_array_equal(net.predict(X), curves.probabilities)
    np.testing.assert_allclose(net.predict_survival_function(X, TIMES), 1 - curves.probabilities.sum(axis=1), atol=1e-6)
    # numbers in place of names change nothing
    numbered = clone(net).fit(X, ss.Outcomes(Y.time, Y.cause, Y.censoring_time)).predict_curves(X)
    assert numbered.causes == ("1", "2")
    np.testing.assert_array_equal(numbered.probabilities, curves.probabilities)
    net.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors").predict_curves(X)
    assert again.causes == Y.causes
    np.testing.assert_array_equal(again.probabilities, curves.probabilities)


def test_the_censoring_distribution_takes_events_of_all_causes_alike():
    any_event = ss.Outcomes(Y.time, Y.event, Y.censoring_time)
    a, b = (LogisticHazard(**QUICK).fit_censoring(X, y) for y in (Y, any_event))
    assert a.causes_ == ()
    np.testing.assert_array_equal(a.predict_curves(X).probabilities, b.predict_curves(X).probabilities)


def test_scores_of_a_cause_while_training_and_afterwards():
    held_out = STUDY.sample(300, seed=2)
    settings = {"weighting": "administrative", "times": TIMES}
    scores = [ValidationScore(cause=name, name=name, **settings) for name in Y.causes]
    model = LogisticHazard(**QUICK).fit(X, Y, validation=(held_out.covariates, held_out.outcomes), scores=scores)
    row = model.history_.to_frame().set_index("epoch").loc[model.history_.best_epoch]
    curves = model.predict_curves(held_out.covariates)
    for name in Y.causes:
        expected = ss.brier_score(held_out.outcomes, curves, cause=name, **settings).integrated().value
        assert row[name] == pytest.approx(expected, rel=1e-6)
        chosen = held_out.outcomes.for_cause(name)
        again = model.score(held_out.covariates, held_out.outcomes, cause=name)
        assert model.score(held_out.covariates, chosen) == again
        whole = ss.brier_score(chosen, curves, weighting="administrative").integrated(nan="stop").value
        assert again == pytest.approx(-whole, rel=1e-6)


# Classifiers per horizon


def literal_statuses(y, t, keep):
    """Return positions and classes of those whose status at t is known."""
    rows, status = [], []
    for i in range(len(y)):
        known = y.time[i] > t or y.event[i] if keep == "known" else y.censoring_time[i] >= t
        if known:
            rows.append(i)
            status.append(int(y.cause[i]) if y.event[i] and y.time[i] <= t else 0)
    return rows, np.array(status)


@pytest.mark.parametrize("keep", ["known", "administrative"])
def test_each_horizon_has_a_classifier_of_all_statuses(keep):
    model = HorizonClassifiers(LogisticRegression(), TIMES, keep=keep).fit(X, Y)
    curves = model.predict_curves(X)
    assert curves.causes == model.causes_ == Y.causes
    for j, t in enumerate(TIMES):
        rows, status = literal_statuses(Y, t, keep)
        expected = LogisticRegression().fit(X.iloc[rows], status).predict_proba(X)
        np.testing.assert_allclose(curves.probabilities[:, :, j], expected[:, 1:], rtol=1e-9)
    between = [10.0, 50.0]
    np.testing.assert_allclose(model.predict_curves(X, between).probabilities, curves.at(between))


def test_a_cause_that_comes_later_and_a_time_before_all_events():
    pytest.importorskip("xgboost")
    from xgboost import XGBClassifier  # insists on classes 0, 1, ... without gaps

    time, cause = np.repeat([1.0, 2.0, 4.0, 5.0], 10), np.repeat([0, 2, 1, 0], 10)
    y = ss.Outcomes(np.where(cause, time, 9.0), cause, np.full(40, 9.0), causes=["late", "early"])
    covariate = np.arange(40.0)[:, None]
    for classifier in (XGBClassifier(n_estimators=3, n_jobs=1), LogisticRegression()):
        model = HorizonClassifiers(classifier, [0.5, 3.0, 5.0]).fit(covariate, y)
        incidence = model.predict_curves(covariate)
        assert [fitted is None for fitted in model.estimators_] == [True, False, False]
        assert (incidence.probabilities[:, :, 0] == 0).all()
        assert (incidence.probabilities[:, 0, 1] == 0).all()
        assert (incidence.probabilities[:, 1, 1] > 0).all()
        assert (incidence.probabilities[:, :, 2] > 0).all()
        assert (incidence.probabilities.sum(axis=1) <= 1).all()


def test_multi_class_scores_of_models():
    estimators = {
        "net": LogisticHazard(**QUICK),
        "classifiers": HorizonClassifiers(LogisticRegression(), TIMES, keep="administrative"),
        "same for all": AalenJohansen(times=TIMES),
    }
    settings = {"times": TIMES, "weighting": "administrative", "cause": "all"}
    found = ss.cross_validate(estimators, X, Y, cv=3, progress=False, **settings)
    for name, curves in found.curves.items():
        expected = ss.brier_score(Y, curves, **settings).scores
        table = found.comparison.scores
        np.testing.assert_allclose(table[table["model"] == name]["score"], expected, rtol=1e-12)
        model = clone(estimators[name]).fit(X, Y)
        whole = ss.brier_score(Y, model.predict_curves(X), weighting="administrative", cause="all")
        assert model.score(X, Y, cause="all") == pytest.approx(-whole.integrated(nan="stop").value, rel=1e-12)
    with pytest.raises(ss.InputError, match=r"StreamingScore has no multi-class form \(cause='all'\)"):
        LogisticHazard(**QUICK).fit(X, Y, scores=ValidationScore(weighting="administrative", cause="all"))


# What is refused


@pytest.mark.parametrize("model", [KaplanMeier(), BCESurvival(**QUICK), ss.adapters.Lifelines(CoxPHFitter())])
def test_models_of_one_kind_of_event_refuse_causes(model):
    with pytest.raises(ss.InputError, match=r"competing causes \('churn' and 'non-payment'\).*learn causes"):
        model.fit(X, Y)
    model.fit(X, ss.Outcomes(Y.time, Y.event, Y.censoring_time))  # as the message says


def fit(**settings):
    return LogisticHazard(**QUICK | settings).fit(X, Y)


OTHER = ss.Outcomes(Y.time, Y.cause, Y.censoring_time, causes=["churn", "fraud"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit(interpolation="constant-hazard"), "interpolation='constant-hazard' is for events of one kind"),
        (
            lambda: LogisticHazard(**QUICK).fit(X, Y, validation=(X, OTHER)),
            "y of validation must have the causes of y, 'churn' and 'non-payment', not 'churn' and 'fraud'",
        ),
        (lambda: fit().score(X, Y), "say which one scores are of"),
        (lambda: fit().score(X, OTHER, cause="churn"), "must be of the causes of y"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()
