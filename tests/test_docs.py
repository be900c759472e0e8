"""The README's code and the docs' commands run, and the files a user reads agree with the package."""

import pkgutil
import re
import shlex
from pathlib import Path

import pytest

import survscore as ss
from survscore import cli

ROOT = Path(__file__).parent.parent


def test_the_code_in_the_readme_prints_what_is_shown_there(capsys):
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    for code, shown in blocks:
        exec(compile(code, "README.md", "exec"), {})
        printed = [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()]
        assert printed == shown.splitlines()


def test_every_public_name_is_documented():
    listed = (ROOT / "docs" / "api" / "index.rst").read_text()
    for name in set(ss.__all__) - {"__version__"}:
        assert f"   {name}\n" in listed, name
        assert getattr(ss, name).__doc__


def test_every_name_on_the_api_page_exists():
    listed = (ROOT / "docs" / "api" / "index.rst").read_text()
    for name in re.findall(r"^   ([\w.]+)$", listed, flags=re.MULTILINE):
        assert pkgutil.resolve_name(f"survscore.{name}").__doc__, name


def commands(page):
    """Return the commands of a page's console blocks that answer at once."""
    found = re.findall(r"^ *\$ (survscore .*)$", (ROOT / page).read_text(), flags=re.MULTILINE)
    return [line for line in found if line.split()[1] not in ("demo", "reproduce", "kkbox")]


@pytest.mark.parametrize("page", ["README.md", "docs/files.rst", "docs/start.rst"])
def test_the_commands_of_a_page_run_one_after_the_other(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert commands(page)
    for line in commands(page):
        cli.main(shlex.split(line)[1:])  # a failure is an exit
        assert capsys.readouterr().out or "--csv" in line, line


def test_what_files_rst_shows_is_what_compare_prints(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    cli.main(["simulate", "play"])
    capsys.readouterr()
    line = next(line for line in commands("docs/files.rst") if "compare" in line)
    cli.main(shlex.split(line)[1:])
    whole, by_time = (ROOT / "docs" / "files.rst").read_text().split(".. code-block:: text")[1:3]
    assert capsys.readouterr().out.split() == whole.split("The table shows both")[0].split()
    files = ["play/outcomes.csv", "play/truth.csv", "play/leaking.csv"]
    cli.main(["compare", *files, "-w", "administrative", "-m", "brier", "-t", "20,40,100", "--full"])
    assert capsys.readouterr().out.split() == by_time.split("Times are printed with")[0].split()


def test_what_files_rst_shows_is_what_formats_proposes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "subscriptions.csv").write_text(
        "customer_id,plan,signup_date,cancel_date\nC1,basic,2015-02-03,2016-01-15\nC2,pro,2015-05-03,\n"
        "C3,basic,2016-02-13,2016-12-15\nC4,pro,2016-01-21,\n"
    )
    (tmp_path / "churn.csv").write_text(
        "customer_id,month_1,month_2,month_12\nC1,0.01,0.05,0.4\nC2,0.01,0.05,0.3\nC3,0.1,0.2,0.6\nC4,0.01,0.02,0.2\n"
    )
    cli.main(["formats", "subscriptions.csv", "churn.csv"])
    page = (ROOT / "docs" / "files.rst").read_text()
    shown = page.split("it prints\n")[1].split("What is uncertain")[0].replace(".. code-block:: text", "")
    assert capsys.readouterr().out.split("Read so")[0].split() == shown.split()


def test_the_tests_that_the_theory_names_exist():
    page = (ROOT / "docs" / "theory.rst").read_text()
    named = set(re.findall(r"``(test_\w+)``", page))
    assert len(named) > 20
    written = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in named:
        assert f"def {name}(" in written, name
