"""Metrics that are no sums over individuals: their rows are gathered, and judged as data in memory are."""

import pickle

import numpy as np
import pytest

import survscore as ss
from registry import without_predictions
from scale_tables import make, same
from survscore.scale import evaluate_state, specify
from survscore.scale.engines import merged
from survscore.scale.work import Work

METRICS = ["brier", "auc", "oe", "slope", "miscalibration", "ici", "net_benefit@0.2", "concordance", "crps"]


@pytest.fixture(scope="module")
def case():
    return make(1500, seed=3)


def expected(case, **more):
    settings = {"metric": METRICS, "weighting": "administrative", "times": case.times[[1, 4]], **more}
    settings["weighting"] = without_predictions(settings["weighting"])
    return ss.compare(case.y, case.models, null=False, **settings)


def test_segments_groups_weights_and_references(case, tmp_path):
    more = {"metric": METRICS, "weighting": ["administrative", "ipcw"], "reference": "b", "level": 0.9}
    found = ss.evaluate(case.write(tmp_path, 4), times=case.times[[1, 4]], by="country", groups="customer", **more)
    want = expected(case, groups=case.customer, by={"country": case.country}, **more)
    same(found, want, score=1e-10)
    assert set(found.parts) == {("DE",), ("FR",), ("NO",)}


def test_pieces_of_a_file_and_their_order_change_nothing(case):
    """Whoever is ready first: rows are put where they stood."""
    what = specify(case.table.schema, weighting="administrative", metric="auc", by="country")
    assert what.metrics == ()
    work = Work("rows", what, None)
    rows = case.table.select(what.columns(case.table.schema.names)).combine_chunks().to_batches()[0]
    pieces = [work.nothing((), "file", start).update(rows.slice(start, 500)) for start in (0, 500, 1000)]
    one, other = (merged(pickle.loads(pickle.dumps(pieces[k])) for k in order) for order in ([0, 1, 2], [2, 0, 1]))
    assert one.n == 1500
    found = [made.compared([ss.AUC()], None, None).scores for made in (one, other)]
    assert found[0].equals(found[1])
    assert sorted(one.segments) == [("DE",), ("FR",), ("NO",)]


def test_what_does_not_fit_in_memory_is_refused(case):
    big = case.table.take(np.tile(np.arange(1500), 2000))
    with pytest.raises(ss.InputError, match="predictions of 2 models at 6 times take more than"):
        ss.evaluate(big, weighting="administrative", metric="auc", memory_limit="400MB")
    ss.evaluate(case.table, weighting="administrative", metric="auc", memory_limit="400MB")


def test_there_are_no_sums_to_keep(case, tmp_path):
    folder = case.write(tmp_path / "files", 2)
    with pytest.raises(ss.InputError, match="state keeps sums"):
        ss.evaluate(folder, weighting="administrative", metric="auc", state=tmp_path / "kept")
    with pytest.raises(ss.InputError, match="metric must be one of 'brier', 'log' for sums, not 'auc'"):
        evaluate_state(folder, weighting="administrative", metric="auc")


def test_files_that_cannot_be_read_are_left_out_and_told(case, tmp_path):
    folder = case.write(tmp_path, 3)
    (folder / "part-0001.parquet").write_bytes(b"nothing")
    with pytest.raises(ss.InputError, match="part-0001"):
        ss.evaluate(folder, weighting="administrative", metric="auc")
    with pytest.warns(UserWarning, match="1 file of 3 could not be read"):
        found = ss.evaluate(folder, weighting="administrative", metric="auc", skip_bad_files=True)
    assert found.n == 1000
    assert "part-0001" in found.scored[0].settings["skipped_files"][0]
