"""Verdicts in words, the same in the terminal and on the page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from survscore._validation import several
from survscore.metrics import cause_label, metric_label
from survscore.results.rounding import LEAST_P, interval_decimals

Row = Mapping[str, Any]


def fixed(value: Any, digits: int = 4) -> str:
    """Return a number rounded to so many decimals, with a true minus sign, and none before zero."""
    return "–" if missing(value) else f"{value:z,.{digits}f}".replace("-", "−")


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


def share(part: int, whole: int) -> str:
    """Return how many of how many."""
    return f"{part:,} of {whole:,}"


def p_value(value: float | None, relation: str = "=") -> str:
    """Return a p-value as it is printed in papers."""
    if value is None or math.isnan(value):
        return "p unknown"
    return f"p < {LEAST_P:g}" if value < LEAST_P else f"p {relation} {value:.3f}"


def missing(value: Any) -> bool:
    """Whether there is no number."""
    return value is None or math.isnan(value)


def digits_for(lower: float, upper: float) -> int:
    """Return with how many digits to tell an interval, so that half its length has two of its own."""
    return interval_decimals([lower], [upper], least=4) or 4


def verdict_sentence(row: Row, level: float, population: str = "", cause: str = "") -> str:
    """Return one sentence about a difference of mean scores, or of scores at a time if the row has one.

    `population` says for whom it holds, and `cause` of which cause of events scores are.
    """
    label = cause_label(metric_label(row["metric"]), cause)
    score = f"mean {label}" if row.get("time") is None else f"{label} at {short(row['time'])}"
    if row["verdict"] == "unknown":
        return f"{row['model']} and {row['reference']} cannot be compared: their difference has no interval."
    digits = digits_for(row["lower"], row["upper"])
    lower, upper = fixed(row["lower"], digits), fixed(row["upper"], digits)
    interval = f"{100 * level:g} % interval {lower} to {upper}, {p_value(row['p_value'])}"
    relation = _relation(row["model"], row["verdict"], row["reference"])
    sentence = f"{relation}{population}: its {score} differs by {fixed(row['difference'], digits)} ({interval})."
    if row.get("reliable", True):
        return sentence
    return f"{sentence} There are too few events, individuals without event, or groups for a reliable interval."


def leak_sentence(row: Row) -> str:
    """Return how far a model falls right after C*, and what that says, of a row of `Diagnosis.models`."""
    name, verdict = row["model"], row["verdict"]
    if verdict == "too few" or missing(row["fall_after"]) or missing(row["fall_elsewhere"]):
        return f"Whether {name} encodes the censoring time cannot be assessed: there are too few data."
    after, elsewhere = (_percent(row[key]) for key in ("fall_after", "fall_elsewhere"))
    falls = f"{name} falls by {after} right after C*"
    match verdict:
        case "encodes C*":
            return f"{falls}, against {elsewhere} elsewhere: it encodes the censoring time."
        case "unclear":
            return f"{falls}, against {elsewhere} elsewhere: whether it encodes the censoring time is unclear."
        case _:
            return f"{falls}, against {elsewhere} elsewhere: no sign that it encodes the censoring time."


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def has_bounds(row: Row) -> bool:
    """Whether bounds are known that assume nothing about those who dropped out."""
    return not (missing(row.get("bound_lower")) or missing(row.get("bound_upper")))


def bounds_sentence(row: Row, n_dropped_out: int, n: int, level: float) -> str | None:
    """Return what those who dropped out could change about a difference; None where that is not known.

    It says nothing about those whose follow-up ended at C* < t.
    """
    if not has_bounds(row):
        return None
    of_interval = 4 if row["verdict"] == "unknown" else digits_for(row["lower"], row["upper"])
    digits = max(of_interval, digits_for(row["bound_lower"], row["bound_upper"]))
    between = f"{fixed(row['bound_lower'], digits)} and {fixed(row['bound_upper'], digits)}"
    who = f"whatever happened to the {share(n_dropped_out, n)} who dropped out"
    lies = f"among those with C* ≥ t, the difference lies between {between}"
    # better or worse wherever within the bounds it lies
    sign = all(row[bound] * row["difference"] > 0 for bound in ("bound_lower", "bound_upper"))
    p, sign = row["bound_p_value"], sign and row["verdict"] in ("better", "worse")
    if sign and not missing(p) and p < 1.0 - level:
        sentence = f"The verdict holds {who}: {lies}, with {p_value(p, 'at most')}."
    elif sign:
        may_be = "" if missing(p) else f", significance does not (p up to {p:.3f})"
        sentence = f"The sign holds {who}{may_be}: {lies}."
    else:
        sentence = f"{who[0].upper()}{who[1:]}, {lies}."
    rounding = 1e-9 * abs(row["difference"])
    if row["bound_lower"] - rounding <= row["difference"] <= row["bound_upper"] + rounding:
        return sentence
    outside = "The weighted estimate lies outside these bounds: those who dropped out differ from those who stayed."
    return f"{sentence} {outside}"


def contradiction(model: str, reference: str, by_weighting: Mapping[str, str]) -> str | None:
    """Return a sentence where some weightings call a model better and others worse; None elsewhere."""
    better, worse = (_under(by_weighting, verdict) for verdict in ("better", "worse"))
    if not better or not worse:
        return None
    return f"{model} is significantly better than {reference} under {better}, and significantly worse under {worse}."


def unclear(model: str, reference: str, by_weighting: Mapping[str, str]) -> str | None:
    """Return a sentence where a difference is significant under some weightings only; None elsewhere."""
    verdicts = set(by_weighting.values()) - {"unknown"}
    if "undecided" not in verdicts or len(verdicts) != 2:
        return None
    (significant,) = verdicts - {"undecided"}
    return f"{model} is significantly {significant} than {reference} only under {_under(by_weighting, significant)}."


def _under(by_weighting: Mapping[str, str], verdict: str) -> str:
    return several([weighting for weighting, theirs in by_weighting.items() if theirs == verdict])


def _relation(model: str, verdict: str, reference: str) -> str:
    if verdict == "undecided":
        return f"{model} is not significantly different from {reference}"
    return f"{model} is significantly {verdict} than {reference}"
