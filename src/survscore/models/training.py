"""The training loop: resident tensors, one permutation per epoch, and on a GPU one captured graph per step."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from survscore._utils.jobs import Progress, telling
from survscore._validation import InputError, check_choice, check_number, check_whole, warn
from survscore.models.grid import Status
from survscore.models.history import EpochScore, TrainingHistory
from survscore.models.losses import log_likelihood_loss

if TYPE_CHECKING:
    pass

#: Rows in one evaluation of a net without gradients: so many stay in a processor's cache, and keep a GPU busy.
ROWS_PER_EVALUATION = {"cpu": 1 << 12, "cuda": 1 << 16}
#: Multiplications in one step below which a second thread costs more than it gives.
SMALL_STEP = 4_000_000
WARM_UP_STEPS = 3
ONE_AT_A_TIME = threading.RLock()
#: Where each batch of rows starts and stops.
Batches: TypeAlias = list[tuple[int, int]]
#: Called with the history and the net after every epoch; what is true ends training.
Callback: TypeAlias = Callable[[TrainingHistory, nn.Module], Any]
#: Makes an optimizer of weights and ``lr=``, as those of torch do.
OptimizerFactory: TypeAlias = Callable[..., torch.optim.Optimizer]


SCHEDULES = ("warm-restarts", "constant")
Preset = Literal["default", "paper"]
#: What a network's parameters are where they are left at None.
PRESETS: dict[str, dict[str, Any]] = {
    # a high rate that never falls, and the mean of the weights on the way: see benchmarks/convergence.py
    "default": {
        "dropout": 0.2,
        "batch_size": None,
        "learning_rate": 0.02,
        "schedule": "constant",
        "weight_decay": 0.02,
        "averaging": 0.2,
    },
    # Adam with warm restarts, as the paper's networks were trained
    "paper": {
        "dropout": 0.1,
        "batch_size": 256,
        "learning_rate": 0.01,
        "schedule": "warm-restarts",
        "weight_decay": 0.0,
        "averaging": 0.0,
    },
}
#: Cycles without gain after which training stops; at a constant rate every epoch is a cycle.
PATIENCE = {"warm-restarts": 1, "constant": 20}


@dataclass(frozen=True)
class Schedule:
    r"""Cosine annealing with warm restarts, or a constant rate.

    Within a cycle of :math:`K` steps, step :math:`k` has the rate :math:`\eta [1 + \cos(\pi k / K)] / 2`. The first
    cycle takes `cycle_epochs` epochs, each next one `cycle_growth` times as many, and starts from `cycle_decay` times
    the rate. With a constant rate every epoch is a cycle of its own.
    """

    kind: str = "warm-restarts"
    rate: float = 0.01
    cycle_epochs: int = 1
    cycle_growth: int = 2
    cycle_decay: float = 0.8

    def __post_init__(self) -> None:
        check_choice("schedule", self.kind, SCHEDULES)
        check_number("learning_rate", self.rate, "positive", lambda rate: rate > 0)
        check_whole("cycle_epochs", self.cycle_epochs, 1)
        check_whole("cycle_growth", self.cycle_growth, 1)
        check_number("cycle_decay", self.cycle_decay, "above 0 and at most 1", lambda decay: 0 < decay <= 1)

    def epochs(self, n_steps: int) -> Iterator[tuple[list[float], int, bool]]:
        """Yield for each epoch, for ever, the rates of its `n_steps` steps, its cycle, and whether it ends that."""
        length, top = self.cycle_epochs, self.rate
        for cycle in count():
            if self.kind == "constant":
                yield [self.rate] * n_steps, cycle, True
                continue
            total = length * n_steps
            for epoch in range(length):
                steps = range(epoch * n_steps, (epoch + 1) * n_steps)
                rates = [top * (1.0 + math.cos(math.pi * step / total)) / 2.0 for step in steps]
                yield rates, cycle, epoch + 1 == length
            length, top = length * self.cycle_growth, top * self.cycle_decay


@dataclass(frozen=True)
class Examples:
    """Encoded individuals, on the device where a net is trained or used."""

    numbers: Tensor
    codes: Tensor
    labels: Tensor
    #: Sample weights, one on average; None where all count alike.
    weights: Tensor | None = None

    @classmethod
    def of(
        cls,
        encoded: tuple[NDArray[np.float32], NDArray[np.int64]],
        labels: NDArray[np.int8],
        device: torch.device,
        weights: NDArray[np.float64] | None = None,
    ) -> Self:
        """Put arrays on the device."""
        arrays = [*encoded, labels]
        if weights is not None:
            arrays.append((weights / weights.mean()).astype(np.float32))
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def __len__(self) -> int:
        return self.numbers.shape[0]

    def loss(self, net: nn.Module, rows: Tensor) -> Tensor:
        """Return the mean loss over some rows."""
        numbers, codes, labels = (part.index_select(0, rows) for part in (self.numbers, self.codes, self.labels))
        weights = None if self.weights is None else self.weights.index_select(0, rows)
        return log_likelihood_loss(net(numbers, codes), labels, weights)


def split(
    time: NDArray[np.float64], event: Status, share: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to train on and rows to validate on, the latter the same share of events, by cause, and of others.

    The individual followed longest, and one event of each cause, always stay in training: the grid ends with the one,
    and without the others there is nothing to learn.
    """
    n = event.size
    order = random.permutation(n)
    if n < (3 if share else 2):
        needs = "training and validation need at least 3, or validation_share=0" if share else "training needs 2"
        raise InputError(f"X has {n} rows (n_samples = {n}); {needs}")
    if not share:
        return np.arange(n), order[:0]
    causes = [event == cause for cause in np.unique(event) if cause]
    free = order[~np.isin(order, [np.argmax(time), *(np.argmax(cause) for cause in causes)])]
    held_out = np.zeros(n, dtype=np.bool_)
    for kind in (*causes, event == 0):
        members = free[kind[free]]
        held_out[members[: round(share * np.count_nonzero(kind))]] = True
    if not held_out.any():
        held_out[free[0]] = True
    rows = np.flatnonzero(~held_out)
    if rows.size < 2:
        raise InputError(f"validation_share leaves {rows.size} of {n} rows for training, which needs 2")
    return rows, np.flatnonzero(held_out)


@dataclass(frozen=True)
class Settings:
    """How to train."""

    schedule: Schedule
    #: Rows per step; None goes by their number.
    batch_size: int | None
    epochs: int
    patience: int
    weight_decay: float
    #: Share of the steps so far, the latest ones, over which weights are averaged; 0 for those of the last step.
    averaging: float = 0.0
    #: Whether the step may be captured as a CUDA graph: only nets and optimizers without control flow of their own.
    capture: bool = True
    progress: bool | None = None
    #: In place of AdamW.
    optimizer: OptimizerFactory | None = None
    callbacks: tuple[Callback, ...] = ()
    #: The score that says which weights are best and when to stop, by its name; None for the validation loss.
    stop_by: str | None = None

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            check_whole("batch_size", self.batch_size, 2)  # batch norm can't see one row alone
        check_whole("epochs", self.epochs, 1)
        check_whole("patience", self.patience, 1)
        check_number("weight_decay", self.weight_decay, "zero or larger", lambda decay: decay >= 0)
        check_number("averaging", self.averaging, "at least 0 and below 1", lambda share: 0 <= share < 1)

    def batches(self, n_rows: int) -> Batches:
        """Cut rows into batches: of the size that is asked for, and what is left over, which is never one row alone.

        By default nearly equal ones of at most 256, so small that few rows still make some 16 steps an epoch.
        """
        if self.batch_size is None:
            n_batches = -(-n_rows // min(256, max(32, n_rows // 16)))
            edges = [n_rows * k // n_batches for k in range(n_batches + 1)]
        else:
            edges = [*range(0, max(n_rows - 1, 1), self.batch_size), n_rows]
        return list(pairwise(edges))


def train(
    net: nn.Module,
    examples: Examples,
    validation: Examples | None,
    settings: Settings,
    *,
    seed: int,
    scores: Sequence[EpochScore] = (),
) -> TrainingHistory:
    """Train `net` in place and leave it with its best weights.

    After every epoch the validation loss, a mean over individuals, or the score that `settings` name, says whether the
    weights are the best so far. At the end of a cycle training stops if none of the last `patience` cycles brought
    better ones. Without validation data it runs for all epochs, and the last weights stay. An interrupt (Ctrl-C) ends
    it with the best so far. `scores` of the validation data are recorded beside the loss.
    """
    history = TrainingHistory()
    device = examples.numbers.device
    best = _Best(net)
    dropout_seed, order_seed = (int(part) for part in np.random.SeedSequence(seed).generate_state(2))
    stepper = _Stepper(net, examples, settings)
    # torch's random numbers and its number of threads belong to the process, so one training at a time changes them
    with ONE_AT_A_TIME, own_random_numbers(dropout_seed, device), _suitable_threads(net, stepper.batches, device):
        shuffle = torch.Generator().manual_seed(order_seed)  # not the device's: the same order everywhere
        with telling(settings.progress) as tell:
            try:
                history.stopped = _epochs(stepper, validation, settings, shuffle, best, history, scores, tell)
            except KeyboardInterrupt:
                if history.best_epoch is None:
                    raise
                history.stopped = "interrupted"
                warn(f"training was interrupted; the weights of epoch {history.best_epoch} are kept")
        best.restore()
    return history


def _epochs(
    stepper: _Stepper,
    validation: Examples | None,
    settings: Settings,
    shuffle: torch.Generator,
    best: _Best,
    history: TrainingHistory,
    scores: Sequence[EpochScore],
    tell: Progress,
) -> str:
    """Run epochs, and return why they ended."""
    cycles_without_gain, improved = 0, False
    schedule = settings.schedule.epochs(len(stepper.batches))
    for number, (rates, cycle, ends_cycle) in zip(range(1, settings.epochs + 1), schedule, strict=False):
        begun = time.perf_counter()
        train_loss = stepper.epoch(rates, shuffle)
        with stepper.averaged():
            loss = train_loss if validation is None else evaluate(stepper.net, validation, scores)
            if not np.isfinite(loss):
                if history.best_epoch is None:
                    raise InputError(
                        "training diverged in the first epoch: lower learning_rate, or look at X for outliers"
                    )
                warn(f"training diverged in epoch {number}; the weights of epoch {history.best_epoch} are kept")
                return "diverged"
            values = {score.name: score.value() for score in scores}
            watched = loss if settings.stop_by is None else values[settings.stop_by]
            if validation is None or watched < best.loss:
                best.keep(watched)
                history.best_epoch, improved = number, True
            history.epochs.append(
                {
                    "epoch": number,
                    "cycle": cycle + 1,
                    "learning_rate": rates[0],
                    "train_loss": train_loss,
                    "validation_loss": None if validation is None else loss,
                    **values,
                    "seconds": time.perf_counter() - begun,
                }
            )
            if history.best_epoch is None:
                raise InputError(f"stopping_score is not a number in the first epoch: {settings.stop_by} is {watched}")
            ended = [callback(history, stepper.net) for callback in settings.callbacks]  # all of them, also after a yes
        words = f"train {train_loss:.4f}"
        if validation is not None:
            words += f"  validation {loss:.4f}  best at {history.best_epoch}"
        tell(number, settings.epochs, words)
        if any(ended):
            return "a callback"
        if ends_cycle:
            cycles_without_gain, improved = 0 if improved else cycles_without_gain + 1, False
            if cycles_without_gain >= settings.patience:
                return "no gain"
    return "all epochs"


@torch.inference_mode()
def evaluate(net: nn.Module, examples: Examples, scores: Sequence[EpochScore] = ()) -> float:
    """Return the mean loss over all individuals, whatever the batches; dropout is off.

    `scores` see the same outputs of the net, batch by batch.
    """
    net.eval()
    total = torch.zeros((), dtype=torch.float64, device=examples.numbers.device)
    for rows in evaluation_batches(len(examples), examples.numbers.device):
        logits = net(examples.numbers[rows], examples.codes[rows])
        weights = None if examples.weights is None else examples.weights[rows]
        total += log_likelihood_loss(logits, examples.labels[rows], weights).double() * len(logits)
        if scores and total.isfinite():  # a net that has diverged makes no curves
            for score in scores:
                score.update(logits)
    return float(total) / len(examples)


def evaluation_batches(n: int, device: torch.device) -> list[slice]:
    """Cut n rows into batches for a net without gradients."""
    size = ROWS_PER_EVALUATION.get(device.type, ROWS_PER_EVALUATION["cpu"])
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


class _Stepper:
    """Makes the steps of an epoch."""

    def __init__(self, net: nn.Module, examples: Examples, settings: Settings) -> None:
        self.net = net
        self.examples = examples
        self.batches = settings.batches(len(examples))
        on_gpu = examples.numbers.device.type == "cuda"
        trainable = [weights for weights in net.parameters() if weights.requires_grad]
        if not trainable:
            raise InputError("net has no weights to train")
        self.optimiser = _made_optimizer(settings, trainable, examples.numbers.device)
        self.total = torch.zeros((), dtype=torch.float64, device=examples.numbers.device)
        self.average = None
        if settings.averaging:
            moving = [*trainable, *(buffer for buffer in net.buffers() if buffer.is_floating_point())]
            self.average = _Average(moving, settings.averaging)
        self.step = self._captured_step if on_gpu and settings.capture else self._step
        #: By the number of rows: steps before a graph was captured, and graphs.
        self.n_ordinary: Counter[int] = Counter()
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        if on_gpu:
            self.aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def epoch(self, rates: list[float], shuffle: torch.Generator) -> float:
        """Make one step per rate over all examples in a new order, and return the mean loss on the way."""
        self.net.train()
        order = torch.randperm(len(self.examples), generator=shuffle).to(self.examples.numbers.device)
        self.total.zero_()
        for (start, stop), rate in zip(self.batches, rates, strict=True):
            for group in self.optimiser.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate)  # a captured step reads it there
                else:
                    group["lr"] = rate
            self.step(order[start:stop])
            if self.average is not None:
                self.average.add()
        return float(self.total) / len(self.examples)

    def _step(self, rows: Tensor) -> None:
        loss = self.examples.loss(self.net, rows)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.total += loss.detach() * rows.shape[0]

    def averaged(self) -> AbstractContextManager[None]:
        """Let the net have its averaged weights for a while, where they are averaged."""
        return nullcontext() if self.average is None else self.average.in_place()

    def _captured_step(self, rows: Tensor) -> None:
        """Replay the step as one graph: without it, most of the time goes into launching small kernels."""
        n = rows.shape[0]
        if n not in self.graphs:
            self.n_ordinary[n] += 1
            # on a stream of its own: graphs captured on the same one share cuBLAS's workspace, and can't run side by
            # side; the first steps are ordinary, since lazy set-up of kernels and of the optimizer can't be captured
            self.aside.wait_stream(torch.cuda.current_stream())
            if self.n_ordinary[n] <= WARM_UP_STEPS:
                with torch.cuda.stream(self.aside):
                    self._step(rows)
                torch.cuda.current_stream().wait_stream(self.aside)
                return
            graph, buffer = torch.cuda.CUDAGraph(), rows.clone()
            with torch.cuda.graph(graph, stream=self.aside):
                self._step(buffer)
            self.graphs[n] = graph, buffer
        graph, buffer = self.graphs[n]
        buffer.copy_(rows)
        graph.replay()


def _made_optimizer(settings: Settings, weights: list[nn.Parameter], device: torch.device) -> torch.optim.Optimizer:
    """Return AdamW, or the user's optimizer; say why it is none."""
    rate = settings.schedule.rate
    if settings.optimizer is None:
        on_gpu = device.type == "cuda"
        return torch.optim.AdamW(
            weights,
            lr=torch.tensor(rate, device=device) if on_gpu else rate,
            betas=(0.9, 0.99),
            weight_decay=settings.weight_decay,
            fused=True,
            capturable=on_gpu,
        )
    try:
        made = settings.optimizer(weights, lr=rate)
    except TypeError as error:
        raise InputError(f"optimizer must be callable as optimizer(weights, lr=...): {error}") from None
    if not isinstance(made, torch.optim.Optimizer) or isinstance(made, torch.optim.LBFGS):
        raise InputError(f"optimizer must make a torch optimizer that needs no closure, not {type(made).__name__}")
    return made


class _Average:
    r"""A running mean of weights and of batch norm's statistics, over about the last `share` of the steps so far.

    Step k moves the mean by :math:`1 / (1 + a k)` of the way, a the share: what came early is forgotten.
    """

    def __init__(self, tensors: list[Tensor], share: float) -> None:
        self.tensors = [tensor.detach() for tensor in tensors]
        self.means = [tensor.clone() for tensor in self.tensors]
        self.share = share
        self.n_steps = 0

    @torch.no_grad()
    def add(self) -> None:
        torch._foreach_lerp_(self.means, self.tensors, 1.0 / (1.0 + self.share * self.n_steps))
        self.n_steps += 1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the means where the weights are, and the weights back afterwards."""
        latest = [tensor.clone() for tensor in self.tensors]
        torch._foreach_copy_(self.tensors, self.means)
        try:
            yield
        finally:
            torch._foreach_copy_(self.tensors, latest)


@dataclass
class _Best:
    """The best weights so far."""

    net: nn.Module
    loss: float = math.inf
    state: dict[str, Tensor] = field(default_factory=dict)

    def keep(self, loss: float) -> None:
        self.loss = loss
        self.state = {name: tensor.detach().clone() for name, tensor in self.net.state_dict().items()}

    def restore(self) -> None:
        self.net.load_state_dict(self.state)
        self.net.eval()


@contextmanager
def own_random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's random numbers for one device, and give the user's back afterwards."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)  # not torch.manual_seed, which seeds all GPUs as well
        with torch.cuda.device(device) if on_gpu else nullcontext():
            if on_gpu:
                torch.cuda.manual_seed(seed)
            yield


@contextmanager
def _suitable_threads(net: nn.Module, batches: Batches, device: torch.device) -> Iterator[None]:
    """Use one thread where steps are so small that sharing them out costs more than it gives."""
    before = torch.get_num_threads()
    multiplications = max(stop - start for start, stop in batches) * sum(
        weights.numel() for weights in net.parameters()
    )
    if device.type == "cpu" and multiplications < SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
