"""Learning rates over the epochs of a training, and recipes by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from survscore._validation import check_choice, check_number, check_whole

SCHEDULES = ("warm-restarts", "constant")
Preset = Literal["default", "paper"]
#: What a network's parameters are where they are left at None.
PRESETS: dict[str, dict[str, Any]] = {
    # a high rate that never falls, and the mean of the weights on the way: see benchmarks/convergence.py
    "default": {
        "dropout": 0.2, "batch_size": None, "learning_rate": 0.02, "schedule": "constant", "weight_decay": 0.02,
        "averaging": 0.2,
    },
    # Adam with warm restarts, as the paper's networks were trained
    "paper": {
        "dropout": 0.1, "batch_size": 256, "learning_rate": 0.01, "schedule": "warm-restarts", "weight_decay": 0.0,
        "averaging": 0.0,
    },
}  # fmt: skip
#: Cycles without gain after which training stops; at a constant rate every epoch is a cycle.
PATIENCE = {"warm-restarts": 1, "constant": 20}


@dataclass(frozen=True)
class Epoch:
    """One epoch's learning rates, one per step, and whether a cycle ends with it."""

    rates: list[float]
    cycle: int
    ends_cycle: bool


@dataclass(frozen=True)
class Schedule:
    r"""Cosine annealing with warm restarts, or a constant rate.

    Within a cycle of :math:`K` steps, step :math:`k` has the rate :math:`\eta [1 + \cos(\pi k / K)] / 2`. The first
    cycle takes `cycle_epochs` epochs, each next one `cycle_growth` times as many, and starts from `cycle_decay` times
    the rate. With a constant rate every epoch is a cycle of its own.
    """

    kind: str = "warm-restarts"
    rate: float = 0.01
    cycle_epochs: int = 1
    cycle_growth: int = 2
    cycle_decay: float = 0.8

    def __post_init__(self) -> None:
        check_choice("schedule", self.kind, SCHEDULES)
        check_number("learning_rate", self.rate, "positive", lambda rate: rate > 0)
        check_whole("cycle_epochs", self.cycle_epochs, 1)
        check_whole("cycle_growth", self.cycle_growth, 1)
        check_number("cycle_decay", self.cycle_decay, "above 0 and at most 1", lambda decay: 0 < decay <= 1)

    def epochs(self, n_steps: int) -> Iterator[Epoch]:
        """Yield epochs of `n_steps` steps each, for ever."""
        cycle, length, top = 0, self.cycle_epochs, self.rate
        while True:
            if self.kind == "constant":
                yield Epoch([self.rate] * n_steps, cycle, True)
            else:
                total = length * n_steps
                for epoch in range(length):
                    steps = range(epoch * n_steps, (epoch + 1) * n_steps)
                    rates = [top * (1.0 + math.cos(math.pi * step / total)) / 2.0 for step in steps]
                    yield Epoch(rates, cycle, epoch + 1 == length)
                length, top = length * self.cycle_growth, top * self.cycle_decay
            cycle += 1
