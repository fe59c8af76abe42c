# SPDX-License-Identifier: Apache-2.0
"""Accesses the memory of PyTorch tensors through byte views, because NumPy lacks most of their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch.autograd import forward_ad

from .. import _core
from .._cast._arrays import _shares_memory, cast_numbers, cast_scaled, scales_of
from .._errors import CastError
from ._exchange import on_a_device

if TYPE_CHECKING:
    import numpy.typing as npt

_TORCH_TYPE = {
    name: getattr(torch, name)
    for name in (
        "float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
        "int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool"
    ).split()
    if hasattr(torch, name)
}
_NAME = {dtype: name for name, dtype in _TORCH_TYPE.items()}
_PYTORCH: Any = torch  # what its stubs leave out
_CARRIER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
if hasattr(torch, "float4_e2m1fn_x2"):
    _NAME[torch.float4_e2m1fn_x2] = "float4_e2m1fn"  # two elements a byte: the last dimension counts pairs


_PAIRS = "float4_e2m1fn"


def _load_fast_way() -> None:
    """Lets ``tensorcast.cast`` convert plain tensors without this module, where PyTorch has all that it asks."""
    try:
        _core.load_torch(
            {
                "Tensor": torch.Tensor,
                "Parameter": torch.nn.Parameter,
                "strided": torch.strided,
                "dtypes": _TORCH_TYPE,
                "empty_like": torch.empty_like,
                "from_numpy": torch.from_numpy,
                "is_grad_enabled": torch.is_grad_enabled,
                "forward_ad": vars(forward_ad),
                "transforms_active": _PYTORCH._C._are_functorch_transforms_active,
                "dispatch_modes": _PYTORCH._C._len_torch_dispatch_stack,
                "function_modes": _PYTORCH._C._len_torch_function_stack,
                "is_tracing": _PYTORCH._C._is_tracing,
                "is_profiled": _PYTORCH._C._autograd._profiler_enabled,
            }
        )
    except AttributeError:  # a version that names them otherwise
        return
    numbers = torch.from_numpy(np.zeros(1024, np.float32))
    if type(numbers) is torch.Tensor:
        _core.cast(numbers, "bfloat16", threads=1)  # sets up what the first cast would wait for


def type_name(to: Any) -> str:
    """The canonical name of a type in any spelling, also ``torch.bfloat16``."""
    if isinstance(to, torch.dtype):
        if to not in _NAME:
            raise TypeError(f"no cast knows {to}; see tensorcast.dtypes()")
        return _NAME[to]
    return _core.dtype_name(to)


def check_has_memory(tensor: torch.Tensor) -> None:
    """Refuses a tensor whose storage was freed or cut, as FSDP does to parameters between their uses."""
    if not tensor.numel():
        return
    last = tensor.storage_offset() + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    needed, held = (last + 1) * tensor.element_size(), tensor.untyped_storage().nbytes()
    if held < needed:
        raise CastError(f"the tensor's storage has {held} bytes and its elements need {needed}: it was freed; "
                        "cast it where its memory is there, as inside FSDP's summon_full_params")  # fmt: skip


def _overlaps_itself(tensor: torch.Tensor) -> bool:
    """Reports whether two elements are in one place of memory."""
    dims = sorted((step, size) for size, step in zip(tensor.shape, tensor.stride()) if size > 1)
    reach = 0
    for step, size in dims:
        if step <= reach:
            break
        reach += step * (size - 1)
    else:
        return False
    if not tensor.numel() or dims[0][0] == 0 or tensor.numel() > 1 << 24:  # of the largest it is too hard to tell
        return tensor.numel() > 0
    places = np.zeros(1, np.int64)
    for step, size in dims:
        places = (places[:, None] + step * np.arange(size)).ravel()
    return np.unique(places).size < places.size


def _check_out(out: Any, x: torch.Tensor, name: str) -> None:
    if not isinstance(out, torch.Tensor) or out.shape != x.shape or _NAME.get(out.dtype) != name:
        raise CastError(f"out must be a torch tensor of shape {tuple(x.shape)} and type {name}")
    if out.device.type != "cpu":
        raise on_a_device(out.device)
    if out.layout != torch.strided or out.is_conj() or out.is_neg():
        raise CastError("out must be a dense tensor, without a conjugation or negation that is to come")
    check_has_memory(out)
    if _overlaps_itself(out):
        raise CastError("elements of out share memory, as those of expand() do; give each its own")
    if _shares_memory(_codes(out), _codes(x)):
        raise CastError("out overlaps the input; give it memory of its own")
    if not out.is_inference():  # autograd then knows that it changes
        torch.autograd.graph.increment_version(out)


def _codes(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """The tensor's memory as a NumPy array of integers of the same width and strides."""
    codes: npt.NDArray[Any] = tensor.detach().view(_CARRIER[tensor.element_size()]).numpy()
    return codes


def not_dense(x: torch.Tensor) -> TypeError:
    """The error for a tensor whose elements are not simply in its memory."""
    if x.is_nested:
        return TypeError("a nested tensor has no shape of its own; cast the tensors of x.unbind()")
    return TypeError("only dense tensors can be cast; call .to_dense() or .dequantize() first")


def resolved(x: torch.Tensor) -> torch.Tensor:
    """The tensor with its elements in memory; TypeError if they are not dense."""
    if x.layout != torch.strided or x.is_quantized:
        raise not_dense(x)
    return x.resolve_conj().resolve_neg() if x.is_conj() or x.is_neg() else x


def may_have_tangents() -> bool:
    """Reports whether a forward derivative may be computed, and if PyTorch only traces: it may enter a level later."""
    return (
        forward_ad._current_level >= 0
        or _PYTORCH._C._are_functorch_transforms_active()
        or _PYTORCH._C._len_torch_dispatch_stack() > 0
    )


def is_traced(x: torch.Tensor) -> bool:
    """Reports whether PyTorch must see the cast as an operator: while it traces, transforms or only infers shapes."""
    return (
        may_have_tangents()
        or x.device.type == "meta"
        or _PYTORCH._C._functorch.is_functorch_wrapped_tensor(x)
        or getattr(type(x), "__torch_dispatch__") is not _PYTORCH.Tensor.__torch_dispatch__
        or _PYTORCH.jit.is_tracing()
    )


def check_gradient(name: str, out: Any) -> None:
    if out is not None:
        raise CastError("out= cannot carry a gradient; leave it away, or pass x.detach() and out.detach()")
    dtype = _TORCH_TYPE.get(name)
    if (dtype is not None and not dtype.is_floating_point) or name == _PAIRS:
        raise CastError(f"x requires a gradient, and {name} cannot carry one; pass x.detach()")


def cast_elements(
    x: torch.Tensor,
    from_name: str,
    name: str,
    out: Any,
    order: Literal["C", "K"] | None,
    report: bool,
    scale: Any,
    options: dict[str, Any],
) -> tuple[torch.Tensor, Any]:
    check_has_memory(x)
    if _PAIRS in (from_name, name):
        if not isinstance(scale, (int, float)):
            raise CastError("float4_e2m1fn_x2 is packed, and with packed bytes, scale= is one number")
        return _cast_pairs(x, from_name, name, out, report, options)
    if out is None:
        if name not in _TORCH_TYPE:
            raise TypeError(f"PyTorch has no {name}; pass x.numpy() and packed=True for its codes")
        layout = torch.contiguous_format if order == "C" else torch.preserve_format
        out = torch.empty_like(x, dtype=_TORCH_TYPE[name], memory_format=layout, requires_grad=False)
    else:
        _check_out(out, x, name)
    scales = scales_of(scale, tuple(x.shape))
    if scales is None:
        return out, cast_numbers(_codes(x), from_name, _codes(out), name, report, options)
    return out, cast_scaled(_codes(x), from_name, _codes(out), name, scales, report, options)


def _cast_pairs(
    x: torch.Tensor, from_name: str, name: str, out: Any, report: bool, options: dict[str, Any]
) -> tuple[torch.Tensor, Any]:
    pairs_in, pairs_out = from_name == _PAIRS, name == _PAIRS
    if out is not None:
        raise CastError("out= is not available for float4_e2m1fn_x2")
    if not pairs_in and (x.dim() == 0 or x.shape[-1] % 2 != 0):
        raise CastError("float4_e2m1fn_x2 holds pairs: the last dimension must be even")
    dense = _codes(x.contiguous())
    count = x.numel() * (2 if pairs_in else 1)
    shape = list(x.shape)
    if pairs_in and not pairs_out:
        shape[-1] *= 2
    if pairs_out and not pairs_in:
        shape[-1] //= 2
    carrier = torch.uint8 if pairs_out else _TORCH_TYPE[name]
    result = torch.empty(shape, dtype=carrier, device="cpu")
    done = _core.cast_packed(dense, from_name, _codes(result), name, count, report, options)
    return (result.view(torch.float4_e2m1fn_x2) if pairs_out else result), done


_load_fast_way()
