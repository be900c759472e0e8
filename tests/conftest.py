"""What holds in all tests."""

import shutil

import pytest
from hypothesis import HealthCheck, settings

from combinations import QUICK

# What is drawn is the same in every run, so that a change is judged by what it changes. make test-all draws more of it
# (--hypothesis-profile=thorough), and the weekly run draws anew (--hypothesis-profile=explore).
settings.register_profile(
    "fixed",
    max_examples=QUICK,
    derandomize=True,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)
settings.register_profile("thorough", settings.get_profile("fixed"), max_examples=100)
settings.register_profile("explore", settings.get_profile("thorough"), derandomize=False)
settings.load_profile("fixed")


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
