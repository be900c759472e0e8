"""A hundred files, one of them bad: one line that names it."""

import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from survscore.scale.files import BadFileError
from survscore.scale.sources import open_source

COLUMNS = ["duration", "event", "30", "curve"]
BAD = "part-042.parquet"


def part_table(k, n=20):
    rng = np.random.default_rng(k)
    return pa.table(
        {
            "duration": rng.exponential(1, n),
            "event": rng.random(n) < 0.5,
            "30": rng.random(n),
            "curve": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(2 * n)), 2),
        }
    )


@pytest.fixture
def hundred(tmp_path):
    for k in range(100):
        pq.write_table(part_table(k), tmp_path / f"part-{k:03d}.parquet", row_group_size=8)
    return tmp_path


def replaced(name, values):
    table = part_table(42)
    return table.set_column(table.schema.names.index(name), name, values)


def holed(path):
    values = np.arange(20.0)
    pq.write_table(replaced("30", pa.array(values, mask=np.isin(values, [13, 17]))), path)


def holed_list(path):
    values = pa.array([[0.5, None]] + [[0.5, 0.4]] * 19, pa.list_(pa.float64(), 2))
    pq.write_table(replaced("curve", values), path)


WRONG = {
    "longer lists": (
        lambda path: pq.write_table(
            replaced("curve", pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(60)), 3)), path
        ),
        r"column 'curve' is lists of 3 of float64, but lists of 2 of float64 in .*part-000\.parquet",
    ),
    "with a column twice": (
        lambda path: pq.write_table(part_table(42).append_column("30", part_table(42)["30"]), path),
        "columns must have different names; repeated: '30'$",
    ),
    "holed": (holed, "column '30' has 2 missing values in the 20 rows from row 0 on, the first in row 13$"),
    "with holed lists": (holed_list, "column 'curve' has 1 missing value in its lists$"),
}
AFTER = {
    "vanished": (lambda path: path.unlink(), "is no longer there, though it was listed$"),
    "shortened": (
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        r"has changed since it was listed: \d+ bytes then, \d+ now$",
    ),
    "written to": (lambda path: os.utime(path, ns=(1, 1)), "has changed since it was listed: it was written to$"),
}


@pytest.mark.parametrize("kind", [*WRONG, *AFTER])
def test_one_bad_file_of_a_hundred(kind, hundred):
    if kind in WRONG:
        WRONG[kind][0](hundred / BAD)
    source = open_source(hundred)
    if kind in AFTER:
        AFTER[kind][0](hundred / BAD)
    what = (WRONG | AFTER)[kind][1]
    with pytest.raises(BadFileError, match=rf"^{hundred}/{BAD}: {what}") as caught:
        for _ in source.batches(COLUMNS, numeric=["30", "curve"]):
            pass
    assert "\n" not in str(caught.value)
    assert caught.value.file == str(hundred / BAD)
    # and where one is read by itself, as in another process
    columns = source.parts[0].expected(COLUMNS)
    part, expected = pickle.loads(pickle.dumps((source.parts[42], columns)))
    with pytest.raises(BadFileError) as again:
        list(part.batches(COLUMNS, numeric=["30", "curve"], expected=expected))
    assert str(again.value) == str(caught.value)


@pytest.mark.parametrize("kind", ["corrupt", "truncated", "empty"])
@pytest.mark.parametrize("ending", ["arrow", "arrows", "csv"])
def test_bad_files_of_other_formats(kind, ending, tmp_path):
    table = part_table(1, 1000).drop_columns(["curve"])
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        with {"arrow": pa.ipc.new_file, "arrows": pa.ipc.new_stream}[ending](path, table.schema) as writer:
            writer.write_table(table)
    content = path.read_bytes()
    if kind == "corrupt":
        path.write_bytes((b"\xff" * 300 + content[300:]) if ending == "csv" else b"ARROW1\0\0" + b"\xff" * 5000)
    elif kind == "truncated":
        path.write_bytes(content[: len(content) // 2] + (b"," * 9 if ending == "csv" else b""))
    else:
        path.write_bytes(b"")
    with pytest.raises(BadFileError, match=rf"^{path}: ") as caught:
        list(open_source(path).batches(["duration", "30"], numeric=["30"]))
    assert "\n" not in str(caught.value)


def test_checksums_find_what_decoding_does_not(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(part_table(1, 5000), path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[10000] ^= 1
    path.write_bytes(content)
    (part,) = open_source(path).parts
    assert sum(len(batch) for batch in part.batches(["duration"])) == 5000
    with pytest.raises(BadFileError, match="CRC"):
        list(part.batches(["duration"], checksums=True))


def test_a_folder_and_a_column_that_disagree(tmp_path):
    place = tmp_path / "year=2024"
    place.mkdir()
    table = part_table(1)
    pq.write_table(table.append_column("year", pa.array([2024] * 19 + [2023])), place / "a.parquet")
    source = open_source(tmp_path)
    assert sum(len(batch) for batch in source.batches(["30"])) == 20  # nobody asks
    with pytest.raises(
        BadFileError, match=r"its folder says year=2024, but its own column 'year' does not in row 19 \(2023\)"
    ):
        list(source.batches(["year"]))
    pq.write_table(table.append_column("year", pa.array([2024] * 20)), place / "a.parquet")
    (batch,) = open_source(tmp_path).batches(["year"])
    assert set(batch.column(0).to_pylist()) == {2024}


def test_reading_does_not_hold_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    n = 400_000
    table = pa.table({str(k): np.random.default_rng(k).random(n) for k in range(10)})
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=n // 40)
    (part,) = open_source(path).parts
    del table
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in part.batches([str(k) for k in range(10)], rows=n // 40))
    assert most < path.stat().st_size / 4
