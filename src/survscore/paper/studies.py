"""The paper's simulation studies, one replicate at a time: simulate, fit, predict, score.

A replicate is one long table; what figures show and claims check is computed from such tables alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FewFollowedWarning, FloatArray, UndefinedScoreWarning
from survscore.analysis.compare import compare
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.simulate import ConstantHazardStudy, Sample, SineConstantAcceleratingStudy
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
LOSSES = ("brier", "log")
#: Up to the last grid time but one: at 100 nobody is left event-free, and classifiers learn a survival of zero there.
TIMES = np.arange(1.0, 99.0)
#: Of the demo: up to a time to which enough individuals are followed for the projected score.
DEMO_TIMES = np.arange(1.0, 91.0)
FINE_TIMES = np.arange(1, 1001) / 10.0
#: Censoring times whose predictions figure 2 shows.
SHOWN_CENSORING_TIMES = (10.0, 25.0, 40.0, 55.0, 70.0, 90.0)

#: What a table's rows are about.
SURVIVAL, SCORE, INTEGRATED, DIFFERENCE = "survival", "score", "integrated", "difference"
COLUMNS = ["kind", "loss", "weighting", "model", "reference", "censoring_time", "time", "value", "se"]

Values = NDArray[np.float64]
#: Covariates and outcomes, to train on and to validate on.
Parts = Sequence[tuple[Any, Outcomes]]
#: Called with what is being done, so that a user sees progress.
Report = Callable[[str], None]


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
    size.name: size
    for size in (
        Size("paper", 10_000, 4_000, 10_000),
        Size("quick", 1_500, 500, 2_000, n_times=25, epochs=15),
    )
}
DEMO_SIZES = {
    size.name: size for size in (Size("demo", 10_000, 4_000, 10_000), Size("quick", 3_000, 1_000, 6_000, epochs=20))
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


def constant_hazard(size: Size, seeds: Seeds, report: Report) -> pd.DataFrame:
    """Run the study with one hazard for all: the BCE method with and without a covariate that encodes C*."""
    import pandas as pd

    from survscore.models import BCESurvival

    study = ConstantHazardStudy()
    report("simulating")
    training, validation, test = samples(study, size, seeds)
    tables: list[pd.DataFrame] = []
    curves: dict[str, Any] = {TRUTH: test.survival(TIMES)}
    ends = np.array(SHOWN_CENSORING_TIMES)
    shown: dict[str, FloatArray] = {TRUTH: np.tile(study.survival(FINE_TIMES), (ends.size, 1))}
    for name, covariates in ((BCE, _nothing), (BCE_TOLD, _everything)):
        report(f"fitting {name}")
        model = BCESurvival(**network_settings(size, seeds)).fit(
            covariates(training.covariates), training.outcomes,
            validation=(covariates(validation.covariates), validation.outcomes),
        )  # fmt: skip
        curves[name] = model.predict_curves(covariates(test.covariates), TIMES)
        chosen = study.covariates_of(ends)
        shown[name] = model.predict_survival_function(covariates(chosen), FINE_TIMES)
    report("scoring")
    for name, survival in shown.items():
        for end, row in zip(ends, survival, strict=True):
            tables.append(rows(SURVIVAL, model=name, censoring_time=end, time=FINE_TIMES, value=row))
    weightings = {IPCW_KM: IPCW(), IPCW_TRUE: IPCW("known"), ADMINISTRATIVE: Administrative()}
    tables += _scores(test, curves, weightings, references=(TRUTH, BCE_TOLD))
    return pd.concat(tables, ignore_index=True)[COLUMNS]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Individuals to score on, what each method predicts for them, and by which weightings to judge it."""

    test: Sample
    curves: dict[str, SurvivalCurves]
    weightings: dict[str, Weighting]
    times: Values = field(default_factory=lambda: TIMES)

    def scores(self, references: tuple[str, ...]) -> pd.DataFrame:
        """Return scores by time and integrated, and differences to each reference, for both losses."""
        import pandas as pd

        tables = _scores(self.test, self.curves, self.weightings, references, self.times)
        return pd.concat(tables, ignore_index=True)[COLUMNS]


@dataclass(frozen=True)
class ToldCensoring:
    """Censoring times uniform on the grid's range, each a function of one covariate."""

    drivers: tuple[str, ...] = ("time",)
    n_per_driver: int = 1

    def draw(self, u: Values, grid: Values, rng: np.random.Generator) -> Values:
        """Return the censoring times, which the driver determines."""
        return np.asarray(float(grid[-1]) * (1.0 + u[:, 0]) / 2.0)


def fit_told(size: Size, seeds: Seeds, report: Report) -> Fitted:
    """Fit both methods to a study with hazards constant in time, with C* as a covariate; not in the paper.

    Two covariates determine the hazard, a third C*. The nets are the library's own, so that Logistic-Hazard does not
    learn the interval that holds C*.
    """
    from survscore.models import KaplanMeier

    report("simulating")
    study = SineConstantAcceleratingStudy(ToldCensoring(), hazard=Constant(highest=-5.5))
    training, validation, test = samples(study, size, seeds)
    net = {**network_settings(size, seeds), "preset": "default"}
    parts = [(sample.covariates, sample.outcomes) for sample in (training, validation)]
    null = KaplanMeier().fit(*parts[0])
    curves: dict[str, Any] = {TRUTH: test.survival(DEMO_TIMES), NULL: null.predict_curves(test.covariates, DEMO_TIMES)}
    curves |= both_methods(net, parts, test.covariates, DEMO_TIMES, report)
    weightings = {
        PROJECTED: Projected(),
        ADMINISTRATIVE: Administrative(),
        IPCW_KM: IPCW(),
        IPCW_TRUE: IPCW("known"),
    }
    return Fitted(test, curves, weightings, DEMO_TIMES)


def fit_mixture(censoring: str, size: Size, seeds: Seeds, report: Report) -> Fitted:
    """Run the study with hazards from a mixture: both methods and a censoring model."""
    study = SineConstantAcceleratingStudy(censoring, seed=seeds.study)
    report("simulating")
    training, validation, test = samples(study, size, seeds)
    parts, net = [(one.covariates, one.outcomes) for one in (training, validation)], network_settings(size, seeds)
    curves: dict[str, Any] = {TRUTH: test.survival(TIMES)}
    curves |= both_methods(net, parts, test.covariates, TIMES, report)
    estimated = censoring_model(net, parts, report).predict_curves(test.covariates)
    weightings: dict[str, Weighting] = {
        ADMINISTRATIVE: Administrative(),
        IPCW_KM: IPCW(),
        IPCW_TRUE: IPCW("known"),
        IPCW_100: IPCW(estimated, max_weight=100),
        IPCW_1000: IPCW(estimated, max_weight=1000),
    }
    return Fitted(test, curves, weightings)


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


def mixture(censoring: str, size: Size, seeds: Seeds, report: Report) -> pd.DataFrame:
    """Run the study with hazards from a mixture, and score under six weightings."""
    fitted = fit_mixture(censoring, size, seeds, report)
    report("scoring")
    return fitted.scores(references=(TRUTH, HAZARD))


def simple(size: Size, seeds: Seeds, report: Report) -> pd.DataFrame:
    """Run the study with simple censoring."""
    return mixture("simple", size, seeds, report)


def complicated(size: Size, seeds: Seeds, report: Report) -> pd.DataFrame:
    """Run the study with complicated censoring."""
    return mixture("complicated", size, seeds, report)


STUDIES: dict[str, Callable[[Size, Seeds, Report], Any]] = {
    "constant-hazard": constant_hazard,
    "complicated": complicated,
    "simple": simple,
}


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
    grid = np.linspace(0.0, 100.0, size.n_times + 1)[1:]
    return {
        "preset": "paper", "times": grid, "epochs": size.epochs, "random_state": seeds.nets, "device": "cpu",
        "progress": False,
    }  # fmt: skip


def _everything(covariates: pd.DataFrame) -> NDArray[np.float64]:
    return covariates.to_numpy(dtype=np.float64)


def _nothing(covariates: pd.DataFrame) -> NDArray[np.float64]:
    return np.zeros((len(covariates), 1))


def _scores(
    test: Sample,
    curves: Mapping[str, SurvivalCurves],
    weightings: Mapping[str, Weighting],
    references: tuple[str, ...],
    times: Values = TIMES,
) -> list[pd.DataFrame]:
    """Return scores by time and integrated, and integrated differences to each reference, for both losses."""
    tables = []
    for loss in LOSSES:
        tables += compared(test.uncensored, curves, {UNCENSORED: Uncensored()}, loss, references, times=times)
        tables += compared(test.outcomes, curves, weightings, loss, references, times=times)
        if PROJECTED not in weightings:
            tables += projected(test.outcomes, curves, loss, times)
    return tables


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
    times: NDArray[np.float64] = TIMES,
    groups: NDArray[np.intp] | None = None,
    ranges: Mapping[str, tuple[float | None, float | None]] = {INTEGRATED: (None, None)},
) -> list[pd.DataFrame]:
    """Return scores by time, integrated scores, and integrated differences to each reference.

    `ranges` names the ranges to integrate over. Differences over the first are of kind "difference", those over another
    of the kind that it is named by.
    """
    result = compare(
        y, curves, weighting=list(weightings.values()), metric=loss, times=times, null=False, groups=groups,
        ranges=list(ranges.values()),
    )  # fmt: skip
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
