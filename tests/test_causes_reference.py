"""Scores of causes against hazardous and SurvivalEVAL, whose numbers are pinned with the data that they are of."""

import json
from pathlib import Path

import numpy as np
import pytest

import survscore as ss

DATASETS = json.loads((Path(__file__).parent / "reference" / "causes_reference.json").read_text())["datasets"]


@pytest.fixture(params=DATASETS)
def data(request):
    return DATASETS[request.param]


def outcomes(data, *, later=0.0):
    """Return the outcomes; with `later`, those who are censored leave so much later."""
    time, event = np.array(data["time"]), np.array(data["event"])
    return ss.Outcomes(np.where(event > 0, time, time + later), event)


def leaving_together(data):
    """Return hazardous' G: events and censorings of a time leave together, no left limit, at least 0.05."""
    time, event = np.array(data["time"]), np.array(data["event"]) > 0
    jumps = np.unique(time)
    factors = [1 - np.sum(~event[time == s]) / np.sum(time >= s) for s in jumps]
    steps = np.concatenate([[1.0], np.cumprod(factors)])
    return ss.CensoringFunction(lambda t: np.maximum(steps[np.searchsorted(jumps, t, side="right")], 0.05))


@pytest.mark.parametrize("cause", [1, 2])
def test_brier_score_of_hazardous(data, cause):
    curves = ss.IncidenceCurves(data["incidence"], data["times"])
    weighting = ss.IPCW(leaving_together(data), normalize="n")
    found = ss.brier_score(outcomes(data), curves, cause=cause, weighting=weighting, times=data["times"])
    np.testing.assert_allclose(found.scores, data["hazardous"]["brier"][cause - 1], rtol=1e-12)


@pytest.mark.parametrize("cause", [1, 2])
def test_brier_score_and_auc_of_survival_eval(data, cause):
    """Those who are censored at t are event-free at t there: without ties nothing changes, else they leave later."""
    curves, times, theirs = ss.IncidenceCurves(data["incidence"], data["times"]), data["times"], data["SurvivalEVAL"]
    y = outcomes(data, later=1e-6)
    found = ss.brier_score(y, curves, cause=cause, weighting="ipcw", times=times)
    np.testing.assert_allclose(found.scores, theirs["brier"][cause - 1], rtol=1e-12)
    for controls, values in theirs["auc"].items():
        (found,) = ss.score_all(y, curves, cause=cause, metric=ss.AUC(controls=controls), weighting="ipcw", times=times)
        np.testing.assert_allclose(found.scores, values[cause - 1], rtol=1e-12)


def test_the_sets_differ_where_conventions_do():
    """Without ties our scores are theirs as they are; with ties they are not, and each control group is another one."""
    for name, data in DATASETS.items():
        curves = ss.IncidenceCurves(data["incidence"], data["times"])
        ours = ss.brier_score(outcomes(data), curves, cause=1, weighting="ipcw", times=data["times"]).scores
        for package in ("hazardous", "SurvivalEVAL"):
            away = np.abs(ours - data[package]["brier"][0]).max()
            assert (away > 5e-4) if name == "ties" else (away < 1e-12), package
        assert np.abs(np.subtract(*data["SurvivalEVAL"]["auc"].values())).max() > 0.02
