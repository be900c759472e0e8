"""The same numbers give the same scores in whatever form they come, and none is taken for another without a word."""

import io as streams
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mangling
import survscore as ss
from commands import refused, run
from survscore import io
from survscore.io.study import FAR

TIMES = [3.0, 8, 15, 29]
MONTH = 365.25 / 12


def scored(capsys, *arguments):
    """Return the scores of a command, and the notes that it gave."""
    code, out, err = run(capsys, "score", *arguments, "-w", "administrative", "-m", "brier", "--json", "-")
    assert code == 0, err
    return [row["score"] for row in json.loads(out)["scores"]], err


@pytest.fixture
def case(tmp_path):
    """Write outcomes with ids, in days; return the folder, the curves of one model by a shuffled id, and its scores."""
    y, models, ids = mangling.study(n=60)
    io.write_outcomes(tmp_path / "y.csv", y, ids=ids)
    curves = models["net"]
    order = np.random.default_rng(3).permutation(len(y))
    frame = pd.DataFrame(curves.probabilities[order], columns=[f"{time:g}" for time in curves.times])
    wanted = ss.brier_score(y, curves, weighting="administrative", times=TIMES).scores
    return SimpleNamespace(folder=tmp_path, y=y, curves=curves, ids=ids[order], frame=frame, wanted=wanted)


def wide(case, frame=None):
    frame = case.frame if frame is None else frame
    return frame.assign(id=case.ids)


def long(case):
    return wide(case).melt(id_vars="id", var_name="time", value_name="survival").astype({"time": float})


def transposed(case):
    turned = case.frame.T
    turned.columns = case.ids
    turned.index = turned.index.astype(float)
    return turned


def months(case):
    return wide(case, case.frame.rename(columns=lambda time: f"month_{float(time) / MONTH!r}"))


def csv(frame, path):
    frame.to_csv(path, index=False)


ENDINGS = ("csv", "csv.gz", "tsv.gz", "csv.zst", "parquet", "feather", "arrow")
FORMS = {
    "wide": (wide, {}),
    "event": (lambda case: wide(case, 1 - case.frame), {"predicts": "event"}),
    "percent": (lambda case: wide(case, 100 * case.frame), {"percent": True}),
    "event in percent": (lambda case: wide(case, 100 - 100 * case.frame), {"predicts": "event", "percent": True}),
    "long": (long, {}),
    "long, said so": (long, {"long": True}),
    "months": (months, {"columns": "month_{time}", "unit": "month"}),
}


def as_options(settings):
    named = {"unit": "predictions-unit"}
    options = []
    for name, value in settings.items():
        options += [f"--{named.get(name, name)}"] + ([] if value is True else [value])
    return options + (["--unit", "day"] if "unit" in settings else [])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("form", FORMS)
def test_whatever_the_form_the_scores_are_the_same(capsys, case, form, ending):
    make, settings = FORMS[form]
    path = case.folder / f"net.{ending}"
    path.write_bytes(mangling.content(make(case), ending))
    options = ["-t", "3,8,15,29", "--interpolation", "linear", *as_options(settings)]
    found, notes = scored(capsys, case.folder / "y.csv", path, *options)
    np.testing.assert_allclose(found, case.wanted, rtol=0, atol=1e-12)
    assert notes == ""
    with_unit = {"outcomes_unit": "D"} if "unit" in settings else {}
    curves = io.read_predictions(path, **settings, **with_unit).models["net"]
    np.testing.assert_allclose(curves.times, case.curves.times, rtol=1e-14)


@pytest.mark.parametrize("event", [False, True])
def test_transposed_files_are_recognised_and_read(capsys, case, event):
    turned = 1 - transposed(case) if event else transposed(case)
    options = ["-t", "3,8,15,29", *(["--predicts", "event"] if event else [])]
    turned.to_csv(case.folder / "a.csv")  # with the index, as people do
    turned.to_parquet(case.folder / "a.parquet")
    for path in (case.folder / "a.csv", case.folder / "a.parquet"):
        assert "--transposed takes such files" in refused(
            capsys, "score", case.folder / "y.csv", path, "-w", "administrative", *options
        )
        found, _ = scored(capsys, case.folder / "y.csv", path, "--transposed", *options)
        np.testing.assert_allclose(found, case.wanted, rtol=0, atol=1e-12)


def test_lifelines_own_names_of_columns_are_no_times(capsys, case):
    y, models, _ = mangling.study(n=60)
    io.write_outcomes(case.folder / "plain.csv", y)
    turned = pd.DataFrame(models["net"].probabilities.T, index=models["net"].times)  # columns 0, 1, 2, ...
    turned.to_csv(case.folder / "net.csv")
    paths = [case.folder / "plain.csv", case.folder / "net.csv"]
    asked = ["-w", "administrative", "-t", "3,8,15,29"]
    assert "--transposed takes" in refused(capsys, "score", *paths, *asked)
    assert "--transposed takes" in refused(capsys, "score", *paths, *asked, "--monotone", "keep")
    found, _ = scored(capsys, *paths, "--transposed", "-t", "3,8,15,29")
    np.testing.assert_allclose(found, case.wanted, rtol=0, atol=1e-12)


def test_an_index_that_pandas_wrote_makes_no_transposed_file(case):
    ordered = case.frame.sort_values("5").reset_index(drop=True)
    ordered.to_csv(case.folder / "net.csv")
    assert io.read_predictions(case.folder / "net.csv").models["net"].shape == (60, 5)
    pd.DataFrame(np.sort(case.frame, axis=0), columns=case.frame.columns).to_csv(case.folder / "net.csv")
    assert io.read_predictions(case.folder / "net.csv").models["net"].shape == (60, 5)


# Predictions of the event


def test_rising_predictions_are_those_of_the_event(capsys, case):
    path = case.folder / "classifier.csv"
    csv(wide(case, 1 - case.frame), path)
    message = refused(capsys, "score", case.folder / "y.csv", path, "-w", "administrative")
    assert "--predicts event takes these" in message
    assert "--monotone" not in message
    with pytest.raises(ss.InputError, match=r"`from_event_probabilities` takes these$"):
        ss.SurvivalCurves(1 - case.frame.to_numpy(), case.curves.times)
    csv(wide(case), path)
    message = refused(capsys, "score", case.folder / "y.csv", path, "-w", "administrative", "--predicts", "event")
    assert "--predicts survival takes these" in message


@pytest.mark.parametrize(("command", "times"), [("score", ["10"]), ("compare", ["5", "10", "17.25"])])
def test_predictions_of_the_event_taken_for_survival_get_a_note(capsys, tmp_path, command, times):
    # right predictions of a rare event: their opposite is far worse than Kaplan-Meier
    rng = np.random.default_rng(5)
    y, _, ids = mangling.study(n=400)
    keep = rng.random(400) < 0.4
    rare = ss.Outcomes(np.where(keep, y.time, y.censoring_time), y.event & keep, y.censoring_time)
    io.write_outcomes(tmp_path / "y.csv", rare, ids=ids)
    chance = 0.03 * np.array([float(time) for time in times]) * rng.uniform(0.2, 0.9, (400, 1)) * 0.4
    pd.DataFrame(chance, columns=times).assign(id=ids).to_csv(tmp_path / "net.csv", index=False)
    asked = [tmp_path / "y.csv", tmp_path / "net.csv", "-w", "administrative", "--monotone", "keep"]
    asked += ["-t", ",".join(times)]
    code, _, err = run(capsys, command, *asked)
    assert code == 0
    assert err.count("are far worse than Kaplan-Meier") == 1
    assert "--predicts event takes the former, --predicts survival the latter" in err
    code, _, err = run(capsys, command, *asked, "--predicts", "event")
    assert (code, err) == (0, "")
    wrong = ss.SurvivalCurves(chance, [float(time) for time in times], monotone="keep")
    with pytest.warns(UserWarning, match=r"'net' are far worse .*`from_event_probabilities` takes the fo"):
        ss.compare(rare, iter([("net", wrong)]), weighting="administrative")


def test_bad_predictions_that_are_not_the_opposite_get_no_note(recwarn):
    y, models, _ = mangling.study(n=300)
    coins = np.random.default_rng(1).integers(0, 2, models["net"].shape)
    far = ss.SurvivalCurves(coins, models["net"].times, monotone="keep")
    ss.compare(y, models | {"far": far}, weighting="administrative", times=[5, 10, 20])
    assert not [one for one in recwarn if "far worse" in str(one.message)]


# Percentages


def test_percentages_are_named_and_taken(capsys, case):
    path = case.folder / "net.csv"
    csv(wide(case, 100 * case.frame), path)
    asked = ["score", case.folder / "y.csv", path, "-w", "administrative"]
    assert "read files with --percent" in refused(capsys, *asked)
    csv(wide(case, 101 + case.frame), path)
    assert "percentages must be between 0 and 100: 300 values are not" in refused(capsys, *asked, "--percent")
    csv(wide(case), path)
    assert "these look like probabilities" in refused(capsys, *asked, "--percent")
    csv(wide(case, 0.5 * (1 - case.frame)), path)  # rare events may all be below one percent
    curves = io.read_predictions(path, percent=True, predicts="event").models["net"]
    assert curves.probabilities.min() > 0.995


# Units


def test_months_are_not_taken_for_days_without_a_word(capsys, tmp_path):
    rng = np.random.default_rng(1)
    n, rate = 300, 1 / 400
    event_time, end = rng.exponential(1 / rate, n).round(), rng.integers(300, 760, n)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    io.write_outcomes(tmp_path / "y.csv", y)
    grid = np.arange(1, 25)
    survival = np.tile(np.exp(-rate * MONTH * grid), (n, 1))
    pd.DataFrame(survival, columns=[f"month_{k}" for k in grid]).to_csv(tmp_path / "net.csv", index=False)
    asked = [tmp_path / "y.csv", tmp_path / "net.csv", "--columns", "month_{time}"]
    assert FAR == 10
    _, notes = scored(capsys, *asked, "-t", "10,20")
    assert "predictions of 'net' end at 24, but the longest follow-up is 758" in notes
    assert "--predictions-unit month converts them" in notes
    assert "--predictions-unit needs --unit" in refused(
        capsys, "score", *asked, "-w", "administrative", "--predictions-unit", "month"
    )
    found, notes = scored(capsys, *asked, "--predictions-unit", "month", "--unit", "D", "-t", "100,200,700")
    curves = ss.SurvivalCurves(survival, MONTH * grid)
    wanted = ss.brier_score(y, curves, weighting="administrative", times=[100, 200, 700]).scores
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert notes == ""


def test_names_of_columns_that_say_another_unit_are_noticed(tmp_path):
    (tmp_path / "y.csv").write_text("start,event_date\n2017-01-01,\n2017-01-02,2017-01-05\n")
    (tmp_path / "p.csv").write_text("week_1,week_2\n0.5,0.4\n0.6,0.4\n")
    asked = {"cutoff": "2017-02-01", "columns": "week_{time}"}
    with pytest.warns(UserWarning, match=r"but outcomes are in days, .*; `predictions_unit='week'` converts them"):
        io.read_study(tmp_path / "y.csv", tmp_path / "p.csv", **asked)
    study = io.read_study(tmp_path / "y.csv", tmp_path / "p.csv", predictions_unit="weeks", **asked)
    assert study.models["p"].times.tolist() == [7, 14]
    study = io.read_study(tmp_path / "y.csv", tmp_path / "p.csv", unit="W", **asked)
    assert study.models["p"].times.tolist() == [1, 2]


def literal_months(start, end):
    """Count months one by one, and then the days of the month begun."""
    whole = 0
    while start + pd.DateOffset(months=whole + 1) <= end:
        whole += 1
    begun, complete = (start + pd.DateOffset(months=whole + k) for k in (0, 1))
    return whole + (end - begun) / (complete - begun)


def test_months_and_years_are_those_of_the_calendar():
    rng = np.random.default_rng(2)
    starts = pd.Timestamp("2015-12-27") + pd.to_timedelta(rng.integers(0, 70 * 24, 300), unit="h")
    ends = starts + pd.to_timedelta(rng.integers(0, 1200 * 24, 300), unit="h")
    y = ss.Outcomes.from_dates(starts, [None] * 300, ends, unit="M")
    np.testing.assert_allclose(y.time, [literal_months(*both) for both in zip(starts, ends, strict=True)], rtol=1e-12)
    years = ss.Outcomes.from_dates(["2016-02-29", "2016-03-01"], [None] * 2, ["2017-02-28", "2018-08-30"], unit="Y")
    np.testing.assert_allclose(years.time, [1, 2 + 182 / 365])


# Dates


def test_an_end_is_an_event_only_where_a_flag_or_a_reason_says_so(capsys, tmp_path):
    path = tmp_path / "y.csv"
    path.write_text(
        "start,end,churned,why\n2017-01-01,2017-01-11,1,churn\n2017-01-01,2017-01-21,0,moved\n"
        "2017-01-01,2017-02-20,1,fraud\n2017-01-01,2017-03-01,0,\n"
    )
    dates = {"cutoff": "2017-02-01"}
    with pytest.warns(UserWarning, match="column 'churned' says that 2 individuals of 4 had none; end='end' with"):
        io.read_outcomes(path, event_date="end", **dates)
    for said in (
        {"event": "churned"},
        {"reason": "why", "event_reasons": ["churn", "fraud"], "censored_reasons": ["moved"]},
    ):
        found = io.read_outcomes(path, end="end", **said, **dates).outcomes
        assert found.event.tolist() == [True, False, False, False]
        assert found.time.tolist() == [10, 20, 31, 31]
        assert found.dropped_out.tolist() == [False, True, False, False]
    asked = ["score", path, "--cutoff", "2017-02-01", "--end", "end", "--reason", "why", "--event-reasons", "churn"]
    message = refused(capsys, *asked)
    assert "column 'why' holds reasons that are not explained: 'fraud' (1), 'moved' (1), the first in row 1" in message
    assert "Name each in --event-reasons, --censored-reasons (" in message
    asked = ["score", path, "--cutoff", "2017-02-01", "--end", "end", "--event", "churned"]
    message = refused(capsys, *asked, "--competing-reasons", "moved")
    assert "what reasons mean needs --reason, the column that says why" in message
    why = {"end": "end", "reason": "why"}
    for said, message in (
        (why, "`reason` needs `event_reasons`"),
        (
            why | {"event_reasons": ["chrun"]},
            "^[^ ]*y.csv: column 'why': no individual has a reason 'chrun'; it ",
        ),
        (why | {"event_reasons": []}, "event_reasons must be reasons"),
        (why | {"event_reasons": ["churn"], "censored_reasons": ["moved", "churn"]}, "'churn' is named more than once"),
        (why | {"event_reasons": ["churn"], "causes": ["churn"]}, "`causes` names those in `event`; with `reason`"),
        (why | {"event": "churned", "event_reasons": ["x"]}, "both say who had the event"),
        ({"end": "end", "event": "churned", "event_date": "end"}, "both say when observation ended"),
        ({"event": "churned", "event_date": "end"}, "event tells which dates of end= are events"),
        ({"end": "end"}, "there is no column 'event'"),
    ):
        with pytest.raises(ss.InputError, match=message):
            io.read_outcomes(path, **said, **dates)
    with pytest.raises(ss.InputError, match="end is for dates, which need a cutoff"):
        io.read_outcomes(path, end="end", event="churned")
    path.write_text("start,end,event\n2017-01-01,,1\n2017-01-01,2017-01-05,1\n")
    with pytest.raises(ss.InputError, match="a date for every individual with event: 1 of 2 have none"):
        io.read_outcomes(path, end="end", **dates)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("start,event_date\n01.01.2017,15.01.2017\n02.01.2017,\n", {"date_format": "%d.%m.%Y", "cutoff": "31.01.2017"}),
        ("start,event_date\n20170101,20170115\n20170102,\n", {"date_format": "%Y%m%d", "cutoff": "2017-01-31"}),
        ("start,event_date\n17167,17181\n17168,\n", {"origin": "1970-01-01", "cutoff": "17197"}),
        ("start,event_date\n42736,42750\n42737,\n", {"origin": "1899-12-30", "cutoff": "2017-01-31"}),
        (
            f"start,event_date\n{17167 * 86400},{17181 * 86400}\n{17168 * 86400},\n",
            {"date_format": "epoch-seconds", "cutoff": "2017-01-31"},
        ),
        (
            f"start,event_date\n2017.0,{2017 + 14 / 365!r}\n{2017 + 1 / 365!r},\n",
            {"date_format": "decimal-year", "cutoff": repr(2017 + 30 / 365)},
        ),
    ],
)
def test_dates_in_other_writings_are_the_same_dates(tmp_path, content, said):
    path = tmp_path / "y.csv"
    path.write_text(content)
    found = io.read_outcomes(path, **said).outcomes
    np.testing.assert_allclose(found.time, [14, 29], rtol=1e-7)
    np.testing.assert_allclose(found.censoring_time, [30, 29], rtol=1e-7)
    assert found.event.tolist() == [True, False]


@pytest.mark.parametrize(
    ("content", "said", "message"),
    [
        ("start,event_date\n17167,\n", {}, "for numbers of days --origin"),
        (
            "start,event_date\n31.12.2016,\n12/31/2016,\n",
            {"date_format": "%d.%m.%Y"},
            r"'start' must be dates written as",
        ),
        ("start,event_date\nx,\n", {"date_format": "decimal-year"}, "years such as 2017.5: 1 of 1"),
        ("start,event_date\n1e9,\n", {"origin": "1970-01-01"}, "within 500 years: 1 of 1"),
        ("start,event_date\n1e20,\n", {"date_format": "epoch-seconds"}, "since 1970, within 290 years: 1 of 1"),
        ("start,event_date\n1,\n", {"origin": "soon"}, "origin must be dates"),
        ("start,event_date\n1,\n", {"origin": "1970-01-01", "date_format": "%Y"}, "--date-format and --origin both"),
    ],
)
def test_dates_that_are_not_as_said_are_named(capsys, tmp_path, content, said, message):
    (tmp_path / "y.csv").write_text(content)
    options = [part for name, value in said.items() for part in (f"--{name.replace('_', '-')}", value)]
    assert message in refused(capsys, "score", tmp_path / "y.csv", "--cutoff", "2017-01-31", *options)


def test_a_cut_off_that_is_rounded_refuses_nobody(tmp_path):
    rng = np.random.default_rng(4)
    n = 10_000
    event_time, end = rng.exponential(40, n).round(4), rng.uniform(5, 20, n).round(4)
    frame = pd.DataFrame({"time": np.minimum(event_time, end), "event": (event_time <= end).astype(int)})
    for digits, cut in ((2, np.round), (2, lambda x, d: np.floor(x * 10**d) / 10**d), (0, np.floor)):
        frame["censoring_time"] = cut(end, digits) if digits else cut(end)
        frame.to_csv(tmp_path / "y.csv", index=False)
        with pytest.warns(UserWarning, match=f"none by more than {10.0**-digits:g}, one in the last digit"):
            y = io.read_outcomes(tmp_path / "y.csv").outcomes
        assert y.n_dropped_out == 0
        assert np.array_equal(y.time, frame.time)
        assert np.abs(y.censoring_time - end).max() <= 10.0**-digits
    frame.loc[7, "time"] = 99.0
    frame.to_csv(tmp_path / "y.csv", index=False)
    with pytest.raises(ss.InputError, match=r"and 1 by more than 1, which is treated as rounding .* position 7 \(99"):
        io.read_outcomes(tmp_path / "y.csv")


def test_whole_days_are_not_rounded(tmp_path):
    (tmp_path / "y.csv").write_text("time,event,censoring_time\n5,0,6\n8,0,7\n")
    with pytest.raises(ss.InputError, match="time must not exceed censoring_time: 1 of 2"):
        io.read_outcomes(tmp_path / "y.csv")
    (tmp_path / "y.csv").write_text("time,event,censoring_time\n5.25,0,5.26\n7,0,7\n")
    assert io.read_outcomes(tmp_path / "y.csv").outcomes.dropped_out.tolist() == [True, False]


# Words


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("Y", "N"), ("TRUE", "FALSE"), ("True", "0"), (" Yes ", "no")])
def test_events_may_be_answers(recwarn, tmp_path, yes, no):
    (tmp_path / "y.csv").write_text(f"time,event\n1,{yes}\n2,{no}\n3,{no}\n")
    assert io.read_outcomes(tmp_path / "y.csv").outcomes.event.tolist() == [True, False, False]
    assert not recwarn.list


def test_events_may_be_states_which_are_told(tmp_path):
    frame = pd.DataFrame({"time": [1, 2], "event": pd.Categorical(["Active", "churned"])})
    frame.to_parquet(tmp_path / "y.parquet")
    with pytest.warns(UserWarning, match="in column 'event', 'active' is no event, 'churned' is the event"):
        assert io.read_outcomes(tmp_path / "y.parquet").outcomes.event.tolist() == [False, True]


@pytest.mark.parametrize("word", ["closed", "maybe", "2", "positive"])
def test_words_that_may_mean_two_things_are_refused(capsys, tmp_path, word):
    (tmp_path / "y.csv").write_text(f"time,event\n1,yes\n2,{word}\n")
    message = refused(capsys, "score", tmp_path / "y.csv")
    assert f"1 of 2 are none, the first in row 1 ('{word}'); --reason and --event-reasons take other words" in message


# Files with options of their own, and standard input


def test_files_may_have_options_of_their_own(capsys, case):
    csv(months(case), case.folder / "a.csv")
    csv(wide(case, (100 - 100 * case.frame).rename(columns=lambda time: f"p{time}")), case.folder / "b.csv")
    transposed(case).to_csv(case.folder / "c.csv")
    files = [
        f"{case.folder / 'a.csv'}[columns=month_{{time}},unit=month]",
        f"new={case.folder / 'b.csv'}[columns=p{{time}}, predicts=event, percent]",
        f"{case.folder / 'c.csv'}[transposed]",
    ]
    found, notes = scored(capsys, case.folder / "y.csv", *files, "--unit", "D", "-t", "3,8,15,29")
    np.testing.assert_allclose(found, np.tile(case.wanted, 3), rtol=0, atol=1e-12)
    assert notes.count("\n") == notes.count("straight lines") == 3  # one for each model
    *_, out = run(capsys, "score", case.folder / "y.csv", files[1], "-w", "administrative", "--json", "-")[:2]
    assert json.loads(out)["settings"]["files"]["forms"] == {
        "new": {"columns": "p{time}", "predicts": "event", "percent": True}
    }
    sources = [
        (None, case.folder / "a.csv", io.Form(columns="month_{time}", unit="month")),
        ("new", case.folder / "b.csv", io.Form(columns="p{time}", predicts="event", percent=True)),
    ]
    assert list(io.read_study(case.folder / "y.csv", sources, unit="D").models) == ["a", "new"]
    odd = case.folder / "d=e[f].csv"
    csv(wide(case), odd)
    assert scored(capsys, case.folder / "y.csv", odd, "-t", "5")[1] == ""
    assert scored(capsys, case.folder / "y.csv", f"x={odd}", "-t", "5")[1] == ""
    for own, message in (
        ("colour=red", "in brackets there may be columns=..., time-column=..., grid="),
        ("percent=1", "in brackets there may be"),
        ("percent,percent", "percent is said twice"),
        ("predicts=nothing", "predicts must be one of 'survival', 'event', not 'nothing'"),
        ("unit=moon", "unit must be one of 'D'"),
        ("long,transposed", "transposed and long are two forms"),
        ("long,columns=p{time}", "columns is for a column per time, not for long files"),
        ("grid=1:2:1", "a grid is for list columns, and there is none"),
        ("grid=x y", "grid: 'x y' must be like 30,90,365"),
    ):
        message_found = refused(capsys, "score", case.folder / "y.csv", f"{odd}[{own}]", "-w", "administrative")
        assert message in message_found, own


@pytest.mark.parametrize("ending", ["csv", "csv.zst", "parquet", "feather"])
def test_one_file_may_come_by_standard_input(capsys, monkeypatch, case, ending):
    path = case.folder / f"net.{ending}"
    path.write_bytes(mangling.content(wide(case), ending))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=streams.BytesIO(path.read_bytes())))
    found, _ = scored(capsys, case.folder / "y.csv", "net=-", "-t", "3,8,15,29")
    np.testing.assert_allclose(found, case.wanted, rtol=0, atol=1e-12)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=streams.BytesIO((case.folder / "y.csv").read_bytes())))
    found, _ = scored(capsys, "-", path, "-t", "3,8,15,29")
    np.testing.assert_allclose(found, case.wanted, rtol=0, atol=1e-12)
    assert "can be one file only" in refused(capsys, "score", "-", "a=-", "-w", "administrative")


def test_columns_of_long_files(capsys, case):
    frame, path = long(case), case.folder / "net.csv"
    csv(frame.drop(columns="time"), path)
    asked = ["score", case.folder / "y.csv", path, "-w", "administrative", "--long"]
    assert "long form needs a column 'time'" in refused(capsys, *asked)
    csv(frame.assign(lower=0.0, note="x"), path)  # what is beside survival is no model
    assert list(io.read_predictions(path).models) == ["net"]
    csv(frame.rename(columns={"survival": "a"}).assign(b=frame.survival), path)
    assert list(io.read_predictions(path).models) == ["a", "b"]
