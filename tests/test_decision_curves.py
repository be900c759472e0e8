"""Decision curves: against net benefit at each threshold, loops over individuals, and simulations."""

import numpy as np
import pytest

import oracle
import survscore as ss
from registry import CASES, fitted_problem, one_curve
from survscore.analysis import decision_curves
from survscore.inference.intervals import student_quantile

THRESHOLDS = [0.05, 0.2, 0.35, 0.8]


def problem_and_models(data="drop-outs", n=150, *, causes=False):
    problem = fitted_problem(data, 2, n, causes=causes)
    other = ss.SurvivalCurves(problem.curves.probabilities**2, problem.curves.times, extrapolation="hold")
    return problem, {"a": problem.curves, "b": other}


@pytest.mark.parametrize("case", [case for case in CASES if not case.by_n], ids=lambda case: case.name)
@pytest.mark.parametrize("grouped", [False, True])
def test_it_is_net_benefit_at_every_threshold(case, grouped, monkeypatch):
    """Values, standard errors and intervals, of models and differences; also where individuals come in blocks."""
    monkeypatch.setattr(decision_curves, "NUMBERS_PER_BLOCK", 1000)
    problem, models = problem_and_models(case.data, causes=grouped and case.of_causes)
    weighting, groups = case.weighting(problem), np.arange(150) // 3 if grouped else None
    if case.name == "administrative fixed":
        weighting = ss.Administrative(population=30)
    found = ss.decision_curve(problem.y, models, 30, thresholds=THRESHOLDS, weighting=weighting, groups=groups)
    one_by_one = ss.compare(
        problem.y, models, metric=[ss.NetBenefit(z) for z in THRESHOLDS], weighting=weighting, times=[30], null=False,
        groups=groups,
    )  # fmt: skip
    table, scores = found.to_frame(), one_by_one.scores
    for name in models:
        ours, theirs = table[table["strategy"] == name], scores[scores["model"] == name]
        for column, like in (("net_benefit", "score"), ("se", "se"), ("lower", "lower"), ("upper", "upper")):
            np.testing.assert_allclose(ours[column], theirs[like], rtol=1e-9, atol=1e-14)
    ours = found.contrasts.query("strategy == 'b'")
    for column in ("difference", "se", "lower", "upper"):
        np.testing.assert_allclose(ours[column], one_by_one.contrasts[column], rtol=1e-9, atol=1e-14)


def test_acting_on_all_and_on_none_and_who_decides_differently():
    problem, models = problem_and_models()
    found = ss.decision_curve(problem.y, models, 30, thresholds=THRESHOLDS, weighting=one_curve())
    case = next(case for case in CASES if case.name == "administrative")
    weighted = case.weights(problem, 30.0)
    n = len(problem.y)
    pi = {"a": problem.pi(30.0), "treat all": [0.0] * n, "treat none": [1.0] * n}
    pi["b"] = [float(p) for p in models["b"].at([30.0])[:, 0]]
    table = found.to_frame().set_index("strategy")
    for name, survival in pi.items():
        expected = [oracle.net_benefit(weighted, survival, threshold=z) for z in THRESHOLDS]
        np.testing.assert_allclose(table.loc[name, "net_benefit"], expected, rtol=1e-12, atol=1e-15)
    for reference in pi:
        contrasts = found.against(reference).contrasts
        for _, row in contrasts.iterrows():
            acted = [
                [1 - p >= row["threshold"] - 1e-7 for p, (_, free) in zip(pi[name], weighted[0], strict=True)
                 if free is not None]
                for name in (row["strategy"], reference)
            ]  # fmt: skip
            assert row["discordant"] == sum(a != b for a, b in zip(*acted, strict=True))
    none = table.loc["treat none"]
    assert (none[["net_benefit", "se", "lower", "upper", "band_lower", "band_upper"]] == 0).all(axis=None)
    assert found.contrasts["discordant"].dtype == np.int64


def test_bands_are_wider_than_intervals_and_hold_at_all_thresholds():
    """The sup-t band of independent copies of one Gaussian vector holds all of it as often as it says."""
    problem, models = problem_and_models(n=400)
    found = ss.decision_curve(problem.y, models, 30, seed=1)
    table = found.to_frame()
    some = table[(table["strategy"] == "a") & (table["se"] > 0)]
    assert (some["band_upper"] > some["upper"]).all()
    critical = ((some["band_upper"] - some["net_benefit"]) / some["se"]).to_numpy()
    np.testing.assert_allclose(critical, critical[0], rtol=1e-9)
    covariance = found.moments.covariance_over_time(0, 0)
    se = np.sqrt(np.diag(covariance))
    draws = np.random.default_rng(7).multivariate_normal(np.zeros(99), covariance, 20_000, method="eigh")
    largest = np.max(np.abs(draws[:, se > 0]) / se[se > 0], axis=1)
    normal = np.quantile(largest, 0.95)
    degrees = found.support.score_degrees[0]
    assert critical[0] == pytest.approx(normal, rel=0.03 + 2 / degrees)
    assert critical[0] > student_quantile(0.95, degrees)
    # another seed, another draw; the same seed, the same
    again = [ss.decision_curve(problem.y, models, 30, seed=seed).to_frame()["band_upper"] for seed in (1, 2)]
    np.testing.assert_array_equal(again[0], table["band_upper"])
    assert not again[1].equals(table["band_upper"])


def test_where_a_model_acts_on_nobody_it_has_no_interval():
    problem, _ = problem_and_models()
    flat = ss.SurvivalCurves(np.full((150, 1), 0.9), [30])
    found = ss.decision_curve(problem.y, {"flat": flat}, 30, thresholds=[0.05, 0.1, 0.5], reference="treat all")
    table = found.to_frame().set_index("strategy")
    np.testing.assert_allclose(
        table.loc["flat", "net_benefit"].iloc[:2], table.loc["treat all", "net_benefit"].iloc[:2]
    )
    assert table.loc["flat", "net_benefit"].iloc[2] == 0
    assert np.isnan(table.loc["flat", ["lower", "upper", "band_lower", "band_upper"]].iloc[2].astype(float)).all()
    contrasts = found.contrasts.set_index("strategy").loc["flat"]
    assert contrasts["discordant"].tolist()[:2] == [0, 0]
    assert (contrasts["lower"] < contrasts["upper"]).all()  # nobody was seen on whom they differ


@pytest.mark.parametrize("statuses", [[1], [0, 0, 0], [1, 0]])
def test_the_smallest_of_data(statuses):
    event = np.array(statuses, dtype=bool)
    y = ss.Outcomes(np.where(event, 1.0, 9.0), event, np.full(event.size, 9.0))
    models = {"a": ss.SurvivalCurves(np.linspace(0.2, 0.8, event.size)[:, None], [5])}
    found = ss.decision_curve(y, models, 5)
    assert np.isfinite(found.net_benefit).all()
    assert not found.to_frame()[["reliable", "band_reliable"]].any(axis=None)
    assert "too few for reliable bands" in repr(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"thresholds": [0.1, 1.0, np.nan]},
            r"thresholds must be between 0 and 1, .*: 2 of 3 are not, the first at posi",
        ),
        ({"thresholds": [0.2, 0.1]}, "thresholds must be strictly increasing"),
        ({"thresholds": []}, "thresholds is empty"),
        ({"reference": "c"}, "reference must be one of 'a', 'b', 'treat all', 'treat none', not 'c'"),
        ({"time": 1e6}, "there is no net benefit at 1e"),
        ({"weighting": ["ipcw", "administrative"]}, "weighting must be one, not several"),
        ({"n_draws": 10**9}, "n_draws must be at most 100000"),
        ({"models": {"treat all": ss.SurvivalCurves([[0.5]], [30])}}, "models must not be called 'treat all'"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    problem, models = problem_and_models()
    asked = {"y": problem.y, "models": models, "time": 30, **change}
    with pytest.raises(ss.InputError, match=message):
        ss.decision_curve(**asked)
