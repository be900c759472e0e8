import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sksurv.functions import StepFunction

import oracle
import survscore as ss
from combinations import examples
from registry import HALVES, curves_of

ROWS = [[0.9, 0.5], [0.8, 0.0]]


@examples(60)
@given(curves=curves_of(3), times=st.sets(HALVES, min_size=1), each=st.lists(HALVES, min_size=3, max_size=3))
def test_reading_agrees_with_the_literal_one(curves, times, each):
    times = sorted(times)
    how = (curves.interpolation, curves.extrapolation)
    expected = [[oracle.survival_at(curves.times, row, t, *how) for t in times] for row in curves.probabilities]
    np.testing.assert_allclose(curves.at(times), expected, rtol=1e-14, atol=1e-15)
    expected = [
        oracle.survival_before(curves.times, row, t, *how) for row, t in zip(curves.probabilities, each, strict=True)
    ]
    np.testing.assert_allclose(curves.before(np.array(each)), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_not_copied(dtype):
    matrix = np.array(ROWS, dtype=dtype)
    curves = ss.SurvivalCurves(matrix, [1, 2])
    assert curves.probabilities.dtype == dtype
    assert np.shares_memory(curves.probabilities, matrix)
    assert np.shares_memory(curves[:1].probabilities, matrix)
    assert np.shares_memory(curves.at([1, 2]), matrix)
    assert matrix.flags.writeable
    assert not curves.probabilities.flags.writeable


def test_torch_tensors_share_their_memory():
    tensor = torch.tensor(ROWS, requires_grad=True)
    curves = ss.SurvivalCurves(tensor, torch.tensor([1.0, 2.0]))
    assert curves.probabilities.dtype == np.float32
    assert curves.probabilities.ctypes.data == tensor.data_ptr()
    assert ss.SurvivalCurves(tensor.to(torch.bfloat16), [1, 2]).probabilities.dtype == np.float32
    assert ss.SurvivalCurves(tensor.half(), [1, 2]).probabilities.dtype == np.float32


def test_other_layouts_become_contiguous_rows():
    turned = np.asfortranarray(ROWS)
    assert ss.SurvivalCurves(turned, [1, 2]).probabilities.flags.c_contiguous
    assert ss.SurvivalCurves([[1, 0]], [1, 2]).probabilities.dtype == np.float64
    assert ss.SurvivalCurves(np.array(ROWS, dtype=">f8"), [1, 2]).probabilities.dtype.isnative


FROM_EVENT = ss.SurvivalCurves.from_event_probabilities


@pytest.mark.parametrize(
    ("make", "rows", "times", "message"),
    [
        (
            ss.SurvivalCurves,
            [[0.9, np.nan], [0.5, 0.4]],
            [1, 2],
            r"1 value is not, the first in row 0 at time 2 \(nan\)",
        ),
        (ss.SurvivalCurves, [[90.0, 80.0], [50.0, 40.0]], [1, 2], r"1: 4 .* at time 1 \(90.0\); are these percentages"),
        (ss.SurvivalCurves, [[-0.5, 1.5], [2.0, -1.0]], [1, 2], "1: 4 .*; risk scores are no probabilities: the page"),
        (ss.SurvivalCurves, [[1 + 1e-7, 0.8]], [1, 2], "a rounding error: clip the predictions"),
        (
            ss.SurvivalCurves,
            [[0.9, 0.8], [0.5, 0.6]],
            [1, 2],
            r"increase with time: 1 .* row 1 at time 2 \(0.6 after 0.5",
        ),
        (ss.SurvivalCurves, [[0.1, 0.2], [0.4, 0.39]], [1, 2], "rise on average, .*: `from_event_probabilities` takes"),
        (ss.SurvivalCurves, [[0.9], [0.8]], [1, 2], "it looks transposed"),
        (ss.SurvivalCurves, ROWS, [2, 1], "increasing: 1 of 1 steps are not, the first from 2.0 to 1.0 at position 1"),
        (ss.SurvivalCurves, ROWS, [1, np.inf], "finite"),
        (FROM_EVENT, [[0.1, 0.3], [0.6, 0.5]], [1, 2], r"decrease with time: 1 .* row 1 at time 2 \(0.5 after 0.6\)"),
        (
            FROM_EVENT,
            [[0.9, 0.8], [0.6, 0.65]],
            [1, 2],
            "they fall on average, as survival does: `SurvivalCurves` takes",
        ),
    ],
)
def test_bad_probabilities_and_times_are_named(make, rows, times, message):
    with pytest.raises(ss.InputError, match=message):
        make(rows, times)


def test_probabilities_of_the_event_are_one_minus_survival():
    p = np.array([[0.125, 0.5], [0.25, 0.25]])
    curves = ss.SurvivalCurves.from_event_probabilities(p, [1, 2], interpolation="step", extrapolation="hold")
    assert np.array_equal(curves.probabilities, 1 - p)
    assert (curves.interpolation, curves.extrapolation) == ("step", "hold")
    falling = [[0.5, 0.25, 0.75]]
    kept = ss.SurvivalCurves.from_event_probabilities(falling, [1, 2, 3], monotone="keep")
    assert kept.probabilities.tolist() == [[0.5, 0.75, 0.25]]
    enforced = ss.SurvivalCurves.from_event_probabilities(falling, [1, 2, 3], monotone="enforce")
    assert enforced.probabilities.tolist() == [[0.5, 0.5, 0.25]]


def test_a_small_probability_of_the_event_survives_float32():
    small = np.array([[1e-9, 2e-9]], dtype=np.float32)
    survival = ss.SurvivalCurves.from_event_probabilities(small, [1, 2]).probabilities
    np.testing.assert_allclose(1 - survival, small, rtol=1e-6)


def test_monotone():
    rising = [[0.5, 0.6, 0.4, 0.5]]
    kept = ss.SurvivalCurves(rising, [1, 2, 3, 4], monotone="keep")
    assert kept.probabilities.tolist() == rising
    enforced = ss.SurvivalCurves(rising, [1, 2, 3, 4], monotone="enforce")
    assert enforced.probabilities.tolist() == [[0.5, 0.5, 0.4, 0.4]]
    for monotone in ("keep", "enforce"):
        with pytest.raises(ss.InputError, match="NaN"):
            ss.SurvivalCurves([[0.5, np.nan]], [1, 2], monotone=monotone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_count_as_rising(dtype):
    above = np.nextafter(dtype(0.5), dtype(1))
    ss.SurvivalCurves(np.array([[0.5, above]], dtype=dtype), [1, 2])
    with pytest.raises(ss.InputError, match="must not increase"):
        ss.SurvivalCurves(np.array([[0.5, dtype(0.5) + 10 * np.finfo(dtype).eps]], dtype=dtype), [1, 2])


def test_picking_individuals():
    curves = ss.SurvivalCurves(ROWS, [1, 2], interpolation="step", extrapolation="hold")
    for key in (1, -1, [1], np.array([False, True]), slice(1, 2)):
        picked = curves[key]
        assert picked.probabilities.tolist() == [ROWS[1]]
        assert (picked.interpolation, picked.extrapolation) == ("step", "hold")
    assert curves[[]].shape == (0, 2)
    with pytest.raises(IndexError):
        curves[2]


# From other packages


def test_from_a_frame_of_times_by_individuals():
    frame = pd.DataFrame(np.array(ROWS, dtype=np.float32).T, index=[1.0, 2.0])
    curves = ss.SurvivalCurves.from_frame(frame)
    np.testing.assert_array_equal(curves.probabilities, np.array(ROWS, dtype=np.float32))
    assert np.shares_memory(curves.probabilities, frame.to_numpy())  # as pycox makes it, no copy is needed
    with pytest.raises(ss.InputError, match="index of frame must be strictly increasing"):
        ss.SurvivalCurves.from_frame(frame[::-1])
    with pytest.raises(ss.InputError, match="pandas data frame"):
        ss.SurvivalCurves.from_frame(np.array(ROWS))


def test_from_step_functions_of_scikit_survival():
    functions = [
        StepFunction(np.array([1.0, 3.0]), np.array([0.9, 0.5])),
        StepFunction(np.array([2.0]), np.array([0.8])),
    ]
    curves = ss.SurvivalCurves.from_step_functions(functions)
    assert curves.times.tolist() == [1, 2]  # the second says nothing after 2
    # S(0) = 1 before the first jump, where scikit-survival's function already has its first value
    assert curves.at([0.5, 1, 1.5, 2]).tolist() == [[1.0, 0.9, 0.9, 0.9], [1.0, 1.0, 1.0, 0.8]]
    held = ss.SurvivalCurves.from_step_functions(functions, extrapolation="hold")
    assert held.probabilities.tolist() == [[0.9, 0.9, 0.5], [1.0, 0.8, 0.8]]


@pytest.mark.parametrize("interpolation", ["linear", "step", "constant-hazard"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_reading_agrees_with_numpy(interpolation, dtype):
    rng = np.random.default_rng(0)
    grid = np.sort(rng.uniform(1, 100, 20))
    curves = ss.SurvivalCurves(
        np.cumprod(rng.random((300, 20)) ** 0.1, axis=1).astype(dtype), grid, interpolation=interpolation
    )
    y = ss.Outcomes(rng.uniform(1, 100, 300), np.ones(300))
    for times in (np.linspace(0, grid[-1], 77), grid[3:9], grid[[2, 7]]):
        found = []
        for backend in ("numpy", "compiled"):
            with ss.config.using(backend=backend):
                found.append(ss.brier_score(y, curves.only_at(times), times=times).scores)
                found.append(ss.brier_score(y, curves, times=times).scores)
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-6 if dtype == np.float32 else 1e-12)


# Several into one


@pytest.mark.parametrize("interpolation", ["linear", "step", "constant-hazard"])
@pytest.mark.parametrize("extrapolation", ["nan", "hold"])
def test_concatenated_curves_read_as_before(interpolation, extrapolation):
    rng = np.random.default_rng(0)
    parts = []
    for n, m in ((3, 5), (1, 1), (4, 8)):
        grid = np.unique(rng.uniform(0, 10, m))
        survival = np.sort(rng.uniform(size=(n, grid.size)))[:, ::-1]
        parts.append(ss.SurvivalCurves(survival, grid, interpolation=interpolation, extrapolation=extrapolation))
    joined = ss.SurvivalCurves.concatenate(parts)
    assert (len(joined), joined.interpolation, joined.extrapolation) == (8, interpolation, extrapolation)
    wanted = np.linspace(0, 12, 60)
    expected = np.concatenate([part.at(wanted) for part in parts])
    end = min(part.times[-1] for part in parts)
    if extrapolation == "nan":  # what ends one of them ends all
        expected[:, wanted > end] = np.nan
        assert joined.times[-1] == end
    np.testing.assert_allclose(joined.at(wanted), expected, rtol=1e-12)
    reduced = ss.SurvivalCurves.concatenate(parts, times=[end / 2, end])
    np.testing.assert_allclose(reduced.probabilities, joined.at([end / 2, end]), rtol=1e-12)


def test_concatenating_keeps_what_is_the_same():
    single = ss.SurvivalCurves(np.array(ROWS, dtype=np.float32), [1, 2], interpolation="step")
    joined = ss.SurvivalCurves.concatenate(iter([single, single[:1]]))
    assert joined.probabilities.dtype == np.float32
    np.testing.assert_array_equal(joined.probabilities, np.array([*ROWS, ROWS[0]], dtype=np.float32))
    held = ss.SurvivalCurves(ROWS, [1, 2], interpolation="step", extrapolation="hold")
    longer = ss.SurvivalCurves([[0.5]], [3], interpolation="step")
    mixed = ss.SurvivalCurves.concatenate([held, longer])  # one that holds reaches wherever the other ends
    assert (mixed.times.tolist(), mixed.extrapolation) == ([1, 2, 3], "nan")
    assert mixed.probabilities[:, -1].tolist() == [0.5, 0.0, 0.5]


def test_curves_that_do_not_fit_together_are_named():
    linear = ss.SurvivalCurves(ROWS, [1, 2])
    with pytest.raises(ss.InputError, match="some say interpolation='linear', others 'step'"):
        ss.SurvivalCurves.concatenate([linear, ss.SurvivalCurves(ROWS, [1, 2], interpolation="step")])
    with pytest.raises(ss.InputError, match="they end at 3, and part 1 at 2"):
        ss.SurvivalCurves.concatenate([ss.SurvivalCurves(ROWS, [1, 4]), linear], times=[1, 3])


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("extrapolation", ["nan", "hold"])
@pytest.mark.parametrize("interpolation", ["linear", "step", "constant-hazard"])
def test_predictions_after_own_landmarks_are_those_at_own_times(interpolation, extrapolation, backend):
    """Read in blocks, or by compiled code: at grid points, between them, and after the last; also from time 0 on."""
    rng = np.random.default_rng(0)
    for first in (0.0, 0.5):
        for dtype in (np.float32, np.float64):
            grid = first + np.arange(12) / 2
            values = -np.sort(-rng.random((300, 12)), axis=1).astype(dtype)
            curves = ss.SurvivalCurves(values, grid, interpolation=interpolation, extrapolation=extrapolation)
            own, steps = rng.integers(0, 6, 300) / 2, np.array([0.0, 0.25, 0.5, 1.0, 1.7, 2.5])
            with ss.config.using(backend=backend):
                found = curves.conditional_on(own, times=steps)
            expected = np.stack([curves.at_own(own + step) for step in steps], 1) / curves.at_own(own)[:, None]
            np.testing.assert_allclose(found.probabilities, expected, rtol=1e-14)
