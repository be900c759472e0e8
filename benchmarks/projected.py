"""How far from the truth three scores are: in the paper's designs, and where hazards change with the date of entry.

    python benchmarks/projected.py --json docs/benchmarks/projected.json

Fixed seeds; some ten minutes on two cores, nearly all of it for the networks (--replicates 0 leaves the designs out).
"""

from __future__ import annotations

import numpy as np

import survscore as ss
from results import Row, Run, parser
from survscore.paper import studies as s
from survscore.simulate import ConstantHazardStudy, SineConstantAcceleratingStudy

SCORES = {"administrative": "administrative", "ipcw": "ipcw", "projected": "projected"}
#: Smaller than the paper's, and trained for fewer epochs.
SIZE = s.Size("short", 3_000, 1_000, 6_000, epochs=40)
TIMES = np.array([25.0, 50.0, 75.0])
TRUTH, CUT = "truth", "truth, 0 after C*"

#: Individuals, the length of the window in which they enter, and the time at which they are scored.
N, WINDOW, AT = 4_000, 24.0, np.array([9.0])
HAZARD, EFFECT = 0.06, 0.8
DRIFTS = (-1.4, -0.7, 0.0, 0.7, 1.4)


def scores(y: ss.Outcomes, models: dict[str, ss.SurvivalCurves], weighting: object, times: np.ndarray) -> np.ndarray:
    """Return Brier scores, (models, times)."""
    return ss.compare(y, models, weighting=weighting, times=times, null=False).scored[0].scores


def fitted(design: str, replicate: int) -> tuple[s.Sample, dict[str, ss.SurvivalCurves]]:
    """Return test data of a design, and what the truth, the truth that falls at C* and both networks predict."""
    from survscore.models import BCESurvival, LogisticHazard

    seeds = s.Seeds.of(1, replicate)
    study = (
        ConstantHazardStudy()
        if design == "constant hazard"
        else SineConstantAcceleratingStudy(design, seed=seeds.study)
    )
    training, validation, test = s.samples(study, SIZE, seeds)
    truth = test.survival(TIMES)
    followed = np.asarray(test.outcomes.censoring_time)[:, None] > TIMES
    models = {TRUTH: truth, CUT: ss.SurvivalCurves(truth.probabilities * followed, TIMES, interpolation="step")}
    for name, kind in (("Logistic-Hazard", LogisticHazard), ("BCE", BCESurvival)):
        model = kind(**s.network_settings(SIZE, seeds)).fit(
            training.covariates, training.outcomes, validation=(validation.covariates, validation.outcomes)
        )
        models[name] = model.predict_curves(test.covariates, TIMES)
    return test, models


def designs(replicates: int) -> list[Row]:
    """Return a row for each design and score: mean bias of each model, and pairs of models in the true order."""
    rows = []
    for design in ("constant hazard", "simple", "complicated", "independent"):
        found: dict[str, list[np.ndarray]] = {"truth": [], **{name: [] for name in SCORES}}
        for replicate in range(replicates):
            test, models = fitted(design, replicate)
            found["truth"].append(scores(test.uncensored, models, "uncensored", TIMES))
            for name, weighting in SCORES.items():
                found[name].append(scores(test.outcomes, models, weighting, TIMES))
        truth = np.array(found["truth"])
        a, b = np.triu_indices(len(models), 1)
        for name in SCORES:
            said = np.array(found[name])
            agreed = (said[:, a] - said[:, b]) * (truth[:, a] - truth[:, b]) > 0
            best = np.take_along_axis(truth, said.argmin(axis=1)[:, None], axis=1)[:, 0]
            bias = (said - truth).mean(axis=(0, 2))
            rows.append(
                {"design": design, "score": name, "ordered": float(agreed.mean()), "pairs": int(agreed.size),
                 "regret": float((best / truth.min(axis=1) - 1.0).mean())}
                | {f"bias {model}": 1e4 * float(value) for model, value in zip(models, bias, strict=True)}
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def drifting(drift: float, seed: int) -> tuple[np.ndarray, float]:
    """Return the bias of scores of two models, one of which leaks, (scores, models), and the estimate of theta.

    All in one simulated study, in which the hazard is multiplied by exp(drift * (entry / window - 1/2)). The first
    model does not know: it is the truth of those who enter in the middle. The leaking one is the same up to C*, and
    0.05 times that after it.
    """
    rng = np.random.default_rng([seed, 7])
    x, entry = rng.normal(size=N), WINDOW * rng.random(N)
    hazard = HAZARD * np.exp(EFFECT * x)
    event, end = rng.exponential(1.0 / (hazard * np.exp(drift * (entry / WINDOW - 0.5)))), WINDOW - entry
    y = ss.Outcomes(np.minimum(event, end), event <= end, end)
    survival = np.exp(-hazard[:, None] * AT)
    falls = np.where(end[:, None] < AT, 0.05, 1.0)
    models = {"no leak": ss.SurvivalCurves(survival, AT), "leaking": ss.SurvivalCurves(survival * falls, AT)}
    truth = scores(ss.Outcomes(event, np.ones(N)), models, "uncensored", AT)[:, 0]
    compared = ss.compare(y, models, weighting="projected", times=AT, null=False)
    estimate = compared.sensitivity().point("leaking", time=AT[0]).hazard_ratio
    weightings = [*SCORES.values(), ss.Projected(theta=ratio(drift)), ss.Projected(theta=estimate)]
    return np.array([scores(y, models, weighting, AT)[:, 0] - truth for weighting in weightings]), estimate


def ratio(drift: float) -> float:
    """Return the hazard of those with C* < t, as a multiple of that of the others, at their mean dates of entry."""
    return float(np.exp(drift / 2.0))  # their mean dates are half a window apart, whatever t is


def drifts(samples: int) -> list[Row]:
    """Return a row for each drift: the mean bias of each score, of both models."""
    rows = []
    for drift in DRIFTS:
        several, estimates = zip(*(drifting(drift, seed) for seed in range(samples)), strict=True)
        found = 1e4 * np.array(several)
        row: Row = {"drift": drift, "ratio": ratio(drift), "largest_se": float(found.std(axis=0).max() / samples**0.5)}
        for q, name in enumerate((*SCORES, "theta", "estimate")):
            row |= {f"{name} no leak": float(found[:, q, 0].mean()), f"{name} leaking": float(found[:, q, 1].mean())}
        rows.append(row | {"estimate": float(np.mean(estimates))})
    return rows


def main() -> None:
    """Measure, print and write."""
    ask = parser(__doc__)
    ask.add_argument("--replicates", type=int, default=3, help="of each design, with two networks fitted in each")
    ask.add_argument("--samples", type=int, default=100, help="simulated studies with each drift")
    options = ask.parse_args()
    run = Run(ask, options, packages=("numpy", "torch"), times=TIMES.tolist(), n=N, at=float(AT[0]), window=WINDOW,
              training=SIZE.training, test=SIZE.test, epochs=SIZE.epochs)  # fmt: skip
    run.add(
        "drift",
        {"log hazard ratio, last to first entry": "{drift:+.1f}"}
        | {f"{name}: {model}": f"{{{name} {model}:+.0f}}" for name in SCORES for model in ("no leak", "leaking")}
        | {"theta": "{ratio:.2f}"}
        | {f"projected, that theta: {model}": f"{{theta {model}:+.0f}}" for model in ("no leak", "leaking")}
        | {"estimated theta": "{estimate:.2f}"}
        | {f"projected, estimated theta: {model}": f"{{estimate {model}:+.0f}}" for model in ("no leak", "leaking")},
        drifts(options.samples),
        "Drift: bias of Brier scores, in units of 1e-4",
    )
    if options.replicates:
        models = (TRUTH, CUT, "Logistic-Hazard", "BCE")
        run.add(
            "designs",
            {"design": "{design}", "score": "{score}"}
            | {f"bias: {model}": f"{{bias {model}:+.0f}}" for model in models}
            | {"pairs in the true order": "{ordered:%.0f} %", "chosen worse than best": "{regret:%.1f} %"},
            designs(options.replicates),
            "The paper's designs: bias in units of 1e-4",
        )
    run.write()


if __name__ == "__main__":
    main()
