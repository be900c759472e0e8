"""Who may import whom, what an import loads, and where machine code is kept."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import survscore

PACKAGE = Path(survscore.__file__).parent
# Data flows one way: a module imports only from those above it.
LAYERS = [
    ["_version", "_utils", "_validation", "_config"],  # helpers, which may import each other
    ["causes"],
    ["outcomes"],
    ["interpolation"],
    ["curves"],
    ["incidence"],
    ["inference"],
    ["censoring"],
    ["metrics"],
    ["weighting"],
    ["engine"],
    ["results"],
    ["scores"],
    ["analysis"],
    ["adapters"],
    ["simulate", "models"],
    ["io"],
    ["scale"],
    ["datasets"],
    ["plots"],
    ["checks"],
    ["reports"],
    ["paper"],
    ["cli"],
    ["__main__"],
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}
HELPERS = set(LAYERS[0])
# Imported only inside a method: a result draws itself, and the core never loads matplotlib.
ALLOWED_LAZILY = {
    ("results", "plots"),
    ("analysis", "plots"),
    ("models", "plots"),
    ("analysis", "io"),  # what is written, such as checkpoints and models, is written whole
    ("models", "io"),
    ("outcomes", "results"),  # for HTML in notebooks
}
MOST_AT_THE_ROOT = 12


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


def test_imports_follow_the_layers():
    seen = set()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if module == "__init__":
            continue
        seen.add(module)
        for other, at_once in imports(path):
            if other == module or {other, module} <= HELPERS or (not at_once and (module, other) in ALLOWED_LAZILY):
                continue
            assert LEVEL[other] < LEVEL[module], f"{path.name} imports {other}"
    assert seen == set(LEVEL)


def test_few_modules_at_the_root():
    modules = [path.name for path in PACKAGE.glob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    assert len(modules) <= MOST_AT_THE_ROOT


def python(code, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# checks of a matrix of this size are compiled, as scores are, but sooner
LARGE_MATRIX = """
    import numpy as np, survscore as ss
    curves = ss.SurvivalCurves(np.full((400_000, 3), 0.25, dtype=np.float32), [1, 2, 3])
    with ss.config.using(backend="compiled"):
        ss.brier_score(ss.Outcomes(np.ones(400_000), np.ones(400_000)), curves, times=[1, 2], errors=False)
    print(ss.__file__, curves.probabilities.sum())
"""


@pytest.mark.parametrize("kind", ["read-only install and no home", "writeable"])
def test_machine_code_is_kept_where_possible(tmp_path, kind):
    installed = tmp_path / "site"
    shutil.copytree(PACKAGE, installed / "survscore", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
    environment["NUMBA_CACHE_DIR"] = ""  # where it is set, nothing is kept beside the code
    if kind != "writeable":
        # a file in the way refuses even a superuser, whom permissions do not stop
        for folder in ("", "_utils", "engine"):
            (installed / "survscore" / folder / "__pycache__").write_text("")
        environment["HOME"] = environment["XDG_CACHE_HOME"] = "/dev/null/nowhere"
    path, total = python(LARGE_MATRIX, **environment).split()
    assert path.startswith(str(installed))
    assert float(total) == 300_000
    kept = list(installed.rglob("*.nbi"))
    assert bool(kept) == (kind == "writeable")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_process_that_is_forked_while_threads_score_computes_on(backend):
    done = python(
        """
        import multiprocessing, os, sys, threading, warnings, numpy as np, survscore as ss
        warnings.simplefilter("ignore")  # of forks of processes with threads
        ss.config.backend = sys.argv[1]
        os.sched_getaffinity = lambda _: range(3)

        def score(seed):
            rng = np.random.default_rng(seed)
            y = ss.Outcomes(rng.exponential(5, 3000), np.ones(3000))
            curves = ss.SurvivalCurves(np.exp(-rng.random((3000, 1)) * np.arange(1, 31)), np.arange(1, 31))
            metrics = ["brier", "auc", "concordance"]
            return sum(float(one.scores.sum()) for one in ss.score_all(y, curves, metric=metrics, times=[2, 5]))

        def keep_scoring(k):
            while not ended.is_set():
                score(k)

        before, ended = score(1), threading.Event()
        threads = [threading.Thread(target=keep_scoring, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        found = []
        for _ in range(4):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                found += pool.map_async(score, [1, 1]).get(timeout=120)
        ended.set()
        for thread in threads:
            thread.join()
        print(found == [before] * 8)
        """,
        backend,
    )
    assert done == "True"


def test_no_cached_property_has_a_lock():
    # Python 3.11's own holds one lock for all instances: a fork while another thread computes a value leaves it locked
    for path in PACKAGE.rglob("*.py"):
        if path.name != "parallel.py":
            assert not re.search(r"functools import .*cached_property|functools\.cached_property", path.read_text()), (
                path
            )


@pytest.mark.parametrize("kept_bytes", [0, 1, 40, -20])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_machine_code_that_is_truncated_on_disk_is_compiled_anew(tmp_path, monkeypatch, ending, kept_bytes):
    kernels = pytest.importorskip("survscore._utils.kernels")
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    (tmp_path / "loops.py").write_text("def raised(x):\n    return x + 1.0\n")
    spec = importlib.util.spec_from_file_location("loops", tmp_path / "loops.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "loops", module)
    spec.loader.exec_module(module)

    def hits():
        function = kernels.compiled(module.raised)
        assert function(1.0) == 2.0
        return sum(function.stats.cache_hits.values())

    assert [hits(), hits()] == [0, 1]
    (kept,) = tmp_path.rglob(f"*.{ending}")
    kept.write_bytes(kept.read_bytes()[:kept_bytes])
    assert [hits(), hits()] == [0, 1]
