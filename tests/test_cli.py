import json
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest

from commands import run
from survscore.cli.studies import what_was_seen
from survscore.paper import demo
from survscore.paper.studies import DEMO_SIZES, SIZES

mpl.use("agg")


@pytest.fixture(scope="module")
def demonstration():
    return demo.run(size=DEMO_SIZES["quick"], seed=5)


def test_the_quick_demo_shows_the_point(demonstration):
    """What nobody can misread: the classifier falls at C*; two scores are right, and one of them sees how much."""
    assert demonstration.falls("BCE") > 0.35  # several times the other, whatever the last digits of a short training
    assert demonstration.falls("Logistic-Hazard") < 0.1
    preferred = demonstration.summary().groupby("weighting").prefers.agg(set).to_dict()
    ours = {"Logistic-Hazard"}
    assert preferred == {"uncensored": ours, "projected": ours, "administrative": ours,
                         "IPCW, Kaplan-Meier": {"BCE"}, "IPCW, true censoring": {"BCE"}}  # fmt: skip
    differences = demonstration.summary().query("loss == 'brier'").set_index("weighting").difference
    assert differences["projected"] == pytest.approx(differences["uncensored"], rel=0.1)
    assert differences["administrative"] < differences["uncensored"] / 10
    # the covariates matter: the better model beats Kaplan-Meier, the other does not
    assert demonstration.against_null("Logistic-Hazard") > 0.03
    assert demonstration.against_null("BCE") < 0
    told = what_was_seen(demonstration)
    assert told.startswith("Logistic-Hazard is better in truth")
    assert "Compared with Kaplan-Meier's, that of Logistic-Hazard is" in told
    assert told.endswith("it counts only those with C* >= t. Misled: IPCW; censored left out.")


def test_a_demo_that_can_not_tell_says_so(demonstration):
    table = demonstration.table.assign(se=1.0)
    assert "do not differ significantly" in what_was_seen(replace(demonstration, table=table))


def test_the_demo_is_written_and_the_same_again(capsys, tmp_path, demonstration):
    folder = tmp_path / "new" / "folder"
    code, out, err = run(capsys, "demo", "--size", "quick", "--seed", "5", "--out", str(folder))
    assert (code, err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == [
        "around.csv", "demo-log.png", "demo-narrow.png", "demo.png", "report.html", "scores.csv", "settings.json",
        "summary.csv",
    ]  # fmt: skip
    assert (folder / "demo.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert out.endswith(f"The report, to open in a browser: {folder / 'report.html'}\n")
    assert "BCE" in (folder / "report.html").read_text()
    settings = json.loads((folder / "settings.json").read_text())
    assert (settings["size"]["name"], settings["seed"]) == ("quick", 5)
    again = tmp_path / "again"
    demonstration.save(again)
    assert (folder / "scores.csv").read_bytes() == (again / "scores.csv").read_bytes()


def test_reproduce_writes_figures_and_prints_claims(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "quick", replace(SIZES["quick"], training=300, validation=100, test=400, epochs=2))
    code, out, err = run(capsys, "reproduce", "all", "--size", "quick", "--jobs", "1", "--out", str(tmp_path))
    assert (code, err) == (0, "")
    for figure in (2, 3, 4, 5):
        assert (tmp_path / f"figure-{figure}" / f"figure-{figure}.svg").exists()
        assert f"What the paper says about figure-{figure}" in out
    assert out.count("means nothing") == 4
    assert "not checked" not in out
    # alone, and resumed: nothing is computed again, and the claim that needs figure 4 finds it
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "replicates").iterdir()}
    code, out, err = run(capsys, "reproduce", "figure-5", "--size", "quick", "--out", str(tmp_path))
    assert code == 0
    assert "not checked" not in out
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "replicates").iterdir()}
    (tmp_path / "replicates" / "complicated-quick-seed-1-0.parquet").unlink()
    assert "not checked" in run(capsys, "reproduce", "figure-5", "--size", "quick", "--out", str(tmp_path))[1]


def test_a_corrupt_leftover_is_one_line(capsys, tmp_path):
    path = tmp_path / "replicates" / "simple-quick-seed-1-0.parquet"
    path.parent.mkdir()
    path.write_bytes(b"PAR1 half of a file")
    code, out, err = run(capsys, "reproduce", "figure-5", "--size", "quick", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "simple-quick-seed-1-0.parquet can't be read" in err
    assert path.read_bytes() == b"PAR1 half of a file"


def test_kkbox_from_raw_files_to_a_description(capsys, tmp_path):
    raw, out = tmp_path / "raw", tmp_path / "out.parquet"
    code, shown, err = run(capsys, "kkbox", "synthesize", str(raw), "--customers", "2000", "--seed", "3")
    assert (code, err) == (0, "")
    assert "rows of transactions" in shown
    code, shown, err = run(capsys, "kkbox", "prepare", str(raw), str(out), "--memory", "1GB")
    assert (code, err) == (0, "")
    assert "transactions that expire before they were made" in shown
    assert "checked: time <= censoring_time" in shown
    code, shown, err = run(capsys, "kkbox", "describe", str(out))
    assert (code, err) == (0, "")
    assert "covariates predict C* of other customers with R2" in shown
    frame = pd.read_parquet(out)
    assert f"spells: {len(frame):,}" in shown


def test_kkbox_mistakes_are_one_line(capsys, tmp_path):
    (tmp_path / "other.parquet").write_bytes(b"no")
    for arguments, message in (
        (["prepare", str(tmp_path / "absent"), str(tmp_path / "out.parquet")], "is not a folder"),
        (["prepare", str(tmp_path), str(tmp_path / "out.parquet")], "holds no transactions.csv"),
        (["describe", str(tmp_path / "other.parquet")], "can't be read as Parquet"),
        (["describe", str(tmp_path / "absent")], "does not exist"),
        (["synthesize", str(tmp_path / "other.parquet")], "is a file"),
        (["synthesize", str(tmp_path), "--customers", "0"], "0 is not in the range"),
    ):
        code, out, err = run(capsys, "kkbox", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), arguments
        assert message in err
    assert run(capsys, "reproduce", "figure-2", "--data", str(tmp_path / "other.parquet"))[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--size", "huge"], "'huge' is not one of"),
        (["reproduce"], "Missing argument"),
        (["nonsense"], "No such command 'nonsense'"),
        (["demo", "--unknown"], "No such option"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_folder_that_can_not_be_made(capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, err = run(capsys, "demo", "--out", str(tmp_path / "file" / "below"))
    assert code == 2
    assert err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


def test_nothing_half_written(capsys, tmp_path, monkeypatch, demonstration):
    monkeypatch.setattr(demo, "run", lambda **_: demonstration)
    (tmp_path / "scores.csv").write_text("the old one")

    def full_disk(self, path, **_):
        Path(path).write_text("half of")
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full_disk)
    code, _, err = run(capsys, "demo", "--size", "quick", "--out", str(tmp_path))
    assert code == 2
    assert "No space left" in err
    assert (tmp_path / "scores.csv").read_text() == "the old one"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_without_a_command_the_help_is_shown(capsys):
    code, out, _ = run(capsys)
    assert code == 2
    assert "Usage: survscore" in out
