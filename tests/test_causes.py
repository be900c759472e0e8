"""Outcomes with competing causes: every way in, what keeps the causes, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import survscore as ss
from combinations import examples
from survscore import Outcomes

NAMES = ("default", "repayment")
TIME, CODES, END = [2, 3, 5, 4], [1, 2, 0, 1], [6, 6, 5, 7]


@pytest.fixture
def y():
    return Outcomes(TIME, CODES, END, causes=NAMES)


# Arrays


@pytest.mark.parametrize(
    "event",
    [
        CODES,
        np.array(CODES, dtype=float),
        np.array(CODES, dtype=object),
        pd.Series(CODES, dtype="Int64"),
        pl.Series(CODES),
        torch.tensor(CODES),
    ],
    ids=["list", "float", "object", "pandas' own", "polars", "tensor"],
)
def test_codes_are_causes(event):
    for names in (None, NAMES):
        y = Outcomes(TIME, event, END, causes=names)
        assert y.causes == (names or ("1", "2"))
        assert y.cause.dtype == np.int8
        np.testing.assert_array_equal(y.cause, CODES)
        np.testing.assert_array_equal(y.event, [True, True, False, True])
        assert list(y.n_by_cause.values()) == [2, 1]
        assert not y.cause.flags.writeable


def test_events_of_one_kind_have_no_causes():
    y = Outcomes([1, 2, 3], [1, 0, 1])
    assert (y.causes, y.cause, y.n_by_cause) == ((), None, {})
    assert y.event_of_interest is y.event
    assert y.for_cause(1).interest == y.for_cause("1").interest == 0
    assert "cause" not in repr(y) + y._repr_html_()


def test_causes_of_a_mapping_are_in_the_order_of_their_codes():
    y = Outcomes(TIME, CODES, END, causes={"repayment": 2, "default": 1})
    assert y.causes == NAMES
    np.testing.assert_array_equal(y.cause, CODES)
    labelled = dated([2, 0, 1, 2], causes={"repayment": 2, "default": 1})
    assert labelled.for_cause(1).n_by_cause == {"default": 1, "repayment": 1}
    # curves without names have causes by number
    incidences = np.array([[[0.1, 0.2], [0.5, 0.6]]] * 4)
    scores = [
        ss.brier_score(y, ss.IncidenceCurves(given, [2, 4]), weighting="uncensored", times=[2], cause="default").scores
        for given in (incidences, {"default": incidences[:, 0], "repayment": incidences[:, 1]})
    ]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("codes", [(10, 20), (-1, 1), (1, 3)])
def test_numbers_name_no_cause_where_codes_are_others(codes):
    default, repayment = codes
    y = Outcomes([1, 2, 3], [repayment, 0, default], [4, 4, 4], causes={"b": repayment, "a": default})
    assert y.causes == ("a", "b")
    labelled = dated([repayment, 0, default, repayment], causes={"b": repayment, "a": default})
    kept = [y, y[[0, 2]], pickle.loads(pickle.dumps(y)), y.until(3), Outcomes.concatenate([y, y])]
    for one in (*kept, labelled, labelled.as_of("2020-02-10")):
        for number in (1, 2, default, repayment):
            with pytest.raises(ss.InputError, match=r"the name of a cause, not the number .*, since their codes"):
                one.for_cause(number)
        np.testing.assert_array_equal(one.for_cause("b").event_of_interest, one.cause == 2)
    unnamed = dated([20, 0, 10, 20])
    assert (unnamed.causes, unnamed.for_cause(20).chosen_cause) == (("10", "20"), "20")


@pytest.mark.parametrize(
    ("event", "names", "message"),
    [
        ([True, 2, 0], None, r"event must be all boolean or all codes of causes \(0, 1, 2, ...\), not both"),
        ([True, False, True], NAMES, r"event must hold the causes as numbers .* where causes are named, not bool"),
        (["a", "b", "c"], None, r"booleans or 0 and 1, not text \(map it to 0 and .*from_dates\(cause=\)"),
        ([-1, 2, 0], None, r"\(or boolean\), or the number of a cause \(1, 2, ...\): 1 of 3 is not, .* 0 \(-1\)"),
        ([0, 3, 1], NAMES, r"0 or the code of a cause, 1 \(default\) and 2 \(repayment\): 1 of 3 is not, .* 1 \(3\)"),
        (np.array([0, None, 2], dtype=object), NAMES, "event must be without missing values: 1 of 3 is not"),
        ([1, 2, 2], None, r"several codes and no 0.*If 1 means censored and 2 the event, pass event == 2; .*causes="),
        ([0, 1, 101], None, "event must be the number of a cause, at most 100, and one is 101"),
        ([0, 1, 2], ["", "b"], "causes must not have empty names: '' and 'b'"),
        ([0, 1, 2], ["a", "a"], "causes must have different names: 'a' and 'a'"),
        ([0, 1, 2], ["all", "b"], "no cause may be called 'all'"),
        ([0, 1, 2], "ab", "causes must be a sequence of names, or map names to codes, not 'ab'"),
        ([0, 1, 2], {"a": 1, "b": 0}, "causes must map names to different whole numbers other than 0"),
    ],
)  # fmt: skip
def test_bad_codes_and_names_are_named(event, names, message):
    with pytest.raises(ss.InputError, match=message):
        Outcomes([1, 2, 3], event, causes=names)


# Frames and structured arrays


@pytest.mark.parametrize("library", [pd, pl])
def test_from_a_frame(y, library):
    frame = library.DataFrame({"months": TIME, "end": CODES, "most": END})
    made = Outcomes.from_frame(frame, time="months", event="end", censoring_time="most", causes=NAMES)
    assert made.causes == NAMES
    np.testing.assert_array_equal(made.cause, y.cause)
    missing = library.DataFrame({"months": TIME, "end": [1, None, 0, 2]})
    with pytest.raises(ss.InputError, match="event: column 'end' has 1 missing values"):
        Outcomes.from_frame(missing, time="months", event="end")


def test_from_structured_and_back(y):
    for known in (True, False):
        made = Outcomes.from_structured(y.to_structured(censoring_time=known), causes=NAMES)
        assert made.causes == NAMES
        np.testing.assert_array_equal(made.cause, y.cause)
        assert (made.censoring_time is None) != known
    other = np.array([(1, 2.0), (2, 3.0)], dtype=[("status", int), ("days", float)])
    with pytest.raises(ss.InputError, match=r"whole numbers called 'event'.*its fields are \['status', 'days'\]"):
        Outcomes.from_structured(other)


# Dates

START = ["2020-01-01"] * 4
EVENT = ["2020-01-05", None, "2020-02-01", "2020-03-01"]
CUTOFF = "2020-02-15"


def dated(cause, **options):
    return Outcomes.from_dates(START, EVENT, CUTOFF, cause=cause, **options)


@pytest.mark.parametrize(
    ("cause", "causes"),
    [
        (["b", None, "a", "c"], ("a", "b", "c")),  # c was not seen yet, and is a cause
        (["b", "", "a", "b"], ("a", "b")),  # what stands where there is no date is not read
        ([10.0, np.nan, 9.0, 10.0], ("9", "10")),
        (pd.Categorical(["b", None, "a", "b"], categories=["b", "a", "z"]), ("a", "b")),
        (pl.Series(["b", None, "a", "b"]), ("a", "b")),
    ],
    ids=["text", "nothing", "floats", "categories", "polars"],
)
def test_from_dates_with_labels(cause, causes):
    y = dated(cause)
    assert y.causes == causes
    number = {name: k for k, name in enumerate(causes, 1)}
    first, second = ("10", "9") if "9" in causes else ("b", "a")
    np.testing.assert_array_equal(y.cause, [number[first], 0, number[second], 0])
    np.testing.assert_array_equal(y.time, [4, 45, 31, 45])


def test_from_dates_with_names():
    text = ["b", None, "a", "b"]
    assert dated(text, causes=["b", "a"]).n_by_cause == {"b": 1, "a": 1}
    assert dated(text, causes={"first": "b", "second": "a"}).n_by_cause == {"first": 1, "second": 1}
    for names in ({"x": 1, "y": 2}, ["x", "y"]):
        y = dated([2.0, np.nan, 1.0, 2.0], causes=names)
        assert y.causes == ("x", "y")
        np.testing.assert_array_equal(y.cause, [2, 0, 1, 0])


@pytest.mark.parametrize(
    ("cause", "options", "message"),
    [
        (["b", None, None, "b"], {}, r"given for each individual with event: 1 of 4 is not, .* position 2"),
        (["b", None, "c", "b"], {"causes": ["b", "a"]}, r"cause must be one of 'b' and 'a': 1 of 4 is not, .* 2 \(c\)"),
        ([1, 0, 0, 2], {}, r"number of a cause, 1 or larger, where .*: 1 of 4 is not, the first at position 2 \(0\)"),
        (None, {"causes": ["b"]}, "causes are names for what cause holds: give cause, too"),
    ],
)  # fmt: skip
def test_bad_labels_are_named(cause, options, message):
    with pytest.raises(ss.InputError, match=message):
        dated(cause, **options)


@pytest.mark.parametrize("earlier", ["2020-01-03", "2020-02-10"])
def test_as_of_is_from_dates_with_that_cutoff(earlier):
    labels = ["b", None, "a", "b"]
    then = dated(labels).for_cause("b").as_of(earlier)
    expected = Outcomes.from_dates(START, EVENT, earlier, cause=labels, causes=["a", "b"])
    assert (then.causes, then.interest) == (expected.causes, 2)
    for name in ("time", "event", "cause", "censoring_time"):
        np.testing.assert_array_equal(getattr(then, name), getattr(expected, name))


# What keeps the causes


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 3)), min_size=1, max_size=20), st.floats(0, 6), st.data())
@examples(20)
def test_picking_joining_and_ending_earlier_keep_causes(seen, end, data):
    y = Outcomes([time for time, _ in seen], [code for _, code in seen], [6.0] * len(seen), causes=["a", "b", "c"])
    rows = data.draw(st.lists(st.integers(0, len(seen) - 1), min_size=1, max_size=6))
    np.testing.assert_array_equal(y[rows].cause, y.cause[rows])
    joined = Outcomes.concatenate([y[[row]] for row in rows])
    np.testing.assert_array_equal(joined.cause, y.cause[rows])
    assert joined.causes == ("a", "b", "c")
    earlier = y.until(end)
    np.testing.assert_array_equal(earlier.cause, np.where(y.time <= end, y.cause, 0))
    for code, name in enumerate(y.causes, 1):  # a cause of interest commutes with all of these
        chosen = y.for_cause(name)
        np.testing.assert_array_equal(chosen.event_of_interest, y.cause == code)
        for one, other in ((chosen[rows], y[rows]), (chosen.until(end), earlier)):
            np.testing.assert_array_equal(one.event_of_interest, other.for_cause(name).event_of_interest)


def test_copies_and_devices_keep_causes(y):
    chosen = y.for_cause("repayment")
    for made in (pickle.loads(pickle.dumps(chosen)), chosen.to("cpu"), chosen.to("cpu").numpy(), chosen[:]):
        assert (made.causes, made.interest) == (NAMES, 2)
        np.testing.assert_array_equal(np.asarray(made.event_of_interest), [False, True, False, False])
    there = y.to("cpu")
    assert isinstance(there.cause, torch.Tensor)
    np.testing.assert_array_equal(there.until(2).cause, [1, 0, 0, 0])
    np.testing.assert_array_equal(Outcomes.concatenate([there, there[[1]]]).cause, [*CODES, 2])


def test_the_cause_of_interest(y):
    with pytest.raises(ss.InputError, match=r"y has competing causes \('default', 'repayment'\): say which one scores"):
        _ = y.event_of_interest
    np.testing.assert_array_equal(y.for_cause("default").event_of_interest, [True, False, False, True])
    np.testing.assert_array_equal(y.for_cause(2).event_of_interest, [False, True, False, False])
    assert not y.for_cause("default").dropped_out.any()
    assert Outcomes([1, 2], [1, 2], causes=("2", "1")).for_cause("1").interest == 2  # a name comes before a number
    for cause in ("cure", "1", 0, 3, 1.0, True):
        with pytest.raises(ss.InputError, match=r"must be the name of a cause, .* not .*; the causes are 'default'"):
            y.for_cause(cause)
    with pytest.raises(ss.InputError, match="y has events of one kind, so that cause can't be 'cure'"):
        Outcomes([1], [1]).for_cause("cure")


def test_parts_of_different_causes_are_refused(y):
    for other, named in (
        (Outcomes(TIME, [0, 1, 0, 1], END), "none"),
        (y.for_cause(1), r"'default', 'repayment' \(of interest 'default'\)"),
    ):
        with pytest.raises(ss.InputError, match=rf"same causes: one has 'default', 'repayment', another {named}"):
            Outcomes.concatenate([y, other])


def test_representations_show_causes(y):
    assert "3 events (75.0 %: 2 default, 1 repayment)" in repr(y)
    assert "of interest repayment, time" in repr(y.for_cause(2))
    assert "\x1b" not in repr(Outcomes([1, 2], [1, 0], causes=["\x1b[31m"]))
