"""Outcomes and three models for reports: the truth, one that knows C*, and one with a name that means harm."""

import numpy as np

import survscore as ss
from survscore.simulate import ConstantHazardStudy

HOSTILE = "<script>alert(1)</script>"
TITLE = 'A "title" & <b>more</b>'
TIMES = np.arange(5.0, 91.0, 5.0)
N_LOST = 9
PAPER = ["administrative", "ipcw"]  # the scores of the paper
OPTIONS = {"times": TIMES, "time_range": (5, 90), "title": TITLE, "horizons": [30, 60], "weighting": PAPER}


def make():
    sample = ConstantHazardStudy(hazard=0.003).sample(1500, seed=2)
    grid = np.arange(1.0, 101.0)
    truth = ss.SurvivalCurves(sample.survival(grid).probabilities, grid)
    known = sample.outcomes.censoring_time[:, None] > grid
    models = {
        "truth": truth,
        "leaking": ss.SurvivalCurves(0.9 * truth.probabilities * known, grid),
        HOSTILE: ss.SurvivalCurves(truth.probabilities**1.5, grid),
    }
    return sample.outcomes, models


def make_with_drop_outs():
    """Return the same with nine who dropped out halfway."""
    y, models = make()
    lost = np.flatnonzero(~y.event & (y.censoring_time > 40))[:N_LOST]
    time = y.time.copy()
    time[lost] /= 2
    return ss.Outcomes(time, y.event, y.censoring_time), models
