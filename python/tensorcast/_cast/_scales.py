# SPDX-License-Identifier: Apache-2.0
"""Scales that are measured on the data."""

from __future__ import annotations

import fractions
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .. import _core
from . import _numpy_types
from .._core import cast
from .._errors import CastError
from .._options import DTypeLike


@overload
def absmax_scale(x: Any, to: DTypeLike, *, axis: None = None) -> float: ...
@overload
def absmax_scale(x: Any, to: DTypeLike, *, axis: int | Sequence[int]) -> npt.NDArray[np.float64]: ...
def absmax_scale(x: Any, to: DTypeLike, *, axis: int | Sequence[int] | None = None) -> float | npt.NDArray[np.float64]:
    """The ``scale`` with which the largest magnitude of ``x`` becomes the largest number of ``to``.

    Args:
        x: as of :func:`cast`, of numbers.
        to: a type with a largest number; its lowest number is not used where it is larger, as -128 of int8.
        axis: the dimensions that have a scale for each index: 0 for a scale for each row, or output channel. ``None``:
            one scale for all elements.

    Returns:
        ``largest / max(abs(x))``, rounded up, so that no quotient is truncated to the number below; 1 where all elements
        are zero, or there are none. A number, or with ``axis`` a float64 array that broadcasts to ``x``.

    Raises:
        CastError: NaN or infinity in ``x``, negative numbers for an unsigned type, no such dimension.

    Examples:
        >>> scale = tc.absmax_scale(weight, "float8_e4m3fn", axis=0)
        >>> codes = tc.cast(weight, "float8_e4m3fn", scale=scale)  # one rounding, of the exact products
        >>> float(codes.max())
        448.0
        >>> back = tc.cast(codes, "float32", scale=1 / scale)
    """
    name = _core.dtype_name(to)
    row = next(row for row in _core.dtypes() if row["name"] == name)
    if name in ("bool", "string", "float8_e8m0fnu"):
        raise CastError(f"{name} has no largest number to scale to")
    detached = x.detach() if hasattr(x, "detach") else x
    numbers = detached if isinstance(detached, np.ndarray) and detached.dtype.kind in "fiu" else _as_floats(detached)
    kept = _kept_axes(axis, numbers.ndim)
    others = tuple(i for i in range(numbers.ndim) if i not in kept)
    high = np.max(numbers, axis=others, initial=0, keepdims=True).astype(np.float64)
    low = np.min(numbers, axis=others, initial=0, keepdims=True).astype(np.float64)
    if not (np.isfinite(high).all() and np.isfinite(low).all()):
        raise CastError("NaN and infinity have no scale; replace them first, as by numpy.nan_to_num(x)")
    if row["lowest"] == 0 and (low < 0).any():
        raise CastError(f"x has negative numbers, which {name} has not")
    largest = float(row["largest"])
    scales = np.array([_scale(largest, each) for each in np.maximum(high, -low).ravel().tolist()], np.float64)
    return float(scales[0]) if axis is None else scales.reshape(high.shape)


def _as_floats(x: Any) -> npt.NDArray[Any]:
    """The elements as numbers that NumPy compares. float64 has those of all types but 64-bit integers, to half a unit."""
    floats: Any = cast(x, "float64")
    if not isinstance(floats, np.ndarray):
        from .._interop._exchange import from_dlpack

        floats = from_dlpack(floats)
    array: npt.NDArray[Any] = floats
    if array.dtype.kind not in "fiu":
        raise TypeError(f"absmax_scale() takes numbers, not {_numpy_types.name_of(array)}")
    return array


def _kept_axes(axis: int | Sequence[int] | None, rank: int) -> set[int]:
    listed = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    for each in listed:
        if not -rank <= each < rank:
            raise CastError(f"axis={axis} is not a dimension of x, which has {rank}")
    return {each % rank for each in listed}


def _scale(largest: float, magnitude: float) -> float:
    if magnitude == 0:
        return 1.0
    scale = min(largest / magnitude, float(np.finfo(np.float64).max))
    if fractions.Fraction(scale) * fractions.Fraction(magnitude) < largest:
        scale = math.nextafter(scale, math.inf)
    return scale if math.isfinite(scale) else float(np.finfo(np.float64).max)
