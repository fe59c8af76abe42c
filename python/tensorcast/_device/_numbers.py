# SPDX-License-Identifier: Apache-2.0
"""Numbers as integers: a sign, a magnitude and an exponent, which every type has."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import torch

from ._formats import Format

Bits: TypeAlias = "torch.Tensor"
Flags: TypeAlias = "torch.Tensor"  # bool

WIDTH = {torch.int32: 32, torch.int64: 64}
# The place of a magnitude's highest bit: two bits above are free for rounding, and one for the sign.
TOP = {torch.int32: 28, torch.int64: 60}


@dataclasses.dataclass
class Number:
    """The magnitude is ``significand * 2**exponent``. Its highest bit is ``top``; of subnormal numbers it is lower, unless
    the number is normalized."""

    negative: Flags
    significand: Bits
    exponent: Bits
    top: Bits | int
    infinite: Flags | None = None  # None: the type has none
    nan: Flags | None = None
    payload: Bits | None = None  # of NaN: the bits below the quiet bit
    payload_bits: int = 0
    whole: Bits | None = None  # of integers of 64 bits: all bits of the magnitude

    def is_zero(self) -> Flags:
        return self.significand == 0

    def finite(self, flags: Flags) -> Flags:
        """The flags, without infinity and NaN."""
        for others in (self.infinite, self.nan):
            flags = flags if others is None else flags & ~others
        return flags


def low_ones(count: int, width: int) -> int:
    """A mask as a Python integer that an integer tensor of the width takes."""
    return -1 if count >= width else (1 << count) - 1


def decoded(codes: Bits, form: Format) -> Number:
    """The numbers of a floating-point type."""
    width, mantissa = WIDTH[codes.dtype], form.mantissa_bits
    magnitude = codes & low_ones(form.bits - (1 if form.has_sign else 0), width)
    if form.has_sign:
        negative = codes < 0 if form.bits == width else (codes & form.sign_mask) != 0
    else:
        negative = torch.zeros_like(codes, dtype=torch.bool)
    field, fraction = magnitude >> mantissa, magnitude & low_ones(mantissa, width)
    if form.is_power_of_two:
        number = Number(negative, torch.ones_like(codes), field - form.bias, 0)
    else:
        significand = torch.where(field > 0, fraction | (1 << mantissa), fraction)
        number = Number(negative, significand, field.clamp(min=1) - (form.bias + mantissa), mantissa)
    if form.nan_has_payload:
        number.infinite, number.nan = magnitude == form.infinity_code, magnitude > form.infinity_code
        number.payload, number.payload_bits = fraction & low_ones(mantissa - 1, width), mantissa - 1
    elif form.has_nan and form.has_sign and not form.has_negative_zero:
        number.nan = negative & (magnitude == 0)
        number.infinite = magnitude > form.largest_code if form.has_infinity else None
    elif form.has_nan:
        number.nan = magnitude > form.largest_code
    return number


def signed_integers(codes: Bits, form: Format) -> Bits:
    """The values of an integer type; unsigned ones of the tensor's own width stay bits."""
    if not form.has_sign or form.bits == WIDTH[codes.dtype]:
        return codes
    return codes - ((codes & form.sign_mask) << 1)


def decoded_integers(codes: Bits, form: Format) -> Number:
    """The numbers of an integer type. Unsigned integers of 64 bits lose their lowest bit, as a sticky bit, if they have
    a highest one."""
    if form.family == "bool":
        codes = (codes != 0).to(codes.dtype)
    values = signed_integers(codes, form)
    negative = values < 0 if form.has_sign else torch.zeros_like(values, dtype=torch.bool)
    magnitude = torch.where(negative, -values, values)
    exponent, whole = torch.zeros_like(values), None
    if form.bits == WIDTH[codes.dtype]:  # the magnitude may have the highest bit
        high, whole = magnitude < 0, magnitude
        halved = ((magnitude >> 1) & low_ones(form.bits - 1, 64)) | (magnitude & 1)
        magnitude, exponent = torch.where(high, halved, magnitude), high.to(values.dtype)
    return normalized(Number(negative, magnitude, exponent, 0, whole=whole))


def highest_bit(values: Bits) -> Bits:
    """The place of the highest bit that is set; that of 0 is 0. Values are not negative.

    Integers below 2**24 are float32 numbers, none of them subnormal, so that no device changes them.
    """
    place = torch.zeros_like(values)
    for bits in (48, 24) if values.dtype == torch.int64 else (24,):
        high = values >= (1 << bits)
        values, place = torch.where(high, values >> bits, values), torch.where(high, place + bits, place)
    exponent = (values.to(torch.float32).view(torch.int32) >> 23).to(place.dtype) - 127
    return place + exponent.clamp(min=0)


def normalized(number: Number, top: int | None = None) -> Number:
    """The same number with its highest bit at ``top``; bits below the lowest become a sticky one. Zero keeps exponent 0."""
    top = TOP[number.significand.dtype] if top is None else top
    place = highest_bit(number.significand)
    left, right = (top - place).clamp(min=0), (place - top).clamp(min=0)
    lost = (number.significand & ((torch.ones_like(right) << right) - 1)) != 0
    significand = (number.significand << left) >> right | lost.to(right.dtype)
    zero = number.significand == 0
    exponent = torch.where(zero, torch.zeros_like(place), number.exponent + (place - top))
    return dataclasses.replace(number, significand=significand, exponent=exponent, top=top)


def raised(number: Number, top: int) -> Number:
    """The same number with ``top`` as the highest bit, which is above the one it has."""
    left = top - int(number.top)
    return dataclasses.replace(number, significand=number.significand << left, exponent=number.exponent - left, top=top)


def widened(number: Number, dtype: torch.dtype) -> Number:
    parts: dict[str, Any] = {name: getattr(number, name) for name in ("significand", "exponent", "payload", "whole")}
    return dataclasses.replace(
        number, **{name: part.to(dtype) for name, part in parts.items() if part is not None}
    )


_HALF = 27  # bits of half a significand of float64
LOW = 2 * _HALF  # bits of the lower half of a product


@dataclasses.dataclass
class Product:
    """The magnitude is ``(high * 2**54 + low) * 2**exponent``, exactly; ``high`` has up to 63 bits."""

    negative: Flags
    high: Bits
    low: Bits
    exponent: Bits
    top: Bits
    infinite: Flags
    nan: Flags
    payload: Bits | None
    payload_bits: int

    def is_zero(self) -> Flags:
        return (self.high == 0) & (self.low == 0)

    def finite(self, flags: Flags) -> Flags:
        """The flags, without infinity and NaN."""
        return flags & ~self.infinite & ~self.nan

    def rounded_to_odd(self) -> Number:
        """A number of at most 61 bits whose rounding to any type is that of the exact product."""
        excess = self.top - TOP[torch.int64]
        cut, rest, _ = self.shifted(excess.clamp(min=1))
        cut = cut | (rest != 0).to(cut.dtype)
        left = ((self.high << LOW) + self.low) << (-excess).clamp(min=0)
        significand = torch.where(excess > 0, cut, left)
        return Number(self.negative, significand, self.exponent + excess, TOP[torch.int64], self.infinite, self.nan,
                      self.payload, self.payload_bits)  # fmt: skip

    def shifted(self, cut: Bits) -> tuple[Bits, Bits, Bits]:
        """What remains above ``cut`` bits, which are 1 to 57; the rest as a fraction of ``2**places``, and the places."""
        beyond = cut > LOW
        sticky = ((self.low & 7) != 0).to(self.low.dtype)
        high = torch.where(beyond, self.high >> 3, self.high)
        low = torch.where(beyond, (self.high & 7) << (LOW - 3) | self.low >> 3 | sticky, self.low)
        places = torch.where(beyond, cut - 3, cut).clamp(1, LOW)
        kept = (high << (LOW - places)) + (low >> places)
        return kept, low & ((torch.ones_like(low) << places) - 1), places


def _multiplied(a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """The upper and lower half of a product of two integers of 53 bits."""
    ones = low_ones(_HALF, 64)
    a_high, a_low, b_high, b_low = a >> _HALF, a & ones, b >> _HALF, b & ones
    lowest = a_low * b_low
    middle = a_high * b_low + a_low * b_high + (lowest >> _HALF)
    return a_high * b_high + (middle >> _HALF), (lowest & ones) | (middle & ones) << _HALF


def _multiplied_whole(a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """The same for ``a`` of 64 bits."""
    high, low = _multiplied((a >> 32) & low_ones(32, 64), b)
    high, low = high << 32 | low >> (LOW - 32), (low << 32) & low_ones(LOW, 64)
    more_high, more_low = _multiplied(a & low_ones(32, 64), b)
    low = low + more_low
    return high + more_high + (low >> LOW), low & low_ones(LOW, 64)


def product(number: Number, scale: Number) -> Product:
    """Of int64 numbers: exact, and NaN where the scale is not finite."""
    b = normalized(scale, 52)
    if number.whole is not None:
        high, low = _multiplied_whole(number.whole, b.significand)
        exponent = b.exponent
    else:
        a = normalized(number, 52)
        high, low = _multiplied(a.significand, b.significand)
        exponent = a.exponent + b.exponent
    is_zero = (high == 0) & (low == 0)
    exponent = torch.where(is_zero, torch.zeros_like(high), exponent)
    none = torch.zeros_like(is_zero)
    infinite = none if number.infinite is None else number.infinite
    nan = none if number.nan is None else number.nan
    negative = number.negative ^ scale.negative
    made = infinite & (scale.significand == 0)  # infinity times zero: NaN without sign or payload
    for given in (scale.nan, scale.infinite):
        made = made if given is None else made | given
    made = made & ~nan
    negative = torch.where(nan, number.negative, negative) & ~made
    payload = None if number.payload is None else torch.where(made, torch.zeros_like(number.payload), number.payload)
    top = torch.where(high == 0, highest_bit(low), highest_bit(high) + LOW)
    return Product(negative, high, low, exponent, top, infinite & ~made, nan | made, payload, number.payload_bits)
