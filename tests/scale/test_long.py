"""Predictions with a row for each individual and time: the scores of the same predictions side by side."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import survscore as ss
from scale_tables import make, same
from survscore.io import Form
from survscore.scale.joining import pivoted
from survscore.scale.sources import open_source

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def case():
    return make(400, n_times=3, dtype=np.float64)


def outcomes_of(case):
    table = case.table.select(["time", "event", "censoring_time", "country"])
    return table.append_column("id", pa.array([f"i{k:03d}" for k in range(len(table))]))


def long_of(case, seed=3):
    """Return a row for each individual and time, in any order, with a column for each model."""
    n, times = len(case.y), case.times
    columns = {"id": np.repeat([f"i{k:03d}" for k in range(n)], times.size), "time": np.tile(times, n)}
    columns |= {name: curves.probabilities.ravel() for name, curves in case.models.items()}
    return pa.table(columns).take(np.random.default_rng(seed).permutation(n * times.size))


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_long_predictions_are_pivoted(case, tmp_path):
    long, outcomes = long_of(case), outcomes_of(case)
    asked = {"weighting": ["administrative", "projected"], "by": "country"}
    wanted = ss.evaluate(case.table, **asked)
    (tmp_path / "long").mkdir()
    for k in range(3):  # rows of an individual may be in several files
        pq.write_table(long.slice(k * 400, 400), tmp_path / "long" / f"{k}.parquet")
    found = ss.evaluate(tmp_path / "long", outcomes_from=outcomes, form=Form(long=True), **asked)
    same(found.total, wanted.total, score=1e-10, se=1e-10)
    assert set(found.parts) == set(wanted.parts)


def test_some_times_of_one_model_under_another_name(case):
    long = long_of(case).select(["id", "time", "a"]).rename_columns(["who", "day", "survival"])
    outcomes = outcomes_of(case).rename_columns(["time", "event", "censoring_time", "country", "who"])
    found = ss.evaluate(
        long, outcomes_from=outcomes, id="who", times=case.times[:2], form=Form(time_column="day"),
        weighting="administrative",
    )  # fmt: skip
    wanted = ss.evaluate(case.table, models=["a"], times=case.times[:2], weighting="administrative")
    np.testing.assert_allclose(found.scores["score"], wanted.scores["score"], rtol=1e-12)
    assert set(found.scores["model"]) == {"predictions"}


def test_causes_and_labels(case):
    long = long_of(case).select(["id", "time", "a"]).rename_columns(["id", "time", "net"])
    long = long.append_column("plan", pc.utf8_slice_codeunits(long["id"], 3))
    both = [long.append_column("cause", pa.array([cause] * len(long))) for cause in ("it's churn", "cause 2")]
    source = pivoted(open_source(pa.concat_tables(both)), id="id")
    times = [f"{float(time)!r}" for time in case.times]
    assert source.schema().names == ["id", *(f"net:{c}@{t}" for t in times for c in ("2", "it's churn")), "plan"]
    batch = pa.Table.from_batches(source.batches(["plan", "id", f"net:2@{times[1]}"]))
    assert batch["plan"].to_pylist() == [one[3] for one in batch["id"].to_pylist()]
    order = np.argsort(batch["id"].to_pylist())
    np.testing.assert_array_equal(batch[2].to_numpy()[order], case.models["a"].probabilities[:, 1])


@pytest.mark.parametrize("change", ["missing", "twice", "no times", "without outcomes"])
def test_what_is_no_long_form(case, change):
    long, outcomes = long_of(case), outcomes_of(case)
    message = "long form needs one row for each individual at each of 3 times: 1 id with more or fewer, the first 'i0"
    if change == "missing":
        long = long.slice(1)
    elif change == "twice":
        long = pa.concat_tables([long, long.slice(0, 1)])
    elif change == "no times":
        long, message = long.drop_columns(["time"]), "long form needs a column 'time'; the columns are 'id', 'a', 'b'"
    else:
        outcomes, message = None, "long form, .*, needs outcomes in a table of their own: `outcomes_from`"
    with pytest.raises(ss.InputError, match=message):
        ss.evaluate(long, outcomes_from=outcomes, form=Form(long=True), weighting="administrative")
