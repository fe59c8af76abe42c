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
    for name, word in (("out_of_range", "auto"), ("invalid", "default"), ("inexact", "auto")):
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


def to_float(
    number: Number | Product, to: Format, rounding: Rounding, limits: Limits, finds_lost: bool
) -> tuple[Bits, Flags, Flags | None]:
    """Codes, where finite numbers are out of range, and where finite numbers are not the codes' (``finds_lost``)."""
    if to.is_power_of_two and isinstance(number, Number):
        code, beyond, changed = _to_power_of_two(number, rounding, limits, to)
        return code, beyond, changed if finds_lost else None
    mantissa = to.mantissa_bits
    field = number.exponent + (number.top + to.bias)
    normal = field.clamp(1, (to.largest_code >> mantissa) + 1)  # 1: subnormal numbers, too
    cut = (normal - field) + (number.top - mantissa)
    cut = cut.clamp(min=1) if isinstance(number, Number) else cut
    code, lost = _rounded(number, cut, rounding, number.negative if to.has_sign else None, finds_lost)
    code = code + ((normal - 1) << mantissa)  # the highest bit adds 1 to the field
    code = torch.where(number.is_zero(), torch.zeros_like(code), code)
    beyond = (code > to.largest_code) | (code < 0)
    negative = number.negative
    if to.has_sign:
        signed = negative if to.has_negative_zero else negative & (code != 0)
        sign = to.sign_mask if to.bits < WIDTH[code.dtype] else -(1 << (to.bits - 1))
        code = torch.where(signed, code | sign, code)
    elif not limits.drops_sign:
        beyond = beyond | (negative & (code != 0))
    code = torch.where(beyond, _by_sign(negative, limits.beyond, code), code)
    if lost is not None:
        lost = number.finite(lost | beyond)
    return _with_specials(code, number, to, limits), number.finite(beyond), lost


def _with_specials(code: Bits, number: Number | Product, to: Format, limits: Limits) -> Bits:
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


def _to_power_of_two(number: Number, rounding: Rounding, limits: Limits, to: Format) -> tuple[Bits, Flags, Flags]:
    """As to_float(). The range is that of the number itself. Precondition: normalized."""
    largest = to.largest_code
    code = number.exponent + (number.top + to.bias)
    whole = torch.ones_like(code) << number.top
    exact = number.significand == whole
    below = number.negative | (number.significand == 0) | (code < 0)
    above = ~below & ((code > largest) | ((code == largest) & ~exact))
    code = code + rounding.carry(torch.where(number.significand == 0, whole, number.significand) - whole, number.top, code & 1, None)
    code = torch.where(below, torch.full_like(code, limits.below), code)
    code = torch.where(above, torch.full_like(code, limits.beyond[0]), code)
    if number.infinite is not None:
        code = torch.where(number.infinite, _by_sign(number.negative, limits.infinity, code), code)
    if number.nan is not None:
        code = torch.where(number.nan, torch.full_like(code, limits.nan[0]), code)
    return code, number.finite(below | above), number.finite(below | above | ~exact)


def to_integer(
    number: Number | Product, to: Format, rounding: Rounding, saturates: bool, finds_lost: bool
) -> tuple[Bits, Flags, Flags | None]:
    """Codes, where numbers are out of range, as infinity and NaN are, and where they are not the codes' (``finds_lost``)."""
    magnitude, lost = _rounded(number, -number.exponent, rounding, number.negative, finds_lost)
    place = torch.where(number.is_zero(), torch.zeros_like(magnitude), number.exponent + number.top)
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
    return code, beyond, None if lost is None else lost | beyond


def _rounded(
    number: Number | Product, cut: Bits, rounding: Rounding, negative: Flags | None, finds_lost: bool
) -> tuple[Bits, Flags | None]:
    """The magnitude without its lowest ``cut`` bits, or with more; low bits of it, if it is larger. And what is lost."""
    if isinstance(number, Product):
        return _rounded_product(number, cut, rounding, negative, finds_lost)
    width, significand = WIDTH[number.significand.dtype], number.significand
    left = torch.where(cut > -width, significand << (-cut).clamp(0, width - 1), torch.zeros_like(significand))
    magnitude = torch.where(cut > 0, rounding.shifted(significand, cut.clamp(min=1), number.top + 2, negative), left)
    if not finds_lost:
        return magnitude, None
    rest = significand & ((torch.ones_like(cut) << cut.clamp(0, width - 2)) - 1)
    return magnitude, (cut > 0) & (rest != 0)


def _rounded_product(
    number: Product, cut: Bits, rounding: Rounding, negative: Flags | None, finds_lost: bool
) -> tuple[Bits, Flags | None]:
    high, low, one = number.high, number.low, torch.ones_like(number.high)
    left = torch.where(cut > -64, ((high << LOW) + low) << (-cut).clamp(0, 63), torch.zeros_like(high))
    kept, rest, places = number.shifted(cut.clamp(1, LOW + 3))
    near = kept + rounding.carry(rest, places, kept & 1, negative)
    many = (cut - LOW).clamp(4, 63)  # of the upper half
    if rounding.random is not None:  # meets the highest 32 bits that go
        few = high << (32 - many).clamp(min=0) | low >> (22 + many).clamp(max=63)
        top = torch.where(many <= 32, few, high >> (cut - LOW - 32).clamp(0, 63)) & low_ones(32, 64)
        far = (high >> many) + ((top + rounding.random) >> 32)
    else:  # the lower half tells only whether something is left
        above, above_cut = high >> 2 | ((high & 3 | low) != 0).to(high.dtype), (cut - (LOW + 2)).clamp(2, 62)
        above_kept = above >> above_cut
        far = above_kept + rounding.carry(above & ((one << above_cut) - 1), above_cut, above_kept & 1, negative)
    magnitude = torch.where(cut <= 0, left, torch.where(cut <= LOW + 3, near, far))
    if not finds_lost:
        return magnitude, None
    lost_far = ((high & ((one << many) - 1)) | low) != 0
    return magnitude, (cut > 0) & torch.where(cut <= LOW + 3, rest != 0, lost_far)


def to_bool(number: Number | Product) -> Bits:
    true = ~number.is_zero()
    for others in (number.infinite, number.nan):
        true = true if others is None else true | others
    return true.to(number.exponent.dtype)
