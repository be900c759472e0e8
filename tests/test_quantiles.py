"""Quantiles and p-values of Student, Fisher and chi-square where degrees of freedom are none, few or infinite."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from combinations import examples
from survscore import InputError
from survscore.inference.intervals import fisher_quantile, student_p, student_quantile


@examples(60)
@given(statistic=st.floats(-40, 40), df=st.floats(0.5, 1e6), level=st.floats(0.01, 0.9999))
def test_p_values_and_quantiles_are_scipys(statistic, df, level):
    expected = 2 * stats.t.sf(abs(statistic), df)
    assert student_p(statistic, df) == pytest.approx(expected, rel=1e-7, abs=1e-13)
    assert student_quantile(level, df) == pytest.approx(stats.t.ppf(0.5 + level / 2, df), rel=1e-9)


@examples(40)
@given(numerator=st.integers(1, 8), denominator=st.floats(1, 1e6), level=st.floats(0.01, 0.999))
def test_fishers_quantiles_are_scipys(numerator, denominator, level):
    expected = stats.f.ppf(level, numerator, denominator)
    assert fisher_quantile(level, numerator, denominator) == pytest.approx(expected, rel=1e-7)
    many = numerator * fisher_quantile(level, numerator, math.inf)
    assert many == pytest.approx(stats.chi2.ppf(level, numerator), rel=1e-5)


def test_the_normal_distribution_is_the_limit():
    assert student_p(1.96, math.inf) == pytest.approx(2 * stats.norm.sf(1.96), rel=1e-12)
    assert student_quantile(0.95, math.inf) == pytest.approx(stats.norm.ppf(0.975), rel=1e-12)


def test_nothing_is_known_without_degrees_of_freedom():
    assert np.isnan(student_quantile(0.95, [0, -1, np.nan])).all()
    assert np.isnan(student_p([1, 1, np.nan], [0, np.nan, 5])).all()
    assert student_p(np.inf, 3) == 0
    assert np.isnan(fisher_quantile(0.95, 3, 0))
    with pytest.raises(InputError, match="level"):
        student_quantile(1.5, 3)
