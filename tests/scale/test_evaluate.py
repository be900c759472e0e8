"""evaluate: every source the same sums, groups, means over time, and intervals that hold."""

import numpy as np
import pyarrow as pa
import pytest

import survscore as ss
from cluster_case import check_alike
from combinations import every_pair
from registry import without_predictions
from scale_tables import make, same
from survscore.scale import State, specify
from survscore.scale.engines import Threads
from survscore.scale.finishing import first_pass
from survscore.scale.influences import Influences
from survscore.scale.running import Run
from survscore.scale.sources import open_source


def compared(case, weighting, **more):
    weighting = without_predictions(weighting)
    return ss.compare(case.y, case.models, weighting=weighting, times=case.times, null=False, **more)


def state_of(source, what):
    """Return the sums over a source, without the names of its files."""
    return Run(open_source(source), None, False, False, None, None, lambda *_: None).sums(what)


@pytest.mark.parametrize("weighting", ["administrative", "ipcw"])
def test_every_source_gives_the_same_sums(weighting, tmp_path):
    """However rows are cut and ordered; kinds of sources are in `test_matrix`."""
    case = make(2000, seed=1)
    what = specify(case.table.schema, weighting=weighting, by="country")
    expected = state_of(case.table, what)
    twenty = case.write(tmp_path / "twenty", 20)
    sources = [
        case.write(tmp_path / "shuffled", 20, order=np.random.default_rng(0).permutation(2000)),
        case.write(tmp_path / "many", 200),
        str(twenty / "*.parquet"),
        sorted(twenty.iterdir(), reverse=True),
        lambda: iter(case.table.to_batches(max_chunksize=77)),
    ]
    for source in sources:
        check_alike(state_of(source, what), expected)


@every_pair(weighting=["administrative", "ipcw"], whole=[True, False], drop_outs=[False, True])
def test_results_are_those_of_compare(weighting, whole, drop_outs, tmp_path):
    case = make(1500, whole=whole, drop_outs=drop_outs)
    result = ss.evaluate(case.write(tmp_path / "files", 7), weighting=weighting)
    same(result, compared(case, weighting))
    assert ss.evaluate(case.table, weighting=weighting, reference="b").reference == "b"


@pytest.mark.parametrize("weighting", ["administrative", "ipcw"])
@pytest.mark.parametrize("metric", ["brier", "log"])
def test_means_over_time(weighting, metric, tmp_path):
    case = make()
    result = ss.evaluate(case.write(tmp_path / "files", 4), weighting=weighting, metric=metric, ranges="any")
    expected = compared(case, weighting, metric=metric, ranges="any")
    for limits in ((None, None), (100, 250)):
        got, want = result.integrated(*limits), expected.integrated(*limits)
        for name in ("scores", "contrasts"):
            one, other = getattr(got, name), getattr(want, name)
            np.testing.assert_allclose(one["se"], other["se"], rtol=2e-5)
        np.testing.assert_allclose(got.scores["score"], want.scores["score"], rtol=1e-12)
    band, expected_band = result.band(n_draws=2000), expected.band(n_draws=2000)
    np.testing.assert_allclose(band["critical_value"], expected_band["critical_value"], rtol=0.05)


# Groups


@pytest.mark.parametrize("rank_rows", [1000, 100_000])
@pytest.mark.parametrize(("weighting", "by"), [("administrative", ()), ("ipcw", ("country",))])
def test_few_groups_are_taken_as_they_are(weighting, by, rank_rows, tmp_path):
    case = make(1800)
    folder = case.write(tmp_path / "files", 6, order=np.random.default_rng(0).permutation(1800))
    asked = {"weighting": weighting, "groups": "customer", "ranges": "any", "by": by, "rank_rows": rank_rows}
    result = ss.evaluate(folder, **asked)
    total = result.total if by else result
    expected = compared(case, weighting, groups=case.customer, ranges="any")
    same(total, expected, se=1e-10)
    mean, other = total.integrated().contrasts["se"], expected.integrated().contrasts["se"]
    np.testing.assert_allclose(mean, other, rtol=1e-9)
    if rank_rows < 1800:
        assert total.scored[0].settings["groups"] == "as they are"
    if by:
        rows = case.country == "DE"
        curves = {name: one[rows] for name, one in case.models.items()}
        alone = ss.compare(
            case.y[rows], curves, weighting=without_predictions(weighting), times=case.times, null=False,
            groups=case.customer[rows], ranges="any",
        )  # fmt: skip
        same(result.parts["DE",], alone, se=1e-10)


@pytest.mark.parametrize("labels", ["whole numbers", "text"])
def test_many_groups_go_into_random_buckets(labels, tmp_path, monkeypatch):
    monkeypatch.setattr("survscore.scale.looks.BUCKETS", 900)
    monkeypatch.setattr("survscore.scale.influences.BUCKETS", 900)
    case = make(3000)
    if labels == "text":
        names = pa.array([f"customer {one}" for one in case.customer])
        case.table = case.table.set_column(case.table.column_names.index("customer"), "customer", names)
    folder = case.write(tmp_path / "files", 6, order=np.random.default_rng(0).permutation(3000))
    result = ss.evaluate(folder, weighting="administrative", groups="customer", ranges="any", rank_rows=1000)
    expected = compared(case, "administrative", groups=case.customer, ranges="any")
    assert result.scored[0].settings["groups"] == "900 random buckets"
    np.testing.assert_allclose(result.scores["se"], expected.scores["se"], rtol=0.15)
    np.testing.assert_allclose(result.contrasts["se"], expected.contrasts["se"], rtol=0.15)


def test_segments_that_share_groups_are_not_compared_with_each_other(monkeypatch):
    case = make(1800)
    asked = {"weighting": "administrative", "groups": "customer", "by": "country"}
    spanning = sum(len(set(case.country[case.customer == one])) > 1 for one in range(600))
    assert ss.evaluate(case.table, **asked).n_spanning == spanning
    as_they_are = ss.evaluate(case.table, rank_rows=1000, **asked)
    assert as_they_are.n_spanning == pytest.approx(spanning, rel=0.05)  # of those who count at some time
    monkeypatch.setattr("survscore.scale.looks.BUCKETS", 500)
    in_buckets = ss.evaluate(case.table, rank_rows=1000, **asked)
    for result in (as_they_are, in_buckets):
        with pytest.raises(ss.InputError, match="can't be compared with each other"):
            result.between()
    assert ss.evaluate(case.table, weighting="administrative", by="country").between() is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state": "kept"}, "state keeps the sums of files, but source is a stream"),
        ({"skip_bad_files": True}, "skip_bad_files is for files, but source is a stream"),
        ({"engine": Threads()}, "engine works on files or on frames of its own"),
        ({"ranges": "all"}, "ranges must be one of 'any'"),
    ],
)
def test_what_would_do_nothing_is_refused(options, message):
    with pytest.raises(ss.InputError, match=message):
        ss.evaluate(make(50).table, weighting="ipcw", **options)


def test_data_that_change_between_two_passes_are_found_out():
    table = make(200).table
    what = specify(table.schema, weighting="ipcw", by="country", bins="units", over_time=True)
    first = first_pass(State(what).update(table))
    elsewhere = table.set_column(table.column_names.index("country"), "country", pa.array(["XX"] * 200))
    with pytest.raises(ss.InputError, match="have changed since the first pass: 1 segment came up, the first"):
        Influences(what, first).update(elsewhere.to_batches()[0])
