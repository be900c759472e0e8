"""What the paper says about a figure, as checks that the numbers of a run can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore.inference.intervals import normal_quantile
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
    """A statement, the loss it is about, and what decides it.

    Attributes
    ----------
    text : str
        The statement.
    margin : callable
        From the tables of a replicate; None where they don't hold what it is about.
    loss : str
        ``"brier"``; ``"log"`` for what the paper's discussion expects of the log-likelihood; empty if about neither.
    studies : tuple of str
        Whose tables it needs.
    needs : str
        What to say that it needs, where it can't be checked.
    """

    text: str
    margin: Callable[[Tables], Margin | None]
    studies: tuple[str, ...]
    loss: str = ""
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
        found = rows[(rows.model == first) & (rows.reference == second)]
        if len(found):
            return Margin(sign * float(found.value.iloc[0]), float(found.se.iloc[0]))
    raise KeyError(f"no difference between {model} and {than}")


def closer(study: str, weighting: str, loss: str) -> Claim:
    """Claim that the BCE method told C* comes closer to the truth's score than the one that is not."""

    def margin(tables: Tables) -> Margin:
        gaps = [abs(_difference(tables[study], s.TRUTH, other, weighting, loss).value) for other in (s.BCE, s.BCE_TOLD)]
        return Margin(gaps[0] - gaps[1])

    return Claim(f"{weighting}: {s.BCE_TOLD} is closer to the {s.TRUTH} than {s.BCE} is", margin, (study,), loss)


def worse_with_simple_censoring(loss: str) -> Claim:
    """Claim that the BCE method is worse, uncensored, where censoring is simple."""

    def margin(tables: Tables) -> Margin:
        values = []
        for study in ("simple", "complicated"):
            table = tables[study]
            chosen = (table.kind == s.INTEGRATED) & (table.loss == loss) & (table.weighting == s.UNCENSORED)
            values.append(table[chosen & (table.model == s.BCE)].iloc[0])
        return Margin(float(values[0].value - values[1].value), math.hypot(values[0].se, values[1].se))

    text = f"{s.UNCENSORED}: {s.BCE} is worse than with complicated censoring"
    return Claim(text, margin, ("simple", "complicated"), loss, needs="figure-4 in the same folder")


def moves_with_the_cap(study: str, weightings: Sequence[str], loss: str) -> Claim:
    """Claim that the largest weight allowed matters as much as the method does."""

    def margin(tables: Tables) -> Margin:
        found = [_difference(tables[study], s.HAZARD, s.BCE, weighting, loss).value for weighting in weightings]
        return Margin(max(found) - min(found) - min(abs(value) for value in found))

    text = "the difference of the methods depends on the largest weight by more than its smallest size"
    return Claim(text, margin, (study,), loss)


def further_from_the_truth(study: str, error: str) -> Claim:
    """Claim, where the truth is known, that the BCE method has the larger mean squared error."""

    def margin(tables: Tables) -> Margin | None:
        table = tables[study]
        if not (table.kind == error).any():
            return None
        means = [float(table[(table.kind == error) & (table.model == m)].value.mean()) for m in (s.BCE, s.HAZARD)]
        return Margin(means[0] - means[1])

    text = f"{s.BCE} is further from the truth than {s.HAZARD} (mean squared error)"
    return Claim(text, margin, (study,), needs="the truth, so synthetic data")


def underestimates() -> Claim:
    """Claim that the BCE method without knowledge of C* predicts less than the truth everywhere."""

    def margin(tables: Tables) -> Margin:
        truth, bce = (_survival(tables, model) for model in (s.TRUTH, s.BCE))
        return Margin(
            float(np.min(truth[0, :-10] - bce[0, :-10]))
        )  # up to time 99: the last grid time has no survivors

    return Claim(f"{s.BCE} always underestimates the survival", margin, ("constant-hazard",))


def follows_then_falls(tolerance: float = 0.05, transition: float = 5.0) -> list[Claim]:
    """Claim that the BCE method told C* follows the truth up to C*, and is then zero, `transition` away from it."""

    def deviations(tables: Tables, *, after: bool) -> float:
        truth, told = (_survival(tables, model) for model in (s.TRUTH, s.BCE_TOLD))
        ends = np.array(s.SHOWN_CENSORING_TIMES)[:, None]
        if after:
            return float(told[ends + transition < s.FINE_TIMES].mean())
        return float(np.abs(told - truth)[ends - transition > s.FINE_TIMES].mean())

    return [
        Claim(
            f"{s.BCE_TOLD} follows the {s.TRUTH} up to C* (mean deviation below {tolerance:g})",
            lambda tables: Margin(tolerance - deviations(tables, after=False)),
            ("constant-hazard",),
        ),
        Claim(
            f"{s.BCE_TOLD} falls to zero after C* (mean below {tolerance:g})",
            lambda tables: Margin(tolerance - deviations(tables, after=True)),
            ("constant-hazard",),
        ),
    ]


def _survival(tables: Tables, model: str) -> np.ndarray:
    table = tables["constant-hazard"]
    rows = table[(table.kind == s.SURVIVAL) & (table.model == model)]
    return rows.value.to_numpy().reshape(len(s.SHOWN_CENSORING_TIMES), -1)


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
    from scipy.stats import t

    rows = []
    for claim in claims:
        usable = [tables for tables in replicates if set(claim.studies) <= set(tables)]
        margins = [margin for tables in usable if (margin := claim.margin(tables)) is not None]
        values = np.array([margin.value for margin in margins])
        row = {"claim": claim.text, "loss": claim.loss, "replicates": len(values), "needs": claim.needs}
        if len(values) == 0:
            rows.append(row | {"holds": None, "share": math.nan, "margin": math.nan})
            continue
        se = margins[0].se if len(values) == 1 else float(values.std(ddof=1) / math.sqrt(len(values)))
        half = (normal_quantile(level) if len(values) == 1 else float(t.ppf(0.5 + level / 2, len(values) - 1))) * se
        rows.append(
            row
            | {
                "holds": bool((values > 0).all()),
                "share": float((values > 0).mean()),
                "margin": float(values.mean()),
                "lower": float(values.mean() - half),
                "upper": float(values.mean() + half),
            }
        )
    columns = ["claim", "loss", "holds", "share", "margin", "lower", "upper", "replicates", "needs"]
    return pd.DataFrame(rows).reindex(columns=columns)


def answer(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return of a row of `check` whether its claim holds, or how often, and the margin with its interval."""
    held = round(row["share"] * row["replicates"])
    told = ("yes" if held else "no") if row["replicates"] == 1 else str(held)
    interval = "" if math.isnan(row["lower"]) else f" [{row['lower']:+.3f}, {row['upper']:+.3f}]"
    return told, f"{row['margin']:+.3f}{interval}"
