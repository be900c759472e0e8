"""Standard terms: phrases that make a reader stop are not in the package, the documentation, or expected output."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: What is not written, and what to write in its place.
PHRASES = {
    r"can(?:'t|not) be told from": "is not significantly different from",
    r"surely (?:better|worse)": "significantly better, worse",
    r"tells? C\*|knows? when the data end|told when each": "encodes the censoring time",
    r"C\* as late": "C* >= t",
    r"speaks? for": "describes",
    r"rests? on (?:as much as |too few|\d)": "has an effective sample size of; too few for a reliable interval",
    r"to hold what it says": "for a reliable interval",
    r"everybody|whoever|who is told from whom": "each individual; discrimination",
    r"share with event": "observed proportion",
    r"risk from which on": "threshold probability",
    r"not rising with time": "must not increase with time",
    r"that there are not are refused": "unknown keys are rejected",
    r"fit in no memory": "do not fit in memory",
    r"honest predictions|taken for such that": "false positives",
    r"who has results already": "to check existing results",
    r"mended": "fixed",
    r"changed in the interface": "breaking changes",
    r"half as high again": "1.5 times",
    r"gloomy": "pessimistic",
    r"dear(?:er|est)?": "slow",
    r"believe it\?": "recommendation",
    r"when (?:the )?data end|where (?:the )?data end": "follow-up ends; data cut-off",
    r"classifiers (?:learn|do) that": "classifiers trained without the censored",
    r"not to be had|can be had": "not available",
    r"weighted for": "weights account for",
    r"as ever": "still",
    r"(?:hold|held|holds) the truth": "cover the true value",
}
#: What is not written on pages and in the help of commands, where readers are not developers.
PAGE_PHRASES = {
    r"(?:can|don|doesn|isn|aren|won|didn)'t": "cannot, do not",
    r"nobody": "no individual",
    r"shared? out|sharing out": "distribute",
    r"(?:is|are|was|were) told(?: apart)? from": "can be distinguished from",
    r"what there is": "available",
    r"told apart": "distinguished",
    r"goes by (?:the|it|this|that)": "follows, uses",
    r"says it is|said so|say it": "a warning is given; a note is given",
    r"in a sentence": "in words",
    r"made anew|anew": "again, recomputed",
    r"take(?:s|n)? off": "reduce by",
    r"what is yours|of yours": "your own",
    r"stands? beside|stands? below": "is shown next to, below",
    r"right on the whole": "right on average",
    r"half is a coin": "one half is the value of random predictions",
}


def compiled(phrases) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?<!\w)(?:{phrase})(?!\w)" for phrase in phrases), re.IGNORECASE)


PATTERN = compiled(PHRASES)
ON_PAGES = compiled(PAGE_PHRASES)
#: In a docstring the names of parameters and attributes, which are code.
NAMES = re.compile(r"^\s*\w[\w, ]* : ", re.MULTILINE)


def prose(path: Path) -> list[tuple[int, str]]:
    """Return lines and texts: of Python comments and strings, of anything else all lines."""
    text = path.read_text(encoding="utf-8")
    if not PATTERN.search(" ".join(text.split())):  # which is faster than taking it apart
        return []
    if path.suffix != ".py":
        return list(enumerate(text.splitlines(), start=1))
    comments = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    strings = [
        (node.lineno, " ".join(NAMES.sub("", node.value).split()))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return comments + [(line, string) for line, string in strings if " " in string]


def hits(paths) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {found.group()!r}"
        for path in paths
        for line, text in prose(path)
        for found in PATTERN.finditer(text)
    ]


def files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern) if path != Path(__file__))


def test_pages_use_standard_terms():
    """Line by line: code and what it prints are on the same pages, and have none of these either."""
    pages = files("README.md", "CONTRIBUTING.md", "docs/*.rst", "docs/metrics/*.rst")
    assert len(pages) > 30
    found = [
        f"{path.relative_to(ROOT)}: {hit.group()!r}"
        for path in pages
        for hit in ON_PAGES.finditer(" ".join(path.read_text(encoding="utf-8").split()))
    ]
    assert not found


def test_help_uses_standard_terms():
    from survscore.cli import cli

    def texts(command):
        yield command.help or ""
        yield from (getattr(parameter, "help", None) or "" for parameter in command.params)
        for one in getattr(command, "commands", {}).values():
            yield from texts(one)

    told = list(texts(cli))
    assert len(told) > 200
    assert not [hit.group() for text in told for hit in ON_PAGES.finditer(" ".join(text.split()))]


@pytest.mark.parametrize(
    "patterns",
    [
        [f"src/survscore/**/*.{ending}" for ending in ("py", "pyi", "html", "js")],
        [
            "README.md",
            "C[HO]*G.md",
            "docs/*.rst",
            "docs/api/*.rst",
            "docs/metrics/*.rst",
            "docs/_ext/*.py",
            "examples/*.py",
        ],
        ["tests/reference/demo/*.txt"],
    ],
    ids=["package", "documentation", "the demo"],
)
def test_phrases_that_make_a_reader_stop_are_not_used(patterns):
    assert not hits(files(*patterns))


def test_expected_output_in_the_tests_uses_standard_terms():
    """Of sentences, that is: a model may have any name."""
    found = [hit for hit in hits(files("tests/**/test_*.py")) if " " in hit.rpartition(": ")[2]]
    assert not found
