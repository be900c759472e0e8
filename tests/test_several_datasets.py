"""Several data sets: imputed ones by Rubin's rules, different ones by ranks and random effects."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import survscore as ss
from survscore.inference.random_effects import RandomEffects


def study(seed, n=200, shift=0.0):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2.0, 0.06, n)
    event_time, end = rng.exponential(1 / rate), rng.uniform(4, 14, n)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    noisy = 0.5 * rate + rng.gamma(2.0, 0.05, n)
    return y, {
        "a": ss.SurvivalCurves(np.exp(-4 * rate[:, None]), [4]),
        "b": ss.SurvivalCurves(np.exp(-4 * (noisy[:, None] + shift)), [4]),
    }


SETTINGS = {"metric": ["brier", "skill", "auc"], "weighting": "administrative", "horizons": [4]}


# Rubin's rules


def barnard_rubin(estimates, errors, complete):
    m = len(estimates)
    mean = sum(estimates) / m
    within = sum(error**2 for error in errors) / m
    between = sum((estimate - mean) ** 2 for estimate in estimates) / (m - 1)
    total = within + (1 + 1 / m) * between
    share = (1 + 1 / m) * between / total
    old = (m - 1) / share**2
    if math.isinf(complete):
        return mean, math.sqrt(total), old
    known = (complete + 1) / (complete + 3) * complete * (1 - share)
    return mean, math.sqrt(total), 1 / (1 / old + 1 / known)


@pytest.mark.parametrize("complete", [math.inf, 40.0, 3.0])
def test_numbers_are_pooled_by_rubins_rules(complete):
    rng = np.random.default_rng(0)
    estimates, errors = rng.normal(size=(6, 3)), rng.uniform(0.5, 2, (6, 3))
    found = ss.pool(estimates, errors, complete_degrees=complete, level=0.9)
    for j in range(3):
        mean, se, degrees = barnard_rubin(estimates[:, j], errors[:, j], complete)
        half = stats.t.ppf(0.95, degrees) * se
        expected = [mean, se, mean - half, mean + half, degrees]
        assert [column[j] for column in found[:5]] == pytest.approx(expected, rel=1e-9)
        ratio = (1 + 1 / 6) * estimates[:, j].var(ddof=1) / np.mean(errors[:, j] ** 2)
        assert found.missing_information[j] == pytest.approx((ratio + 2 / (degrees + 3)) / (ratio + 1), rel=1e-9)


def test_tables_are_pooled_row_by_row():
    y, _ = study(0)
    tables = [ss.score_table(y, study(0, shift=0.02 * k)[1], **SETTINGS) for k in range(4)]
    pooled = ss.pool(tables)
    frames = [table.to_frame() for table in tables]
    found = pooled.to_frame()
    assert len(found) == len(frames[0])
    row = found.query("metric == 'brier' and model == 'b'").iloc[0]
    values = [frame.loc[row.name, ["estimate", "se", "difference", "difference_se"]].tolist() for frame in frames]
    estimates, errors, differences, difference_errors = zip(*values, strict=True)
    complete = row["n_counted"] - 1
    mean, se, degrees = barnard_rubin(estimates, errors, complete)
    assert (row["estimate"], row["se"], row["degrees"]) == pytest.approx((mean, se, degrees), rel=1e-9)
    # on the logarithmic scale
    assert row["upper"] == pytest.approx(mean * math.exp(stats.t.ppf(0.975, degrees) * se / mean), rel=1e-9)
    rarer = min(row["n_events"], row["n_counted"] - row["n_events"]) - 1
    mean, se, degrees = barnard_rubin(differences, difference_errors, rarer)
    assert (row["difference"], row["difference_se"]) == pytest.approx((mean, se), rel=1e-9)
    assert row["difference_lower"] == pytest.approx(mean - stats.t.ppf(0.975, degrees) * se, rel=1e-6)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(mean / se), degrees), rel=1e-6)
    assert "4 imputations pooled by Rubin's rules" in str(pooled)
    assert json.loads(pooled.to_json())["n_imputations"] == 4


def test_pooling_the_same_result_is_that_result():
    y, models = study(1)
    table = ss.score_table(y, models, **SETTINGS)
    found, expected = ss.pool([table] * 3).to_frame(), table.to_frame()
    for column in ("estimate", "se", "difference", "difference_se", "n_counted", "verdict"):
        assert found[column].tolist() == pytest.approx(expected[column].tolist(), nan_ok=True), column
    compared = ss.compare(y, models, weighting="administrative", times=[4])
    scores = ss.pool([compared] * 2).to_frame().set_index("model")["estimate"]
    assert scores["a"] == pytest.approx(compared.scores.set_index("model")["score"]["a"])


def test_what_cannot_be_pooled_has_one_clear_line():
    y, models = study(1)
    table = ss.score_table(y, models, **SETTINGS)
    other = ss.score_table(y, {"a": models["a"]}, **SETTINGS)
    for arguments, message in (
        (([table],), "at least 2 imputed data sets, not 1"),
        (([table, other],), "result 1 and the first differ in 3 rows, such as brier of b"),
        (([table, 3],), "ScoreTables or Comparisons, .* not int"),
        (([1.0, 2.0], [1.0, -1.0]), "se must be at least 0: 1 of 2 is not, .* position 1"),
        (([1.0, 2.0], [1.0]), "the same shape"),
    ):
        with pytest.raises(ss.InputError, match=message):
            ss.pool(*arguments)
    with pytest.raises(ss.InputError, match="complete_degrees must be above 0"):
        ss.pool([1.0, 2.0], [1.0, 1.0], complete_degrees=0)


# Random effects


def test_random_effects_are_those_of_their_equations():
    rng = np.random.default_rng(0)
    values, errors = rng.normal(0, 2, 9), rng.uniform(0.3, 1.5, 9)
    found = RandomEffects.of(values, errors, 0.95)
    weight = 1 / (errors**2 + found.tau**2)
    mean = np.sum(weight * values) / np.sum(weight)
    # Paule and Mandel's equation holds
    assert np.sum(weight * (values - mean) ** 2) == pytest.approx(8, rel=1e-6)
    assert (found.estimate, found.se) == pytest.approx((mean, np.sum(weight) ** -0.5), rel=1e-6)
    assert found.upper == pytest.approx(mean + stats.t.ppf(0.975, 8) * found.se)
    fixed = 1 / errors**2
    q = np.sum(fixed * (values - np.sum(fixed * values) / np.sum(fixed)) ** 2)
    assert (found.q, found.i_squared) == pytest.approx((q, 1 - 8 / q))
    wider = stats.t.ppf(0.975, 7) * math.hypot(found.tau, found.se)
    assert found.prediction_upper == pytest.approx(mean + wider)


def test_data_sets_that_do_not_differ_have_no_heterogeneity():
    found = RandomEffects.of(np.array([1.0, 1.01, 0.99]), np.array([0.5, 0.5, 0.5]), 0.95)
    assert (found.tau, found.i_squared) == (0.0, 0.0)
    assert found.se == pytest.approx(0.5 / math.sqrt(3))  # not smaller by chance


# Data sets beside each other


@pytest.fixture(scope="module")
def results():
    return {name: ss.score_table(*study(seed), **SETTINGS) for seed, name in enumerate(("one", "two", "three", "four"))}


@pytest.mark.parametrize("metric", ["brier", "auc"])
def test_results_of_several_data_sets_are_put_together(results, metric):
    found = ss.across_datasets(results, metric=metric)
    rows = [table.to_frame().query(f"metric == '{metric}' and model == 'b'").iloc[0] for table in results.values()]
    expected = RandomEffects.of(
        np.array([row["difference"] for row in rows]), np.array([row["difference_se"] for row in rows]), 0.95
    )
    assert found.means["b"] == expected
    estimates = np.array(
        [table.to_frame().query(f"metric == '{metric}'")["estimate"].tolist() for table in results.values()]
    )
    ranks = np.array([stats.rankdata(row if metric == "brier" else -row) for row in estimates])
    assert {one.model: one.mean_rank for one in found.ranks}["a"] == pytest.approx(ranks[:, 0].mean())
    assert "4 data sets" in str(found)


def test_friedmans_test_is_scipys():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 4)).round(1) + np.arange(4) * 0.5
    frames = {str(i): pd.DataFrame({"model": list("abcd"), "estimate": row}) for i, row in enumerate(values)}
    found = ss.across_datasets(frames)
    assert found.friedman_p_value == pytest.approx(stats.friedmanchisquare(*values.T).pvalue)
    assert math.isnan(found.means["b"].estimate)
    assert "no standard errors" in str(found)


def test_comparisons_have_means_over_time():
    y, _ = study(1)
    times, rate = np.arange(1.0, 6.0), np.random.default_rng(1).gamma(2.0, 0.06, 200)
    models = {
        name: ss.SurvivalCurves(np.exp(-(rate[:, None] + more) * times), times, interpolation="linear")
        for name, more in (("a", 0), ("b", 0.1))
    }
    compared = ss.compare(y, models, weighting="administrative", times=times)
    results = {"one": compared, "two": compared}
    whole = compared.integrated().contrasts.set_index("model").loc["b"]
    at_two = compared.contrasts.query("time == 2").set_index("model").loc["b"]
    for asked, expected in (({}, whole), ({"times": 2.0}, at_two)):
        rows = [one for one in ss.across_datasets(results, **asked).differences if one.model == "b"]
        assert (rows[1].difference, rows[1].se) == pytest.approx((expected["difference"], expected["se"]))


def test_unlike_results_have_one_clear_line(results):
    frame = pd.DataFrame({"model": ["a", "b"], "estimate": [0.1, 0.2]})
    for given, more, message in (
        ({"one": frame}, {}, "at least two data sets"),
        ({"x": frame, "y": frame.replace("b", "c")}, {}, "data set 'y' differs in b, c"),
        ({"x": frame, "y": pd.concat([frame, frame])}, {}, "'y' must have one row for each model"),
        ({"x": frame, "y": frame.drop(columns="estimate")}, {}, "'y' has no column 'estimate'"),
        (results, {"metric": "log"}, "metric must be one of"),
        (results, {"weighting": "ipcw"}, "has no weighting 'ipcw'"),
        (results, {"times": 7.0}, "has no time 7; it has 4"),
        (results, {"reference": "b"}, "has differences to 'a', not to 'b'"),
    ):
        with pytest.raises(ss.InputError, match=message):
            ss.across_datasets(given, **more)
