"""Threads, streams and kept sums: the same sums, however rows are cut; a process that was killed goes on."""

import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

import survscore as ss
from cluster_case import check_alike, in_files, rows, sums
from survscore._validation import InputError
from survscore.scale import engines
from survscore.scale.engines import attempted, checked
from survscore.scale.files import BadFileError
from survscore.scale.state import BinsNeededError
from survscore.scale.work import Work


def test_a_killed_process_goes_on_where_it_was(tmp_path, monkeypatch):
    table = rows()
    folder = in_files(tmp_path / "data", table, 20)
    library = str(Path(ss.__file__).parents[1])
    code = f"""
        import os, signal, sys
        sys.path.insert(0, {library!r})
        import survscore as ss

        def seen(done, total, what):
            if done == 9:
                os.kill(os.getpid(), signal.SIGKILL)

        ss.evaluate({str(folder)!r}, weighting=("administrative", "ipcw"), metric=("brier", "log"), by="country",
                    state={str(tmp_path / "kept")!r}, progress=seen)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    kept = len(list((tmp_path / "kept").rglob("*.state")))
    assert 9 <= kept < 20
    read, run = [], Work.run
    monkeypatch.setattr(Work, "run", lambda work, part, *more: (read.append(part.name), run(work, part, *more))[1])
    again = sums(folder, state=tmp_path / "kept")
    assert len(set(read)) == 20 - kept
    check_alike(again, sums(table))


def test_errors_travel_as_results():
    def refuse(error):
        raise error

    for error in (InputError("no"), BadFileError("a.parquet", "is empty"), BinsNeededError("bins")):
        found = pickle.loads(pickle.dumps(attempted(refuse, error)))
        with pytest.raises(type(error)) as raised:
            checked(found)
        assert str(raised.value) == str(error)
        assert type(raised.value) is type(error)


def test_an_engine_that_loses_a_file_is_found_out(tmp_path):
    class Forgetful:
        def run(self, work, parts, *, each):
            yield from ((1, work.run(part)) for part in parts[1:])

    folder = in_files(tmp_path / "data", rows(400), 4)
    with pytest.raises(RuntimeError, match="all files once each"):
        ss.evaluate(folder, weighting="ipcw", engine=Forgetful())


@pytest.mark.nightly
@pytest.mark.parametrize("compiles", [True, False])
def test_after_an_error_threads_compile_to_the_end(compiles, monkeypatch):
    """What else they do is waited for only some seconds: a storage may be silent."""
    compiler_lock = pytest.importorskip("numba.core.compiler_lock").global_compiler_lock
    monkeypatch.setattr(engines, "PATIENCE", 0.1)
    begun, ended, judged = threading.Event(), threading.Event(), threading.Event()

    def work(item):
        if item == "bad":
            begun.wait()
            raise InputError("bad")
        with compiler_lock if compiles else nullcontext():
            begun.set()
            if compiles:
                time.sleep(0.5)  # longer than the patience
            else:
                judged.wait(60)
            ended.set()

    with pytest.raises(InputError, match="bad"):
        list(engines._each(work, ["long", "bad"], 2, threading.Event(), lambda: None))
    assert ended.is_set() == compiles
    judged.set()
    ended.wait()
