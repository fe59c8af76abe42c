# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors in files, of which only the elements that are asked for are read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._cast import _numpy_types, _tensors
from ._safe_open import DTYPE_NAMES

if TYPE_CHECKING:
    from ._files import TensorFile

_Kind = TypeVar("_Kind")


class TensorSlice(Generic[_Kind]):
    """A tensor of an open file: ``file.get_slice("embed")[:100]`` reads its first 100 rows alone.

    Indices are NumPy's. The rows between the first and the last one that the leading indices choose are read.
    """

    __module__ = "tensorcast"

    def __init__(self, file: TensorFile[_Kind], name: str) -> None:
        self._file, self._name = file, name
        row = file._row(name)
        self._dtype, self._shape = row.dtype, row.shape

    @property
    def dtype(self) -> str:
        """The name of the type."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def get_shape(self) -> list[int]:
        """The shape, as safetensors gives it."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """The name of the type as safetensors has it, such as ``"BF16"``; ours where it has none."""
        return DTYPE_NAMES.get(self._dtype, self._dtype)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("a tensor without dimensions has no length")
        return self._shape[0]

    def __getitem__(self, key: Any) -> _Kind:
        """Reads a part.

        Raises:
            IndexError: an index out of range, or more indices than dimensions. CastError: as of ``file[name]``.
        """
        if self._dtype == "string" or any(isinstance(each, list) for each in (key if isinstance(key, tuple) else [key])):
            whole: Any = self._file.get_tensor(self._name)
            return whole[key]  # type: ignore[no-any-return]
        first, shape, rest = self._range(key if isinstance(key, tuple) else (key,))
        count = math.prod(shape)
        before = first % 8 if _numpy_types.is_packable(self._dtype) else 0
        core, index = self._file._place(self._name)
        flat = _tensors.from_core(core.read_range(index, first - before, count + before), False)
        part = flat[before:].reshape(shape)[rest]
        return self._file._as_kind(part)

    def _range(self, key: tuple[Any, ...]) -> tuple[int, tuple[int, ...], Any]:
        """The first element to read, the shape of what follows it, and the index into that."""
        first, shape, rest = 0, self._shape, list(key)
        while rest and shape and type(rest[0]) is int:
            if not -shape[0] <= rest[0] < shape[0]:
                raise IndexError(f"index {rest[0]} is out of range: the dimension has {shape[0]} rows")
            first += rest.pop(0) % shape[0] * math.prod(shape[1:])
            shape = shape[1:]
        if rest and shape and isinstance(rest[0], slice):
            rows = range(shape[0])[rest[0]]
            low, high = (min(rows), max(rows) + 1) if rows else (0, 0)
            first += low * math.prod(shape[1:])
            shape = (high - low, *shape[1:])
            stop = rows.stop - low
            rest[0] = slice(rows.start - low, None if stop < 0 else stop, rows.step) if rows else slice(0, 0)
        return first, shape, tuple(rest)

    def __repr__(self) -> str:
        return f"<TensorSlice {self._name!r}: {self._dtype}, shape {self._shape}>"
