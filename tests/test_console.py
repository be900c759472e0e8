"""What the terminal shows: the demo, differences at every horizon and in percent, recommendations, who leaks, units.

`SURVSCORE_WRITE_REFERENCES=1 pytest tests/test_console.py` writes the demo's texts anew: read them.
"""

import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import demo_case
import survscore as ss
from commands import run
from survscore import cli
from survscore.analysis.diagnose import leaking_models
from survscore.cli import horizons
from survscore.cli.demonstrating import print_demo, print_opening, print_written
from survscore.reports.recommendation import recommended_weighting
from survscore.simulate import ConstantHazardStudy

DEMO_FILES = ["demo.png", "demo-narrow.png", "demo-log.png", "scores.csv", "around.csv", "summary.csv",
              "settings.json", "report.html"]  # fmt: skip


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play")
    cli.main(["simulate", str(folder / "play")])
    return [str(folder / "play" / f"{name}.csv") for name in ("outcomes", "truth", "leaking")]


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def rows(out):
    """Return the cells of the lines of all tables, as far as they name a model."""
    found = [re.split(r"  +", line.strip()) for line in out.splitlines()]
    return [cells for cells in found if {"truth", "leaking", "Kaplan-Meier"} & set(cells[:2]) and len(cells) > 1]


# The demo


def demo_text(capsys, monkeypatch, width):
    """Return what the demo prints on a terminal so many columns wide, from kept numbers."""
    monkeypatch.setenv("COLUMNS", str(width))
    size = demo_case.SIZE
    print_opening(size.training + size.validation, size.test)
    print_demo(demo_case.kept())
    print_written([Path("demo-output") / name for name in DEMO_FILES])
    return capsys.readouterr().out.replace("\\", "/")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_demo_reads_as_it_did(capsys, monkeypatch, width):
    out = demo_text(capsys, monkeypatch, width)
    path = demo_case.FOLDER / f"{width}.txt"
    if os.environ.get("SURVSCORE_WRITE_REFERENCES"):
        path.write_text(out, encoding="utf-8")
    assert out == path.read_text(encoding="utf-8")
    lines = out.splitlines()
    # it uses the width that there is, and no more
    assert width - 12 < max(map(len, lines)) <= width
    # no word is cut, and none is missing: they are those of a terminal on which every sentence is one line
    assert out.split() == demo_text(capsys, monkeypatch, 1000).split()
    # columns stand below each other
    rows_of_tables = [re.search(r"±[\d.]+  ()(?=BCE|Logistic-Hazard)", line) for line in lines]
    ends = [(found.start(), found.start(1)) for found in rows_of_tables if found]
    assert len(ends) == 10
    assert len(set(ends)) == 1


# Comparisons


def test_every_horizon_has_its_differences(capsys, play, narrow):
    asked = ["-w", "administrative", "-m", "brier", "-t", "20,40,100"]
    code, out, _ = run(capsys, "compare", *play, *asked)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 100
    told = json.loads(run(capsys, "compare", *play, *asked, "--json", "-")[1])
    expected = told["contrasts"] + told["verdicts"]
    reference = [row for row in told["scores"] if row["model"] == "truth"]
    reference += [row for row in told["means"] if row["model"] == "truth"]
    lines = rows(out)
    assert len(lines) == 3 * 4
    assert [line[0] for line in lines[::3]] == ["20", "40", "100", "mean"]
    for block in range(4):
        for model, line in (("leaking", lines[3 * block + 1]), ("Kaplan-Meier", lines[3 * block + 2])):
            row = [row for row in expected if row["model"] == model][block]
            half, score = (row["upper"] - row["lower"]) / 2, reference[block]["score"]
            p = "<0.001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}"
            relative = f"{100 * row['difference'] / score:+.1f} %"
            assert line[0] == model
            assert line[2:] == [f"{row['difference']:+.4f} ±{half:.4f}", relative, p, row["verdict"]]


def test_many_times_are_a_mean_that_says_so(capsys, play, narrow):
    out = run(capsys, "compare", *play, "-w", "administrative", "-m", "brier")[1]
    assert len(rows(out)) == 3
    assert "There are differences at 101 times: --csv FILE writes all" in out
    out = run(capsys, "compare", *play, "-w", "administrative", "-m", "brier", "-t", "10:80:10")[1]
    assert len(rows(out)) == 3 * 9
    assert "--csv" not in out


def test_scores_at_every_horizon_and_their_mean(capsys, play, narrow):
    out = run(capsys, "score", *play, "-w", "administrative", "-m", "brier", "-t", "20,40,100")[1]
    assert [line[0] for line in rows(out)[::2]] == ["20", "40", "100", "mean"]
    out = run(capsys, "score", *play, "-w", "administrative", "-m", "brier")[1]
    assert len(rows(out)) == 2 * (horizons.SHOWN + 1)
    assert "There are scores at 101 times: --csv FILE writes all" in out
    out = run(capsys, "score", *play, "-w", "administrative", "-m", "brier", "-t", "20")[1]
    assert "at 20, 95 % intervals" in out
    assert len(rows(out)) == 2


def test_no_percentages_of_what_has_no_zero(capsys, play):
    out = run(capsys, "compare", *play, "-w", "administrative", "-m", "brier", "-m", "slope", "-t", "20,40")[1]
    brier, slope = out.split("Calibration slope")
    assert "relative" in brier
    assert "relative" not in slope
    for metric in ("auc", "concordance", "net_benefit@0.2", "miscalibration", "log_score"):
        out = run(capsys, "compare", *play, "-w", "administrative", "-m", metric, "-t", "40")[1]
        assert "difference to" in out
        assert "relative" not in out, metric


@pytest.mark.parametrize("command", ["score", "compare", "table", "evaluate"])
def test_times_have_their_unit(capsys, play, tmp_path, command):
    files = play[:2]
    if command == "evaluate":
        tables = [pd.read_csv(path) for path in files]
        tables[0].merge(tables[1], on="id").to_parquet(tmp_path / "all.parquet")
        files = [tmp_path / "all.parquet"]
    times = "--horizons" if command == "table" else "-t"
    units = ["--unit", "day", "--predictions-unit", "day"]
    asked = ["-w", "administrative", "-m", "brier", times, "20,40"]
    with_unit, without = (run(capsys, command, *files, *asked, *options) for options in (units, []))
    assert with_unit[0] == without[0] == 0, with_unit[2]
    assert ("at 20 days" if command == "table" else "time (days)") in with_unit[1]
    assert "days" not in without[1]


def test_a_report_labels_its_axes(play, tmp_path, capsys):
    code, _, err = run(capsys, "report", *play[:2], "-t", "20,40", "--unit", "month", "--predictions-unit", "month",
                       "-m", "brier", "-o", tmp_path / "report.html")  # fmt: skip
    assert code == 0, err
    page = (tmp_path / "report.html").read_text()
    assert '"xlabel":"time (months)"' in page
    assert '"xlabel":"time"' not in page
    assert "over time 20 to 40 months" in page


def test_plots_label_their_axes():
    sample = ConstantHazardStudy().sample(400, seed=1)
    y, survival = sample.outcomes, sample.survival(range(1, 101))
    compared = ss.compare(y, {"truth": survival}, weighting="administrative", times=[20, 40])
    score = ss.brier_score(y, survival, weighting="administrative", times=[20, 40])
    drawn = [thing.plot(unit="D") for thing in (compared, score, ss.diagnose(y, {"truth": survival}))]
    labels = ["time (days)", "time (days)", "time since C* (days)"]
    assert [one.ax_.get_xlabel() for one in drawn] == labels
    assert score.plot().ax_.get_xlabel() == "time"


# Which weighting to use


@pytest.mark.parametrize(
    ("weightings", "n_dropped_out", "position", "sentence"),
    [
        (["ipcw", "administrative"], 0, 1, "Use administrative: C\\* is known for each individual"),
        (["ipcw", "administrative"], 12, 1, r"Use administrative \(drop-out .* weights for the 12 of 100 who"),
        (["ipcw"], None, 0, "Use ipcw .* only if predictions do not encode C"),
        (["ipcw"], 0, 0, "Use the administrative score instead of these"),
        (["administrative", "uncensored"], 0, 1, "Use uncensored: the status of each individual is known"),
    ],
)  # fmt: skip
def test_which_weighting_to_use(weightings, n_dropped_out, position, sentence):
    kinds = {"ipcw": ss.IPCW(), "administrative": ss.Administrative(), "uncensored": ss.Uncensored()}
    found = recommended_weighting([kinds[name] for name in weightings], n=100, n_dropped_out=n_dropped_out)
    assert found.position == position
    assert re.match(sentence, found.sentence)


def test_the_terminal_and_the_report_recommend_the_same(capsys, play):
    study = ss.io.read_study(play[0], play[1:])
    asked = {"weighting": ["ipcw", "administrative"], "times": [20, 40], "metric": "brier", "n_curves": 0}
    summary = ss.report(study.outcomes, study.models, **asked).summary
    assert summary["headline"] == "administrative"
    out = run(capsys, "compare", *play, "-w", "ipcw", "-w", "administrative", "-t", "20,40", "-m", "brier")[1]
    assert summary["recommended"] in " ".join(out.split())
    out = run(capsys, "compare", *play, "-w", "administrative", "-t", "20,40", "-m", "brier")[1]
    assert "Use administrative" not in out  # one weighting is no choice


# Who leaks


@pytest.mark.parametrize("command", ["score", "compare"])
def test_a_leaking_model_is_named_and_an_honest_one_is_not(capsys, play, command):
    asked = ["-w", "administrative", "-m", "brier", "-t", "20,40"]
    out = run(capsys, command, *play, *asked)[1]
    assert re.search(
        r"leaking falls by \d+ % right after C\*, against \d+ % elsewhere: it encodes the censoring time", out
    )
    assert "knows" not in run(capsys, command, *play[:2], *asked)[1]


def test_leaks_are_those_of_diagnose():
    sample = ConstantHazardStudy().sample(1500, seed=3)
    truth = sample.survival(range(1, 101))
    gone = sample.outcomes.censoring_time[:, None] <= truth.times
    shares = {"whole": 1.0, "half": 0.5, "trace": 0.02, "none": 0.0}
    models = {
        name: ss.SurvivalCurves(truth.probabilities * np.where(gone, 1 - share, 1.0), truth.times, "step")
        for name, share in shares.items()
    }
    whole = ss.diagnose(sample.outcomes, models).models.set_index("model")["verdict"]
    named = [one.model for one in leaking_models(sample.outcomes, models)]
    assert named == [name for name in models if whole[name] == "encodes C*"]
    assert "whole" in named
    assert "none" not in named


def test_without_c_star_nobody_leaks():
    sample = ConstantHazardStudy().sample(300, seed=3)
    y = ss.Outcomes(sample.outcomes.time, sample.outcomes.event)
    assert leaking_models(y, {"truth": sample.survival(range(1, 101))}) == []


# Reversed predictions, wherever models are compared


def test_segments_are_checked_for_reversed_predictions():
    sample = ConstantHazardStudy().sample(400, seed=1)
    survival = sample.survival([20.0, 40.0])
    reversed_ = ss.SurvivalCurves(1 - survival.probabilities, survival.times, monotone="keep")
    by = np.where(np.arange(400) % 2, "odd", "even")
    with pytest.warns(UserWarning, match="predictions of 'wrong' are far worse than Kaplan-Meier") as caught:
        ss.compare(
            sample.outcomes, {"right": survival, "wrong": reversed_}, weighting="administrative", times=[20, 40], by=by
        )
    assert [one.filename for one in caught if "far worse" in str(one.message)] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.compare(sample.outcomes, {"right": survival}, weighting="administrative", by=by)
