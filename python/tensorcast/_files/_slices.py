# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors in files, of which only the elements that are asked for are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from .._cast import _tensors
from ._complex import complex_name
from ._safe_open import DTYPE_NAMES

if TYPE_CHECKING:
    from ._files import TensorFile

_Kind = TypeVar("_Kind")


def _is_plain(key: Any) -> bool:
    """Reports whether a key of an index is a number, a range or an ellipsis."""
    return isinstance(key, (int, np.integer, slice, type(Ellipsis))) and not isinstance(key, bool)


class TensorSlice(Generic[_Kind]):
    """A tensor of an open file: ``file.slice("embed")[:100, 64:]`` reads these rows and columns alone.

    Indices are NumPy's. What is between the first and the last index of each dimension is read, up to the first list or
    mask among the indices. Of a decoded weight, the codes and scales that this part needs are read, in whole blocks.

    Examples:
        >>> with tc.open("model.safetensors") as file:
        ...     rows = file.slice("embed.weight")
        ...     rows.shape, rows[:10, 64:].shape
        ((64, 256), (10, 192))
    """

    __module__ = "tensorcast"

    def __init__(self, file: TensorFile[_Kind], name: str) -> None:
        self._file, self._name = file, name
        row = file._row(name)
        self._dtype, self._shape, self._stored_type = complex_name(row) or row.dtype, row.shape, row.foreign_dtype
        self._is_read_whole = self._dtype == "string" or bool(complex_name(row))

    @property
    def dtype(self) -> str:
        """The name of the type."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def get_shape(self) -> list[int]:
        """The shape, as safetensors gives it.

        Examples:
            >>> with tc.open("model.safetensors") as file:
            ...     file.get_slice("embed.weight").get_shape()
            [64, 256]
        """
        return list(self._shape)

    def get_dtype(self) -> str:
        """The name of the type as safetensors has it, such as ``"BF16"``; ours where it has none.

        Examples:
            >>> with tc.open("model.safetensors") as file:
            ...     file.get_slice("embed.weight").get_dtype()
            'F32'
        """
        return DTYPE_NAMES.get(self._dtype, self._stored_type or self._dtype)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("a tensor without dimensions has no length")
        return self._shape[0]

    def __getitem__(self, key: Any) -> _Kind:
        """Reads a part.

        Raises:
            IndexError: an index out of range, or more indices than dimensions. CastError: as of ``file[name]``.
        """
        keys = key if isinstance(key, tuple) else (key,)
        if self._is_read_whole:
            whole: Any = self._file.get_tensor(self._name)
            return whole[key]  # type: ignore[no-any-return]
        ranges, rest = self._ranges(keys)
        core, index = self._file._place(self._name)
        part = _tensors.from_core(core.read_slice(index, ranges), False)
        return self._file._as_kind(part[rest])

    def _ranges(self, keys: tuple[Any, ...]) -> tuple[list[tuple[int, int]], tuple[Any, ...]]:
        """What to read of the first dimensions, and the index into that."""
        if sum(each is Ellipsis for each in keys) == 1 and all(_is_plain(each) for each in keys):
            at = [each is Ellipsis for each in keys].index(True)
            keys = (*keys[:at], *[slice(None)] * (len(self._shape) - len(keys) + 1), *keys[at + 1 :])
        ranges, rest = [], list(keys)
        for place, (each, size) in enumerate(zip(keys, self._shape)):
            if not _is_plain(each) or each is Ellipsis:
                break
            if isinstance(each, slice):
                rows = range(size)[each]
                low, high = (min(rows), max(rows) + 1) if rows else (0, 0)
                stop = rows.stop - low
                rest[place] = slice(rows.start - low, None if stop < 0 else stop, rows.step) if rows else slice(0, 0)
            else:
                if not -size <= each < size:
                    raise IndexError(f"index {each} is out of range: the dimension has {size} rows")
                low, high = each % size, each % size + 1
                rest[place] = 0
            ranges.append((low, high))
        return ranges, tuple(rest)

    def __repr__(self) -> str:
        return f"<TensorSlice {self._name!r}: {self._dtype}, shape {self._shape}>"
