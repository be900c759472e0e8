"""Recipes by name: what a network's parameters are where they are left at None."""

from __future__ import annotations

from typing import Any, Literal

Preset = Literal["default", "paper"]

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
