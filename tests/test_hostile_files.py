"""Files and paths that are made to harm, or happen to: refused in one line, and never silently misread."""

import csv
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import survscore as ss
from commands import refused
from survscore.cli import main
from survscore.datasets.kkbox import prepare, prepared, synthesize
from survscore.io import files as _files
from survscore.io import limits, read_outcomes, write_study
from survscore.io.tables import open_table
from survscore.io.writing import FORMULA, NUMBER, as_text, without_formulas

posix = pytest.mark.skipif(sys.platform == "win32", reason="named pipes and devices are those of POSIX")


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play")
    write_study(folder, "simple", n=60, seed=1, ending="csv")
    return [str(folder / f"{name}.csv") for name in ("outcomes", "truth", "leaking")]


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    synthesize(folder, customers=200, seed=1)
    return folder


def ran(*arguments, **options):
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "survscore", *map(str, arguments)],
        stderr=subprocess.PIPE, text=True, check=False, timeout=120, **options,
    )  # fmt: skip


# Names of folders are no columns


@pytest.mark.parametrize("name", ["is_churn=1", "city=5", "transaction_date=20160101", "msno=x"])
def test_folders_named_like_columns_change_nothing(raw, tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(raw, folder)
    prepare(raw, tmp_path / "plain.parquet")
    prepare(folder, folder / "out.parquet")
    expected = pd.read_parquet(tmp_path / "plain.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "out.parquet", partitioning=None), expected)
    pd.testing.assert_frame_equal(prepared.read(folder / "out.parquet"), expected)


# What is read is not overwritten


def test_raw_files_are_not_overwritten(capsys, raw, tmp_path):
    folder = tmp_path / "raw"
    shutil.copytree(raw, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    link = tmp_path / "link.parquet"
    link.symlink_to(folder / "train.csv")
    for target in (folder / "transactions.csv", folder / "train.csv.gz", link):
        assert "is a raw file, which is only read" in refused(capsys, "kkbox", "prepare", folder, target)
    assert "--force replaces raw files" in refused(capsys, "kkbox", "synthesize", folder, "--customers", 10)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    main(["kkbox", "synthesize", str(folder), "--customers", "10", "--force"])
    assert (folder / "train.csv").read_bytes() != before["train.csv"]


def test_synthetic_files_do_not_hide_packed_ones(tmp_path):
    (tmp_path / "members_v3.csv.7z").write_bytes(b"precious")
    with pytest.raises(ss.InputError, match=r"members_v3\.csv\.7z: is there already"):
        synthesize(tmp_path, customers=10, seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["members_v3.csv.7z"]


# Pipes, devices, links


@posix
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_inputs_that_are_no_files_are_refused_at_once(capsys, play, raw, tmp_path, kind):
    def odd(name):
        path = tmp_path / name
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
        return path

    outcomes, predictions, data = odd("outcomes.csv"), odd("p.parquet"), odd("a.arrow")
    times, rules, results = odd("times"), odd("rules.toml"), odd("results.json")
    history, state = odd("history.jsonl"), odd("a.state")
    what = f"is a {kind}, not a file"
    for arguments in (
        ["score", outcomes, play[1], "-w", "ipcw"],
        ["score", play[0], predictions, "-w", "ipcw"],
        ["score", play[0], play[1], "-w", "ipcw", "--train", outcomes],
        ["formats", outcomes],
        ["evaluate", data, "-w", "ipcw"],
        ["evaluate", play[0], "-w", "ipcw", "--add", state],
        ["check", rules, play[0], play[1], "-w", "ipcw"],
        ["kkbox", "describe", predictions],
        ["reproduce", "figure-1", "--data", predictions, "--out", tmp_path / "out"],
    ):
        assert what in refused(capsys, *arguments), arguments
    assert "no file that can be read" in refused(capsys, "score", *play[:2], "-w", "ipcw", "--horizons", times)
    main(["check", "--init", str(tmp_path / "good.toml")])
    capsys.readouterr()
    assert what in refused(capsys, "check", tmp_path / "good.toml", "--results", results)
    assert what in refused(capsys, "check", tmp_path / "good.toml", *play[:2], "-w", "ipcw", "--history", history)
    folder = tmp_path / "raw"
    shutil.copytree(raw, folder)
    (folder / "train.csv").unlink()
    outcomes.rename(folder / "train.csv")
    assert "holds no train.csv" in refused(capsys, "kkbox", "prepare", folder, tmp_path / "out.parquet")


@posix
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_outputs_do_not_replace_what_is_no_file(capsys, play, raw, tmp_path, kind):
    def odd(name):
        path = tmp_path / name
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/null")
        return path

    before = Path("/dev/null").stat().st_mode
    page, table, text, prepared_path = odd("a.html"), odd("a.csv"), odd("a.md"), odd("a.parquet")
    for arguments in (
        ["report", *play, "-o", page],
        ["score", *play, "-w", "ipcw", "--csv", table],
        ["table", *play, "-w", "ipcw", "-o", text],
        ["kkbox", "prepare", raw, prepared_path],
    ):
        assert f"is a {kind}, not a file" in refused(capsys, *arguments)
    for path in (page, table, text):
        assert not path.is_file()
    assert Path("/dev/null").stat().st_mode == before
    with pytest.raises(ss.InputError, match="and stays"), _files.written_whole(table):
        pass


@posix
def test_a_loop_of_links_is_one_line(capsys, play, tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    for arguments in (
        ["score", loop, play[1], "-w", "ipcw"],
        ["score", *play[:2], "-w", "ipcw", "--csv", loop],
        ["score", *play[:2], "-w", "ipcw", "--csv", loop / "a.csv"],
        ["evaluate", loop, "-w", "ipcw"],
        ["kkbox", "synthesize", loop / "folder", "--customers", "10"],
    ):
        refused(capsys, *arguments)


@posix
def test_closed_outputs(play, tmp_path):
    command = [sys.executable, "-m", "survscore", "compare", *play, "-w", "administrative"]
    closed = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, check=False
    )
    assert (closed.returncode, closed.stderr.count("\n")) == (2, 1)
    assert "standard output is closed" in closed.stderr
    mute = subprocess.run(["/bin/sh", "-c", '"$@" 2>&-', "sh", *command], stdout=-1, text=True, check=False)
    assert mute.returncode == 0
    assert "verdict" in mute.stdout
    reading, writing = os.pipe()
    os.close(reading)  # as of head -0
    for arguments in (command[3:], [*command[3:], "--json", "-"], ["formats"], ["--help"], []):
        left = ran(*arguments, stdout=writing)
        assert (left.returncode, left.stderr) == (141, ""), arguments
    os.close(writing)
    if Path("/dev/full").exists():
        with open("/dev/full", "w") as full:
            left = ran("formats", stdout=full)
        assert (left.returncode, left.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_a_file_cut_off_while_it_is_read_is_refused(tmp_path, format):
    """Mapped into memory, it would end the process."""
    path = tmp_path / f"a.{format}"
    n = 200_000
    table = pa.table({"time": np.random.default_rng(1).random(n) + 1.0, "event": np.ones(n)})
    if format == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=10_000)
        from survscore.scale.listing import file_parts

        batches = file_parts(path)[0].batches(["time", "event"], rows=1000)
        next(batches)
        os.truncate(path, 5000)
        with pytest.raises(ss.InputError):
            list(batches)
        return
    pq.write_table(table, path, row_group_size=10_000)
    file = open_table(path)
    os.truncate(path, 5000)
    with pytest.raises(ss.InputError, match=re.escape(f"{path}: can't be read")):
        file.read(["time", "event"])


# Paths are paths


def test_paths_that_look_like_addresses_stay_paths(raw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("md:x", "s3:", "http:"):
        Path(name).mkdir()
        assert prepare(raw, Path(name) / "out.parquet").spells > 0
        assert [path.name for path in Path(name).iterdir()] == ["out.parquet"]


def test_databases_fetch_no_extensions(tmp_path):
    from survscore.io.tables import connect

    for path in (None, tmp_path / "a.duckdb"):
        with connect(path) as database:
            for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
                assert database.execute(f"SELECT current_setting('{setting}')").fetchone() == (False,)
    sources = {path.name: path.read_text() for path in Path(ss.__file__).parent.rglob("*.py")}
    assert [name for name, text in sources.items() if "duckdb.connect(" in text] == ["tables.py"]


# Formulas and terminals

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\rx", " =1", "\u00a0=1", "\u200b=1", "\ufeff=1", "\n=1",
            "＝1", "＋1", "－1", "＠1", "-", "+", "-x", "--1", "1\x1b[31m".replace("1", "=", 1)]  # fmt: skip
HARMLESS = ["net", "", "1", "-1", "+2.5", "-1e-3", ".5", "a=b", "a@b", "'x", "x-y", "Ärger"]


def test_formulas_are_text_and_numbers_stay_numbers():
    assert [as_text(text) for text in FORMULAS] == [f"'{text}" for text in FORMULAS]
    assert [as_text(text) for text in HARMLESS] == HARMLESS
    frame = pd.DataFrame({"=name": ["=a", None, "b"], "x": [-1.5, 2.0, np.nan], "n": [-1, 2, 3]})
    frame["kind"] = pd.Categorical(["@a", "@a", "b"])
    frame["when"] = pd.Timestamp("2017-01-29")
    safe = without_formulas(frame)
    assert list(safe) == ["'=name", "x", "n", "kind", "when"]
    assert list(safe["'=name"]) == ["'=a", None, "b"]
    assert list(safe["kind"]) == ["'@a", "'@a", "b"]
    pd.testing.assert_frame_equal(safe[["x", "n", "when"]], frame[["x", "n", "when"]])
    assert list(frame) == ["=name", "x", "n", "kind", "when"]  # what was given is as it was


def test_the_report_s_script_goes_by_the_same_rule():
    """Its regular expressions are those of the command line, in the spelling of JavaScript."""
    script = (Path(ss.__file__).parent / "reports" / "assets" / "script.js").read_text(encoding="utf-8")
    formula = re.search(r"const formula = /\^\(\?:(.*)\)/;", script)[1]
    number = re.search(r"const number = /\^(.*)\$/i;", script)[1]
    assert formula == FORMULA.pattern
    assert number.replace("(?:", "(") == NUMBER.pattern


def test_csv_of_the_command_line_holds_no_formulas(capsys, play, tmp_path):
    names = ["=cmd|'/C calc'!A0", " @x", "＝1"]
    frame = pd.read_csv(play[1])
    wide = pd.concat([frame.drop(columns="id").add_prefix(f"{name}:") for name in names], axis=1)
    wide.insert(0, "id", frame["id"])
    wide.to_csv(tmp_path / "models.csv", index=False)
    arguments = ["score", play[0], str(tmp_path / "models.csv"), "-w", "administrative"]
    for path in (tmp_path / "out.csv", tmp_path / "out.tsv", tmp_path / "out.csv.gz"):
        main([*arguments, "--csv", str(path)])
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        rows = csv.DictReader(io.StringIO(content.decode()), delimiter="\t" if path.suffix == ".tsv" else ",")
        found = list(rows)
        assert {row["model"] for row in found} == {f"'{name}" for name in names}
        assert all(float(row["score"]) >= 0 for row in found)
    main([*arguments, "--parquet", str(tmp_path / "out.parquet")])
    assert set(pd.read_parquet(tmp_path / "out.parquet")["model"]) == set(names)  # no spreadsheet reads that as CSV


def test_no_control_characters_reach_the_terminal(capsys, play, tmp_path):
    frame = pd.read_csv(play[1])
    columns = {name: f"\x1b[31mred\x07\u202e:{name}" for name in frame if name != "id"}
    frame.rename(columns=columns).to_csv(tmp_path / "models.csv", index=False)
    main(["score", play[0], str(tmp_path / "models.csv"), "-w", "administrative", "--csv", "-"])
    printed = capsys.readouterr().out
    assert "\\x1b[31mred\\x07\\u202e" in printed
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed.replace("\r\n", "\n"))
    odd = tmp_path / "a\x1b[31m"
    main(["kkbox", "synthesize", str(odd), "--customers", "20"])
    main(["kkbox", "prepare", str(odd), str(odd / "out.parquet")])
    assert "\x1b" not in capsys.readouterr().out


# Contents that would fill the memory


@pytest.mark.parametrize("kind", ["numbers", "lists", "text"])
def test_parquet_that_grows_without_measure_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(limits, "LITTLE", 1 << 20)
    n = 1_000_000
    if kind == "text":  # a dictionary of one long word
        column = pa.array(["x" * 20_000]).dictionary_encode().take(pa.array(np.zeros(n // 50, dtype=int)))
    elif kind == "lists":
        column = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(n)), 50)
    else:
        column = pa.array(np.zeros(n))
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"a": column}), path, compression="zstd")
    assert path.stat().st_size < 30_000
    before = pa.total_allocated_bytes()
    with pytest.raises(ss.InputError, match=r"bomb\.parquet: would take .* though it has only"):
        open_table(path).read(["a"])
    assert pa.total_allocated_bytes() - before < 40 << 20
    monkeypatch.setattr(limits, "EXPANSION", 10**9)
    assert open_table(path).read(["a"]).num_rows == len(column)
    monkeypatch.setattr(limits, "machine_memory", lambda: 2 << 20)
    with pytest.raises(ss.InputError, match=r"would take .* and there are 2\.1 MB; survscore evaluate"):
        open_table(path).read(["a"])


def test_only_columns_that_are_read_count(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LITTLE", 1 << 16)
    monkeypatch.setattr(limits, "machine_memory", lambda: 1 << 20)
    rows = {"id": [str(k) for k in range(1000)], "30": np.ones(1000), "large": ["y" * 5000] * 1000}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    file = open_table(tmp_path / "a.parquet")
    read = file.read(["30", "id"])
    assert read.column_names == ["30", "id"]
    assert read["id"].to_pylist() == rows["id"]
    with pytest.raises(ss.InputError, match="would take"):
        file.read(["large"])


def test_packed_csv_that_grows_without_measure_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LITTLE", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"time,event\n" + b"1,1\n" * 8_000_000)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(limits, "EXPANSION", 100)
    with pytest.raises(ss.InputError, match=r"bomb\.csv\.gz: would take .* though it has only"):
        read_outcomes(path)
    monkeypatch.setattr(limits, "EXPANSION", 10**6)
    assert len(read_outcomes(path).outcomes) == 8_000_000


def test_an_archive_larger_than_the_disk_is_refused(raw, tmp_path, monkeypatch):
    py7zr = pytest.importorskip("py7zr")
    folder = tmp_path / "raw"
    shutil.copytree(raw, folder)
    with py7zr.SevenZipFile(folder / "train.csv.7z", "w") as archive:
        archive.write(folder / "train.csv", "train.csv")
    (folder / "train.csv").unlink()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 5, 5))
    with pytest.raises(ss.InputError, match=r"train\.csv\.7z: train\.csv in it has .* room for"):
        prepare(folder, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


# The clock


@pytest.mark.parametrize("word", ["now", "today", "NOW", " today"])
def test_dates_are_not_read_from_the_clock(capsys, tmp_path, word):
    path = tmp_path / "outcomes.csv"
    path.write_text("id,start,event_date\na,2016-12-30,2017-01-09\nb,2017-01-09,\n")
    assert "cutoff must be dates" in refused(capsys, "score", path, "--cutoff", word)
    for column in ("start", "event_date", "cutoff"):
        values = {"start": ["2017-01-01"], "event_date": [None], "cutoff": "2017-02-01"}
        values[column] = word if column == "cutoff" else [word]
        with pytest.raises(ss.InputError, match=f"{column} must be dates"):
            ss.Outcomes.from_dates(**values)


# Nothing is left


def test_joins_leave_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "1": [0.9, 0.8]}), tmp_path / "p.parquet")
    outcomes = {"id": [1, 2], "time": [1.0, 2.0], "event": [1, 0], "censoring_time": [3.0, 2.0]}
    pq.write_table(pa.table(outcomes), tmp_path / "o.parquet")
    predicted, observed = tmp_path / "p.parquet", tmp_path / "o.parquet"
    ss.evaluate(predicted, outcomes_from=observed, weighting="administrative")
    import gc

    gc.collect()
    assert list((tmp_path / "tmp").iterdir()) == []
