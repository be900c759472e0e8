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
    """Blocks of linear layer, ReLU, batch norm and dropout, then a linear layer; He-normal weights.

    Training on a processor takes the compiled way through blocks with batch norm (see `_dense_kernels`), which does the
    same with other random numbers.

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
        self._dropout = dropout
        self._norms = [layer for layer in self if isinstance(layer, nn.BatchNorm1d)]
        self._linear = [layer for layer in self if isinstance(layer, nn.Linear)]

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs, (n, n_outputs)."""
        compiled = self.training and self._norms and inputs.device.type == "cpu" and inputs.dtype == torch.float32
        if not compiled:
            outputs: Tensor = super().forward(inputs)  # type: ignore[no-untyped-call]
            return outputs
        weights: list[Tensor] = []
        for linear, norm in zip(self._linear, self._norms, strict=False):
            weights += [linear.weight, linear.bias, norm.weight, norm.bias]
        hidden: Tensor = _CompiledBlocks.apply(inputs, self._dropout, self._norms, *weights)  # type: ignore[no-untyped-call]
        last: Tensor = self._linear[-1](hidden)
        return last


class _CompiledBlocks(torch.autograd.Function):
    """All blocks of a `DenseNet` as one operation, with the way back written out."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropout: float, norms: list[nn.BatchNorm1d], *weights: Tensor) -> Tensor:
        from survscore.models import _dense_kernels

        seeds = torch.randint(0, 2**62, (len(norms),)).tolist()
        threshold = min(round(dropout * _dense_kernels.DRAWS), _dense_kernels.DRAWS - 1)
        kept = []
        for k, norm in enumerate(norms):
            weight, bias, gamma, beta = weights[4 * k : 4 * k + 4]
            h = torch.addmm(bias, x, weight.t())
            out, keep, mean, inverse = (torch.empty_like(like) for like in (h, h, gamma, gamma))
            _dense_kernels.forward(
                h.numpy(), gamma.detach().numpy(), beta.detach().numpy(),
                norm.running_mean.numpy(), norm.running_var.numpy(), norm.momentum, norm.eps,  # type: ignore[union-attr]
                threshold, seeds[k], keep.numpy(), mean.numpy(), inverse.numpy(), out.numpy(),
            )  # fmt: skip
            kept.append((x, h, keep, mean, inverse))
            x = out
        ctx.kept, ctx.weights = kept, weights
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from survscore.models import _dense_kernels

        gradients: list[Tensor] = []
        gradient = gradient.clone()  # the kernel writes over it, and autograd may need it elsewhere
        for k in reversed(range(len(ctx.kept))):
            x, h, keep, mean, inverse = ctx.kept[k]
            weight, _, gamma, _ = ctx.weights[4 * k : 4 * k + 4]
            d_gamma, d_beta, d_bias = (torch.empty_like(mean) for _ in range(3))
            _dense_kernels.backward(
                gradient.numpy(), h.numpy(), gamma.detach().numpy(), keep.numpy(), mean.numpy(), inverse.numpy(),
                d_gamma.numpy(), d_beta.numpy(), d_bias.numpy(),
            )  # fmt: skip
            gradients = [gradient.t().mm(x), d_bias, d_gamma, d_beta, *gradients]
            if k or ctx.needs_input_grad[0]:
                gradient = gradient.mm(weight)
        return (gradient if ctx.needs_input_grad[0] else None, None, None, *gradients)


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
