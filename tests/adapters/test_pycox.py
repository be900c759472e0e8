import numpy as np
import pandas as pd
import pytest

import survscore as ss
from estimator_cases import TIMES, sample, small_net

pytest.importorskip("torchtuples")
models = pytest.importorskip("pycox.models")

X, Y = sample()
QUICK = {"epochs": 3, "batch_size": 64, "random_state": 0}


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


def test_the_same_seed_gives_the_same_model_and_leaves_torch_alone():
    import torch

    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, second = (ss.adapters.Pycox(models.LogisticHazard, small_net, **QUICK).fit(X, Y) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(first.predict_curves(X).probabilities, second.predict_curves(X).probabilities)
    frame = pd.DataFrame(X, columns=["a", "b"])
    np.testing.assert_array_equal(first.predict_curves(frame).probabilities, first.predict_curves(X).probabilities)


def test_an_optimizer_is_used_and_not_changed():
    import torchtuples

    fast, slow = torchtuples.optim.Adam(0.1), torchtuples.optim.Adam(1e-9)
    before = dict(vars(fast))
    found = [
        ss.adapters.Pycox(models.LogisticHazard, small_net, optimizer=one, **QUICK).fit(X, Y).predict_curves(X)
        for one in (fast, slow)
    ]
    assert not np.allclose(found[0].probabilities, found[1].probabilities, atol=0.01)
    assert vars(fast) == before


def test_what_does_not_fit_is_named():
    with pytest.raises(ss.InputError, match="estimator must be the class of a pycox model, not str"):
        ss.adapters.Pycox("LogisticHazard", small_net).fit(X, Y)
    with pytest.raises(ss.InputError, match="epochs must be a whole number of at least 1"):
        ss.adapters.Pycox(models.LogisticHazard, small_net, epochs=0).fit(X, Y)
