"""What a report says is what the library says."""

import json

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from report_case import HOSTILE, OPTIONS, TIMES
from survscore.reports import render, summarise, words


def test_scores_and_verdicts_are_the_library_s(case, report):
    y, models = case
    found = report.summary
    for loss in ("brier", "log"):
        result = ss.compare(y, models, weighting=["administrative", "ipcw"], loss=loss, times=TIMES)
        for key, wanted in (("scores", result.scores), ("contrasts", result.contrasts)):
            table = pd.DataFrame(found[key])
            table = table[table.loss == loss].reset_index(drop=True)
            pd.testing.assert_frame_equal(table, wanted, rtol=0, atol=0)
        whole = result.integrated(5, 90)
        means = pd.DataFrame(found["means"]).query("loss == @loss").reset_index(drop=True)
        pd.testing.assert_frame_equal(means[whole.scores.columns], whole.scores)
        skill = means[means.model != "Kaplan-Meier"].reset_index(drop=True)
        assert np.array_equal(skill["skill"], whole.skill["skill"])
        verdicts = pd.DataFrame(found["verdicts"]).query("loss == @loss").reset_index(drop=True)
        pd.testing.assert_frame_equal(verdicts[whole.contrasts.columns], whole.contrasts)
    assert found["range"] == [5, 90]


def test_calibration_and_curves_are_the_library_s(case, report):
    y, models = case
    parts = pd.DataFrame(report.summary["calibration"]["parts"]).set_index(["model", "horizon"])
    curves = pd.DataFrame(report.summary["calibration"]["curves"])
    for name, predicted in models.items():
        for horizon in (30, 60):
            found = ss.calibration(y, predicted, horizon)
            assert parts.loc[(name, horizon), "miscalibration"] == found.miscalibration
            shown = curves[(curves.model == name) & (curves.horizon == horizon)]
            rows = np.searchsorted(found.predicted, shown.predicted)
            assert np.array_equal(found.observed[rows], shown.observed)
            assert np.array_equal(found.upper[rows], shown.upper)
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
        assert data["remaining"]["censoring_time_as_late"][k] == (y.censoring_time >= t).sum()
        assert data["remaining"]["events"][k] == (y.event & (y.time <= t)).sum()
    assert data["quantiles"]["censoring_time"][-1] == y.censoring_time.max()


def test_the_leak_is_seen_and_told(report):
    falls = pd.DataFrame(report.summary["around_censoring"]["falls"]).set_index("model")
    assert falls.lost_after["leaking"] == pytest.approx(1)
    assert falls.lost_after["truth"] < 0.3
    (sentence,) = report.summary["disagreements"]["sentences"]["brier"]
    assert "contradict each other: leaking is worse than truth under administrative; leaking is better" in sentence
    table = report.summary["disagreements"]["table"]
    assert set(table["model"]) >= {"leaking"}


def test_a_summary_is_plain_data(report):
    again = json.loads(json.dumps(report.summary, allow_nan=False))
    assert again == report.summary
    assert render(again) == report.html


def test_the_same_input_gives_the_same_page(case, report):
    y, models = case
    assert ss.report(y, models, **OPTIONS).html == report.html


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
        assert found["weightings"][0] == name
        assert found["models"] == ["model", "Kaplan-Meier"]
        assert render(found)
    without = summarise(names["ipcw (Kaplan-Meier of the scored outcomes)"], curves)
    assert without["calibration"]["missing"]
    assert without["around_censoring"]["missing"]
    lost = np.where(event, end, np.maximum(end, seen + 1))
    dropped = summarise(ss.Outcomes(seen, event, lost), curves)
    assert dropped["weightings"] == ["ipcw (Kaplan-Meier of the scored outcomes)"]
    assert dropped["data"]["dropped_out"] == (~event).sum()


def test_few_times_few_people_no_curves():
    y = ss.Outcomes([1, 3, 4], [1, 0, 1], [4, 3, 6])
    curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.7], [0.8, 0.6]], times=[2, 4])
    found = summarise(y, curves, times=[2], n_curves=0, null=False, losses=["brier"])
    assert found["means"] == {}
    assert "One weighting" not in render(found)
    late = summarise(y, curves, times=[1, 2, 9])  # the predictions end before
    assert "1 time where not all models predict" in late["notes"][0]
    assert late["range"] == [1, 2]
    assert late["notes"][0] in render(late)


def test_bad_requests_are_refused(case):
    y, models = case
    for options, message in (
        ({"losses": "brier"}, "losses must be a sequence"),
        ({"horizons": [200]}, "nobody's status is known at 200"),
        ({"ids": [1, 2]}, "ids has length 2"),
        ({"n_curves": -1}, "n_curves must be a whole number"),
        ({"reference": "nobody"}, "reference must be one of"),
        ({"level": 95}, "level must be between 0 and 1"),
    ):
        with pytest.raises(ss.InputError, match=message):
            ss.report(y, models, **options)
    with pytest.raises(ss.InputError, match="horizons: calibration needs everybody's censoring time"):
        ss.report(ss.Outcomes(y.time, y.event), models, horizons=[3])
    with pytest.raises(ss.InputError, match="y must be Outcomes"):
        ss.report(models, y)
    with pytest.raises(ss.InputError, match="curves must be SurvivalCurves"):
        ss.report(y, 3)


def test_verdicts_in_words():
    row = {"model": "a", "reference": "b", "difference": -0.01234, "lower": -0.02, "upper": -0.001, "p_value": 1e-9}
    assert words.verdict(row, "brier", 0.95) == (
        "a is better than b: its mean Brier score differs by −0.0123 (95 % interval −0.0200 to −0.0010, p < 0.001)."
    )
    assert "a can't be told from b" in words.verdict({**row, "upper": 0.001, "p_value": 0.2}, "log", 0.9)
    assert "p = 0.200" in words.verdict({**row, "upper": 0.001, "p_value": 0.2}, "log", 0.9)
    assert "90 % interval" in words.verdict(row, "log", 0.9)
    missing = {**row, "lower": float("nan"), "upper": float("nan"), "p_value": float("nan")}
    assert "p unknown" in words.verdict(missing, "log", 0.9)
    assert words.disagreement("a", "b", {"x": "better", "y": "better"}) is None
    assert words.disagreement("a", "b", {"x": "better", "y": "undecided", "z": "better"}) == (
        "Weightings come to different conclusions: a is better than b under x and z; a can't be told from b under y."
    )


def test_the_page_is_one_small_safe_file(report, tmp_path):
    path = report.save(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page == report.html
    data = page.split('id="data-json">')[1].split("</script>")[0]
    assert len(page) - len(data) < 100_000
    assert HOSTILE not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert json.loads(data)["models"] == report.summary["models"]
    with pytest.raises(ss.InputError, match=r"must end in .html"):
        report.save(tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == [path]


def test_a_notebook_shows_it_in_a_frame_of_its_own(report):
    shown = report._repr_html_()
    assert shown.startswith("<iframe ")
    assert "\n" not in shown
    assert "sandbox=" in shown
    assert HOSTILE not in shown
    assert repr(report).startswith("Report(")
