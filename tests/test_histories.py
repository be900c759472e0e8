"""Metrics of all that happened up to a time: against literal loops, derivatives, R, and what they claim."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import survscore as ss
from combinations import every_pair, examples
from registry import HISTORIES, SEEN, Seen, random_problem

pytestmark = [
    pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning"),
    pytest.mark.filterwarnings("ignore::survscore.UnequalWeightsWarning"),
]
every_seen = pytest.mark.parametrize("case", SEEN, ids=lambda case: case.name)
every_history = pytest.mark.parametrize("name", HISTORIES)
STEP = 1e-30


def reachable(problem, name):
    """Leave out times that the curves do not reach; crps takes no constant hazards."""
    times = problem.times[problem.curves.reaches(problem.times)]
    assume(times.size > 0)
    c = problem.curves
    if name == "crps" and c.interpolation == "constant-hazard":
        c = ss.SurvivalCurves(c.probabilities, c.times, interpolation="linear", extrapolation=c.extrapolation)
    return replace(problem, curves=c, times=times)


def expected(case: Seen, name, problem, mass=None, training_mass=None):
    seen = case.seen(problem, mass, training_mass)
    return [HISTORIES[name][1](problem, t, *seen, mass) for t in problem.times]


def score(case: Seen, name, problem, **others):
    metric = HISTORIES[name][0](problem)
    return ss.score_all(
        problem.y, problem.curves, metric=metric, weighting=case.weighting(problem), times=problem.times, **others
    )[0]


def weighted(problem, data, kind="probability"):
    """Return the problem with sample weights, and these."""
    n = len(problem.y)
    drawn = np.frombuffer(data.draw(st.binary(min_size=n, max_size=n)), np.uint8) % 5 + 1.0
    return replace(problem, y=problem.y.weighted(drawn if kind == "frequency" else drawn / 4, kind)), list(drawn)


every_weight = pytest.mark.parametrize("weights", [False, True], ids=["alike", "weighted"])


@every_weight
@every_seen
@every_history
@examples(4)
@given(data=st.data())
def test_agrees_with_the_literal_loop(case, name, weights, data):
    problem, mass = reachable(data.draw(case.problems(name)), name), None
    if weights:
        problem, mass = weighted(problem, data)
    for backend in ("numpy", "compiled"):
        with ss.config.using(backend=backend):
            found = score(case, name, problem)
        np.testing.assert_allclose(found.scores, expected(case, name, problem, mass), rtol=1e-11, atol=1e-12)
        assert sum(found.undefined.values()) == np.isnan(found.scores).sum()


def variances(case, name, problem, models):
    """Return the variances of both models and of their difference: sums of squared complex-step derivatives.

    Derivatives are by each individual's weight, times that weight.
    """
    n, n_training = len(problem.y), len(problem.training)
    own = [1.0] * n if problem.y.weights is None else list(problem.y.weights)

    def derivatives(count, of_training):
        found = []
        for i in range(count):
            mass, training_mass = list(own), [1.0] * n_training
            moved = training_mass if of_training else mass
            moved[i] += moved[i] * STEP * 1j
            values = [expected(case, name, model, mass, training_mass) for model in models]
            found.append(np.asarray(values, dtype=complex).imag / STEP)
        return np.array(found)  # (individuals, models, times)

    return [
        [np.sum(c**2, axis=0) for c in (phi[:, 0], phi[:, 1], phi[:, 0] - phi[:, 1])]
        for phi in (derivatives(n, False), derivatives(n_training, True))
    ]


@every_weight
@every_seen
@every_history
@examples(2)
@given(data=st.data())
def test_influences_are_the_derivatives(case, name, weights, data):
    """By groups of one, so that no small-sample correction but n/(n - 1) is in the way: to 1e-9."""
    problem = data.draw(case.problems(name, min_size=3, max_size=7))
    problem = reachable(problem, name)
    if weights:
        problem, _ = weighted(problem, data)
    problem = replace(problem, times=problem.times[-2:])
    c = problem.curves
    other = ss.SurvivalCurves(c.probabilities**2, c.times, interpolation=c.interpolation, extrapolation=c.extrapolation)
    models = [problem, replace(problem, curves=other)]
    here, there = variances(case, name, problem, models)
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


def constant(problem, y, mass):
    """Return the problem with the Kaplan-Meier curve of y as everybody's prediction, read at the same times."""
    c = problem.curves
    jumps = sorted(set(y.time[y.event]))
    at_risk = [sum(m for m, T in zip(mass, y.time, strict=True) if T >= s) for s in jumps]
    events = [sum(m for m, T, D in zip(mass, y.time, y.event, strict=True) if T == s and D) for s in jumps]
    row = [np.prod([1 - d / r for s, d, r in zip(jumps, events, at_risk, strict=True) if s <= g]) for g in c.times]
    rows = np.tile(row, (len(problem.y), 1))
    curves = ss.SurvivalCurves(rows, c.times, interpolation=c.interpolation, extrapolation="hold")
    return replace(problem, curves=curves)


N, OTHERS = 20, 12


@every_pair(
    name=["concordance", "crps", "log_score"],
    interpolation=["linear", "step", "constant-hazard"],
    others=[False, True],
    place=[1, 6],
    weights=[False, True],
)
def test_the_null_model_counts_with_its_estimation(name, interpolation, others, place, weights):
    """To numerical derivatives, of the individuals themselves or of those that the curve was made of."""
    if (name, interpolation) == ("crps", "constant-hazard"):
        pytest.skip("crps takes no constant hazards")
    case, rng = SEEN[place], np.random.default_rng(4)
    problem = random_problem(N, 6, seed=3, lost=case.data == "drop-outs")
    c = ss.SurvivalCurves(
        problem.curves.probabilities, problem.curves.times, interpolation=interpolation, extrapolation="hold"
    )
    problem = replace(problem, curves=c, times=np.array([37.0, 55.0]))
    other, own = problem.y[rng.permutation(N)[:OTHERS]], np.ones(N)
    if weights:
        own = rng.gamma(2, 1, N)
        problem = replace(problem, y=problem.y.weighted(own))

    def values(mass, mass_of_other):
        null = constant(problem, other, mass_of_other) if others else constant(problem, problem.y, mass)
        return np.array(expected(case, name, null, mass))

    def derivatives(n, of_other):
        found = []
        for i in range(n):
            up, down = (own.copy(), np.ones(OTHERS)), (own.copy(), np.ones(OTHERS))
            up[of_other][i] *= 1 + 1e-5
            down[of_other][i] *= 1 - 1e-5
            found.append((values(*up) - values(*down)) / 2e-5)
        return np.array(found)

    variance = np.sum(derivatives(N, 0) ** 2, axis=0)
    result = ss.compare(
        problem.y, {"a": c}, metric=HISTORIES[name][0](problem), weighting=case.weighting(problem), times=problem.times,
        null=other if others else True, groups=np.arange(N),
    )  # fmt: skip
    (scored,) = result.scored
    counted = scored.support.units.counted
    variance = variance * counted / (counted - 1)
    if others:
        variance = variance + np.sum(derivatives(OTHERS, 1) ** 2, axis=0)
    np.testing.assert_allclose(scored.scores[1], values(own, np.ones(OTHERS)), rtol=1e-12)
    np.testing.assert_allclose(scored.moments.variance(1, 1), variance, rtol=1e-7, atol=1e-14)


# R

DATASETS = json.loads((Path(__file__).parent / "reference" / "r_reference.json").read_text())["datasets"]


@every_pair(which=DATASETS, model=["a", "b"], backend=["numpy", "compiled"])
def test_concordance_of_r(which, model, backend):
    """survival::concordance with timewt "n" (Harrell) and "n/G2" (Uno), up to each time."""
    data = DATASETS[which]
    y = ss.Outcomes(data["time"], data["event"], data.get("censoring_time"))
    curves = ss.SurvivalCurves(data[f"model_{model}"], data["times"])
    kinds = [ss.Concordance("harrell"), ss.Concordance()]
    with ss.config.using(backend=backend):
        found = ss.score_all(y, curves, metric=kinds, weighting="ipcw", times=data["times"])
    for score, theirs in zip(found, ("harrell", "uno"), strict=True):
        np.testing.assert_allclose(score.scores, data["results"][f"concordance_{model}"][theirs], rtol=1e-9)


# Without groups


@every_history
@pytest.mark.parametrize("lost", [False, True])
def test_variances_have_the_correction_for_small_samples(name, lost):
    """Squares of influences, times n/(n - 1)."""
    case = SEEN[1 if lost else 2]
    problem = random_problem(25, 5, seed=1, lost=lost)
    c = ss.SurvivalCurves(problem.curves.probabilities, problem.curves.times, extrapolation="hold")
    problem = replace(problem, curves=c, times=np.array([35.0]))
    squares = 0.0
    for i in range(25):
        mass = [1.0] * 25
        mass[i] += STEP * 1j
        squares += (np.imag(expected(case, name, problem, mass, [1.0] * len(problem.training))[0]) / STEP) ** 2
    found = score(case, name, problem)
    n = found.n_counted[0]
    np.testing.assert_allclose(found.se[0] ** 2, squares * n / (n - 1), rtol=1e-9)


@every_history
def test_large_input_takes_the_compiled_way_and_agrees(name):
    problem = random_problem(6000, 8, seed=2, lost=True)
    problem = replace(problem, times=np.array([20.0, 50.0]))
    found = []
    for backend in ("auto", "numpy", "compiled", "torch"):
        with ss.config.using(backend=backend):
            found.append(score(SEEN[1], name, problem, groups=np.arange(6000) // 3))
    for other in found[1:]:
        np.testing.assert_allclose(other.scores, found[0].scores, rtol=1e-12)
        np.testing.assert_allclose(other.se, found[0].se, rtol=1e-10)


# What goes through all doors


def test_comparisons_segments_groups_and_means_over_time_take_them():
    problem = random_problem(300, 10, seed=5, lost=True)
    mixed = 0.7 * problem.curves.probabilities + 0.3 * problem.censoring.probabilities
    other = ss.SurvivalCurves(mixed, problem.curves.times, extrapolation="hold")
    models = {"a": problem.curves, "b": other}
    strata, segment = np.arange(300) % 2, np.arange(300) % 3
    metrics = [ss.Concordance(), ss.Concordance("weighted", strata=strata), "crps", "log_score", "brier"]
    settings = {"metric": metrics, "weighting": "administrative", "times": [20.0, 40.0]}
    whole = ss.compare(problem.y, models, groups=np.arange(300) // 2, **settings)
    assert (whole.scores.query("model == 'Kaplan-Meier' and metric == 'concordance'")["score"] == 0.5).all()
    assert set(whole.skill["metric"]) == {"crps", "brier"}  # the zero of log_score depends on the unit of time
    parts = ss.compare(problem.y, models, by={"third": segment}, **settings)
    rows = segment == 1
    alone = ss.compare(
        problem.y[rows],
        {key: curves[rows] for key, curves in models.items()},
        **{**settings, "metric": [ss.Concordance(), ss.Concordance("weighted", strata=strata[rows]), *metrics[2:]]},
    )
    part = parts.parts[("1",)]
    np.testing.assert_array_equal(part.scores["score"], alone.scores["score"])
    np.testing.assert_array_equal(part.contrasts["se"], alone.contrasts["se"])


def test_without_times_there_is_one_horizon():
    """The last predicted time up to the median of follow-up, or of many times the median, or the predictions' end."""
    problem = random_problem(200, 10, seed=6)
    end = np.sort(problem.y.censoring_time)
    found = ss.score_all(problem.y, problem.curves, metric="crps", weighting="administrative")[0]
    grid = problem.curves.times
    assert found.times.tolist() == [grid[grid <= end[99]][-1]]
    fine = np.linspace(0.1, grid[-1], 200)
    many = ss.SurvivalCurves(problem.curves.at(fine), fine)
    assert ss.score_all(problem.y, many, metric="crps", weighting="administrative")[0].times.tolist() == [end[99]]
    short = ss.SurvivalCurves(np.full((200, 1), 0.5), [3.0])
    assert ss.score_all(problem.y, short, metric="crps", weighting="administrative")[0].times.tolist() == [3.0]


@pytest.mark.parametrize("weighting", [lambda p: ss.IPCW(p.censoring), lambda p: ss.Administrative(max_weight=5)])
def test_weightings_that_do_not_fit_are_named(weighting):
    problem = random_problem(50, 5)
    with pytest.raises(ss.InputError, match="metric 'crps' needs weights that come from one product-limit curve"):
        ss.score_all(problem.y, problem.curves, metric="crps", weighting=weighting(problem), times=[20])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ss.Concordance("weighted"), "kind='weighted' needs strata"),
        (lambda: ss.Concordance("pooled", strata=[1]), "strata are for kind='weighted', not for kind='pooled'"),
        (
            lambda: ss.Concordance("weighted", strata=np.array(["a", None, None], dtype=object)),
            "strata must be given for each individual: 2 of 3 are missing, the first at position 1",
        ),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(ss.InputError, match=message):
        make()


def test_bad_calls_are_named():
    problem = random_problem(50, 5)
    settings = {"weighting": "administrative", "times": [20]}
    with pytest.raises(ss.InputError, match="strata has length 3, but y has length 50"):
        ss.score_all(problem.y, problem.curves, metric=ss.Concordance("weighted", strata=[1, 2, 3]), **settings)
    c = ss.SurvivalCurves(problem.curves.probabilities, problem.curves.times, interpolation="constant-hazard")
    with pytest.raises(ss.InputError, match=r"crps integrates .* finer grid"):
        ss.score_all(problem.y, c, metric="crps", **settings)
    batches = ss.CurveBatches(lambda: iter([problem.curves]), n=50)
    with pytest.raises(ss.InputError, match="concordance needs all predictions at once, not batches"):
        ss.score_all(problem.y, batches, metric="concordance", **settings)
    with pytest.raises(ss.InputError, match=r"null='counted' is the share of one time, .* say null=True"):
        ss.compare(problem.y, {"a": problem.curves}, metric="crps", null="counted", **settings)


# Where there is no value, the reason


@pytest.mark.parametrize(
    ("time", "event", "end", "metric", "reason"),
    [
        ([3, 4], [0, 0], [3, 4], ss.Concordance(), "no counted individual had the event by then"),
        ([1, 1], [1, 1], [4, 4], ss.Concordance(), "no individual was observed event-free after any event"),
        ([1, 4], [1, 0], [4, 4], ss.Concordance("weighted", strata=[0, 1]), None),
        (
            [2, 1, 4], [1, 0, 0], [4, 1, 4], ss.Concordance("weighted", strata=[0, 1, 0]),
            "no individual of some stratum could be followed to an event",
        ),
        ([0, 0], [0, 0], [0, 0], ss.CRPS(), "no individual is followed beyond time 0"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("default::survscore.UndefinedScoreWarning")
def test_undefined_values_say_why(time, event, end, metric, reason):
    y = ss.Outcomes(time, event, end)
    curves = ss.SurvivalCurves(np.linspace(0.2, 0.8, len(time))[:, None], [4.0])

    def run():
        return ss.score_all(y, curves, metric=metric, weighting="administrative", times=[3.0])[0]

    if reason is None:
        assert run().scores == [1.0]
        return
    with pytest.warns(ss.UndefinedScoreWarning, match=reason):
        found = run()
    assert found.undefined == {reason: 1}
    assert np.isnan([found.scores, found.se, found.lower, found.upper]).all()


# What they claim


@every_pair(name=["crps", "log_score"], interpolation=["linear", "step"], lost=[False, True])
def test_falling_to_zero_after_the_end_changes_nothing(name, interpolation, lost):
    """C* on the grid: what is predicted for later is not looked at. IPCW looks at it, and rewards the fall."""
    rng = np.random.default_rng(7)
    n, grid = 400, np.arange(1.0, 11.0)
    rate = rng.gamma(4, 0.04, n)
    star, end = rng.exponential(1 / rate), rng.integers(2, 11, n).astype(float)
    drop = rng.exponential(30, n) if lost else np.full(n, np.inf)
    y = ss.Outcomes(np.minimum(np.minimum(star, end), drop), star <= np.minimum(end, drop), end)
    honest = np.exp(-rate[:, None] * grid)
    models = {
        "honest": ss.SurvivalCurves(honest, grid, interpolation=interpolation),
        "leak": ss.SurvivalCurves(np.where(grid <= end[:, None], honest, 0.0), grid, interpolation=interpolation),
    }
    result = ss.compare(y, models, metric=name, weighting="administrative", times=[5, 9.5, 10], null=False)
    assert (result.contrasts["difference"] == 0).all()
    assert (result.contrasts["se"] < 1e-16).all()
    if name == "crps":
        ipcw = ss.compare(y, models, metric=name, weighting="ipcw", times=[5, 9.5], null=False)
        assert (ipcw.contrasts["verdict"] == "better").all()
