"""scikit-learn's own checks, with its numeric targets turned into outcomes."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import survscore as ss
from survscore.models import BCESurvival, LogisticHazard


def outcomes_of(y):
    """Turn a numeric target into times after 0, everybody with the event; others are passed on to be refused."""
    if y is None or isinstance(y, ss.Outcomes):
        return y
    values = np.asarray(y)
    if values.dtype.kind not in "biuf" or values.ndim > 2 or values.size == 0:
        return y
    values = values.reshape(values.shape[0], -1)[:, 0].astype(float)
    if not np.isfinite(values).all():
        raise ValueError("Input y contains NaN or inf")
    return ss.Outcomes(values - values.min() + 1.0, np.ones(values.size))


def causes_of(y):
    """Turn it into times after 0 of events of two causes."""
    outcomes = outcomes_of(y)
    if not isinstance(outcomes, ss.Outcomes):
        return outcomes
    return ss.Outcomes(outcomes.time, 1 + np.arange(len(outcomes)) % 2, causes=["churn", "non-payment"])


def checked(model, target=outcomes_of, **settings):
    """Return a class whose `fit` and `score` take scikit-learn's targets."""

    class Checked(model):
        def fit(self, X, y):
            return super().fit(X, target(y))

        def score(self, X, y):
            return super().score(X, target(y), **settings)

    Checked.__name__ = Checked.__qualname__ = f"Checked{model.__name__}"
    globals()[Checked.__name__] = Checked  # where pickle looks for it
    return Checked


QUICK = {"n_times": 5, "width": 4, "n_layers": 1, "epochs": 2, "device": "cpu", "random_state": 0}
#: Which checks can't pass, and why. The baselines are not put through them: `KaplanMeier` takes any X, and
#: `HorizonClassifiers` leaves X to its classifier.
EXPECTED_FAILURES = {
    "check_dtype_object": "wants a target of objects to be called an unknown label type; no labels here"
}


@parametrize_with_checks(
    [kind(**QUICK) for kind in (checked(BCESurvival), checked(LogisticHazard, causes_of, cause="churn"))],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
