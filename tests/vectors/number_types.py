# SPDX-License-Identifier: Apache-2.0
"""The number types in exact fractions, for choosing cases and naming them. Shares no code with the library."""

import functools
from fractions import Fraction
from typing import NamedTuple

NAN, INFINITY = "nan", "infinity"


class Float(NamedTuple):
    bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: str  # what codes mean that are no numbers: ieee, fn, fnuz, p3109, ue, none
    signed: bool = True

    @property
    def sign_bit(self):
        return 1 << self.bits - 1 if self.signed else 0

    @property
    def largest_code(self):
        ones = (1 << self.exponent_bits + self.mantissa_bits) - 1
        return {"ieee": ones - (1 << self.mantissa_bits), "fn": ones - 1, "p3109": ones - 1, "ue": ones - 1}.get(self.special, ones)


class Integer(NamedTuple):
    bits: int
    signed: bool


TYPES = {
    "float64": Float(64, 11, 52, 1023, "ieee"),
    "float32": Float(32, 8, 23, 127, "ieee"),
    "float16": Float(16, 5, 10, 15, "ieee"),
    "bfloat16": Float(16, 8, 7, 127, "ieee"),
    "float8_e4m3fn": Float(8, 4, 3, 7, "fn"),
    "float8_e4m3fnuz": Float(8, 4, 3, 8, "fnuz"),
    "float8_e5m2": Float(8, 5, 2, 15, "ieee"),
    "float8_e5m2fnuz": Float(8, 5, 2, 16, "fnuz"),
    "float8_e8m0fnu": Float(8, 8, 0, 127, "ue", signed=False),
    "float8_e4m3": Float(8, 4, 3, 7, "ieee"),
    "float8_e3m4": Float(8, 3, 4, 3, "ieee"),
    "float8_e4m3b11fnuz": Float(8, 4, 3, 11, "fnuz"),
    "float8_e5m3fnu": Float(8, 5, 3, 15, "ue", signed=False),
    "binary8p4se": Float(8, 4, 3, 8, "p3109"),
    "binary8p3se": Float(8, 5, 2, 16, "p3109"),
    "float6_e2m3fn": Float(6, 2, 3, 1, "none"),
    "float6_e3m2fn": Float(6, 3, 2, 3, "none"),
    "float4_e2m1fn": Float(4, 2, 1, 1, "none"),
    **{f"int{bits}": Integer(bits, True) for bits in (64, 32, 16, 8, 4, 2)},
    **{f"uint{bits}": Integer(bits, False) for bits in (64, 32, 16, 8, 4, 2)},
    "bool": Integer(8, False),
}


def is_float(name):
    return isinstance(TYPES[name], Float)


def power(exponent):
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def magnitude(name, code):
    """The value of a finite code without sign; codes above the largest continue the grid of the last exponent."""
    kind = TYPES[name]
    exponent, mantissa = code >> kind.mantissa_bits, code & ((1 << kind.mantissa_bits) - 1)
    if name == "float8_e8m0fnu":
        return power(code - kind.bias)
    hidden = 1 << kind.mantissa_bits if exponent else 0
    return (hidden + mantissa) * power(max(exponent, 1) - kind.bias - kind.mantissa_bits)


@functools.cache
def value(name, code):
    """(is negative, a fraction or NAN or INFINITY): of zero and NaN, too, the sign is that of the code."""
    kind = TYPES[name]
    if isinstance(kind, Integer):
        number = code - (1 << kind.bits) if kind.signed and code >> kind.bits - 1 else code
        return number < 0, Fraction(1 if name == "bool" and code else number)
    negative = bool(code & kind.sign_bit)
    rest = code & ~kind.sign_bit
    if kind.special in ("fnuz", "p3109") and code == kind.sign_bit:
        return True, NAN
    if rest > kind.largest_code:
        is_infinity = kind.special in ("ieee", "p3109") and rest == kind.largest_code + 1
        return negative, INFINITY if is_infinity else NAN
    return negative, magnitude(name, rest) * (-1 if negative else 1)


def log2_floor(x):
    """The largest e with 2^e <= x."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if power(exponent) <= x else exponent - 1


def below(name, x):
    """The code of the largest magnitude that is not above x > 0, on a grid without an upper end."""
    kind = TYPES[name]
    if name == "float8_e8m0fnu":
        return max(log2_floor(x) + kind.bias, 0)
    exponent = max(log2_floor(x), 1 - kind.bias)
    units = x / power(exponent - kind.mantissa_bits)
    return (units.numerator // units.denominator) + ((exponent + kind.bias - 1) << kind.mantissa_bits)


def nearest_even(name, x):
    """A finite number rounded to a float: its value, with the exponent unbounded above."""
    if x == 0:
        return x
    size = abs(x)
    code = below(name, size)
    low, high = magnitude(name, code), magnitude(name, code + 1)
    up = size - low > high - size or (size - low == high - size and code % 2 == 1)
    return (high if up else low) * (1 if x > 0 else -1)


def midpoint(name, code):
    """Between the magnitudes of a code and the next one."""
    return (magnitude(name, code) + magnitude(name, code + 1)) / 2


def lowest_and_largest(name):
    kind = TYPES[name]
    if isinstance(kind, Integer):
        if name == "bool":
            return Fraction(0), Fraction(1)
        low = -(1 << kind.bits - 1) if kind.signed else 0
        return Fraction(low), Fraction(low + (1 << kind.bits) - 1)
    largest = magnitude(name, kind.largest_code)
    lowest = -largest if kind.signed else magnitude(name, 0)
    return lowest, largest
