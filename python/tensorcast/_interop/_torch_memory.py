# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors as packed storage, and back, on the same memory."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch

from ._exchange import on_a_device
from ._torch import _TORCH_TYPE, _codes, check_has_memory, not_dense, type_name


def storage_of(x: torch.Tensor) -> tuple[npt.NDArray[Any], str, tuple[int, ...]]:
    """Storage, type and shape in elements."""
    name = type_name(x.dtype)
    if x.device.type != "cpu":
        raise on_a_device(x.device)
    if x.layout != torch.strided or x.is_quantized or x.is_nested:
        raise not_dense(x)
    check_has_memory(x)
    x = x.resolve_conj().resolve_neg().contiguous()
    shape = tuple(x.shape)
    if name == "float4_e2m1fn":  # two elements a byte
        shape = (*shape[:-1], shape[-1] * 2)
    return _codes(x).reshape(-1), name, shape


def memory_of(x: torch.Tensor) -> object:
    """Equal for tied tensors: those that show the same elements of the same memory; a value of its own where there is none."""
    if x.layout != torch.strided or x.is_nested:
        return id(x)
    try:
        address = x.data_ptr()
    except RuntimeError:  # it has none
        address = 0
    # A view that conjugates or negates has the address and strides of what it shows.
    return (address, x.dtype, x.shape, x.stride(), x.is_conj(), x.is_neg()) if address else id(x)


def tensor_of(storage: npt.NDArray[Any], name: str, shape: tuple[int, ...]) -> torch.Tensor:
    if name == "float4_e2m1fn" and name not in _TORCH_TYPE and hasattr(torch, "float4_e2m1fn_x2"):
        if not shape or shape[-1] % 2:
            raise TypeError("float4_e2m1fn_x2 holds pairs: the last dimension must be even")
        dtype, shape = torch.float4_e2m1fn_x2, (*shape[:-1], shape[-1] // 2)
    elif name in _TORCH_TYPE:
        dtype = _TORCH_TYPE[name]
    else:
        raise TypeError(f"PyTorch has no {name}; pass NumPy arrays")
    if storage.size == 0:
        return torch.empty(shape, dtype=dtype, device="cpu")
    if not storage.flags.writeable:  # PyTorch has no read-only tensors
        storage = storage.copy()
    return torch.from_numpy(storage).view(dtype).reshape(shape)
