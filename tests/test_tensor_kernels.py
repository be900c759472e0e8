"""Triton's kernels give the numbers of NumPy: on a CUDA device, or, slowly, in its interpreter on the processor."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import survscore as ss
from registry import CASES, random_problem
from test_tensors import assert_same, evaluated

torch = pytest.importorskip("torch")

HAS_TRITON = importlib.util.find_spec("triton") is not None
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
runs_kernels = pytest.mark.skipif(
    not HAS_TRITON or not (INTERPRETED or torch.cuda.is_available()),
    reason="kernels need Triton, and a CUDA device or TRITON_INTERPRET=1",
)
DEVICE = "cpu" if INTERPRETED else "cuda"
NAMES = ["ipcw", "ipcw / n", "ipcw training", "ipcw training / n", "administrative", "administrative training",
         "administrative training capped / n", "administrative fixed", "ipcw function"]  # fmt: skip
KERNELS = {"count_stretches", "first_moments", "second_moments", "add_runs"}
by_name = {case.name: case for case in CASES}


@pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")
@pytest.mark.skipif(INTERPRETED or torch.cuda.is_available(), reason="the tests below run here")
def test_the_interpreter_runs_the_tests_below():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def small_shapes(monkeypatch):
    """Let programs, runs and parts of the rows end within small data."""
    from survscore.engine import tensor_exits, tensor_kernels

    monkeypatch.setattr(tensor_exits, "SIZE", 16)
    shape = tensor_kernels.Shape
    small = tensor_kernels.Shapes(shape(2, 8), shape(1, 8), shape(2, 8), shape(1, 8))
    monkeypatch.setattr(tensor_kernels, "shapes", small)
    return small


@pytest.fixture
def used(monkeypatch):
    """Tell which kernels ran."""
    from survscore.engine import tensor_kernels

    names = set()

    def spied(name, kernel):
        def spy(*args, **settings):
            names.add(name)
            return kernel(*args, **settings)

        return spy

    for name in KERNELS:
        monkeypatch.setattr(tensor_kernels, name, spied(name, getattr(tensor_kernels, name)))
    return names


@runs_kernels
@pytest.mark.parametrize("same_grid", [True, False], ids=["on the grid", "interpolation"])
@pytest.mark.parametrize("name", NAMES)
def test_kernels_agree_with_numpy(name, same_grid, small_shapes, used):
    problem, other = (random_problem(40, 5, seed=seed, lost=True, same_grid=same_grid) for seed in (1, 2))
    weighting = by_name[name].weighting(problem)
    asked = {"weighting": [weighting, "ipcw"], "times": problem.times, "unasked": False, "null": same_grid}
    models = {"one": problem.curves, "other": other.curves}
    found = evaluated(problem.y, {key: curves.to(DEVICE) for key, curves in models.items()}, **asked)
    assert used == KERNELS
    assert_same(found, evaluated(problem.y, models, **asked))


@runs_kernels
@pytest.mark.parametrize("metric", ["brier", "log"])
@pytest.mark.parametrize("same_grid", [True, False], ids=["on the grid", "interpolation"])
@pytest.mark.parametrize("name", NAMES)
def test_one_model_is_read_once_for_sums_and_squares(name, same_grid, metric, small_shapes, used):
    problem = random_problem(40, 6, seed=1, lost=True, same_grid=same_grid)
    weighting = by_name[name].weighting(problem)
    asked = {"weighting": [weighting, "ipcw"], "times": problem.times, "unasked": False, "metric": metric}
    asked["ranges"] = [(1.0, 30.0)]
    found = evaluated(problem.y, {"one": problem.curves.to(DEVICE)}, **asked)
    assert used == KERNELS - {"second_moments"}
    assert_same(found, evaluated(problem.y, {"one": problem.curves}, **asked))


@runs_kernels
def test_batches_are_added_up(small_shapes):
    problem = random_problem(40, 6, seed=1, lost=True)
    parts = [slice(0, 7), slice(7, 30), slice(30, 40)]
    batches = ss.CurveBatches(lambda: (problem.curves[part].to(DEVICE) for part in parts), 40)
    asked = {"weighting": ["administrative", "ipcw"], "times": problem.times, "unasked": False}
    found = evaluated(problem.y.to(DEVICE), {"net": batches}, **asked)
    assert_same(found, evaluated(problem.y, {"net": problem.curves}, **asked))


@runs_kernels
def test_equal_predictions_do_not_vary_before_the_first_event(small_shapes):
    n = 40
    y = ss.Outcomes(np.arange(10.0, 10.0 + n), np.arange(n) % 2 == 0, np.arange(10.0, 10.0 + n))
    curves = ss.SurvivalCurves(np.tile([0.7, 0.4, 0.2], (n, 1)), [2.0, 5.0, 30.0])
    asked = {"weighting": ["administrative", "ipcw"], "times": [2.0, 5.0, 30.0], "unasked": False}
    for one in evaluated(y, {"net": curves.to(DEVICE)}, **asked):
        np.testing.assert_allclose(one.moments.pointwise[0, :2], 0.0, atol=1e-30)
        assert one.moments.pointwise[0, 2] > 1e-4


@runs_kernels
@pytest.mark.parametrize("n_times", [5, 70])
def test_groups(n_times, monkeypatch):
    from survscore.engine import tensor_kernels

    monkeypatch.setattr(tensor_kernels, "GROUPS_PER_PROGRAM", 3)
    problem, other = (random_problem(30, n_times, seed=seed) for seed in (1, 2))
    asked = {"weighting": "administrative", "times": problem.times, "unasked": False}
    asked |= {"groups": np.arange(30) * 7 % 11, "null": "counted", "ranges": [(10, 40), (20, 50), (5, 30), (1, 2)]}
    models = {"one": problem.curves, "other": other.curves}
    found = evaluated(problem.y, {key: curves.to(DEVICE) for key, curves in models.items()}, **asked)
    assert_same(found, evaluated(problem.y, models, **asked))


@runs_kernels
def test_tied_times(small_shapes):
    problem = random_problem(40, 5, lost=True)
    y = ss.Outcomes(np.floor(problem.y.time / 8), problem.y.event, np.ceil(problem.y.censoring_time / 8))
    asked = {"weighting": ["administrative", "ipcw"], "times": np.unique(y.time)[:5], "unasked": False}
    found = evaluated(y, {"net": problem.curves.to(DEVICE)}, **asked)
    assert_same(found, evaluated(y, {"net": problem.curves}, **asked))


@runs_kernels
@pytest.mark.parametrize("rows", [1, 4])
def test_the_shape_of_tiles_does_not_matter(rows, small_shapes):
    problem = random_problem(40, 5, lost=True)
    small_shapes.sums = small_shapes.squares = small_shapes.runs = small_shapes.sums.__class__(rows, 8)
    asked = {"weighting": "ipcw", "times": problem.times, "unasked": False, "metric": "log"}
    found = evaluated(problem.y, {"net": problem.curves.to(DEVICE)}, **asked)
    assert_same(found, evaluated(problem.y, {"net": problem.curves}, **asked))


@runs_kernels
@pytest.mark.parametrize("n_times", [70, 300])
def test_rows_in_several_tiles(n_times, small_shapes):
    problem, other = (random_problem(12, n_times, seed=seed) for seed in (1, 2))
    asked = {"weighting": ["administrative", "ipcw"], "times": problem.times, "unasked": False}
    models = {"one": problem.curves, "other": other.curves}
    found = evaluated(problem.y, {key: curves.to(DEVICE) for key, curves in models.items()}, **asked)
    assert_same(found, evaluated(problem.y, models, **asked))


def test_tiles_hold_all_columns_with_few_to_spare():
    tensor_kernels = pytest.importorskip("survscore.engine.tensor_kernels")
    for m, tiles in {1: (32, 0), 32: (32, 0), 33: (64, 0), 70: (64, 32), 150: (128, 32), 161: (128, 64)}.items():
        cut = tensor_kernels.Shape(2, 8).of(100, m)
        assert (cut.main, cut.tail, cut.n_tiles) == (*tiles, 1)
    for m in range(1, tensor_kernels.MOST_COLUMNS + 1, 7):
        for whole in (False, True):
            cut = tensor_kernels.Shape(2, 8).of(100, m, whole=whole)
            assert cut.n_tiles * (cut.main + cut.tail) >= m
            assert cut.n_tiles == 1 or not whole


@runs_kernels
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_kernels_read_every_number_type(kind, small_shapes):
    problem = random_problem(30, 5)
    matrix = torch.tensor(problem.curves.probabilities).to(getattr(torch, kind)).to(DEVICE)
    with ss.config.using(backend="torch"):
        curves = ss.SurvivalCurves(matrix, problem.curves.times)
        asked = {"weighting": ["administrative", "ipcw"], "times": problem.times, "unasked": False}
        found = evaluated(problem.y, {"net": curves}, **asked)
    assert_same(found, evaluated(problem.y, {"net": curves.numpy()}, **asked))


@runs_kernels
@pytest.mark.parametrize(
    ("values", "bad"),
    [
        ([[0.9, 0.5, 0.5]], False),
        ([[0.9, 0.5, 0.6]], True),
        ([[0.9, 0.5, -0.1]], True),
        ([[1.1, 0.5, 0.1]], True),
        ([[0.9, np.nan, 0.1]], True),
        ([[0.9, 0.5, 0.1]] * 40 + [[0.1, 0.5, 0.1]], True),
    ],
)
def test_the_check_of_matrices(values, bad):
    from survscore._utils import loops as _loops

    for kind in (torch.float16, torch.float32, torch.float64):
        matrix = torch.tensor(values, dtype=kind, device=DEVICE)
        assert _loops.has_bad_probabilities(matrix, 4 * torch.finfo(kind).eps) == bad
    ends = torch.tensor([[0.5, 0.9]], device=DEVICE)
    assert not _loops.has_bad_probabilities(ends, np.inf)


TILES = {"MAIN": 128, "TAIL": 32}
TWO_WEIGHTINGS = {"LOSS": 1, "TWO": True, "SAME_FIRST": False, "DIRECT": False, "ALL_LAST_A": True, "ONE_A": False,
                  "ALL_LAST_B": False, "ONE_B": True}  # fmt: skip
COMPILED = {
    "first_moments": {**TWO_WEIGHTINGS, "ROWS": 2, **TILES},
    "sums_and_squares": {**TWO_WEIGHTINGS, **TILES},
    "row_means": {"LOSS": 0, "TWO": True, "DIRECT": False, "ALL_LAST_A": True, "ONE_A": True, "PLAIN_A": True,
                  "STORES_A": False, "ALL_LAST_B": False, "ONE_B": False, "PLAIN_B": False, "STORES_B": True,
                  "KIND": None, "PER_WORD": 1, "WORDS": 5, "SIZE": 128},
    "count_stretches": {"ALL_LAST": False, "ROWS": 1024, "BINS": 256},
    "add_weights": {"ALL_LAST": False, "ROWS": 1024},
    "count_values": {"SIZE": 1024, "BINS": 256},
    "second_moments": {"LOSS": 0, "CONSTANT": True, "NULL": True, "AVERAGES": 2, "STORED": 1, "SQUARED": 2,
                       "DIRECT_A": True, "DIRECT_B": True, "ALL_LAST": True, "ONE": True, "LANES": 32, "ROWS": 1,
                       **TILES},
    "group_moments": {"LOSS": 0, "TWO": True, "CONSTANT": False, "AVERAGES": 1, "SQUARED": 1, "DIRECT_A": True,
                      "DIRECT_B": True, "ALL_LAST": False, "ONE": True, "MAIN": 128, "TAIL": 32, "LANES": 32},
    "group_sizes": {"COLUMNS": 256},
    "move_exits": {"OWN": True, "ONE": True, "TWO": True, "SIZE": 1024},
    "cross_exits": {"ONE": False, "TWO": True, "SIZE": 1024},
    "own_exits": {"TWO": True, "SIZE": 1024},
    "add_runs": {"LOSS": 0, "TWO": True, "CONSTANT": False, "DIRECT_A": True, "DIRECT_B": False, "ALL_LAST": False,
                 "ONE": False, **TILES},
}  # fmt: skip
POINTERS = {"*fp32": ("matrix", "matrix_a", "matrix_b", "words"), "*i8": ("label", "stayed"),
            "*i32": ("lower", "lower_a", "lower_b", "first", "first_a", "first_b", "last", "last_a", "last_b", "before",
                     "order", "values", "starts", "stop", "exits", "at_risk", "exits_before", "positions",
                     "reached")}  # fmt: skip
NUMBERS = ("width", "width_a", "width_b", "n", "n_rows", "n_columns", "n_copies", "n_tiles", "n_ordered", "per_program",
           "rows_per_program", "n_groups", "groups_per_program", "words_per_row", "first_word", "n_exits",
           "n_times")  # fmt: skip


@pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")
@pytest.mark.skipif(INTERPRETED, reason="interpreted kernels are not compiled")
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.parametrize("name", COMPILED)
def test_kernels_compile_for_a_gpu_that_is_not_here(name):
    """Types must fit, which the interpreter does not ask."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from survscore.engine import _triton, _triton_exits, _triton_means, _triton_moments, _triton_squares

    modules = (_triton, _triton_exits, _triton_means, _triton_moments, _triton_squares)
    kernel = next(getattr(one, name) for one in modules if hasattr(one, name))
    constants = COMPILED[name]
    types = dict.fromkeys(kernel.arg_names, "*fp64")
    if name.startswith("count"):
        types["out"] = "*i32"
    types |= {argument: kind for kind, several in POINTERS.items() for argument in several if argument in types}
    types |= {argument: "i32" for argument in NUMBERS if argument in types}
    types |= dict.fromkeys(constants, "constexpr")
    places = {(kernel.arg_names.index(argument),): value for argument, value in constants.items()}
    source = ASTSource(fn=kernel, signature=types, constexprs=places)
    assert triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
