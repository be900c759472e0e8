"""Metrics of all that happened up to a time: against literal loops, derivatives, R, and what they claim."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import survscore as ss
from registry import HISTORIES, SEEN, Problem, Seen, problems, random_problem

pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
every_seen = pytest.mark.parametrize("case", SEEN, ids=lambda case: case.name)
every_history = pytest.mark.parametrize("name", HISTORIES)
STEP = 1e-30


def drawn(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


def reachable(problem, name):
    """Leave out times that the curves do not reach; crps takes no constant hazards."""
    times = problem.times[problem.curves.reaches(problem.times)]
    assume(times.size > 0)
    c = problem.curves
    if name == "crps" and c.between == "constant-hazard":
        c = ss.SurvivalCurves(c.probabilities, c.times, "linear", beyond=c.beyond)
    return Problem(problem.y, c, problem.censoring, problem.training, times)


def expected(case: Seen, name, problem, mass=None, training_mass=None, held=None):
    """Return the literal values; `held` are the masses inside G where they are not those of the metric."""
    seen = case.seen(problem, *((mass, training_mass) if held is None else held))
    return [HISTORIES[name][1](problem, t, *seen, mass) for t in problem.times]


def score(case: Seen, name, problem, **others):
    metric = HISTORIES[name][0](problem)
    return ss.score_all(
        problem.y, problem.curves, metric=metric, weighting=case.weighting(problem), times=problem.times, **others
    )[0]


@every_seen
@every_history
@drawn(15)
@given(data=st.data())
def test_agrees_with_the_literal_loop(case, name, data):
    problem = reachable(data.draw(problems(case.data)), name)
    for backend in ("numpy", "compiled"):
        with ss.config.using(backend=backend):
            found = score(case, name, problem)
        np.testing.assert_allclose(found.scores, expected(case, name, problem), rtol=1e-11, atol=1e-12)
        assert sum(found.undefined.values()) == np.isnan(found.scores).sum()


def variances(case, name, problem, models):
    """Return the variances of both models and of their difference: sums of squared complex-step derivatives."""
    n, n_training = len(problem.y), len(problem.training)
    whole = [1.0] * n, [1.0] * n_training

    def derivatives(count, of_training, hold):
        found = []
        for i in range(count):
            mass, training_mass = [1.0] * n, [1.0] * n_training
            (training_mass if of_training else mass)[i] += STEP * 1j
            held = whole if hold else None
            values = [expected(case, name, model, mass, training_mass, held) for model in models]
            found.append(np.asarray(values, dtype=complex).imag / STEP)
        return np.array(found)  # (individuals, models, times)

    phi = derivatives(n, False, False)
    other = derivatives(n_training, True, False)
    contrasts = [phi[:, 0], phi[:, 1], phi[:, 0] - phi[:, 1]]
    others = [other[:, 0], other[:, 1], other[:, 0] - other[:, 1]]
    return phi, [np.sum(c**2, axis=0) for c in contrasts], [np.sum(c**2, axis=0) for c in others]


@every_seen
@every_history
@drawn(8)
@given(data=st.data())
def test_influences_are_the_derivatives(case, name, data):
    """By groups of one, so that no small-sample correction but n/(n - 1) is in the way: to 1e-9."""
    problem = data.draw(problems(case.data, min_size=3, max_size=7))
    problem = reachable(problem, name)
    problem = Problem(problem.y, problem.curves, problem.censoring, problem.training, problem.times[-2:])
    c = problem.curves
    other = ss.SurvivalCurves(c.probabilities**2, c.times, c.between, beyond=c.beyond)
    models = [problem, Problem(problem.y, other, problem.censoring, problem.training, problem.times)]
    _, here, there = variances(case, name, problem, models)
    metric = HISTORIES[name][0](problem)
    result = ss.compare(
        problem.y, {"a": c, "b": other}, metric=metric, weighting=case.weighting(problem), times=problem.times,
        null=False, groups=np.arange(len(problem.y)),
    )  # fmt: skip
    (scored,) = result.scored
    counted = scored.support.units.counted
    for place, pair in enumerate(((0, 0), (1, 1), (0, 1))):
        defined = ~np.isnan(scored.scores).any(axis=0) & (counted > 1)
        wanted = here[place] * counted / np.maximum(counted - 1, 1) + there[place]
        np.testing.assert_allclose(
            scored.moments.variance(*pair)[defined], wanted[defined], rtol=1e-9, atol=1e-14, err_msg=str(pair)
        )


# The null model


def constant(problem, mass):
    """Return the problem with the Kaplan-Meier curve as everybody's prediction, read at the same times."""
    c, y = problem.curves, problem.y
    jumps = sorted(set(y.time[y.event]))
    at_risk = [sum(m for m, T in zip(mass, y.time, strict=True) if T >= s) for s in jumps]
    events = [sum(m for m, T, D in zip(mass, y.time, y.event, strict=True) if T == s and D) for s in jumps]
    row = [np.prod([1 - d / r for s, d, r in zip(jumps, events, at_risk, strict=True) if s <= g]) for g in c.times]
    curves = ss.SurvivalCurves(np.tile(row, (len(y), 1)), c.times, c.between, beyond="hold")
    return Problem(y, curves, problem.censoring, problem.training, problem.times)


@pytest.mark.parametrize("name", ["concordance", "crps", "log_score"])
@pytest.mark.parametrize("between", ["linear", "step", "constant-hazard"])
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("place", [1, 6])
def test_the_null_model_counts_with_its_estimation(name, between, others, place):
    """To numerical derivatives, of the individuals themselves or of those that the curve was made of."""
    if (name, between) == ("crps", "constant-hazard"):
        pytest.skip("crps takes no constant hazards")
    case, rng = SEEN[place], np.random.default_rng(4)
    problem = random_problem(40, 6, seed=3, lost=case.data == "drop-outs")
    c = ss.SurvivalCurves(problem.curves.probabilities, problem.curves.times, between, beyond="hold")
    problem = Problem(problem.y, c, problem.censoring, problem.training, np.array([37.0, 55.0]))
    other = problem.y[rng.permutation(40)[:25]]

    def values(mass, mass_of_other):
        if others:
            made = constant(Problem(other, c, problem.censoring, problem.training, problem.times), mass_of_other)
            rows = ss.SurvivalCurves(np.tile(made.curves.probabilities[:1], (40, 1)), c.times, between, beyond="hold")
            null = Problem(problem.y, rows, problem.censoring, problem.training, problem.times)
        else:
            null = constant(problem, mass)
        return np.array(expected(case, name, null, mass))

    def derivatives(n, of_other):
        found = []
        for i in range(n):
            up, down = (np.ones(40), np.ones(25)), (np.ones(40), np.ones(25))
            up[of_other][i] += 1e-5
            down[of_other][i] -= 1e-5
            found.append((values(*up) - values(*down)) / 2e-5)
        return np.array(found)

    variance = np.sum(derivatives(40, 0) ** 2, axis=0)
    result = ss.compare(
        problem.y, {"a": c}, metric=HISTORIES[name][0](problem), weighting=case.weighting(problem), times=problem.times,
        null=other if others else True, groups=np.arange(40),
    )  # fmt: skip
    (scored,) = result.scored
    counted = scored.support.units.counted
    variance = variance * counted / (counted - 1)
    if others:
        variance = variance + np.sum(derivatives(25, 1) ** 2, axis=0)
    np.testing.assert_allclose(scored.scores[1], values(np.ones(40), np.ones(25)), rtol=1e-12)
    np.testing.assert_allclose(scored.moments.variance(1, 1), variance, rtol=1e-7, atol=1e-14)


# R

DATASETS = json.loads((Path(__file__).parent / "reference" / "r_reference.json").read_text())["datasets"]


@pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS.keys())
@pytest.mark.parametrize("model", ["a", "b"])
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_concordance_of_r(data, model, backend):
    """survival::concordance with timewt "n" (Harrell) and "n/G2" (Uno), up to each time."""
    y = ss.Outcomes(data["time"], data["event"], data.get("censoring_time"))
    curves = ss.SurvivalCurves(data[f"model_{model}"], data["times"])
    kinds = [ss.Concordance("harrell"), ss.Concordance()]
    with ss.config.using(backend=backend):
        found = ss.score_all(y, curves, metric=kinds, weighting="ipcw", times=data["times"])
    for score, theirs in zip(found, ("harrell", "uno"), strict=True):
        np.testing.assert_allclose(score.scores, data["results"][f"concordance_{model}"][theirs], rtol=1e-9)
