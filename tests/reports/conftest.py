import pytest

import survscore as ss
from report_case import OPTIONS, PAPER, TIMES, make, make_with_drop_outs


@pytest.fixture(scope="session")
def case():
    return make()


@pytest.fixture(scope="session")
def report(case):
    y, models = case
    return ss.report(y, models, **OPTIONS)


@pytest.fixture(scope="session")
def lost_case():
    return make_with_drop_outs()


@pytest.fixture(scope="session")
def lost_report(lost_case):
    """Return a report on data with drop-outs, with a metric of which higher values are better."""
    y, models = lost_case
    return ss.report(y, models, metric=["brier", "auc"], weighting=PAPER, times=TIMES, n_curves=2)
