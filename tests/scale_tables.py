"""Data for tests of large data: the same rows as a table, and as outcomes and curves in memory."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import survscore as ss


@dataclass
class Case:
    table: pa.Table
    y: ss.Outcomes
    models: dict
    times: np.ndarray
    country: np.ndarray
    customer: np.ndarray

    def write(self, folder, n_files, *, order=None):
        """Write the rows as so many files; return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        rows = self.table if order is None else self.table.take(order)
        ends = np.linspace(0, len(self.table), n_files + 1).astype(int)
        for i, (start, stop) in enumerate(pairwise(ends.tolist())):
            pq.write_table(rows.slice(start, stop - start), folder / f"part-{i:04d}.parquet")
        return folder


def make(n=3000, seed=0, *, drop_outs=True, whole=True, n_times=6, dtype=np.float32):
    """Draw data in which some drop out (or none), in whole days (or not)."""
    rng = np.random.default_rng(seed)
    end, rate = rng.uniform(20, 400, n), rng.gamma(2, 0.002, n)
    event_time = rng.exponential(1 / rate)
    leaves = rng.exponential(2000, n) if drop_outs else np.full(n, np.inf)
    if whole:
        end, event_time, leaves = np.ceil(end), np.ceil(event_time), np.ceil(leaves)
    time, event = np.minimum(np.minimum(event_time, end), leaves), event_time <= np.minimum(end, leaves)
    times = np.linspace(30, 360, n_times).round()
    first = np.exp(-rate[:, None] * times).astype(dtype)
    second = np.clip(first ** np.exp(0.3 * rng.normal(size=(n, 1))), 0, 1).astype(dtype)
    country = rng.choice(["DE", "FR", "NO"], n, p=[0.6, 0.3, 0.1])
    customer = np.repeat(np.arange(-(-n // 3)), 3)[:n]
    columns = {"time": time, "event": event, "censoring_time": end, "country": country, "customer": customer}
    for name, curves in (("a", first), ("b", second)):
        columns |= {f"{name}:{t:g}": curves[:, j] for j, t in enumerate(times)}
    models = {"a": ss.SurvivalCurves(first, times), "b": ss.SurvivalCurves(second, times)}
    return Case(pa.table(columns), ss.Outcomes(time, event, end), models, times, country, customer)


def in_folders(table, names, folder, format="parquet"):
    """Write the rows below folders that are named after the values of some columns, which files do not have."""
    flavor = ds.partitioning(pa.schema([table.schema.field(name) for name in names]), flavor="hive")
    ds.write_dataset(table, folder, format=format, partitioning=flavor)
    return folder


def same(result, expected, *, score=1e-12, se=1e-7):
    """Hold the tables of a result against those of data in memory."""
    for name in ("scores", "contrasts"):
        got, want = getattr(result, name), getattr(expected, name)
        assert got.columns.tolist() == want.columns.tolist()
        scale = expected.scores["score"].abs().max()
        for column in got.columns.drop("bound_p_value", errors="ignore"):  # needs each of the lost, not only sums
            if want[column].dtype.kind != "f":
                assert (got[column] == want[column]).all(), column
            elif column in ("score", "difference", "bound_lower", "bound_upper"):
                np.testing.assert_allclose(got[column], want[column], rtol=0, atol=score * scale, err_msg=column)
            else:
                np.testing.assert_allclose(got[column], want[column], rtol=se, atol=se * scale, err_msg=column)
