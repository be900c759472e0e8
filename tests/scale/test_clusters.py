"""Dask and Spark: the same sums from workers as from threads, also when a worker dies; no row comes here."""

import os
import signal
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import survscore as ss
from cluster_case import check_alike, check_close, in_files, in_memory, rows, spoiled, sums
from scale_tables import in_folders
from survscore._validation import InputError
from survscore.scale.files import NO_VALUE, BadFileError
from survscore.scale.sources import open_source

psutil = pytest.importorskip("psutil", reason="psutil finds the executor to kill")

# connections that are closed while a cluster stops, or a worker dies, are noticed late; pyspark's own use of pandas
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@dataclass
class Cluster:
    kind: str
    engine: Any

    def frame_of(self, table, partitions=7):
        if self.kind == "spark":
            return self.engine.createDataFrame(table).repartition(partitions)
        dd = pytest.importorskip("dask.dataframe", reason="Dask frames are not installed")
        return dd.from_pandas(table.to_pandas(), npartitions=partitions, sort=False)

    def read(self, folder):
        if self.kind == "spark":
            return self.engine.read.parquet(str(folder))
        return pytest.importorskip("dask.dataframe").read_parquet(folder)

    def workers(self):
        """Return the processes that do the work."""
        if self.kind == "dask":
            return list(self.engine.run(os.getpid).values())
        driver = psutil.Process(self.engine.sparkContext._gateway.proc.pid)
        children = driver.children(recursive=True)
        return [one.pid for one in children if "CoarseGrained" in " ".join(one.as_dict(["cmdline"])["cmdline"] or [])]

    def fatal(self, frame, marker):
        """Return a frame whose first partition that is read ends the process that reads it, once."""
        kind, marker = self.kind, str(marker)

        def end():
            import psutil

            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            # Spark's Python runs below the executor's own process
            above = [one for one in psutil.Process().parents() if "java" in one.name()]
            os.kill(os.getpid() if kind == "dask" else above[0].pid, signal.SIGKILL)

        def partition(rows):
            end()
            return rows

        def batches(several):
            end()
            yield from several

        if kind == "dask":
            return frame.map_partitions(partition, meta=frame._meta)
        return frame.mapInArrow(batches, frame.schema)


@pytest.fixture(scope="module", params=["dask", "spark"])
def cluster(request):
    return Cluster(request.param, request.getfixturevalue({"dask": "client", "spark": "session"}[request.param]))


@pytest.fixture(scope="module")
def table():
    return rows()


@pytest.fixture(scope="module")
def wanted(table):
    return sums(table)


@pytest.fixture(scope="module")
def folders(tmp_path_factory, table):
    root = tmp_path_factory.mktemp("files")
    return {count: in_files(root / str(count), table, count) for count in (1, 20, 200)}


def test_files_give_the_scores_of_memory(cluster, folders, table):
    weighting, metric = ("administrative", "ipcw"), ("brier", "log")
    check_close(ss.evaluate(folders[20], weighting=weighting, metric=metric, engine=cluster.engine), in_memory(table))


@pytest.mark.nightly
@pytest.mark.parametrize("count", [1, 20, 200])
def test_files_give_the_same_sums(cluster, folders, wanted, count, tmp_path):
    seen = []
    state = sums(folders[count], cluster.engine, seen=lambda *step: seen.append(step))
    check_alike(state, wanted)
    assert len(state.files) == count
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert seen[-1][:2] == (count, count)
    if count == 20:
        check_alike(sums(folders[20], cluster.engine, state=tmp_path), wanted)
        assert len(list(tmp_path.rglob("*.state"))) == 20
        check_alike(sums(folders[20], state=tmp_path), wanted)


@pytest.mark.nightly
def test_frames_give_the_same_sums(cluster, folders, table, wanted):
    check_alike(sums(cluster.read(folders[20])), wanted)  # on the active client, or the session of the frame
    check_alike(sums(cluster.frame_of(table), cluster.engine), wanted)


@pytest.mark.parametrize("format", ["parquet", pytest.param("csv", marks=pytest.mark.nightly)])
def test_names_of_folders_are_columns(cluster, table, format, tmp_path):
    """Text, whole numbers, dates and no value; in segments and weights."""
    rng = np.random.default_rng(3)
    types = [column.with_type(pa.float64()) if column.name[-1] == "0" else column for column in table.schema]
    table = table.cast(pa.schema(types))  # as CSV has predictions
    country = pa.array([None if one == "IT" else one for one in table["country"].to_pylist()])
    table = table.set_column(table.column_names.index("country"), "country", country)
    table = table.append_column("weight", pa.array(rng.integers(1, 4, len(table))))
    table = table.append_column("day", pa.array(rng.choice(["2024-06-01", "2024-06-02"], len(table))))
    lake = in_folders(table, ["country", "weight", "day"], tmp_path / "lake", format)
    # in memory a missing label has to be spelt out
    named = table.set_column(table.column_names.index("country"), "country", country.fill_null(NO_VALUE))
    options = {"weighting": "administrative", "by": ["country", "day"], "weights": "weight"}
    here = ss.evaluate(named, **options)
    there = ss.evaluate(lake, engine=cluster.engine, **options)
    assert len(there.parts) == 6
    assert set(there.parts) == set(here.parts)
    for found, wanted in [(there.total, here.total), *((there.parts[one], here.parts[one]) for one in here.parts)]:
        np.testing.assert_allclose(found.scores[["score", "se"]], wanted.scores[["score", "se"]], rtol=1e-10)


@pytest.mark.parametrize("when", [pytest.param("between two files", marks=pytest.mark.nightly), "within a task"])
def test_a_worker_that_is_killed_changes_nothing(cluster, folders, table, wanted, when, tmp_path):
    before = cluster.workers()
    assert len(before) == 2
    if when == "within a task":
        check_alike(sums(cluster.fatal(cluster.frame_of(table), tmp_path / "marker"), cluster.engine), wanted)
        assert (tmp_path / "marker").exists()
    else:
        killed = []

        def kill(done, total, what):
            if done >= 40 and not killed:
                killed.append(before[0])
                os.kill(before[0], signal.SIGKILL)

        state = sums(folders[200], cluster.engine, seen=kill, state=tmp_path)
        assert killed
        assert len(state.files) == len(set(state.files)) == 200
        check_alike(state, wanted)
    assert set(cluster.workers()) != set(before)


@pytest.mark.nightly
def test_a_file_that_cannot_be_read_is_named(cluster, table, tmp_path):
    folder = in_files(tmp_path / "data", table, 20)
    name = spoiled(folder)
    with pytest.raises(BadFileError) as raised:
        ss.evaluate(folder, weighting="ipcw", engine=cluster.engine)
    assert str(raised.value).startswith(f"{name}: can't be read as Parquet")
    assert "\n" not in str(raised.value)
    with pytest.warns(UserWarning, match="1 file of 20 could not be read and was left out"):
        found = ss.evaluate(folder, weighting="ipcw", engine=cluster.engine, skip_bad_files=True)
    with pytest.warns(UserWarning, match="1 file of 20"):
        here = ss.evaluate(folder, weighting="ipcw", skip_bad_files=True)
    np.testing.assert_allclose(found.scores["score"], here.scores["score"], rtol=1e-12)


@pytest.mark.nightly
def test_partitions_are_checked(cluster, table):
    frame = cluster.frame_of(table, 4)
    high = table.set_column(table.column_names.index("cox:40"), "cox:40", pa.array(table["cox:40"].to_numpy() + 2))
    with pytest.raises(InputError, match=r"^partition \d of source: model 'cox': probabilities must be between"):
        ss.evaluate(cluster.frame_of(high), weighting="ipcw")
    with pytest.raises(InputError, match="state keeps the sums of files, but source is a frame"):
        ss.evaluate(frame, weighting="ipcw", state="kept")
    with pytest.raises(InputError, match="not brought to this machine"):
        next(open_source(frame).batches(["time"]))
    with pytest.raises(InputError, match="is a frame on a cluster: join it there first"):
        ss.evaluate(frame, outcomes_from=frame, weighting="ipcw")


# Dask alone


@pytest.mark.nightly
def test_a_frame_needs_no_cluster(table, wanted, monkeypatch):
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    monkeypatch.setattr("survscore.scale.engines._active_client", lambda: None)
    with dask.config.set(scheduler="threads"):
        check_alike(sums(Cluster("dask", None).frame_of(table, 20)), wanted)


@pytest.mark.nightly
def test_an_interrupt_cancels_what_waits(client, folders):
    def interrupt(done, total, what):
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sums(folders[200], client, seen=interrupt)
    while client.cluster.scheduler.tasks:  # tasks are forgotten soon, or the test never ends
        time.sleep(0.05)
