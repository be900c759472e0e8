"""The conventions of docs/conformance.json: those of packages that are here are found again, and how is tested."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "docs" / "conformance.json"

with pytest.MonkeyPatch.context() as patch:
    # at the end of the path: some scripts there have the names of packages
    patch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks"), str(ROOT / "docs" / "_ext")])
    from conformance_lines import COLUMNS

    import conformance
    import conformance_candidates as candidates
    import conformance_findings as finding
    import conformance_packages as packages
    from conformance_cases import QUESTIONS

ROWS = json.loads(WRITTEN.read_text())["packages"]
SCORED = {name: row for name, row in ROWS.items() if row.get("brier_score")}


# The file


def test_every_package_has_every_convention():
    for name, row in SCORED.items():
        shown = {key for columns in COLUMNS.values() for key in columns}
        assert set(row["conventions"]) == shown, name


def test_the_versions_are_those_that_are_installed_for_it():
    pinned = {name: conformance.wanted_version(name) for name in conformance.PYTHON if name != "survscore"}
    assert None not in pinned.values()
    assert pinned == {name: ROWS[name]["version"] for name in pinned}


@pytest.mark.parametrize("name", ["survscore", "scikit-survival", "lifelines", "pycox", "skpro"])
def test_packages_that_are_here_still_do_what_the_file_says(name):
    again = conformance.row(name, packages.report(name, QUESTIONS))
    assert again.get("conventions") == ROWS[name].get("conventions")
    assert again.get("ties") == ROWS[name].get("ties")
    numbers = {label: value for label, value in ROWS[name].get("numbers", {}).items() if isinstance(value, list)}
    for label, values in numbers.items():
        assert list(map(float, again["numbers"][label])) == pytest.approx(
            list(map(float, values)), abs=2e-6, nan_ok=True
        )


# How conventions are found


def as_package(convention, *, training="can be given", **changes):
    """Return the report of a package that follows a convention, but for some answers."""
    answers = {label: {"not offered": True} for label in QUESTIONS}
    for label, question in QUESTIONS.items():
        if question.kind == "brier":
            answers[label] = {"values": candidates.brier(question.data, convention), "warned": False}
    return {"answers": answers | changes, "training data": training}


OURS = candidates.Convention("1/G(T-)", "1/G(t)", "sum of weights", "event first", "unknown", "event", "training data")
ODD = candidates.Convention(
    "1/G(T)", "1/G(t-)", "number counted", "together", "event-free", "event-free", "scored data"
)


@pytest.mark.parametrize("convention", [OURS, ODD, replace(ODD, ties="as the rows stand"), replace(OURS, divisor="n")])
def test_a_convention_is_found_by_its_numbers(convention):
    found = finding.findings(as_package(convention))
    for name in set(candidates.CHOICES) - {"source"}:
        assert found[name] == getattr(convention, name)
    assert found["fitted_on"].endswith(convention.source)
