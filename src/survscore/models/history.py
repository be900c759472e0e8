"""What is recorded of a training: losses, and scores of the validation data after every epoch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from torch import Tensor

from survscore._validation import (
    FewFollowedWarning,
    InputError,
    UndefinedScoreWarning,
    UnequalWeightsWarning,
    plural,
)
from survscore.adapters.survival_model import Curves, weighting_for
from survscore.analysis.streaming import StreamingScore
from survscore.causes import Cause
from survscore.metrics import Loss, as_metric
from survscore.outcomes import Outcomes
from survscore.weighting import Weighting

if TYPE_CHECKING:
    import pandas as pd

#: What the history of every training has; other columns are scores.
COLUMNS = ("epoch", "cycle", "learning_rate", "train_loss", "validation_loss", "seconds")
#: Rows of a history that are printed.
MOST_SHOWN = 12


@dataclass(repr=False)
class TrainingHistory:
    """What happened in training. Prints as a table, shortened in the middle.

    Attributes
    ----------
    epochs : list of dict
        For each epoch: epoch, cycle, learning_rate at its start, train_loss (with dropout, while weights move),
        validation_loss (None without validation data), the validation scores asked for, seconds.
    best_epoch : int or None
        The epoch whose weights were kept.
    stopped : str
        Why training ended.
    """

    epochs: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int | None = None
    stopped: str = ""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per epoch."""
        import pandas as pd

        return pd.DataFrame(self.epochs)

    def __repr__(self) -> str:
        table = self.to_frame().to_string(index=False, max_rows=MOST_SHOWN, float_format="{:.4g}".format)
        return f"{self._described}\n{table}" if self.epochs else self._described

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(index=False, max_rows=MOST_SHOWN, float_format="{:.4g}".format)
        return f"<p>{escape(self._described)}</p>{table}"

    @property
    def _described(self) -> str:
        kept = "" if self.best_epoch is None else f", weights of epoch {self.best_epoch} kept"
        return f"TrainingHistory({plural(len(self.epochs), 'epoch')}{kept}; {self.stopped or 'not stopped'})"

    def plot(self, ax: Any = None, *, width: float | None = None) -> Any:
        """Draw the losses, and the scores recorded beside them; returns a `plots.TrainingDisplay`.

        Into `ax`, or a new figure, `width` inches wide.
        """
        from survscore.plots import TrainingDisplay

        history = self.to_frame()
        scores = [str(column) for column in history if column not in COLUMNS]
        return TrainingDisplay(history, self.best_epoch, scores).plot(ax=ax, width=width)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrainingHistory:
        """Take what `to_dict` gave."""
        history = cls(**data)
        if not isinstance(history.epochs, list) or not all(isinstance(epoch, dict) for epoch in history.epochs):
            raise InputError("the epochs of a history are a list of tables")
        return history


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
            for repeated_by_every_epoch in (UndefinedScoreWarning, FewFollowedWarning, UnequalWeightsWarning):
                warnings.simplefilter("ignore", repeated_by_every_epoch)
            mean = self._stream.result().integrated(nan="stop").value
        self._stream.reset()
        return mean


def as_scores(scores: Any) -> list[ValidationScore]:
    """Return the validation scores asked for, one or several, each with a column of its own."""
    several = list(scores) if isinstance(scores, Iterable) else [scores]
    for score in several:
        if not isinstance(score, ValidationScore):
            raise InputError(f"scores must be ValidationScore, one or several, not {type(score).__name__}")
    columns = [score.column for score in several]
    for column in columns:
        if column in COLUMNS or columns.count(column) > 1:
            raise InputError(f"scores must have different names, not {column!r} twice: say ValidationScore(name=...)")
    return several
