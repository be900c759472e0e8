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
