"""Every source gives what data in memory give, with no segment, one, and two columns of them."""

from functools import cache

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import survscore as ss
from scale_tables import in_folders, make, same

pytestmark = [
    pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning"),  # some segments are small
    pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning"),
    pytest.mark.filterwarnings("ignore::survscore.FewGroupsWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TIMES = (30.0, 96.0)
N = 900


@cache
def case():
    made = make(N, seed=4, dtype=np.float64)
    rng = np.random.default_rng(2)
    made.plan, made.day = rng.integers(1, 3, N), np.array(["2024-06-01", "2024-06-02"])[rng.integers(0, 2, N)]
    made.table = made.table.append_column("plan", pa.array(made.plan)).append_column("day", pa.array(made.day))
    return made


@cache
def wanted(by):
    made = case()
    weighting = [ss.Administrative(dropout_strata=None), ss.Projected()]
    labels = {name: getattr(made, name).astype(str) for name in by}
    return ss.compare(made.y, made.models, weighting=weighting, times=TIMES, null=False, by=labels or None)


def in_files(table, folder):
    folder.mkdir()
    for k in range(20):
        pq.write_table(table.slice(k * N // 20, N // 20), folder / f"{k:02d}.parquet")
    return folder


def written(how, name):
    def write(table, folder):
        folder.mkdir()
        how(table, str(folder / name))
        return folder

    return write


def delta(table, folder):
    deltalake = pytest.importorskip("deltalake", reason="Delta Lake is not installed")
    deltalake.write_deltalake(str(folder), table, partition_by=["country"])
    return deltalake.DeltaTable(str(folder)).to_pyarrow_dataset()


def iceberg(table, folder):
    sql = pytest.importorskip("pyiceberg.catalog.sql", reason="Iceberg is not installed")
    folder.mkdir()
    catalog = sql.SqlCatalog("here", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
    catalog.create_namespace("churn")
    made = catalog.create_table("churn.predictions", schema=table.schema)
    for part in (table.slice(0, N // 2), table.slice(N // 2)):
        made.append(part)
    return lambda: catalog.load_table("churn.predictions").scan().to_arrow_batch_reader()


def dask_frame(table, folder):
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    return dd.from_pandas(table.to_pandas(), npartitions=4, sort=False)


SOURCES = {
    "table": lambda table, _: table,
    "twenty files": in_files,
    "folders": lambda table, folder: in_folders(table, ["country"], folder),
    "csv": written(pyarrow.csv.write_csv, "a.csv"),
    "arrow": written(pyarrow.feather.write_feather, "a.arrow"),
    "polars": lambda table, _: pl.from_arrow(table).lazy(),
    "duckdb": lambda table, _: duckdb.from_arrow(table),
    "pandas": lambda table, _: table.to_pandas(),
    "delta": delta,
    "iceberg": iceberg,
    "dask": dask_frame,
    "spark": None,
}
SEGMENTS = {"none": (), "one": ("plan",), "two": ("country", "day")}
SLOW = ("dask", "spark")
# each source once, with each of the segments in turn
QUICK = {(name, list(SEGMENTS)[k % 3]) for k, name in enumerate(SOURCES) if name not in SLOW}
CELLS = [
    pytest.param(source, by, marks=[] if (source, by) in QUICK else pytest.mark.nightly, id=f"{source}-{by}")
    for source in SOURCES
    for by in SEGMENTS
]


@pytest.mark.parametrize(("source", "by"), CELLS)
def test_every_source_gives_what_data_in_memory_give(source, by, tmp_path, request):
    if source == "spark":
        rows = request.getfixturevalue("session").createDataFrame(case().table)
    else:
        rows = SOURCES[source](case().table, tmp_path / "data")
    columns = SEGMENTS[by]
    found, expected = ss.evaluate(rows, times=TIMES, by=columns), wanted(columns)
    same(getattr(found, "total", found), getattr(expected, "total", expected), score=1e-10, se=1e-10)
    if columns:
        assert set(found.parts) == set(expected.parts)
        for label, part in found.parts.items():
            same(part, expected.parts[label], score=1e-10, se=1e-10)
