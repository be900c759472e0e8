"""One recommendation: its rules, and its sentences where one model encodes the entry date, and where none does."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import churn_study
import survscore as ss
from survscore.results.recommendation import Verdict, _Pair

BOTH = ["administrative", "projected"]
CALLED_BETTER = "{} is (significantly better than|as good as or better than)"


@pytest.mark.parametrize("seed", range(10))
def test_a_classifier_that_encodes_the_sign_up_month_is_not_called_better(seed):
    """Administrative scores prefer it; its score over all customers is far worse, which the sentence says."""
    pytest.importorskip("sklearn")
    y, models, truth = churn_study.study(seed)
    expected = {
        name: truth * (1 - m.probabilities) ** 2 + (1 - truth) * m.probabilities**2 for name, m in models.items()
    }
    scores = {name: values.mean() for name, values in expected.items()}
    assert scores["dated"] > 1.2 * scores["dateless"]
    result = ss.compare(y, models, weighting=BOTH, reference="dateless", times=churn_study.MONTHS)
    for found in (result.recommendation(), result.recommendation(time=12.0)):
        dated, parametric, null = found.verdicts
        assert dated.verdict == "worse"
        assert dated.encodes == ("dated",)
        assert "Do not use it for new individuals." in dated.sentence
        assert "probably encodes the entry date" in dated.sentence
        assert "dateless is significantly better than dated" in dated.sentence
        assert "are assumed to have" in dated.sentence
        for sentence in re.split(r"(?<=[.;]) ", dated.sentence):  # called better only among those observed so long
            if re.search(CALLED_BETTER.format("dated"), sentence):
                assert sentence.startswith("Among individuals observed at least")
        assert not parametric.encodes
        assert not null.encodes
        assert parametric.verdict in ("better", "undecided", "depends")
        assert null.verdict == "worse"
    fit = dated.fits[0]
    assert fit.projected_risk > fit.projected_proportion + 0.15
    reverse = result.against("dated").recommendation(time=12.0).verdicts
    assert [one.encodes for one in reverse] == [("dated",)] * 3
    assert [one.verdict for one in reverse][:2] == ["better", "better"]


def honest_study(seed, *, drift=0.0):
    """Two models of the same quality, one that is worse, one that is too optimistic: none knows the entry date."""
    rng, n = np.random.default_rng(seed), 400
    x, end = rng.normal(size=n), rng.uniform(1, 20, n)
    rate = 0.08 * np.exp(0.8 * x + drift * (end < 10))
    event_time = rng.exponential(1 / rate)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    times, plain = np.array([5.0, 10.0]), 0.08 * np.exp(0.8 * x)
    rates = {"a": plain * rng.lognormal(0, 0.3, n), "b": plain * rng.lognormal(0, 0.3, n)}
    rates |= {"worse": plain * rng.lognormal(0, 0.8, n), "optimistic": 0.6 * plain}
    models = {name: ss.SurvivalCurves(np.exp(-one[:, None] * times), times) for name, one in rates.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.FewFollowedWarning)
        return ss.compare(y, models, weighting=BOTH, times=times, reference="a")


def test_honest_models_are_not_accused():
    """Of 200 studies at most 5 % accuse any model, and at most 5 % call one of two equal models better."""
    accused = decided = wrong = 0
    for seed in range(200):
        verdicts = honest_study(seed).recommendation(time=10.0).verdicts
        accused += any(one.encodes for one in verdicts)
        decided += verdicts[0].verdict in ("better", "worse")
        wrong += verdicts[1].verdict == "better"
    assert accused <= 10
    assert decided <= 16  # 5 % are expected; the 99 % quantile of Bin(200, 0.05) is 18
    assert wrong == 0


def test_honest_models_are_not_accused_where_hazards_change():
    """Late starters have twice the hazard: their statuses differ from what honest models predict, and so theta-hat."""
    found = [honest_study(seed, drift=0.7).recommendation(time=10.0).verdicts for seed in range(40)]
    assert sum(any(one.encodes for one in verdicts) for verdicts in found) <= 2
    said = [verdicts for verdicts in found if any("Late starters had" in one.sentence for one in verdicts)]
    assert len(said) > 20


def pair(**changes):
    """Return one pair whose projected difference is significant and steady, as administrative scores have it."""
    y, models, _ = churn_study.study_without_fits(3)
    result = ss.compare(y, models, weighting=BOTH, reference="coarse", times=[12.0], null=False)
    (verdict,) = result.recommendation().verdicts
    point = replace(
        verdict.sensitivity, difference=-0.02, lower=-0.03, upper=-0.01, verdict="better", tipping_lower=0.4,
        tipping_upper=np.inf, hazard_ratio=1.1, ratio_lower=0.9, ratio_upper=1.3,
    )  # fmt: skip
    fits = tuple(replace(fit, z=0.0, observed_score=0.2, projected_score=0.2) for fit in verdict.fits)
    numbers = {"point": point, "p_value": 0.001, "se": 0.005, "administrative": (-0.02, -0.04, 0.01, 0.01)}
    numbers |= {"share": 0.6, "fits": fits, "level": 0.95, "undefined": ""}
    of_point = {name: changes.pop(name) for name in list(changes) if hasattr(point, name)}
    return _Pair(**{**numbers, "point": replace(point, **of_point), **changes}).verdict()


def test_a_significant_and_steady_difference_is_a_verdict():
    found = pair()
    assert isinstance(found, Verdict)
    assert found.verdict == "better"
    assert found.sentences == (
        "fine is significantly better than coarse at 12 for all individuals: its projected Brier score is lower by "
        "0.0200 (95 % interval 0.0100 to 0.0300, p = 0.001). The sign would change with less than 0.4 times the "
        "assumed hazard of those not yet followed.",
    )
    assert found.scope == (
        "All individuals include the 40 % observed for less than 12, who are assumed to have, from their last day on, "
        "the hazards of individuals of similar predicted risk who were observed longer."
    )
    assert found.would_change == "less than 0.4 times the assumed hazard of those not yet followed"
    assert pair(difference=0.02, lower=0.01, upper=0.03, verdict="worse", administrative=(0.1,) * 4).verdict == "worse"


def test_a_sign_that_plausible_hazards_change_is_no_verdict():
    found = pair(tipping_lower=0.95)
    assert found.verdict == "depends"
    assert "depends on those not yet followed" in found.sentence
    assert "Late starters had 1.10 times the hazard" in found.sentence
    assert "significantly better" not in found.sentence
    excluded = pair(tipping_upper=1.5, hazard_ratio=1.6, ratio_lower=1.3, ratio_upper=2.0)
    assert excluded.verdict == "depends"
    assert "No verdict: late starters had 1.60 times the hazard" in excluded.sentence
    steady = pair(hazard_ratio=1.6, ratio_lower=1.3, ratio_upper=2.0)
    assert steady.verdict == "better"
    assert "Late starters had 1.60 times" in steady.sentence
    # without an estimate, the sign must hold from 1/2 to 2, unless nobody started late
    unknown = {"hazard_ratio": np.nan, "ratio_lower": np.nan, "ratio_upper": np.nan}
    assert pair(**unknown, ratio_reason="those with C* < t have no event", tipping_upper=1.9).verdict == "depends"
    assert pair(**unknown, ratio_reason="those with C* < t have no event", tipping_upper=2.1).verdict == "better"
    assert pair(**unknown, ratio_reason="nobody has C* < t", tipping_upper=1.1).verdict == "better"


def test_a_difference_that_is_not_significant_is_not_decided():
    found = pair(verdict="undecided", lower=-0.03, upper=0.01, administrative=(0.02, 0.01, 0.03, 0.005))
    assert found.verdict == "undecided"
    assert found.sentence.startswith("Not decided: fine is not significantly different from coarse at 12")
    assert "Only for individuals observed at least 12 is coarse significantly better" in found.sentence
    assert pair(difference=np.nan, undefined="few are followed").sentences == (
        "fine and coarse cannot be compared at 12: few are followed.",
    )


def test_a_contradiction_names_both_populations():
    """An accusation needs that predictions fit late starters badly; a contradiction alone is none."""
    opposite = (0.01, 0.005, 0.015, 0.002)
    found = pair(administrative=opposite)
    assert found.verdict == "better"
    assert not found.encodes
    assert (
        "Among individuals observed at least 12, coarse is significantly better than fine; for the 40 %"
        in found.sentence
    )
    assert "encodes" not in found.sentence
    fine, coarse = found.fits
    coarse = replace(coarse, z=5.0, projected_score=0.48, projected_risk=0.9, projected_proportion=0.4)
    accused = pair(administrative=opposite, fits=(fine, coarse))
    assert accused.encodes == ("coarse",)
    assert accused.sentences[0] == (
        "Among individuals observed at least 12, coarse is significantly better than fine; for the 40 % observed for "
        "less, its projected Brier score is 2.4 times as high: it probably encodes the entry date. Do not use it for "
        "new individuals."
    )
    assert "0.90 against 0.40 projected among the latter" in accused.sentences[1]
    winner = pair(fits=(replace(fine, z=5.0), coarse)).sentence
    assert "fine probably encodes the entry date" in winner
    assert "coarse probably encodes the entry date" in winner


def test_recommendations_are_printed_first_and_are_data():
    y, models, _ = churn_study.study_without_fits(4)
    result = ss.compare(y, models, metric=["brier", "log"], weighting=BOTH, reference="coarse", times=[6.0, 12.0])
    found = result.recommendation()
    assert str(result).replace("\n  ", " ").startswith(found.sentences[0])
    assert found.sentences[0].split(".")[0] in result.to_html()
    table = found.to_frame()
    assert list(table["verdict"]) == [one.verdict for one in found.verdicts]
    assert {"from", "to", "sentence", "would_change", "model_projected_risk", "tipping_upper"} <= set(table)
    by_log = result.recommendation(metric="log", time=6.0)
    assert "projected logarithmic loss" in str(by_log)
    assert "at 6" in str(by_log)
    only = ss.compare(y, models, weighting="projected", times=[12.0])
    assert not only.has_recommendation
    assert "significantly" not in str(only).split("individuals;")[0]
    with pytest.raises(ss.InputError, match="administrative and projected scores by a loss"):
        only.recommendation()


def test_the_report_and_the_table_of_verdicts_say_the_same():
    from survscore.reports import summarise

    y, models, _ = churn_study.study_without_fits(5)
    models["leaking"] = ss.SurvivalCurves(
        np.where(y.censoring_time[:, None] < churn_study.MONTHS, 0.02, models["fine"].probabilities),
        churn_study.MONTHS, monotone="keep",
    )  # fmt: skip
    found = summarise(y, models, metric="brier", weighting=[*BOTH, "ipcw"], times=[12.0], reference="fine")
    compared = ss.compare(y, models, weighting=[*BOTH, "ipcw"], times=[12.0], reference="fine")
    recommended = compared.recommendation()
    answer = found["answer"]["brier"]
    assert answer["sentence"] == recommended.headline
    assert "leaking probably encodes the entry date: do not use for new individuals" in answer["sentence"]
    assert answer["recommendation"]["sentences"][: len(recommended.sentences)] == recommended.sentences
    assert answer["recommendation"]["trust"] == "with care"
    assert answer["recommendation"]["heading"] == "do not use leaking for new individuals"
    rows = zip(*(found["verdicts"][name] for name in ("model", "weighting", "sentence")), strict=True)
    verdicts = {(model, weighting): sentence for model, weighting, sentence in rows}
    assert verdicts["leaking", "projected (own ranks)"] == recommended.verdicts[1].sentence
    assert "for individuals with C* ≥ t only" in verdicts["leaking", "administrative"]
    cards = {(card["model"], card["reference"]): card for card in answer["cards"]}
    assert "leaking probably encodes the entry date." in cards["leaking", "fine"]["notes"]
