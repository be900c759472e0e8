"""Which conventions packages with an IPCW Brier score follow, found by their numbers: ``make conformance``.

    benchmarks/.venv/bin/python benchmarks/conformance.py

Every package scores the same small data sets (conformance_cases.py), in a process of its own (conformance_packages.py
and .R). Its numbers are held against literal computations under all combinations of conventions
(conformance_candidates.py), and what fits is its convention (conformance_findings.py). docs/conformance.json is
written, from which the tables of docs/conventions.rst are made.

Packages that do not get along with survscore's NumPy have environments of their own, made here. Those of R need
Rscript. What can't be had or asked is in the file with its reason.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from conformance_cases import QUESTIONS
from conformance_findings import findings, numbers, ties_in_censoring

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "docs" / "conformance.json"

#: In the order of the tables. Those that are known not to install are tried all the same.
PYTHON = (
    "survscore",
    "pycox",
    "scikit-survival",
    "survivors",
    "hazardous",
    "SurvivalEVAL",
    "torchsurv",
    "xgbse",
    "pydts",
    "lifelines",
    "skpro",
    "pysurvival",
    "auton-survival",
)
R = ("riskRegression", "pec", "ipred", "survival")
#: with a requirements-NAME.txt and an environment of their own
SEPARATE = ("xgbse", "pysurvival", "auton-survival")


class CannotAsk(Exception):  # noqa: N818
    """Why a package can't be asked."""


def reason(output: str) -> str:
    """Return the line of an output that says why: an exception, or else pip's last error."""
    raised = re.findall(r"^\s*(\w+Error: .+)$", output, flags=re.M)
    said = raised or re.findall(r"^\s*(?:ERROR|Error)(?: in [^:]*)?: ?(.+)$", output, flags=re.M)
    return said[-1].strip() if said else "no reason was given"


def separate_python(name: str) -> str:
    """Return the interpreter of a package's own environment, made if need be."""
    folder = HERE / f".venv-{name}"
    python, done = folder / "bin" / "python", folder / ".done"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "-r", HERE / f"requirements-{name}.txt"]
        run = subprocess.run(list(map(str, install)), capture_output=True, text=True, check=False)
        if run.returncode:
            raise CannotAsk(f"does not install: {reason(run.stdout + run.stderr)}")
        done.touch()
    return str(python)


def command(name: str, rscript: str | None) -> list[str]:
    """Return what answers questions on standard input."""
    if name not in R:
        python = separate_python(name) if name in SEPARATE else sys.executable
        return [python, str(HERE / "conformance_packages.py"), name]
    if rscript is None:
        raise CannotAsk("there is no Rscript")
    return [rscript, str(HERE / "conformance_packages.R"), name]


def ask(name: str, rscript: str | None) -> dict[str, Any]:
    """Return what a package says to all questions."""
    questions = json.dumps({label: question.to_dict() for label, question in QUESTIONS.items()})
    run = subprocess.run(command(name, rscript), input=questions, capture_output=True, text=True, check=False)
    if run.returncode:
        raise CannotAsk(f"cannot be asked: {reason(run.stderr)}")
    return json.loads(run.stdout)  # type: ignore[no-any-return]


def row(name: str, report: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a package: versions, conventions, and the numbers they were found by."""
    about = {
        "language": "R" if name in R else "Python",
        "version": report["version"],
        "stands_on": report["stands on"],
        "call": report["call"],
        "note": report["note"],
    }
    if all("not offered" in report["answers"][label] for label in QUESTIONS if label != "censoring"):
        if report["named brier"]:
            raise CannotAsk(f"has {report['named brier']}, and nobody asks it")
        return about | {"brier_score": False, "ties": ties_in_censoring(report["answers"])}
    return about | {"brier_score": True, "conventions": findings(report), "numbers": numbers(report["answers"])}


def wanted_version(name: str) -> str | None:
    """Return the version that would have been installed."""
    files = [HERE / "requirements.txt", HERE / f"requirements-{name}.txt"]
    lines = "\n".join(path.read_text() for path in files if path.exists())
    pinned = re.search(rf"^{re.escape(name)}==(\S+)", lines, flags=re.M)
    return pinned[1] if pinned else None


def table(names: list[str], rscript: str | None) -> dict[str, dict[str, Any]]:
    """Return the rows of these packages."""
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            rows[name] = row(name, ask(name, rscript))
        except CannotAsk as why:
            rows[name] = {"version": wanted_version(name), "reason": str(why)}
        print(f"{name:16} {rows[name]['version'] or '':12} {rows[name].get('reason', '')}", flush=True)
    return rows


def main() -> None:
    """Ask, and write the file."""
    every = [*PYTHON, *R]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=every, metavar="NAME", help="ask these, and keep the other rows")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--rscript", default=shutil.which("Rscript"), help="where Rscript is, if not on the path")
    options = parser.parse_args()
    before = json.loads(options.output.read_text())["packages"] if options.only else {}
    rows = before | table(options.only or every, options.rscript)
    written = {
        "made_by": "benchmarks/conformance.py",
        "python": platform.python_version(),
        "packages": {name: rows[name] for name in every if name in rows},
    }
    options.output.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
