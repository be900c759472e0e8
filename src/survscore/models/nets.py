"""The networks: entity embeddings for categories, and a stack of dense layers behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

#: Makes a net from its numbers of inputs and outputs.
NetFactory = Callable[[int, int], nn.Module]


class DenseNet(nn.Sequential):
    """Blocks of linear layer, ReLU, batch norm and dropout, then a linear layer; He-normal weights.

    Parameters
    ----------
    n_inputs, n_outputs : int
        Sizes.
    n_layers, width : int
        Number of blocks, and of units in each.
    dropout : float
        Share of units that is left out in training.
    batch_norm : bool
        Whether to have batch norm.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, n_layers: int, width: int, dropout: float, batch_norm: bool
    ) -> None:
        layers: list[nn.Module] = []
        for size in [n_inputs, *[width] * (n_layers - 1)][:n_layers]:
            layers += [_he_normal(nn.Linear(size, width)), nn.ReLU()]
            layers += [nn.BatchNorm1d(width)] if batch_norm else []
            layers += [nn.Dropout(dropout)] if dropout else []
        super().__init__(*layers, _he_normal(nn.Linear(width if n_layers else n_inputs, n_outputs)))

    @torch.no_grad()
    def start_at(self, shares: Tensor) -> None:
        """Let the outputs start at the logits of these probabilities, so that training need not find the level."""
        last = self[-1]
        if not isinstance(last, nn.Linear):
            raise TypeError("the last layer is linear")
        last.bias.copy_(torch.logit(shares))


class TabularNet(nn.Module):
    """A net for numbers and categories: each category becomes a learnt vector, and all go into the body together.

    Parameters
    ----------
    n_numbers : int
        Number of numeric inputs.
    n_categories : sequence of int
        For each categorical input the number of its categories, without the entry 0 for unknown ones.
    n_outputs : int
        Number of outputs.
    body : callable
        Makes the net behind, from its numbers of inputs and outputs.
    """

    def __init__(self, n_numbers: int, n_categories: Sequence[int], n_outputs: int, body: NetFactory) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(_embedding(n) for n in n_categories)
        self.body = body(n_numbers + sum(embedding_size(n) for n in n_categories), n_outputs)

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Return (n, outputs) from numbers (n, n_numbers) and codes of categories (n, categorical inputs)."""
        if len(self.embeddings):
            vectors = [embedding(codes[:, j]) for j, embedding in enumerate(self.embeddings)]
            numbers = torch.cat([numbers, *vectors], dim=1)
        outputs: Tensor = self.body(numbers)
        return outputs


def embedding_size(n_categories: int) -> int:
    """Return about the square root of the number of categories."""
    return max(1, round(math.sqrt(n_categories)))


def _embedding(n_categories: int) -> nn.Embedding:
    embedding = nn.Embedding(n_categories + 1, embedding_size(n_categories))
    with torch.no_grad():
        embedding.weight[0] = 0.0  # an unknown category starts, and stays if there is none in training, in the middle
    return embedding


def _he_normal(layer: nn.Linear) -> nn.Linear:
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer
