"""Scores of the validation data after every epoch of a training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor

from survscore._validation import FewFollowedWarning, InputError, UndefinedScoreWarning, UnequalWeightsWarning
from survscore.adapters.survival_model import Curves, weighting_for
from survscore.analysis.streaming import StreamingScore
from survscore.causes import Cause
from survscore.metrics import Loss, as_metric
from survscore.outcomes import Outcomes
from survscore.weighting import Weighting

#: What the history of every training has; other columns are scores.
COLUMNS = ("epoch", "cycle", "learning_rate", "train_loss", "validation_loss", "seconds")


@dataclass(frozen=True, eq=False, kw_only=True)
class ValidationScore:
    """A mean score over time of the validation data, recorded after every epoch; for `fit` of networks.

    Predictions are scored batch by batch, as the validation loss sees them, so that there is no matrix of all of them;
    weights are made once. The loss decides when training stops, unless the network has a score as `stopping_score`.

    Parameters
    ----------
    weighting : {"administrative", "projected", "uncensored", "ipcw"} or Weighting, optional
        As for `brier_score`. Without it the score is administrative if all censoring times are known, uncensored if
        all individuals had the event, and rejected otherwise.
    metric : {"brier", "log"} or Loss
        What a prediction costs.
    times : array_like, optional
        Over which the score is averaged, by the trapezoidal rule; by default as for `brier_score`.
    name : str, optional
        Of the column in the history; by default ``validation_brier``, after the metric.
    cause : str or int, optional
        As for `brier_score`; required under competing risks, unless the validation data say it (`Outcomes.for_cause`).

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.ConstantHazardStudy().sample(2000, seed=1)
    >>> model = ss.models.LogisticHazard(n_times=10, epochs=3, random_state=0)
    >>> score = ss.models.ValidationScore(weighting="administrative", times=[10, 20, 30, 40, 50])
    >>> model = model.fit(sample.covariates, sample.outcomes, scores=score)
    >>> model.history_.to_frame()["validation_brier"].shape
    (3,)
    """

    weighting: str | Weighting | None = None
    metric: str | Loss = "brier"
    times: ArrayLike | None = None
    name: str | None = None
    cause: Cause | None = None

    @property
    def column(self) -> str:
        """What the history calls it."""
        return f"validation_{as_metric(self.metric).name}" if self.name is None else self.name


class EpochScore:
    """A validation score at work: fed with a net's outputs, asked at the end of the epoch."""

    def __init__(self, score: ValidationScore, y: Outcomes, as_curves: Callable[[Tensor], Curves]) -> None:
        self.name = score.column
        self._as_curves = as_curves
        self._stream = StreamingScore(
            y, metric=score.metric, weighting=weighting_for(y, score.weighting), times=score.times, cause=score.cause
        )

    def update(self, logits: Tensor) -> None:
        """Add the next individuals."""
        self._stream.update(self._as_curves(logits))

    def value(self) -> float:
        """Return the score of all, and begin again."""
        with warnings.catch_warnings():
            for told_by_every_epoch in (UndefinedScoreWarning, FewFollowedWarning, UnequalWeightsWarning):
                warnings.simplefilter("ignore", told_by_every_epoch)
            mean = self._stream.result().integrated(nan="stop").value
        self._stream.reset()
        return mean


def as_scores(scores: Any) -> list[ValidationScore]:
    """Return the validation scores asked for, one or several, each with a column of its own."""
    several = list(scores) if isinstance(scores, Iterable) else [scores]
    for one in several:
        if not isinstance(one, ValidationScore):
            raise InputError(f"scores must be ValidationScore, one or several, not {type(one).__name__}")
    columns = [one.column for one in several]
    for column in columns:
        if column in COLUMNS or columns.count(column) > 1:
            raise InputError(f"scores must have different names, not {column!r} twice: say ValidationScore(name=...)")
    return several
