"""Reference values of hazardous and SurvivalEVAL on the data with two causes of r_reference.json.

Usage, in an environment that has both (hazardous 0.2.0 and SurvivalEVAL 0.9.0 made the file), from the root:

    python tests/reference/make_competing_reference.py

It writes competing_reference.json beside this file. Everything is about model a, and G is fitted on the scored data.

Conventions of the quantities in the file
-----------------------------------------
- hazardous: the Brier score of the cause at each of `times`. Events have the weight 1/G(T), not 1/G(T-), with G by
  lifelines: at ties those with events are still at risk of being censored. Divided by n. G is at least 0.05.
- brier, auc, auc_event_free: those of SurvivalEVAL at each of `times`, by IPCW; controls are all who are not cases, or
  the event-free.
- concordance: its concordance for the cause (Wolbers) by IPCW, of event times before tau with the incidence at tau, for
  each tau of `times`. "Before tau" is strict there, so that it gets the next larger number.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from hazardous.metrics import brier_score_incidence
from SurvivalEVAL.evaluations.discrimination.single_time.area_under_ro_curve import auc_cr_per_event
from SurvivalEVAL.evaluations.discrimination.static.concordance import concordance_cr_per_event
from SurvivalEVAL.evaluations.prediction_error.brier_score import brier_multiple_points_cr_per_event

HERE = Path(__file__).parent


def results(data, k):
    time, event, times = np.array(data["time"], dtype=float), np.array(data["event"]), np.array(data["times"])
    incidence = np.array(data[f"cause_{k}"]["incidence_a"])
    y = {"event": event, "duration": time}
    training = {"train_event_times": time, "train_event_indicators": event}
    observed = {"event_times": time, "event_indicators": event, "event_of_interest": k, **training}

    def auc(j, controls):
        return float(auc_cr_per_event(
            incidence[:, j], target_time=times[j], method="IPCW", control_definition=controls, **observed
        ))  # fmt: skip

    def concordance(j):
        return float(concordance_cr_per_event(
            incidence[:, j], method="IPCW", ties="Risk", tau=np.nextafter(times[j], np.inf), **observed
        )[0])  # fmt: skip

    brier = brier_multiple_points_cr_per_event(incidence, target_times=times, ipcw=True, **observed)
    return {
        "hazardous": brier_score_incidence(y, y, incidence, times, event_of_interest=k).tolist(),
        "brier": np.asarray(brier).tolist(),
        "auc": [auc(j, "NotCase") for j in range(times.size)],
        "auc_event_free": [auc(j, "EventFree") for j in range(times.size)],
        "concordance": [concordance(j) for j in range(times.size)],
    }


def main():
    sets = json.loads((HERE / "r_reference.json").read_text())["competing"]
    found = {name: {f"cause_{k}": results(data, k) for k in (1, 2)} for name, data in sets.items()}
    packages = ("hazardous", "lifelines", "survivaleval", "numpy")
    meta = {"made_by": Path(__file__).name, "packages": {package: version(package) for package in packages}}
    with open(HERE / "competing_reference.json", "w", encoding="utf-8") as file:
        json.dump({"meta": meta, "datasets": found}, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
