"""The projected weighting, against literal loops: strata, statuses, standard errors, and parts.

Those censored before t count with the probability of being event-free at t in their stratum, given that they were when
last seen: S_k(t) / S_k(T_i), of the Kaplan-Meier estimate of the stratum. Everybody counts, with weight one.
"""

import numpy as np
import pytest

import oracle
import survscore as ss
from combinations import every_pair
from survscore.weighting.ranks import doubled_ranks

TIMES = np.array([1.0, 3.0, 4.5, 7.0])


def draw(n, seed, *, ties, lost=True):
    """Outcomes with known ends and some who are lost before, strata of different hazards, and two models."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    star, end, dropping = rng.exponential(5 + 3 * label), rng.uniform(2, 12, n), rng.exponential(30, n)
    dropping = dropping if lost else np.full(n, np.inf)
    if ties:
        star, end, dropping = (np.ceil(one) for one in (star, end, dropping))
    time = np.minimum(np.minimum(star, end), dropping)
    rate = (rng.uniform(0.05, 0.3, (n, 1)) + 0.1 * (2 - label[:, None])).round(2)
    noise = rng.uniform(0.5, 2, (n, 1))
    models = {name: ss.SurvivalCurves(np.exp(-scale * rate * TIMES), TIMES) for name, scale in (("a", 1), ("b", noise))}
    return ss.Outcomes(time, star <= time, end), models, label


#: The strata that are asked for.
STRATA = {"one": lambda label: None, "given": lambda label: label, "own-ranks": None, "mean-ranks": None}


def asked(name, label, **settings):
    strata = name if STRATA[name] is None else STRATA[name](label)
    return ss.Projected(strata=strata, min_followed=1, **settings)


@every_pair(strata=STRATA, metric=["brier", "log"], grouped=[False, True], null=[False, True], threads=[2, 7])
def test_compiled_code_agrees(strata, metric, grouped, null, threads, monkeypatch):
    monkeypatch.setattr("survscore.engine.compiled.ROWS", 64)  # several blocks of rows
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8), raising=False)
    y, models, label = draw(400, 6, ties=True)
    groups, found = np.arange(400) // 2 if grouped else None, []
    for backend in ("numpy", "compiled"):
        with ss.config.using(backend=backend, threads=threads):
            settings = {"weighting": asked(strata, label, theta=1.3), "null": null, "groups": groups}
            result = ss.compare(y, models, metric=metric, times=TIMES, **settings)
        whole = result.integrated()
        tables = result.scores, result.contrasts, whole.scores, whole.contrasts, result.parts
        found.append([one.select_dtypes("number").drop(columns="p_value", errors="ignore") for one in tables])
    for expected, fast in zip(*found, strict=True):
        np.testing.assert_allclose(fast, expected, rtol=1e-9)


@pytest.mark.parametrize("ranks", ["own-ranks", "mean-ranks"])
@pytest.mark.parametrize("known", [True, False])
def test_strata_by_ranks_are_the_literal_ones(ranks, known):
    """Several groups of neighbours in C*, tied C*, tied predictions; and without C*, one group."""
    rng = np.random.default_rng(3)
    y, models, _ = draw(450, 8, ties=True)
    y = ss.Outcomes(y.time, y.event, y.censoring_time + rng.integers(0, 4, 450) / 10) if known else y
    y = y if known else ss.Outcomes(y.time, y.event)
    times = np.linspace(0.5, 7, 23)
    models = {name: ss.SurvivalCurves(curves.at(times).round(2), times) for name, curves in models.items()}
    result = ss.compare(y, models, weighting=ss.Projected(strata=ranks), times=times, null=False)
    read = [lambda t, curves=curves: curves.at([t])[:, 0] for curves in models.values()]
    several = [read] * 2 if ranks == "mean-ranks" else [[one] for one in read]
    for curves, some in zip(models.items(), several, strict=True):
        name, own = curves
        codes = oracle.rank_strata(y.time, y.event, y.censoring_time, times, some, min_followed=20)
        assert len(set(codes)) == 10
        score = ss.brier_score(y, own, weighting=ss.Projected(strata=codes), times=times)
        found = result.scores.set_index("model").loc[name]
        np.testing.assert_allclose(found["score"], score.scores, rtol=1e-12)
        np.testing.assert_allclose(found["se"], score.se, rtol=1e-10)
    assert result.scored[0].settings["n_strata"] == [10] * (1 if ranks == "mean-ranks" else 2)
    assert result.scored[0].settings["strata"] == ranks


def test_ranks_are_exact_and_share_ties():
    values = np.array([[0.5, 0.1, 0.5, 0.9], [1.0, 1.0, 1.0, 1.0], [0.4, 0.3, 0.2, 0.1]])
    np.testing.assert_array_equal(doubled_ranks(values), [[4, 1, 4, 7], [4, 4, 4, 4], [7, 5, 3, 1]])


def test_a_leak_does_not_choose_its_referee():
    """Predictions that encode C* alone have no strata of their own: within neighbours in C* all are alike."""
    y, _, _ = draw(1000, 9, ties=False)
    end = np.ceil(y.censoring_time)
    y = ss.Outcomes(np.minimum(y.time, end), y.event, end)
    curves = ss.SurvivalCurves(1.0 * (end[:, None] >= TIMES), TIMES)
    scores = [ss.brier_score(y, curves, weighting=w, times=TIMES) for w in ("projected", ss.Projected(strata=None))]
    assert scores[0].settings["n_strata"] == [1]
    np.testing.assert_array_equal(scores[0].scores, scores[1].scores)


def test_the_null_model_has_one_stratum_by_own_ranks():
    y, models, _ = draw(400, 3, ties=True)
    tables = [
        ss.compare(y, some, weighting=weighting, times=TIMES).scores.set_index("model")
        for some, weighting in ((models, "projected"), ({"a": models["a"]}, ss.Projected(strata=None)))
    ]
    for column in ("score", "se"):
        np.testing.assert_allclose(*(table.loc["Kaplan-Meier", column] for table in tables), rtol=1e-10)
    null = [oracle.event_free_share(y.time, y.event, t) for t in TIMES]
    share = oracle.stratified_share(y.time, y.event, [0] * 400)
    expected = [
        oracle.metric("brier", oracle.weights_projected(y.time, y.event, t, share), [p] * 400)
        for t, p in zip(TIMES, null, strict=True)
    ]
    np.testing.assert_allclose(tables[0].loc["Kaplan-Meier", "score"], expected, rtol=1e-10)


@pytest.mark.parametrize("theta", [1.0, 2.0])
def test_given_curves_and_a_model_are_references(theta):
    y, models, _ = draw(200, 3, ties=True)
    tables = [
        ss.compare(y, models, weighting=ss.Projected(reference=reference, theta=theta), times=TIMES)
        for reference in ("b", models["b"])
    ]
    assert [table.weightings[0] for table in tables] == [
        f"projected ({source}{', theta=2' if theta == 2 else ''})" for source in ("reference 'b'", "given curves")
    ]
    for name in ("scores", "contrasts"):
        a, b = (getattr(table, name).select_dtypes("number") for table in tables)
        np.testing.assert_array_equal(a, b)
    curves, t = models["b"], TIMES[-1]
    pi, m = models["a"].at([t])[:, 0], curves.at([t])[:, 0]
    rows = zip(curves.probabilities, y.time, strict=True)
    m = (m / [oracle.survival_at(TIMES, row, T, "linear") if t > T else 1.0 for row, T in rows]) ** theta
    status = np.where(y.event & (y.time <= t), 0.0, np.where(y.time >= t, 1.0, m))
    losses = pi**2 + status * ((1 - pi) ** 2 - pi**2)
    last = tables[0].scores.set_index(["model", "time"]).loc[("a", t)]
    # nothing is estimated: a plain mean
    np.testing.assert_allclose([last["score"], last["se"]], [losses.mean(), losses.std(ddof=1) / np.sqrt(200)])


def test_plain_kaplan_meier_is_a_reference():
    y, models, label = draw(200, 3, ties=False)
    assert str(ss.Projected(reference="Kaplan-Meier", theta=2)) == str(ss.Projected(strata=None, theta=2))
    both = ss.Projected(reference="Kaplan-Meier"), ss.Projected(strata=None)
    found = [ss.compare(y, models, weighting=one, times=TIMES).scores["score"] for one in both]
    np.testing.assert_array_equal(*found)
    with pytest.raises(ss.InputError, match="one curve for all individuals: it has no strata"):
        ss.Projected(strata=label, reference="Kaplan-Meier")


def test_a_score_is_the_sum_of_its_parts():
    y, models, _ = draw(500, 7, ties=False, lost=False)
    administrative = ss.compare(y, models, metric=["brier", "log"], weighting="administrative", times=TIMES)
    found = ss.compare(y, models, metric=["brier", "log"], weighting="projected", times=TIMES)
    parts = found.parts
    assert list(parts["model"].unique()) == ["a", "b", "Kaplan-Meier"]
    np.testing.assert_allclose(parts["observed"], administrative.scores["score"], rtol=1e-14)
    np.testing.assert_allclose(parts["score"], found.scores["score"], rtol=1e-14)
    whole = parts["share_observed"] * parts["observed"] + (1 - parts["share_observed"]) * parts["projected"].fillna(0)
    np.testing.assert_allclose(whole, parts["score"], rtol=1e-12)
    for t, row in parts[parts["model"] == "a"].groupby("time"):
        assert row["share_observed"].iloc[0] == pytest.approx(np.mean(y.censoring_time >= t))
    assert administrative.parts is None


def test_parts_of_one_model_and_with_drop_outs():
    y, models, label = draw(500, 7, ties=False)
    score = ss.brier_score(y, models["a"], weighting=ss.Projected(strata=label), times=TIMES)
    terms = ss.score_terms(y, models["a"], weighting=ss.Projected(strata=label), times=TIMES)
    parts = score.parts
    inside = y.censoring_time[:, None] >= TIMES
    observed, others = (
        np.array([terms.losses[some[:, j], j].mean() if some[:, j].any() else np.nan for j in range(4)])
        for some in (inside, ~inside)
    )
    np.testing.assert_allclose(parts["observed"], observed, rtol=1e-12)
    np.testing.assert_allclose(parts["projected"], others, rtol=1e-12)
    np.testing.assert_allclose(parts["share_observed"], inside.mean(axis=0))
    assert ss.auc(y, models["a"], weighting="projected", times=TIMES).parts is None
    unknown = ss.Outcomes(y.time, y.event)
    assert ss.brier_score(unknown, models["a"], weighting="projected", times=TIMES).parts is None


def test_how_many_statuses_were_observed_is_shown():
    y, models, _ = draw(400, 5, ties=False)
    score = ss.brier_score(y, models["a"], weighting="projected", times=TIMES[:3])
    known = [int(np.sum(y.event & (y.time <= t)) + np.sum(y.time > t)) for t in TIMES[:3]]
    assert known[-1] < 400
    assert f"status observed of {known[0]} to {known[-1]}" in repr(score)
    assert "effective" not in repr(score)
    assert "share: proportion with C* >= t" in " ".join(str(score).split())
    unknown = ss.brier_score(ss.Outcomes(y.time, y.event), models["a"], weighting="projected", times=TIMES[:3])
    assert "observed: number of individuals whose status is" in " ".join(str(unknown).split())
    assert f" {known[-1]}" in str(unknown)


def test_no_score_where_few_are_followed():
    y, models, _ = draw(40, 3, ties=False)
    followed = [np.sum((y.time > t) | ((y.time == t) & ~y.event)) for t in TIMES]
    assert followed[1] >= 20 > followed[2]
    reason = "fewer than 20 individuals are followed event-free"
    with pytest.warns(ss.UndefinedScoreWarning, match=f"2 times where {reason}"):
        score = ss.brier_score(y, models["a"], weighting="projected", times=TIMES)
    np.testing.assert_array_equal(np.isnan(score.scores), [False, False, True, True])
    assert score.undefined == {reason: 2}
    least = ss.brier_score(y, models["a"], weighting=ss.Projected(min_followed=followed[3]), times=TIMES)
    assert not np.isnan(least.scores).any()


def test_few_behind_projected_statuses_are_a_caution():
    y, models, _ = draw(200, 3, ties=False)
    with pytest.warns(ss.FewFollowedWarning, match="followed event-free"):
        ss.brier_score(y, models["a"], weighting="projected", times=TIMES)


def test_metrics_of_the_whole_follow_up_have_no_projected_form():
    y, models, _ = draw(200, 3, ties=False)
    for metric in ("concordance", "crps", "log_score"):
        with pytest.raises(ss.InputError, match=f"metric '{metric}' has no projected form"):
            ss.score_all(y, models["a"], metric=metric, weighting="projected", times=[4.5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strata": "ranks"}, "strata must be one of 'own-ranks', 'mean-ranks', not 'ranks'"),
        ({"theta": -1}, "theta must be a number from 0 to 50, not -1"),
        ({"min_followed": 0}, "min_followed must be a whole number of at least 1, not 0"),
        ({"reference": 3}, "reference must be None .* not int"),
        ({"reference": "a", "strata": [1, 2]}, "strata are for Kaplan-Meier estimates"),
        ({"reference": "c"}, r"reference must be a model that is scored and in memory \('a', 'b'\), not 'c'"),
        ({"strata": [1, 2, 1]}, "strata"),
    ],
)
def test_bad_settings_are_named(settings, message):
    y, models, _ = draw(50, 3, ties=False)
    with pytest.raises(ss.InputError, match=message):
        ss.compare(y, models, weighting=ss.Projected(**settings), times=[3.0])


def test_predictions_that_are_pushed_have_no_ranks():
    y, models, _ = draw(100, 3, ties=False)
    stream = ss.StreamingScore(y, weighting="projected", times=TIMES)
    with pytest.raises(ss.InputError, match="needs all predictions before they are scored; strata=None needs none"):
        stream.update(models["a"])
    plain = ss.StreamingScore(y, weighting=ss.Projected(strata=None, min_followed=1), times=TIMES).update(models["a"])
    whole = ss.brier_score(y, models["a"], weighting=ss.Projected(strata=None, min_followed=1), times=TIMES)
    np.testing.assert_allclose(plain.result().scores, whole.scores, rtol=1e-12)
    np.testing.assert_allclose(plain.result().parts["observed"], whole.parts["observed"], rtol=1e-12)


def test_net_benefit_and_calibration_take_it():
    y, models, _ = draw(900, 6, ties=False)
    for strata in ("own-ranks", None):
        weighting = ss.Projected(strata=strata)
        curve = ss.decision_curve(y, models, 4.5, thresholds=[0.2, 0.5], weighting=weighting).to_frame()
        apart = ss.compare(y, models, metric=["net_benefit@0.2", "net_benefit@0.5"], weighting=weighting, times=[4.5])
        for threshold in (0.2, 0.5):
            one = curve[curve["threshold"] == threshold].set_index("strategy")
            other = apart.scores[apart.scores["metric"] == f"net_benefit@{threshold}"].set_index("model")
            found = one.loc[[*models], ["net_benefit", "se"]]
            np.testing.assert_allclose(found, other.loc[[*models], ["score", "se"]], rtol=1e-10)
        found = ss.calibration(y, models["a"], 4.5, weighting=weighting, n_draws=10)
        metrics = ("oe", "slope", "in_the_large", "brier")
        oe, slope, large, brier = ss.score_all(y, models["a"], metric=metrics, weighting=weighting, times=[4.5])
        for estimate, score in ((found.observed_expected, oe), (found.slope, slope), (found.in_the_large, large)):
            assert estimate.value == pytest.approx(score.scores[0], rel=1e-10)
        assert found.slope.se == pytest.approx(slope.se[0], rel=1e-8)
        assert found.brier == pytest.approx(brier.scores[0], rel=1e-10)
        assert found.n_counted == 900


class AsIfObserved(ss.Weighting):
    """A weighting of a user that projects statuses in its own way."""

    name = "as_if_observed"
    theta = 1.0

    def prepare(self, index):
        return ss.Projected(strata=None, min_followed=1).prepare(index)


def test_another_weighting_that_projects_has_scores_by_theta():
    y, models, _ = draw(60, 3, ties=False)
    theirs, ours = (
        ss.compare(y, models, weighting=one, times=TIMES, null=False).sensitivity().to_frame()
        for one in (AsIfObserved(), ss.Projected(strata=None, min_followed=1))
    )
    assert len(ours)
    np.testing.assert_allclose(theirs.select_dtypes("number"), ours.select_dtypes("number"))
