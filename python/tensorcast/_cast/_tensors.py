# SPDX-License-Identifier: Apache-2.0
"""Arrays and tensors of Python to the core's tensors and back, without copying where the memory allows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import _core
from .._errors import UnsupportedError
from .._interop import _exchange, _foreign
from . import _arrays, _numpy_types


def is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_on_a_device(x: Any) -> bool:
    """Reports whether ``x`` is a PyTorch tensor that is not in host memory."""
    return is_torch(x) and x.device.type not in ("cpu", "meta")


def requires_grad(x: Any) -> bool:
    """Reports whether PyTorch records what is done to ``x``."""
    return is_torch(x) and x.requires_grad and sys.modules["torch"].is_grad_enabled()


def to_core(x: Any) -> _core.Tensor:
    """The core's tensor on the memory of an array; copies an array that is not contiguous, or under 8 bits."""
    if is_torch(x):
        from .._interop import _torch_memory

        return _core.Tensor(*_torch_memory.storage_of(x))
    if _exchange.is_narrow_jax(x):
        x = np.asarray(x)
    if not isinstance(x, (np.ndarray, np.generic)) and _exchange.is_tensor(x) and not _foreign.is_foreign(x):
        codes, name, shape = _core.from_dlpack(_exchange.capsule_of(x))
        if _core.dtype_name(codes.dtype) != name:  # packed
            return _core.Tensor(codes, name, shape)
        x = codes
    array = _arrays.as_plain_array(x)
    name = _numpy_types.name_of(array)
    if name == "string":
        return _core.Tensor.of_texts(_arrays._texts(array), array.shape)
    return _core.Tensor(_arrays._packed_storage(array, name), name, array.shape)


def from_core(tensor: _core.Tensor, as_torch: bool) -> Any:
    """The array of a result: read-only if an input or a constant has the same memory."""
    try:
        return _array_of(tensor, as_torch)
    except (ValueError, RuntimeError) as cause:
        if 0 not in tensor.shape:
            raise
        library = "PyTorch" if as_torch else "NumPy"
        raise UnsupportedError(f"{library} cannot hold the shape {tuple(tensor.shape)}, though it has no elements") from cause


def _array_of(tensor: _core.Tensor, as_torch: bool) -> Any:
    name, shape = tensor.dtype, tensor.shape
    assert name is not None
    if as_torch:
        from .._interop import _torch_memory

        return _torch_memory.tensor_of(tensor.storage(), name, shape)
    if name == "string":
        return _arrays._text_array(tensor.texts(), np.dtype(object)).reshape(shape)
    if _numpy_types.is_packable(name):
        return _numpy_types.unpack(tensor.storage(), name, shape)
    return tensor.storage().view(_numpy_types.numpy_type(name)).reshape(shape)


def result(tensor: _core.Tensor, inputs: list[tuple[_core.Tensor, Any]], as_torch: bool) -> Any:
    """The array of a result: the input itself if nothing changed."""
    for core, given in inputs:
        same_kind = is_torch(given) if as_torch else isinstance(given, np.ndarray)
        if same_kind and core.shape == tensor.shape and tensor.shares_with(core):
            return given
    return from_core(tensor, as_torch)
