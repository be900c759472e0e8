"""Models of competing causes: literal versions, special cases that must agree, and what is refused."""

import math

import numpy as np
import pytest
import torch
from lifelines import CoxPHFitter
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
from survscore.models.grid import hazard_labels
from survscore.models.losses import binary_log_likelihood_loss, cause_log_likelihood_loss, incidence_from_hazards
from survscore.models.training import split

STUDY = ss.simulate.CompetingRisksStudy()
SAMPLE = STUDY.sample(400, seed=1)
X, Y = SAMPLE.covariates, SAMPLE.outcomes
TIMES = np.array([20.0, 40.0, 60.0])
QUICK = {"times": TIMES, "width": 4, "n_layers": 1, "epochs": 3, "random_state": 0, "device": "cpu", "progress": False}

GRID = np.array([2.0, 4.0, 6.0, 8.0])
TIME = np.array([0.0, 1.0, 4.0, 4.0, 5.5, 8.0, 8.0, 9.0, 9.0, 6.5])
CAUSE = np.array([1, 0, 2, 0, 0, 2, 0, 3, 0, 3], dtype=np.int8)


# Labels, loss, incidences


def literal_loss(logits):
    """Minus the log-likelihood of each individual's cause in its interval, and of none in those before."""
    total = 0.0
    for i in range(TIME.size):
        for j, end in enumerate(GRID):
            odds = [math.exp(z) for z in logits[i, :, j]]
            start = 0.0 if j == 0 else GRID[j - 1]
            here = CAUSE[i] > 0 and (start < TIME[i] <= end or (j == 0 and TIME[i] == 0))
            if here:
                total -= math.log(odds[CAUSE[i] - 1] / (1 + sum(odds)))
            elif TIME[i] >= end:
                total -= math.log(1 / (1 + sum(odds)))
    return total / TIME.size


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient(seed):
    logits = np.random.default_rng(seed).normal(0.0, 2.0, (TIME.size, 3, GRID.size))
    labels = torch.from_numpy(hazard_labels(TIME, CAUSE, GRID))
    outputs = torch.tensor(logits.reshape(TIME.size, -1), requires_grad=True)
    loss = cause_log_likelihood_loss(outputs, labels)
    assert loss.item() == pytest.approx(literal_loss(logits), rel=1e-12)
    loss.backward()
    for place in np.ndindex(logits.shape):
        up, down = logits.copy(), logits.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        expected = (literal_loss(up) - literal_loss(down)) / 2e-6
        assert outputs.grad.reshape(logits.shape)[place].item() == pytest.approx(expected, abs=1e-8)


def test_the_loss_of_one_cause_is_the_binary_one():
    logits = torch.from_numpy(np.random.default_rng(0).normal(0.0, 2.0, (TIME.size, GRID.size)))
    labels = torch.from_numpy(hazard_labels(TIME, CAUSE > 0, GRID))
    torch.testing.assert_close(
        cause_log_likelihood_loss(logits, labels), binary_log_likelihood_loss(logits, labels), rtol=1e-14, atol=0
    )


def test_extreme_logits_stay_finite():
    labels = torch.from_numpy(hazard_labels(TIME, CAUSE, GRID))
    for value in (-200.0, 200.0):
        outputs = torch.full((TIME.size, 3 * GRID.size), value, requires_grad=True)
        loss = cause_log_likelihood_loss(outputs, labels)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(outputs.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_incidences_from_outputs(dtype):
    logits = torch.from_numpy(np.random.default_rng(0).normal(-1.0, 2.0, (50, 3 * 40))).to(dtype)
    got = incidence_from_hazards(logits, 40)
    assert got.dtype == dtype
    event_free, expected = np.ones(50), np.zeros((50, 3))
    odds = np.exp(logits.double().numpy().reshape(50, 3, 40))
    for j in range(40):
        hazards = odds[:, :, j] / (1 + odds[:, :, j].sum(axis=1, keepdims=True))
        expected += event_free[:, None] * hazards
        event_free *= 1 - hazards.sum(axis=1)
        np.testing.assert_allclose(got[:, :, j], expected, rtol=1e-6 if dtype == torch.float32 else 1e-12)
    ss.IncidenceCurves(got.numpy(), np.arange(1.0, 41.0))  # which checks that they rise, and sum to 1 at most


def test_validation_has_the_same_share_of_each_cause():
    cause = np.repeat(np.array([0, 1, 2], dtype=np.int8), (700, 250, 50))
    _, held_out = split(np.arange(1000.0), cause, 0.2, np.random.RandomState(0))
    assert np.bincount(cause[held_out]).tolist() == [140, 50, 10]
    rare = np.array([0, 1, 2] + [0, 1] * 20, dtype=np.int8)
    for seed in range(20):  # the only event of a cause is trained on
        assert 2 not in split(np.arange(43.0), rare, 0.5, np.random.RandomState(seed))[1]


# Logistic-Hazard


def test_without_covariates_logistic_hazard_is_the_aalen_johansen_estimate():
    rng = np.random.default_rng(0)
    time, end = rng.integers(1, 11, 3000), rng.integers(1, 11, 3000)
    cause = np.where(time <= end, rng.choice([1, 1, 2], 3000), 0)
    y = ss.Outcomes(np.minimum(time, end), cause, causes=["churn", "non-payment"])
    nothing, grid = np.zeros((3000, 1)), np.arange(1, 11)
    model = LogisticHazard(
        times=grid, n_layers=0, batch_size=3000, learning_rate=0.05, schedule="constant", epochs=1500,
        validation_share=0, random_state=0, device="cpu",
    ).fit(nothing, y)  # fmt: skip
    got = model.predict_curves(nothing[:1])
    assert got.causes == model.causes_ == ("churn", "non-payment")
    expected = AalenJohansen().fit(None, y).predict_cumulative_incidence(nothing[:1], grid)
    np.testing.assert_allclose(got.probabilities, expected, atol=1e-3)


def test_one_named_cause_is_the_net_of_boolean_events():
    one = ss.Outcomes(Y.time, Y.event, Y.censoring_time)
    named = ss.Outcomes(Y.time, Y.event.astype(int), Y.censoring_time, causes=["any"])
    plain, of_cause = (LogisticHazard(**QUICK).fit(X, y) for y in (one, named))
    assert plain.causes_ == ()
    for weights, others in zip(plain.net_.parameters(), of_cause.net_.parameters(), strict=True):
        assert torch.equal(weights, others)
    incidence = of_cause.predict_curves(X).for_cause("any")
    np.testing.assert_allclose(incidence.probabilities, plain.predict_curves(X).probabilities, atol=1e-6)
    np.testing.assert_allclose(
        plain.predict_cumulative_incidence(X, TIMES), of_cause.predict_cumulative_incidence(X, TIMES), atol=1e-6
    )


def test_the_names_of_causes_change_nothing_and_their_order_only_places():
    swapped = ss.Outcomes(Y.time, np.array([0, 2, 1])[Y.cause], Y.censoring_time, causes=Y.causes[::-1])
    model = LogisticHazard(**QUICK | {"n_layers": 0, "epochs": 300, "validation_share": 0, "weight_decay": 0.0})
    a, b = (clone(model).fit(X, y).predict_curves(X) for y in (Y, swapped))
    for name in Y.causes:
        np.testing.assert_allclose(a.for_cause(name).probabilities, b.for_cause(name).probabilities, atol=0.01)
    numbered = ss.Outcomes(Y.time, Y.cause, Y.censoring_time)
    c = clone(model).fit(X, numbered).predict_curves(X)
    assert c.causes == ("1", "2")
    np.testing.assert_array_equal(c.probabilities, a.probabilities)


def test_predictions_in_all_forms():
    model = LogisticHazard(**QUICK).fit(X, Y)
    curves = model.predict_curves(X)
    assert curves.shape == (400, 2, 3)
    assert curves.probabilities.dtype == np.float32
    between = np.array([10.0, 30.0])
    np.testing.assert_allclose(model.predict_curves(X, between).probabilities, curves.at(between), rtol=1e-6)
    np.testing.assert_allclose(model.predict_cumulative_incidence(X, between), curves.at(between), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), curves.probabilities)
    np.testing.assert_allclose(
        model.predict_survival_function(X, TIMES), 1 - curves.probabilities.sum(axis=1), atol=1e-6
    )
    steps = clone(model).set_params(interpolation="step").fit(X, Y).predict_curves(X)
    assert steps.interpolation == "step"


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
    stream = ss.StreamingScore(held_out.outcomes, cause="churn", **settings)
    for start in range(0, 300, 100):
        stream.update(curves[start : start + 100])
    expected = ss.brier_score(held_out.outcomes, curves, cause="churn", **settings)
    np.testing.assert_allclose(stream.result().scores, expected.scores, rtol=1e-12)


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


# Aalen-Johansen


def test_aalen_johansen_by_the_formula():
    y = ss.Outcomes([1, 2, 2, 3, 4, 4, 5, 6], [1, 2, 0, 2, 1, 1, 0, 2], causes=["a", "b"])
    model = AalenJohansen().fit(None, y)
    for t in (0.5, 1.0, 2.0, 3.5, 4.0, 6.0):
        event_free, expected = 1.0, [0.0, 0.0]
        for s in sorted(set(y.time[y.event])):
            if s > t:
                break
            at_risk = sum(y.time >= s)
            for k in (1, 2):
                expected[k - 1] += event_free * sum((y.time == s) & (y.cause == k)) / at_risk
            event_free *= 1 - sum((y.time == s) & y.event) / at_risk
        got = model.predict_cumulative_incidence(range(2), [t])
        np.testing.assert_allclose(got, np.tile(np.array(expected)[:, None], (2, 1, 1)), atol=1e-15)
    assert model.predict_curves(range(2), [9.0]).extrapolation == "hold"


# Files


def test_predictions_from_a_file_are_the_same(tmp_path):
    path = tmp_path / "model.safetensors"
    model = LogisticHazard(**QUICK).fit(X, Y)
    model.save(path)
    expected, got = model.predict_curves(X), load(path).predict_curves(X)
    np.testing.assert_array_equal(got.probabilities, expected.probabilities)
    assert got.causes == expected.causes == Y.causes
    np.testing.assert_array_equal(got.times, expected.times)


# scikit-learn


MODELS = {
    "net": (LogisticHazard(**QUICK), {"width": [2, 4]}),
    "classifiers": (
        HorizonClassifiers(LogisticRegression(), TIMES, keep="administrative"),
        {"estimator__C": [0.01, 1.0]},
    ),
    "same for all": (AalenJohansen(times=TIMES), {"n_times": [5, 50]}),
}
FOLDS = ss.EventKFold(3, shuffle=True, random_state=1)


def by_hand(model, cause, transform=None):
    """Return minus the mean administrative Brier score over time of each fold, from literal sums."""
    found, number = [], Y.causes.index(cause)
    for train, test in FOLDS.split(X, Y):
        rows_train, rows_test = X.iloc[train], X.iloc[test]
        if transform is not None:
            fitted = clone(transform).fit(rows_train)
            rows_train, rows_test = fitted.transform(rows_train), fitted.transform(rows_test)
        incidence = clone(model).fit(rows_train, Y[train]).predict_cumulative_incidence(rows_test, TIMES)
        incidence = incidence[:, number].astype(np.float64)
        briers = []
        for j, t in enumerate(TIMES):
            counted = [i for i, row in enumerate(test) if Y.censoring_time[row] >= t]
            had = [(Y.time[test[i]] <= t) and Y.cause[test[i]] == number + 1 for i in counted]
            briers.append(np.mean((np.array(had) - incidence[counted, j]) ** 2))
        found.append(-np.trapezoid(briers, TIMES) / (TIMES[-1] - TIMES[0]))
    return np.array(found)


@pytest.mark.parametrize("name", MODELS)
def test_cross_validation_pipelines_and_searches(name):
    model, search = MODELS[name]
    scorer = ss.make_scorer("brier", weighting="administrative", times=TIMES, cause="non-payment")
    scores = cross_val_score(model, X, Y, scoring=scorer, cv=FOLDS, error_score="raise")
    np.testing.assert_allclose(scores, by_hand(model, "non-payment"), rtol=1e-6)
    chosen = ss.make_scorer("brier", weighting="administrative", times=TIMES)
    again = cross_val_score(model, X, Y.for_cause("non-payment"), scoring=chosen, cv=FOLDS, error_score="raise")
    np.testing.assert_array_equal(again, scores)
    pipeline = make_pipeline(StandardScaler(), model)
    scores = cross_val_score(pipeline, X, Y, scoring=scorer, cv=FOLDS, error_score="raise")
    np.testing.assert_allclose(scores, by_hand(model, "non-payment", StandardScaler()), rtol=1e-6)
    found = GridSearchCV(model, search, scoring=scorer, cv=FOLDS, error_score="raise").fit(X, Y)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.best_estimator_.causes_ == Y.causes
    predicted = cross_val_predict(model, X, Y, cv=FOLDS)
    assert predicted.shape == (400, 2, 3)


def test_cross_validate_compares_models_of_a_cause():
    estimators = {name: model for name, (model, _) in MODELS.items()}
    found = ss.cross_validate(
        estimators, X, Y, cv=3, times=TIMES, cause="churn", weighting=["administrative", "projected"], progress=False
    )
    assert found.y.for_cause("churn").event_of_interest.sum() == found.y.event_of_interest.sum()
    assert found.settings["cause"] == "churn"
    for name, curves in found.curves.items():
        expected = ss.brier_score(Y, curves, cause="churn", weighting="administrative", times=TIMES)
        table = found.comparison.scores
        got = table[(table["model"] == name) & (table["weighting"] == "administrative")]["score"]
        np.testing.assert_allclose(got, expected.scores, rtol=1e-12)
    assert found.folds["score"].notna().all()
    counts = found.folds.drop_duplicates(["estimator", "fold"]).groupby("estimator")["n_events"].sum()
    assert (counts == Y.n_by_cause["churn"]).all()
    with pytest.raises(ss.InputError, match="say which one scores are of"):
        ss.cross_validate(estimators, X, Y, cv=3, times=TIMES)


def test_multi_class_scores_of_models():
    estimators = {name: model for name, (model, _) in MODELS.items()}
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


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KaplanMeier(), None),
        (BCESurvival(**QUICK), None),
        (ss.adapters.Lifelines(CoxPHFitter()), None),
    ],
)
def test_models_of_one_kind_of_event_refuse_causes(model, name):
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
        (
            lambda: LogisticHazard(**QUICK).fit(X, Y, validation=(X, ss.Outcomes(Y.time, Y.event))),
            "y of validation must have the causes of y, 'churn' and 'non-payment', not none",
        ),
        (
            lambda: LogisticHazard(**QUICK).fit(X, Y, scores=ValidationScore(weighting="administrative")),
            "say which one scores are of",
        ),
        (lambda: fit().score(X, Y), "say which one scores are of"),
        (lambda: fit().score(X, OTHER, cause="churn"), "must be of the causes of y"),
        (lambda: fit().score(X, Y, cause="fraud"), "cause must be the name of a cause"),
        (
            lambda: ss.make_scorer(weighting="administrative", times=TIMES)(fit(), X, Y),
            "say which one scores are of",
        ),
        (
            lambda: HorizonClassifiers(LogisticRegression(), [200.0]).fit(X, Y),
            "times must be before the follow-up ends",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()


# By simulation


@pytest.mark.nightly
@pytest.mark.statistical
def test_ipcw_alone_prefers_classifiers_that_drop_the_censored():
    """Where the date of entry is a covariate; see benchmarks/competing_risks.py for more of them."""
    horizons = [20.0, 40.0, 60.0]
    lower = []
    for seed in range(6):
        train, test = STUDY.sample(2000, seed=2 * seed), STUDY.sample(2000, seed=2 * seed + 1)
        models = {
            keep: HorizonClassifiers(LogisticRegression(), horizons, keep=keep)
            .fit(train.covariates, train.outcomes)
            .predict_curves(test.covariates)
            for keep in ("administrative", "known")
        }
        weightings = ["ipcw", "administrative", "projected"]
        row = []
        for y, asked in ((test.outcomes, weightings), (test.uncensored, ["uncensored"])):
            found = ss.compare(y, models, weighting=asked, times=horizons, cause="churn", null=False)
            means = found.integrated().scores.pivot(index="weighting", columns="model", values="score")
            row += (means["known"] < means["administrative"])[found.weightings].tolist()
        lower.append(row)
    ipcw, administrative, projected, truth = np.mean(lower, axis=0)
    assert ipcw == 1
    assert administrative <= 1 / 6
    assert projected == truth == 0


@pytest.mark.nightly
@pytest.mark.statistical
def test_the_incidences_of_a_net_come_closer_to_the_truth_with_more_data():
    columns, grid = ["satisfaction", "debt"], np.arange(5.0, 81.0, 5.0)
    test = STUDY.sample(2000, seed=9)
    truth = test.incidence(grid)
    errors = []
    for n in (500, 4_000, 16_000):
        train = STUDY.sample(n, seed=3)
        model = LogisticHazard(times=grid, random_state=0, device="cpu", progress=False)
        curves = model.fit(train.covariates[columns], train.outcomes).predict_curves(test.covariates[columns])
        each = [ss.simulate.mean_squared_error(truth, curves, grid, cause=cause) for cause in STUDY.causes]
        errors.append(np.mean(each))
    assert errors[1] < 0.7 * errors[0]
    assert errors[2] < 0.8 * errors[1]
    assert errors[2] < 0.001
