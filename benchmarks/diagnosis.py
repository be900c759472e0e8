"""How often ss.diagnose flags models without a leak, and how often it finds those that encode C*.

    python benchmarks/diagnosis.py

Prints Markdown tables. Fixed seeds; five to ten minutes on two cores. --quick is a smoke test.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import survscore as ss
from calendar_study import CalendarStudy

SIZES = (1000, 1500, 2000)
TRENDS, COHORTS, HAZARDS = (0.25, 1.0, 4.0), (0.3, 1.0, 3.0), (0.004, 0.008, 0.02)
#: of the hazard on the cut-off date, and 15 units before
CHANGES = ((0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (1.0, 4.0))
#: hazard, R2, number of individuals, trend and cohort effect where models leak
LEAKS = (
    (0.008, 0.8, 5000, 1.0, 1.0),
    (0.004, 0.8, 5000, 1.0, 1.0),
    (0.02, 0.8, 5000, 1.0, 1.0),
    (0.008, 0.8, 5000, 4.0, 3.0),
    (0.008, 0.8, 2000, 1.0, 1.0),
    (0.008, 0.8, 1000, 1.0, 1.0),
    (0.008, 0.95, 1000, 1.0, 1.0),
    (0.008, 0.6, 5000, 1.0, 1.0),
)


def honest(seed: int) -> dict[str, str]:
    """Return the verdicts on models without a leak; every data set has its own calendar, cohort effect and size."""
    worlds = list(product(TRENDS, CHANGES, COHORTS, HAZARDS, SIZES, (0.0, 0.005)))
    worlds = [world for world in worlds if world[:3] != (1.0, (1.0, 1.0), 1.0)]
    trend, (jump, wave), cohort, hazard, n, drop_out = worlds[np.random.default_rng(seed).integers(len(worlds))]
    study = CalendarStudy(hazard, trend, jump, cohort, drop_out=drop_out, wave=wave)
    sample, train = study.sample(n, 10_000 + seed), study.sample(n, 20_000 + seed)
    models = ss.diagnose(sample.y, sample.honest(train)).models
    return {**dict(zip(models["model"], models["verdict"], strict=True)), "jump": str(jump), "wave": str(wave)}


def leaking(hazard: float, r2: float, n: int, trend: float, cohort: float, seed: int) -> dict[str, str]:
    """Return the verdicts on a leak and on the truth beside it, and whether IPCW prefers the leak."""
    sample = CalendarStudy(hazard, trend, cohort=cohort, r2=r2).sample(n, 30_000 + seed)
    leaks = {"classifiers": sample.leaking(), "product": sample.product()}
    found = ss.diagnose(sample.y, {"truth": sample.truth, **leaks})
    verdicts = dict(zip(found.models["model"], found.models["verdict"], strict=True))
    scores = found.caps[np.isinf(found.caps["max_weight"])].set_index("model")["score"]
    prefers = {f"IPCW prefers {name}": str(scores[name] < scores["truth"]) for name in leaks}
    return {**verdicts, **prefers, "ipcw": found.ipcw}


def share(count: int, of: int) -> str:
    return f"{count} of {of} ({100 * count / of:.1f} %)" if of else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few data sets each")
    quick = parser.parse_args().quick
    n_honest, n_leaking = (6, 2) if quick else (200, 100)
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        verdicts = list(pool.map(honest, range(n_honest)))
        names = ["truth", "wrong", "one curve", "entry date"]
        print("### Models without a leak\n")
        print("| model | encodes C* (false alarm) | unclear | no sign | too few |\n| --- | --- | --- | --- | --- |")
        for name in names:
            count = Counter(one[name] for one in verdicts)
            print(f"| {name} | " + " | ".join(
                share(count[v], n_honest) for v in ("encodes C*", "unclear", "no sign", "too few")) + " |")  # fmt: skip
        alarms = [one for one in verdicts if any(one[name] == "encodes C*" for name in names)]
        print(f"| any of the four | {share(len(alarms), n_honest)} | | | |\n")
        for change, when in (("jump", "at the cut-off"), ("wave", "15 units before it")):
            total = Counter(one[change] for one in verdicts)
            unclear = Counter(one[change] for one in verdicts if any(one[name] == "unclear" for name in names))
            shares = ", ".join(f"x{factor}: {unclear[factor]} of {total[factor]}" for factor in sorted(total))
            print(f"Unclear by change of the hazard {when}: {shares}.\n")
        print("### Models that encode C*\n")
        print(
            "| hazard | R2 | n | trend, cohort | leak | IPCW prefers it | found | of those preferred | truth accused |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for hazard, r2, n, trend, cohort in LEAKS:
            found = list(pool.map(partial(leaking, hazard, r2, n, trend, cohort), range(n_leaking)))
            accused = sum(one["truth"] == "encodes C*" for one in found)
            for leak in ("classifiers", "product"):
                preferred = [one for one in found if one[f"IPCW prefers {leak}"] == "True"]
                power = sum(one[leak] == "encodes C*" for one in found)
                among = sum(one[leak] == "encodes C*" for one in preferred)
                print(f"| {hazard} | {r2} | {n} | {trend}, {cohort} | {leak} | {share(len(preferred), n_leaking)} | "
                      f"{share(power, n_leaking)} | {share(among, len(preferred))} | {share(accused, n_leaking)} |",
                      flush=True)  # fmt: skip
    print(f"\n{time.perf_counter() - start:.0f} s, survscore {ss.__version__}.")


if __name__ == "__main__":
    main()
