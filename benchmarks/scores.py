"""Time and memory of survscore's scores, beside the floor and beside other libraries; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from data import N_TIMES, Data, simulate
from measure import Timing, import_seconds, in_fresh_process, timings
from ours import COMPARED, FLOOR, FLOORS, FOUR, OURS, PLAIN_OF_TWO, TWO, TWO_RAW, WITH_ERRORS
from peers import PEERS
from report import growth_table, memory_table, score_table, spaced, start_table, target_table
from survscore import config

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000,)
JUDGED_ROWS = 100_000  # the targets mean this many rows and more
FIRST_LARGE_ROWS, QUICK_FIRST_LARGE_ROWS = 100_000, 30_000
FRESH_REPETITIONS = 3
CELLS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 45_000_000, 150_000_000)

PYCOX, PYCOX_BY_TIME = "pycox, administrative Brier", "pycox, administrative Brier, copied by time"
SCIKIT_SURVIVAL = "scikit-survival, brier_score"
COMPARISONS = tuple(COMPARED.format(weighting) for weighting in WITH_ERRORS)
PACKAGES = (
    "survscore", "numpy", "numba", "scipy", "pandas", "torch",
    "pycox", "scikit-survival", "hazardous", "SurvivalEVAL", "torchsurv",
)  # fmt: skip


def main() -> None:
    """Measure everything, print tables, and write all numbers where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test on 10 000 rows; its numbers mean little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few rows leave some times without a score, and peers warn about themselves

    results: dict[str, Any] = {"quick": options.quick, "machine": machine(), "versions": versions()}
    describe(results)
    sizes = QUICK_SIZES if options.quick else SIZES
    data = simulate(max(sizes))

    results["scores"] = {}
    for n in sizes:
        results["scores"][n] = rows = score_rows(data.head(n))
        show(f"{spaced(n)} x {N_TIMES}, float32", score_table(rows, FLOOR))

    results["memory"] = memory_rows([n for n in sizes if judged(n, results)], quick=options.quick)
    show(f"Peak memory beyond the inputs, x {N_TIMES}", memory_table(results["memory"]))

    results["growth"] = growth_rows(data)
    show(f"Growth: {TWO}", growth_table(results["growth"]))

    results["start"] = start_rows(QUICK_FIRST_LARGE_ROWS if options.quick else FIRST_LARGE_ROWS)
    show("Start, in fresh processes", start_table(results["start"]))

    results["targets"] = targets(results)
    show("Targets" + (" (of larger data; not judged here)" if options.quick else ""), target_table(results["targets"]))
    results["machine"]["load_after"] = load()
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def score_rows(data: Data) -> list[dict[str, Any]]:
    """Time floors, survscore and peers on the same data."""
    calls = {name: prepare(data) for name, prepare in {**FLOORS, **OURS}.items()}
    own = timings(calls, budget=20.0)
    rows: list[dict[str, Any]] = [_row(name, "floor" if name in FLOORS else "survscore", own[name]) for name in calls]
    ready: dict[str, Callable[[], Any]] = {}
    notes: dict[str, str] = {}
    for name, peer in PEERS.items():
        if peer.most_rows is not None and len(data) > peer.most_rows:
            notes[name] = f"not run: {peer.reason}"
            continue
        try:
            ready[name] = peer.prepare(data)
        except ImportError as error:
            notes[name] = f"not installed: {error.name}"
        except Exception as error:
            notes[name] = f"failed: {type(error).__name__}: {error}"
    # One by one, not in turn: most make large temporary arrays, which after other calls can cost several times as much.
    found: dict[str, Timing | str] = dict(notes)
    for name, call in ready.items():
        found |= timings({name: call}, repetitions=7)
    for name, peer in PEERS.items():
        row = _row(name, "peer", found[name]) | {"convention": peer.convention, "counterpart": peer.counterpart}
        ours = own[peer.counterpart]
        if "seconds" in row and isinstance(ours, Timing):
            row["times_survscore"] = row["seconds"]["median"] / ours.median
            row["max_difference"] = float(np.max(np.abs(ready[name]() - peer.expected(data))))
        rows.append(row)
    floor = own[FLOOR]
    for row in rows:
        if "seconds" in row and isinstance(floor, Timing):
            row["to_floor"] = row["seconds"]["median"] / floor.median
    return rows


def _row(name: str, kind: str, timing: Timing | str) -> dict[str, Any]:
    found = {"note": timing} if isinstance(timing, str) else {"seconds": asdict(timing)}
    return {"name": name, "kind": kind, **found}


def memory_rows(sizes: Sequence[int], *, quick: bool) -> list[dict[str, Any]]:
    """Measure the extra memory of each call, each in its own process; the peers only at the smallest size."""
    if not Path("/proc/self/clear_refs").exists():
        return []  # not Linux
    n = sizes[0]
    peers = [SCIKIT_SURVIVAL] if quick else [name for name, peer in PEERS.items() if (peer.most_rows or n) >= n]
    cases = [(name, n) for n in sizes for name in (TWO, TWO_RAW, FOUR, *COMPARISONS)] + [(name, n) for name in peers]
    rows = []
    for name, n in cases:
        found = in_fresh_process("memory", name, n)
        measured = {"note": found} if isinstance(found, str) else {"bytes": found, "share": found / (n * N_TIMES * 4)}
        rows.append({"name": name, "rows": n, **measured})
    return rows


def growth_rows(data: Data) -> list[dict[str, Any]]:
    """Time one call on more and more rows."""
    sizes = [round(cells / N_TIMES) for cells in CELLS if cells <= data.survival.size]
    rows = []
    for n in sizes:
        timing = timings({TWO: OURS[TWO](data.head(n))}, repetitions=31, budget=3.0, pause=0)[TWO]
        cells = n * N_TIMES
        row = {"rows": n, "cells": cells, "path": "compiled" if config.compiles(cells) else "NumPy"}
        if isinstance(timing, Timing):
            row |= {"seconds": asdict(timing), "ns_per_cell": 1e9 * timing.median / cells}
        rows.append(row)
    return rows


def start_rows(n_large: int) -> list[dict[str, Any]]:
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
    rows: list[dict[str, Any]] = [
        {"name": f"import {module}", "seconds": seconds}
        for module, seconds in import_seconds(("numpy", "survscore")).items()
    ]
    for name, values in found.items():
        messages = [value for value in values if isinstance(value, str)]
        rows.append({"name": name, "seconds": messages[0] if messages else statistics.median(values)})
    return rows


def judged(n: int, results: dict[str, Any]) -> bool:
    """Whether the targets, and what is measured for them, mean data of this size."""
    return results["quick"] or n >= JUDGED_ROWS


def targets(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare with what the library wants to reach."""
    quick = results["quick"]
    found = []
    for n, rows in results["scores"].items():
        if not judged(n, results):
            continue
        median = {row["name"]: row["seconds"]["median"] for row in rows if "seconds" in row}
        floor, two, four = median[FLOOR], median[TWO], median[FOUR]
        found += [
            _target("both Briers: at most 5 times floor A", n, two / floor, quick, most=5),
            _target("four scores: at most 12 times floor A", n, four / floor, quick, most=12),
        ]
        for weighting in WITH_ERRORS:
            ratio = median[COMPARED.format(weighting)] / median[PLAIN_OF_TWO.format(weighting)]
            text = f"two models compared, {weighting}: at most 3 times their scores alone"
            found.append(_target(text, n, ratio, quick, most=3))
        for peer, least in ((PYCOX, 5), (PYCOX_BY_TIME, 5), (SCIKIT_SURVIVAL, 15)):
            if peer in median:
                text = f"both Briers: at least {least} times as fast as {peer}"
                found.append(_target(text, n, median[peer] / two, quick, least=least))
    for row in results["memory"]:
        if row["name"] in (TWO, FOUR, *COMPARISONS) and "share" in row:
            text = f"{row['name']}: extra memory below 10 % of the matrix"
            found.append(_target(text, row["rows"], 100 * row["share"], quick, most=10))
    return found


def _target(
    text: str, n: int, value: float, quick: bool, *, most: float = np.inf, least: float = -np.inf
) -> dict[str, Any]:
    return {"target": text, "rows": n, "value": value, "met": None if quick else bool(least <= value <= most)}


def machine() -> dict[str, Any]:
    """Return what the numbers depend on, and nothing that tells whose machine it is."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = models[0] if models else model
    return {"system": platform.system(), "cpu": model, "cores": config.n_cores(), "load_before": load()}


def load() -> float | None:
    """Return how many processes wanted to run in the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def versions() -> dict[str, str]:
    """Return the versions of everything that is compared."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def describe(results: dict[str, Any]) -> None:
    """Print where this runs."""
    host = results["machine"]
    print(f"{host['system']}, {host['cores']} cores ({host['cpu']}), load {host['load_before']}")
    print(", ".join(f"{name} {number}" for name, number in results["versions"].items()), flush=True)


def show(title: str, table: str) -> None:
    """Print a section."""
    print(f"\n## {title}\n\n{table}", flush=True)


if __name__ == "__main__":
    main()
