"""Arguments that no caller should pass are refused as such, whatever they are."""

import numpy as np
import pytest

import mangling
import survscore as ss
from survscore.weighting import weightings_that_fit

Y, MODELS, _ = mangling.study(n=60)
CURVES = MODELS["net"]
INCIDENCES = ss.IncidenceCurves(np.full((60, 2, 1), 0.25), [4.0])
CHOICES = np.array(["linear", "step"])
NONSENSE = [None, "x", 3.0, [1.0] * 60, np.array(["x"] * 60), np.ones(59), np.ones((60, 1)), np.ones(60, dtype=complex)]
SCORED = {"weighting": "administrative", "times": [4]}


@pytest.mark.parametrize("time", NONSENSE, ids=lambda time: f"{type(time).__name__} {np.shape(time)}")
@pytest.mark.parametrize("method", ["before", "at_own"])
def test_own_times_of_curves_must_be_a_vector_of_numbers(method, time):
    with pytest.raises(ss.InputError, match="time must be an array of 60 times, one for each row"):
        getattr(CURVES, method)(time)


@pytest.mark.parametrize("curves", [CURVES, INCIDENCES], ids=["survival", "incidence"])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda curves: curves.at("x"), "times must"),
        (lambda curves: curves.at(CHOICES), "times must hold numbers"),
        (lambda curves: curves.at(None), "times must"),
        (lambda curves: curves.at([np.nan]), "times must be finite"),
        (lambda curves: curves.conditional_on("x"), "s must"),
        (lambda curves: curves.conditional_on(CHOICES), "s must hold numbers"),
        (lambda curves: curves.conditional_on(1.0, times=CHOICES), "times must hold numbers"),
        (lambda curves: curves.conditional_on([1.0, 2.0], times=[1.0]), "s has length 2"),
        (lambda curves: curves.concatenate([curves], times="x"), "times must"),
        (lambda curves: curves.concatenate([1]), "parts must be"),
    ],
)
def test_methods_of_curves_refuse_nonsense(curves, call, message):
    with pytest.raises(ss.InputError, match=message):
        call(curves)


@pytest.mark.parametrize("choice", [CHOICES, np.array("step"), ["step"], 0, "other"], ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("interpolation", lambda choice: ss.SurvivalCurves([[0.5]], [1], interpolation=choice)),
        ("interpolation", lambda choice: ss.IncidenceCurves([[[0.5]]], [1], interpolation=choice)),
        ("extrapolation", lambda choice: ss.SurvivalCurves([[0.5]], [1], extrapolation=choice)),
        ("monotone", lambda choice: ss.SurvivalCurves([[0.5]], [1], monotone=choice)),
        ("kind", lambda choice: ss.SurvivalCurves.from_hazards([[0.5]], [1], kind=choice)),
        ("first", lambda choice: ss.IncidenceCurves([[[0.5]]], [1], first=choice)),
        ("weight_kind", lambda choice: Y.weighted(np.ones(60), choice)),
        ("late_starts", lambda choice: ss.Outcomes.from_dates([], [], "2020-01-01", late_starts=choice)),
        ("kind", ss.Concordance),
        ("controls", ss.AUC),
        ("config.backend", lambda choice: setattr(ss.config, "backend", choice)),
    ],
)
def test_a_choice_is_one_of_the_names_and_no_array(name, call, choice):
    with pytest.raises(ss.InputError, match=f"{name} must be one of"):
        call(choice)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ss.score_table(Y, MODELS, metric=[0]), "metric must be one of"),
        (lambda: weightings_that_fit(3), "y must be Outcomes, not int"),
        (lambda: ss.brier_score(Y, CURVES, weighting=CHOICES), "weighting must be one of"),
        (lambda: ss.score_all(Y, CURVES, metric=CHOICES, **SCORED), "metric must be one of"),
        (lambda: ss.calibration(Y, CURVES, 8, n_draws=10**9), "n_draws must be at most 100000"),
        (lambda: ss.brier_score(Y, CURVES, **SCORED | {"times": CHOICES}), "times must"),
    ],
)
def test_hostile_arguments_are_input_errors(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()
