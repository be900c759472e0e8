"""Data as they lie in folders: outcomes with drop-outs and the predictions of two models, side by side."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TIMES = (30, 60, 90)
COUNTRIES = ("DE", "FR", "SE")


def rows(n, seed=1, *, whole=True, dropouts=True):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2, 0.005, n)
    event_time, end = np.ceil(rng.exponential(1 / rate)), np.floor(rng.uniform(20, 120, n))
    seen = np.where(rng.random(n) < 0.2, np.floor(end * rng.random(n)), end) if dropouts else end
    if not whole:
        event_time, end, seen = event_time + 0.25, end + 0.5, seen + 0.5
    columns = {
        "time": np.minimum(event_time, seen),
        "event": (event_time <= seen).astype(np.int8),
        "censoring_time": end,
        "country": rng.choice(COUNTRIES, n),
    }
    for name, wrong in (("net", 1.0), ("cox", 1.5)):
        columns |= {f"{name}:{time}": np.exp(-wrong * rate * time) for time in TIMES}
    return pa.table(columns)


def write(folder, files=6, n=50, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(files):
        pq.write_table(rows(n, k, **settings), folder / f"part-{k:03d}.parquet", row_group_size=max(n // 4, 1))
    return folder
