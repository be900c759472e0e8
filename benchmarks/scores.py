"""Time and memory of survscore's scores, beside the floor and beside other libraries; see README.md."""

from __future__ import annotations

import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import results
from data import N_TIMES, Data, simulate
from measure import Timing, import_seconds, in_fresh_process, timings
from ours import COMPARED, FLOOR, FLOORS, FOUR, OURS, PLAIN_OF_TWO, TWO, TWO_RAW, WITH_ERRORS
from peers import PEERS
from report import spaced
from results import Row, Run
from survscore import config

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000,)
JUDGED_ROWS = 100_000  # the targets mean this many rows and more
FIRST_LARGE_ROWS, QUICK_FIRST_LARGE_ROWS = 100_000, 30_000
FRESH_REPETITIONS = 3
CELLS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 45_000_000, 150_000_000)

PYCOX, PYCOX_BY_TIME = "pycox, administrative Brier", "pycox, administrative Brier, copied by time"
SCIKIT_SURVIVAL = "scikit-survival, brier_score"
COMPARISONS = tuple(COMPARED.format(weighting) for weighting in WITH_ERRORS)
NOT_RUN = "not run"
#: The titles of tables that have a column for each size, and what is in these; the columns of others.
SCORES = "milliseconds (times floor A)", "{seconds SIZE:ms} ({floors SIZE:.1f})"
OTHERS = "milliseconds (times survscore's counterpart)", "{seconds SIZE:ms} ({ours SIZE:.1f})"
MEMORY = "MB (% of the matrix)", "{bytes SIZE:MB.1f} ({share SIZE:%.1f})"
TARGETS = "target", "{value SIZE}, {met SIZE}"
AGREEMENT = {"largest difference": "{difference:.0e}", "convention": "{convention}"}
GROWTH = {
    "rows": "{rows}", "cells": "{cells}", "path": "{path}", "ms": "{seconds:ms}", "ns per cell": "{ns_per_cell}"
}  # fmt: skip
START = {"start, in a fresh process": "{name}", "milliseconds": "{seconds:ms}"}
PACKAGES = (
    "numpy", "numba", "scipy", "pandas", "torch",
    "pycox", "scikit-survival", "hazardous", "SurvivalEVAL", "torchsurv",
)  # fmt: skip


def main() -> None:
    """Measure everything, print tables, and write all numbers where asked to."""
    parser = results.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test on 10 000 rows; its numbers mean little")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few rows leave some times without a score, and peers warn about themselves
    quick: bool = options.quick
    run = Run(parser, options, packages=PACKAGES, times=N_TIMES, type="float32")

    sizes = QUICK_SIZES if quick else SIZES
    data = simulate(max(sizes))
    own: dict[int, list[Row]] = {}
    others: dict[int, list[Row]] = {}
    for n in sizes:
        own[n], others[n] = score_rows(data.head(n))
        print(f"{spaced(n)} rows: done", file=sys.stderr)
    run.add("scores", size_columns(SCORES, sizes), by_size(own), f"Scores, x {N_TIMES}, float32")
    run.add("peers", {**size_columns(OTHERS, sizes), **AGREEMENT}, with_largest_difference(by_size(others), sizes),
            "Other libraries")  # fmt: skip

    judged = [n for n in sizes if quick or n >= JUDGED_ROWS]
    memory = memory_rows(judged, quick=quick)
    if memory:
        run.add("memory", size_columns(MEMORY, judged), by_size(memory), "Peak memory beyond the inputs")
    run.add("growth", GROWTH, growth_rows(data), f"Growth: {TWO}")
    run.add("start", START, start_rows(QUICK_FIRST_LARGE_ROWS if quick else FIRST_LARGE_ROWS))

    wanted = {n: targets([*own[n], *others[n]], memory.get(n, []), quick=quick) for n in judged}
    run.add("targets", size_columns(TARGETS, judged), by_size(wanted),
            "Targets" + (" (of larger data; not judged here)" if quick else ""))  # fmt: skip
    run.write()


def by_size(rows: Mapping[int, Sequence[Row]]) -> list[Row]:
    """Return one row for each name, in which every other value has the number of individuals behind its own."""
    found: dict[str, Row] = {}
    for n, several in rows.items():
        for row in several:
            wide = found.setdefault(row["name"], {"name": row["name"]})
            wide |= {f"{key} {spaced(n)}": value for key, value in row.items() if key != "name"}
    return list(found.values())


def size_columns(titled: tuple[str, str], sizes: Sequence[int]) -> dict[str, str]:
    """Return a column of names with this title, and one for each size, its number in the place of SIZE."""
    first, template = titled
    return {first: "{name}", **{f"{spaced(n)} x {N_TIMES}": template.replace("SIZE", spaced(n)) for n in sizes}}


def with_largest_difference(rows: Sequence[Row], sizes: Sequence[int]) -> list[Row]:
    """Return rows of peers with their convention, and how far their numbers are from ours under it, at any size."""
    found = []
    for row in rows:
        differences = [row[key] for n in sizes if (key := f"difference {spaced(n)}") in row]
        largest = {"difference": max(differences)} if differences else {}
        found.append({**row, **largest, "convention": PEERS[row["name"]].convention})
    return found


def score_rows(data: Data) -> tuple[list[Row], list[Row]]:
    """Time floors and survscore, and peers, on the same data."""
    calls = {name: prepare(data) for name, prepare in {**FLOORS, **OURS}.items()}
    own = timings(calls, budget=20.0)
    peers, ready = peer_timings(data)
    ours = [_row(name, own[name]) for name in calls]
    theirs = []
    for name, timing in peers.items():
        row, same = _row(name, timing), own[PEERS[name].counterpart]
        if isinstance(timing, Timing) and isinstance(same, Timing):
            row["ours"] = timing.median / same.median
            row["difference"] = float(np.max(np.abs(ready[name]() - PEERS[name].expected(data))))
        theirs.append(row)
    floor = own[FLOOR]
    for row in [*ours, *theirs]:
        if isinstance(floor, Timing) and not isinstance(row["seconds"], str):
            row["floors"] = row["seconds"] / floor.median
    return ours, theirs


def peer_timings(data: Data) -> tuple[dict[str, Timing | str], dict[str, Callable[[], Any]]]:
    """Return times of all peers, or why there is none, and the calls that can be made."""
    ready: dict[str, Callable[[], Any]] = {}
    found: dict[str, Timing | str] = dict.fromkeys(PEERS, NOT_RUN)
    for name, peer in PEERS.items():
        if peer.most_rows is not None and len(data) > peer.most_rows:
            found[name] = f"{NOT_RUN}: {peer.reason}"
            continue
        try:
            ready[name] = peer.prepare(data)
        except ImportError as error:
            found[name] = f"not installed: {error.name}"
        except Exception as error:
            found[name] = f"failed: {type(error).__name__}: {error}"
    # One by one, not in turn: most make large temporary arrays, which after other calls can cost several times as much.
    for name, call in ready.items():
        found |= timings({name: call}, repetitions=7)
    return found, ready


def _row(name: str, timing: Timing | str) -> Row:
    return {"name": name, **_times(timing)}


def _times(timing: Timing | str) -> Row:
    """Return the median as seconds, or what was said in its place, and the rest as it is."""
    if isinstance(timing, str):
        return {"seconds": timing}
    values = asdict(timing)
    return {"seconds": values.pop("median"), **values}


def memory_rows(sizes: Sequence[int], *, quick: bool) -> dict[int, list[Row]]:
    """Measure the extra memory of each call, each in its own process; the peers only at the smallest size."""
    if not Path("/proc/self/clear_refs").exists():
        return {}  # not Linux
    first = sizes[0]
    peers = [SCIKIT_SURVIVAL] if quick else [name for name, peer in PEERS.items() if (peer.most_rows or first) >= first]
    rows: dict[int, list[Row]] = {}
    for n in sizes:
        for name in (TWO, TWO_RAW, FOUR, *COMPARISONS, *peers):
            found = NOT_RUN if name in peers and n != first else in_fresh_process("memory", name, n)
            share = {} if isinstance(found, str) else {"share": found / (n * N_TIMES * 4)}
            rows.setdefault(n, []).append({"name": name, "bytes": found, **share})
    return rows


def growth_rows(data: Data) -> list[Row]:
    """Time one call on more and more rows."""
    sizes = [round(cells / N_TIMES) for cells in CELLS if cells <= data.survival.size]
    rows = []
    for n in sizes:
        timing = timings({TWO: OURS[TWO](data.head(n))}, repetitions=31, budget=3.0, pause=0)[TWO]
        cells = n * N_TIMES
        row = {"rows": n, "cells": cells, "path": "compiled" if config.compiles(cells) else "NumPy", **_times(timing)}
        if isinstance(timing, Timing):
            row["ns_per_cell"] = 1e9 * timing.median / cells
        rows.append(row)
    return rows


def start_rows(n_large: int) -> list[Row]:
    """Time imports and first calls in fresh processes."""
    large = f"first call, {spaced(n_large)} x {N_TIMES}, from raw arrays"
    found: dict[str, list[float | str]] = {}
    for _ in range(FRESH_REPETITIONS):
        with tempfile.TemporaryDirectory() as cache:
            for name, size in (
                ("first call, 1 000 x 50, from raw arrays", (1_000, 50)),
                (f"{large}: nothing compiled", (n_large, N_TIMES)),
                (f"{large}: compiled code on disk", (n_large, N_TIMES)),
            ):
                found.setdefault(name, []).append(in_fresh_process("first", *size, NUMBA_CACHE_DIR=cache))
    rows: list[Row] = [
        {"name": f"import {module}", "seconds": seconds}
        for module, seconds in import_seconds(("numpy", "survscore")).items()
    ]
    for name, values in found.items():
        messages = [value for value in values if isinstance(value, str)]
        rows.append({"name": name, "seconds": messages[0] if messages else statistics.median(values)})
    return rows


def targets(scores: Sequence[Row], memory: Sequence[Row], *, quick: bool) -> list[Row]:
    """Compare with what the library wants to reach, on data of one size."""
    median = {row["name"]: row["seconds"] for row in scores if not isinstance(row["seconds"], str)}
    floor, two, four = median[FLOOR], median[TWO], median[FOUR]
    found = [
        _target("both Briers: at most 5 times floor A", two / floor, quick, most=5),
        _target("four scores: at most 12 times floor A", four / floor, quick, most=12),
    ]
    for weighting in WITH_ERRORS:
        ratio = median[COMPARED.format(weighting)] / median[PLAIN_OF_TWO.format(weighting)]
        text = f"two models compared, {weighting}: at most 3 times their scores alone"
        found.append(_target(text, ratio, quick, most=3))
    for peer, least in ((PYCOX, 5), (PYCOX_BY_TIME, 5), (SCIKIT_SURVIVAL, 15)):
        if peer in median:
            text = f"both Briers: at least {least} times as fast as {peer}"
            found.append(_target(text, median[peer] / two, quick, least=least))
    for row in memory:
        if row["name"] in (TWO, FOUR, *COMPARISONS) and "share" in row:
            text = f"{row['name']}: extra memory below 10 % of the matrix"
            found.append(_target(text, 100 * row["share"], quick, most=10))
    return found


def _target(text: str, value: float, quick: bool, *, most: float = np.inf, least: float = -np.inf) -> Row:
    met = "met" if least <= value <= most else "NOT met"
    return {"name": text, "value": value, "met": "not judged" if quick else met}


if __name__ == "__main__":
    main()
