"""What the paper says about a figure, as checks that the numbers of a run can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore.paper import studies as s

if TYPE_CHECKING:
    import pandas as pd

#: Tables of one replicate, by study.
Tables = Mapping[str, "pd.DataFrame"]


@dataclass(frozen=True)
class Margin:
    """By how much a claim holds in one replicate; below zero it does not. `se` is NaN where unknown."""

    value: float
    se: float = math.nan


@dataclass(frozen=True)
class Claim:
    """A statement, and what decides it."""

    text: str
    #: From the tables of a replicate; None where they don't hold what the claim is about.
    margin: Callable[[Tables], Margin | None]
    #: Whose tables it needs.
    studies: tuple[str, ...]
    #: "brier"; "log" for what the paper's discussion expects of the log-likelihood; empty if about neither.
    loss: str = ""
    #: What to say that it needs, where it can't be checked.
    needs: str = ""


def better(
    study: str, model: str, than: str, weighting: str, loss: str, *, kind: str = s.DIFFERENCE, when: str = ""
) -> Claim:
    """Claim that a model has the lower integrated score; the margin is the difference. `when` names the range."""

    def margin(tables: Tables) -> Margin:
        return _difference(tables[study], model, than, weighting, loss, kind)

    return Claim(f"{weighting}: {model} is better than {than}{when}", margin, (study,), loss)


def _difference(
    table: pd.DataFrame, model: str, than: str, weighting: str, loss: str, kind: str = s.DIFFERENCE
) -> Margin:
    """Return by how much a model's integrated score is lower."""
    rows = table[(table.kind == kind) & (table.loss == loss) & (table.weighting == weighting)]
    for first, second, sign in ((than, model, 1.0), (model, than, -1.0)):
        pair = rows[(rows.model == first) & (rows.reference == second)]
        if len(pair):
            return Margin(sign * float(pair.value.iloc[0]), float(pair.se.iloc[0]))
    raise KeyError(f"no difference between {model} and {than}")


def closer(study: str, weighting: str, loss: str) -> Claim:
    """Claim that the BCE method given C* comes closer to the truth's score than the one without."""

    def margin(tables: Tables) -> Margin:
        gaps = [abs(_difference(tables[study], s.TRUTH, other, weighting, loss).value) for other in (s.BCE, s.BCE_TOLD)]
        return Margin(gaps[0] - gaps[1])

    return Claim(f"{weighting}: {s.BCE_TOLD} is closer to the {s.TRUTH} than {s.BCE} is", margin, (study,), loss)


def worse_with_simple_censoring(loss: str) -> Claim:
    """Claim that the BCE method is worse, uncensored, where censoring is simple."""
    compared = ("simple", "complicated")

    def margin(tables: Tables) -> Margin:
        values = []
        for table in (tables[study] for study in compared):
            chosen = (table.kind == s.INTEGRATED) & (table.loss == loss) & (table.weighting == s.UNCENSORED)
            values.append(table[chosen & (table.model == s.BCE)].iloc[0])
        return Margin(float(values[0].value - values[1].value), math.hypot(values[0].se, values[1].se))

    text = f"{s.UNCENSORED}: {s.BCE} is worse than with complicated censoring"
    return Claim(text, margin, compared, loss, needs="figure-4 in the same folder")


def moves_with_the_cap(loss: str) -> Claim:
    """Claim that the largest weight allowed matters as much as the method does."""

    def margin(tables: Tables) -> Margin:
        values = [_difference(tables[s.CHURN], s.HAZARD, s.BCE, s.capped(cap), loss).value for cap in s.CAPS]
        return Margin(max(values) - min(values) - min(abs(value) for value in values))

    text = "the difference of the methods depends on the largest weight by more than its smallest size"
    return Claim(text, margin, (s.CHURN,), loss)


def further_from_the_truth() -> Claim:
    """Claim, where the truth is known, that the BCE method has the larger mean squared error."""

    def margin(tables: Tables) -> Margin | None:
        errors = tables[s.CHURN][tables[s.CHURN].kind == s.ERROR]
        if errors.empty:
            return None
        means = [float(errors[errors.model == model].value.mean()) for model in (s.BCE, s.HAZARD)]
        return Margin(means[0] - means[1])

    text = f"{s.BCE} is further from the truth than {s.HAZARD} (mean squared error)"
    return Claim(text, margin, (s.CHURN,), needs="the truth, so synthetic data")


def about_survival(tolerance: float = 0.05, transition: float = 5.0) -> tuple[Claim, ...]:
    """Claim that the BCE method underestimates survival and, given C*, follows it up to C* and is then zero."""
    study = "constant-hazard"
    ends = np.array(s.SHOWN_CENSORING_TIMES)[:, None]

    def survival(tables: Tables, model: str) -> np.ndarray:
        rows = tables[study][(tables[study].kind == s.SURVIVAL) & (tables[study].model == model)]
        return rows.value.to_numpy().reshape(ends.size, -1)

    def underestimated(tables: Tables) -> Margin:
        # up to time 99: the last grid time has no survivors
        gap = survival(tables, s.TRUTH)[0, :-10] - survival(tables, s.BCE)[0, :-10]
        return Margin(float(np.min(gap)))

    def follows(tables: Tables) -> Margin:
        deviation = np.abs(survival(tables, s.BCE_TOLD) - survival(tables, s.TRUTH))
        return Margin(tolerance - float(deviation[ends - transition > s.FINE_TIMES].mean()))

    def falls(tables: Tables) -> Margin:
        return Margin(tolerance - float(survival(tables, s.BCE_TOLD)[ends + transition < s.FINE_TIMES].mean()))

    return (
        Claim(f"{s.BCE} always underestimates the survival", underestimated, (study,)),
        Claim(f"{s.BCE_TOLD} follows the {s.TRUTH} up to C* (mean deviation below {tolerance:g})", follows, (study,)),
        Claim(f"{s.BCE_TOLD} falls to zero after C* (mean below {tolerance:g})", falls, (study,)),
    )


def check(claims: Sequence[Claim], replicates: Sequence[Tables], level: float = 0.95) -> pd.DataFrame:
    """Return what became of each claim.

    With one replicate the interval of the margin is about the sampling of test individuals, as far as it is
    known; with several it is Student's, for the mean over replicates. A margin that is not a number does not hold.

    Returns
    -------
    pandas.DataFrame
        claim, loss, holds (in every replicate), share, margin, lower, upper, replicates. `holds` is missing where
        tables that the claim needs are.
    """
    import pandas as pd
    from scipy.stats import norm, t

    rows = []
    for claim in claims:
        usable = [tables for tables in replicates if set(claim.studies) <= set(tables)]
        margins = [margin for tables in usable if (margin := claim.margin(tables)) is not None]
        values, n = np.array([margin.value for margin in margins]), len(margins)
        row: dict[str, Any] = {"claim": claim.text, "loss": claim.loss, "replicates": n, "needs": claim.needs}
        if n == 0:
            rows.append(row | {"holds": None, "share": math.nan, "margin": math.nan})
            continue
        se = margins[0].se if n == 1 else float(values.std(ddof=1) / math.sqrt(n))
        half = float((norm if n == 1 else t(n - 1)).ppf(0.5 + level / 2)) * se
        held, mean = values > 0, float(values.mean())
        row |= {"holds": bool(held.all()), "share": float(held.mean()), "margin": mean}
        rows.append(row | {"lower": mean - half, "upper": mean + half})
    columns = ["claim", "loss", "holds", "share", "margin", "lower", "upper", "replicates", "needs"]
    return pd.DataFrame(rows).reindex(columns=columns)


def answer(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return of a row of `check` whether its claim holds, or how often, and the margin with its interval."""
    n_held = round(row["share"] * row["replicates"])
    holds = ("yes" if n_held else "no") if row["replicates"] == 1 else str(n_held)
    interval = "" if math.isnan(row["lower"]) else f" [{row['lower']:+.3f}, {row['upper']:+.3f}]"
    return holds, f"{row['margin']:+.3f}{interval}"
