"""One recommendation: its rules, and its sentences where one model encodes the entry date, and where none does."""

import re
from dataclasses import replace

import numpy as np
import pytest

import churn_study
import survscore as ss
from survscore.results.recommendation import MUCH

BOTH = ["administrative", "projected"]


@pytest.mark.parametrize("seed", range(3))
def test_a_classifier_that_encodes_the_sign_up_month_is_not_called_better(seed):
    """Administrative scores prefer it; its score over all customers is far worse, which the sentence says."""
    pytest.importorskip("sklearn")
    y, models, truth = churn_study.study(seed)
    scores = {
        name: np.mean(truth * (1 - m.probabilities) ** 2 + (1 - truth) * m.probabilities**2)
        for name, m in models.items()
    }
    assert scores["dated"] > 1.2 * scores["dateless"]
    result = ss.compare(y, models, weighting=BOTH, reference="dateless", times=churn_study.MONTHS)
    for found in (result.recommendation(), result.recommendation(time=12.0)):
        dated, parametric, null = found.verdicts
        assert (dated.verdict, dated.encodes) == ("worse", ("dated",))
        assert "Do not use it for new individuals." in dated.sentence
        assert "dateless is significantly better than dated" in dated.sentence
        assert dated.sentence.count("probably encodes the entry date") == 1
        for sentence in re.split(r"(?<=[.;]) ", dated.sentence):  # called better only among those observed so long
            if re.search("dated is (significantly better than|as good as or better than)", sentence):
                assert sentence.startswith("Among individuals with C* >= ")
        assert not parametric.encodes
        assert not null.encodes
        assert parametric.verdict in ("better", "undecided", "depends")
        assert null.verdict == "worse"
    fit = dated.fits[0]
    assert fit.projected_risk > fit.projected_proportion + 0.15
    reverse = result.against("dated").recommendation(time=12.0).verdicts
    assert [one.encodes for one in reverse] == [("dated",)] * 3
    assert [one.verdict for one in reverse][:2] == ["better", "better"]


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
    of_point = {name: changes.pop(name) for name in list(changes) if hasattr(point, name)}
    hazards = "the hazards of individuals of similar predicted risk who were observed longer"
    numbers = {"p_value": 0.001, "se": 0.005, "share_observed": 0.6, "share_dropped_out": 0.0, "fits": fits}
    numbers |= {"hazards": hazards, "undefined": "", "interpolation": 0.0}
    limits = ("administrative", "administrative_lower", "administrative_upper")
    numbers |= zip(limits, changes.pop("administrative", (-0.02, -0.04, 0.01)), strict=True)
    return replace(verdict, sensitivity=replace(point, **of_point), **{**numbers, **changes})


def test_a_significant_and_steady_difference_is_a_verdict():
    found = pair()
    assert found.verdict == "better"
    assert found.sentences == (
        "fine is significantly better than coarse at 12: its projected Brier score is lower by 0.0200 (95 % interval "
        "0.0100 to 0.0300, p = 0.001). The sign would change with less than 0.4 times the assumed hazard of those with "
        "hidden status.",
    )
    assert found.scope == (
        "Verdicts refer to all individuals, including the 40 % who could be observed for less than 12 (C* < 12). Those "
        "with hidden status are assumed to have, from the end of their follow-up on, the hazards of individuals of "
        "similar predicted risk who were observed longer."
    )
    assert found.would_change == "less than 0.4 times the assumed hazard of those with hidden status"
    assert pair(difference=0.02, lower=0.01, upper=0.03, verdict="worse", administrative=(0.1,) * 3).verdict == "worse"


def test_a_sign_that_plausible_hazards_change_is_no_verdict():
    found = pair(tipping_lower=0.95)
    assert found.verdict == "depends"
    assert "Late starters had 1.10 times the hazard" in found.sentence
    assert "significantly better" not in found.sentence
    excluded = pair(tipping_upper=1.5, hazard_ratio=1.6, ratio_lower=1.3, ratio_upper=2.0)
    assert excluded.verdict == "depends"
    assert "No verdict: late starters had 1.60 times the hazard" in excluded.sentence
    assert pair(hazard_ratio=1.6, ratio_lower=1.3, ratio_upper=2.0).verdict == "better"
    # without an estimate, the sign must hold from 1/2 to 2, unless no status is hidden
    unknown = {"hazard_ratio": np.nan, "ratio_lower": np.nan, "ratio_upper": np.nan}
    assert pair(**unknown, ratio_reason="those with C* < t have no event", tipping_upper=1.9).verdict == "depends"
    assert pair(**unknown, ratio_reason="those with C* < t have no event", tipping_upper=2.1).verdict == "better"
    known = {"share_observed": 1.0, "ratio_reason": "no individual has C* < t"}
    assert pair(**unknown, **known, tipping_upper=1.1).verdict == "better"


def test_a_difference_that_is_not_significant_is_not_decided():
    found = pair(verdict="undecided", lower=-0.03, upper=0.01, administrative=(0.02, 0.01, 0.03))
    assert found.verdict == "undecided"
    assert "Only among individuals with C* >= 12 is coarse significantly better" in found.sentence
    known = pair(verdict="undecided", lower=-0.03, upper=0.01, share_observed=1.0)
    assert known.sentences == (
        "Not decided: fine is not significantly different from coarse at 12 (difference in projected Brier score "
        "-0.0200, 95 % interval -0.0300 to 0.0100, p = 0.001). More individuals would be needed.",
    )
    assert (known.would_change, known.scope) == ("more individuals", "")
    assert known.assumption == "none: the status of each individual is known"
    on_other_times = pair(verdict="undecided", lower=-0.05, upper=0.01, interpolation=0.025)
    assert "the difference is within the error of interpolation (0.0250)." in on_other_times.sentences[0]
    assert on_other_times.would_change == "predictions of both models at the same times"
    assert pair(difference=np.nan, undefined="few are followed").sentences == (
        "fine and coarse cannot be compared at 12: few are followed.",
    )


def test_a_contradiction_names_both_populations():
    """An accusation needs that predictions fit late starters badly; a contradiction alone is none."""
    opposite = (0.01, 0.005, 0.015)
    found = pair(administrative=opposite)
    assert (found.verdict, found.encodes) == ("better", ())
    assert (
        "Among individuals with C* >= 12, by the administrative score, coarse is significantly better than fine; among "
        "those with C* < 12 (40 %), its projected Brier score is 1 times as high." in found.sentence
    )
    fine, coarse = found.fits
    coarse = replace(coarse, z=5.0, projected_score=0.48, projected_risk=0.9, projected_proportion=0.4)
    assert not pair(administrative=opposite, fits=(fine, replace(coarse, z=0.99 * MUCH))).encodes
    accused = pair(administrative=opposite, fits=(fine, coarse))
    assert accused.encodes == ("coarse",)
    assert accused.sentences[1].startswith(
        "coarse probably encodes the entry date: among individuals with C* < 12 its mean predicted risk is 0.90 "
        "against a projected proportion of 0.40, among the others "
    )
    assert accused.sentences[1].endswith("Do not use it for new individuals.")
    winner = pair(fits=(replace(fine, z=5.0), coarse)).sentence
    assert "fine probably encodes the entry date" in winner
    assert "coarse probably encodes the entry date" in winner


def test_recommendations_are_printed_first_and_are_data():
    y, models, _ = churn_study.study_without_fits(4)
    result = ss.compare(y, models, metric=["brier", "log"], weighting=BOTH, reference="coarse", times=[6.0, 12.0])
    found = result.recommendation()
    text = " ".join(str(result).split())
    assert text.startswith(found.headline)
    assert all(sentence in text for sentence in found.conditions)
    assert found.headline.split(".")[0] in result.to_html()
    table = found.to_frame()
    assert list(table["verdict"]) == [one.verdict for one in found.verdicts]
    assert {"from", "to", "sentence", "would_change", "model_projected_risk", "tipping_upper"} <= set(table)
    assert "projected logarithmic loss" in str(result.recommendation(metric="log", time=6.0))
    only = ss.compare(y, models, weighting="projected", times=[12.0])
    assert not only.has_recommendation
    with pytest.raises(ss.InputError, match="administrative and projected scores by a loss"):
        only.recommendation()


def test_the_report_and_the_table_of_verdicts_say_the_same():
    from survscore.reports import summarise

    y, models = leaking_study()
    given = {"weighting": [*BOTH, "ipcw"], "times": [12.0], "reference": "coarse"}
    found = summarise(y, models, metric="brier", **given)
    recommended = ss.compare(y, models, **given).recommendation()
    answer, table = found["answer"]["brier"], found["verdicts"]
    assert answer["sentence"] == recommended.headline
    assert "leaking probably encodes the entry date: do not use it for new individuals" in answer["sentence"]
    assert answer["recommendation"]["sentences"][: len(recommended.sentences)] == recommended.sentences
    assert answer["recommendation"]["trust"] == "with care"
    rows = {
        key[:2]: key for key in zip(table["model"], table["weighting"], table["sentence"], table["mark"], strict=True)
    }
    assert rows["leaking", "projected (own ranks)"][2] == recommended.verdicts[0].sentence
    assert "for individuals with C* ≥ t only" in rows["leaking", "administrative"][2]
    assert {key for key, row in rows.items() if row[3]} == {("leaking", "administrative")}
    cards = {(card["model"], card["reference"]): card for card in answer["cards"]}
    assert "leaking probably encodes the entry date." in cards["leaking", "coarse"]["notes"]


def sample(n=400, *, first_end=1.0, last_end=20.0, dropout=0.0, seed=0):
    """Return outcomes, and two models at 6 and 12; with `dropout` as the hazard of dropping out."""
    rng = np.random.default_rng(seed)
    x, end = rng.normal(size=n), rng.uniform(first_end, last_end, n)
    rate, grid = 0.08 * np.exp(0.8 * x), np.array([6.0, 12.0])
    event_time, left = rng.exponential(1 / rate), rng.exponential(1 / max(dropout, 1e-9), n)
    time = np.minimum(np.minimum(event_time, end), left)
    y = ss.Outcomes(time, time == event_time, end)
    rates = {"a": rate, "b": 0.1 * np.exp(0.3 * x)}
    return y, {name: ss.SurvivalCurves(np.exp(-one[:, None] * grid), grid) for name, one in rates.items()}, x


@pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning", "ignore::survscore.UndefinedScoreWarning")
def test_too_few_followed_is_a_verdict_and_a_report_is_made():
    """At the only time; and at the second of two, where no mean is left and the first time is taken."""
    y, models, _ = sample(60, last_end=14.0)
    few = "fewer than 20 individuals are followed event-free"
    alone = ss.compare(y, models, times=[12.0]).recommendation()
    assert [verdict.verdict for verdict in alone.verdicts] == ["too few", "too few"]
    assert alone.verdicts[0].sentence == f"b and a cannot be compared at 12: {few}."
    assert not alone.certain
    both = ss.compare(y, models, times=[6.0, 12.0])
    found = both.recommendation()
    assert [verdict.sensitivity.first for verdict in found.verdicts] == [6.0, 6.0]
    assert found.sentences.count(f"There is no projected Brier score at 12: {few}.") == 1
    assert found.sentences[-1].startswith("Projected statuses come from few: at 6, 28 individuals were followed")
    assert both.recommendation(time=6.0).verdicts[0].cautions == found.verdicts[0].cautions[1:]
    for times, expected in (([12.0], alone), ([6.0, 12.0], found)):
        summary = ss.report(y, models, times=times, metric="brier", n_curves=0, by=np.arange(60) % 2).summary
        answer = summary["answer"]["brier"]
        assert answer["sentence"] == expected.headline
        assert answer["recommendation"]["sentences"] == expected.sentences
        assert len(summary["verdicts"]["sentence"]) == 4  # two models, two weightings


def test_drop_outs_are_part_of_population_and_assumption():
    y, models, _ = sample(dropout=0.03)
    late = y.censoring_time < 12
    dropped_out = ~late & ~y.event & (y.time < 12)
    (verdict,) = ss.compare(y, models, times=[12.0], null=False).recommendation().verdicts
    assert verdict.share_observed == pytest.approx(np.mean(~late))
    assert verdict.share_dropped_out == pytest.approx(np.mean(dropped_out))
    assert verdict.population == (
        f"all individuals, including the {100 * np.mean(late):.0f} % who could be observed for less than 12 (C* < 12) "
        f"and the {100 * np.mean(dropped_out):.0f} % with C* >= 12 who dropped out before 12"
    )
    assert "for those who dropped out there is no such estimate" in verdict.scope
    y, models, _ = sample(first_end=13.0, dropout=0.03)
    (verdict,) = ss.compare(y, models, times=[12.0], null=False).recommendation().verdicts
    proportion = np.mean(~y.event & (y.time < 12))
    assert verdict.population == f"all individuals, including the {100 * proportion:.0f} % who dropped out before 12"
    assert verdict.sensitivity.plausible == (0.5, 2.0)
    assert "no estimate for those who dropped out" in verdict.sensitivity.ratio_reason
    y, models, _ = sample(first_end=13.0)
    (verdict,) = ss.compare(y, models, times=[6.0, 12.0], null=False).recommendation().verdicts
    assert (verdict.population, verdict.scope) == ("all individuals", "")
    assert verdict.sensitivity.plausible == (1.0, 1.0)
    assert "hidden" not in verdict.sentence


def test_the_assumption_is_that_of_the_weighting():
    y, models, x = sample()
    for weighting, hazards in (
        (ss.Projected(reference="a"), "the hazards predicted by a"),
        (ss.Projected(reference=models["a"]), "the hazards of the given reference curves"),
        (ss.Projected(strata=x > 0), "the hazards of the individuals of the same stratum who were observed longer"),
        (ss.Projected(strata=None), "the hazards of all individuals who were observed longer"),
        (
            ss.Projected(theta=2.0),
            "2 times the hazards of individuals of similar predicted risk who were observed longer",
        ),
    ):
        result = ss.compare(y, models, weighting=["administrative", weighting], times=[12.0], null=False)
        (verdict,) = result.recommendation().verdicts
        assert verdict.assumption.endswith(hazards)
        assert weighting.explanation.endswith(f"{hazards}.")


def test_a_sign_that_never_changes_is_told_in_multiples_of_the_assumed_hazard():
    never = {"tipping_lower": 0.0, "tipping_upper": np.inf}
    assert "The sign is the same for 1/32 to 32 times the assumed hazard" in pair(**never).sentence
    assert "The sign is the same for 0.016 to 16 times the assumed hazard" in pair(theta=2.0, **never).sentence


def test_models_with_the_same_predictions_have_the_same_score():
    y, models, _ = sample()
    same = ss.compare(y, {"a": models["a"], "copy": models["a"]}, times=[6.0, 12.0], null=False).recommendation()
    assert same.verdicts[0].sentences == ("copy and a have the same projected Brier score on average over 6 to 12.",)
    assert not same.certain
    with pytest.raises(ss.InputError, match=r"time must be one of the evaluation times \(6 and 12\), not 7.0"):
        ss.compare(y, models, times=[6.0, 12.0], null=False).recommendation(time=7.0)


def leaking_study():
    """Return outcomes, and a model that is good for those who could be followed, beside one without a covariate."""
    y, models, _ = churn_study.study_without_fits(5)
    gone = y.censoring_time[:, None] < churn_study.MONTHS
    leaking = np.where(gone, 0.02, models["fine"].probabilities)
    models["leaking"] = ss.SurvivalCurves(leaking, churn_study.MONTHS, monotone="keep")
    del models["fine"]
    return y, models


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"weighting": "administrative"}, "compare with weighting 'projected' before using it for new individuals"),
        ({"metric": "auc"}, "see the projected ones before using it for new individuals"),
    ],
)
def test_a_leaking_model_is_named_where_there_is_no_recommendation(settings, advice):
    """It is better among those with C* >= t, and the printed result says that this refers to them only."""
    y, models = leaking_study()
    scope = "refer to individuals with C* >= t only"
    result = ss.compare(y, models, reference="coarse", times=churn_study.MONTHS, **settings)
    observed = result.contrasts.query("model == 'leaking' and weighting == 'administrative'")
    assert "better" in set(observed["verdict"])
    text = " ".join(str(result).split())
    assert text.startswith("leaking falls by ")
    for words in ("it encodes the censoring time", scope, advice):
        assert words in text
    segmented = ss.compare(y, models, reference="coarse", times=[6.0, 12.0], by=np.arange(len(y)) % 2, **settings)
    assert scope in " ".join(str(segmented).split())
    honest = ss.compare(y, {"coarse": models["coarse"]}, times=churn_study.MONTHS, **settings)
    assert not honest.leak_warnings


def test_tables_say_for_whom_a_leaking_model_is_better():
    y, models = leaking_study()
    result = ss.compare(y, {**models, "too": models["leaking"]}, reference="coarse", times=churn_study.MONTHS)
    assert set(result.encodes) == {"leaking", "too"}
    for name in result.encodes:
        assert str(result.recommendation()).count(f"{name} probably encodes the entry date") == 1
    table = ss.score_table(y, models, horizons=[6.0, 12.0], metric=["brier", "auc"], reference="coarse")
    assert table.leak_warnings.keys() == {"leaking"}
    assert " ".join(str(table).split()).startswith("leaking falls by ")
    for text in (result.to_text(200), result.integrated().to_text(200), table.to_text(200)):
        words = re.findall(r"\sleaking\s.*[)\d] +(better.*)", text)
        assert words
        assert set(words) == {"better (1)"}
        assert "(1) for individuals with C* >= t only: one of the two models encodes C*" in text
