"""The README as people see it: rendered in a browser, wide and on a phone, and its pictures.

`SURVSCORE_WRITE_REFERENCES=1 pytest tests/test_readme.py` writes the reference pictures anew: look at them.
"""

import re
from pathlib import Path

import pytest

from looks import BLOCKS, COLUMNS, MOST_DIFFERENT, check_looks, distance, font_faces, measure, screenshot

ROOT = Path(__file__).parent.parent
REFERENCES = ROOT / "tests" / "reference" / "pages"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURES = "docs/_static/"
#: About as where READMEs are read: one column, tables and code that scroll, pictures no wider than the page.
STYLE = """
body { max-width: 980px; margin: 0 auto; padding: 32px 16px; font: 16px/1.5 "Test Sans", sans-serif; color: #1f2328; }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em; }
img { max-width: 100%; }
a { color: #0969da; }
table { display: block; width: max-content; max-width: 100%; overflow-x: auto; border-collapse: collapse; }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0; }
code, pre { font: 13.6px/1.45 "Test Mono", monospace; background: #f0f1f3; }
pre { padding: 16px; overflow-x: auto; }
"""
VIEWS = {
    "desktop": ({"width": 1280, "height": 1500}, BLOCKS),
    "phone": ({"width": 390, "height": 1500}, COLUMNS),
}


def rendered(text):
    """Return a page of Markdown, with the pictures of this checkout."""
    markdown = pytest.importorskip("markdown_it", reason="needs markdown-it-py")
    body = (
        markdown.MarkdownIt("commonmark")
        .enable("table")
        .render(text)
        .replace(f'"{PICTURES}', f'"{ROOT.as_uri()}/{PICTURES}')
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>README</title>"
        f"<style>{font_faces()}{STYLE}</style><body>{body}</body></html>"
    )


@pytest.fixture(scope="module")
def readme(tmp_path_factory):
    path = tmp_path_factory.mktemp("readme") / "readme.html"
    path.write_text(rendered(README), encoding="utf-8")
    return path


def opened(browser, path, view):
    page = browser.new_page(viewport=VIEWS[view][0])
    page.goto(path.as_uri())
    page.evaluate("document.fonts.ready")
    return page


@pytest.mark.nightly
@pytest.mark.parametrize("view", VIEWS)
def test_the_readme_looks_as_it_did(browser, readme, view):
    page, blocks = opened(browser, readme, view), VIEWS[view][1]
    kept = check_looks(screenshot(page), REFERENCES / f"readme-{view}.png", blocks)
    # the tolerance is not so wide that a missing picture would pass
    page.evaluate("document.querySelector('img').style.opacity = 0")
    assert distance(screenshot(page), kept, blocks) > MOST_DIFFERENT
    page.close()


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_in_the_readme_is_cut_or_wider_than_the_page(browser, readme, view):
    page = opened(browser, readme, view)
    assert page.locator("table").count() == README.count("| --- |")
    assert page.locator("h2").count() == len(re.findall(r"^## ", README, flags=re.MULTILINE))
    assert measure(page, "pageFaults") == []
    # nothing is to be scrolled sideways, but for code on a phone
    which = "table" if view == "phone" else "table, pre"
    wide = page.locator(which).evaluate_all(
        "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"
    )
    assert wide == []
    page.close()
