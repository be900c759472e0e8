"""Arguments that no caller should pass are refused as such, whatever they are."""

import datetime as dt
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import torch

import mangling
import survscore as ss

Y, MODELS, _ = mangling.study(n=60)
CURVES = MODELS["net"]
CHOICES = np.array(["linear", "step"])
SCORED = {"weighting": "administrative", "times": [4]}


@pytest.mark.parametrize("choice", [CHOICES, np.array("step"), ["step"], 0, "other"], ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("interpolation", lambda choice: ss.SurvivalCurves([[0.5]], [1], interpolation=choice)),
        ("extrapolation", lambda choice: ss.SurvivalCurves([[0.5]], [1], extrapolation=choice)),
        ("weight_kind", lambda choice: Y.weighted(np.ones(60), choice)),
        ("config.backend", lambda choice: setattr(ss.config, "backend", choice)),
    ],
)
def test_a_choice_is_one_of_the_names_and_no_array(name, call, choice):
    with pytest.raises(ss.InputError, match=f"{name} must be one of"):
        call(choice)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ss.calibration(Y, CURVES, 8, n_draws=10**9), "n_draws must be at most 100000"),
        (lambda: CURVES.concatenate(3), "parts must be SurvivalCurves, not 3"),
        (lambda: CURVES.to("x"), "device must be one of torch's, such as 'cuda', not 'x'"),
        (lambda: Y.at_landmark("x"), "s must hold numbers"),
        (lambda: ss.Log("x"), r"epsilon must be at least 2\*\*-53 and below 0.5, not 'x'"),
    ],
)
def test_hostile_arguments_are_input_errors(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()


NONSENSE = [
    None, "x", "", b"x", 3, -1, 3.5, np.nan, np.inf, True, 10**30, [], [1], ["a"], [None], [1, 2, 3, 4], [[1], [2, 3]],
    {}, {"a": 1}, {1, 2}, object(), int, ..., slice(0, 1), lambda x: x, np.array("x"), np.array(["a", "b"]),
    np.array([1j]), np.array([]), np.array([[]]), np.ones((2, 2, 2)), np.array([None, 1], dtype=object),
    np.datetime64("2020-01-01"), dt.date(2020, 1, 1), pd.NaT, pd.Series([1, None]), np.ma.masked, torch.tensor(True),
    torch.tensor([1.0, 2.0]),
]  # fmt: skip
SOME = ss.Outcomes([1, 3, 4, 5], [1, 0, 2, 1], [4, 3, 6, 5], causes=["a", "b"])
DATED = ss.Outcomes.from_dates(["2020-01-01"] * 2, ["2020-01-11", None], "2020-03-01")
SURVIVAL = ss.SurvivalCurves([[0.9, 0.5]] * 4, [1, 4])
INCIDENCES = ss.IncidenceCurves(np.full((4, 2, 2), 0.2), [1, 4], causes=["a", "b"])
#: What takes one argument, whatever it is: by name, a function of it.
CALLS = {
    "y for_cause": SOME.for_cause, "cause of one kind": DATED.for_cause,
    "y weighted": SOME.weighted, "y at_landmark": SOME.at_landmark, "y to": SOME.to,
    "y until": SOME.until, "y as_of": DATED.as_of, "y concatenate": ss.Outcomes.concatenate,
    "y structured": lambda v: SOME.to_structured(censoring_time=v), "y from_structured": ss.Outcomes.from_structured,
    "y from_frame": lambda v: ss.Outcomes.from_frame(v, time="a", event="b"),
    "y column": lambda v: ss.Outcomes.from_frame(pd.DataFrame({"a": [1], "b": [1]}), time=v, event="b"),
    "quantiles": lambda v: ss.SurvivalCurves.from_quantiles(v, [0.5], [1]),
    "levels": lambda v: ss.SurvivalCurves.from_quantiles([[2, 3]], v, [1]),
    "extrapolated": lambda v: ss.SurvivalCurves.from_quantiles([[2, 3]], [0.5, 0.6], [1], extrapolation=v),
    "event probabilities": lambda v: ss.SurvivalCurves.from_event_probabilities(v, [1, 4]),
    "pmf": lambda v: ss.SurvivalCurves.from_pmf(v, [1, 4]), "hazards": lambda v: ss.SurvivalCurves.from_hazards(v, [1]),
    "step functions": ss.SurvivalCurves.from_step_functions, "frame": ss.SurvivalCurves.from_frame,
    "event of interest": INCIDENCES.for_cause, "times of grid": lambda v: ss.SurvivalCurves([[0.9, 0.5]], v),
    "names": lambda v: ss.IncidenceCurves([[[0.1, 0.2]]], [1, 4], causes=v), "epsilon": ss.LogScore,
    "threshold": ss.NetBenefit, "strata": lambda v: ss.Concordance("weighted", strata=v),
    "threads": lambda v: ss.config.using(threads=v).__enter__(),
}  # fmt: skip
CALLS |= {method: getattr(SURVIVAL, method) for method in ("at_own", "before")}
for _curves in (SURVIVAL, INCIDENCES):
    _name = type(_curves).__name__
    CALLS |= {f"{_name} {method}": getattr(_curves, method) for method in ("at", "conditional_on", "concatenate", "to")}
    CALLS[f"{_name} after"] = lambda v, curves=_curves: curves.conditional_on(1.0, times=v)
    CALLS[f"{_name} common grid"] = lambda v, curves=_curves: curves.concatenate([curves], times=v)
    CALLS[f"{_name} probabilities"] = lambda v, curves=_curves: type(curves)(v, [1, 4])
for _name in ("time", "event", "censoring_time", "causes", "entry", "weights"):
    CALLS[_name] = lambda v, name=_name: ss.Outcomes(**{"time": [1, 2], "event": [1, 0], name: v})
for _name in ("start", "event_date", "cutoff", "unit", "last_seen", "entry_date", "cause", "causes", "weights"):
    _dates = {"start": ["2020-01-02"], "event_date": ["2020-01-03"], "cutoff": "2020-02-01", "cause": ["a"]}
    CALLS[f"from_dates {_name}"] = lambda v, name=_name, dates=_dates: ss.Outcomes.from_dates(**dates | {name: v})
for _name in ("y", "curves", "times", "cause", "weighting", "groups", "level", "ranges", "errors", "metric"):
    _given = {"y": SOME, "curves": INCIDENCES, "cause": 1, "metric": "brier", **SCORED}
    CALLS[f"score {_name}"] = lambda v, name=_name, given=_given: ss.score_all(**given | {name: v})
CALLS["models"] = lambda v: ss.compare(Y, v, **SCORED)
CALLS["unit"] = lambda v: ss.score_table(Y, MODELS, horizons=[4], metric="brier", unit=v)
CALLS["terms metric"] = lambda v: ss.score_terms(SOME, INCIDENCES, cause=1, metric=v, **SCORED)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_nonsense_is_taken_or_an_input_error_and_nothing_else(name, monkeypatch):
    monkeypatch.setattr(ss.config, "threads", None)
    for value in NONSENSE:
        with suppress(ss.InputError):
            CALLS[name](value)
