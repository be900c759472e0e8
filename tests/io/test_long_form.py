"""Long form: whatever order its rows come in, the same matrix, and every cell once."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combinations import every_pair, examples
from survscore import InputError
from survscore.io import read_predictions

ORDERS = ("individuals", "individuals, late times first", "times", "times, late first", "random")
KINDS = ("whole numbers", "far apart", "negative", "text", "categories")


def labels(kind, n):
    numbers = np.random.default_rng(n).permutation(n)
    return {
        "whole numbers": numbers + 5,
        "far apart": numbers * 10**12,
        "negative": numbers - 3,
        "text": np.array([f"who {k:x}" for k in numbers]),
        "categories": np.array([f"who {k:x}" for k in numbers]),
    }[kind]


def ordered(order, n, m, rng):
    individuals, times = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    if order == "individuals, late times first":
        return individuals, times[::-1]
    if order.startswith("times"):
        individuals, times = np.tile(np.arange(n), m), np.repeat(np.arange(m), n)
        return individuals, times if order == "times" else times[::-1]
    if order == "random":
        shuffled = rng.permutation(n * m)
        return individuals[shuffled], times[shuffled]
    return individuals, times


def written(path, kind, ids, times, values):
    frame = pd.DataFrame({"id": ids, "time": times, "survival": values})
    if kind == "categories":
        frame["id"] = frame["id"].astype("category")
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(str(path), pa.Table.from_pandas(frame).schema) as sink:
            sink.write_table(pa.Table.from_pandas(frame), max_chunksize=5)
    else:
        pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=7)  # dictionaries of their own
    return path


@pytest.mark.parametrize("order", ORDERS)
@examples(8)
@given(
    kind=st.sampled_from(KINDS), ending=st.sampled_from([".parquet", ".csv", ".arrow"]),
    n=st.integers(1, 9), m=st.integers(1, 6), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_order_gives_the_same_matrix(tmp_path_factory, order, kind, ending, n, m, seed):
    rng = np.random.default_rng(seed)
    matrix = np.sort(rng.random((n, m)), axis=1)[:, ::-1]
    grid, ids = np.sort(rng.choice(50, m, replace=False)) / 4, labels(kind, n)
    individuals, times = ordered(order, n, m, rng)
    path = tmp_path_factory.mktemp("long") / f"net{ending}"
    predicted = read_predictions(
        written(path, kind, ids[individuals], grid[times], matrix[individuals, times]), long=True
    )
    curves = predicted.models["net"]
    assert curves.times.tolist() == grid.tolist()
    found = dict(zip(map(str, predicted.ids.to_pylist()), curves.probabilities.tolist(), strict=True))
    assert found == dict(zip(map(str, ids.tolist()), matrix.tolist(), strict=True))
    assert [str(one) for one in predicted.ids.to_pylist()] == list(dict.fromkeys(map(str, ids[individuals].tolist())))


@every_pair(order=ORDERS, kind=KINDS, change=["left out", "twice", "instead of another"])
def test_every_cell_has_one_row(tmp_path, order, kind, change):
    n, m = 7, 3
    individuals, times = ordered(order, n, m, np.random.default_rng(1))
    who, when = labels(kind, n)[individuals].tolist(), (10.0 * (times + 1)).tolist()
    at = next(k for k in range(n * m) if individuals[k] == 4 and times[k] == 1)
    if change == "left out":
        del who[at], when[at]
    elif change == "twice":
        who.append(who[at])
        when.append(when[at])
    else:
        other = next(k for k in range(n * m) if individuals[k] == 5 and times[k] == 1)
        who[other] = who[at]
    path = written(tmp_path / "net.parquet", kind, who, when, [0.5] * len(who))
    expected = {"left out": r"1 of 21 .*\(no row\)", "twice": r"1 of 21 .*\(2 rows\)", "instead of another": "2 of 21"}
    with pytest.raises(InputError, match=f"one row for each of 7 ids and 3 times: {expected[change]}"):
        read_predictions(path)


@pytest.mark.parametrize("when", [[1.0, np.nan], [np.nan, np.nan], [-1.0, 1.0]])
def test_times_that_are_none(tmp_path, when):
    path = written(tmp_path / "net.parquet", "", [1, 1, 2, 2], when * 2, [0.5] * 4)
    with pytest.raises(InputError, match="column 'time'"):
        read_predictions(path)


def test_minus_zero_is_zero(tmp_path):
    path = written(tmp_path / "net.parquet", "", [2, 1, 1, 2], [0.0, 4.0, -0.0, 4.0], [1.0, 0.5, 1.0, 0.25])
    assert read_predictions(path).models["net"].probabilities.tolist() == [[1.0, 0.25], [1.0, 0.5]]


def test_far_more_cells_than_rows_are_not_counted(tmp_path):
    n = 3000  # 9 million pairs, 3 001 rows
    path = written(tmp_path / "net.parquet", "", [*range(n), 0], [*range(n), 1.0], [0.5] * (n + 1))
    with pytest.raises(InputError, match=f"{n * n - n - 1} of {n * n} pairs have not, the first 0 at time 2"):
        read_predictions(path)


def test_a_dictionary_with_a_word_twice(tmp_path):
    words = pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 1]), pa.array(["a", "b", "a"]))
    path = tmp_path / "net.arrow"
    table = pa.table({"id": words, "time": [1.0, 2.0, 1.0, 2.0], "survival": [0.9, 0.8, 0.7, 0.6]})
    with pa.ipc.new_file(str(path), table.schema) as sink:
        sink.write_table(table)
    predicted = read_predictions(path)
    assert predicted.ids.to_pylist() == ["a", "b"]
    assert predicted.models["net"].probabilities.tolist() == [[0.9, 0.8], [0.7, 0.6]]
