# SPDX-License-Identifier: Apache-2.0
"""What torch.compile traces in place of ``tensorcast.cast``. Imports the compiler: see _torch_hooks.py."""

from __future__ import annotations

from typing import Any

import torch

from .. import _core
from ._torch import _NAME, _PYTORCH, type_name
from ._torch_operator import OPERATOR, SCALED, for_schema


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
    of_tensor = isinstance(scale, torch.Tensor)
    number = isinstance(scale, (int, float))
    if out is not None or report or order == "C" or not (number or of_tensor) or not isinstance(x, torch.Tensor):
        return _untraced(x, to, out=out, copy=copy, order=order, report=report, scale=scale, **options)
    name = _name_now(to)
    options = for_schema(options)
    if of_tensor:
        return SCALED(x, name, scale, **options)
    if not copy and scale == 1 and _is_of_type_now(x.dtype, name):
        return x
    if scale == 1 or torch.compiler.is_exporting():
        return OPERATOR(x, name, scale=scale, **options)
    # The compiler learns that the number changes, and keeps one that is multiplied in a tensor of the graph.
    return SCALED(x, name, torch.ones((), dtype=torch.float64, device="cpu") * scale, **options)


_PYTORCH.compiler.substitute_in_graph(_core.cast, skip_signature_check=True)(traced_cast)
