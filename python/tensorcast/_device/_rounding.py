# SPDX-License-Identifier: Apache-2.0
"""Rounding: the one place that knows how a part that is cut off changes what is kept."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

import torch

Rule = Literal[
    "nearest_even", "nearest_away", "toward_zero", "away_from_zero", "toward_positive", "toward_negative", "to_odd", "stochastic"
]
Bits: TypeAlias = "torch.Tensor"  # int32 or int64
Flags: TypeAlias = "torch.Tensor"
Shift: TypeAlias = "torch.Tensor | int"

_RANDOM_BITS = 32
_MOST = 62  # bits that go at a time, of int64


@dataclasses.dataclass(frozen=True)
class Rounding:
    """A word is added to the magnitude below the last bit kept, then the low bits are cut off."""

    rule: Rule
    seed: int = 0
    random: Bits | None = None  # of stochastic rounding: a word below 2**32 for each element

    def drawn_for(self, codes: Bits) -> Rounding:
        """The same with the random words of the elements of a tensor, of int64."""
        if self.rule != "stochastic":
            return self
        return dataclasses.replace(self, random=random_words(self.seed, codes))

    def word(self, cut: Shift, last_bit: Bits, negative: Flags | None) -> Shift:
        """What is added. ``cut``: the number of bits that go, at least 1; ``last_bit``: the lowest that is kept.
        ``negative``: the signs; ``None``: there are none."""
        if self.rule == "nearest_even":
            return _power(cut - 1, last_bit) - 1 + last_bit
        if self.rule == "nearest_away":
            return _power(cut - 1, last_bit)
        if self.rule == "away_from_zero":
            return _power(cut, last_bit) - 1
        if self.rule == "to_odd":
            return (_power(cut, last_bit) - 1) * (1 - last_bit)
        if self.rule in ("toward_positive", "toward_negative"):
            up, wants_negative = _power(cut, last_bit) - 1, self.rule == "toward_negative"
            if negative is None:
                return 0 if wants_negative else up
            return torch.where(negative if wants_negative else ~negative, up, 0)
        if self.random is not None:  # rounds up if it and the highest 32 bits that go make 2**32 or more
            places = torch.as_tensor(cut, device=last_bit.device)
            few = self.random >> (_RANDOM_BITS - places).clamp(min=0)
            return torch.where(places <= _RANDOM_BITS, few, self.random << (places - _RANDOM_BITS).clamp(min=0))
        return 0

    def shifted(self, magnitude: Bits, cut: Bits, most: Shift, negative: Flags | None) -> Bits:
        """``magnitude / 2**cut``, rounded. The highest two bits of the magnitude's type are free. ``most``: if so many bits
        go, the rest is less than a half."""
        if self.random is not None:
            magnitude, cut = magnitude >> (cut - _MOST).clamp(0, 63), cut.clamp(max=_MOST)
        else:
            cut = torch.minimum(cut, torch.zeros_like(cut) + most)
        kept = magnitude >> cut
        return (magnitude + self.word(cut, kept & 1, negative)) >> cut

    def carry(self, rest: Bits, cut: Shift, last_bit: Bits, negative: Flags | None) -> Bits:
        """1 if ``rest``, below ``2**cut``, rounds up; else 0."""
        return (rest + self.word(cut, last_bit, negative)) >> cut


def _power(exponent: Shift, like: Bits) -> Shift:
    return 1 << exponent if isinstance(exponent, int) else torch.ones_like(like) << exponent


_LOW = 0xFFFFFFFF


def _product(words: Bits, factor: int) -> tuple[Bits, Bits]:
    """The upper and lower 32 bits of products, without an overflow of int64."""
    upper, lower = words * (factor >> 16), words * (factor & 0xFFFF)
    upper = upper + (lower >> 16)
    return upper >> 16, (upper & 0xFFFF) << 16 | lower & 0xFFFF


def random_words(seed: int, like: torch.Tensor) -> Bits:
    """Those of rule D16, of the elements of a tensor in C order: Philox4x32-10 by their places."""
    blocks = torch.arange((like.numel() + 3) // 4, dtype=torch.int64, device=like.device)
    zero = torch.zeros_like(blocks)
    words = [blocks & _LOW, blocks >> 32, zero, zero]
    keys = [seed & _LOW, seed >> 32 & _LOW]
    for _ in range(10):
        (high_0, low_0), (high_1, low_1) = _product(words[0], 0xD2511F53), _product(words[2], 0xCD9E8D57)
        words = [high_1 ^ words[1] ^ keys[0], low_1, high_0 ^ words[3] ^ keys[1], low_0]
        keys = [(keys[0] + 0x9E3779B9) & _LOW, (keys[1] + 0xBB67AE85) & _LOW]
    return torch.stack(words, -1).flatten()[: like.numel()].reshape(like.shape)


def rounding_to(is_power_of_two: bool, is_integer: bool, options: dict[str, object]) -> Rounding:
    """The rounding that the options ask for; integers and powers of two have their own."""
    word = options.get("rounding", "auto")
    usual: Rule = "toward_zero" if is_integer else "nearest_even"
    if is_power_of_two:
        rules: dict[object, Rule] = {"up": "away_from_zero", "down": "toward_zero", "nearest": "nearest_away"}
        usual = rules[options.get("round_mode", "up")]
    seed = options.get("seed", 0)
    return Rounding(usual if word == "auto" else word, seed if isinstance(seed, int) else 0)  # type: ignore[arg-type]
