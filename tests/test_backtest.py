"""Backtests: what scores said on earlier days, beside what happened since."""

import json
import os
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator

import survscore as ss
from commands import run as run_command
from survscore.analysis.backtest_results import judge

BASE = np.datetime64("2010-01-01")
END = BASE + np.timedelta64(3650, "D")
THEN = BASE + np.timedelta64(1800, "D")
HORIZONS = np.array([300.0, 600.0])
AHEAD = np.array([0.0, 0.4, 0.8])  # noise of models that don't know the closing date


def study(seed, n=600, *, leak=False, lost=False):
    """Draw dates and predictions; one model may encode the cut-off, as classifiers without the censored do."""
    rng = np.random.default_rng(seed)
    start, risk = rng.integers(900, 1790, n), rng.normal(size=n)
    event = start + np.minimum(rng.exponential(1500 * np.exp(-risk)), 80_000)
    seen = None
    if lost:
        gone = np.where(rng.random(n) < 0.2, start + rng.integers(0, 3000, n), 85_000)
        event = np.where(event > gone, np.nan, event)
        seen = BASE + gone.astype("m8[D]")
    dates = np.where(np.isnan(event), np.datetime64("NaT", "D"), BASE + np.nan_to_num(event).astype("m8[D]"))
    y = ss.Outcomes.from_dates(BASE + start.astype("m8[D]"), dates, END, last_seen=seen)
    models = {}
    for noise in AHEAD:
        rate = np.exp(risk + noise * rng.normal(size=n)) / 1500
        models[f"noise {noise:g}"] = np.exp(-rate[:, None] * HORIZONS)
    if leak:
        after = HORIZONS > (1800 - start)[:, None]
        models["leaks"] = models["noise 0.4"] * np.where(after, 0.05, 1.0)
    return y, {name: ss.SurvivalCurves(values, HORIZONS) for name, values in models.items()}


def run(y, models, **more):
    return ss.backtest(y, models, **{"as_of": THEN, "horizons": HORIZONS, "n_draws": 0, **more})


def same_as_compared(made, y, models, known):
    """Scores as of then, the truth and its standard errors are those of `compare`, of those known by the day."""
    some = {name: curves[known] for name, curves in models.items()}
    for q, weighting in enumerate(("administrative", "projected", "ipcw")):
        then = ss.compare(y[known].as_of(made.date), some, weighting=weighting, times=HORIZONS, null=False)
        np.testing.assert_allclose(made.scores[q], then.scored[0].scores, rtol=1e-12)
    now = ss.compare(y[known], some, weighting="administrative", times=HORIZONS, null=False)
    np.testing.assert_allclose(made.truth, now.scored[0].scores, rtol=1e-12)
    np.testing.assert_allclose(made.truth_se.ravel(), now.scores["se"], rtol=1e-12)
    assert made.n == known.sum()
    return now


@pytest.mark.parametrize("case", ["plain", "lost", "weighted"])
def test_it_is_scores_of_outcomes_as_of_then_and_now(case):
    y, models = study(1, leak=True, lost=case != "plain")
    if case == "weighted":
        y = y.weighted(np.random.default_rng(1).gamma(4, 1, len(y)))
    days = [THEN - np.timedelta64(100, "D"), THEN]
    found = run(y, models, as_of=days[::-1], n_draws=1)
    assert [day.date for day in found.days] == days
    for made in found.days:
        there = y.dates.start <= made.date
        now = same_as_compared(made, y, models, there)
        np.testing.assert_allclose(made.judged, 1.0, rtol=1e-12)
    sure = now.against("noise 0").contrasts.query("model == 'leaks'")["verdict"].isin(["better", "worse"])
    place = list(combinations(models, 2)).index(("noise 0", "leaks"))
    np.testing.assert_array_equal(made.sure[place], sure)
    # rows are drawn with their weights
    rows = np.random.default_rng([0, 0]).integers(0, len(y), len(y))
    rows = rows[there[rows]]
    of_draw = {name: curves[rows] for name, curves in models.items()}
    drawn = ss.compare(y[rows], of_draw, weighting="administrative", times=HORIZONS, null=False)
    np.testing.assert_allclose(made.drawn_truth[0], drawn.scored[0].scores, rtol=1e-10)


def literal(scores, truth, direction):
    """Count pairs in a loop, one by one."""
    better = (lambda a, b: a < b) if direction == "lower" else (lambda a, b: a > b)
    right = total = 0.0
    for a in range(len(scores)):
        for b in range(a):
            total += 1
            if scores[a] == scores[b] or truth[a] == truth[b]:
                right += 0.5
            elif better(scores[a], scores[b]) == better(truth[a], truth[b]):
                right += 1
    best = min(truth) if direction == "lower" else max(truth)
    top = min(scores) if direction == "lower" else max(scores)
    worse = [abs(true - best) for score, true in zip(scores, truth, strict=True) if score == top]
    return right / total, sum(worse) / len(worse) / abs(best)


@pytest.mark.parametrize("direction", ["lower", "higher"])
@pytest.mark.parametrize("seed", range(6))
def test_judgements_by_loops(direction, seed):
    rng = np.random.default_rng(seed)
    scores, truth = (rng.integers(1, 6, 5) / 10 if seed % 2 else rng.random(5) + 0.1 for _ in range(2))
    found = judge(scores, truth, direction, np.ones(10, dtype=bool))
    ordered, regret = literal(scores.tolist(), truth.tolist(), direction)
    assert found.ordered == found.sure_ordered == pytest.approx(ordered)
    assert found.relative_regret == pytest.approx(regret)
    if np.ptp(scores) and np.ptp(truth):
        assert found.rank_correlation == pytest.approx(spearmanr(scores, truth).statistic)
    assert found.n_pairs == found.n_sure == 10
    sure, claimed = (rng.random(10) < 0.6 for _ in range(2))
    counted = judge(scores, truth, direction, sure, claimed)
    settled = [
        (scores[a] - scores[b]) * (truth[a] - truth[b])
        for k, (a, b) in enumerate(combinations(range(5), 2)) if sure[k] and claimed[k]
    ]  # fmt: skip
    assert counted.n_settled == len(settled)
    assert counted.n_wrong == sum(product < 0 for product in settled)


@pytest.mark.parametrize("grouped", [False, True])
def test_halves_are_scores_of_some_and_truth_of_others(grouped):
    y, models = study(4, leak=True)
    groups = np.arange(600) // 3 if grouped else None
    found = run(y, models, n_splits=2, groups=groups, weighting=("administrative", "projected"))
    (day,) = found.days
    there = y.dates.start <= THEN
    whole = {name: one[there] for name, one in models.items()}
    ordered, n_settled, n_wrong = [], 0, 0
    for k in range(4):
        labels = np.arange(600) if groups is None else groups
        order = np.random.default_rng([0, k // 2, 2]).permutation(labels.max() + 1)
        half = order[labels] >= (labels.max() + 1) / 2 if k % 2 == 0 else order[labels] < (labels.max() + 1) / 2
        one, other = np.flatnonzero(half[there]), np.flatnonzero(~half[there])
        assert abs(one.size - other.size) <= 6
        said, true = (
            ss.compare(
                of[rows], {name: curves[rows] for name, curves in whole.items()}, weighting=weighting, times=HORIZONS,
                null=False, groups=None if groups is None else groups[there][rows],
            )
            for of, rows, weighting in ((y[there].as_of(THEN), one, "projected"), (y[there], other, "administrative"))
        )  # fmt: skip
        np.testing.assert_allclose(day.half_scores[k, 1], said.scored[0].scores, rtol=1e-12)
        np.testing.assert_allclose(day.half_truth[k], true.scored[0].scores, rtol=1e-12)
        for a, b in combinations(models, 2):
            rows = [result.against(b).contrasts for result in (said, true)]
            rows = [table[table["model"] == a] for table in rows]
            verdicts = [row["verdict"].tolist() for row in rows]
            signs = [np.sign(row["difference"].to_numpy()) for row in rows]
            for j in range(2):
                settled = all(one[j] in ("better", "worse") for one in verdicts)
                n_settled += settled
                n_wrong += settled and signs[0][j] != signs[1][j]
                ordered.append(signs[0][j] == signs[1][j])
    row = found.halves.iloc[1]
    assert (row["weighting"], row["halves"], row["n_settled"]) == ("projected (own ranks)", 8, n_settled)
    assert row["ordered"] == pytest.approx(np.mean(ordered))
    assert row["wrong"] == pytest.approx(n_wrong / n_settled)
    assert n_settled > 10
    some = found.only(["noise 0", "noise 0.8"]).days[0]
    np.testing.assert_array_equal(some.half_truth, day.half_truth[:, [0, 2]])
    np.testing.assert_array_equal(some.half_claimed, day.half_claimed[:, :, [1]])
    assert run(y, models).halves.empty


@pytest.mark.parametrize("lost", [False, True])
def test_recommendations_are_those_as_of_then(lost):
    """Of each pair of models, and on each half, and judged by the truth."""
    y, models = study(3, leak=True, lost=lost)
    found = run(y, models, n_splits=1)
    there = y.dates.start <= THEN
    then, (day,) = y[there].as_of(THEN), found.days
    some = {name: curves[there] for name, curves in models.items()}
    compared = ss.compare(then, some, weighting=["administrative", "projected"], times=HORIZONS, null=False)
    counts = np.zeros((2, 4), dtype=int)
    for k, (a, b) in enumerate(combinations(models, 2)):
        for j, time in enumerate(HORIZONS):
            verdicts = compared.against(a).recommendation(time=time).verdicts
            (code,) = [one.verdict for one in verdicts if one.sensitivity.model == b]
            assert day.recommended[k, j] == {"better": 1, "worse": -1}.get(code, 0)
            if code in ("better", "worse"):
                places = [found.models.index(name) for name in (a, b)]
                right = (day.truth[places[1], j] < day.truth[places[0], j]) == (code == "better")
                counts[j] += (1, right, day.sure[k, j], day.sure[k, j] and not right)
    table = found.recommendations
    whole = table[table["individuals"] == "all"]
    assert whole["n_pairs"].tolist() == [6, 6]
    np.testing.assert_array_equal(whole[["n_decided", "n_ordered", "n_settled", "n_wrong"]], counts)
    assert 4 < counts[:, 0].sum() < 12
    halves = table[table["individuals"] == "halves"]
    assert halves["n_pairs"].tolist() == [12, 12]
    assert (halves["n_decided"] == np.count_nonzero(day.half_recommended, axis=(0, 1))).all()
    assert found.recommended_sentence in " ".join(str(found).split())
    assert run(y, models, weighting="ipcw").recommended_sentence == ""


def test_tables_tell_it():
    y, models = study(2, leak=True)
    found = run(y, models, n_draws=20)
    table = found.table
    # up to C* the model that leaks is the same as another, and the administrative score can't tell them apart
    assert table["chosen"].tolist() == ["noise 0", "noise 0.4 or leaks", "noise 0", "noise 0", "leaks", "leaks"]
    assert (table["best"] == "noise 0").all()
    np.testing.assert_allclose(table["relative_regret"] * found.days[0].truth.min(axis=0)[[0, 1] * 3], table["regret"])
    summary = found.summary.set_index("weighting")
    ipcw = summary.iloc[2]
    assert ipcw["regret_lower"] <= ipcw["relative_regret"] <= ipcw["regret_upper"]
    assert found.accused == (summary.index[2],)
    assert "significantly worse than those by administrative" in found.sentence
    other = run(y, models, n_draws=20, seed=2)
    assert not np.array_equal(other.draws, found.draws)
    assert run(y, models, metric="auc").summary["ordered"].between(0, 1).all()


def test_groups_are_drawn_together():
    """Of individuals that are there twice, both rows or none, so that the truth is no surer than of one."""
    y, models = study(3)
    rows = np.repeat(np.arange(600), 2)
    doubled = {name: curves[rows] for name, curves in models.items()}
    alone, together = (run(y[rows], doubled, n_draws=10, groups=groups).days[0] for groups in (None, rows))
    single = run(y, models, n_draws=10).days[0]
    np.testing.assert_allclose(together.truth, single.truth)
    np.testing.assert_allclose(together.truth_se, single.truth_se)
    np.testing.assert_allclose(together.drawn_truth, single.drawn_truth)
    assert (alone.truth_se < 0.8 * single.truth_se).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"as_of": "2009-01-01"}, r"as_of: 2009-01-01 is before the first start, 2012-0"),
        ({"as_of": "2031-01-01"}, r"as_of must be before follow-up ends \(2019-12-30\)"),
        ({"as_of": []}, "as_of is empty"),
        ({"horizons": [300, 700]}, "'noise 0' ends at 600, and the last horizon is 700"),
        ({"horizons": [4000.0]}, "no individual who had started on 2014-12-06 is followed up to 4000"),
        ({"metric": "slope"}, "metric must be one to choose models by"),
        ({"predicted_on": "2016-01-01"}, r"predicted_on must not be after the cut-off 2014-12-06.*: 600 of 600"),
        ({"y": study(5)[0].weighted(np.arange(600))}, "weights must be above zero for backtest"),
        ({"y": ss.Outcomes(np.ones(600), np.ones(600))}, "y must know its dates"),
        ({"models": dict.fromkeys("ab", np.ones((600, 2)))}, "SurvivalCurves or estimators, not ndarray"),
        ({"models": {"one": study(5)[1]["noise 0"]}}, "at least two"),
        ({"X": np.zeros((600, 1))}, "X is for estimators"),
    ],
)
def test_bad_input(change, message):
    y, models = study(5)
    if change.get("horizons") == [4000.0]:
        models = {name: ss.SurvivalCurves(one.probabilities, [300, 4000]) for name, one in models.items()}
    with pytest.raises(ss.InputError, match=message):
        run(**{"y": y, "models": models, **change})


def test_draws_without_a_score_are_left_out_and_counted():
    """Of the very few whose data reach a horizon, some draws have none."""
    y, models = study(5)
    y = y[(y.dates.start <= THEN - np.timedelta64(590, "D")) | (np.arange(600) % 2 == 0)]
    early = np.flatnonzero(y.censoring_time - 1850 >= 600)[:2]  # C* as of then
    late = np.flatnonzero(y.censoring_time - 1850 < 500)[:150]
    rows = np.concatenate((early, late))
    few = {name: curves[: len(rows)] for name, curves in models.items()}
    found = run(y[rows], few, weighting="administrative", horizons=[600.0], n_draws=60)
    assert 0 < found.settings["n_draws_without_score"] < 60
    assert np.isfinite(found.summary[["ordered_lower", "regret_upper"]].to_numpy()).all()


class ByRisk(BaseEstimator):
    """Exponential survival at a rate that is learnt, times what a covariate says; may look at nothing."""

    def __init__(self, looks=True):
        self.looks = looks

    def fit(self, X, y):
        risk = np.exp(X[:, 0]) if self.looks else np.ones(len(X))
        self.rate_ = y.event.sum() / (risk * y.time).sum()
        self.seen_ = y
        return self

    def predict_curves(self, X):
        risk = np.exp(X[:, 0]) if self.looks else np.ones(len(X))
        return ss.SurvivalCurves(np.exp(-self.rate_ * risk[:, None] * HORIZONS), HORIZONS)


def test_judged_is_a_share_of_the_weights():
    y, models = study(1)
    y, late = y.as_of(BASE + np.timedelta64(2400, "D")), [300.0, 700.0]  # by which late starters are not known
    weights = np.random.default_rng(1).gamma(4, 1, len(y))
    long = {name: ss.SurvivalCurves(curves.probabilities, late) for name, curves in models.items()}
    (day,) = run(y.weighted(weights), long, horizons=late).days
    known = y.censoring_time[:, None] >= late
    assert 0 < known[:, 1].mean() < 1
    np.testing.assert_allclose(day.judged, weights @ known / weights.sum())


@pytest.mark.parametrize("given", ["predictions", "estimators"])
def test_frequencies_are_repeated_rows(given):
    """Also those that are zero, with groups, and weightings of some individuals."""
    y, models = study(1, lost=True)
    often = np.random.default_rng(1).integers(0, 3, 600)
    rows, labels, strata = np.repeat(np.arange(600), often), np.arange(600) // 3, np.arange(600) % 2

    def day(y, rows):
        weighting = [ss.Administrative(dropout_strata=strata[rows]), ss.Administrative()]
        asked = {"n_draws": 2, "n_splits": 1, "weighting": weighting, "groups": labels[rows]}
        if given == "predictions":
            return run(y, {name: curves[rows] for name, curves in models.items()}, **asked).days[0]
        X = np.random.default_rng(6).normal(size=(600, 1))[rows]
        return run(y, {"looks": ByRisk(), "does not": ByRisk(looks=False)}, X=X, **asked).days[0]

    found, expected = day(y.weighted(often, "frequency"), np.arange(600)), day(y[rows], rows)
    assert found.n == expected.n
    for name in ("scores", "truth", "truth_se", "drawn_scores", "drawn_truth", "half_scores", "half_truth"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def since_entry(models, there):
    """Return two models that predict at all times, of those who are there."""
    grid, rate = np.arange(0.0, 3000.0, 100.0), -np.log(models["noise 0.4"].probabilities[there, :1]) / HORIZONS[0]
    return {
        name: ss.SurvivalCurves(np.exp(-k * rate * grid), grid, interpolation="constant-hazard")
        for name, k in (("strong", 1), ("weak", 1.5))
    }


def entered(y, seed=3):
    """The same, of those who came under observation up to 400 days after their start."""
    entry = y.dates.start + np.random.default_rng(seed).integers(0, 400, len(y)).astype("m8[D]")
    there = np.flatnonzero(y.time > (entry - y.dates.start).astype("m8[D]").astype(float))
    dates = y.dates[there]
    later = ss.Outcomes.from_dates(
        dates.start, dates.event_date, dates.cutoff, last_seen=dates.last_seen, entry_date=entry[there]
    )
    return later, there


@pytest.mark.parametrize("lost", [False, True])
def test_delayed_entry_counts_from_entry(lost):
    """Of those who had entered by the day, as `compare` scores them then and now."""
    plain, curves = study(1, leak=True, lost=lost)
    y, there = entered(plain)
    models, day = since_entry(curves, there), THEN - np.timedelta64(100, "D")
    found = run(y, models, as_of=[day], n_draws=2)
    assert "; time since entry" in " ".join(str(found).split())
    known = y.dates.entry_date < day
    assert 0 < known.sum() < len(y)
    same_as_compared(found.days[0], y, models, known)
    # without delay, the same as if it were not stated
    dates = plain.dates
    at_start = ss.Outcomes.from_dates(
        dates.start, dates.event_date, dates.cutoff, last_seen=dates.last_seen, entry_date=dates.start
    )
    assert same(run(at_start, curves, n_draws=2), run(plain, curves, n_draws=2))


@pytest.mark.parametrize("delayed", [False, True])
def test_estimators_are_fitted_to_what_was_known(delayed):
    y, there = entered(study(6)[0]) if delayed else (study(6)[0], np.arange(600))
    X = np.random.default_rng(6).normal(size=(600, 1))[there]
    estimators = {"looks": ByRisk(), "does not": ByRisk(looks=False)}
    for day in run(y, estimators, X=X, as_of=[THEN - np.timedelta64(100, "D"), THEN]).days:
        known = y.dates.entry_date < day.date if delayed else y.dates.start <= day.date
        then = y[known].as_of(day.date)
        then = then.since_entry() if delayed else then
        by_hand = ss.cross_validate(estimators, X[known], then, weighting="administrative", times=HORIZONS)
        np.testing.assert_allclose(day.scores[0], by_hand.comparison.scored[0].scores[:2], rtol=1e-12)
        if not delayed:
            truth = ss.compare(y[known], by_hand.curves, weighting="administrative", times=HORIZONS, null=False)
            np.testing.assert_allclose(day.truth, truth.scored[0].scores, rtol=1e-12)
    for models, asked, message in (
        (estimators, {}, "X must be given"),
        (estimators, {"X": X[:5]}, "X has length 5"),
        ({"a": ByRisk(), "b": study(6)[1]["noise 0"]}, {"X": X}, "all be estimators, or all SurvivalCurves"),
    ):
        with pytest.raises(ss.InputError, match=message):
            run(y, models, **asked)


@pytest.fixture
def folder(tmp_path):
    y, models = study(2, leak=True)
    dates = {"start": y.dates.start.astype("M8[D]"), "event_date": y.dates.event_date.astype("M8[D]")}
    pd.DataFrame({"id": range(600), **dates}).to_csv(tmp_path / "y.csv", index=False)
    for name in ("noise 0", "noise 0.8", "leaks"):
        frame = pd.DataFrame(models[name].probabilities, columns=["300", "600"]).assign(id=range(600))
        frame.to_csv(tmp_path / f"{name.replace(' ', '')}.csv", index=False)
    return tmp_path


def command(capsys, folder, *arguments):
    files = [folder / name for name in ("y.csv", "noise0.csv", "noise0.8.csv", "leaks.csv")]
    return run_command(capsys, "backtest", *files, "-t", "300,600", *arguments)


def test_the_command(capsys, folder):
    dated = ("--cutoff", "2019-12-30", "--as-of", "2014-12-06", "--draws", "20")
    code, out, error = command(capsys, folder, *dated)
    assert (code, error) == (0, "")
    assert "as of 2014-12-06" in out
    told = json.loads(command(capsys, folder, *dated, "--json", "-")[1])
    kept = command(capsys, folder, *dated, "--json", "-", "--state", folder / "kept", "--jobs", "2")
    assert json.loads(kept[1])["table"] == told["table"]
    assert len(list((folder / "kept").iterdir())) == 1
    y, models = study(2, leak=True)
    chosen = {"noise0": models["noise 0"], "noise0.8": models["noise 0.8"], "leaks": models["leaks"]}
    found = run(y, chosen, n_draws=20)
    assert told["settings"]["sentence"] == found.sentence
    np.testing.assert_allclose([row["relative_regret"] for row in told["table"]], found.table["relative_regret"])
    for given, wrong in (
        (("--as-of", "2014-12-06"), "give the data cut-off as --cutoff"),
        ((*dated, "--predicted-on", "2018-01-01"), "predicted_on must not be after the cut-off"),
    ):
        code, out, error = command(capsys, folder, *given)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert wrong in error


def same(one, other):
    """Whether two backtests have the same numbers, to the bit."""
    names = ("scores", "truth", "truth_se", "sure", "judged", "drawn_scores", "drawn_truth")
    return one.sentence == other.sentence and all(
        a.date == b.date and all(np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True) for name in names)
        for a, b in zip(one.days, other.days, strict=True)
    )


class StoppedError(Exception):
    """What somebody does who is tired of waiting."""


def test_it_goes_on_where_it_was_interrupted(tmp_path):
    y, models = study(8, 300, leak=True)
    days = [THEN - np.timedelta64(100, "D"), THEN]
    told = []

    def stop_on_the_second_day(done, total, what):
        told.append((done, total))
        if "2014-12-06" in what:
            raise StoppedError

    asked = {"as_of": days, "n_draws": 15, "state": tmp_path / "kept"}
    with pytest.raises(StoppedError):
        run(y, models, **asked, progress=stop_on_the_second_day)
    assert told == sorted(told)
    assert {total for _, total in told} == {32}
    assert len(list((tmp_path / "kept").iterdir())) == 1
    told.clear()
    found = run(y, models, **asked, progress=lambda *what: told.append(what))
    assert not any("2014-08-28" in what for _, _, what in told)
    assert same(found, run(y, models, as_of=days, n_draws=15, n_jobs=2))  # and processes change no number
    assert len(list((tmp_path / "kept").iterdir())) == 2


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"n_draws": 6}, {"weighting": "ipcw"}, {"horizons": [300.0]}, {"level": 0.9}]
)
def test_days_of_others_are_not_taken_for_these(tmp_path, change):
    y, models = study(8, 300)
    run(y, models, n_draws=5, state=tmp_path)
    run(y, models, **{"n_draws": 5, "state": tmp_path, **change})
    assert len(list(tmp_path.iterdir())) == 2
    other = {**models, "noise 0": models["noise 0.8"]}
    assert same(run(y, other, n_draws=5, state=tmp_path), run(y, other, n_draws=5))


@pytest.mark.parametrize(
    "change",
    [
        {"scores": np.zeros((7, 1, 1))}, {"n": np.int64(-1)}, {"drawn_truth": np.zeros((1 << 26, 1, 1))},
        {"recommended": np.array([["x"]])}, {"more": np.zeros(1)}, None, "pipe",
    ],
    ids=str,
)  # fmt: skip
def test_states_that_nobody_made(tmp_path, change):
    y, models = study(8, 300)
    run(y, models, n_draws=5, state=tmp_path)
    (kept,) = tmp_path.iterdir()
    with np.load(kept) as stored:
        arrays = dict(stored)
    message = f"state: {kept.name} can't be read"
    if change is None:
        kept.write_bytes(kept.read_bytes()[:100])
    elif change == "pipe":
        kept.unlink()
        os.mkfifo(kept)
        message = "is a pipe, not a file"
    else:
        np.savez_compressed(kept, **{**arrays, **change})
    with pytest.raises(ss.InputError, match=message):
        run(y, models, n_draws=5, state=tmp_path)


def test_nobody_is_there_twice():
    y, models = study(8, 300)
    ids = np.arange(300)
    assert same(run(y, models, ids=ids), run(y, models))
    ids[[7, 9]] = 3
    with pytest.raises(ss.InputError, match=r"1 of 298 individuals come more than once, the first .*3.*give groups"):
        run(y, models, ids=ids)


def test_some_of_the_models_are_as_if_the_others_had_not_been_there():
    y, models = study(5, leak=True)
    names, asked = ["leaks", "noise 0", "noise 0.8"], {"n_draws": 10, "as_of": [THEN - np.timedelta64(200, "D"), THEN]}
    found = run(y, models, **asked).only(names)
    alone = run(y, {name: curves for name, curves in models.items() if name in names}, **asked)
    assert found.models == alone.models == ("noise 0", "noise 0.8", "leaks")
    pd.testing.assert_frame_equal(found.table, alone.table)
    pd.testing.assert_frame_equal(found.summary, alone.summary)
    np.testing.assert_array_equal(found.draws, alone.draws)
    assert found.sentence == alone.sentence
    with pytest.raises(ss.InputError, match=r"models must be among .*: 1 of 2 are not, the first 'noise 7'"):
        found.only(["leaks", "noise 7"])


def test_a_function_makes_weights_of_what_was_known():
    y, models = study(6)
    seen = []

    def by_kaplan_meier(then):
        seen.append(str(then.dates.cutoff.max().astype("M8[D]")))
        curve, grid = ss.KaplanMeierCensoring(then), np.unique(then.time)
        return ss.IPCW(ss.SurvivalCurves(np.tile(curve.at(grid), (len(then), 1)), grid, interpolation="step"))

    days = [THEN - np.timedelta64(100, "D"), THEN]
    found = run(y, models, weighting=["ipcw", by_kaplan_meier], as_of=days, n_draws=3)
    assert seen == [str(day) for day in days]
    for day in found.days:
        np.testing.assert_allclose(day.scores[1], day.scores[0], rtol=1e-9)
        assert np.isfinite(day.drawn_scores).all()
    with pytest.raises(ss.InputError, match="weighting: a function must return a Weighting, not str"):
        run(y, models, weighting=["ipcw", lambda then: "ipcw"])


def test_a_projected_score_that_too_few_allow_for_is_left_out_with_the_reason(tmp_path):
    """At the second horizon fewer than 20 are followed event-free as of then: all else is judged as before."""
    y, models = study(5)
    early = np.flatnonzero(y.censoring_time - 1850 >= 600)[:20]  # C* as of then
    late = np.flatnonzero((y.censoring_time - 1850 < 500) & (y.censoring_time - 1850 >= 300))[:200]
    rows = np.concatenate((early, late))
    few = {name: curves[rows] for name, curves in models.items()}
    settings = {"n_draws": 20, "n_splits": 1, "state": tmp_path}
    with pytest.warns(ss.UndefinedScoreWarning, match="no score as of then at 600 under projected"):
        found, again = (run(y[rows], few, **settings) for _ in range(2))
    assert str(again) == str(found)
    scores = found.scores.pivot_table(index="weighting", columns="horizon", values="score", aggfunc="count")
    projected = next(name for name in found.weightings if name.startswith("projected"))
    assert scores.loc[projected].fillna(0).tolist() == [3, 0]
    assert (scores.drop(projected) == 3).all(axis=None)
    summary = found.summary.set_index("weighting")
    assert summary["of"].tolist() == [2, 1, 2]
    alone = run(y[rows], few, horizons=[300.0], n_draws=20).summary.set_index("weighting").loc[projected]
    pd.testing.assert_series_equal(summary.loc[projected], alone, check_dtype=False)
    assert found.settings["n_draws_without_score"] == 0
    with pytest.raises(ss.InputError, match="no score as of then at 600 under projected"):
        run(y[rows], few, weighting=["projected", "administrative"])
