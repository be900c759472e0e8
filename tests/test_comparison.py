import numpy as np
import pytest

import survscore as ss

TIMES = np.arange(1.0, 9.0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    rate = rng.gamma(3, 0.05, 1500)
    star, end = rng.exponential(1 / rate), rng.uniform(3, 12, 1500)
    y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    truth = np.exp(-rate[:, None] * TIMES)
    models = {
        "truth": ss.SurvivalCurves(truth, TIMES),
        "gloomy": ss.SurvivalCurves(truth**2, TIMES),
        "leaking": ss.SurvivalCurves(0.92 * truth * (end[:, None] > TIMES), TIMES),
    }
    return y, models


@pytest.fixture(scope="module")
def result(data):
    y, models = data
    return ss.compare(y, models, weighting=["administrative", "ipcw"], times=TIMES, reference="truth", ranges="any")


def test_scores_are_those_of_brier_score(data, result):
    y, models = data
    assert result.models == ("truth", "gloomy", "leaking", "Kaplan-Meier")
    for weighting in ("administrative", "ipcw"):
        for name, curves in models.items():
            alone = ss.brier_score(y, curves, weighting=weighting, times=TIMES)
            rows = result.scores.query(f"weighting == @alone.weighting and model == '{name}'")
            np.testing.assert_allclose(rows["score"], alone.scores, rtol=1e-12)
            np.testing.assert_allclose(rows["se"], alone.se, rtol=1e-9)
            whole = result.integrated().scores.query(f"weighting == @alone.weighting and model == '{name}'")
            np.testing.assert_allclose(whole["score"], alone.integrated().value, rtol=1e-12)
            np.testing.assert_allclose(whole["se"], alone.integrated().se, rtol=1e-9)
    scores = result.scores.pivot_table(index=["weighting", "time"], columns="model", values="score")
    skill = result.skill.pivot_table(index=["weighting", "time"], columns="model", values="skill")
    np.testing.assert_allclose(skill["truth"], 1 - scores["truth"] / scores["Kaplan-Meier"], rtol=1e-12)


def test_the_null_model_of_training_data(data):
    y, models = data
    training = ss.Outcomes([1.5, 2.5], [1, 0])
    result = ss.compare(y, models, weighting="administrative", times=TIMES, null=training)
    spelt_out = ss.SurvivalCurves(np.tile(np.where(TIMES < 1.5, 1, 0.5), (1500, 1)), TIMES)
    expected = ss.brier_score(y, spelt_out, weighting="administrative", times=TIMES).scores
    np.testing.assert_allclose(result.scores.query("model == 'Kaplan-Meier'")["score"], expected, rtol=1e-12)
    no_event = ss.compare(y, models, weighting="administrative", times=TIMES, null=ss.Outcomes([3.0], [0]))
    assert np.isfinite(no_event.scores["score"]).all()


def test_weightings_disagree_about_the_leaking_model(result):
    table = result.disagreements()

    leaking = table.query("model == 'leaking'")
    assert len(leaking) >= 3
    assert (leaking["administrative"] > 0).all()
    assert (leaking["ipcw (Kaplan-Meier of the scored outcomes)"] < 0).all()
    assert table.query("model == 'gloomy'").empty


def test_disagreements_of_a_metric_that_the_null_model_does_not_have():
    """Its row is NaN, and a difference to it is neither positive nor negative."""
    sample = ss.simulate.SineConstantAcceleratingStudy().sample(300, seed=1)
    curves = sample.survival([10, 20])
    models = {"a": curves, "b": ss.SurvivalCurves(curves.probabilities**1.3, curves.times)}
    result = ss.compare(sample.outcomes, models, metric="oe", times=[10, 20])
    assert result.null in result.models
    assert result.null not in set(result.disagreements()["model"])


def test_the_administrative_comparison_rejects_what_ipcw_prefers(result):
    """Under the paper's leaking classifier: the verdicts are opposite, and both are sure."""
    leaking = result.integrated().contrasts.query("model == 'leaking'").set_index("weighting")
    assert leaking.loc["administrative", "lower"] > 0
    assert leaking.loc["ipcw (Kaplan-Meier of the scored outcomes)", "upper"] < 0
    assert (leaking["p_value"] < 0.05).all()


def test_several_metrics_in_one_pass(data):
    """Higher values of AUC are better, and it has no skill."""
    y, models = data
    result = ss.compare(y, models, metric=["brier", "auc"], weighting="administrative", times=TIMES)
    auc = result.contrasts.query("metric == 'auc' and model == 'Kaplan-Meier'")
    assert (auc["difference"] < 0).all()  # a coin
    assert (auc["verdict"] == "worse").all()
    assert set(result.skill["metric"]) == {"brier"}


def test_another_reference_turns_the_differences_round(result):
    a = result.contrasts.query("model == 'gloomy'")
    b = result.against("gloomy").contrasts.query("model == 'truth'")
    np.testing.assert_array_equal(a["difference"], -b["difference"])


def test_band_is_wider_than_the_intervals_and_reproducible(result):
    band = result.band(seed=3)
    assert band.equals(result.band(seed=3))
    pointwise = result.contrasts
    assert (band["lower"] < pointwise["lower"]).all()
    assert (band["upper"] > pointwise["upper"]).all()
    assert band["critical_value"].between(1.96, 2.9).all()
    assert (result.band(level=0.5)["critical_value"] < band["critical_value"]).all()


def test_a_model_equal_to_the_reference(data):
    y, models = data
    pair = [("a", models["truth"]), ("b", models["truth"])]
    result = ss.compare(y, pair, weighting="ipcw", times=TIMES, null=False, ranges="any")
    assert (result.contrasts["difference"] == 0).all()
    assert (result.contrasts["se"] == 0).all()
    assert (result.contrasts["verdict"] == "undecided").all()
    assert (result.contrasts["p_value"] == 1).all()
    np.testing.assert_allclose(result.band()[["lower", "upper"]], 0, atol=1e-5)  # rounding is nothing
    with pytest.raises(ss.InputError, match="null model, which was left out"):
        _ = result.skill
    assert result.integrated().skill is None


def test_default_times_and_one_model(data):
    y, models = data
    short = ss.SurvivalCurves(models["truth"].probabilities[:, :3], TIMES[:3])
    result = ss.compare(y, {"long": models["truth"], "short": short}, weighting="administrative")
    assert result.times[-1] == 3
    alone = ss.compare(y, {"Kaplan-Meier": short}, weighting="administrative", null=False, ranges="any")
    assert alone.models == ("Kaplan-Meier",)
    assert alone.contrasts.empty
    assert "critical_value" in alone.band()
    assert alone.integrated().contrasts is None


def test_times_that_not_all_models_reach(data):
    y, models = data
    short = ss.SurvivalCurves(models["truth"].probabilities[:, :3], TIMES[:3])
    several = {"long": models["truth"], "short": short}
    with pytest.warns(ss.UndefinedScoreWarning, match="5 times where not all models predict") as caught:
        result = ss.compare(y, several, weighting="administrative", times=TIMES)
    assert caught[0].filename == __file__
    assert result.scores["score"].isna().sum() == 3 * 5
    assert result.integrated(nan="stop").range == (1, 3)
    with pytest.raises(ss.InputError, match=r"NaN at 5 times .*not all models predict"):
        result.integrated()
    with pytest.raises(ss.InputError, match="after the last time that all models predict"):
        ss.compare(y, several, weighting="administrative", times=[4, 5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {}}, "models is empty"),
        ({"models": [("a", None), ("a", None)]}, "different names; repeated: a"),
        ({"models": {"a": None}}, "the curves of 'a' must be SurvivalCurves or IncidenceCurves, not NoneType"),
        (
            {"models": {"short": ss.SurvivalCurves([[0.5]], [9])}},
            "the curves of 'short' has length 1, but y has length",
        ),
        ({"models": {"Kaplan-Meier": ss.SurvivalCurves([[0.5]] * 1500, [9])}}, "must not be called 'Kaplan-Meier'"),
        ({"reference": "nobody"}, r"reference must be one of the models \['truth', .*'Kaplan-Meier'\], not 'nobody'"),
        ({"weighting": []}, "weighting is empty: name at least one"),
        ({"metric": "hinge"}, "metric must be one of"),
        ({"level": 2}, "level must be"),
        ({"null": "yes"}, "null must be one of 'counted', not 'yes'"),
    ],
)
def test_bad_input_is_named(data, change, message):
    y, models = data
    arguments = {"models": models, "weighting": "administrative", "times": TIMES} | change
    with pytest.raises(ss.InputError, match=message):
        ss.compare(y, arguments.pop("models"), **arguments)


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_one_range_for_all_weightings(data):
    y, models = data
    cut = ss.Outcomes(np.minimum(y.time, 6), y.event & (y.time <= 6), np.minimum(y.censoring_time, 6))
    several = {name: models[name] for name in ("truth", "leaking")}
    for order in (["administrative", "ipcw"], ["ipcw", "administrative"]):
        whole = ss.compare(cut, several, weighting=order, times=TIMES, null=False).integrated(nan="stop")
        assert whole.range == (1, 5)  # at 6 the administrative score still stands, Kaplan-Meier does not
        for weighting in order:
            alone = ss.brier_score(cut, models["truth"], weighting=weighting, times=TIMES, ranges=[(1, 5)])
            row = whole.scores.query("weighting == @alone.weighting and model == 'truth'")
            assert row["score"].item() == pytest.approx(alone.integrated(1, 5).value)
            assert row["se"].item() == pytest.approx(alone.integrated(1, 5).se)
    # at 6 only the administrative score stands, which can't disagree with itself
    result = ss.compare(cut, several, weighting=["administrative", ss.IPCW("known"), "ipcw"], times=TIMES)
    assert result.disagreements()["time"].max() == 5


def test_a_time_at_which_nothing_varies(data):
    y, models = data
    several = {
        name: ss.SurvivalCurves(np.column_stack([np.full(1500, level), 0.9 * curves.probabilities]), [0, *TIMES])
        for (name, curves), level in zip(models.items(), (0.97, 0.91, 0.95), strict=True)
    }
    for normalize in ("weights", "n"):
        weighting = ss.IPCW(normalize=normalize)
        with_zero = ss.compare(y, several, weighting=weighting, times=[0, *TIMES], null=False, ranges="any").band()
        without = ss.compare(y, several, weighting=weighting, times=TIMES, null=False, ranges="any").band()
        assert with_zero["critical_value"].iloc[-1] == pytest.approx(without["critical_value"].iloc[-1], rel=0.02)
        # nobody has had the event at time 0: that the difference does not vary there tells nothing
        assert np.isnan(with_zero["lower"].iloc[0])


@pytest.mark.filterwarnings("ignore::survscore.DelayedEntryWarning")  # of all with event, as if none were censored
def test_both_populations_are_compared_by_default_where_the_censoring_time_is_known(data):
    y, models = data
    assert ss.compare(y, models).weightings == ["administrative", "projected (own ranks)"]
    assert ss.compare(y, models, metric=["brier", "concordance"]).weightings == ["administrative"]
    everybody = ss.Outcomes(y.time, [True] * len(y))
    assert ss.compare(everybody, models).weightings == ["uncensored"]
    with pytest.raises(ss.InputError, match=r"weighting must be given.*Without censoring_time the choice is `IPCW"):
        ss.compare(ss.Outcomes(y.time, y.event), models)
