import pytest

import commands
from checks_case import compared, day
from survscore import cli
from survscore.checks import Run, parse_rules


@pytest.fixture(scope="session")
def comparison():
    return compared()


@pytest.fixture
def run(comparison):
    return Run.of(comparison, parse_rules({"check": [{"range": [10, 60], "below": 1}]}), id="tonight", date=day(10))


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """Return a folder with simulated files."""
    folder = tmp_path_factory.mktemp("study")
    cli.main(["simulate", str(folder / "play"), "-n", "600"])
    return folder / "play"


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Return a function that runs the command line in a folder of its own: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capsys.readouterr()
        return commands.run(capsys, *arguments)

    return call
