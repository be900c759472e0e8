"""Models of two causes on simulated data, where the truth is known.

    python benchmarks/competing_risks.py --json docs/benchmarks/competing_risks.json

- Which score prefers classifiers per horizon that drop the censored, where a covariate encodes the censoring time.
- How far the incidences that networks predict are from the true ones: one network for both causes, and one for each,
  with the other cause's events censored.

Fixed seeds; some ten minutes of one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before scikit-learn and torch are loaded: trees this small lose by more

import numpy as np

import survscore as ss
from results import Row, Run, parser
from survscore.simulate import CompetingRisksStudy, Sample, mean_squared_error

STUDY = CompetingRisksStudy()
#: Individuals for training, and as many for testing.
N = 2_000
#: What scores are of; the last are multi-class.
CAUSES = (*STUDY.causes, "all")
HORIZONS = np.array([20.0, 40.0, 60.0])
DROPPING, KEEPING = "dropping the censored", "keeping C* >= t"
WEIGHTINGS = {"IPCW": "ipcw", "administrative": "administrative", "projected": "projected"}

SIZES = (1_000, 4_000, 16_000)
#: Without the date of entry: of those who entered late, later intervals have no data, and any prediction is as good.
COVARIATES = ["satisfaction", "debt"]
#: Up to where 20 % are still followed.
GRID = np.arange(5.0, 81.0, 5.0)
N_TEST = 4_000


def classifiers() -> dict[str, object]:
    """Return the classifiers that are fitted at each horizon."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    trees = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=0)
    return {"logistic regression": LogisticRegression(), "gradient boosting": trees}


def differences(classifier: object, replicate: int, causes: tuple[str, ...]) -> list[Row]:
    """Return how much higher each score of the dropping classifiers is, and the verdict, in one simulated data set."""
    from survscore.models import HorizonClassifiers

    train, test = (STUDY.sample(N, seed=2 * replicate + part) for part in (0, 1))
    models = {
        name: HorizonClassifiers(classifier, HORIZONS, keep=keep)
        .fit(train.covariates, train.outcomes)
        .predict_curves(test.covariates)
        for name, keep in ((DROPPING, "known"), (KEEPING, "administrative"))
    }
    rows = []
    for cause in causes:
        asked = {"times": HORIZONS, "cause": cause, "null": False, "reference": KEEPING}
        for y, weightings in ((test.uncensored, {"truth": "uncensored"}), (test.outcomes, WEIGHTINGS)):
            found = ss.compare(y, models, weighting=list(weightings.values()), **asked).integrated().contrasts
            for score, (_, contrast) in zip(weightings, found.iterrows(), strict=True):
                rows.append({"cause": cause, "score": score} | contrast[["difference", "verdict"]].to_dict())
    return rows


def preferences(replicates: int, causes: tuple[str, ...]) -> list[Row]:
    """Return, for each classifier and score, in how many data sets the dropping classifiers are preferred, by cause."""
    rows = []
    for name, classifier in classifiers().items():
        found = [one for k in range(replicates) for one in differences(classifier, k, causes)]
        for score in ("truth", *WEIGHTINGS):
            row: Row = {"what": f"{name}: {score}"}
            for cause in causes:
                several = [one for one in found if (one["cause"], one["score"]) == (cause, score)]
                difference = np.array([one["difference"] for one in several])
                row[f"{cause} lower"] = float(np.mean(difference < 0))
                row[f"{cause} difference"] = 1e4 * float(difference.mean())
                for verdict in ("better", "worse"):
                    row[f"{cause} {verdict}"] = float(np.mean([one["verdict"] == verdict for one in several]))
            rows.append(row)
            print(row, flush=True)
    return rows


def one_net(train: Sample, test: Sample, columns: list[str], seed: int) -> ss.IncidenceCurves:
    """Return what one network for all causes predicts."""
    model = _net(seed).fit(train.covariates[columns], train.outcomes)
    return model.predict_curves(test.covariates[columns], GRID)


def two_nets(train: Sample, test: Sample, columns: list[str], seed: int) -> ss.IncidenceCurves:
    r"""Return what networks for each cause predict together.

    Each is fitted with the events of the other cause as censored. An individual with such an event in an interval is
    then not counted there, so that the hazard :math:`q_k` learnt is that of those who have an event of cause k or none:
    its odds are those of cause k against none, :math:`q_k / (1 - q_k) = p_k / p_0`, and
    :math:`p_k = o_k / (1 + \sum_l o_l)` of all odds o.
    """
    y, odds = train.outcomes, []
    for k in range(1, len(STUDY.causes) + 1):
        alone = ss.Outcomes(y.time, y.cause == k, y.censoring_time)
        survival = _net(seed).fit(train.covariates[columns], alone).predict_curves(test.covariates[columns], GRID)
        padded = np.pad(np.maximum(survival.probabilities, 1e-30, dtype=float), ((0, 0), (1, 0)), constant_values=1.0)
        odds.append(padded[:, :-1] / padded[:, 1:] - 1.0)
    total = 1.0 + sum(odds)
    before = np.cumprod(np.pad(1.0 / total, ((0, 0), (1, 0)), constant_values=1.0), axis=1)[:, :-1]
    incidence = {name: np.cumsum(each / total * before, axis=1) for name, each in zip(STUDY.causes, odds, strict=True)}
    return ss.IncidenceCurves(incidence, GRID)


def _net(seed: int) -> ss.models.LogisticHazard:
    return ss.models.LogisticHazard(times=GRID, random_state=seed, device="cpu", progress=False)


def errors(replicates: int) -> list[Row]:
    """Return a row per size and cause: the mean squared errors of predicted incidences, means over data sets."""
    test = STUDY.sample(N_TEST, seed=1_000_000)
    truth = test.incidence(GRID)
    everything = [*COVARIATES, "entry"]
    ways = {
        "one": lambda train, seed: one_net(train, test, COVARIATES, seed),
        "two": lambda train, seed: two_nets(train, test, COVARIATES, seed),
        "entry": lambda train, seed: one_net(train, test, everything, seed),
        "null": lambda train, seed: (
            ss.models.AalenJohansen(times=GRID).fit(None, train.outcomes).predict_curves(test.covariates)
        ),
    }
    rows = []
    for n in SIZES:
        found: dict[str, list[list[float]]] = {way: [] for way in ways}
        for replicate in range(replicates):
            train = STUDY.sample(n, seed=2_000_000 + replicate)
            for way, predicted in ways.items():
                curves = predicted(train, replicate)
                found[way].append([mean_squared_error(truth, curves, GRID, cause=c).mean() for c in STUDY.causes])
        for k, cause in enumerate(STUDY.causes):
            row: Row = {"what": f"{n} individuals, {cause}"}
            for way, several in found.items():
                each = 1e4 * np.array(several)[:, k]
                row |= {way: float(each.mean()), f"{way} se": float(each.std(ddof=1) / replicates**0.5)}
            paired = 1e4 * (np.array(found["two"]) - np.array(found["one"]))[:, k]
            row |= {"gain": float(paired.mean()), "gain se": float(paired.std(ddof=1) / replicates**0.5)}
            rows.append(row)
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print and write."""
    import torch

    torch.set_num_threads(1)
    ask = parser(__doc__)
    ask.add_argument("--data-sets", type=int, default=100, help="in which classifiers are compared")
    ask.add_argument("--replicates", type=int, default=10, help="data sets of each size to which networks are fitted")
    options = ask.parse_args()
    run = Run(ask, options, packages=("numpy", "torch", "scikit-learn"), n=N, test=N_TEST, horizons=HORIZONS.tolist())
    run.add(
        "preferences",
        {
            "classifier, score": "{what}",
            **{f"preferred: {cause}": f"{{{cause} lower:%.0f}} %" for cause in CAUSES},
            **{f"significantly: {cause}": f"{{{cause} better:%.0f}} %" for cause in CAUSES},
            **{f"significantly worse: {cause}": f"{{{cause} worse:%.0f}} %" for cause in CAUSES},
            **{f"difference, 1e-4: {cause}": f"{{{cause} difference:+.0f}}" for cause in CAUSES},
        },
        preferences(options.data_sets, CAUSES),
        "Classifiers per horizon that drop the censored, against those that keep C* >= t",
    )
    run.add(
        "errors",
        {
            "individuals, cause": "{what}",
            "one network": "{one:.1f} ({one se:.1f})",
            "one network per cause": "{two:.1f} ({two se:.1f})",
            "difference": "{gain:+.1f} ({gain se:.1f})",
            "one network, with the date of entry": "{entry:.1f} ({entry se:.1f})",
            "Aalen-Johansen": "{null:.1f} ({null se:.1f})",
        },
        errors(options.replicates),
        "Mean squared errors of incidences, 1e-4 (standard errors)",
    )
    run.write()


if __name__ == "__main__":
    main()
