"""The command: exit codes of what can happen in a night, what it writes, and that mistakes are one line."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from checks_case import with_segments
from survscore.checks import read_history


@pytest.fixture
def files(study):
    return [study / "outcomes.csv", study / "truth.csv", study / "leaking.csv", "-w", "administrative"]


@pytest.fixture
def rules(tmp_path):
    """Return a function that writes rules."""

    def write(text, name="rules.toml"):
        path = tmp_path / name
        path.write_text("".join(f"[[check]]\n{one}\n" for one in text.split("---")))
        return path

    return write


@pytest.fixture
def results(command, files, tmp_path):
    """Return the path of what compare wrote."""
    path = tmp_path / "result.json"
    assert command("compare", *files, "--json", path)[0] == 0
    return path


def test_an_absolute_threshold_is_broken(command, files, rules):
    path = rules('name = "good"\nmodel = "truth"\nbelow = 0.01\n---model = "truth"\nbelow = 0.9')
    code, out, err = command("check", path, *files)
    assert (code, err) == (1, "")
    assert out.index("failed") < out.index("passed")  # failing first
    assert out.rstrip().endswith("1 of 2 checks failed")
    warned = rules('model = "truth"\nbelow = 0.01\nseverity = "warning"')
    code, out, _ = command("check", warned, *files)
    assert code == 0
    assert out.rstrip().endswith("0 of 1 check failed, 1 warning")


def test_against_the_last_run(command, files, rules, study, tmp_path):
    history = ["--history", tmp_path / "history.jsonl"]
    path = rules('model = "net"\nrange = [1, 50]\nreference = "last"\nworse_by = 0.01')
    good, bad = [study / "outcomes.csv", f"net={study / 'truth.csv'}"], [study / "outcomes.csv", "net=bad.csv"]
    text = (study / "truth.csv").read_text().splitlines()
    turned = [text[0], *(",".join([row.split(",")[0], *["0.01"] * (row.count(","))]) for row in text[1:])]
    (tmp_path / "bad.csv").write_text("\n".join(turned))
    code, out, _ = command("check", path, *good, "-w", "administrative", *history, "--run-id", "monday")
    assert code == 0
    assert "skipped, the history holds no earlier run" in out
    code, out, _ = command("check", path, *good, "-w", "administrative", *history, "--run-id", "tuesday")
    assert (code, "passed" in out) == (0, True)
    code, out, _ = command("check", path, *bad, "-w", "administrative", *history, "--run-id", "wednesday")
    assert (code, "failed" in out) == (1, True)
    # a run that fails is recorded too, and is the last one now
    assert [run.id for run in read_history(tmp_path / "history.jsonl").runs] == ["monday", "tuesday", "wednesday"]
    assert command("check", path, *bad, "-w", "administrative", *history, "--no-record")[0] == 0
    assert len(read_history(tmp_path / "history.jsonl").runs) == 3
    code, out, err = command("check", path, *bad, "-w", "administrative", *history, "--run-id", "monday")
    assert (code, out) == (2, "")
    assert "there is a run 'monday' already" in err
    with (tmp_path / "history.jsonl").open("ab") as file:
        file.write(b'{"survscore_run": 1, "id": "thurs')
    code, _, err = command("check", path, *bad, "-w", "administrative", *history, "--run-id", "friday")
    assert code == 0
    assert "note:" in err
    assert "line 4 is broken" in err
    assert len(read_history(tmp_path / "history.jsonl").runs) == 4


def test_a_segment_is_broken(command, results, rules, tmp_path):
    segmented = tmp_path / "segmented.json"
    segmented.write_text(json.dumps(with_segments(json.loads(results.read_text()))))
    each = rules('name = "everywhere"\nmodel = "truth"\nsegment = "each"\nbelow = 0.2')
    code, out, _ = command("check", each, "--results", segmented)
    assert code == 1
    assert re.search(r"everywhere\s+country = FR.*failed", out)
    assert re.search(r"everywhere\s+country = DE.*passed", out)
    assert command("check", rules('model = "truth"\nbelow = 0.2'), "--results", segmented)[0] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('model = "truht"\nbelow = 1', "check 1: model 'truht' is not in the results; did you mean 'truth'?"),
        ('metric = "bier"\nbelow = 1', "metric 'bier' is unknown; did you mean 'brier'?"),
        ('reference = "last"', "--history FILE"),
    ],
)
def test_bad_rules_are_one_line_and_code_2(command, files, rules, tmp_path, text, message):
    path = rules(text)
    before = sorted(tmp_path.iterdir())
    written = ["--json", "a.json", "--junit", "a.xml", "--markdown", "a.md", "--history", "h.jsonl"]
    code, out, err = command("check", path, *files, *(written[:6] if "last" in text else written))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert sorted(tmp_path.iterdir()) == before  # nothing is written


def test_bad_usage_is_one_line_and_code_2(command, files, rules, results, tmp_path):
    path = rules("below = 1")
    for arguments, message in (
        ([path], "give OUTCOMES and PREDICTIONS, or --results"),
        ([path, *files, "--results", results], "without use for outcomes"),
        ([path, "--results", results, "-w", "ipcw"], "without use for -w"),
        ([path, "--results", tmp_path / "absent.json"], "there is no such file"),
        ([path, "--results", path], "is not JSON"),
        ([path, "--results", results, "--record"], "are for --history"),
        ([path, *files, "--storage-option", "a=b"], "--storage-option is for an address"),
        ([path, "--results", results, "--run-id", "a/b"], "a run's id must be"),
        ([path, "--results", results, "--junit", "-"], "can't go to standard output"),
        ([path, "--results", results, "--json", "-", "--markdown", "-"], "only one of"),
        ([path, "--results", results, "--json", results], "is read and can't be written"),
        ([path, "--results", results, "--markdown", path], "is read and can't be written"),
        ([path, "--results", results, "--history", "a.txt", "--json", "b.txt"], "must end in .json"),
        (["--init", path], "is there already, and is not overwritten"),
        (["--init", "new.toml", *files], "takes nothing else"),
        (["--init", "new.txt"], "must end in .toml"),
        ([tmp_path / "absent.toml", *files], "--init"),
    ):
        code, out, err = command("check", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), (arguments, err)
        assert message in err
    assert path.read_text() == "[[check]]\nbelow = 1\n"


def test_results_are_checked_as_the_files_are(command, files, results, rules):
    path = rules(
        'reference = "truth"\nworse_by = 1\n---at = 50\nvalue = "upper"\nbelow = 1\n---value = "skill"\nabove = 0'
    )
    times = ["-t", "0:100:1"]
    command("compare", *files, *times, "--json", results)
    found = []
    for given in (["--results", results], [*files, *times]):
        code, out, err = command("check", path, *given, "--json", "-")
        assert (code, err) == (0, "0 of 5 checks failed\n")
        found.append([(one["model"], one["value"], one["when"]) for one in json.loads(out)["findings"]])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: [], "does not hold settings and scores"),
        (lambda data: {**data, "settings": 3}, "does not hold settings and scores"),
        (lambda data: {**data, "scores": []}, "scores is empty"),
        (lambda data: {**data, "scores": 3}, "scores must be a list of rows"),
        (lambda data: {**data, "scores": [{**data["scores"][0], "model": 3}]}, "scores: row 0: model must be a text"),
        (lambda data: {**data, "means": [{**data["means"][0], "score": "x"}]}, "means: row 0: score must be a number"),
        (lambda data: {**data, "means": [{"metric": "brier"}]}, "means has no 'weighting'"),
        (lambda data: {**data, "scores": [{**data["scores"][0], "se": 10**400}]}, "se must be a number or null"),
        (lambda data: {**data, "scores": [{**data["scores"][0], "model": "\ud800"}]}, "model must be a text"),
    ],
)
def test_results_of_another_shape_are_refused(command, results, rules, change, message):
    data = change(json.loads(results.read_text()))
    results.write_text(json.dumps(data))
    code, out, err = command("check", rules("below = 1"), "--results", results)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    results.write_text("[" * 100_000)
    assert command("check", rules("below = 1"), "--results", results)[0] == 2
    results.write_text('{"settings": {"a": 1e999}, "scores": [{"x": 1e999}]}')
    assert command("check", rules("below = 1"), "--results", results)[0] == 2
    results.write_text('{"settings": {}, "scores": [{"x": NaN}]}')
    assert "NaN is no number" in command("check", rules("below = 1"), "--results", results)[2]


def test_several_outputs_at_once(command, files, rules, tmp_path):
    path = rules('name = "a"\nmodel = "truth"\nbelow = 0.01\n---model = "truth"\nbelow = 1\n---reference = "last"')
    files = [*files, "--history", "h.jsonl", "--no-record"]
    code, out, err = command("check", path, *files, "--json", "a.json", "--junit", "b.xml", "--markdown", "c.md")
    assert code == 1
    assert err.count("Written: ") == 3
    assert "1 of 4 checks failed, 2 skipped" in out
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["summary"] == {"checks": 4, "failed": 1, "warnings": 0, "skipped": 2, "exit_code": 1}
    suite = ET.parse(tmp_path / "b.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "2")
    assert len(suite.findall("testcase/failure")) == 1
    assert (tmp_path / "c.md").read_text().startswith("### 1 of 4 checks failed, 2 skipped\n")
    assert not list(tmp_path.glob(".survscore-*"))
    code, out, err = command("check", path, *files, "--markdown", "-")
    assert out.startswith("### 1 of 4")
    assert err == "1 of 4 checks failed, 2 skipped\n"


def test_times_of_rules_are_added_and_the_whole_mean_stays(command, files, rules):
    path = rules("\n---".join(f'model = "truth"\nbelow = 1\n{when}' for when in ("", "at = 33.3", "range = [0, 60]")))
    code, out, _ = command("check", path, *files, "--json", "-")
    assert code == 0
    whole, at, part = json.loads(out)["findings"]
    assert (at["when"], part["when"]) == ("at 33.3", "mean over 0 to 60")
    out = command("compare", *files, "-m", "brier", "--json", "-")[1]
    means = {row["model"]: row for row in json.loads(out)["means"]}
    assert whole["value"] == pytest.approx(means["truth"]["score"], abs=1e-4)
    assert whole["when"] == f"mean over {means['truth']['from']:g} to {means['truth']['to']:g}"


@pytest.fixture(scope="module")
def churn(tmp_path_factory):
    """Return files of an honest but coarse model, and of one that is better up to C* and falls to zero after it."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(1)
    rate, grid = rng.gamma(2, 0.05, 2000), np.array([6.0, 9.0, 12.0])
    event_time, end = rng.exponential(1 / rate), rng.uniform(2, 20, 2000)
    honest = np.exp(-rate[:, None] * grid)
    models = {
        "coarse": 0.5 * honest + 0.5 * honest.mean(axis=0),
        "leak": np.where(end[:, None] < grid, 0.02 * honest, honest),
    }
    folder = tmp_path_factory.mktemp("churn")
    outcomes = {"time": np.minimum(event_time, end), "event": (event_time <= end).astype(int), "censoring_time": end}
    pd.DataFrame(outcomes).to_csv(folder / "y.csv", index=False)
    for name, values in models.items():
        pd.DataFrame(values, columns=["6", "9", "12"]).to_csv(folder / f"{name}.csv", index=False)
    return [folder / "y.csv", folder / "coarse.csv", folder / "leak.csv"]


LEAK = 'name = "leak is not worse"\nmodel = "leak"\nreference = "coarse"'


@pytest.mark.parametrize("options", [[], ["-w", "administrative", "-w", "projected"]])
@pytest.mark.parametrize("when", ["", "\nat = 12", "\nrange = [6, 9]"])
def test_a_leaking_model_fails_by_the_recommendation(command, churn, rules, options, when):
    code, out, _ = command("check", rules(LEAK + when), *churn, *options, "--json", "-")
    told = json.loads(out)
    (found,) = told["findings"]
    assert (code, found["verdict"], found["weighting"]) == (1, "failed", "projected (own ranks)")
    assert "leak" in found["recommendation"]
    assert "Do not use it for new individuals." in found["recommendation"]
    assert told["recommendation"] == [found["recommendation"]]
    named = command("check", rules(f'{LEAK}{when}\nweighting = "administrative"'), *churn, *options, "--json", "-")
    assert named[0] == 0  # which is what was asked for
    assert command("check", rules('model = "coarse"\nreference = "leak"' + when), *churn, *options)[0] == 0


def test_the_recommendation_is_in_all_outputs(command, churn, rules, tmp_path):
    path, written = rules(LEAK), [tmp_path / name for name in ("c.xml", "c.md")]
    code, out, _ = command("check", path, *churn, "--junit", written[0], "--markdown", written[1])
    told = "Do not use it for new individuals."
    assert code == 1
    assert told in " ".join(out.split())
    (value,) = [one.get("value") for one in ET.parse(written[0]).iter("property")]
    assert told in value
    assert told in written[1].read_text()
    # also where no rule is about a difference, and from results
    scores = rules('value = "score"\nbelow = 1', "scores.toml")
    assert told in " ".join(command("check", scores, *churn)[1].split())
    result = tmp_path / "result.json"
    command("compare", *churn, "-r", "coarse", "-m", "brier", "--json", result)
    code, out, _ = command("check", path, "--results", result)
    assert (code, told in " ".join(out.split())) == (1, True)
    code, out, _ = command("check", rules(LEAK + "\nat = 12"), "--results", result, "--json", "-")
    (found,) = json.loads(out)["findings"]
    assert (code, found["verdict"]) == (1, "undefined")
    assert found["reason"].startswith("there is no recommendation at 12")


def test_a_check_by_the_administrative_score_alone_says_so(command, churn, rules):
    code, out, _ = command("check", rules(LEAK), *churn, "-w", "administrative", "--json", "-")
    (found,) = json.loads(out)["findings"]
    assert (code, found["verdict"], found["recommendation"]) == (0, "passed", "")
    assert found["reason"] == "by the administrative score alone, which refers to individuals with C* >= t only"
    (named,) = json.loads(
        command("check", rules(f'{LEAK}\nweighting = "administrative"'), *churn, "-w", "administrative", "--json", "-")[
            1
        ]
    )["findings"]
    assert named["reason"] == ""


def test_a_folder_an_address_and_what_evaluate_writes_of_it_are_checked(command, rules, tmp_path):
    from scale_case import write

    result, folder = tmp_path / "result.json", write(tmp_path / "data", files=4, n=200)
    by = ["-w", "administrative", "--by", "country"]
    assert command("evaluate", folder, *by, "--range", ":", "--json", result)[0] == 0
    path = rules(
        'segment = "each"\nmodel = "net"\nbelow = 0.5\n---model = "cox"\nreference = "net"\nvalue = "difference"\n'
        "above = 0.5"
    )
    found = []
    for given in ([folder, *by], [f"file://{folder}", *by], ["--results", result]):
        code, out, _ = command("check", path, *given, "--json", "-")
        findings = json.loads(out)["findings"]
        assert (code, [one["verdict"] for one in findings]) == (1, ["failed", *["passed"] * (len(findings) - 1)])
        found.append([(one["segment"], one["value"], one["when"]) for one in findings])
    assert found[0] == found[1] == found[2]
    assert {"country = DE"} < {segment for segment, *_ in found[0]}
    for given in ([folder / "x.csv"], ["--null", "none"]):
        code, _, err = command("check", path, folder, *given)
        assert (code, err.count("\n")) == (2, 1)
        assert "holds outcomes and predictions, without use for" in err
