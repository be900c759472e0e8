"""The atlas by cause: its models against literal ones, its rows against single scores, runs that go on, bad input."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import survscore as ss
from atlas_case import TINY, simulated
from survscore import InputError
from survscore.analysis.selection import curves_of
from survscore.paper.atlas import Atlas, atlas, data, judging, models
from survscore.paper.atlas.models import CauseSpecificCox, combined

HORIZONS = np.array([200.0, 300.0])


def with_causes(name="simulated", *, n=250, seed=1):
    """Return the set of the other tests, with two causes of its events at random."""
    one = simulated(name, n=n, seed=seed)
    label = np.random.default_rng(seed).choice(["a", "b"], n, p=[0.6, 0.4])
    return replace(one, y=ss.Outcomes.from_dates(one.dates.start, one.dates.event_date, one.dates.cutoff, cause=label))


@pytest.fixture(autouse=True)
def one_thread():
    """Beside other tests, threads that wait for each other take ten times as long."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def prepared():
    return data.prepare(with_causes(), TINY.most, seed=1)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The results on two sets, read from their folder."""
    folder = tmp_path_factory.mktemp("causes")
    atlas([with_causes(), with_causes("other", seed=2)], out=folder, size=TINY, by_cause=True)
    return Atlas.read(folder, by_cause=True)


# The models


def test_every_model_predicts_incidences(prepared):
    entries = list(models.listed(by_cause=True))
    assert len({one.name for one in entries}) == len(entries) == 15
    assert [len(models.family(name, entries)) for name in models.FAMILIES] == [15, 11, 8, 6]
    train, test = np.arange(200), np.arange(200, 250)
    moved = prepared.X.assign(**{models.ENTRY: prepared.X[models.ENTRY].to_numpy()[::-1]})
    for name, estimator in models.estimators(entries, HORIZONS, TINY.effort).items():
        fitted = estimator.fit(prepared.X.iloc[train], prepared.y[train])
        one = curves_of(fitted, prepared.X.iloc[test])
        assert isinstance(one, ss.IncidenceCurves)
        assert one.causes == ("a", "b")
        values = one.at(HORIZONS)
        assert values.shape == (50, 2, 2)
        assert (values.sum(axis=1) > 0).any()
        elsewhere = curves_of(fitted, moved.iloc[test]).at(HORIZONS)
        assert np.array_equal(values, elsewhere) != name.endswith(models.WITH_ENTRY), name


def test_cumulative_hazards_become_incidences_by_a_loop():
    rng = np.random.default_rng(3)
    times = np.array([1.0, 2.0, 4.0, 5.0])
    hazards = np.cumsum(rng.gamma(1.0, 0.5, (2, 3, 4)) * (rng.random((2, 3, 4)) < 0.7), axis=2)
    found = combined(hazards, times, np.array([0.5, 2.0, 9.0]))
    for i in range(3):
        free, incidence, steps = 1.0, np.zeros(2), []
        for j in range(4):
            jump = hazards[:, i, j] - (hazards[:, i, j - 1] if j else 0.0)
            left = free * np.exp(-jump.sum())
            incidence = incidence + ((free - left) * jump / jump.sum() if jump.sum() else 0.0)
            free = left
            steps.append(incidence)
        np.testing.assert_allclose(found[i].T, [np.zeros(2), steps[1], steps[3]])
        assert found[i, :, 2].sum() == pytest.approx(1 - np.exp(-hazards[:, i, -1].sum()))


@pytest.mark.nightly
def test_cox_by_cause_recovers_two_constant_hazards():
    rng = np.random.default_rng(4)
    n = 1500
    x = rng.normal(size=(n, 1))
    rates = np.column_stack([0.10 * np.exp(0.8 * x[:, 0]), 0.05 * np.exp(-0.5 * x[:, 0])])
    each = rng.exponential(1 / rates)
    time, end = each.min(axis=1), rng.uniform(2, 12, n)
    y = ss.Outcomes(np.minimum(time, end), np.where(time <= end, 1 + each.argmin(axis=1), 0), end)
    found = CauseSpecificCox([5.0]).fit(x, y).predict_curves(x).probabilities[:, :, 0]
    total = rates.sum(axis=1, keepdims=True)
    truth = rates / total * (1 - np.exp(-5.0 * total))
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.03


# Runs


def test_rows_are_scores_of_each_cause(prepared, found):
    """One day, cause and horizon again, from the predictions: scores, truth, order and choice."""
    runs = found.backtests.query("set == 'simulated' and family == 'all'")
    day, cause, horizon = runs[["cutoff", "cause", "horizon"]].iloc[-1]
    there = prepared.dates.start <= np.datetime64(day)
    now = prepared.y[there]
    then = now.as_of(day)
    horizons = judging.horizons_on(prepared, np.datetime64(day), by_cause=True)
    entries = list(models.listed(by_cause=True))
    made = {name: np.zeros((len(now), 2, horizons.size)) for name in found.settings["models"]}
    for train, test in ss.EventKFold(TINY.folds, True, 1).split(prepared.X[there], then):
        X = prepared.X[there]
        for name, estimator in models.estimators(entries, horizons, TINY.effort).items():
            made[name][test] = curves_of(estimator.fit(X.iloc[train], then[train]), X.iloc[test]).at(horizons)
    number, j = now.causes.index(cause), horizons.tolist().index(horizon)
    status = np.array([t <= horizon and k == number + 1 for t, k in zip(now.time, now.cause, strict=True)])
    mature = {"truth": now.censoring_time >= horizon, "then": then.censoring_time >= horizon}
    brier = {
        when: {name: np.mean((status[rows] - one[rows, number, j]) ** 2) for name, one in made.items()}
        for when, rows in mature.items()
    }
    truth, estimated = brier["truth"], brier["then"]
    chosen = min(estimated, key=estimated.get)
    row = runs.query("cutoff == @day and cause == @cause and horizon == @horizon and score == 'administrative'").iloc[0]
    assert (row["chosen"], row["best"]) == (chosen, min(truth, key=truth.get))
    assert row["relative_regret"] == pytest.approx(truth[chosen] / min(truth.values()) - 1)
    agree = [(estimated[a] - estimated[b]) * (truth[a] - truth[b]) > 0 for a, b in combinations(made, 2)]
    assert row["ordered"] == pytest.approx(np.mean(agree))
    assert row["n_pairs"] == len(agree) == 15 * 14 // 2


def test_means_over_sets_and_against_the_null_model(found):
    row = found.summary.query("family == 'all' and score == 'IPCW'").iloc[0]
    runs = found.backtests.query("family == 'all' and score == 'IPCW'")
    by_set = [runs[runs["set"] == name]["ordered"].mean() for name in ("simulated", "other")]
    assert row["ordered"] == pytest.approx(np.mean(by_set))
    assert (row["sets"], row["runs"]) == (2, len(runs))
    assert found.sentences[0].startswith("2 sets have 4 causes. With 15 models on ")
    null = found.models[found.models["model"] == "Aalen-Johansen"]
    assert len(null) == 2 * 2 * 3
    assert (null[["said", "truth"]] == 0).all().all()
    assert (found.models["runs"] == found.backtests.groupby(["set", "cause", "family", "score"]).size().iloc[0]).all()


def test_days_need_enough_events_of_each_cause(prepared):
    every = data.prepare(simulated(), TINY.most, seed=1)
    day = prepared.cutoffs[-1]
    assert judging.horizons_on(prepared, day, by_cause=True).tolist() == judging.horizons_on(every, day).tolist() != []
    rare = prepared.y.dates
    label = np.where(np.arange(len(prepared.y)) < 8, "b", "a")
    y = ss.Outcomes.from_dates(rare.start, rare.event_date, rare.cutoff, cause=label)
    assert judging.horizons_on(replace(prepared, y=y), day, by_cause=True).size == 0


def test_bad_input_is_refused(tmp_path):
    for sets, message in [
        ([simulated()], "sets must have outcomes with causes: 1 of 1 have none, the first 'simulated'"),
        (["cdnow"], "sets must be among dmlate, senators, sibr, sire, thoro: 1 of 1 are not, the first 'cdnow'"),
        ([with_causes(n=60)], "sets: none of simulated has an earlier closing date on which enough events of each"),
    ]:
        with pytest.raises(InputError) as error:
            atlas(sets, out=tmp_path, size=TINY, by_cause=True)
        assert str(error.value).startswith(message)
    assert list(tmp_path.glob("*.csv")) == []
