"""The paper's studies, one replicate at a time: simulate or read, fit, predict, score.

A replicate is one long table; what figures show and claims check is computed from such tables alone.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FewFollowedWarning, FloatArray, UndefinedScoreWarning
from survscore.analysis.compare import compare
from survscore.curves import SurvivalCurves
from survscore.datasets import kkbox
from survscore.datasets.kkbox.prepared import split
from survscore.io.files import temporary_folder
from survscore.outcomes import Outcomes
from survscore.simulate import ConstantHazardStudy, Sample, SineConstantAcceleratingStudy, mean_squared_error
from survscore.simulate.studies import Constant
from survscore.weighting import IPCW, Administrative, Projected, Uncensored, Weighting

if TYPE_CHECKING:
    import pandas as pd

    from survscore.models import LogisticHazard

TRUTH, HAZARD, BCE, BCE_TOLD = "true survival", "Logistic-Hazard", "BCE", "BCE told C*"
NULL = "Kaplan-Meier"
UNCENSORED, ADMINISTRATIVE, PROJECTED = "uncensored", "administrative", "projected"
IPCW_KM, IPCW_TRUE = "IPCW, Kaplan-Meier", "IPCW, true censoring"
IPCW_100, IPCW_1000 = "IPCW, Logistic-Hazard, weights up to 100", "IPCW, Logistic-Hazard, weights up to 1000"
IPCW_UNCAPPED = "IPCW, Logistic-Hazard, any weight"
LOSSES = ("brier", "log")
#: The study of churn, on prepared data of KKBox or on synthetic ones.
CHURN = "kkbox"
#: The largest weights of its scores with a Logistic-Hazard censoring model.
CAPS = (1.0, 10.0, 100.0, 1000.0)
#: Synthetic customers per spell wanted, to have enough of them after some are dropped.
CUSTOMERS_PER_SPELL = 1.1
#: Up to the last grid time but one: at 100 nobody is left event-free, and classifiers learn a survival of zero there.
TIMES = np.arange(1.0, 99.0)
#: Of the demo: up to a time to which enough individuals are followed for the projected score.
DEMO_TIMES = np.arange(1.0, 91.0)
FINE_TIMES = np.arange(1, 1001) / 10.0
#: Censoring times whose predictions figure 2 shows.
SHOWN_CENSORING_TIMES = (10.0, 25.0, 40.0, 55.0, 70.0, 90.0)

#: What a table's rows are about: of churn also the mean squared error against the truth, where that is known, and
#: differences integrated over the last third of the times only.
SURVIVAL, SCORE, INTEGRATED, DIFFERENCE = "survival", "score", "integrated", "difference"
ERROR, LATE = "error", "late"
COLUMNS = ["kind", "loss", "weighting", "model", "reference", "censoring_time", "time", "value", "se"]

Values = NDArray[np.float64]
#: Covariates and outcomes, to train on and to validate on.
Parts = Sequence[tuple[Any, Outcomes]]
#: Called with what is being done, so that a user sees progress.
Report = Callable[[str], None]


def capped(cap: float) -> str:
    """Return the name of the score with a Logistic-Hazard censoring model and this cap."""
    return f"IPCW, Logistic-Hazard, weights up to {cap:g}"


@dataclass(frozen=True)
class Size:
    """How large a replicate is: individuals, grid times of the nets, epochs at most."""

    name: str
    training: int
    validation: int
    test: int
    n_times: int = 50
    epochs: int = 511


SIZES = {
    "paper": Size("paper", 10_000, 4_000, 10_000),
    "quick": Size("quick", 1_500, 500, 2_000, n_times=25, epochs=15),
}
DEMO_SIZES = {
    "demo": Size("demo", 10_000, 4_000, 10_000),
    "quick": Size("quick", 3_000, 1_000, 6_000, epochs=20),
}
CHURN_SIZES = {
    "paper": Size("paper", 100_000, 20_000, 100_000, n_times=150, epochs=63),
    "quick": Size("quick", 2_000, 600, 2_000, n_times=30, epochs=3),
}


@dataclass(frozen=True)
class Seeds:
    """Seeds of one replicate: of the study's coefficients, the three samples, and the nets."""

    study: int
    training: int
    validation: int
    test: int
    nets: int

    @classmethod
    def of(cls, seed: int, replicate: int) -> Seeds:
        """Derive them from the seed of all replicates and the number of this one."""
        return cls(*(int(part) for part in np.random.SeedSequence((seed, replicate)).generate_state(5) >> 1))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Individuals to score on, what each method predicts for them, and by which weightings to judge it."""

    test: Sample
    curves: Mapping[str, SurvivalCurves]
    weightings: Mapping[str, Weighting]
    times: Values

    def scores(self, references: tuple[str, ...]) -> pd.DataFrame:
        """Return scores by time and integrated, and differences to each reference, for both losses."""
        tables = []
        for loss in LOSSES:
            uncensored = {UNCENSORED: Uncensored()}
            tables += compared(self.test.uncensored, self.curves, uncensored, loss, references, times=self.times)
            tables += compared(self.test.outcomes, self.curves, self.weightings, loss, references, times=self.times)
            if PROJECTED not in self.weightings:
                tables += projected(self.test.outcomes, self.curves, loss, self.times)
        return _joined(tables)


# The studies


def constant_hazard(size: Size, seeds: Seeds, report: Report) -> pd.DataFrame:
    """Run the study with one hazard for all: the BCE method with and without a covariate that encodes C*."""
    from survscore.models import BCESurvival

    study = ConstantHazardStudy()
    report("simulating")
    parts = samples(study, size, seeds)
    test = parts[2]
    curves: dict[str, Any] = {TRUTH: test.survival(TIMES)}
    ends = np.array(SHOWN_CENSORING_TIMES)
    shown: dict[str, FloatArray] = {TRUTH: np.tile(study.survival(FINE_TIMES), (ends.size, 1))}
    # a constant in place of the covariate says nothing about C*
    for name, factor in ((BCE, 0.0), (BCE_TOLD, 1.0)):
        report(f"fitting {name}")
        training, validation, tested = (factor * part.covariates.to_numpy(dtype=np.float64) for part in parts)
        model = BCESurvival(**network_settings(size, seeds)).fit(
            training, parts[0].outcomes, validation=(validation, parts[1].outcomes)
        )
        curves[name] = model.predict_curves(tested, TIMES)
        shown[name] = model.predict_survival_function(factor * study.covariates_of(ends).to_numpy(), FINE_TIMES)
    report("scoring")
    tables = [
        rows(SURVIVAL, model=name, censoring_time=end, time=FINE_TIMES, value=row)
        for name, survival in shown.items()
        for end, row in zip(ends, survival, strict=True)
    ]
    weightings = {IPCW_KM: IPCW(), IPCW_TRUE: IPCW("known"), ADMINISTRATIVE: Administrative()}
    return _joined([*tables, Fitted(test, curves, weightings, TIMES).scores(references=(TRUTH, BCE_TOLD))])


def mixture(censoring: str, size: Size, seeds: Seeds, report: Report) -> pd.DataFrame:
    """Run the study with hazards from a mixture: both methods and a censoring model, under six weightings."""
    study = SineConstantAcceleratingStudy(censoring, seed=seeds.study)
    report("simulating")
    *fitted_to, test = samples(study, size, seeds)
    parts, net = [(sample.covariates, sample.outcomes) for sample in fitted_to], network_settings(size, seeds)
    curves = {TRUTH: test.survival(TIMES)} | both_methods(net, parts, test.covariates, TIMES, report)
    estimated = censoring_model(net, parts, report).predict_curves(test.covariates)
    weightings: dict[str, Weighting] = {
        ADMINISTRATIVE: Administrative(),
        IPCW_KM: IPCW(),
        IPCW_TRUE: IPCW("known"),
        IPCW_100: IPCW(estimated, max_weight=100),
        IPCW_1000: IPCW(estimated, max_weight=1000),
    }
    report("scoring")
    return Fitted(test, curves, weightings, TIMES).scores(references=(TRUTH, HAZARD))


#: The simulations; the study of churn takes data, too.
STUDIES: dict[str, Callable[[Size, Seeds, Report], pd.DataFrame]] = {
    "constant-hazard": constant_hazard,
    "complicated": partial(mixture, "complicated"),
    "simple": partial(mixture, "simple"),
}


def churn(size: Size, seeds: Seeds, report: Report, data: Path | None = None) -> pd.DataFrame:
    """Fit both methods and a censoring model to churn data, and score them under every weighting.

    `data` are prepared data; without them synthetic ones are made, whose truth is known.
    """
    import pandas as pd

    report("reading data" if data else "synthesizing data")
    frame, truth = (kkbox.read(data), None) if data else _synthetic_customers(size, seeds)
    sizes = {"training": size.training, "validation": size.validation, "test": size.test}
    parts = split(frame, by="msno", sizes=sizes, seed=seeds.study)
    if sum(part["msno"].nunique() for part in parts.values()) != pd.concat(parts.values())["msno"].nunique():
        raise RuntimeError("a customer is in two parts")
    outcomes = {name: kkbox.outcomes_of(part) for name, part in parts.items()}
    covariates = {name: part[[*kkbox.NUMERIC, *kkbox.CATEGORICAL]] for name, part in parts.items()}
    end = float(outcomes["training"].time.max())
    times = np.linspace(0.0, 0.97 * end, 101)[1:]
    fitted_to = [(covariates[name], outcomes[name]) for name in ("training", "validation")]
    grid = np.linspace(0.0, end, size.n_times + 1)[1:]
    settings = network_settings(size, seeds) | {"times": grid, "n_layers": 6, "width": 128, "device": "auto"}
    y, curves = outcomes["test"], both_methods(settings, fitted_to, covariates["test"], times, report)
    estimated = censoring_model(settings, fitted_to, report).predict_curves(covariates["test"])
    report("scoring")
    tables = []
    if truth is not None:
        true = kkbox.true_survival(parts["test"], truth, times)
        for name in (HAZARD, BCE):
            tables.append(rows(ERROR, model=name, time=times, value=mean_squared_error(true, curves[name], times)))
        curves |= {TRUTH: true}
    weightings: dict[str, Weighting] = {IPCW_KM: IPCW(), ADMINISTRATIVE: Administrative()}
    weightings |= {capped(cap): IPCW(estimated, max_weight=cap) for cap in CAPS}
    # alone, since means end for all where one score does, and weights without a cap may soon be infinite
    uncapped = {IPCW_UNCAPPED: IPCW(estimated)}
    ranges = {INTEGRATED: (None, None), LATE: (float(times[-1]) * 2 / 3, None)}
    groups = parts["test"]["msno"].factorize()[0]
    for loss in LOSSES:
        tables += compared(y, curves, weightings, loss, (HAZARD,), times=times, groups=groups, ranges=ranges)
        tables += compared(y, curves, uncapped, loss, (HAZARD,), times=times, groups=groups)
        tables += projected(y, curves, loss, times, groups)
    return _joined(tables)


def _synthetic_customers(size: Size, seeds: Seeds) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make raw files, prepare them as real ones are, and return the data with their truth."""
    import pandas as pd

    customers = int(CUSTOMERS_PER_SPELL * (size.training + size.validation + size.test)) + 1000
    with temporary_folder(Path(tempfile.gettempdir())) as folder:
        kkbox.synthesize(folder, customers=customers, seed=seeds.test)
        kkbox.prepare(folder, folder / "prepared.parquet")
        return kkbox.read(folder / "prepared.parquet"), pd.read_parquet(folder / "truth.parquet", partitioning=None)


@dataclass(frozen=True)
class CensoringByCovariate:
    """Censoring times uniform on the grid's range, each a function of one covariate."""

    drivers: tuple[str, ...] = ("time",)
    n_per_driver: int = 1

    def draw(self, u: Values, grid: Values, rng: np.random.Generator) -> Values:
        """Return the censoring times, which the driver determines."""
        return np.asarray(float(grid[-1]) * (1.0 + u[:, 0]) / 2.0)


def fit_given_censoring(size: Size, seeds: Seeds, report: Report) -> Fitted:
    """Fit both methods to a study with hazards constant in time, with C* as a covariate; not in the paper.

    Two covariates determine the hazard, a third C*. The nets are the library's own, so that Logistic-Hazard does not
    learn the interval that holds C*.
    """
    from survscore.models import KaplanMeier

    report("simulating")
    study = SineConstantAcceleratingStudy(CensoringByCovariate(), hazard=Constant(highest=-5.5))
    *fitted_to, test = samples(study, size, seeds)
    parts = [(sample.covariates, sample.outcomes) for sample in fitted_to]
    null = KaplanMeier().fit(*parts[0])
    curves: dict[str, Any] = {TRUTH: test.survival(DEMO_TIMES), NULL: null.predict_curves(test.covariates, DEMO_TIMES)}
    net = network_settings(size, seeds) | {"preset": "default"}
    curves |= both_methods(net, parts, test.covariates, DEMO_TIMES, report)
    weightings = {
        PROJECTED: Projected(),
        ADMINISTRATIVE: Administrative(),
        IPCW_KM: IPCW(),
        IPCW_TRUE: IPCW("known"),
    }
    return Fitted(test, curves, weightings, DEMO_TIMES)


# Steps of a study


def samples(
    study: ConstantHazardStudy | SineConstantAcceleratingStudy, size: Size, seeds: Seeds
) -> tuple[Sample, Sample, Sample]:
    """Draw individuals to train, to validate and to test."""
    return (
        study.sample(size.training, seed=seeds.training),
        study.sample(size.validation, seed=seeds.validation),
        study.sample(size.test, seed=seeds.test),
    )


def network_settings(size: Size, seeds: Seeds) -> dict[str, Any]:
    """Return the settings of all nets: the paper's."""
    return {
        "preset": "paper",
        "times": np.linspace(0.0, 100.0, size.n_times + 1)[1:],
        "epochs": size.epochs,
        "random_state": seeds.nets,
        "device": "cpu",
        "progress": False,
    }


def both_methods(
    settings: dict[str, Any], parts: Parts, covariates: Any, times: Values, report: Report
) -> dict[str, SurvivalCurves]:
    """Fit both methods of the paper, and return what they predict at `times`."""
    from survscore.models import BCESurvival, LogisticHazard

    curves: dict[str, Any] = {}
    for name, kind in ((HAZARD, LogisticHazard), (BCE, BCESurvival)):
        report(f"fitting {name}")
        curves[name] = kind(**settings).fit(*parts[0], validation=parts[1]).predict_curves(covariates, times)
    return curves


def censoring_model(settings: dict[str, Any], parts: Parts, report: Report) -> LogisticHazard:
    """Fit a model of the censoring."""
    from survscore.models import LogisticHazard

    report("fitting the censoring model")
    return LogisticHazard(**settings).fit_censoring(*parts[0], validation=parts[1])


# Tables


def projected(
    y: Outcomes,
    curves: Mapping[str, SurvivalCurves],
    loss: str,
    times: Values,
    groups: NDArray[np.intp] | None = None,
) -> list[pd.DataFrame]:
    """Return projected scores by time, which the paper does not have.

    They end where fewer than 20 individuals are followed event-free, so they take no part in means over time.
    """
    with warnings.catch_warnings():
        for category in (UndefinedScoreWarning, FewFollowedWarning):
            warnings.simplefilter("ignore", category=category)
        return compared(y, curves, {PROJECTED: Projected()}, loss, (), times=times, groups=groups)


def compared(
    y: Outcomes,
    curves: Mapping[str, SurvivalCurves],
    weightings: Mapping[str, Weighting],
    loss: str,
    references: tuple[str, ...],
    *,
    times: Values,
    groups: NDArray[np.intp] | None = None,
    ranges: Mapping[str, tuple[float | None, float | None]] = {INTEGRATED: (None, None)},
) -> list[pd.DataFrame]:
    """Return scores by time, integrated scores, and integrated differences to each reference.

    `ranges` names the ranges to integrate over. Differences over the first are of kind "difference", those over another
    of the kind that it is named by.
    """
    all_weightings, over = list(weightings.values()), list(ranges.values())
    result = compare(
        y, curves, weighting=all_weightings, metric=loss, times=times, null=False, groups=groups, ranges=over
    )
    labels = dict(zip(dict.fromkeys(result.scores["weighting"]), weightings, strict=True))

    def named(frame: pd.DataFrame, kind: str, value: str) -> pd.DataFrame:
        frame = frame.rename(columns={value: "value"})
        return frame.assign(kind=kind, loss=loss, weighting=frame["weighting"].map(labels)).reindex(columns=COLUMNS)

    tables = [named(result.scores, SCORE, "score")]
    for reference in references:
        for kind, (lower, upper) in ranges.items():
            whole = result.against(reference).integrated(lower, upper, nan="stop")
            if reference == references[0] and kind == INTEGRATED:
                tables.append(named(whole.scores, INTEGRATED, "score"))
            tables.append(named(whole.contrasts, DIFFERENCE if kind == INTEGRATED else kind, "difference"))
    return tables


def rows(kind: str, **columns: Any) -> pd.DataFrame:
    """Return rows of one kind."""
    import pandas as pd

    return pd.DataFrame({"kind": kind, **columns}).reindex(columns=COLUMNS)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(tables, ignore_index=True)[COLUMNS]
