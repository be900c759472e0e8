"""How often printed intervals hold the truth, and tests reject what is right; run by ``coverage.py``.

Every setting is simulated many times with fixed seeds. An interval that the library itself calls unreliable in the data
at hand, or does not print, is not counted; how many are is told beside. Writes ``docs/coverage.csv``, and a summary of
it over settings, ``docs/coverage_summary.csv``, for a page of the docs.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import coverage_causes as causes
import coverage_kinds as kinds
from coverage_designs import PROJECTED, RATES, SLOPES, WEIGHTINGS, Setting

#: Between which per cent intervals should hold the truth, and tests reject what is right.
ALLOWED = {"95": (93.0, 97.0), "95 or more": (93.0, 100.0), "5": (3.5, 6.5)}
MOSTLY_FLAGGED = 90.0  # per cent: what is left says little
DOCS = Path(__file__).parent.parent / "docs"

Row = dict[str, str]


def small_and_large() -> Iterator[Setting]:
    """Yield the settings of losses and calibration: all weightings, rare events, many kinds of groups."""
    for weighting in WEIGHTINGS:
        for events in RATES:
            for n in (100, 300, 1000):
                yield Setting(n, events, weighting)
    for sizes in ("equal", "unequal"):
        for n_groups in (5, 10, 20, 40):
            yield Setting(20 * n_groups, n_groups=n_groups, sizes=sizes)


def few_and_many() -> Iterator[Setting]:
    """Yield the settings of all metrics: C* tells about the risk wherever the weighting allows that."""
    for weighting in WEIGHTINGS[:3]:
        for n in (150, 500):
            yield Setting(n, weighting=weighting, telling=weighting != "ipcw")
    for weighting in (WEIGHTINGS[0], WEIGHTINGS[2]):
        yield Setting(500, weighting=weighting, n_groups=50, telling=True)


def censored_by_design() -> Iterator[Setting]:
    """Yield the settings of tests that have no weighting."""
    return (setting for setting in few_and_many() if setting.weighting != "ipcw")


def projecting() -> Iterator[Setting]:
    """Yield the settings of the projected score, whose condition holds in all of them."""
    return (Setting(n, weighting=weighting) for weighting in PROJECTED for n in (200, 1000, 4000))


def leaving() -> Iterator[Setting]:
    """Yield the settings in which drop-out depends on the covariate, or does not."""
    return (Setting(n, weighting=weighting) for weighting in SLOPES for n in (1000, 4000))


def competing() -> Iterator[Setting]:
    """Yield the settings of scores of one of two causes."""
    of_causes = (WEIGHTINGS[0], WEIGHTINGS[1], WEIGHTINGS[2], *PROJECTED)
    return (Setting(n, weighting=weighting) for weighting in of_causes for n in (300, 1000))


@dataclass(frozen=True)
class Kind:
    """What is counted, where, and in how many data sets."""

    work: Callable[..., kinds.Found]
    settings: Callable[[], Iterable[Setting]]
    replicates: int


KINDS = {
    "losses": Kind(kinds.losses, small_and_large, 500),
    "calibration": Kind(kinds.calibration, small_and_large, 200),
    "wrong-calibration": Kind(kinds.wrong_calibration, few_and_many, 500),
    "metrics": Kind(kinds.metrics, few_and_many, 600),
    "sizes": Kind(kinds.sizes, few_and_many, 1000),
    "projected": Kind(kinds.projected, projecting, 1000),
    "dropouts": Kind(kinds.dropouts, leaving, 300),
    "causes": Kind(causes.of_a_cause, competing, 1000),
    "multi-class": Kind(causes.of_all_causes, competing, 1000),
    "decisions": Kind(kinds.decisions, few_and_many, 1000),
    "distribution": Kind(kinds.distribution, censored_by_design, 2000),
}


@dataclass
class Tally:
    """Counts of one kind of interval or test, by data set."""

    nominal: str = ""
    total: int = 0
    hits: list[int] = field(default_factory=list)
    relied: list[int] = field(default_factory=list)

    def add(self, one: kinds.Counted) -> None:
        self.nominal, self.total = one.nominal, self.total + one.hit.size
        self.hits.append(int((one.hit & one.relied).sum()))
        self.relied.append(int(one.relied.sum()))

    def row(self) -> Row:
        """Return the share in per cent, its Monte Carlo error by data sets, and whether it is outside."""
        hits, relied = np.array(self.hits, dtype=float), np.array(self.relied, dtype=float)
        flagged = 100 * (1 - relied.sum() / self.total)
        row = {"nominal": self.nominal, "share": "", "error": "", "flagged": f"{flagged:.0f}", "outside": "",
               "data sets": str(hits.size)}  # fmt: skip
        if flagged > MOSTLY_FLAGGED:
            return row
        share = hits.sum() / relied.sum()
        # intervals of one data set hold together: a ratio of sums over data sets
        near = (hits.sum() + 2) / (relied.sum() + 4)  # where all or none are hit the error is not zero
        error = np.sqrt(max(np.square(hits - share * relied).sum() / relied.sum(), near * (1 - near)) / relied.sum())
        lowest, highest = ALLOWED[self.nominal]
        beyond = max(lowest - 100 * share, 100 * share - highest)
        outside = "" if beyond <= 0 else "yes" if beyond > 200 * error else "within error"
        return {**row, "share": f"{100 * share:.1f}", "error": f"{100 * error:.1f}", "outside": outside}


def counted(name: str, setting: Setting, n_replicates: int, pool: ProcessPoolExecutor) -> list[Row]:
    """Return a row for every kind of interval and test."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for found in pool.map(partial(KINDS[name].work, setting=setting), range(n_replicates), chunksize=10):
        for interval, one in found.items():
            tallies[interval].add(one)
    where = {
        "kind": name,
        "n": str(setting.n),
        "events": setting.events,
        "weights": setting.weighting,
        "C* tells": "yes" if setting.telling else "",
        "groups": f"{setting.n_groups} {setting.sizes}" if setting.n_groups else "",
    }
    return [{**where, "interval or test": interval, **tally.row()} for interval, tally in tallies.items()]


def summary(rows: list[Row]) -> list[Row]:
    """Return for every kind of interval and test the lowest and highest share over all settings."""
    by_name: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_name[row["kind"], row["interval or test"], row["nominal"]].append(row)
    found = []
    for (kind, interval, nominal), some in by_name.items():
        shares = [float(row["share"]) for row in some if row["share"]]
        flagged = [float(row["flagged"]) for row in some]
        found.append(
            {
                "kind": kind,
                "interval or test": interval,
                "nominal": nominal,
                "settings": str(len(some)),
                "lowest": f"{min(shares):.1f}" if shares else "",
                "median": f"{np.median(shares):.1f}" if shares else "",
                "highest": f"{max(shares):.1f}" if shares else "",
                "flagged": f"{min(flagged):.0f} to {max(flagged):.0f}",
                "outside": str(sum(row["outside"] == "yes" for row in some)),
                "within error": str(sum(row["outside"] == "within error" for row in some)),
            }
        )
    return found


def _read(file: Path) -> list[Row]:
    if not file.exists():
        return []
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def _write(file: Path, rows: list[Row]) -> None:
    """Write the rows in the order of the kinds, and their summary beside them."""
    order = list(KINDS)
    rows = sorted(rows, key=lambda row: order.index(row["kind"]))
    for path, table in ((file, rows), (file.with_name(f"{file.stem}_summary.csv"), summary(rows))):
        with path.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="NAME",
                        help=f"some of {', '.join(KINDS)}; rows of the others stay in the file")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets")
    parser.add_argument("--replicates", type=float, default=1.0, help="times the usual number of data sets")
    parser.add_argument("--output", type=Path, default=DOCS / "coverage.csv")
    given = parser.parse_args()
    share = given.replicates * (0.1 if given.quick else 1.0)
    kept = [row for row in _read(given.output) if row.get("kind") in KINDS and row["kind"] not in given.only]
    rows: list[Row] = []
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for name in given.only:
            for setting in KINDS[name].settings():
                start = time.perf_counter()
                found = counted(name, setting, max(round(share * KINDS[name].replicates), 1), pool)
                outside = [f"{row['interval or test']} {row['share']}" for row in found if row["outside"] == "yes"]
                told = "; ".join(outside) or "all inside, or flagged"
                print(f"{name} | {setting.name} | {time.perf_counter() - start:.0f} s: {told}", flush=True)
                rows += found
                _write(given.output, kept + rows)  # a run that is stopped leaves what it has
    print(f"{sum(row['outside'] == 'yes' for row in rows)} of {len(rows)} are outside", file=sys.stderr)
