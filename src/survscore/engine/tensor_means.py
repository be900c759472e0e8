"""Everybody's means over time on a device: asked for one by one, and made two at a time, since both read all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from survscore.engine import _triton_means
from survscore.engine.moments import ScoredLoss
from survscore.engine.tensor_kernels import KERNELS, Predicted, Vectors, epsilon_of, on_device, on_rows
from survscore.engine.tensors import Tensor, on
from survscore.metrics import Loss

#: Of one warp, by how many means are made: enough for what is common to rows, few enough to stay in the cache.
ROWS_PER_PROGRAM = {1: 64, 2: 128}
WORDS_PER_STEP = 5
BYTES_PER_WORD = 8
KINDS = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32, torch.float64: tl.float64}


@dataclass(eq=False)
class Made:
    """The sum of everybody's squared means over time, and, if asked for, the means and their second stretches."""

    squares: Tensor
    of_rows: list[Tensor]

    def taken(self) -> list[Tensor]:
        """Return the means, whole and of the second stretch, and give their memory away."""
        of_rows, self.of_rows = self.of_rows, []
        return of_rows


@dataclass(frozen=True, eq=False)
class Asked:
    r"""A mean over time of everybody's deviations: one model and loss under one weighting.

    With weights of the times :math:`a(t)`, it is :math:`\sum_t a(t) w_i(t) [\ell_i(t) - s(t)] / \sum_k w_k(t)`. What s
    takes off depends on where the stretches end alone, so it is summed over the times beforehand.

    Attributes
    ----------
    columns : Tensor of shape (4, columns)
        What losses are multiplied by in the first and second stretch, and what is taken off there, summed over all
        columns before each; see `_triton_means.row_means`.
    plain : bool
        Whether everybody has weight 1 in both stretches, so that these need not be told apart.
    stores : bool
        Whether everybody's means are wanted.
    """

    predicted: Predicted
    loss: Loss
    label: Tensor
    vectors: Vectors
    n_columns: int
    columns: Tensor
    plain: bool
    stores: bool

    @classmethod
    def of(cls, predicted: Predicted, scored: ScoredLoss, average: NDArray[np.float64], *, stores: bool) -> Asked:
        """Take the first model's mean over time with these weights of the times."""
        stretches, m = scored.stretches, average.size
        first_weight = stretches.first_weight
        if first_weight is None:
            raise TypeError("means over time need weights common to all in the first stretch")
        of_late = average * scored.scale
        of_early = of_late * first_weight
        columns = np.zeros((4, 2 * (m // 2 + 1 + WORDS_PER_STEP * BYTES_PER_WORD)))  # a column is a byte or more
        for place, factor in enumerate((of_early, of_late)):
            columns[place, :m] = factor
            columns[2 + place, 1 : m + 1] = np.cumsum(factor * scored.centre[0])
        vectors = Vectors.of(stretches)
        plain = not stores and vectors.one and bool((first_weight == 1.0).all())
        label = on_rows(stretches.label, slice(None))
        return cls(predicted, scored.loss, label, vectors, m, on(label.device, columns), plain, stores)

    def goes_with(self, other: Asked) -> bool:
        """Whether both can be made at once; the means of one weighting take memory enough."""
        same = self.predicted.matrix is other.predicted.matrix and self.predicted.lower is other.predicted.lower
        return same and self.loss == other.loss and not (self.stores and other.stores)

    def empty(self, n_programs: int) -> Made:
        """Return where the results go."""
        n, device = len(self.label), self.label.device
        of_rows = [torch.empty(n * self.stores, dtype=torch.float64, device=device) for _ in range(2)]
        return Made(torch.empty(n_programs, dtype=torch.float64, device=device), of_rows)

    def arguments(self, made: Made) -> tuple[Tensor, ...]:
        """Return what the kernel takes."""
        return (*self.vectors.arguments, *self.columns, *made.of_rows, made.squares)

    def settings(self, name: str) -> dict[str, bool]:
        """Return what the kernel knows beforehand."""
        known = {"ALL_LAST": self.vectors.all_last, "ONE": self.vectors.one, "PLAIN": self.plain, "STORES": self.stores}
        return {f"{key}_{name}": value for key, value in known.items()}


class MeansOfRows:
    """What was asked for and is not made yet, and what is to follow."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Asked, Callable[[Made], None]]] = []

    def ask(self, asked: Asked, follow: Callable[[Made], None]) -> None:
        """Ask for means and for what is to follow, which both start now if another waits that goes with them."""
        partner = next((one for one in self._waiting if asked.goes_with(one[0])), None)
        self._waiting.append((asked, follow))
        if partner is not None:
            self._make([self._waiting[-1], partner])

    def make(self) -> None:
        """Make all that still wait, each by itself."""
        while self._waiting:
            self._make(self._waiting[:1])

    def _make(self, some: list[tuple[Asked, Callable[[Made], None]]]) -> None:
        self._waiting = [one for one in self._waiting if one not in some]
        made = row_means([asked for asked, _ in some])
        while some:  # the memory of each is free before the next
            some.pop()[1](made.pop())


def row_means(both: Sequence[Asked]) -> list[Made]:
    """Start the kernel for one mean over time or two."""
    a, b = both[0], both[-1]
    predicted, n, device = a.predicted, len(a.label), a.label.device
    words, first_word, per_word = _in_words(predicted)
    size = ROWS_PER_PROGRAM[len(both)]
    n_programs = triton.cdiv(n, size)
    made = [one.empty(n_programs) for one in both]
    with on_device(device):
        _triton_means.row_means[(n_programs,)](
            words, words.shape[1], first_word, predicted.matrix.shape[1], predicted.lower, predicted.mix,
            epsilon_of(a.loss, device), a.label, n, a.n_columns, *a.arguments(made[0]), *b.arguments(made[-1]),
            DIRECT=predicted.direct, LOSS=KERNELS[type(a.loss)], TWO=len(both) == 2, **a.settings("A"),
            **b.settings("B"), KIND=KINDS[predicted.matrix.dtype], PER_WORD=per_word, WORDS=WORDS_PER_STEP,
            SIZE=size, num_warps=1,
        )  # fmt: skip
    return [Made(one.squares.sum(), one.taken()) for one in made]


def _in_words(predicted: Predicted) -> tuple[Any, int, int]:
    """Return predictions as words of 8 bytes, the first that is read, and how many columns a word has; or as columns.

    Rows and what is read of them have to begin with a word.
    """
    matrix, first = predicted.matrix, predicted.first_column
    per_word = BYTES_PER_WORD // matrix.element_size()
    if not predicted.direct:
        return matrix, 0, 1
    begins = [matrix.shape[1], matrix.storage_offset(), first]
    if per_word == 1 or matrix.data_ptr() % BYTES_PER_WORD or any(place % per_word for place in begins):
        return matrix, first, 1
    return matrix.view(torch.int64), first // per_word, per_word
