"""Results under competing risks name the cause: in tables that can be joined, in print, in pictures and in reports."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import survscore as ss

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
CAUSES = ["default", "repayment"]
TIMES = [2.0, 4.0, 6.0]
ADMINISTRATIVE = {"weighting": "administrative"}


@pytest.fixture(scope="module")
def problem():
    """Return outcomes of two causes, two models of both, those without causes, and segments."""
    rng, n = np.random.default_rng(3), 400
    rates = np.stack([rng.gamma(2, 0.05, n), rng.gamma(3, 0.03, n)], axis=1)
    total = rates.sum(axis=1)
    star, end = rng.exponential(1 / total), rng.uniform(3, 12, n)
    cause = np.where(rng.random(n) < rates[:, 0] / total, 1, 2) * (star <= end)
    y = ss.Outcomes(np.minimum(star, end), cause, end, causes=CAUSES)
    values = (rates / total[:, None])[:, :, None] * (1 - np.exp(-np.outer(total, TIMES)))[:, None, :]
    models = {
        "truth": ss.IncidenceCurves(values, TIMES, causes=CAUSES),
        "low": ss.IncidenceCurves(0.7 * values, TIMES, causes=CAUSES),
    }
    plain = ss.Outcomes(y.time, y.event, end), {name: curves.event_free() for name, curves in models.items()}
    return y, models, plain, rng.integers(0, 2, n)


def tables(y, models, plan, cause=None):
    """Return by name the tables of everything that scores."""
    options = {"cause": cause, **ADMINISTRATIVE}
    multiclass = cause == "all"
    score = ss.brier_score(y, models["truth"], times=TIMES, **options)
    compared = ss.compare(y, models, times=TIMES, **options)
    by_plan = ss.compare(y, models, times=TIMES, by={"plan": plan}, **options)
    projected = ss.compare(y, models, times=TIMES, weighting="projected", cause=cause)
    found = {
        "score": score.to_frame(),
        "comparison": compared.to_frame(),
        "scores": compared.scores,
        "skill": compared.skill,
        "means": compared.integrated().to_frame(),
        "segments": by_plan.to_frame(),
        "means by segment": by_plan.integrated().scores,
        "between": by_plan.integrated().between(),
        "heterogeneity": by_plan.heterogeneity(),
        "parts": projected.parts.to_frame(),
        "sensitivity": projected.sensitivity().to_frame(),
        "table": ss.score_table(y, models, horizons=[4], by={"plan": plan}, **options).to_frame(),
    }
    if not multiclass:
        one = ss.calibration(y, models["truth"], 4, **options)
        curve = ss.decision_curve(y, models, 4, thresholds=[0.1, 0.3], n_draws=50, **options)
        found |= {
            "calibration": one.to_frame(), "groups": one.groups_frame(), "numbers": one.summary(),
            "net benefit": curve.to_frame(), "net benefit, differences": curve.contrasts,
        }  # fmt: skip
    return found


@pytest.mark.parametrize("cause", [*CAUSES, "all"])
def test_tables_of_causes_can_be_told_apart_and_others_have_no_such_column(problem, cause):
    y, models, plain, plan = problem
    found, without = tables(y, models, plan, cause), tables(*plain, plan)
    for name, table in found.items():
        assert list(table["cause"]) == [cause] * len(table), name
        expected = list(without[name])
        assert [column for column in table if column != "cause"] == expected, name
        assert "cause" not in expected


def test_both_causes_stay_apart_when_joined(problem):
    y, models, *_ = problem
    parts = [ss.brier_score(y, models["truth"], times=TIMES, cause=one, **ADMINISTRATIVE) for one in CAUSES]
    joined = pd.concat([part.to_frame() for part in parts])
    assert len(joined.set_index(["metric", "cause", "weighting", "time"]).index.unique()) == len(joined)


@pytest.mark.parametrize("of", [ss.compare, ss.score_table])
def test_segments_can_be_called_cause_only_where_there_are_none(problem, of):
    y, models, plain, plan = problem
    with pytest.raises(ss.InputError, match="by must not be called 'cause'"):
        of(y, models, by={"cause": plan}, cause="default", **ADMINISTRATIVE)
    assert of(*plain, by={"cause": plan}, **ADMINISTRATIVE) is not None
