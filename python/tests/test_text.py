# SPDX-License-Identifier: Apache-2.0
"""Strings as NumPy has them: U, S, StringDType and objects."""

import numpy as np
import pytest
from arrays import NUMPY_TYPES, codes, samples

import tensorcast as tc
from tensorcast import CastError

WORDS = ["1.5", "-2", " 3e2 ", "inf", "-0.0"]
NUMBERS = [1.5, -2.0, 300.0, np.inf, -0.0]


@pytest.mark.parametrize(
    "array",
    [
        np.array(WORDS),
        np.array(WORDS, np.dtypes.StringDType()),
        np.array(WORDS, object),
        np.array(WORDS, "S"),
        np.array([WORDS, WORDS])[0],
        np.repeat(WORDS, 2)[::2],
        np.array(WORDS).astype(">U9"),
    ],
    ids=["U", "StringDType", "object", "S", "row", "strided", "big-endian"],
)
def test_text_to_numbers(array):
    result = tc.cast(array, "float32")
    assert result.dtype == np.float32 and np.array_equal(codes(result), codes(np.float32(NUMBERS)))


def test_shapes_of_text():
    assert tc.cast(np.array("2.5"), "float16").tolist() == 2.5
    assert tc.cast(np.array("3"), "int4").shape == ()
    assert tc.cast(np.empty((0, 2), "U3"), "float16").shape == (0, 2)
    assert tc.cast(np.array([["1"], ["2"]]), "int4").shape == (2, 1)
    assert tc.cast(np.float32(2.5), str).tolist() == "2.5"
    assert tc.cast(np.empty((2, 0), np.float32), str).shape == (2, 0)
    assert tc.cast(np.float32([[1], [2]]).T, "string").tolist() == [["1.0", "2.0"]]


@pytest.mark.parametrize(
    "target, expected",
    [
        ("string", np.dtype(object)),
        (8, np.dtype(object)),
        (str, np.dtype("U3")),
        (np.str_, np.dtype("U3")),
        (np.dtype("U7"), np.dtype("U7")),
        (np.dtypes.StringDType, np.dtypes.StringDType()),
        (np.dtypes.StringDType(), np.dtypes.StringDType()),
    ],
)
def test_kinds_of_text(target, expected):
    result = tc.cast(np.float16([1.5, 2]), target)
    assert result.dtype == expected and result.tolist() == ["1.5", "2.0"]
    assert tc.cast(np.array(["1.5", "2.0"], object), target).tolist() == ["1.5", "2.0"]


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_text_there_and_back(name):
    array = samples(name)[:3000]
    texts = tc.cast(array, str)
    back = tc.cast(texts, name, saturate=False, round_mode="nearest")
    is_nan = texts == "NaN"
    assert np.array_equal(codes(back)[~is_nan], codes(array)[~is_nan])
    assert np.array_equal(tc.cast(back, str)[is_nan], texts[is_nan])


def test_text_that_does_not_fit_is_refused():
    with pytest.raises(CastError, match="does not fit") as caught:
        tc.cast(np.float32([1, 123.25]), np.dtype("U3"))
    assert caught.value.index == 1
    with pytest.raises(CastError, match="does not fit"):
        tc.cast(np.array(["abc"]), np.dtype("U2"))


@pytest.mark.parametrize(
    "array, index",
    [
        (np.array(["1", "2", "x"]), 2),
        (np.array([["1", "2"], ["", "4"]]), 2),
        (np.array(["1", "\ud800"], object), 1),
        (np.array([b"1", b"\xff"]), 1),
        (np.array(["1", 2], object), 1),
        (np.array([None], object), 0),
    ],
)
def test_text_that_is_no_number_is_named(array, index):
    with pytest.raises(CastError, match=f"element {index}") as caught:
        tc.cast(array, "float32")
    assert caught.value.index == index and caught.value.code == "parse"


def test_text_has_no_report_and_no_out():
    with pytest.raises(ValueError, match="report="):
        tc.cast(np.array(["1"]), "float32", report=True)
    with pytest.raises(ValueError, match="out="):
        tc.cast(np.array(["1"]), "float32", out=np.empty(1, np.float32))
    with pytest.raises(CastError, match="scale"):
        tc.cast(np.float32([1]), str, scale=2)
