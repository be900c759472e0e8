r"""What estimating G adds to the variances of means over time, from everybody's means, by exit.

With :math:`a_i` an individual's mean over time, :math:`M(s)` what moves with the factor of G at s, :math:`q_s` who
leave of :math:`r_s`, the variance is :math:`\sum_i a_i^2` and, where G was estimated from the same individuals,

.. math:: \sum_s \frac{q_s M(s)^2}{r_s (r_s - q_s)} + 2 \sum_{i\ left} \frac{a_i M(T_i)}{r_{T_i}}
    - 2 \sum_s \frac{q_s M(s)}{r_s (r_s - q_s)} \sum_{T_i > s} a_i.

The first sum alone, where it was estimated from others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton

from survscore._utils import arrays as _arrays
from survscore._utils.tensor_loops import take
from survscore.censoring.nuisance import Here, Nuisance
from survscore.censoring.product_limit import InOrder
from survscore.engine import _triton_exits
from survscore.engine.tensor_kernels import on_device
from survscore.engine.tensors import Tensor, on

SIZE = 1024  # of what a program adds up


class ByExit:
    """The exits of a curve of G on a device, and which of the evaluation times come after each."""

    def __init__(self, nuisance: Nuisance, times: Any, device: Any) -> None:
        self.nuisance, self.device = nuisance, device
        self.n_exits = len(nuisance.curve.times)
        self.reached = on(device, nuisance.reached(times).astype(np.int32))
        self.own = nuisance.curve.in_order(nuisance.time)
        self.one_exit = _arrays.is_repeated(nuisance.curve.exits)  # one at each time

    def added(self, early: list[Tensor], means: list[Tensor]) -> Tensor:
        """Return what is added to a mean over time, for two models and their difference (or one model).

        Parameters
        ----------
        early : list of Tensor, (times,) each
            For each model what those in their first stretch move, at each evaluation time.
        means : list
            Everybody's means, whole and in the second stretch, (models, individuals) each; used up, to save memory.
        """
        n_models = len(early)
        n_results = 3 if n_models == 2 else 1
        if self.n_exits == 0:
            return early[0].new_zeros(n_results)
        late = means.pop()
        sums = [self._after(one) for one in late]
        del late
        moved = [torch.empty(self.n_exits, dtype=torch.float64, device=self.device) for _ in early]
        two, exits = n_models == 2, (self.nuisance.curve.exits, self.nuisance.curve.at_risk)
        rest = [torch.cat((one.flip(0).cumsum(0).flip(0), one.new_zeros(1))) for one in early]
        total = self._start(
            _triton_exits.move_exits, self.n_exits, *exits, sums[0], sums[-1], rest[0], rest[-1], self.reached,
            len(self.reached), self.n_exits, moved[0], moved[-1], OWN=self.own is not None, ONE=self.one_exit, TWO=two,
        )  # fmt: skip
        del sums
        if isinstance(self.nuisance, Here):
            own = self._in_order()
            sums = [take(one, own.positions) for one in means.pop()]
            n, stayed = len(sums[0]), on(self.device, self.nuisance.stayed)
            total = total + 2.0 * self._start(
                _triton_exits.own_exits, n, stayed.view(torch.int8), own.positions, own.exits_before, exits[1], sums[0],
                sums[-1], moved[0], moved[-1], n, TWO=two,
            )  # fmt: skip
            sums = [one.cumsum_(0) for one in sums]
            total = total - 2.0 * self._start(
                _triton_exits.cross_exits, self.n_exits, *exits, sums[0], sums[-1], moved[0], moved[-1], self.n_exits,
                ONE=self.one_exit, TWO=two,
            )  # fmt: skip
        return total[:n_results]

    def _in_order(self) -> InOrder:
        """Return the individuals of whom G was estimated."""
        if self.own is None:
            raise TypeError("a curve of the scored individuals knows their order")
        return self.own

    def _start(self, kernel: Any, n: int, *arguments: Any, **settings: Any) -> Tensor:
        """Run a kernel over so many, and return what its programs added up."""
        n_programs = triton.cdiv(n, SIZE)
        out = torch.zeros((n_programs, 3), dtype=torch.float64, device=self.device)
        with on_device(self.device):
            kernel[(n_programs,)](*arguments, out, SIZE=SIZE, num_warps=4, **settings)
        return out.sum(dim=0)

    def _after(self, values: Tensor) -> Tensor:
        """Return running sums from the latest time on, or of others sums over all who come after each exit."""
        if self.own is not None:
            in_order: Tensor = take(values, self.own.positions)
            return in_order.cumsum_(0)
        before: Any = self.nuisance.exits_before
        table = values.new_zeros(self.n_exits + 1).index_add_(0, before, values)
        return table.flip(0).cumsum(0).flip(0)[1:].contiguous()
