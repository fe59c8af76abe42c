# SPDX-License-Identifier: Apache-2.0
"""The facts of each type, and what the engine makes of single numbers: the constants of the casts on devices."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core

_CODES: dict[int, type[Any]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclasses.dataclass(frozen=True)
class Format:
    """A type. Codes are the numbers of its bits; those under 8 bits are one a byte."""

    name: str
    family: Literal["float", "integer", "bool"]
    bits: int
    has_sign: bool
    mantissa_bits: int = 0
    bias: int = 0
    has_infinity: bool = False
    has_nan: bool = False
    largest_code: int = 0  # of finite numbers
    has_negative_zero: bool = False
    nan_has_payload: bool = False  # IEEE's: exponent all ones, and a mantissa that is not zero
    is_power_of_two: bool = False  # has neither zero nor mantissa

    @property
    def carrier_bits(self) -> int:
        """Of the integers that hold codes."""
        return max(8, self.bits)

    @property
    def sign_mask(self) -> int:
        return 1 << (self.bits - 1) if self.has_sign else 0

    @property
    def min_exponent(self) -> int:
        """Of the smallest normal numbers."""
        return (0 if self.is_power_of_two else 1) - self.bias

    @property
    def infinity_code(self) -> int:
        return self.largest_code + 1


def engine_codes(
    codes: npt.NDArray[Any], from_name: str, to_name: str, options: dict[str, Any] | None = None
) -> npt.NDArray[Any]:
    """What the engine makes of codes, as codes of the other type."""
    source, target = _bits_of(from_name), _bits_of(to_name)
    array = np.ascontiguousarray(codes, _CODES[max(8, source)])
    result = np.empty(array.shape, _CODES[max(8, target)])
    packed = [bits < 8 for bits in (source, target)]
    _core.cast_codes(array, from_name, packed[0], result, to_name, packed[1], False, options or {})
    return result


def engine_numbers(numbers: list[float], to_name: str, options: dict[str, Any] | None = None) -> list[int]:
    """What the engine makes of float64 numbers, as codes."""
    codes: list[int] = engine_codes(np.array(numbers, np.float64).view(np.uint64), "float64", to_name, options).tolist()
    return codes


@functools.cache
def _rows() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in _core.dtypes() if row["name"] != "string"}


def _bits_of(name: str) -> int:
    return int(_rows()[name]["bits"])


@functools.cache
def format_of(name: str) -> Format:
    if name not in _rows():
        raise TypeError(f"{name} has no codes on a device")
    row = _rows()[name]
    if row["exponent_bits"] == 0:
        family: Any = "bool" if name == "bool" else "integer"
        return Format(name, family, row["bits"], row["lowest"] < 0)
    largest, nan, negative_zero = engine_numbers([row["largest"], float("nan"), -0.0], name)
    mantissa_bits, bits = row["mantissa_bits"], row["bits"]
    has_sign = row["lowest"] < 0
    return Format(
        name, "float", bits, has_sign, mantissa_bits, row["bias"], row["has_infinity"], row["has_nan"], largest,
        has_negative_zero=has_sign and negative_zero != 0,
        nan_has_payload=row["has_infinity"] and nan & ((1 << (bits - 1)) - 1) > largest + 1,
        is_power_of_two=mantissa_bits == 0,
    )  # fmt: skip
