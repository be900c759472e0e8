"""The README's code runs, and the files a user reads agree with the package."""

import re
from pathlib import Path

import survscore as ss

ROOT = Path(__file__).parent.parent


def test_the_code_in_the_readme_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "IntegratedScore(0.0" in capsys.readouterr().out


def test_the_citation_names_this_version():
    assert f"version: {ss.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_every_public_name_is_documented():
    listed = (ROOT / "docs" / "api" / "index.rst").read_text()
    for name in set(ss.__all__) - {"__version__"}:
        assert f"   {name}\n" in listed, name
        assert getattr(ss, name).__doc__
