# SPDX-License-Identifier: Apache-2.0
"""Casts of tensors on the device where they are, the CPU included."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch

from .._cast._arrays import cast_numbers, cast_scaled, scales_of
from .._errors import CastError
from .._interop._torch import _CARRIER as BY_BYTES
from .._interop._torch import _PAIRS, _TORCH_TYPE, not_dense
from ._convert import CARRIER, Plan, cast_codes, options_key, plan_of, scale_codes
from ._formats import format_of

_PYTORCH: Any = torch


@functools.cache
def _stores(device_type: str, dtype: torch.dtype) -> bool:
    try:
        torch.empty(0, dtype=dtype, device=device_type)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


def result_type(name: str, device: torch.device, pairs: bool) -> torch.dtype:
    """PyTorch's type of a result; integers of its width, for codes, if PyTorch or the device lacks it."""
    if name == _PAIRS and pairs and hasattr(torch, "float4_e2m1fn_x2"):
        paired: torch.dtype = _PYTORCH.float4_e2m1fn_x2
        return paired
    dtype: torch.dtype | None = _TORCH_TYPE.get(name)
    if dtype is not None and _stores(device.type, dtype):
        return dtype
    return CARRIER[format_of(name).carrier_bits]


def check_source(x: torch.Tensor, from_name: str, given: bool) -> None:
    """Refuses what has no codes in its memory. ``given``: ``from_`` says what the codes are."""
    if x.layout != torch.strided or x.is_quantized:
        raise not_dense(x)
    form = format_of(from_name)
    if given and (x.dtype.is_floating_point or x.dtype.is_complex or x.element_size() * 8 != form.carrier_bits):
        raise CastError(f"from_= names the type of codes in integers of {form.carrier_bits} bits, not in {x.dtype}")


def check_number(scale: float) -> None:
    """Refuses what the engine refuses as a number for all elements."""
    if not math.isfinite(scale):
        raise CastError("scale must be a finite number")


def cast(
    x: torch.Tensor,
    from_name: str,
    to_name: str,
    scale: float | torch.Tensor,
    options: dict[str, Any],
    *,
    tables: bool = True,
    pairs: bool = True,
) -> torch.Tensor:
    """A new tensor on the device of ``x``, with its layout.

    Nothing waits for the device, unless ``out_of_range`` or ``invalid`` is ``"error"``: then the cast waits once, and an
    error copies the tensor to the host, where the engine names the element.

    Args:
        from_name: the type of the codes of ``x``.
        scale: a number, or a tensor that broadcasts to the shape in elements.
        tables: ``False`` computes everything, for compilers, which fuse operations but not lookups.
        pairs: float4_e2m1fn as PyTorch's pairs, if it has them; else one code a byte.
    """
    is_scaled = isinstance(scale, torch.Tensor) or scale != 1
    plan = plan_of(from_name, to_name, options_key(options), is_scaled)
    if not isinstance(scale, torch.Tensor):
        check_number(scale)
    codes = x.resolve_conj().resolve_neg().detach()
    if is_pairs(x.dtype):
        codes = _split(codes)
    factors = scale_codes(scale, codes.device)
    if factors is not None and isinstance(scale, torch.Tensor):
        _check_broadcasts(tuple(scale.shape), tuple(codes.shape))
    made, refused = cast_codes(codes, plan, factors, tables)
    if refused is not None and bool(refused.any()):
        _raise_as_on_the_host(codes, plan, scale, {**options})
    if tables and not codes.is_contiguous():
        made = _laid_out(made, codes)
    dtype = result_type(to_name, x.device, pairs)
    if is_pairs(dtype):
        return _joined(made).contiguous().view(dtype)  # as the operator says of the shape
    return made if made.dtype == dtype else made.view(dtype)


def is_pairs(dtype: torch.dtype) -> bool:
    """Reports whether two elements of float4_e2m1fn are one of PyTorch's."""
    return hasattr(torch, "float4_e2m1fn_x2") and dtype == _PYTORCH.float4_e2m1fn_x2


def _split(pairs: torch.Tensor) -> torch.Tensor:
    bytes_ = pairs.view(torch.uint8)
    return torch.stack((bytes_ & 15, bytes_ >> 4), -1).flatten(-2)


def _joined(codes: torch.Tensor) -> torch.Tensor:
    if codes.dim() == 0 or codes.shape[-1] % 2:
        raise CastError("float4_e2m1fn_x2 holds pairs: the last dimension must be even")
    return codes[..., ::2] | codes[..., 1::2] << 4


def _laid_out(made: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The same elements with the strides of ``empty_like``: a lookup's are always those of C order."""
    placed = torch.empty_like(like, dtype=made.dtype, requires_grad=False)
    return made if placed.stride() == made.stride() else placed.copy_(made)


def _check_broadcasts(given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    trailing = shape[len(shape) - len(given) :] if len(given) <= len(shape) else None
    if trailing is None or any(length not in (1, wanted) for length, wanted in zip(given, trailing)):
        advice = "; for one scale per row write scale[:, None]" if given[:1] == shape[:1] else ""
        raise CastError(f"scale= has shape {given}, which does not broadcast to {shape}{advice}")


def _raise_as_on_the_host(codes: torch.Tensor, plan: Plan, scale: Any, options: dict[str, Any]) -> None:
    form, to = plan.from_, plan.to
    source = codes.cpu().view(BY_BYTES[form.carrier_bits // 8]).numpy()
    result = np.empty(source.shape, {8: np.uint8, 16: np.int16, 32: np.int32, 64: np.int64}[to.carrier_bits])
    scales = scales_of(scale, source.shape)
    if scales is None:
        cast_numbers(source, form.name, result, to.name, False, {**options, "scale": float(scale)})
    else:
        cast_scaled(source, form.name, result, to.name, scales, False, options)
    raise AssertionError(f"{form.name} to {to.name} was refused on {codes.device}, but not on the host")
