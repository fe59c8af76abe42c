# SPDX-License-Identifier: Apache-2.0
"""The types of NumPy and ml_dtypes by their names, and elements under 8 bits packed or one a byte."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from .. import _core
from .._errors import UnsupportedError

if TYPE_CHECKING:  # numpy.typing takes a millisecond
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
else:
    Array = np.ndarray

TEXT_KINDS = "UTSO"  # fixed-width and variable-width strings, bytes, objects


def _numpy_type(name: str) -> np.dtype[Any] | None:
    """NumPy's or ml_dtypes' type; None where an older ml_dtypes lacks it."""
    scalar_type = bool if name == "bool" else getattr(np, name, None) or getattr(ml_dtypes, name, None)
    return None if scalar_type is None else np.dtype(scalar_type)


_NUMPY_TYPE = {
    row["name"]: found
    for row in _core.dtypes()
    if row["name"] != "string" and (found := _numpy_type(row["name"])) is not None
}
NAME_OF_TYPE: dict[np.dtype[Any], str] = {dtype: name for name, dtype in _NUMPY_TYPE.items()}


def numpy_type(name: str) -> np.dtype[Any]:
    """NumPy's (or ml_dtypes') dtype of a canonical name."""
    found = _NUMPY_TYPE.get(name)
    if found is None:
        raise TypeError(
            f"NumPy and the installed ml_dtypes have no {name}; pass packed=True for its codes as uint8, or upgrade "
            "ml_dtypes if a newer release has it"
        )
    return found


def has_codes_only(name: str) -> bool:
    """Reports whether arrays of the type are arrays of its codes, of 8 bits, as NumPy and ml_dtypes lack it."""
    return name != "string" and not is_packable(name) and name not in _NUMPY_TYPE


def packed_type(name: str) -> np.dtype[Any]:
    """The type of an array that ``packed=True`` makes: codes, or whole elements."""
    return np.dtype(np.uint8) if is_packable(name) or has_codes_only(name) else numpy_type(name)


def name_of(array: Array) -> str:
    """Canonical name of an array's type. TypeError for types that are not castable."""
    if array.dtype.kind in TEXT_KINDS:
        return "string"
    name = NAME_OF_TYPE.get(array.dtype.newbyteorder("="))
    if name is not None:
        return name
    known = _core.dtype_name(array.dtype)  # TypeError, with the reason
    raise UnsupportedError(f"{known} can be promoted but not cast")


def is_packable(name: str) -> bool:
    return name != "string" and _core.bit_width(name) < 8


def packed_bytes(count: int, name: str) -> int:
    return (count * _core.bit_width(name) + 7) // 8


def _places(bits: int) -> Iterator[tuple[int, int, int]]:
    """Number, byte and shift of each of eight codes, which together take ``bits`` bytes."""
    return ((j, j * bits // 8, j * bits % 8) for j in range(8))


def pack(array: Array, name: str) -> Array:
    """One element per byte to packed bytes, low bits first. Shape ``(ceil(size * bits / 8),)``, uint8."""
    bits = _core.bit_width(name)
    groups = np.zeros((-(-array.size // 8), bits), np.uint8)
    codes = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    for j, byte, shift in _places(bits):
        part = codes[j::8]
        groups[: part.size, byte] |= part << shift
        if shift + bits > 8:
            groups[: part.size, byte + 1] |= part >> (8 - shift)
    return groups.reshape(-1)[: packed_bytes(array.size, name)]


def unpack(packed: Array, name: str, shape: tuple[int, ...]) -> Array:
    """Packed bytes to an ml_dtypes array of one element per byte."""
    bits = _core.bit_width(name)
    groups = np.zeros((-(-packed.size // bits), bits), np.uint8)
    groups.reshape(-1)[: packed.size] = packed
    codes = np.empty(groups.shape[0] * 8, np.uint8)
    for j, byte, shift in _places(bits):
        part = groups[:, byte] >> shift
        if shift + bits > 8:
            part = part | groups[:, byte + 1] << (8 - shift)
        codes[j::8] = part & ((1 << bits) - 1)
    return codes[: math.prod(shape)].reshape(shape).view(numpy_type(name))
