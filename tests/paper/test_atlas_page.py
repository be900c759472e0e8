"""The page on real data says what the files of its run say."""

import re
import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest

from survscore.paper.atlas import models
from survscore.paper.atlas.results import Atlas

mpl.use("agg")
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "atlas.rst").read_text()


@pytest.fixture(scope="module")
def found():
    return Atlas.read(DOCS / "atlas")


@pytest.fixture(scope="module")
def by_cause():
    return Atlas.read(DOCS / "atlas", by_cause=True)


@pytest.fixture(scope="module")
def page():
    """The module that writes what the page includes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(DOCS / "_ext")])
        import atlas_page
    return atlas_page


def plain(text):
    """Return text on one line, without mark-up of lines and of stars."""
    return " ".join(text.replace("| ", " ").replace("\\*", "*").replace("``", "").split())


@pytest.mark.parametrize("path", [DOCS / "atlas.rst", DOCS.parent / "README.md"], ids=lambda path: path.name)
def test_sentences_are_those_of_the_files(found, path):
    text = plain(path.read_text())
    assert len(found.sentences) == 6
    for sentence in (*found.sentences, *([found.closing_sentence] if path.name == "atlas.rst" else [])):
        assert sentence in text


def test_what_the_page_says_of_recommendations(found):
    """Counted again from the rows of single runs, of which a set has one for each of those of scores."""
    table = found.recommendations[found.recommendations["family"] == "all"]
    whole, halves = (table[table["individuals"] == individuals] for individuals in ("all", "halves"))
    runs = found.backtests[(found.backtests["family"] == "all") & (found.backtests["score"] == "projected")]
    assert len(whole) == len(halves) == len(runs)
    assert whole["n_pairs"].sum() == runs["n_pairs"].sum()
    other = (whole["n_decided"] - whole["n_ordered"]).sum()
    sentence = found.recommendation_sentence
    assert f"{whole['n_pairs'].sum()} pairs; {other} of these {whole['n_decided'].sum()} decisions" in sentence
    assert f"for {100 * whole['n_decided'].sum() / whole['n_pairs'].sum():.0f} % of" in sentence
    assert (
        f"the truth from the other half, {100 * halves['n_wrong'].sum() / halves['n_settled'].sum():.1f} % of"
        in sentence
    )
    assert found.recommended["n_wrong"].tolist() == [
        of["n_wrong"].sum() for _, of in found.recommendations.groupby(["family", "individuals"], sort=False)
    ]


def test_sentences_that_are_made_with_the_page(found, by_cause, page):
    """Counted again from the rows of single runs."""
    table = found.backtests
    large = table[table["set"] != "jasa"]
    by_set = large.groupby(["family", "score", "set"])["half_ordered"].mean()
    numbers = [
        f"{100 * by_set[family, score].mean():.0f} %"
        for family in ("all", "neither") for score in ("projected", "administrative", "IPCW")
    ]  # fmt: skip
    sentence = page.small_sets(found)
    assert sentence.startswith("Without jasa, where halves have fewer than 50 individuals")
    assert re.findall(r"\d+ %", sentence) == numbers
    runs = table.query("family == 'all' and score == 'projected'")
    settled, wrong, pairs = (int(runs[name].sum()) for name in ("n_settled", "n_wrong", "n_pairs"))
    sentence = page.significant(found)
    assert f"Of {pairs} pairs" in sentence
    assert f"for {100 * settled / pairs:.0f} %, " in sentence
    assert f"of these, {100 * wrong / settled:.1f} %, " in sentence
    assert page.leaks(found).startswith("Models that drop the censored and use the date of entry were 39 % worse than")
    assert "2 models" in page.leaks(by_cause)
    assert "administrative for 1 of 9 sets (senators); IPCW for 3 of 9 sets" in page.ahead(found, "neither")
    assert "in 6 of 9 sets: aids2, dd, dmlate, jasa, sibr, sire, significantly in" in page.ipcw_ahead(found, "neither")
    assert "administrative for 1 of 11 causes (retirement in senators)" in page.ahead(by_cause, "all")
    assert page.costly(by_cause).endswith("worse than the best for 1, 0 and 7 of 11 causes.")


def test_what_the_page_includes_is_made_from_the_files(found, page, tmp_path):
    page.write_page(DOCS / "atlas", tmp_path)
    used = set(re.findall(r"atlas_page/([\w.-]+)", PAGE))
    assert used == {path.name for path in tmp_path.iterdir()}
    families = pd.read_csv(tmp_path / "families.csv", keep_default_na=False)
    assert len(families) == len(models.FAMILIES) * len(found.settings["scores"])
    ours = found.of_summary("all", "administrative")
    assert families.iloc[0]["pairs in the true order"] == f"{100 * ours['ordered']:.0f} %"
    assert len(pd.read_csv(tmp_path / "recommendations.csv")) == 2 * len(models.FAMILIES)
    names = pd.read_csv(tmp_path / "sets-all.csv")["set"].tolist()
    drawings = {name: (tmp_path / name).read_text() for name in ("forest.svg", "forest-narrow.svg")}
    page.write_page(DOCS / "atlas", tmp_path / "again")
    for name, drawing in drawings.items():
        words = " ".join(re.findall(r"<text[^>]*>(.*?)</text>", drawing, flags=re.DOTALL))
        assert all(one in words for one in [*names, *models.FAMILIES, "mean over sets"])
        assert (tmp_path / "again" / name).read_text() == drawing
