"""Told to end at any moment, every long command does: the right exit code, no traceback, no process, no half file."""

import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from combinations import nightly_but
from survscore.datasets.kkbox import synthesize
from survscore.io import write_study
from survscore.io.files import PREFIX, written_whole

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at processes as Linux shows them")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST = 30.0  # seconds; three are the aim, and are kept where a processor is free


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files that the commands read."""
    folder = tmp_path_factory.mktemp("made")
    write_study(folder / "play", "simple", n=2000, seed=1, ending="csv")
    write_study(folder / "dated", "simple", n=2000, seed=1, ending="csv", cutoff="2020-12-31")
    synthesize(folder / "raw", customers=3000, seed=1)
    (folder / "parts").mkdir()
    outcomes = pd.read_csv(folder / "play" / "outcomes.csv")
    predicted = pd.read_csv(folder / "play" / "truth.csv").drop(columns="id")
    together = pd.concat([outcomes, predicted], axis=1)
    for k in range(40):
        together.assign(part=k).to_parquet(folder / "parts" / f"{k}.parquet")
    return folder


def commands(made, out):
    play = [str(made / "play" / f"{name}.csv") for name in ("outcomes", "truth", "leaking")]
    return {
        "report": ["report", *play, "-o", f"{out}/report.html"],
        "compare": ["compare", *play, "-w", "administrative", "-w", "ipcw", "--csv", f"{out}/a.csv", "--json",
                    f"{out}/a.json", "--parquet", f"{out}/a.parquet"],
        "backtest": ["backtest", *(path.replace("play", "dated") for path in play), "--cutoff", "2020-12-31", "--as-of",
                     "2020-11-30", "-t", "10", "--draws", "20000", "--jobs", "2", "--csv", f"{out}/a.csv"],
        "evaluate": ["evaluate", str(made / "parts"), "-w", "ipcw", "--csv", f"{out}/a.csv", "--state", f"{out}/state"],
        "demo": ["demo", "--size", "quick", "--out", str(out)],
        "reproduce": ["reproduce", "all", "--size", "quick", "--replicates", "2", "--jobs", "2", "--out", str(out)],
        "synthesize": ["kkbox", "synthesize", str(out), "--customers", "150000"],
        "prepare": ["kkbox", "prepare", str(made / "raw"), f"{out}/prepared.parquet"],
    }  # fmt: skip


def as_told(interrupts, command):
    """Return how to run a command that hears or ignores interrupts, whatever this process does."""
    first = f"import os, signal, sys; signal.signal(2, signal.{interrupts.name}); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-S", "-c", first, sys.executable, "-m", "survscore", *command]


def started(command):
    """Start a command that hears signals, whatever this process ignores, and wait until its own code runs."""
    process = subprocess.Popen(
        as_told(signal.SIG_DFL, command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while process.poll() is None and not catches(process.pid, signal.SIGTERM):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return process


def catches(pid, number):
    try:
        told = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return False
    return bool(int(told["SigCgt"], 16) >> (number - 1) & 1) if "SigCgt" in told else False


def session_of(leader):
    """Return the processes that are still there of a session."""
    there = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            there.append(int(stat.parent.name))
    return there


def gone(leader):
    deadline = time.monotonic() + LONGEST
    while left := session_of(leader):
        if time.monotonic() > deadline:
            os.killpg(leader, signal.SIGKILL)
            return left
        time.sleep(0.02)
    return []


def check_whole(out):
    """Everything in a folder is whole."""
    for path in out.rglob("*"):
        assert not path.name.startswith((".", "tmp_")), path
        if path.is_dir() or path.suffix in (".state", ".lock"):
            continue
        content = path.read_bytes()
        assert content, path
        if path.suffix == ".parquet":
            pd.read_parquet(path)
        elif path.suffix == ".html":
            assert content.rstrip().endswith(b"</html>"), path
        elif path.suffix in (".csv", ".json"):
            assert content.endswith(b"\n"), path


COMMANDS = ["report", "compare", "backtest", "evaluate", "demo", "reproduce", "synthesize", "prepare"]


@pytest.mark.parametrize(("name", "delay"), nightly_but([("evaluate", 0.5)], product(COMMANDS, (0.0, 0.5, 2.0))))
def test_every_long_command_ends_when_it_is_told_to(made, tmp_path, name, delay):
    # both signals, at moments that differ from command to command
    number = (signal.SIGINT, signal.SIGTERM)[(len(name) + int(2 * delay)) % 2]
    process = started(commands(made, tmp_path)[name])
    time.sleep(delay + 0.04 * len(name))
    process.send_signal(number)
    error = process.communicate(timeout=2 * LONGEST)[1]
    assert gone(process.pid) == []
    assert "Traceback" not in error
    assert "Exception ignored" not in error
    # all was written already: 0, or ended by the signal itself, where Python has given up its handlers at its end
    assert process.returncode in (CODES[number], 0, -number)
    told = [line for line in error.splitlines() if not line.startswith(("survscore: note: ", "Written: "))]
    assert told in ([], ["survscore: interrupted"])  # the first comes before there is anybody to say so
    check_whole(tmp_path)


def test_ctrl_c_reaches_workers_without_a_word_of_theirs(made, tmp_path):
    process = started(commands(made, tmp_path)["reproduce"])
    deadline = time.monotonic() + 60
    while len(session_of(process.pid)) < 4:  # the command, two workers, and what Python starts to watch over them
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    error = process.communicate(timeout=2 * LONGEST)[1]
    assert gone(process.pid) == []
    assert process.returncode == 130
    assert error == "survscore: interrupted\n"
    check_whole(tmp_path)


@pytest.mark.nightly
def test_workers_do_not_outlive_a_killed_parent(made, tmp_path):
    process = started(commands(made, tmp_path)["reproduce"])
    deadline = time.monotonic() + 60
    while len(session_of(process.pid)) < 4:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(1.0)
    process.kill()
    process.communicate(timeout=LONGEST)
    assert gone(process.pid) == []


WITHIN_A_QUERY = """
import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent ignores
from survscore.cli import main
from survscore.datasets.kkbox import raw

def load(database, *_):
    pathlib.Path(sys.argv[1]).touch()
    database.execute("SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range = 7")

raw.load = load
main(sys.argv[2:])
"""


@pytest.mark.parametrize("number", nightly_but([signal.SIGINT], CODES))
def test_a_query_that_would_take_years_is_left(made, tmp_path, number):
    marker, out = tmp_path / "begun", tmp_path / "out"
    out.mkdir()
    command = ["kkbox", "prepare", str(made / "raw"), str(out / "a.parquet")]
    process = subprocess.Popen([sys.executable, "-c", WITHIN_A_QUERY, str(marker), *command], stderr=-1, text=True)
    deadline = time.monotonic() + 60
    while not marker.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    try:
        error = process.communicate(timeout=LONGEST)[1]
    finally:
        process.kill()
    assert process.returncode == CODES[number]
    assert "Traceback" not in error
    assert list(out.iterdir()) == []


@pytest.mark.nightly
def test_what_is_ignored_stays_ignored(tmp_path):
    """As of a job in the background, or by nohup."""
    process = subprocess.Popen(as_told(signal.SIG_IGN, ["simulate", str(tmp_path / "play")]))
    for _ in range(5):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    assert (tmp_path / "play" / "covariates.csv").exists()


def test_handlers_are_those_from_before_afterwards(capsys):
    from survscore.cli import main

    before = [signal.getsignal(number) for number in CODES]
    main(["formats"])
    assert [signal.getsignal(number) for number in CODES] == before


INTERRUPTED = """
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == "survscore.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from survscore.__main__ import main
main()
"""


def test_an_interrupt_while_the_command_is_imported_is_no_traceback():
    run = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "survscore: interrupted\n")


TOLD = """
import os, signal, sys, time
from pathlib import Path
from survscore.io.ending import ended_by_signals
from survscore.io.files import written_whole
with ended_by_signals(), written_whole(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), int(sys.argv[2]))
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_or_the_next_run_removes_it(tmp_path, number):
    out = tmp_path / "out.txt"
    run = subprocess.run([sys.executable, "-c", TOLD, out, str(int(number))], capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (143 if number == signal.SIGTERM else -9, b"", b"")
    assert len(list(tmp_path.iterdir())) == (number == signal.SIGKILL)
    ours = tmp_path / f"{PREFIX}{os.getpid()}-x"
    ours.touch()  # of a process that still runs
    with written_whole(out) as temporary:
        temporary.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ours.name, "out.txt"])
