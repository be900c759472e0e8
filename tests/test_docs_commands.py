"""Commands, containers and workflows that the docs show are well formed, and options in them exist."""

import re
import shlex
from pathlib import Path
from textwrap import dedent

import click
import pytest
import yaml

from survscore.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.rst"), ROOT / "README.md"])
OPERATORS = re.compile(r"[;|&<>()]+")


def blocks(page, language):
    """Return the code blocks of a page in a language, without their indent."""
    text = page.read_text()
    if page.suffix == ".md":
        return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = re.findall(rf"^( *)\.\. code-block:: {language}\n\n((?:\1 +.*\n|\n)+)", text, re.MULTILINE)
    return [dedent(block) for _, block in found]


def commands(line):
    """Return the words of each command of survscore in a line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    found = [[]]
    for word in lexer:
        if OPERATORS.fullmatch(word):
            found.append([])
        else:
            found[-1].append(word)
    return [words[words.index("survscore") + 1 :] for words in found if "survscore" in words]


def check_known(words):
    """Raise unless a command and its options exist, with as many values as they take."""
    command, path = cli, []
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        path, words = [*path, words[0]], words[1:]
        command = command.get_command(click.Context(cli), path[-1])
        assert command is not None, path
    parser = command.make_parser(click.Context(command, info_name=" ".join(path)))
    parser.parse_args(list(words))


def shown_commands(page):
    lines = [line for block in blocks(page, "console") for line in block.replace("\\\n", " ").splitlines()]
    return [words for line in lines if line.startswith("$ ") for words in commands(line[2:])]


@pytest.mark.parametrize("page", [page for page in PAGES if shown_commands(page)], ids=lambda page: page.stem)
def test_commands_are_those_that_there_are(page):
    for words in shown_commands(page):
        check_known(words)


def test_a_command_that_there_is_not_is_found():
    for line in (
        "survscore evaluate data/ --wieghting ipcw",
        "true && survscore evaluat data/",
        "survscore check --json",
    ):
        with pytest.raises((click.UsageError, AssertionError)):
            check_known(*commands(line))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")], ids=lambda page: page.stem)
def test_workflows(page):
    for block in blocks(page, "yaml"):
        workflow = yaml.safe_load(block)
        assert workflow.get("on", workflow.get(True))  # `on` is a word for true
        for job in workflow["jobs"].values():
            assert job["runs-on"]
            for step in job["steps"]:
                assert ("uses" in step) != ("run" in step), step
                assert step.keys() <= {"name", "id", "if", "uses", "run", "with", "env", "continue-on-error"}, step
                for line in re.sub(r"\$\{\{.*?\}\}", "x", step.get("run", "")).splitlines():
                    for words in commands(line):
                        check_known(words)


NIGHTLY = ROOT / "docs" / "scale.rst"


def test_cron():
    (line,) = [line for block in blocks(NIGHTLY, "text") for line in block.splitlines() if "survscore evaluate" in line]
    minute, hour, *days = line.split()[:5]
    assert 0 <= int(minute) < 60
    assert 0 <= int(hour) < 24
    assert days == ["*"] * 3
    evaluate, check = commands(line)
    check_known(evaluate)
    check_known(check)
    assert evaluate[evaluate.index("--json") + 1] == check[check.index("--results") + 1]
