"""Whom projected statuses and weights for drop-outs come from, at the command line."""

import json

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from commands import refused, run
from survscore.io import read_study


@pytest.fixture(scope="module")
def strata_files(tmp_path_factory):
    """Return a folder with outcomes of two plans, of whom some dropped out, and predictions of two models."""
    rng = np.random.default_rng(2)
    folder, n, grid = tmp_path_factory.mktemp("strata"), 600, np.array([2.0, 4.0, 6.0])
    plan, rate = rng.integers(0, 2, n), rng.gamma(2, 0.06, n)
    event_time, end, left = rng.exponential(1 / rate), rng.uniform(2, 12, n), rng.exponential(15 + 15 * plan)
    time = np.minimum.reduce([event_time, end, left])
    columns = {"time": time, "event": (event_time == time).astype(int), "censoring_time": end}
    pd.DataFrame({**columns, "plan": np.where(plan, "b", "a")}).to_csv(folder / "y.csv", index=False)
    for name, power in (("first", 1.0), ("second", 0.4)):
        survival = np.exp(-(rate[:, None] ** power) * grid / 3)
        pd.DataFrame(survival, columns=["2", "4", "6"]).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.parametrize("command", ["score", "compare"])
@pytest.mark.parametrize(
    ("asked", "weighting"),
    [
        (["-w", "projected", "--strata", "plan"], lambda plan, curves: ss.Projected(plan)),
        (["-w", "projected", "--strata", "mean-ranks"], lambda plan, curves: ss.Projected("mean-ranks")),
        (["-w", "projected", "--strata", "none", "--theta", "2"], lambda plan, curves: ss.Projected(None, theta=2)),
        (["-w", "projected", "--reference-curves", "second"], lambda plan, curves: ss.Projected(reference="second")),
        (["-w", "projected", "--reference-curves", "FILE"], lambda plan, curves: ss.Projected(reference=curves)),
        (["-w", "administrative", "--dropout-strata", "plan"],
         lambda plan, curves: ss.Administrative(dropout_strata=plan)),
        (["-w", "administrative", "--dropout-strata", "none"],
         lambda plan, curves: ss.Administrative(dropout_strata=None)),
    ],
)  # fmt: skip
def test_strata_and_references_are_those_of_python(capsys, strata_files, tmp_path, command, asked, weighting):
    read = read_study(strata_files / "y.csv", [strata_files / "first.csv", strata_files / "second.csv"], by=["plan"])
    expected = ss.compare(
        read.outcomes, read.models, weighting=weighting(read.by["plan"], read.models["first"]), null=False
    )
    asked = [strata_files / "first.csv" if one == "FILE" else one for one in asked]
    written = tmp_path / "result.json"
    files = [strata_files / name for name in ("y.csv", "first.csv", "second.csv")]
    null = ["--null", "none"] if command == "compare" else []
    code, _, err = run(capsys, command, *files, *asked, *null, "-m", "brier", "--json", written)
    assert code == 0, err
    found = pd.DataFrame(json.loads(written.read_text())["scores"])
    assert "plan" not in found
    assert found["weighting"].unique().tolist() == expected.weightings
    np.testing.assert_allclose(found["score"], expected.scores["score"], rtol=1e-9)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["-w", "administrative", "--strata", "plan"], "--strata is for --weighting projected"),
        (["-w", "administrative", "--theta", "2"], "--theta is for --weighting projected"),
        (["-w", "ipcw", "--reference-curves", "second"], "--reference-curves is for --weighting projected"),
        (["-w", "projected", "--dropout-strata", "plan"], "--dropout-strata is for --weighting administrative"),
        (["-w", "projected", "--strata", "none", "--reference-curves", "second"],
         "--strata is for Kaplan-Meier curves, which --reference-curves replaces"),
        (["-w", "projected", "--reference-curves", "third"], "reference must be a model that is scored"),
        (["-w", "projected", "--strata", "planet"], "planet"),
        (["-w", "projected", "--theta", "-1"], "theta must be a number from 0 to 50"),
        (["-w", "administrative", "--dropout-strata", "none", "--dropout", "refuse"], "--dropout-strata is for weigh"),
    ],
)  # fmt: skip
def test_strata_without_use_are_refused(capsys, strata_files, asked, message):
    files = [strata_files / name for name in ("y.csv", "first.csv", "second.csv")]
    assert message in refused(capsys, "compare", *files, *asked)


def test_study_files_name_strata_and_references(capsys, strata_files, tmp_path):
    study = strata_files / "study.toml"
    study.write_text(
        '[outcomes]\nfile = "y.csv"\n[models.first]\nfile = "first.csv"\n[models.second]\nfile = "second.csv"\n'
        '[score]\nweighting = ["projected", "administrative"]\nreference-curves = "second.csv"\n'
        'dropout-strata = "plan"\ntheta = 1.5\n'
    )
    written = tmp_path / "result.json"
    code, _, err = run(capsys, "score", "--study", study, "-m", "brier", "--json", written)
    assert code == 0, err
    assert json.loads(written.read_text())["settings"]["weightings"] == [
        "projected (given curves, theta=1.5)", "administrative (drop-out by Kaplan-Meier, 2 strata)",
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["compare", "table"])
def test_the_test_of_drop_out_is_printed_once(capsys, strata_files, command):
    files = [strata_files / name for name in ("y.csv", "first.csv", "second.csv")]
    code, out, _ = run(capsys, command, *files, "-m", "brier")
    assert code == 0
    assert out.count("log-rank") == 2  # against risk, and against C*


def test_the_file_of_a_reference_is_read_as_the_others_are(capsys, strata_files, tmp_path):
    for name in ("first", "second"):
        pd.read_csv(strata_files / f"{name}.csv").rsub(1.0).to_csv(tmp_path / f"{name}.csv", index=False)
    found = []
    for folder, form in ((strata_files, []), (tmp_path, ["--predicts", "event"])):
        files = [strata_files / "y.csv", folder / "first.csv", "--reference-curves", folder / "second.csv", *form]
        run(capsys, "score", *files, "-w", "projected", "-m", "brier", "--json", tmp_path / "result.json")
        found.append([row["score"] for row in json.loads((tmp_path / "result.json").read_text())["scores"]])
    np.testing.assert_allclose(*found, rtol=1e-9)
