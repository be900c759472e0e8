"""Claims: what decides them, and how replicates are summed up."""

import math

import numpy as np
import pandas as pd
import pytest

from survscore.paper import claims as c
from survscore.paper import studies as s
from survscore.paper.figures import FIGURES


def table(**differences):
    """A table with one integrated difference BCE - Logistic-Hazard per weighting."""
    rows = [
        {"kind": s.DIFFERENCE, "loss": "brier", "weighting": weighting, "model": s.BCE, "reference": s.HAZARD,
         "value": value, "se": 0.01}
        for weighting, value in differences.items()
    ]  # fmt: skip
    return pd.DataFrame(rows).reindex(columns=s.COLUMNS)


def test_replicates_are_counted_and_averaged():
    margins = [0.1, 0.3, -0.1, 0.2]
    claim = c.better("simple", s.HAZARD, s.BCE, "administrative", "brier")
    (row,) = c.check([claim], [{"simple": table(administrative=m)} for m in margins]).to_dict("records")
    assert (row["holds"], row["share"], row["replicates"]) == (False, 0.75, 4)
    assert row["margin"] == pytest.approx(np.mean(margins))
    half = 3.182446 * np.std(margins, ddof=1) / 2  # Student's, 3 degrees of freedom
    assert (row["lower"], row["upper"]) == pytest.approx((np.mean(margins) - half, np.mean(margins) + half))
    (alone,) = c.check([claim], [{"simple": table(administrative=0.05)}]).to_dict("records")
    assert alone["holds"]
    assert (alone["upper"] - alone["lower"]) / 2 == pytest.approx(1.96 * 0.01, rel=1e-3)


def test_a_margin_that_is_no_number_does_not_hold():
    claim = c.better("simple", s.HAZARD, s.BCE, "administrative", "brier")
    replicates = [{"simple": table(administrative=m)} for m in (1.0, math.nan)]
    (row,) = c.check([claim], replicates).to_dict("records")
    assert (row["holds"], row["share"], row["replicates"]) == (False, 0.5, 2)


def test_a_claim_without_its_tables_is_not_decided():
    (row,) = c.check([c.worse_with_simple_censoring("brier")], [{"simple": table()}]).to_dict("records")
    assert row["holds"] is None
    assert row["replicates"] == 0
    assert math.isnan(row["margin"])


def survival_table(told):
    """Figure 2 with exact predictions: the truth, less of it, and `told`, a function of C* and the truth."""
    truth = np.exp(-s.FINE_TIMES / 120)
    rows = []
    for end in s.SHOWN_CENSORING_TIMES:
        for model, values in ((s.TRUTH, truth), (s.BCE, truth - 0.01), (s.BCE_TOLD, told(end, truth))):
            rows.append(
                pd.DataFrame(
                    {"kind": s.SURVIVAL, "model": model, "censoring_time": end, "time": s.FINE_TIMES, "value": values}
                )
            )
    return {"constant-hazard": pd.concat(rows, ignore_index=True).reindex(columns=s.COLUMNS)}


def test_claims_about_survival_estimates():
    claims = FIGURES["figure-2"].claims
    optimal = survival_table(lambda end, truth: truth * (s.FINE_TIMES < end))
    assert c.check(claims, [optimal]).holds.tolist() == [True, True, True]
    assert c.check(claims, [optimal]).margin.tolist() == pytest.approx([0.01, 0.05, 0.05])
    honest = survival_table(lambda end, truth: truth)
    assert c.check(claims, [honest]).holds.tolist() == [True, True, False]
    gone = survival_table(lambda end, truth: 0.0 * truth)
    assert c.check(claims, [gone]).holds.tolist() == [True, False, True]


def test_answers():
    row = {"replicates": 20, "share": 0.9, "margin": 0.0041, "lower": 0.0029, "upper": 0.0057}
    assert c.answer(row) == ("18", "+0.004 [+0.003, +0.006]")
    assert c.answer(row | {"replicates": 1, "share": 0.0, "margin": -0.02}) == ("no", "-0.020 [+0.003, +0.006]")
