"""What a report says is what the library says."""

import html
import json

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from report_case import HOSTILE, OPTIONS, TIMES
from survscore.reports import render, summarise, words
from survscore.reports.words import short


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
            found = ss.calibration(y, predicted, horizon, level=0.95)
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
    (sentence,) = report.summary["disagreements"]["contradictions"]["brier"]
    assert sentence == (
        "leaking is better than truth under ipcw (Kaplan-Meier of the scored outcomes), and worse under administrative."
    )
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
    page = render(found)
    assert "There is one model only, so nothing to disagree about." in page
    assert "Its Brier score at time 2 under the weighting administrative is 0.1 (95 % interval" in page
    late = summarise(y, curves, times=[1, 2, 9])  # the predictions end before
    assert "1 time where not all models predict." in late["notes"][0]
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
    assert "its Brier score at 30 differs" in words.verdict({**row, "time": 30.0}, "brier", 0.95)
    assert "a can't be told from b" in words.verdict({**row, "upper": 0.001, "p_value": 0.2}, "log", 0.9)
    assert "p = 0.200" in words.verdict({**row, "upper": 0.001, "p_value": 0.2}, "log", 0.9)
    assert "90 % interval" in words.verdict(row, "log", 0.9)
    small = {**row, "difference": 1e-9, "lower": -2.1e-6, "upper": 2.1e-6}
    assert "differs by 0.0000000 (95 % interval −0.0000021 to 0.0000021" in words.verdict(small, "brier", 0.95)
    for missing in (None, float("nan")):
        unknown = {**row, "lower": missing, "upper": missing, "p_value": missing}
        assert words.verdict(unknown, "log", 0.9).startswith("Nothing can be said about a and b")


def test_disagreements_in_words():
    assert words.contradiction("a", "b", {"x": "better", "y": "better"}) is None
    assert words.contradiction("a", "b", {"x": "better", "y": "undecided"}) is None
    assert words.contradiction("a", "b", {"x": "better", "y": "worse", "z": "better"}) == (
        "a is better than b under x and z, and worse under y."
    )
    assert words.unsure("a", "b", {"x": "better", "y": "worse", "z": "undecided"}) is None
    assert words.unsure("a", "b", {"x": "better", "y": "unknown"}) is None
    assert words.unsure("a", "b", {"x": "better", "y": "undecided"}) == (
        "That a is better than b is clear only under x."
    )


def test_numbers_for_people():
    for value, text in (
        (41007, "41007"), (41007.0, "41007"), (34870.26, "34870.3"), (1161999.5, "1161999.5"), (0.123456, "0.1235"),
        (-2.5, "−2.5"), (1e-9, "1e−9"), (None, "–"), (True, "yes"), ("a", "a"), (999.99, "1000"),
    ):  # fmt: skip
        assert short(value) == text


def test_one_time_is_judged_by_its_score(case):
    y, models = case
    found = summarise(y, models, times=[30])
    contrast = ss.compare(y, models, weighting="administrative", times=[30]).contrasts.iloc[0]
    assert found["verdicts"]["difference"][0] == contrast.difference
    assert "its Brier score at 30 differs by" in found["verdicts"]["sentence"][0]
    assert html.escape(found["verdicts"]["sentence"][0]).replace("&#x27;", "&#39;") in render(found)


def test_individuals_are_called_by_their_ids(case):
    y, models = case
    plain = summarise(y, models, times=TIMES)["curves"]["people"]["individual"]
    ids = pd.Series([f"id{k}" for k in range(len(y))], index=np.arange(len(y))[::-1])  # by position, not by index
    named = summarise(y, models, times=TIMES, ids=ids)["curves"]["people"]["individual"]
    assert named == [f"id{k}" for k in plain]
    same = summarise(y, models, times=TIMES, ids=["x"] * len(y))["curves"]["people"]["individual"]
    assert same == [f"x (row {k})" for k in plain]


def test_a_cut_range_and_a_missing_answer_are_told(case):
    y, models = case
    found = summarise(y, models, times=np.arange(5.0, 131.0, 5.0), range=(5, 130))
    assert any(note.startswith("Means stop at 95 instead of 130") for note in found["notes"])
    alone = render(summarise(y, models["truth"], times=TIMES, null=False))
    assert "There is one model, and nothing to compare it with." in alone
    assert "All weightings come to the same conclusions" not in alone
    assert "Skill is" not in alone


def test_names_that_would_be_confused_are_refused(case):
    y, models = case
    for options, message in (
        ({"losses": ["brier", "brier"]}, "losses must have different names"),
        ({"title": " "}, "title"),
    ):
        with pytest.raises(ss.InputError, match=message):
            summarise(y, models, **options)
    ids = ["A"] * (len(y) - 1) + ["A (row 0)"]
    people = summarise(y, models, times=TIMES, ids=ids, n_curves=len(y))["curves"]["people"]["individual"]
    assert len(set(people)) == len(people) == len(y)


def test_large_times_are_readable(case):
    y, models = case
    later = ss.Outcomes(y.time * 12345.67, y.event, y.censoring_time * 12345.67)
    slow = {name: ss.SurvivalCurves(curves.probabilities, curves.times * 12345.67) for name, curves in models.items()}
    found = summarise(later, slow, times=TIMES * 12345.67, horizons=[123456.7, 123457.1])
    assert "e+0" not in json.dumps(found["notes"]) + json.dumps(found["settings"])
    page = render(found)
    assert "at time 123456.7" in page
    assert "at time 123457.1" in page


def test_odd_names_are_kept_or_escaped(case, tmp_path):
    y, models = case
    page = ss.report(y, {"bad\ud800": models["truth"], "__proto__": models["leaking"]}, times=TIMES).save(
        tmp_path / "r.html"
    )
    assert "bad" in page.read_text(encoding="utf-8")


def test_the_page_is_one_small_safe_file(report, tmp_path):
    path = report.save(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page == report.html
    data = page.split('id="data-json">')[1].split("</script>")[0]
    assert len(page) - len(data) < 100_000
    assert HOSTILE not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert json.loads(data)["tables"]["scores"]["score"] == report.summary["scores"]["score"]
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
