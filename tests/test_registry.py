"""The registries of the library and of the tests are tied: nothing is without an oracle."""

import numpy as np

import oracle
from registry import CASES, HISTORIES, METRICS, random_problem
from survscore.engine.compiled import KERNELS
from survscore.metrics import METRICS as OF_THE_LIBRARY
from survscore.metrics import FollowUpMetric, Loss
from survscore.weighting import WEIGHTINGS, as_weighting


def test_every_metric_has_an_oracle():
    assert {*METRICS} == {name for name, metric in OF_THE_LIBRARY.items() if not issubclass(metric, FollowUpMetric)}
    problem = random_problem(20, 5)
    made = {name: metric(problem) for name, (metric, _) in HISTORIES.items()}
    assert {type(metric) for metric in made.values()} == set(OF_THE_LIBRARY.values()) - {
        OF_THE_LIBRARY[name] for name in METRICS
    }
    assert [metric.name for metric in made.values()] == list(HISTORIES)
    statuses = [(1.0, True), (2.0, False), (1.5, True), (1.0, False), (1.0, True), (1.2, True), (2.0, False)]
    weighted = statuses, [True] * len(statuses)
    values = {name: oracle.metric(name, weighted, [0.9, 0.4, 0.5, 0.8, 0.6, 0.3, 0.72]) for name in METRICS}
    assert len(set(values.values())) == len(METRICS)
    assert np.isfinite(list(values.values())).all()


def test_every_weighting_has_cases():
    problem = random_problem(20, 5, lost=True)
    used = {type(as_weighting(case.weighting(problem), problem.y)) for case in CASES}
    assert used == set(WEIGHTINGS.values())


def test_every_loss_of_the_library_has_a_compiled_form():
    assert set(KERNELS) == {metric for metric in OF_THE_LIBRARY.values() if issubclass(metric, Loss)}
