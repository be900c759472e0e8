"""Verdicts in words, the same in the terminal and on the page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from survscore.losses import loss_label


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a sentence, with a true minus sign, and none before zero."""
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:.{digits}f}"
    return text.replace("-", "−" if float(text) else "")


def short(value: Any) -> str:
    """Return a value for a sentence or a table on the page; all digits are in the CSV file."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not value.is_integer():
        value = round(value, 1) if abs(value) >= 1000 else float(f"{value:.4g}")
    if isinstance(value, (int, float)):
        return re.sub(r"e([+-])0+", r"e\1", f"{value:.15g}").replace("-", "−")  # no leading zeros
    return str(value)


def people(count: int) -> str:
    """Return how many individuals, in words that fit one of them, too."""
    return f"{count:,} individual{'' if count == 1 else 's'}"


def p_value(value: float | None) -> str:
    """Return a p-value as it is printed in papers."""
    if value is None or math.isnan(value):
        return "p unknown"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def outcome(row: Mapping[str, Any]) -> str:
    """Return 'better', 'worse' or 'undecided', by whether the interval of the difference holds 0; 'unknown' without."""
    lower, upper = row["lower"], row["upper"]
    if lower is None or upper is None or math.isnan(lower) or math.isnan(upper):
        return "unknown"
    return "better" if upper < 0 else "worse" if lower > 0 else "undecided"


def verdict(row: Mapping[str, Any], loss: str, level: float) -> str:
    """Return one sentence about a difference of mean scores, or of scores at a time if the row has one."""
    score = f"mean {loss_label(loss)}" if row.get("time") is None else f"{loss_label(loss)} at {short(row['time'])}"
    found = outcome(row)
    if found == "unknown":
        return f"Nothing can be said about {row['model']} and {row['reference']}: their difference has no interval."
    half = (row["upper"] - row["lower"]) / 2
    digits = min(12, max(4, 1 - math.floor(math.log10(half)))) if half > 0 else 4  # two of the interval's own
    lower, upper = number(row["lower"], digits), number(row["upper"], digits)
    sure = f"{100 * level:g} % interval {lower} to {upper}, {p_value(row['p_value'])}"
    relation = _relation(row["model"], found, row["reference"])
    return f"{relation}: its {score} differs by {number(row['difference'], digits)} ({sure})."


def contradiction(model: str, reference: str, outcomes: Mapping[str, str]) -> str | None:
    """Return a sentence where some weightings call a model better and others worse; None elsewhere."""
    better, worse = (_under(outcomes, found) for found in ("better", "worse"))
    if not better or not worse:
        return None
    return f"{model} is better than {reference} under {better}, and worse under {worse}."


def unsure(model: str, reference: str, outcomes: Mapping[str, str]) -> str | None:
    """Return a sentence where only some weightings are sure which model is better; None elsewhere."""
    found = set(outcomes.values()) - {"unknown"}
    if "undecided" not in found or len(found) != 2:
        return None
    (sure,) = found - {"undecided"}
    return f"That {model} is {sure} than {reference} is clear only under {_under(outcomes, sure)}."


def _under(outcomes: Mapping[str, str], found: str) -> str:
    names = [weighting for weighting, one in outcomes.items() if one == found]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def _relation(model: str, found: str, reference: str) -> str:
    if found == "undecided":
        return f"{model} can't be told from {reference}"
    return f"{model} is {found} than {reference}"
