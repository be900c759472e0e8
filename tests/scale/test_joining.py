"""Outcomes joined by id: everybody once, or a line that says who is not."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb")

from survscore._validation import InputError
from survscore.scale import joining
from survscore.scale.files import BadFileError
from survscore.scale.joining import joined
from survscore.scale.sources import open_source

N = 5000


@pytest.fixture(params=["text", "number"])
def ids(request):
    return pa.array([f"i{k:05d}" for k in range(N)] if request.param == "text" else range(N))


@pytest.fixture
def predictions(ids):
    n = len(ids)
    curve = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2.0 * n)), 2)
    return pa.table({"id": ids, "30": np.arange(n, dtype=np.float32), "curve": curve})


@pytest.fixture
def outcomes(ids):
    order = np.random.default_rng(1).permutation(len(ids))
    table = pa.table({"id": ids, "duration": np.arange(len(ids)) / 2, "event": np.arange(len(ids)) % 2 == 0})
    return table.take(order)


def read(source, columns, **options):
    return pa.Table.from_batches(list(source.batches(columns, **options)))


def test_everybody_gets_their_outcome(predictions, outcomes):
    source = joined(open_source(predictions), outcomes, id="id")
    assert source.schema().names == ["id", "30", "curve", "duration", "event"]
    for _ in range(2):  # it can be read again
        table = read(source, ["event", "30", "duration", "curve"], rows=1000)
        row = table["30"].to_numpy()
        assert sorted(row) == list(range(N))
        np.testing.assert_array_equal(table["duration"].to_numpy(), row / 2)
        np.testing.assert_array_equal(table["event"].to_numpy(zero_copy_only=False), row % 2 == 0)
        assert table["curve"][0].as_py() == [2 * row[0], 2 * row[0] + 1]
        assert table["30"].type == pa.float32()


def test_ids_in_one_table_alone_or_twice(predictions, outcomes, ids):
    def refused(message, predictions=predictions, outcomes=outcomes):
        with pytest.raises(InputError, match=message):
            read(joined(open_source(predictions), outcomes, id="id"), ["30", "duration"])

    refused(f"^outcomes \\(outcomes\\): 3 ids without prediction, the first '{ids[0]}'; leave", predictions.slice(3))
    some = outcomes.filter(pa.compute.greater(outcomes["id"], ids[6]))
    missing = f"^predictions .*: 7 of {N} rows have an id without outcome, the first '{ids[0]}'; every 'id'"
    refused(missing, outcomes=some)
    again = outcomes.filter(pa.compute.is_in(outcomes["id"], pa.array([ids[4], ids[5]])))
    repeated = rf"2 of {N + 2} rows in column 'id' repeat another, the first '{ids[4]}' \(2 times\)"
    refused(repeated, outcomes=pa.concat_tables([outcomes, again]))
    refused("have no rows", outcomes=outcomes.slice(0, 0))


def test_columns_that_are_not_there_or_in_both(predictions, outcomes):
    source = open_source(predictions)
    with pytest.raises(InputError, match=r"predictions \(source\): has no column 'duration'"):
        joined(source, outcomes, id="duration")
    both = outcomes.append_column("30", outcomes["duration"])
    with pytest.raises(InputError, match="'30' are in both"):
        joined(source, both, id="id")
    with pytest.raises(InputError, match="has no column 'cause'"):
        read(joined(source, outcomes, id="id"), ["30", "cause"])


def test_ids_must_be_alike(predictions, outcomes):
    as_float = outcomes.set_column(0, "id", pa.array(np.arange(N) + 0.5))
    with pytest.raises(InputError, match="column 'id' must hold whole numbers or text, alike in both"):
        joined(open_source(predictions), as_float, id="id")
    if pa.types.is_integer(predictions["id"].type):
        as_text = outcomes.set_column(0, "id", outcomes["id"].cast("string"))
        with pytest.raises(InputError, match="it is int64 in predictions and text in outcomes"):
            joined(open_source(predictions), as_text, id="id")
        narrow = outcomes.set_column(0, "id", outcomes["id"].cast("int32"))
        assert read(joined(open_source(predictions), narrow, id="id"), ["duration"]).num_rows == N


def test_missing_values(predictions, outcomes):
    durations = pa.array(np.arange(N), mask=np.arange(N) == 9)
    holed = outcomes.set_column(1, "duration", durations)
    source = joined(open_source(predictions), holed, id="id", nullable=["duration"])
    assert read(source, ["duration"], nullable=["duration"])["duration"].null_count == 1
    with pytest.raises(InputError, match="column 'duration' has 1 missing value"):
        read(source, ["duration"])
    nobody = predictions.set_column(0, "id", pa.array([None] * N, predictions["id"].type))
    with pytest.raises(InputError, match="column 'id' has 5000 missing values"):
        read(joined(open_source(nobody), outcomes, id="id"), ["30"])


def test_a_bad_file_is_named_through_the_join(tmp_path, predictions, outcomes):
    for k in range(5):
        pq.write_table(predictions.slice(k * 1000, 1000), tmp_path / f"{k}.parquet")
    content = (tmp_path / "3.parquet").read_bytes()
    (tmp_path / "3.parquet").write_bytes(content[:-50])
    with pytest.raises(BadFileError, match=rf"^{tmp_path}/3\.parquet: can't be read as Parquet") as caught:
        read(joined(open_source(tmp_path), outcomes, id="id"), ["30", "duration"])
    assert "\n" not in str(caught.value)


def test_stopping_early_leaves_nothing_behind(predictions, outcomes):
    source = joined(open_source(predictions), outcomes, id="id")
    batches = source.batches(["30", "duration"], rows=10)
    next(batches)
    batches.close()
    assert read(source, ["30", "duration"]).num_rows == N


def test_the_database_reaches_for_nothing():
    cursor = joining._Database(500 * 10**6, lambda connection: None).cursor()
    settings = dict(cursor.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    assert settings["autoinstall_known_extensions"] == settings["autoload_known_extensions"] == "false"
    assert settings["enable_external_access"] == settings["preserve_insertion_order"] == "false"
    assert "build_side_probe_side" in settings["disabled_optimizers"]
    assert settings["memory_limit"].startswith("476")  # MiB


def test_names_of_columns_are_no_queries(ids, outcomes):
    odd = '"; DROP TABLE outcomes; --'
    predictions = pa.table({"id": ids, odd: np.arange(N)})
    source = joined(open_source(predictions), outcomes.rename_columns(["id", 'a"b', "event"]), id="id")
    assert read(source, [odd, 'a"b']).num_rows == N
