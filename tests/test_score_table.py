"""The table of all metrics: the numbers of the functions that give each alone, in every format, or a reason."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import survscore as ss
from survscore.analysis.score_tables import DEFAULT, EVERY
from survscore.cli import cli

HORIZONS = [4.0, 9.0]


def problem(n=400, seed=1, lost=False):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2, 0.05, n)
    event_time, end = rng.exponential(1 / rate), rng.uniform(3, 25, n)
    until = np.where(rng.random(n) < (0.2 if lost else 0.0), end * rng.random(n), end)
    y = ss.Outcomes(np.minimum(event_time, until), event_time <= until, end)
    times = np.arange(0.0, 21.0)
    noisy = rate * rng.lognormal(0, 0.3, n)
    models = {
        "right": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times, interpolation="linear"),
        "noisy": ss.SurvivalCurves(np.exp(-noisy[:, None] * times), times, interpolation="linear"),
    }
    return y, models


def table(y, models, **asked):
    return ss.score_table(y, models, **{"horizons": HORIZONS, "weighting": "administrative", **asked})


def row(found, metric, model, time=None):
    frame = found.to_frame()
    frame = frame[(frame.metric == metric) & (frame.model == model)]
    return (frame if time is None else frame[frame.time == time]).iloc[0]


# The numbers


@pytest.mark.parametrize("case", ["plain", "lost", "ties", "groups", "ipcw"])
def test_compiled_loops_agree_with_numpy(case):
    """Of curves with so many columns that the few that are asked for are gathered, on the grid and between."""
    y, models = problem(n=700, lost=case == "lost")
    times, groups = np.linspace(0, 20, 61), np.arange(700) // 7 if case == "groups" else None
    dense = {name: ss.SurvivalCurves(curves.at(times).astype(np.float32), times) for name, curves in models.items()}
    if case == "ties":
        dense = {name: ss.SurvivalCurves(curves.probabilities.round(1), times) for name, curves in dense.items()}
    asked = {"weighting": "ipcw" if case == "ipcw" else "administrative", "groups": groups, "thresholds": [0.2]}
    frames = []
    for backend in ("numpy", "compiled"):
        with ss.config.using(backend=backend):
            found = [
                table(y, dense, metric="all", horizons=horizons, **asked) for horizons in ([5.0, 10.0], [5.1, 9.9])
            ]
            frames.append(pd.concat([one.to_frame() for one in found]))
    pd.testing.assert_frame_equal(*frames, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lost", [False, True])
def test_numbers_are_those_of_compare(lost):
    y, models = problem(lost=lost)
    names = ["brier", "log", "auc", "oe", "slope", "in_the_large", "miscalibration", "net_benefit@0.2"]
    found = table(y, models, metric=names)
    alone = ss.compare(y, models, metric=names, weighting="administrative", times=HORIZONS)
    scores = alone.scores.set_index(["metric", "model", "time"])
    contrasts = alone.contrasts.set_index(["metric", "model", "time"])
    for name in names:
        for time in HORIZONS:
            one = row(found, name, "noisy", time)
            expected, difference = scores.loc[name, "noisy", time], contrasts.loc[name, "noisy", time]
            np.testing.assert_allclose(
                one[["estimate", "se", "lower", "upper"]].astype(float),
                expected[["score", "se", "lower", "upper"]].astype(float),
            )
            np.testing.assert_allclose(
                one[["difference", "difference_se", "difference_lower", "difference_upper", "p_value"]].astype(float),
                difference[["difference", "se", "lower", "upper", "p_value"]].astype(float),
            )
            assert one.verdict == difference.verdict
            assert one.n_counted == expected.n_counted
            assert one.n_events == expected.n_events
    assert (found.to_frame().n_lost.max() > 0) == lost


def test_what_is_over_all_time():
    y, models = problem()
    found = table(y, models, metric=["integrated_brier", "crps", "concordance", "distribution"])
    grid = np.linspace(0, HORIZONS[-1], 101)
    mean = ss.compare(y, models, weighting="administrative", times=grid).integrated(0, HORIZONS[-1])
    one = row(found, "integrated_brier", "noisy")
    expected = mean.scores[mean.scores.model == "noisy"].iloc[0]
    np.testing.assert_allclose(
        [one.estimate, one.se, one.lower], [expected.score, expected.se, expected.lower], rtol=1e-9
    )
    assert one.p_value == pytest.approx(mean.contrasts.iloc[0].p_value)
    for metric in ("crps", "concordance"):
        (alone,) = ss.score_all(y, models["noisy"], metric=metric, weighting="administrative", times=HORIZONS[-1:])
        assert row(found, metric, "noisy").estimate == pytest.approx(alone.scores[0])
        assert row(found, metric, "noisy").se == pytest.approx(alone.se[0])
    alone = ss.distribution_calibration(y, models["noisy"])
    one = row(found, "distribution", "noisy")
    assert (one.estimate, one.p_value) == pytest.approx((alone.statistic, alone.p_value))
    assert alone.conclusion in one.note


def test_skill_and_its_differences():
    """Standard errors against the jackknife."""
    y, models = problem(200)

    def skills(rows):
        found = ss.compare(
            y[rows], {name: one[rows] for name, one in models.items()}, weighting="administrative", times=[4.0]
        ).scores.score.to_numpy()
        return 1 - found[0] / found[2], 1 - found[1] / found[2]

    found = table(y, models, metric=["skill"], horizons=[4.0])
    whole = np.array(skills(np.arange(200)))
    left_out = np.array([skills(np.delete(np.arange(200), i)) for i in range(200)])
    one = row(found, "skill", "noisy")
    np.testing.assert_allclose([row(found, "skill", "right").estimate, one.estimate], whole)
    jackknife = np.sqrt(199 / 200 * np.sum((left_out - left_out.mean(axis=0)) ** 2, axis=0))
    of_difference = left_out[:, 1] - left_out[:, 0]
    paired = np.sqrt(199 / 200 * np.sum((of_difference - of_difference.mean()) ** 2))
    assert one.se == pytest.approx(jackknife[1], rel=0.05)
    assert one.difference == pytest.approx(whole[1] - whole[0])
    assert one.difference_se == pytest.approx(paired, rel=0.05)
    assert "Kaplan-Meier" not in set(found.to_frame().model)


def test_distances_have_the_limits_of_calibration():
    y, models = problem()
    found, alone = table(y, models, metric=["ici"], horizons=[4.0]), ss.calibration(y, models["noisy"], 4.0).ici
    one = row(found, "ici", "noisy")
    np.testing.assert_allclose([one.estimate, one.lower, one.upper], [alone.value, alone.lower, alone.upper])
    assert "expected of a model that is right" in one.note
    assert np.isnan(one.p_value)


def test_segments_are_tables_of_their_own():
    y, models = problem()
    label, groups, metric = np.where(np.arange(400) % 3 == 0, "a", "b"), np.arange(400) // 2, ["brier", "auc", "crps"]
    found = table(y, models, by={"part": label}, groups=groups, metric=metric).to_frame()
    rows = np.flatnonzero(label == "a")
    some = {name: one[rows] for name, one in models.items()}
    alone = table(y[rows], some, groups=groups[rows], metric=metric).to_frame()
    part = found[found.part == "a"].drop(columns="part").reset_index(drop=True)
    assert part.equals(alone[part.columns])
    assert set(found.part) == {"(all)", "a", "b"}


def test_everything_is_there_by_default_and_by_name():
    y, models = problem()
    assert list(dict.fromkeys(table(y, models).to_frame().metric)) == list(DEFAULT)
    found = table(y, models, metric="all", thresholds=[0.1, 0.3]).to_frame()
    assert list(dict.fromkeys(found.metric)) == [*EVERY, "net_benefit@0.1", "net_benefit@0.3"]
    assert found.estimate.notna().all()
    assert set(ss.score_table(y, models, weighting="administrative", metric="brier").to_frame().time) == {
        np.floor(np.quantile(y.censoring_time, 0.5, method="lower"))  # the last predicted time up to the median
    }


# The formats


def test_json_has_no_numbers_that_json_lacks():
    y, models = problem(200)
    weird = "<script>alert(1)</script> a_b & 50% | c"
    given = {weird: models["right"], "plain": models["noisy"]}
    found = json.loads(table(y, given, metric=["brier", "oe"]).to_json(), parse_constant=pytest.fail)
    assert found["settings"]["survscore"] == ss.__version__
    assert found["rows"][0]["model"] == weird
    assert found["rows"][0]["difference"] is None


# Bad input, and data that say nothing


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"metric": ["nonsense"]}, "metric must be one of .* not 'nonsense'"),
        ({"metric": []}, "at least one"),
        ({"metric": 0}, "metric must be one of .* not 0"),
        ({"metric": ["skill"], "null": False}, "needs the null model"),
        ({"thresholds": [1.0]}, "threshold must be between 0 and 1"),
        ({"reference": "other"}, "reference must be one of the models"),
        ({"horizons": [100.0]}, "times start at 100"),
    ],
)
def test_bad_input(asked, told):
    y, models = problem(50)
    with pytest.raises(ss.InputError, match=told):
        table(y, models, **asked)


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_a_reason_stands_in_place_of_a_number():
    y, models = problem(60)
    far = row(table(y, models, horizons=[4.0, 30.0], metric=["brier"]), "brier", "right", 30.0)
    assert np.isnan(far.estimate)
    assert far.note
    constant = {"same": ss.SurvivalCurves(np.full((60, 1), 0.5), [4.0], extrapolation="hold"), **models}
    found = table(y, constant, metric=["slope", "auc", "brier"], horizons=[4.0])
    assert "all predictions are the same" in row(found, "slope", "same").note
    assert row(found, "auc", "same").estimate == 0.5
    assert "all predictions are the same" in str(found)


def test_what_a_metric_refuses_is_a_reason_too():
    """Capped weights, curves that rise, and curves that CRPS can't integrate; the others have their numbers."""
    y, models = problem(100, lost=True)
    rising, times = models["right"].probabilities.copy(), models["right"].times
    rising[:, 2] = 1.0
    given = {
        "rises": ss.SurvivalCurves(rising, times, monotone="keep"),
        "bends": ss.SurvivalCurves(models["noisy"].probabilities, times, interpolation="constant-hazard"),
    }
    metric = ["brier", "crps", "concordance", "distribution"]
    found = table(y, given, weighting=["administrative", ss.Administrative(max_weight=2)], metric=metric)
    frame = found.to_frame().set_index(["metric", "model"]).sort_index(kind="stable")
    assert frame.loc["brier"].estimate.notna().all()
    assert "constant-hazard" in frame.loc[("crps", "bends")].note.iloc[0]
    by_weights = frame.loc[("concordance", "rises")].set_index("weighting")
    assert by_weights.estimate.isna().tolist() == [False, True]
    assert "neither capped" in by_weights.note.iloc[1]
    assert "must not rise" in frame.loc[[("distribution", "rises")]].note.item()


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
@pytest.mark.parametrize("events", [[True, False], [True, True], [False, False]])
def test_two_individuals(events):
    y = ss.Outcomes([2.0, 3.0], events, [5.0, 5.0] if any(events) else [2.0, 3.0])
    curves = ss.SurvivalCurves([[0.9, 0.5], [0.8, 0.7]], [1.0, 4.0], extrapolation="hold")
    found = table(y, {"a": curves, "b": curves}, metric="all", horizons=[2.0], thresholds=[0.2])
    frame = found.to_frame()
    assert (frame.estimate.notna() | (frame.note != "")).all()
    assert found.to_latex()


# At the command line


@pytest.fixture
def files(tmp_path):
    y, models = problem(150)
    outcomes = {"time": y.time, "event": y.event.astype(int), "censoring_time": y.censoring_time}
    pd.DataFrame(outcomes).to_csv(tmp_path / "y.csv", index=False)
    for name, curves in models.items():
        pd.DataFrame(curves.probabilities, columns=curves.times).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path, y, models


def run(folder, *arguments):
    given = [folder / "y.csv", folder / "right.csv", folder / "noisy.csv", *arguments]
    return CliRunner().invoke(cli, ["table", *map(str, given)], catch_exceptions=True)


def test_the_command_prints_the_same_table(files):
    folder, y, models = files
    asked = ["-w", "administrative", "--horizons", "4,9", "-m", "brier", "-m", "auc"]
    done = run(folder, *asked, "--threshold", "0.2")
    assert done.exit_code == 0, done.output
    assert str(table(y, models, metric=["brier", "auc"], thresholds=[0.2])) in done.output
    asked += ["--layout", "models x metrics"]
    assert run(folder, *asked, "-o", folder / "a.tex", "--json", folder / "a.json").exit_code == 0
    expected = table(y, models, metric=["brier", "auc"])
    assert (folder / "a.tex").read_text() == expected.to_latex(layout="models x metrics")
    assert json.loads((folder / "a.json").read_text())["rows"][0]["metric"] == "brier"
    assert "--layout is for -o FILE.tex" in str(run(folder, *asked).exception)


def test_the_command_tells_mistakes_and_writes_nothing(files):
    folder, *_ = files
    before = sorted(folder.iterdir())
    for arguments in (["-m", "nonsense"], ["-o", folder / "table.pdf"], ["--horizons", "999"]):
        done = run(folder, "-w", "administrative", *arguments)
        assert isinstance(done.exception, (ss.InputError, SystemExit)), arguments
    assert sorted(folder.iterdir()) == before
