"""Histories only grow: nothing is lost, also if processes append at once, or are killed."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pandas as pd
import pytest

import survscore as ss
from checks_case import append_many, day
from survscore.checks import Run, append_run, check, parse_rules, read_history
from survscore.checks.runs import run_of_results
from survscore.io import files as _files


def test_what_is_appended_is_read_again(run, tmp_path):
    path = tmp_path / "new" / "history.jsonl"
    assert read_history(path).runs == ()
    odd = {**run.settings, "inf": float("inf"), "path": str(tmp_path), "none": None}
    runs = [replace(run, id=f"run-{k}", date=day(k).isoformat(), settings=odd | {"inf": None}) for k in (2, 1, 3)]
    for each in runs:
        append_run(path, each, times=[40.0])
    found = read_history(path)
    assert found.notes == ()
    assert [each.id for each in found.runs] == ["run-1", "run-2", "run-3"]  # by date
    again = found.runs[0]
    assert (again.date, again.version, again.settings) == (runs[1].date, ss.__version__, runs[1].settings)
    assert (again.direction("brier"), again.direction("auc")) == ("lower", "higher")
    kept = run.tables["scores"].query("`from` < to or `from` == 40").reset_index(drop=True)
    pd.testing.assert_frame_equal(again.tables["scores"], kept)
    assert len(again.tables["recommendations"]) == len(run.tables["recommendations"])
    with pytest.raises(ss.InputError, match="there is a run 'run-2' already"):
        append_run(path, runs[0])
    assert len(read_history(path).runs) == 3
    assert not list(tmp_path.rglob(".survscore-*"))


def test_segments_and_odd_settings_are_kept(tmp_path):
    numbers = {"score": 0.1, "se": 0.01, "lower": 0.08, "upper": None}
    names = {"metric": "brier", "weighting": "administrative", "model": "new"}
    rows = [
        {"country": c, "age": a, **names, "from": 0, "to": 9, **numbers} for c, a in (("(all)", "(all)"), ("DE", 3.0))
    ]
    scores = [{"country": "(all)", "age": "(all)", **names, "time": 5, **numbers}]
    odd = {"inf": float("inf"), "set": {1}}
    append_run(tmp_path / "h.jsonl", run_of_results({"settings": odd, "scores": scores, "means": rows}, id="a"))
    (again,) = read_history(tmp_path / "h.jsonl").runs
    assert again.tables["scores"]["segment"].to_list() == ["", "country = DE, age = 3"]
    assert again.settings == {"inf": None, "set": "{1}"}


def test_two_processes_that_append_at_once_lose_nothing(tmp_path):
    path, count = tmp_path / "history.jsonl", 12
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_many, args=(path, name, count)) for name in ("a", "b")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
        assert worker.exitcode == 0
    found = read_history(path)
    assert found.notes == ()
    assert {run.id for run in found.runs} == {f"{name}-{k}" for name in ("a", "b") for k in range(count)}


def test_the_broken_line_of_a_killed_run_is_reported_and_harms_no_other(run, tmp_path):
    path = tmp_path / "h.jsonl"
    append_run(path, replace(run, id="a"))
    whole = path.read_bytes()
    for cut in (1, 5, 40, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole + whole[:cut] + b"\0\0\0")
        found = read_history(path)
        assert [each.id for each in found.runs] == ["a"]
        assert "line 2 is broken, of a run that was killed; it is skipped" in found.notes[0]
        append_run(path, replace(run, id="b"))
        found = read_history(path)
        assert {each.id for each in found.runs} == {"a", "b"}
        assert len(found.notes) == 1
        assert path.read_bytes().startswith(whole + whole[:cut])
    # the last line lacks nothing but its end
    path.write_bytes(whole.rstrip(b"\n"))
    append_run(path, replace(run, id="b"))
    assert read_history(path).notes == ()
    assert len(read_history(path).runs) == 2


def test_a_disk_that_is_full_leaves_what_was_there(run, tmp_path, monkeypatch):
    path = tmp_path / "h.jsonl"
    append_run(path, replace(run, id="a"))
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        append_run(path, replace(run, id="b"))
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this platform kills otherwise")
def test_a_process_that_is_killed_leaves_no_lock_and_whole_runs(tmp_path):
    path = tmp_path / "h.jsonl"
    code = f"from checks_case import append_many\nappend_many({str(path)!r}, 'killed', 10**6)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    worker = subprocess.Popen([sys.executable, "-c", code], env=environment)
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 10_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    before = read_history(path)
    assert [each.id for each in before.runs] == [f"killed-{k}" for k in range(len(before.runs))]
    append_many(path, "next", 1)
    assert len(read_history(path).runs) == len(before.runs) + 1


def test_files_that_are_no_history_are_refused_and_stay(run, tmp_path):
    for name, text, message in (
        ("a.jsonl", "shopping list\n", "line 1 is no run of a history"),
        ("b.jsonl", '{"a": 1}\n', "line 1: is no run of a history"),
        ("c.jsonl", '{"survscore_run": 99}\n', "is of form 99"),
        ("d.jsonl", '{"survscore_run": 2, "id": "x"}\n', "date must be a text"),
        ("e.jsonl", "[" * 100_000 + "\n", "no run of a history"),
        ("f.jsonl", '{"survscore_run": 2, "id": ["a"], "settings": {}}\n', "line 1: id must be a text"),
        ("g.parquet", "PAR1", "a history must be a file that ends in .jsonl"),
        ("h.json", "{}", "a history must be a file that ends in .jsonl"),
    ):
        path = tmp_path / name
        path.write_text(text)
        for act in (read_history, lambda path: append_run(path, run)):
            with pytest.raises(ss.InputError, match=message):
                act(path)
        assert path.read_text() == text
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(ss.InputError, match="must be a file"):
        read_history(tmp_path / "folder.jsonl")


@pytest.mark.parametrize("odd", [["a"], [["a"]], {"a": 1}, 3, None, True])
def test_values_of_another_kind_anywhere_in_a_history_are_an_input_error_or_do_no_harm(run, tmp_path, odd):
    """Lists where texts belong must not end as a TypeError."""
    path = tmp_path / "h.jsonl"
    append_run(path, replace(run, id="a"))
    line = json.loads(path.read_text())
    line["scores"], line["recommendations"] = line["scores"][:3], line["recommendations"][:1]
    rules = parse_rules({"check": [{"model": "new", "reference": "last", "metric": ["brier"], "worse_by": 1}]})
    spoilt = [{**line, key: odd} for key in line] + [{**line, "settings": dict.fromkeys(line["settings"], odd)}]
    for table in ("scores", "recommendations"):
        for row in line[table][:1]:
            spoilt += [{**line, table: [{**row, key: odd}]} for key in row]
    for each in spoilt:
        path.write_text(json.dumps(each) + "\n")
        with contextlib.suppress(ss.InputError):
            check(run, rules, read_history(path).runs)
            append_run(path, replace(run, id="b"))


@pytest.mark.parametrize("name", ["", "last", "a/b", "../a", "-x", "a b", "x" * 101, "ü"])
def test_odd_ids_are_refused(comparison, name):
    with pytest.raises(ss.InputError, match="a run's id must be"):
        Run.of(comparison, id=name)


def test_a_lock_that_is_held_is_waited_for(run, tmp_path, monkeypatch):
    path = tmp_path / "h.jsonl"
    append_run(path, replace(run, id="a"))
    monkeypatch.setattr(_files, "LONGEST_WAIT", 0.1)
    with path.open("ab") as file, _files.locked(file), pytest.raises(TimeoutError, match="another process"):
        append_run(path, replace(run, id="b"))
    append_run(path, replace(run, id="b"))
