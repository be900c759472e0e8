import pytest

import survscore as ss
from report_case import OPTIONS, make


@pytest.fixture(scope="session")
def case():
    return make()


@pytest.fixture(scope="session")
def report(case):
    y, models = case
    return ss.report(y, models, **OPTIONS)
