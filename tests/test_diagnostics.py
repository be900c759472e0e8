"""Models that encode C* are found and honest ones are not, and so are data on which IPCW is misled."""

import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import survscore as ss
from calendar_study import CalendarStudy
from combinations import nightly_but
from survscore.analysis import censoring_leak
from survscore.analysis import diagnose as diagnosis
from survscore.analysis.censoring_leak import as_features
from survscore.analysis.ipcw_evidence import Answer, PairContrast, contrasts_of
from survscore.inference.estimate import Estimate
from survscore.inference.intervals import normal_quantile
from survscore.simulate import ConstantHazardStudy

GRID = np.arange(1.0, 101.0)


@pytest.fixture(scope="module")
def sample():
    return ConstantHazardStudy(hazard=0.002).sample(2000, seed=3)


@pytest.fixture(scope="module")
def models(sample):
    truth = sample.survival(GRID)
    known = sample.outcomes.censoring_time[:, None] > GRID
    return {"truth": truth, "leaking": ss.SurvivalCurves(truth.probabilities * known, GRID, interpolation="step")}


@pytest.fixture(scope="module")
def found(sample, models):
    return ss.diagnose(sample.outcomes, models)


# What is computed


def before(curves, i, t):
    """Return a step curve's left limit, by a loop."""
    value = 1.0
    for k, time in enumerate(curves.times):
        if time < t:
            value = curves.probabilities[i, k]
    return value


def test_means_are_those_of_a_literal_loop(sample):
    y = sample.outcomes[:60]
    curves = ss.SurvivalCurves(
        np.linspace(0.95, 0.1, 100) ** np.linspace(0.5, 2, 60)[:, None], GRID, interpolation="step"
    )
    found = ss.diagnose(y, {"a": curves}, width=8)
    chosen = [i for i in range(60) if 8 <= y.censoring_time[i] <= 92]
    wanted = [
        np.mean([before(curves, i, max(y.censoring_time[i] + offset, 0)) for i in chosen]) for offset in found.offsets
    ]
    assert found.n == len(chosen)
    assert np.allclose(found.survival["a"], wanted, rtol=0, atol=1e-14)


@pytest.fixture(scope="module")
def gridded():
    """Whole-numbered C*, so that others are read at the very ages."""
    rng = np.random.default_rng(5)
    end = rng.integers(1, 21, 600).astype(float)
    rate = rng.gamma(4, 0.01, 600)
    grid = np.arange(1.0, 21.0)
    curves = ss.SurvivalCurves(
        np.exp(-rate[:, None] * grid) * np.where(grid > end[:, None], 0.7, 1.0), grid, interpolation="step"
    )
    event_time = rng.exponential(1 / rate)
    return ss.Outcomes(np.minimum(event_time, end), event_time <= end, end), curves


def test_falls_are_those_of_a_literal_loop(gridded):
    y, curves = gridded
    end, width = y.censoring_time, 2.0
    found = ss.diagnose(y, {"a": curves}, width=width)
    offsets = found.placebo["offset"].to_numpy()
    assert offsets.tolist() == [0, -2, -7, -8]
    chosen = [
        i for i in range(len(y)) if end[i] >= 8 and (end >= end[i] + 5 * width).sum() >= censoring_leak.LEAST_OTHERS
    ]
    for offset, fall, fall_of_others in found.placebo.drop(columns="model").to_numpy():
        alive, lost, expected = 0.0, 0.0, 0.0
        for i in chosen:
            start = end[i] + offset
            own = before(curves, i, start)
            alive, lost = alive + own, lost + own - before(curves, i, start + width)
            others = np.flatnonzero(end >= end[i] + 5 * width)
            first, second = (sum(before(curves, k, t) for k in others) for t in (start, start + width))
            expected += own * (1 - second / first)
        assert fall == pytest.approx(lost / alive, rel=1e-12)
        assert fall_of_others == pytest.approx(expected / alive, rel=1e-12)
    hazards = -np.log1p(-found.placebo[["fall", "fall_of_others"]].to_numpy()) + censoring_leak.TRIFLE
    ratios = hazards[:, 0] / hazards[:, 1]
    row = found.models.iloc[0]
    assert row["ratio"] == pytest.approx(ratios[0] / np.sqrt(ratios[2] * ratios[3]), rel=1e-12)
    assert row["onset"] == pytest.approx(hazards[0, 0] / hazards[1, 0], rel=1e-12)
    assert row["excess"] == pytest.approx(row["fall_after"] - row["fall_elsewhere"])
    elsewhere = -np.log1p(-row["fall_elsewhere"]) + censoring_leak.TRIFLE
    assert hazards[0, 0] / elsewhere == pytest.approx(row["ratio"], rel=1e-12)


def test_limits_are_those_of_the_jackknife(gridded):
    y, curves = gridded
    n, level = len(y), 0.9

    def values(rows):
        one = censoring_leak.Windows.of(y.censoring_time[rows], 2.0, 20.0).leak(curves[rows], None, level)
        ratio, onset, *others = (
            (found.value, found.lower, found.upper) for found in (one.ratio, one.onset, one.excess, one.after)
        )
        return np.array([np.log(ratio), np.log(onset), *others])

    whole, lower, upper = values(np.arange(n)).T
    left_out = np.array([values(np.delete(np.arange(n), i))[:, 0] for i in range(n)])
    se = np.sqrt((n - 1) / n * np.square(left_out - left_out.mean(axis=0)).sum(axis=0))
    assert np.allclose((upper - lower) / 2 / normal_quantile(level), se, rtol=0.03)
    assert np.allclose((upper + lower) / 2, whole)


@pytest.mark.parametrize("weighting", ["ipcw", "training", "divided by n", "capped"])
def test_differences_are_those_of_compare_and_their_limits_too(sample, models, weighting):
    y = sample.outcomes[:600]
    train = sample.outcomes[600:900]
    asked = {
        "ipcw": ss.IPCW(),
        "training": ss.IPCW(train),
        "divided by n": ss.IPCW(train, normalize="n"),
        "capped": ss.IPCW(max_weight=3),
    }[weighting]
    some = {name: curves[:600] for name, curves in models.items()}
    times = np.arange(5.0, 81.0, 5.0)
    pairs = ss.diagnose(y, some, weighting=asked, times=times).pairs
    contrasts = ss.compare(
        y, some, weighting=[asked, "administrative", "projected"], times=times, reference="Kaplan-Meier"
    )
    table = contrasts.integrated().contrasts
    for label, column in zip(contrasts.weightings, ("ipcw", "administrative", "projected"), strict=True):
        wanted = table[table["weighting"] == label].set_index("model")
        for _, row in pairs[pairs["reference"] == "Kaplan-Meier"].iterrows():
            assert row[column] == pytest.approx(wanted["difference"][row["model"]], rel=1e-9)
            length = row[f"{column}_upper"] - row[f"{column}_lower"]
            limits = wanted.loc[row["model"], ["lower", "upper"]]
            assert length == pytest.approx(limits["upper"] - limits["lower"], rel=0.02)
    assert np.allclose(pairs["ipcw_minus_administrative"], pairs["ipcw"] - pairs["administrative"])


def test_advice_is_by_the_projected_score():
    rng = np.random.default_rng(1)
    rate = rng.gamma(2, 0.05, 2000)
    event_time, end = rng.exponential(1 / rate), rng.uniform(2, 20, 2000)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    honest = np.exp(-rate[:, None] * np.arange(1.0, 16.0))
    vague = 0.5 * honest + 0.5 * honest.mean(axis=0)
    after = end[:, None] < np.arange(1.0, 16.0)
    models = {"vague": vague, "leaking": np.where(after, 0.02 * honest, honest)}
    models = {name: ss.SurvivalCurves(one, np.arange(1.0, 16.0), interpolation="step") for name, one in models.items()}
    found = ss.diagnose(y, models, times=[6, 9, 12])
    pair = found.pairs.set_index(["model", "reference"]).loc[("vague", "leaking")]
    assert pair["administrative"] > 0 > pair["projected_upper"]
    assert pair["ipcw_lower"] > 0
    assert pair["contradicts"]
    told = "by IPCW, leaking is significantly better than Kaplan-Meier, and by the projected score significantly worse"
    assert told in found.sentences[0]
    assert found.sentences[1].startswith("Use the projected score, which counts all individuals")
    assert "use the administrative score" not in str(found)


def test_limits_of_what_two_weightings_differ_by_are_those_of_the_jackknife():
    sample = ConstantHazardStudy(hazard=0.002).sample(150, seed=9)
    y, truth = sample.outcomes, sample.survival(GRID)
    rough = ss.SurvivalCurves(truth.probabilities * (y.censoring_time[:, None] + 5 > GRID), GRID, interpolation="step")
    times = np.arange(5.0, 71.0, 5.0)

    def contrast(rows):
        both = {"a": rough[rows], "b": truth[rows]}
        pairs, time_range = contrasts_of(y[rows], both, ss.IPCW(), times, None, 0.95)
        assert time_range == (5, 70)
        return pairs[-1].difference.value, pairs[-1].difference.lower

    everybody = np.arange(len(y))
    value, lower = contrast(everybody)
    left_out = np.array([contrast(np.delete(everybody, i))[0] for i in range(len(y))])
    se = np.sqrt((len(y) - 1) / len(y) * np.square(left_out - left_out.mean()).sum())
    assert value - lower == pytest.approx(1.976 * se, rel=0.06)


def test_weights_and_caps_are_those_of_the_scores(sample, models, found):
    y = sample.outcomes
    score = ss.brier_score(y, models["truth"], weighting="ipcw", times=found.weights["time"])
    assert np.allclose(found.weights["n_effective"], score.n_effective)
    terms = ss.score_terms(y, models["truth"], weighting="ipcw", times=found.weights["time"][1:])
    assert np.allclose(found.weights["largest_weight"][1:], terms.weights.max(axis=0))
    shares = terms.weights.max(axis=0) / terms.weights.sum(axis=0)
    assert np.allclose(found.weights["largest_share"][1:], shares)
    assert (found.weights["n_weighted"][1:] == (terms.weights > 0).sum(axis=0)).all()
    for cap in (1, 2, 5, 10, None):
        part = found.caps[found.caps["max_weight"] == (np.inf if cap is None else cap)].set_index("model")
        for name, curves in models.items():
            wanted = ss.brier_score(y, curves, weighting=ss.IPCW(max_weight=cap)).integrated().value
            assert part["score"][name] == pytest.approx(wanted)
        assert part["rank"].to_dict() == {"truth": 2, "leaking": 1}


# What is answered


def test_a_leak_is_told_and_the_truth_is_not(found):
    table = found.to_frame().set_index("model")
    assert table.verdict.to_dict() == {"truth": "no sign", "leaking": "encodes C*"}
    lost = 1 - 0.998 ** (10 * found.width)
    assert table.fall_after["truth"] == pytest.approx(lost, abs=0.02)
    assert table.fall_elsewhere["leaking"] == pytest.approx(lost, abs=0.02)
    assert table.fall_after["leaking"] == pytest.approx(1)
    assert table.ipcw_minus_administrative_upper["leaking"] < 0
    assert found.ipcw == "misleading"
    said = repr(found)
    assert said.startswith("IPCW is misleading here: leaking encodes the censoring time")
    assert "No sign was found that truth encodes the censoring time: it falls by " in said
    assert len(pickle.dumps(found)) < 50_000


STUDIES = [
    CalendarStudy(trend=4, cohort=3),
    CalendarStudy(0.004, trend=0.25, jump=2, cohort=3),
    CalendarStudy(jump=3, drop_out=0.005),
    CalendarStudy(wave=5),
]


CLEAR, FAVOUR, NONE = (0.3, 0.2, 0.4), (-0.02, -0.03, -0.01), (np.nan,) * 3


CLEAR, FAVOUR, NONE = (0.3, 0.2, 0.4), (-0.02, -0.03, -0.01), (np.nan,) * 3


CLEAR, FAVOUR, NONE = (0.3, 0.2, 0.4), (-0.02, -0.03, -0.01), (np.nan,) * 3


@pytest.mark.statistical
@pytest.mark.parametrize("study", nightly_but(STUDIES[-1:], STUDIES), ids=str)
def test_models_without_a_leak_are_not_flagged(study):
    """The whole table is made by benchmarks/diagnosis.py: no false alarm in 200 data sets."""
    sample, train = study.sample(1000, 50), study.sample(1000, 60)
    verdicts = ss.diagnose(sample.y, sample.honest(train)).models.set_index("model")["verdict"]
    assert verdicts["truth"] == ("no sign" if study.jump * study.wave == 1 else "unclear")
    assert set(verdicts.drop("truth")) == {"no sign"}


@pytest.mark.statistical
@pytest.mark.parametrize("seed", nightly_but([0], range(2)))
def test_models_are_found_that_know_censoring_times_roughly(seed):
    """Covariates with R2 = 0.8; the whole table is made by benchmarks/diagnosis.py."""
    sample = CalendarStudy(r2=0.8).sample(5000, 70 + seed)
    leaks = {"classifiers": sample.leaking(), "product": sample.product()}
    found = ss.diagnose(sample.y, {"truth": sample.truth, **leaks})
    assert found.models["verdict"].tolist() == ["no sign", "encodes C*", "encodes C*"]
    assert found.ipcw == "misleading"


def test_weightings_that_contradict_each_other_are_told_though_nobody_leaks():
    study = CalendarStudy(trend=0.2, cohort=0.3)
    sample, train = study.sample(3000, 1), study.sample(3000, 2)
    found = ss.diagnose(sample.y, sample.honest(train))
    assert set(found.models["verdict"]) == {"no sign"}
    assert found.ipcw == "misleading"
    assert found.pairs["contradicts"].any()
    assert "significantly" in found.sentences[0]


@pytest.mark.parametrize(
    ("ratio", "excess", "onset", "favour", "verdict", "said"),
    [
        ((5, 4, 6), CLEAR, 2.0, FAVOUR, "encodes C*", "5 times as steeply, 95 % interval 4 to 6"),
        ((5, 4, 6), CLEAR, 2.0, (-0.02, -0.05, 0.01), "unclear", "IPCW does not rate it better"),
        ((5, 4, 6), CLEAR, 2.0, NONE, "unclear", "IPCW does not rate it better"),
        ((3.5, 2.9, 4), CLEAR, 2.0, FAVOUR, "unclear", "a change of the hazard"),
        ((5, 4, 6), (0.06, 0.04, 0.08), 2.0, FAVOUR, "unclear", "a change of the hazard"),
        ((1.4, 1.1, 1.8), CLEAR, 2.0, FAVOUR, "no sign", "No sign was found that net"),
        (NONE, NONE, 2.0, FAVOUR, "too few", "predicted survival is zero"),
        ((5, 4, 6), CLEAR, 1.1, FAVOUR, "unclear", "about as steep right before C*"),
    ],
)
def test_two_witnesses_must_agree(ratio, excess, onset, favour, verdict, said):
    def estimate(value, lower, upper):
        return Estimate(value, lower=lower, upper=upper)

    falls, begins = np.zeros(4), estimate(onset + 0.1, onset, onset + 0.2)
    seen = censoring_leak.CensoringLeak(
        estimate(0.4, 0.3, 0.5), 0.1, estimate(*excess), estimate(*ratio), begins, falls, falls
    )
    none = Estimate()
    answer = Answer("net", seen, PairContrast("net", "Kaplan-Meier", none, none, estimate(*favour), none))
    assert answer.verdict == verdict
    assert said in answer.sentence(0.95, "")


# Covariates


def test_covariates_that_tell_the_censoring_time_are_found(sample, models):
    y, truth = sample.outcomes[:600], {"truth": models["truth"][:600]}
    told = ss.diagnose(y, truth, X=sample.covariates[:600])
    assert 0.97 < told.censoring_r2.lower < told.censoring_r2.value < told.censoring_r2.upper
    assert "Covariates predict 100 % of the variance of C*" in repr(told)
    noise = np.random.default_rng(1).normal(size=(len(y), 3))
    unrelated = ss.diagnose(y, truth, X=noise, groups=np.arange(600) // 3).censoring_r2
    assert unrelated.lower < unrelated.value < 0.01


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, "numpy"])
def test_covariates_may_be_text_categories_dates_and_missing(sample, models, library):
    y = sample.outcomes[:400]
    quarter = (y.censoring_time // 25).astype(int)
    campaign = [None if i % 50 == 0 else "dbca"[k] for i, k in enumerate(quarter)]
    start = (np.datetime64("2024-01-01", "s") - (86400 * quarter).astype("timedelta64[s]")).tolist()
    columns = {"campaign": campaign, "number": np.where(np.arange(400) % 7 == 0, np.nan, 1.0), "start": start}
    X = np.array([campaign, columns["number"].tolist()], dtype=object).T if library == "numpy" else library(columns)
    features = as_features(X)
    assert [kind.name == "category" for kind in features.dtypes] == [True, False, False][: features.shape[1]]
    assert features.iloc[::50, 0].isna().all()
    found = ss.diagnose(y, {"truth": models["truth"][:400]}, X=X)
    assert 0.8 < found.censoring_r2.value < 1


def test_too_little_to_compare_is_told(sample):
    y, truth = sample.outcomes[:100], sample.survival(GRID)[:100]
    same = ss.Outcomes(np.minimum(y.time, 50), y.event & (y.time <= 50), np.full(100, 50.0))
    found = ss.diagnose(same, {"truth": truth}, X=np.arange(100.0)[:, None])
    assert found.models["verdict"].tolist() == ["too few"]
    assert "all C* are equal, so that there are no others to compare with" in repr(found)
    assert np.isnan(found.censoring_r2.value)
    few = ss.diagnose(y[:40], {"truth": truth[:40]})
    assert few.models["verdict"].tolist() == ["too few"]
    assert few.placebo.empty


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 50}, "width must be positive, and less than half of 100"),
        ({"weighting": "administrative"}, r"weighting must be 'ipcw' or IPCW\(...\)"),
        ({"X": np.zeros((5, 1))}, "X has length 5"),
        ({"X": np.zeros((2000, 0))}, "X has no columns"),
        ({"X": np.zeros((2000, 1), dtype=complex)}, "X: column '0' must hold numbers, booleans, text"),
        (
            {"models": {"a": ss.CurveBatches(lambda: [ss.SurvivalCurves(np.ones((2000, 1)), [1.0])], n=2000)}},
            "the curves of 'a' must be in memory",
        ),
    ],
)
def test_bad_requests_are_refused(sample, models, options, message):
    with pytest.raises(ss.InputError, match=message):
        ss.diagnose(sample.outcomes, **{"models": models, **options})


def test_outcomes_that_allow_for_no_diagnosis_are_refused(sample):
    y, truth = sample.outcomes, sample.survival(GRID)
    with pytest.raises(ss.InputError, match="needs outcomes with censoring_time"):
        ss.diagnose(ss.Outcomes(y.time, y.event), {"truth": truth})
    with pytest.raises(ss.InputError, match="are too few to learn from"):
        ss.diagnose(y[:9], {"truth": truth[:9]}, X=np.zeros((9, 1)), width=2)
    late = ss.Outcomes([1.0, 2], [1, 0], [99.5, 2])
    with pytest.raises(ss.InputError, match="no individual has a censoring_time from 10 to 90"):
        ss.diagnose(late, {"truth": truth[:2]}, width=10)


def test_without_scikit_learn_it_says_what_to_install(sample, models, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ImportError, match=r"X needs scikit-learn: pip install 'survscore\[models\]'"):
        ss.diagnose(sample.outcomes, models, X=sample.covariates)


# Odd data


def test_predictions_of_zero_and_infinite_censoring_times(sample, models):
    y = sample.outcomes
    end = np.where(np.arange(len(y)) % 10 == 0, np.inf, y.censoring_time)
    event = y.event | np.isinf(end)
    never = ss.SurvivalCurves(np.zeros((len(y), GRID.size)), GRID, interpolation="step")
    found = ss.diagnose(ss.Outcomes(y.time, event, end), {**models, "never": never})
    assert found.models["verdict"].tolist() == ["no sign", "encodes C*", "too few"]
    assert "its predicted survival is zero before C*" in repr(found)


@pytest.mark.filterwarnings("ignore::survscore.DelayedEntryWarning")  # since the end is taken for the event
def test_nobody_censored_needs_no_weights(sample, models):
    y = ss.Outcomes(sample.outcomes.time, np.ones(len(sample.outcomes)), sample.outcomes.censoring_time)
    found = ss.diagnose(y, {"truth": models["truth"]})
    assert found.ipcw == "not needed"
    assert found.sentences[0].startswith("Weights are not needed here: no individual is censored")


def test_a_model_may_have_the_name_of_the_null_model(sample, models):
    named = {"Kaplan-Meier": models["truth"], "leaking": models["leaking"]}
    found = ss.diagnose(sample.outcomes, named)
    assert found.models["model"].tolist() == ["leaking"]
    assert list(found.survival) == ["Kaplan-Meier", "leaking"]


def test_one_time_has_no_mean_score(sample, models):
    found = ss.diagnose(sample.outcomes, models, times=[50.0])
    assert found.time_range is None
    assert found.models["verdict"].tolist() == ["no sign", "unclear"]
    assert found.pairs.empty
    assert found.caps.empty


@pytest.mark.parametrize("censoring", ["kaplan-meier", "curves", "strata"])
def test_of_many_individuals_some_are_drawn(sample, models, monkeypatch, censoring):
    monkeypatch.setattr(diagnosis, "MOST_ROWS", 1500)
    y = sample.outcomes
    curves = ss.SurvivalCurves(np.tile(1 - GRID / 110, (len(y), 1)), GRID)
    given = {"kaplan-meier": {}, "curves": {"censoring": curves}, "strata": {"strata": np.arange(len(y)) % 2}}
    weighting = ss.IPCW(**given[censoring])
    asked = {"weighting": weighting, "times": np.arange(5.0, 90.0, 5.0), "groups": np.arange(len(y)) // 2}
    first, second, other = (ss.diagnose(y, models, **asked, seed=seed) for seed in (0, 0, 1))
    assert first.models.equals(second.models)
    assert not first.models.equals(other.models)
    assert first.models["verdict"].tolist() == ["no sign", "encodes C*"]
    assert len(first.pairs) == 3
