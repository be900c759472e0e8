"""The networks, and the compiled way through them against torch's own operations."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from survscore.models import _dense_kernels
from survscore.models.architectures import DenseNet, TabularNet


def make(n_inputs=5, n_outputs=3, **settings):
    torch.manual_seed(0)
    chosen = {"n_layers": 2, "width": 7, "dropout": 0.0, "batch_norm": True} | settings
    net = DenseNet(n_inputs, n_outputs, **chosen)
    with torch.no_grad():  # weights that batch norm starts with would hide mistakes
        for norm in (layer for layer in net if isinstance(layer, nn.BatchNorm1d)):
            norm.weight.uniform_(0.5, 2.0)
            norm.bias.normal_()
    return net


def test_blocks_are_linear_relu_batch_norm_dropout():
    kinds = [type(layer).__name__ for layer in make(dropout=0.1)]
    assert kinds == ["Linear", "ReLU", "BatchNorm1d", "Dropout"] * 2 + ["Linear"]
    assert [type(layer).__name__ for layer in make(n_layers=1, batch_norm=False)] == ["Linear", "ReLU", "Linear"]


def test_he_normal_weights():
    net = make(200, 3, n_layers=1, width=400)
    assert net[0].weight.std().item() == pytest.approx(math.sqrt(2 / 200), rel=0.02)
    assert net[0].bias.abs().max() == 0


def test_categories_are_embedded():
    torch.manual_seed(0)
    net = TabularNet(1, [9, 100], 2, nn.Linear)
    assert net.body.in_features == 1 + 3 + 10
    codes = torch.tensor([[0, 0], [9, 100]])
    assert net(torch.zeros(2, 1), codes).shape == (2, 2)
    assert net.embeddings[0].weight[0].abs().max() == 0


# The compiled way


@pytest.mark.parametrize("n", [2, 3, 64])
@pytest.mark.parametrize("layers", [1, 3])
def test_compiled_blocks_do_what_torch_does(n, layers):
    fast, plain = make(n_layers=layers), make(n_layers=layers)
    X = torch.randn(n, 5)
    inputs = [X.clone().requires_grad_() for _ in range(2)]
    outputs = fast.train()(inputs[0]), nn.Sequential.forward(plain.train(), inputs[1])
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-5)
    weights = torch.randn_like(outputs[0])
    for out in outputs:
        (out * weights).sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-3, atol=1e-4)
    for (name, got), expected in zip(fast.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(
            got.grad, expected.grad, rtol=1e-3, atol=1e-4, msg=lambda m, name=name: f"{name}: {m}"
        )
    for (name, got), expected in zip(fast.named_buffers(), plain.buffers(), strict=True):
        if not name.endswith("num_batches_tracked"):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


def test_way_back_through_dropout():
    rng = np.random.default_rng(0)
    x, gamma, beta = (rng.normal(size=shape).astype(np.float32) for shape in ((50, 9), 9, 9))
    mean, inverse = np.empty(9, np.float32), np.empty(9, np.float32)
    keep, out, rectified = np.empty_like(x), np.empty_like(x), x.copy()
    threshold = round(0.3 * _dense_kernels.DRAWS)
    running = np.zeros(9, np.float32), np.ones(9, np.float32)
    _dense_kernels.forward(rectified, gamma, beta, *running, 0.1, 1e-5, threshold, 7, keep, mean, inverse, out)
    reference = torch.tensor(x, requires_grad=True)
    weights = [torch.tensor(w, requires_grad=True) for w in (gamma, beta)]
    norm = nn.functional.batch_norm(torch.relu(reference), None, None, *weights, training=True)
    expected = norm * torch.from_numpy(keep)
    np.testing.assert_allclose(out, expected.detach(), rtol=1e-4, atol=1e-5)
    assert 0 < np.count_nonzero(keep == 0) < keep.size
    np.testing.assert_allclose(keep[keep > 0], 1 / (1 - threshold / _dense_kernels.DRAWS), rtol=1e-6)

    gradient = rng.normal(size=x.shape).astype(np.float32)
    expected.backward(torch.from_numpy(gradient.copy()))
    found = [np.empty(9, np.float32) for _ in range(3)]
    _dense_kernels.backward(gradient, rectified, gamma, keep, mean, inverse, *found)
    np.testing.assert_allclose(gradient, reference.grad, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[0], weights[0].grad, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], weights[1].grad, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[2], reference.grad.sum(axis=0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("width", [1, 3, 32, 33])
def test_dropout_leaves_units_out_at_random(width):
    """The share is right in every column, neighbours are independent, and seeds give different draws."""
    n = 40_000
    threshold = round(0.1 * _dense_kernels.DRAWS)
    draws = []
    for seed in (1, 2):
        x, keep, out = (np.ones((n, width), np.float32) for _ in range(3))
        columns = [np.ones(width, np.float32) for _ in range(6)]
        _dense_kernels.forward(x, *columns[:4], 0.1, 1e-5, threshold, seed, keep, *columns[4:], out)
        draws.append(keep == 0)
    spread = math.sqrt(0.1 * 0.9 / n)
    for dropped in draws:
        assert np.abs(dropped.mean(axis=0) - 0.1).max() < 5 * spread
        assert abs((dropped[1:] & dropped[:-1]).mean() - 0.01) < 5 * spread
        if width > 1:
            assert abs((dropped[:, 1:] & dropped[:, :-1]).mean() - 0.01) < 5 * spread
    assert abs((draws[0] & draws[1]).mean() - 0.01) < 5 * spread


def test_torchs_seed_decides_about_dropout():
    net, X = make(dropout=0.5).train(), torch.randn(30, 5)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(net(X))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_other_nets_go_the_plain_way(monkeypatch):
    monkeypatch.setattr(_dense_kernels, "forward", None)
    X = torch.randn(8, 5)
    for net, inputs in (
        (make(batch_norm=False).train(), X),
        (make().eval(), X),
        (make(n_layers=0).train(), X),
        (make().double().train(), X.double()),
    ):
        assert net(inputs).shape == (8, 3)
    with pytest.raises(TypeError):
        make().train()(X)
