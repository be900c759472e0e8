import warnings

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from estimator_cases import TIMES, sample, small_net

practical = pytest.importorskip("torchtuples").practical
models = pytest.importorskip("pycox.models")

X, Y = sample()
QUICK = {"epochs": 3, "batch_size": 64, "validation_share": 0, "random_state": 0}


def coxtime_net(n_inputs, n_outputs):
    return models.cox_time.MLPVanillaCoxTime(n_inputs, [4])


@pytest.mark.parametrize("name", ["LogisticHazard", "PMF", "MTLR", "DeepHitSingle", "BCESurv", "PCHazard"])
@pytest.mark.parametrize("times", [None, TIMES])
def test_models_with_a_grid(name, times):
    model = ss.adapters.Pycox(getattr(models, name), small_net, n_times=6, times=times, **QUICK).fit(X, Y)
    frame = model.estimator_.predict_surv_df(X.astype(np.float32))
    grid = frame.index.to_numpy(dtype=float)
    curves = model.set_params(times=None).predict_curves(X)
    np.testing.assert_array_equal(curves.times, grid)
    np.testing.assert_array_equal(curves.probabilities, frame.to_numpy().T)
    assert curves.interpolation == ("constant-hazard" if name == "PCHazard" else "linear")
    if times is not None:
        np.testing.assert_allclose(model.predict_survival_function(X, TIMES), curves.at(TIMES), atol=1e-6)


@pytest.mark.parametrize(("name", "net"), [("CoxPH", small_net), ("CoxCC", small_net), ("CoxTime", coxtime_net)])
def test_cox_models_have_step_functions_to_the_end_of_follow_up(name, net):
    model = ss.adapters.Pycox(getattr(models, name), net, **QUICK).fit(X, Y)
    curves = model.predict_curves(X[:5])
    assert curves.interpolation == "step"
    assert curves.times[-1] == pytest.approx(Y.time.max(), rel=1e-6)
    frame = model.estimator_.predict_surv_df(X[:5].astype(np.float32))
    np.testing.assert_allclose(curves.probabilities[:, : len(frame)], frame.to_numpy().T, rtol=1e-6)
    places = [np.flatnonzero(curves.times <= t)[-1] for t in TIMES]
    np.testing.assert_array_equal(model.predict_survival_function(X[:5], TIMES), curves.probabilities[:, places])


@pytest.mark.parametrize("name", ["LogisticHazard", "CoxCC"])
def test_the_same_seed_gives_the_same_model_and_leaves_random_numbers_alone(name):
    import torch

    torch.manual_seed(3)
    before, controls = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (ss.adapters.Pycox(getattr(models, name), small_net, **QUICK).fit(X, Y) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], controls)  # noqa: NPY002
    np.testing.assert_array_equal(first.predict_curves(X).probabilities, second.predict_curves(X).probabilities)
    frame = pd.DataFrame(X, columns=["a", "b"])
    np.testing.assert_array_equal(first.predict_curves(frame).probabilities, first.predict_curves(X).probabilities)


@pytest.mark.parametrize(
    ("settings", "n", "message"),
    [
        ({"estimator": "LogisticHazard"}, 100, "estimator must be the class of a pycox model, not str"),
        ({"validation_share": 1}, 100, "validation_share must be at least 0 and below 1"),
        ({}, 1, r"validation_share=0\.2 of 1 rows"),
    ],
)
def test_what_does_not_fit_is_named(settings, n, message):
    with pytest.raises(ss.InputError, match=message):
        ss.adapters.Pycox(**{"estimator": models.LogisticHazard, "net": small_net} | settings).fit(X[:n], Y[:n])


def larger_net(n_inputs, n_outputs):
    return practical.MLPVanilla(n_inputs, [16, 16], n_outputs)


@pytest.mark.parametrize("name", ["LogisticHazard", "CoxPH", "CoxCC", "DeepHitSingle", "PCHazard"])
def test_training_goes_on_until_the_validation_loss_stops_falling(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where torchtuples would leave its best weights
    covariates, outcomes = sample(400, seed=1)
    fitted = ss.adapters.Pycox(getattr(models, name), larger_net, random_state=0).fit(covariates, outcomes)
    losses = fitted.estimator_.log.to_pandas()["val_loss"]
    assert 10 < len(losses) < 500
    assert len(losses) - 1 - np.argmin(losses) == 10
    assert not list(tmp_path.iterdir())
    score = ss.brier_score(outcomes, fitted.predict_curves(covariates, TIMES), weighting="administrative").scores
    null = ss.models.KaplanMeier().fit(None, outcomes).predict_curves(covariates, TIMES)
    assert (score < ss.brier_score(outcomes, null, weighting="administrative").scores).all()


def test_training_that_ends_too_soon_says_so_and_nothing_else():
    short = ss.adapters.Pycox(models.LogisticHazard, small_net, epochs=2, random_state=0)
    with pytest.warns(UserWarning, match=r"after epochs=2 while the validation loss still fell.*give more epochs"):
        short.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # its curves are low from the first time on, as masses would be
        short.predict_curves(X)
