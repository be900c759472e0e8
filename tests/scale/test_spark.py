"""Spark: the same sums from executors as from threads, also when one dies."""

import os
import shutil
import sys
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import survscore as ss
from cluster_case import check_alike, check_close, in_files, in_memory, rows, spoiled, sums, with_ids
from survscore._validation import InputError
from survscore.scale.files import BadFileError

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed")
psutil = pytest.importorskip("psutil", reason="psutil finds the executor to kill")
if sys.platform == "win32":
    pytest.skip("Spark on Windows needs programs of Hadoop that it does not bring", allow_module_level=True)
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, and there is none", allow_module_level=True)

from pyspark.sql import functions as sql  # noqa: E402

# pyspark's own use of pandas, and sockets that it closes late
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


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


def frame_of(session, table):
    return session.createDataFrame(table)


@pytest.mark.parametrize("count", [1, 20, 200])
@pytest.mark.nightly
def test_files_give_the_same_sums(session, folders, wanted, count):
    seen = []
    state = sums(folders[count], session, seen=lambda *step: seen.append(step))
    check_alike(state, wanted)
    assert len(state.files) == count
    assert seen[-1][:2] == (count, count)


def test_files_give_the_scores_of_memory(session, folders, table):
    weighting, metric = ("administrative", "ipcw"), ("brier", "log")
    check_close(ss.evaluate(folders[20], weighting=weighting, metric=metric, engine=session), in_memory(table))


@pytest.mark.nightly
def test_rows_are_gathered_for_metrics_that_are_no_sums(session, folders, table):
    asked = {"weighting": "administrative", "metric": "auc"}
    wanted = ss.evaluate(table, **asked).scores["score"]
    for source in (folders[20], frame_of(session, table)):
        np.testing.assert_allclose(ss.evaluate(source, engine=session, **asked).scores["score"], wanted, rtol=1e-12)


@pytest.mark.nightly
def test_frames_give_the_same_sums(session, folders, wanted):
    check_alike(sums(session.read.parquet(str(folders[20]))), wanted)
    check_alike(sums(session.read.parquet(str(folders[1])).repartition(5), session), wanted)


@pytest.mark.nightly
def test_times_that_are_no_whole_numbers_are_looked_at_there(session, tmp_path):
    table = rows(1000, fractional=True)
    folder = in_files(tmp_path / "data", table, 3)
    check_alike(sums(folder, session), sums(table))
    check_alike(sums(frame_of(session, table)), sums(table))


@pytest.mark.nightly
def test_sums_are_kept_by_file(session, folders, wanted, tmp_path):
    check_alike(sums(folders[20], session, state=tmp_path), wanted)
    assert len(list(tmp_path.rglob("*.state"))) == 20


def executors(session):
    driver = psutil.Process(session.sparkContext._gateway.proc.pid)
    return [
        child
        for child in driver.children(recursive=True)
        if any("CoarseGrained" in word for word in child.as_dict(["cmdline"], ad_value=[])["cmdline"])
    ]


@pytest.mark.nightly
def test_an_executor_that_dies_changes_nothing(session, folders, wanted):
    before = executors(session)
    assert len(before) == 2
    tracker = session.sparkContext.statusTracker()
    found = []
    work = threading.Thread(target=lambda: found.append(sums(folders[200], session)))
    work.start()
    killed = False
    while work.is_alive() and not killed:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(one and one.numTasks >= 16 and 3 <= one.numCompletedTasks <= one.numTasks - 4 for one in stages):
            before[0].kill()
            killed = True
        time.sleep(0.02)
    assert killed
    work.join(90)
    assert len(found[0].files) == len(set(found[0].files)) == 200
    check_alike(found[0], wanted)


@pytest.mark.nightly
def test_a_file_that_cannot_be_read_is_named(session, table, tmp_path):
    folder = in_files(tmp_path / "data", table, 20)
    name = spoiled(folder)
    with pytest.raises(BadFileError) as raised:
        ss.evaluate(folder, weighting="ipcw", engine=session)
    assert str(raised.value).startswith(f"{name}: can't be read as Parquet")
    assert "\n" not in str(raised.value)
    with pytest.warns(UserWarning, match="1 file of 20 could not be read and was left out"):
        found = ss.evaluate(folder, weighting="ipcw", engine=session, skip_bad_files=True)
    with pytest.warns(UserWarning, match="1 file of 20"):
        here = ss.evaluate(folder, weighting="ipcw", skip_bad_files=True)
    pd.testing.assert_frame_equal(found.scores, here.scores)


@pytest.mark.nightly
def test_partitions_are_checked(session, table):
    frame = frame_of(session, table)
    holes = frame.withColumn("net:20", sql.when(sql.col("time") != 7, sql.col("`net:20`")))
    with pytest.raises(InputError, match=r"^partition \d of source: column 'net:20' has \d+ missing values? in the"):
        ss.evaluate(holes, weighting="ipcw")
    with pytest.raises(InputError, match="state keeps the sums of files, but source is a frame"):
        ss.evaluate(frame, weighting="ipcw", state="kept")
    with pytest.raises(InputError, match="must be its Spark session, not object"):
        ss.evaluate(frame, weighting="ipcw", engine=type("object", (), {"run": None})())


@pytest.mark.nightly
def test_outcomes_are_joined_by_spark_itself(session, table, wanted):
    predictions, outcomes = (frame_of(session, one) for one in with_ids(table, text=False))
    check_alike(sums(predictions.join(outcomes, "id")), wanted)
    with pytest.raises(InputError, match="is a frame on a cluster: join it there first"):
        ss.evaluate(predictions, outcomes_from=outcomes, weighting="ipcw")


@pytest.mark.nightly
def test_dates_come_through_frames(session):
    rng = np.random.default_rng(3)
    start = np.datetime64("2024-01-01") + rng.integers(0, 200, 500)
    ended = start + rng.integers(1, 300, 500)
    known = pa.array(ended, mask=ended > np.datetime64("2024-12-31"))
    table = pa.table({"start": start, "event_date": known, "net:30": np.full(500, 0.9), "net:60": np.full(500, 0.7)})
    options = {"weighting": "administrative", "outcomes": {"cutoff": "2024-12-31"}}
    there = ss.evaluate(frame_of(session, table), **options)
    pd.testing.assert_frame_equal(ss.evaluate(table, **options).scores, there.scores)
