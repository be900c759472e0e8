"""Formulas as MathML, made when the pages are built.

Browsers draw MathML themselves. So a page needs no script for its formulas, and nothing from the network, as MathJax
does. latex2mathml translates; what it takes for letters that TeX does not is set right here.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
NAMESPACE = "http://www.w3.org/1998/Math/MathML"
THIN = "0.167em"
MINUS = "\N{MINUS SIGN}"
CLOSING = (")", "]", "}", "⌋")
ACCENTS = {"^": "\N{MODIFIER LETTER CIRCUMFLEX ACCENT}", "~": "\N{SMALL TILDE}", "¯": "\N{MACRON}"}
UNDERSTOOD = [
    (r"\\(begin|end)\{aligned\}", r"\\\1{split}"),
    (r"(\\\\\s*)&", r"\1{} &"),  # it leaves out a cell with nothing in it
    (r"\\mathrm\{([A-Za-z])\}", r"\\text{\1}"),  # it leaves a single letter italic
]
UNKNOWN = re.compile(r"\\[A-Za-z]+")


@cache
def as_mathml(latex: str, display: str) -> str:
    """Return a formula, or raise ValueError if latex2mathml did not understand it."""
    for pattern, written in UNDERSTOOD:
        latex = re.sub(pattern, written, latex)
    found = convert(latex, display=display)
    # a command that it does not know becomes a letter of this name
    unknown = sorted(set(UNKNOWN.findall(html.unescape(found))))
    if unknown:
        raise ValueError(f"latex2mathml does not know {', '.join(unknown)}")
    root = ElementTree.fromstring(found.replace(f' xmlns="{NAMESPACE}"', ""))
    for element in root.iter():
        repair(element)
    for element in list(root.iter()):
        space(element)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def repair(element: ElementTree.Element) -> None:
    """Tell letters from operators as TeX does."""
    text = element.text or ""
    if element.tag == "mi" and text in (":", ";"):
        element.tag = "mo"
        element.attrib |= {"lspace": "0em", "rspace": THIN}
    elif element.tag == "mi" and text in ("⌊", "⌋"):
        element.tag = "mo"
        element.attrib |= {"form": "postfix" if text in CLOSING else "prefix", "stretchy": "false"}
    elif element.tag == "mo" and text == "*":
        element.text = "\N{ASTERISK OPERATOR}"  # the other one is raised already, and would be so twice
    elif element.tag == "mo" and text == "/":
        element.attrib |= {"lspace": "0em", "rspace": "0em"}
    elif element.tag == "mo" and len(text) > 1 and text.isalpha():  # min
        element.tag = "mi"
    elif element.tag == "mover" and element[0].tag == "mi" and element[1].text in ACCENTS:
        element.set("accent", "true")
        element[1].set("stretchy", "false")
        element[1].text = ACCENTS[element[1].text]


def space(row: ElementTree.Element) -> None:
    """Set functions off from what is beside them; and no space beside a minus that has nothing on one side."""
    children = list(row)
    if row.tag not in ("math", "mrow", "mtd") or not children:
        return
    spaced = []
    for before, child, after in zip([None, *children[:-1]], children, [*children[1:], None], strict=True):
        text = child.text or ""
        after_term = before is not None and not (before.tag == "mo" and before.text not in CLOSING)
        thin = []
        if child.tag == "mo" and text == MINUS:
            ends = after is None or (after.tag == "mo" and after.text in CLOSING)
            if ends or not after_term:
                child.attrib |= {"form": "postfix" if ends else "prefix", "lspace": "0em", "rspace": "0em"}
        elif child.tag == "mi" and len(text) > 1 and text.isalpha():
            spaced += [ElementTree.Element("mspace", width=THIN)] if after_term else []
            thin = [ElementTree.Element("mspace", width=THIN)] if after is not None and after.tag != "mo" else []
        spaced += [child, *thin]
    row[:] = spaced


def render(latex: str, display: str, node) -> str:
    """Return a formula; one that can't be made is a warning, and shown as it was written."""
    try:
        return as_mathml(latex, display)
    except Exception as error:  # whatever it is, the page and line should be told
        logger.warning("formula %r: %s", latex, error, location=node)
        return f"<code>{html.escape(latex)}</code>"


def visit_inline(translator, node) -> None:
    """Write a formula in the text."""
    translator.body.append(translator.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    translator.body.append(render(node.astext(), "inline", node) + "</span>")
    raise SkipNode


def visit_block(translator, node) -> None:
    """Write a displayed formula, with its number and a link to it where it has a label."""
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, _("Link to this equation"))
        translator.body.append("</span>")
    parts = re.split(r"\n\s*\n", node.astext().strip())  # an empty line parts two formulas
    lines = " \\\\ ".join(parts)
    if "\\\\" in lines and r"\begin" not in lines:
        lines = rf"\begin{{split}}{lines}\end{{split}}"
    translator.body.append(render(lines, "block", node) + "</div>")
    raise SkipNode


def add_files(app) -> None:
    """Bring the style sheet and the font along."""
    app.config.html_static_path.append(str(STATIC))


def setup(app):
    """Be a choice for ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("builder-inited", add_files)
    app.add_css_file("mathml.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
