"""What runs the sums over individuals: NumPy or compiled loops in the processor's memory, or torch on a device.

A backend turns what an `Evaluation` has prepared into numbers in the processor's memory. It is chosen once per
evaluation: by where the predictions live, by `survscore.config`, and by size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._utils import arrays as _arrays
from survscore._utils.parallel import each
from survscore.curves import SurvivalCurves
from survscore.engine import sums as numpy_backend
from survscore.engine.blocks import Block, Models
from survscore.engine.bounds import AllBounds, bounds_of
from survscore.engine.influence import by_influence
from survscore.engine.moments import Moments, ScoredLoss
from survscore.engine.pooled import PooledRequest, PooledValues, Visit, evaluate_pooled
from survscore.engine.sums import Sums
from survscore.inference.units import Groups, Units, still_counted
from survscore.metrics import Loss
from survscore.weighting.stretches import Stretches, TimeIndex

Values = NDArray[np.float64]


class Backend(ABC):
    """What an evaluation asks for."""

    @abstractmethod
    def sums(
        self,
        models: Models,
        index: TimeIndex,
        losses: Sequence[Loss],
        stretches: Sequence[Stretches],
        *,
        ahead: int = 0,
    ) -> Sums:
        """Return the sums over all individuals, for every loss and weighting; without losses, of weights alone.

        Moments will be asked for next of so many models, `ahead`: what they need may be prepared on the way.
        """

    @abstractmethod
    def update(self, block: Block, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]) -> Sums:
        """Return the sums over a block of individuals."""

    @abstractmethod
    def moments(
        self,
        scored: ScoredLoss,
        models: Models,
        groups: Groups | None,
        units: Units,
        averages: Values,
        *,
        any_range: bool,
        pointwise: bool,
    ) -> Callable[[], Moments]:
        """Start making the variances of one loss under one weighting, and return what waits for them."""

    @abstractmethod
    def pooled(
        self,
        requests: Sequence[PooledRequest],
        index: TimeIndex,
        stretches: Stretches,
        curves: Sequence[SurvivalCurves],
        groups: Groups | None,
        units: Units,
        *,
        errors: bool,
        visit: Visit | None = None,
    ) -> list[PooledValues]:
        """Return the values of pooled metrics and their variances."""

    @abstractmethod
    def bounds(
        self,
        index: TimeIndex,
        loss: Loss,
        stretches: Stretches,
        models: Models,
        constants: Sequence[SurvivalCurves],
        known_losses: Values,
        known_weights: Values,
        averages: Values,
    ) -> AllBounds:
        """Return what the lost could change."""

    @abstractmethod
    def counted(self, stop: Any, n_times: int) -> Values:
        """Return how many individuals have a `stop` after each time."""

    @abstractmethod
    def units(self, stretches: Stretches, groups: Groups | None, counted: Values) -> Units:
        """Return on how many independent units scores rest, of so many individuals at each time."""


class Processor(Backend):
    """NumPy, or compiled loops."""

    def __init__(self, *, compiled: bool) -> None:
        self.compiled = compiled

    def sums(  # noqa: D102
        self,
        models: Models,
        index: TimeIndex,
        losses: Sequence[Loss],
        stretches: Sequence[Stretches],
        *,
        ahead: int = 0,
    ) -> Sums:
        def one(block: Block) -> Sums:
            return self.update(block, index, losses, stretches)

        blocks = models.blocks(index.times.size, compiled=self.compiled)
        if models.in_memory is None:  # one at a time
            found: Iterable[Sums] = map(one, blocks)
        else:
            found = each(one, list(blocks), threads=self.compiled)
        return reduce(Sums.__add__, found)

    def update(  # noqa: D102
        self, block: Block, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]
    ) -> Sums:
        if self.compiled:
            from survscore.engine.compiled import update
        else:
            update = numpy_backend.update
        return update(block, index, losses, stretches)

    def moments(  # noqa: D102
        self,
        scored: ScoredLoss,
        models: Models,
        groups: Groups | None,
        units: Units,
        averages: Values,
        *,
        any_range: bool,
        pointwise: bool,
    ) -> Callable[[], Moments]:
        if self.compiled and not any_range:
            from survscore.engine import identity

            if identity.fits(scored, models, groups):
                return _done(identity.by_identity(scored, models, groups, units, averages, pointwise=pointwise))
        return _done(by_influence(scored, models, groups, units, averages, any_range=any_range, compiled=self.compiled))

    def pooled(self, *args: Any, **settings: Any) -> list[PooledValues]:  # noqa: D102
        return evaluate_pooled(*args, **settings)

    def bounds(self, *args: Any) -> AllBounds:  # noqa: D102
        return bounds_of(*args)

    def counted(self, stop: Any, n_times: int) -> Values:  # noqa: D102
        return still_counted(stop, n_times)

    def units(self, stretches: Stretches, groups: Groups | None, counted: Values) -> Units:  # noqa: D102
        return Units.of(stretches.population_stop, groups, counted.size, counted)


class Tensors(Backend):
    """torch, where the predictions live."""

    def __init__(self) -> None:
        #: Where stretches end, and how many have such an end after each time: found with the sums, asked for later.
        self._counted: list[tuple[Any, Values]] = []
        #: What second moments need of weights that were estimated, prepared while sums were waited for.
        self._runs: list[Any] = []
        #: Squares that were found with the sums, if there is one model.
        self._squares: list[Any] = []
        #: Means over time that were asked for, and wait for others to be made with.
        self._means: Any = None

    def sums(  # noqa: D102
        self,
        models: Models,
        index: TimeIndex,
        losses: Sequence[Loss],
        stretches: Sequence[Stretches],
        *,
        ahead: int = 0,
    ) -> Sums:
        from survscore.engine.tensor_sums import sums_of
        from survscore.engine.tensors import has_kernels, memory_of

        device, runs = index.outcomes.device, []
        if ahead and has_kernels(index):
            from survscore.engine.tensor_identity import Runs, has_runs

            with memory_of(device):
                runs = [Runs(one, index) for one in stretches if has_runs(one)]
        waiting = sums_of(models, index, losses, stretches, self._squares if ahead == 1 else None)
        with memory_of(device):
            self._runs += [one.make() for one in runs]
        sums, in_either = waiting()
        self._counted += [(stretches[q].last_stop, number) for q, number in in_either.items()]
        return sums

    def update(  # noqa: D102
        self, block: Block, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]
    ) -> Sums:
        from survscore.engine.tensor_sums import sums_of_block

        return sums_of_block(block, index, losses, stretches)

    def moments(  # noqa: D102
        self,
        scored: ScoredLoss,
        models: Models,
        groups: Groups | None,
        units: Units,
        averages: Values,
        *,
        any_range: bool,
        pointwise: bool,
    ) -> Callable[[], Moments]:
        from survscore.engine import tensor_influence
        from survscore.engine.tensors import has_kernels, memory_of

        with memory_of(scored.index.outcomes.device):
            if has_kernels(scored.index) and not any_range:
                from survscore.engine import tensor_identity
                from survscore.engine.tensor_means import MeansOfRows

                if tensor_identity.fits(scored, models, groups):
                    runs = partial(self._taken_runs, scored.stretches, scored.index)
                    squares = partial(self._found_squares, scored, models)
                    self._means = self._means or MeansOfRows()
                    return tensor_identity.by_identity(scored, models, units, averages, runs, squares, self._means)
                if groups is not None and tensor_identity.fits_groups(scored, models):
                    return _done(tensor_identity.by_groups(scored, models, groups, units, averages))
            return _done(tensor_influence.by_influence(scored, models, groups, units, averages, any_range=any_range))

    def _taken_runs(self, stretches: Stretches, index: TimeIndex) -> Any:
        """Return what was prepared, which is not kept since it takes memory; or else make it."""
        for place, known in enumerate(self._runs):
            if known.stretches is stretches:
                return self._runs.pop(place)
        from survscore.engine.tensor_identity import Runs

        return Runs(stretches, index).make()

    def _found_squares(self, scored: ScoredLoss, models: Models) -> Any:
        """Return the squares that were found with the sums, or else find them."""
        for squares in self._squares:
            if squares.of(scored.loss, scored.stretches):
                return squares
        from survscore.engine.tensor_sums import sums_of

        sums_of(models, scored.index, [scored.loss], [scored.stretches], self._squares)
        return self._squares[-1]

    def pooled(self, *args: Any, **settings: Any) -> list[PooledValues]:  # noqa: D102
        from survscore.engine import tensor_pooled
        from survscore.engine.tensors import memory_of

        index: TimeIndex = args[1]
        with memory_of(index.outcomes.device):
            return tensor_pooled.evaluate_pooled(*args, **settings)

    def bounds(self, *args: Any) -> AllBounds:  # noqa: D102
        from survscore.engine import tensor_bounds
        from survscore.engine.tensors import memory_of

        index: TimeIndex = args[0]
        with memory_of(index.outcomes.device):
            return tensor_bounds.bounds_of(*args)

    def counted(self, stop: Any, n_times: int) -> Values:  # noqa: D102
        for known, number in self._counted:
            if known is stop:
                return number
        from survscore._utils.tensor_loops import runs_triton
        from survscore.engine import tensors

        if not _arrays.is_repeated(stop) and runs_triton(stop):
            from survscore.engine import tensor_kernels

            return _arrays.to_host(tensor_kernels.still_counted(stop, n_times))
        return tensors.still_counted(stop, n_times)

    def units(self, stretches: Stretches, groups: Groups | None, counted: Values) -> Units:  # noqa: D102
        from survscore._utils.tensor_loops import runs_triton
        from survscore.engine import tensor_units

        stop: Any = stretches.population_stop
        if groups is not None and not _arrays.is_repeated(stop) and runs_triton(stop):
            from survscore.engine.tensor_kernels import group_sizes

            order, starts = (_arrays.to_device(one, stop.device) for one in (groups.order, groups.starts))
            return tensor_units.units_of_sizes(*group_sizes(stop, order, starts, counted.size))
        return tensor_units.units_of(stretches, groups, counted)


def _done(moments: Moments) -> Callable[[], Moments]:
    """Return moments that need not be waited for."""
    return lambda: moments


def choose(device: Any, losses: Sequence[Loss], n_cells: int) -> Backend:
    """Return the backend for predictions on a device (None: NumPy arrays) of so many cells.

    The compiled loops run by size alone, if all losses have a compiled form.
    """
    if device is not None:
        return Tensors()
    if not config.compiles(n_cells):
        return Processor(compiled=False)
    from survscore.engine import compiled

    return Processor(compiled=compiled.knows(losses))
