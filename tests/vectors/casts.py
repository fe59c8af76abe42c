# SPDX-License-Identifier: Apache-2.0
"""The cases of casts: which codes are worth a line for a pair of types, under which options, and their tags."""

import functools
import hashlib

from number_types import (
    INFINITY, NAN, TYPES, Integer, below, is_float, lowest_and_largest, magnitude, midpoint, nearest_even, power, value,
)  # fmt: skip

ROUNDINGS = ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd"]
STOCHASTIC_SEEDS = [0, 2026]


def drawn(name, count, bits):
    """Numbers of `bits` bits that depend on the name alone."""
    made = [hashlib.sha256(f"{name} {i}".encode()).digest() for i in range(count)]
    return [int.from_bytes(digest[:8], "little") >> 64 - bits for digest in made]


@functools.cache
def thresholds(target, few):
    """Magnitudes at which something happens in the target: midpoints, codes, both ends of its range."""
    kind = TYPES[target]
    points = {power(0), power(0) / 2}
    if isinstance(kind, Integer):
        low, high = lowest_and_largest(target)
        for end in (abs(low), high, 2 * high + 2):
            points |= {end, end + power(-1), end + 1}
        points |= {power(-1), 3 * power(-1), 5 * power(-1), power(1) + power(-2), 7 * power(-1)}
        return sorted(points)
    top = kind.largest_code
    steps = 1 << kind.mantissa_bits
    if target == "float8_e8m0fnu":
        codes = list(range(0, 255, 32)) + [1, 126, 127, 128, 252, 253]
    elif top < 300 and not few:
        codes = list(range(top + 1))
    else:
        codes = [0, 1, 2, steps - 1, steps, steps + 1, (kind.bias << kind.mantissa_bits) + 1, top // 2, top - 1, top]
    points |= {magnitude(target, code) for code in (1, steps, top, min(top + 1, 1 << 62))}
    points |= {midpoint(target, code) for code in codes if code <= top}
    if target == "float8_e8m0fnu":
        points |= {magnitude(target, code) for code in codes} | {magnitude(target, 0) / 2, magnitude(target, 254) * 2}
    return sorted(points - {0})


def beside(source, point, few):
    """Codes of the source at a magnitude, just below and just above, of both signs if it has them."""
    kind = TYPES[source]
    if isinstance(kind, Integer):
        whole = point.numerator // point.denominator
        low, high = lowest_and_largest(source)
        for number in (whole - 1, whole, whole + 1):
            for signed in (number, -number):
                if low <= signed <= high:
                    yield signed % (1 << kind.bits)
        return
    code = below(source, point)
    for near in (code - 1, code, code + 1):
        if 0 <= near <= kind.largest_code:
            yield near
            if kind.signed and (not few or near % 3 == 0 or near == code):
                yield near | kind.sign_bit


@functools.cache
def ends(source):
    """Zeros, the smallest and largest numbers, infinities, quiet and signaling NaNs with payloads."""
    kind = TYPES[source]
    if source == "bool":
        return [0, 1]
    if isinstance(kind, Integer):
        return [0, 1, 2, 3, (1 << kind.bits) - 1, 1 << kind.bits - 1, (1 << kind.bits - 1) - 1]
    top, half = kind.largest_code, 1 << kind.mantissa_bits
    codes = [0, 1, 2, half - 1, half, top - 1, top]
    if kind.special == "ieee":
        quiet = top + 1 + half // 2
        codes += [top + 1, top + 2, quiet, quiet + 1, quiet + half // 4, top + half]
    return codes + [code | kind.sign_bit for code in codes]


@functools.cache
def sources(source, target, few):
    """Codes of the source, ascending: all of them up to 8 bits, else those that are hard for the target."""
    bits = TYPES[source].bits
    if source == "bool":
        return [0, 1]
    if bits <= 8 and not few:
        return list(range(1 << bits))
    codes = set(ends(source)[:: 2 if few and bits <= 8 else 1])
    for point in thresholds(target, few):
        codes |= set(beside(source, point, few))
    mask = (1 << bits) - 1
    codes = {code & mask for code in codes}
    codes |= set(drawn(f"{source} {target}", 3 if few else 12, bits))
    return sorted(codes)


def tags(source, code, target):
    """What is hard about a number for a target, by its value alone: options do not matter."""
    _, x = value(source, code)
    negative, found = value(source, code)[0], []
    if x in (NAN, INFINITY):
        return [x] + (["negative"] if negative else [])
    if x == 0:
        return ["zero", *(["negative"] if negative else [])]
    if is_float(source) and abs(x) < magnitude(source, 1 << TYPES[source].mantissa_bits) and source != "float8_e8m0fnu":
        found.append("source-subnormal")
    if target == "bool":
        return found
    low, high = lowest_and_largest(target)
    if x > high or x < low:
        found.append("overflow" if x > high or x < 0 else "underflow")
    if is_float(target):
        return found + float_tags(source, x, target)
    doubled = 2 * x
    found.append("exact" if x.denominator == 1 and not found else "inexact")
    return found + (["tie"] if x.denominator == 2 and doubled.denominator == 1 else [])


def float_tags(source, x, target):
    size, kind, found = abs(x), TYPES[target], []
    code = below(target, size)
    low, high = magnitude(target, code), magnitude(target, code + 1)
    if target != "float8_e8m0fnu" and size < magnitude(target, 1 << kind.mantissa_bits):
        found.append("subnormal")
        if 2 * size < high and low == 0:
            found.append("underflow")
    exact = low == size and code <= kind.largest_code and (x > 0 or kind.signed)
    found.append("exact" if exact else "inexact")
    if 2 * size == low + high:
        found.append("tie")
    once = nearest_even(target, x)
    if exact or target == "float8_e8m0fnu":
        return found
    for between in ("float32", "float16"):
        wider = between == "float32" and source not in ("float32", "float16", "bfloat16") and TYPES[source].bits > 16
        half = between == "float16" and source in ("float32", "bfloat16", "float64") and kind.bits <= 8
        # Twice rounded it is another number, within the range of the type between.
        if (wider or half) and target != between and size < lowest_and_largest(between)[1]:
            if nearest_even(target, nearest_even(between, x)) != once:
                found.append(f"double-rounding-{between}")
    return found


def has_saturation(target):
    return is_float(target) and TYPES[target].bits == 8


def option_sets(source, target):
    """Options, and whether a short list of codes will do."""
    yield {}, False
    if source == target or target == "bool":
        return
    if has_saturation(target):
        yield {"saturate": False}, TYPES[source].bits > 8
    for word in ROUNDINGS:
        yield {"rounding": word}, True
        if has_saturation(target) and word in ("nearest_away", "toward_positive", "toward_negative"):
            yield {"rounding": word, "saturate": False}, True
    if target == "float8_e8m0fnu":
        for mode in ("down", "nearest"):
            yield {"round_mode": mode}, False
            yield {"round_mode": mode, "saturate": False}, True
    yield {"out_of_range": "saturate"}, True
    if is_float(source) and not is_float(target):  # as integers are quantized
        yield {"rounding": "nearest_even", "out_of_range": "saturate"}, True
    yield from older_versions(source, target)


ONNX_SINCE = {name: 13 for name in TYPES if is_float(name) or TYPES[name].bits >= 8}
ONNX_SINCE |= {name: 21 for name in ("int4", "uint4")} | {"float4_e2m1fn": 23, "float8_e8m0fnu": 24, "int2": 25, "uint2": 25}
ONNX_SINCE |= {name: 28 for name in ("float6_e2m3fn", "float6_e3m2fn")}
ONNX_SINCE |= {name: 19 for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")}
NOT_ONNX = ["float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e5m3fnu", "binary8p4se", "binary8p3se"]


def older_versions(source, target):
    """ONNX's versions that give other codes."""
    if source in NOT_ONNX or target in NOT_ONNX:
        return
    changed = {"float8_e4m3fnuz": (19, 23), "float8_e5m2fnuz": (19, 23), "float4_e2m1fn": (23,), "int4": (21, 23), "uint4": (21, 23)}
    for opset in changed.get(target, ()):
        if is_float(source) and ONNX_SINCE[source] <= opset:
            yield {"opset": opset}, True
            if target.endswith("fnuz"):
                yield {"opset": opset, "fnuz_inf": "flt_max"}, True


def refusals(source, target):
    """Options under which an element may be an error; a line each, as one error ends a whole cast."""
    if source == target or target == "bool":
        return
    yield {"out_of_range": "error"}
    yield {"inexact": "error"}
    if not is_float(target) or TYPES[target].special == "none" or not TYPES[target].signed:
        yield {"invalid": "error"}


def in_range_of_stochastic(source, code, target):
    """D16.5 is checked where both neighbours are numbers of the target."""
    x = value(source, code)[1]
    if x in (NAN, INFINITY) or (is_float(target) and not TYPES[target].signed and x <= 0):
        return False
    low, high = lowest_and_largest(target)
    return low <= x <= high
