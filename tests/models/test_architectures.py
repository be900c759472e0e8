"""The networks."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from survscore.models.architectures import DenseNet, Dropout, TabularNet


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


# Dropout


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("width", [1, 3, 32, 33])
def test_dropout_leaves_units_out_at_random(width, share):
    """The share is right in every column, neighbours are independent, and seeds give different draws."""
    n = 40_000
    dropped = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        out = Dropout(share)(torch.ones(n, width))
        np.testing.assert_allclose(out[out > 0], 1 / (1 - share), rtol=1e-6)
        dropped.append((out == 0).numpy())
    both, spread = share**2, math.sqrt(share * (1 - share) / n)
    for one in dropped:
        assert np.abs(one.mean(axis=0) - share).max() < 5 * spread
        assert abs((one[1:] & one[:-1]).mean() - both) < 5 * spread
        if width > 1:
            assert abs((one[:, 1:] & one[:, :-1]).mean() - both) < 5 * spread
    assert abs((dropped[0] & dropped[1]).mean() - both) < 5 * spread


def test_gradients_pass_where_units_were_kept():
    inputs = torch.ones(50, 9, requires_grad=True)
    out = Dropout(0.3)(inputs)
    out.sum().backward()
    torch.testing.assert_close(inputs.grad, out.detach())
