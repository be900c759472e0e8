"""What holds in all tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_narrow_terminal(monkeypatch):
    """Print as into a file: processes that share out the tests are told the width of a terminal that nobody sees."""
    monkeypatch.delenv("COLUMNS", raising=False)
