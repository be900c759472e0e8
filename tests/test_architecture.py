"""The rooms of the house: who may import whom, what an import loads, and where machine code is kept."""

import ast
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import survscore

PACKAGE = Path(survscore.__file__).parent
# Data flows one way: a room imports only from rooms above it. Private helpers serve all of them.
ROOMS = [
    ["_version", "_validation", "_files", "_progress", "_isotonic"],
    ["_kernels"],
    ["_influence_kernels"],
    ["_loops"],
    ["_dates"],
    ["outcomes"],
    ["curves"],
    ["losses"],
    ["censoring"],
    ["weighting"],
    ["inference"],
    ["influence"],
    ["results"],
    ["scores"],
    ["comparison", "horizon", "scorers"],
    ["diagnostics"],
    ["simulate", "models"],
    ["io"],
    ["datasets"],
    ["plots"],
    ["reports"],
    ["experiments"],
    ["cli"],
    ["__main__"],
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
# Imported only inside a method, so that the core never loads matplotlib.
ALLOWED_LAZILY = {
    ("results", "plots"),
    ("comparison", "plots"),
    ("horizon", "plots"),
    ("diagnostics", "plots"),
    ("_isotonic", "_kernels"),
    ("models", "plots"),
}


def imports(path):
    """Yield (room, whether it is imported when the module is) for every import of the package by a module."""
    tree = ast.parse(path.read_text())
    inside = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
    checking = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for node in ast.walk(test)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "survscore":
            rest = node.module.split(".")[1:]
            for room in [rest[0]] if rest else [alias.name for alias in node.names]:
                yield room, id(node) not in inside
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("survscore"), f"{path}: say 'from survscore import ...'"


def test_imports_follow_the_rooms():
    seen = set()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        seen.add(room)
        for other, at_once in imports(path):
            if other == room or (not at_once and (room, other) in ALLOWED_LAZILY):
                continue
            assert LEVEL[other] < LEVEL[room], f"{path.name} imports {other}"
    assert seen == set(LEVEL)


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_library_loads_nothing_heavy():
    loaded = python(
        """
        import sys, survscore, survscore.cli
        heavy = {"torch", "sklearn", "matplotlib", "pandas", "numba", "altair", "polars", "pyarrow", "duckdb", "scipy"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert loaded == "[]"


def test_a_small_score_does_not_load_numba():
    loaded = python(
        """
        import sys, numpy as np, survscore as ss
        y = ss.Outcomes(np.arange(1, 1001), np.ones(1000))
        ss.log_loss(y, ss.SurvivalCurves(np.full((1000, 50), 0.5), np.arange(50.0)), weighting="ipcw")
        print("numba" in sys.modules)
        """
    )
    assert loaded == "False"


LARGE_SCORE = """
    import numpy as np, survscore as ss
    from survscore import _loops
    _loops.LARGE_MATRIX = 1
    y = ss.Outcomes(np.arange(1.0, 1001.0), np.ones(1000))
    curves = ss.SurvivalCurves(np.full((1000, 3), 0.5, dtype=np.float32), [1, 2, 3])
    print(ss.__file__, ss.brier_score(y, curves, times=[1, 2, 3]).scores.sum())
"""


@pytest.mark.parametrize("kind", ["read-only install and no home", "writeable"])
def test_machine_code_is_kept_where_possible(tmp_path, kind):
    installed = tmp_path / "site"
    shutil.copytree(PACKAGE, installed / "survscore", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
    if kind != "writeable":
        # a file in the way refuses even a superuser, whom permissions do not stop
        (installed / "survscore" / "__pycache__").write_text("")
        environment["HOME"] = environment["XDG_CACHE_HOME"] = "/dev/null/nowhere"
    path, total = python(LARGE_SCORE, **environment).split()
    assert path.startswith(str(installed))
    assert float(total) == 0.75
    kept = list(installed.rglob("*.nbi"))
    assert bool(kept) == (kind == "writeable")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_computes_on():
    done = python(
        """
        import multiprocessing, os, warnings, numpy as np, survscore as ss
        from survscore import _loops
        _loops.LARGE_MATRIX, _loops.n_cores = 1, lambda: 2

        def score(seed):
            rng = np.random.default_rng(seed)
            y = ss.Outcomes(rng.exponential(5, 3000), np.ones(3000))
            curves = ss.SurvivalCurves(np.full((3000, 3), 0.5), [1, 2, 3])
            return float(ss.brier_score(y, curves, times=[1, 2, 3]).scores.sum())

        before = score(1)  # starts the threads
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map_async(score, [1, 1]).get(timeout=60) == [before, before])
        """
    )
    assert done == "True"
