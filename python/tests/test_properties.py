# SPDX-License-Identifier: Apache-2.0
"""What holds for every array, whatever its numbers: found or refuted by hypothesis.

The same examples each time; TENSORCAST_THOROUGH=1 takes many more, and new ones each time.
"""

import os

import numpy as np
import pytest
from arrays import BITS, NUMPY_TYPES, SUB_BYTE, codes, numpy_type, packed
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcast as tc

THOROUGH = os.environ.get("TENSORCAST_THOROUGH") == "1"
settings.register_profile(
    "tensorcast",
    derandomize=not THOROUGH,
    max_examples=1000 if THOROUGH else 120,
    deadline=None,
    database=None,
    print_blob=True,
)
settings.load_profile("tensorcast")
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")

FLOATS = [name for name in NUMPY_TYPES if "float" in name]
INTEGERS = [name for name in NUMPY_TYPES if "int" in name]
SIGNED_FLOATS = [name for name in FLOATS if not name.endswith("fnuz") and name != "float8_e8m0fnu"]
FACTS = {row.name: row for row in tc.dtypes()}

types = st.sampled_from(NUMPY_TYPES)
floats = st.sampled_from(FLOATS)
integers = st.sampled_from(INTEGERS)


def array(codes_list, name):
    if name == "bool":
        return np.array([code & 1 for code in codes_list], bool)
    width = numpy_type(name).itemsize
    mask = (1 << BITS[name]) - 1
    return np.array([code & mask for code in codes_list], f"u{width}").view(numpy_type(name))


@st.composite
def arrays_of(draw, names, min_size=1, max_size=40):
    """Codes of any kind: hypothesis likes zeros and small integers, so their bits are also spread over the width."""
    name = draw(names)
    bits = BITS[name]
    spread = st.builds(
        lambda high, low: (high << (bits // 2)) ^ low, st.integers(0, (1 << bits) - 1), st.integers(0, 3)
    )
    some = st.one_of(st.integers(0, (1 << bits) - 1), spread)
    return array(draw(st.lists(some, min_size=min_size, max_size=max_size)), name)


def wide(x):
    """Exact values; long double holds int64, uint64 and float64."""
    if x.dtype.kind in "iub":
        return x.astype(np.longdouble)
    return x.astype(np.float64 if x.dtype != np.float64 else x.dtype).astype(np.longdouble)


def is_nan(x):
    return np.isnan(wide(x))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(codes(a), codes(b))


def holds(outer, inner):
    """Whether every number of `inner` is one of `outer`."""
    a, b = FACTS[outer], FACTS[inner]
    if not (a.lowest <= b.lowest and a.largest >= b.largest):
        return False
    if "float" not in inner:
        digits = BITS[inner] if "int" in inner else 1
        return "float" not in outer or (
            a.mantissa_bits + 1 >= digits and a.smallest_positive <= 1 and a.lowest < 0
        )
    return (
        "float" in outer
        and a.mantissa_bits >= b.mantissa_bits
        and a.smallest_positive <= b.smallest_positive
    )


WIDENINGS = [
    (inner, outer)
    for inner in NUMPY_TYPES
    for outer in NUMPY_TYPES
    if inner != outer and outer != "bool" and holds(outer, inner)
]


def test_there_are_widenings_of_every_kind():
    assert {("float16", "float32"), ("float8_e5m2", "float16"), ("int8", "bfloat16"), ("uint4", "int8")} <= set(
        WIDENINGS
    )
    assert ("bfloat16", "float16") not in WIDENINGS and ("uint8", "int8") not in WIDENINGS and len(WIDENINGS) > 100


@given(st.data())
def test_there_and_back(data):
    inner, outer = data.draw(st.sampled_from(WIDENINGS))
    x = data.draw(arrays_of(st.just(inner)))
    back = tc.cast(tc.cast(x, outer, saturate=False), inner, saturate=False)
    numbers = ~is_nan(x)
    # -0 has no place in fnuz types and integers, and codes of bool are two.
    plus = numbers & (wide(x) == 0)
    assert np.array_equal(codes(back)[numbers & ~plus], codes(x)[numbers & ~plus])
    assert (wide(back)[plus] == 0).all()
    if FACTS[outer].has_nan and FACTS[inner].has_nan:
        assert is_nan(back)[~numbers].all()


@given(arrays_of(types, min_size=2), types, st.booleans())
def test_order_is_kept(x, to, saturate):
    x = x[~is_nan(x)]
    result = tc.cast(x, to, saturate=saturate, out_of_range="saturate")
    order = np.argsort(wide(x), kind="stable")
    values = wide(result)[order]
    if to != "bool":
        values = values[~np.isnan(values)]
        assert (values[1:] >= values[:-1]).all()


@given(arrays_of(st.sampled_from(SIGNED_FLOATS)), st.sampled_from(SIGNED_FLOATS), st.booleans())
def test_sign_is_symmetric(x, to, saturate):
    flipped = (codes(x) ^ codes(x).dtype.type(1 << (BITS[x.dtype.name] - 1))).view(x.dtype)
    there, back = tc.cast(x, to, saturate=saturate), tc.cast(flipped, to, saturate=saturate)
    keep = np.ones(x.shape, bool) if FACTS[to].has_nan else ~is_nan(x)  # no NaN to keep a sign
    flip = codes(there).dtype.type(1 << (BITS[to] - 1))
    assert np.array_equal(codes(back)[keep], codes(there)[keep] ^ flip)


@given(arrays_of(types), types)
def test_a_second_time_changes_nothing(x, to):
    once = tc.cast(x, to)
    assert same(tc.cast(once, to), once)
    assert same(tc.cast(x, x.dtype.name), x)


@given(arrays_of(types), types)
def test_the_nearest_is_its_own_nearest(x, to):
    """What was rounded to a type that a wider one holds comes back from there unchanged."""
    once = tc.cast(x, to)
    for outer in ("float64", "float32"):
        if to != outer and holds(outer, to):
            numbers = ~is_nan(once) & (wide(once) != 0)
            back = tc.cast(tc.cast(once, outer), to, saturate=False)
            assert np.array_equal(codes(back)[numbers], codes(once)[numbers])


@given(arrays_of(floats), st.sampled_from([name for name in FLOATS if name != "float8_e8m0fnu"]))
def test_no_number_of_the_type_is_nearer(x, to):
    numbers = np.isfinite(wide(x))
    x = x[numbers]
    result = tc.cast(x, to)
    if BITS[to] > 8:
        return
    every = array(range(1 << BITS[to]), to)
    every = wide(every)[np.isfinite(wide(every))]
    for value, got in zip(wide(x), wide(result)):
        assert abs(got - value) == abs(every - value).min()


@given(arrays_of(st.sampled_from(SUB_BYTE)), types)
def test_packed_from_equals_unpacked(x, to):
    name = x.dtype.name
    plain = tc.cast(x, to)
    dense = tc.cast(packed(x), to, packed=True, from_=name)
    if to in SUB_BYTE:
        # Packed bytes do not know how many of their last elements are meant.
        count = x.size * BITS[to] // 8
        assert np.array_equal(dense[:count], packed(plain)[:count])
    else:
        assert np.array_equal(codes(dense)[: x.size], codes(plain))


@given(arrays_of(types), st.sampled_from(SUB_BYTE))
def test_packed_to_equals_unpacked(x, to):
    assert np.array_equal(tc.cast(x, to, packed=True), packed(tc.cast(x, to)))


@given(arrays_of(types, max_size=200), types, st.data())
def test_slices(x, to, data):
    start, stop = data.draw(st.integers(-x.size, x.size)), data.draw(st.integers(-x.size, x.size))
    step = data.draw(st.sampled_from([1, 2, 3, 7, -1, -2]))
    whole = tc.cast(x, to)
    assert same(tc.cast(x[start:stop:step], to), np.ascontiguousarray(whole[start:stop:step]))


@given(arrays_of(types, max_size=60), types, st.data())
def test_shapes(x, to, data):
    rows = data.draw(st.sampled_from([n for n in range(1, x.size + 1) if x.size % n == 0]))
    table = x.reshape(rows, -1)
    assert same(tc.cast(table, to).reshape(-1), tc.cast(x, to))
    assert same(tc.cast(table.T, to), np.ascontiguousarray(tc.cast(table, to).T))


@settings(max_examples=300 if THOROUGH else 30)
@given(arrays_of(types, min_size=7), types, st.integers(2, 5), st.integers(0, 100))
def test_threads(x, to, threads, more):
    large = np.resize(x, (1 << 20) + more)
    assert same(tc.cast(large, to, threads=threads), tc.cast(large, to, threads=1))
    assert same(tc.cast(large, to, threads=1)[: x.size], tc.cast(x, to))


@given(arrays_of(types), types)
def test_a_report_changes_nothing(x, to):
    result, report = tc.cast(x, to, report=True)
    assert same(result, tc.cast(x, to)) and report.count == x.size


@given(arrays_of(floats), floats, st.integers(-20, 20))
def test_scale_by_a_power_of_two(x, to, power):
    """A power of two is exact in float64 unless it leaves the range."""
    x = x[np.isfinite(wide(x))]
    scaled = wide(x) * np.longdouble(2.0) ** power
    fits = (scaled == scaled.astype(np.float64)) & ((abs(scaled) > 1e-300) | (scaled == 0)) & (abs(scaled) < 1e300)
    x, scaled = x[fits], scaled[fits].astype(np.float64)
    if to != x.dtype.name or power != 0:
        assert same(tc.cast(x, to, scale=2.0**power), tc.cast(scaled, to) if to != "float64" else scaled)


@given(arrays_of(types))
def test_text_there_and_back(x):
    # Digits are those of the nearest float32, which may lie above the power of two.
    back = tc.cast(tc.cast(x, str), x.dtype.name, round_mode="nearest", saturate=False)
    numbers = ~is_nan(x)
    assert np.array_equal(codes(back)[numbers], codes(x)[numbers])
    assert is_nan(back)[~numbers].all()


@given(arrays_of(integers), integers)
def test_integers_keep_their_low_bits(x, to):
    bits = BITS[to]
    expected = [int(value) % (1 << bits) for value in x.astype(object)]
    assert codes(tc.cast(x, to)).tolist() == expected
