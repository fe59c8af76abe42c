# SPDX-License-Identifier: Apache-2.0
"""What torch.compile traces in place of ``tensorcast.cast``. Imports the compiler: see _torch_hooks.py."""

from __future__ import annotations

from typing import Any

import torch

from .. import _core
from ._torch import _NAME, _PYTORCH, type_name
from .._device._operator import OPERATOR as ON_DEVICE
from ._torch_operator import OPERATOR


def _is_of_type(x_type: torch.dtype, name: str) -> bool:
    return _NAME.get(x_type) == name


_name_now: Any = _PYTORCH.compiler.assume_constant_result(type_name)
_is_of_type_now: Any = _PYTORCH.compiler.assume_constant_result(_is_of_type)
_untraced: Any = _PYTORCH.compiler.disable(lambda *arguments, **options: _core.cast(*arguments, **options))


def traced_cast(
    x: Any,
    /,
    to: Any,
    *,
    out: Any = None,
    copy: bool = True,
    order: Any = None,
    report: bool = False,
    scale: Any = 1.0,
    **options: Any,
) -> Any:
    """Calls the operator; where it lacks an argument, the original, outside of the graph."""
    if out is None and not report and order != "C" and isinstance(x, torch.Tensor) and isinstance(scale, torch.Tensor):
        if x.device.type != "cpu":
            return ON_DEVICE(x, _name_now(to), scale, **options)
    if out is not None or report or order == "C" or not isinstance(scale, (int, float)) or not isinstance(x, torch.Tensor):
        return _untraced(x, to, out=out, copy=copy, order=order, report=report, scale=scale, **options)
    name = _name_now(to)
    if not copy and scale == 1 and _is_of_type_now(x.dtype, name):
        return x
    return OPERATOR(x, name, scale=scale, **options)


_PYTORCH.compiler.substitute_in_graph(_core.cast, skip_signature_check=True)(traced_cast)
