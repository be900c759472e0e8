"""Time and memory of calls, and of fresh processes."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FEWEST = 3  # repetitions, however long they take


@dataclass(frozen=True)
class Timing:
    """Seconds per call; those of the processor, on all cores together, are a median, too."""

    median: float
    fastest: float
    slowest: float
    processor: float
    repetitions: int


def timings(
    calls: Mapping[str, Callable[[], Any]], *, repetitions: int = 15, budget: float = 5.0, pause: float = 0.005
) -> dict[str, Timing | str]:
    """Time several calls in turn, so that what else the machine does meets all of them alike.

    Each is called once before (which compiles what needs compiling), then up to `repetitions` times, or for
    `budget` seconds, but at least three times. There is a `pause` before each call, since threads of the one before
    may still be waiting busily for more work.

    Returns
    -------
    dict of str to Timing
        Or to a message, for a call that failed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    processor: dict[str, list[float]] = {name: [] for name in calls}
    failed: dict[str, str] = {}
    for turn in range(repetitions + 1):
        for name, call in calls.items():
            enough = len(seconds[name]) >= FEWEST and sum(seconds[name]) > budget
            if enough or name in failed:
                continue
            time.sleep(pause)
            try:
                start, worked = time.perf_counter(), time.process_time()
                call()
                elapsed, worked = time.perf_counter() - start, time.process_time() - worked
            except Exception as error:  # a peer may refuse the data; the others are still of interest
                failed[name] = f"failed: {type(error).__name__}: {error}"
                continue
            if turn:
                seconds[name].append(elapsed)
                processor[name].append(worked)
    found: dict[str, Timing | str] = dict(failed)
    for name in calls.keys() - failed.keys():
        values = seconds[name]
        worked = statistics.median(processor[name])
        found[name] = Timing(statistics.median(values), min(values), max(values), worked, len(values))
    return found


def extra_memory(call: Callable[[], Any], repetitions: int = 5) -> int:
    """Return by how many bytes a call raises this process's memory at its peak, at most over several calls.

    Linux only: the kernel keeps the peak, and resets it on request.
    """
    most = 0
    for _ in range(repetitions):
        gc.collect()
        _return_free_memory()
        Path("/proc/self/clear_refs").write_text("5")  # see proc(5): resets VmHWM
        before = memory("VmRSS")
        call()
        most = max(most, memory("VmHWM") - before)
    return most


def _return_free_memory() -> None:
    """Give freed memory back to the system; the call would otherwise use it, and seem to need none."""
    with contextlib.suppress(AttributeError):  # not the GNU C library
        ctypes.CDLL(None).malloc_trim(0)


def memory(field: str) -> int:
    """Return ``VmRSS``, what this process takes, or ``VmHWM``, its peak.

    Linux only. What `resource` calls the peak may be that of the process that started this one.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def in_fresh_process(*arguments: object, **environment: str) -> Any:
    """Run ``fresh.py`` and return what it found, or a message if it failed."""
    return _run([str(HERE / "fresh.py"), *map(str, arguments)], environment)


def import_seconds(modules: Sequence[str], repetitions: int = 7) -> dict[str, float]:
    """Return the median times of imports in fresh processes."""
    code = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
    turns = [[_run(["-c", code.format(module)], {}) for module in modules] for _ in range(repetitions + 1)]
    # the first turn read the files into memory
    return {
        module: statistics.median(found) for module, found in zip(modules, zip(*turns[1:], strict=True), strict=True)
    }


def _run(arguments: list[str], environment: Mapping[str, str]) -> Any:
    try:
        return printed_by(*arguments, env={**os.environ, **environment}, stderr=subprocess.PIPE)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        return f"failed: {lines[-1] if lines else f'status {error.returncode}'}"


def printed_by(*arguments: object, **options: Any) -> Any:
    """Run Python with these arguments in a fresh process, and return the last line that it prints, which is JSON."""
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options)
    return json.loads(done.stdout.splitlines()[-1])
