"""The networks: entity embeddings for categories, and a stack of dense layers behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from survscore._validation import InputError

#: Makes a net from its numbers of inputs and outputs.
NetFactory = Callable[[int, int], nn.Module]


class DenseNet(nn.Sequential):
    """`n_layers` blocks of linear layer, ReLU, batch norm and dropout, then a linear layer; He-normal weights."""

    def __init__(
        self, n_inputs: int, n_outputs: int, *, n_layers: int, width: int, dropout: float, batch_norm: bool
    ) -> None:
        layers: list[nn.Module] = []
        for size in [n_inputs, *[width] * (n_layers - 1)][:n_layers]:
            layers += [_he_normal(nn.Linear(size, width)), nn.ReLU()]
            layers += [nn.BatchNorm1d(width)] if batch_norm else []
            layers += [Dropout(dropout)] if dropout else []
        super().__init__(*layers, _he_normal(nn.Linear(width if n_layers else n_inputs, n_outputs)))


class Dropout(nn.Dropout):
    """Dropout that draws 16 bits per unit: on a processor, draws of their own for all units take longer than the rest.

    The share that is left out is rounded to a multiple of 1 / 65 536.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inputs, some of them 0 and the others larger."""
        if not self.training or inputs.device.type != "cpu":
            outputs: Tensor = super().forward(inputs)
            return outputs
        n = inputs.numel()
        draws = torch.empty(-(-n // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
        threshold = min(round(self.p * 2**16), 2**16 - 1) - 2**15  # of a signed number
        kept = (draws[:n].view(inputs.shape) >= threshold).to(inputs.dtype)
        return inputs * (kept / (1.0 - self.p))


class TabularNet(nn.Module):
    """A net for numbers and categories: each category becomes a learnt vector, and all go into the body together.

    `n_categories` are those of each categorical input, without the entry 0 for unknown ones.
    """

    def __init__(self, n_numbers: int, n_categories: Sequence[int], n_outputs: int, body: NetFactory) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(_embedding(n) for n in n_categories)
        n_inputs = n_numbers + sum(embedding_size(n) for n in n_categories)
        self.body = body(n_inputs, n_outputs)
        if not isinstance(self.body, DenseNet):
            _check_body(self.body, n_inputs, n_outputs)

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Return (n, outputs) from numbers (n, n_numbers) and codes of categories (n, categorical inputs)."""
        if len(self.embeddings):
            vectors = [embedding(codes[:, j]) for j, embedding in enumerate(self.embeddings)]
            numbers = torch.cat([numbers, *vectors], dim=1)
        outputs: Tensor = self.body(numbers)
        return outputs


def fill(net: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give a net without memory these tensors, which must be of the names, shapes and types it expects."""
    for name, expected in net.state_dict().items():
        if name in tensors and tensors[name].dtype != expected.dtype:
            raise ValueError(f"{name} is {tensors[name].dtype}, not {expected.dtype}")
        if name.endswith("running_var") and name in tensors and (tensors[name] < 0).any():
            raise ValueError(f"{name} holds negative variances")
    net.load_state_dict(tensors, assign=True)


def _check_body(body: Any, n_inputs: int, n_outputs: int) -> None:
    """Raise unless a user's net is one, and makes of two rows what is wanted of it."""
    if not isinstance(body, nn.Module):
        raise InputError(f"net must make a torch module, not {type(body).__name__}")
    meta = next((weights.device.type == "meta" for weights in body.parameters()), False)
    was_training = body.training
    try:
        with torch.inference_mode():
            made = body.eval()(torch.zeros(2, n_inputs, device="meta" if meta else "cpu"))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        raise InputError(f"net fails on 2 rows of {n_inputs} inputs: {str(error).splitlines()[0]}") from None
    finally:
        body.train(was_training)
    if not isinstance(made, Tensor) or made.shape != (2, n_outputs) or made.dtype != torch.float32:
        got = f"{tuple(made.shape)} {made.dtype}" if isinstance(made, Tensor) else type(made).__name__
        raise InputError(f"net must make (2, {n_outputs}) torch.float32 of 2 rows of {n_inputs} inputs, not {got}")


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
