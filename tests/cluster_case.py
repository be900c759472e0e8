"""One data set in many forms, and what its sums are; shared by the tests of engines."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import survscore as ss
from survscore._utils.jobs import silent
from survscore.scale import State, specify
from survscore.scale.running import Run
from survscore.scale.sources import identified, open_source

N = 4000
TIMES = (10.0, 20.0, 40.0)
MODELS = ("net", "cox")
WEIGHTINGS = ("administrative", "ipcw")


def rows(n=N):
    """Whole days, in which some drop out."""
    rng = np.random.default_rng(11)
    lifetime, end = np.ceil(rng.exponential(30, n)), np.ceil(rng.uniform(10, 60, n))
    columns = {
        "time": np.minimum(lifetime, end),
        "event": (lifetime <= end) & (rng.random(n) > 0.1),
        "censoring_time": end,
        "country": np.array(["DE", "FR", "IT"])[rng.integers(0, 3, n)],
    }
    for name in MODELS:
        rate = rng.uniform(0.01, 0.06, n)
        for at in TIMES:
            columns[f"{name}:{at:g}"] = np.exp(-rate * at).astype(np.float32)
    return pa.table(columns)


def in_files(folder, table, count):
    """Write the rows, in another order, into so many files."""
    folder.mkdir(parents=True)
    shuffled = table.take(np.random.default_rng(count).permutation(len(table)))
    size = -(-len(table) // count)
    for k in range(count):
        pq.write_table(shuffled.slice(k * size, size), folder / f"{k:03d}.parquet")
    return folder


def sums(source, engine=None, *, by="country", metric=("brier", "log"), weighting=WEIGHTINGS, state=None, seen=silent):
    """Return the state of all rows, however they come."""
    opened = identified(open_source(source))
    what = specify(opened.schema(), weighting=weighting, metric=metric, by=by)
    return Run(opened, engine, False, False, state, None, seen).state(what)


def check_alike(state, other):
    """Two states hold the same sums, within rounding, but for the names of files."""
    one, two = (State.from_bytes(each.to_bytes()) for each in (state, other))
    assert (one.segments, one.n, one.n_dropped_out) == (two.segments, two.n, two.n_dropped_out)
    assert one.specification == two.specification
    for mine, theirs in zip(one.sums, two.sums, strict=True):
        for name, values in mine.values.items():
            if values.dtype.kind == "i":
                np.testing.assert_array_equal(values, theirs[name], err_msg=name)
            else:
                scale = np.abs(values).max(initial=1e-300)
                np.testing.assert_allclose(values, theirs[name], rtol=1e-12, atol=1e-12 * scale, err_msg=name)


def in_memory(table):
    """Return the comparison of the same rows without any of this."""
    outcomes = ss.Outcomes(*(table[name].to_numpy() for name in ("time", "event", "censoring_time")))
    curves = {
        name: ss.SurvivalCurves(np.stack([table[f"{name}:{at:g}"].to_numpy() for at in TIMES], axis=1), TIMES)
        for name in MODELS
    }
    weightings = [ss.Administrative(dropout_strata=None) if one == "administrative" else one for one in WEIGHTINGS]
    return ss.compare(outcomes, curves, weighting=weightings, metric=("brier", "log"), times=TIMES, null=False)


def check_close(result, memory):
    """Scores and errors agree with those in memory."""
    for mine, theirs in ((result.scores, memory.scores), (result.contrasts, memory.contrasts)):
        assert len(mine) == len(theirs)
        numbers = [name for name in mine.columns if mine[name].dtype == float and name in theirs.columns]
        numbers = [name for name in numbers if name != "bound_p_value"]  # needs each of the lost, not only sums
        assert len(numbers) > 2
        for name in numbers:
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-12 if name == "score" else 1e-8, atol=1e-12)


def spoiled(folder):
    """Cut one file of a folder in the middle, and return its name."""
    path = sorted(folder.iterdir())[7]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return str(path)
