"""The two methods of the paper as scikit-learn estimators: Logistic-Hazard and BCE networks."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from survscore import _loops
from survscore._validation import InputError, as_times, check_choice
from survscore.curves import BETWEEN, SurvivalCurves
from survscore.models import saving
from survscore.models.base import SurvivalModel, as_training_data, check_within
from survscore.models.features import Features
from survscore.models.grid import hazard_labels, survival_labels, time_grid
from survscore.models.losses import survival_from_hazards, survival_from_probabilities
from survscore.models.nets import DenseNet, NetFactory, TabularNet
from survscore.models.schedule import Schedule
from survscore.models.training import ROWS_PER_EVALUATION, Examples, Settings, TrainingHistory, train

EVENT, CENSORING = "event", "censoring"
Model = TypeVar("Model")


class _NetworkModel(SurvivalModel):
    """A network with one output per grid time: everything but the question its outputs answer."""

    #: Whether the method makes curves that can't rise.
    _monotone = "check"

    times_: NDArray[np.float64]
    features_: Features
    net_: TabularNet
    history_: TrainingHistory
    target_: str
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        n_times: int = 50,
        *,
        times: ArrayLike | None = None,
        spacing: str = "equidistant",
        between: str = "linear",
        n_layers: int = 4,
        width: int = 32,
        dropout: float = 0.1,
        batch_norm: bool = True,
        net: NetFactory | None = None,
        missing: str = "error",
        batch_size: int = 256,
        learning_rate: float = 0.01,
        schedule: str = "warm-restarts",
        cycle_epochs: int = 1,
        cycle_growth: int = 2,
        cycle_decay: float = 0.8,
        weight_decay: float = 0.0,
        epochs: int = 512,
        patience: int | None = None,
        validation_share: float = 0.2,
        device: str = "auto",
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.n_times = n_times
        self.times = times
        self.spacing = spacing
        self.between = between
        self.n_layers = n_layers
        self.width = width
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.net = net
        self.missing = missing
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.cycle_epochs = cycle_epochs
        self.cycle_growth = cycle_growth
        self.cycle_decay = cycle_decay
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.validation_share = validation_share
        self.device = device
        self.random_state = random_state
        self.progress = progress

    # What a method is

    @abstractmethod
    def _labels(self, time: NDArray[np.float64], event: NDArray[np.bool_]) -> NDArray[np.int8]:
        """Return the binary outcomes that follow-up shows on the grid."""

    @staticmethod
    @abstractmethod
    def _survival(logits: Tensor) -> Tensor:
        """Return survival on the grid from the net's outputs."""

    # Fitting

    def fit(self, X: Any, y: Any, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array_like or data frame of shape (n, p)
            Covariates. Numbers and booleans are standardised here; text and categories of a data frame are embedded.
        y : Outcomes
            What was observed.
        validation : tuple of (X, y), optional
            The data that decide when to stop; by default `validation_share` of those given.

        Returns
        -------
        self
        """
        return self._fit(X, y, validation, EVENT)

    def _fit(self, X: Any, y: Any, validation: tuple[Any, Any] | None, target: str) -> Self:
        settings, device, share = self._settings(), _as_device(self.device), self._check_share(validation)
        features = Features.learn(X, missing=self.missing)
        numbers, codes = features.encode(X)
        outcomes = as_training_data(X, y, len(numbers))
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))

        self.target_ = target
        time, event = outcomes.time, self._event(outcomes)
        rows, held_out = _split(event, share, random)
        if rows.size < 2:
            raise InputError(f"X has {len(numbers)} rows (n_samples = {len(numbers)}); training needs at least 2")
        if not event[rows].any():
            raise InputError(f"y has no {'events' if target == EVENT else 'censored'}: there is nothing to learn")
        self.times_ = time_grid(time[rows], event[rows], times=self.times, n_times=self.n_times, spacing=self.spacing)
        self._set_features(features)
        labels = self._labels(time, event)
        examples = Examples.of((numbers[rows], codes[rows]), labels[rows], device)
        validating = Examples.of((numbers[held_out], codes[held_out]), labels[held_out], device) if share else None
        if validation is not None:
            validating = self._validation_examples(*validation, device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = self._make_net(_shares(labels[rows]))
        self.net_ = net.to(device)
        self.history_ = train(self.net_, examples, validating, settings, seed=seed)
        return self

    def _set_features(self, features: Features) -> None:
        """Keep the columns, also under scikit-learn's names."""
        self.features_ = features
        self.n_features_in_ = len(features.columns)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if features.names is not None:
            self.feature_names_in_ = np.array(features.names, dtype=object)

    def _validation_examples(self, X: Any, y: Any, device: torch.device) -> Examples:
        encoded = self.features_.encode(X, model=type(self).__name__)
        outcomes = as_training_data(X, y, len(encoded[0]), "y of validation")
        return Examples.of(encoded, self._labels(outcomes.time, self._event(outcomes)), device)

    def _event(self, outcomes: Any) -> NDArray[np.bool_]:
        event: NDArray[np.bool_] = outcomes.event if self.target_ == EVENT else ~outcomes.event
        return event

    def _check_share(self, validation: tuple[Any, Any] | None) -> float:
        if validation is not None:
            if not isinstance(validation, (tuple, list)) or len(validation) != 2:
                raise InputError("validation must be a pair (X, y)")
            return 0.0
        if not 0 <= self.validation_share < 1:
            raise InputError(f"validation_share must be at least 0 and below 1, not {self.validation_share}")
        return float(self.validation_share)

    def _settings(self) -> Settings:
        check_choice("between", self.between, BETWEEN)
        for name, least in (("n_layers", 0), ("width", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        patience = self.patience
        if patience is None:
            patience = 1 if self.schedule == "warm-restarts" else 10
        return Settings(
            Schedule(self.schedule, self.learning_rate, self.cycle_epochs, self.cycle_growth, self.cycle_decay),
            batch_size=self.batch_size,
            epochs=self.epochs,
            patience=patience,
            weight_decay=self.weight_decay,
            capture=self.net is None,
            progress=self.progress,
        )

    def _make_net(self, shares: NDArray[np.float64] | None) -> TabularNet:
        def dense(n_inputs: int, n_outputs: int) -> DenseNet:
            return DenseNet(
                n_inputs, n_outputs,
                n_layers=self.n_layers, width=self.width, dropout=self.dropout, batch_norm=self.batch_norm,
            )  # fmt: skip

        factory = dense if self.net is None else self.net
        net = TabularNet(self.features_.n_numbers, self.features_.n_categories, self.times_.size, factory)
        if shares is not None and isinstance(net.body, DenseNet):
            net.body.start_at(torch.from_numpy(shares))
        return net

    # Prediction

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> SurvivalCurves:
        """Return predicted survival.

        Parameters
        ----------
        X : array_like or data frame of shape (n, p)
            Covariates, as in training.
        times : array_like, optional
            The grid of the curves, read from the model's own as `between` says; by default that one.

        Returns
        -------
        SurvivalCurves
            In single precision.
        """
        check_is_fitted(self)
        encoded = self.features_.encode(X, model=type(self).__name__)
        grid = self.times_ if times is None else as_times(times)
        check_within(grid, self.times_)
        curves = np.empty((len(encoded[0]), grid.size), dtype=np.float32)
        self._predict_into(curves, grid, encoded)
        return SurvivalCurves(curves, grid, self.between, monotone=self._monotone)

    @torch.inference_mode()
    def _predict_into(
        self,
        curves: NDArray[np.float32],
        grid: NDArray[np.float64],
        encoded: tuple[NDArray[np.float32], NDArray[np.int64]],
    ) -> None:
        """Fill the rows of `curves`, batch by batch; nothing larger than a batch is made besides."""
        self.net_.eval()
        device = next(iter(self.net_.state_dict().values())).device
        reading = SurvivalCurves(np.ones((1, self.times_.size)), self.times_, self.between).reading(grid)
        for start in range(0, len(curves), ROWS_PER_EVALUATION):
            rows = slice(start, start + ROWS_PER_EVALUATION)
            numbers, codes = (torch.from_numpy(part[rows]).to(device) for part in encoded)
            survival = self._survival(self.net_(numbers, codes)).cpu().numpy()
            _loops.read_into(curves[rows], reading, survival, size=curves.size)

    # Files

    def save(self, path: str | Path) -> None:
        """Write the model to a file that can't run code, whole or not at all: weights, settings, history.

        A net of your own is stored by its weights only; `load` then asks for the factory.
        """
        check_is_fitted(self)
        params = self.get_params(deep=False) | {"net": None, "device": "auto", "progress": None}
        if not (self.random_state is None or isinstance(self.random_state, (int, np.integer))):
            params["random_state"] = None  # a generator has moved on
        learnt = {
            "times": self.times_,
            "target": self.target_,
            "features": self.features_.to_dict(),
            "history": self.history_.to_dict(),
            "own_net": self.net is not None,
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
            model.times_ = as_times(stored.learnt["times"])
            model.target_ = stored.learnt["target"]
            check_choice("target", model.target_, (EVENT, CENSORING))
            model._set_features(Features.from_dict(stored.learnt["features"]))
            model.history_ = TrainingHistory(**stored.learnt["history"])
            tensors = {name: torch.from_numpy(array.copy()) for name, array in stored.arrays.items()}
            if net is None and model.n_layers > len(tensors):
                raise ValueError(f"{model.n_layers} layers, but {len(tensors)} arrays")
            # without memory of its own, so that sizes a file claims cost nothing until they are seen to fit its arrays
            with torch.device("meta"):
                model.net_ = model._make_net(None)
            model.net_.load_state_dict(tensors, assign=True)
            model.net_.to(where).eval()
        return model

    def score(self, X: Any, y: Any, *, weighting: Any = None) -> float:
        """Return minus the integrated Brier score; see `SurvivalModel.score`."""
        check_is_fitted(self)
        if self.target_ == CENSORING:
            raise InputError("this model was fitted to the censoring distribution; scores are for event times")
        return super().score(X, y, weighting=weighting)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "indicator"
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags


_PARAMETERS = """
    Parameters
    ----------
    n_times : int, default 50
        Number of grid times, the last of them at the last observed time.
    times : array_like, optional
        The grid itself, in place of `n_times` and `spacing`; within the follow-up.
    spacing : {"equidistant", "quantiles"}
        Of the grid: at equal distances, or at equal steps of the Kaplan-Meier curve.
    between : {"linear", "constant-hazard", "step"}
        How predicted curves are read between grid times; see `SurvivalCurves`.
    n_layers, width : int, default 4 and 32
        Of the net: blocks of linear layer, ReLU, batch norm, dropout. No layers make a (generalised) linear model.
    dropout : float, default 0.1
        Share of units left out in training.
    batch_norm : bool, default True
        Whether to have it.
    net : callable, optional
        Makes a torch module of your own from its numbers of inputs and outputs, in place of the four above. It gets
        standardised numbers and embedded categories side by side.
    missing : {"error", "indicator"}
        What to do with missing numbers: refuse them, or put the mean there and tell so in a column of its own. Missing
        categories go, with those not seen in training, to an entry for the unknown.
    batch_size : int, default 256
        Rows per step.
    learning_rate : float, default 0.01
        Of Adam, at the top of the first cycle.
    schedule : {"warm-restarts", "constant"}
        Cosine annealing in cycles, or always the same rate.
    cycle_epochs, cycle_growth, cycle_decay : default 1, 2, 0.8
        Epochs of the first cycle; what each next one is longer by, and its top rate lower by.
    weight_decay : float, default 0
        Decoupled from the gradients.
    epochs : int, default 512
        At most.
    patience : int, optional
        Training stops once this many cycles in a row brought no better validation loss. By default 1, or 10 for
        a constant rate, where each epoch is a cycle.
    validation_share : float, default 0.2
        Of the rows, drawn at random among events and others, unless `fit` is given validation data. At 0, all are
        trained on, for all epochs.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` takes a GPU if there is one.
    random_state : int, RandomState or None
        The same number gives the same result on the same machine.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal.

    Attributes
    ----------
    times_ : ndarray
        The grid.
    net_ : torch.nn.Module
        The trained net.
    history_ : TrainingHistory
        Losses by epoch, as a frame and as a plot.
    features_ : Features
        How columns are encoded.
"""


def _with_parameters(model: type[Model]) -> type[Model]:
    """Put the description of the parameters, the same for both methods, into a class's docstring."""
    model.__doc__ = (model.__doc__ or "").replace("\n    <parameters>\n", _PARAMETERS)
    return model


@_with_parameters
class LogisticHazard(_NetworkModel):
    r"""A net for the discrete hazards, fitted by maximum likelihood to right-censored times.

    Output j is the logit of the hazard on the grid interval :math:`(t_{j-1}, t_j]`:

    .. math::

        h_j(x) = \frac{1}{1 + e^{-z_j(x)}}, \qquad S(t_j \mid x) = \prod_{k \le j} [1 - h_k(x)]

    and the loss minus the log-likelihood: an event contributes :math:`\log h_j` of its interval and
    :math:`\log(1 - h_k)` of those before, a censored individual those of the intervals it was seen to survive whole.

    <parameters>

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.ConstantHazardStudy().sample(2000, seed=1)
    >>> model = ss.models.LogisticHazard(n_times=10, epochs=3, random_state=0)
    >>> model = model.fit(sample.covariates, sample.outcomes)
    >>> model.predict_curves(sample.covariates[:3], times=[25, 50])
    SurvivalCurves(3 individuals, 2 times from 25 to 50, between='linear', beyond='nan', float32)
    """

    def fit_censoring(self, X: Any, y: Any, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Train the network for the censoring distribution G, for use in `IPCW`.

        Censorings take the part of events, and the other way round, also at ties: an individual with an event at t only
        shows that its censoring came at t or later.

        Parameters
        ----------
        X, y, validation
            As for `fit`.

        Returns
        -------
        self
            Its `predict_curves` gives curves of G.

        Examples
        --------
        >>> import survscore as ss
        >>> sample = ss.simulate.ConstantHazardStudy().sample(2000, seed=1)
        >>> censoring = ss.models.LogisticHazard(n_times=10, epochs=3, random_state=0)
        >>> censoring = censoring.fit_censoring(sample.covariates, sample.outcomes)
        >>> print(ss.IPCW(censoring.predict_curves(sample.covariates), max_weight=100))
        ipcw (individual censoring curves, max_weight=100)
        """
        return self._fit(X, y, validation, CENSORING)

    def _labels(self, time: NDArray[np.float64], event: NDArray[np.bool_]) -> NDArray[np.int8]:
        return hazard_labels(time, event, self.times_, events_first=self.target_ == EVENT)

    @staticmethod
    def _survival(logits: Tensor) -> Tensor:
        return survival_from_hazards(logits)


@_with_parameters
class BCESurvival(_NetworkModel):
    r"""A net of binary classifiers, one per grid time, that drops the censored: biased, as the paper shows.

    Output j is the logit of the survival probability :math:`\pi(\tau_j)`, and the loss eq:bce_loss_full:

    .. math::

        -\sum_j \sum_i \left(1\{T_i > \tau_j\} \log \pi_i(\tau_j)
            + 1\{T_i \le \tau_j, D_i = 1\} \log[1 - \pi_i(\tau_j)]\right)

    It is minimised by :math:`\pi = S G / (S G + \int_0^t G(u-) f(u)\,du) \le S` (eq:bce_minimizer), and by
    :math:`S_i(t) 1\{C^*_i > t\}` where the covariates tell :math:`C^*`. Use it to see that, not to predict.
    The curves may rise with time, and are kept as they are.

    <parameters>

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.ConstantHazardStudy().sample(2000, seed=1)
    >>> model = ss.models.BCESurvival(n_times=10, epochs=3, random_state=0)
    >>> model.fit(sample.covariates, sample.outcomes).predict_curves(sample.covariates).shape
    (2000, 10)
    """

    _monotone = "keep"

    def _labels(self, time: NDArray[np.float64], event: NDArray[np.bool_]) -> NDArray[np.int8]:
        return survival_labels(time, event, self.times_)

    @staticmethod
    def _survival(logits: Tensor) -> Tensor:
        return survival_from_probabilities(logits)


def _as_device(name: Any) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise InputError(f"device {name!r} can't be used here: {str(error).splitlines()[0]}") from None
    return device


def _split(
    event: NDArray[np.bool_], share: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to train on and rows to validate on, the latter the same share of events and of others."""
    order = random.permutation(event.size)
    held_out = np.zeros(event.size, dtype=np.bool_)
    if share and event.size > 2:
        for kind in (event, ~event):
            members = order[kind[order]]
            held_out[members[: round(share * members.size)]] = True
        if not held_out.any():
            held_out[order[0]] = True
    elif share:
        raise InputError(
            f"X has {event.size} rows (n_samples = {event.size}); training and validation need at least 3: "
            "give more, or validation_share=0"
        )
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _shares(labels: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the share of ones among the known labels of each time, kept away from 0 and 1."""
    ones, known = np.count_nonzero(labels == 1, axis=0), np.count_nonzero(labels, axis=0)
    return np.asarray((ones + 0.5) / (known + 1.0))
