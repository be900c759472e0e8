"""What holds in all tests."""

import shutil

import pytest


@pytest.fixture(autouse=True)
def _no_narrow_terminal(monkeypatch):
    """Print as into a file: processes that share out the tests are told the width of a terminal that nobody sees."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def browser():
    """Return a Chromium, or say why there is none; only for a module, since it keeps an event loop running."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()
