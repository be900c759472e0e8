"""Projected scores of data that come in parts are those of data in memory, where ranks are those of all rows."""

import numpy as np
import pyarrow as pa
import pytest

import survscore as ss
from scale_tables import make, same
from survscore.scale import evaluate_state


def compared(case, projected=None, y=None, **more):
    weighting = [ss.Administrative(dropout_strata=None), projected or ss.Projected()]
    return ss.compare(
        case.y if y is None else y, case.models, weighting=weighting, times=case.times, null=False, **more
    )


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("drop_outs", [True, False])
def test_the_default_is_that_of_compare(tmp_path, whole, drop_outs):
    case = make(1200, whole=whole, drop_outs=drop_outs)
    found, wanted = ss.evaluate(case.write(tmp_path / "files", 5)), compared(case)
    assert found.weightings == wanted.weightings
    same(found, wanted, se=1e-10)
    mean, other = found.integrated(), wanted.integrated()
    np.testing.assert_allclose(mean.contrasts["se"][1:], other.contrasts["se"][1:], rtol=1e-9)  # projected
    assert str(found.recommendation()) == str(wanted.recommendation())
    one, two = (of.recommendation().to_frame().iloc[0] for of in (found, wanted))
    for name in one.index:
        if isinstance(one[name], float):
            assert one[name] == pytest.approx(two[name], rel=1e-6, abs=1e-9, nan_ok=True), name
    pinned, expected = found.sensitivity().to_frame(), wanted.sensitivity().to_frame()
    numbers = expected.select_dtypes("number").columns
    np.testing.assert_allclose(pinned[numbers], expected[numbers], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("strata", ["mean-ranks", None, "country"])
def test_other_strata(strata):
    case = make(900)
    given = {"strata": "country"} if strata == "country" else {}
    asked = ss.Projected() if given else ss.Projected(strata=strata)
    in_memory = ss.Projected(strata=case.country) if given else asked
    found = ss.evaluate(case.table, weighting=["administrative", asked], **given)
    same(found, compared(case, in_memory), se=1e-10)
    assert "rank_rows" not in found.scored[1].settings


@pytest.mark.parametrize("more", [{"by": "country"}, {"groups": "customer"}, {"metric": "log"}], ids=str)
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")  # few are followed in some countries
@pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning")
def test_segments_groups_and_the_logarithmic_score(more):
    case = make(1500)
    found = ss.evaluate(case.table, **more)
    labels = {"by": {"country": case.country}} if "by" in more else more
    wanted = compared(case, **({"groups": case.customer} if "groups" in more else labels))
    same(found, wanted, se=1e-9)
    for label, part in found.parts.items() if "by" in more else ():
        same(part, wanted.parts[label], se=1e-9)


def test_ranks_of_a_sample_are_close_to_those_of_all_rows(tmp_path):
    case = make(12_000, drop_outs=False)
    folder = case.write(tmp_path / "files", 3)
    found, whole = ss.evaluate(folder, rank_rows=4000), ss.evaluate(folder)
    assert found.scored[1].settings["rank_rows"] == 4000
    assert "rank_rows" not in whole.scored[1].settings
    of_sample, of_all = (one.scores.set_index(["weighting", "model", "time"])["score"] for one in (found, whole))
    np.testing.assert_allclose(of_sample, of_all, atol=0.002)
    assert (of_sample != of_all).any()
    # which rows are drawn does not depend on how they are cut
    again = ss.evaluate(case.write(tmp_path / "more", 7), rank_rows=4000)
    np.testing.assert_allclose(again.scores["score"], found.scores["score"], rtol=1e-12)


def test_a_model_that_encodes_the_end_of_follow_up_is_named():
    rng = np.random.default_rng(1)
    n, times = 4000, np.array([6.0, 12.0])
    rate = rng.gamma(2, 0.05, n)
    event_time, end = np.ceil(rng.exponential(1 / rate)), np.ceil(rng.uniform(2, 20, n))
    truth = np.exp(-rate[:, None] * times)
    leaking = np.where(end[:, None] < times[-1], 0.1 * truth, truth)
    columns = {"time": np.minimum(event_time, end), "event": event_time <= end, "censoring_time": end}
    for name, curves in (("truth", truth), ("leaking", leaking)):
        columns |= {f"{name}:{t:g}": curves[:, j] for j, t in enumerate(times)}
    both = ss.evaluate(pa.table(columns))
    assert both.recommendation().encodes == ("leaking",)
    columns["plan"] = np.where(rng.random(n) < 0.5, "x", "y")
    by_plan = ss.evaluate(pa.table(columns), by="plan")
    assert by_plan.total.recommendation().encodes == ("leaking",)
    assert set(by_plan.parts) == {("x",), ("y",)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weighting": ss.Projected(theta=2)}, "can't be had for data that come in parts"),
        ({"weighting": ss.Projected(reference="a")}, "can't be had for data that come in parts"),
        ({"weighting": "projected", "state": "kept"}, "projected scores take several passes"),
        ({"weighting": ["projected", ss.Projected(strata=None)]}, "several projected ones"),
        ({"weighting": "administrative", "strata": "country"}, "strata is for weighting 'projected'"),
        ({"strata": "planet"}, "there is no column 'planet'"),
        ({"rank_rows": 10}, "rank_rows must be"),
        ({"weights": "w"}, "there is no column 'w'"),
        ({"outcomes": {"entry": "start"}}, "there is no column 'start'"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ss.InputError, match=message):
        ss.evaluate(make(50).table, **options)


def test_sums_for_other_days_are_administrative():
    table = make(300).table
    state = evaluate_state(table)
    assert [one.name for one in state.specification.weightings] == ["administrative"]
    with pytest.raises(ss.InputError, match="projected scores take several passes"):
        evaluate_state(table, weighting="projected")
    with pytest.raises(ss.InputError, match="can't be read again"):
        ss.evaluate(iter(table.to_batches(100)))


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
@pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning")
@pytest.mark.filterwarnings("ignore::survscore.UnequalWeightsWarning")
@pytest.mark.parametrize("more", ["", "by", "groups", "weights", "log"])
@pytest.mark.parametrize("rank_rows", [1000, 100_000])
def test_causes(rank_rows, more):
    n, case = 1500, make(1500, seed=5)
    rng = np.random.default_rng(2)
    codes = np.where(case.y.event, rng.integers(1, 3, n), 0).astype(np.int8)
    weight, labels = rng.gamma(2, 1, n), np.where(np.arange(n) % 2, "odd", "even")
    table = case.table.set_column(case.table.column_names.index("event"), "event", pa.array(codes))
    table = table.append_column("half", pa.array(labels)).append_column("weight", pa.array(weight))
    options = {"by": {"by": "half"}, "groups": {"groups": "customer"}, "weights": {"weights": "weight"}}.get(more, {})
    in_memory = {"by": {"by": {"half": labels}}, "groups": {"groups": case.customer}}.get(more, {})
    if more == "log":
        options = in_memory = {"metric": "log"}
    y = ss.Outcomes(case.y.time, codes, case.y.censoring_time)
    y = (y.weighted(weight) if more == "weights" else y).for_cause("1")
    asked = ["administrative", ss.Projected(strata=None)]
    found = ss.evaluate(table, cause=1, weighting=asked, rank_rows=rank_rows, **options)
    weighting = [ss.Administrative(dropout_strata=None), ss.Projected(strata=None)]
    wanted = ss.compare(y, case.models, weighting=weighting, times=case.times, null=False, **in_memory)
    pairs = [(found, wanted)]
    if more == "by":
        pairs = [(found.total, wanted.total), *((part, wanted.parts[label]) for label, part in found.parts.items())]
    exact = rank_rows > n or more in ("by", "groups", "weights")  # else standard errors are those of a sample
    for one, other in pairs:
        same(one, other, score=1e-10, se=1e-9 if exact else 0.05)
    one, two = (result.scored[1] for result in pairs[0])
    np.testing.assert_allclose(one.by_theta.scores, two.by_theta.scores, rtol=1e-9)
    close = 1e-9 if exact else 0.03  # the statuses of those who dropped out before t <= C* are those of the sample
    np.testing.assert_allclose(one.by_theta.event_free, two.by_theta.event_free, rtol=close)
    np.testing.assert_allclose(one.parts.projected, two.parts.projected, rtol=close)
    np.testing.assert_allclose(one.support.n_events, two.support.n_events)


def test_causes_have_both_scores_and_a_recommendation_by_default():
    case = make(1200)
    codes = np.where(case.y.event, 1 + np.arange(1200) % 2, 0).astype(np.int8)
    table = case.table.set_column(case.table.column_names.index("event"), "event", pa.array(codes))
    y = ss.Outcomes(case.y.time, codes, case.y.censoring_time).for_cause("1")
    found, wanted = ss.evaluate(table, cause=1), compared(case, None, y)
    assert found.weightings == wanted.weightings
    same(found, wanted, se=1e-10)
    assert str(found.recommendation()) == str(wanted.recommendation())
    sample = ss.evaluate(table, cause=1, rank_rows=1000)
    assert (
        sample.recommendation().to_frame()["verdict"].tolist() == wanted.recommendation().to_frame()["verdict"].tolist()
    )
    np.testing.assert_allclose(sample.scores["score"], wanted.scores["score"], atol=0.002)


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
@pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning")
@pytest.mark.parametrize("strata", [None, "country"])
def test_segments_of_many_rows_are_exact_where_strata_are_given(strata):
    case = make(1500)
    given = {"strata": strata, "weighting": ["administrative", "projected"]}
    if strata is None:
        given = {"weighting": ["administrative", ss.Projected(strata=None)]}
    in_memory = ss.Projected(strata=case.country) if strata else ss.Projected(strata=None)
    labels = np.where(np.arange(1500) % 2, "odd", "even")
    table = case.table.append_column("half", pa.array(labels))
    found = ss.evaluate(table, by="half", rank_rows=1000, **given)
    wanted = compared(case, in_memory, by={"half": labels})
    same(found.total, wanted.total, se=1e-10)
    assert found.total.scored[1].parts.observed == pytest.approx(wanted.total.scored[1].parts.observed, rel=1e-10)
    one, two = (of.total.scored[1].by_theta for of in (found, wanted))
    np.testing.assert_allclose(one.scores, two.scores, rtol=1e-9)
    np.testing.assert_allclose(one.event_free, two.event_free, rtol=1e-9)
    for label, part in found.parts.items():
        same(part, wanted.parts[label], se=1e-10)


@pytest.mark.parametrize("whole", [True, False])  # if not, most have events when nobody of the sample has
def test_preliminary_estimates_of_a_sample_make_standard_errors(whole):
    case = make(16_000, whole=whole)
    found = ss.evaluate(case.table, weighting=["administrative", ss.Projected(strata=None)], rank_rows=8000)
    wanted = compared(case, ss.Projected(strata=None))
    same(found, wanted, score=1e-10, se=0.02)
    for of in ("scores", "contrasts"):
        mean, other = (getattr(result.integrated(), of)["se"] for result in (found, wanted))
        np.testing.assert_allclose(mean, other, rtol=0.02)
