"""Comparing what is seen with a picture that was kept, and measuring pages in the browser.

With the variable ``SURVSCORE_WRITE_REFERENCES`` set, tests write their pictures anew: look at them and keep them.
"""

import base64
import io
import os
from functools import cache
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.text import Text
from PIL import Image

WRITE = bool(os.environ.get("SURVSCORE_WRITE_REFERENCES"))
PROBES = (Path(__file__).parent / "probes.js").read_text(encoding="utf-8")
# Colours are averaged over blocks, so many across and down: letters of other fonts are blurred, what is missing is not.
BLOCKS = (32, 32)
# On a phone other fonts move all that follows up or down, so that only columns are compared.
COLUMNS = (16, 1)
MOST_DIFFERENT = 2.0  # of 255, in the mean over blocks
REFERENCE_SCALE = 0.4


def measure(page, what):
    """Return what one of the probes finds in a page."""
    return page.evaluate(f"({PROBES}).{what}()")


def show(browser, path, **options):
    """Open a page, wait until all its charts are drawn, and return it with all that it says or complains about."""
    opened, said = browser.new_page(**options), []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    opened.goto(path.as_uri())
    opened.wait_for_selector("html[data-drawn]")
    return opened, said


def screenshot(page):
    """Return what the window of a page shows."""
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        return picture.convert("RGB")


def read_picture(path):
    with Image.open(path) as picture:
        return picture.convert("RGB")


def distance(a, b, blocks=BLOCKS):
    """Return how far two pictures are apart, in the mean colours of their blocks."""
    means = [np.asarray(one.resize(blocks, Image.Resampling.BOX), dtype=float) for one in (a, b)]
    return float(np.abs(means[0] - means[1]).mean())


def reference(path, seen):
    """Return the picture that was kept, after what is seen was written there if that was asked for."""
    if WRITE:
        size = [round(REFERENCE_SCALE * pixels) for pixels in seen.size]
        seen.resize(size, Image.Resampling.LANCZOS).quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    return read_picture(path)


def check_looks(seen, path, blocks=BLOCKS):
    """Fail unless a picture looks as the one that was kept; return that one."""
    kept = reference(path, seen)
    assert abs(kept.width / kept.height - seen.width / seen.height) < 0.01
    found = distance(seen, kept, blocks)
    assert found < MOST_DIFFERENT, f"differs from {path.name} by {found:.2f} of 255"
    return kept


@cache
def font_faces():
    """Return style sheets of the fonts that come with matplotlib, so that pages have the same letters everywhere."""
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    bold, italic = "font-weight: bold;", "font-style: italic;"
    kinds = {"": "", "-Bold": bold, "-Oblique": italic, "-BoldOblique": bold + italic}
    faces = []
    for family, files in (("Test Sans", "DejaVuSans"), ("Test Mono", "DejaVuSansMono")):
        for kind, words in kinds.items():
            letters = base64.b64encode((folder / f"{files}{kind}.ttf").read_bytes()).decode()
            faces.append(f"@font-face {{ font-family: '{family}'; {words} src: url(data:font/ttf;base64,{letters}); }}")
    return "\n".join(faces)


def drawn_texts(figure):
    """Return every text that is drawn: not those of ticks out of view."""
    figure.canvas.draw()
    ticks, seen = set(), set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                ticks |= {tick.label1, tick.label2}
                if ax.get_visible() and ax.axison and low - slack <= tick.get_loc() <= high + slack:
                    seen |= {tick.label1, tick.label2}
    every = {id(text): text for text in figure.findobj(Text)}.values()
    hidden = {text for ax in figure.axes if not ax.get_visible() for text in ax.findobj(Text)}
    return [
        text for text in every
        if text.get_visible() and text.get_text().strip() and text not in hidden and (text not in ticks or text in seen)
    ]  # fmt: skip


def text_faults(figure):
    """Return which texts overlap another, or leave the figure."""
    texts = drawn_texts(figure)
    boxes = [text.get_window_extent().padded(-0.6) for text in texts]
    page = figure.bbox.padded(0.5)
    found = [
        f"{text.get_text()!r} leaves the figure"
        for text, box in zip(texts, boxes, strict=True)
        if not (page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1)
    ]
    for legend in figure.legends:
        box = legend.get_window_extent()
        found += (
            [] if page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 else ["the legend leaves the figure"]
        )
    return found + [
        f"{texts[a].get_text()!r} overlaps {texts[b].get_text()!r}"
        for a, b in combinations(range(len(texts)), 2)
        if boxes[a].overlaps(boxes[b])
    ]
