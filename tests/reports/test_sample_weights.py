"""Reports on outcomes with sample weights."""

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from report_case import TIMES, make_with_drop_outs
from survscore.reports import render, summarise

ASKED = {"times": TIMES, "horizons": [30, 60], "n_curves": 2}


@pytest.fixture(scope="module")
def case():
    y, models = make_with_drop_outs()
    rows = np.arange(0, len(y), 2)
    return y[rows], {name: models[name][rows] for name in ("truth", "leaking")}


@pytest.fixture(scope="module")
def weights(case):
    y, _ = case
    rng = np.random.default_rng(1)
    return rng.gamma(2, 1.7, len(y)) * (rng.random(len(y)) > 0.1)


@pytest.fixture(scope="module")
def summary(case, weights):
    y, models = case
    return summarise(y.weighted(weights), models, **ASKED)


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning", "ignore::survscore.FewFollowedWarning")
def test_scores_are_weighted_and_the_data_say_so(case, weights, summary):
    y, models = case
    kept = weights > 0
    data = summary["data"]
    assert data["sample_weights"]["kind"] == "probability"
    assert data["sample_weights"]["n_effective"] == pytest.approx(weights.sum() ** 2 / np.square(weights).sum())
    assert (data["n"], data["events"]) == (kept.sum(), y.event[kept].sum())
    expected = ss.brier_score(y.weighted(weights), models["truth"], weighting="projected", times=TIMES).scores
    scores = pd.DataFrame(summary["scores"]).query(
        "metric == 'brier' and model == 'truth' and weighting.str.startswith('projected')"
    )
    np.testing.assert_allclose(scores["score"].astype(float), expected)
    calibrated = ss.calibration(y.weighted(weights), models["truth"], 30.0, weighting="administrative")
    numbers = pd.DataFrame(summary["calibration"]["numbers"]).query("model == 'truth' and horizon == 30")
    assert numbers["observed_expected"].item() == pytest.approx(calibrated.observed_expected.value)
    assert any("standard errors are rough below 100" in note for note in summary["notes"])
    text, page = " ".join(summary["methods"]["paragraphs"]), render(summary)
    effective = f"effective sample size of {data['sample_weights']['n_effective']:,.0f}"
    assert f"Individuals had probability weights, with an {effective}" in text
    assert f"Individuals have probability weights, with an {effective}" in page


def test_frequency_weights_are_repeated_rows(case):
    y, models = case
    often = np.random.default_rng(2).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), often)
    found = summarise(y.weighted(often, "frequency"), models, **ASKED)
    expected = summarise(y[rows], {name: curves[rows] for name, curves in models.items()}, **ASKED)
    described = {**found["data"], "sample_weights": None}
    assert described == expected["data"]
    assert found["data"]["sample_weights"]["rows"] == np.count_nonzero(often)
    for name in ("means", "verdicts", "horizons"):
        one, other = (pd.DataFrame(part[name]) for part in (found, expected))
        numbers = [column for column in one.select_dtypes("number") if not column.startswith("bound_")]
        pd.testing.assert_frame_equal(one[numbers], other[numbers], rtol=1e-6)
    assert found["calibration"] == expected["calibration"]
    page = render(found)
    assert f"{np.count_nonzero(often):,} rows with frequency weights" in page
