"""States: the same sums for any partition, the numbers of data in memory, and what they refuse."""

import hashlib
import json
import zlib
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import survscore as ss
from cluster_case import check_alike
from combinations import every_pair, examples
from registry import one_curve, without_predictions
from scale_tables import make, same
from survscore.scale import ModelColumns, State, evaluate_state, specify

WEIGHTINGS = {
    "administrative": "administrative",
    "administrative capped": ss.Administrative(max_weight=1.05),
    "fixed population": ss.Administrative(population="fixed"),
    "population from 100 on": ss.Administrative(population=100.0),
    "ipcw": "ipcw",
    "ipcw capped": ss.IPCW(max_weight=1.5),
}


def compared(case, weighting, metric="brier", **more):
    weighting = without_predictions(weighting)
    return ss.compare(case.y, case.models, weighting=weighting, metric=metric, times=case.times, null=False, **more)


@every_pair(drop_outs=[False, True], name=WEIGHTINGS, metric=["brier", "log", ss.metrics.Log(1e-3)])
def test_results_are_those_of_data_in_memory(name, metric, drop_outs):
    case = make(drop_outs=drop_outs)
    weighting = WEIGHTINGS[name]
    what = specify(case.table.schema, weighting=weighting, metric=metric, bins="units")
    same(State(what).update(case.table).result(), compared(case, weighting, metric))


@pytest.mark.filterwarnings("ignore::survscore.DelayedEntryWarning")  # predictions are of data with follow-up
def test_uncensored():
    case = make(drop_outs=False)
    y = ss.Outcomes(np.maximum(case.y.time, 1), np.ones(len(case.y), dtype=bool))
    table = case.table.drop_columns(["event", "censoring_time"]).append_column("event", pa.array(y.event))
    result = State(specify(table.schema, weighting="uncensored")).update(table).result()
    same(result, ss.compare(y, case.models, weighting="uncensored", times=case.times, null=False))


@pytest.mark.parametrize("bins", ["units", "exits"])
def test_evaluation_times_at_which_somebody_leaves(bins):
    """T = t = C*, drop-outs at t, events at t: every tie there is."""
    rng = np.random.default_rng(3)
    n, times = 400, np.arange(1.0, 7.0)
    end, event_time, leaves = rng.integers(1, 9, n), rng.integers(1, 12, n), rng.integers(1, 30, n)
    time = np.minimum(np.minimum(event_time, end), leaves)
    y = ss.Outcomes(time, event_time <= np.minimum(end, leaves), end)
    curves = np.sort(rng.random((2, n, 6)), axis=2)[:, :, ::-1]
    models = {name: ss.SurvivalCurves(values, times) for name, values in zip("ab", curves, strict=True)}
    columns = {"time": y.time, "event": y.event, "censoring_time": y.censoring_time}
    columns |= {f"{name}:{t:g}": curves[k][:, j] for k, name in enumerate("ab") for j, t in enumerate(times)}
    table = pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})
    for weighting in ("administrative", "ipcw"):
        leaving = y.dropped_out if weighting == "administrative" else ~y.event
        chosen = bins if bins == "units" else np.unique(y.time[leaving])
        what = specify(table.schema, weighting=weighting, bins=chosen)
        with np.errstate(all="ignore"):
            expected = ss.compare(y, models, weighting=without_predictions(weighting), times=times, null=False)
        same(State(what).update(table).result(), expected)


@examples(10)
@given(st.data())
def test_any_partition_in_any_order_gives_the_same_sums(data):
    case = make(400, n_times=3)
    over_time, bins = data.draw(st.sampled_from([(False, "units"), (False, None), (True, None)]))
    case = make(400, n_times=3, drop_outs=bins is not None)
    by = data.draw(st.sampled_from([(), ("country",)]))
    weighting = data.draw(st.sampled_from(["administrative", "ipcw"] if bins else ["administrative"]))
    what = specify(case.table.schema, weighting=weighting, by=by, bins=bins, over_time=over_time)
    rows = case.table.combine_chunks().to_batches()[0]
    whole = State(what).update(rows)
    cuts = sorted({0, 400, *data.draw(st.lists(st.integers(1, 399), max_size=6))})
    parts = [rows.slice(start, stop - start) for start, stop in pairwise(cuts)]
    parts = data.draw(st.permutations(parts))
    streamed = State(what).update(iter(parts))
    check_alike(streamed, whole)
    states = [State(what, (str(i),)).update(part) for i, part in enumerate(parts)]
    while len(states) > 1:  # merged as a tree of any shape
        a, b = states.pop(), states.pop(data.draw(st.integers(0, len(states) - 1)))
        states.append(State.from_bytes((b + a).to_bytes()))
    check_alike(states[0], whole)


def test_predictions_between_columns_in_lists_and_to_be_made_monotone():
    case = make(drop_outs=False)
    inside = np.array([45.0, 100.0, 300.0])
    what = specify(case.table.schema, weighting=one_curve(), times=inside)
    expected = ss.compare(case.y, case.models, weighting=one_curve(), times=inside, null=False)
    same(State(what).update(case.table).result(), expected)
    lists = pa.array(list(case.models["a"].probabilities))
    table = case.table.append_column("curve", lists)
    model = ModelColumns("a", ("curve",), tuple(case.times))
    what = specify(table.schema, weighting="administrative", models={"a": model})
    alone = ss.compare(case.y, {"a": case.models["a"]}, weighting=one_curve(), times=case.times, null=False)
    same(State(what).update(table).result(), alone)
    with pytest.raises(ss.InputError, match=r"lists of the grid's 6 times; row 0 has 5"):
        State(what).update(table.set_column(table.num_columns - 1, "curve", pa.array([[0.5] * 5] * len(table))))


# What is refused


def test_the_same_file_is_not_counted_twice():
    case = make(300)
    what = specify(case.table.schema, weighting="administrative", bins="units")
    first, second = State(what, ("x|1|2",)).update(case.table), State(what, ("x|1|2", "y")).update(case.table)
    with pytest.raises(ss.InputError, match=r"1 file would be counted twice, the first x$"):
        first + second
    with pytest.raises(ss.InputError, match="can't be added: weightings differ"):
        first + State(specify(case.table.schema, weighting="ipcw", bins="units"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a:30": [1.2]}, "probabilities must be between 0 and 1"),
        ({"a:30": [np.nan]}, "probabilities must be without NaN"),
        ({"a:96": [0.99], "a:30": [0.5]}, "survival must not increase with time"),
        ({"time": [-1.0]}, "time must be"),
        ({"time": [1.5]}, "times must be whole numbers"),
        ({"time": [20_000.0], "censoring_time": [20_000.0]}, "too many units"),
    ],
)
def test_bad_rows(change, message):
    table = make(5, drop_outs=False).table
    for name, (value,) in change.items():
        values = table.column(name).to_numpy().astype(float)
        values[2] = value
        column = pa.array(values).cast(table.schema.field(name).type)
        table = table.set_column(table.column_names.index(name), name, column)
    what = specify(table.schema, weighting="ipcw", bins="units")
    with pytest.raises(ss.InputError, match=message):
        State(what).update(table)


def test_drop_outs_need_bins():
    case = make(300)
    with pytest.raises(ss.InputError, match="left before C\\*, but this state has no bins"):
        State(specify(case.table.schema, weighting="administrative")).update(case.table)
    strict = specify(case.table.schema, weighting=ss.Administrative(dropout="refuse"))
    with pytest.raises(ss.InputError, match="dropped out before"):
        State(strict).update(case.table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weighting": None}, "weighting must be given"),
        ({"weighting": ss.IPCW(lambda t: 1.0)}, "can't be had for data that come in parts"),
        ({"weighting": "ipcw", "times": [1000]}, "'a' ends at 360"),
        ({"weighting": "ipcw", "by": "planet"}, "there is no column 'planet'"),
        ({"weighting": "ipcw", "models": ["c"]}, "there is no model 'c'"),
        ({"weighting": "ipcw", "models": "x_{time}"}, "no column is named like"),
    ],
)
def test_bad_specifications(options, message):
    with pytest.raises(ss.InputError, match=message):
        specify(make(5).table.schema, **options)


def test_nobody_is_no_result():
    what = specify(make(5).table.schema, weighting="administrative")
    with pytest.raises(ss.InputError, match="no rows to score"):
        State(what).result()
    with pytest.raises(ss.InputError, match="not a state"):
        State.from_bytes(b"pickle")


def test_sums_of_many_rows_keep_their_digits():
    """A plain running sum of so many equal terms would be off in the tenth digit."""
    n = 3 * (1 << 18)
    columns = {"time": np.full(n, 5.0), "event": np.zeros(n, dtype=bool), "censoring_time": np.full(n, 5.0)}
    table = pa.table({**columns, "a:1": np.full(n, 0.7)})
    what = specify(table.schema, weighting="administrative", metric=["brier", "log"])
    result = State(what).update(table).result()
    np.testing.assert_allclose(result.scores["score"], [0.3**2, -np.log(0.7)], rtol=1e-13)


# States that nobody made


def parts_of(stored):
    """Return the first line, the header and the numbers of a state."""
    line, body = stored.split(b"\n", 1)
    body = body[32:]
    size = int.from_bytes(body[:8], "little")
    return line, json.loads(body[8 : 8 + size]), zlib.decompress(body[8 + size :])


def forged(line, header, numbers):
    """Return a state of these, with a checksum that fits."""
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + zlib.compress(numbers, 1)
    return line + b"\n" + hashlib.sha256(body).digest() + body


@pytest.fixture(scope="module")
def genuine():
    table = make(300).table
    what = specify(table.schema, weighting=["administrative", "ipcw"], by="country", bins="units")
    return State(what, ("a|1|x|y",)).update(table).to_bytes()


def test_what_is_taken_apart_is_the_same_again(genuine):
    again = State.from_bytes(forged(*parts_of(genuine)))
    assert again.to_bytes() == genuine


@pytest.mark.parametrize(
    "change",
    [
        {"n": -1}, {"n": 301}, {"n": "300"}, {"n": True}, {"n_dropped_out": 301},
        {"segments": [["DE"], ["FR"]]}, {"segments": [["DE"], ["DE"], ["FR"]]}, {"segments": "DE"},
        {"bins": 0}, {"bins": 10**9}, {"bins": 320.0}, {"files": [1]}, {"skipped": {"a": 1}}, {"specification": {}},
    ],
    ids=str,
)  # fmt: skip
def test_headers_that_do_not_fit_their_numbers_are_refused(genuine, change):
    line, header, numbers = parts_of(genuine)
    with pytest.raises(ss.InputError, match=r"not a state|not a specification|a state of"):
        State.from_bytes(forged(line, {**header, **change}, numbers))


@pytest.mark.parametrize("name", ["times", "models", "metrics", "weightings", "bins", "outcomes", "over_time", "by"])
@pytest.mark.parametrize("value", [[], None, "x", -1, [[]], {}], ids=str)
def test_specifications_that_do_not_fit_are_refused(genuine, name, value):
    line, header, numbers = parts_of(genuine)
    header["specification"][name] = value
    with pytest.raises(ss.InputError):
        State.from_bytes(forged(line, header, numbers))


@settings(max_examples=200)
@given(st.data())
def test_numbers_that_individuals_can_not_make_are_refused(genuine, data):
    line, header, numbers = parts_of(genuine)
    values = np.frombuffer(numbers, dtype="<f8").copy()
    place = data.draw(st.integers(0, values.size - 1))
    values[place] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300]))
    with pytest.raises(ss.InputError, match="not a state of survscore: its"):
        State.from_bytes(forged(line, header, values.tobytes()))


def test_a_small_file_makes_no_large_numbers(genuine):
    """Megabytes of zeros are compressed to kilobytes: no more is unpacked than the specification asks for."""
    line, header, numbers = parts_of(genuine)
    bomb = forged(line, header, numbers + bytes(1 << 27))
    assert len(bomb) < 1 << 21
    with pytest.raises(ss.InputError, match="does not have the"):
        State.from_bytes(bomb)
    header["bins"], header["specification"]["times"] = 16384, [float(t) for t in range(1, 2000)]
    for one in header["specification"]["models"]:
        one["grid"], one["columns"] = header["specification"]["times"], [str(t) for t in range(1, 2000)]
    with pytest.raises(ss.InputError, match="fit in memory"):
        State.from_bytes(forged(line, header, numbers), 1 << 30)


def test_states_of_other_versions_are_refused(genuine):
    with pytest.raises(ss.InputError, match="a state of version 1: this version of survscore reads 2; make it anew"):
        State.from_bytes(b"survscore state 1\n" + genuine.split(b"\n", 1)[1])


def test_states_hold_no_absolute_paths(tmp_path):
    state = evaluate_state(make(100).write(tmp_path / "files", 2), weighting="administrative")
    assert str(tmp_path).encode() not in parts_of(state.to_bytes())[1].__repr__().encode()
    assert [one.split("|")[0] for one in state.files] == ["part-0000.parquet", "part-0001.parquet"]
