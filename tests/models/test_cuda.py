"""Training on a GPU: the captured step does what ordinary calls do."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from survscore.models.architectures import DenseNet, TabularNet
from survscore.models.training import Examples, Schedule, Settings, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def trained(device, *, capture=True, dropout=0.0, n=1000, averaging=0.0, n_causes=1):
    rng = np.random.default_rng(0)
    encoded = rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, 4, (n, 1))
    examples = Examples.of(encoded, rng.integers(-1, n_causes + 1, (n, 4)).astype(np.int8), torch.device(device))
    torch.manual_seed(0)
    net = TabularNet(
        3, [3], 4 * n_causes, lambda a, b: DenseNet(a, b, n_layers=2, width=8, dropout=dropout, batch_norm=True)
    )
    settings = Settings(Schedule(rate=0.003), 64, 3, 1, 0.0, averaging=averaging, progress=False)
    history = train(net.to(device), examples, examples, replace(settings, capture=capture), seed=1)
    return history.to_frame(), torch.cat([weights.detach().cpu().reshape(-1) for weights in net.parameters()])


@pytest.mark.parametrize("n_causes", [1, 2])
@pytest.mark.parametrize("averaging", [0.0, 0.2])
@pytest.mark.parametrize("n", [1000, 1001, 64, 40])
def test_captured_steps_are_ordinary_steps(n, averaging, n_causes):
    settings = {"n": n, "averaging": averaging, "n_causes": n_causes}
    captured, ordinary = (trained("cuda", capture=capture, **settings) for capture in (True, False))
    torch.testing.assert_close(captured[1], ordinary[1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(captured[0]["train_loss"], ordinary[0]["train_loss"], rtol=1e-4)


def test_devices_agree():
    gpu, cpu = trained("cuda", averaging=0.2), trained("cpu", averaging=0.2)
    np.testing.assert_allclose(gpu[0]["validation_loss"], cpu[0]["validation_loss"], rtol=1e-2)


def test_same_seed_same_result_with_dropout():
    for n_causes in (1, 2):
        first, second = (trained("cuda", dropout=0.3, n_causes=n_causes)[1] for _ in range(2))
        assert torch.equal(first, second)


def test_scores_on_the_way_are_those_of_the_predictions():
    import survscore as ss

    rng = np.random.default_rng(0)
    X, event_time, end = rng.normal(size=(3000, 4)), rng.exponential(10, 3000), rng.uniform(1, 30, 3000)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    model = ss.models.LogisticHazard(n_times=20, epochs=3, device="cuda", random_state=0, progress=False)
    score = ss.models.ValidationScore(weighting="administrative")
    model.fit(X[:2000], y[:2000], validation=(X[2000:], y[2000:]), scores=score)
    expected = ss.brier_score(y[2000:], model.predict_curves(X[2000:]), weighting="administrative", errors=False)
    best = model.history_.to_frame()["validation_brier"][model.history_.best_epoch - 1]
    np.testing.assert_allclose(best, expected.integrated(nan="stop").value, rtol=1e-5)
    np.testing.assert_allclose(-model.score(X[2000:], y[2000:], weighting="administrative"), best, rtol=1e-5)


def test_scores_of_a_cause_on_the_way_are_those_of_the_predictions():
    import survscore as ss

    study = ss.simulate.CompetingRisksStudy()
    train, held_out = study.sample(2000, seed=1), study.sample(1000, seed=2)
    asked = {"weighting": "administrative", "times": [20.0, 40.0, 60.0], "cause": "churn"}
    model = ss.models.LogisticHazard(n_times=20, epochs=3, device="cuda", random_state=0, progress=False)
    model.fit(
        train.covariates, train.outcomes, validation=(held_out.covariates, held_out.outcomes),
        scores=ss.models.ValidationScore(**asked),
    )  # fmt: skip
    expected = ss.brier_score(held_out.outcomes, model.predict_curves(held_out.covariates), errors=False, **asked)
    best = model.history_.to_frame()["validation_brier"][model.history_.best_epoch - 1]
    np.testing.assert_allclose(best, expected.integrated().value, rtol=1e-5)
