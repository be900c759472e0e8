"""Findings: the numbers are the library's, and verdicts follow from them."""

import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import survscore as ss
from checks_case import compared, day
from survscore.checks import Run, as_json, as_junit, as_markdown, check, exit_code, parse_rules
from survscore.checks.runs import run_of_results

HOSTILE = "a|b\n<script>alert(1)</script> `x` [y](https://z) \x00\x1b[31m &amp; @all"


def findings(run, history=None, **keys):
    return check(run, parse_rules({"check": [keys]}), history)


def one(run, history=None, **keys):
    (found,) = findings(run, history, **keys)
    return found


def changed(run, table, where=None, **values):
    """Return a run with other values in the rows of a table."""
    rows = run.tables[table].copy()
    chosen = rows.index if where is None else rows.query(where).index
    for column, value in values.items():
        rows[column] = [value if k in chosen else old for k, old in rows[column].items()]
    return replace(run, tables={**run.tables, table: rows})


@pytest.fixture(scope="module")
def projected():
    return compared(metric=("brier",), weighting=["administrative", "projected"])


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
    at = comparison.scores.query("metric == 'brier' and weighting == 'administrative' and time == 40")
    found = one(run, model="old", at=40, above=0, below=1)
    assert found.value == at.set_index("model").loc["old", "score"]


def test_a_model_against_another_is_paired(run, comparison):
    contrasts = comparison.integrated().contrasts.query("weighting == 'administrative' and model == 'new'")
    brier, auc = (contrasts[contrasts["metric"] == metric].iloc[0] for metric in ("brier", "auc"))
    found = one(run, model="new", reference="old")
    assert (found.value, found.estimate, found.verdict) == (brier.lower, brier.difference, "failed")
    assert one(run, model="new", reference="old", worse_by=1).verdict == "passed"
    turned = one(run, model="old", reference="new", value="difference-upper", below=0)
    assert (turned.value, turned.verdict) == (-brier.lower, "passed")
    same = changed(run, "contrasts", difference=0.0, se=0.0, lower=0.0, upper=0.0)
    assert one(same, model="new", reference="old").verdict == "passed"
    # a higher AUC is better
    assert auc.upper < 0
    found = one(run, metric="auc", model="new", reference="old")
    assert (found.verdict, found.value, found.quantity) == ("failed", auc.upper, "difference-upper")
    assert found.threshold == "at least 0"
    assert one(run, metric="auc", model="new", reference="old", worse_by=0.5).verdict == "passed"
    assert one(run, metric="auc", model="old", reference="new").verdict == "passed"
    strict = one(run, metric="auc", model="new", reference="old", value="difference-upper", worse_by=0.1)
    assert strict.value == auc.lower


def test_what_should_be_close_to_a_target_can_lie_between_limits_and_not_be_worse():
    run = Run.of(compared(metric=("brier", "slope"), weighting="administrative", times=[20, 40]), id="now", date=day(1))
    assert run.direction("slope") == "closer to 1"
    assert one(run, metric="slope", model="old", at=40, above=0.7, below=1.3).verdict == "passed"
    assert one(run, metric="slope", model="new", at=40, above=0.7, below=1.3).verdict == "failed"
    with pytest.raises(ss.InputError, match="worse_by is of metrics of which lower or higher values are better, not"):
        one(run, metric="slope", model="new", reference="old")


def test_skill_is_against_the_null_model(run, comparison):
    row = comparison.integrated().skill.query("metric == 'brier' and weighting == 'administrative' and model == 'old'")
    assert one(run, model="old", value="skill", above=0).value == pytest.approx(row.skill.item())
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
    found = one(run, [*earlier, run], model="new", reference="last", worse_by=0.01)  # itself is no earlier run
    assert found.reference == "run run-4"
    assert found.estimate == new.value - old.value
    where = "model == 'new' and metric == 'brier' and weighting == 'administrative' and `from` < to"
    half = 1.959963984540054 * math.hypot(*(each.tables["scores"].query(where)["se"].iloc[0]
                                            for each in (run, earlier[-1])))  # fmt: skip
    assert (found.lower, found.upper) == pytest.approx((found.estimate - half, found.estimate + half), abs=1e-12)


def test_without_an_earlier_run_it_is_skipped_and_a_changed_range_is_undefined(run):
    found = one(run, [], model="new", reference="last")
    assert (found.verdict, found.reason) == ("skipped", "the history holds no earlier run")
    other = Run.of(compared(times=np.arange(5.0, 71.0, 5.0)), id="other", date=day(1))
    found = one(run, [other], model="new", reference="last")
    assert (found.verdict, exit_code([found])) == ("undefined", 1)
    assert "that run has no such score; range = [from, to] keeps means the same" in found.reason
    assert one(run, [other], model="new", reference="last", at=40, worse_by=1).verdict == "passed"


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_what_is_not_defined_never_passes(comparison):
    nan = dict.fromkeys(("score", "lower", "upper"), np.nan)
    broken = changed(Run.of(comparison), "scores", "model == 'new'", **nan)
    for keys in ({"below": 1}, {"above": -1}, {"above": -9, "below": 9}, {"value": "upper", "below": 9}):
        found = one(broken, model="new", **keys)
        assert (found.verdict, found.fails) == ("undefined", True)
    warned = one(broken, model="new", below=1, severity="warning")
    assert (warned.verdict, warned.warns, exit_code([warned])) == ("undefined", True, 0)
    # a named range without some scores is not defined, and the whole mean stops where scores do
    late = compared(n=120, times=np.arange(0.0, 121.0, 10.0), metric=("brier", "auc"))
    rules = parse_rules({"check": [{"range": [0, 120], "below": 1}, {"range": [0, 50], "below": 1}]})
    run = Run.of(late, rules)
    assert one(run, metric="brier", model="new", range=[0, 50], below=1).verdict == "passed"
    found = one(run, metric="auc", model="new", range=[0, 50], above=0)  # no individual has the event at 0
    assert (found.verdict, found.when) == ("undefined", "mean over 0 to 50")
    with pytest.raises(ss.InputError, match="evaluation times that cover it"):
        Run.of(late, parse_rules({"check": [{"range": [0, 500], "below": 1}]}))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"model": "nwe", "below": 1}, "model 'nwe' is not in the results; did you mean 'new'?"),
        ({"metric": "log", "below": 1}, "metric 'log' is not in the results; there is 'brier', 'auc'"),
        ({"weighting": "adminstrative", "below": 1}, "did you mean 'administrative'?"),
        ({"at": 41, "below": 1}, "at 41 is not an evaluation time of the results; nearest are scores at 40 and at 45"),
        ({"range": [0, 61], "below": 1}, "nearest are scores mean over 10 to 60"),
        ({"reference": "odl"}, "did you mean 'old'?"),
        ({"reference": "last"}, "needs a history"),
        ({"model": "old", "reference": "old"}, "model and reference are both 'old'"),
        ({"model": "old", "reference": "Kaplan-Meier"}, "only differences to 'old'"),
        ({"segment": "each", "below": 1}, "the results have no segments"),
        ({"cause": "churn", "below": 1}, "not of a cause of competing risks"),
    ],
)
def test_names_that_match_nothing_are_refused(run, keys, message):
    if "Kaplan-Meier" in keys.values():
        kept = run.tables["contrasts"].query("model != 'Kaplan-Meier'")
        run = replace(run, tables={**run.tables, "contrasts": kept})
    with pytest.raises(ss.InputError) as caught:
        findings(run, **keys)
    assert message in str(caught.value)
    assert str(caught.value).startswith("check 1: ")


def test_ambiguous_names_are_refused(comparison):
    run = Run.of(compared(weighting=[ss.IPCW(max_weight=5), ss.IPCW()]))
    with pytest.raises(ss.InputError, match="name one in full"):
        findings(run, weighting="ipcw", below=1)
    run = changed(Run.of(comparison), "scores", "model == 'old'", model="last")
    with pytest.raises(ss.InputError, match="is a model and a run of the history"):
        findings(run, [], model="new", reference="last")


@pytest.mark.parametrize("code", ["better", "worse", "undecided", "depends", "too few"])
def test_rules_go_by_the_recommendation(projected, code):
    run = changed(Run.of(projected), "recommendations", verdict=code)
    keys = {"model": "new", "reference": "old", "value": "recommendation"}
    is_open = code in ("depends", "too few")
    found = one(run, **keys)
    assert found.verdict == ("undefined" if is_open else "failed" if code == "worse" else "passed")
    assert found.recommendation
    other = one(run, model="old", reference="new", value="recommendation")
    assert other.verdict == ("undefined" if is_open else "failed" if code == "better" else "passed")
    # a difference is that of the projected score, and undefined where that is not conclusive
    difference = one(run, model="old", reference="new")
    assert (difference.verdict, difference.weighting) == ("undefined" if is_open else "passed", "projected (own ranks)")
    assert difference.recommendation == found.recommendation
    assert one(run, model="old", reference="new", weighting="projected").verdict == "passed"


def test_a_leak_fails_the_model_that_is_said_to_encode_the_entry_date(projected, run):
    assert [found.verdict for found in findings(Run.of(projected), value="leak")] == ["passed", "passed"]
    leaking = changed(Run.of(projected), "recommendations", "model == 'new'", encodes=["new"])
    verdicts = {found.model: found.verdict for found in findings(leaking, value="leak")}
    assert verdicts == {"old": "passed", "new": "failed"}
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
    rules = [{"below": 1}, {"below": 0, "severity": "warning"}, {"below": 1, "reference": "last"}, {"below": 0}]
    found = check(run, parse_rules({"check": [{"model": "new", **rule} for rule in rules]}), [])
    assert [each.number for each in found] == [4, 2, 3, 1]
    assert exit_code(found) == 1
    assert exit_code(found[1:]) == 0


def test_names_that_mean_harm_stay_names():
    numbers = {"time": 5.0, "score": 0.5, "se": 0.1, "lower": 0.4, "upper": 0.6}
    row = {"land": HOSTILE, "metric": "brier", "weighting": HOSTILE, "model": HOSTILE, **numbers}
    run = run_of_results({"settings": {"note": HOSTILE}, "scores": [row]}, id="x")
    rules = parse_rules({"check": [{"name": HOSTILE, "segment": "each", "at": 5, "below": limit} for limit in (0, 1)]})
    found = check(run, rules)
    text = as_junit(run, found)
    suite = ET.fromstring(text).find("testsuite")
    assert len(suite.findall("testcase")) == 2
    assert "<script>" in suite.find("testcase").get("name")  # escaped in the file, and the same again when read
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", text)
    marked = as_markdown(run, found)
    rows = [line for line in marked.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 7 for row in rows)
    assert "<" not in marked
    assert "](" not in marked.replace("\\](", "")
    assert "`" not in marked.replace("\\`", "")
    assert json.loads(as_json(run, found))["findings"][0]["model"] == HOSTILE
