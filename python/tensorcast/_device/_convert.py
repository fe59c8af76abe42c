# SPDX-License-Identifier: Apache-2.0
"""Codes of one type to codes of another, on the device where they are."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeAlias

import numpy as np
import torch

from .. import _core
from .._option_list import SYNONYMS
from ._encode import Limits, limits_of, to_bool, to_float, to_integer
from ._formats import Format, engine_codes, format_of
from ._numbers import (
    WIDTH,
    Number,
    Product,
    decoded,
    decoded_integers,
    low_ones,
    normalized,
    product,
    raised,
    signed_integers,
    widened,
)
from ._rounding import Rounding, rounding_to

CARRIER = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}
Bits: TypeAlias = "torch.Tensor"
Flags: TypeAlias = "torch.Tensor"

# Opsets whose Cast saturates real numbers to 4-bit integers: rule D6 of docs/semantics.md.
_SATURATING_OPSETS = range(21, 24)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a conversion does, but for its scale."""

    from_: Format
    to: Format
    options: tuple[tuple[str, Any], ...]  # without scale and threads
    rounding: Rounding
    limits: Limits | None  # of floating-point targets
    saturates: bool  # integers
    refuses_range: bool
    refuses_invalid: bool
    refuses_inexact: bool

    @property
    def may_refuse(self) -> bool:
        return self.refuses_range or self.refuses_invalid or self.refuses_inexact

    @property
    def is_random(self) -> bool:
        return self.rounding.rule == "stochastic"


@functools.lru_cache(maxsize=1024)
def plan_of(from_name: str, to_name: str, options: tuple[tuple[str, Any], ...], is_scaled: bool) -> Plan:
    """Raises what the engine raises for types and options."""
    known = dict(options)
    _core.check_options(known)
    from_, to = format_of(from_name), format_of(to_name)
    engine_codes(np.empty(0, np.uint64), from_name, to_name, known)
    limits = limits_of(to, known) if to.family == "float" else None
    is_real = from_.family == "float" or is_scaled
    word = known.get("out_of_range", "auto")
    opset = known.get("opset", 0)
    era = to.family == "integer" and to.bits == 4 and is_real and opset in _SATURATING_OPSETS
    saturates = word == "saturate" or (word == "auto" and era)
    rounding = rounding_to(to.is_power_of_two, to.family == "integer", known)
    may_refuse = to.family != "bool"
    return Plan(from_, to, options, rounding, limits, saturates, may_refuse and word == "error",
                may_refuse and known.get("invalid") == "error", known.get("inexact") == "error")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ScaleCodes:
    """Scales as int64 codes of a floating-point type."""

    codes: Bits
    form: Format


def options_key(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options that matter here, with one spelling for each word."""
    return tuple(sorted(
        (name, SYNONYMS.get(name, {}).get(value, value)) for name, value in options.items() if name not in ("scale", "threads")
    ))  # fmt: skip


def convert(codes: Bits, plan: Plan, scale: ScaleCodes | None) -> tuple[Bits, Flags | None]:
    """Codes in integers of either width, and which elements the options refuse.

    Args:
        codes: int32 or int64, by :func:`width_for`.
        scale: broadcasts to ``codes``.
    """
    from_, to = plan.from_, plan.to
    if scale is None and from_.family != "float" and to.family == "integer":
        return _integers(codes, plan)
    number = decoded(codes, from_) if from_.family == "float" else decoded_integers(codes, from_)
    real: Number | Product = number
    rounding = plan.rounding.drawn_for(codes)
    # Random words meet bits of float64's that no Number keeps of an integer.
    is_wide = plan.is_random and to.bits == 64 and to.family == "float"
    if scale is None and is_wide and from_.bits == 64:
        scale = scale_codes(torch.ones((), dtype=torch.float32, device=codes.device), codes.device)
    if scale is not None:
        real = product(widened(number, torch.int64), decoded(scale.codes, scale.form))
    if to.family == "bool":
        made = to_bool(real)
        return made, _not_bool(real, made) if plan.refuses_inexact else None
    if to.family == "integer":
        made, beyond, lost = to_integer(real, to, rounding, plan.saturates, plan.refuses_inexact)
        refused = beyond if plan.refuses_range else _nonfinite(real) if plan.refuses_invalid else None
        return made, _either(refused, lost)
    if isinstance(real, Product):
        real = real if is_wide else real.rounded_to_odd()
    elif to.is_power_of_two or to.min_exponent < from_.min_exponent:
        real = normalized(real)
    elif real.top <= to.mantissa_bits:
        real = raised(real, to.mantissa_bits + 1)
    assert plan.limits is not None
    made, beyond, lost = to_float(real, to, rounding, plan.limits, plan.refuses_inexact)
    if not plan.may_refuse:
        return made, None
    return made, _either(_refused(real, beyond, plan), None if lost is None else lost | _changed(real, made, to))


def _either(one: Flags | None, other: Flags | None) -> Flags | None:
    return other if one is None else one if other is None else one | other


def _changed(number: Number | Product, made: Bits, to: Format) -> Flags:
    """Where infinity, NaN or a sign became something else."""
    found = decoded(made & low_ones(to.bits, WIDTH[made.dtype]), to)
    flags = torch.zeros_like(number.negative)
    for was, now in ((number.infinite, found.infinite), (number.nan, found.nan)):
        if was is not None:
            flags = flags | (was if now is None else was & ~now)
    if not to.has_sign:
        below = number.negative & ~number.is_zero() if number.infinite is None else number.negative & (~number.is_zero() | number.infinite)
        flags = flags | (below if number.nan is None else below & ~number.nan)
    return flags


def _not_bool(number: Number | Product, made: Bits) -> Flags:
    """Where a number is neither 0 nor 1."""
    if isinstance(number, Product):
        number = number.rounded_to_odd()
    number = normalized(number)
    one = (number.significand == 1 << int(number.top)) & (number.exponent == -int(number.top)) & ~number.negative
    return _nonfinite(number) | ~(number.is_zero() | one)


def _nonfinite(number: Number | Product) -> Flags:
    flags = torch.zeros_like(number.negative)
    for others in (number.infinite, number.nan):
        flags = flags if others is None else flags | others
    return flags


def _refused(number: Number | Product, beyond: Flags, plan: Plan) -> Flags | None:
    """Where ``out_of_range`` and ``invalid`` refuse a floating-point result."""
    if not (plan.refuses_range or plan.refuses_invalid):
        return None
    refused, to = torch.zeros_like(beyond), plan.to
    if plan.refuses_range:
        refused = beyond
        if number.infinite is not None and not to.has_infinity:
            refused = refused | number.infinite
    if plan.refuses_invalid:
        if number.nan is not None and not to.has_nan:
            refused = refused | number.nan
    if not to.has_sign:  # -0 stays
        below = ~number.is_zero()
        if number.infinite is not None:
            below = below | number.infinite
        below = below & number.negative
        refused = refused | (below if number.nan is None else below & ~number.nan)
    return refused


def _integers(codes: Bits, plan: Plan) -> tuple[Bits, Flags | None]:
    """Integers and bools to integers: low bits, the nearest number, or an error."""
    from_, to = plan.from_, plan.to
    if from_.family == "bool":
        return (codes != 0).to(codes.dtype), None
    values, width = signed_integers(codes, from_), 64 if codes.dtype == torch.int64 else 32
    low = values & low_ones(to.bits, width)
    if not (plan.saturates or plan.refuses_range or plan.refuses_inexact):
        return low, None
    top = to.bits - (1 if to.has_sign else 0)
    largest = (1 << min(top, width - 1)) - 1
    lowest = -(1 << top) if to.has_sign else 0
    below = (values < lowest) if from_.has_sign else torch.zeros_like(values, dtype=torch.bool)
    if not from_.has_sign and from_.bits == width:  # a highest bit, not a sign
        above = torch.zeros_like(below) if top == width else (values < 0) | (values > largest)
    else:
        above = values > largest
    if plan.saturates:
        mask = low_ones(to.bits, width)
        low = torch.where(below, torch.full_like(low, lowest & mask if mask != -1 else lowest), low)
        low = torch.where(above, torch.full_like(low, largest), low)
    return low, (below | above) if plan.refuses_range or plan.refuses_inexact else None


def width_for(plan: Plan, is_scaled: bool) -> torch.dtype:
    """int32 where all steps fit."""
    from_, to = plan.from_, plan.to
    narrow = from_.bits <= 32 and to.bits <= 32 and not is_scaled and not plan.is_random
    if from_.family != "float" and from_.bits == 32:  # magnitudes of 32 bits
        narrow = False
    return torch.int32 if narrow else torch.int64


def unpacked(codes: Bits, form: Format, dtype: torch.dtype) -> Bits:
    """The codes of a tensor of integers, or of any type of that width, as int32 or int64, without a sign."""
    view = codes if codes.dtype == CARRIER[form.carrier_bits] else codes.view(CARRIER[form.carrier_bits])
    wide = view.to(dtype)
    if form.family == "bool" or form.bits >= (64 if dtype == torch.int64 else 32):
        return wide
    return wide & low_ones(form.bits, 64)


def cast_codes(
    codes: torch.Tensor, plan: Plan, scale: ScaleCodes | None, tables: bool
) -> tuple[torch.Tensor, Flags | None]:
    """Codes as integers of the target's width, and which elements are refused.

    Args:
        codes: a tensor of any type of the source's width.
        scale: broadcasts to ``codes``; ``None``: none.
        tables: look up sources of 16 bits and fewer, in tables that stay on the device.
    """
    from_, to = plan.from_, plan.to
    if from_.name == to.name and scale is None:
        return _copied(codes, from_), None
    if tables and from_.bits <= 16 and scale is None and not plan.may_refuse and not plan.is_random:
        index = unpacked(codes, from_, torch.int32)
        return table_of(from_.name, to.name, plan.options, codes.device)[index], None
    made, refused = convert(unpacked(codes, from_, width_for(plan, scale is not None)), plan, scale)
    return made.to(CARRIER[to.carrier_bits]), refused


def _copied(codes: torch.Tensor, form: Format) -> torch.Tensor:
    """A bit copy, without bits that an element under 8 bits has not."""
    view = codes if codes.dtype == CARRIER[form.carrier_bits] else codes.view(CARRIER[form.carrier_bits])
    return view & low_ones(form.bits, 64) if form.bits < 8 else view.clone()


_SCALE_TYPES = {torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


def scale_codes(scale: float | torch.Tensor, device: torch.device) -> ScaleCodes | None:
    """The scale as integers on the device; ``None`` for the number 1."""
    if not isinstance(scale, torch.Tensor):
        if scale == 1:
            return None
        bits = int(np.float64(scale).view(np.int64))
        return ScaleCodes(torch.full((), bits, dtype=torch.int64, device=device), format_of("float64"))
    if scale.dtype not in _SCALE_TYPES:
        raise TypeError(f"scale must be a tensor of float64, float32, float16 or bfloat16, not {scale.dtype}")
    form = format_of(_SCALE_TYPES[scale.dtype])
    here = scale.detach().view(CARRIER[form.bits])
    return ScaleCodes(unpacked(here if here.device == device else here.to(device), form, torch.int64), form)


@functools.lru_cache(maxsize=256)
def table_of(from_name: str, to_name: str, options: tuple[tuple[str, Any], ...], device: torch.device) -> torch.Tensor:
    """The engine's result for each code of a type of 16 bits or fewer."""
    count = 256 if from_name == "bool" else 1 << format_of(from_name).bits
    to = format_of(to_name)
    made = engine_codes(np.arange(count), from_name, to_name, dict(options))
    if to.bits < 8:
        made &= (1 << to.bits) - 1
    carrier = {8: np.uint8, 16: np.int16, 32: np.int32, 64: np.int64}[to.carrier_bits]
    return torch.from_numpy(made.view(carrier)).to(device)
