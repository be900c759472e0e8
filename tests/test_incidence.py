"""Cumulative incidences of competing causes: what is taken, how they are read, and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracle
import survscore as ss
from combinations import examples
from survscore import IncidenceCurves

TIMES = np.array([1.0, 2.0, 4.0])
#: Two individuals, two causes.
F = np.array([[[0.1, 0.2, 0.3], [0.2, 0.2, 0.5]], [[0.0, 0.1, 0.1], [0.3, 0.4, 0.8]]])
NAMES = ["relapse", "death"]


@st.composite
def incidences(draw):
    n, n_causes, m = (draw(st.integers(1, most)) for most in (4, 3, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = rng.dirichlet(np.full(n_causes * m + 1, 0.5), n)[:, :-1].reshape(n, n_causes, m)
    times = np.cumsum(rng.uniform(0.1, 1.0, m)) - draw(st.sampled_from([0.0, 0.05]))
    kind, after = draw(st.sampled_from(["linear", "step"])), draw(st.sampled_from(["nan", "hold"]))
    return IncidenceCurves(steps.cumsum(axis=2).clip(0, 1), times, interpolation=kind, extrapolation=after)


WHEN = st.lists(st.floats(0, 6), min_size=1, max_size=6, unique=True).map(sorted)


@given(incidences(), WHEN)
@examples(20)
def test_reading_agrees_with_the_literal_one(curves, times):
    how = curves.interpolation, curves.extrapolation
    expected = [
        [[1 - oracle.survival_at(curves.times, 1 - row, t, *how) for t in times] for row in of_causes]
        for of_causes in curves.probabilities
    ]
    np.testing.assert_allclose(curves.at(times), expected, rtol=1e-12, atol=1e-14)


@given(incidences(), WHEN)
@examples(20)
def test_survival_of_causes_and_of_all_agree_with_incidences(curves, times):
    found = curves.at(times)
    for k, cause in enumerate(curves.causes):
        of_one = curves.for_cause(cause)
        np.testing.assert_allclose(of_one.at(times), 1 - found[:, k], rtol=0, atol=1e-14)
        np.testing.assert_array_equal(of_one.probabilities, curves.for_cause(k + 1).probabilities)
    whole = np.where(curves.reaches(np.array(times)), 1.0, np.nan) + 0 * found[:, 0]
    np.testing.assert_allclose(curves.event_free().at(times) + found.sum(axis=1), whole, rtol=0, atol=1e-14)
    assert curves.event_free().default_interpolation == curves.default_interpolation is False


@given(incidences(), WHEN, st.data())
@examples(20)
def test_picking_individuals_commutes_with_reading(curves, times, data):
    rows = data.draw(st.lists(st.integers(0, len(curves) - 1), min_size=1, max_size=5))
    np.testing.assert_array_equal(curves[rows].at(times), curves.at(times)[rows])
    again = IncidenceCurves.concatenate([curves[[row]] for row in rows])
    np.testing.assert_array_equal(again.at(times), curves.at(times)[rows])
    assert again.causes == curves.causes
    assert (again.interpolation, again.extrapolation) == (curves.interpolation, curves.extrapolation)


@given(incidences())
@examples(15)
def test_layouts_of_other_packages_come_back_the_same(curves):
    values, times = curves.probabilities, curves.times
    total = values.sum(axis=1, keepdims=True)
    alike = {
        "hazardous": IncidenceCurves(np.concatenate([1 - total, values], axis=1), times, first="event-free"),
        "total": IncidenceCurves(np.concatenate([total, values], axis=1).clip(0, 1), times, first="total-risk"),
        "mapping": IncidenceCurves({name: values[:, k] for k, name in enumerate(curves.causes)}, times),
    }
    for name, other in alike.items():
        np.testing.assert_array_equal(other.probabilities, values, err_msg=name)
        assert other.causes == curves.causes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_not_copied_and_stay_writeable(dtype):
    array = F.astype(dtype)
    curves = IncidenceCurves(array, TIMES)
    assert np.shares_memory(curves.probabilities, array)
    assert not curves.probabilities.flags.writeable
    assert not curves.times.flags.writeable
    array[0, 0, 0] = 0.05
    assert curves.for_cause(1).probabilities.dtype == np.float64


def test_a_small_incidence_survives_float32():
    tiny = np.full((1, 2, 1), 1e-9, dtype=np.float32)
    curves = IncidenceCurves(tiny, [1.0])
    assert 1 - curves.for_cause(1).probabilities[0, 0] == pytest.approx(1e-9, rel=1e-6)
    assert 1 - curves.event_free().probabilities[0, 0] == pytest.approx(2e-9, rel=1e-6)


def test_tensors_stay_tensors():
    given_tensor = torch.tensor(F)
    with ss.config.using(backend="torch"):
        curves = IncidenceCurves(given_tensor, TIMES, causes=NAMES)
        assert curves.probabilities.data_ptr() == given_tensor.data_ptr()
        assert isinstance(curves.at([1.5, 9]), torch.Tensor)
        assert isinstance(curves[[0]].event_free().probabilities, torch.Tensor)
        enforced = IncidenceCurves(given_tensor.flip(2), TIMES, monotone="enforce")
        mapped = IncidenceCurves({name: given_tensor[:, k] for k, name in enumerate(NAMES)}, TIMES)
    np.testing.assert_array_equal(mapped.numpy().probabilities, F)
    np.testing.assert_array_equal(enforced.numpy().probabilities, F[:, :, -1:].repeat(3, axis=2))


def changed(row, cause, column, value):
    values = F.copy()
    values[row, cause, column] = value
    return values


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (changed(1, 1, 2, 0.95), {}, r"at most 1: 1 sum is larger, .* row 1 at time 4 \(1.05 = 0.1 \+ 0.95\)"),
        (changed(0, 0, 0, -0.1), {}, r"cause 'relapse' must be between 0 and 1: 1 value is not, .* time 1 \(-0.1"),
        (
            changed(0, 0, 1, 0.05),
            {},
            r"'relapse' must not decrease with time: 1 .* \(0.05 after 0.1\); `monotone='keep'",
        ),
        (F.transpose(1, 2, 0), {}, r"probabilities has 2 columns, .*; transpose it\)"),
        (F, {"causes": ["a"]}, "causes has 1 name, and probabilities 2 .*Say what index 0 is: first='event-free'"),
        (F, {"interpolation": "constant-hazard"}, "interpolation must be one of 'linear', 'step' for incidences: "),
        # replaced by the largest so far, incidences may sum to more than 1
        ([[[0.9, 0.1, 0.1], [0.0, 0.3, 0.3]]], {"monotone": "enforce"}, r"at time 2 \(1.2 = 0.9 \+ 0.3\)"),
        ([[[0.9, 0.8, 0.8], [0.0, 0.3, 0.3]]], {"monotone": "keep"}, "sum to at most 1"),
    ],
)
def test_bad_incidences_are_named(values, options, message):
    with pytest.raises(ss.InputError, match=message):
        IncidenceCurves(values, TIMES, **{"causes": NAMES, **options})


def test_the_first_offender_is_found_in_large_arrays():
    values = np.tile(F[:1], (30_000, 1, 1))
    values[25_000:25_003, 1, 2] = 0.9
    with pytest.raises(
        ss.InputError, match=r"3 sums are larger, the first in row 25000 at time 4 \(1.2 = 0.3 \+ 0.9\)"
    ):
        IncidenceCurves(values, TIMES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_excess(dtype):
    rng = np.random.default_rng(0)
    steps = rng.dirichlet(np.ones(3 * 40), 200).astype(dtype).reshape(200, 3, 40)
    values = steps.cumsum(axis=2, dtype=dtype)
    assert values[:, :, -1].astype(np.float64).sum(axis=1).max() > 1
    curves = IncidenceCurves(values, np.arange(1.0, 41.0))
    assert (curves.event_free().probabilities >= 0).all()
    with pytest.raises(ss.InputError, match="sum to at most 1"):
        IncidenceCurves(values * dtype(1.02), np.arange(1.0, 41.0))


def test_monotone():
    values = changed(0, 0, 1, 0.05)
    assert IncidenceCurves(values, TIMES, monotone="keep").probabilities[0, 0, 1] == 0.05
    enforced = IncidenceCurves(values, TIMES, monotone="enforce")
    assert enforced.probabilities[0, 0, 1] == 0.1
    assert values[0, 0, 1] == 0.05


# What index 0 is


def with_first(kind):
    total = F.sum(axis=1, keepdims=True)
    return np.concatenate([total if kind == "total-risk" else 1 - total, F], axis=1)


@pytest.mark.parametrize(("kind", "wrong"), [("event-free", "total-risk"), ("total-risk", "event-free")])
def test_one_index_more_than_causes_needs_the_right_word(kind, wrong):
    values = with_first(kind)
    with pytest.raises(ss.InputError, match=r"index 0 .* the others. Say what it is: first='event-free', first='tot"):
        IncidenceCurves(values * (0.5 if kind == "total-risk" else 1), TIMES)
    np.testing.assert_array_equal(IncidenceCurves(values, TIMES, causes=NAMES, first=kind).probabilities, F)
    first = "0.7" if kind == "event-free" else "0.3"
    message = rf"5 values are not, the first in row 0 at time 1 \({first}, and .*'{kind}' fits"
    with pytest.raises(ss.InputError, match=message):
        IncidenceCurves(values, TIMES, first=wrong)
    with pytest.raises(ss.InputError, match="if the causes are right, pass these alone"):
        IncidenceCurves(np.concatenate([F[:, :1] / 3, F], axis=1), TIMES, first=wrong)


def test_a_cause_that_is_the_sum_of_others_is_one_if_the_user_says_so():
    values = with_first("total-risk") / 2
    assert IncidenceCurves(values, TIMES, first="cause").causes == ("1", "2", "3")
    assert IncidenceCurves(values, TIMES, causes=["a", "b", "c"]).causes == ("a", "b", "c")


# From other packages


def test_from_scikit_survival():
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    rng = np.random.default_rng(0)
    time, event = rng.exponential(size=200), rng.integers(0, 3, 200)
    times, values = nonparametric.cumulative_incidence_competing_risks(event, time)
    curves = IncidenceCurves(values[None], times, first="total-risk", interpolation="step")
    own = ss.models.AalenJohansen().fit(None, ss.Outcomes(time, event)).predict_curves(range(1), [0.1, 0.5, 1.5])
    np.testing.assert_allclose(curves.at([0.1, 0.5, 1.5]), own.probabilities, rtol=1e-10)


# In scores


@pytest.fixture(scope="module")
def y():
    rng = np.random.default_rng(1)
    time, end = rng.exponential(3, 300), rng.uniform(1, 6, 300)
    cause = np.where(time <= end, rng.integers(1, 3, 300), 0)
    return ss.Outcomes(np.minimum(time, end), cause, end, causes=NAMES)


@pytest.fixture(scope="module")
def curves():
    steps = np.random.default_rng(2).dirichlet(np.ones(7), 300)[:, :6].reshape(300, 2, 3)
    return IncidenceCurves(steps.cumsum(axis=2), TIMES, causes=NAMES)


SCORED = {"weighting": "administrative", "times": [1, 2]}


def brier(y, curves, **options):
    return ss.brier_score(y, curves, **SCORED, **options).scores


def test_scores_are_of_the_cause_that_is_chosen(y, curves):
    status = (y.time[:, None] <= [1, 2]) & (y.cause == 2)[:, None]
    counted = y.censoring_time[:, None] >= [1, 2]
    losses = (status - curves.at([1, 2])[:, 1]) ** 2
    expected = (losses * counted).sum(axis=0) / counted.sum(axis=0)
    unnamed = IncidenceCurves(curves.probabilities, TIMES)
    for given_curves in (curves, unnamed, curves.for_cause("death")):
        np.testing.assert_allclose(brier(y, given_curves, cause="death"), expected, rtol=1e-12)
        np.testing.assert_allclose(brier(y.for_cause(2), given_curves), expected, rtol=1e-12)
        np.testing.assert_allclose(brier(y, given_curves, event_of_interest="death"), expected, rtol=1e-12)


def test_causes_are_found_by_name(y, curves):
    turned = IncidenceCurves(curves.probabilities[:, ::-1], TIMES, causes=NAMES[::-1])
    alone = IncidenceCurves({"death": curves.probabilities[:, 1]}, TIMES)
    for some in (turned, alone):
        np.testing.assert_array_equal(brier(y, some, cause="death"), brier(y, curves, cause="death"))
    with pytest.raises(ss.InputError, match="the curves have no predictions of cause 'relapse', only of 'death'"):
        brier(y, alone, cause="relapse")


@pytest.mark.filterwarnings("error")
def test_a_cause_that_never_occurs_may_be_predicted(y, curves):
    more = dict(zip(NAMES, curves.probabilities.transpose(1, 0, 2), strict=True))
    more["cure"] = np.zeros((300, 3))
    np.testing.assert_array_equal(
        brier(y, IncidenceCurves(more, TIMES), cause="death"), brier(y, curves, cause="death")
    )
    # in a small sample a cause may not occur; that its incidence is predicted as above 0 is what it is scored for
    without = y.cause != 1
    rest, predicted = y[without], curves[without]
    assert rest.n_by_cause["relapse"] == 0
    counted = rest.censoring_time >= 2
    expected = (predicted.at([2])[counted, 0, 0] ** 2).mean()
    assert brier(rest, predicted, cause="relapse")[1] == pytest.approx(expected, rel=1e-12)


def test_curves_that_do_not_fit_the_outcomes_are_named(y, curves):
    one_kind = ss.Outcomes(y.time, y.event, y.censoring_time)
    values = curves.probabilities
    misspelt = IncidenceCurves(values, TIMES, causes=["relapse", "Death"])
    more = IncidenceCurves(np.concatenate([values, values[:, :1] / 9], axis=1) * 0.9, TIMES)
    for outcomes, given_curves, cause, message in [
        (y, curves, None, r"y has competing causes \('relapse', 'death'\): say which one scores are of \(`cause="),
        (y, curves, "cure", "cause must be the name of a cause, or its number from 1 on, not 'cure'; the causes are"),
        (y, misspelt, "relapse", "must be of the causes of y, 'relapse' and 'death', not of 'relapse' and 'Death'"),
        (y, more, "relapse", r"3 indices along the axis of causes, and y has 2 causes .* Say what index 0 is: "),
        (one_kind, curves, None, "predict 2 causes, 'relapse' and 'death', and y has events of one kind: give it"),
    ]:  # fmt: skip
        with pytest.raises(ss.InputError, match=message):
            brier(outcomes, given_curves, cause=cause)


def test_batches_and_streams_of_incidences(y, curves):
    expected = brier(y, curves, cause="death")
    batches = ss.CurveBatches(lambda: (curves[start : start + 90] for start in range(0, 300, 90)), 300)
    assert batches.causes == tuple(NAMES)
    np.testing.assert_allclose(brier(y, batches, cause="death"), expected, rtol=1e-12)
    stream = ss.StreamingScore(y.for_cause("death"), **SCORED)
    for start in range(0, 300, 90):
        stream.update(curves[start : start + 90])
    np.testing.assert_allclose(stream.result().scores, expected, rtol=1e-12)
