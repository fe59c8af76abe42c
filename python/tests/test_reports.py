# SPDX-License-Identifier: Apache-2.0
"""What a conversion says about itself, and what it says when it refuses."""

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError


def test_report_counts_what_happened():
    array = np.float32([1, 1e6, 1e-9, np.nan, np.inf, 0.3])
    result, report = tc.cast(array, "float8_e4m3fn", report=True)
    assert np.array_equal(result.view(np.uint8), tc.cast(array, "float8_e4m3fn").view(np.uint8))
    assert (report.count, report.saturated, report.underflowed_to_zero, report.overflowed) == (6, 2, 1, 0)
    assert report.inexact >= 3 and report.nan_made == report.nan_lost == report.wrapped == 0
    _, wrapped = tc.cast(np.float32([300, np.nan]), "uint8", report=True)
    assert wrapped.wrapped == 1 and wrapped.nan_lost == 1
    _, exact = tc.cast(np.float32([1, 2]), "float64", report=True)
    assert exact.snr_db == float("inf") and exact.max_abs_error == 0


def test_reports_of_strided_arrays_and_merging():
    array = np.random.default_rng(3).normal(size=(300, 200)).astype(np.float32)
    _, whole = tc.cast(array, "float16", report=True)
    _, strided = tc.cast(array.T, "float16", report=True)
    assert (strided.count, strided.inexact) == (whole.count, whole.inexact)
    _, upper = tc.cast(array[:100], "float16", report=True)
    _, lower = tc.cast(array[100:], "float16", report=True)
    upper.merge(lower)
    assert (upper.count, upper.inexact, upper.max_rel_error) == (whole.count, whole.inexact, whole.max_rel_error)
    assert upper.snr_db == pytest.approx(whole.snr_db)


def test_reports_read_well():
    _, report = tc.cast(np.float32([0.1, 1e9]), "float8_e4m3fn", report=True)
    text = repr(report)
    assert "elements" in text and "saturated" in text and "1 (50.000%)" in text and "dB" in text
    assert report._repr_html_().startswith("<table>")
    assert "exact" in repr(tc.cast(np.float32([]), "float16", report=True)[1])
    _, wraps = tc.cast(np.float32([255]), "int8", report=True)  # to -1: the error is just larger than the number
    assert -0.05 < wraps.snr_db < 0 and " 0.0 dB" in repr(wraps)


def test_plot_report():
    source = np.random.default_rng(2).normal(size=1000).astype(np.float32)
    result, report = tc.cast(source, "float8_e4m3fn", report=True)
    figure = tc.plot_report(report)
    assert len(figure.axes) == 2 and "dB" in figure.get_suptitle()
    assert figure.axes[1].get_title() == f"{np.unique(result.view(np.uint8)).size} codes in use"
    assert f"{report.inexact:,} changed" in figure.axes[0].get_title()
    assert tc.plot_report(report, source, result).axes[0].get_title() == figure.axes[0].get_title()
    tc.plot_report(report, source, tc.cast(source, "int4"))
    tc.plot_report(report, np.float32([]), np.float16([]))


def test_plot_report_measures_against_the_scaled_source():
    source = np.float32([1, 2, 3])
    halves, report = tc.cast(source, "float16", scale=0.5, report=True)
    assert tc.plot_report(report).axes[0].get_title() == "3 exact, 0 changed"
    assert tc.plot_report(report, source, halves).axes[0].get_title() == "0 exact, 3 changed"


def test_a_report_keeps_no_arrays():
    _, report = tc.cast(np.zeros(1000, np.float32), "float16", report=True)
    with pytest.raises(ValueError, match="are gone.*pass them"):
        tc.plot_report(report)
    with pytest.raises(ValueError, match="pass them"):
        tc.plot_report(tc.CastReport())
    with pytest.raises(ValueError, match="both"):
        tc.plot_report(report, np.float32([1]))
    with pytest.raises(ValueError, match="2 elements, but result 1"):
        tc.plot_report(report, np.float32([1, 2]), np.float16([1]))


@pytest.mark.parametrize(
    "array, to, options, code, index",
    [
        (np.float32([1, 300]), "uint8", {"out_of_range": "error"}, "out_of_range", 1),
        (np.float32([[1, 2], [3, np.nan]]), "int32", {"invalid": "error"}, "out_of_range", 3),
        (np.zeros(100_000, np.float32), "int4", {"opset": 13}, "unsupported", None),
        (np.float32([1]), "float16", {"opset": 99}, "invalid_argument", None),
        (np.float32([1]), "float16", {"scale": float("inf")}, "invalid_argument", None),
    ],
)
def test_errors_say_where_and_what(array, to, options, code, index):
    with pytest.raises(CastError) as caught:
        tc.cast(array, to, **options)
    assert (caught.value.code, caught.value.index, caught.value.tensor) == (code, index, None)
    assert isinstance(caught.value, ValueError) and str(caught.value)


@pytest.mark.parametrize("order", ["C", "K"])
def test_an_index_counts_in_the_order_of_the_argument(order):
    array = np.zeros((300, 400), np.float32).T
    array[7, 5] = 1e6
    with pytest.raises(CastError, match=f"element {7 * 300 + 5}:") as caught:
        tc.cast(array, "int8", out_of_range="error", order=order)
    assert caught.value.index == 7 * 300 + 5


def test_an_index_beyond_the_first_piece():
    array = np.zeros((1 << 24) + 9, np.uint8)
    array[-2] = 200
    with pytest.raises(CastError) as caught:
        tc.cast(array.view(ml_dtypes.float8_e4m3fn), "int2", out_of_range="error")
    assert caught.value.index == (1 << 24) + 7


BAD_DTYPES = [
    ("flaot32", CastError, "did you mean float32"),
    ("", CastError, "dtype"),
    ("\ud800", CastError, "half of a surrogate pair"),
    ("complex64", CastError, "two numbers"),
    (np.complex64, TypeError, "complex64"),
    (object, TypeError, "object|'O'"),
    (np.dtype("M8[s]"), TypeError, "M8"),
    (True, TypeError, "a dtype is"),
    (1.0, TypeError, "a dtype is"),
    (None, TypeError, "a dtype is"),
    ([], TypeError, "a dtype is"),
    (99, TypeError, "ONNX"),
    (0, TypeError, "ONNX"),
    (-1, TypeError, "ONNX"),
    (1 << 70, TypeError, "ONNX"),
    (np.dtype([("a", "f4")]), TypeError, "a"),
]


@pytest.mark.parametrize("dtype, kind, words", BAD_DTYPES, ids=[repr(row[0]) for row in BAD_DTYPES])
def test_bad_dtypes(dtype, kind, words):
    for x in (np.float32([1]), np.array(["1"]), np.ma.masked_array([1.0])):
        with pytest.raises(kind, match=words):
            tc.cast(x, dtype)


BAD_INPUT = [
    ([1, 2], "numpy.array"),
    ([[1], [2, 3]], "different lengths"),
    ((1.0,), "numpy.array"),
    (3, r"numpy.float32\(3\)"),
    ("1.5", "cannot cast an object of type str"),
    (None, "cannot cast an object of type NoneType"),
    (object(), "cannot cast an object of type object"),
    (np.ma.masked_array([1.0], [True]), "filled"),
    (np.float32([1]).view(np.recarray), "numpy.asarray"),
    (np.array([1j]), "complex128"),
    (np.array(["2020"], "M8[Y]"), "M8"),
    (np.zeros(2, [("a", "f4")]), "'a'"),
    (np.longdouble([1]), "longdouble|float128"),
]


@pytest.mark.parametrize("x, advice", BAD_INPUT, ids=[type(row[0]).__name__ + row[1] for row in BAD_INPUT])
def test_bad_input(x, advice):
    with pytest.raises(TypeError, match=advice):
        tc.cast(x, "float32")


@pytest.mark.parametrize(
    "options, kind, words",
    [
        ({"saturat": True}, TypeError, "saturat"),
        ({"out_of_range": "clip"}, ValueError, "'auto', 'wrap', 'saturate', 'error'"),
        ({"round_mode": 1}, ValueError, "'up', 'down', 'nearest'"),
        ({"threads": -1}, ValueError, "threads"),
        ({"opset": "25"}, ValueError, "opset"),
        ({"scale": "2"}, TypeError, "real number"),
        ({"order": "F"}, ValueError, "order"),
    ],
)
def test_bad_options(options, kind, words):
    for x in (np.float32([1]), np.float32([[1, 2]]).T.astype(">f4")):
        with pytest.raises(kind, match=words):
            tc.cast(x, "float16", **options)


def test_arrays_too_large():
    huge = np.broadcast_to(np.float32(1), (1 << 31, 1 << 29))
    for to in ("float64", "int4", "uint8"):
        with pytest.raises(CastError, match=f"{to} of shape .* bytes, .* slice by slice, or pass a numpy.memmap"):
            tc.cast(huge, to)
    with pytest.raises(CastError, match="slice by slice"):
        tc.cast(np.broadcast_to(np.array("1"), huge.shape), "float32")


def test_wrong_arguments():
    with pytest.raises(TypeError):
        tc.cast(np.float32([1]))
    with pytest.raises(TypeError):
        tc.cast(np.float32([1]), "float16", None)
