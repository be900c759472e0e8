import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import survscore as ss
from estimator_cases import TIMES, sample

torch = pytest.importorskip("torch")

X, Y = sample()


@pytest.fixture
def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 3))


def outputs(net):
    with torch.no_grad():
        return net.eval()(torch.tensor(X, dtype=torch.float32)).double().numpy()


def test_logits_of_hazards(net):
    net.train()
    survival = ss.adapters.TorchModule(net, TIMES, output="hazard_logits").predict(X)
    assert net.training  # as it was, though dropout was off
    hazards = 1 / (1 + np.exp(-outputs(net)))
    np.testing.assert_allclose(survival, np.cumprod(1 - hazards, axis=1), rtol=1e-6)


def test_hazards_survival_and_its_logits(net):
    class Sigmoid(torch.nn.Module):
        def forward(self, x):
            return net(x).sigmoid()

    hazards = 1 / (1 + np.exp(-outputs(net)))
    by_hazards = ss.adapters.TorchModule(Sigmoid().eval(), TIMES, output="hazards").predict(X)
    np.testing.assert_allclose(by_hazards, np.cumprod(1 - hazards, axis=1), rtol=1e-5)
    direct = ss.adapters.TorchModule(Sigmoid(), TIMES, monotone="keep").predict(X)
    np.testing.assert_allclose(direct, hazards, rtol=1e-5)
    logits = ss.adapters.TorchModule(net, TIMES, output="survival_logits", monotone="keep").predict(X)
    np.testing.assert_allclose(logits, hazards, rtol=1e-5)


def test_batches_frames_tensors_and_other_times(net):
    model = ss.adapters.TorchModule(net, TIMES, output="hazard_logits")
    whole = model.predict(X)
    np.testing.assert_allclose(clone(model).set_params(batch_size=7).predict(X), whole, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X)), whole)
    np.testing.assert_array_equal(model.predict(torch.tensor(X)), whole)
    np.testing.assert_allclose(model.predict_survival_function(X, [3.0])[:, 0], whole[:, :2].mean(axis=1), rtol=1e-6)
    with pytest.raises(ss.InputError, match="they end at 9, its grid at 6"):
        model.predict_curves(X, [9])


def test_it_is_scored_and_not_fitted(net):
    model = ss.adapters.TorchModule(net, TIMES, output="hazard_logits")
    scorer = ss.make_scorer("brier", weighting="administrative", times=TIMES)
    assert scorer(model, X, Y) < 0
    with pytest.raises(ss.InputError, match="can't be fitted"):
        model.fit(X, Y)
    with pytest.raises(ss.InputError, match="estimator 'net' failed in fold 0: InputError: a TorchModule is taken"):
        ss.cross_validate({"net": model}, X, Y, weighting="administrative")
    with pytest.raises(ss.InputError, match="output must be one of"):
        ss.adapters.TorchModule(net, TIMES, output="risk").predict_curves(X)
