"""Figures of the paper in the documentation: pictures and tables are of a run, and of the claims as they are today."""

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path += [str(Path(__file__).parents[1] / "docs" / "_ext"), str(Path(__file__).parents[1] / "tools")]

import keep_figures
import reproduced_lines

from survscore.paper.figures import FIGURES

ROOT = Path(__file__).parent.parent
PAGES = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.rst"))


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_kept_is_of_the_claims_as_they_are(name):
    folder = ROOT / "docs" / "reproduction" / name
    table = pd.read_csv(folder / "claims.csv").fillna({"loss": ""})
    assert list(zip(table.claim, table.loss, strict=True)) == [(one.text, one.loss) for one in FIGURES[name].claims]
    assert table.replicates.gt(0).all()
    assert f".. claims:: {name}\n" in PAGES
    assert f"_static/{name}.png" in PAGES
    text = "\n".join(reproduced_lines.claims(folder))
    assert all(f"{row.margin:+.3f}" in text for row in table.itertuples())


@pytest.mark.parametrize("name", ["figure-2", "figure-3", "figure-4", "figure-5"])
def test_the_page_says_how_many_replicates_a_picture_is_of(name):
    folder = ROOT / "docs" / "reproduction" / name
    picture = folder / keep_figures.PICTURE
    settings = json.loads((picture if picture.exists() else folder / "settings.json").read_text())
    (said,) = re.findall(rf"_static/{name}\.png\n +:alt: .* over (\d+) replicates", PAGES)
    assert int(said) == settings["replicates"]
