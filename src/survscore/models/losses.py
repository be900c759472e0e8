"""What the networks minimise, and how their outputs become survival; pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def log_likelihood_loss(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return minus the log-likelihood of binary labels, or of causes where each has an output per grid time."""
    several = logits.shape[1] > labels.shape[1]
    loss = cause_log_likelihood_loss if several else binary_log_likelihood_loss
    return loss(logits, labels, weights)


def _per_individual(each: Tensor, weights: Tensor | None) -> Tensor:
    return (each if weights is None else each * weights.unsqueeze(1)).sum() / each.shape[0]


def binary_log_likelihood_loss(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return minus the log-likelihood of all labels that are known, per individual.

    With :math:`p_{ij} = 1 / (1 + e^{-z_{ij}})` the probability of the label 1,

    .. math::

        -\frac1n \sum_i \sum_j \left[1\{y_{ij} = 1\} \log p_{ij} + 1\{y_{ij} = -1\} \log(1 - p_{ij})\right]
        = \frac1n \sum_i \sum_{j: y_{ij} \ne 0} \log\left(1 + e^{-y_{ij} z_{ij}}\right)

    For the labels of `grid.hazard_labels` this is the negative log-likelihood of right-censored discrete event times,
    the loss of Logistic-Hazard; for those of `grid.survival_labels` it is eq:bce_loss_full. Labels, (n, m), are 0
    where they aren't known; weights, one on average, are factors of each individual's part.
    """
    labels = labels.to(logits.dtype)
    return _per_individual(softplus(-(labels * logits)) * labels.abs(), weights)


def cause_log_likelihood_loss(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return minus the log-likelihood of the causes in all intervals that are known, per individual.

    With :math:`p_{ijk} = e^{z_{ijk}} / (1 + \sum_l e^{z_{ijl}})` the probability of an event of cause k in interval j,
    and :math:`p_{ij0}` that of none,

    .. math::

        -\frac1n \sum_i \sum_{j: y_{ij} \ne 0} \left[1\{y_{ij} = -1\} \log p_{ij0}
            + \sum_k 1\{y_{ij} = k\} \log p_{ijk}\right]

    which with one cause is `binary_log_likelihood_loss`. Logits, (n, K m), are those of all times of the first cause,
    then of the second, and so on; labels, (n, m), the number of the cause, -1 without event, or 0 where not known.
    """
    z = _by_cause(logits, labels.shape[1])
    of_label = z.gather(1, labels.clamp(min=1).long().unsqueeze(1) - 1).squeeze(1)
    each = softplus(z.logsumexp(dim=1)) - of_label * (labels > 0)
    return _per_individual(each * (labels != 0), weights)


def _by_cause(logits: Tensor, n_times: int) -> Tensor:
    """Return outputs as (n, causes, times)."""
    return logits.view(logits.shape[0], -1, n_times)


def survival_from_hazards(logits: Tensor) -> Tensor:
    r"""Return :math:`S(t_j) = \prod_{k \le j} (1 - h_k)` for hazards with these logits."""
    return torch.cumprod(torch.sigmoid(-logits), dim=1)


def survival_from_probabilities(logits: Tensor) -> Tensor:
    r"""Return :math:`\pi(\tau_j)` for survival probabilities with these logits."""
    return torch.sigmoid(logits)


def incidence_from_hazards(logits: Tensor, n_times: int) -> Tensor:
    r"""Return :math:`F_k(t_j) = \sum_{l \le j} p_{lk} \prod_{i < l} p_{i0}`, (n, K, m), for causes with these logits.

    Sums are in double precision, so that the incidences and survival add up to 1 as nearly as numbers of the logits'
    precision can.
    """
    z = _by_cause(logits, n_times).double()
    p = torch.softmax(torch.cat((torch.zeros_like(z[:, :1]), z), dim=1), dim=1)
    event_free = torch.cumprod(p[:, :1], dim=2)
    before = torch.cat((torch.ones_like(event_free[:, :, :1]), event_free[:, :, :-1]), dim=2)
    return torch.cumsum(p[:, 1:] * before, dim=2).to(logits.dtype)
