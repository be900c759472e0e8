"""The point of the library in one small study: which of two predictions each score prefers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._files import written_whole
from survscore._version import __version__
from survscore.curves import SurvivalCurves
from survscore.results import ScoreCurve
from survscore.scores import score_all
from survscore.simulate import ConstantHazardStudy, Sample
from survscore.weighting import IPCW, Administrative, Uncensored, Weighting

if TYPE_CHECKING:
    import pandas as pd

HONEST, LEAKING = "honest", "leaking"
LOSSES = ("brier", "log")
TIMES = np.linspace(0.0, 95.0, 96)
#: How well the leaking prediction knows the censoring times: standard deviation of its error, and how sharply it falls.
LEAK_ERROR, LEAK_WIDTH = 3.0, 2.0


@dataclass(frozen=True, eq=False)
class Demo:
    """All score curves of the demonstration, by model."""

    curves: dict[str, list[ScoreCurve]]
    settings: dict[str, Any]

    def to_frame(self) -> pd.DataFrame:
        """Return every number, long: model, loss, weighting, time, score, n_effective."""
        import pandas as pd

        return pd.concat(
            [curve.to_frame().assign(model=model) for model, several in self.curves.items() for curve in several],
            ignore_index=True,
        )[["model", "loss", "weighting", "time", "score", "n_effective"]]

    def summary(self) -> pd.DataFrame:
        """Return the integrated scores: one row per loss and weighting, one column per model, and the preferred one."""
        import pandas as pd

        rows = []
        for honest, leaking in zip(self.curves[HONEST], self.curves[LEAKING], strict=True):
            scores = {HONEST: honest.integrated().value, LEAKING: leaking.integrated().value}
            preferred = min(scores, key=lambda model: scores[model])
            rows.append({"loss": honest.loss, "weighting": honest.weighting, **scores, "prefers": preferred})
        return pd.DataFrame(rows)

    def save(self, folder: Path) -> list[Path]:
        """Write the figure, every number and the settings into `folder`; each file whole or not at all."""
        from survscore.plots import draw_comparison

        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in ("demo.png", "scores.csv", "settings.json")]
        figure = draw_comparison(
            {model: [c for c in curves if c.loss == "brier"] for model, curves in self.curves.items()},
            title="Brier scores of an honest and a leaking prediction, by weighting",
        )
        with written_whole(paths[0]) as path:
            figure.savefig(path, dpi=120)
        with written_whole(paths[1]) as path:
            self.to_frame().to_csv(path, index=False)
        with written_whole(paths[2]) as path:
            path.write_text(json.dumps(self.settings, indent=2) + "\n")
        return paths


def run(*, n: int = 20_000, seed: int = 1) -> Demo:
    """Simulate administratively censored data and score an honest and a leaking prediction under every weighting.

    The honest prediction is the true survival. The leaking one is what a classifier learns that drops the censored
    and can guess the censoring time from the covariates: the true survival up to about :math:`C^*`, then zero.
    """
    sample = ConstantHazardStudy().sample(n, seed)
    predictions = {HONEST: sample.survival(TIMES), LEAKING: _leaking(sample, seed + 1)}
    weightings: list[Weighting] = [
        Administrative(),
        IPCW(),
        IPCW("known"),
        IPCW(_smooth_censoring(sample, seed + 2), max_weight=100),
    ]
    curves = {
        model: [
            *score_all(sample.uncensored, prediction, losses=LOSSES[:1], weightings=[Uncensored()], times=TIMES),
            *score_all(sample.outcomes, prediction, losses=LOSSES[:1], weightings=weightings, times=TIMES),
            *score_all(sample.uncensored, prediction, losses=LOSSES[1:], weightings=[Uncensored()], times=TIMES),
            *score_all(sample.outcomes, prediction, losses=LOSSES[1:], weightings=weightings, times=TIMES),
        ]
        for model, prediction in predictions.items()
    }
    settings = {"survscore": __version__, "study": "ConstantHazardStudy", "n": n, "seed": seed, "times": TIMES.tolist()}
    return Demo(curves, settings)


def _falls_at(sample: Sample, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return curves from 1 to 0 around a guess of each individual's censoring time."""
    end = sample.outcomes.censoring_time
    if end is None:
        raise TypeError("a sample's outcomes carry censoring times")
    guess = end + np.random.default_rng(seed).normal(0.0, LEAK_ERROR, end.size)
    return np.asarray(0.5 - 0.5 * np.tanh((TIMES - guess[:, None]) / (2.0 * LEAK_WIDTH)))


def _leaking(sample: Sample, seed: int) -> SurvivalCurves:
    return SurvivalCurves(sample.survival(TIMES).probabilities * _falls_at(sample, seed), TIMES)


def _smooth_censoring(sample: Sample, seed: int) -> SurvivalCurves:
    """Return what a censoring model predicts that can tell C* from the covariates, nearly."""
    return SurvivalCurves(_falls_at(sample, seed), TIMES)
