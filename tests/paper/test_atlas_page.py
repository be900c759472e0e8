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
    decided, pairs = whole["n_decided"].sum(), whole["n_pairs"].sum()
    sentence = found.recommendation_sentence
    assert f"{pairs} pairs; {decided - whole['n_ordered'].sum()} of these {decided} decisions" in sentence
    assert f"for {100 * decided / pairs:.0f} % of" in sentence
    wrong = 100 * halves["n_wrong"].sum() / halves["n_settled"].sum()
    assert f"the truth from the other half, {wrong:.1f} % of" in sentence


def test_what_the_page_includes_is_made_from_the_files(found, page, tmp_path):
    page.write_page(DOCS / "atlas", tmp_path)
    used = set(re.findall(r"atlas_page/([\w.-]+)", PAGE))
    assert used == {path.name for path in tmp_path.iterdir()}
    families = pd.read_csv(tmp_path / "families.csv", keep_default_na=False)
    assert len(families) == len(models.FAMILIES) * len(found.settings["scores"])
    ours = found.of_summary("all", "administrative")
    assert families.iloc[0]["pairs in the true order"] == f"{100 * ours['ordered']:.0f} %"
