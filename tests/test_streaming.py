"""Predictions that are scored as they come: what the whole matrix gives, from sums alone."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import survscore as ss
from registry import CASES, random_problem, without_predictions

Y = ss.Outcomes([2, 3, 4], [1, 0, 1], [5, 3, 6])
CURVES = ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 4])


def pushed(stream, curves, size):
    """Push curves in batches, each with a grid of its own, as a net or a file would."""
    for start in range(0, len(curves), size):
        rows = curves.probabilities[start : start + size]
        stream.update(
            ss.SurvivalCurves(
                rows, curves.times.copy(), interpolation=curves.interpolation, extrapolation=curves.extrapolation
            )
        )
    return stream


def problem_for(case, n=700, m=20):
    problem = random_problem(n, m, lost=case.data in ("any", "drop-outs"), same_grid=False)
    if case.data == "uncensored":
        return replace(problem, y=ss.Outcomes(problem.y.time, np.ones(n)))
    return problem


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.name not in ("projected", "projected mean ranks")],
    ids=lambda case: case.name,
)
def test_batches_give_what_the_matrix_gives(case, backend):
    problem = problem_for(case)
    settings = {"weighting": without_predictions(case.weighting(problem)), "times": problem.times}
    with ss.config.using(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.UndefinedScoreWarning)
        stream = ss.StreamingScore(problem.y, metric=["brier", "log"], **settings)
        got = pushed(stream, problem.curves, 64).results()
        expected = ss.score_all(problem.y, problem.curves, metric=["brier", "log"], errors=False, **settings)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-12)
        np.testing.assert_allclose(a.n_effective, b.n_effective, rtol=1e-12)
        assert (a.metric, a.weighting, a.undefined, a.settings) == (b.metric, b.weighting, b.undefined, b.settings)
        assert a.bounds is None
        assert np.isnan(a.se).all()
        if np.isfinite(b.scores[:5]).all():
            assert a.integrated(nan="stop").value == pytest.approx(b.integrated(nan="stop").value, rel=1e-12)


def test_other_predictions_of_the_same_individuals():
    """After a reset; without times, those of the first batch."""
    problem = random_problem(500, 20)
    stream = pushed(ss.StreamingScore(problem.y, weighting="administrative"), problem.curves, 100)
    other = ss.SurvivalCurves(problem.curves.probabilities**2, problem.curves.times, extrapolation="hold")
    got = pushed(stream.reset(), other, 250).result()
    expected = ss.brier_score(problem.y, other, weighting="administrative", errors=False)
    np.testing.assert_array_equal(got.times, expected.times)
    np.testing.assert_allclose(got.scores, expected.scores, rtol=1e-12)
    assert got.default_times


def test_a_batch_is_not_kept():
    stream = ss.StreamingScore(Y, weighting="administrative", times=[1, 3])
    rows = np.full((3, 2), 0.9)
    stream.update(ss.SurvivalCurves(rows, [1, 4]))
    rows[:] = 0.1
    assert stream.result().scores[0] == pytest.approx(0.01)


def test_too_few_and_too_many_are_told():
    stream = ss.StreamingScore(Y, weighting="administrative", times=[1])
    with pytest.raises(ss.InputError, match="batches hold fewer than the 3 individuals of y"):
        stream.result()
    stream.update(CURVES[:2])
    assert repr(stream) == "StreamingScore(2 of 3 individuals)"
    with pytest.raises(ss.InputError, match="batches hold fewer than the 3 individuals of y"):
        stream.result()
    with pytest.raises(ss.InputError, match="batches hold more than the 3 individuals of y"):
        stream.update(CURVES[:2])
    assert stream.n_seen == 2  # what was refused is not counted
    assert stream.update(CURVES[:1]).result().scores == pytest.approx([0.01])


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (CURVES.probabilities, "batches must be SurvivalCurves or IncidenceCurves, not ndarray"),
        (ss.SurvivalCurves([[0.9]], [1]), "batches must all be on the same grid of times"),
        (ss.SurvivalCurves([[0.9, 0.5]], [1, 4], interpolation="step"), "batches must all be read the same way"),
    ],
)
def test_batches_must_be_alike(batch, message):
    stream = ss.StreamingScore(Y, weighting="administrative", times=[1]).update(CURVES[:1])
    with pytest.raises(ss.InputError, match=message):
        stream.update(batch)


def test_what_is_wrong_is_told_before_the_first_batch():
    for settings, message in (({"metric": "auc"}, "auc needs all predictions at once"), ({"times": [2, 1]}, "times")):
        with pytest.raises(ss.InputError, match=message):
            ss.StreamingScore(Y, weighting="administrative", **settings)


def test_a_stream_of_tensors_gives_the_same():
    torch = pytest.importorskip("torch")
    problem = random_problem(40, 6)
    asked = {"weighting": "ipcw", "times": problem.times[:3]}
    here, there = problem.curves, problem.curves.to("cpu")
    assert isinstance(there.probabilities, torch.Tensor)
    expected = ss.brier_score(problem.y, here, errors=False, **asked)
    for backend, curves in (("auto", there), ("torch", here), ("torch", there)):
        with ss.config.using(backend=backend):
            stream = ss.StreamingScore(problem.y, **asked)
            for start in range(0, 40, 15):
                stream.update(curves[start : start + 15])
            np.testing.assert_allclose(stream.result().scores, expected.scores, rtol=1e-12)
    with pytest.raises(ss.InputError, match="batches must all be in one place: NumPy is not cpu"):
        ss.StreamingScore(problem.y, **asked).update(there[:15]).update(here[15:])
