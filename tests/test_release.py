"""What a release needs: one version everywhere, links that hold on PyPI, safe workflows, lowest versions."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import survscore as ss

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
REPOSITORY, PAGES = PROJECT["urls"]["Source"], PROJECT["urls"]["Documentation"]


def tool(name):
    return runpy.run_path(str(ROOT / "tools" / f"{name}.py"))


def workflow(name):
    loaded = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    loaded["on"] = loaded.pop(True)  # as YAML 1.1 reads it
    return loaded


# The version


def prepared(folder, changed=None, old="", new=""):
    """Copy what a release is checked by, as it will be when the changelog has no unreleased lines; change one file."""
    for name in ("CITATION.cff", "CHANGELOG.md", "src/survscore/_version.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"^## Unreleased\n.*?(?=^## )", "", text, flags=re.MULTILINE | re.DOTALL)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace(old, new, 1) if name == changed else text, encoding="utf-8")
    return folder


def test_version_changelog_and_citation_agree(tmp_path):
    assert tool("release")["problems"](f"v{ss.__version__}", prepared(tmp_path)) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "told"),
    [
        ("CITATION.cff", f"version: {ss.__version__}", "version: 9.9.9", "CITATION.cff names version 9.9.9"),
        ("CHANGELOG.md", f"## {ss.__version__}", "## Unreleased", "the changelog begins with Unreleased"),
        ("src/survscore/_version.py", ss.__version__, "9.9.9", "and the version 9.9.9: tag v9.9.9"),
    ],
)
def test_a_release_that_is_not_prepared_is_refused(tmp_path, path, old, new, told):
    assert told in "\n".join(tool("release")["problems"](f"v{ss.__version__}", prepared(tmp_path, path, old, new)))


# What PyPI shows


def test_links_of_the_readme_are_files_here_and_addresses_on_the_package_index():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\""
    relative = [link or source for link, source in re.findall(links, text) if not link.startswith("https://")]
    assert len(relative) > 5
    for link in relative:
        assert (ROOT / link.split("#")[0]).is_file(), link
    for rule in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    addresses = [link or source for link, source in re.findall(links, text)]
    assert all(address.startswith("https://") for address in addresses)
    raw = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/"
    for link in relative:
        page = re.sub(r"^docs/(.*)\.rst", rf"{PAGES}/en/latest/\1.html", link)
        here = raw if link.startswith("docs/_static/") else f"{REPOSITORY}/blob/main/"
        assert (page if page != link else here + link) in addresses


def test_classifiers_name_the_pythons_that_are_tested():
    named = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    tested = {job["python"] for job in workflow("ci")["jobs"]["tests"]["strategy"]["matrix"]["include"]}
    assert named == PYTHONS == sorted(tested)
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_wheel_has_the_package_alone_without_tests_and_pictures():
    built = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built == {"packages": ["src/survscore"]}
    files = [path for path in (ROOT / "src" / "survscore").rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    assert not [path for path in files if re.match(r"test|conftest", path.name) or "tests" in path.parts]


# Workflows


@pytest.mark.parametrize("name", [path.stem for path in WORKFLOWS])
def test_workflows_have_no_more_rights_than_they_use(name):
    loaded = workflow(name)
    assert loaded["permissions"] in ({}, {"contents": "read"})
    assert loaded["concurrency"]["group"]
    for job in loaded["jobs"].values():
        assert job["timeout-minutes"] <= 90
        granted = job.get("permissions", {})
        assert granted in ({}, {"contents": "read"}) or (
            granted == {"id-token": "write"} and job["environment"] == "pypi"
        )
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "what others may write comes by env, never into a shell's text"
            if "uses" in step:
                assert re.fullmatch(r"(actions/[\w-]+|pypa/gh-action-pypi-publish)@[0-9a-f]{40}", step["uses"])
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}


def test_what_is_published_is_what_was_checked():
    loaded = workflow("publish")
    assert list(loaded["on"]) == ["push"]
    assert list(loaded["on"]["push"]) == ["tags"]
    build, publish = loaded["jobs"]["build"], loaded["jobs"]["publish"]
    assert publish["needs"] == "build"
    done = [step.get("run", step.get("uses")) for step in build["steps"]]
    parts = ["release.py", "-m build", "twine check", "upload-artifact"]
    order = [next(i for i, one in enumerate(done) if part in one) for part in parts]
    assert order == sorted(order)
    assert not any("run" in step for step in publish["steps"])  # nothing that could change the files


# Lowest versions


def test_lowest_versions_are_those_of_the_project():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "lowest.py", "reproduce"], capture_output=True, text=True, check=True
    )
    told = dict(line.split("==") for line in done.stdout.splitlines())
    extras = [PROJECT["optional-dependencies"][name] for name in ("plots", "report", "models", "data")]
    asked = {one for some in (PROJECT["dependencies"], *extras) for one in some if not one.startswith("survscore[")}
    assert {f"{name}>={version}" for name, version in told.items()} == asked
