"""Losses against a literal loop over the likelihood, gradients against finite differences."""

import math

import numpy as np
import pytest
import torch

from survscore.models.grid import hazard_labels, survival_labels
from survscore.models.losses import (
    binary_log_likelihood_loss,
    survival_from_hazards,
    survival_from_probabilities,
)

GRID = np.array([2.0, 4.0, 6.0, 8.0])
TIME = np.array([0.0, 1.0, 4.0, 4.0, 5.5, 8.0, 8.0, 9.0, 9.0])
EVENT = np.array([1, 0, 1, 0, 0, 1, 0, 1, 0], dtype=bool)


def sigmoid(z):
    return 1.0 / (1.0 + math.exp(-z))


def likelihood_of_discrete_times(logits):
    """Minus the log-likelihood, from P(event in interval j) and P(beyond interval j)."""
    total = 0.0
    for i in range(TIME.size):
        hazards = [sigmoid(z) for z in logits[i]]

        def beyond(j, hazards=hazards):
            return math.prod(1.0 - h for h in hazards[: j + 1])

        if EVENT[i] and TIME[i] <= GRID[-1]:
            j = min(k for k in range(GRID.size) if TIME[i] <= GRID[k])
            total -= math.log(hazards[j] * beyond(j - 1))
        else:
            survived = [k for k in range(GRID.size) if GRID[k] <= TIME[i]]
            total -= math.log(beyond(survived[-1])) if survived else 0.0
    return total / TIME.size


def loss_of_classifiers(logits):
    """eq:bce_loss_full, term by term."""
    total = 0.0
    for j, tau in enumerate(GRID):
        for i in range(TIME.size):
            pi = sigmoid(logits[i][j])
            total -= (TIME[i] > tau) * math.log(pi) + (TIME[i] <= tau and EVENT[i]) * math.log(1.0 - pi)
    return total / TIME.size


@pytest.mark.parametrize(
    ("labels", "literal"),
    [(hazard_labels, likelihood_of_discrete_times), (survival_labels, loss_of_classifiers)],
    ids=["logistic hazard", "bce"],
)
@pytest.mark.parametrize("seed", range(5))
def test_loss_and_gradient(labels, literal, seed):
    logits = np.random.default_rng(seed).normal(0.0, 2.0, (TIME.size, GRID.size))
    outputs = torch.tensor(logits, requires_grad=True)
    loss = binary_log_likelihood_loss(outputs, torch.from_numpy(labels(TIME, EVENT, GRID)))
    assert loss.item() == pytest.approx(literal(logits), rel=1e-12)
    loss.backward()
    step = 1e-6
    for i, j in np.ndindex(logits.shape):
        up, down = logits.copy(), logits.copy()
        up[i, j] += step
        down[i, j] -= step
        expected = (literal(up) - literal(down)) / (2 * step)
        assert outputs.grad[i, j].item() == pytest.approx(expected, abs=1e-8)


def test_extreme_logits_stay_finite():
    labels = torch.from_numpy(hazard_labels(TIME, EVENT, GRID))
    outputs = torch.full(labels.shape, 200.0, requires_grad=True)
    loss = binary_log_likelihood_loss(outputs, labels)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(outputs.grad).all()


def test_survival_from_outputs():
    logits = torch.tensor([[0.0, -1.0, 2.0]], dtype=torch.float64)
    hazards = torch.sigmoid(logits)
    torch.testing.assert_close(survival_from_hazards(logits), torch.cumprod(1 - hazards, dim=1))
    torch.testing.assert_close(survival_from_probabilities(logits), hazards)
