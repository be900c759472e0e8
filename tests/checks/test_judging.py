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
    found = one(run, model="old", at=40, between=[0, 1])
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
    score = one(run, model="old", below=1).value
    relative = one(run, model="new", reference="old", value="relative-difference", below=1)
    assert relative.value == pytest.approx(row.difference.item() / score)
    # the same model is not worse than itself
    tables = {name: table.copy() for name, table in run.tables.items()}
    tables["contrasts"][["difference", "se", "lower", "upper"]] = 0.0
    assert one(replace(run, tables=tables), model="new", reference="old").verdict == "passed"


def test_what_should_be_close_to_a_target_can_lie_between_limits_and_not_be_worse():
    run = Run.of(compared(metric=("brier", "slope"), weighting="administrative", times=[20, 40]), id="now", date=day(1))
    assert run.direction("slope") == "closer to 1"
    assert one(run, metric="slope", model="old", at=40, between=[0.7, 1.3]).verdict == "passed"
    assert one(run, metric="slope", model="new", at=40, between=[0.7, 1.3]).verdict == "failed"
    with pytest.raises(ss.InputError, match="worse_by is of metrics of which lower or higher values are better, not"):
        one(run, metric="slope", model="new", reference="old")
    with pytest.raises(ss.InputError, match="skill is of metrics of which lower values are better, not of 'slope'"):
        one(run, metric="slope", model="new", value="skill", above=0)
    assert one(run, metric="*", model="new", reference="old", worse_by=0.5).metric == "brier"


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
    assert {found.metric for found in findings(run, metric="*", value="skill", above=0)} == {"brier"}


def test_all_models_are_all_but_the_null_model_and_the_reference(run):
    assert [found.model for found in findings(run, below=1)] == ["old", "new"]
    assert [found.model for found in findings(run, reference="old", worse_by=1)] == ["new"]
    assert [found.model for found in findings(run, model=["Kaplan-Meier", "new"], below=1)] == ["Kaplan-Meier", "new"]
    assert {found.metric for found in findings(run, metric="*", below=1)} == {"brier", "auc"}


def test_against_an_earlier_run_scores_are_independent(run):
    earlier = [Run.of(compared(seed=seed, power=1.0), id=f"run-{seed}", date=day(seed)) for seed in (2, 3, 4)]
    new, old = one(run, model="new", below=1), one(earlier[-1], model="new", below=1)
    found = one(run, earlier, model="new", reference="last", worse_by=0.01)
    assert found.reference == "run run-4"
    assert found.estimate == new.value - old.value
    table = run.tables["means"], earlier[-1].tables["means"]
    ses = [
        rows[(rows.model == "new") & (rows.metric == "brier") & (rows.weighting == "administrative")].se.iloc[0]
        for rows in table
    ]
    half = 1.959963984540054 * math.hypot(*ses)
    assert found.lower == pytest.approx(found.estimate - half, abs=1e-12)
    assert found.upper == pytest.approx(found.estimate + half, abs=1e-12)
    for reference, wanted in (("first", 2), ("run-3", 3), ("2025-01-03", 3), ({"run": "2025-01-04"}, 4)):
        assert one(run, earlier, model="new", reference=reference).reference == f"run run-{wanted}"
    # itself is no earlier run
    assert one(run, [*earlier, run], model="new", reference="last").reference == "run run-4"


def test_without_an_earlier_run_it_is_skipped_and_a_changed_range_is_undefined(run):
    found = one(run, [], model="new", reference="last")
    assert (found.verdict, found.reason) == ("skipped", "the history holds no earlier run")
    other = Run.of(compared(times=np.arange(5.0, 71.0, 5.0)), id="other", date=day(1))
    found = one(run, [other], model="new", reference="last")
    assert (found.verdict, exit_code([found])) == ("undefined", 1)
    assert "that run has the mean over 5 to 70, not the mean over 5 to 80" in found.reason
    assert one(run, [other], model="new", reference="last", undefined="skip").verdict == "skipped"
    assert one(run, [other], model="new", reference="last", at=40, worse_by=1).verdict == "passed"
    assert "no score at 75" in one(run, [other], model="new", reference="last", at=75).reason


def test_nan_never_passes(comparison):
    run = Run.of(comparison)
    tables = {name: table.copy() for name, table in run.tables.items()}
    tables["means"].loc[tables["means"].model == "new", ["score", "lower", "upper"]] = np.nan
    broken = replace(run, tables=tables)
    for keys in ({"below": 1}, {"above": -1}, {"between": [-9, 9]}, {"value": "upper", "below": 9}):
        found = one(broken, model="new", **keys)
        assert (found.verdict, found.fails) == ("undefined", True)
        assert one(broken, model="new", undefined="skip", **keys).verdict == "skipped"
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
    found = one(run, model="new", below=1, min_events=10**6, on_too_few="error")
    assert (found.verdict, found.fails) == ("failed", True)
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
        ({"reference": {"model": "last"}}, "is no model of the results"),
        ({"reference": "last"}, "needs a history"),
        ({"reference": {"run": "x"}}, "needs a history"),
        ({"model": "old", "reference": "old"}, "model and reference are both 'old'"),
        ({"model": "old", "reference": "Kaplan-Meier"}, "only differences to 'old'"),
        ({"segment": "each", "below": 1}, "the results have no segments"),
    ],
)
def test_names_that_match_nothing_are_refused(run, keys, message):
    if "Kaplan-Meier" in keys.values():
        contrasts = run.tables["contrasts"]
        kept = contrasts[contrasts.model != "Kaplan-Meier"]
        run = replace(run, tables={**run.tables, "contrasts": kept})
    with pytest.raises(ss.InputError) as caught:
        findings(run, **keys)
    assert message in str(caught.value)
    assert str(caught.value).startswith("check 1: ")


def test_ambiguous_names_are_refused(comparison):
    run = Run.of(compared(weighting=[ss.IPCW(max_weight=5), ss.IPCW()]))
    with pytest.raises(ss.InputError, match="name one in full"):
        findings(run, weighting="ipcw", below=1)
    table = {name: frame.replace({"old": "last"}) for name, frame in Run.of(comparison).tables.items()}
    run = replace(Run.of(comparison), tables=table)
    with pytest.raises(ss.InputError, match=r"is a model and a run; say \{model = 'last'\}"):
        findings(run, [], model="new", reference="last")
    assert one(run, [], model="new", reference={"model": "last"}).reference == "last"


@pytest.mark.parametrize(
    ("code", "verdict"), [("better", "passed"), ("depends", "undefined"), ("too few", "undefined")]
)
def test_differences_that_cannot_be_concluded_do_not_pass(code, verdict):
    run = Run.of(compared(metric=("brier",), weighting=["administrative", "projected"]), references=["new"])
    table = run.tables["recommendations"].assign(verdict=code)
    run = replace(run, tables={**run.tables, "recommendations": table})
    rule = {"model": "old", "reference": "new"}
    found = one(run, **rule)
    assert (found.verdict, found.weighting) == (verdict, "projected (own ranks)")
    assert one(run, **rule, undefined="skip").verdict == {"undefined": "skipped"}.get(verdict, verdict)
    turned = one(run, model="new", reference="old", value="difference", above=0)
    assert turned.recommendation == found.recommendation


def test_failing_findings_come_first(run):
    rules = [{"below": 1}, {"below": 0, "severity": "warning"}, {"below": 1, "min_events": 1e9}, {"below": 0}]
    found = check(run, parse_rules({"check": [{"model": "new", **rule} for rule in rules]}))
    assert [one.number for one in found] == [4, 2, 3, 1]
    assert exit_code(found) == 1
    assert exit_code(found[1:]) == 0
