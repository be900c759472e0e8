"""Reference values of SurvivalEVAL on the data of r_reference.json.

Usage, with the environment of the benchmarks, which has SurvivalEVAL (see benchmarks/requirements.txt), from the root:

    benchmarks/.venv/bin/python tests/reference/make_survivaleval_reference.py

It writes survivaleval_reference.json beside this file. Everything is about model a, and G is fitted on the scored
data, unless it says otherwise.

Conventions of the quantities in the file
-----------------------------------------
- brier, auc_ipcw, auc_naive: at each of `times`. Those censored at exactly t count as event-free, with 1/G(t-).
- brier_trained: the Brier score of the first half of the individuals at each of `times`, G fitted on the other half.
- integrated: `SurvivalEvaluator.integrated_brier_score(target_times=times)`, of all individuals.
- uno, harrell: concordance of the survival predicted for tau with event times up to tau, for each tau of `times`.
  "Before tau" is strict there, so that it gets the next larger number; what it calls predicted times are predictions.
- antolini: as harrell, but with predictions at the time of the case, read as steps (1 before the first of `times`), up
  to the last of `times`.
- d_calibration: of the data cut off at the last of `times`, with curves that are linear between them, from 1 at 0.
- d_calibration_all_events: the same as if every time were that of an event, and curves fell on to 0 at END.
Undefined values are null.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from SurvivalEVAL import SurvivalEvaluator
from SurvivalEVAL.evaluations.calibration.distributional.distribution_calibration import d_calibration
from SurvivalEVAL.evaluations.discrimination.distributional.time_dependent_concordance import (
    concordance_time_dependent,
)
from SurvivalEVAL.evaluations.discrimination.single_time.area_under_ro_curve import auc
from SurvivalEVAL.evaluations.discrimination.static.concordance import concordance
from SurvivalEVAL.evaluations.prediction_error.brier_score import brier_multiple_points

HERE = Path(__file__).parent
END = 40.0


def defined(compute):
    """Return a number, or None where the library says that there is none."""
    try:
        return float(compute())
    except ValueError:
        return None


def linear(survival, times, own):
    """Return each individual's survival at its own time, linear between `times` from 1 at 0."""
    grid, values = np.append(0.0, times), np.column_stack((np.ones(len(survival)), survival))
    return np.array([np.interp(t, grid, row) for t, row in zip(own, values, strict=True)])


def of_calibration(probabilities, event):
    statistic, p_value, histogram = d_calibration(probabilities, event)
    return {"statistic": float(statistic), "p_value": float(p_value), "histogram": histogram.tolist()}


def results(data):
    time, event = np.array(data["time"], dtype=float), np.array(data["event"], dtype=bool)
    times, survival = np.array(data["times"]), np.array(data["model_a"])
    both = (time, event)

    def by_time(measure):
        return [defined(lambda j=j, t=t: measure(survival[:, j], float(t))) for j, t in enumerate(times)]

    def concordance_of(method):
        return by_time(lambda x, t: concordance(x, *both, *both, method=method, tau=float(np.nextafter(t, np.inf)))[0])

    cut, seen = np.minimum(time, times[-1]), event & (time <= times[-1])
    columns = np.searchsorted(times, time[event], side="right")
    steps = np.column_stack((np.ones(len(time)), survival))[:, columns]
    longer, farther = np.column_stack((survival, np.zeros(len(time)))), np.append(times, END)
    half = len(time) // 2
    first, second = ((time[rows], event[rows]) for rows in (slice(half), slice(half, None)))
    # curves begin with 1 at time 0
    evaluator = SurvivalEvaluator(
        np.column_stack((np.ones(len(time)), survival)), np.append(0.0, times), time, event.astype(int), *both
    )
    return {
        "brier": brier_multiple_points(survival, *both, *both, times).tolist(),
        "brier_trained": brier_multiple_points(survival[:half], *first, *second, times).tolist(),
        "integrated": float(evaluator.integrated_brier_score(target_times=times)),
        "auc_ipcw": by_time(lambda x, t: auc(x, *both, t, *both, method="IPCW")),
        "auc_naive": by_time(lambda x, t: auc(x, *both, t, method="Naive")),
        "uno": concordance_of("Uno"),
        "harrell": concordance_of("Harrell"),
        "antolini": float(concordance_time_dependent(-steps, *both, tau=float(np.nextafter(times[-1], np.inf)))[0]),
        "d_calibration": of_calibration(linear(survival, times, cut), seen),
        "d_calibration_all_events": of_calibration(linear(longer, farther, time), np.ones(len(time), dtype=bool)),
    }


if __name__ == "__main__":
    datasets = json.loads((HERE / "r_reference.json").read_text())["datasets"]
    found = {
        "made_by": "tests/reference/make_survivaleval_reference.py",
        "SurvivalEVAL": version("SurvivalEVAL"),
        "datasets": {name: results(data) for name, data in datasets.items()},
    }
    (HERE / "survivaleval_reference.json").write_text(json.dumps(found, indent=1) + "\n")
