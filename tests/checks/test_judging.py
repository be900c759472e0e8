"""Findings: the numbers are the library's, and verdicts follow from them."""

import math
from dataclasses import replace

import numpy as np
import pytest

import survscore as ss
from checks_case import compared, day
from survscore.checks import Run, check, exit_code, parse_rules


def findings(run, history=None, **keys):
    return check(run, parse_rules({"check": [keys]}), history)


def one(run, history=None, **keys):
    (found,) = findings(run, history, **keys)
    return found


def means(run):
    return [row for row in run.tables["scores"] if row["from"] < row["to"]]


def changed(run, table, keep=lambda row: True, **values):
    """Return a run with other values in the rows of a table."""
    rows = [{**row, **values} if keep(row) else row for row in run.tables[table]]
    return replace(run, tables={**run.tables, table: rows})


def test_scores_are_those_of_the_comparison(run, comparison):
    means = comparison.integrated().scores.query("metric == 'brier' and weighting == 'administrative'")
    expected = means.set_index("model").loc["new"]
    found = one(run, model="new", below=expected.upper + 1e-6, value="upper")
    assert (found.verdict, found.value, found.estimate) == ("passed", expected.upper, expected.score)
    assert (found.when, found.threshold[:5]) == ("mean over 5 to 80", "below")
    assert one(run, model="new", below=expected.upper, value="upper").verdict == "failed"
    by_range = comparison.integrated(10, 60).scores.query("metric == 'auc' and weighting.str.startswith('ipcw')")
    found = one(run, model="old", metric="auc", weighting="ipcw", range=[10, 60], above=0.5)
    assert found.value == by_range.set_index("model").loc["old", "score"]
    at = comparison.scores.query(
        "metric == 'brier' and weighting == 'administrative' and time == 40 and model == 'old'"
    )
    found = one(run, model="old", at=40, above=0, below=1)
    assert (found.value, found.n_events) == (at.score.item(), at.n_events.item())


def test_a_model_against_another_is_paired(run, comparison):
    row = comparison.integrated().contrasts.query(
        "metric == 'brier' and weighting == 'administrative' and model == 'new'"
    )
    found = one(run, model="new", reference="old")
    assert (found.value, found.estimate) == (row.lower.item(), row.difference.item())
    assert found.verdict == "failed"
    assert one(run, model="new", reference="old", worse_by=1).verdict == "passed"
    turned = one(run, model="old", reference="new", value="difference-upper", below=0)
    assert (turned.value, turned.verdict) == (-row.lower.item(), "passed")
    # the same model is not worse than itself
    same = changed(run, "contrasts", difference=0.0, se=0.0, lower=0.0, upper=0.0)
    assert one(same, model="new", reference="old").verdict == "passed"


def test_what_should_be_close_to_a_target_can_lie_between_limits_and_not_be_worse():
    run = Run.of(compared(metric=("brier", "slope"), weighting="administrative", times=[20, 40]), id="now", date=day(1))
    assert run.direction("slope") == "closer to 1"
    assert one(run, metric="slope", model="old", at=40, above=0.7, below=1.3).verdict == "passed"
    assert one(run, metric="slope", model="new", at=40, above=0.7, below=1.3).verdict == "failed"
    with pytest.raises(ss.InputError, match="worse_by is of metrics of which lower or higher values are better, not"):
        one(run, metric="slope", model="new", reference="old")
    with pytest.raises(ss.InputError, match="skill is of metrics of which lower values are better, not of 'slope'"):
        one(run, metric="slope", model="new", value="skill", above=0)


def test_worse_knows_that_a_higher_auc_is_better(run, comparison):
    row = comparison.integrated().contrasts.query(
        "metric == 'auc' and weighting == 'administrative' and model == 'new'"
    )
    assert row.upper.item() < 0
    found = one(run, metric="auc", model="new", reference="old")
    assert (found.verdict, found.value, found.quantity) == ("failed", row.upper.item(), "difference-upper")
    assert found.threshold == "at least 0"
    assert one(run, metric="auc", model="new", reference="old", worse_by=0.5).verdict == "passed"
    assert one(run, metric="auc", model="old", reference="new").verdict == "passed"
    strict = one(run, metric="auc", model="new", reference="old", value="difference-upper", worse_by=0.1)
    assert strict.value == row.lower.item()


def test_skill_is_against_the_null_model(run, comparison):
    row = comparison.integrated().skill.query("metric == 'brier' and weighting == 'administrative' and model == 'old'")
    assert one(run, model="old", value="skill", above=0).value == pytest.approx(row.skill.item())
    assert one(run, model="old", value="skill", reference="new", above=0).value > 0
    with pytest.raises(ss.InputError, match="lower values are better, not of 'auc'"):
        findings(run, metric="auc", value="skill", above=0)


def test_all_models_are_all_but_the_null_model_and_the_reference(run):
    assert [found.model for found in findings(run, below=1)] == ["old", "new"]
    assert [found.model for found in findings(run, reference="old", worse_by=1)] == ["new"]
    assert [found.model for found in findings(run, model=["Kaplan-Meier", "new"], below=1)] == ["Kaplan-Meier", "new"]
    assert {found.metric for found in findings(run, metric=["brier", "auc"], below=1)} == {"brier", "auc"}


def test_against_an_earlier_run_scores_are_independent(run):
    earlier = [Run.of(compared(seed=seed, power=1.0), id=f"run-{seed}", date=day(seed)) for seed in (2, 3, 4)]
    new, old = one(run, model="new", below=1), one(earlier[-1], model="new", below=1)
    found = one(run, earlier, model="new", reference="last", worse_by=0.01)
    assert found.reference == "run run-4"
    assert found.estimate == new.value - old.value
    names = ("new", "brier", "administrative")
    ses = [
        next(row["se"] for row in rows if (row["model"], row["metric"], row["weighting"]) == names)
        for rows in (means(run), means(earlier[-1]))
    ]
    half = 1.959963984540054 * math.hypot(*ses)
    assert found.lower == pytest.approx(found.estimate - half, abs=1e-12)
    assert found.upper == pytest.approx(found.estimate + half, abs=1e-12)
    assert one(run, earlier, model="new", reference="run-3").reference == "run run-3"
    # itself is no earlier run
    assert one(run, [*earlier, run], model="new", reference="last").reference == "run run-4"


def test_without_an_earlier_run_it_is_skipped_and_a_changed_range_is_undefined(run):
    found = one(run, [], model="new", reference="last")
    assert (found.verdict, found.reason) == ("skipped", "the history holds no earlier run")
    other = Run.of(compared(times=np.arange(5.0, 71.0, 5.0)), id="other", date=day(1))
    found = one(run, [other], model="new", reference="last")
    assert (found.verdict, exit_code([found])) == ("undefined", 1)
    assert "that run has the mean over 5 to 70, not the mean over 5 to 80" in found.reason
    assert one(run, [other], model="new", reference="last", at=40, worse_by=1).verdict == "passed"
    assert "no such score at 75" in one(run, [other], model="new", reference="last", at=75).reason


def test_nan_never_passes(comparison):
    nan = dict.fromkeys(("score", "lower", "upper"), np.nan)
    broken = changed(Run.of(comparison), "scores", lambda row: row["model"] == "new", **nan)
    for keys in ({"below": 1}, {"above": -1}, {"above": -9, "below": 9}, {"value": "upper", "below": 9}):
        found = one(broken, model="new", **keys)
        assert (found.verdict, found.fails) == ("undefined", True)
    warned = one(broken, model="new", below=1, severity="warning")
    assert (warned.verdict, warned.warns, exit_code([warned])) == ("undefined", True, 0)


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_a_named_range_without_scores_is_undefined_and_the_whole_mean_stops():
    comparison = compared(n=120, times=np.arange(0.0, 121.0, 10.0), metric=("brier", "auc"))
    run = Run.of(comparison, ranges=[(0.0, 120.0), (0.0, 50.0)])
    assert one(run, metric="brier", model="new", range=[0, 50], below=1).verdict == "passed"
    found = one(run, metric="auc", model="new", range=[0, 50], above=0)  # nobody has the event at 0
    assert (found.verdict, found.when) == ("undefined", "mean over 0 to 50")
    with pytest.raises(ss.InputError, match="evaluation times that cover it"):
        Run.of(comparison, ranges=[(0.0, 500.0)])


def test_too_few_events(run):
    found = one(run, model="new", below=0, min_events=10**6)
    assert (found.verdict, found.fails) == ("skipped", False)
    assert "too few events" in found.reason
    found = one(run, model="new", below=1)
    assert one(run, model="new", below=1, min_events=found.n_events).verdict == "passed"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"model": "nwe", "below": 1}, "model 'nwe' is not in the results; did you mean 'new'?"),
        ({"metric": "log", "below": 1}, "metric 'log' is not in the results; there is 'brier', 'auc'"),
        ({"weighting": "adminstrative", "below": 1}, "did you mean 'administrative'?"),
        ({"at": 41, "below": 1}, "at 41 is not an evaluation time of the results; nearest are scores at 40 and at 45"),
        ({"range": [0, 61], "below": 1}, "nearest are scores mean over 10 to 60"),
        ({"reference": "odl"}, "did you mean 'old'?"),
        ({"value": "hazard-ratio", "reference": "old", "below": 2}, "with a run of the history, not with a model"),
        ({"reference": "last"}, "needs a history"),
        ({"model": "old", "reference": "old"}, "model and reference are both 'old'"),
        ({"model": "old", "reference": "Kaplan-Meier"}, "only differences to 'old'"),
        ({"segment": "each", "below": 1}, "the results have no segments"),
    ],
)
def test_names_that_match_nothing_are_refused(run, keys, message):
    if "Kaplan-Meier" in keys.values():
        kept = [row for row in run.tables["contrasts"] if row["model"] != "Kaplan-Meier"]
        run = replace(run, tables={**run.tables, "contrasts": kept})
    with pytest.raises(ss.InputError) as caught:
        findings(run, **keys)
    assert message in str(caught.value)
    assert str(caught.value).startswith("check 1: ")


def test_ambiguous_names_are_refused(comparison):
    run = Run.of(compared(weighting=[ss.IPCW(max_weight=5), ss.IPCW()]))
    with pytest.raises(ss.InputError, match="name one in full"):
        findings(run, weighting="ipcw", below=1)
    run = Run.of(comparison)
    run = changed(run, "scores", lambda row: row["model"] == "old", model="last")
    with pytest.raises(ss.InputError, match="is a model and a run of the history"):
        findings(run, [], model="new", reference="last")


@pytest.mark.parametrize(
    ("code", "verdict"), [("better", "passed"), ("depends", "undefined"), ("too few", "undefined")]
)
def test_differences_that_cannot_be_concluded_do_not_pass(code, verdict):
    run = Run.of(compared(metric=("brier",), weighting=["administrative", "projected"]), references=["new"])
    run = changed(run, "recommendations", verdict=code)
    rule = {"model": "old", "reference": "new"}
    found = one(run, **rule)
    assert (found.verdict, found.weighting) == (verdict, "projected (own ranks)")
    turned = one(run, model="new", reference="old", value="difference", above=0)
    assert turned.recommendation == found.recommendation


@pytest.fixture(scope="module")
def projected():
    return compared(metric=("brier",), weighting=["administrative", "projected"])


@pytest.mark.parametrize("code", ["better", "worse", "undecided", "depends", "too few"])
def test_a_rule_about_the_recommendation_names_what_passes(projected, code):
    run = changed(Run.of(projected), "recommendations", verdict=code)
    keys = {"model": "new", "reference": "old", "value": "recommendation"}
    expected = {"better": "passed", "undecided": "passed", "worse": "failed"}.get(code, "undefined")
    found = one(run, **keys)
    assert (found.verdict, bool(found.recommendation)) == (expected, True)
    strict = {"better": "passed", "undecided": "failed"}
    assert one(run, verdict="better", **keys).verdict == strict.get(code, expected)
    turned = {"worse": "passed", "better": "failed"}  # of the other model
    other = one(run, model="old", reference="new", value="recommendation")
    assert other.verdict == turned.get(code, expected)


def test_a_leak_fails_the_model_that_is_said_to_encode_the_entry_date(projected, run):
    assert [found.verdict for found in findings(Run.of(projected), value="leak")] == ["passed", "passed"]
    leaking = changed(Run.of(projected), "recommendations", lambda row: row["model"] == "new", encodes=["new"])
    assert {found.model: found.verdict for found in findings(leaking, value="leak")} == {
        "old": "passed",
        "new": "failed",
    }
    found = one(run, model="new", value="leak")  # without projected scores it can't be known
    assert (found.verdict, found.fails) == ("undefined", True)


def test_the_hazard_ratio_of_late_starters_is_held_against_limits_and_an_earlier_run(projected):
    run = Run.of(projected, id="tonight", date=day(9))
    point = projected.recommendation().verdicts[0].sensitivity
    found = one(run, value="hazard-ratio", above=0.01, below=100)
    assert (found.verdict, found.value) == ("passed", pytest.approx(point.hazard_ratio))
    assert found.what == "brier of all models, mean over 5 to 80"
    assert (found.lower, found.upper) == (pytest.approx(point.ratio_lower), pytest.approx(point.ratio_upper))
    assert one(run, value="hazard-ratio", above=99).verdict == "failed"
    twice = {"hazard_ratio": 2 * point.hazard_ratio, "ratio_lower": 2 * point.ratio_lower}
    earlier = changed(replace(run, id="before"), "recommendations", ratio_upper=2 * point.ratio_upper, **twice)
    found = one(run, [earlier], value="hazard-ratio", reference="last", above=0.8)
    assert (found.verdict, found.value) == ("failed", pytest.approx(0.5))
    half = math.log(point.ratio_upper / point.ratio_lower) / 2
    assert math.log(found.upper / found.lower) / 2 == pytest.approx(math.sqrt(2) * half)
    assert one(run, [], value="hazard-ratio", reference="last", above=0.8).verdict == "skipped"


def test_failing_findings_come_first(run):
    rules = [{"below": 1}, {"below": 0, "severity": "warning"}, {"below": 1, "min_events": 1e9}, {"below": 0}]
    found = check(run, parse_rules({"check": [{"model": "new", **rule} for rule in rules]}))
    assert [one.number for one in found] == [4, 2, 3, 1]
    assert exit_code(found) == 1
    assert exit_code(found[1:]) == 0
