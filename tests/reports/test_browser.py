"""The page in a real browser: every control, no error, no request, the library's numbers, names for screen readers."""

import csv
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import survscore as ss
from combinations import nightly_but
from looks import show
from report_case import HOSTILE, OPTIONS, TITLE
from survscore.reports.summary import tables_of
from survscore.results.rounding import evenly, short

WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.fixture(params=WIDTHS)
def page(request, browser, report, tmp_path):
    """Open the report; afterwards nothing must have gone wrong and nothing have been asked for."""
    path = report.save(tmp_path / "report.html")
    opened, said = show(browser, path, viewport={"width": WIDTHS[request.param], "height": 900}, accept_downloads=True)
    asked = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.reload()
    opened.wait_for_selector("html[data-drawn]")
    yield opened
    opened.close()
    assert said == []
    assert {url for url in asked if not url.startswith(("blob:", "data:"))} == {path.as_uri()}


def lines(page, chart, panel=0):
    """Return the drawn lines of a panel."""
    return page.locator(f'[data-chart="{chart}"] figure').nth(panel).locator("svg path.line:not(.tie)")


def test_all_charts_are_drawn_and_fit(page):
    for chart, panels, series in (
        ("remaining", 1, 3), ("scores", 2, 4), ("differences", 2, 3), ("around-censoring", 1, 4), ("calibration", 2, 3),
        ("curves", 6, 3),
    ):  # fmt: skip
        assert page.locator(f'[data-chart="{chart}"] figure').count() == panels, chart
        assert lines(page, chart).count() == series, chart
        for k in range(series):
            drawn = lines(page, chart).nth(k).get_attribute("d")
            assert drawn.count("L") > 10 or chart == "calibration", chart
    # the truth is one probability for everybody: a point, which a line would not show
    assert page.locator('[data-chart="calibration"] figure').first.locator("circle.dot.s0").count() == 1
    # three models to the reference under two weightings
    assert page.locator('[data-chart="answer"] .rows circle').count() == 6
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_metric_is_switched(page, report):
    title = page.locator('[data-chart="scores"] svg text', has_text="lower is better")
    assert "Brier score" in title.first.text_content()
    before = lines(page, "scores").first.get_attribute("d")
    page.get_by_role("radio", name="logarithmic loss").check()
    assert "logarithmic loss" in title.first.text_content()
    assert lines(page, "scores").first.get_attribute("d") != before
    shown = [card.inner_text() for card in page.locator("#answer .card").all() if card.is_visible()]
    cards = report.summary["answer"]["log"]["cards"]
    assert len(shown) == len(cards)
    for text, card in zip(shown, cards, strict=True):
        assert card["amount"] in text
        assert card["interval"] in text
    page.get_by_role("radio", name="Brier score").check()
    assert lines(page, "scores").first.get_attribute("d") == before


def test_values_are_read_by_pointer_and_keys(page, report):
    plot = page.locator('[data-chart="scores"] .plot').first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    tip = plot.locator(".tip")
    assert tip.is_visible()
    assert HOSTILE in tip.text_content()
    size, chart = tip.bounding_box(), plot.bounding_box()
    # it does not stand on what it describes
    assert size["y"] + size["height"] <= chart["y"] or size["y"] >= chart["y"] + chart["height"]
    page.mouse.move(0, 0)
    assert not tip.is_visible()
    plot.focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    text = plot.get_attribute("aria-valuetext")
    scores = report.summary["scores"]
    row = scores["time"].index(15)  # the third time of the first model
    score, lower, upper = (short(scores[name][row]) for name in ("score", "lower", "upper"))
    assert text.startswith("time 15: truth ")
    assert f"truth {score} ({lower} to {upper})" in text
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_tables_open_and_files_hold_all_digits(page, report):
    tables = tables_of(report.summary)
    for details in page.locator("details.numbers").all():
        details.locator("summary").click()
        name = details.locator("[data-fill]").get_attribute("data-fill")
        rows = details.locator("tbody tr")
        rows.first.wait_for()  # a table is made when it is opened
        assert rows.count() == len(next(iter(tables[name].values()))), name
        cells = [cell.text_content() for cell in rows.last.locator("td").all()]
        assert cells == [_shown(column)[-1] for column in tables[name].values()], name
    open_all = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    page.evaluate(open_all)
    for k in [k for k, button in enumerate(page.locator("button.download").all()) if button.is_visible()]:
        if k % 4 == 3:  # Chromium stops a page that starts ten downloads in a row
            page.reload()
            page.wait_for_selector("html[data-drawn]")
            page.evaluate(open_all)
        button = page.locator("button.download").nth(k)
        with page.expect_download() as waited:
            button.click()
        name = button.get_attribute("data-table")
        assert waited.value.suggested_filename == f"{name}.csv"
        with open(waited.value.path(), newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == list(tables[name])
        for column, values in tables[name].items():
            for row, value in zip(rows, values, strict=True):
                if isinstance(value, float):
                    assert float(row[column]) == value
                elif not isinstance(value, bool):
                    assert row[column] == ("" if value is None else str(value))


def _shown(column):
    numeric = isinstance(next((value for value in column if value is not None), None), (int, float))
    numeric = numeric and not any(isinstance(value, bool) for value in column)
    return evenly(column) if numeric else [short(value) for value in column]


@pytest.mark.parametrize("chart", ["answer", "scores"])
def test_charts_are_saved_as_pictures(page, chart, tmp_path):
    place = page.locator(f'[data-chart="{chart}"]')
    with page.expect_download() as waited:
        place.get_by_role("button", name="SVG").click()
    assert waited.value.suggested_filename == f"{chart}.svg"
    waited.value.save_as(tmp_path / "chart.svg")
    root = ElementTree.parse(tmp_path / "chart.svg").getroot()
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(texts) >= place.locator(".panels svg text").count() > 10
    lines_of = [one for one in root.iter() if "whisker" in one.get("class", "") or "line s1" in one.get("class", "")]
    assert all(one.get("stroke", "").startswith("rgb") for one in lines_of)  # looks travel with it
    assert lines_of
    with page.expect_download() as waited:
        place.get_by_role("button", name="PNG").click()
    waited.value.save_as(tmp_path / "chart.png")
    with Image.open(tmp_path / "chart.png") as picture:
        assert picture.size == (2 * float(root.get("width")), 2 * float(root.get("height")))
        assert len(picture.convert("RGB").resize((200, 200)).getcolors(40_000)) > 50


def test_everything_has_a_name(page):
    assert page.title() == page.locator("h1").text_content() == TITLE
    for plot in page.locator("[role=slider]").all():
        assert "Arrow keys" in plot.get_attribute("aria-label")
    assert page.locator("table caption").count() == page.locator("table").count()
    assert page.locator("th:not([scope])").count() == 0
    # the hostile name is text in every place, and never became an element
    assert page.locator(f'form label:has-text("{HOSTILE}")').count() == 1
    assert page.locator("script").count() == 2


def test_a_report_without_script_still_answers(browser, report, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(report.save(tmp_path / "report.html").as_uri())
    answer = opened.locator("#answer").text_content()
    assert report.summary["answer"]["brier"]["sentence"] in answer
    assert report.summary["answer"]["brier"]["cards"][0]["interval"] in answer
    assert opened.locator("#scores table").first.is_visible()
    context.close()


ODD = {
    "one model": {"models": ["truth"], "null": False},
    "one time": {"times": [30]},
    "closer to a target": {"metric": ["oe"]},
    "many segments": {"by": {"part": np.arange(1500) % 45}},
}


@pytest.mark.parametrize("odd", nightly_but(["one model", "many segments"], ODD))
def test_odd_reports_are_drawn_without_an_error(browser, case, odd, tmp_path):
    y, models = case
    options = dict(ODD[odd])
    chosen = {name: models[name] for name in options.pop("models", models)}
    made = ss.report(y, chosen, **{"times": [10, 20, 30], "horizons": [20], "n_curves": 1, **options})
    opened, said = show(browser, made.save(tmp_path / "report.html"))
    assert opened.locator(".plot svg path.line").count() > 0
    drawn = opened.locator(".chart svg").evaluate_all("(all) => all.map((one) => one.outerHTML).join()")
    assert "NaN" not in drawn
    assert "Infinity" not in drawn
    assert opened.locator('[data-chart="answer"]').count() == (odd != "one model")
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.close()
    assert said == []


@pytest.fixture(scope="module")
def segments_page(case, tmp_path_factory):
    y, models = case
    rng = np.random.default_rng(1)
    labels = rng.choice(["DE", "FR", "", "<img src=x onerror=alert(1)>"], len(y), p=[0.5, 0.33, 0.01, 0.16])
    by = {"country": labels, "plan": rng.choice(["basic", "plus"], len(y))}
    made = ss.report(y, models, **OPTIONS, by=by, n_curves=0)
    return made, made.save(tmp_path_factory.mktemp("page") / "segments.html")


@pytest.mark.parametrize("width", WIDTHS.values())
def test_segments_are_drawn(browser, segments_page, width):
    made, path = segments_page
    opened, said = show(browser, path, viewport={"width": width, "height": 900})
    assert opened.locator('[data-chart="segments"] .rows').count() == 2
    forest = opened.locator('[data-chart="segments"] .rows').first
    table = made.summary["segments"]["table"]
    first = [
        k for k in range(len(table["model"]))
        if (table["metric"][k], table["weighting"][k]) == ("brier", "administrative") and table["country"][k] != "(all)"
    ]  # fmt: skip
    assert forest.locator("line.whisker").count() == sum(table["lower"][k] is not None for k in first)
    assert forest.locator("circle").count() == sum(table["difference"][k] is not None for k in first)
    assert forest.locator("path.fill").count() == 3  # everybody's, by model
    boxes = [text.bounding_box() for text in forest.locator("text").all()]
    for k, a in enumerate(boxes):  # no text on another, none outside
        assert 0 <= a["x"]
        assert a["x"] + a["width"] <= width
        for b in boxes[:k]:
            apart = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert apart or a["y"] + a["height"] <= b["y"] + 4 or b["y"] + b["height"] <= a["y"] + 4
    opened.get_by_role("checkbox", name="leaking").uncheck()
    assert forest.locator("path.fill").count() == 2
    opened.get_by_role("checkbox", name="intervals").uncheck()
    assert forest.locator("line.whisker").count() == 0
    opened.close()
    assert said == []
