"""What a report says is what the library says."""

import json

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from report_case import HOSTILE, OPTIONS, TIMES
from survscore.reports import comparing, render, summarise


def test_scores_and_verdicts_are_the_library_s(case, report):
    y, models = case
    found = report.summary
    result = ss.compare(y, models, weighting=["administrative", "ipcw"], metric=["brier", "log"], times=TIMES)
    for key, wanted in (("scores", result.scores), ("contrasts", result.contrasts)):
        pd.testing.assert_frame_equal(pd.DataFrame(found[key]), wanted, rtol=0, atol=0)
    whole = result.integrated(5, 90)
    means = pd.DataFrame(found["means"])
    pd.testing.assert_frame_equal(means[whole.scores.columns], whole.scores)
    skill = means[means.model != "Kaplan-Meier"].reset_index(drop=True)
    assert np.array_equal(skill["skill"], whole.skill["skill"])
    judged = pd.DataFrame(found["verdicts"])
    pd.testing.assert_frame_equal(judged[whole.contrasts.columns], whole.contrasts)
    assert found["time_ranges"] == {"brier": [5, 90], "log": [5, 90]}
    assert found["headline"] == "administrative"
    assert found["caution"] is None
    assert "bound_lower" not in found["means"]


def test_calibration_and_curves_are_the_library_s(case, report):
    y, models = case
    calibrated = report.summary["calibration"]
    assert calibrated["weighting"] == report.summary["headline"]
    parts, numbers = (pd.DataFrame(calibrated[key]).set_index(["model", "horizon"]) for key in ("parts", "numbers"))
    curves = pd.DataFrame(calibrated["curves"])
    for name, predicted in models.items():
        found = ss.calibration(y, predicted, 30)
        assert parts.loc[(name, 30), "isotonic_miscalibration"] == found.isotonic_miscalibration
        assert numbers.loc[(name, 30), "miscalibration"] == found.miscalibration.value
        assert numbers.loc[(name, 30), "observed_expected_upper"] == found.observed_expected.upper
        shown = curves[(curves.model == name) & (curves.horizon == 30)]
        for column in ("predicted", "observed", "lower", "upper"):
            assert np.array_equal(getattr(found.curve, column), shown[column])
    single = pd.DataFrame(report.summary["curves"]["curves"])
    people = pd.DataFrame(report.summary["curves"]["people"])
    assert len(people) == 6
    assert people.censoring_time.is_monotonic_increasing
    for row in people.to_dict("records"):
        k = int(row["individual"])
        assert (row["time"], row["event"], row["censoring_time"]) == (y.time[k], y.event[k], y.censoring_time[k])
        shown = single[(single.individual == row["individual"]) & (single.model == "leaking")]
        assert np.allclose(shown.survival, models["leaking"][k].at(shown.time)[0], rtol=0, atol=1e-15)


def test_the_data_are_described(case, report):
    y, _ = case
    data = report.summary["data"]
    assert (data["n"], data["events"], data["dropped_out"]) == (len(y), y.event.sum(), 0)
    for k, t in enumerate(data["remaining"]["time"]):
        assert data["remaining"]["under_observation"][k] == (y.time >= t).sum()
        assert data["remaining"]["censoring_time_at_least"][k] == (y.censoring_time >= t).sum()
        assert data["remaining"]["events"][k] == (y.event & (y.time <= t)).sum()
    assert data["quantiles"]["censoring_time"][-1] == y.censoring_time.max()


def test_a_summary_is_plain_data(case, report):
    again = json.loads(json.dumps(report.summary, allow_nan=False))
    assert again == report.summary
    assert render(again) == report.html
    assert ss.report(*case, **OPTIONS).html == report.html  # the same each time


def test_weightings_that_fit_are_chosen():
    rng = np.random.default_rng(1)
    time, end = rng.exponential(5, 200), rng.uniform(2, 9, 200)
    curves = ss.SurvivalCurves(np.full((200, 2), [0.9, 0.5]), [1, 6])
    seen, event = np.minimum(time, end), time <= end
    names = {
        "administrative": ss.Outcomes(seen, event, end),
        "ipcw (Kaplan-Meier of the scored outcomes)": ss.Outcomes(seen, event),
        "uncensored": ss.Outcomes(time, np.ones(200)),
    }
    for name, y in names.items():
        found = summarise(y, curves, times=[1, 2, 4])
        assert found["weightings"][0] == found["calibration"]["weighting"] == name
        assert found["models"] == ["model", "Kaplan-Meier"]
        assert render(found)
    lost = np.where(event, end, np.maximum(end, seen + 1))
    dropped = summarise(ss.Outcomes(seen, event, lost), curves, times=[1, 2, 4])
    strata = "administrative (drop-out by Kaplan-Meier in risk strata)"
    assert dropped["weightings"] == [strata, "projected (own ranks)"]
    assert dropped["data"]["dropped_out"] == (~event).sum()
    assert dropped["calibration"]["weighting"] == strata


def test_drop_outs_do_not_make_the_report_prefer_the_leak(lost_case, lost_report):
    y, models = lost_case
    by_ipcw = ss.compare(y, models, weighting="ipcw", times=TIMES).integrated().contrasts.set_index("model")
    assert by_ipcw.verdict["leaking"] == "better"
    summary = lost_report.summary
    assert summary["headline"] == "administrative (drop-out by Kaplan-Meier in risk strata)"
    judged = pd.DataFrame(summary["verdicts"])
    of_leak = judged[(judged.model == "leaking") & (judged.weighting == summary["headline"])].set_index("metric")
    assert of_leak.verdict["brier"] == "worse"
    # the same, if somebody asks for both and names IPCW first
    asked = summarise(y, models, weighting=["ipcw", "administrative"], metric="brier", times=TIMES, n_curves=0)
    assert asked["headline"] == summary["headline"]
    assert asked["caution"] is None


def test_what_the_lost_could_change_is_told(lost_case, lost_report):
    y, models = lost_case
    summary = lost_report.summary
    whole = ss.compare(y, models, weighting="administrative", times=TIMES).integrated()
    judged = pd.DataFrame(summary["verdicts"]).query("metric == 'brier' and weighting.str.startswith('administrative')")
    for name in ("bound_lower", "bound_upper", "bound_p_value"):
        assert np.allclose(judged[name], whole.contrasts[name], rtol=0, atol=0)
    for row in judged.to_dict("records"):
        told = "The verdict holds whatever happened to the 9 of 1,500 who dropped out"
        assert (told in row["sentence"]) == (row["bound_p_value"] < 0.05)
    of_ipcw = pd.DataFrame(summary["verdicts"]).query("weighting.str.startswith('ipcw')")
    assert of_ipcw.bound_lower.isna().all()
    assert not of_ipcw.sentence.str.contains("dropped out").any()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_a_headline_by_ipcw_carries_a_caution(case):
    y, models = case
    unknown = ss.Outcomes(y.time, y.event)
    found = summarise(unknown, models, times=TIMES, n_curves=0)
    assert found["headline"].startswith("ipcw")
    assert ss.weightings_that_fit(unknown).sentence in found["caution"]
    box = render(found).split('<div class="recommendation no"')[1].split("</div>")[0]
    assert "do not rely on this, since the only weighting is known to mislead" in box
    asked_for = summarise(y, models, weighting="ipcw", times=TIMES, n_curves=0)  # though C* is known
    assert "'administrative' counts those with C* >= t" in asked_for["caution"]


def test_few_times_few_people_no_curves():
    y = ss.Outcomes([1, 3, 4], [1, 0, 1], [4, 3, 6])
    curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7], [0.8, 0.6]], times=[2, 4])
    found = summarise(y, curves, times=[2], n_curves=0, null=False, metric="brier")
    assert found["means"] == {}
    assert "There is one model only, so nothing to disagree about." in render(found)
    late = summarise(y, curves, times=[1, 2, 9])  # the predictions end before
    assert "1 time where the predictions end at 4." in late["notes"][0]
    assert set(map(tuple, late["time_ranges"].values())) == {(1, 2)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": []}, "metric is empty"),
        ({"horizons": [200]}, "there is no calibration at 200: the predictions end at 100"),
        ({"ids": [1, 2]}, "ids has length 2"),
        ({"n_curves": -1}, "n_curves must be a whole number"),
        ({"reference": "nobody"}, "reference must be one of"),
        ({"title": " "}, "title"),
    ],
)
def test_bad_requests_are_refused(case, options, message):
    with pytest.raises(ss.InputError, match=message):
        ss.report(*case, **options)


ROW = {
    "metric": "brier", "model": "a", "reference": "b", "difference": -0.01234, "lower": -0.02, "upper": -0.001,
    "p_value": 1e-9, "verdict": "better",
}  # fmt: skip


THOSE = "hatever happened to the 9 of 1,043 who dropped out"
LIES = "among those with C* ≥ t, the difference lies between"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, f"The verdict holds w{THOSE}: {LIES} −0.0400 and −0.0012, with p at most 0.021."),
        ({"bound_p_value": 0.24}, f"The sign holds w{THOSE}, significance does not (p up to 0.240): {LIES}"),
        ({"bound_p_value": None}, f"The sign holds w{THOSE}: {LIES}"),
        ({"bound_upper": 0.0031}, f"W{THOSE}, {LIES}"),
        ({"verdict": "undecided"}, f"W{THOSE}, {LIES}"),
        (
            {"difference": 0.01, "verdict": "worse", "bound_lower": 0.001, "bound_upper": 0.02},
            "The verdict hold",
        ),
        ({"bound_lower": -0.00095, "bound_upper": -0.00094}, "The weighted estimate lies outside these bounds"),
    ],
)
def test_bounds_in_words(values, told):
    bounds = {"bound_lower": -0.04, "bound_upper": -0.0012, "bound_p_value": 0.021}
    assert told in comparing.bounds_sentence({**ROW, **bounds, **values}, 9, 1043, 0.95)
    assert comparing.bounds_sentence({**ROW, "bound_lower": None, "bound_upper": None}, 9, 1043, 0.95) is None


def test_individuals_are_called_by_their_ids(case):
    y, models = case
    asked = {"times": TIMES, "metric": "brier", "weighting": "administrative"}
    plain = summarise(y, models, **asked)["curves"]["people"]["individual"]
    ids = pd.Series([f"id{k}" for k in range(len(y))], index=np.arange(len(y))[::-1])  # by position, not by index
    assert summarise(y, models, ids=ids, **asked)["curves"]["people"]["individual"] == [f"id{k}" for k in plain]
    same = summarise(y, models, ids=["x"] * len(y), **asked)["curves"]["people"]["individual"]
    assert same == [f"x (row {k})" for k in plain]


def test_the_page_is_one_small_safe_file(report, tmp_path):
    path = report.save(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page == report.html
    data = page.split('id="data-json">')[1].split("</script>")[0]
    assert len(page) - len(data) < 150_000
    assert HOSTILE not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert json.loads(data)["tables"]["scores"]["score"] == report.summary["scores"]["score"]
    with pytest.raises(ss.InputError, match=r"must end in .html"):
        report.save(tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == [path]
    notebook = report._repr_html_()  # a frame of its own
    assert notebook.startswith("<iframe ")
    assert "sandbox=" in notebook
    assert HOSTILE not in notebook
