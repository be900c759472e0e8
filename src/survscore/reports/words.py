"""Verdicts in words, the same in the terminal and on the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LOSS_NAMES = {"brier": "Brier score", "log": "logarithmic loss"}


def loss_name(loss: str) -> str:
    """Return what a loss is called in a sentence."""
    return LOSS_NAMES.get(loss, f"{loss} loss")


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a sentence, with a true minus sign."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def p_value(value: float | None) -> str:
    """Return a p-value as it is printed in papers."""
    if value is None or math.isnan(value):
        return "p unknown"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def outcome(row: Mapping[str, Any]) -> str:
    """Return 'better', 'worse' or 'undecided': whether the interval of the difference to the reference leaves 0 out."""
    if row["upper"] is not None and row["upper"] < 0:
        return "better"
    return "worse" if row["lower"] is not None and row["lower"] > 0 else "undecided"


def verdict(row: Mapping[str, Any], loss: str, level: float) -> str:
    """Return one sentence about a difference of mean scores, or of scores at a time if the row has one."""
    score = f"mean {loss_name(loss)}" if row.get("time") is None else f"{loss_name(loss)} at {row['time']:g}"
    sure = f"{100 * level:g} % interval {number(row['lower'])} to {number(row['upper'])}, {p_value(row['p_value'])}"
    return (
        f"{_relation(row['model'], outcome(row), row['reference'])}: "
        f"its {score} differs by {number(row['difference'])} ({sure})."
    )


def disagreement(model: str, reference: str, outcomes: Mapping[str, str]) -> str | None:
    """Return a sentence where weightings come to different conclusions about a model; None, where all agree."""
    under: dict[str, list[str]] = {}
    for weighting, found in outcomes.items():
        under.setdefault(found, []).append(weighting)
    if len(under) < 2:
        return None
    how = "contradict each other" if {"better", "worse"} <= set(under) else "come to different conclusions"
    parts = [f"{_relation(model, found, reference)} under {_listed(several)}" for found, several in under.items()]
    return f"Weightings {how}: {'; '.join(parts)}."


def _relation(model: str, found: str, reference: str) -> str:
    if found == "undecided":
        return f"{model} can't be told from {reference}"
    return f"{model} is {found} than {reference}"


def explanation(weighting: str) -> str:
    """Return what a weighting does, for readers who have not met it."""
    if weighting == "administrative":
        return (
            "At each time it counts those whose data could have reached so far (C* ≥ t). Their status is known for "
            "certain, so it is not fooled by predictions that know C*."
        )
    if weighting == "uncensored":
        return "Everybody counts at every time."
    if weighting.startswith("ipcw (known"):
        return (
            "Leaves the censored out. Under administrative censoring it rewards predictions that fall to zero after C*."
        )
    if weighting.startswith("ipcw"):
        return (
            "Counts those whose status is known, weighted by the inverse of the probability of not being censored. If "
            "predictions can tell the censoring times, it is biased towards those that fall after C*."
        )
    return ""


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
