"""The page on real data says what the files of its run say."""

import json
import re
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from survscore.paper.atlas import models, running
from survscore.paper.atlas.causes import AtlasByCause
from survscore.paper.atlas.page import CAUSE_TABLES, TABLES, write_page
from survscore.paper.atlas.results import Atlas

mpl.use("agg")
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "atlas.rst").read_text()


@pytest.fixture(scope="module")
def found():
    return Atlas.read(DOCS / "atlas")


def plain(text):
    """Return text on one line, without mark-up of lines and of stars."""
    return " ".join(text.replace("| ", " ").replace("\\*", "*").replace("``", "").split())


def said(found):
    """Return all sentences that the page has from the files."""
    several = (*found.sentences, found.closing_sentence, found.leak_sentence)
    several = (*several, found.small_sets_sentence, found.significant_sentence)
    return (*several, *found.fair_sentences, *found.projected_sentences)


def test_sentences_are_those_of_the_files(found):
    page = plain(PAGE)
    every = said(found)
    assert len(every) == 18
    assert all(every)
    for sentence in every:
        assert sentence in page


def test_the_readme_quotes_them(found):
    readme = plain((DOCS.parent / "README.md").read_text())
    for sentence in found.sentences:
        assert sentence in readme


def test_there_are_no_numbers_but_those_of_the_files_and_settings(found):
    """Percentages in the prose are in sentences that are held against the files, or are rules."""
    page = plain(PAGE)
    causes = AtlasByCause.read(DOCS / "atlas")
    for sentence in (*said(found), *causes.sentences, causes.leak_sentence, causes.cost_sentence):
        page = page.replace(sentence, "")
    rules = found.settings["rules"]
    allowed = {
        f"{100 * share:.0f}" for share in (rules["least_judged"], rules["least_hidden"], found.settings["level"])
    }
    assert set(re.findall(r"([\d.]+) %", page)) <= allowed


def test_settings_are_said(found):
    settings, page = found.settings, plain(PAGE)
    size, rules = settings["size"], settings["rules"]
    assert settings["seed"] == 1
    assert settings["models"] == [one.name for one in models.listed()]
    assert settings["sets_not_available"] == settings["missing_packages"] == []
    assert size == json.loads(json.dumps(running.asdict(running.SIZES["full"])))
    for said in (
        "seed 1", f"at most {size['most']:,} individuals".replace(",", " "), f"{size['folds']} folds",
        f"{size['n_draws']} draws", f"{size['n_splits']} random splits",
        f"{size['effort']['trees']} trees", f"{size['effort']['rounds']} rounds",
        f"{size['effort']['epochs']} epochs", f"{rules['fewest_followed']} could be followed",
        f"version {settings['survscore']}",
    ):  # fmt: skip
        assert said in page, said


def test_means_are_those_of_the_sets(found):
    """Counted again from the rows of single runs."""
    for row in found.summary.to_dict("records"):
        table = found.backtests
        runs = table[(table["family"] == row["family"]) & (table["score"] == row["score"])]
        by_set = runs.groupby("set")[["ordered", "relative_regret"]].mean()
        assert row["ordered"] == pytest.approx(by_set["ordered"].mean())
        assert row["relative_regret"] == pytest.approx(by_set["relative_regret"].mean())
        assert (row["sets"], row["runs"]) == (len(by_set), len(runs))


def test_what_the_page_says_of_recommendations(found):
    """Counted again from the rows of single runs, of which a set has one for each of those of scores."""
    table = found.recommendations[found.recommendations["family"] == "all"]
    whole, halves = (table[table["individuals"] == individuals] for individuals in ("all", "halves"))
    runs = found.backtests[(found.backtests["family"] == "all") & (found.backtests["score"] == "projected")]
    assert len(whole) == len(halves) == len(runs)
    assert whole["n_pairs"].sum() == runs["n_pairs"].sum()
    other = (whole["n_decided"] - whole["n_ordered"]).sum()
    sentence = found.recommendation_sentence
    assert f"{whole['n_pairs'].sum()} pairs; {other} of these {whole['n_decided'].sum()} turned out" in sentence
    assert f"for {100 * whole['n_decided'].sum() / whole['n_pairs'].sum():.0f} % of" in sentence
    assert f"judged on the other half, {100 * halves['n_wrong'].sum() / halves['n_settled'].sum():.1f} % of" in sentence
    assert found.recommended["n_wrong"].tolist() == [
        of["n_wrong"].sum() for _, of in found.recommendations.groupby(["family", "individuals"], sort=False)
    ]
    none = replace(found, recommendations=table[:0])
    assert none.recommendation_sentence == ""
    assert len(none.sentences) == len(found.sentences) - 1


def test_what_the_page_says_of_halves_without_the_smallest_set(found):
    """Counted again from the rows of single runs; and where no set is small, or all are, there is nothing to say."""
    table = found.backtests
    large = table[table["set"] != "jasa"]
    assert table[table["set"] == "jasa"]["n"].max() < 100 < large["n"].min()
    by_set = large.groupby(["family", "score", "set"])["half_ordered"].mean()
    numbers = [
        f"{100 * by_set[family, score].mean():.0f} %"
        for family in ("all", "neither") for score in ("projected", "administrative", "IPCW")
    ]  # fmt: skip
    sentence = found.small_sets_sentence
    assert sentence.startswith("Without jasa, where halves have fewer than 50 individuals")
    assert re.findall(r"\d+ %", sentence) == numbers
    assert replace(found, backtests=large).small_sets_sentence == ""
    assert replace(found, backtests=table[table["set"] == "jasa"]).small_sets_sentence == ""


def test_what_the_page_says_of_significant_differences(found):
    runs = found.backtests.query("family == 'all' and score == 'projected'")
    settled, wrong, pairs = (int(runs[name].sum()) for name in ("n_settled", "n_wrong", "n_pairs"))
    sentence = found.significant_sentence
    assert f"Of {pairs} pairs" in sentence
    assert f"for {100 * settled / pairs:.0f} %, " in sentence
    assert f"of these, {100 * wrong / settled:.1f} %, " in sentence
    assert replace(found, backtests=found.backtests[:0]).significant_sentence == ""


def test_what_the_page_says_of_models_that_leak(found):
    """In words: first by IPCW, last in truth, better than Kaplan-Meier by two scores; and a score's worst choice."""
    leaking = {one.name for one in models.listed() if one.entry and one.recipe.censored == "dropped"}
    means = found.models.groupby(["score", "model"])[["said", "truth"]].mean()
    assert set(means.loc["IPCW", "said"].nsmallest(3).index) == leaking
    assert set(means.loc["IPCW", "truth"].nlargest(3).index) == leaking
    assert (means.loc["administrative", "said"][sorted(leaking)] < 0).all()
    # the projected score is close to the truth, for all models
    projected = means.loc["projected"]
    np.testing.assert_allclose(projected["said"], projected["truth"], atol=0.04)
    assert (projected["said"][sorted(leaking)] > 0.2).all()
    ours = found.backtests.query("score == 'administrative' and family == 'all'")
    by_set = ours.groupby("set")["relative_regret"].mean()
    assert by_set.idxmax() == "cdnow"
    assert ours.loc[ours["relative_regret"].idxmax(), ["set", "chosen"]].tolist() == [
        "cdnow",
        "Logistic-Hazard + entry",
    ]


def test_what_the_page_says_of_halves(found):
    """All scores order fewer pairs than with the truth of the same individuals; in jasa, no more than by chance."""
    summary = found.summary
    assert (summary["half_ordered"] < summary["ordered"]).all()
    jasa = found.backtests.query("set == 'jasa' and family == 'all'").groupby("score")["half_ordered"].mean()
    assert jasa.max() < 0.5
    mean = found.summary.set_index(["family", "score"])["half_ordered"]
    for family in models.FAMILIES:
        assert mean[family].idxmax() == "projected"


def test_where_others_are_ahead_of_the_projected_score_it_is_by_little(found):
    ordered = found.sets.pivot_table(index=["family", "set"], columns="score", values="ordered")
    ahead = ordered[["administrative", "IPCW"]].max(axis=1) - ordered["projected"]
    assert 0 < ahead.max() < 0.03


def test_what_the_page_says_of_models_that_do_not(found):
    rows = found.sets.query("family == 'neither' and score == 'IPCW'").set_index("set")
    assert (rows["gain"] < 0).sum() > len(rows) / 2
    assert rows["gain"].idxmin() == "aids2"
    assert rows["relative_regret"].idxmax() == "thoro"
    others = rows.drop(index="thoro")
    assert others["excess"].abs().max() < 0.02
    hidden = found.closing.query("family == 'all' and against == 'IPCW' and horizon == 'mean' and hidden < 1e-9")
    assert hidden["set"].tolist() == ["cdnow", "thoro"]
    assert (hidden["differ"] == 0).all()


def test_tables_and_plot_are_made_from_the_files(found, tmp_path):
    write_page(DOCS / "atlas", tmp_path)
    used = set(re.findall(r"atlas_page/([\w.-]+)", PAGE))
    pictures = {"forest.svg", "forest-narrow.svg"}
    tables = {f"{name}.csv" for name in (*TABLES, *CAUSE_TABLES)}
    assert used == {path.name for path in tmp_path.iterdir()} == tables | pictures
    recommended = pd.read_csv(tmp_path / "recommendations.csv")
    assert len(recommended) == 2 * len(models.FAMILIES)
    families = pd.read_csv(tmp_path / "families.csv", keep_default_na=False)
    assert len(families) == len(models.FAMILIES) * len(found.settings["scores"])
    ours = found.of_summary("all", "administrative")
    assert families.iloc[0]["pairs in the true order"] == f"{100 * ours['ordered']:.0f} %"
    names = pd.read_csv(tmp_path / "sets-all.csv")["set"].tolist()
    drawings = {name: (tmp_path / name).read_text() for name in pictures}
    write_page(DOCS / "atlas", tmp_path / "again")
    for name, drawing in drawings.items():
        words = " ".join(re.findall("<!-- (.*?) -->", drawing))  # a comment for each line of a text
        assert all(one in words for one in [*names, *models.FAMILIES, "mean over sets"])
        assert (tmp_path / "again" / name).read_text() == drawing
