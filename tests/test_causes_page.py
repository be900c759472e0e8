"""What the page on competing risks says of mgus2, computed where R's package survival is installed, and in words."""

import re
from pathlib import Path

import numpy as np
import pytest

import survscore as ss
from survscore.censoring.aalen_johansen import Incidence
from survscore.datasets.origins import RFrame

PAGE = " ".join((Path(__file__).parents[1] / "docs" / "causes.rst").read_text().split())
TEN_YEARS = 120.0  # months


@pytest.fixture(scope="module")
def mgus2():
    """Progression to a malignancy, or death without it."""
    origin = RFrame("survival", "mgus2", file="cancer")
    file = origin.find()
    if file is None:
        pytest.skip(origin.how_to_get)
    table = origin.read(file)
    progressed = (table["pstat"] == 1).to_numpy()
    time = np.where(progressed, table["ptime"], table["futime"])
    return ss.Outcomes(time, np.where(progressed, 1, 2 * table["death"]), causes=["progression", "death"])


def test_numbers_of_mgus2(mgus2):
    y, recoded = mgus2, ss.Outcomes(mgus2.time, mgus2.cause == 1)
    risks = {
        "Aalen-Johansen": Incidence.of(y.for_cause("progression")).table(np.array([TEN_YEARS]))[0, 0],
        # which treats deaths as censored
        "Kaplan-Meier": 1 - ss.KaplanMeierCensoring(ss.Outcomes(y.time, y.cause != 1)).at([TEN_YEARS])[0],
    }
    scores = {}
    for name, risk in risks.items():
        curves = ss.SurvivalCurves(np.full((len(y), 1), 1 - risk), [TEN_YEARS])
        for outcomes, cause in ((y, "progression"), (recoded, None)):
            found = ss.brier_score(outcomes, curves, cause=cause, weighting="ipcw", times=[TEN_YEARS])
            scores[name, cause is not None] = f"{found.scores[0]:.4f}"[1:]
    assert f"{len(y)} patients" in PAGE
    assert y.n_by_cause["death"] > len(y) / 2
    told, true = (f"{100 * risks[name]:.1f} %" for name in ("Kaplan-Meier", "Aalen-Johansen"))
    assert f"within ten years of {told} (Kaplan-Meier) instead of {true} (Aalen-Johansen)" in PAGE
    right, wrong = (scores["Aalen-Johansen", told] for told in (True, False))
    assert f"under IPCW a Brier score of the Aalen-Johansen prediction of {wrong} instead of {right}." in PAGE
    assert f"prefers the wrong prediction, Kaplan-Meier with {scores['Kaplan-Meier', False]};" in PAGE
    assert f"with causes, Kaplan-Meier has {scores['Kaplan-Meier', True]}." in PAGE
    assert scores["Kaplan-Meier", False] < wrong
    assert right < scores["Kaplan-Meier", True]


def test_prose_repeats_the_numbers_of_examples():
    truth = re.search(r"default auc 0(\.\d+) default auc@event-free 0(\.\d+)", PAGE)
    assert f"AUC of the true incidences of default is {truth[1]} or {truth[2]}." in PAGE
