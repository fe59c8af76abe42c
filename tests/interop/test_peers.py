# SPDX-License-Identifier: Apache-2.0
"""The engine against NumPy and ml_dtypes: every code of the types of 16 bits or fewer, and boundary float32s, to every
type. Where docs/semantics.md, section 2, says that these peers differ from ONNX, the difference is named below and
excepted; everywhere else the codes must be equal."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

NUMPY_TYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
               "uint8", "bool"]
ML_TYPES = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
            "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "int2", "uint4", "uint2"]
ALL_TYPES = NUMPY_TYPES + ML_TYPES
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
SMALL_TYPES = ["float16", "int16", "int8", "uint16", "uint8", "bool"] + ML_TYPES
FLOAT8_TYPES = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
NEAREST = 2

# Converting a signalling NaN warns.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, ctypes.c_int32)
        for name in ("opset", "saturate", "round_mode", "out_of_range", "rounding", "invalid", "fnuz_inf",
                     "float_string", "threads")
    ] + [("scale", ctypes.c_double)]


@pytest.fixture(scope="module")
def library(tensorcast_library):
    loaded = ctypes.CDLL(str(tensorcast_library))
    loaded.tc_last_error.restype = ctypes.c_char_p
    loaded.tc_storage_bytes.restype = ctypes.c_size_t
    loaded.tc_storage_bytes.argtypes = [ctypes.c_int32, ctypes.c_size_t]
    loaded.tc_cast.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t,
                               ctypes.POINTER(Options)]
    return loaded


def bits_of(name):
    return BITS.get(name) or 8 * np.dtype(name).itemsize


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name in ML_TYPES else name)


def codes_of(array, name):
    codes = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return codes & codes.dtype.type((1 << bits_of(name)) - 1) if name in BITS else codes


def packed(codes, name):
    """Dense storage, low bits first."""
    if name not in BITS:
        return np.ascontiguousarray(codes).view(np.uint8)
    bits = np.unpackbits(codes.astype(np.uint8)[:, None], axis=1, bitorder="little")[:, : BITS[name]]
    return np.packbits(bits.reshape(-1), bitorder="little")


def unpacked(storage, name, count):
    if name not in BITS:
        return storage.view(f"u{dtype_of(name).itemsize}")[:count]
    bits = np.unpackbits(storage, bitorder="little")[: count * BITS[name]].reshape(count, BITS[name])
    return np.packbits(bits, axis=1, bitorder="little")[:, 0]


def convert(library, array, source, target, **choices):
    """The target's codes, by tc_cast."""
    options = Options()
    library.tc_cast_options_init(ctypes.byref(options))
    for name, value in choices.items():
        setattr(options, name, value)
    number = {name: library.tc_dtype_parse(name.encode()) for name in (source, target)}
    storage = packed(codes_of(array, source), source)
    result = np.zeros(library.tc_storage_bytes(number[target], len(array)), np.uint8)
    status = library.tc_cast(storage.ctypes.data, number[source], result.ctypes.data, number[target], len(array),
                             ctypes.byref(options))
    assert status == 0, library.tc_last_error().decode()
    return unpacked(result, target, len(array))


def all_elements(name):
    """Every code of a type of 16 bits or fewer."""
    if name == "bool":
        return np.array([False, True])
    count = 1 << bits_of(name)
    return np.arange(count, dtype=np.uint64).astype(f"u{dtype_of(name).itemsize}").view(dtype_of(name))


def boundary_float32():
    """Midpoints of every small float with two neighbours on both sides, integers and halves, specials, random codes."""
    random = np.random.default_rng(3)
    centers = [np.arange(-1200, 1201) / 2.0, 2.0 ** np.arange(-149, 128)]
    centers += [sign * 2.0**power + np.arange(-6, 7) / 4 for power in (15, 16, 23, 31, 32, 63, 64) for sign in (1, -1)]
    for name in [name for name in SMALL_TYPES if "float" in name]:
        values = all_elements(name).astype(np.float64)
        values = np.sort(values[np.isfinite(values)])
        middles = (values[1:] + values[:-1]) / 2
        step = 1 if bits_of(name) <= 8 else 13
        centers += [values[::step], middles[::step], middles[-3:], values[-1:] + (values[-1] - values[-2]) / 2]
    with np.errstate(over="ignore"):
        codes = np.concatenate(centers).astype(np.float32).view(np.uint32)
    near = [codes + np.uint32(step) for step in (0, 1, 2)] + [codes - np.uint32(step) for step in (1, 2)]
    special = np.array([0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7F7FFFFF], np.uint32)
    near += [special, special | 0x80000000, random.integers(0, 1 << 32, 100000, dtype=np.uint32)]
    return np.unique(np.concatenate(near)).view(np.float32)


def options_for(target):
    """The options under which ONNX asks for what the peers do."""
    if target in FLOAT8_TYPES:
        return {"saturate": 0}  # beyond the range they give NaN or infinity
    return {"round_mode": NEAREST} if target == "float8_e8m0fnu" else {}


def comparable(values, source, target):
    """False where section 2 of docs/semantics.md lists a difference. `values` are the elements as float64."""
    finite = np.isfinite(values)
    if target == "bool":
        return np.ones(len(values), bool)
    if "int" in target and "float" in source:
        # Beyond the range C leaves the result open; ml_dtypes' int4 and int2 wrap as ONNX does.
        if target in BITS:
            return finite & (np.abs(values) < 2.0**31)
        low, high = np.iinfo(target).min, np.iinfo(target).max
        whole = np.trunc(np.where(finite, values, 0))
        return finite & (whole >= low) & (whole < float(high) + (1 if high < 2**53 else 0))
    if target in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
        return ~np.isnan(values)  # NaN to types without it: ONNX gives -0, ml_dtypes a zero of either sign
    if target == "float8_e8m0fnu":
        # Clamping: zero, negatives, infinity, subnormals and what rounds beyond the largest are ONNX's own.
        return np.isnan(values) | (finite & (values >= 2.0**-126) & (values <= 2.0**127))
    return np.ones(len(values), bool)


def is_nan(codes, name):
    values = codes.astype(f"u{dtype_of(name).itemsize}").view(dtype_of(name))
    return np.isnan(values.astype(np.float32)) if "float" in name else np.zeros(len(codes), bool)


def cast_by_peer(array, source, target):
    if source in ML_TYPES and target in ML_TYPES:  # some of these pairs ml_dtypes has only by way of a third type
        array = array.astype(np.float32 if "float" in source + target else np.int32)
    return codes_of(array.astype(dtype_of(target)), target)


def assert_agreement(library, array, source, target):
    with np.errstate(all="ignore"):
        expected = cast_by_peer(array, source, target)
        values = array.astype(np.float64)
    actual = convert(library, array, source, target, **options_for(target))
    # Payloads and signs of NaN differ from peer to peer; that it is a NaN does not.
    same = (actual == expected) | (is_nan(actual, target) & is_nan(expected, target))
    wrong = np.flatnonzero(~same & comparable(values, source, target))
    assert len(wrong) == 0, "; ".join(
        f"{source} {codes_of(array, source)[i]:#x} ({values[i]!r}) to {target}: {actual[i]:#x}, not {expected[i]:#x}"
        for i in wrong[:5]) + f" ({len(wrong)} in all)"


@pytest.mark.parametrize("target", ALL_TYPES)
@pytest.mark.parametrize("source", SMALL_TYPES)
def test_every_code_of_the_small_types(library, source, target):
    if source != target:
        assert_agreement(library, all_elements(source), source, target)


@pytest.mark.parametrize("target", [name for name in ALL_TYPES if name != "float32"])
def test_boundary_float32(library, target):
    assert_agreement(library, boundary_float32(), "float32", target)


# From float64 ml_dtypes rounds twice, by way of float32; where float32 holds the element nothing is rounded twice.
@pytest.mark.parametrize("target", [name for name in ALL_TYPES if name != "float64"])
def test_float64_that_float32_holds(library, target):
    assert_agreement(library, boundary_float32().astype(np.float64), "float64", target)


@pytest.mark.parametrize("target", ["float32", "float16", "int64", "int32", "int16", "uint16"])
def test_float64_and_numpys_own_types(library, target):
    random = np.random.default_rng(5)
    exponents = random.integers(-160, 160, 100000)
    array = np.ldexp(random.uniform(-1, 1, 100000), exponents)
    assert_agreement(library, array, "float64", target)


@pytest.mark.parametrize("target", ALL_TYPES)
@pytest.mark.parametrize("source", ["int64", "int32", "uint64", "uint32"])
def test_integers(library, source, target):
    if source == target:
        return
    random = np.random.default_rng(7)
    exact_in_float32 = target in ML_TYPES and "float" in target  # as above
    limits = np.iinfo(source)
    array = np.concatenate([
        random.integers(max(limits.min, -(2**24)), 2**24, 50000).astype(source),
        np.array([0, 1, limits.max, limits.min], source) if not exact_in_float32 else np.array([0, 1], source),
        random.integers(limits.min, limits.max, 0 if exact_in_float32 else 50000, dtype=source),
    ])
    assert_agreement(library, array, source, target)
