"""Folders of a data lake: columns in the names of folders, and files that would be counted twice."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import survscore as ss
from registry import one_curve
from scale_tables import in_folders, make, same
from survscore.scale import evaluate_state
from survscore.scale.files import BadFileError

KEYS = {
    "text": {"country": ["DE", "FR", "a b"]},
    "integers": {"year": [2019, 2020, 2021]},
    "dates": {"day": ["2024-06-01", "2024-06-02"]},
    "zeros in front": {"month": ["01", "02"]},
    "nested": {"year": [2019, 2020], "country": ["DE", "FR"]},
}


@pytest.fixture(scope="module")
def case():
    return make(900, n_times=3, dtype=np.float64)


def drawn(keys, n):
    rng = np.random.default_rng(7)
    return {name: rng.choice(values, n) for name, values in keys.items()}


def partitioned(case, folder, labels, format="parquet"):
    table = case.table.drop_columns(["country"])
    for name, values in labels.items():
        table = table.append_column(name, pa.array(values))
    return in_folders(table, labels, folder, format)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_names_of_folders_make_segments(case, kind, format, tmp_path):
    labels = drawn(KEYS[kind], 900)
    folder = partitioned(case, tmp_path / "lake", labels, format)
    expected = ss.compare(case.y, case.models, weighting="ipcw", times=case.times, null=False, by=labels)
    sources = [folder, ds.dataset(folder, partitioning="hive", format=format)]
    for source in sources[: 1 if kind == "zeros in front" else 2]:  # a dataset of pyarrow's says 1 for 01
        found = ss.evaluate(source, weighting="ipcw", by=list(labels))
        assert list(found.parts) == [tuple(map(str, key)) for key in expected.parts]
        same(found.total, expected.total, score=1e-10, se=1e-6)
        for got, want in zip(found.parts.values(), expected.parts.values(), strict=True):
            same(got, want, score=1e-10, se=1e-6)


def test_names_of_folders_are_groups_weights_and_outcomes(case, tmp_path):
    team = {"team": [f"t{k:02d}" for k in np.random.default_rng(3).integers(0, 40, 900)]}
    found = ss.evaluate(partitioned(case, tmp_path / "teams", team), weighting="administrative", groups="team")
    same(found, ss.compare(case.y, case.models, weighting=one_curve(), times=case.times, null=False,
                           groups=np.array(team["team"])))  # fmt: skip
    visits = np.random.default_rng(3).integers(1, 4, 900)
    found = ss.evaluate(
        partitioned(case, tmp_path / "visits", {"visits": visits}),
        weighting="administrative", weights="visits", weight_kind="frequency",
    )  # fmt: skip
    y = ss.Outcomes(case.y.time, case.y.event, case.y.censoring_time, weights=visits, weight_kind="frequency")
    same(found, ss.compare(y, case.models, weighting=one_curve(), times=case.times, null=False))
    ends = np.ceil(case.y.censoring_time / 100) * 100
    table = case.table.set_column(2, "censoring_time", pa.array(ends.astype(np.int64)))
    pq.write_to_dataset(table, tmp_path / "ends", partition_cols=["censoring_time"])
    y = ss.Outcomes(case.y.time, case.y.event, ends)
    expected = ss.compare(y, case.models, weighting=one_curve(), times=case.times, null=False)
    same(ss.evaluate(tmp_path / "ends", weighting="administrative"), expected)


# What would be counted twice


@pytest.fixture
def files(case, tmp_path):
    return case.write(tmp_path / "data" / "files", 3)


def evaluated(source, **more):
    return evaluate_state(source, weighting="administrative", **more)


def test_a_file_or_folder_under_two_names(files):
    for link in (os.link, os.symlink):
        link(files / "part-0001.parquet", files / "again.parquet")
        with pytest.raises(ss.InputError, match=r"1 file more than once, the first .*, which .* is, too, by a link"):
            evaluated(files)
        (files / "again.parquet").unlink()
    (files.parent / "latest").symlink_to(files)
    with pytest.raises(ss.InputError, match="source holds 3 files more than once"):
        evaluated(files.parent)


def test_copies(files, case):
    shutil.copy(files / "part-0001.parquet", files / "copy.parquet")
    with pytest.raises(ss.InputError, match=r"part-0001\.parquet: is a copy of .*copy\.parquet"):
        evaluated(files)
    (files / "copy.parquet").unlink()
    for name in ("none.parquet", "neither.parquet"):  # Spark writes such
        pq.write_table(case.table[:0], files / name)
    assert evaluated(files).n == 900


def test_the_same_rows_in_two_folders(case, tmp_path):
    table = case.table.drop_columns(["country"])
    for country in ("DE", "FR"):
        (tmp_path / f"country={country}").mkdir()
        pq.write_table(table, tmp_path / f"country={country}" / "a.parquet")
    state = evaluated(tmp_path, by="country")
    assert state.n == 1800
    with pytest.raises(ss.InputError, match=r"1 file would be counted twice, the first country=FR/a\.parquet$"):
        evaluated(tmp_path / "country=FR" / "*", by="country", add=state)


def test_what_is_added_is_not_the_same_again(files, case, tmp_path):
    monday = evaluated(files)
    for path in files.iterdir():
        os.utime(path, ns=(1, 1))
    with pytest.raises(ss.InputError, match=r"3 files would be counted twice, the first part-0000\.parquet$"):
        evaluated(files, add=monday)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(files / "part-0002.parquet", elsewhere / "x.parquet")
    with pytest.raises(ss.InputError, match=r"the first x\.parquet \(the same as part-0002\.parquet\)"):
        evaluated(elsewhere, add=monday)
    pq.write_table(case.table[:50], files / "part-0000.parquet")
    with pytest.raises(ss.InputError, match=r"the first part-0000\.parquet \(written to since it was counted\)"):
        evaluated(files / "part-0000.parquet", add=monday)
    pq.write_table(make(20, seed=9, n_times=3).table, elsewhere / "x.parquet")
    assert evaluated(elsewhere, add=monday).n == 920


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_what_never_ends_is_not_read(files, kind, tmp_path):
    def put(place):
        place.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to("/dev/zero")
        return place

    evaluated(files, state=tmp_path / "kept")
    put(next((tmp_path / "kept").rglob("*.state")))  # a piece of it
    odd = put(tmp_path / "odd")
    for option in ({"manifest": odd}, {"add": odd}, {"state": tmp_path / "kept"}):
        with pytest.raises(ss.InputError, match=f": is a {kind}, not a file"):
            evaluated(files, **option)
    put(files / "part-0009.parquet")
    with pytest.raises(BadFileError, match=f"part-0009.parquet: is a {kind}, not a file"):
        evaluated(files)
