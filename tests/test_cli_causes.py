"""Competing causes at the command line: one is named, or all are shown, and results say of which they are."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from commands import refused, run
from survscore.io import read_study

TIMES = [2.0, 4.0, 8.0]
CAUSES = ["default", "repayment"]
NAMED = ["--causes", "default,repayment"]
COLUMNS = "[columns={cause}_{time}]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with outcomes of loans with two causes, and predictions of two models."""
    folder, rng, n = tmp_path_factory.mktemp("causes"), np.random.default_rng(4), 400
    rates = np.stack([rng.gamma(2, 0.04, n), rng.gamma(4, 0.03, n)], axis=1)
    event_time, end = rng.exponential(1 / rates.sum(axis=1)), rng.uniform(2, 12, n)
    cause = np.where(rng.uniform(size=n) < rates[:, 0] / rates.sum(axis=1), 1, 2) * (event_time <= end)
    frame = {"id": range(n), "time": np.minimum(event_time, end), "event": cause, "censoring_time": end}
    why = np.array(["open", "default", "repaid"])[cause]
    pd.DataFrame({**frame, "why": why, "plan": rng.integers(0, 2, n)}).to_csv(folder / "y.csv", index=False)
    total = rates.sum(axis=1)[:, None]
    for name, power in (("good", 1.0), ("flat", 0.0)):
        shares = (rates / total)[:, :, None] ** power
        shares = shares / shares.sum(axis=1, keepdims=True)
        values = shares * (1 - np.exp(-total * TIMES))[:, None, :]
        columns = {f"{c}_{t:g}": values[:, k, j] for k, c in enumerate(CAUSES) for j, t in enumerate(TIMES)}
        pd.DataFrame({"id": range(n), **columns}).to_csv(folder / f"{name}.csv", index=False)
    of_one = pd.read_csv(folder / "good.csv").filter(regex="id|default").rename(columns=lambda c: c.split("_")[-1])
    of_one.to_csv(folder / "one.csv", index=False)
    return folder


def files(folder, *names):
    return [folder / "y.csv", *(f"{folder / name}.csv{COLUMNS}" for name in names or ("good", "flat"))]


def told(capsys, *arguments):
    """Return what a command writes as JSON."""
    code, out, err = run(capsys, *arguments, "--json", "-")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("cause", ["default", "repayment", "all", "2"])
@pytest.mark.parametrize("command", ["score", "compare"])
def test_scores_are_of_the_cause_that_is_named(capsys, folder, command, cause):
    asked = [*files(folder), *NAMED, "--cause", cause, "-w", "administrative", "-t", "2,4"]
    found = told(capsys, command, *asked)
    study = read_study(folder / "y.csv", [folder / "good.csv", folder / "flat.csv"], causes=CAUSES,
                       columns="{cause}_{time}")  # fmt: skip
    named = "repayment" if cause == "2" else cause
    wanted = ss.compare(study.outcomes, study.models, metric=["brier", "log"], weighting="administrative",
                        times=[2, 4], null=command == "compare", cause=named).scores  # fmt: skip
    keys = ["metric", "model", "time"]
    both = pd.DataFrame(found["scores"]).merge(wanted, on=keys, suffixes=("", "_wanted"))
    assert len(both) == len(wanted)
    np.testing.assert_allclose(both["score"], both["score_wanted"], rtol=1e-12)
    assert found["settings"]["cause"] == named
    assert found["settings"]["causes"] == study.outcomes.n_by_cause


@pytest.mark.parametrize("command", ["score", "compare"])
def test_without_a_cause_one_line_lists_them(capsys, folder, command):
    message = refused(capsys, command, *files(folder), *NAMED, "-w", "administrative")
    counts = pd.read_csv(folder / "y.csv")["event"].value_counts()
    assert f"events have 2 causes, 'default' ({counts[1]}) and 'repayment' ({counts[2]})" in message
    assert "--cause says which one scores are of" in message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--cause", "defualt"], "--cause must be the name of a cause, or its number from 1 on, not 'defualt'"),
        (["--cause", "3"], "the causes are 'default' and 'repayment'"),
        (["--cause", "default", "--as-of", "2017-01-01"], "--as-of needs outcomes as dates"),
    ],
)
def test_unknown_causes_are_refused(capsys, folder, tmp_path, more, message):
    command = "report" if "--as-of" in more else "compare"
    out = ["-o", tmp_path / "r.html"] if command == "report" else []
    assert message in refused(capsys, command, *files(folder), *NAMED, "-w", "administrative", *more, *out)


def test_events_of_one_kind_have_no_cause(capsys, folder, tmp_path):
    frame = pd.read_csv(folder / "y.csv")
    frame.assign(event=(frame["event"] == 1).astype(int)).to_csv(tmp_path / "y.csv", index=False)
    one = [folder / "one.csv", "--predicts", "event"]
    message = refused(capsys, "compare", tmp_path / "y.csv", *one, "-w", "administrative", "--cause", "1")
    assert "--cause 1 is for competing causes" in message
    message = refused(capsys, "compare", tmp_path / "y.csv", f"{folder / 'good.csv'}{COLUMNS}", "-w", "administrative")
    assert "predict 2 causes, 'default' and 'repayment', and y has events of one kind" in message


def test_predictions_of_one_cause_alone(capsys, folder):
    asked = ["-w", "administrative", "-m", "brier", "-t", "2,4", *NAMED]
    one = told(
        capsys, "compare", folder / "y.csv", folder / "one.csv", "--predicts", "event", *asked, "--cause", "default"
    )
    both = told(capsys, "compare", *files(folder, "good"), *asked, "--cause", "default")
    pairs = [[row["score"] for row in found["scores"]] for found in (one, both)]
    np.testing.assert_allclose(*pairs, rtol=1e-12)
    message = refused(capsys, "table", folder / "y.csv", folder / "one.csv", "--predicts", "event", *asked[:4], *NAMED)
    assert "--cause says which one scores are of" in message


def test_reasons_say_which_cause_is_the_event(capsys, folder):
    reasons = ["--reason", "why", "--event-reasons", "default", "--competing-reasons", "repayment=repaid"]
    asked = [*files(folder), "-w", "administrative", "-m", "brier", "-t", "4"]
    by_reason = told(capsys, "compare", *asked, *reasons, "--censored-reasons", "open")
    by_code = told(capsys, "compare", *asked, *NAMED, "--cause", "default")
    assert by_reason["scores"] == by_code["scores"]
    other = told(capsys, "compare", *asked, *reasons, "--censored-reasons", "open", "--cause", "repayment")
    assert other["settings"]["cause"] == "repayment"
    message = refused(capsys, "compare", *asked, *reasons[:4], "--censored-reasons", "open")
    assert "'repaid'" in message
    assert "--competing-reasons (it can't come any more)" in message


def test_tables_show_each_cause_and_all_together(capsys, folder):
    asked = ["table", *files(folder), *NAMED, "-w", "administrative", "--horizons", "4"]
    rows = pd.DataFrame(told(capsys, *asked, "-m", "brier", "-m", "auc")["rows"])
    assert list(dict.fromkeys(rows["cause"])) == ["default", "repayment", "all"]
    assert set(rows.loc[rows["cause"] == "all", "metric"]) == {"brier"}
    assert set(rows.loc[rows["cause"] == "default", "metric"]) == {"brier", "auc"}
    only = pd.DataFrame(told(capsys, *asked, "-m", "auc")["rows"])
    assert set(only["cause"]) == {"default", "repayment"}
    one = pd.DataFrame(told(capsys, *asked, "-m", "brier", "--cause", "repayment")["rows"])
    wanted = rows[(rows["cause"] == "repayment") & (rows["metric"] == "brier")]
    np.testing.assert_array_equal(one["estimate"], wanted["estimate"])
    _, out, _ = run(capsys, *asked, "-m", "brier")
    assert out.index("cause default") < out.index("cause repayment") < out.index("multi-class")


def test_a_study_file_has_causes(capsys, folder, tmp_path):
    (tmp_path / "study.toml").write_text(
        f'[outcomes]\nfile = "{folder / "y.csv"}"\ncauses = ["default", "repayment"]\n'
        f'[models.good]\nfile = "{folder / "good.csv"}"\ncolumns = "{{cause}}_{{time}}"\n'
        '[score]\nweighting = "administrative"\ncause = "repayment"\nhorizons = [4]\nmetric = "brier"\n'
    )
    by_study = told(capsys, "compare", "--study", tmp_path / "study.toml")
    asked = [*files(folder, "good"), *NAMED, "-w", "administrative", "-t", "4", "-m", "brier", "--cause", "repayment"]
    assert by_study["scores"] == told(capsys, "compare", *asked)["scores"]


@pytest.mark.parametrize("more", [["--cutoff", "2020-01-01"], ["--format", "parquet"]])
def test_files_of_competing_causes_to_play_with(capsys, tmp_path, more):
    code, out, err = run(capsys, "simulate", tmp_path / "play", "--kind", "competing", "-n", "500", *more)
    assert code == 0
    proposed = shlex.split((out + err).split("Try: survscore ")[1])
    found = told(capsys, *proposed, "-m", "brier", "-t", "25,50,75")
    assert found["settings"]["causes"].keys() == {"churn", "non-payment"}
    verdicts = {row["weighting"].split()[0]: row["verdict"] for row in found["verdicts"] if row["model"] == "leaking"}
    assert verdicts == {"administrative": "undecided", "projected": "worse"}
    found = told(capsys, *proposed, "-m", "brier", "-t", "25,50,75", "-w", "ipcw")
    assert {row["verdict"] for row in found["verdicts"] if row["model"] == "leaking"} == {"better"}  # it encodes C*


RULES = """
[[check]]
metric = "brier"
model = "good"
at = 4
weighting = "administrative"
reference = "last"
worse_by = 0.001
"""


def checked(capsys, folder, rules, cause, *options):
    """Return the exit code of a check of scores of a cause, and its findings."""
    asked = [*NAMED, *(["--cause", cause] if cause else []), "-w", "administrative", "-t", "2,4", *options]
    code, out, err = run(capsys, "check", rules, *files(folder), *asked, "--json", "-")
    assert code in (0, 1), err
    return code, json.loads(out)["findings"]


def test_runs_of_another_cause_are_not_compared_with(capsys, folder, tmp_path):
    rules, history = tmp_path / "rules.toml", tmp_path / "h.jsonl"
    rules.write_text(RULES)
    by_order = [("default", None), ("repayment", None), ("all", None), ("default", "r0"), ("2", "r1"), ("all", "r2")]
    words = {"default": "cause default", "repayment": "cause repayment", "2": "cause repayment", "all": "all causes"}
    for k, (cause, reference) in enumerate(by_order):
        code, (found,) = checked(capsys, folder, rules, cause, "--history", history, "--run-id", f"r{k}")
        assert code == 0
        assert found["cause"] == ("repayment" if cause == "2" else cause)
        if reference is None:  # other causes are there, of which Brier scores are much lower or higher
            assert found["verdict"] == "skipped"
            assert found["reason"] == f"the history holds no earlier run for {words[cause]}"
        else:
            assert (found["verdict"], found["reference"]) == ("passed", f"run {reference}")
            assert found["estimate"] == 0
    of = ss.checks.Finding(**found).what
    assert of == "brier of good for all causes against run r2, at 4"
    # the page of a report shows the runs of its cause alone
    study = read_study(folder / "y.csv", [folder / "good.csv"], causes=CAUSES, columns="{cause}_{time}")
    given = {"weighting": "administrative", "times": [2, 4], "history": history}
    earlier = ss.reports.summarise(study.outcomes, study.models, cause="repayment", **given)["history"]
    assert set(earlier["means"]["id"]) == {"r1", "r4"}
    any_cause = ss.Outcomes(study.outcomes.time, study.outcomes.event, study.outcomes.censoring_time)
    flat = {"flat": ss.SurvivalCurves(np.full((len(any_cause), 2), 0.5), [2, 4])}
    earlier = ss.reports.summarise(any_cause, flat, **given)["history"]
    assert (earlier["runs"], earlier["notes"]) == (0, ["the history holds no mean scores yet"])


def test_a_rule_may_name_its_cause(capsys, folder, tmp_path):
    rules = tmp_path / "rules.toml"
    of_default = '[[check]]\ncause = "default"\nmetric = "auc"\nmodel = "good"\nat = 4\nabove = 0.1\n'
    rules.write_text(of_default + '[[check]]\ncause = "all"\nmodel = "good"\nbelow = 0.9\n')
    for cause in [*CAUSES, "all", "1"]:
        code, found = checked(capsys, folder, rules, cause)
        named = {"default": "default", "1": "default"}.get(cause, cause)
        assert code == 0
        assert {one["cause"]: one["verdict"] for one in found} == {
            which: "passed" if which == named else "skipped" for which in ("default", "all")
        }
        reasons = {"all": "the scores are for all causes"}
        skipped = [one["reason"] for one in found if one["verdict"] == "skipped"]
        assert set(skipped) == {reasons.get(named, f"the scores are for cause {named}")}
    rules.write_text(of_default.replace("default", "defualt"))
    message = refused(capsys, "check", rules, *files(folder), *NAMED, "--cause", "default", "-t", "2,4")
    assert "check 1: cause 'defualt' is not in the results; did you mean 'default'?" in message


@pytest.mark.parametrize("command", ["compare", "evaluate"])
def test_results_in_files_keep_their_cause(capsys, folder, tmp_path, command):
    rules, results = tmp_path / "rules.toml", tmp_path / "result.json"
    rules.write_text('[[check]]\ncause = "default"\nat = 4\nbelow = 0.9\n')
    for cause, verdict in (("default", "passed"), ("repayment", "skipped")):
        asked = [*NAMED, "--cause", cause, "-w", "administrative", "-t", "2,4", "--json", results]
        sources = files(folder, "good")
        if command == "evaluate":  # one table of outcomes and predictions
            table = tmp_path / "all.csv"
            pd.read_csv(folder / "y.csv").merge(pd.read_csv(folder / "good.csv")).to_csv(table, index=False)
            sources = [table, "--columns", "{cause}_{time}"]
        code, _, err = run(capsys, command, *sources, *asked)
        assert code == 0, err
        code, out, err = run(capsys, "check", rules, "--results", results, "--json", "-")
        assert code == 0, err
        assert json.loads(out)["findings"][0]["verdict"] == verdict, err
        results.unlink()


def test_the_report_says_of_which_cause_each_sentence_is(capsys, folder, tmp_path):
    data = pd.read_csv(folder / "y.csv")
    data.loc[data.index[:20], "time"] *= 0.5
    data.loc[data.index[:20], "event"] = 0
    data.to_csv(tmp_path / "y.csv", index=False)
    asked = [tmp_path / "y.csv", *files(folder)[1:], *NAMED, "-w", "administrative", "-t", "2,4"]
    code, out, err = run(capsys, "report", *asked, "-o", tmp_path / "r.html")
    assert code == 0, err
    told = out + err
    assert told.count("dropped out.") == 1
    places = [told.index(f"{name}:") for name in ("Cause default", "Cause repayment", "All causes")]
    assert told.index("dropped out.") < places[0]
    assert places == sorted(places)
