"""Agreement with independent packages, each convention converted in the open.

The numbers from R are pinned in reference/r_reference.json; reference/make_r_reference.R made them. Those of
SurvivalEVAL on the same data are in reference/survivaleval_reference.json, by make_survivaleval_reference.py beside it,
those of hazardous and SurvivalEVAL for two causes in competing_reference.json, by make_competing_reference.py, and
those with delayed entry and sample weights in weighted_reference.json, by make_weighted_reference.R.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from sksurv.metrics import brier_score as sksurv_brier_score
from sksurv.util import Surv

import survscore as ss
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.product_limit import ProductLimit
from survscore.inference.intervals import student_p

REFERENCE = json.loads((Path(__file__).parent / "reference" / "r_reference.json").read_text())
DATASETS = REFERENCE["datasets"]
SURVIVALEVAL = json.loads((Path(__file__).parent / "reference" / "survivaleval_reference.json").read_text())["datasets"]
every_dataset = pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS.keys())


def outcomes(data):
    return ss.Outcomes(data["time"], data["event"], data.get("censoring_time"))


@every_dataset
@pytest.mark.parametrize("model", ["a", "b"])
@pytest.mark.parametrize("normalize", ["n", "weights"])
def test_brier_of_riskregression_and_pec(data, model, normalize):
    # Both divide by n and weight by 1/G(T-); with Kaplan-Meier of the scored data the weights sum to n anyway.
    curves = ss.SurvivalCurves(data[f"model_{model}"], data["times"])
    got = ss.brier_score(outcomes(data), curves, weighting=ss.IPCW(normalize=normalize), times=data["times"]).scores
    np.testing.assert_allclose(got, data["results"][f"brier_{model}"]["estimate"], rtol=1e-12)
    np.testing.assert_allclose(got, data["results"]["pec"][model], rtol=1e-12)


@every_dataset
def test_null_model_of_riskregression(data):
    null = np.tile(data["results"]["null_survival"], (len(data["time"]), 1))
    curves = ss.SurvivalCurves(null, data["times"])
    got = ss.brier_score(outcomes(data), curves, weighting="ipcw", times=data["times"]).scores
    np.testing.assert_allclose(got, data["results"]["brier_null"]["estimate"], rtol=1e-12)


@every_dataset
def test_censoring_kaplan_meier_of_prodlim(data):
    y = outcomes(data)
    G = ss.KaplanMeierCensoring(y)
    expected = data["results"]["censoring_km"]
    np.testing.assert_allclose(G.at(data["times"]), expected["prodlim_at_times"], rtol=1e-13)
    np.testing.assert_allclose(G.before(y), expected["prodlim_left_at_time"], rtol=1e-13)


@pytest.mark.parametrize("ties", [False, True])
def test_brier_of_scikit_survival(ties):
    """It weights events by 1/G(T), not 1/G(T-), divides by n, and fits G on training data."""
    rng = np.random.default_rng(3)
    n = 400
    star, end = rng.exponential(10, n), rng.uniform(2, 20, n)
    if ties:
        star, end = np.ceil(star), np.ceil(end)
    time, event = np.minimum(star, end), star <= end
    times = np.array([1.5, 4.0, 7.5, 12.0])
    survival = np.exp(-times / rng.uniform(5, 15, (n, 1)))
    structured = Surv.from_arrays(event, time)
    _, theirs = sksurv_brier_score(structured, structured, survival, times)

    y = ss.Outcomes(time, event)
    right = ss.CensoringFunction(ss.KaplanMeierCensoring(y).at)  # no left limit given: G(T) stands in for G(T-)
    curves = ss.SurvivalCurves(survival, times)
    ours = ss.brier_score(y, curves, weighting=ss.IPCW(right, normalize="n"), times=times).scores
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    default = ss.brier_score(y, curves, weighting="ipcw", times=times).scores
    # without ties G does not jump at event times, and the conventions agree
    assert (np.abs(default - theirs).max() > 1e-3) == ties


@every_dataset
def test_auc_of_riskregression(data):
    """Its standard errors have Nelson-Aalen's influence of the censoring, and n/(n - 1); its p-values are normal."""
    models = {name: ss.SurvivalCurves(data[f"model_{name}"], data["times"]) for name in "ab"}
    weighting = ss.IPCW(variance="martingale")
    result = ss.compare(outcomes(data), models, metric="auc", weighting=weighting, times=data["times"], null=False)
    for name in "ab":
        rows, theirs = result.scores.query("model == @name"), data["results"][f"auc_{name}"]
        np.testing.assert_allclose(rows["score"], theirs["estimate"], rtol=1e-12)
        np.testing.assert_allclose(rows["se"], theirs["se"], rtol=1e-9)
    theirs = data["results"]["auc_b_minus_a"]
    np.testing.assert_allclose(result.contrasts["difference"], theirs["delta"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.contrasts["se"], theirs["se"], rtol=1e-9)
    normal = student_p(result.contrasts["difference"] / result.contrasts["se"], np.inf)
    np.testing.assert_allclose(normal, theirs["p"], rtol=1e-9)


@every_dataset
def test_auc_of_proc(data):
    """DeLong's variances and paired test, among those whose status is known at each time; its p-values are normal."""
    theirs, time, event = data["results"]["delong"], np.array(data["time"]), np.array(data["event"]) == 1
    for j, t in enumerate(data["times"]):
        seen = (time > t) | event
        case = (time <= t)[seen]
        y = ss.Outcomes(np.where(case, time[seen], t + 1), case, np.full(case.size, t + 1))
        models = {name: ss.SurvivalCurves(np.array(data[f"model_{name}"])[seen, j][:, None], [t]) for name in "ab"}
        result = ss.compare(y, models, metric="auc", weighting="administrative", times=[t], null=False)
        scores, contrast = result.scores.set_index("model"), result.contrasts.iloc[0]
        for name in "ab":
            assert scores.loc[name, "score"] == pytest.approx(theirs[f"auc_{name}"][j], rel=1e-12)
            assert scores.loc[name, "se"] ** 2 == pytest.approx(theirs[f"var_{name}"][j], rel=1e-9)
        of_difference = theirs["var_a"][j] + theirs["var_b"][j] - 2 * theirs["cov"][j]
        assert contrast["se"] ** 2 == pytest.approx(of_difference, rel=1e-9)
        assert contrast["difference"] / contrast["se"] == pytest.approx(theirs["z"][j], rel=1e-9)
        assert float(student_p(theirs["z"][j], np.inf)) == pytest.approx(theirs["p"][j], rel=1e-9)


by_survivaleval = pytest.mark.parametrize("name", DATASETS)


@by_survivaleval
def test_scores_of_survivaleval(name):
    """Whoever is censored at t is event-free at t there, with 1/G(t-): as if the censored left a little later."""
    data, theirs = DATASETS[name], SURVIVALEVAL[name]
    time, event = np.array(data["time"], dtype=float), np.array(data["event"]) == 1
    curves = ss.SurvivalCurves(data["model_a"], data["times"])

    def largest_difference(censored_leave):
        y = ss.Outcomes(np.where(event, time, time + censored_leave), event)
        differences = []
        for metric, key, cap in [("brier", "brier", None), ("auc", "auc_ipcw", None), ("auc", "auc_naive", 1.0)]:
            weighting = ss.IPCW(normalize="n", max_weight=cap)
            (score,) = ss.score_all(y, curves, metric=metric, weighting=weighting, times=data["times"], errors=False)
            differences.append(np.abs(score.scores - np.array(theirs[key])).max())
        return max(differences)

    assert largest_difference(1e-6) < 1e-12
    assert (largest_difference(0.0) > 1e-3) == (name == "ties")


@by_survivaleval
def test_trained_and_integrated_scores_of_survivaleval(name):
    """With G of training data, and by the trapezoid rule; where the censored leave a little later, as there."""
    data, theirs = DATASETS[name], SURVIVALEVAL[name]
    y, times, half = outcomes(data), np.array(data["times"]), len(data["time"]) // 2
    later = ss.Outcomes(np.where(y.event, y.time, y.time + 1e-6), y.event)
    curves = ss.SurvivalCurves(data["model_a"], times)
    trained = ss.IPCW(later[half:], normalize="n")
    scores = ss.brier_score(later[:half], curves[:half], weighting=trained, times=times, errors=False).scores
    np.testing.assert_allclose(scores, theirs["brier_trained"], rtol=1e-12)
    whole = ss.brier_score(later, curves, weighting="ipcw", times=times, errors=False).integrated().value
    assert whole == pytest.approx(theirs["integrated"], rel=1e-12)


@by_survivaleval
def test_concordance_of_survivaleval(name):
    data, theirs = DATASETS[name], SURVIVALEVAL[name]
    y, times = ss.Outcomes(data["time"], data["event"]), data["times"]
    curves = ss.SurvivalCurves(data["model_a"], times, interpolation="step")
    metrics = [ss.Concordance(), ss.Concordance("harrell"), ss.Concordance("harrell", "antolini")]
    uno, harrell, antolini = ss.score_all(y, curves, metric=metrics, weighting="ipcw", times=times, errors=False)
    np.testing.assert_allclose(uno.scores, theirs["uno"], rtol=1e-12)
    np.testing.assert_allclose(harrell.scores, theirs["harrell"], rtol=1e-12)
    assert antolini.scores[-1] == pytest.approx(theirs["antolini"], rel=1e-12)


@by_survivaleval
def test_d_calibration_is_the_test_of_bins_where_nobody_is_censored(name):
    data, theirs = DATASETS[name], SURVIVALEVAL[name]["d_calibration_all_events"]
    n, end = len(data["time"]), 40.0  # where the curves fall to zero: END of the script
    y = ss.Outcomes(data["time"], np.ones(n), np.full(n, end))
    curves = ss.SurvivalCurves(np.column_stack((data["model_a"], np.zeros(n))), [*data["times"], end])
    found = ss.distribution_calibration(y, curves, test="bins", form="continuous")
    assert found.statistic == pytest.approx(theirs["statistic"], rel=1e-9)
    assert found.p_value == pytest.approx(theirs["p_value"], rel=1e-9)
    np.testing.assert_array_equal(found.bins.observed, theirs["histogram"])


# Competing risks

COMPETING = REFERENCE["competing"]
every_cause = pytest.mark.parametrize(("name", "k"), [(name, k) for name in COMPETING for k in (1, 2)])


def of_causes(name):
    """Outcomes, and by model the predicted incidences of both causes."""
    data = COMPETING[name]
    y = ss.Outcomes(data["time"], data["event"], causes=["first", "second"])
    models = {
        model: ss.IncidenceCurves(
            {cause: data[f"cause_{k}"][f"incidence_{model}"] for k, cause in enumerate(y.causes, 1)}, data["times"]
        )
        for model in "ab"
    }
    return y, models, data["times"], [data[f"cause_{k}"]["results"] for k in (1, 2)]


@every_cause
def test_scores_errors_and_contrasts_of_riskregression_for_competing_risks(name, k):
    """Brier score and AUC with all others as controls, of each cause; the null model is the Aalen-Johansen estimate."""
    y, models, times, results = of_causes(name)
    theirs = results[k - 1]
    asked = {"weighting": ss.IPCW(normalize="n", variance="martingale"), "times": times, "reference": "a", "cause": k}
    result = ss.compare(y, models, metric=["brier", "auc"], **asked)
    scores = result.scores.set_index(["metric", "model"]).sort_index()
    pairs = [(metric, model, f"{metric}_{model}") for metric in ("brier", "auc") for model in "ab"]
    for metric, model, key in [*pairs, ("brier", "Aalen-Johansen", "brier_null")]:
        rows = scores.loc[(metric, model)]
        np.testing.assert_allclose(rows["score"], theirs[key]["estimate"], rtol=1e-10)
        np.testing.assert_allclose(rows["se"], theirs[key]["se"], rtol=1e-8)
    contrasts = result.contrasts.set_index(["metric", "model"]).sort_index()
    for metric, model, sign, key in (
        ("brier", "b", 1, "brier_b_minus_a"),
        ("brier", "Aalen-Johansen", -1, "brier_a_minus_null"),
        ("auc", "b", 1, "auc_b_minus_a"),
    ):
        rows = contrasts.loc[(metric, model)]
        np.testing.assert_allclose(sign * rows["difference"], theirs[key]["delta"], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(rows["se"], theirs[key]["se"], rtol=1e-8)
        normal = student_p(rows["difference"] / rows["se"], np.inf)
        np.testing.assert_allclose(normal, theirs[key]["p"], rtol=1e-7)


@every_cause
def test_conservative_errors_of_riskregression_for_competing_risks(name, k):
    """Those with weights taken as known."""
    y, models, times, results = of_causes(name)
    curve = ss.KaplanMeierCensoring(y).curve
    known = ss.IPCW(ss.CensoringFunction(curve.at, curve.before), normalize="n")
    score = ss.brier_score(y, models["a"], weighting=known, times=times, cause=k)
    np.testing.assert_allclose(score.se, results[k - 1]["brier_a"]["se_conservative"], rtol=1e-8)


@every_cause
def test_null_incidence_of_prodlim(name, k):
    y, _, times, results = of_causes(name)
    found = Incidence.of(y.for_cause(k)).table(np.array(times))[0]
    np.testing.assert_allclose(found, results[k - 1]["null_incidence"], rtol=1e-12)


OTHER_PACKAGES = json.loads((Path(__file__).parent / "reference" / "competing_reference.json").read_text())["datasets"]


@every_cause
def test_brier_of_hazardous_for_competing_risks(name, k):
    """It weights events by 1/G(T), not 1/G(T-), and at ties those with events can still be censored."""
    y, models, times, _ = of_causes(name)
    flipped = ProductLimit.of(y.time, ~y.event, others_first=False)
    right = ss.CensoringFunction(flipped.at)
    ours = ss.brier_score(y, models["a"], weighting=ss.IPCW(right, normalize="n"), times=times, cause=k).scores
    theirs = OTHER_PACKAGES[name][f"cause_{k}"]["hazardous"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    default = ss.brier_score(y, models["a"], weighting="ipcw", times=times, cause=k).scores
    assert (np.abs(default - theirs).max() > 1e-3) == (name == "ties")


@every_cause
def test_scores_of_survivaleval_for_competing_risks(name, k):
    """With both kinds of controls; who is censored at t is event-free at t there, as if the censored left later."""
    y, models, times, _ = of_causes(name)
    theirs = OTHER_PACKAGES[name][f"cause_{k}"]
    y = ss.Outcomes(np.where(y.event, y.time, y.time + 1e-6), y.cause, causes=list(y.causes))
    for metric, key in (("brier", "brier"), ("auc", "auc"), ("auc@event-free", "auc_event_free")):
        asked = {"metric": metric, "weighting": ss.IPCW(normalize="n"), "times": times, "errors": False, "cause": k}
        (score,) = ss.score_all(y, models["a"], **asked)
        np.testing.assert_allclose(score.scores, theirs[key], rtol=1e-11, err_msg=metric)


@every_cause
def test_concordance_of_survivaleval_for_competing_risks(name, k):
    """That of Wolbers and others, with the incidence at tau; also under ties."""
    y, models, times, _ = of_causes(name)
    asked = {"metric": "concordance", "weighting": "ipcw", "errors": False, "cause": k, "times": times}
    (score,) = ss.score_all(y, models["a"], **asked)
    np.testing.assert_allclose(score.scores, OTHER_PACKAGES[name][f"cause_{k}"]["concordance"], rtol=1e-11)


# Delayed entry and sample weights: R's survival and survey (make_weighted_reference.R)

WEIGHTED = json.loads((Path(__file__).parent / "reference" / "weighted_reference.json").read_text())
SAMPLE = {name: np.array(values) for name, values in WEIGHTED["data"].items()}


def weighted_outcomes(*, entry=False, weights=True, causes=False):
    return ss.Outcomes(
        SAMPLE["time"],
        SAMPLE["cause" if causes else "event"],
        SAMPLE["censoring_time"],
        entry=SAMPLE["entry"] if entry else None,
        weights=SAMPLE["weights"] if weights else None,
        causes=["a", "b"] if causes else None,
    )


@pytest.mark.parametrize(("name", "entry", "weights"), [("weights", 0, 1), ("entry", 1, 0), ("both", 1, 1)])
def test_product_limits_of_survfit(name, entry, weights):
    X = np.zeros((len(SAMPLE["time"]), 1))
    fitted = ss.models.KaplanMeier().fit(X, weighted_outcomes(entry=entry, weights=weights))
    np.testing.assert_allclose(
        fitted.predict_curves(X[:1]).at(SAMPLE["times"])[0], WEIGHTED["kaplan_meier"][name], rtol=1e-9
    )
    if name in WEIGHTED["aalen_johansen"]:
        fitted = ss.models.AalenJohansen().fit(X, weighted_outcomes(entry=entry, weights=weights, causes=True))
        np.testing.assert_allclose(
            fitted.predict_curves(X[:1]).at(SAMPLE["times"])[0, 0], WEIGHTED["aalen_johansen"][name], rtol=1e-9
        )


@pytest.mark.filterwarnings("ignore::survscore.UnequalWeightsWarning")
@pytest.mark.parametrize("entry", [False, True])
def test_concordance_of_r_with_weights(entry):
    """With delayed entry, time counts from entry, as in all scores."""
    times, y = SAMPLE["times"], weighted_outcomes(entry=entry)
    y = y.since_entry() if entry else y
    # predictions of this order at all times
    curves = ss.SurvivalCurves(np.tile(1 / (1 + np.exp(SAMPLE["risk"]))[:, None], times.size), times)
    kinds = [ss.Concordance("harrell"), ss.Concordance()]
    found = ss.score_all(y, curves, metric=kinds, weighting="ipcw", times=times)
    for score, name in zip(found, ("harrell", "uno"), strict=True):
        theirs = WEIGHTED["concordance"][name + "_since_entry" * entry]
        np.testing.assert_allclose(score.scores, theirs, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::survscore.UnequalWeightsWarning")
@pytest.mark.parametrize("unit", ["individual", "cluster"])
def test_standard_errors_of_survey(unit):
    """Of those followed to each time, without drop-outs: each metric's influences make survey's linearisation."""
    times, y = SAMPLE["times"], weighted_outcomes(entry=True).since_entry()
    groups = SAMPLE["cluster"] if unit == "cluster" else np.arange(len(y))
    curves = ss.SurvivalCurves(SAMPLE["survival_since_entry"], times)
    found = ss.score_all(
        y, curves, metric=["brier", "oe", "slope"], weighting="administrative", times=times, groups=groups
    )
    for score in found:
        theirs = WEIGHTED["survey"]
        np.testing.assert_allclose(score.scores, theirs[f"{unit}.{score.metric}"], rtol=1e-9)
        np.testing.assert_allclose(score.se, theirs[f"{unit}.{score.metric}_se"], rtol=1e-9)
