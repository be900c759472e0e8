"""Triton's kernels of what estimating G adds to means over time: sums over its exits, and over those who left.

Imported only where Triton is installed. The functions that start these kernels are in `tensor_exits`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from survscore._utils.tensor_kernels import greenwood_step


@triton.jit
def after(sums, at, later, inside, OWN: tl.constexpr):
    """Return the sums over all who come after exits: of their own individuals running sums, from the latest time on."""
    if OWN:
        return tl.load(sums + (later - 1), mask=inside & (later > 0), other=0.0)
    else:
        return tl.load(sums + at, mask=inside, other=0.0)


@triton.jit
def times_before(at, reached, n_times):
    """Return how many evaluation times come before exits, from how many exits come until each of them; by halving."""
    low = tl.zeros_like(at)
    high = low + n_times
    size = n_times
    while size > 0:
        middle = (low + high) // 2
        passed = (middle < high) & (at >= tl.load(reached + tl.minimum(middle, n_times - 1)))
        low = tl.where(passed, middle + 1, low)
        high = tl.where(passed, high, middle)
        size //= 2
    return low


@triton.jit
def add_three(out, place, of_a, of_b, of_both, TWO: tl.constexpr):
    """Store what a program added up for two models and their difference, or for one model; (programs, 3)."""
    tl.store(out + place, tl.sum(of_a, axis=0))
    if TWO:
        tl.store(out + place + 1, tl.sum(of_b, axis=0))
        tl.store(out + place + 2, tl.sum(of_both, axis=0))


@triton.jit
def move_exits(
    exits, at_risk, late_a, late_b, early_a, early_b, reached, n_times, n_exits, moved_a, moved_b, out,
    OWN: tl.constexpr, ONE: tl.constexpr, TWO: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Store M(s) of the exits, and add up step(s) M(s)^2: of second stretches by individual, of first ones by time.

    `early` has sums over the evaluation times from each on, and 0 after the last.
    """
    program = tl.program_id(0)
    at = program * SIZE + tl.arange(0, SIZE)
    inside = at < n_exits
    step, later = greenwood_step(exits, at_risk, at, inside, ONE)
    time = times_before(at, reached, n_times)
    a = after(late_a, at, later, inside, OWN) + tl.load(early_a + time)
    tl.store(moved_a + at, a, mask=inside)
    b = a
    if TWO:
        b = after(late_b, at, later, inside, OWN) + tl.load(early_b + time)
        tl.store(moved_b + at, b, mask=inside)
    add_three(out, program * 3, step * a * a, step * b * b, step * (a - b) * (a - b), TWO)


@triton.jit
def cross_exits(
    exits, at_risk, whole_a, whole_b, moved_a, moved_b, n_exits, out,
    ONE: tl.constexpr, TWO: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Add up step(s) M(s) times the sum of all who come after s, of which `whole` has the running sums."""
    program = tl.program_id(0)
    at = program * SIZE + tl.arange(0, SIZE)
    inside = at < n_exits
    step, later = greenwood_step(exits, at_risk, at, inside, ONE)
    a, moved = after(whole_a, at, later, inside, True), tl.load(moved_a + at, mask=inside, other=0.0)
    b, other = a, moved
    if TWO:
        b, other = after(whole_b, at, later, inside, True), tl.load(moved_b + at, mask=inside, other=0.0)
    add_three(out, program * 3, step * a * moved, step * b * other, step * (a - b) * (moved - other), TWO)


@triton.jit
def own_exits(
    stayed, positions, exits_before, at_risk, whole_a, whole_b, moved_a, moved_b, n, out,
    TWO: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Add up over those who left their own value times M at their exit, by who was at risk.

    All is in the order of time but `stayed`, who are at `positions` there.
    """
    program = tl.program_id(0)
    at = program.to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    inside &= tl.load(stayed + tl.load(positions + at, mask=inside, other=0), mask=inside, other=1) == 0
    place = tl.load(exits_before + at, mask=inside, other=0)
    share = 1.0 / tl.load(at_risk + place, mask=inside, other=1).to(tl.float64)
    a = tl.load(whole_a + at, mask=inside, other=0.0) * share
    moved = tl.load(moved_a + place, mask=inside, other=0.0)
    b, other = a, moved
    if TWO:
        b = tl.load(whole_b + at, mask=inside, other=0.0) * share
        other = tl.load(moved_b + place, mask=inside, other=0.0)
    add_three(out, program * 3, a * moved, b * other, (a - b) * (moved - other), TWO)
