"""How a report looks to a demanding reader, a screen reader and a slow machine: nothing overlaps or is cut.

`SURVSCORE_WRITE_REFERENCES=1 pytest tests/reports/test_looks.py` writes the reference pictures anew: look at them.
"""

import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import survscore as ss
from combinations import nightly_but
from looks import BLOCKS, COLUMNS, MOST_DIFFERENT, WRITE, check_looks, distance, measure, read_picture, screenshot, show
from report_case import OPTIONS
from report_situations import report_of

REFERENCES = Path(__file__).parent / "references"
ASSETS = Path(ss.__file__).parent / "reports" / "assets"
DOCS = Path(__file__).parents[2] / "docs" / "_static"
VIEWS = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 1200}},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "print": {"viewport": {"width": 690, "height": 980}},
}


@pytest.fixture(scope="module")
def contradiction(tmp_path_factory):
    made = report_of("contradiction", n_curves=3, title="Which model to use?", weighting=None)
    return made.save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def crowded(case, tmp_path_factory):
    """Return a page with everything: segments, long and hostile names, four weightings, and a backtest."""
    y, models = case
    rng = np.random.default_rng(1)
    by = {"country": rng.choice(["Germany", "France", "Österreich"], len(y)), "plan": rng.choice(["a", "plus"], len(y))}
    long_names = {"a model whose name is far longer than a name should be": models["leaking"], **models}
    weightings = ["administrative", ss.IPCW(), ss.IPCW(max_weight=3), ss.Administrative(population="fixed")]
    made = ss.report(
        y, long_names, **{**OPTIONS, "weighting": weightings}, by=by, n_curves=3, unit="month", backtest=backtest()
    )
    return made.save(tmp_path_factory.mktemp("page") / "report.html")


def backtest():
    rng = np.random.default_rng(1)
    day, risk = rng.integers(0, 1500, 600), rng.normal(size=600)
    event = day + rng.exponential(900 * np.exp(-risk))
    start, date = (np.datetime64("2010-01-01") + days.astype("m8[D]") for days in (day, event))
    y = ss.Outcomes.from_dates(start, date, "2019-12-31")
    honest = np.exp(-np.exp(risk)[:, None] * [1 / 3, 2 / 3, 1])
    models = {
        "honest": ss.SurvivalCurves(honest, [300, 600, 900]),
        "coarse": ss.SurvivalCurves(np.full((600, 3), honest.mean(axis=0)), [300, 600, 900]),
    }
    days, weighting = ["2013-06-30", "2014-06-30"], ["administrative", "ipcw"]
    return ss.backtest(y, models, as_of=days, horizons=[600], weighting=weighting, n_draws=5)


TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def opened(browser, path, view="desktop"):
    page, _ = show(browser, path, **VIEWS[view])
    if view == "print":
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
    return page


@pytest.mark.parametrize("view", nightly_but(["desktop"], VIEWS))
def test_the_page_looks_as_it_did(browser, contradiction, view):
    page = opened(browser, contradiction, view)
    blocks = COLUMNS if view == "phone" else BLOCKS
    kept = check_looks(screenshot(page), REFERENCES / f"{view}.png", blocks)
    # the tolerance is not so wide that missing parts, or colours of the night, would pass
    hidden = ".card, .recommendation, [data-chart=answer] svg"
    page.locator(hidden).evaluate_all("(all) => all.forEach((e) => { e.style.opacity = 0; })")
    assert distance(screenshot(page), kept, blocks) > MOST_DIFFERENT
    other = read_picture(REFERENCES / ("desktop.png" if view == "dark" else "dark.png"))
    assert distance(other, kept, blocks) > 10 * MOST_DIFFERENT
    page.close()


def test_the_picture_of_a_report_in_the_readme_is_one_of_today(browser, contradiction):
    page = opened(browser, contradiction)
    page.set_viewport_size({"width": 1280, "height": 780})
    seen = screenshot(page)
    if WRITE:
        seen.save(DOCS / "report.png", optimize=True)
    assert distance(seen, read_picture(DOCS / "report.png")) < MOST_DIFFERENT
    page.close()


PAGES = list(product(["contradiction", "crowded"], ["desktop", "phone"]))


@pytest.mark.parametrize(("which", "view"), nightly_but(PAGES[1:3], PAGES))
def test_no_text_overlaps_or_is_cut(browser, request, which, view):
    page = opened(browser, request.getfixturevalue(which), view)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(TWO_FRAMES)  # long tables are made when they are opened
    assert measure(page, "overlaps") == []
    assert measure(page, "tooWide") == []
    assert measure(page, "touchingCells") == []
    p_values = page.locator(".p-value:visible")
    assert p_values.evaluate_all("(all) => Math.max(...all.map((e) => e.getClientRects().length))") == 1
    if view == "phone":
        assert page.evaluate("[...document.querySelectorAll('.scroll')].some((e) => e.scrollWidth > e.clientWidth)")
    # the measure itself sees what is wrong
    page.evaluate("""() => {
      const svg = document.querySelector(".chart svg:not(.swatch)"), text = svg.querySelector("text");
      svg.append(text.cloneNode(true));
      document.querySelector("td").style.cssText = "max-width: 5px; overflow: hidden; display: block";
      document.querySelector(".card").style.width = "3000px";
    }""")
    assert measure(page, "overlaps")
    assert measure(page, "tooWide")
    page.close()


@pytest.mark.parametrize("view", nightly_but(["phone"], ["desktop", "phone", "dark"]))
def test_axe_finds_nothing(browser, crowded, view):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    page = opened(browser, crowded, view)
    # all long tables are made alike, and one has hundreds of cells whose contrast is looked at
    page.locator("#calibration details.numbers > summary").first.click()
    page.locator("#calibration [data-fill] table").wait_for()
    page.locator("#answer details:not(.numbers) > summary").click()
    found = axe.run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"]) for one in found] == []
    page.close()


def test_every_control_is_reached_and_works_by_keyboard(browser, contradiction):
    page = opened(browser, contradiction)
    page.evaluate("window.scrollTo(0, 0)")
    wanted = page.evaluate(
        """[...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")]
        .filter((e) => e.checkVisibility() && !e.disabled).map((e, k) => { e.dataset.stop = k; return k; })"""
    )
    reached = set()
    for _ in range(len(wanted) + 10):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("Number(document.activeElement.dataset.stop ?? -1)"))
    # of radio buttons only the checked one is a stop; arrows reach the others
    others = page.locator("input[type=radio]:not(:checked)")
    radios = others.evaluate_all("(all) => all.map((one) => Number(one.dataset.stop))")
    assert set(wanted) - reached == set(radios)
    page.locator("input[value=brier]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("input[value=log]").is_checked()
    page.locator("input[name=bands]").focus()
    page.keyboard.press("Space")
    assert page.locator(".plot path.band").count() == 0
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    summary = page.locator("#scores summary").first
    summary.focus()
    page.keyboard.press("Enter")
    page.locator("#scores [data-fill] table").wait_for()
    with page.expect_download() as waited:
        page.locator("#scores [data-picture=svg]").focus()
        page.keyboard.press("Enter")
    assert waited.value.suggested_filename == "scores.svg"
    page.close()


def test_the_script_is_plain_and_makes_no_markup():
    script = (ASSETS / "script.js").read_text(encoding="utf-8")
    assert script.startswith('"use strict";')
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert unsafe not in script
    assert len(script) < 60_000
    assert all(len(line) < 260 for line in script.splitlines())
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node is installed to check the script")
    checked = subprocess.run([node, "--check", ASSETS / "script.js"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
