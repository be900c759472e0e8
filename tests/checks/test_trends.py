"""The history on the page of a report."""

import json
import re
from dataclasses import replace

import pytest

import survscore as ss
from checks_case import compared, day
from looks import show
from report_case import HOSTILE, OPTIONS, make
from survscore.checks import Run, append_run
from survscore.reports.summary import panels_of


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "h.jsonl"
    for k in range(1, 5):
        run = Run.of(compared(seed=k, metric=("brier", "auc"), weighting="administrative"), id=f"r{k}", date=day(k))
        renamed = {"new": HOSTILE, "old": "truth"}
        tables = {name: table.assign(model=table["model"].replace(renamed)) for name, table in run.tables.items()}
        scores = tables["scores"]
        same = (scores["model"] == "Kaplan-Meier") & (scores["metric"] == "auc") & (scores["from"] < scores["to"])
        scores.loc[same, "score"] = 0.5 + (k - 2) * 2.0**-54  # the same but for rounding
        append_run(path, replace(run, tables=tables))
    return path


def test_the_page_shows_the_runs_and_escapes_their_names(history):
    y, models = make()
    report = ss.report(y, models, history=history, **OPTIONS)
    means = report.summary["history"]["means"]
    assert means["run"][:4] == [1, 2, 3, 4]
    assert set(means["model"]) == {"truth", HOSTILE, "Kaplan-Meier"}
    panels = panels_of(report.summary)["history"]
    assert len(panels) == 2 * 3
    assert panels[0]["xnames"] == ["", "2025-01-01", "2025-01-02", "2025-01-03", "2025-01-04"]
    assert all(panel["series"][0]["stop"] - panel["series"][0]["start"] == 4 for panel in panels)
    assert 'id="history"' in report.html
    assert HOSTILE not in report.html
    assert json.loads(json.dumps(report.summary)) == report.summary
    # the brier score is switched with the page's metric; auc, which the page does not have, always stands
    assert [panel.get("metric") for panel in panels] == ["brier"] * 3 + [None] * 3
    assert ss.report(y, models, history=history, **OPTIONS).html == report.html


def test_other_ranges_and_broken_lines_are_told(history):
    append_run(history, Run.of(compared(times=[5, 10, 20], weighting="administrative"), id="other", date=day(9)))
    with history.open("ab") as file:
        file.write(b'{"survscore_run": ')
    y, models = make()
    notes = ss.report(y, models, history=history, **OPTIONS).summary["history"]["notes"]
    assert "line 6 is broken" in notes[0]
    assert "Brier score are not over the same time in all runs (5 to 20, and 5 to 80)" in notes[1]


def test_the_command_shows_it(command, study, history, tmp_path):
    arguments = ["report", study / "outcomes.csv", study / "truth.csv", "-m", "brier", "-o", "page.html"]
    assert command(*arguments, "--history", history)[0] == 0
    assert re.search('<h2 id="history-h">', (tmp_path / "page.html").read_text())
    code, _, err = command(*arguments, "--history", "absent.jsonl")
    assert (code, err.count("\n")) == (2, 1)
    assert "there is no such history" in err


def test_a_browser_draws_the_runs_and_a_model_s_panel_goes_with_it(browser, history, tmp_path):
    y, models = make()
    path = ss.report(y, models, history=history, **OPTIONS).save(tmp_path / "report.html")
    page, said = show(browser, path)
    chart = page.locator('[data-chart="history"]')
    titles = chart.locator("figcaption")
    assert titles.count() == 6  # three of the Brier score, and three of AUC, which the page does not switch to
    assert titles.nth(1).inner_text() == f"{HOSTILE}, administrative"
    assert chart.locator("svg path.line").count() == 6
    assert chart.locator("svg path.band").count() == 6
    assert "2025-01-02" in chart.locator("figure").first.inner_text()
    plot = chart.locator(".plot").first
    plot.focus()
    page.keyboard.press("End")
    assert plot.get_attribute("aria-valuetext").startswith("run 4, 2025-01-04: truth 0.")
    button = chart.locator(".legend button").first
    button.click()
    assert titles.count() == 4
    button.click()
    assert titles.count() == 6
    page.locator("input[name=metric][value=log]").check()
    assert titles.count() == 3
    assert said == []
    page.close()
