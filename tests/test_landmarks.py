"""Predictions made at landmarks: who is at risk, what is predicted then, and scores summarised over landmarks."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import survscore as ss

LANDMARKS, HORIZONS = [0.0, 2.0, 5.0], [2.0, 4.0]


def study(n=120, seed=0, *, lost=0.0):
    """Return outcomes, and two models: the truth, and a biased one."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2.0, 0.06, n)
    event_time, end = rng.exponential(1 / rate), rng.uniform(4, 14, n)
    leaves = np.where(rng.random(n) < lost, rng.uniform(0, 12, n), np.inf)
    time = np.minimum.reduce([event_time, end, leaves])
    y = ss.Outcomes(time, event_time == time, end)
    times = np.arange(0.5, 14.1, 0.5)
    return y, {
        "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
        "biased": ss.SurvivalCurves(np.exp(-(0.5 * rate[:, None] + 0.1) * times), times),
    }


# Outcomes and curves at a landmark


def test_outcomes_at_a_landmark_are_those_at_risk():
    y = ss.Outcomes([2, 5, 3, 6], [1, 0, 2, 1], [4, 5, 8, 9], causes=["a", "b"]).for_cause("b")
    rows, later = y.at_landmark(2)
    assert rows.tolist() == [1, 2, 3]
    assert (later.time.tolist(), later.cause.tolist()) == ([3, 1, 4], [0, 2, 1])
    assert (later.censoring_time.tolist(), later.interest) == ([3, 6, 7], 2)
    rows, later = y.at_landmark([1, 5, np.nan, 4])
    assert (rows.tolist(), later.time.tolist()) == ([0, 3], [1, 2])


@pytest.mark.parametrize(
    ("s", "message"),
    [
        (9, "no individual is at risk at 9, the last was seen at 5"),
        (-1, "zero or later, and finite, not -1"),
        ([1, 2], "a number, or one for each of the 3 individuals"),
        ([np.nan] * 3, "missing .* for all individuals"),
    ],
)
def test_impossible_landmarks_are_refused(s, message):
    with pytest.raises(ss.InputError, match=message):
        ss.Outcomes([2, 5, 3], [1, 0, 1]).at_landmark(s)


@given(
    arrays(float, (4, 5), elements=st.floats(0.01, 1)),
    st.sampled_from(["linear", "step", "constant-hazard"]),
    st.floats(0, 8.5),
    st.booleans(),
)
def test_conditional_curves_are_ratios(values, interpolation, s, holds):
    grid = np.array([1.0, 2.0, 3.5, 6.0, 9.0])
    survival = np.minimum.accumulate(values, axis=1)
    extrapolation = "hold" if holds else "nan"
    curves = ss.SurvivalCurves(survival, grid, interpolation=interpolation, extrapolation=extrapolation)
    later = curves.conditional_on(s)
    u = np.append(later.times, later.times / 2.0)
    u = np.unique(u)
    expected = curves.at(s + u) / curves.at([s])
    assert later.at(u) == pytest.approx(expected, rel=1e-9)
    assert later.at([0.0]).ravel().tolist() == [1.0] * 4
    same = curves.conditional_on(np.full(4, s), times=u)
    assert same.probabilities == pytest.approx(expected, rel=1e-9)


def test_curves_without_a_conditional_form_are_refused():
    curves = ss.SurvivalCurves([[0.5, 0.0, 0.0], [0.9, 0.8, 0.6]], [1, 2, 3])
    for one, s, times, message in (
        (curves, 3, None, "before the curves end, at 3, not 3"),
        (curves, [1, 2], None, "times are needed"),
        (curves, [1, 2], [2], "1 after the landmark, not 2"),
        (curves, 2, None, r"above 0 at the landmark, .*: that of 1 individual of 2 .* position 0 \(landmark"),
        (ss.SurvivalCurves([[0.5, 0.9]], [1, 2], monotone="keep"), 1, None, "no larger after the landmark"),
    ):
        with pytest.raises(ss.InputError, match=message):
            one.conditional_on(s, times=times)


@pytest.mark.parametrize("interpolation", ["linear", "step", "constant-hazard"])
def test_conditional_curves_of_tensors_are_the_same(interpolation):
    torch = pytest.importorskip("torch")
    values, grid = np.array([[0.9, 0.7, 0.2], [0.8, 0.8, 0.5]]), [1, 2, 4]
    curves = ss.SurvivalCurves(values, grid, interpolation=interpolation)
    tensors = ss.SurvivalCurves(torch.tensor(values), grid, interpolation=interpolation)
    for s, times in ((1.5, None), ([0.5, 1.0], [1.0, 2.5])):
        expected, found = (one.conditional_on(s, times=times).numpy() for one in (curves, tensors))
        assert found.times.tolist() == expected.times.tolist()
        assert found.probabilities == pytest.approx(expected.probabilities, rel=1e-12)


def test_conditional_incidences():
    curves = ss.IncidenceCurves({"a": [[0.1, 0.3]], "b": [[0.3, 0.4]]}, [1, 2])
    later = curves.conditional_on(1)
    assert later.probabilities[0, :, 0] == pytest.approx([0.2 / 0.6, 0.1 / 0.6])
    held = ss.SurvivalCurves([[0.5]], [1], extrapolation="hold").conditional_on(4)
    assert held.at([0, 7]).tolist() == [[1, 1]]


# At each landmark, scores are those of what followed it


@pytest.mark.parametrize("weighting", ["administrative", "projected", "ipcw"])
def test_each_landmark_is_a_study_of_its_own(weighting):
    y, models = study(lost=0.3)
    settings = {"metric": ["brier", "skill", "auc", "oe"], "weighting": weighting, "horizons": HORIZONS}
    table = ss.landmark_table(y, models, landmarks=LANDMARKS, **settings).to_frame()
    assert not (np.diff(table["summary"]) < 0).any()
    for s in LANDMARKS:
        rows, later = y.at_landmark(s)
        alone = ss.score_table(later, {name: m[rows].conditional_on(s) for name, m in models.items()}, **settings)
        expected, found = alone.to_frame(), table[(table["landmark"] == s) & ~table["summary"]]
        for column in ("model", "metric", "time", "estimate", "se", "lower", "difference", "p_value", "n_counted"):
            assert found[column].tolist() == pytest.approx(expected[column].tolist(), nan_ok=True), column


# The summary, literally


def literal_summary(y, models, horizon, weights="counted"):
    """Return means over landmarks, and influences, (models, individuals): administrative, without drop-outs."""
    counted, influences, scores = [], [], []
    for s in LANDMARKS:
        here, of_models, values = np.zeros(len(y)), [], []
        for i in range(len(y)):
            here[i] = y.time[i] > s and y.censoring_time[i] - s >= horizon
        for curves in models.values():
            losses = np.zeros(len(y))
            for i in np.flatnonzero(here):
                conditional = curves.at([s + horizon])[i, 0] / curves.at([s])[i, 0]
                losses[i] = ((y.time[i] > s + horizon) - conditional) ** 2
            mean = losses.sum() / here.sum()
            values.append(mean)
            of_models.append(here * (losses - mean) / here.sum())
        counted.append(here)
        influences.append(of_models)
        scores.append(values)
    counted, influences, scores = map(np.array, (counted, influences, scores))
    n = counted.sum()
    omega = counted.sum(axis=1) / n if weights == "counted" else np.full(3, 1 / 3)
    theta = omega @ scores
    phi = np.einsum("l,lmi->mi", omega, influences)
    if weights == "counted":
        phi += np.einsum("li,lm->mi", counted, scores - theta) / n
    return theta, phi, int((counted.sum(axis=0) > 0).sum())


@pytest.mark.parametrize("weights", ["counted", "equal"])
def test_the_summary_is_that_of_the_formula(weights):
    y, models = study()
    table = ss.landmark_table(
        y, models, landmarks=LANDMARKS, horizons=HORIZONS, metric="brier", weighting="administrative", null=False,
        summary=weights,
    ).to_frame()  # fmt: skip
    for horizon in HORIZONS:
        theta, phi, n = literal_summary(y, models, horizon, weights)
        rows = table[table["summary"] & (table["time"] == horizon)]
        factor = n / (n - 1)
        assert rows["estimate"].to_numpy() == pytest.approx(theta, rel=1e-12)
        assert rows["se"].to_numpy() == pytest.approx(np.sqrt(factor * (phi**2).sum(axis=1)), rel=1e-10)
        difference = rows.iloc[1]
        assert difference["difference"] == pytest.approx(theta[1] - theta[0], rel=1e-9)
        assert difference["difference_se"] == pytest.approx(np.sqrt(factor * ((phi[1] - phi[0]) ** 2).sum()), rel=1e-9)
        assert (rows["n_groups"] == n).all()


# Sample weights


def weights_for(y, kind, seed=6):
    rng = np.random.default_rng(seed)
    if kind == "frequency":
        return rng.integers(0, 4, len(y))
    return rng.gamma(2.0, 1.7, len(y)) * (rng.random(len(y)) > 0.1)


def table_of(y, models, rows=slice(None), **settings):
    some = {name: curves[rows] for name, curves in models.items()}
    settings = {"weighting": ["administrative", "projected", "ipcw"], **settings}
    return ss.landmark_table(y[rows], some, landmarks=LANDMARKS[:2], horizons=HORIZONS, **settings)


@pytest.mark.parametrize("summary", ["counted", "equal"])
@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
def test_frequency_weights_are_repeated_rows(summary, grouped):
    y, models = study(300, seed=4, lost=0.3)
    often, labels = weights_for(y, "frequency"), np.arange(300) // 3
    rows = np.repeat(np.arange(300), often)
    found = table_of(y.weighted(often, "frequency"), models, summary=summary, groups=labels if grouped else None)
    expected = table_of(y, models, rows, summary=summary, groups=labels[rows] if grouped else None)
    assert (found.n, found.n_dropped_out) == (expected.n, expected.n_dropped_out)
    assert found.landmarks == expected.landmarks
    one, other = found.to_frame(), expected.to_frame()
    assert one["summary"].any()
    pd.testing.assert_frame_equal(one, other, rtol=1e-7, atol=1e-12)


@pytest.mark.filterwarnings("ignore::survscore.UnequalWeightsWarning")
@pytest.mark.parametrize("summary", ["counted", "equal"])
def test_means_with_weights_are_those_of_the_jackknife(summary):
    y, models = study(60, seed=3)
    y = y.weighted(weights_for(y, "probability") + 0.2)
    settings = {"weighting": "administrative", "metric": "brier", "null": False, "summary": summary}

    def means(rows):
        table = table_of(y, models, rows, **settings).to_frame()
        return table[table["summary"]]

    everybody = np.arange(60)
    found = means(everybody)
    assert len(found) == 4
    left = np.array([means(np.delete(everybody, i))[["estimate", "difference"]].to_numpy() for i in everybody])
    spread = np.sqrt(59 / 60 * np.sum(np.square(left - left.mean(axis=0)), axis=0))
    np.testing.assert_allclose(found["se"], spread[:, 0], rtol=0.05)
    differs = found["difference_se"].notna()
    np.testing.assert_allclose(found["difference_se"][differs], spread[differs.to_numpy(), 1], rtol=0.05)


def test_rows_of_an_individual_have_one_weight():
    y = ss.Outcomes([4.0, 3.0, 2.0, 1.0], [1, 0, 1, 0], [6, 6, 4, 4], weights=[1, 2, 1, 3])
    curves = {"a": ss.SurvivalCurves([[0.9, 0.8]] * 4, [1, 2])}
    with pytest.raises(ss.InputError, match=r"the same in all rows of an individual: .* position 3 .3, and 2 before"):
        ss.landmark_table(y, curves, landmarks=[0, 0, 2, 2], id=[1, 2, 1, 2], horizons=[1], metric="brier")


def summary_of(y, models, weighting, metric, rows=slice(None)):
    some = {name: curves[rows] for name, curves in models.items()}
    settings = {"metric": metric, "weighting": weighting, "null": metric == "skill"}
    table = ss.landmark_table(y[rows], some, landmarks=LANDMARKS[:2], horizons=[3.0], **settings).to_frame()
    return table[table["summary"]].iloc[1]


PLAIN = ("ipcw", ss.Projected(strata=None), ss.Administrative(dropout_strata=None), "uncensored")


@pytest.mark.parametrize(
    ("weighting", "metric"),
    [*((weighting, "brier") for weighting in PLAIN), (PLAIN[1], "auc"), ("ipcw", "skill")],
    ids=str,
)
def test_the_standard_error_is_that_of_the_jackknife_over_individuals(weighting, metric):
    y, models = study(50, seed=3, lost=0.3)
    if weighting == "uncensored":
        y = ss.Outcomes(y.time, np.ones(len(y)))
    found = summary_of(y, models, weighting, metric)
    left = [summary_of(y, models, weighting, metric, np.delete(np.arange(len(y)), i)) for i in range(len(y))]
    for value, se in (("estimate", "se"), ("difference", "difference_se")):
        values = np.array([row[value] for row in left])
        jackknife = np.sqrt((len(y) - 1) / len(y) * np.sum((values - values.mean()) ** 2))
        assert found[se] == pytest.approx(jackknife, rel=0.12, abs=1e-9)


def test_a_landmark_without_score_is_left_out_and_named():
    y, models = study()
    given = {"horizons": [3], "metric": "brier", "weighting": "administrative", "null": False}
    table = ss.landmark_table(y, models, landmarks=[0, 2, 12], **given)
    rows = table.to_frame()
    assert rows.loc[rows["landmark"] == 12, "estimate"].isna().all()
    assert (rows.loc[rows["summary"], "note"] == "mean over 2 of 3 landmarks").all()
    assert "mean over 2 of 3 landmarks" in str(table)


# Other ways to give predictions


def test_stacked_rows_and_long_tables_give_the_same():
    y, models = study(60, seed=2)
    settings = {"metric": ["brier", "auc"], "weighting": "administrative", "horizons": [2.0]}
    expected = ss.landmark_table(y, models, landmarks=LANDMARKS, **settings).to_frame()
    ids = np.array([f"c{i}" for i in range(len(y))])
    parts = [(s, *y.at_landmark(s)) for s in LANDMARKS]
    survival = {name: [m[rows].conditional_on(s).at([2.0]) for s, rows, _ in parts] for name, m in models.items()}
    stacked = ss.landmark_table(
        ss.Outcomes.concatenate([later for _, _, later in parts]),
        {name: ss.SurvivalCurves(np.concatenate(values), [2.0]) for name, values in survival.items()},
        landmarks=np.concatenate([np.full(rows.size, s) for s, rows, _ in parts]),
        id=np.concatenate([ids[rows] for _, rows, _ in parts]),
        **settings,
    )
    pd.testing.assert_frame_equal(stacked.to_frame(), expected)
    read = {}
    for name, values in survival.items():
        long = pd.concat(
            pd.DataFrame({"id": ids[rows], "age": s, "h": 2.0, "p": 1 - of_s[:, 0]})
            for (s, rows, _), of_s in zip(parts, values, strict=True)
        ).sample(frac=1, random_state=0)
        read[name] = ss.LandmarkCurves.from_frame(long, ids, id="id", landmark="age", horizon="h", event="p")
    pd.testing.assert_frame_equal(ss.landmark_table(y, read, **settings).to_frame(), expected)


def test_landmarks_may_be_days():
    start = np.array(["2020-01-01", "2020-02-01", "2020-03-15", "2020-01-11"] * 10, dtype="datetime64[D]")
    event = [np.datetime64("2020-05-01") + i if i % 3 else None for i in range(40)]
    y = ss.Outcomes.from_dates(start, event, "2020-08-01")
    times = np.arange(10.0, 250.0, 10.0)
    rate = np.linspace(0.001, 0.01, 40)
    curves = {"a": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times, interpolation="constant-hazard")}
    days = ["2020-02-10", "2020-04-01"]
    settings = {"landmarks": days, "horizons": [60], "metric": "brier", "weighting": "administrative", "null": False}
    rows = ss.landmark_table(y, curves, **settings).to_frame()
    assert rows["landmark"].tolist()[:2] == [pd.Timestamp(day) for day in days]
    assert rows["n_counted"].tolist()[:2] == [30, 40]  # in February one in four had not started
    ages = (np.datetime64(days[0]) - start) / np.timedelta64(1, "D")
    there, later = y.at_landmark(np.where(ages >= 0, ages, np.nan))
    alone = ss.brier_score(
        later, curves["a"][there].conditional_on(ages[there], times=[60]), times=[60], weighting="administrative"
    )
    assert rows["estimate"][0] == pytest.approx(alone.scores[0], rel=1e-12)
    with pytest.raises(ss.InputError, match="landmarks are dates, and y has none"):
        ss.landmark_table(ss.Outcomes(y.time, y.event, y.censoring_time), curves, **settings)


def test_individuals_without_prediction_are_left_out_if_told():
    y, models = study(40, seed=5)
    at_start, some = models["truth"], np.arange(1, len(y))
    made = ss.LandmarkCurves({0: at_start, 2: at_start[some].conditional_on(2)}, rows={2: some})
    settings = {"horizons": [2], "metric": "brier", "weighting": "administrative", "null": False}
    few = r"no prediction at landmark 2 for 1 individual of \d+ at risk, .* position 0"
    with pytest.raises(ss.InputError, match=few):
        ss.landmark_table(y, {"a": made}, **settings)
    table = ss.landmark_table(y, {"a": made}, missing="drop", **settings)
    assert [one.n_left_out for one in table.landmarks] == [0, 1]
    assert "left out, without prediction: 1 at 2" in str(table)


def test_causes_need_all_incidences_from_the_start():
    rng = np.random.default_rng(0)
    time, cause = rng.exponential(5, 200), rng.integers(1, 3, 200)
    y = ss.Outcomes(np.minimum(time, 8), np.where(time <= 8, cause, 0), np.full(200, 8.0), causes=["a", "b"])
    times = np.arange(1.0, 9.0)
    half = 0.5 * (1 - np.exp(-times / 5))
    curves = ss.IncidenceCurves(np.tile(half, (200, 2, 1)), times, causes=["a", "b"])
    settings = {"landmarks": [0, 2], "horizons": [3], "metric": "brier", "weighting": "administrative", "cause": "a"}
    rows = ss.landmark_table(y, {"m": curves}, **settings).to_frame()
    conditional = 0.5 * (1 - np.exp(-3 / 5))
    at_risk = y.time > 2
    had = at_risk & (y.time <= 5) & (y.cause == 1)
    expected = np.mean((had[at_risk] - conditional) ** 2)
    found = rows[(rows["landmark"] == 2) & (rows["model"] == "m")]["estimate"].iloc[0]
    assert found == pytest.approx(expected, rel=1e-2)  # read by straight lines
    with pytest.raises(ss.InputError, match="landmark 2, 'm': curves of one cause from the start do not say"):
        ss.landmark_table(y, {"m": curves.for_cause("a")}, **settings)


# What is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"landmarks": [0, 20]}, "landmark 20: s must be before the end of follow-up: no individual is at risk at 20"),
        ({"landmarks": None}, "landmarks are needed"),
        ({"landmarks": [1, 1]}, "landmarks must be different; for stacked rows"),
        ({"landmarks": [1, "2020-01-01"]}, "all times, or all dates"),
        ({"landmarks": np.repeat([0, 1], 15)}, "id is needed .* rows of one individual depend on each other"),
        ({"horizons": [0, 1]}, "horizons must be after the landmark"),
        ({"metric": "concordance"}, "'concordance' has no form for landmarks"),
        ({"weighting": ss.IPCW(ss.Outcomes([1, 2], [0, 1]))}, "censoring can't be given for landmarks"),
        ({"weighting": ss.Administrative(population="fixed")}, "population can't be given for landmarks"),
        (
            {"id": np.repeat(np.arange(15), 2), "landmarks": np.zeros(30)},
            r"every pair of id and landmark must be there once: 15 rows repeat one, the first at position 1 \(id '0'",
        ),
        (
            {"id": np.repeat(np.arange(15), 2), "landmarks": np.tile([0, 1], 15), "groups": np.tile([0, 1], 15)},
            "groups must hold all rows of an individual",
        ),
        (
            {"models": {"a": ss.LandmarkCurves({0: ss.SurvivalCurves([[0.5]], [2])})}},
            "'a' have no predictions made at landmark 2; they have 0",
        ),
    ],
)
def test_bad_input_has_one_clear_line(changes, message):
    y, models = study(30)
    with pytest.raises(ss.InputError, match=message) as raised:
        ss.landmark_table(y, **{"models": models, "landmarks": [0, 2], "horizons": [2], **changes})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", 0, 1, 0.5), ("a", 0, 1, 0.6)], "pair of id and landmark must be there once: 1 is more than once"),
        ([("a", 0, 1, 0.5), ("b", 0, 2, 0.6)], "every individual and horizon must be there once: 2 are not, .* id 'a'"),
        ([("x", 0, 1, 0.5)], "1 row of individuals who are not in ids, the first 'x' in row 0"),
        ([("a", 0, 0, 0.5)], "column 'h' must hold times after the landmark"),
    ],
)
def test_bad_long_tables_have_one_clear_line(rows, message):
    frame = pd.DataFrame(rows, columns=["id", "age", "h", "p"])
    with pytest.raises(ss.InputError, match=message):
        ss.LandmarkCurves.from_frame(frame, ["a", "b"], id="id", landmark="age", horizon="h", survival="p")


# What it shows


def test_the_table_prints_and_draws_what_it_holds():
    y, models = study()
    table = ss.landmark_table(y, models, landmarks=LANDMARKS, horizons=HORIZONS, metric=["brier", "auc"], unit="year")
    assert "Brier score at 2 years after the landmark; administrative" in str(table)
    assert json.loads(table.to_json())["landmarks"][1]["n"] == int((y.time > 2).sum())
    shown = table.plot()
    assert shown.values.shape == (3, 4, 2)
    rows = table.to_frame().query("metric == 'brier' and model == 'biased' and weighting == 'administrative'")
    assert shown.values[0, -1].tolist() == rows[rows["summary"]]["difference"].tolist()
    with pytest.raises(ss.InputError, match="another than the reference"):
        table.plot(model="truth", difference=True)
