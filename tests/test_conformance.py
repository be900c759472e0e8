"""The conventions of docs/conformance.json are found again in the packages that are installed."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "docs" / "conformance.json"

with pytest.MonkeyPatch.context() as patch:
    # at the end of the path: some scripts there have the names of packages
    patch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks"), str(ROOT / "docs" / "_ext")])
    from conformance_lines import COLUMNS

    import conformance
    import conformance_packages as packages
    from conformance_cases import QUESTIONS

ROWS = json.loads(WRITTEN.read_text())["packages"]
SCORED = {name: row for name, row in ROWS.items() if row.get("brier_score")}


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
