"""What the methods converge to: the paper's statements about them, by simulation with fixed seeds."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import survscore as ss
from survscore.models import AalenJohansen, BCESurvival, HorizonClassifiers, KaplanMeier, LogisticHazard
from survscore.simulate import (
    CompetingRisksStudy,
    ConstantHazardStudy,
    SineConstantAcceleratingStudy,
    mean_squared_error,
)

pytestmark = pytest.mark.statistical
TIMES = np.linspace(0.0, 100.0, 101)
GRID = np.linspace(2.0, 100.0, 50)


@pytest.mark.parametrize("causes", [(), ("churn", "non-payment")], ids=["survival", "incidence"])
def test_without_covariates_logistic_hazard_is_the_product_limit_estimate(causes):
    rng = np.random.default_rng(0)
    time, end = rng.integers(1, 11, 3000), rng.integers(1, 11, 3000)
    status = np.where(time <= end, rng.choice([1, 1, 2], 3000), 0)
    y = ss.Outcomes(np.minimum(time, end), status if causes else status > 0, causes=causes or None)
    X, grid = np.zeros((3000, 1)), np.arange(1, 11)
    model = LogisticHazard(
        times=grid, n_layers=0, batch_size=3000, learning_rate=0.05, schedule="constant", epochs=1500,
        validation_share=0, random_state=0, device="cpu",
    )  # fmt: skip
    got = model.fit(X, y).predict_curves(X[:1])
    assert getattr(got, "causes", ()) == model.causes_ == causes
    expected = (AalenJohansen if causes else KaplanMeier)().fit(X, y).predict_curves(X[:1], grid)
    np.testing.assert_allclose(got.probabilities, expected.probabilities, atol=1e-3)
    if not causes:
        turned = LogisticHazard(**model.get_params()).fit_censoring(X, y).predict_curves(X[:1])
        np.testing.assert_allclose(turned.probabilities[0, :-1], ss.KaplanMeierCensoring(y).at(grid[:-1]), atol=5e-4)


STUDY, RISKS = SineConstantAcceleratingStudy("simple"), CompetingRisksStudy()


# The reference run of the authors, (Logistic-Hazard, BCE): with another beta, and trained until nothing was gained
REFERENCE = {
    ("brier", "uncensored"): (0.1184, 0.2087),
    ("brier", "kaplan-meier"): (0.1175, 0.1095),
    ("brier", "model"): (0.1089, 0.0986),
    ("brier", "administrative"): (0.1178, 0.1226),
    ("log", "uncensored"): (0.3652, 1.2468),
    ("log", "kaplan-meier"): (0.3614, 0.3370),
    ("log", "model"): (0.3364, 0.3037),
    ("log", "administrative"): (0.3622, 0.3855),
}


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_scores_order_the_methods_as_in_the_reference_run():
    train, validation, test = (STUDY.sample(n, seed=seed) for n, seed in ((20_000, 1), (5_000, 2), (20_000, 3)))
    settings = {"preset": "paper", "times": GRID, "epochs": 63, "random_state": 0, "device": "cpu"}
    held_out = (validation.covariates, validation.outcomes)
    fitted = [
        LogisticHazard(**settings).fit(train.covariates, train.outcomes, validation=held_out),
        BCESurvival(**settings).fit(train.covariates, train.outcomes, validation=held_out),
        LogisticHazard(**settings).fit_censoring(train.covariates, train.outcomes, validation=held_out),
    ]
    *curves, censoring = (model.predict_curves(test.covariates) for model in fitted)
    chosen = {"kaplan-meier": ss.IPCW(), "model": ss.IPCW(censoring, max_weight=100)}
    for (loss, weighting), expected in REFERENCE.items():
        y = test.uncensored if weighting == "uncensored" else test.outcomes
        hazard, bce = (
            ss.score_all(y, one, metric=loss, weighting=chosen.get(weighting, weighting), times=TIMES)[0]
            .integrated(nan="stop").value
            for one in curves
        )  # fmt: skip
        assert (bce < hazard) == (expected[1] < expected[0]), (loss, weighting)
        assert hazard == pytest.approx(expected[0], rel=0.05)
        # BCE leaks more and more while it trains, which shows in what can be seen after C*
        assert bce == pytest.approx(expected[1], rel=0.45 if weighting == "uncensored" else 0.1)


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_classifiers_per_horizon_leak_too():
    """Dropping the censored pays under IPCW and costs in truth; keeping those with C* >= t does neither."""
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    train, test = STUDY.sample(10_000, seed=1), STUDY.sample(20_000, seed=3)
    times = np.array([10.0, 20.0, 30.0])
    biased, honest = (
        HorizonClassifiers(classifier, times, keep=keep).fit(train.covariates, train.outcomes)
        for keep in ("known", "administrative")
    )
    both = {"biased": biased.predict_curves(test.covariates), "honest": honest.predict_curves(test.covariates)}

    def preferred(y, weighting):
        scores = {
            name: ss.brier_score(y, curves, weighting=weighting, times=times).scores.mean()
            for name, curves in both.items()
        }
        return min(scores, key=scores.get)

    assert preferred(test.uncensored, "uncensored") == "honest"
    assert preferred(test.outcomes, "administrative") == "honest"
    assert preferred(test.outcomes, ss.IPCW()) == "biased"
    assert preferred(test.outcomes, ss.IPCW("known")) == "biased"


@pytest.mark.nightly
@pytest.mark.parametrize("study", [SineConstantAcceleratingStudy("independent"), RISKS], ids=["survival", "incidence"])
def test_logistic_hazard_comes_closer_to_the_truth_with_more_data(study):
    test, errors = study.sample(2000, seed=9), []
    for n in (500, 3_000, 18_000):
        train = study.sample(n, seed=1)
        columns = [name for name in train.covariates if name != "entry"]  # which encodes C*
        model = LogisticHazard(times=GRID, epochs=31, random_state=0, device="cpu")
        curves = model.fit(train.covariates[columns], train.outcomes).predict_curves(test.covariates[columns])
        if study is RISKS:
            truth = test.incidence(GRID)
            errors.append(sum(mean_squared_error(truth, curves, GRID, cause=cause).mean() for cause in study.causes))
        else:
            errors.append(mean_squared_error(test.survival(GRID), curves, GRID).mean())
    assert errors[2] < 0.6 * errors[1] < 0.6 * 0.9 * errors[0]
    assert errors[2] < (0.005 if study is RISKS else 0.03)


def bce_minimiser(survival, censoring_survival, times):
    """eq:bce_minimizer for a survival curve and a continuous G on a fine grid that starts at 0."""
    density = -np.diff(survival)
    seen = np.concatenate(([0.0], np.cumsum((censoring_survival[1:] + censoring_survival[:-1]) / 2 * density)))
    return survival * censoring_survival / (survival * censoring_survival + seen)


@pytest.mark.nightly
def test_bce_converges_to_its_biased_minimiser():
    study = ConstantHazardStudy(hazard=0.002)
    train = study.sample(40_000, seed=1)
    X = np.zeros((40_000, 1))
    model = BCESurvival(n_times=20, n_layers=0, learning_rate=0.05, epochs=31, random_state=0, device="cpu")
    times = np.arange(5.0, 96.0, 5.0)
    got = model.fit(X, train.outcomes).predict_survival_function(X[:1], times)[0]
    fine = np.linspace(0.0, 100.0, 1001)
    survival = study.survival(fine)
    expected = np.interp(times, fine, bce_minimiser(survival, 1.0 - fine / 100.0, fine))
    np.testing.assert_allclose(got, expected, atol=0.015)
    assert (got[1:] < study.survival(times)[1:] - 0.005).all()  # biased low


@pytest.mark.nightly
def test_bce_falls_to_zero_after_the_censoring_time_that_it_is_told():
    study = ConstantHazardStudy()
    train, test = study.sample(20_000, seed=1), study.sample(4_000, seed=2)
    model = BCESurvival(times=GRID, epochs=63, random_state=0, device="cpu")
    predicted = model.fit(train.covariates, train.outcomes).predict_survival_function(test.covariates, TIMES)
    end = test.outcomes.censoring_time[:, None]
    before, after = end > TIMES + 5, end < TIMES - 5
    truth = np.broadcast_to(study.survival(TIMES), predicted.shape)
    assert predicted[after].mean() < 0.02
    assert np.abs(predicted - truth)[before].mean() < 0.05
