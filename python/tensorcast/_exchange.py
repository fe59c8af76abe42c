"""Tensors of other libraries, by DLPack and without copying: the result is of the library that the input came from."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from . import _core
from ._errors import CastError

_CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_CPU = (1, 0)


def is_tensor(x: Any) -> bool:
    return hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")


def on_a_device(device: Any) -> CastError:
    return CastError(f"the tensor is on a device ({device}); move it to the host first, e.g. with .cpu()")


def cast_tensor(x: Any, name: str, *, out: Any, copy: bool, report: bool, **options: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        from . import _torch

        return _torch.cast_tensor(x, name, out=out, copy=copy, report=report, **options)
    if out is not None:
        raise TypeError(f"out= is for NumPy arrays and torch tensors, not for {type(x).__name__}")
    codes, from_name, shape = _core.from_dlpack(_capsule(x))
    if not copy and name == from_name and options.get("scale", 1.0) == 1.0 and not report:
        return x
    if _core.dtype_name(codes.dtype) == from_name:
        from ._arrays import cast

        done = cast(codes, name, report=report, **options)
    else:
        done = _cast_packed(codes, from_name, shape, name, report, options)
    return (_like(x, done[0]), done[1]) if report else _like(x, done)


def _capsule(x: Any) -> object:
    _require_cpu(x)
    try:
        return x.__dlpack__(max_version=(1, 1))
    except TypeError:  # a library of before DLPack 1
        return x.__dlpack__()


def _require_cpu(x: Any) -> None:
    device_type, device_id = x.__dlpack_device__()
    if int(device_type) not in _CPU_DEVICES:
        raise on_a_device(getattr(x, "device", f"DLPack device {int(device_type)}:{device_id}"))


def _cast_packed(
    codes: np.ndarray, from_name: str, shape: tuple[int, ...], name: str, report: bool, options: dict[str, Any]
) -> Any:
    from . import _arrays

    count = math.prod(shape)
    if name == "string":
        raise TypeError(f"packed {from_name} becomes text in two steps; cast it to another type first")
    if _arrays.is_packable(name):
        storage = np.empty(_arrays.packed_bytes(count, name), np.uint8)
    else:
        storage = np.empty(shape, _arrays.numpy_type(name))
    done = _core.cast_packed(codes, from_name, storage, name, count, report, options)
    result = _arrays.unpack(storage, name, shape) if _arrays.is_packable(name) else storage
    return (result, done) if report else result


def _like(x: Any, result: np.ndarray) -> Any:
    """Returns the result as an array of x's library, if that library supports it and has the type."""
    if not hasattr(x, "__array_namespace__") or result.dtype.kind in "OUT":
        return result
    return x.__array_namespace__().from_dlpack(_Export(result))


class _Export:
    """A NumPy array whose DLPack knows ml_dtypes' types, unlike NumPy's own."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_: Any) -> object:
        return _core.to_dlpack(self._array, max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU
