"""Sums in whole numbers: exact, and the same in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import survscore as ss
from survscore.scale.exact import BITS, MAGIC, MAGIC_BITS, Exact, rounded
from survscore.scale.packing import pack, unpack

INTEGERS = st.integers(-(2**62), 2**62)


@given(st.lists(st.lists(INTEGERS, min_size=3, max_size=3), min_size=1, max_size=20), st.integers(0, 19))
def test_sums_are_those_of_whole_numbers(rows, cut):
    whole, left, right = Exact.zeros(3), Exact.zeros(3), Exact.zeros(3)
    for i, row in enumerate(rows):
        whole.add(np.array(row, dtype=np.int64))
        (left if i < cut else right).add(np.array(row, dtype=np.int64))
    whole.carry()
    merged = right + left
    for k in range(3):
        exact = sum(row[k] for row in rows)
        assert int(whole.high[k]) * 2**32 + int(whole.low[k]) == exact
        assert (int(merged.high[k]), int(merged.low[k])) == (int(whole.high[k]), int(whole.low[k]))
        assert whole.value()[k] == pytest.approx(exact / 2**BITS, rel=1e-15, abs=1e-300)


@given(st.floats(0, 1.5))
def test_adding_the_magic_number_rounds(value):
    by_bits = int(np.float64(value + MAGIC).view(np.int64)) - MAGIC_BITS
    assert by_bits == int(rounded(np.array([value]))[0])
    assert abs(by_bits / 2**BITS - value) <= 2.0 ** -(BITS + 1)


def test_sums_over_an_axis():
    rng = np.random.default_rng(0)
    one = Exact(rng.integers(-(2**40), 2**40, (4, 5)), rng.integers(0, 2**40, (4, 5)))
    expected = [[int(h) * 2**32 + int(low) for h, low in zip(*rows, strict=True)]
                for rows in zip(one.high, one.low, strict=True)]  # fmt: skip
    total = one.summed(0)
    for k in range(5):
        assert int(total.high[k]) * 2**32 + int(total.low[k]) == sum(row[k] for row in expected)


def test_what_is_packed_comes_back_and_what_is_damaged_does_not():
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.array([0.5, np.nan]), "none": np.zeros((0, 4))}
    stored = pack("thing", {"x": 1}, arrays)
    header, found = unpack("thing", stored)
    assert header == {"x": 1}
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)
    assert pack("thing", {"x": 1}, found) == stored
    with pytest.raises(ss.InputError, match="not a state"):
        unpack("state", stored)
    for place in (20, 60, len(stored) - 1):
        broken = bytearray(stored)
        broken[place] ^= 1
        with pytest.raises(ss.InputError, match=r"damaged|not a thing"):
            unpack("thing", bytes(broken))
    with pytest.raises(ss.InputError):
        unpack("thing", stored[:-5])
