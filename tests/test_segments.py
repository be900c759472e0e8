"""Scores by segment: parts are comparisons of their own, few individuals have no interval, segments are compared."""

import matplotlib as mpl
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from scipy import stats

import survscore as ss
from looks import text_faults
from survscore.inference.multiplicity import adjusted

mpl.use("agg")
pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")  # small segments have some

TIMES = np.arange(1.0, 9.0)
NASTY = ["<script>alert(1)</script>", "a" * 300, "", "Türkiye", "quote \" & '", "$x^$", "new\nline"]


def draw(seed=0, n=900, lost=False):
    """Return outcomes, two models and labels; country and plan are independent of all."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    rate = 0.12 * np.exp(0.7 * x)
    star, end = rng.exponential(1 / rate), rng.uniform(3, 12, n)
    gone = rng.exponential(60, n) if lost else np.full(n, np.inf)
    time = np.minimum(np.minimum(star, end), gone)
    y = ss.Outcomes(time, (star <= end) & (star <= gone), end)
    models = {
        "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * TIMES), TIMES),
        "noisy": ss.SurvivalCurves(np.exp(-(rate * np.exp(rng.normal(0, 0.6, n)))[:, None] * TIMES), TIMES),
    }
    country = rng.choice(["DE", "FR", "SE", "IS"], n, p=[0.5, 0.3, 0.18, 0.02])
    plan = rng.integers(1, 3, n)
    return y, models, country, plan


@pytest.fixture(scope="module")
def data():
    return draw()


@pytest.fixture(scope="module")
def found(data):
    y, models, country, plan = data
    by = {"country": country, "plan": plan}
    return ss.compare(y, models, metric=["brier", "auc"], weighting="administrative", times=TIMES, by=by)


def numbers(frame):
    return frame.select_dtypes("number").to_numpy()


# Every part is a comparison of its own


#: By kind, the weighting of some rows of outcomes; curves are those of all individuals.
WEIGHTINGS = {
    "administrative": lambda y, curves, rows: "administrative",
    "ipcw": lambda y, curves, rows: "ipcw",
    "curves": lambda y, curves, rows: ss.IPCW(curves[rows]),
    "other outcomes": lambda y, curves, rows: ss.IPCW(y[:200], max_weight=5.0),
    "drop-out curves": lambda y, curves, rows: ss.Administrative(dropout=curves[rows]),
    "population": lambda y, curves, rows: ss.Administrative(population=curves[rows]),
    "several": lambda y, curves, rows: ["ipcw", ss.Administrative(population="fixed")],
}


@pytest.mark.parametrize("kind", WEIGHTINGS)
@pytest.mark.parametrize("lost", [False, True])
def test_a_part_is_the_comparison_of_its_individuals(kind, lost):
    y, models, country, plan = draw(1, 600, lost)
    n = len(y)
    values = np.sort(np.random.default_rng(3).uniform(0.5, 1, (n, 3)))[:, ::-1]
    curves = ss.SurvivalCurves(values, [3, 6, 12], interpolation="step", extrapolation="hold")
    asked = {"metric": ["brier", "log", "auc"], "times": TIMES, "reference": "noisy", "level": 0.9}
    weighting = WEIGHTINGS[kind](y, curves, np.arange(n))
    segmented = ss.compare(y, models, weighting=weighting, by=pd.DataFrame({"country": country, "plan": plan}), **asked)
    assert len(segmented.parts) == 8
    for key, part in [(None, segmented.total), *segmented.parts.items()]:
        rows = np.arange(n) if key is None else np.flatnonzero((country == key[0]) & (plan.astype(str) == key[1]))
        picked = {name: curves[rows] for name, curves in models.items()}
        alone = ss.compare(y[rows], picked, weighting=WEIGHTINGS[kind](y, curves, rows), **asked)
        assert part.n == len(rows)
        for table in ("scores", "contrasts", "skill"):
            wanted, seen = getattr(alone, table), getattr(part, table)
            np.testing.assert_allclose(numbers(seen), numbers(wanted), rtol=1e-12, atol=1e-12)
            words = seen.columns.difference(seen.select_dtypes("number").columns)
            assert seen[words].equals(wanted[words])


def test_a_part_with_groups_and_batches_is_its_own_comparison(data):
    y, models, country, _ = data
    groups = np.arange(len(y)) // 3
    batches = {
        name: ss.CurveBatches(lambda c=curves: (c[i : i + 250] for i in range(0, len(y), 250)), len(y))
        for name, curves in models.items()
    }
    asked = {"weighting": "ipcw", "times": TIMES[:4]}
    segmented = ss.compare(y, batches, groups=groups, by=country, **asked)
    assert segmented.by == ("segment",)
    assert segmented.n_spanning > 100
    for (label,), part in segmented.parts.items():
        rows = np.flatnonzero(country == label)
        alone = ss.compare(
            y[rows], {name: curves[rows] for name, curves in models.items()}, groups=groups[rows], **asked
        )
        np.testing.assert_allclose(numbers(part.contrasts), numbers(alone.contrasts), rtol=1e-9, atol=1e-13)


def test_tables_are_those_of_the_parts(data, found):
    y, models, *_ = data
    total = ss.compare(y, models, metric=["brier", "auc"], weighting="administrative", times=TIMES)
    # by time, then as means over a range
    for whole, segmented, part in (
        (total, found, found.parts["DE", "2"]),
        (total.integrated(2, 6), found.integrated(2, 6), found.parts["DE", "2"].integrated(2, 6)),
    ):
        for table in ("scores", "contrasts", "skill"):
            wanted, seen, own = (getattr(one, table) for one in (whole, segmented, part))
            assert seen.columns[:2].tolist() == ["country", "plan"]
            np.testing.assert_allclose(numbers(seen[wanted.columns].iloc[: len(wanted)]), numbers(wanted), rtol=1e-12)
            rows = seen[(seen["country"] == "DE") & (seen["plan"] == "2")]
            reliable = own["reliable"].to_numpy()
            np.testing.assert_allclose(numbers(rows[own.columns])[reliable], numbers(own)[reliable], rtol=1e-12)
    assert found.total.n == found.counts["n"].iloc[1:].sum() == len(y)


# P-values for many segments


def holm(p):
    p = list(p)
    known = sorted((value, k) for k, value in enumerate(p) if not np.isnan(value))
    found, largest = [np.nan] * len(p), 0.0
    for i, (value, k) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - i) * value))
        found[k] = largest
    return found


def benjamini_hochberg(p):
    found, known = np.full(len(p), np.nan), ~np.isnan(p)
    found[known] = stats.false_discovery_control(np.asarray(p)[known])
    return found


def test_corrections_are_the_literal_ones():
    rng = np.random.default_rng(1)
    p = rng.uniform(0, 1, (12, 9)) ** 3
    p[rng.uniform(size=p.shape) < 0.2] = np.nan
    p[2] = p[3]  # ties
    for j in range(9):
        np.testing.assert_allclose(adjusted(p)[:, j], holm(p[:, j]))
        np.testing.assert_allclose(adjusted(p, "benjamini-hochberg")[:, j], benjamini_hochberg(p[:, j]))


@pytest.mark.parametrize(("correction", "literal"), [("holm", holm), ("benjamini-hochberg", benjamini_hochberg)])
def test_tables_are_corrected_over_segments(found, correction, literal):
    table = found.corrected(correction).contrasts
    parts = table[table["country"] != "(all)"]
    for _, rows in parts.groupby(["metric", "weighting", "model", "time"]):
        np.testing.assert_allclose(rows["p_adjusted"], literal(rows["p_value"]))
        sure = rows["p_adjusted"] < 0.05
        assert (rows["verdict"].isin(["better", "worse"]) == sure).all()
    total = table[table["country"] == "(all)"]
    assert np.array_equal(total["p_adjusted"], total["p_value"])


# Few individuals


@pytest.mark.parametrize("kind", ["one", "no events", "nine events"])
def test_few_individuals_have_no_interval(kind):
    y, models, country, _ = draw(2, 600)
    by_end = y.censoring_time >= 8
    rows = {
        "one": np.arange(600) == 17,
        "no events": ~y.event & by_end,
        "nine events": (np.cumsum(y.event & by_end) <= 9) & y.event & by_end | (~y.event & by_end),
    }[kind]
    label = np.where(rows, "small", country)
    found = ss.compare(y, models, metric=["brier", "auc"], weighting="administrative", times=TIMES, by={"who": label})
    for source in (found, found.integrated(nan="stop")):
        table = source.contrasts
        small = table[table["who"] == "small"]
        assert small[["lower", "upper", "p_value", "p_adjusted"]].isna().all(axis=None)
        assert set(small["verdict"]) <= {"too few", "unknown"}
        assert not small["reliable"].any()
        assert source.skill.query("who == 'small'")[["lower", "upper"]].isna().all(axis=None)
        if kind != "nine events":
            assert source.scores.query("who == 'small'")[["lower", "upper"]].isna().all(axis=None)
        assert table.query("who == 'DE' and metric == 'brier'")["lower"].notna().any()


def test_an_undefined_segment_does_not_fail_the_others(data):
    y, models, country, _ = data
    short = np.where(y.censoring_time < 5, "new", country)
    with pytest.warns(ss.UndefinedScoreWarning, match=r"in 1 of 5 segments .* such as in segment 'new'") as told:
        found = ss.compare(y, models, weighting=["administrative", "ipcw"], times=TIMES, by=short)
    assert len(told) == 1
    means = found.integrated()
    contrasts = means.contrasts.query("segment == 'new'")
    assert contrasts["difference"].isna().all()
    assert set(contrasts["reason"]) == {
        "no individual has a positive weight", "only individuals with event are left, since the last was censored"
    }  # fmt: skip
    assert (contrasts["verdict"] == "unknown").all()


# Between segments


def test_between_segments_is_the_literal_difference(data):
    y, models, country, _ = data
    t = 4.0
    found = ss.compare(y, models, weighting="administrative", times=[t], by={"country": country}, null=False)
    counted = y.censoring_time >= t
    event_free = y.time > t
    loss = {name: (event_free - curves.at([t])[:, 0]) ** 2 for name, curves in models.items()}
    gain = loss["noisy"] - loss["truth"]
    big = ["DE", "FR", "SE"]
    for of, value in (("difference", gain), ("score", loss["noisy"])):
        table = found.between(of=of, model="noisy").set_index("country")
        assert table.loc["IS", "verdict"] == "too few"
        for label in big:
            here = value[counted & (country == label)]
            there = value[counted & (country != label) & (country != "IS")]
            sizes = {other: np.sum(counted & (country == other)) for other in big if other != label}
            variance = sum(
                (size / sum(sizes.values())) ** 2 * np.var(value[counted & (country == other)], ddof=1) / size
                for other, size in sizes.items()
            )
            row = table.loc[label]
            assert row["against"] == "(others)"
            assert row["difference"] == pytest.approx(here.mean() - there.mean(), rel=1e-9)
            assert row["se"] == pytest.approx(np.sqrt(np.var(here, ddof=1) / here.size + variance), rel=1e-9)
        against = found.between(of=of, model="noisy", against="DE").set_index("country")
        assert list(against.index) == ["FR", "IS", "SE"]
        one, other = (value[counted & (country == label)] for label in ("FR", "DE"))
        assert against.loc["FR", "difference"] == pytest.approx(one.mean() - other.mean(), rel=1e-9)
        if of == "score":  # Welch's test, whose degrees of freedom are the same where events are not rare
            row, wanted = against.loc["FR"], stats.ttest_ind(one, other, equal_var=False)
            assert row["p_value"] == pytest.approx(wanted.pvalue, rel=1e-6)
            interval = wanted.confidence_interval()
            assert (row["lower"], row["upper"]) == pytest.approx((interval.low, interval.high), rel=1e-6)


def test_heterogeneity_is_cochran_s_q(data):
    y, models, country, _ = data
    t = 4.0
    found = ss.compare(y, models, weighting="administrative", times=[t], by={"country": country}, null=False)
    counted = y.censoring_time >= t
    loss = ((y.time > t) - models["noisy"].at([t])[:, 0]) ** 2
    samples = [loss[counted & (country == label)] for label in ("DE", "FR", "SE")]
    weight = np.array([one.size / np.var(one, ddof=1) for one in samples])
    mean = np.array([one.mean() for one in samples])
    q = np.sum(weight * (mean - weight @ mean / weight.sum()) ** 2)
    row = found.heterogeneity(of="score", model="noisy").iloc[0]
    assert (row["n_segments"], row["df"]) == (3, 2)
    assert row["q"] == pytest.approx(q, rel=1e-9)
    spread = np.sum((1 - weight / weight.sum()) ** 2 / [one.size - 1 for one in samples])
    statistic = q / 2 / (1 + 2 * spread / 8)
    assert row["p_value"] == pytest.approx(stats.f.sf(statistic, 2, 8 / 3 / spread), rel=1e-9)
    assert row["p_value"] == pytest.approx(stats.chi2.sf(q, 2), abs=0.02)


def test_groups_that_span_segments_are_not_compared(data):
    y, models, country, _ = data
    asked = {"weighting": "administrative", "times": TIMES, "by": country}
    found = ss.compare(y, models, groups=np.arange(len(y)) // 2, **asked)
    for call in (found.between, found.integrated().heterogeneity):
        with pytest.raises(ss.InputError, match="groups of `groups` have individuals in several segments"):
            call()
    within = ss.compare(y, models, groups=np.char.add(country, (np.arange(len(y)) // 2).astype(str)), **asked)
    assert within.n_spanning == 0
    assert within.integrated().between()["p_value"].notna().any()


# What is given


def test_labels_in_every_form(data):
    y, models, country, plan = data
    asked = {"weighting": "administrative", "times": TIMES[:2], "null": False}
    wanted = ss.compare(y, models, by={"country": country, "plan": plan}, **asked)
    frame = pd.DataFrame({"country": pd.Categorical(country), "plan": plan})
    forms = [frame, pl.DataFrame({"country": country, "plan": plan}), pl.LazyFrame({"country": country, "plan": plan}),
             nw.from_native(frame), {"country": list(country), "plan": plan.astype(float)}]  # fmt: skip
    for form in forms:
        found = ss.compare(y, models, by=form, **asked)
        assert found.by == ("country", "plan")
        assert found.segments == wanted.segments
        assert found.contrasts.equals(wanted.contrasts)
    assert ss.compare(y, models, by=plan * 10.5, **asked).segments == [("10.5",), ("21",)]
    # numbers are in their own order; pairs can be gone through once
    tens = ss.compare(y, iter(models.items()), by=np.arange(len(y)) % 4 * 5 + 2, **asked)
    assert tens.segments == [("2",), ("7",), ("12",), ("17",)]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (lambda c: {"model": c}, "by must not be called 'model', which is a column of the results: rename it"),
        (lambda c: c[:-1], "by: 'segment' has length 899, but y has length 900"),
        (lambda c: np.where(c == "DE", None, c), r"'segment' must be given for each individual: \d+ of 900 are"),
        (lambda c: {"x": [1, "1"] * 450}, "labels of several kinds that read the same, such as '1'"),
        (lambda c: np.where(c == "DE", "(all)", c), r"has the label '\(all\)', which stands for all individuals"),
        (lambda c: {"c": c, "x": np.arange(900) // 2, "y": np.arange(900) % 7}, "'x' has 450 labels"),
    ],
)
def test_labels_that_are_refused(data, by, message, monkeypatch):
    y, models, country, _ = data
    monkeypatch.setattr("survscore.analysis.compare.MOST_SEGMENTS", 100)
    with pytest.raises(ss.InputError, match=message) as raised:
        ss.compare(y, models, weighting="administrative", times=TIMES, by=by(country))
    assert "\n" not in str(raised.value)


# The object


def test_bad_questions_are_refused(found):
    with pytest.raises(ss.InputError, match="stands for all individuals"):
        ss.SegmentedComparison(("country", "plan"), found.total, {("DE", "(all)"): found.total})
    with pytest.raises(ss.InputError, match="against must be one of the 8 segments"):
        found.between(against=("XX", "1"))


# Names and pictures


def nasty(n=700):
    y, models, *_ = draw(6, n)
    return ss.compare(
        y, models, weighting="administrative", times=TIMES, by={"<b>": np.array(NASTY)[np.arange(n) % len(NASTY)]}
    )


def test_nasty_names_are_escaped():
    found = nasty()
    for shown in (found._repr_html_(), found.integrated()._repr_html_()):
        assert "<script>" not in shown
        assert "<b>" not in shown
        assert "&lt;script&gt;" in shown


@pytest.mark.parametrize("n_segments", [7, 60])
def test_the_forest_plot_is_legible(n_segments):
    if n_segments == 7:
        found = nasty()
    else:
        y, models, *_ = draw(6, 2400)
        found = ss.compare(y, models, weighting="administrative", times=TIMES, by=np.arange(2400) % n_segments)
    display = found.plot(model="noisy", most=40)
    ax = display.ax_
    assert len(ax.get_yticklabels()) == min(n_segments, 40) + 1
    assert text_faults(display.figure_) == []
    assert ("the 40 of 60 segments" in ax.get_xlabel()) == (n_segments == 60)
    assert {text.get_text() for text in ax.texts} >= {"← better", "worse →", "n", "events"}
    assert display.to_frame()["n"].iloc[0] == found.total.n
    plt.close("all")
