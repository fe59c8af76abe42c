# SPDX-License-Identifier: Apache-2.0
"""The gradients of CastNode and CastLikeNode, as PyTorch's autograd takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._torch import type_name
from ._torch_cast import cast_tensor


def node_forward(
    x: torch.Tensor, y: Any, backward: Callable[[torch.Tensor], torch.Tensor], options: dict[str, Any]
) -> Any:
    """``y``, which a CastNode made of ``x``, with the node's gradient; ``options`` are those of gradients."""
    if not isinstance(y, torch.Tensor) or not y.is_floating_point():
        return y  # no gradient, as of Tensor.to
    return _NodeResult.apply(x, y, backward, options)  # type: ignore[no-untyped-call]


class _NodeResult(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor, *work: Any) -> torch.Tensor:
        ctx.work = work
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        return _NodeGradient.apply(grad_outputs[0], *ctx.work), None, None, None  # type: ignore[no-untyped-call]


class _NodeGradient(torch.autograd.Function):
    """The node's gradient multiplies each element by lda_coeff or 0, and so does its own gradient, in the other type."""

    @staticmethod
    def forward(
        ctx: Any, grad: torch.Tensor, backward: Callable[[torch.Tensor], torch.Tensor], options: dict[str, Any]
    ) -> torch.Tensor:
        ctx.work, ctx.to = (backward, options), grad.dtype
        return backward(grad)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        product = _NodeGradient.apply(grad_outputs[0], *ctx.work)  # type: ignore[no-untyped-call]
        return cast_tensor(product, type_name(ctx.to), None, False, None, False, 1, ctx.work[1]), None, None
