# SPDX-License-Identifier: Apache-2.0
"""The codec ``cast_value`` of zarr-python 3."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
from zarr.abc.codec import ArrayArrayCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import NDBuffer
from zarr.core.common import parse_named_configuration
from zarr.core.dtype import ZDType, get_data_type_from_json

from .._errors import CastError
from ._cast_value import cast_array, check_words, facts_of

# Names of the data types that zarr-python lacks, which are ml_dtypes'.
_OTHER_TYPES = (
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int2", "int4", "uint2",
    "uint4",
)  # fmt: skip


def _number(dtype: np.dtype[Any], value: Any) -> Any:
    """A number as JSON has it: a number, "NaN", "Infinity", "-Infinity", or the bits in hexadecimal."""
    if isinstance(value, str) and value.startswith("0x"):
        bits = int(value, 16)
        return np.frombuffer(bits.to_bytes(dtype.itemsize, sys.byteorder), dtype.newbyteorder("="))[0]
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.generic)):
        raise TypeError(f"{value!r} is no number")
    return value


@dataclass(frozen=True)
class _OtherType(ZDType[Any, Any]):
    """A data type of ml_dtypes, for what a codec makes of an array of another type."""

    dtype_cls: ClassVar[type[np.dtype[Any]]] = np.dtype
    name: str = "bfloat16"

    @property
    def item_size(self) -> int:
        return self.to_native_dtype().itemsize

    @classmethod
    def from_native_dtype(cls, dtype: np.dtype[Any]) -> _OtherType:
        return cls(dtype.name)

    def to_native_dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.name))
        return dtype

    @classmethod
    def _from_json_v2(cls, data: Any) -> _OtherType:
        raise CastError("Zarr 2 has no types of ml_dtypes")

    @classmethod
    def _from_json_v3(cls, data: Any) -> _OtherType:
        return cls(str(data))

    def to_json(self, zarr_format: Any) -> Any:
        return self.name

    def _check_scalar(self, data: object) -> bool:
        return isinstance(data, (int, float, np.generic))

    def cast_scalar(self, data: object) -> Any:
        return self.to_native_dtype().type(data)

    def default_scalar(self) -> Any:
        return self.cast_scalar(0)

    def from_json_scalar(self, data: Any, *, zarr_format: Any) -> Any:
        return self.cast_scalar(_number(self.to_native_dtype(), data))

    def to_json_scalar(self, data: object, *, zarr_format: Any) -> Any:
        number = float(self.cast_scalar(data))
        if number != number:
            return "NaN"
        return number if abs(number) != float("inf") else "Infinity" if number > 0 else "-Infinity"


def _data_type(data_type: Any) -> ZDType[Any, Any]:
    if isinstance(data_type, ZDType):
        return data_type
    if not isinstance(data_type, (str, Mapping)):
        raise CastError(f"data_type is the name of a type, not {data_type!r}")
    if data_type in _OTHER_TYPES:
        return _OtherType(str(data_type))
    return get_data_type_from_json(data_type, zarr_format=3)


def _check_map(scalar_map: Any) -> None:
    if not isinstance(scalar_map, Mapping):
        raise CastError(f"scalar_map has encode and decode, not {scalar_map!r}")
    if unknown := set(scalar_map) - {"encode", "decode"}:
        raise CastError(f"scalar_map has encode and decode, not {', '.join(sorted(map(str, unknown)))}")
    for direction, pairs in scalar_map.items():
        for pair in pairs if isinstance(pairs, (list, tuple)) else [pairs]:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise CastError(f"{direction} of scalar_map is a list of pairs [from, to], not {pair!r}")


@dataclass(frozen=True)
class CastValue(ArrayArrayCodec):
    """Zarr's codec ``cast_value``: chunks are stored as numbers of another type.

    Args:
        data_type: the name of the stored type: one of zarr's integers and floats, or ``bfloat16``, the ``float8``,
            ``float6`` and ``float4`` types, ``int4``, ``uint4``, ``int2`` and ``uint2``.
        rounding: ``"nearest-even"``, ``"towards-zero"``, ``"towards-positive"``, ``"towards-negative"`` or
            ``"nearest-away"``.
        out_of_range: ``None`` is an error; ``"clamp"``; ``"wrap"``, of integers.
        scalar_map: ``{"encode": [[from, to], ...], "decode": [...]}``: numbers that become others, before all else. NaN
            and infinities are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, or their bits as ``"0x7fc00000"``.

    Examples:
        >>> import zarr, tensorcast.zarr
        >>> codec = tensorcast.zarr.CastValue(data_type="int16", rounding="nearest-even")
        >>> array = zarr.create_array({}, shape=2, dtype="float32", filters=[codec])
        >>> array[:] = np.float32([1.5, 2.4])
        >>> array[:]
        array([2., 2.], dtype=float32)
    """

    __module__ = "tensorcast.zarr"

    is_fixed_size = True

    dtype: ZDType[Any, Any]
    rounding: str
    out_of_range: str | None
    scalar_map: dict[str, Any] | None

    def __init__(
        self,
        *,
        data_type: Any,
        rounding: str = "nearest-even",
        out_of_range: str | None = None,
        scalar_map: dict[str, Any] | None = None,
    ) -> None:
        check_words(rounding, out_of_range)
        if scalar_map is not None:
            _check_map(scalar_map)
        object.__setattr__(self, "dtype", _data_type(data_type))
        object.__setattr__(self, "rounding", rounding)
        object.__setattr__(self, "out_of_range", out_of_range)
        object.__setattr__(self, "scalar_map", scalar_map)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CastValue:
        _, parsed = parse_named_configuration(data, "cast_value", require_configuration=True)
        configuration = parsed or {}
        unknown = set(configuration) - {"data_type", "rounding", "out_of_range", "scalar_map"}
        if unknown:
            raise CastError(f"cast_value has no {', '.join(sorted(unknown))}")
        return cls(**configuration)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        configuration: dict[str, Any] = {"data_type": self.dtype.to_json(zarr_format=3)}
        if self.rounding != "nearest-even":
            configuration["rounding"] = self.rounding
        if self.out_of_range is not None:
            configuration["out_of_range"] = self.out_of_range
        if self.scalar_map is not None:
            configuration["scalar_map"] = self.scalar_map
        return {"name": "cast_value", "configuration": configuration}

    def validate(self, *, shape: Any, dtype: ZDType[Any, Any], chunk_grid: Any) -> None:
        self._check_types(dtype)

    def _check_types(self, dtype: ZDType[Any, Any]) -> None:
        for which, native in (("array", dtype.to_native_dtype()), ("data_type", self.dtype.to_native_dtype())):
            if native.kind not in "iuf" and native.name not in _OTHER_TYPES:
                raise CastError(f"cast_value is of integer and floating-point types, and the {which} is {native}")
        if self.out_of_range == "wrap" and not facts_of(self.dtype.to_native_dtype()).is_integer:
            raise CastError("out_of_range wrap is of integers, and data_type is none")

    def _entries(self, direction: str, source: ZDType[Any, Any], target: ZDType[Any, Any]) -> list[Any] | None:
        pairs: Iterable[Any] = (self.scalar_map or {}).get(direction, ())
        from_, to = source.to_native_dtype(), target.to_native_dtype()
        entries = []
        for pair in pairs:
            try:
                entries.append((_number(from_, pair[0]), _number(to, pair[1])))
            except (OverflowError, TypeError, ValueError):
                raise CastError(f"{direction} of scalar_map has no numbers of {from_} and {to} in {pair!r}") from None
        return entries or None

    def _cast(self, direction: str, x: Any, source: ZDType[Any, Any], target: ZDType[Any, Any]) -> Any:
        # A stored integer that wraps has come from an integer: back, it is a number of any type's.
        out_of_range = self.out_of_range
        if out_of_range == "wrap" and not facts_of(target.to_native_dtype()).is_integer:
            out_of_range = None
        return cast_array(
            np.asarray(x),
            target_dtype=target.to_native_dtype(),
            rounding_mode=self.rounding,
            out_of_range_mode=out_of_range,
            scalar_map_entries=self._entries(direction, source, target),
        )

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> CastValue:
        self.resolve_metadata(array_spec)  # when the array is made, so that a fill value that is lost is found then
        return self

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        source = chunk_spec.dtype
        self._check_types(source)
        self._entries("encode", source, self.dtype), self._entries("decode", self.dtype, source)
        fill = np.array([chunk_spec.fill_value], source.to_native_dtype())
        try:
            stored = self._cast("encode", fill, source, self.dtype)
            back = self._cast("decode", stored, self.dtype, source)
        except CastError as error:
            raise CastError(f"the fill value {fill[0]} does not survive the codec: {error}") from error
        if not (back == fill).all() and not ((fill != fill) & (back != back)).all():
            raise CastError(f"the fill value {fill[0]} does not survive the codec: it comes back as {back[0]}")
        return replace(chunk_spec, dtype=self.dtype, fill_value=stored[0])

    def _encode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        cast = self._cast("encode", chunk_array.as_ndarray_like(), chunk_spec.dtype, self.dtype)
        return chunk_array.__class__.from_ndarray_like(cast)

    def _decode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        cast = self._cast("decode", chunk_array.as_ndarray_like(), self.dtype, chunk_spec.dtype)
        return chunk_array.__class__.from_ndarray_like(cast)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._encode_sync(chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_data, chunk_spec)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        size: int = chunk_spec.dtype.to_native_dtype().itemsize
        stored: int = self.dtype.to_native_dtype().itemsize
        return input_byte_length // size * stored
