"""Losses against a literal loop over the likelihood, gradients against finite differences."""

import math

import numpy as np
import pytest
import torch

import survscore as ss
from survscore.models.grid import hazard_labels, survival_labels
from survscore.models.losses import (
    incidence_from_hazards,
    log_likelihood_loss,
    survival_from_hazards,
    survival_from_probabilities,
)

GRID = np.array([2.0, 4.0, 6.0, 8.0])
TIME = np.array([0.0, 1.0, 4.0, 4.0, 5.5, 8.0, 8.0, 9.0, 9.0, 6.5])
CAUSE = np.array([1, 0, 2, 0, 0, 2, 0, 3, 0, 3], dtype=np.int8)
EVENT = CAUSE > 0


def of_hazards(cause):
    """Return minus the log-likelihood of each individual's cause in its interval, and of none in those before."""

    def loss(logits):
        total = 0.0
        for i in range(TIME.size):
            for j, end in enumerate(GRID):
                odds = [math.exp(z) for z in logits[i, :, j]]
                start = 0.0 if j == 0 else GRID[j - 1]
                if cause[i] > 0 and (start < TIME[i] <= end or (j == 0 and TIME[i] == 0)):
                    total -= math.log(odds[cause[i] - 1] / (1 + sum(odds)))
                elif TIME[i] >= end:
                    total -= math.log(1 / (1 + sum(odds)))
        return total / TIME.size

    return loss


def of_classifiers(logits):
    """eq:bce_loss_full, term by term."""
    total = 0.0
    for j, tau in enumerate(GRID):
        for i in range(TIME.size):
            pi = 1.0 / (1.0 + math.exp(-logits[i, 0, j]))
            total -= (TIME[i] > tau) * math.log(pi) + (TIME[i] <= tau and EVENT[i]) * math.log(1.0 - pi)
    return total / TIME.size


CASES = {
    "logistic hazard": (hazard_labels(TIME, EVENT, GRID), 1, of_hazards(EVENT.astype(int))),
    "causes": (hazard_labels(TIME, CAUSE, GRID), 3, of_hazards(CAUSE)),
    "bce": (survival_labels(TIME, EVENT, GRID), 1, of_classifiers),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient(case, seed):
    labels, n_causes, literal = CASES[case]
    logits = np.random.default_rng(seed).normal(0.0, 2.0, (TIME.size, n_causes, GRID.size))
    outputs = torch.tensor(logits.reshape(TIME.size, -1), requires_grad=True)
    loss = log_likelihood_loss(outputs, torch.from_numpy(labels))
    assert loss.item() == pytest.approx(literal(logits), rel=1e-12)
    loss.backward()
    for place in np.ndindex(logits.shape):
        up, down = logits.copy(), logits.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        expected = (literal(up) - literal(down)) / 2e-6
        assert outputs.grad.reshape(logits.shape)[place].item() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("value", [-200.0, 200.0])
def test_extreme_logits_stay_finite(case, value):
    labels, n_causes, _ = CASES[case]
    outputs = torch.full((TIME.size, n_causes * GRID.size), value, requires_grad=True)
    loss = log_likelihood_loss(outputs, torch.from_numpy(labels))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(outputs.grad).all()


def test_survival_from_outputs():
    logits = torch.tensor([[0.0, -1.0, 2.0]], dtype=torch.float64)
    hazards = torch.sigmoid(logits)
    torch.testing.assert_close(survival_from_hazards(logits), torch.cumprod(1 - hazards, dim=1))
    torch.testing.assert_close(survival_from_probabilities(logits), hazards)


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
