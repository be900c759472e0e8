"""Training on a GPU: the captured step does what ordinary calls do."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import survscore as ss
from survscore.models.architectures import DenseNet, TabularNet
from survscore.models.training import Examples, Schedule, Settings, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def fitted(device, *, capture=True, dropout=0.0, n=1000, averaging=0.0, n_causes=1):
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
    captured, ordinary = (fitted("cuda", capture=capture, **settings) for capture in (True, False))
    torch.testing.assert_close(captured[1], ordinary[1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(captured[0]["train_loss"], ordinary[0]["train_loss"], rtol=1e-4)


def test_devices_agree():
    gpu, cpu = fitted("cuda", averaging=0.2), fitted("cpu", averaging=0.2)
    np.testing.assert_allclose(gpu[0]["validation_loss"], cpu[0]["validation_loss"], rtol=1e-2)


def test_same_seed_same_result_with_dropout():
    for n_causes in (1, 2):
        first, second = (fitted("cuda", dropout=0.3, n_causes=n_causes)[1] for _ in range(2))
        assert torch.equal(first, second)


@pytest.mark.parametrize("cause", [None, "churn"])
def test_scores_on_the_way_are_those_of_the_predictions(cause):
    study = ss.simulate.ConstantHazardStudy() if cause is None else ss.simulate.CompetingRisksStudy()
    train, held_out = study.sample(2000, seed=1), study.sample(1000, seed=2)
    settings = {"weighting": "administrative", "times": [20.0, 40.0, 60.0], "cause": cause}
    model = ss.models.LogisticHazard(n_times=20, epochs=3, device="cuda", random_state=0, progress=False)
    validation, score = (held_out.covariates, held_out.outcomes), ss.models.ValidationScore(**settings)
    model.fit(train.covariates, train.outcomes, validation=validation, scores=score)
    expected = ss.brier_score(held_out.outcomes, model.predict_curves(held_out.covariates), errors=False, **settings)
    best = model.history_.to_frame()["validation_brier"][model.history_.best_epoch - 1]
    np.testing.assert_allclose(best, expected.integrated().value, rtol=1e-5)
