"""Who reads only the first screen can say: which model, by how much, how sure, and whether to believe it."""

import re

import pytest

from looks import measure
from report_situations import SITUATIONS, report_of

NUMBER = r"\d\.\d{4,}"
INTERVAL = rf"95 % interval (?:from )?{NUMBER}(?: better| worse)? to {NUMBER} (?:better|worse); p [<=] \d\.\d{{3}}"
# Which model; by how much, in the score and in percent; how sure; whether to believe it, and why.
WANTED = {
    "clear_winner": (
        "new is best: it is surely better than old.",
        rf"new\s+is better than\s+old\s+{NUMBER} better\s+\d+\.\d % of old's {NUMBER}\s+{INTERVAL}",
        "Believe it? Yes. Believe administrative: everybody's C* is known",
        "old falls by 7.3 % right after C*, against 7 % elsewhere: no sign that it knows when the data end.",
    ),
    "tie": (
        "No winner: A and B can't be told apart.",
        rf"B\s+can't be told from\s+A\s+{NUMBER} worse\s+1\.3 % of A's {NUMBER}\s+95 % interval from {NUMBER} worse to "
        rf"{NUMBER} better; p = 0\.477",
        "Believe it? Yes. Believe administrative",
        "no sign that it knows when the data end",
    ),
    "contradiction": (
        "honest is best: it is surely better than classifier.",
        rf"classifier\s+is worse than\s+honest\s+{NUMBER} worse\s+2\.6 % of honest's {NUMBER}\s+{INTERVAL}",
        "Believe it? Yes, but weightings contradict each other. classifier is better than honest under IPCW, and worse "
        "under administrative. Believe administrative",
        "classifier falls by 100 % right after C*, against 11 % elsewhere: it knows when the data end.",
    ),
    "leak": (
        "No winner: honest and leaking can't be told apart.",
        rf"leaking\s+can't be told from\s+honest\s+{NUMBER} worse\s+0\.17 % of honest's {NUMBER}\s+95 % interval",
        "Believe it? Yes, but not what IPCW says of leaking. Believe administrative",
        "leaking falls by 97 % right after C*, against 9 % elsewhere: it knows when the data end.",
    ),
    "drop_outs": (
        "new is best: it is surely better than old.",
        rf"new\s+is better than\s+old\s+{NUMBER} better\s+26\.5 % of old's {NUMBER}\s+{INTERVAL}\s+Holds whatever "
        rf"happened to the 27 of 1,500 who dropped out: {NUMBER} to {NUMBER} better in these data\.",
        "Believe it? Yes. Believe administrative (drop-out by Kaplan-Meier): everybody's C* is known, and it counts "
        "those whose data reach a time, weights for the 27 of 1,500 who dropped out",
        "no sign that it knows when the data end",
    ),
    "only_ipcw": (
        "new is best: it is surely better than old.",
        rf"new\s+is better than\s+old\s+{NUMBER} better\s+23\.6 % of old's {NUMBER}\s+{INTERVAL}",
        "Believe it? No: the only weighting here is known to mislead. This answer goes by an IPCW score.",
        "Do models know when the data end? That can't be told: that needs everybody's C*.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_first_screen_answers(browser, situation, tmp_path):
    report = report_of(situation, n_curves=0)
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(report.save(tmp_path / "report.html").as_uri())
    page.wait_for_selector("html[data-drawn]")
    text = measure(page, "visibleText")
    which, how_much, believe, leak = WANTED[situation]
    assert which in text
    assert re.search(how_much, text), text
    assert believe in text
    assert leak in text
    weighting = "IPCW" if situation == "only_ipcw" else "administrative"
    assert f"By the mean Brier score over time 2 to 24 months (lower is better) under the weighting {weighting}" in text
    # the chart says the same: zero, the sides, and the model on the side that it is on
    assert "← better" in text
    assert "worse →" in text
    assert re.search(r"Difference in mean Brier score to (old|A|honest)", text)
    first = report.summary["answer"]["brier"]["cards"][0]
    zero = page.locator('[data-chart="answer"] line.nought').bounding_box()["x"]
    mark = page.locator('[data-chart="answer"] circle.dot').first.bounding_box()
    assert (mark["x"] + mark["width"] / 2 < zero) == ("better" in first["amount"])
    # a box in red only where the only weighting is known to mislead
    assert page.locator(".belief.no:visible").count() == (situation == "only_ipcw")
    page.close()
