import logging
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import survscore as ss

COUNTRIES = ("DE", "FR")


@pytest.fixture
def table():
    rng = np.random.default_rng(5)
    n = 60
    return pa.table(
        {
            "id": pa.array([f"i{k:03d}" for k in range(n)]),
            "duration": rng.exponential(10, n),
            "event": rng.random(n) < 0.5,
            "30": rng.random(n).astype(np.float32),
            "30.5": rng.random(n).astype(np.float32),
            "curve": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(3 * n)), 3),
        }
    )


@pytest.fixture
def folder(tmp_path, table):
    """Six files of ten rows, in folders that say a country, with the litter that other tools leave."""
    root = tmp_path / "data"
    for k in range(6):
        place = root / f"country={COUNTRIES[k % 2]}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(10 * k, 10), place / f"part-{k}.parquet", row_group_size=4)
    (root / "_SUCCESS").write_text("")
    (root / "country=DE" / ".part-0.parquet.crc").write_text("x")
    (root / "_tmp").mkdir()
    (root / "_tmp" / "part-9.parquet").write_text("half")
    return root


@pytest.fixture(scope="module")
def client():
    """A Dask client of two processes; tests that ask for it are left out where Dask is missing."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
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
def session(tmp_path_factory):
    """A Spark session with two executors; tests that ask for it are left out where Spark or Java is missing."""
    pyspark = pytest.importorskip("pyspark", reason="Spark is not installed")
    if sys.platform == "win32" or (shutil.which("java") is None and "JAVA_HOME" not in os.environ):
        pytest.skip("Spark needs Java, and on Windows programs of Hadoop that it does not bring")
    home = tmp_path_factory.mktemp("spark")
    for entry in Path(
        pyspark.__file__
    ).parent.iterdir():  # executors write into the folder of Spark: not the installed one
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    before = dict(os.environ)
    os.environ.update(SPARK_HOME=str(home), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            pyspark.sql.SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "OFF")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.executorEnv.PYTHONPATH", str(Path(ss.__file__).parents[1]))
            .getOrCreate()
        )
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gateway = session.sparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
    pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None
    os.environ.clear()
    os.environ.update(before)
