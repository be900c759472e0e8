"""Reference values of hazardous and SurvivalEVAL under competing risks, with the data that they are of.

Usage, with the environment of the benchmarks, which has both (see benchmarks/requirements.txt), from the root:

    benchmarks/.venv/bin/python tests/reference/make_causes_reference.py

It writes causes_reference.json beside this file. G is fitted on the scored data. Of two sets, ``continuous`` has no two
equal times, ``ties`` has whole numbers of fifths.

Conventions of the quantities in the file
-----------------------------------------
- hazardous, brier: of each cause at each of `times`. Any event by t weighs 1/G(T), others after t 1/G(t); events and
  censorings of the same time leave G together; G at least 0.05; divided by n.
- hazardous, log: minus the logarithm of the predicted probability of the status, event-free or which cause, with the
  same weights.
- SurvivalEVAL, brier: any event by t weighs 1/G(T-), others with T >= t 1/G(t-): whoever is censored at exactly t
  counts as event-free. Divided by n.
- SurvivalEVAL, auc: of each cause, by the control group; the same weights.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from hazardous.metrics import brier_score_incidence
from hazardous.metrics._negative_log_likelihood import negative_log_likelihood_incidence
from SurvivalEVAL import CompetingRisksEvaluator

HERE = Path(__file__).parent
TIMES = np.array([1.0, 2.0, 3.0, 4.0])
CONTROLS = {"not-case": "NotCase", "event-free": "EventFree"}


def drawn(seed, n, *, ties):
    """Return times, causes and incidences of a model that is wrong on purpose."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rates = np.column_stack([0.15 * np.exp(0.8 * x), 0.10 * np.exp(-0.4 * x)])
    each = rng.exponential(1 / rates)
    leaves, end = each.min(axis=1), rng.uniform(1, 7, n)
    if ties:
        leaves, end = np.ceil(5 * leaves) / 5, np.ceil(5 * end) / 5
    event = np.where(leaves <= end, 1 + each.argmin(axis=1), 0)
    wrong = rates * np.exp(0.4 * rng.normal(size=(n, 2)))
    total = wrong.sum(axis=1, keepdims=True)
    incidence = (wrong / total)[:, :, None] * -np.expm1(-total[:, :, None] * TIMES)
    return np.minimum(leaves, end), event, np.round(incidence, 6)


def of_hazardous(time, event, incidence):
    y = {"event": event, "duration": time}
    everything = np.concatenate([1 - incidence.sum(axis=1, keepdims=True), incidence], axis=1)
    return {
        "version": version("hazardous"),
        "brier": [
            brier_score_incidence(y, y, incidence[:, k], TIMES, event_of_interest=k + 1).tolist() for k in range(2)
        ],
        "log": negative_log_likelihood_incidence(y, y, everything, TIMES).tolist(),
    }


def of_survival_eval(time, event, incidence):
    # its curves must reach to the last time
    grid = np.append(TIMES, time.max() + 1)
    curves = np.concatenate([incidence, incidence[:, :, -1:]], axis=2)
    evaluator = CompetingRisksEvaluator(curves, grid, time, event, train_event_times=time, train_event_indicators=event)
    auc = {
        name: [[float(evaluator.auc_per_event(k, t, "IPCW", controls)) for t in TIMES] for k in (1, 2)]
        for name, controls in CONTROLS.items()
    }
    return {
        "version": version("SurvivalEVAL"),
        "brier": [
            np.asarray(evaluator.brier_score_multiple_points_per_event(TIMES, event_of_interest=k)).tolist()
            for k in (1, 2)
        ],
        "auc": auc,
    }


def main():
    datasets = {}
    for name, seed in (("continuous", 1), ("ties", 2)):
        time, event, incidence = drawn(seed, 150, ties=name == "ties")
        datasets[name] = {
            "time": time.tolist(), "event": event.tolist(), "times": TIMES.tolist(), "incidence": incidence.tolist(),
            "hazardous": of_hazardous(time, event, incidence), "SurvivalEVAL": of_survival_eval(time, event, incidence),
        }  # fmt: skip
    (HERE / "causes_reference.json").write_text(json.dumps({"datasets": datasets}) + "\n")


if __name__ == "__main__":
    main()
