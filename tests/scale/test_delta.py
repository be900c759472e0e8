"""Tables with a log: the files that count are those that the log names, by its own library."""

import os

import numpy as np
import pytest

import survscore as ss
from scale_tables import make, same
from survscore.scale import evaluate_state
from survscore.scale.sources import open_source

deltalake = pytest.importorskip("deltalake", reason="Delta Lake is not installed")


@pytest.fixture(scope="module")
def case():
    return make(900, n_times=3, dtype=np.float64)


@pytest.fixture
def table(case, tmp_path):
    """Rows of two versions of a table, of which the files of one no longer count."""
    path = str(tmp_path / "lake")
    deltalake.write_deltalake(path, case.table, partition_by=["country"])
    deltalake.write_deltalake(path, case.table.slice(0, 300), partition_by=["country"], mode="append")
    found = deltalake.DeltaTable(path)
    found.restore(0)
    return deltalake.DeltaTable(path)


def test_the_log_says_which_files_count(case, table):
    wanted = ss.evaluate(case.table, weighting="administrative", by="country")
    found = ss.evaluate(table.to_pyarrow_dataset(), weighting="administrative", by="country")
    assert found.total.n == 900
    assert found.total.scored[0].settings["files_read"] == len(table.file_uris()) == 3
    assert set(found.parts) == set(wanted.parts)
    for label, part in found.parts.items():
        same(part, wanted.parts[label], score=1e-10, se=1e-10)
    old = deltalake.DeltaTable(table.table_uri, version=1).to_pyarrow_dataset()
    assert ss.evaluate(old, weighting="administrative").n == 1200


def test_its_files_are_kept_and_not_counted_twice(table, tmp_path):
    state = evaluate_state(table.to_pyarrow_dataset(), weighting="administrative", state=tmp_path / "kept")
    assert len(list((tmp_path / "kept").rglob("*.state"))) == 3
    with pytest.raises(ss.InputError, match=r"3 files would be counted twice, the first country=DE/part-"):
        evaluate_state(table.to_pyarrow_dataset(), weighting="administrative", add=state)


def test_a_file_that_is_gone_is_named(table):
    dataset = table.to_pyarrow_dataset()
    source = open_source(dataset)
    os.unlink(table.file_uris()[0])
    with pytest.raises(ss.InputError, match=r"^country=\w\w/part-.*parquet: is no longer there"):
        list(source.batches(["time"]))
