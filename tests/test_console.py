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
from survscore.cli import answers
from survscore.cli.studies import print_demo, print_opening, print_written
from survscore.reports.answers import recommended_weighting
from survscore.simulate import ConstantHazardStudy

DEMO_FILES = ["demo.png", "demo-narrow.png", "demo-log.png", "scores.csv", "around.csv", "summary.csv",
              "settings.json", "report.html"]  # fmt: skip


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play")
    cli.main(["simulate", str(folder / "play")])
    return [str(folder / "play" / f"{name}.csv") for name in ("outcomes", "truth", "leaking")]


def rows(out):
    """Return the lines of all tables that hold a score."""
    return [
        line
        for line in out.splitlines()
        if re.search(r"(?:^| )(projected|administrative|IPCW|truth|leaking|Kaplan-Meier) +-?[.\d]+", line)
    ]


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


def answer(capsys, monkeypatch, *arguments, columns=80):
    """Return what a terminal shows, and the same without line breaks."""
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = run(capsys, "compare", *arguments)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= columns
    return out, " ".join(out.split())


def test_the_answer_fits_one_screen(capsys, play, monkeypatch):
    """One paragraph with the recommendation, one table with both weightings, each note once."""
    told = json.loads(run(capsys, "compare", *play, "--json", "-")[1])
    out, text = answer(capsys, monkeypatch, *play)
    assert len(out.splitlines()) <= 30
    assert out.startswith("Recommendation: leaking and Kaplan-Meier are significantly worse than truth")
    assert "leaking probably encodes the entry date: do not use it for new individuals." in text
    assert "What would change this: for leaking, more than 3.2 times the assumed hazard" in text
    assert out.count("\n---") == 1
    assert [text.count(one) for one in ("Verdicts refer to all individuals", "probably encodes", "95 %")] == [1, 1, 1]
    assert "By the logarithmic loss, all verdicts are the same." in text
    assert "--full shows all times, metrics and weightings" in text
    lines = rows(out)
    assert len(lines) == 3 * 2
    wanted = [row for row in told["verdicts"] if row["metric"] == "brier"]
    scores = [row for row in told["means"] if row["metric"] == "brier"]
    for k, model in enumerate(("truth", "leaking", "Kaplan-Meier")):
        for line, weighting in zip(lines[2 * k : 2 * k + 2], ("administrative", "projected"), strict=True):
            (score,) = [
                row["score"] for row in scores if (row["model"], row["weighting"].split()[0]) == (model, weighting)
            ]
            assert f" {score:.4f}" in line
            assert weighting in line
            for row in wanted:
                if (row["model"], row["weighting"].split()[0]) == (model, weighting):
                    numbers = line.split(f"{score:.4f}")[1].replace(" ", "")
                    assert numbers.startswith(f"{row['difference']:+.4f}({row['lower']:.4f},{row['upper']:.4f})"), line
                    scoped = " (1)" if (model, weighting) == ("leaking", "administrative") else ""
                    assert line.endswith(f" {row['verdict']}{scoped}")
        assert lines[2 * k].startswith(model)
    assert lines[0].endswith(" reference")


def test_all_metrics_that_were_asked_for_have_their_table(capsys, play, monkeypatch):
    out, text = answer(capsys, monkeypatch, *play, "-w", "administrative", "-t", "20,40", "-m", "brier", "-m", "slope")
    assert out.count("\n---") == 2  # both were asked for
    assert "Calibration slope (closer to 1 is better)" in text
    assert "By the" not in text


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_everything_is_shown_where_asked_for(capsys, play, monkeypatch, columns):
    """All metrics under all weightings at some of the times, each with percentages and with parts."""
    out, text = answer(capsys, monkeypatch, *play, "--full", columns=columns)
    assert text.count("Recommendation: ") == 2
    assert "its projected logarithmic loss is lower by" in text
    for metric in ("Brier score", "Logarithmic loss"):
        for weighting in ("administrative", "projected (own ranks)"):
            assert f"{metric} (lower is better), mean over 0 to 100; {weighting}" in text
    assert "+75.3 %" in text
    assert "mean, observed (C* >= t, 51 %): truth 0.1003" in text
    assert "There are differences at 101 times: --csv FILE writes all" in text
    out, text = answer(capsys, monkeypatch, *play, "--full", "-m", "brier", "-w", "administrative", "-t", "10:80:10")
    assert len(rows(out)) == 3 * 9
    assert "--csv" not in text


def test_times_that_were_asked_for_stand_beside_the_mean(capsys, play, monkeypatch):
    asked = ["-w", "administrative", "-m", "brier", "-t", "20,40,100"]
    out, _ = answer(capsys, monkeypatch, *play, *asked, columns=100)
    lines = rows(out)
    assert [line.split()[0] for line in lines[::3]] == ["20", "40", "100", "mean"]
    assert [line.split()[-1] for line in lines[::3]] == ["reference"] * 4
    out, _ = answer(capsys, monkeypatch, *play, "-w", "administrative", "-m", "brier", "-t", "10:80:10")
    assert len(rows(out)) == 3
    assert "mean over 10 to 80" in out


def test_scores_at_every_horizon_and_their_mean(capsys, play, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    asked = ["score", *play, "-w", "administrative", "-m", "brier"]
    out = run(capsys, *asked, "-t", "20,40,100")[1]
    assert [line.split()[0] for line in rows(out)[::2]] == ["20", "40", "100", "mean"]
    out = run(capsys, *asked)[1]
    assert len(rows(out)) == 2 * (answers.SHOWN + 1)
    assert "There are scores at 101 times: --csv FILE writes all" in out
    out = run(capsys, *asked, "-t", "20")[1]
    assert "Brier score (lower is better), at 20; administrative" in out
    assert len(rows(out)) == 2


def test_no_percentages_of_what_has_no_zero(capsys, play):
    asked = ["compare", *play, "-w", "administrative", "--full", "-t", "40"]
    out = run(capsys, *asked, "-m", "brier", "-m", "slope")[1]
    brier, slope = out.split("Calibration slope")
    assert "relative" in brier
    assert "relative" not in slope
    for metric in ("auc", "concordance", "net_benefit@0.2", "miscalibration", "log_score"):
        out = run(capsys, *asked, "-m", metric)[1]
        assert "difference to" in out
        assert "relative" not in out, metric


@pytest.mark.parametrize("command", ["score", "compare", "table", "evaluate"])
def test_times_have_their_unit(capsys, play, tmp_path, command):
    files = play[:2]
    if command == "evaluate":
        tables = [pd.read_csv(path) for path in files]
        tables[0].merge(tables[1], on="id").to_parquet(tmp_path / "all.parquet")
        files = [tmp_path / "all.parquet"]
    units = ["--unit", "day", "--predictions-unit", "day"]
    asked = ["-w", "administrative", "-m", "brier", "-t", "20,40"]
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
        name: ss.SurvivalCurves(truth.probabilities * np.where(gone, 1 - share, 1.0), truth.times, interpolation="step")
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
