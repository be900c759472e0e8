"""Time and memory of survscore's scores, beside the floor and beside other libraries; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from data import N_TIMES, Data, simulate
from measure import Timing, import_seconds, in_fresh_process, timings
from ours import FLOOR, FLOORS, FOUR, OURS, TWO, TWO_RAW
from peers import PEERS
from report import growth_table, memory_table, score_table, start_table, target_table
from survscore import _loops

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000,)
MEMORY_ROWS, QUICK_MEMORY_ROWS = 100_000, 10_000
FIRST_LARGE_ROWS, QUICK_FIRST_LARGE_ROWS = 100_000, 30_000
CELLS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 45_000_000, 150_000_000)

PYCOX, SCIKIT_SURVIVAL = "pycox, administrative Brier", "scikit-survival, brier_score"
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
        show(f"{n:_} x {N_TIMES}, float32".replace("_", " "), score_table(rows, FLOOR))

    rows = QUICK_MEMORY_ROWS if options.quick else MEMORY_ROWS
    results["memory"] = memory_rows(rows, quick=options.quick)
    show(f"Peak memory beyond the inputs, {rows:_} x {N_TIMES}".replace("_", " "), memory_table(results["memory"]))

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
    found: dict[str, Timing | str] = {**timings(ready, repetitions=7), **notes}
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


def memory_rows(n: int, *, quick: bool) -> list[dict[str, Any]]:
    """Measure the extra memory of each call, each in its own process."""
    if not Path("/proc/self/clear_refs").exists():
        return [{"name": "memory is measured on Linux only"}]
    names = [TWO, TWO_RAW, FOUR]
    names += [SCIKIT_SURVIVAL] if quick else [name for name, peer in PEERS.items() if (peer.most_rows or n) >= n]
    rows = []
    for name in names:
        found = in_fresh_process("memory", name, n)
        matrix = n * N_TIMES * 4
        rows.append(
            {"name": name, "note": found}
            if isinstance(found, str)
            else {"name": name, "bytes": found, "share_of_matrix": found / matrix}
        )
    return rows


def growth_rows(data: Data) -> list[dict[str, Any]]:
    """Time one call on more and more rows."""
    sizes = [round(cells / N_TIMES) for cells in CELLS if cells <= data.survival.size]
    rows = []
    for n in sizes:
        timing = timings({TWO: OURS[TWO](data.head(n))}, repetitions=31, budget=3.0)[TWO]
        cells = n * N_TIMES
        row = {"rows": n, "cells": cells, "path": "compiled" if cells >= _loops.LARGE_MATRIX else "NumPy"}
        if isinstance(timing, Timing):
            row |= {"seconds": asdict(timing), "ns_per_cell": 1e9 * timing.median / cells}
        rows.append(row)
    return rows


def start_rows(n_large: int) -> list[dict[str, Any]]:
    """Time imports and first calls in fresh processes."""
    large = f"first call, {n_large:_} x {N_TIMES}, from raw arrays".replace("_", " ")
    with tempfile.TemporaryDirectory() as folder:
        return [
            {"name": "import numpy", "seconds": import_seconds("numpy")},
            {"name": "import survscore", "seconds": import_seconds("survscore")},
            {"name": "first call, 1 000 x 50, from raw arrays", "seconds": in_fresh_process("first", 1_000, 50)},
            {
                "name": f"{large}: nothing compiled",
                "seconds": in_fresh_process("first", n_large, N_TIMES, NUMBA_CACHE_DIR=folder),
            },
            {
                "name": f"{large}: compiled code on disk",
                "seconds": in_fresh_process("first", n_large, N_TIMES, NUMBA_CACHE_DIR=folder),
            },
        ]


def targets(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare with what the library wants to reach; for every size but the smallest, which the targets do not mean."""
    found = []
    quick = results["quick"]
    for n, rows in results["scores"].items():
        if n < MEMORY_ROWS and not quick:
            continue
        median = {row["name"]: row["seconds"]["median"] for row in rows if "seconds" in row}
        floor, two, four = median[FLOOR], median[TWO], median[FOUR]
        found += [
            _target("both Briers: at most 5 times floor A", n, two / floor, quick, most=5),
            _target("four scores: at most 12 times floor A", n, four / floor, quick, most=12),
        ]
        for peer, least in ((PYCOX, 5), (SCIKIT_SURVIVAL, 15)):
            if peer in median:
                text = f"both Briers: at least {least} times as fast as {peer}, alone"
                found.append(_target(text, n, median[peer] / two, quick, least=least))
    shares = [row["share_of_matrix"] for row in results["memory"] if row["name"] in (TWO, FOUR) and "bytes" in row]
    if shares:
        n = QUICK_MEMORY_ROWS if quick else MEMORY_ROWS
        text = "both Briers, four scores: extra memory below 10 % of the matrix"
        found.append(_target(text, n, 100 * max(shares), quick, most=10))
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
    return {"system": platform.system(), "cpu": model, "cores": _loops._cores(), "load_before": load()}


def load() -> float | None:
    """Return how many processes wanted to run in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


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
