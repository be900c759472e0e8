"""Status that is a fraction, the third index range of weights: by a weighting that is made here, and a literal loop.

Those censored before t count with the probability of being event-free at t in their stratum, given that they were when
last seen: S_k(t) / S_k(T_i), of the Kaplan-Meier estimate of the stratum. Everybody counts, with weight one.
"""

import numpy as np
import pytest

import oracle
import survscore as ss
from survscore.weighting.base import fit_on_sample
from survscore.weighting.interval_weights import IntervalWeights
from survscore.weighting.strata import Strata

STEP = 1e-30  # of complex derivatives, which lose no digits


class Projected(ss.Weighting):
    """Everybody counts; strata are one set for all models, or one set for each."""

    name = "projected"
    normalize = "n"  # a plain mean over everybody

    def __init__(self, *strata):
        self.strata = strata

    def prepare(self, index):
        """Return the weights of the first model."""
        return self._by(index, self.strata[0])

    def prepare_models(self, index, curves):
        """Return those of each model."""
        return [self._by(index, strata) for strata in self.strata]

    def _by(self, index, strata):
        y, m = index.outcomes, index.times.size
        model = fit_on_sample(index, y.event, Strata.of(strata, "strata"), "exact")
        codes, curve = model.codes, model.curve
        return IntervalWeights(
            event_index=index.before_time,
            follow_up_index=np.where(y.event, np.int32(m), index.until_time),
            label=index.label,
            weight_at_risk=np.ones((curve.n_strata, m)),
            weight_at_event=np.ones(len(y)),
            population_index=index.to_the_end,
            codes=codes,
            censoring_model=model,
            hidden_share=np.where(y.event, 0.0, 1.0 / np.where(y.event, 1.0, curve.at(y.time, codes))),
            reference=curve.table(index.times),
        )


def event_free(time, event, strata, mass, k, t):
    """The Kaplan-Meier estimate of stratum k at t; individual i counts ``mass[i]`` times."""
    share = 1.0
    members = [i for i, label in enumerate(strata) if label == k]
    for s in sorted({time[i] for i in members if event[i] and time[i] <= t}):
        exits = sum(mass[i] for i in members if event[i] and time[i] == s)
        at_risk = sum(mass[i] for i in members if time[i] >= s)
        share = share * ((at_risk - exits) / at_risk)
    return share


def projected(metric, y, pi, t, strata, mass=None):
    """The score at t, one individual at a time; `pi` are the predictions at t."""
    mass = [1.0] * len(y) if mass is None else mass
    total = 0.0
    curve = {}

    def at(k, u):
        if (k, u) not in curve:
            curve[k, u] = event_free(y.time, y.event, strata, mass, k, u)
        return curve[k, u]

    for i, (T, D, k) in enumerate(zip(y.time, y.event, strata, strict=True)):
        if D and t >= T:
            status = 0.0
        elif t <= T:
            status = 1.0
        else:
            status = at(k, t) / at(k, T)
        free, with_event = (oracle.loss(metric, one, pi[i]) for one in (True, False))
        total = total + mass[i] * (status * free + (1 - status) * with_event)
    return total / sum(mass)


def draw(n, seed, *, ties):
    """Outcomes with known ends and some who are lost before, strata of different hazards, and two models."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    star, end, dropping = rng.exponential(5 + 3 * label), rng.uniform(2, 12, n), rng.exponential(30, n)
    if ties:
        star, end, dropping = (np.ceil(one) for one in (star, end, dropping))
    time = np.minimum(np.minimum(star, end), dropping)
    times = np.array([1.0, 3.0, 4.5, 7.0])
    rate = rng.uniform(0.05, 0.3, (n, 1))
    models = {name: ss.SurvivalCurves(np.exp(-scale * rate * times), times) for name, scale in (("a", 1), ("b", 1.7))}
    return ss.Outcomes(time, star <= time, end), models, label, times


#: The strata of both models: one for all, the same, or each its own.
STRATA = {
    "one": lambda label: [[0] * len(label)],
    "the same": lambda label: [label],
    "own": lambda label: [label, np.arange(len(label)) % 2],
}


def statistics(metric, y, models, strata, times, mass=None):
    """Scores, difference and their means over time, (4 + 4 + 4 + 3,)."""
    found = []
    for a, curves in enumerate(models.values()):
        own = strata[a if len(strata) > 1 else 0]
        found.append([projected(metric, y, curves.at([t])[:, 0], t, own, mass) for t in times])
    found = [np.array(one) for one in found]
    found.append(found[1] - found[0])
    means = [oracle.integral(times, one, times[0], times[-1]) / (times[-1] - times[0]) for one in found]
    return np.concatenate([*found, means])


def computed(metric, y, models, strata, times, **settings):
    """The same by the library: values, and standard errors."""
    result = ss.compare(
        y, models, metric=metric, weighting=Projected(*strata), times=times, null=False, reference="a", **settings
    )
    whole = result.integrated()
    tables = (
        (result.scores, "score"),
        (result.contrasts, "difference"),
        (whole.scores, "score"),
        (
            whole.contrasts,
            "difference",
        ),
    )
    return [np.concatenate([table[name or column] for table, column in tables]) for name in (None, "se")]


every_strata = pytest.mark.parametrize("strata", STRATA)
every_loss = pytest.mark.parametrize("metric", ["brier", "log"])


@every_strata
@every_loss
@pytest.mark.parametrize("grouped", [False, True])
def test_scores_and_errors_are_those_of_the_literal_loop(strata, metric, grouped):
    """With ties of all kinds; standard errors by the derivative in how often each individual counts, to 1e-10."""
    n = 30
    y, models, label, times = draw(n, 2, ties=True)
    assert (y.dropped_out & (y.time < 4.5)).any()
    own = STRATA[strata](label)
    groups = np.arange(n) // 3 if grouped else np.arange(n)
    values, se = computed(metric, y, models, own, times, groups=groups if grouped else None)
    np.testing.assert_allclose(values, statistics(metric, y, models, own, times), rtol=1e-12)
    phi = []
    for i in range(n):
        mass = [1.0] * n
        mass[i] += STEP * 1j
        phi.append(statistics(metric, y, models, own, times, mass).imag / STEP)
    by_group = np.array([np.sum([phi[i] for i in np.flatnonzero(groups == g)], axis=0) for g in np.unique(groups)])
    n_units = len(by_group)
    np.testing.assert_allclose(se, np.sqrt(n_units / (n_units - 1) * (by_group**2).sum(axis=0)), rtol=1e-10)


def test_errors_are_those_of_the_jackknife():
    n, metrics = 300, ("brier", "log")
    y, models, label, times = draw(n, 5, ties=False)
    own = [np.asarray(one) for one in STRATA["own"](label)]

    def left_out(rows):
        found = {}
        for name, strata in zip(models, own, strict=True):
            scores = ss.score_all(
                y[rows], models[name][rows], metric=metrics, weighting=Projected(strata[rows]), times=times,
                errors=False,
            )  # fmt: skip
            for metric, score in zip(metrics, scores, strict=True):
                found[metric, name] = [*score.scores, score.integrated().value]
        return [[found[metric, "a"], found[metric, "b"], np.subtract(found[metric, "b"], found[metric, "a"])]
                for metric in metrics]  # fmt: skip

    values = np.array([left_out(np.flatnonzero(np.arange(n) != i)) for i in range(n)])
    expected = np.sqrt((n - 1) / n * ((values - values.mean(axis=0)) ** 2).sum(axis=0))
    for metric, of_metric in zip(metrics, expected, strict=True):
        _, se = computed(metric, y, models, own, times)
        np.testing.assert_allclose(se[:12], of_metric[:, :4].ravel(), rtol=0.02)
        np.testing.assert_allclose(se[12:], of_metric[:, 4], rtol=0.02)


@every_strata
@every_loss
@pytest.mark.parametrize("grouped", [False, True])
def test_compiled_code_agrees(strata, metric, grouped):
    y, models, label, times = draw(300, 6, ties=True)
    own, groups = STRATA[strata](label), np.arange(300) // 2 if grouped else None
    expected = computed(metric, y, models, own, times, groups=groups)
    with ss.config.using(backend="compiled"):
        found = computed(metric, y, models, own, times, groups=groups)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_where_nobody_is_censored_it_is_the_plain_score():
    y, models, label, times = draw(100, 1, ties=True)
    everybody = ss.Outcomes(y.time, np.ones(100))
    for metric in ("brier", "log"):
        found, plain = (
            ss.score_all(everybody, models["a"], metric=metric, weighting=weighting, times=times)[0]
            for weighting in (Projected(label), "uncensored")
        )
        np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-12)
        np.testing.assert_allclose(found.se, plain.se, rtol=1e-10)


def test_sums_of_weights_count_those_of_fractional_status():
    y, models, label, times = draw(100, 3, ties=True)
    score = ss.brier_score(y, models["a"], weighting=Projected(label), times=times)
    np.testing.assert_allclose(score.n_effective, 100.0, rtol=1e-12)
    by_weights = Projected(label)
    by_weights.normalize = "weights"
    again = ss.brier_score(y, models["a"], weighting=by_weights, times=times)
    np.testing.assert_allclose(again.scores, score.scores, rtol=1e-12)
    np.testing.assert_allclose(again.se, score.se, rtol=1e-10)


def test_the_null_model_is_scored_by_fractional_status():
    y, models, label, times = draw(100, 3, ties=True)
    result = ss.compare(y, models, weighting=Projected(label), times=times)
    found = result.scores.set_index("model").loc["Kaplan-Meier", "score"]
    whole = [event_free(y.time, y.event, [0] * 100, [1.0] * 100, 0, t) for t in times]
    expected = [projected("brier", y, [share] * 100, t, label) for t, share in zip(times, whole, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_the_null_model_has_the_strata_of_the_first(backend):
    y, models, label, times = draw(100, 3, ties=True)
    own = STRATA["own"](label)
    with ss.config.using(backend=backend):
        beside, alone = (
            ss.compare(y, models, weighting=Projected(*strata), times=times).scores.set_index("model")
            for strata in (own, own[:1])
        )
    for column in ("score", "se"):
        null = beside.loc["Kaplan-Meier", column]
        np.testing.assert_allclose(null, alone.loc["Kaplan-Meier", column], rtol=1e-10)


@pytest.mark.xfail(strict=True, reason="pooled metrics read two ranges only, and whole statuses")
def test_the_auc_takes_fractional_status():
    """Cases and controls in part, in pairs of two individuals."""
    y, models, label, times = draw(60, 3, ties=True)
    score = ss.auc(y, models["a"], weighting=Projected(label), times=times)
    for t, value in zip(times, score.scores, strict=True):
        mass = [1.0] * 60
        status = [
            0.0 if D and t >= T else 1.0 if t <= T else
            event_free(y.time, y.event, label, mass, k, t) / event_free(y.time, y.event, label, mass, k, T)
            for T, D, k in zip(y.time, y.event, label, strict=True)
        ]  # fmt: skip
        pi = models["a"].at([t])[:, 0]
        total = both = 0.0
        for i in range(60):
            for j in range(60):
                if i != j:
                    weight = (1 - status[i]) * status[j]
                    total += weight * (1.0 if pi[i] < pi[j] else 0.5 if pi[i] == pi[j] else 0.0)
                    both += weight
        assert value == pytest.approx(total / both, rel=1e-10)
