import numpy as np
import pandas as pd
import pytest

import survscore as ss
from estimator_cases import TIMES, sample

pytest.importorskip("skpro")
pytest.importorskip("lifelines")
from lifelines import WeibullAFTFitter
from skpro.survival.aft import AFTLogNormal, AFTWeibull
from skpro.survival.coxph import CoxPHlifelines as CoxPHLifelines
from skpro.survival.coxph import CoxPHSkSurv

X, Y = sample()


@pytest.mark.parametrize("regressor", [AFTWeibull, AFTLogNormal])
def test_curves_are_those_of_the_distributions(regressor):
    table = pd.DataFrame(X, columns=["x0", "x1"])
    censored = pd.DataFrame({"censored": (~Y.event).astype(int)})
    distributions = regressor().fit(table, pd.DataFrame({"time": Y.time}), C=censored).predict_proba(table[:5])
    expected = [
        1 - distributions.cdf(pd.DataFrame({"time": np.full(5, t)}, index=distributions.index)).to_numpy()[:, 0]
        for t in TIMES
    ]
    model = ss.adapters.Skpro(regressor(), times=TIMES).fit(X, Y)
    np.testing.assert_allclose(model.predict(X[:5]), np.transpose(expected), rtol=1e-10)


def test_a_weibull_model_is_that_of_lifelines():
    """Events and censored are not confused on the way."""
    theirs = ss.adapters.Lifelines(WeibullAFTFitter(), times=TIMES).fit(X, Y).predict(X)
    np.testing.assert_allclose(ss.adapters.Skpro(AFTWeibull(), times=TIMES).fit(X, Y).predict(X), theirs, rtol=1e-6)


@pytest.mark.parametrize(("regressor", "wrapper"), [(CoxPHSkSurv, "ScikitSurvival"), (CoxPHLifelines, "Lifelines")])
def test_misplaced_distributions_are_refused(regressor, wrapper):
    model = ss.adapters.Skpro(regressor(), times=TIMES).fit(X, Y)
    with pytest.raises(ss.InputError, match=f"not those of the model inside it: wrap that with adapters.{wrapper}"):
        model.predict(X)
