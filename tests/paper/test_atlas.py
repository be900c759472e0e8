"""The atlas: what it counts against loops, runs that stop and go on, and input that it refuses."""

from dataclasses import replace
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import survscore as ss
from atlas_case import MODELS, TINY, simulated
from commands import run as run_command
from survscore import datasets
from survscore.analysis.selection import curves_of
from survscore.paper.atlas import data, judging, models, running, scores
from survscore.paper.atlas.results import Atlas

mpl.use("agg")
SET = simulated()
ENTRIES = [one for one in models.listed() if one.name in MODELS]
WEIGHTINGS = ["administrative", ss.Projected(min_followed=10), "ipcw"]
TABLES = ("scores", "closing", "truths", "backtests", "recommendations", "sets")


@pytest.fixture(scope="module")
def prepared():
    return data.prepare(simulated(), TINY.most, seed=1)


def run(folder, sets=None, **changes):
    sets = [simulated(), simulated("other", seed=2)] if sets is None else sets
    return running.atlas(sets, **{"out": folder, "size": TINY, "models": MODELS, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two sets, one after the other, in a folder."""
    folder = tmp_path_factory.mktemp("atlas")
    return folder, run(folder)


def same(one, other):
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table), check_exact=True)


# The models


def test_every_model_predicts_from_categories_and_missing_numbers(prepared):
    horizons = prepared.horizons
    every, missing = models.installed(models.listed())
    assert missing == []
    train, test = np.arange(200), np.arange(200, 250)
    moved = prepared.X.assign(**{models.ENTRY: prepared.X[models.ENTRY].to_numpy()[::-1]})
    for name, estimator in models.estimators(every, horizons, TINY.effort).items():
        for seeded in [key for key in estimator.get_params() if key.endswith("random_state")]:
            estimator.set_params(**{seeded: 1})
        fitted = [clone(estimator).fit(prepared.X.iloc[train], prepared.y[train]) for _ in range(2)]
        one, again = (curves_of(model, prepared.X.iloc[test]).at(horizons) for model in fitted)
        np.testing.assert_array_equal(one, again, err_msg=name)
        assert ((one >= 0) & (one <= 1)).all()
        elsewhere = curves_of(fitted[0], moved.iloc[test]).at(horizons)
        if not name.endswith(models.WITH_ENTRY):
            np.testing.assert_array_equal(one, elsewhere, err_msg=f"{name} looks at the date of entry")
    assert curves_of(fitted[0], moved.iloc[test]).at(horizons).tolist() != one.tolist()


def test_the_censored_are_taken_for_event_free(prepared):
    X, y, horizon = prepared.X[["age"]].fillna(0.0), prepared.y, 300.0
    classifiers = ss.models.HorizonClassifiers(LogisticRegression(), [horizon])
    found = models.CensoredAsEventFree(classifiers).fit(X, y).predict_curves(X)
    label = [not (had and t <= horizon) for t, had in zip(y.time, y.event, strict=True)]
    literal = LogisticRegression().fit(X, label).predict_proba(X)[:, 1]
    np.testing.assert_allclose(found.probabilities[:, 0], literal)


def test_a_grid_leaves_statuses_at_its_times_as_they_are(prepared):
    y, horizons = prepared.y, prepared.horizons
    moved = models.OnGrid(None, horizons, 5)._changed(y)
    assert np.unique(moved.time[moved.event]).size <= 5 + horizons.size
    for h in horizons:
        np.testing.assert_array_equal(y.event & (y.time <= h), moved.event & (moved.time <= h))
        np.testing.assert_array_equal(y.time > h, (moved.time > h) | (~y.event & (y.time > h) & (moved.time == h)))
    assert (moved.time[y.event] >= y.time[y.event]).all()
    assert (moved.time[~y.event] <= y.time[~y.event]).all()


# What is counted


def test_hidden_shares_by_counting(prepared):
    lost = simulated("lost", lost=True).y
    for y in (prepared.y, lost):
        for horizon in (100.0, 300.0, 600.0):
            count = 0
            for t, had, end in zip(y.time, y.event, y.censoring_time, strict=True):
                if not had and t == end and end < horizon:
                    count += 1
            assert data.hidden_share(y, horizon) == pytest.approx(count / len(y))


def test_pairs_that_are_sure_and_opposite_by_a_loop():
    """Predictions of which some fall after C*, so that the scores are sure of opposite things."""
    whole, horizons = data.prepare(simulated(n=800), 800, seed=1), np.array([200.0, 600.0])
    there = whole.dates.start <= whole.cutoffs[1]
    y = whole.y[there].as_of(whole.cutoffs[1])
    then = replace(whole, X=whole.X[there], y=y, horizons=horizons)
    rng, risk = np.random.default_rng(1), then.X["age"].fillna(0.0).to_numpy()
    falls = np.where(horizons > np.asarray(y.censoring_time)[:, None], 0.02, 1.0)
    predicted = {}
    for k, one in enumerate(ENTRIES):
        noisy = np.exp(risk + k / 5 * rng.normal(size=len(y)))
        curve = np.exp(-np.outer(noisy, horizons) / 700) * (falls if k % 2 else 1.0)
        predicted[one.name] = ss.SurvivalCurves(curve, horizons)
    rows = pd.DataFrame(judging.judged(then, ENTRIES, horizons, predicted)["closing"])
    weightings = ["administrative", "ipcw"]
    compared = ss.compare(y, predicted, weighting=weightings, times=horizons, null=False)
    label = compared.weightings
    for place in (*horizons, judging.MEAN):
        counts = {"differ": 0, "both_sure": 0, "opposite_and_sure": 0}
        for a, b in combinations(predicted, 2):
            result = compared.against(b)
            table = result.integrated().contrasts if place == judging.MEAN else result.contrasts.query("time == @place")
            said = [table[(table["weighting"] == name) & (table["model"] == a)].iloc[0] for name in label]
            opposite = said[0]["difference"] * said[1]["difference"] < 0
            sure = all(one["lower"] > 0 or one["upper"] < 0 for one in said)
            counts["differ"] += opposite
            counts["both_sure"] += sure
            counts["opposite_and_sure"] += opposite and sure
        row = rows.query("family == 'all' and against == 'IPCW' and horizon == @place").iloc[0]
        assert {name: row[name] for name in counts} == counts
        assert row["n_pairs"] == len(MODELS) * (len(MODELS) - 1) // 2
    assert counts["opposite_and_sure"] > 0


def test_winners_and_what_they_cost(prepared):
    made = judging.at_closing(prepared, ENTRIES, TINY, 1)
    table = pd.DataFrame(made["scores"]).pivot_table(index=["horizon", "score"], columns="model", values="brier")
    for row in made["closing"]:
        some = models.family(row["family"], ENTRIES)
        ours, theirs = (table.loc[row["horizon"], name][some] for name in ("administrative", row["against"]))
        assert row["winner"] == ours.idxmin()
        assert row["winner_of_other"] == theirs.idxmin()
        assert row["cost_of_other"] == pytest.approx(ours[theirs.idxmin()] / ours.min() - 1)
        assert row["cost_by_other"] == pytest.approx(theirs[ours.idxmin()] / theirs.min() - 1)
        assert row["n_pairs"] == len(some) * (len(some) - 1) / 2
        assert row["cost_of_other"] >= 0


def test_days_together_are_those_of_one_backtest(prepared):
    rng, horizons = np.random.default_rng(3), np.array([200.0, 300.0])
    curves = {
        name: ss.SurvivalCurves(np.exp(-np.outer(rng.gamma(2, 0.5, len(prepared.y)), horizons) / 700), horizons)
        for name in "abcd"
    }
    asked = {"horizons": horizons, "n_draws": 30, "seed": 5}
    days = list(prepared.cutoffs)
    whole = ss.backtest(prepared.y, curves, as_of=days, **asked)
    rows = judging.together([ss.backtest(prepared.y, curves, as_of=day, **asked) for day in days], list("123"))
    for row, expected in zip(rows, whole.summary.to_dict("records"), strict=True):
        assert (row["days"], row["runs"], row["draws"]) == (2, 4, 30)
        for name in ("ordered", "relative_regret", "excess"):
            assert row[name] == pytest.approx(expected[name]), name
    assert rows[1]["gain"] == pytest.approx(whole.summary["ordered"][0] - whole.summary["ordered"][1])
    for k, what in enumerate(("gain", "excess")):
        half = 1.959964 * np.std(whole.draws[:, 1, k] - whole.draws[:, 0, k], ddof=1)
        assert half > 0
        assert rows[1][f"{what}_upper"] - rows[1][what] == pytest.approx(half, rel=1e-6)
        assert rows[1][what] - rows[1][f"{what}_lower"] == pytest.approx(half, rel=1e-6)
        assert rows[0][what] == rows[0][f"{what}_lower"] == rows[0][f"{what}_upper"] == 0


def test_days_are_a_test_only_where_something_is_hidden_and_later_known(prepared):
    early, late = prepared.dates.start.min() - data.DAY, prepared.dates.cutoff.max() - data.DAY
    assert judging.horizons_on(prepared, early).size == 0  # nobody had started
    assert judging.horizons_on(prepared, late).size == 0  # the last entries are not followed to any horizon
    for day in prepared.cutoffs:
        there = prepared.dates.start <= day
        then = prepared.y[there].as_of(day)
        for h in judging.horizons_on(prepared, day):
            assert data.hidden_share(then, h) >= judging.LEAST_HIDDEN
            assert (prepared.y[there].censoring_time >= h).mean() >= judging.LEAST_JUDGED
            assert (then.censoring_time >= h).sum() >= data.FEWEST_FOLLOWED


def test_breslow_in_logarithms(prepared):
    y, rng = prepared.y, np.random.default_rng(1)
    risk, grid = rng.normal(size=len(y)), np.array([50.0, 200.0, 500.0])
    literal = []
    for t in grid:
        total = 0.0
        for s, had in zip(y.time, y.event, strict=True):
            if had and s <= t:
                total += 1 / np.exp(risk[y.time >= s]).sum()
        literal.append(np.log(total))
    np.testing.assert_allclose(scores._log_baseline(y, risk, grid), literal)


# The data


def test_large_sets_are_sampled_and_groups_stay_whole():
    whole = simulated(n=300)
    few = data.prepare(whole, 100, seed=1)
    assert (len(few.y), few.n_all) == (100, 300)
    assert few.digest() == data.prepare(whole, 100, seed=1).digest() != data.prepare(whole, 100, seed=2).digest()
    some = data.prepare(replace(whole, groups=np.arange(300) // 7), 100, seed=1)
    assert 93 < len(some.y) <= 100
    assert set(np.unique(some.groups, return_counts=True)[1]) <= {7, 300 % 7}


# Runs


def test_an_interrupted_run_goes_on_where_it_stopped(finished, tmp_path, monkeypatch):
    _, found = finished
    real, calls = running.at_closing, []

    def stopping(prepared, *rest):
        if len(calls) == 1:
            raise KeyboardInterrupt
        calls.append(prepared.name)
        return real(prepared, *rest)

    monkeypatch.setattr(running, "at_closing", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    (kept,) = (tmp_path / "sets").iterdir()
    before = kept.stat().st_mtime_ns
    monkeypatch.setattr(running, "at_closing", lambda one, *rest: (calls.append(one.name), real(one, *rest))[1])
    same(run(tmp_path), found)
    run(tmp_path)  # nothing left to do
    assert sorted(calls) == ["other", "simulated"]
    assert kept.stat().st_mtime_ns == before


def test_what_is_written_can_be_read(finished):
    folder, found = finished
    read = Atlas.read(folder)
    pd.testing.assert_frame_equal(read.sets, found.sets, check_exact=True)
    pd.testing.assert_frame_equal(read.summary, found.summary, check_exact=True)
    assert read.sentences == found.sentences
    assert (read.settings["seed"], read.settings["models"]) == (1, MODELS)
    assert (folder / "forest.svg").exists()
    with pytest.raises(ss.InputError, match="there is no such file"):
        Atlas.read(folder / "sets")


def test_means_over_sets(finished):
    _, found = finished
    row = found.of_summary("all", "IPCW")
    some = found.sets.query("family == 'all' and score == 'IPCW'")
    assert row["sets"] == 2
    assert row["ordered"] == pytest.approx(some["ordered"].sum() / 2)
    assert row["median_regret"] == pytest.approx(some["relative_regret"].sum() / 2)
    half = 12.7062 * abs(np.diff(some["gain"])[0]) / 2  # Student's, of two values
    assert row["gain_upper"] - row["gain"] == pytest.approx(half, rel=1e-4)
    assert row["gain_better"] == (some["gain"] > 0).sum()
    hidden = found.hidden.query("against == 'IPCW'")
    table = found.closing.query("family == 'all' and against == 'IPCW' and horizon != 'mean'")
    assert hidden["n_pairs"].sum() == table["n_pairs"].sum()
    assert (hidden["differ"] * hidden["n_pairs"]).sum() == pytest.approx(table["differ"].sum())


def test_halves_are_those_of_backtests(prepared):
    """Scores of one half, judged by the other: those of runs are those of the day's backtest."""
    plain, day = [one for one in ENTRIES if "boost" not in one.name], prepared.cutoffs[1]
    size = replace(TINY, n_draws=0, n_splits=3)
    rows = pd.DataFrame(judging.on_earlier_days(replace(prepared, cutoffs=(day,)), plain, size, 1)["backtests"])
    horizons = judging.horizons_on(prepared, day)
    alone = ss.backtest(
        prepared.y, models.estimators(plain, horizons, TINY.effort), as_of=day, horizons=horizons, X=prepared.X, cv=2,
        n_draws=0, n_splits=3, groups=prepared.groups, seed=1, weighting=WEIGHTINGS,
    ).halves  # fmt: skip
    for name, expected in zip(("administrative", "projected", "IPCW"), alone.to_dict("records"), strict=True):
        some = rows[(rows["family"] == "all") & (rows["score"] == name)]
        assert some["half_ordered"].mean() == pytest.approx(expected["ordered"])
        assert some["half_regret"].mean() == pytest.approx(expected["relative_regret"])
        assert some["half_settled"].sum() == expected["n_settled"] > 0


# Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sets": ["nowhere"]}, r"sets must be among .*thoro: 1 of 1 are not, the first 'nowhere'"),
        ({"sets": []}, "sets is empty: name at least one"),
        ({"sets": [simulated(), simulated(seed=2)]}, "sets must have names of their own: 'simulated' comes twice"),
        ({"sets": [replace(SET, y=ss.Outcomes(SET.y.time, SET.y.event))]}, "simulated: y must know its dates"),
        ({"sets": [replace(SET, X=SET.X.assign(**{models.ENTRY: 1.0}))]}, "must not hold a column 'date of entry'"),
        ({"models": ["Kaplan-Meier", "guessing"]}, r"models must be of the list: 1 of 2 are not, the first 'guessing'"),
        ({"models": ["Kaplan-Meier", "BCE"]}, r"at least two of each family.*'none drops the censored' there are 1"),
    ],
)
def test_bad_input_is_refused(tmp_path, change, message):
    with pytest.raises(ss.InputError, match=message):
        run(tmp_path / "new", **change)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("change", "what"), [({"seed": 2}, "seed"), ({"sets": [simulated(seed=9)]}, "data")])
def test_a_folder_with_other_settings_or_data_is_refused(finished, change, what, monkeypatch):
    folder, _ = finished
    monkeypatch.setattr(running, "_compute_one", pytest.fail)
    with pytest.raises(ss.InputError, match=f"simulated.json was made with another .*{what}.*: remove it"):
        run(folder, **change)


@pytest.mark.parametrize("contents", ["", '{"settings": 1, "tables": {}}'])
def test_a_leftover_that_cannot_be_used_is_named_and_kept(tmp_path, contents):
    path = tmp_path / "sets" / "simulated.json"
    path.parent.mkdir()
    path.write_text(contents)
    with pytest.raises(ss.InputError, match=r"simulated\.json (can't be read|was made with another form).*: remove it"):
        run(tmp_path)
    assert path.read_text() == contents


# The command


def test_the_command(tmp_path, monkeypatch, capsys):
    sets = {"simulated": simulated(), "other": simulated("other", seed=2)}
    monkeypatch.setattr(datasets, "names", lambda: [*sets, "elsewhere"])
    monkeypatch.setattr(datasets, "available", lambda: list(sets))
    monkeypatch.setattr(datasets, "load", sets.__getitem__)
    monkeypatch.setitem(running.SIZES, "quick", TINY)
    monkeypatch.setattr(running, "_wanted", lambda names, *, by_cause: ENTRIES)
    quick = ("atlas", "--size", "quick", "--jobs", "1", "--out", tmp_path / "a")
    code, out, err = run_command(capsys, *quick)
    assert code == 0, err
    assert err.startswith("survscore: note: sets that can't be loaded here are left out: elsewhere (")
    assert "We ended the follow-up of 2 real data sets" in " ".join(out.split())
    code, out, err = run_command(capsys, *quick, "--seed", "2")
    assert (code, out) == (2, "")
    assert "simulated.json was made with another seed: remove it" in " ".join(err.split())
