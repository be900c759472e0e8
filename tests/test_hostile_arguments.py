"""Arguments that nobody should give are refused as such, whatever they are."""

import numpy as np
import pytest

import mangling
import survscore as ss
from survscore.weighting import weightings_that_fit

Y, MODELS, _ = mangling.study(n=60)
CURVES = MODELS["net"]
CHOICES = np.array(["linear", "step"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ss.score_table(Y, MODELS, metric=[0]), "metric must be one of"),
        (lambda: weightings_that_fit(3), "y must be Outcomes, not int"),
        (lambda: CURVES.before("x"), "time must be an array of 60 times"),
        (lambda: CURVES.before(np.array(["x"] * 60)), "time must be an array of 60 times"),
        (lambda: ss.SurvivalCurves(CURVES.probabilities, CURVES.times, interpolation=CHOICES), "interpolation must be"),
        (lambda: ss.brier_score(Y, CURVES, weighting=CHOICES), "weighting must be one of"),
        (lambda: ss.calibration(Y, CURVES, 8, n_draws=10**9), "n_draws must be at most 100000"),
        (lambda: ss.brier_score(Y, CURVES, weighting="administrative", times=CHOICES), "times must"),
    ],
)
def test_hostile_arguments_are_input_errors(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()
