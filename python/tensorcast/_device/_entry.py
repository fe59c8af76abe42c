# SPDX-License-Identifier: Apache-2.0
"""``tensorcast.cast`` of tensors on a device."""

from __future__ import annotations

from typing import Any, Literal

import torch

from .._cast._arrays import scale_is_one
from .._errors import CastError
from .._interop._torch import _NAME, cast_elements, check_gradient, resolved, type_name
from .._interop._torch_operator import for_schema
from . import _operator
from ._tensors import result_type


def given_scales(scale: Any, device: torch.device) -> torch.Tensor | None:
    """An array or tensor of scales as a tensor on the device; ``None`` for a number."""
    if isinstance(scale, (int, float)):
        return None
    if isinstance(scale, torch.Tensor):
        if scale.requires_grad:
            raise CastError("scale= gets no gradient here; pass scale.detach()")
        return scale if scale.dtype.is_floating_point else scale.to(torch.float32)
    try:
        numbers = torch.as_tensor(scale, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"scale must be a real number or an array of them, not {scale!r}") from None
    # Devices without float64 get float32 numbers, which must be the same.
    narrow = numbers.to(torch.float32)
    if bool((narrow.to(torch.float64) == numbers).all()):
        return narrow.to(device)
    return numbers if device.type == "mps" else numbers.to(device)


def cast_tensor(
    x: torch.Tensor,
    name: str,
    out: Any,
    copy: bool,
    order: Literal["C", "K"] | None,
    report: bool,
    scale: Any,
    options: dict[str, Any],
) -> Any:
    """As :func:`tensorcast.cast`; ``x`` is not on the CPU."""
    if out is not None:
        _check_out(out, x, name)
    if torch.is_grad_enabled() and (x.requires_grad or (out is not None and out.requires_grad)):
        check_gradient(name, out)
    if name == type_name(x.dtype) and not copy and out is None and scale_is_one(scale) and not report:
        return x
    if order == "C":
        x = x.contiguous()
    done = None
    if report:  # counted on the host
        source = resolved(x.detach().cpu())
        made, done = cast_elements(source, type_name(x.dtype), name, None, order, True, scale, options)
        result = made.to(x.device)
    else:
        known = for_schema({option: value for option, value in options.items() if option not in ("float_string", "scale")})
        scales = given_scales(scale, x.device)
        if scales is None:
            result = torch.ops.tensorcast.cast(x, name, scale=float(scale), **known)
        else:
            result = _operator.OPERATOR(x, name, scales, **known)
    if out is not None:
        result = out.copy_(result)
    return (result, done) if report else result


def _check_out(out: Any, x: torch.Tensor, name: str) -> None:
    dtype = result_type(name, x.device, pairs=True)
    if not isinstance(out, torch.Tensor) or out.shape != x.shape or out.dtype != dtype or _NAME.get(x.dtype) is None:
        raise CastError(f"out must be a torch tensor of shape {tuple(x.shape)} and type {name}")
    if out.device != x.device:
        raise CastError(f"out is on {out.device}, but x is on {x.device}")
