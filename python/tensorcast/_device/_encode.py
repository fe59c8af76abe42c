# SPDX-License-Identifier: Apache-2.0
"""Numbers to the codes of a type, with one rounding."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import torch

from ._formats import Format, engine_numbers
from ._numbers import LOW, WIDTH, Number, Product, low_ones
from ._rounding import Rounding

Bits: TypeAlias = "torch.Tensor"
Flags: TypeAlias = "torch.Tensor"


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the options make of numbers that a floating-point type lacks: codes without and with a sign."""

    infinity: tuple[int, int]
    beyond: tuple[int, int]  # finite numbers out of range
    nan: tuple[int, int]
    below: int  # for powers of two: zero, negative and smaller numbers
    below_infinite: int  # minus infinity
    drops_sign: bool  # a type without a sign has the magnitude of negative numbers


def limits_of(to: Format, options: dict[str, Any]) -> Limits:
    """Asks the engine, by numbers that are one of each kind. A scale makes float64 numbers beyond float64's own."""
    asked = {**options, "scale": 2.0}
    for name, word in (("out_of_range", "auto"), ("invalid", "default")):
        if asked.get(name) == "error":
            asked[name] = word
    largest = 1.7976931348623157e308
    infinity, nan = float("inf"), float("nan")
    made = engine_numbers([infinity, -infinity, largest, -largest, nan, -nan, -0.5, 0.5], to.name, asked)
    below, minus_infinity = (made[6], made[1]) if to.is_power_of_two else (0, 0)
    drops = not to.has_sign and not to.is_power_of_two and made[6] == made[7]
    return Limits((made[0], made[1]), (made[2], made[3]), (made[4], made[5]), below, minus_infinity, drops)


def _by_sign(negative: Flags, codes: tuple[int, int], like: Bits) -> Bits:
    width = WIDTH[like.dtype]
    signed = [code - (1 << width) if code >> (width - 1) else code for code in codes]
    return torch.where(negative, torch.full_like(like, signed[1]), torch.full_like(like, signed[0]))


def to_float(number: Number, to: Format, rounding: Rounding, limits: Limits) -> tuple[Bits, Flags]:
    """Codes, and where finite numbers are out of range."""
    if to.is_power_of_two:
        return _to_power_of_two(number, rounding, limits, to)
    mantissa = to.mantissa_bits
    zero = torch.zeros_like(number.significand)
    field = number.exponent + (number.top + to.bias)
    normal = field.clamp(1, (to.largest_code >> mantissa) + 1)  # 1: subnormal numbers, too
    cut = ((normal - field) + (number.top - mantissa)).clamp(min=1)
    cut = torch.minimum(cut, zero + (number.top + 2))
    code = rounding.shifted(number.significand, cut) + ((normal - 1) << mantissa)  # the highest bit adds 1 to the field
    code = torch.where(number.significand == 0, zero, code)
    beyond = (code > to.largest_code) | (code < 0)
    negative = number.negative
    if to.has_sign:
        signed = negative if to.has_negative_zero else negative & (code != 0)
        sign = to.sign_mask if to.bits < WIDTH[code.dtype] else -(1 << (to.bits - 1))
        code = torch.where(signed, code | sign, code)
    elif not limits.drops_sign:
        beyond = beyond | (negative & (code != 0))
    code = torch.where(beyond, _by_sign(negative, limits.beyond, code), code)
    return _with_specials(code, number, to, limits), number.finite(beyond)


def _with_specials(code: Bits, number: Number, to: Format, limits: Limits) -> Bits:
    if number.infinite is not None:
        code = torch.where(number.infinite, _by_sign(number.negative, limits.infinity, code), code)
    if number.nan is not None:
        nan = _by_sign(number.negative, limits.nan, code)
        if to.nan_has_payload and number.payload is not None:
            shift = to.mantissa_bits - 1 - number.payload_bits
            payload = number.payload << shift if shift >= 0 else number.payload >> -shift
            nan = nan | payload
        code = torch.where(number.nan, nan, code)
    return code


def _to_power_of_two(number: Number, rounding: Rounding, limits: Limits, to: Format) -> tuple[Bits, Flags]:
    """The range is that of the number itself. Precondition: normalized."""
    largest = to.largest_code
    code = number.exponent + (number.top + to.bias)
    whole = torch.ones_like(code) << number.top
    exact = number.significand == whole
    below = number.negative | (number.significand == 0) | (code < 0)
    above = ~below & ((code > largest) | ((code == largest) & ~exact))
    code = code + (rounding.shifted(number.significand, number.top) - 1)
    code = torch.where(below, torch.full_like(code, limits.below), code)
    code = torch.where(above, torch.full_like(code, limits.beyond[0]), code)
    if number.infinite is not None:
        code = torch.where(number.infinite, _by_sign(number.negative, limits.infinity, code), code)
    if number.nan is not None:
        code = torch.where(number.nan, torch.full_like(code, limits.nan[0]), code)
    return code, number.finite(below | above)


def to_integer(number: Number | Product, to: Format, rounding: Rounding, saturates: bool) -> tuple[Bits, Flags]:
    """Codes, and where numbers are out of range; infinity and NaN are."""
    magnitude, place = _whole(number, rounding) if isinstance(number, Number) else _whole_product(number, rounding)
    width, negative = WIDTH[magnitude.dtype], number.negative
    top = to.bits - (1 if to.has_sign else 0)  # numbers from 2**top on are out of range
    lowest_code = 1 << top if to.has_sign else 0
    if to.bits < width:
        highest = torch.where(negative, lowest_code, (1 << top) - 1)
        beyond = (place >= width - 1) | (magnitude > highest)
    elif to.has_sign:  # a magnitude of 2**top has the sign's bit; of a negative number it is in range
        is_lowest = negative & (place <= top) & (magnitude == torch.full_like(magnitude, -(1 << top)))
        beyond = ((place >= top) | (magnitude < 0)) & ~is_lowest
    else:  # a number below 2**top that rounds to it has no bit left
        rounded_up = (place == top - 1) & (magnitude >= 0)
        beyond = (place >= top) | rounded_up | (negative & (magnitude != 0))
    code = torch.where(negative, -magnitude, magnitude) & low_ones(to.bits, width)
    zero = torch.zeros_like(code)
    extreme = _by_sign(negative, ((1 << top) - 1, lowest_code), code) if saturates else zero
    if saturates:
        code = torch.where(beyond, extreme, code)
    if number.infinite is not None:
        code, beyond = torch.where(number.infinite, extreme, code), beyond | number.infinite
    if number.nan is not None:
        code, beyond = torch.where(number.nan, zero, code), beyond | number.nan
    return code, beyond


def _whole(number: Number, rounding: Rounding) -> tuple[Bits, Bits]:
    """The magnitude rounded to an integer, its low bits, and the place of the highest bit before."""
    width, exponent = WIDTH[number.significand.dtype], number.exponent
    zero = torch.zeros_like(exponent)
    cut = torch.minimum((-exponent).clamp(min=1), zero + (number.top + 2))
    left = torch.where(exponent < width, number.significand << exponent.clamp(0, width - 1), zero)
    magnitude = torch.where(exponent < 0, rounding.shifted(number.significand, cut), left)
    return magnitude, torch.where(number.significand == 0, zero, exponent + number.top)


def _whole_product(number: Product, rounding: Rounding) -> tuple[Bits, Bits]:
    high, low, cut = number.high, number.low, -number.exponent
    zero, one = torch.zeros_like(high), torch.ones_like(high)
    left = torch.where(cut > -64, ((high << LOW) + low) << (-cut).clamp(0, 63), zero)
    kept, rest, places = number.shifted(cut.clamp(1, LOW + 3))
    near = kept + rounding.carry(rest, places, kept & 1)
    # More is cut than the lower half, which only tells whether something is left.
    above = high >> 2 | ((high & 3 | low) != 0).to(high.dtype)
    many = (cut - (LOW + 2)).clamp(2, 62)
    kept = above >> many
    far = kept + rounding.carry(above & ((one << many) - 1), many, kept & 1)
    magnitude = torch.where(cut <= 0, left, torch.where(cut <= LOW + 3, near, far))
    return magnitude, torch.where((high == 0) & (low == 0), zero, number.exponent + number.top)


def to_bool(number: Number | Product) -> Bits:
    significand = number.significand if isinstance(number, Number) else number.high | number.low
    true = significand != 0
    for others in (number.infinite, number.nan):
        true = true if others is None else true | others
    return true.to(significand.dtype)
