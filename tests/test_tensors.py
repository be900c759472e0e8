"""Tensors: torch gives the numbers of NumPy, for everything that is scored, and predictions stay where they are."""

import pickle
import subprocess
import sys
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import survscore as ss
from combinations import examples, nightly_but
from registry import ASKED, CASES, METRICS, assert_same, random_problem
from survscore._utils import arrays
from survscore.engine.evaluation import Evaluation

torch = pytest.importorskip("torch")

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
DEVICES = ["cpu", pytest.param("cuda", marks=on_gpu)]
ALL = ("brier", "log", "auc")  # which have forms of their own there; all: test_every_metric_of_tensors


def evaluated(y, models, **asked):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Evaluation.of(y, models, **asked).run()


def both_ways(problem, case, others=(), metric=ALL, **asked):
    """Return the results of torch and of NumPy."""
    models = {"one": problem.curves, **{f"other {k}": curves for k, curves in enumerate(others)}}
    asked = {"metric": metric, "weighting": case.weighting(problem), "times": problem.times, **asked}
    found = []
    for backend in ("torch", "numpy"):
        with ss.config.using(backend=backend):
            try:
                found.append(evaluated(problem.y, models, **asked))
            except ss.InputError as error:
                found.append(str(error))
    return found


def fits(case, lost):
    return case.data in ("any", "drop-outs", "lost" if lost else "administrative")


WAYS = {
    "scores alone": {"errors": False},
    "any range": {"ranges": "any"},
    "ranges": {"ranges": [(10, 60), (30, None)]},
    "groups": {"groups": np.arange(300) // 4},
    "groups, any range": {"groups": np.arange(300) % 7, "ranges": "any"},
    "null model": {"null": True},
    "null model, any range": {"null": True, "ranges": "any"},
    "null model of others": {"null": ss.Outcomes([1, 20, 40, 60, 80], [1, 1, 0, 1, 1])},
    "null model of those counted": {"null": "counted"},
}


#: Two ways for each weighting in the quick suite, others for the next one; and all in the nightly run.
COMPARED = [
    pytest.param(
        case,
        way,
        lost,
        id=f"{case.name}-{way}-{'some' if lost else 'nobody'} lost",
        marks=[] if (place + 5 * q + lost) % 9 in (0, 4) else pytest.mark.nightly,
    )
    for q, case in enumerate(CASES)
    for place, way in enumerate(WAYS)
    for lost in (False, True)
    if fits(case, lost)
]


@pytest.mark.parametrize(("case", "way", "lost"), COMPARED)
def test_torch_agrees_with_numpy(case, way, lost):
    problem, other = (random_problem(300, 9, seed=seed, lost=lost) for seed in (1, 2))
    found, expected = both_ways(problem, case, [other.curves], **WAYS[way])
    assert_same(found, expected, 1e-12)


METRIC_WAYS = ["scores alone", "groups", "null model, any range"]
TAKEN = [case for case in CASES if fits(case, True)]
IN_TURN = [(case, METRIC_WAYS[q % 3]) for q, case in enumerate(TAKEN)]


@pytest.mark.parametrize(("case", "way"), nightly_but(IN_TURN, product(TAKEN, METRIC_WAYS)))
def test_every_metric_of_tensors(case, way):
    """Also those that are made in NumPy, of which some have a bias that is taken off."""
    problem, other = (random_problem(300, 9, seed=seed, lost=True) for seed in (1, 2))
    asked = {"metric": [ASKED.get(name, name) for name in METRICS if name not in ALL], "times": problem.times[1:3]}
    found, expected = both_ways(problem, case, [other.curves], **asked, **WAYS[way])
    assert_same(found, expected, 1e-12)


@every_case
@examples(3)
@given(data=st.data())
def test_torch_agrees_with_numpy_on_ties_of_all_kinds(case, data):
    problem = data.draw(case.problems())
    found, expected = both_ways(problem, case, null=data.draw(st.sampled_from([False, True, "counted"])))
    if isinstance(expected, str):
        assert found == expected
    else:
        assert_same(found, expected, 1e-12)


@pytest.mark.parametrize("interpolation", ["linear", "constant-hazard"])
@pytest.mark.parametrize("device", DEVICES)
def test_equal_predictions_stay_equal_between_grid_times(interpolation, device):
    """Wherever they stand: a tie that the last digit breaks counts half of a pair more or less in the AUC."""
    drops = 10.0 ** -np.random.default_rng(5).uniform(0, 20, (500, 2)).cumsum(axis=1)
    reading = ss.SurvivalCurves(drops, [1.0, 3.0], interpolation=interpolation).interpolate(np.array([1.7]))
    for row in torch.tensor(drops, device=device):
        read = reading(row.expand(11, 2))
        assert (read == read[:1]).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("time_type", "event_type"), [("int64", "bool"), ("float32", "uint8"), ("float64", "float32"), ("float64", "bool")]
)
def test_outcomes_on_a_device(device, time_type, event_type):
    problem = random_problem(150, 8, lost=True)
    whole = problem.y
    rounded = ss.Outcomes(np.floor(whole.time), whole.event, np.ceil(whole.censoring_time))
    moved = rounded.to(device)
    made = ss.Outcomes(
        moved.time.to(getattr(torch, time_type)), moved.event.to(getattr(torch, event_type)), moved.censoring_time
    )
    assert made.device == (moved.device if device == "cuda" else None)
    for y in (made, moved):
        assert len(y) == 150
        assert repr(y) == repr(rounded)
        assert pickle.loads(pickle.dumps(y)).numpy().time.tolist() == rounded.time.tolist()
        assert y.n_dropped_out == rounded.n_dropped_out
        assert y[5:9].numpy().time.tolist() == rounded.time[5:9].tolist()
        assert y[[3, 1]].numpy().time.tolist() == rounded.time[[3, 1]].tolist()
        assert y[::-1].numpy().time.tolist() == rounded.time[::-1].tolist()
        assert y[y.event].numpy().time.tolist() == rounded[rounded.event].time.tolist()
        assert y.until(30).numpy().time.max() == 30
        assert len(ss.Outcomes.concatenate([y, y])) == 300
        curves = problem.curves.to(device)
        found, expected = (
            evaluated(one, {"net": two}, weighting=["administrative", "ipcw"])
            for one, two in ((y, curves), (rounded, problem.curves))
        )
        assert_same(found, expected, 1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": [1.0, np.nan]}, "time must be finite"),
        ({"time": [1.0, -1.0]}, "time must be zero or larger: 1 of 2 is not, the first at position 1"),
        ({"time": [[1.0, 1.0]]}, "time must be one-dimensional"),
        ({"time": [True, False]}, "time must hold numbers"),
        ({"event": [0, 0.5]}, "event must be 0 or 1"),
        ({"event": [0, 1, 1]}, "event has length 3, but time has length 2"),
        ({"censoring_time": [0.5, 9.0]}, "time must not exceed censoring_time: 1 of 2 do, the first at position 0"),
    ],
)
def test_outcomes_are_checked_where_they_are(device, change, message, monkeypatch):
    if device == "cpu":  # as if the processor were one
        monkeypatch.setattr(
            "survscore._utils.arrays.resident", lambda values: values if hasattr(values, "detach") else None
        )
    given = {"time": [1.0, 2.0], "event": [0, 1], "censoring_time": [9.0, 9.0], **change}
    with pytest.raises(ss.InputError, match=message):
        ss.Outcomes(**{name: torch.tensor(values, device=device) for name, values in given.items()})


@pytest.mark.parametrize("device", DEVICES)
def test_curves_on_a_device(device):
    problem = random_problem(50, 8)
    for interpolation in ("linear", "step", "constant-hazard"):
        for extrapolation in ("nan", "hold"):
            here = ss.SurvivalCurves(
                problem.curves.probabilities,
                problem.curves.times,
                interpolation=interpolation,
                extrapolation=extrapolation,
            )
            there = here.to(device)
            assert there.device.type == device
            times = [0, 1, 3.5, 50, 99, 100, 120]
            np.testing.assert_allclose(there.at(times).cpu(), here.at(times), rtol=1e-14)
            own = problem.y.time
            np.testing.assert_allclose(there.before(torch.tensor(own, device=device)).cpu(), here.before(own))
            assert there.numpy().probabilities.tolist() == here.probabilities.tolist()
            assert there[3:7].shape == (4, 8)
            assert there[[1, 2]].at([5]).shape == (2, 1)
            assert there[problem.y.event].shape[0] == problem.y.event.sum()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.5, np.nan]], "without NaN: 1 value is not, the first in row 0 at time 2"),
        ([[0.5, 1.5]], "between 0 and 1: 1 value is not, the first in row 0 at time 2"),
        ([[0.9, 0.5], [0.5, 0.6]], "not increase with time: 1 value does, the first in row 1 at time 2 .* after 0.5"),
        ([0.5, 0.5], "must have shape"),
        ([[0.5, 0.5, 0.4]], "has 3 columns, but times has length 2"),
    ],
)
def test_curves_are_checked_where_they_are(device, values, message):
    with ss.config.using(backend="torch"), pytest.raises(ss.InputError, match=message):
        ss.SurvivalCurves(torch.tensor(values, device=device), [1, 2])


def test_half_precision_may_rise_by_its_own_rounding():
    matrix = torch.tensor([[0.5, 0.501]], dtype=torch.float16)
    with ss.config.using(backend="torch"):
        ss.SurvivalCurves(matrix, [1, 2])
        with pytest.raises(ss.InputError, match="not increase"):
            ss.SurvivalCurves(matrix.float(), [1, 2])
        assert ss.SurvivalCurves(matrix.float(), [1, 2], monotone="enforce").numpy().probabilities.tolist() == [
            [0.5] * 2
        ]


def test_curves_in_different_places_are_refused():
    problem = random_problem(30, 5)
    with pytest.raises(ss.InputError, match="one place: 'a' in the processor's memory, 'b' on cpu; move them"):
        ss.compare(problem.y, {"a": problem.curves, "b": problem.curves.to("cpu")}, weighting="ipcw")
    for weighting in (ss.IPCW(problem.censoring.to("cpu")), ss.Administrative(population=problem.censoring.to("cpu"))):
        with pytest.raises(ss.InputError, match="curves must be where the predictions are, in the processor's memory"):
            ss.brier_score(problem.y, problem.curves, weighting=weighting)


def test_outcomes_follow_the_curves():
    problem = random_problem(60, 5)
    expected = ss.brier_score(problem.y, problem.curves, weighting="ipcw").scores
    for y in (problem.y, problem.y.to("cpu")):
        for curves in (problem.curves, problem.curves.to("cpu")):
            for weighting in ("ipcw", ss.IPCW(problem.y), ss.IPCW(problem.y.to("cpu"))):
                scores = ss.brier_score(y, curves, weighting=weighting).scores
                np.testing.assert_allclose(scores, expected, rtol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_batches_on_a_device(device):
    problem, m = random_problem(90, 6, lost=True), 6
    parts = [slice(0, 40), slice(40, 41), slice(41, 90)]
    batches = ss.CurveBatches(lambda: (problem.curves[part].to(device) for part in parts), 90)
    for weighting in ("administrative", "ipcw"):
        asked = {"weighting": weighting, "times": problem.times[:m], "metric": ["brier", "log"]}
        expected = evaluated(problem.y, {"net": problem.curves}, **asked)
        assert_same(evaluated(problem.y, {"net": batches}, **asked), expected, 1e-12)
    with ss.config.using(backend="torch"):
        of_arrays = ss.CurveBatches(lambda: (problem.curves[part] for part in parts), 90)
        assert_same(evaluated(problem.y, {"net": of_arrays}, **asked), expected, 1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_groups_on_a_device(device, monkeypatch):
    if device == "cpu":
        monkeypatch.setattr(
            "survscore._utils.arrays.resident", lambda values: values if hasattr(values, "detach") else None
        )
    problem = random_problem(120, 6)
    labels = np.arange(120) % 11
    asked = {"weighting": "administrative", "times": problem.times[:4]}
    expected = ss.brier_score(problem.y, problem.curves, groups=labels, **asked)
    curves = problem.curves.to(device)
    for groups in (torch.tensor(labels, device=device), labels, labels.astype(str)):
        np.testing.assert_allclose(ss.brier_score(problem.y, curves, groups=groups, **asked).se, expected.se)
    gone = torch.tensor(np.where(np.arange(120) == 2, np.nan, 1.0), device=device)
    with pytest.raises(ss.InputError, match="1 of 120 are missing, the first at position 2"):
        ss.brier_score(problem.y, curves, groups=gone, **asked)


class Own(ss.Loss):
    """A loss that the backend does not know; it takes arrays and tensors."""

    name = "own"

    def of_event_free(self, survival):
        return abs(1.0 - survival)

    def of_event(self, survival):
        return abs(survival)


class OwnPooled(ss.AUC):
    name = "own pooled"


@pytest.mark.parametrize("device", DEVICES)
def test_metrics_of_ones_own(device):
    problem = random_problem(80, 5)
    asked = {"metric": [Own(), OwnPooled()], "weighting": ["ipcw", "administrative"], "times": problem.times}
    found, expected = (
        evaluated(problem.y, {"net": one}, **asked) for one in (problem.curves.to(device), problem.curves)
    )
    assert_same(found, expected, 1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_calibration_copies_one_time_only(device):
    problem = random_problem(200, 6)
    here = ss.calibration(problem.y, problem.curves, 40, weighting="administrative")
    there = ss.calibration(problem.y.to(device), problem.curves.to(device), 40, weighting="administrative")
    assert str(there.summary()) == str(here.summary())


def test_what_needs_numpy_says_so():
    problem = random_problem(50, 5)
    y, curves = problem.y, problem.curves.to("cpu")
    for call in (
        lambda: ss.score_terms(y, curves, weighting="ipcw"),
        lambda: ss.diagnose(y, {"net": curves}),
        lambda: ss.report(y, {"net": curves}, weighting="administrative"),
        lambda: ss.counted_population(y, {"net": curves}),
    ):
        with pytest.raises(ss.InputError, match=r"works with NumPy arrays .* give .numpy\(\) of the curves of"):
            call()
    assert ss.at_horizon(y.to("cpu"), 40).rows.tolist() == ss.at_horizon(y, 40).rows.tolist()


def test_a_lack_of_memory_says_what_to_do(monkeypatch):
    problem = random_problem(50, 5)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 24.00 GiB. GPU 0 has ...")

    monkeypatch.setattr("survscore.engine.prepared.first_moments", full)
    with pytest.raises(ss.DeviceMemoryError, match=r"cpu has too little memory .* Free other .*CurveBatches"):
        ss.brier_score(problem.y, problem.curves.to("cpu"), weighting="ipcw")


def test_torch_is_loaded_only_if_it_is_asked_for():
    code = """
import sys, numpy as np, survscore as ss
y = ss.Outcomes(np.arange(1, 101), np.ones(100))
ss.brier_score(y, ss.SurvivalCurves(np.full((100, 5), 0.5), np.arange(5.0)), weighting="ipcw")
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_blocks_that_do_not_make_a_device_wait_give_the_same(monkeypatch):
    """How many exit in each block is found before the first one; here as if tensors were on a device."""
    problem = random_problem(400, 9)
    other = ss.SurvivalCurves(problem.curves.probabilities**1.5, problem.curves.times)
    models = {"one": problem.curves, "two": other}
    for weighting in (ss.IPCW(), ss.IPCW(strata=np.arange(400) % 3), ss.Projected()):
        asked = {"metric": "brier", "weighting": weighting, "times": problem.times}
        expected = evaluated(problem.y, models, **asked)
        with monkeypatch.context() as patched, ss.config.using(backend="torch"):
            patched.setattr(arrays, "on_device", arrays.is_tensor)
            patched.setattr("survscore.engine.blocks.DEVICE_CELLS", 64 * 9 * 3)
            assert_same(evaluated(problem.y, models, **asked), expected, 1e-12)


@on_gpu
def test_the_matrix_is_not_copied():
    n, m = 4_000_000, 100
    grid = np.arange(1.0, m + 1)
    rate = torch.rand((n, 1), device="cuda") / m
    curves = ss.SurvivalCurves(torch.exp(-rate * torch.tensor(grid, device="cuda").float()), grid)
    time = torch.rand(n, device="cuda", dtype=torch.float64) * m
    y = ss.Outcomes(time, torch.rand(n, device="cuda") < 0.5, time + 1)
    for metric in ("brier", "log"):
        ss.score_all(y, curves, metric=metric, weighting=["administrative", "ipcw"], times=grid[:-1])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    ss.score_all(y, curves, metric="brier", weighting=["administrative", "ipcw"], times=grid[:-1])
    # what blocks take, which is the same for more rows, and a few numbers for each individual; no copy in any type
    assert torch.cuda.max_memory_allocated() - before < n * m * 4


def test_devices_that_cannot_score_say_so():
    y = ss.Outcomes([1.0, 2.0], [True, False], [3.0, 2.0])
    elsewhere = ss.SurvivalCurves([[0.5], [0.6]], [1.0]).to("meta")
    with pytest.raises(ss.InputError, match="on CUDA devices or the processor, not on meta"):
        ss.brier_score(y, elsewhere, weighting="administrative", times=[1.0])
