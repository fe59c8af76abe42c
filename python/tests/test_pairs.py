# SPDX-License-Identifier: Apache-2.0
"""Every pair of types that NumPy arrays can have, against the C interface of the library that the module is made of."""

import ml_dtypes
import numpy as np
import pytest
from arrays import BITS, NUMPY_TYPES, codes, numpy_type, packed, samples

import tensorcast as tc
from tensorcast import _core

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # NumPy's, for signaling NaNs


def test_numpy_and_ml_dtypes_hold_all_types_but_text_and_three():
    lacking = ["float8_e5m3fnu", "binary8p4se", "binary8p3se"]
    assert NUMPY_TYPES == [row.name for row in tc.dtypes() if row.name not in ("string", *lacking)]


@pytest.mark.parametrize("to", NUMPY_TYPES)
@pytest.mark.parametrize("source", NUMPY_TYPES)
def test_arrays_equal_packed_storage(source, to):
    array = samples(source)
    result = tc.cast(array, to)
    assert type(result) is np.ndarray
    assert result.dtype == numpy_type(to) and result.shape == array.shape and result.flags.c_contiguous
    storage = np.empty((array.size * BITS[to] + 7) // 8, np.uint8)
    _core.cast_packed(
        packed(array).view(numpy_type(source) if BITS[source] >= 8 else np.uint8),
        source,
        storage,
        to,
        array.size,
        False,
        {},
    )
    assert np.array_equal(packed(result), storage)


@pytest.mark.parametrize(
    "to",
    [
        "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
        "float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz",
    ],
)
@pytest.mark.parametrize(
    "source",
    [
        "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e3m4",
        "float8_e4m3b11fnuz", "int8", "int4", "uint2",
    ],
)  # fmt: skip
def test_floats_equal_ml_dtypes(source, to):
    """ml_dtypes rounds once where float32 holds the source, and does not saturate."""
    array = samples(source)
    with np.errstate(all="ignore"):
        expected = array.astype(numpy_type(to))
    result = tc.cast(array, to, saturate=False)
    is_nan = np.isnan(expected.astype(np.float64))
    assert np.array_equal(np.isnan(result.astype(np.float64)), is_nan)
    assert np.array_equal(codes(result)[~is_nan], codes(expected)[~is_nan])


@pytest.mark.parametrize("source", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("to", ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"])
def test_integers_equal_numpy_in_range(source, to):
    info = np.iinfo(to)
    array = samples(source)
    wide = array.astype(np.float64)
    array = array[(wide > max(float(info.min), -(2.0**62))) & (wide < min(float(info.max), 2.0**62))]
    assert array.size > 100
    assert np.array_equal(tc.cast(array, to), array.astype(np.float64).astype(to))


def test_options_have_their_meaning():
    assert np.isnan(tc.cast(np.float32([1e6]), "float8_e4m3fn", saturate=False).astype(np.float32)[0])
    assert tc.cast(np.float32([300, -1]), "uint8", out_of_range="saturate").tolist() == [255, 0]
    assert tc.cast(np.array([300, -300]), "int8", out_of_range="saturate").tolist() == [127, -128]
    assert tc.cast(np.int64([-5]), "uint64", out_of_range="saturate").tolist() == [0]
    assert tc.cast(np.float32([1e6, -np.inf]), "float16", out_of_range="saturate").tolist() == [65504, -np.inf]
    for x, to in [(np.array([1, -300]), "int8"), (np.float32([1, 1e6]), "float16"), (np.float32([1, np.inf]), "float8_e4m3fn")]:
        with pytest.raises(tc.OutOfRangeError) as caught:
            tc.cast(x, to, out_of_range="error")
        assert caught.value.index == 1
    strided = np.arange(-4, 4)[::2]
    assert tc.cast(strided, "uint8", out_of_range="saturate").tolist() == [0, 0, 0, 2]
    assert tc.cast(np.float32([2.5, 3.5]), "int8", rounding="nearest_even").tolist() == [2, 4]
    assert codes(tc.cast(np.float32([3.0]), "float8_e8m0fnu", round_mode="down"))[0] == 128
    assert codes(tc.cast(np.float32([3.0]), "float8_e8m0fnu"))[0] == 129
    assert tc.cast(np.float32([0.5]), "float16", scale=4).tolist() == [2.0]
    assert codes(tc.cast(np.float32([np.inf]), "float8_e5m2fnuz", opset=19))[0] == 0x80
    assert codes(tc.cast(np.float32([np.inf]), "float8_e5m2fnuz", opset=19, fnuz_inf="flt_max"))[0] == 0x7F
    assert tc.cast(np.float64([1e-7]), str, float_string="shortest").tolist() == ["1e-07"]


@pytest.mark.parametrize(
    "spelling",
    ["bfloat16", "BF16", "tensor(bfloat16)", "torch.bfloat16", 16, ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)],
)
def test_a_type_has_many_spellings(spelling):
    assert tc.cast(np.float32([1]), spelling).dtype == ml_dtypes.bfloat16


def test_types_of_python_and_classes_of_numpy():
    assert tc.cast(np.int8([1]), float).dtype == np.float64
    assert tc.cast(np.int8([1]), bool).dtype == np.bool_
    assert tc.cast(np.int8([1]), np.dtypes.Float16DType).dtype == np.float16
    assert tc.cast(np.int8([1]), np.dtype(">f4")).dtype == np.dtype(">f4")
