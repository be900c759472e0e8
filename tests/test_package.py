"""What the package shows at its root, what an import loads, and whose line a warning names."""

import ast
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import survscore as ss

PACKAGE = Path(ss.__file__).parent


def python(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# The root


def in_stub():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    return {alias.name: node.module for node in tree.body for alias in node.names}


def test_dir_shows_public_names_and_subpackages_and_nothing_else():
    assert set(dir(ss)) == set(ss.__all__) | set(ss._SUBPACKAGES)
    shown = python("import survscore as ss; ss.compare, ss.report; import survscore.cli; print(*dir(ss))").split()
    assert shown == dir(ss)  # modules that were imported since do not appear


def test_the_stub_has_the_names_that_the_package_has():
    homes = {name: f"survscore.{module}" for name, module in ss._HOMES.items()}
    assert in_stub() == homes | {"__version__": "survscore._version"} | dict.fromkeys(ss._SUBPACKAGES, "survscore")


def test_no_public_name_is_that_of_a_module():
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(ss._HOMES)  # importing the module would put it in the place of the name


# What an import loads


HEAVY = {"numpy", "pandas", "scipy", "numba", "rich", "click", "matplotlib", "torch", "sklearn", "pyarrow"}


def test_an_import_of_the_package_loads_next_to_nothing():
    code = "import sys, survscore; print(*{name.partition('.')[0] for name in sys.modules}, len(sys.modules))"
    *loaded, _ = python(code).split()
    assert not HEAVY & set(loaded)
    ours = python("import sys, survscore; print(*(name for name in sys.modules if name.startswith('survscore')))")
    assert len(ours.split()) < 6


def test_a_score_loads_only_what_it_needs():
    loaded = python(
        """
        import sys, numpy as np, survscore as ss
        y = ss.Outcomes([1.0, 3.0, 4.0], [1, 0, 1], [4.0, 3.0, 6.0])
        ss.brier_score(y, ss.SurvivalCurves([[0.5], [0.9], [0.8]], [2.0]), weighting="administrative")
        print(*{name.partition(".")[0] for name in sys.modules})
        """
    )
    assert not (HEAVY - {"numpy", "scipy"}) & set(loaded.split())


# Whose line a warning names


def outcomes(n=60):
    rng = np.random.default_rng(1)
    event_time, end = rng.exponential(10, n), rng.uniform(5, 20, n)
    return ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)


def curves(n=60):
    return ss.SurvivalCurves(np.tile(np.exp(-np.array([1.0, 5.0, 10.0, 30.0]) / 10), (n, 1)), [1.0, 5.0, 10.0, 30.0])


def cut_at_the_event():
    time = np.arange(1.0, 101.0)
    ss.Outcomes(time, np.ones(100), time)


def evaluated():
    import pyarrow as pa

    observed = {"time": [1.0, 3.0], "event": [1, 0], "censoring_time": [4.0, 3.0]}
    rows = pa.table({**observed, "net:2": [0.5, 0.9], "net:30": [0.1, 0.2]})
    ss.evaluate(rows, weighting="administrative", times=[2.0, 30.0])


CASES = {
    "brier_score": lambda: ss.brier_score(outcomes(), curves(), weighting="administrative", times=[5.0, 30.0]),
    "compare by": lambda: ss.compare(
        outcomes(), {"a": curves()}, weighting="administrative", times=[5.0, 30.0], by=np.arange(60) % 2
    ),
    "Outcomes": cut_at_the_event,
    "evaluate": evaluated,
}


@pytest.mark.parametrize("name", CASES)
def test_a_warning_names_the_line_of_the_user(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[name]()
    assert caught
    assert {one.filename for one in caught} == {__file__}
