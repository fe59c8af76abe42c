# SPDX-License-Identifier: Apache-2.0
"""Zarr's ``cast_value`` of NumPy arrays, without zarr."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._core import cast as _cast
from .._core import cast_value as _cast_plain
from .._core import dtype_name as _name
from .._errors import CastError

_ROUNDINGS = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
_RANGES = (None, "clamp", "wrap")


class TypeFacts(NamedTuple):
    is_integer: bool
    has_infinity: bool
    first_beyond: float  # of types with infinity: the number that follows the largest


@cache
def facts_of(dtype: np.dtype[Any]) -> TypeFacts:
    import ml_dtypes

    types: Any = ml_dtypes  # whose functions are not annotated
    try:
        types.iinfo(dtype)
        return TypeFacts(True, False, 0.0)
    except ValueError:
        pass
    has_infinity = bool(np.isinf(np.float32(np.inf).astype(dtype).astype(np.float32)))
    exponent = int(np.frexp(np.float64(types.finfo(dtype).max))[1])
    return TypeFacts(False, has_infinity, 2.0**exponent if exponent < 1024 else float("inf"))


def check_words(rounding: Any, out_of_range: Any) -> None:
    if rounding not in _ROUNDINGS:
        raise CastError(f"rounding must be one of {', '.join(_ROUNDINGS)}, not {rounding!r}")
    if out_of_range not in _RANGES:
        raise CastError(f"out_of_range must be clamp or wrap, not {out_of_range!r}")


def _equal_to(x: npt.NDArray[Any], key: Any) -> npt.NDArray[np.bool_]:
    """Where ``x`` is exactly ``key``; NaN is equal to NaN."""
    if isinstance(key, np.generic):
        key = key.item()
    if x.dtype.kind in "iu":  # those of ml_dtypes are exact as float64
        limits = np.iinfo(x.dtype)
        is_whole = key == key and key not in (float("inf"), float("-inf")) and key == int(key)
        is_there = is_whole and limits.min <= int(key) <= limits.max
        return x == x.dtype.type(int(key)) if is_there else np.zeros(x.shape, np.bool_)
    with np.errstate(invalid="ignore"):  # ml_dtypes' NaNs
        if key != key:
            found: npt.NDArray[np.bool_] = np.isnan(x)
            return found
        if isinstance(key, int) and int(float(key)) != key:
            return np.zeros(x.shape, np.bool_)
        return np.asarray(x.astype(np.float64, copy=False) == float(key), np.bool_)


def _options(facts: TypeFacts, rounding: str, out_of_range: str | None) -> dict[str, Any]:
    """The options of the cast whose range is the one of Zarr's text; infinity comes later, by ``_to_infinity``."""
    common = {"rounding": rounding, "invalid": "error"}
    if out_of_range is None:
        return {**common, "out_of_range": "error", "saturate": not facts.has_infinity}
    if facts.has_infinity:
        return {**common, "saturate": False}
    return {**common, "out_of_range": "saturate" if out_of_range == "clamp" else "wrap"}


def _check_infinity(x: npt.NDArray[Any], to: str, facts: TypeFacts) -> None:
    """A float type without infinity takes none, and ``clamp`` is of finite numbers."""
    if facts.is_integer or facts.has_infinity or facts_of(x.dtype).is_integer:
        return
    infinite = np.flatnonzero(np.isinf(x))
    if infinite.size:
        raise CastError(f"element {infinite[0]}: {x.reshape(-1)[infinite[0]]} does not fit {to}", code="out_of_range")


def _to_infinity(x: npt.NDArray[Any], result: npt.NDArray[Any], first_beyond: float, rounding: str) -> None:
    """Zarr's ``clamp`` maps to infinity what is out of range, also by a rounding that leads to the largest number."""
    if rounding in ("nearest-even", "nearest-away") or first_beyond == float("inf"):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        wide = x if x.dtype.kind in "iu" else x.astype(np.float64)
        if rounding != "towards-positive":
            result[wide >= first_beyond] = np.inf
        if rounding != "towards-negative":
            result[wide <= -first_beyond] = -np.inf


class Way(NamedTuple):
    """How arrays become those of a type: by a cast with these options, and what is known of it for infinity."""

    dtype: np.dtype[Any]
    name: str
    facts: TypeFacts
    options: dict[str, Any]


@cache
def _known_way(target: Any, rounding: str, out_of_range: str | None) -> Way:
    check_words(rounding, out_of_range)
    dtype = _native(target) if isinstance(target, str) else np.dtype(target)
    name, facts = _name(dtype), facts_of(dtype)
    if out_of_range == "wrap" and not facts.is_integer:
        raise CastError(f"out_of_range wrap is of integers, and {name} is none")
    return Way(dtype, name, facts, _options(facts, rounding, out_of_range))


def _way_to(target: Any, rounding: Any, out_of_range: Any) -> Way:
    try:
        return _known_way(target, rounding, out_of_range)
    except TypeError:  # of what has no hash
        check_words(rounding, out_of_range)
        raise


@lru_cache(1024, typed=True)
def _cast_number(
    value: Any, sign: float, dtype: np.dtype[Any], rounding: str, out_of_range: str | None
) -> npt.NDArray[Any]:
    """The result of an entry. ``sign`` tells -0.0 from 0.0, which are equal."""
    wide = np.asarray(value, np.int64 if isinstance(value, int) and abs(value) < 2**63 else None)
    if wide.dtype.kind == "O":
        raise CastError(f"{value!r} is no number for {_name(dtype)}")
    target = np.empty((), dtype)
    cast_array_into(wide, target, rounding_mode=rounding, out_of_range_mode=out_of_range)
    return target


def cast_array_into(
    arr: npt.NDArray[Any],
    out: npt.NDArray[Any],
    *,
    rounding_mode: str,
    out_of_range_mode: str | None = None,
    scalar_map_entries: Mapping[Any, Any] | Iterable[Any] | None = None,
) -> None:
    """Writes ``arr`` as numbers of the type of ``out``, which has its shape. As :func:`cast_array`.

    Examples:
        >>> import tensorcast.zarr
        >>> out = np.empty(2, np.int8)
        >>> tensorcast.zarr.cast_array_into(np.float32([1.5, -2.5]), out, rounding_mode="towards-zero")
        >>> out
        array([ 1, -2], dtype=int8)
    """
    way = _way_to(out.dtype, rounding_mode, out_of_range_mode)
    if arr.shape != out.shape:
        raise CastError(f"arr has the shape {arr.shape}, and out {out.shape}")
    entries = scalar_map_entries or ()
    source = np.asarray(arr)
    mapped: list[tuple[npt.NDArray[np.intp], Any]] = []
    if entries:
        unmapped, source = source.reshape(-1), np.array(source, order="C")
        free = source.reshape(-1)
        for key, value in entries.items() if isinstance(entries, Mapping) else entries:
            (places,) = _equal_to(unmapped, key).nonzero()
            if places.size:
                mapped.append((places, value))
                free[places] = 1  # which every type has
    if source.dtype == way.dtype:
        out[...] = source
    else:
        if out_of_range_mode is not None:
            _check_infinity(source, way.name, way.facts)
        _cast(source, way.name, out=out, **way.options)
        if out_of_range_mode == "clamp" and way.facts.has_infinity:
            _to_infinity(source, out, way.facts.first_beyond, rounding_mode)
    results: Any = out.reshape(-1) if out.flags.c_contiguous else out.flat
    for places, value in reversed(mapped):  # the first that is equal is written last
        if isinstance(value, np.generic):
            value = value.item()
        sign = math.copysign(1.0, value) if isinstance(value, float) else 1.0
        results[places] = _cast_number(value, sign, out.dtype, rounding_mode, out_of_range_mode)


def cast_array(
    arr: npt.NDArray[Any],
    *,
    target_dtype: Any,
    rounding_mode: str,
    out_of_range_mode: str | None = None,
    scalar_map_entries: Mapping[Any, Any] | Iterable[Any] | None = None,
) -> npt.NDArray[Any]:
    """Converts as Zarr's codec ``cast_value`` does, with the signature of ``cast_value_rs``.

    Args:
        arr: an array of integers or floating-point numbers, ml_dtypes' included.
        target_dtype: a type or its name.
        rounding_mode: ``"nearest-even"``, ``"towards-zero"``, ``"towards-positive"``, ``"towards-negative"`` or
            ``"nearest-away"``. Numbers are rounded before their range is looked at.
        out_of_range_mode: ``None``: an error; ``"clamp"``: the lowest or largest integer, or infinity;
            ``"wrap"``: the low bits, of integers. NaN and infinity to integers are errors unless they are mapped.
        scalar_map_entries: pairs of numbers, or a mapping, of which the first that is exactly equal gives the result,
            before all else.

    Examples:
        >>> import tensorcast.zarr
        >>> tensorcast.zarr.cast_array(
        ...     np.float32([1.5, 300]), target_dtype="int8", rounding_mode="nearest-even", out_of_range_mode="clamp"
        ... )
        array([  2, 127], dtype=int8)
    """
    made = _cast_plain(arr, target_dtype, rounding_mode, out_of_range_mode, scalar_map_entries)
    if made is not None:
        return made
    way = _way_to(target_dtype, rounding_mode, out_of_range_mode)
    out = np.empty(np.shape(arr), way.dtype)
    cast_array_into(
        arr,
        out,
        rounding_mode=rounding_mode,
        out_of_range_mode=out_of_range_mode,
        scalar_map_entries=scalar_map_entries,
    )
    return out


def _native(name: str) -> np.dtype[Any]:
    """The NumPy type of a name, ml_dtypes' included."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
