"""The words and tables of a report: the answer, its cards, methods, short names, even decimals, a backtest."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from commands import run
from report_case import HOSTILE, TIMES
from survscore._validation import several
from survscore.reports import summarise
from survscore.reports.answers import recommendation
from survscore.reports.scores import relative
from survscore.reports.section import Column, Section
from survscore.reports.summary import page_tables_of, panels_of, tables_of
from survscore.results.rounding import digits_of, evenly, fixed, short


def of_models(y, models, **options):
    weighting = None if y.censoring_time is None or y.event.all() else ["administrative", "ipcw"]
    return summarise(y, models, times=TIMES, n_curves=0, **{"weighting": weighting, **options})


# The answer


def test_cards_are_the_library_s_contrasts(case, report):
    y, models = case
    whole = ss.compare(y, models, weighting="administrative", times=TIMES).integrated(5, 90)
    cards = report.summary["answer"]["brier"]["cards"]
    # of three models every pair, and the best against the null model
    pairs = [(card["model"], card["reference"]) for card in cards]
    assert pairs == [("leaking", "truth"), (HOSTILE, "truth"), ("leaking", HOSTILE), ("truth", "Kaplan-Meier")]
    row = whole.contrasts.set_index("model").loc["leaking"]
    assert cards[0]["amount"] == f"{row.difference:.4f} worse"
    assert cards[0]["interval"] == f"95 % interval {row.lower:.4f} to {row.upper:.4f} worse"
    assert cards[0]["p"] == f"p = {row.p_value:.3f}"
    reference = whole.scores.set_index("model").score["truth"]
    assert cards[0]["percent"] == f"{100 * row.difference / reference:.2g} % of truth's {reference:.4f}"
    pairs = pd.DataFrame(report.summary["pairs"]).query("metric == 'brier'").set_index(["model", "reference"])
    other = ss.compare(y, models, weighting="administrative", times=TIMES, reference=HOSTILE).integrated(5, 90)
    wanted = other.contrasts.set_index("model").loc["leaking"]
    for name in ("difference", "lower", "upper", "p_value"):
        assert pairs[name]["leaking", HOSTILE] == pytest.approx(wanted[name], rel=1e-9)


def test_sentences_of_the_answer(case):
    y, models = case
    alone = of_models(y, {"net": models[HOSTILE]}, metric="brier")["answer"]["brier"]
    assert alone["sentence"] == "net is significantly worse than Kaplan-Meier, the same curve for all individuals."
    nothing = of_models(y, {"net": models["truth"]}, metric="brier", null=False)["answer"]["brier"]
    assert nothing["sentence"] == "There is one model, and nothing to compare it with."
    assert nothing["cards"] == []
    some = {"a": models["truth"], "b": models["truth"], "c": models[HOSTILE]}
    assert of_models(y, some, metric="brier")["answer"]["brier"]["sentence"].startswith(
        "No single winner: a is not significantly different from b; it is significantly better than c."
    )


def test_recommendations():
    asked = {"sentence": "Use x: why.", "caution": None, "contradictions": [], "unclear": ["u"], "certain": True}
    assert recommendation(**asked) == {"trust": "yes", "heading": "rely on this", "sentences": ["Use x: why.", "u"]}
    assert recommendation(**asked, leaking=["m"])["heading"] == "rely on this, but not on IPCW scores of m"
    assert recommendation(**{**asked, "certain": False})["trust"] == "with care"
    contradicted = recommendation(**{**asked, "contradictions": ["c"]})
    assert (contradicted["trust"], contradicted["sentences"]) == ("with care", ["c", "Use x: why."])
    stop = recommendation(**{**asked, "caution": "beware", "contradictions": ["c"]})
    assert (stop["trust"], stop["sentences"]) == ("no", ["beware", "c"])


# Names and numbers


def test_columns_have_even_decimals():
    assert evenly([0.1234567, 0.02, None, -3e-9]) == ["0.1235", "0.0200", "–", "−3e−9"]
    assert evenly([1500, 20, 0]) == ["1,500", "20", "0"]
    assert evenly([123.456, 7.0]) == ["123.5", "7.0"]
    assert evenly([None]) == ["–"]
    told = {34870.26: "34870.3", 41007.0: "41007", -2.5: "−2.5", 1e-9: "1e−9", None: "–", True: "yes", 999.99: "1000"}
    assert [short(value) for value in told] == list(told.values())
    assert evenly([-0.00001], 4) == ["−1e−5"]
    assert (fixed(-0.00001, 4), fixed(1234.5, 1), fixed(float("nan"), 2)) == ("0.0000", "1,234.5", "–")
    # half an interval has two digits of its own, and one narrow interval does not rule all
    assert digits_of([0.1, 0.2], [0.12, 0.22], [0.11, 0.21]) == 3
    assert digits_of([0.1, 0.2], [0.3, 0.2000002], [0.2, 0.2000001]) == 3
    assert (relative(-0.01, 0.2), relative(1e-9, 0.2), relative(1, 0)) == ("−5.0 %", "0.0 %", "–")


def test_tables_that_are_shown_have_whole_columns(report, lost_report):
    for summary in (report.summary, lost_report.summary):
        for display in (table for tables in page_tables_of(summary).values() for table in tables):
            size = len(display.rows)
            assert len(display.models or [0] * size) == len(display.groups or [0] * size) == size
            assert display.name in tables_of(summary)  # all digits are available
            for kind, texts in zip(display.align, zip(*display.rows, strict=True), strict=True):
                points = {len(text.split(".")[-1]) for text in texts if re.fullmatch(r"−?[\d,]+\.\d+", text)}
                assert kind != "r" or len(points) <= 1 or display.name == "horizons"  # in line on the point
    (means, *_) = page_tables_of(report.summary)["means"]
    first = pd.DataFrame(report.summary["means"]).iloc[0]
    assert means.rows[0][:3] == ("truth", fixed(first.score), f"{fixed(first.lower)} to {fixed(first.upper)}")


def test_cells_of_every_kind_are_escaped():
    section = Section({"level": 0.95, "models": [HOSTILE]})
    table = section.page_table("t", HOSTILE, [Column(HOSTILE, [HOSTILE], kind) for kind in "lrmwv"], groups=[HOSTILE])
    rows = table.rows_html(section.summary, {HOSTILE: f"{HOSTILE}!"})
    assert "<script" not in rows
    # of the short name of a weighting twice in full, of a verdict as a class; all headings, and that of the group
    assert rows.count("&lt;script&gt;") == 5 + (1 + 1 + 1 + 3 + 2) + 1
    assert 'data-model-row="0"' in rows


def test_the_horizon_table_is_the_library_s(case, report):
    y, models = case
    wanted = ss.score_table(y, models, horizons=[30, 60], metric=["brier", "auc", "oe"], weighting="administrative")
    wanted = wanted.to_frame().set_index(["metric", "time", "model"])
    found = pd.DataFrame(report.summary["horizons"]).set_index(["metric", "horizon", "model"])
    assert set(found.index) == set(wanted.index)
    for name in ("estimate", "lower", "upper", "difference", "difference_lower", "p_value"):
        pair = np.column_stack([found[name].astype(float), wanted.loc[found.index, name]])
        assert np.allclose(pair[:, 0], pair[:, 1], rtol=1e-12, atol=0, equal_nan=True)


def test_verdicts_of_administrative_scores_on_a_leak_are_marked_in_all_tables(case):
    y, models = case
    two = {name: models[name] for name in ("truth", "leaking")}
    found = of_models(y, two, metric="brier", by={"half": np.arange(len(y)) % 2}, weighting=None)
    shown = page_tables_of(found)
    assert found["headline"].startswith("projected")
    (at_times,) = shown["horizons"]
    assert at_times.title.startswith("Accuracy, discrimination and calibration at single times, administrative. (1) ")
    for name in ("horizons", "verdicts", "segments"):
        table = found[name]["table"] if name == "segments" else found[name]
        rows = pd.DataFrame(table).assign(weighting="administrative") if name == "horizons" else pd.DataFrame(table)
        rows = rows[rows.verdict.astype(bool) & rows.verdict.notna()]
        scoped = rows.model.eq("leaking") & rows.weighting.str.startswith("administrative")
        assert (rows.mark.eq(" (1)") == scoped).all()
        assert scoped.any(), name


# Methods


def test_methods_say_what_was_done_and_cite_it(report, lost_report):
    text = " ".join(report.summary["methods"]["paragraphs"])
    counts = "1,500 individuals, of whom 1,033 (68.9 %) had the event"
    for done in (counts, "None dropped out before it.", "computed at 18 times", "from 5 to 90, by the trapezoidal"):
        assert done in text
    assert "Segments" not in text
    cited = {int(number) for group in re.findall(r"\[([\d, ]+)\]", text) for number in group.split(", ")}
    assert cited == set(range(1, len(report.summary["methods"]["references"]) + 1))
    assert "9 of 1,500 dropped out" in " ".join(lost_report.summary["methods"]["paragraphs"])
    assert any("Blanche" in one for one in lost_report.summary["methods"]["references"])


# A backtest


@pytest.fixture(scope="module")
def dated():
    rng = np.random.default_rng(1)
    n = 1200
    day, risk = rng.integers(0, 1500, n), rng.normal(size=n)
    event = day + rng.exponential(900 * np.exp(-risk))
    start, date = (np.datetime64("2010-01-01") + days.astype("m8[D]") for days in (day, event))
    y = ss.Outcomes.from_dates(start, date, "2019-12-31")
    times = np.arange(100.0, 1001.0, 100.0)
    honest = np.exp(-np.exp(risk)[:, None] * times / 900)
    seen = (np.datetime64("2014-06-30") - start).astype(float)[:, None] > times
    models = {
        "honest": ss.SurvivalCurves(honest, times),
        "leaking": ss.SurvivalCurves(honest**1.3 * seen, times, interpolation="step"),
    }
    return y, models, start, date, times


def test_a_backtest_has_a_section(dated):
    y, models, *_ = dated
    tested = ss.backtest(y, models, as_of=["2013-06-30", "2014-06-30"], horizons=[600, 900], n_draws=20)
    found = ss.report(y, models, backtest=tested, unit="D", n_curves=0, metric="brier")
    told, table = found.summary["backtest"], tested.summary
    assert told["sentence"] == tested.sentence
    assert told["summary"]["relative_regret"] == table["relative_regret"].tolist()
    assert told["regrets"]["relative_regret"] == tested.regrets().T.ravel().tolist()
    short = ["administrative", "projected", "IPCW"]
    right = [f"{name} in {k} of 4" for name, k in zip(short, table["chose_best"], strict=True)]
    assert told["chosen"] == f"The model that turned out best would have been chosen by {several(right)} cases."
    assert told["chosen"] in found.html.split('id="backtest"')[1].split("</section>")[0]
    (panel,) = panels_of(found.summary)["backtest"]
    assert [row["title"] for row in panel["rows"]] == short
    assert json.loads(json.dumps(found.summary, allow_nan=False)) == found.summary
    with pytest.raises(ss.InputError, match=r"backtest must be a Backtest, .* not DataFrame"):
        ss.report(y, models, backtest=table)


def test_the_command_line_adds_a_backtest(dated, tmp_path, capsys, monkeypatch):
    y, models, start, date, times = dated
    ids = np.arange(len(y))
    ended = np.where(date <= np.datetime64("2019-12-31"), date.astype(str), "")
    pd.DataFrame({"id": ids, "start": start.astype(str), "event_date": ended}).to_csv(tmp_path / "y.csv", index=False)
    for name, curves in models.items():
        frame = pd.DataFrame(curves.probabilities, columns=[f"{time:g}" for time in times])
        frame.assign(id=ids).to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    asked = ["report", "y.csv", "honest.csv", "leaking.csv", "-m", "brier", "-o", "page.html", "--individuals", "0"]
    dates = ["--cutoff", "2019-12-31", "--as-of", "2013-06-30", "--horizons", "600", "--draws", "5"]
    code, out, err = run(capsys, *asked, *dates)
    assert code == 0, err
    assert "Over 1 earlier day and 1 horizon, the model chosen was in truth worse" in out + err
    assert "would have been chosen by administrative in 1 of 1" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for wrong, told in (
        (["--as-of", "2013-06-30", "--horizons", "600"], "--as-of needs outcomes as dates: give the data cut-off"),
        (["--cutoff", "2019-12-31", "--as-of", "2013-06-30"], "--as-of needs --horizons"),
        (["--cutoff", "2019-12-31", "--draws", "5"], "--draws is for --as-of"),
    ):
        code, _, err = run(capsys, "report", "y.csv", "honest.csv", "-o", "other.html", *wrong)
        assert (code, err.count("\n")) == (2, 1)
        assert told in err
        assert not (tmp_path / "other.html").exists()
