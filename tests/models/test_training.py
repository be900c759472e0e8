"""The training loop: schedules, batches, stopping, and what it leaves behind."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

import survscore as ss
from combinations import every_pair
from survscore.models import training
from survscore.models.architectures import DenseNet, TabularNet
from survscore.models.training import Examples, Schedule, Settings, evaluate, train


def examples(n=100, p=3, m=4, seed=0):
    rng = np.random.default_rng(seed)
    encoded = (rng.normal(size=(n, p)).astype(np.float32), np.zeros((n, 0), dtype=np.int64))
    return Examples.of(encoded, rng.integers(-1, 2, (n, m)).astype(np.int8), torch.device("cpu"))


def make_net(p=3, m=4, seed=0, **settings):
    torch.manual_seed(seed)
    chosen = {"n_layers": 2, "width": 8, "dropout": 0.1, "batch_norm": True} | settings
    return TabularNet(p, [], m, lambda a, b: DenseNet(a, b, **chosen))


def settings(**changes):
    chosen = {
        "schedule": Schedule(), "batch_size": 32, "epochs": 15, "patience": 1, "weight_decay": 0.0, "progress": False,
    }  # fmt: skip
    return Settings(**chosen | changes)


# Schedules


def test_warm_restarts():
    epochs = list(itertools.islice(Schedule(rate=0.1, cycle_decay=0.5).epochs(10), 7))
    rates, cycles, ends = zip(*epochs, strict=True)
    assert list(cycles) == [0, 1, 1, 2, 2, 2, 2]
    assert list(ends) == [True, False, True, False, False, False, True]
    assert rates[0][0] == 0.1
    for step, rate in enumerate(rates[1] + rates[2]):
        assert rate == pytest.approx(0.05 * (1 + math.cos(math.pi * step / 20)) / 2)
    assert rates[3][0] == pytest.approx(0.025)


def test_constant_rate_has_a_cycle_per_epoch():
    epochs = list(itertools.islice(Schedule("constant", 0.3).epochs(2), 3))
    assert epochs == [([0.3, 0.3], cycle, True) for cycle in range(3)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule("linear"), "schedule must be one of"),
        (lambda: Schedule(rate=math.nan), "learning_rate must be positive"),
        (lambda: Schedule(cycle_decay=1.5), "cycle_decay must be above 0"),
        (lambda: settings(batch_size=1), "batch_size must be a whole number of at least 2"),
        (lambda: settings(averaging=1.0), "averaging must be at least 0 and below 1"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ss.InputError, match=message):
        make()


# Batches


@every_pair(n=[2, 3, 31, 32, 33, 65, 1000], size=[None, 2, 32])
def test_batches_cover_all_rows_and_none_has_one_alone(n, size):
    """Batch norm can't see one row alone."""
    batches = settings(batch_size=size).batches(n)
    assert [row for start, stop in batches for row in range(start, stop)] == list(range(n))
    sizes = [stop - start for start, stop in batches]
    assert min(sizes) >= 2
    if size is None:
        assert max(sizes) - min(sizes) <= 1  # a short last one would count as much as the others
    else:
        assert all(found == size for found in sizes[:-1])
        assert sizes[-1] <= size + 1


def test_every_row_is_seen_once_an_epoch():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def forward(self, numbers, codes):
            if self.training:
                seen.extend(numbers[:, 0].tolist())
            return self.layer(numbers)

    n = 70
    encoded = (np.arange(n, dtype=np.float32)[:, None] / n, np.zeros((n, 0), dtype=np.int64))
    data = Examples.of(encoded, np.ones((n, 1), dtype=np.int8), torch.device("cpu"))
    train(Spy(), data, None, settings(epochs=2), seed=0)
    first, second = seen[:n], seen[n:]
    assert sorted(first) == sorted(second) == encoded[0][:, 0].tolist()
    assert first != second


# Losses


def test_validation_loss_is_a_mean_over_individuals(monkeypatch):
    net, data = make_net(), examples(101)
    whole = evaluate(net, data)
    monkeypatch.setattr(training, "ROWS_PER_EVALUATION", {"cpu": 40})  # batches of 40, 40 and 21
    assert evaluate(net, data) == pytest.approx(whole, rel=1e-6)


def test_a_step_is_what_adam_does():
    """The flat weights, and gradients cleared by hand, change nothing."""
    data = examples(64)
    ours = make_net(dropout=0.0)
    train(ours, data, None, settings(schedule=Schedule("constant", 0.01), batch_size=64, epochs=3), seed=0)
    plain = make_net(dropout=0.0)
    optimiser = torch.optim.Adam(plain.parameters(), lr=0.01, betas=(0.9, 0.99))
    for _ in range(3):
        optimiser.zero_grad()
        data.loss(plain.train(), torch.arange(64)).backward()
        optimiser.step()
    for got, expected in zip(ours.state_dict().values(), plain.state_dict().values(), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


# Stopping


def interrupted_after(*losses):
    yield from losses
    raise KeyboardInterrupt


def weights_by_epoch(monkeypatch, losses, **changes):
    """Train with these validation losses by epoch; return the history, the net, and its weights after each."""
    net, weights, losses = make_net(), [], iter(losses)

    def evaluated(net, data, scores):
        weights.append({name: tensor.clone() for name, tensor in net.state_dict().items()})
        return next(losses)

    monkeypatch.setattr(training, "evaluate", evaluated)
    history = train(net, examples(), examples(seed=1), settings(**changes), seed=0)
    return history, net, weights


def test_stops_at_the_end_of_a_cycle_without_gain_and_restores_the_best(monkeypatch):
    # cycles: 1 | 2 3 | 4 5 6 7 | 8 ...; the third brings nothing
    history, net, weights = weights_by_epoch(monkeypatch, [5, 4, 6, 7, 7, 7, 7, 1])
    assert (len(history.epochs), history.best_epoch, history.stopped) == (7, 2, "no gain")
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=0, atol=0)
    assert not net.training


def test_a_gain_within_a_cycle_lets_training_go_on(monkeypatch):
    history, *_ = weights_by_epoch(monkeypatch, [5, 6, 4, 7, 3, 7, 7] + [9] * 8)
    assert (len(history.epochs), history.best_epoch) == (15, 5)


def test_interrupt_keeps_the_best_so_far(monkeypatch):
    with pytest.warns(UserWarning, match="interrupted; the weights of epoch 2 are kept"):
        history, net, weights = weights_by_epoch(monkeypatch, interrupted_after(5, 4, 6))
    assert (history.stopped, history.best_epoch, len(history.epochs)) == ("interrupted", 2, 3)
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=0, atol=0)


def test_divergence_at_once_is_an_error(monkeypatch):
    with pytest.raises(ss.InputError, match="diverged in the first epoch: lower learning_rate"):
        weights_by_epoch(monkeypatch, [math.nan])


def test_later_divergence_keeps_the_best(monkeypatch):
    with pytest.warns(UserWarning, match="diverged in epoch 3; the weights of epoch 1 are kept"):
        history, *_ = weights_by_epoch(monkeypatch, [5, 6, math.inf])
    assert history.stopped == "diverged"


# What it leaves behind


def test_same_seed_same_weights_and_the_users_random_numbers_stay():
    torch.manual_seed(123)
    expected = torch.rand(3)
    results = []
    for seed in (1, 1, 2):
        net = make_net()
        torch.manual_seed(123)
        train(net, examples(), examples(seed=1), settings(epochs=3), seed=seed)
        torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
        results.append(torch.cat([weights.detach().reshape(-1) for weights in net.parameters()]))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_small_steps_take_one_thread_and_give_it_back(monkeypatch):
    used = []
    monkeypatch.setattr(training, "evaluate", lambda net, data, scores: used.append(torch.get_num_threads()) or 1.0)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        train(make_net(), examples(), examples(), settings(epochs=1), seed=0)
        monkeypatch.setattr(training, "SMALL_STEP", 0)
        train(make_net(), examples(), examples(), settings(epochs=1), seed=0)
        assert (used, torch.get_num_threads()) == ([1, 2], 2)
    finally:
        torch.set_num_threads(before)


def test_frozen_weights_stay_and_a_net_without_weights_is_refused():
    net = make_net()
    net.body[0].weight.requires_grad_(False)
    before = net.body[0].weight.clone()
    train(net, examples(), None, settings(epochs=1), seed=0)
    torch.testing.assert_close(net.body[0].weight, before, rtol=0, atol=0)
    with pytest.raises(ss.InputError, match="no weights"):
        train(nn.Identity(), examples(), None, settings(), seed=0)


# Averaged weights


def weights_after(epochs, averaging, n=64):
    """Train without validation at a constant rate, in one batch per epoch: an epoch is a step."""
    net = make_net(dropout=0.0)
    chosen = settings(schedule=Schedule("constant", 0.01), batch_size=n, epochs=epochs, averaging=averaging)
    train(net, examples(n), None, chosen, seed=0)
    return net.state_dict()


def test_averaged_weights_are_a_running_mean():
    share, n_epochs = 0.3, 6
    latest = [weights_after(k + 1, 0.0) for k in range(n_epochs)]
    got = weights_after(n_epochs, share)
    for name in got:
        if not got[name].is_floating_point():
            continue
        mean = latest[0][name]
        for k, state in enumerate(latest):
            mean = mean + (state[name] - mean) / (1 + share * k)
        torch.testing.assert_close(got[name], mean, rtol=1e-4, atol=1e-6, msg=lambda m, name=name: f"{name}: {m}")
