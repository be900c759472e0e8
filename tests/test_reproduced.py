"""Figures of the paper in the documentation: pictures and tables are of a run, and of the claims as they are today."""

import csv
import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parents[1] / "docs" / "_ext"), str(Path(__file__).parents[1] / "tools")]

import keep_figures
import reproduced_lines

from survscore.experiments.figures import FIGURES

ROOT = Path(__file__).parent.parent
PAGES = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.rst"))


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_kept_is_of_the_claims_as_they_are(name):
    folder = ROOT / "docs" / "reproduction" / name
    with (folder / "claims.csv").open(newline="", encoding="utf-8") as file:
        kept = [(row["claim"], row["loss"]) for row in csv.DictReader(file)]
    assert kept == [(claim.text, claim.loss) for claim in FIGURES[name].claims]
    assert f".. claims:: {name}\n" in PAGES
    assert f"_static/{name}.png" in PAGES
    assert not [line for line in reproduced_lines.claims(folder) if "not checked" in line]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "18; +0.004 [+0.003, +0.006]"),
        ({"replicates": "1", "share": "1.0", "lower": "", "upper": ""}, "yes; +0.004"),
        ({"replicates": "1", "share": "0.0", "margin": "-0.02"}, "no; -0.020 [+0.003, +0.006]"),
        ({"replicates": "0", "share": "", "margin": "", "needs": "figure-4"}, "not checked: needs figure-4"),
    ],
)
def test_answers(changes, told):
    row = {"replicates": "20", "share": "0.9", "margin": "0.0041", "lower": "0.0029", "upper": "0.0057", "needs": ""}
    assert reproduced_lines.answer(row | changes) == told


def test_a_run_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(keep_figures, "DOCS", tmp_path / "docs")
    (tmp_path / "docs" / "_static").mkdir(parents=True)
    names = [*keep_figures.TABLES, "figure-3.png", "figure-3-log.png", "numbers.csv"]
    (tmp_path / "run" / "figure-3").mkdir(parents=True)
    for name in names:
        (tmp_path / "run" / "figure-3" / name).write_text(name)
    assert keep_figures.keep(tmp_path / "run") == ["figure-3"]
    kept = {path.name: path.read_text() for path in (tmp_path / "docs").rglob("*.*")}
    assert kept == {name: name for name in [*keep_figures.TABLES, "figure-3.png"]}
    assert keep_figures.keep(tmp_path / "docs") == []
