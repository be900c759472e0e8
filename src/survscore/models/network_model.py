"""Networks with one output per grid time, as scikit-learn estimators: everything but what their outputs mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from survscore._utils.frames import n_rows_of
from survscore._validation import InputError, as_times, check_choice, check_flag, check_number, check_whole, several
from survscore.adapters.survival_model import Curves, SurvivalModel, as_training_data, check_within, weighting_for
from survscore.analysis.streaming import StreamingScore
from survscore.causes import ALL_STATUSES, Cause
from survscore.curves import INTERPOLATIONS, InterpolationKind, Monotone, SurvivalCurves
from survscore.incidence import IncidenceCurves, IncidenceInterpolation
from survscore.models import architectures, saving
from survscore.models.architectures import DenseNet, NetFactory, TabularNet
from survscore.models.features import MISSING, Features, as_table
from survscore.models.grid import KEEPS, Keep, Status, counted_labels, learnt_grid, time_grid
from survscore.models.history import EpochScore, TrainingHistory, ValidationScore, as_scores
from survscore.models.losses import incidence_from_hazards
from survscore.models.training import (
    ONE_AT_A_TIME,
    PATIENCE,
    PRESETS,
    Callback,
    Examples,
    OptimizerFactory,
    Preset,
    Schedule,
    Settings,
    evaluation_batches,
    own_random_numbers,
    split,
    train,
)
from survscore.outcomes import Outcomes
from survscore.weighting import Weighting

EVENT, CENSORING = "event", "censoring"


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkModel(SurvivalModel):
    """A network with one output per grid time: everything but the question its outputs answer."""

    n_times: int = 50
    preset: Preset = "default"
    times: ArrayLike | None = None
    spacing: str = "equidistant"
    keep: Keep | None = None
    interpolation: InterpolationKind = "linear"
    n_layers: int = 4
    width: int = 32
    dropout: float | None = None
    batch_norm: bool = True
    net: NetFactory | None = None
    missing: str = "error"
    batch_size: int | None = None
    learning_rate: float | None = None
    schedule: str | None = None
    cycle_epochs: int = 1
    cycle_growth: int = 2
    cycle_decay: float = 0.8
    weight_decay: float | None = None
    averaging: float | None = None
    epochs: int = 511
    patience: int | None = None
    validation_share: float = 0.2
    device: str = "auto"
    random_state: Any = None
    progress: bool | None = None
    optimizer: OptimizerFactory | None = None
    stopping_score: ValidationScore | None = None
    callbacks: Sequence[Callback] | None = None

    #: Whether the method makes curves that can't rise.
    _monotone: ClassVar[Monotone] = "check"
    #: Whether the method tells competing causes apart.
    _learns_causes: ClassVar[bool] = False
    #: Who is learnt from at each time, where `keep` is left at None.
    _keep_by_default: ClassVar[Mapping[Preset, Keep]] = {"default": "administrative", "paper": "known"}

    times_: NDArray[np.float64] = field(init=False)
    features_: Features = field(init=False)
    net_: TabularNet = field(init=False)
    history_: TrainingHistory = field(init=False)
    target_: str = field(init=False)
    causes_: tuple[str, ...] = field(init=False)

    # What a method is

    @staticmethod
    @abstractmethod
    def _labels(
        time: NDArray[np.float64], event: Status, grid: NDArray[np.float64], target: str, *, whole: bool
    ) -> NDArray[np.int8]:
        """Return the outcomes that follow-up shows on the grid: binary ones, or causes."""

    @staticmethod
    @abstractmethod
    def _survival(logits: Tensor) -> Tensor:
        """Return survival on the grid from the net's outputs."""

    # Fitting

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        validation: tuple[Any, Any] | None = None,
        scores: ValidationScore | Sequence[ValidationScore] = (),
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array_like or data frame of shape (n, p)
            Covariates. Numbers and booleans are standardised here; text and categories of a data frame are embedded.
        y : Outcomes
            What was observed. Under competing risks, predictions are `IncidenceCurves` of its causes.
        validation : tuple of (X, y), optional
            The data that decide when to stop; by default `validation_share` of those given.
        scores : ValidationScore or sequence of them, optional
            Scores of the validation data to be recorded in `history_` after every epoch.
        sample_weight : array_like of shape (n,), optional
            Sample weights, by which each individual's part of the loss is multiplied; by default those of `y`, if it
            has any (`Outcomes.weighted`). Scores and the validation loss use those of the validation data.

        Returns
        -------
        self
        """
        return self._fit(X, y, validation, EVENT, as_scores(scores), sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        validation: tuple[Any, Any] | None,
        target: str,
        scores: Sequence[ValidationScore] = (),
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        settings, device, share = self._settings(), _as_device(self.device), float(self.validation_share)
        if validation is not None:
            if not isinstance(validation, (tuple, list)) or len(validation) != 2:
                raise InputError("validation must be a pair (X, y)")
            share = 0.0
        if self.stopping_score is not None:
            if target == CENSORING:
                raise InputError("stopping_score is a score of event times; fit_censoring stops by the loss")
            scores = scores if self.stopping_score in scores else as_scores([*scores, self.stopping_score])
        X = as_table(X)
        outcomes = as_training_data(y, n_rows_of(X), causes=self._learns_causes)
        if sample_weight is not None:
            if outcomes.weights is not None:
                raise InputError("sample_weight: y has sample weights already; give them once")
            outcomes = outcomes.weighted(sample_weight)
        causes = outcomes.causes if target == EVENT and self._learns_causes else ()
        if causes:
            _ = self._interpolation_of_causes  # refused now, not after the fit
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        status = status_of(outcomes, target)
        if not status.any():
            raise InputError(f"y has no {'events' if target == EVENT else 'censored'}: there is nothing to learn")
        rows, held_out = split(outcomes.time, status, share, random)
        # only from the rows that are trained on: a category or a gap that others have can't be learnt
        features = Features.learn(X, missing=self.missing, rows=rows)
        wanted: dict[str, Any] = {"times": self.times, "n_times": self.n_times, "spacing": self.spacing}
        grid = time_grid(outcomes.time, status != 0, events_first=target == EVENT, **wanted)
        # labels are read at the grid, but for its last time where follow-up ends before it
        known = outcomes.censoring_time if self._keeps_administrative(outcomes, target) else None
        learnt = learnt_grid(grid, outcomes.time if known is None else known, administrative=known is not None)
        encoded, labels = features.encode(X), self._kept_labels(outcomes, learnt, target)

        def examples(some: NDArray[np.intp]) -> Examples:
            weights = None if outcomes.weights is None else outcomes.weights[some]
            return Examples.of((encoded[0][some], encoded[1][some]), labels[some], device, weights)

        validating, observed = None, None
        if validation is not None:
            other = features.encode(validation[0], model=type(self).__name__)
            observed = as_training_data(
                validation[1], len(other[0]), "y of validation", "X of validation", causes=self._learns_causes
            )
            if observed.causes != outcomes.causes:
                expected, given = (several(list(map(repr, of.causes))) or "none" for of in (outcomes, observed))
                raise InputError(f"y of validation must have the causes of y, {expected}, not {given}")
            validating = Examples.of(other, self._kept_labels(observed, learnt, target), device, observed.weights)
        elif held_out.size:
            observed, validating = outcomes[held_out], examples(held_out)
        if scores and observed is None:
            raise InputError("scores need validation data: give validation=, or a validation_share above 0")
        as_curves = partial(self._curves, grid, causes)
        watching = [EpochScore(score, cast("Outcomes", observed), as_curves) for score in scores]
        with ONE_AT_A_TIME, own_random_numbers(seed, torch.device("cpu")):
            net = self._make_net(features, grid.size * max(len(causes), 1))
        history = train(net.to(device), examples(rows), validating, settings, seed=seed, scores=watching)
        # nothing is kept before this, so that a fit that fails leaves the model as it was
        self._store(features, grid, target, causes, net, history)
        return self

    @property
    def _interpolation_of_causes(self) -> IncidenceInterpolation:
        """How incidences are read between grid times."""
        if self.interpolation == "constant-hazard":
            raise InputError(
                "interpolation='constant-hazard' is for events of one kind: incidences are read as 'linear' or 'step'"
            )
        return self.interpolation

    def _keeps_administrative(self, y: Outcomes, target: str) -> bool:
        """Return whether only those with C* at a time or later are learnt from there."""
        keep = self._keep_by_default[self.preset] if self.keep is None else self.keep
        if keep == "known" or (self.keep is None and (target == CENSORING or y.censoring_time is None)):
            return False
        if target == CENSORING:
            raise InputError("keep='administrative' is for event times, not for the censoring distribution")
        if y.censoring_time is None:
            raise InputError("keep='administrative' needs Outcomes with the censoring time of each individual")
        return True

    def _kept_labels(self, y: Outcomes, grid: NDArray[np.float64], target: str) -> NDArray[np.int8]:
        """Return what the net learns from, or is judged by."""
        # for the censoring distribution an event at a grid time would come to count as a survivor of that time
        whole = self.preset == "paper" or target == CENSORING or y.censoring_time is not None
        labels = self._labels(y.time, status_of(y, target), grid, target, whole=whole)
        if self._keeps_administrative(y, target):
            return counted_labels(labels, cast("NDArray[np.float64]", y.censoring_time), grid)
        return labels

    def _store(
        self,
        features: Features,
        grid: NDArray[np.float64],
        target: str,
        causes: tuple[str, ...],
        net: TabularNet,
        history: TrainingHistory,
    ) -> None:
        self.features_, self.times_, self.target_, self.net_, self.history_ = features, grid, target, net, history
        self.causes_ = causes
        self.n_features_in_ = len(features.columns)
        self.__dict__.pop("feature_names_in_", None)  # of a fit before this
        if features.names is not None:
            self.feature_names_in_ = np.array(features.names, dtype=object)
        self._made_with = self.get_params(deep=False)

    def _settings(self) -> Settings:
        """Return how to train, all parameters checked."""
        check_choice("preset", self.preset, tuple(PRESETS))
        if self.keep is not None:
            check_choice("keep", self.keep, KEEPS)
        check_choice("interpolation", self.interpolation, INTERPOLATIONS)
        check_choice("missing", self.missing, MISSING)
        for name in ("dropout", "validation_share"):
            check_number(name, self._value(name), "at least 0 and below 1", lambda share: 0 <= share < 1)
        check_whole("n_layers", self.n_layers, 0)
        check_whole("width", self.width, 1)
        check_flag("batch_norm", self.batch_norm)
        for name in ("net", "optimizer"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise InputError(f"{name} must be a function, not {getattr(self, name)!r}")
        if self.optimizer is not None and self.weight_decay is not None:
            raise InputError("weight_decay is that of AdamW: with an optimizer of your own, give it to that")
        if self.stopping_score is not None and not isinstance(self.stopping_score, ValidationScore):
            raise InputError(f"stopping_score must be a ValidationScore, not {type(self.stopping_score).__name__}")
        callbacks = () if self.callbacks is None else self.callbacks
        if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
            raise InputError("callbacks must be a list of functions of the history and the net")
        rate, growth = self._value("learning_rate"), (self.cycle_epochs, self.cycle_growth, self.cycle_decay)
        schedule = Schedule(self._value("schedule"), rate, *growth)
        return Settings(
            schedule,
            batch_size=self._value("batch_size"),
            epochs=self.epochs,
            patience=PATIENCE[schedule.kind] if self.patience is None else self.patience,
            weight_decay=self._value("weight_decay"),
            averaging=self._value("averaging"),
            capture=self.net is None and self.optimizer is None,
            progress=self.progress,
            optimizer=self.optimizer,
            callbacks=tuple(callbacks),
            stop_by=None if self.stopping_score is None else self.stopping_score.column,
        )

    def _value(self, name: str) -> Any:
        """Return a parameter, or what the preset makes of it where it is left at None."""
        value = getattr(self, name)
        return PRESETS[self.preset].get(name) if value is None else value

    def _make_net(self, features: Features, n_outputs: int) -> TabularNet:
        def dense(n_inputs: int, n_outputs: int) -> DenseNet:
            more = {"dropout": self._value("dropout"), "batch_norm": self.batch_norm}
            return DenseNet(n_inputs, n_outputs, n_layers=self.n_layers, width=self.width, **more)

        return TabularNet(features.n_numbers, features.n_categories, n_outputs, self.net or dense)

    # Prediction

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> Curves:
        """Return predicted survival; under competing risks the cumulative incidence of each cause.

        Parameters
        ----------
        X : array_like or data frame of shape (n, p)
            Covariates, as in training.
        times : array_like, optional
            The grid of the curves, read from the model's own as `interpolation` says; by default that one.

        Returns
        -------
        SurvivalCurves or IncidenceCurves
            In single precision.
        """
        check_is_fitted(self)
        encoded = self.features_.encode(X, model=type(self).__name__)
        grid = self.times_ if times is None else as_times(times)
        check_within(grid, self.times_)
        if self.causes_:
            incidence = np.empty((len(encoded[0]), len(self.causes_), grid.size), dtype=np.float32)
            for rows, logits in self._outputs(encoded):
                incidence[rows] = self._curves(self.times_, self.causes_, logits).numpy().at(grid)
            return IncidenceCurves(incidence, grid, causes=self.causes_, interpolation=self._interpolation_of_causes)
        curves = np.empty((len(encoded[0]), grid.size), dtype=np.float32)
        reading = SurvivalCurves(
            np.ones((1, self.times_.size)), self.times_, interpolation=self.interpolation
        ).interpolate(grid)
        for rows, logits in self._outputs(encoded):
            curves[rows] = reading(self._survival(logits).cpu().numpy())
        return SurvivalCurves(curves, grid, interpolation=self.interpolation, monotone=self._monotone)

    def score(self, X: Any, y: Any, *, weighting: str | Weighting | None = None, cause: Cause | None = None) -> float:
        """Return minus the integrated Brier score; see `SurvivalModel.score`.

        Predictions are scored batch by batch, so that there is no matrix of all of them, but for multi-class scores.
        """
        check_is_fitted(self)
        if self.target_ == CENSORING:
            raise InputError("this model was fitted to the censoring distribution; scores are for event times")
        encoded = self.features_.encode(X, model=type(self).__name__)
        outcomes = as_training_data(y, len(encoded[0]), causes=True)
        outcomes = outcomes if cause is None else outcomes.for_cause(cause)
        if outcomes.interest == ALL_STATUSES:
            return super().score(X, outcomes, weighting=weighting)
        stream = StreamingScore(outcomes, weighting=weighting_for(outcomes, weighting))
        for _, logits in self._outputs(encoded):
            stream.update(self._curves(self.times_, self.causes_, logits))
        return -stream.result().integrated(nan="stop").value

    def _outputs(self, encoded: tuple[NDArray[np.float32], NDArray[np.int64]]) -> Iterator[tuple[slice, Tensor]]:
        """Yield the net's outputs, batch by batch; nothing larger than a batch is made."""
        self.net_.eval()
        device = next(iter(self.net_.state_dict().values())).device
        for rows in evaluation_batches(len(encoded[0]), device):
            with torch.inference_mode():
                logits = self.net_(*(torch.from_numpy(part[rows]).to(device) for part in encoded))
            yield rows, logits

    def _curves(self, grid: NDArray[np.float64], causes: tuple[str, ...], logits: Tensor) -> Curves:
        """Return the curves that outputs of the net stand for, where they are."""
        if causes:
            incidence = incidence_from_hazards(logits, grid.size)
            return IncidenceCurves(incidence, grid, causes=causes, interpolation=self._interpolation_of_causes)
        return SurvivalCurves(self._survival(logits), grid, interpolation=self.interpolation, monotone=self._monotone)

    # Files

    def save(self, path: str | Path) -> None:
        """Write the model to a file that can't run code, whole or not at all: weights, settings, history.

        A net of your own is stored by its weights only; `load` then asks for the factory. What can only be code is left
        out: `optimizer`, `callbacks`, and `stopping_score`.
        """
        check_is_fitted(self)
        left_out = ("net", "progress", "optimizer", "stopping_score", "callbacks")
        params = self._made_with | dict.fromkeys(left_out) | {"device": "auto"}
        if params["times"] is not None:
            params["times"] = as_times(params["times"])
        if not (params["random_state"] is None or isinstance(params["random_state"], (int, np.integer))):
            params["random_state"] = None  # a generator has moved on
        learnt = {
            "times": self.times_,
            "target": self.target_,
            "causes": self.causes_,
            "features": asdict(self.features_),
            "history": self.history_.to_dict(),
            "own_net": self._made_with["net"] is not None,
        }
        arrays = {name: tensor.cpu().numpy() for name, tensor in self.net_.state_dict().items()}
        saving.write(path, type(self).__name__, params, learnt, arrays)

    @classmethod
    def load(cls, path: str | Path, *, net: NetFactory | None = None, device: str = "auto") -> Self:
        """Read a model from a file made by `save`; nothing in it is run.

        Parameters
        ----------
        path : path
            Of the file.
        net : callable, optional
            The factory of the net, if the model was made with one.
        device : str
            Where to put the model.

        Returns
        -------
        The fitted model.
        """
        stored = saving.read(path, expected=cls.__name__)
        where = _as_device(device)
        if stored.learnt.get("own_net") and net is None:
            raise InputError(f"{path} holds a model with a net of its own: give its factory as net=")
        with stored.refusing_damage():
            model = cls(**stored.params | {"net": net, "device": device})
            model._settings()
            grid = as_times(stored.learnt["times"])
            target = stored.learnt["target"]
            check_choice("target", target, (EVENT, CENSORING))
            causes = saving.as_causes(stored.learnt["causes"])
            features = Features.from_dict(stored.learnt["features"])
            history = TrainingHistory.from_dict(stored.learnt["history"])
            if grid[0] <= 0:
                raise ValueError("a grid starts after 0")
            if net is None and model.n_layers > len(stored.arrays):
                raise ValueError(f"{model.n_layers} layers, but {len(stored.arrays)} arrays")
            # without memory of its own, so that sizes a file claims cost nothing until they are seen to fit its arrays
            with torch.device("meta"):
                made = model._make_net(features, grid.size * max(len(causes), 1))
            architectures.fill(made, {name: torch.from_numpy(array.copy()) for name, array in stored.arrays.items()})
            made.to(where).eval()
            model._store(features, grid, target, causes, made, history)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "indicator"
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags


def status_of(outcomes: Outcomes, target: str) -> Status:
    """Return who had what the model is about, the event or its censoring; under competing risks numbers of causes."""
    if target == CENSORING:
        return ~outcomes.event
    return outcomes.event if outcomes.cause is None else outcomes.cause


def _as_device(name: Any) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError("only 'cpu' and 'cuda' are known here")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise InputError(f"device {name!r} can't be used here: {str(error).splitlines()[0]}") from None
    return device
