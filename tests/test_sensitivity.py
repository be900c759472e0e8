"""Differences of projected scores by theta, their tipping points, and the hazard ratio of late starters: literally."""

import numpy as np
import pytest

import oracle
import survscore as ss
from survscore.engine.sensitivity import THETAS
from survscore.inference.late_starters import LateStarters
from test_projected import STRATA, TIMES, asked, draw


def strata_of(name, y, models, label):
    """The strata of each model, and of a prediction that is the same for all."""
    one = [0] * len(y)
    if name in ("one", "given"):
        return [one if name == "one" else label] * (len(models) + 1)
    read = [lambda t, curves=curves: curves.at([t])[:, 0] for curves in models.values()]

    def ranked(some):
        return oracle.rank_strata(y.time, y.event, y.censoring_time, TIMES, some)

    return [*map(ranked, [[one] for one in read]), one] if name == "own-ranks" else [ranked(read)] * (len(models) + 1)


TRIED = [1 / 20, 0.8, 1.7, 30.0]


def literal_difference(metric, y, models, strata, t, theta):
    """The difference of the second model to the first: known statuses, and each hidden one to the power of theta."""
    scores = []
    for codes, curves in zip(strata, models.values(), strict=False):
        share, pi = oracle.stratified_share(y.time, y.event, codes), curves.at([t])[:, 0]
        total = 0.0
        for i in range(len(y)):
            free, gone = oracle.loss(metric, True, pi[i]), oracle.loss(metric, False, pi[i])
            if y.event[i] and y.time[i] <= t:
                total += gone
            elif y.time[i] >= t:
                total += free
            else:
                total += gone + (share(i, t) / share(i, y.time[i])) ** theta * (free - gone)
        scores.append(total / len(y))
    return scores[1] - scores[0]


def mean_over_time(differences):
    return oracle.integral(TIMES, np.array(differences), TIMES[0], TIMES[-1]) / (TIMES[-1] - TIMES[0])


@pytest.mark.parametrize("strata", STRATA)
@pytest.mark.parametrize("metric", ["brier", "log"])
def test_differences_by_theta_are_the_literal_ones(strata, metric):
    """At each time and of the mean over time, between Chebyshev's points, too; drop-outs and ties included."""
    y, models, label = draw(48, 2, ties=True)
    own = strata_of(strata, y, models, label)
    result = ss.compare(
        y, models, metric=metric, weighting=asked(strata, label), times=TIMES, null=False, reference="a"
    )  # fmt: skip
    sensitivity = result.sensitivity()
    for theta in TRIED:
        expected = [literal_difference(metric, y, models, own, t, theta) for t in TIMES]
        for time, value in [*zip(TIMES, expected, strict=True), (None, mean_over_time(expected))]:
            curve = sensitivity.curve("b", time=time)
            found = np.interp(np.log(theta), np.log(curve["theta"]), curve["difference"])
            assert found == pytest.approx(value, abs=3e-6 if metric == "brier" else 3e-5)
    nodes = result.scored[0].by_theta.scores
    for k in (0, 20):  # there to the last digits
        expected = [literal_difference(metric, y, models, own, t, THETAS[k]) for t in TIMES]
        np.testing.assert_allclose((nodes[1] - nodes[0])[:, k], expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("own_theta", [1.0, 0.6])
def test_tipping_points_are_those_nearest_to_theta(own_theta):
    """By stepping away from the weighting's own theta until the literal difference has another sign."""
    y, _, label = draw(60, 3, ties=False)
    rate = np.random.default_rng(5).uniform(0.05, 0.3, (60, 1))
    scales = {"a": 1.0, "b": 0.6}
    models = {name: ss.SurvivalCurves(np.exp(-scale * rate * TIMES), TIMES) for name, scale in scales.items()}
    weighting = ss.Projected(strata=label, min_followed=1, theta=own_theta)
    result = ss.compare(y, models, weighting=weighting, times=TIMES, null=False, reference="a")
    grid = own_theta * np.exp(np.linspace(0, 2.5, 150))
    tipping = 0
    for point in result.sensitivity().points()[1:]:  # the first is the mean
        sign = np.sign(point.difference)
        for steps, found, none in ((grid, point.tipping_upper, np.inf), (own_theta**2 / grid, point.tipping_lower, 0)):
            signs = [np.sign(literal_difference("brier", y, models, [label] * 2, point.first, at)) for at in steps]
            changed = np.flatnonzero(np.array(signs) != sign)
            if changed.size:
                tipping += 1
                assert abs(np.log(found / steps[changed[0]])) < 0.018
            else:
                assert found == none or abs(np.log(found / own_theta)) > 2.48
    assert tipping
    with pytest.raises(ss.InputError, match="theta above 0"):
        ss.compare(y, models, weighting=ss.Projected(theta=0.0), times=TIMES[:1], null=False).sensitivity()


def test_differences_by_theta_are_the_scores_of_that_theta():
    """With the null model, given reference curves, and predictions that come in batches."""
    y, models, _ = draw(300, 7, ties=False)
    result = ss.compare(y, models, weighting=ss.Projected(reference=models["a"]), times=TIMES)
    for theta in (0.4, 3.0):
        weighting = ss.Projected(theta=theta, reference=models["a"])
        there = ss.compare(y, models, weighting=weighting, times=TIMES).contrasts.set_index(["model", "time"])
        for model in ("b", "Kaplan-Meier"):
            for time in TIMES:
                curve = result.sensitivity().curve(model, time=time)
                found = np.interp(np.log(theta), np.log(curve["theta"]), curve["difference"])
                assert found == pytest.approx(there.loc[(model, time), "difference"], abs=2e-6)
    batches = {
        name: ss.CurveBatches(lambda one=one: (one[rows] for rows in np.array_split(np.arange(300), 4)), 300)
        for name, one in models.items()
    }
    again, whole = (ss.compare(y, given, weighting="projected", times=TIMES) for given in (batches, models))
    np.testing.assert_allclose(again.scored[0].by_theta.scores, whole.scored[0].by_theta.scores, rtol=1e-12)


def test_means_of_early_and_late_starters_are_the_literal_ones():
    y, models, _ = draw(80, 6, ties=True, lost=False)
    result = ss.compare(y, models, weighting=ss.Projected(strata=None, min_followed=1), times=TIMES, null=False)
    share = oracle.stratified_share(y.time, y.event, [0] * len(y))
    found = result.scored[0].by_theta
    for j, t in enumerate(TIMES):
        for place, inside in enumerate((y.censoring_time >= t, y.censoring_time < t)):
            weighted, _ = oracle.weights_projected(y.time, y.event, t, share)
            status = [float(weighted[i][1]) for i in np.flatnonzero(inside)]
            np.testing.assert_allclose(found.event_free[:, place, j], np.mean(status) if status else np.nan)
            for a, curves in enumerate(models.values()):
                predicted = curves.at([t])[inside, 0]
                np.testing.assert_allclose(found.predicted[a, place, j], predicted.mean() if status else np.nan)


@pytest.mark.parametrize("ties", [False, True])
def test_the_hazard_ratio_of_late_starters_is_the_literal_one(ties):
    y, _, _ = draw(150, 8, ties=ties)
    found = LateStarters.of(y, TIMES)
    assert LateStarters.of(ss.Outcomes(y.time, y.event), TIMES) is None
    ratio, lower, upper = found.ratio(0.95)
    for j, t in enumerate(TIMES):
        late = [i for i in range(len(y)) if y.censoring_time[i] < t]
        early = [i for i in range(len(y)) if y.censoring_time[i] >= t]
        observed, expected, variance = sum(y.event[i] for i in late), 0.0, 0.0
        for s in sorted({y.time[i] for i in early if y.event[i]}):
            d = sum(1 for i in early if y.event[i] and y.time[i] == s)
            r, at_risk = (sum(1 for i in some if y.time[i] >= s) for some in (early, late))
            expected += at_risk * d / r
            variance += at_risk**2 * d / r**2
        assert found.observed[j] == observed
        assert found.expected[j] == pytest.approx(expected)
        if not late:
            assert found.reasons[j] == "no individual has C* < t"
            assert np.isnan(ratio[j])
            continue
        half = 1.959964 * np.sqrt(1 / observed + variance / expected**2)
        numbers = observed / expected * np.exp(np.array([0.0, -half, half]))
        np.testing.assert_allclose([ratio[j], lower[j], upper[j]], numbers, rtol=1e-6)


def test_without_events_there_is_no_hazard_ratio():
    end = np.repeat([2.0, 10.0], 40)
    time = np.where(np.arange(80) % 4 == 0, 1.0, end)
    of_early, of_late = (ss.Outcomes(time, (time < end) & (end == last), end) for last in (10.0, 2.0))
    assert LateStarters.of(of_early, np.array([5.0])).reasons == ("those with C* < t have no event",)
    (reason,) = LateStarters.of(of_late, np.array([5.0])).reasons
    assert reason == "those with C* >= t have no event while others are at risk"


def test_the_result_is_a_table_and_a_figure():
    y, models, _ = draw(300, 9, ties=False)
    result = ss.compare(y, models, weighting=["administrative", "projected"], times=TIMES)
    sensitivity = result.sensitivity()
    table = sensitivity.to_frame()
    assert len(table) == 2 * (1 + TIMES.size)
    assert ((table["tipping_lower"] < table["theta"]) & (table["theta"] < table["tipping_upper"])).all()
    contrasts = result.contrasts[result.contrasts["weighting"] == "projected (own ranks)"]
    at_times = table[table["from"] == table["to"]]
    np.testing.assert_allclose(at_times["difference"], contrasts["difference"])
    np.testing.assert_allclose(at_times["upper"], contrasts["upper"])
    ax = sensitivity.plot(time=4.5).ax_
    (line,) = [one for one in ax.lines if one.get_label() == "b"]
    np.testing.assert_array_equal(line.get_ydata(), sensitivity.curve("b", time=4.5)["difference"])
    drawn = [one.get_xdata() for one in ax.lines if one.get_marker() == "o"]
    row = at_times[(at_times["model"] == "b") & (at_times["from"] == 4.5)].iloc[0]
    assert set(drawn[0]) == {at for at in (row["tipping_lower"], row["tipping_upper"]) if 0 < at < np.inf}
    with pytest.raises(ss.InputError, match="time must be one of the evaluation times"):
        sensitivity.plot(time=2.0)
    with pytest.raises(ss.InputError, match="under a projected weighting"):
        ss.compare(y, models, weighting="administrative", times=TIMES).sensitivity()
    same = ss.compare(y, {"a": models["a"], "same": models["a"]}, weighting="projected", times=TIMES, null=False)
    assert same.sensitivity().to_frame()[["tipping_lower", "tipping_upper"]].isna().all(axis=None)


@pytest.mark.parametrize("settings", [{}, {"strata": None}, {"reference": "a"}])
def test_tensors_give_the_same(settings):
    pytest.importorskip("torch")
    y, models, _ = draw(300, 9, ties=False)
    found = []
    for backend in ("torch", "numpy"):
        with ss.config.using(backend=backend):
            result = ss.compare(y, models, metric=["brier", "log"], weighting=ss.Projected(**settings), times=TIMES)
        found.append([one.by_theta for one in result.scored])
    for of_torch, of_numpy in zip(*found, strict=True):
        for name in ("scores", "predicted", "event_free"):
            np.testing.assert_allclose(getattr(of_torch, name), getattr(of_numpy, name), rtol=1e-12, atol=1e-15)
