"""Dask: the same sums from workers as from threads, also when a worker dies."""

import logging
import os
import signal
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from pyarrow import fs

import survscore as ss
from cluster_case import check_alike, check_close, in_files, in_memory, rows, spoiled, sums, with_ids
from survscore._validation import InputError
from survscore.scale.files import BadFileError, FilePart
from survscore.scale.sources import open_source

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask frames are not installed")


# connections that are closed while a cluster stops, or a worker dies, are noticed late
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        )
        client = distributed.Client(cluster)
    yield client
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client.close()
        cluster.close()


@pytest.fixture(scope="module")
def table():
    return rows()


@pytest.fixture(scope="module")
def wanted(table):
    return sums(table)


@pytest.fixture(scope="module")
def folders(tmp_path_factory, table):
    root = tmp_path_factory.mktemp("dask")
    return {count: in_files(root / str(count), table, count) for count in (1, 20, 200)}


def frame_of(table, partitions=7):
    return dd.from_pandas(table.to_pandas(), npartitions=partitions, sort=False)


@pytest.mark.parametrize("count", [1, 20, 200])
@pytest.mark.nightly
def test_files_give_the_same_sums(client, folders, wanted, count):
    seen = []
    state = sums(folders[count], client, seen=lambda *step: seen.append(step))
    check_alike(state, wanted)
    assert len(state.files) == count
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert seen[-1][:2] == (count, count)
    assert len(seen) >= count / 8


def test_files_give_the_scores_of_memory(client, folders, table):
    weighting, metric = ("administrative", "ipcw"), ("brier", "log")
    check_close(ss.evaluate(folders[20], weighting=weighting, metric=metric, engine=client), in_memory(table))


@pytest.mark.nightly
def test_rows_are_gathered_for_metrics_that_are_no_sums(client, folders, table):
    asked = {"weighting": "administrative", "metric": "auc"}
    wanted = ss.evaluate(table, **asked).scores["score"]
    for source in (folders[20], frame_of(table)):
        np.testing.assert_allclose(ss.evaluate(source, engine=client, **asked).scores["score"], wanted, rtol=1e-12)


@pytest.mark.nightly
def test_times_that_are_no_whole_numbers_are_looked_at_there(client, tmp_path):
    table = rows(1000, fractional=True)
    folder = in_files(tmp_path / "data", table, 40)
    check_alike(sums(folder, client), sums(table))
    check_alike(sums(frame_of(table), client), sums(table))


@pytest.mark.nightly
def test_frames_give_the_same_sums(client, folders, table, wanted):
    check_alike(sums(dd.read_parquet(folders[20])), wanted)  # the active client is found
    check_alike(sums(frame_of(table), client), wanted)


@pytest.mark.nightly
def test_a_frame_needs_no_cluster(table, wanted, monkeypatch):
    monkeypatch.setattr("survscore.scale.engines._active_client", lambda: None)
    with dask.config.set(scheduler="threads"):
        check_alike(sums(frame_of(table, 20)), wanted)


@pytest.mark.nightly
def test_sums_are_kept_by_file(client, folders, wanted, tmp_path):
    check_alike(sums(folders[20], client, state=tmp_path), wanted)
    assert len(list(tmp_path.rglob("*.state"))) == 20
    check_alike(sums(folders[20], state=tmp_path), wanted)


@pytest.mark.parametrize("way", ["reduce", "run"])
@pytest.mark.nightly
def test_a_worker_that_dies_changes_nothing(client, folders, wanted, way, tmp_path):
    killed = []

    def kill(done, total, what):
        if done >= 40 and not killed:
            killed.append(client.run(os.getpid).popitem()[1])
            os.kill(killed[0], signal.SIGKILL)

    state = sums(folders[200], client, seen=kill, state=tmp_path if way == "run" else None)
    assert killed
    assert len(state.files) == len(set(state.files)) == 200
    check_alike(state, wanted)
    assert killed[0] not in client.run(os.getpid).values()


@pytest.mark.nightly
def test_an_interrupt_cancels_what_waits(client, folders):
    def interrupt(done, total, what):
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sums(folders[200], client, seen=interrupt)
    deadline = time.monotonic() + 20
    while client.cluster.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not client.cluster.scheduler.tasks


@pytest.mark.nightly
def test_a_file_that_cannot_be_read_is_named(client, table, tmp_path):
    folder = in_files(tmp_path / "data", table, 20)
    name = spoiled(folder)
    with pytest.raises(BadFileError) as raised:
        ss.evaluate(folder, weighting="ipcw", engine=client)
    assert str(raised.value).startswith(f"{name}: can't be read as Parquet")
    assert "\n" not in str(raised.value)
    with pytest.warns(UserWarning, match="1 file of 20 could not be read and was left out"):
        found = ss.evaluate(folder, weighting="ipcw", engine=client, skip_bad_files=True)
    with pytest.warns(UserWarning, match="1 file of 20"):
        here = ss.evaluate(folder, weighting="ipcw", skip_bad_files=True)
    pd.testing.assert_frame_equal(found.scores, here.scores)


@pytest.mark.nightly
def test_what_is_wrong_with_a_file_among_many_stops_the_work(client, table, tmp_path):
    folder = in_files(tmp_path / "data", table, 100)
    name = spoiled(folder)
    with pytest.raises(BadFileError, match="can't be read") as raised:
        ss.evaluate(folder, weighting="ipcw", engine=client)
    assert raised.value.file == name


@pytest.mark.nightly
def test_partitions_are_checked(client, table):
    frame = frame_of(table, 4)
    holes = frame.assign(**{"net:20": frame["net:20"].where(frame["time"] != 7)})
    with pytest.raises(InputError, match=r"^partition \d of source: column 'net:20' has \d+ missing values? in the"):
        ss.evaluate(holes, weighting="ipcw")
    high = frame.assign(**{"cox:40": frame["cox:40"] + 2})
    with pytest.raises(
        InputError, match=r"^partition \d of source: model 'cox': probabilities must be between 0 and 1"
    ):
        ss.evaluate(high, weighting="ipcw")
    with pytest.raises(InputError, match="state keeps the sums of files, but source is a frame"):
        ss.evaluate(frame, weighting="ipcw", state="kept")
    with pytest.raises(InputError, match="not brought to this machine"):
        next(open_source(frame).batches(["time"]))
    with pytest.raises(InputError, match="must be a Dask client, not object"):
        ss.evaluate(frame, weighting="ipcw", engine=type("object", (), {"run": None})())


@pytest.mark.nightly
def test_outcomes_are_joined_by_dask_itself(client, table, wanted):
    predictions, outcomes = (frame_of(one) for one in with_ids(table, text=True))
    check_alike(sums(predictions.merge(outcomes, on="id")), wanted)
    with pytest.raises(InputError, match="is a frame on a cluster: join it there first"):
        ss.evaluate(predictions, outcomes_from=outcomes, weighting="ipcw")


@pytest.mark.nightly
def test_dates_come_through_frames(client):
    rng = np.random.default_rng(3)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, 500), unit="D")
    ended = start + pd.to_timedelta(rng.integers(1, 300, 500), unit="D")
    ended = ended.where(ended <= pd.Timestamp("2024-12-31"))
    table = pd.DataFrame({"start": start, "event_date": ended, "net:30": 0.9, "net:60": 0.7})
    options = {"weighting": "administrative", "outcomes": {"cutoff": "2024-12-31"}}
    here = ss.evaluate(table, **options)
    there = ss.evaluate(dd.from_pandas(table, npartitions=3), **options)
    pd.testing.assert_frame_equal(here.scores, there.scores)


def test_credentials_are_not_shown(client):
    system = fs.S3FileSystem(access_key="who", secret_key="hush", region="eu-west-1")
    part = FilePart("x", system, "parquet", 1)
    assert "hush" not in repr(part)
