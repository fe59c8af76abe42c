# SPDX-License-Identifier: Apache-2.0
"""Complex numbers in files, which NumPy and PyTorch have and no cast knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core

if TYPE_CHECKING:
    from .._results import TensorInfo

_NAMES = {"C64": "complex64", "complex128": "complex128"}  # as files, and NumPy, have them


def complex_name(row: TensorInfo) -> str:
    """NumPy's name of a type of complex numbers; ``""`` for other types."""
    return _NAMES.get(row.foreign_dtype, "") if row.dtype == "undefined" else ""


class ComplexTensor:
    """Complex numbers as they are stored, in the place of a tensor of the core."""

    def __init__(self, data: _core.Tensor, row: TensorInfo) -> None:
        self.dtype, self.shape, self._data = complex_name(row), row.shape, data

    def storage(self) -> npt.NDArray[Any]:
        return self._data.storage()

    def array(self, as_torch: bool) -> Any:
        little_endian = np.dtype(self.dtype).newbyteorder("<")
        array = self.storage().view(little_endian).astype(self.dtype, copy=False).reshape(self.shape)
        if not as_torch:
            return array
        import torch

        return torch.from_numpy(array if array.flags.writeable else array.copy())


def is_complex(tensor: Any) -> bool:
    return isinstance(tensor, ComplexTensor)


def read(core: Any, index: int, row: TensorInfo) -> Any:
    """One tensor of a file: the core's, or complex numbers."""
    return ComplexTensor(core.read_bytes(index), row) if complex_name(row) else core.read(index)
