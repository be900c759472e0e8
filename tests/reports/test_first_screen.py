"""The first screen alone says which model, by how much, how certain, and whether to rely on it."""

import re

import pytest

from combinations import nightly_but
from looks import measure, show
from report_situations import report_of

NUMBER = r"\d\.\d{4,}"
INTERVAL = rf"95 % interval (?:from )?{NUMBER}(?: better| worse)? to {NUMBER} (?:better|worse); p [<=] \d\.\d{{3}}"
# Which model; by how much, in the score and in percent, and how certain; whether to rely on it, and why.
WANTED = {
    "contradiction": (
        "honest is best: it is significantly better than classifier.",
        rf"classifier\s+is significantly worse than\s+honest\s+{NUMBER} worse\s+2\.6 % of honest's {NUMBER}\s+"
        rf"{INTERVAL}",
        "Recommendation: interpret with care, since weightings contradict each other.",
        "classifier falls by 100 % right after C*, against 11 % elsewhere: it encodes the censoring time.",
    ),
    "drop_outs": (
        "new is best: it is significantly better than old.",
        rf"new\s+is significantly better than\s+old\s+{NUMBER} better\s+26\.3 % of old's {NUMBER}\s+{INTERVAL}\s+"
        r"The verdict holds whatever happened to the 27 of 1,500 who dropped out",
        "Recommendation: rely on this. Use administrative (drop-out by Kaplan-Meier in risk strata): C* is known for",
        "no sign that it encodes the censoring time",
    ),
    "only_ipcw": (
        "new is best: it is significantly better than old.",
        rf"new\s+is significantly better than\s+old\s+{NUMBER} better\s+23\.6 % of old's {NUMBER}\s+{INTERVAL}",
        "Recommendation: do not rely on this, since the only weighting is known to mislead.",
        "Do models encode the censoring time? This cannot be assessed: that needs C* of each individual.",
    ),
}


@pytest.mark.parametrize("situation", nightly_but(["contradiction", "drop_outs"], WANTED))
def test_the_first_screen_answers(browser, situation, tmp_path):
    report = report_of(situation, n_curves=0)
    page, _ = show(browser, report.save(tmp_path / "report.html"), viewport={"width": 1280, "height": 800})
    text = measure(page, "visibleText")
    which, how_much, advice, leak = WANTED[situation]
    assert re.search(how_much, text), text
    assert all(said in text for said in (which, advice, leak)), text
    # the chart says the same: the model on the side that it is on
    first = report.summary["answer"]["brier"]["cards"][0]
    zero = page.locator('[data-chart="answer"] line.nought').bounding_box()["x"]
    mark = page.locator('[data-chart="answer"] circle.dot').first.bounding_box()
    assert (mark["x"] + mark["width"] / 2 < zero) == ("better" in first["amount"])
    # a box in red only where the only weighting is known to mislead
    assert page.locator(".recommendation.no:visible").count() == (situation == "only_ipcw")
    page.close()


def test_the_recommendation_comes_first_with_both_parts_and_the_tipping_point(browser, tmp_path):
    """By default, of administrative and projected scores."""
    report = report_of("contradiction", weighting=None, n_curves=0)
    page, _ = show(browser, report.save(tmp_path / "report.html"), viewport={"width": 1280, "height": 800})
    advice, cards = (page.locator(f"{which}:visible").first.bounding_box() for which in (".recommendation", ".cards"))
    assert advice["y"] < min(cards["y"], 800)
    text = measure(page, "visibleText")
    assert "Recommendation: do not use classifier for new individuals." in text
    assert "The sign would change with more than 7.5 times the assumed hazard of those with hidden status." in text
    table = page.locator("table[data-name=score-parts]:visible")
    rows = [row.split("\t") for row in table.inner_text().splitlines() if "\t" in row]
    parts = report.summary["answer"]["brier"]["parts"]
    assert [row[0].strip() for row in rows[1:]] == parts["model"] == ["honest", "classifier", "Kaplan-Meier"]
    assert [float(row[2]) for row in rows[1:]] == [pytest.approx(value, abs=6e-5) for value in parts["projected"]]
    share, scores = parts["share_observed"][0], report.summary["means"]
    projected = [value for value, name in zip(scores["score"], scores["weighting"], strict=True) if "projected" in name]
    whole = [share * a + (1 - share) * b for a, b in zip(parts["observed"], parts["projected"], strict=True)]
    assert whole == pytest.approx(projected[: len(whole)])
    page.close()
