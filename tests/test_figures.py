"""Figures: what displays look like, that no text overlaps another or is cut, and that nothing of the user changes.

The pictures in ``reference/figures`` are made by ``python tests/figure_cases.py tests/reference/figures``.
"""

import doctest
import re
from itertools import combinations, product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

import survscore as ss
from combinations import nightly_but
from figure_cases import DRAWINGS, PICTURES, compared, figure_of, scores, small_image, training
from looks import WRITE, drawn_texts, read_picture, text_faults
from survscore import plots
from survscore.paper import demo
from survscore.plots import style

REFERENCES = Path(__file__).parent / "reference" / "figures"
DOCS = Path(__file__).parents[1] / "docs" / "_static"
WIDTHS = (plots.COLUMN, plots.PAGE)
#: Of images, as a share of white: axes that another font makes a bit smaller pass, swapped colours do not.
TOLERANCE = 0.02


@pytest.fixture(autouse=True)
def clean():
    with mpl.rc_context({"font.family": "DejaVu Sans"}):  # which comes with matplotlib
        yield
    plt.close("all")


# What they look like


def reference(name):
    return read_picture(REFERENCES / f"{name}.png")


def difference(one, other):
    """Return the mean difference of two pictures at 60 dots across, so that single letters hardly matter."""
    size = (60, round(60 * other.height / other.width))
    a, b = (np.asarray(image.resize(size, Image.Resampling.BOX), dtype=float) for image in (one, other))
    return np.abs(a - b).mean() / 255


#: Eight pictures; the others are looked at when all tests run.
OFTEN = ("comparison", "weightings", "sensitivity", "segments", "calibration", "decisions", "backtest", "demo")


@pytest.mark.parametrize("name", nightly_but(OFTEN, PICTURES))
def test_it_looks_as_it_did(name, tmp_path):
    drawn, wanted = small_image(figure_of(name, plots.COLUMN)), reference(name)
    assert abs(drawn.height - wanted.height) <= 0.1 * wanted.height
    found = difference(drawn, wanted)
    drawn.save(tmp_path / f"{name}.png")
    assert found < TOLERANCE, f"differs by {found:.4f}: compare {tmp_path / name}.png with the reference"


def test_the_image_test_tells_pictures_apart():
    ours = small_image(figure_of("comparison", plots.COLUMN))
    without = small_image(compared("administrative").plot(width=plots.COLUMN, band=False, unit="month").figure_)
    for wrong in (Image.merge("RGB", ours.split()[::-1]), without):
        assert difference(ours, wrong) > TOLERANCE


def pictures_of_the_docs():
    """Return (name, figure, dots per inch): those of the first page, and those that docs/figures.rst draws."""
    page, namespace = (DOCS.parent / "figures.rst").read_text(encoding="utf-8"), {}
    for example in doctest.DocTestParser().get_examples(page):
        exec(compile(example.source, "figures.rst", "single"), namespace)
        if "drawn" in namespace:
            break
    plotted = {"comparison": namespace["display"], "calibration": namespace["drawn"]}
    return [
        ("demo", figure_of("demo", plots.PAGE), demo.DPI),
        ("demo-narrow", figure_of("demo", demo.PHONE), demo.DPI),
        *((f"figures-{name}", display.figure_, 200) for name, display in plotted.items()),
    ]


@pytest.mark.nightly
def test_pictures_of_the_docs_are_of_today(tmp_path):
    """`SURVSCORE_WRITE_REFERENCES=1 pytest tests/test_figures.py` writes them anew: look at them."""
    for name, figure, dpi in pictures_of_the_docs():
        kept = DOCS / f"{name}.png"
        seen = plots.save_figure(figure, kept if WRITE else tmp_path / kept.name, dpi=dpi)
        assert np.abs(np.subtract(read_picture(seen).size, read_picture(kept).size)).max() < 5, name
        assert difference(read_picture(seen), read_picture(kept)) < TOLERANCE / 4, name


# Words


@pytest.mark.parametrize(
    ("name", "width"), nightly_but([(name, plots.COLUMN) for name in (*OFTEN, "hostile")], product(DRAWINGS, WIDTHS))
)
def test_no_text_overlaps_another_or_is_cut(name, width):
    figure = figure_of(name, width)
    assert len(drawn_texts(figure)) > 8
    assert text_faults(figure) == []


# Numbers below


def test_counts_stand_at_the_times_that_they_are_of():
    score = scores()["truth"]
    numbers = [text for text in score.plot(width=7).ax_.texts if re.fullmatch(r"[\d,]+", text.get_text())]
    counts = {(text.xy[0], text.get_text()) for text in numbers}
    rows = (zip(score.times, column, strict=True) for column in (score.n_counted, score.n_events))
    known = {(float(t), f"{n:,.0f}") for row in rows for t, n in row}
    assert len(counts) >= 8
    assert counts <= known
    assert not [text for text in score.plot(width=7, counts=False).ax_.texts if text.get_text() == "counted"]


# Colours


def test_a_model_has_one_colour_everywhere():
    result = compared("administrative")
    wanted = plots.colours(result.models, null=result.null)
    assert len(set(wanted.values())) == len(result.models)
    for display in (result.plot(), result.plot_scores()):
        for line in display.ax_.lines:
            if line.get_label() in wanted:
                assert line.get_color() == wanted[line.get_label()]
    page = (Path(ss.__file__).parent / "reports" / "assets" / "style.css").read_text()
    assert tuple(re.findall(r"--s\d: (#\w{6})", page)[:8]) == style.PALETTE
    assert re.findall(r"--null: (#\w{6})", page)[0] == style.NULL_COLOUR


#: How colours look to those who lack one kind of cone (Machado, Oliveira & Fernandes 2009), in linear RGB.
VISION = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour, vision):
    """Return CIELAB coordinates of a colour as it is seen."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(VISION[vision]) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ seen / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_models_differ_in_all_kinds_of_vision(vision):
    names = [*"abcdefgh", "null"]
    colours, dashes = plots.colours(names, null="null"), style.dashes(names, null="null")
    for one, other in combinations(names, 2):
        apart = np.linalg.norm(lab(colours[one], vision) - lab(colours[other], vision))
        assert apart > 10 or dashes[one] != dashes[other], (one, other, apart)
    for colour in style.PALETTE:
        assert lab(colour, vision)[0] < 62  # dark enough on white


# What is the user's stays


def test_nothing_global_changes():
    before = dict(mpl.rcParams)
    for name in ("score", "scores", "paper-5", "training", "demo"):
        figure_of(name, plots.COLUMN)
    assert dict(mpl.rcParams) == before


def test_settings_of_the_user_hold():
    score = scores()["truth"]
    with mpl.rc_context(
        {"font.size": 14.0, "lines.linewidth": 4.0, "figure.figsize": (5.0, 6.0), "axes.labelsize": 15.0}
    ):
        display = score.plot()
        assert tuple(display.figure_.get_size_inches()) == (5.0, 6.0)
        assert display.line_.get_linewidth() == 4.0
        assert score.plot(width=4).figure_.get_size_inches()[0] == 4
    assert score.plot().figure_.get_size_inches()[0] == plots.PAGE


def test_axes_of_the_user_keep_their_looks():
    figure, ax = plt.subplots()
    size, ticks = figure.get_size_inches().copy(), ax.xaxis.get_ticklabels()[0].get_fontsize()
    scores()["truth"].plot(ax=ax, color="red", linestyle="--", linewidth=3)
    compared("administrative").plot(ax=ax)
    line = ax.lines[0]
    assert (line.get_color(), line.get_linestyle(), line.get_linewidth()) == ("red", "--", 3)
    assert all(spine.get_visible() for spine in ax.spines.values())
    assert not ax.xaxis.get_gridlines()[0].get_visible()
    assert ax.xaxis.get_ticklabels()[0].get_fontsize() == ticks
    assert (figure.get_size_inches() == size).all()
    with pytest.raises(ss.InputError, match="width is that of a new figure"):
        scores()["truth"].plot(ax=ax, width=3.4)


def test_calibration_curves_have_a_gap_where_nobody_is():
    """Their bands filled the picture there, from zero to one."""
    rng = np.random.default_rng(1)
    risk = np.concatenate((rng.uniform(0.01, 0.03, 600), rng.uniform(0.5, 0.8, 600)))
    event = rng.random(1200) < risk
    y = ss.Outcomes(np.where(event, 1.0, 5.0), event, np.full(1200, 5.0))
    for curve in ("smooth", "isotonic"):
        line = ss.calibration(y, ss.SurvivalCurves(1 - risk[:, None], [3]), 3).plot(curve=curve).line_
        x, drawn = line.get_xdata(), ~np.isnan(line.get_ydata())
        assert drawn[(x > 0.55) & (x < 0.75)].all()
        assert not drawn[(x > 0.1) & (x < 0.4)].any()


# Files


@pytest.mark.parametrize(("kind", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_figures_are_saved_whole_and_the_same_each_time(kind, start, tmp_path):
    display = scores()["truth"].plot(label="truth", width=3.4)
    path = tmp_path / "new" / f"figure.{kind}"
    assert display.save(path) == path
    first = path.read_bytes()
    assert first.startswith(start)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    display.save(str(path))
    assert path.read_bytes() == first
    if kind == "png":
        assert abs(read_picture(path).width - 3.4 * 300) <= 1
    else:  # letters stay letters
        assert (b">counted</text>" in first) if kind == "svg" else (b"/Type3" not in first)


def test_what_cannot_be_saved_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    display = training()
    for name in ("figure.jpg", "figure", "figure.pdf.zip"):
        with pytest.raises(ss.InputError, match=r"path must end with \.pdf, \.png, \.svg"):
            display.save(tmp_path / name)
    display.save(tmp_path / "figure.png", dpi=50)  # drawn when saved
    before = (tmp_path / "figure.png").read_bytes()
    monkeypatch.setattr(type(display.figure_), "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        display.save(tmp_path / "figure.png")
    assert [one.name for one in tmp_path.iterdir()] == ["figure.png"]
    assert (tmp_path / "figure.png").read_bytes() == before
