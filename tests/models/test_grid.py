"""Time grids and labels, against a literal reading of the rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import survscore as ss
from survscore.models.grid import counted_labels, hazard_labels, learnt_grid, survival_labels, time_grid

EVENTS = np.array([True, False, True, True])
TIMES = np.array([1.0, 4.0, 2.0, 8.0])
follow_up = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=8)
grids = st.lists(st.integers(1, 12), min_size=1, max_size=6, unique=True).map(sorted)


def unpack(rows, grid):
    time, event = zip(*rows, strict=True)
    return np.array(time, dtype=float), np.array(event), np.array(grid, dtype=float)


@pytest.mark.parametrize("of_censoring", [False, True])
@given(follow_up, grids)
def test_hazard_labels_read_interval_by_interval(of_censoring, rows, grid):
    time, event, grid = unpack(rows, grid)
    labels = hazard_labels(time, ~event if of_censoring else event, grid, events_first=not of_censoring)
    for i, j in np.ndindex(labels.shape):
        left, right = (grid[j - 1] if j else -1.0), grid[j]
        if event[i] != of_censoring:
            expected = 1 if left < time[i] <= right else -1 if time[i] > right else 0
        elif of_censoring:  # censoring comes at the time of the event, or later
            expected = -1 if time[i] > right else 0
        else:  # the event of a censored individual comes after its time, so it survived what ended by then
            expected = -1 if time[i] >= right else 0
        assert labels[i, j] == expected


@given(follow_up, grids)
def test_survival_labels_read_time_by_time(rows, grid):
    time, event, grid = unpack(rows, grid)
    labels = survival_labels(time, event, grid)
    for i, j in np.ndindex(labels.shape):
        assert labels[i, j] == (1 if time[i] > grid[j] else -1 if event[i] else 0)


def test_counted_labels_are_of_those_who_could_be_seen():
    grid, time = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 1.5, 3.0, 2.5])
    labels = hazard_labels(time, np.array([True, True, False, True]), grid)
    counted = counted_labels(labels, np.array([3.5, 1.5, 3.0, 2.7]), grid)
    np.testing.assert_array_equal(counted, [[1, 0, 0, 0], [-1, 0, 0, 0], [-1, -1, -1, 0], [-1, -1, 0, 0]])


def test_those_seen_to_survive_half_an_interval_are_survivors_where_that_is_wanted():
    grid, time = np.array([2.0, 4.0]), np.array([0.9, 1.0, 2.9, 3.0, 3.5, 3.5, 4.0])
    event = np.array([False, False, False, False, False, True, False])
    whole, half = (hazard_labels(time, event, grid, whole=one) for one in (True, False))
    np.testing.assert_array_equal(whole, [[0, 0], [0, 0], [-1, 0], [-1, 0], [-1, 0], [-1, 1], [-1, -1]])
    np.testing.assert_array_equal(half, [[0, 0], [-1, 0], [-1, 0], [-1, -1], [-1, -1], [-1, 1], [-1, -1]])


def test_the_last_time_is_learnt_where_enough_are_followed():
    grid, rng = np.array([4.0, 8.0]), np.random.default_rng(0)
    many = np.append(rng.uniform(0, 7.8, 500), [7.9, 8.0])
    learnt = learnt_grid(grid, many, administrative=True)
    assert learnt[0] == 4.0
    assert np.count_nonzero(many >= learnt[1]) == 20
    np.testing.assert_array_equal(learnt_grid(grid, rng.uniform(0, 6, 500), administrative=True), [4.0, 6.0])
    np.testing.assert_array_equal(learnt_grid(grid, np.full(30, 9.0), administrative=True), grid)
    np.testing.assert_array_equal(learnt_grid(grid, many, administrative=False), grid)
    np.testing.assert_array_equal(learnt_grid(grid, many[:-2], administrative=False), [4.0, many[:-2].max()])


def make(times=None, n_times=4, spacing="equidistant", time=TIMES, event=EVENTS):
    return time_grid(time, event, times=times, n_times=n_times, spacing=spacing)


def test_grids_that_are_given_and_equidistant_ones():
    np.testing.assert_array_equal(make(), [2.0, 4.0, 6.0, 8.0])
    np.testing.assert_array_equal(make(times=[0, 4, 9]), [4.0, 9.0])  # a round number after the follow-up will do


def test_quantiles_fall_by_equal_steps():
    rng = np.random.default_rng(0)
    time = rng.exponential(1.0, 20_000)
    grid = time_grid(time, np.ones(time.size, dtype=bool), times=None, n_times=10, spacing="quantiles")
    assert grid.size == 10
    np.testing.assert_allclose(np.exp(-grid[:9]), np.arange(9, 0, -1) / 10, atol=0.02)
    assert grid[-1] == time.max()


def test_quantiles_of_few_distinct_times_are_fewer():
    np.testing.assert_array_equal(make(n_times=50, spacing="quantiles"), [1.0, 2.0, 8.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"times": [3, 8, 12]}, r"within the follow-up, which ends at 8: .*: 1 of 3 is not, the first at"),
        ({"times": [0]}, "a time after 0"),
        ({"times": [3, 2]}, "strictly increasing"),
        ({"n_times": 2.5}, "n_times must be a whole number"),
        ({"spacing": "log"}, "spacing must be one of"),
        ({"time": np.zeros(4)}, "all times are 0"),
    ],
)
def test_bad_grids_are_refused(settings, message):
    with pytest.raises(ss.InputError, match=message):
        make(**settings)
