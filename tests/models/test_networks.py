"""The two networks as estimators: fitting, predicting, scikit-learn's conventions, bad input."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import survscore as ss
from survscore.models import BCESurvival, LogisticHazard

BOTH = [LogisticHazard, BCESurvival]
QUICK = {"n_times": 10, "width": 8, "n_layers": 2, "epochs": 3, "random_state": 0, "device": "cpu"}
SAMPLE = ss.simulate.SineConstantAcceleratingStudy("simple").sample(600, seed=1)
X, Y = SAMPLE.covariates, SAMPLE.outcomes


@pytest.fixture(scope="module", params=BOTH, ids=lambda model: model.__name__)
def fitted(request):
    return request.param(**QUICK).fit(X, Y)


# Prediction


def test_curves_are_probabilities_on_the_grid(fitted):
    curves = fitted.predict_curves(X)
    assert curves.shape == (600, 10)
    assert curves.probabilities.dtype == np.float32
    np.testing.assert_array_equal(curves.times, fitted.times_)
    np.testing.assert_allclose(fitted.times_, np.arange(1, 11) * 10.0)


@pytest.mark.parametrize("between", ["linear", "constant-hazard", "step"])
@pytest.mark.parametrize("model", BOTH)
def test_other_times_are_read_as_the_curves_would_be(model, between):
    one = model(**QUICK, between=between).fit(X, Y)
    times = np.array([0.0, 3.0, 9.99, 10.0, 33.0, 70.0, 99.0, 100.0])
    expected = one.predict_curves(X).at(times)
    got = one.predict_curves(X, times)
    np.testing.assert_allclose(got.probabilities, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(one.predict_survival_function(X, times), got.probabilities)
    assert (got.between, got.probabilities[:, 0].min()) == (between, 1.0)


def test_batches_do_not_matter(fitted, monkeypatch):
    whole = fitted.predict_curves(X, [5, 50]).probabilities
    monkeypatch.setattr("survscore.models.networks.ROWS_PER_EVALUATION", 7)
    np.testing.assert_allclose(fitted.predict_curves(X, [5, 50]).probabilities, whole, rtol=1e-5)


def test_one_row_and_a_slice_of_a_frame(fitted):
    np.testing.assert_allclose(
        fitted.predict_curves(X[3:4]).probabilities, fitted.predict_curves(X).probabilities[3:4], rtol=1e-5
    )


def test_score_is_minus_the_administrative_brier_score(fitted):
    expected = ss.brier_score(Y, fitted.predict_curves(X), weighting="administrative").integrated(nan="stop")
    assert fitted.score(X, Y) == pytest.approx(-expected.value)
    known = fitted.score(X, Y, weighting=ss.IPCW("known"))
    assert known != pytest.approx(-expected.value)
    with pytest.raises(ss.InputError, match="weighting"):  # censored, but censoring times unknown: the user must choose
        fitted.score(X, ss.Outcomes(Y.time, Y.event))


# Fitting


@pytest.mark.parametrize("model", BOTH)
def test_same_seed_same_result(model):
    results = [model(**QUICK | {"random_state": s}).fit(X, Y).predict_curves(X).probabilities for s in (0, 0, 1)]
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_validation_data_decide_instead_of_a_share():
    test = ss.simulate.SineConstantAcceleratingStudy("simple").sample(300, seed=2)
    model = LogisticHazard(**QUICK).fit(X, Y, validation=(test.covariates, test.outcomes))
    history = model.history_.to_frame()
    model.net_.eval()
    kept = history["validation_loss"].min()
    labels = model._labels(test.outcomes.time, test.outcomes.event)
    encoded = model.features_.encode(test.covariates)
    with torch.inference_mode():
        logits = model.net_(*(torch.from_numpy(part) for part in encoded)).numpy().astype(np.float64)
    expected = (np.logaddexp(0, -labels * logits) * (labels != 0)).sum() / 300
    assert kept == pytest.approx(expected, rel=1e-5)


def test_validation_share_takes_events_and_others_alike():
    from survscore.models.networks import _split

    event = np.arange(1000) < 50
    rows, held_out = _split(event, 0.2, np.random.RandomState(0))
    assert (rows.size, held_out.size, event[held_out].sum()) == (800, 200, 10)
    assert set(rows) | set(held_out) == set(range(1000))


def test_without_validation_all_epochs_are_run():
    model = LogisticHazard(**QUICK | {"validation_share": 0}).fit(X, Y)
    assert (len(model.history_.epochs), model.history_.best_epoch) == (3, 3)


def test_own_net():
    made = []

    def factory(n_inputs, n_outputs):
        made.append((n_inputs, n_outputs))
        return nn.Sequential(nn.Linear(n_inputs, 6), nn.Tanh(), nn.Linear(6, n_outputs))

    model = LogisticHazard(**QUICK, net=factory).fit(X, Y)
    assert made == [(23, 10)]
    assert isinstance(model.net_.body[1], nn.Tanh)
    assert model.predict_curves(X).shape == (600, 10)


def test_frames_with_categories():
    frame = X.assign(city=np.where(Y.time > 20, "late", "early"))
    model = LogisticHazard(**QUICK | {"epochs": 31, "batch_size": 32}).fit(frame, Y)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    late = model.predict_survival_function(frame.assign(city="late"), [20]).mean()
    early = model.predict_survival_function(frame.assign(city="early"), [20]).mean()
    unknown = model.predict_survival_function(frame.assign(city="elsewhere"), [20]).mean()
    assert early + 0.1 < late
    assert early < unknown < late


@pytest.mark.parametrize("model", BOTH)
def test_structured_arrays_are_taken(model):
    assert model(**QUICK).fit(X, Y.to_structured()).times_.size == 10


def test_censoring_model_gives_curves_for_ipcw():
    sample = ss.simulate.SineConstantAcceleratingStudy("simple").sample(3000, seed=1)
    X, Y = sample.covariates, sample.outcomes
    model = LogisticHazard(**QUICK | {"epochs": 31, "batch_size": 64, "width": 16}).fit_censoring(X, Y)
    curves = model.predict_curves(X)
    score = ss.brier_score(Y, curves, weighting=ss.IPCW(curves, max_weight=100), times=[10, 20])
    assert np.isfinite(score.scores).all()
    # covariates tell the censoring times, and the model knows
    late = Y.censoring_time > 50
    assert curves.at([50])[late].mean() > 0.8
    assert curves.at([50])[~late].mean() < 0.2
    with pytest.raises(ss.InputError, match="fitted to the censoring distribution"):
        model.score(X, Y)


def test_interrupt_leaves_a_fitted_model(monkeypatch):
    from survscore.models import training

    calls = []

    def interrupted(net, data):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr(training, "evaluate", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = LogisticHazard(**QUICK).fit(X, Y)
    assert model.predict_curves(X).shape == (600, 10)


# scikit-learn


@pytest.mark.parametrize("model", BOTH)
def test_parameters_clone_and_search(model):
    one = model(**QUICK)
    assert clone(one).get_params() == one.get_params()
    times = [10, 20, 30]
    scorer = ss.make_scorer("brier", weighting="administrative", times=times)
    search = GridSearchCV(one, {"width": [4, 8]}, scoring=scorer, cv=2).fit(X, Y)
    assert search.best_params_["width"] in (4, 8)
    assert search.best_score_ < 0
    assert len(cross_val_score(one, X, Y, cv=2)) == 2  # by the own score


def test_pipeline():
    pipeline = make_pipeline(StandardScaler(), LogisticHazard(**QUICK)).fit(X, Y)
    np.testing.assert_allclose(
        pipeline[-1].predict_curves(pipeline[:-1].transform(X)).probabilities,
        LogisticHazard(**QUICK).fit(X, Y).predict_curves(X).probabilities,
        atol=1e-3,
    )


def test_refitting_forgets_the_columns_of_before():
    model = LogisticHazard(**QUICK).fit(X, Y).fit(X.to_numpy(), Y)
    assert not hasattr(model, "feature_names_in_")


# Bad input


def outcomes(n=20, **changes):
    time = np.arange(1.0, n + 1.0)
    return ss.Outcomes(**{"time": time, "event": np.ones(n)} | changes)


GOOD = np.random.default_rng(0).normal(size=(20, 2))


@pytest.mark.parametrize(
    ("X", "y", "settings", "message"),
    [
        (np.where(GOOD == GOOD[5, 1], np.nan, GOOD), outcomes(), {}, "column 1 holds missing values .* at row 5"),
        (np.where(GOOD == GOOD[5, 1], np.inf, GOOD), outcomes(), {}, "column 1 holds infinity .* at row 5"),
        (GOOD, outcomes(event=np.zeros(20)), {}, "y has no events"),
        (GOOD[:1], outcomes(1), {}, "X has 1 rows .* at least 3"),
        (GOOD[:1], outcomes(1), {"validation_share": 0}, "X has 1 rows .* at least 2"),
        (GOOD, outcomes(19), {}, "y has length 19, but X has length 20"),
        (GOOD, np.ones(20), {}, "y must be Outcomes"),
        (GOOD, None, {}, "y"),
        (GOOD, outcomes(time=np.zeros(20)), {}, "all times are 0"),
        (GOOD, outcomes(), {"times": [30, 40]}, "within the follow-up, which ends at"),
        (GOOD, outcomes(), {"device": "abacus"}, "device 'abacus' can't be used here"),
        (GOOD, outcomes(), {"device": "cuda:99"}, "device 'cuda:99' can't be used here"),
        (GOOD, outcomes(), {"dropout": 1.0}, "dropout"),
        (GOOD, outcomes(), {"width": 0}, "width must be a whole number"),
        (GOOD, outcomes(), {"n_layers": 1.5}, "n_layers must be a whole number"),
        (GOOD, outcomes(), {"validation_share": 1}, "validation_share"),
        (GOOD, outcomes(), {"missing": "mean"}, "missing must be one of"),
        (GOOD, outcomes(), {"between": "cubic"}, "between must be one of"),
        (GOOD, outcomes(), {"batch_size": 1}, "batch_size"),
    ],
)
@pytest.mark.parametrize("model", BOTH)
def test_bad_input_is_refused(model, X, y, settings, message):
    if settings.get("device", "").startswith("cuda") and torch.cuda.device_count() > 99:
        pytest.skip("there is such a device")
    with pytest.raises(ss.InputError, match=message):
        model(**QUICK | settings).fit(X, y)


def test_bad_validation_data_are_refused():
    model = LogisticHazard(**QUICK)
    with pytest.raises(ss.InputError, match=r"a pair \(X, y\)"):
        model.fit(GOOD, outcomes(), validation=GOOD)
    with pytest.raises(ss.InputError, match="y of validation has length 19, but X of validation has length 20"):
        model.fit(GOOD, outcomes(), validation=(GOOD, outcomes(19)))
    with pytest.raises(ss.InputError, match="X has 3 features, but LogisticHazard is expecting 2"):
        model.fit(GOOD, outcomes(), validation=(np.ones((5, 3)), outcomes(5)))


def test_bad_prediction_input_is_refused(fitted):
    with pytest.raises(ss.InputError, match=r"X lacks the columns"):
        fitted.predict_curves(X.drop(columns=X.columns[0]))
    with pytest.raises(ss.InputError, match=r"X must be a data frame with the columns"):
        fitted.predict_curves(np.ones((2, 23)))
    with pytest.raises(ss.InputError, match="they end at 120, its grid at 100"):
        fitted.predict_curves(X, [50, 120])
    with pytest.raises(ss.InputError, match="strictly increasing"):
        fitted.predict_curves(X, [50, 50])
    with pytest.raises(ss.InputError, match="column 'event_amplitude_1' holds missing values"):
        fitted.predict_curves(X.assign(event_amplitude_1=np.nan))


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (GOOD, outcomes()),  # fewer rows than a batch
        (GOOD, outcomes(time=np.arange(20.0))),  # an event at time 0
        (np.column_stack([GOOD, np.full(20, 3.0)]), outcomes()),  # a constant column
        (np.ones((20, 1)), outcomes()),  # nothing but a constant
        (GOOD, outcomes(time=np.full(20, 5.0))),  # all at once
        (GOOD, outcomes(event=np.arange(20) < 1)),  # one event
        (GOOD[:3], outcomes(3)),
        (GOOD.astype(np.float32), outcomes()),
        (GOOD.tolist(), outcomes()),
        (pd.DataFrame(GOOD, columns=["a", "b"]), outcomes()),
        (pd.DataFrame({"only": ["a", "b"] * 10}), outcomes()),  # no number at all
    ],
)
def test_unusual_input_just_works(model, X, y):
    curves = model(**QUICK).fit(X, y).predict_curves(X)
    assert len(curves) == len(y)
