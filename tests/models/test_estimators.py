"""The two networks as estimators: fitting, predicting, scikit-learn's conventions, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch import nn

import survscore as ss
from combinations import nightly_but
from survscore.models import BCESurvival, LogisticHazard
from survscore.models.training import split

BOTH = [LogisticHazard, BCESurvival]
QUICK = {"n_times": 10, "width": 8, "n_layers": 2, "epochs": 3, "random_state": 0, "device": "cpu"}
SAMPLE = ss.simulate.SineConstantAcceleratingStudy("simple").sample(600, seed=1)
X, Y = SAMPLE.covariates, SAMPLE.outcomes


@pytest.fixture(scope="module", params=BOTH, ids=lambda model: model.__name__)
def fitted(request):
    return request.param(**QUICK).fit(X, Y)


# Prediction


@pytest.mark.parametrize("interpolation", ["linear", "constant-hazard", "step"])
def test_other_times_are_read_as_the_curves_would_be(interpolation):
    one = LogisticHazard(**QUICK, interpolation=interpolation).fit(X, Y)
    times = np.array([0.0, 3.0, 9.99, 10.0, 33.0, 70.0, 99.0, 100.0])
    expected = one.predict_curves(X).at(times)
    got = one.predict_curves(X, times)
    np.testing.assert_allclose(got.probabilities, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(one.predict_survival_function(X, times), got.probabilities)
    assert (got.interpolation, got.probabilities[:, 0].min()) == (interpolation, 1.0)


def test_batches_do_not_matter(fitted, monkeypatch):
    whole = fitted.predict_curves(X, [5, 50]).probabilities
    monkeypatch.setattr("survscore.models.training.ROWS_PER_EVALUATION", {"cpu": 7})
    np.testing.assert_allclose(fitted.predict_curves(X, [5, 50]).probabilities, whole, rtol=1e-5)


# Fitting


def test_validation_data_decide_instead_of_a_share():
    test = ss.simulate.SineConstantAcceleratingStudy("simple").sample(300, seed=2)
    model = LogisticHazard(**QUICK).fit(X, Y, validation=(test.covariates, test.outcomes))
    history = model.history_.to_frame()
    model.net_.eval()
    kept = history["validation_loss"].min()
    labels = model._kept_labels(test.outcomes, model.times_, "event")
    encoded = model.features_.encode(test.covariates)
    with torch.inference_mode():
        logits = model.net_(*(torch.from_numpy(part) for part in encoded)).numpy().astype(np.float64)
    expected = (np.logaddexp(0, -labels * logits) * (labels != 0)).sum() / 300
    assert kept == pytest.approx(expected, rel=1e-5)


def test_validation_share_takes_events_of_each_cause_and_others_alike():
    cause = np.repeat(np.array([0, 1, 2], dtype=np.int8), (700, 250, 50))
    rows, held_out = split(np.arange(1000.0), cause, 0.2, np.random.RandomState(0))
    assert np.bincount(cause[held_out]).tolist() == [140, 50, 10]
    assert set(rows) | set(held_out) == set(range(1000))


def test_the_last_follow_up_and_an_event_of_each_cause_stay_in_training():
    time, cause = np.arange(43.0), np.array([0, 1, 2] + [0, 1] * 20, dtype=np.int8)
    for seed in range(20):
        rows, _ = split(time, cause, 0.7, np.random.RandomState(seed))
        assert {2, 42} <= set(rows)
        assert 1 in cause[rows]


def test_only_what_is_trained_on_is_learnt():
    """Categories, gaps and constants that training rows don't have must not reach weights that were never trained."""
    n = 400
    one = int(np.flatnonzero(Y.event[:n])[3])  # not one of those who always stay in training
    frame = X[:n].assign(person=[f"p{i}" for i in range(n)], gap=np.where(np.arange(n) == one, np.nan, 1.0))
    seeds = (s for s in range(100) if one in split(Y.time[:n], Y.event[:n], 0.2, _random(s))[1])
    model = LogisticHazard(**QUICK | {"missing": "indicator", "random_state": next(seeds)}).fit(frame, Y[:n])
    levels = model.features_.columns[-2].levels
    assert len(levels) == n - 80
    assert f"p{one}" not in levels
    assert not model.features_.columns[-1].indicator
    known = model.predict_curves(frame[:1]).probabilities
    for change in ({"gap": np.nan}, {"gap": 1e6}, {"gap": -3.0}):
        np.testing.assert_array_equal(model.predict_curves(frame[:1].assign(**change)).probabilities, known)


def _random(seed):
    random = np.random.RandomState(seed)
    random.randint(np.iinfo(np.int32).max)  # as fit does before it splits
    return random


def test_a_refused_fit_changes_nothing():
    model = LogisticHazard(**QUICK).fit(X, Y)
    before = model.predict_curves(X).probabilities
    with pytest.raises(ss.InputError):
        model.fit(X * 1000, Y, validation=(X[X.columns[:2]], Y))
    with pytest.raises(ss.InputError, match="diverged"):
        model.set_params(learning_rate=1e30, dropout=0.0).fit(X * 7, Y)
    np.testing.assert_array_equal(model.predict_curves(X).probabilities, before)
    assert model.score(X, Y) < 0
    new = LogisticHazard(**QUICK)
    with pytest.raises(ss.InputError):
        new.fit(X, Y, validation=(X, Y[:3]))
    with pytest.raises(NotFittedError):
        new.predict_curves(X)


def test_trainings_in_threads_are_those_alone():
    from concurrent.futures import ThreadPoolExecutor

    alone = LogisticHazard(**QUICK).fit(X, Y).predict_curves(X).probabilities
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    with ThreadPoolExecutor(3) as pool:
        fitted = list(pool.map(lambda _: LogisticHazard(**QUICK).fit(X, Y), range(3)))
    assert torch.equal(torch.rand(2), expected)
    for model in fitted:
        np.testing.assert_array_equal(model.predict_curves(X).probabilities, alone)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (lambda i, o: nn.Linear(i, 1), r"net must make \(2, 10\) torch.float32 of 2 rows of 23 inputs, not \(2, 1\)"),
        (lambda i, o: nn.Linear(i + 1, o), "net fails on 2 rows of 23 inputs"),
        (lambda i, o: "net", "net must make a torch module, not str"),
    ],
)
def test_nets_that_do_not_fit_are_refused(net, message):
    with pytest.raises(ss.InputError, match=message):
        LogisticHazard(**QUICK, net=net).fit(X, Y)


def test_whole_categories_have_one_name():
    """A file with one missing code turns integer categories into floats."""
    city = pd.Categorical(np.where(np.arange(600) % 2, 1, 2))
    model = LogisticHazard(**QUICK).fit(X.assign(city=city), Y)
    floats = X[:3].assign(city=pd.Categorical([2.0, 1.0, np.nan]))
    np.testing.assert_array_equal(model.features_.encode(floats)[1][:, 0], [2, 1, 0])


def test_a_single_row_with_all_missing():
    frame = X.assign(city="a", income=np.where(np.arange(600) % 3, 1.5, np.nan))
    frame.loc[:50, "city"] = "b"
    model = LogisticHazard(**QUICK | {"missing": "indicator"}).fit(frame, Y)
    for gone in (np.nan, None):
        row = frame[:1].assign(city=[gone], income=[gone])
        assert model.predict_curves(row).shape == (1, 10)
        assert model.predict_curves(pl.from_pandas(row)).shape == (1, 10)


# Bad input


def outcomes(n=20, **changes):
    time = np.arange(1.0, n + 1.0)
    return ss.Outcomes(**{"time": time, "event": np.ones(n)} | changes)


GOOD = np.random.default_rng(0).normal(size=(20, 2))


@pytest.mark.parametrize(
    ("X", "y", "settings", "message"),
    [
        (np.where(GOOD == GOOD[5, 1], np.nan, GOOD), outcomes(), {}, "column 1 holds missing values .* at row 5"),
        (GOOD, outcomes(event=np.zeros(20)), {}, "y has no events"),
        (GOOD[:1], outcomes(1), {}, "X has 1 rows .* at least 3"),
        (GOOD, outcomes(19), {}, "y has length 19, but X has length 20"),
        (GOOD, np.ones(20), {}, "y must be Outcomes"),
        (GOOD, outcomes(), {"times": [5, 100]}, "within the follow-up, which ends at 20"),
        (GOOD, outcomes(), {"dropout": "much"}, "dropout must be at least 0"),
        (GOOD, outcomes(), {"preset": "best"}, "preset must be one of"),
        (GOOD, outcomes(), {"keep": "administrative"}, "keep='administrative' needs Outcomes with the censoring time"),
        (GOOD, outcomes(), {"n_layers": 1.5}, "n_layers must be a whole number"),
        (GOOD, outcomes(), {"device": "meta"}, "device 'meta' can't be used here"),
        (GOOD, outcomes(), {"optimizer": lambda weights: None}, r"callable as optimizer\(weights, lr=...\)"),
        (GOOD, outcomes(), {"optimizer": torch.optim.LBFGS}, "that needs no closure, not LBFGS"),
        (GOOD, outcomes(), {"optimizer": torch.optim.SGD, "weight_decay": 0.1}, "weight_decay is that of AdamW"),
        (GOOD, outcomes(), {"stopping_score": "brier"}, "stopping_score must be a ValidationScore, not str"),
        (GOOD, outcomes(), {"callbacks": [1]}, "callbacks must be a list of functions"),
    ],
)
def test_bad_input_is_refused(X, y, settings, message):
    with pytest.raises(ss.InputError, match=message):
        LogisticHazard(**QUICK | settings).fit(X, y)


@pytest.mark.parametrize(
    ("change", "times", "message"),
    [
        (lambda X: X.drop(columns=X.columns[0]), None, "X lacks the columns"),
        (lambda X: X, [50, 120], "they end at 120, its grid at 100"),
        (lambda X: X.assign(event_phase_1=1e300), None, "'event_phase_1' holds 600 of 600 numbers far beyond those"),
    ],
)
def test_bad_prediction_input_is_refused(fitted, change, times, message):
    with pytest.raises(ss.InputError, match=message):
        fitted.predict_curves(change(X), times)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (GOOD, outcomes(time=np.arange(20.0))),  # fewer rows than a batch, and an event at time 0
        (np.column_stack([GOOD, np.full(20, 3.0)]), outcomes()),  # a constant column
        (np.ones((20, 1)), outcomes()),  # nothing but a constant
        (GOOD, outcomes(time=np.full(20, 5.0))),  # all at once
        (GOOD, outcomes(event=np.arange(20) < 1)),  # one event
        (GOOD[:3].tolist(), outcomes(3)),
        (pd.DataFrame({"only": ["a", "b"] * 10}), outcomes()),  # no number at all
    ],
)
def test_unusual_input_just_works(X, y):
    curves = LogisticHazard(**QUICK).fit(X, y).predict_curves(X)
    assert len(curves) == len(y)


# Presets, and whom a time learns from


def test_presets_fill_what_is_left_open():
    some = ({}, {"preset": "paper"}, {"preset": "paper", "schedule": "constant", "learning_rate": 0.5})
    default, paper, mixed = (LogisticHazard(**settings)._settings() for settings in some)
    assert (default.schedule.kind, default.schedule.rate, default.averaging) == ("constant", 0.02, 0.2)
    assert (paper.schedule.kind, paper.schedule.rate, paper.averaging) == ("warm-restarts", 0.01, 0)
    assert (mixed.schedule.kind, mixed.schedule.rate, mixed.averaging) == ("constant", 0.5, 0)


def told(n=4000):
    """C* is told by a covariate, to within an interval of the grid."""
    rng = np.random.default_rng(1)
    end = rng.choice([15.0, 35.0, 55.0], n)
    event_time = rng.exponential(80, n)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    return (end[:, None] == [15.0, 35.0, 55.0]).astype(float), y, end


@pytest.mark.parametrize(("settings", "leaks"), [({}, False), ({"keep": "known"}, True), ({"preset": "paper"}, True)])
def test_no_leak_in_the_interval_that_holds_the_censoring_time(settings, leaks):
    covariates, y, end = told()
    model = LogisticHazard(
        times=np.arange(10.0, 60.0, 10.0), n_layers=1, epochs=31, random_state=0, device="cpu", **settings
    ).fit(covariates, y)
    at_40 = model.predict_curves(covariates).at([40])[end == 35].mean()
    assert at_40 < 0.1 if leaks else at_40 > 0.2


def test_the_censored_at_their_own_end_are_event_free_there():
    y = ss.Outcomes([1, 2, 2], [1, 0, 1], [3, 2, 2])
    labels = BCESurvival(keep="administrative")._kept_labels(y, np.array([1.0, 2.0, 3.0]), "event")
    np.testing.assert_array_equal(labels, [[-1, -1, -1], [1, 1, 0], [1, -1, 0]])


def test_whom_nobody_can_keep():
    y = ss.Outcomes([1, 2, 3], [1, 0, 1], [3, 4, 5])
    with pytest.raises(ss.InputError, match=r"can't weight for the 1 who dropped out .*HorizonClassifiers can"):
        BCESurvival(**QUICK, keep="administrative").fit(np.ones((3, 1)), y)
    with pytest.raises(ss.InputError, match="is for event times"):
        LogisticHazard(**QUICK, keep="administrative").fit_censoring(X, Y)
    with pytest.raises(ss.InputError, match="stopping_score is a score of event times"):
        LogisticHazard(**QUICK, stopping_score=ss.models.ValidationScore()).fit_censoring(X, Y)


def test_a_score_makes_no_matrix(fitted, monkeypatch):
    expected = ss.brier_score(Y, fitted.predict_curves(X), weighting="administrative").integrated(nan="stop").value
    monkeypatch.setattr("survscore.models.training.ROWS_PER_EVALUATION", {"cpu": 7})
    monkeypatch.setattr(type(fitted), "predict_curves", None)
    assert fitted.score(X, Y) == pytest.approx(-expected, rel=1e-6)
    with pytest.raises(ss.InputError, match="y has length 599, but X has length 600"):
        fitted.score(X, Y[:599])
    with pytest.raises(ss.InputError, match="weighting"):  # censoring times unknown: the user must choose
        fitted.score(X, ss.Outcomes(Y.time, Y.event))


# The last interval


@pytest.mark.parametrize("known", nightly_but([True], [True, False]))
@pytest.mark.parametrize("n_times", nightly_but([None], [None, 8]))
def test_survival_at_the_end_of_a_grid_is_that_of_the_data(n_times, known):
    """Hardly anybody is followed to the end of the last interval, but events in it are seen."""
    rng = np.random.default_rng(0)
    event_time, end = rng.exponential(20, 4000), rng.uniform(0, 48, 4000)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end if known else None)
    grid = {"times": [12, 24, 36, 48]} if n_times is None else {"n_times": n_times}
    model = LogisticHazard(**grid, n_layers=0, epochs=60, random_state=0, device="cpu")
    curves = model.fit(np.zeros((4000, 1)), y).predict_curves(np.zeros((1, 1)))
    np.testing.assert_allclose(curves.probabilities[0], np.exp(-curves.times / 20), atol=0.05)
    assert curves.probabilities[0, -1] > 0.05  # exp(-2.4) = 0.09


# Optimizer, stopping score, callbacks


def test_an_optimizer_of_ones_own_gets_the_weights_and_the_rates():
    made = []

    def optimizer(weights, lr):
        made.append(torch.optim.SGD(weights, lr=lr, momentum=0.9))
        return made[-1]

    settings = {**QUICK, "preset": "paper", "learning_rate": 0.05}
    model = LogisticHazard(**settings, optimizer=optimizer).fit(X, Y)
    assert model.history_.to_frame()["learning_rate"].tolist()[:2] == [0.05, pytest.approx(0.04)]
    assert 0 < made[0].param_groups[0]["lr"] < 0.05  # the cosine's last step
    assert {id(one) for one in made[0].param_groups[0]["params"]} == {id(one) for one in model.net_.parameters()}
    plain = LogisticHazard(**settings).fit(X, Y)
    assert not np.allclose(plain.predict_curves(X).probabilities, model.predict_curves(X).probabilities, atol=1e-3)


def test_a_stopping_score_decides_in_place_of_the_loss():
    score = ss.models.ValidationScore(weighting="administrative", times=[20, 40, 60])
    settings = {**QUICK, "epochs": 60, "patience": 4, "learning_rate": 0.1, "stopping_score": score}
    model = clone(LogisticHazard(**settings)).fit(X, Y)
    history = model.history_.to_frame().set_index("epoch")
    assert model.history_.best_epoch == history["validation_brier"].idxmin() != history["validation_loss"].idxmin()
    assert (model.history_.stopped, len(history)) == ("no gain", model.history_.best_epoch + 4)


def test_callbacks_see_the_history_and_the_net_and_can_stop():
    seen = []

    def watch(history, net):
        seen.append((len(history.epochs), history.best_epoch, [one.detach().clone() for one in net.parameters()]))

    def three_are_enough(history, net):
        return len(history.epochs) == 3

    model = LogisticHazard(**QUICK | {"epochs": 9}, callbacks=[three_are_enough, watch]).fit(X, Y)
    assert [epochs for epochs, *_ in seen] == [1, 2, 3]
    assert (len(model.history_.epochs), model.history_.stopped) == (3, "a callback")
    kept = seen[model.history_.best_epoch - 1][2]
    assert all(torch.equal(one, other) for one, other in zip(kept, model.net_.parameters(), strict=True))


def test_models_with_code_of_ones_own_are_saved_without_it(tmp_path):
    score = ss.models.ValidationScore(weighting="administrative", times=[20, 40])
    model = LogisticHazard(
        **QUICK, optimizer=torch.optim.RMSprop, stopping_score=score, callbacks=[lambda history, net: None]
    ).fit(X, Y)
    model.save(tmp_path / "model.safetensors")
    again = ss.models.load(tmp_path / "model.safetensors")
    assert (again.optimizer, again.stopping_score, again.callbacks) == (None, None, None)
    np.testing.assert_array_equal(again.predict_curves(X).probabilities, model.predict_curves(X).probabilities)
