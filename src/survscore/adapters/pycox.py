"""pycox's models."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import as_frame
from survscore._validation import FloatArray, InputError, as_times, check_number, check_whole, warn
from survscore.adapters.survival_model import Adapter, check_within
from survscore.curves import InterpolationKind, Monotone, SurvivalCurves
from survscore.outcomes import Outcomes

#: How curves of the models with a grid are read between its points.
INTERPOLATIONS: dict[str, InterpolationKind] = {"PCHazard": "constant-hazard"}
#: Models whose loss draws controls for each event, and how many rows their validation loss is at least made of.
SAMPLED_CONTROLS = ("CoxCC", "CoxTime")
LEAST_DRAWN = 5000


@dataclass(eq=False, repr=False)
class Pycox(Adapter):
    """A pycox model (``LogisticHazard``, ``DeepHitSingle``, ``PCHazard``, ``CoxPH``, ``CoxTime`` and others).

    pycox leaves it to its users to put times on a grid, to make a net of the right size, and to estimate the baseline
    hazard; all of that belongs to fitting, and is done for every fit anew.

    Parameters
    ----------
    estimator : class
        The class of the model.
    net : callable
        Makes a torch module from the numbers of inputs and outputs.
    optimizer : torchtuples optimizer, optional
        By default torchtuples' Adam.
    n_times : int, default 20
        Number of grid times of a model with a grid, as pycox's ``label_transform`` sets them.
    times : array_like, optional
        The grid itself. ``PCHazard`` takes none, and Cox models have none: their curves are read at `times`, and
        without them those of Cox models are step functions with all times in training.
    epochs : int, default 500
        At most. Where they end before the validation loss has stopped falling, `fit` warns.
    batch_size : int, default 128
        Rows per step.
    patience : int, default 10
        Training stops once so many epochs in a row brought no better validation loss, and the best weights are kept.
    validation_share : float, default 0.2
        Of the rows, for that loss: drawn at random among events and others. At 0, all are trained on, for all epochs.
    random_state : int, optional
        Of the rows held out, the initial weights, dropout and batches.

    Attributes
    ----------
    estimator_ : pycox model
        What was fitted.
    end_ : float
        The last time in the training data, after which Cox curves say nothing; others end with their grid.

    Notes
    -----
    Between grid points curves are linear, as in pycox's default interpolation, and of a constant hazard for
    ``PCHazard``.

    Examples
    --------
    >>> import survscore as ss
    >>> from pycox.models import LogisticHazard
    >>> from torchtuples.practical import MLPVanilla
    >>> def net(n_inputs, n_outputs):
    ...     return MLPVanilla(n_inputs, [8], n_outputs)
    >>> ss.adapters.Pycox(LogisticHazard, net, n_times=10, random_state=0).get_params()["n_times"]
    10
    """

    net: Callable[[int, int], Any]
    optimizer: Any = field(default=None, kw_only=True)
    n_times: int = field(default=20, kw_only=True)
    epochs: int = field(default=500, kw_only=True)
    batch_size: int = field(default=128, kw_only=True)
    patience: int = field(default=10, kw_only=True)
    validation_share: float = field(default=0.2, kw_only=True)
    random_state: int | None = field(default=None, kw_only=True)

    def _fitted(self, X: Any, y: Outcomes) -> Any:
        import torchtuples

        for name, least in (("n_times", 2), ("epochs", 1), ("batch_size", 1), ("patience", 1)):
            check_whole(name, getattr(self, name), least)
        check_number("validation_share", self.validation_share, "at least 0 and below 1", lambda share: 0 <= share < 1)
        if not isinstance(self.estimator, type):
            raise InputError(f"estimator must be the class of a pycox model, not {type(self.estimator).__name__}")
        rows = _as_rows(X)
        labels = self._labels()
        target: tuple[Any, ...] = (y.time.astype(np.float32), y.event.astype(np.float32))
        n_outputs = 1
        if labels is not None:
            events = y.event.astype(np.float32)
            if getattr(labels, "cuts", None) is None:  # a grid that was given is as it is
                labels.fit(y.time, events)
            target, n_outputs = labels.transform(y.time, events), labels.out_features
        trained, held_out = self._parts(y.event)
        with _seeded(self.random_state):
            optimizer = torchtuples.optim.Adam() if self.optimizer is None else deepcopy(self.optimizer)
            cuts = {} if not hasattr(labels, "cuts") else {"duration_index": labels.cuts}
            scaled = {"labtrans": labels} if self.estimator.__name__ == "CoxTime" else {}
            model = self.estimator(self.net(rows.shape[1], n_outputs), optimizer, **cuts, **scaled)
            self._train(model, rows, target, trained, held_out)
            if hasattr(model, "compute_baseline_hazards"):
                model.compute_baseline_hazards()
        self._on_grid = bool(cuts)
        return model

    def _parts(self, event: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return rows to train on, and rows to validate on."""
        from sklearn.model_selection import train_test_split

        rows = np.arange(event.size)
        if self.validation_share == 0:
            return rows, rows[:0]
        shared = event if min(np.count_nonzero(event), np.count_nonzero(~event)) > 1 else None
        try:
            trained, held_out = train_test_split(
                rows, test_size=self.validation_share, stratify=shared, random_state=self.random_state
            )
        except ValueError as error:
            raise InputError(f"validation_share={self.validation_share:g} of {event.size} rows: {error}") from None
        return trained, held_out

    def _train(self, model: Any, rows: Any, target: Any, trained: Any, held_out: Any) -> None:
        """Train until the validation loss stops falling, and keep the best weights."""
        import torchtuples

        def part(some: Any) -> tuple[Any, Any]:
            return rows[some], tuple(values[some] for values in target)

        if not held_out.size:
            model.fit(*part(trained), self.batch_size, self.epochs, verbose=False)
            return
        with tempfile.TemporaryDirectory() as folder:  # for the best weights, which torchtuples keeps in a file
            path = str(Path(folder) / "weights.pt")
            validation = torchtuples.tuplefy(*part(held_out))
            if type(model).__name__ in SAMPLED_CONTROLS:  # a loss of one draw of controls is mostly noise
                validation = validation.repeat(-(-LEAST_DRAWN // held_out.size)).cat()
            stopping = torchtuples.callbacks.EarlyStopping(patience=self.patience, file_path=path)
            log = model.fit(
                *part(trained), self.batch_size, self.epochs, [stopping], verbose=False, val_data=validation
            ).to_pandas()
        losses = log["val_loss"]
        if not np.isfinite(losses).any():
            raise InputError("training diverged: standardise X, or give an optimizer with a lower rate")
        since = len(losses) - 1 - int(np.argmin(losses))
        if since < self.patience:
            warn(
                f"training ended after epochs={self.epochs} while the validation loss still fell: the network has not "
                "learnt what it could, and its predictions may be far from it; give more epochs"
            )

    def _labels(self) -> Any:
        """Return pycox's transformation of the target, where the model has one."""
        transform = getattr(self.estimator, "label_transform", None)
        if transform is None:
            return None
        if self.estimator.__name__ == "CoxTime":
            return transform()
        if self.times is None or self.estimator.__name__ == "PCHazard":  # whose grid pycox can't be given
            return transform(self.n_times)
        times = as_times(self.times)
        return transform(np.concatenate(([0.0], times)) if times[0] > 0 else times)

    def _curves(self, X: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        if not self._on_grid:
            return self._read_steps(X, self._steps, times)
        survival, grid = self._steps(X)
        name = type(self.estimator_).__name__
        # one classifier per time, which know nothing of each other
        monotone: Monotone = "keep" if name == "BCESurv" else "check"
        with warnings.catch_warnings():
            # these are no masses, whatever a net that has hardly been trained makes of them
            warnings.filterwarnings("ignore", "probabilities look like a probability mass function")
            curves = SurvivalCurves(survival, grid, interpolation=INTERPOLATIONS.get(name, "linear"), monotone=monotone)
        if times is None:
            return curves
        check_within(times, grid)
        return SurvivalCurves(curves.at(times), times, interpolation=curves.interpolation, monotone=monotone)

    def _steps(self, X: Any) -> tuple[FloatArray, NDArray[np.float64]]:
        frame = self.estimator_.predict_surv_df(_as_rows(X))
        grid = frame.index.to_numpy(dtype=np.float64)
        return frame.to_numpy().T, grid


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """Seed torch's random numbers, and NumPy's, from which pycox draws controls; give the user's back afterwards."""
    if seed is None:
        yield
        return
    import torch

    before = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002


def _as_rows(X: Any) -> NDArray[np.float32]:
    frame = as_frame(X)
    return np.asarray(X if frame is None else frame.to_numpy(), dtype=np.float32)
