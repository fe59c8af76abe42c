# SPDX-License-Identifier: Apache-2.0
"""Rounding: the one place that knows how a part that is cut off changes what is kept."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

import torch

from .._errors import UnsupportedError

Rule = Literal["nearest_even", "nearest_away", "toward_zero", "away_from_zero"]
Bits: TypeAlias = "torch.Tensor"  # int32 or int64
Shift: TypeAlias = "torch.Tensor | int"


@dataclasses.dataclass(frozen=True)
class Rounding:
    """A word is added to the magnitude below the last bit kept, then the low bits are cut off."""

    rule: Rule

    def word(self, cut: Shift, last_bit: Bits) -> Shift:
        """What is added. ``cut``: the number of bits that go, at least 1; ``last_bit``: the lowest that is kept."""
        if self.rule == "nearest_even":
            return _power(cut - 1, last_bit) - 1 + last_bit
        if self.rule == "nearest_away":
            return _power(cut - 1, last_bit)
        if self.rule == "away_from_zero":
            return _power(cut, last_bit) - 1
        return 0

    def shifted(self, magnitude: Bits, cut: Shift) -> Bits:
        """``magnitude / 2**cut``, rounded. The highest two bits of the magnitude's type are free."""
        kept = magnitude >> cut
        return (magnitude + self.word(cut, kept & 1)) >> cut

    def carry(self, rest: Bits, cut: Shift, last_bit: Bits) -> Bits:
        """1 if ``rest``, below ``2**cut``, rounds up; else 0."""
        return (rest + self.word(cut, last_bit)) >> cut


def _power(exponent: Shift, like: Bits) -> Shift:
    return 1 << exponent if isinstance(exponent, int) else torch.ones_like(like) << exponent


def rounding_to(name: str, is_power_of_two: bool, is_integer: bool, options: dict[str, object]) -> Rounding:
    """The rounding that the options ask for; integers and powers of two have their own."""
    word = options.get("rounding", "auto")
    known: tuple[str, ...] = ("auto",) if is_power_of_two else ("auto", "nearest_even")
    known += ("toward_zero",) if is_integer else ()
    if word not in known:
        raise UnsupportedError(f"rounding={word} to {name} is not available on a device; cast x.cpu()")
    if is_power_of_two:
        rules: dict[object, Rule] = {"up": "away_from_zero", "down": "toward_zero", "nearest": "nearest_away"}
        return Rounding(rules[options.get("round_mode", "up")])
    if is_integer:
        return Rounding("nearest_even" if word == "nearest_even" else "toward_zero")
    return Rounding("nearest_even")
