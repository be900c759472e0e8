"""What the page on checks says runs: its commands, its rules and its script for cron."""

import os
import re
import shlex
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from survscore import cli
from survscore.checks import parse_rules, read_history, read_rules
from survscore.checks.rules import KEYS

PAGE = (Path(__file__).parent.parent.parent / "docs" / "checks.rst").read_text()


def blocks(language):
    """Return the code blocks of the page in a language."""
    found = re.findall(rf"\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)", PAGE)
    return [textwrap.dedent(block).strip() + "\n" for block in found]


def test_the_commands_of_the_page_run(command, capsys):
    lines = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        code, _, err = command(*shlex.split(line)[1:])
        assert code == 0, (line, err)


def test_the_rules_of_the_page_are_right(tmp_path):
    (block,) = blocks("toml")
    (tmp_path / "rules.toml").write_text(block)
    assert len(read_rules(tmp_path / "rules.toml")) == 5
    for key in KEYS:
        assert f"``{key}" in PAGE or f"{key} = " in PAGE, key
    assert parse_rules({"check": [{"below": 1}]})


@pytest.fixture
def night(tmp_path):
    """Return a function that runs the documented script, as cron does, on files of simulated data."""
    (script,) = blocks("sh")
    path = tmp_path / "nightly.sh"
    path.write_text(script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "scores"
    cli.main(["simulate", str(folder), "-n", "500"])
    (folder / "truth.csv").rename(folder / "old.csv")
    (folder / "leaking.csv").rename(folder / "leaking")
    (folder / "new.csv").write_text((folder / "old.csv").read_text())
    (folder / "rules.toml").write_text(
        '[[check]]\nname = "good"\nvalue = "upper"\nbelow = 0.2\n[[check]]\nmodel = "new"\nreference = "old"\n'
        '[[check]]\nreference = "last"\n'
    )
    tool = tmp_path / "bin" / "survscore"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m survscore "$@"\n')
    tool.chmod(0o755)
    searched = {"PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(name):
        environment = {**os.environ, **searched, "SCORES": str(folder), "RUN": name}
        done = subprocess.run(
            ["/bin/sh", str(path)], capture_output=True, text=True, check=False, env=environment, timeout=120
        )
        return done.returncode, done.stdout, done.stderr

    return run, folder


@pytest.mark.skipif(not Path("/bin/sh").exists(), reason="cron is of other systems")
def test_the_script_for_cron_runs(night):
    run, folder = night
    assert run("monday") == (0, "", "")
    assert run("tuesday") == (0, "", "")
    (folder / "new.csv").write_text((folder / "leaking").read_text())
    code, out, _ = run("wednesday")
    assert code == 1
    assert out.startswith("Checks failed:\n")
    assert "1 of 5 checks failed" in out
    assert [one.id for one in read_history(folder / "history.jsonl").runs] == ["monday", "tuesday", "wednesday"]
    code, out, _ = run("wednesday")
    assert code == 2
    assert out.startswith("The check did not run:\n")
    assert "there is a run 'wednesday' already" in out
    assert (folder / "findings.json").exists()
