"""The churn study: on synthetic and on given data, told apart, clustered by customer."""

import json
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import survscore as ss
from survscore.datasets.kkbox import describe, prepare, synthesize
from survscore.paper import claims as c
from survscore.paper import reproduce as r
from survscore.paper import studies as s
from survscore.paper.figures import FIGURES

mpl.use("agg")
TINY = s.Size("tiny", 400, 150, 400, n_times=10, epochs=1)
pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")


def quiet(done, total, what):
    pass


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kkbox")
    synthesize(folder, customers=1500, seed=4)
    prepare(folder, folder / "prepared.parquet")
    return folder / "prepared.parquet"


def run_in(folder, **changes):
    return replace(r.Run(s.SIZES["quick"], 1, 1, folder, churn_size=TINY), **changes)


def test_synthetic_data_come_with_the_truth(tmp_path):
    run = run_in(tmp_path)
    results = r.reproduce(["figure-1", "figure-6"], run, quiet)
    table = r.load("kkbox", 0, run)
    assert set(table.kind) == {s.SCORE, s.INTEGRATED, s.DIFFERENCE, s.LATE, s.ERROR}
    assert set(table[table.kind == s.SCORE].model) == {s.HAZARD, s.BCE, s.TRUTH}
    assert set(table[table.kind == s.SCORE].weighting) == set(FIGURES["figure-6"].panels)
    settings = json.loads((results["figure-6"].folder / "settings.json").read_text())
    assert settings["data"] == "synthetic"
    assert (results["figure-6"].claims.replicates == 1).all()


def test_given_data_have_no_truth_and_are_identified(tmp_path, data):
    run = run_in(tmp_path, data=data)
    results = r.reproduce(["figure-6"], run, quiet)
    assert s.TRUTH not in set(r.load("kkbox", 0, run).model)
    settings = json.loads((results["figure-6"].folder / "settings.json").read_text())
    assert settings["data"]["file"] == "prepared.parquet"
    unchecked = results["figure-6"].claims[results["figure-6"].claims.replicates == 0]
    assert unchecked.needs.tolist() == ["the truth, so synthetic data"]
    # replicates of other data lie beside these, and are not taken for them
    other = tmp_path / "other.parquet"
    pd.read_parquet(data)[::-1].to_parquet(other)
    assert not run_in(tmp_path, data=other).path("kkbox", 0).exists()


def test_standard_errors_are_clustered_by_customer(data, monkeypatch):
    """The study hands customers over as groups."""
    handed = []
    real = s.compared

    def compared(*arguments, **options):
        handed.append((len(arguments[0]), options["groups"]))
        return real(*arguments, **options)

    monkeypatch.setattr(s, "compared", compared)
    s.churn(TINY, s.Seeds.of(1, 0), lambda what: None, data)
    for n, groups in handed:
        assert len(groups) == n
        assert 1 < np.bincount(groups).max() < 7


def test_weights_that_are_soon_infinite_leave_the_other_scores_whole(data, monkeypatch):
    """A censoring model may predict that nobody is seen for long, as one does that is barely trained."""

    def predict(model, X):
        grid = np.arange(1.0, 800.0)
        return ss.SurvivalCurves(np.tile(np.where(grid < 300, 0.9, 0.0), (len(X), 1)), grid, interpolation="step")

    monkeypatch.setattr("survscore.models.LogisticHazard.fit_censoring", lambda model, *_, **__: model)
    real = ss.models.LogisticHazard.predict_curves
    monkeypatch.setattr(
        "survscore.models.LogisticHazard.predict_curves",
        lambda model, X, *times: real(model, X, *times) if times else predict(model, X),
    )
    table = s.churn(TINY, s.Seeds.of(1, 0), lambda what: None, data)
    scores = table[(table.kind == s.SCORE) & (table.loss == "brier")].groupby("weighting").value
    undefined = scores.apply(lambda values: values.isna().any())
    assert set(undefined[undefined].index) - {s.PROJECTED} == {s.IPCW_UNCAPPED}
    late = table[table.kind == s.LATE]
    assert set(late.weighting) == set(FIGURES["figure-6"].panels) - {s.IPCW_UNCAPPED, s.PROJECTED}
    assert late.value.notna().all()


def test_claims_about_caps():
    rows = [
        {"kind": s.DIFFERENCE, "loss": "brier", "weighting": s.capped(cap), "model": s.BCE, "reference": s.HAZARD,
         "value": value, "se": 0.01}
        for cap, value in zip(s.CAPS, (-0.03, -0.01, 0.02, 0.04), strict=True)
    ]  # fmt: skip
    tables = {"kkbox": pd.DataFrame(rows).reindex(columns=s.COLUMNS)}
    claim = c.moves_with_the_cap("brier")
    assert claim.margin(tables).value == pytest.approx(0.07 - 0.01)


def test_description(data):
    frame = pd.read_parquet(data)
    found = describe(frame)
    assert found.counts["spells"] == len(frame)
    assert found.counts["share of churn"] == pytest.approx(frame.event.mean())
    assert 0.0 < found.censoring_r2 < 1.0
    # without drift there is nothing to tell
    shuffled = frame.assign(censoring_time=np.random.default_rng(0).permutation(frame.censoring_time) + 1000.0)
    assert describe(shuffled.assign(time=frame.time)).censoring_r2 < 0.1
