"""Work that is shared out among threads: it does not wait where it need not, and is given up together."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import survscore as ss
from combinations import every_pair
from survscore._utils import arrays, parallel
from survscore._utils.parallel import cached_property, each
from survscore.censoring.product_limit import ProductLimit

pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2), raising=False)


def test_work_within_work_does_not_wait_for_ever():
    """Threads that all wait for others of the same pool would."""

    def work(depth):
        return 1 if depth == 0 else sum(each(work, [depth - 1] * 4, threads=True))

    assert each(work, [4] * 4, threads=True) == [256] * 4


def until_it_is_given_up():
    """Wait, in a part, until another has failed; a minute at most."""
    deadline = time.monotonic() + 60
    while not parallel._here.turns.ended and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("of_worker", [True, False])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_nobody_begins_with_another_part(of_worker, error):
    main, begun, both = threading.get_ident(), [], threading.Barrier(2)

    def work(part):
        begun.append(part)
        if part < 2:
            both.wait(10)
        if (threading.get_ident() == main) != of_worker:
            raise error(part)
        until_it_is_given_up()

    with pytest.raises(error):
        each(work, range(20), threads=True)
    assert sorted(begun) == [0, 1]


def test_what_a_part_has_shared_out_outlives_the_other_parts():
    def work(part):
        return sum(each(lambda k: time.sleep(0.001) or k, range(50), threads=True)) if part else 0

    assert each(work, range(2), threads=True) == [0, 1225]


def test_cached_properties_of_different_instances_do_not_wait_for_each_other():
    both = threading.Barrier(2)

    class Slow:
        @cached_property
        def value(self):
            """Made once."""
            both.wait(10)
            return object()

    instances = [Slow(), Slow()]
    first = each(lambda one: one.value, instances, threads=True)
    assert [one.value for one in instances] == first
    assert Slow.value.__doc__ == "Made once."


def test_numba_imports_nothing_while_threads_compile():
    """Both change how warnings are shown, for a moment: at once, they could leave them with nobody to show them."""
    script = """
import sys, threading, warnings
from pathlib import Path
from survscore._utils import kernels as _kernels

entered = []
class Watched(warnings.catch_warnings):
    def __enter__(self):
        entered.append(sys._getframe(1).f_code.co_filename)
        return super().__enter__()
warnings.catch_warnings = Watched

@_kernels.compiled
def twice(x):
    return 2.0 * x

thread = threading.Thread(target=twice, args=(1.0,))
thread.start()
thread.join()
print({Path(name).parts[-3:] for name in entered})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "{('numba', 'core', 'errors.py')}\n"


@every_pair(
    threads=[1, 2],
    n=[100, 10_000, 200_000],
    kind=["even", "tied", "uneven", "one far away", "all equal", "single precision"],
)
def test_positions_are_in_order_and_those_of_equal_values_as_they_come(kind, n, threads):
    rng = np.random.default_rng(1)
    values = {
        "even": rng.random(n),
        "tied": rng.integers(0, 30, n) / 7.0,
        "uneven": rng.exponential(size=n) ** 6,
        "one far away": np.append(rng.random(n - 1), 1e12),
        "all equal": np.full(n, 2.5),
        "single precision": rng.random(n).astype(np.float32),
    }[kind]
    with ss.config.using(threads=threads):
        np.testing.assert_array_equal(parallel.argsort(values), np.argsort(values, kind="stable"))


def test_a_product_limit_in_slices_is_that_of_all_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    own, leaves = rng.integers(0, 30, 500).astype(float), rng.random(500) < 0.6
    codes = rng.integers(0, 3, 500).astype(np.int32)
    order = np.lexsort((leaves, own))  # ties, which ends of slices fall into

    def fitted():
        several = [ProductLimit.in_order(own[order], leaves[order], *strata) for strata in ((), (codes[order], 3))]
        return [value for curve, passed in several for value in (curve.times, curve.exits, curve.at_risk, passed)], [
            curve.survival for curve, _ in several
        ]

    whole, survival = fitted()
    monkeypatch.setattr(parallel, "LONG_VECTOR", 16)
    with ss.config.using(threads=3):
        parts, of_parts = fitted()
    for found, expected in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(of_parts, survival, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_vectors_in_slices_are_those_of_all_at_once(monkeypatch):
    rng = np.random.default_rng(6)
    values, flags, order = rng.random(300), rng.random(300) < 0.5, rng.permutation(300)
    monkeypatch.setattr(parallel, "LONG_VECTOR", 16)
    with ss.config.using(threads=3):
        np.testing.assert_array_equal(arrays.where(flags, values, 0.0), np.where(flags, values, 0.0))
        np.testing.assert_array_equal(arrays.where(flags, np.int32(1), order), np.where(flags, np.int32(1), order))
        np.testing.assert_array_equal(arrays.put(values, order)[order], values)
        np.testing.assert_array_equal(arrays.concatenate([values, values[:7], flags]), [*values, *values[:7], *flags])
