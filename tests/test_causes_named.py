"""Results under competing risks name the cause: in tables that can be joined, in print, in pictures and in reports."""

from functools import cache

import matplotlib as mpl
import numpy as np
import pytest

import survscore as ss

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings(
    "ignore::survscore.UndefinedScoreWarning", "ignore::survscore.FewFollowedWarning"
)
CAUSES = ["default", "repayment"]
TIMES = [2.0, 4.0, 6.0]
ADMINISTRATIVE = {"weighting": "administrative"}


@cache
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


@cache
def results(cause):
    """Return by name everything that scores: of a cause, of all together, or of outcomes without causes (None)."""
    y, models, plain, plan = problem()
    y, models = plain if cause is None else (y, models)
    options = {"cause": cause, **ADMINISTRATIVE}
    found = {
        "score": ss.brier_score(y, models["truth"], times=TIMES, **options),
        "comparison": ss.compare(y, models, times=TIMES, **options),
        "segments": ss.compare(y, models, times=TIMES, by={"plan": plan}, **options),
        "projected": ss.compare(y, models, times=TIMES, weighting="projected", cause=cause),
        "table": ss.score_table(y, models, horizons=[4], by={"plan": plan}, **options),
    }
    if cause != "all":
        found["calibration"] = ss.calibration(y, models["truth"], 4, n_draws=10, **options)
        found["decisions"] = ss.decision_curve(y, models, 4, thresholds=[0.1, 0.3], n_draws=50, **options)
    return found


def tables(cause):
    found = results(cause)
    compared, segments, projected = (found[name] for name in ("comparison", "segments", "projected"))
    yield from (found[name].to_frame() for name in ("score", "comparison", "segments", "table"))
    yield from (compared.scores, compared.skill, compared.integrated().to_frame(), segments.integrated().scores)
    yield from (segments.integrated().between(), segments.heterogeneity())
    yield from (projected.parts, projected.sensitivity().to_frame())
    if cause != "all":
        one, curve = found["calibration"], found["decisions"]
        yield from (one.to_frame(), one.groups_frame(), one.summary(), curve.to_frame(), curve.contrasts)


@pytest.mark.parametrize("cause", ["default", "all", None])
def test_print_and_pictures_name_the_cause(cause):
    found = results(cause)
    printed = [str(found[name]) for name in ("score", "comparison", "segments", "calibration") if name in found]
    drawn = list(pictures(cause))
    if cause is None:
        assert not any("cause" in text or "multi-class" in text for text in (*printed, *drawn))
    else:
        assert all(("multi-class" if cause == "all" else f"cause {cause}") in text for text in printed)
        assert all(("multi-class Brier score" if cause == "all" else f"of cause {cause}") in text for text in drawn)


@pytest.mark.parametrize("cause", ["default", "all"])
def test_tables_of_causes_can_be_told_apart_and_others_have_no_such_column(cause):
    for table, without in zip(tables(cause), tables(None), strict=cause != "all"):
        assert list(table["cause"]) == [cause] * len(table)
        assert [column for column in table if column != "cause"] == list(without)
        assert "cause" not in without


def test_segments_can_be_called_cause_only_where_there_are_none():
    y, models, plain, plan = problem()
    with pytest.raises(ss.InputError, match="by must not be called 'cause'"):
        ss.compare(y, models, by={"cause": plan}, cause="default", **ADMINISTRATIVE)
    assert ss.compare(*plain, by={"cause": plan}, **ADMINISTRATIVE) is not None


def words(display):
    """Return all that is written in a picture."""
    figure = display.figure_
    figure.canvas.draw()
    texts = [text.get_text() for text in figure.findobj(mpl.text.Text)]
    mpl.pyplot.close(figure)
    return " ".join(" ".join(texts).split())


def pictures(cause):
    """Yield all that is written in each picture."""
    found = results(cause)
    yield from (words(found[name].plot()) for name in ("score", "comparison", "segments"))
    yield words(found["comparison"].plot_scores())
    yield words(found["projected"].sensitivity().plot())
    if cause != "all":
        yield from (words(found[name].plot()) for name in ("calibration", "decisions"))
        y, models, plain, _ = problem()
        y, models = plain if cause is None else (y, models)
        yield words(ss.diagnose(y, models, cause=cause).plot())


# What is said once, or not at all


def with_drop_outs(y, seed=1):
    """Return outcomes in which some dropped out."""
    leaving = np.random.default_rng(seed).exponential(15, len(y))
    codes = np.where(leaving < y.time, 0, y.cause)
    return ss.Outcomes(np.minimum(y.time, leaving), codes, y.censoring_time, causes=CAUSES)


def test_the_usual_table_of_a_cause_has_no_empty_rows():
    y, models, *_ = problem()
    models = {name: ss.IncidenceCurves(one.probabilities, one.times, causes=CAUSES, interpolation="linear")
              for name, one in models.items()}  # fmt: skip
    asked = {"cause": "default", "horizons": [4], **ADMINISTRATIVE}
    complete, lost = (ss.score_table(of, models, **asked) for of in (y, with_drop_outs(y)))
    assert complete.n_dropped_out == 0 < lost.n_dropped_out
    assert "crps" in complete.settings["metric"]
    assert "crps" not in lost.settings["metric"]
    assert not np.isnan([row.estimate for row in lost.rows if row.model != "Aalen-Johansen"]).any()
    assert "needs a status that is known" not in str(lost)
    assert "needs a status that is known" in str(ss.score_table(with_drop_outs(y), models, metric="crps", **asked))


def test_folds_without_scores_are_told_once(recwarn):
    y, *_ = problem()
    estimators = {"one": ss.models.AalenJohansen(), "two": ss.models.AalenJohansen()}
    X, asked = np.zeros((len(y), 1)), {"cause": "default", "cv": 5, "weighting": "projected"}
    found = ss.cross_validate(estimators, X, y, times=[3, 8, 11], **asked)
    assert found.folds.groupby("fold")["score"].apply(lambda scores: scores.isna().any()).sum() == 5
    told = [str(one.message) for one in recwarn if issubclass(one.category, ss.UndefinedScoreWarning)]
    of_folds = [message for message in told if "5 of 5 folds lack scores; in fold 0, scores are NaN" in message]
    assert len(of_folds) == 1
    assert len(told) <= 2


def test_tables_say_once_who_the_controls_of_auc_are():
    y, models, plain, _ = problem()
    note = "AUC: controls are the event-free and those with an event of another cause"
    asked = {"metric": ["brier", "auc"], "times": TIMES, **ADMINISTRATIVE}
    assert " ".join(str(ss.compare(y, models, cause="default", **asked)).split()).count(note) == 1
    assert "controls" not in str(ss.compare(*plain, **asked))
