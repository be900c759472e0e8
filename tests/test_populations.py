"""Who is counted when, against sums written out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import survscore as ss

RNG = np.random.default_rng(0)
N = 60
END = RNG.uniform(1, 9, N)
TIME = np.minimum(RNG.exponential(5, N), END)
Y = ss.Outcomes(TIME, TIME < END, END)
TIMES = [1.0, 4.0, 8.0, 20.0]
CURVES = ss.SurvivalCurves(np.sort(RNG.random((N, 3)))[:, ::-1], [2, 5, 8])
AGE, SEX = RNG.normal(50, 10, N), RNG.choice(["f", "m"], N)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_means_of_those_counted(frame):
    age = AGE.copy()
    age[3] = np.nan
    table = ss.counted_population(Y, {"net": CURVES}, X=frame({"age": age, "sex": SEX}), times=TIMES, horizon=5)
    for j, t in enumerate(TIMES[:3]):
        rows = END >= t
        assert table["n_counted"][j] == rows.sum()
        assert table["share"][j] == rows.mean()
        assert table["risk by 5: net"][j] == pytest.approx(1 - CURVES.probabilities[rows, 1].mean())
        assert table["age"][j] == pytest.approx(np.nanmean(age[rows]))
        assert table["sex = f"][j] == pytest.approx((SEX[rows] == "f").mean())
    assert table["n_counted"][3] == 0
    assert np.isnan(table["age"][3])


def test_defaults_and_bad_input():
    table = ss.counted_population(Y, {"net": CURVES})
    assert table["time"].tolist() == [2, 5]  # those predicted, as far as enough are followed

    with pytest.raises(ss.InputError, match="needs outcomes with censoring_time"):
        ss.counted_population(ss.Outcomes(TIME, TIME < END))
    with pytest.raises(ss.InputError, match="horizon must be within the predictions of 'net', which end at 8, not 9"):
        ss.counted_population(Y, {"net": CURVES}, horizon=9)
    with pytest.raises(ss.InputError, match="column 'id' has 60 different values, more than 20"):
        ss.counted_population(Y, X={"id": [f"p{k}" for k in range(N)]})
    with pytest.raises(ss.InputError, match="X"):
        ss.counted_population(Y, X=np.zeros((3, 2)))
