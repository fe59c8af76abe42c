# SPDX-License-Identifier: Apache-2.0
"""The cases of strings: literals to every type, and numbers to strings. A string is written as JSON writes it."""

import json

import casts
import numpy as np
from number_types import INFINITY, NAN, TYPES, is_float, lowest_and_largest, midpoint, value

import tensorcast as tc

LITERALS = [
    "0", "-0", "+1", "1.", ".5", "-.5e1", " 2.5\t", "1e3", "1E-3", "100.5", "-1", "255", "256", "-129", "65504", "65520", "1e400",
    "-1e400", "1e-400", "2.2250738585072011e-308", "9007199254740993", "18446744073709551615", "18446744073709551616",
    "-9223372036854775809", "inf", "-Infinity", "NaN", "-nan", "true", "FALSE", "", " ", "12abc", "0x1p3", "1_000", "1,5", "1e", "--1",
    "infinit", "1 2", ".", "0.1", "0.30000000000000004", "464", "465", "480", "61439.9999", "61440", "2.5", "3.5",
    "1.00000005960464477539062500001", "1.000000059604644775390625",
]  # fmt: skip


def decimal(x):
    """The exact decimal of a fraction whose denominator is a power of two."""
    places = x.denominator.bit_length() - 1
    digits = str(abs(x.numerator) * 5**places).rjust(places + 1, "0")
    return ("-" if x < 0 else "") + digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")


def literals(target):
    """Numbers that all targets get, and midpoints of this one, exact and with a digit behind them."""
    found = list(LITERALS)
    if is_float(target) and target != "float64":
        kind = TYPES[target]
        for code in (0, 1, (1 << kind.mantissa_bits), kind.largest_code // 2, kind.largest_code - 1):
            text = decimal(midpoint(target, code))
            if len(text) < 200:
                found += [text, text + ("0001" if "." in text else ".0001"), "-" + text]
    elif not is_float(target):
        low, high = (int(end) for end in lowest_and_largest(target))
        found += [str(low), str(low - 1), str(high), str(high + 1), f"{high}.999"]
    return found


def text_tags(number):
    return "exact" if number not in (NAN, INFINITY) else number


def lines(cast_array, hexadecimal):
    for target in TYPES:
        for text in literals(target):
            try:
                made = tc.cast(np.array([text], object), target, packed=True, threads=1)
                size = TYPES[target].bits
                code = int.from_bytes(np.ascontiguousarray(made).tobytes(), "little") & ((1 << size) - 1)
                expected, tag = hexadecimal(code, target), "literal"
            except tc.ParseError:
                expected, tag = "error", "not-a-number"
            yield "\t".join(["string", json.dumps(text), target, "-", expected, tag])
    for source in TYPES:
        codes = casts.sources(source, "float8_e4m3fn", True)
        for code, made in zip(codes, cast_array(codes, source, "string", {}).tolist()):
            yield "\t".join([source, hexadecimal(code, source), "string", "-", json.dumps(made), text_tags(value(source, code)[1])])
