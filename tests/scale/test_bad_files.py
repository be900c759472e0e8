"""A hundred files, one of them bad, at the command line: one line that names it, or a note that it was left out."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import run
from scale_case import rows, write
from survscore import cli

BAD = "part-042.parquet"


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    return write(tmp_path_factory.mktemp("hundred") / "data", files=100, n=20)


@pytest.fixture
def data(hundred, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for path in hundred.iterdir():
        (folder / path.name).hardlink_to(path)
    (folder / BAD).unlink()
    return folder


def with_column(name, change):
    def write_changed(path):
        table = rows(20, 42)
        values = table[name].to_numpy().copy()
        pq.write_table(table.set_column(table.schema.names.index(name), name, pa.array(change(values))), path)

    return write_changed


def put(value, place=13):
    def change(values):
        values = values.astype(np.result_type(values, np.asarray(value)))
        values[place] = value
        return values

    return change


def damaged(change):
    def write_damaged(path):
        pq.write_table(rows(20, 42), path)
        path.write_bytes(change(path.read_bytes()))

    return write_damaged


WRONG = {
    "truncated": (damaged(lambda content: content[:-100]), "can't be read as Parquet"),
    "empty": (damaged(lambda _: b""), "is empty: it has 0 bytes"),
    "text for numbers": (with_column("net:60", lambda values: values.astype(str)), "column 'net:60' must hold numbers"),
    "another type": (with_column("net:60", lambda values: values.astype(np.float32)), "is float32, but float64 in"),
    "without a column": (
        lambda path: pq.write_table(rows(20, 42).drop_columns(["cox:90"]), path),
        "has no column 'cox:90'",
    ),
    "NaN": (with_column("net:60", put(np.nan)), "model 'net': probabilities must be without NaN"),
    "rising": (with_column("net:60", put(1.0)), "model 'net': "),
    "negative time": (with_column("time", put(-1.0)), "time must be zero or larger"),
    "event 2": (with_column("event", put(np.int8(2))), "event, column 'event', has 2 causes"),
}


@pytest.fixture(scope="module")
def without(hundred, tmp_path_factory):
    """The scores of the other files, as if the bad one had never been there."""
    folder, out = tmp_path_factory.mktemp("without"), tmp_path_factory.mktemp("out") / "out.json"
    for path in hundred.iterdir():
        if path.name != BAD:
            (folder / path.name).hardlink_to(path)
    cli.main(["evaluate", str(folder), "-w", "administrative", "--json", str(out)])
    return json.loads(out.read_text())["scores"]


@pytest.mark.parametrize("kind", WRONG)
def test_a_bad_file_is_named_on_one_line_or_left_out(kind, data, tmp_path, capsys, without):
    make, what = WRONG[kind]
    make(data / BAD)
    out, state = tmp_path / "out.json", tmp_path / "all.state"
    code, printed, err = run(capsys, "evaluate", data, "-w", "administrative", "--json", out)
    assert (code, printed, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"survscore: {data / BAD}: ")
    assert what in err
    assert not out.exists()
    told = ("--skip-bad-files", "--json", out, "--state-out", state)
    code, _, err = run(capsys, "evaluate", data, "-w", "administrative", *told)
    assert code == 0
    (note,) = [line for line in err.splitlines() if "note:" in line]
    assert f"1 file of 100 could not be read and was left out, the first {BAD}: " in note
    found = json.loads(out.read_text())
    settings = found["settings"]
    assert (settings["files_read"], settings["files_skipped"], settings["individuals"]) == (99, 1, 99 * 20)
    (skipped,) = settings["skipped_files"]
    assert skipped["file"] == BAD
    assert what in skipped["reason"]
    assert str(tmp_path).encode() not in state.read_bytes()
    assert found["scores"] == without


def test_a_bad_piece_makes_the_whole_file_bad(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("survscore.scale.engines.PIECE_ROWS", 1)
    monkeypatch.setattr("survscore._config.Config.n_cores", lambda _: 8)
    folder = write(tmp_path / "data", files=2, n=400)
    table = rows(400, 1)
    values = table["net:60"].to_numpy().copy()
    values[390] = np.nan
    changed = table.set_column(table.schema.names.index("net:60"), "net:60", pa.array(values))
    pq.write_table(changed, folder / "part-001.parquet", row_group_size=50)
    out = tmp_path / "out.json"
    code, _, _ = run(capsys, "evaluate", folder, "-w", "administrative", "--skip-bad-files", "--json", out)
    settings = json.loads(out.read_text())["settings"]
    assert code == 0
    assert (settings["individuals"], settings["files_read"], settings["files_skipped"]) == (400, 1, 1)


def test_nothing_but_bad_files(tmp_path, capsys):
    folder = write(tmp_path / "data", files=3)
    for path in folder.iterdir():
        path.write_bytes(b"")
    code, out, err = run(capsys, "evaluate", folder, "-w", "administrative", "--skip-bad-files")
    assert (code, out) == (2, "")
    assert "none of 3 files can be read" in err


def test_what_was_left_out_is_tried_again(data, tmp_path, capsys):
    pq.write_table(rows(20, 42).drop_columns(["event"]), data / BAD)
    arguments = ("evaluate", data, "-w", "ipcw", "--skip-bad-files", "--state", tmp_path / "kept", "--json", "-")
    code, out, _ = run(capsys, *arguments)
    assert (code, json.loads(out)["settings"]["files_read"]) == (0, 99)
    pq.write_table(rows(20, 42), data / BAD)
    code, out, err = run(capsys, *arguments)
    assert (code, json.loads(out)["settings"]["files_read"], err) == (0, 100, "")
