"""What the networks minimise, and how their outputs become survival; pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def binary_log_likelihood_loss(logits: Tensor, labels: Tensor) -> Tensor:
    r"""Return minus the log-likelihood of all labels that are known, per individual.

    With :math:`p_{ij} = 1 / (1 + e^{-z_{ij}})` the probability of the label 1,

    .. math::

        -\frac1n \sum_i \sum_j \left[1\{y_{ij} = 1\} \log p_{ij} + 1\{y_{ij} = -1\} \log(1 - p_{ij})\right]
        = \frac1n \sum_i \sum_{j: y_{ij} \ne 0} \log\left(1 + e^{-y_{ij} z_{ij}}\right)

    For the labels of `grid.hazard_labels` this is the negative log-likelihood of right-censored discrete event times,
    the loss of Logistic-Hazard; for those of `grid.survival_labels` it is eq:bce_loss_full.

    Parameters
    ----------
    logits : Tensor of shape (n, m)
        The net's outputs :math:`z`.
    labels : Tensor of shape (n, m)
        1, -1, or 0 where the label isn't known.

    Returns
    -------
    Tensor
        A scalar.
    """
    labels = labels.to(logits.dtype)
    return (softplus(-(labels * logits)) * labels.abs()).sum() / logits.shape[0]


def survival_from_hazards(logits: Tensor) -> Tensor:
    r"""Return :math:`S(t_j) = \prod_{k \le j} (1 - h_k)` for hazards with these logits."""
    return torch.cumprod(torch.sigmoid(-logits), dim=1)


def survival_from_probabilities(logits: Tensor) -> Tensor:
    r"""Return :math:`\pi(\tau_j)` for survival probabilities with these logits."""
    return torch.sigmoid(logits)
