"""The built documentation as people see it. ``make docs`` builds it, and runs these tests on what it has built.

`SURVSCORE_PAGES=docs/_build/html SURVSCORE_WRITE_REFERENCES=1 pytest tests/test_pages.py` writes the reference pictures
anew: look at them.
"""

import os
from pathlib import Path

import pytest

from looks import (
    BLOCKS,
    COLUMNS,
    MOST_DIFFERENT,
    check_looks,
    distance,
    font_faces,
    measure,
    screenshot,
)

if "SURVSCORE_PAGES" not in os.environ:
    pytest.skip("no built pages: make docs builds them, and looks at them", allow_module_level=True)

PAGES = Path(os.environ["SURVSCORE_PAGES"]).resolve()
REFERENCES = Path(__file__).parent / "reference" / "pages"
VIEWS = {
    "desktop": ({"width": 1280, "height": 1200}, BLOCKS),
    "phone": ({"width": 390, "height": 1400}, COLUMNS),
}
FONTS = f"""{font_faces()}
html {{
  --pst-font-family-base: "Test Sans"; --pst-font-family-heading: "Test Sans"; --pst-font-family-monospace: "Test Mono";
}}"""
#: Pages that people read, and not those of single functions and examples, which are made alike.
READ = sorted(path for path in PAGES.rglob("*.html") if not {"generated", "_static", "_modules"} & set(path.parts))


@pytest.fixture(scope="module", params=VIEWS)
def window(request, browser):
    """Return a page, and how wide it is, in words."""
    page = browser.new_page(viewport=VIEWS[request.param][0])
    yield page, request.param
    page.close()


def go(page, path):
    page.goto(path.as_uri())
    page.add_style_tag(content=FONTS)
    page.evaluate("document.fonts.ready")


def test_the_first_page_looks_as_it_did(window):
    page, view = window
    blocks = VIEWS[view][1]
    go(page, PAGES / "index.html")
    kept = check_looks(screenshot(page), REFERENCES / f"docs-{view}.png", blocks)
    # the tolerance is not so wide that a missing picture would pass
    page.evaluate("document.querySelectorAll('main img').forEach((e) => { e.style.opacity = 0; })")
    assert distance(screenshot(page), kept, blocks) > MOST_DIFFERENT


def test_nothing_on_a_page_is_cut_or_lies_on_something_else(window):
    page, _ = window
    assert len(READ) > 40
    for path in READ:
        page.goto(path.as_uri())
        assert measure(page, "pageFaults") == [], path.name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path.name
