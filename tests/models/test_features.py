"""Columns of arrays and data frames, and what a net gets from them."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import survscore as ss
from survscore.models.features import Features, Numbers

FRAME = pd.DataFrame(
    {
        "age": [20.0, 30.0, 40.0, 50.0],
        "auto": [True, False, True, True],
        "city": ["a", "b", "a", "c"],
        "method": pd.Categorical([3, 1, 3, 3]),
    }
)


def test_numbers_are_standardised_and_categories_coded():
    features = Features.learn(FRAME, missing="error")
    numbers, codes = features.encode(FRAME)
    assert (numbers.dtype, codes.dtype) == (np.float32, np.int64)
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-7)
    np.testing.assert_allclose(numbers.std(axis=0), 1, rtol=1e-6)
    np.testing.assert_array_equal(codes, [[1, 2], [2, 1], [1, 2], [3, 2]])
    assert features.n_categories == [3, 2]


@pytest.mark.parametrize("make", [pl.from_pandas, pl.DataFrame, lambda f: pl.from_pandas(f).to_arrow()])
def test_other_libraries_give_the_same(make):
    frame = FRAME.assign(method=FRAME["method"].astype(str))
    features = Features.learn(frame, missing="error")
    for got, expected in zip(features.encode(make(frame)), features.encode(frame), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_unseen_and_missing_categories_are_unknown():
    features = Features.learn(FRAME, missing="error")
    new = FRAME.assign(city=["z", None, "a", "c"])
    np.testing.assert_array_equal(features.encode(new)[1][:, 0], [0, 0, 1, 3])


def test_missing_numbers_get_an_indicator():
    X = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0]])
    features = Features.learn(X, missing="indicator")
    numbers, _ = features.encode(X)
    assert features.n_numbers == numbers.shape[1] == 3
    np.testing.assert_allclose(numbers[:, :2], [[-1, 0], [0, 1], [1, 0]])
    # where training had none, a missing number is put at the mean
    np.testing.assert_allclose(features.encode(np.array([[2.0, np.nan]]))[0], [[0, 0, 0]])


def test_missing_integers_of_a_frame_count_as_missing():
    frame = pl.DataFrame({"n": [1, None, 3]})
    with pytest.raises(ss.InputError, match=r"column 'n' holds missing values \(NaN\): 1 of 3, the first at row 1"):
        Features.learn(frame, missing="error")
    assert Features.learn(frame, missing="indicator").columns == [Numbers(2.0, 1.0, missing=True, indicator=True)]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0], [np.inf]]), r"column 0 holds infinity \(inf\): 1 of 2, the first at row 1"),
        (FRAME.assign(age=[1, 2, np.nan, 3]), "column 'age' holds missing values"),
        (pd.DataFrame({"d": [dt.datetime(2020, 1, 1)]}), "column 'd' must hold numbers, booleans, text or categories"),
        (pd.DataFrame({"a": []}), "0 rows and 1 columns"),
        (pd.DataFrame({"a": [np.nan, np.nan]}), "column 'a' holds nothing but missing values"),
        (pd.DataFrame(np.eye(2), columns=[1, "1"]), r"several columns of the same name: \['1'\]"),
        (pd.DataFrame({"a": [1, "b"]}), "column 'a' must hold numbers, booleans, text or categories, not Object"),
        (np.array([[1e300], [-1e308], [1e308]]) * 1.7, "too large"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_bad_columns_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Features.learn(X, missing="error")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (FRAME.assign(more=1), r"X has the columns \['more'\], which were not there in training"),
        (FRAME.rename(columns={"age": "Age"}), r"X lacks the columns \['age'\] and has the columns \['Age'\]"),
        (FRAME.assign(age="old"), "column 'age' held numbers in training, and now text"),
        (np.zeros((4, 4)), "X must be a data frame with the columns"),
    ],
)
def test_columns_other_than_in_training_are_refused(X, message):
    with pytest.raises(ss.InputError, match=message):
        Features.learn(FRAME, missing="error").encode(X)
