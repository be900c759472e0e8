"""Who may import whom, what an import loads, and where machine code is kept."""

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
# Data flows one way: a module imports only from those above it. Private helpers serve all of them.
LAYERS = [
    [
        "_arrays",
        "_version",
        "_starting",
        "_temporary",
        "_progress",
        "_isotonic",
        "_products",
        "_caching",
        "_influences",
    ],
    ["_validation", "_ending", "_digest", "_rounding", "_long_tables"],
    ["_jobs", "_files", "_databases", "_spreadsheets", "_frames", "_short_names", "_tables", "_units", "student"],
    ["multiplicity"],
    ["_smooth_test"],
    ["_config"],
    ["_parallel"],
    ["_kernels", "_tensor_checks", "_tensor_kernels"],
    ["_sort_kernels", "_distribution_kernels", "_logistic_kernels", "_tensor_loops"],
    ["_loops", "_logistic"],
    ["_sorting"],
    ["_dates"],
    ["outcomes"],
    ["splitters"],
    ["product_limit"],
    ["reading"],
    ["curves"],
    ["metrics"],
    ["distribution_sums"],
    ["distribution_results"],
    ["censoring", "nuisance"],
    ["stretches"],
    ["weighting"],
    ["belief"],
    ["engine"],
    ["inference"],
    ["estimate"],
    ["calibration_measures"],
    ["calibration_curves"],
    ["results"],
    ["scores"],
    ["calibrating", "comparison", "decision_curves", "distribution", "horizon", "populations", "scorers", "streaming"],
    ["backtest_results", "comparison_tables", "cross_validation", "diagnostics", "plausibility", "segment_labels"],
    ["survival_model", "backtest_days", "backtest_state"],
    ["backtesting"],
    ["segment_tables"],
    ["heterogeneity"],
    ["segments"],
    ["segmenting"],
    ["score_tables"],
    ["table_formats"],
    ["adapters", "simulate", "models"],
    ["io"],
    ["scale"],
    ["datasets"],
    ["plots"],
    ["checks"],
    ["reports"],
    ["experiments"],
    ["cli"],
    ["__main__"],
]
# Within the engine, too.
ENGINE = [
    ["_kernels", "_triton"],
    ["_moment_kernels", "_few_times_kernels", "_triton_exits", "_triton_means", "_triton_moments", "_triton_squares"],
    ["_group_kernels"],
    ["blocks", "units", "averaging"],
    ["support", "null"],
    ["inputs", "sums"],
    ["compiled", "placing", "tensors"],
    ["moments", "tensor_units", "tensor_kernels"],
    ["tensor_exits", "tensor_means", "tensor_sums"],
    ["passes", "time_order"],
    ["grouped"],
    ["bounds", "influence", "identity", "tensor_influence", "tensor_identity"],
    ["pooled", "tensor_bounds"],
    ["tensor_pooled"],
    ["backends", "histories"],
    ["evaluation"],
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}
ENGINE_LEVEL = {module: level for level, modules in enumerate(ENGINE) for module in modules}
# Imported only inside a method, so that the core never loads matplotlib.
ALLOWED_LAZILY = {
    ("results", "plots"),
    ("comparison", "plots"),
    ("calibrating", "plots"),
    ("distribution_results", "plots"),
    ("decision_curves", "plots"),
    ("backtest_results", "plots"),
    ("score_tables", "table_formats"),
    ("comparison", "comparison_tables"),
    ("diagnostics", "plots"),
    ("_isotonic", "_kernels"),
    ("models", "plots"),
    ("segments", "plots"),
    ("comparison", "plausibility"),  # which compares a model with its opposite
    ("comparison", "segmenting"),  # compare(by=...) makes many comparisons of one
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


def test_imports_follow_the_layers():
    seen = set()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if module == "__init__":
            continue
        seen.add(module)
        for other, at_once in imports(path):
            if other == module or (not at_once and (module, other) in ALLOWED_LAZILY):
                continue
            assert LEVEL[other] < LEVEL[module], f"{path.name} imports {other}"
    assert seen == set(LEVEL)


def test_imports_within_the_engine_follow_its_layers():
    seen = set()
    for path in (PACKAGE / "engine").glob("*.py"):
        if path.stem == "__init__":
            continue
        seen.add(path.stem)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("survscore.engine"):
                inside = node.module.split(".")[2:] or [alias.name for alias in node.names]
                for other in inside[:1] if node.module.count(".") > 1 else inside:
                    # what runs compiled code, or torch, imports it when it runs
                    lazily = node.col_offset > 0 and (
                        other in ("compiled", "identity", "_kernels") or other.startswith("tensor")
                    )
                    assert lazily or ENGINE_LEVEL[other] < ENGINE_LEVEL[path.stem], f"{path.name} imports {other}"
    assert seen == set(ENGINE_LEVEL)


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


# checks of a matrix of this size are compiled, as scores are, but sooner
LARGE_MATRIX = """
    import numpy as np, survscore as ss
    curves = ss.SurvivalCurves(np.full((400_000, 3), 0.25, dtype=np.float32), [1, 2, 3])
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
        for folder in ("", "engine"):
            (installed / "survscore" / folder / "__pycache__").write_text("")
        environment["HOME"] = environment["XDG_CACHE_HOME"] = "/dev/null/nowhere"
    path, total = python(LARGE_MATRIX, **environment).split()
    assert path.startswith(str(installed))
    assert float(total) == 300_000
    kept = list(installed.rglob("*.nbi"))
    assert bool(kept) == (kind == "writeable")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_computes_on():
    done = python(
        """
        import multiprocessing, os, warnings, numpy as np, survscore as ss
        ss.config.backend = "compiled"
        os.sched_getaffinity = lambda _: range(2)

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
