# SPDX-License-Identifier: Apache-2.0
"""``tensorcast.cast`` of PyTorch's tensors: on the host, on a device, or as an operator that PyTorch sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch

from .._cast._arrays import scale_is_one
from .._errors import CastError
from . import _torch


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
    from_name = _torch.type_name(x.dtype)
    if x.is_nested:
        raise _torch.not_dense(x)
    traced = _torch.is_traced(x)
    if x.device.type not in ("cpu", "meta") and not (traced and (out is not None or report)):
        from .._device import _entry

        return _entry.cast_tensor(x, name, out, copy, order, report, scale, options)
    if traced:
        return _through_operator(x, name, out, copy, order, report, scale, options)
    x = _torch.resolved(x)
    if name == from_name and not copy and out is None and scale_is_one(scale) and not report:
        return x
    if torch.is_grad_enabled() and (x.requires_grad or (isinstance(out, torch.Tensor) and out.requires_grad)):
        _torch.check_gradient(name, out)
        reports: list[Any] = []

        def work(values: torch.Tensor) -> torch.Tensor:
            result, done = _torch.cast_elements(values, from_name, name, None, order, report, scale, options)
            reports.append(done)
            return result

        result = _StraightThrough.apply(x, work, scale)  # type: ignore[no-untyped-call]
        return (result, reports[0]) if report else result
    result, done = _torch.cast_elements(x, from_name, name, out, order, report, scale, options)
    return (result, done) if report else result


class _StraightThrough(torch.autograd.Function):
    """The gradient of a cast is that of ``x * scale``: rounding counts as the identity."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, work: Callable[[torch.Tensor], torch.Tensor], scale: Any) -> torch.Tensor:
        ctx.to, ctx.scale = x.dtype, scale
        return work(x)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        options = {"scale": ctx.scale} if isinstance(ctx.scale, (int, float)) else {}
        name = _torch.type_name(ctx.to)
        return cast_tensor(grad_outputs[0], name, None, False, None, False, ctx.scale, options), None, None


def _through_operator(
    x: torch.Tensor, name: str, out: Any, copy: bool, order: Any, report: bool, scale: Any, options: dict[str, Any]
) -> torch.Tensor:
    from . import _torch_operator

    of_tensor = isinstance(scale, torch.Tensor)
    if out is not None or report or order == "C" or not (isinstance(scale, (int, float, torch.SymFloat)) or of_tensor):
        raise CastError("a traced or transformed tensor has no elements yet, so out=, report=, order='C' and an array "
                        "as scale= are not available; call cast outside of torch.compile, export, vmap, jvp and trace")  # fmt: skip
    if name == _torch.type_name(x.dtype) and not copy and not of_tensor and scale == 1:
        return x
    known = {option: value for option, value in options.items() if option != "float_string"}  # of no meaning here
    if of_tensor:
        known["scale"] = scale
    return _torch_operator.called(x, name, **known)
