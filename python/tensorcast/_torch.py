"""Accesses the memory of PyTorch tensors through byte views, because NumPy lacks most of their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import _core
from ._arrays import _shares_memory
from ._errors import CastError
from ._exchange import on_a_device

_TORCH_TYPE = {
    name: getattr(torch, name)
    for name in (
        "float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
        "int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool"
    ).split()
    if hasattr(torch, name)
}
_NAME = {dtype: name for name, dtype in _TORCH_TYPE.items()}
_CARRIER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
if hasattr(torch, "float4_e2m1fn_x2"):
    _NAME[torch.float4_e2m1fn_x2] = "float4_e2m1fn"  # two elements a byte: the last dimension counts pairs


def _codes(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's memory as a NumPy array of integers of the same width and strides."""
    return tensor.detach().view(_CARRIER[tensor.element_size()]).numpy()


def cast_tensor(x: torch.Tensor, name: str, *, out: Any, copy: bool, report: bool, **options: Any) -> Any:
    from_name = _NAME.get(x.dtype)
    if from_name is None:
        raise TypeError(f"no cast knows {x.dtype}; see tensorcast.dtypes()")
    if x.device.type != "cpu":
        raise on_a_device(x.device)
    if x.layout != torch.strided or x.is_quantized:
        raise TypeError("only dense tensors can be cast; call .to_dense() or .dequantize() first")
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    if name == from_name and not copy and out is None and options.get("scale", 1.0) == 1.0 and not report:
        return x
    pairs_in = from_name == "float4_e2m1fn"
    pairs_out = name == "float4_e2m1fn"
    if pairs_in or pairs_out:
        result, done = _cast_pairs(x, from_name, name, pairs_in, pairs_out, out, report, options)
        return (result, done) if report else result
    if out is None:
        if name not in _TORCH_TYPE:
            raise TypeError(f"PyTorch has no {name}; pass x.numpy() and packed=True for its codes")
        out = torch.empty(x.shape, dtype=_TORCH_TYPE[name])
    elif not isinstance(out, torch.Tensor) or out.shape != x.shape or _NAME.get(out.dtype) != name:
        raise CastError(f"out must be a torch tensor of shape {tuple(x.shape)} and type {name}")
    elif out.device.type != "cpu":
        raise on_a_device(out.device)
    elif _shares_memory(_codes(out), _codes(x)):
        raise CastError("out overlaps the input; give it memory of its own")
    done = _core.cast_codes(_codes(x), from_name, False, _codes(out), name, False, report, options)
    return (out, done) if report else out


def _cast_pairs(
    x: torch.Tensor,
    from_name: str,
    name: str,
    pairs_in: bool,
    pairs_out: bool,
    out: Any,
    report: bool,
    options: dict[str, Any],
) -> tuple[torch.Tensor, Any]:
    if out is not None:
        raise CastError("out= is not available for float4_e2m1fn_x2")
    if pairs_out and not pairs_in and (x.dim() == 0 or x.shape[-1] % 2 != 0):
        raise CastError("float4_e2m1fn_x2 holds pairs: the last dimension must be even")
    dense = _codes(x.contiguous())
    count = x.numel() * (2 if pairs_in else 1)
    shape = list(x.shape)
    if pairs_in and not pairs_out:
        shape[-1] *= 2
    if pairs_out and not pairs_in:
        shape[-1] //= 2
    carrier = torch.uint8 if pairs_out else _TORCH_TYPE[name]
    result = torch.empty(shape, dtype=carrier)
    done = _core.cast_packed(dense, from_name, _codes(result), name, count, report, options)
    return (result.view(torch.float4_e2m1fn_x2) if pairs_out else result), done
