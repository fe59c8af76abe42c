# SPDX-License-Identifier: Apache-2.0
"""Types that ONNX lacks: IEEE's and XLA's of ml_dtypes, IEEE P3109's, CUDA's UE5M3.

Against ml_dtypes in test_pairs.py; here against gfloat and exact fractions.
"""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from arrays import codes, samples

import tensorcast as tc
from tensorcast import CastError, UnsupportedError

ONLY_ML_DTYPES = ["float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz"]
ONLY_CODES = ["float8_e5m3fnu", "binary8p4se", "binary8p3se"]
ALL = np.arange(256, dtype=np.uint8)
FORMATS = {  # exponent bits, mantissa bits, bias
    "float8_e4m3": (4, 3, 7),
    "float8_e3m4": (3, 4, 3),
    "float8_e4m3b11fnuz": (4, 3, 11),
    "float8_e5m3fnu": (5, 3, 15),
    "binary8p4se": (4, 3, 8),
    "binary8p3se": (5, 2, 16),
    "binary8p4sf": (4, 3, 8),
    "binary8p3sf": (5, 2, 16),
}
CANONICAL = {"binary8p4sf": "float8_e4m3fnuz", "binary8p3sf": "float8_e5m2fnuz"}


def value(name, code):
    """A fraction, or "inf", "-inf" or "nan", by the definition of the type."""
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    magnitude = code & ((1 << exponent_bits + mantissa_bits) - 1)
    sign = -1 if code > magnitude else 1
    all_ones = (1 << exponent_bits + mantissa_bits) - 1
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    if name in ("float8_e4m3", "float8_e3m4"):
        if magnitude >= infinity:
            return "nan" if magnitude > infinity else "inf" if sign > 0 else "-inf"
    elif name == "float8_e5m3fnu":
        if code == 0xFF:
            return "nan"
    elif code == 0x80:
        return "nan"
    elif name.endswith("se") and magnitude == all_ones:
        return "inf" if sign > 0 else "-inf"
    exponent, mantissa = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    significand = Fraction(mantissa, 1 << mantissa_bits) + (1 if exponent else 0)
    return sign * significand * Fraction(2) ** (max(exponent, 1) - bias)


def decoded(name, given):
    if name in ONLY_CODES:
        return tc.cast(given, "float64", from_=name, packed=True)
    return tc.cast(given.view(getattr(ml_dtypes, name)), "float64")


def encoded(x, name, **options):
    return codes(tc.cast(x, name, packed=name in ONLY_CODES, **options))


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_has_the_value_of_its_definition(name):
    canonical = CANONICAL.get(name, name)
    found = decoded(canonical, ALL)
    for code, got in enumerate(found.tolist()):
        expected = value(name, code)
        if isinstance(expected, str):
            assert str(got) == expected, hex(code)
        else:
            is_negative = code >= 0x80 and name != "float8_e5m3fnu"
            assert Fraction(got) == expected and np.signbit(got) == is_negative, hex(code)
    # Codes come back, infinities too; NaN comes back as a NaN, which may be a quiet one instead.
    back, is_nan = encoded(found, name, saturate=False), np.isnan(found)
    assert np.array_equal(back[~is_nan], ALL[~is_nan]) and np.isnan(decoded(canonical, back)[is_nan]).all()


@pytest.mark.parametrize("name", FORMATS)
def test_rounding_is_to_the_nearest_even_code(name):
    """Midpoints between neighbours and numbers beside them, computed in fractions."""
    positive = range(256 if name == "float8_e5m3fnu" else 128)
    finite = [code for code in positive if not isinstance(value(name, code), str)]
    for low, high in zip(finite, finite[1:]):
        middle = (value(name, low) + value(name, high)) / 2
        points = np.float64([middle, np.nextafter(float(middle), 0), np.nextafter(float(middle), np.inf)])
        even = low if low % 2 == 0 else high
        assert encoded(points, name).tolist() == [even, low, high], low
    last = finite[-1]
    step = value(name, last) - value(name, last - 1)
    beyond = np.float64([value(name, last) + step / 2, value(name, last) + step, np.inf])
    below = np.nextafter(beyond[0], 0)
    assert encoded(np.append(beyond, below), name).tolist() == [last] * 4
    overflow = encoded(np.append(beyond, below), name, saturate=False).tolist()
    ends = last if last % 2 == 0 else overflow[1]
    assert overflow[0] == ends and overflow[3] == last and overflow[1] == overflow[2] != last


@pytest.mark.parametrize(("name", "precision", "domain"), [
    ("binary8p4se", 4, "Extended"), ("binary8p3se", 3, "Extended"),
    ("binary8p4sf", 4, "Finite"), ("binary8p3sf", 3, "Finite"),
])  # fmt: skip
def test_p3109_as_gfloat_has_it(name, precision, domain):
    gfloat = pytest.importorskip("gfloat")
    theirs = pytest.importorskip("gfloat.formats").format_info_p3109(8, precision, domain=gfloat.Domain[domain])
    canonical = CANONICAL.get(name, name)
    assert np.array_equal(decoded(canonical, ALL), gfloat.decode_ndarray(theirs, ALL), equal_nan=True)
    for source in ("float16", "bfloat16"):
        x = samples(source)
        wide = x.astype(np.float64)
        with np.errstate(all="ignore"):
            rounded = gfloat.round_ndarray(theirs, wide, gfloat.RoundMode.TiesToEven)
            if domain == "Finite":  # what has no code is NaN here
                rounded = np.where(np.isinf(wide), np.nan, rounded)
            clamped = gfloat.round_ndarray(theirs, wide[np.isfinite(wide)], gfloat.RoundMode.TiesToEven, sat=True)
        if domain == "Extended":
            assert np.array_equal(encoded(x, name, saturate=False), gfloat.encode_ndarray(theirs, rounded))
        assert np.array_equal(encoded(x[np.isfinite(wide)], name), gfloat.encode_ndarray(theirs, clamped))


def test_ue5m3_leaves_out_the_sign():
    x = np.float64([-0.0, -(2.0**-18), -(2.0**-17), -1, -1e9, -np.inf, -np.nan, 3])
    assert encoded(x, "float8_e5m3fnu").tolist() == [0, 0, 1, 0x78, 0xFE, 0xFE, 0xFF, 0x84]
    assert encoded(x, "float8_e5m3fnu", saturate=False).tolist() == [0, 0, 1, 0x78, 0xFF, 0xFF, 0xFF, 0x84]
    clamped = encoded(x, "float8_e5m3fnu", saturate=False, out_of_range="saturate")
    assert clamped.tolist() == [0, 0, 1, 0x78, 0xFE, 0xFF, 0xFF, 0x84]
    for options in ({"out_of_range": "error"}, {"invalid": "error"}):
        with pytest.raises(CastError) as caught:
            tc.cast(np.float32([1, -0.0, -1]), "float8_e5m3fnu", packed=True, **options)
        assert caught.value.index == 2


@pytest.mark.parametrize("name", [*ONLY_ML_DTYPES, *ONLY_CODES])
@pytest.mark.parametrize("opset", [1, 18, 23, 28])
def test_no_opset_limits_or_changes_them(name, opset):
    x = np.float32([0.1, -3, 1e9, np.inf, -np.inf, np.nan])
    assert np.array_equal(encoded(x, name, opset=opset), encoded(x, name))


def test_arrays_are_ml_dtypes_or_codes():
    for name in ONLY_ML_DTYPES:
        assert tc.cast(np.float32([1]), name).dtype == getattr(ml_dtypes, name)
        assert tc.cast(np.float32([1]), getattr(ml_dtypes, name)).dtype == getattr(ml_dtypes, name)
    for name in ONLY_CODES:
        made = tc.cast(np.float32([[1, 2]]), name, packed=True)
        assert made.dtype == np.uint8 and made.shape == (1, 2)
        assert tc.cast(made, "float32", from_=name, packed=True).tolist() == [[1, 2]]
        scaled = tc.cast(np.float32([[1, 2]]), name, packed=True, scale=np.float32([2, 0.5]))
        assert tc.cast(scaled, "float32", from_=name, packed=True).tolist() == [[2, 1]]
        assert tc.cast(scaled, str, from_=name, packed=True).tolist() == [["2.0", "1.0"]]
        assert np.array_equal(tc.cast(np.array(["1", "2"]), name, packed=True), made[0])
        with pytest.raises(TypeError, match=f"have no {name}; pass packed=True"):
            tc.cast(np.float32([1]), name)
    with pytest.raises(CastError, match="from_= names the type"):
        tc.cast(ALL, "float32", from_="float8_e4m3", packed=True)


def test_facts():
    rows = {row.name: row for row in tc.dtypes()}
    assert [row.number for row in rows.values() if not row.onnx] == [1002, 1003, 1004, 1005, 1006, 1007]
    assert all(row.since_opset == 0 for row in rows.values() if not row.onnx)
    assert rows["float8_e4m3fn"].number == rows["float8_e4m3fn"].onnx == 17
    assert [row.dtype for row in tc.explain(1, to="float8_e4m3")] == ["float8_e4m3"]


@pytest.mark.parametrize("name", ["int1", "uint1", "complex32"])
def test_types_of_ml_dtypes_that_no_cast_has(name):
    reason = "uint1 can be promoted but not cast" if name == "uint1" else "one bit" if name == "int1" else "two numbers"
    with pytest.raises((TypeError, CastError), match=reason):
        tc.cast(np.float32([1]), name)
    if not hasattr(ml_dtypes, name):
        return
    dtype = np.dtype(getattr(ml_dtypes, name))
    with pytest.raises((TypeError, UnsupportedError), match=reason):
        tc.cast(np.float32([1]), dtype)
    with pytest.raises((TypeError, UnsupportedError), match=reason):
        tc.cast(np.zeros(2, dtype), "float32")


@pytest.mark.parametrize("name", [*ONLY_ML_DTYPES, *ONLY_CODES])
def test_files(tmp_path, name):
    np.save(tmp_path / "x.npy", np.float32([1, 0.5]))
    for output in ("x8.npy", "x.npz"):
        tc.convert(tmp_path / "x.npy", tmp_path / output, name)
    tc.convert(tmp_path / "x.npz", tmp_path / "back.npy", "float32")
    assert np.load(tmp_path / "back.npy").tolist() == [1, 0.5]
    for output in ("x.safetensors", "x.gguf", "x.pb"):
        with pytest.raises(CastError, match=f"cannot hold {name}; .*npy"):
            tc.convert(tmp_path / "x.npy", tmp_path / output, name)


def test_nodes_and_models_refuse_them():
    with pytest.raises(UnsupportedError, match="float8_e4m3 is not a type of ONNX, so no node has it"):
        tc.CastNode("float8_e4m3")
