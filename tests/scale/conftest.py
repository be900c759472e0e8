import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
