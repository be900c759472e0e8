import json
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest

from survscore import cli

mpl.use("agg")


def run(capsys, *arguments):
    """Run a command; return exit code, standard output, standard error."""
    try:
        cli.main(list(arguments))
        code = 0
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def test_demo_shows_which_scores_are_fooled(capsys, tmp_path):
    code, out, err = run(capsys, "demo", "--n", "4000", "--seed", "5", "--out", str(tmp_path / "new" / "folder"))
    assert (code, err) == (0, "")
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["demo.png", "scores.csv", "settings.json"]
    assert (folder / "demo.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    settings = json.loads((folder / "settings.json").read_text())
    assert (settings["n"], settings["seed"]) == (4000, 5)
    frame = pd.read_csv(folder / "scores.csv")
    assert set(frame["model"]) == {"honest", "leaking"}
    mean = frame.groupby(["loss", "weighting", "model"])["score"].mean().unstack()
    prefers_leaking = mean["leaking"] < mean["honest"]
    for (_, weighting), fooled in prefers_leaking.items():
        assert fooled == weighting.startswith("ipcw"), weighting
    assert out.count("wrong") == prefers_leaking.sum()


def test_demo_is_reproducible(capsys, tmp_path):
    for name in ("a", "b"):
        assert run(capsys, "demo", "--n", "500", "--out", str(tmp_path / name))[0] == 0
    assert (tmp_path / "a" / "scores.csv").read_bytes() == (tmp_path / "b" / "scores.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--n", "5"], "5 is not in the range"),
        (["demo", "--seed", "x"], "'x' is not a valid integer"),
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
    code, _, err = run(capsys, "demo", "--n", "100", "--out", str(tmp_path / "file" / "below"))
    assert code == 2
    assert err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


def test_nothing_half_written(capsys, tmp_path, monkeypatch):
    (tmp_path / "scores.csv").write_text("the old one")

    def full_disk(self, path, **_):
        Path(path).write_text("half of")
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full_disk)
    code, _, err = run(capsys, "demo", "--n", "100", "--out", str(tmp_path))
    assert code == 2
    assert "No space left" in err
    assert (tmp_path / "scores.csv").read_text() == "the old one"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_without_a_command_the_help_is_shown(capsys):
    code, out, _ = run(capsys)
    assert code == 2
    assert "Usage: survscore" in out


def test_installed_command_answers():
    done = subprocess.run(
        [sys.executable, "-c", "from survscore.cli import main; main(['--version'])"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("survscore, version")
