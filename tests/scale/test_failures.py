"""What goes wrong around the data: nothing is lost, nothing is counted twice, and one line says what it was.

Elsewhere: workers and executors that are killed (`test_clusters`), processes (`test_engines`), interrupts
(`test_command`), files that are damaged or unlike the others (`test_bad_files`), links and copies (`test_folders`).
"""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import survscore as ss
from combinations import nightly_but
from commands import run
from scale_case import write

# In a namespace of its own, which goes with the process: a disk of so many bytes, then the commands.
DISK = """
mount -t tmpfs -o size="$1",mode=777 survscore "$2" || exit 77
disk="$2"; shift 2
{commands}
"""


@pytest.fixture
def disk(tmp_path):
    """Run commands of a shell beside a disk of their own, `$disk`; "$@" is what runs survscore on the data."""
    folder = tmp_path / "disk"
    folder.mkdir()
    data = write(tmp_path / "data", n=200)
    evaluate = [sys.executable, "-m", "survscore", "evaluate", str(data), "-w", "ipcw", "--threads", "1"]

    def ran(commands, size):
        if shutil.which("unshare") is None:
            pytest.skip("there is no program to mount a small disk with")
        shell = ["unshare", "-rm", "sh", "-c", DISK.format(commands=commands), "sh", size, str(folder), *evaluate]
        done = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode == 77 or "unshare" in done.stderr:
            pytest.skip("no small disk can be mounted here")
        return done

    return ran


@pytest.mark.parametrize(
    "target",
    nightly_but(
        ["--json $disk/x.json"], ["--json $disk/x.json", "--parquet $disk/x.parquet", "--state-out $disk/x.state"]
    ),
)
def test_a_full_disk_leaves_what_was_there(disk, target):
    path = target.split("/")[1]
    done = disk(f'echo before > $disk/{path}; "$@" {target}; echo $? $(ls -A $disk) $(cat $disk/{path})', "4k")
    assert done.stdout.splitlines()[-1] == f"2 {path} before"
    (line,) = done.stderr.splitlines()
    assert line.startswith("survscore: ")
    assert line.endswith(f"/{path}: can't be written: No space left on device")


def test_a_full_disk_keeps_the_sums_of_finished_files(disk):
    """With more room, the same command goes on, and gives what an uninterrupted one gives."""
    done = disk(
        '"$@" --state $disk/kept > /dev/null; echo $?; find $disk -name "*.state" | wc -l; find $disk -type f | wc -l;'
        'mount -o remount,size=10m $disk; "$@" --state $disk/kept --json -; echo; "$@" --json -',
        "24k",
    )
    code, kept, files, *results = done.stdout.splitlines()
    assert (code, kept) == ("2", files)
    assert 0 < int(kept) < 6
    (line,) = done.stderr.splitlines()
    assert line.endswith(".state: can't be written: No space left on device")
    resumed, whole = "\n".join(results).split("\n\n")
    assert json.loads(resumed)["scores"] == json.loads(whole)["scores"]
    assert json.loads(resumed)["settings"]["individuals"] == 1200


@pytest.mark.parametrize(
    "target",
    nightly_but(["--state $disk/kept"], ["--csv $disk/x.csv", "--state-out $disk/x.state", "--state $disk/kept"]),
)
def test_a_read_only_folder_is_found_out_before_the_work(disk, target):
    done = disk(f'mount -o remount,ro $disk; "$@" {target}; echo $?', "1m")
    assert done.stdout == "2\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("survscore: ")
    assert line.endswith(f"/{target.split('/')[1]}: can't be written: Read-only file system")


def test_a_partition_that_comes_late(tmp_path, capsys):
    """A manifest misses it; when it has come, only it is read, and the scores are those of all days at once."""
    lake, manifest = tmp_path / "lake", tmp_path / "manifest.txt"
    names = []
    for k, path in enumerate(sorted(write(lake, files=6).iterdir())):
        names.append(f"day=2024-06-0{1 + k // 2}/{path.name}")
        (lake / names[-1]).parent.mkdir(exist_ok=True)
        path.rename(lake / names[-1])
    manifest.write_text("\n".join(names))
    day = (lake / names[2]).parent
    day.rename(tmp_path / "late")
    asked = ("evaluate", lake, "-w", "administrative", "--json", "-")
    code, out, err = run(capsys, *asked, "--manifest", manifest)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"2 of 6 files missing, the first '{names[2]}'" in err
    total = tmp_path / "total.state"
    assert run(capsys, *asked, "--state-out", total)[0] == 0
    (tmp_path / "late").rename(day)
    code, late, err = run(capsys, "evaluate", day, *asked[2:], "--add", total)
    assert code == 0, err
    whole = json.loads(run(capsys, *asked, "--manifest", manifest)[1])
    for mine, theirs in zip(json.loads(late)["scores"], whole["scores"], strict=True):
        assert mine["score"] == pytest.approx(theirs["score"], rel=1e-11)


@pytest.mark.nightly
@pytest.mark.parametrize(("limit", "asked"), [("450MB", "ipcw"), ("600MB", "projected")])
def test_the_memory_that_is_taken_is_within_the_limit(limit, asked, tmp_path):
    """Of 1.2 million rows with 48 predictions, which without limit take more than the lower of them."""
    for k in range(4):
        rng = np.random.default_rng(k)
        end, event_time, rate = rng.integers(20, 400, 300_000), rng.exponential(300, 300_000), rng.random(300_000)
        columns = {"time": np.minimum(end, np.ceil(event_time)), "event": event_time <= end, "censoring_time": end}
        for name, wrong in (("a", 1.0), ("b", 1.2)):
            columns |= {f"{name}:{10 * j}": np.exp(-wrong * rate * j / 12).astype(np.float32) for j in range(1, 25)}
        pq.write_table(pa.table(columns), tmp_path / f"{k}.parquet", row_group_size=100_000)
    code = f"""
        import resource
        import survscore as ss
        ss.evaluate({str(tmp_path)!r}, weighting={asked!r}, memory_limit={limit!r}, rank_rows=10_000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    """
    command, library = [sys.executable, "-c", textwrap.dedent(code)], str(Path(ss.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": library, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout) <= 1.2 * int(limit.removesuffix("MB")) * 10**6
