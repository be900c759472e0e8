import datetime as dt
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sksurv.util import Surv

import survscore as ss


@pytest.fixture
def y():
    return ss.Outcomes([2, 5, 3, 4], [1, 0, 1, 0], [4, 5, 8, 6])


def assert_same(a, b):
    np.testing.assert_array_equal(a.time, b.time)
    np.testing.assert_array_equal(a.event, b.event)
    np.testing.assert_array_equal(a.censoring_time, b.censoring_time)


@pytest.mark.parametrize("event", [[1, 0], [True, False], np.array([1, 0], dtype=object), torch.tensor([1, 0])])
def test_takes_arrays_of_any_kind(event):
    y = ss.Outcomes(torch.tensor([2.0, 3.0], requires_grad=True), event, pd.Series([3, 3], index=[7, 7]))
    assert y.event.tolist() == [True, False]
    assert y.time.dtype == y.censoring_time.dtype == np.float64


def test_is_a_read_only_copy():
    time = np.array([1.0, 2.0])
    y = ss.Outcomes(time, [1, 0])
    time[0] = -5
    assert y.time[0] == 1
    for array in (y.time, y.event, y[:1].time, y[[0]].event):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, np.nan], [1, 0]), r"time must be finite: 1 of 2 is not, the first at position 1 \(nan\)"),
        ((["a", "b"], [1, 0]), "time must hold numbers, not <U1"),
        (([1, 2], [1]), "event has length 1, but time has length 2"),
        (([1, 2], ["yes", "no"]), "event must hold booleans or 0 and 1"),
        (([1, 9, 9], [1, 1, 0], [3, 4, 5]), r"not exceed censoring_time: 2 of 3 do, .* position 1 \(9.0 > 4.0\)"),
        (([1, 2], [1, 2]), "If 1 means censored and 2 the event, pass event == 2"),
        ((np.array(["2017-01-01"], dtype="M8[D]"), [1]), "time holds dates; use Outcomes.from_dates"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ss.InputError, match=message):
        ss.Outcomes(*arguments)


def test_dropped_out(y):
    assert y.dropped_out.tolist() == [False, False, False, True]
    assert "1 drop-out" in repr(y)
    with pytest.raises(ss.InputError, match="needs censoring_time"):
        _ = ss.Outcomes([1], [0]).dropped_out


def test_picking_keeps_every_field(y):
    mask = np.array([True, False, True, False])
    expected = ss.Outcomes([2, 3], [1, 1], [4, 8])
    for key in (mask, [0, 2], np.array([0, 2]), slice(0, 4, 2), pd.Series(mask)):
        assert_same(y[key], expected)
    assert_same(y[2], ss.Outcomes([3], [1], [8]))
    assert_same(y[-1], ss.Outcomes([4], [0], [6]))
    assert len(y[[]]) == 0
    assert [len(one) for one in y] == [1, 1, 1, 1]
    with pytest.raises(IndexError):
        y[4]


def test_concatenate_keeps_every_field(y):
    assert_same(ss.Outcomes.concatenate([y[:1], y[1:]]), y)
    without = ss.Outcomes([1], [0])
    assert ss.Outcomes.concatenate([without, without]).censoring_time is None
    with pytest.raises(ss.InputError, match="1 of 2 have one"):
        ss.Outcomes.concatenate([y, without])


# Data frames


FRAME = {"t": [2, 5, 3], "d": [True, False, True], "c": [4.0, 5.0, 8.0]}


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        lambda data: pd.DataFrame(data, index=[5, 5, 1]).convert_dtypes(),
        pl.DataFrame,
        lambda data: pl.DataFrame(data).lazy(),
        pa.table,
        lambda data: duckdb.from_arrow(pa.table(data)),
    ],
    ids=["pandas", "pandas-nullable", "polars", "polars-lazy", "pyarrow", "duckdb"],
)
def test_from_frame(make):
    y = ss.Outcomes.from_frame(make(FRAME), time="t", event="d", censoring_time="c")
    assert_same(y, ss.Outcomes(FRAME["t"], FRAME["d"], FRAME["c"]))


def test_from_frame_names_what_is_wrong():
    frame = pl.DataFrame({"t": [1, None], "d": [1, 0]})
    with pytest.raises(ss.InputError, match=r"event: there is no column 'x'; the columns are \['t', 'd'\]"):
        ss.Outcomes.from_frame(frame, time="t", event="x")
    with pytest.raises(ss.InputError, match="time: column 't' has 1 missing value"):
        ss.Outcomes.from_frame(frame, time="t", event="d")


def test_structured_arrays(y):
    """As scikit-survival makes and takes them, and with censoring times, which are found by type and name."""
    theirs = Surv.from_arrays([True, False], [3.0, 4.0], name_event="dead", name_time="days")
    assert_same(ss.Outcomes.from_structured(theirs), ss.Outcomes([3, 4], [1, 0]))
    assert y.to_structured().dtype.names == ("event", "time")
    array = y.to_structured(censoring_time=True)
    renamed = array[["censoring_time", "time", "event"]].astype([("censoring_time", float), ("t", float), ("d", bool)])
    for same in (array, np.asarray(y), renamed):
        assert_same(ss.Outcomes.from_structured(same), y)
    with pytest.raises(ss.InputError, match="structured"):
        ss.Outcomes.from_structured(np.zeros(2, dtype=[("a", float), ("b", float)]))
    with pytest.raises(ss.InputError, match="given twice"):
        ss.Outcomes.from_structured(array, censoring_time=y.censoring_time)
    with pytest.raises(ss.InputError, match="it is unknown in these outcomes"):
        ss.Outcomes([1], [1]).to_structured(censoring_time=True)


# Dates


def test_from_dates_applies_every_rule():
    y = ss.Outcomes.from_dates(
        start=["2017-01-01", "2017-01-01", "2017-01-19", "2017-01-29", "2017-01-01"],
        event_date=["2017-01-11", None, "2017-02-10", None, "2017-01-29"],
        cutoff="2017-01-29",
    )
    # an event, none, one after the cut-off, a start on the cut-off, an event on the cut-off
    assert y.time.tolist() == [10, 28, 10, 0, 28]
    assert y.event.tolist() == [True, False, False, False, True]
    assert y.censoring_time.tolist() == [28, 28, 10, 0, 28]
    assert not y.dropped_out.any()


def test_from_dates_recognises_drop_outs():
    y = ss.Outcomes.from_dates(
        start=["2017-01-01"] * 5,
        event_date=[None, None, None, "2017-01-20", "2017-03-01"],
        cutoff="2017-01-29",
        last_seen=["2017-01-11", "2017-02-15", None, "2017-01-05", "2017-01-11"],
    )
    # lost; seen after the cut-off; unknown, so followed up; an event that was seen all the same; lost, late event
    assert y.time.tolist() == [10, 28, 28, 19, 10]
    assert y.event.tolist() == [False, False, False, True, False]
    assert y.dropped_out.tolist() == [True, False, False, False, True]


@pytest.mark.parametrize(("unit", "expected"), [("W", 2), ("min", 20160)])
def test_from_dates_units(unit, expected):
    y = ss.Outcomes.from_dates(["2020-01-01"], [None], "2020-01-15", unit=unit)
    assert y.time.tolist() == [expected]


@pytest.mark.parametrize(
    "start",
    [
        np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"),
        pd.to_datetime(pd.Series(["2020-01-01", "2020-01-02"], index=[9, 3])),
        pl.Series([dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 2, 0, 0)],
        pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
        ["2020-01-01", "2020-01-02T00:00:00"],
    ],
    ids=["numpy", "pandas", "polars", "datetime", "pyarrow", "text"],
)
def test_from_dates_takes_dates_of_any_kind(start):
    y = ss.Outcomes.from_dates(start, [None, None], dt.date(2020, 1, 11))
    assert y.time.tolist() == [10, 9]


def test_from_dates_with_time_zones():
    start = pd.to_datetime(["2020-01-01T00:00+00:00"]).tz_convert("Europe/Oslo")
    y = ss.Outcomes.from_dates(start, [pd.NaT], pd.Timestamp("2020-01-02T00:00+01:00"), unit="h")
    assert y.time.tolist() == [23]
    with pytest.raises(ss.InputError, match="must all have a time zone, or none, not only start"):
        ss.Outcomes.from_dates(start, [None], "2020-01-02")
    # in text, across a change of the clocks
    y = ss.Outcomes.from_dates(["2020-03-28T12:00+01:00", "2020-03-29T12:00+02:00"], [None] * 2, "2020-03-30T00:00Z")
    np.testing.assert_allclose(y.time, [37 / 24, 14 / 24])


def test_a_cutoff_without_time_of_day_is_its_midnight():
    y = ss.Outcomes.from_dates(["2017-01-01"] * 2, ["2017-01-29 15:00", "2017-01-29"], "2017-01-29")
    assert y.event.tolist() == [False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": ["2017-01-01", "soon"]}, r"start must be dates .*\(text as 2017-01-29\): 1 of 2 .* \(soon\)"),
        ({"event_date": ["9999-12-31", None]}, r"dates from 1678 to 2262, missing where there is none .*9999-12-31"),
        ({"start": [20170101, 20170102]}, "start must hold dates, not numbers; for yyyymmdd use"),
        ({"event_date": ["2016-12-31", None]}, r"event_date must be on or after start: 1 of 2 .* \(2016-12-31"),
        ({"cutoff": "2017-01-01"}, "1 individual of 2 with a start after the cut-off, .* 1 .*late_starts='drop'"),
    ],
)
def test_from_dates_names_what_is_wrong(change, message):
    arguments = {"start": ["2017-01-01", "2017-01-02"], "event_date": [None, None], "cutoff": "2017-01-29"} | change
    with pytest.raises(ss.InputError, match=message):
        ss.Outcomes.from_dates(**arguments)


def test_the_event_s_time_as_censoring_time_is_a_warning():
    time, event = np.arange(1.0, 21.0), np.arange(20) % 2 == 0
    with pytest.warns(UserWarning, match="all individuals with event have it exactly at their censoring_time"):
        ss.Outcomes(time, event, time)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.Outcomes(time, event, time + (np.arange(20) == 0))  # one of them was followed longer
        ss.Outcomes(time[:8], event[:8], time[:8])  # few may do so by chance
        ss.Outcomes(time, event)


def test_until_is_what_an_earlier_end_would_have_shown():
    rng = np.random.default_rng(1)
    event_time, end, earlier = rng.exponential(5, 300).round(), rng.integers(1, 10, 300), rng.integers(0, 12, 300)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    for cut in (4, earlier):
        wanted_end = np.minimum(end, cut)
        found = y.until(cut)
        assert np.array_equal(found.time, np.minimum(event_time, wanted_end))
        assert np.array_equal(found.event, event_time <= wanted_end)
        assert np.array_equal(found.censoring_time, wanted_end)
    assert ss.Outcomes(y.time, y.event).until(4).censoring_time is None
    assert np.array_equal(y.until(np.inf).time, y.time)


def dated(n=200, seed=0):
    """Dates with everything that happens: events on closing days, drop-outs, late starts, cut-offs that differ."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2015-01-01") + rng.integers(0, 900, n)
    event = (start + rng.integers(0, 1500, n)).astype("M8[ns]")
    event[rng.random(n) < 0.3] = np.datetime64("NaT")
    lost = (start + rng.integers(0, 1500, n)).astype("M8[ns]")
    lost[rng.random(n) < 0.7] = np.datetime64("NaT")
    event[:5] = np.datetime64("2017-03-01")  # on the closing day
    start[:5] = np.datetime64("2016-12-31")
    event = np.where(event > lost, np.datetime64("NaT"), event)  # of the lost no later event is known
    return start, event, lost


@pytest.mark.parametrize("unit", ["D", "M"])
@pytest.mark.parametrize("day", ["2016-06-01", "2017-03-01", "2018-11-30T12:00", "2030-01-01"])
def test_as_of_is_from_dates_with_that_cut_off(unit, day):
    start, event, lost = dated()
    end = np.datetime64("2018-12-31")
    whole = ss.Outcomes.from_dates(start, event, end, unit=unit, last_seen=lost)
    there = start <= np.datetime64(day)
    cutoff = min(np.datetime64(day), end)
    # truncated by hand: what had not happened yet was not known
    known, seen = (np.where(dates <= cutoff, dates, np.datetime64("NaT")) for dates in (event, lost))
    anew = ss.Outcomes.from_dates(start[there], known[there], cutoff, unit=unit, last_seen=seen[there])
    then = whole[there].as_of(day)
    assert_same(then, anew)
    again = then[then.dates.start <= np.datetime64("2016-01-01")].as_of("2016-01-01")  # twice is once
    assert_same(again, whole[start <= np.datetime64("2016-01-01")].as_of("2016-01-01"))
    if not there.all():
        with pytest.raises(ss.InputError, match=f"{int((~there).sum())} individuals of 200 with a start after"):
            whole.as_of(day)
        with pytest.warns(UserWarning, match="left out"):
            assert_same(whole.as_of(day, late_starts="drop"), anew)


def test_dates_go_with_individuals_and_not_with_other_ends():
    start, event, lost = dated(50)
    y = ss.Outcomes.from_dates(start, event, "2018-12-31", last_seen=lost)
    some = y[[3, 1, 30]]
    np.testing.assert_array_equal(some.dates.start, y.dates.start[[3, 1, 30]])
    assert_same(ss.Outcomes.concatenate([y[:20], y[20:]]).as_of("2018-01-01"), y.as_of("2018-01-01"))
    weeks = ss.Outcomes.from_dates(start, event, "2018-12-31", last_seen=lost, unit="W")
    for without in (y.until(100), ss.Outcomes(y.time, y.event), ss.Outcomes.concatenate([y, weeks])):
        with pytest.raises(ss.InputError, match=r"as_of needs outcomes that were made by Outcomes.from_dates"):
            without.as_of("2018-01-01")


def test_weights_may_be_given_with_the_outcomes():
    y = ss.Outcomes([1, 2, 4], [1, 0, 1], [5, 2, 4], weights=[2, 1, 0.5])
    np.testing.assert_array_equal(y[[2, 0]].weights, [0.5, 2])
    assert y.weight_kind == "probability"
    with pytest.raises(ss.InputError, match="sample weights have no place in an array of outcomes"):
        np.asarray(y)


def test_weights_of_dated_outcomes_are_of_all_individuals_and_stay_with_them():
    starts, events = ["2017-01-01", "2017-03-01", "2017-01-05"], ["2017-01-10", None, None]
    with pytest.warns(UserWarning, match="1 individual"):
        y = ss.Outcomes.from_dates(starts, events, "2017-02-01", late_starts="drop", weights=[1, 2, 3])
    np.testing.assert_array_equal(y.weights, [1, 3])
    with pytest.warns(UserWarning, match="1 individual"):
        then = y.as_of("2017-01-03", late_starts="drop")
    np.testing.assert_array_equal(then.weights, [1])
    np.testing.assert_array_equal(y.at_landmark(10).outcomes.weights, [3])
