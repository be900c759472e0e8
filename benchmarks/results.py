"""One run of a benchmark: where it ran, what was asked, and its tables. They are printed, and written as JSON.

The documentation shows the files in ``docs/benchmarks``, so that no number on its pages is typed in; `Results` reads
them. Nothing is needed but the standard library and survscore, since some scripts run where there is little else.
survscore is imported where it is needed: some scripts measure processes that have not loaded it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from report import cells, filled, table

FOLDER = Path(__file__).parents[1] / "docs" / "benchmarks"
#: Parts of a file that a sentence can quote beside its tables.
FACTS = ("machine", "versions", "settings")
Row = dict[str, Any]


class UnknownResultError(LookupError):
    """What was asked for is in no file."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's options; every one can write its results."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to this file")
    return made


class Run:
    """One run of a benchmark, whose tables are printed as they are added.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        From `parser`: what has not its default is part of the command that the file holds.
    options : argparse.Namespace
        What it read.
    packages : sequence of str
        Whose versions matter, beside those of Python and survscore.
    device : str, optional
        The name of a GPU.
    **settings
        What else the numbers depend on: sizes that are no options.
    """

    def __init__(
        self,
        parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        *,
        packages: Sequence[str] = (),
        device: str | None = None,
        **settings: Any,
    ) -> None:
        # Folders are of the machine, not of the benchmark.
        asked = {name: value for name, value in vars(options).items() if not isinstance(value, Path)}
        self._path: Path | None = options.json
        self._content: dict[str, Any] = {
            "command": command(parser, asked),
            "machine": {**machine(), **({"device": device} if device else {})},
            "versions": versions(packages),
            "settings": {**{name: value for name, value in asked.items() if value is not None}, **settings},
            "tables": {},
        }
        print(in_words(self._content["machine"]) + f", load {self._content['machine']['load_before']}")
        print(", ".join(f"{name} {number}" for name, number in self._content["versions"].items()), flush=True)

    def add(
        self, name: str, columns: Mapping[str, str], rows: Sequence[Row], title: str = "", *, show: bool = True
    ) -> None:
        """Keep a table, and print it.

        Parameters
        ----------
        name : str
            By which the documentation asks for it.
        columns : mapping of str to str
            Titles and templates, as `report.filled` fills them; the first names the row.
        rows : sequence of dict
            Values, in seconds, bytes and shares unless their name says otherwise; also such as no column shows.
        title : str, optional
            Printed above the table.
        show : bool
            Whether to print it at all.
        """
        self._content["tables"][name] = {"columns": dict(columns), "rows": [_clean(row) for row in rows]}
        if show:
            print(f"\n## {title or name}\n\n{table(list(columns), cells(columns, rows))}", flush=True)

    def add_targets(self, targets: Iterable[tuple[str, float, float]]) -> None:
        """Keep whether targets are met: each in words, with what was measured, and the most that it may be."""
        rows = [{"name": name, "value": value, "met": "met" if value <= most else "NOT met"}
                for name, value, most in targets]  # fmt: skip
        self.add("targets", {"target": "{name}", "found": "{value:.2f}", "": "{met}"}, rows)

    def write(self) -> None:
        """Write everything, if a file was asked for."""
        self._content["machine"]["load_after"] = load()
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self._content, indent=1, ensure_ascii=False, allow_nan=False)
            self._path.write_text(text + "\n", encoding="utf-8")


def _clean(row: Row) -> Row:
    """Return a row as it is written: six digits are plenty, and JSON knows numbers only."""
    floats = {key: value for key, value in row.items() if isinstance(value, float)}
    return {
        key: float(f"{value:.6g}") if key in floats else value
        for key, value in row.items()
        if not math.isnan(floats.get(key, 0.0))
    }


def command(parser: argparse.ArgumentParser, asked: Mapping[str, Any]) -> str:
    """Return the command with these options, those left out that have their defaults."""
    words = ["python", f"benchmarks/{parser.prog}"]
    for name, value in asked.items():
        if value != parser.get_default(name):
            several = value if isinstance(value, (list, tuple)) else [] if value is True else [value]
            words += [f"--{name.replace('_', '-')}", *map(str, several)]
    return shlex.join(words)


def machine() -> dict[str, Any]:
    """Return what the numbers depend on, and nothing that tells whose machine it is."""
    from survscore import config

    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = models[0] if models else model
    found = {"system": platform.system(), "processor": model, "cores": config.n_cores()}
    return {**found, "load_before": load()}


def load() -> float | None:
    """Return how many processes wanted to run in the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python, of survscore, which may run from its source, and of these, as far as installed."""
    from survscore import __version__

    found = {"Python": platform.python_version(), "survscore": __version__}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # its rows say so
    return found


def in_words(machine: Mapping[str, Any]) -> str:
    """Return a machine in a few words: ``NVIDIA H200, 16 cores (Intel Xeon), Linux``."""
    cores, processor = machine.get("cores"), machine.get("processor")
    words = f"{cores} core{'' if cores == 1 else 's'}" if cores else ""
    words = f"{words} ({processor})" if words and processor else words or processor
    return ", ".join(word for word in (machine.get("device"), words, machine.get("system")) if word)


@dataclass(frozen=True)
class Results:
    """What a run has written."""

    path: Path
    content: dict[str, Any]

    @classmethod
    def read(cls, name: str, folder: Path = FOLDER) -> Results:
        """Read a file by its name, without the ending."""
        path = folder / f"{name}.json"
        if not path.is_file():
            there = _listed(one.stem for one in folder.glob("*.json"))
            raise UnknownResultError(f"no file of results {name!r}; there are {there}")
        return cls(path, json.loads(path.read_text(encoding="utf-8")))

    def table(self, name: str) -> dict[str, Any]:
        """Return the columns and rows of a table."""
        if name not in self.content["tables"]:
            there = _listed(self.content["tables"])
            raise UnknownResultError(f"{self.path.name} has no table {name!r}; it has {there}")
        found: dict[str, Any] = self.content["tables"][name]
        return found

    def row(self, table: str, name: str) -> Row:
        """Return the row whose first cell reads so."""
        found = self.table(table)
        first = next(iter(found["columns"].values()))
        by_name: dict[str, Row] = {filled(first, row): row for row in found["rows"]}
        if name not in by_name:
            there = _listed(by_name)
            raise UnknownResultError(f"table {table!r} of {self.path.name} has no row {name!r}; it has {there}")
        return by_name[name]


def quote(address: str, folder: Path = FOLDER) -> str:
    """Return what a sentence quotes of a file.

    Parameters
    ----------
    address : str
        ``file | table | row | template``, or ``file | settings | template`` (also ``machine`` and ``versions``): in
        ``scores | scores | administrative Brier | {seconds 100 000:ms} ms`` the template is filled from that row.
    """
    parts = [part.strip() for part in address.split("|")]
    if len(parts) == 3 and parts[1] in FACTS:
        row = Results.read(parts[0], folder).content[parts[1]]
    elif len(parts) == 4:
        row = Results.read(parts[0], folder).row(parts[1], parts[2])
    else:
        raise UnknownResultError(f"{address!r}: neither file | table | row | template nor file | settings | template")
    text = filled(parts[-1], row)
    if not text:
        raise UnknownResultError(f"{address!r}: not all of that is there; it has {_listed(row)}")
    return text


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names)) or "none"
