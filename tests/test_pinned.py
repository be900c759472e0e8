"""Results are those that were recorded before, to the last digits that rounding leaves.

reference/make_pinned.py recorded them, of the cases of pinned_cases.py.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import pinned_cases
import survscore as ss

FOLDER = Path(__file__).parent / "reference"
RECORD = json.loads((FOLDER / "pinned.json").read_text())
CASES, NUMBERS = RECORD["cases"], np.load(FOLDER / "pinned.npz")

RTOL, ATOL = 1e-10, 1e-12  # relative to each number, and to the largest of its column
#: What may differ by more, relative to each number; the first pattern that a quantity has in its name.
TOLERANCES = (
    # the critical value is a quantile of draws by the eigenvectors of a correlation matrix: where that is singular, as
    # of thresholds at which the same decisions are made, eigenvalues of 1e-16 have roots of 1e-8
    (r"band.*/(lower|upper)$|band_(lower|upper)$|critical_value$", 1e-7),
    # rounding of a statistic z changes its p-value by z^2 as much; and Student's distribution as SciPy has it differs
    # from the one that was recorded by 2e-11 with 10 000 degrees of freedom, by less with fewer
    (r"p_value$|p_adjusted$", 1e-9),
)


@pytest.fixture(autouse=True)
def numerical_slopes(monkeypatch):
    """Version 0.2 took the derivative of the null model's loss numerically: that shows where its error is tiny."""
    for loss in (ss.Brier, ss.Log):
        monkeypatch.setattr(loss, "slopes", ss.Loss.slopes)


def recorded(name):
    """Return what was recorded of a case, by quantity: arrays of numbers, and lists of text."""
    layout, texts = RECORD["layouts"][CASES[name]["layout"]], RECORD["texts"][CASES[name]["texts"]]
    parts = np.split(NUMBERS[name], np.cumsum(list(layout.values()))[:-1])
    return dict(zip(layout, parts, strict=True)), texts


def tolerance(quantity):
    return next((rtol for pattern, rtol in TOLERANCES if re.search(pattern, quantity)), RTOL)


def differences(quantity, got, expected):
    """Say how numbers differ; nothing where they do not."""
    if got.shape != expected.shape:
        return f"{quantity}: {got.size} numbers, and {expected.size} were recorded"
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    close = np.isclose(got, expected, rtol=tolerance(quantity), atol=ATOL * scale, equal_nan=True)
    if close.all():
        return None
    first = int(np.argmin(close))
    return (
        f"{quantity}: {np.count_nonzero(~close)} of {close.size} numbers differ, the first at position {first}: "
        f"{got[first]!r}, and {expected[first]!r} was recorded"
    )


def test_the_cases_are_those_that_were_recorded():
    missing, added = set(CASES) - set(pinned_cases.CASES), set(pinned_cases.CASES) - set(CASES)
    assert not missing, f"cases that were recorded and are not computed any more: {sorted(missing)}"
    assert not added, f"cases that were never recorded (reference/make_pinned.py): {sorted(added)}"
    assert set(NUMBERS) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_that_were_recorded(name):
    numbers, texts = recorded(name)
    found = pinned_cases.computed(name)
    missing, added = {*numbers, *texts} - set(found), set(found) - {*numbers, *texts}
    assert not missing, f"{name}: recorded, and not computed any more: {sorted(missing)}"
    assert not added, f"{name}: computed, and never recorded: {sorted(added)}"
    told = [differences(quantity, found[quantity], expected) for quantity, expected in numbers.items()]
    for quantity, expected in texts.items():
        got = found[quantity].tolist()
        told.append(None if got == expected else f"{quantity}: {got}, and {expected} was recorded")
    told = [one for one in told if one is not None]
    assert not told, f"{name}: {len(told)} of {len(found)} quantities differ\n" + "\n".join(told[:20])
