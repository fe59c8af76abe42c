# SPDX-License-Identifier: Apache-2.0
"""``torch.ops.tensorcast.cast_on_device``: the operator of casts by PyTorch's own operations, on any device."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .. import _core
from .._errors import CastError
from .._interop._torch import type_name
from .._interop._torch_operator import _LIBRARY, _SCHEMA_DEFAULTS, _empty, of_schema, with_derivatives
from ._tensors import cast, check_source, is_pairs, result_type

_PYTORCH: Any = torch

_LIBRARY.define(
    f'cast_on_device(Tensor x, str to, Tensor? scales=None, *, str from_="", {_SCHEMA_DEFAULTS}) -> Tensor',
    tags=torch.Tag.pt2_compliant_tag,
)
OPERATOR: Any = torch.ops.tensorcast.cast_on_device.default


def _names(x: torch.Tensor, to: str, from_: str) -> tuple[str, str]:
    from_name = _core.dtype_name(from_) if from_ else type_name(x.dtype)
    check_source(x, from_name, bool(from_))
    return from_name, _core.dtype_name(to)


def _cast(
    x: torch.Tensor, to: str, scales: torch.Tensor | None = None, *, tables: bool = True, from_: str = "", scale: float = 1.0,
    **options: Any
) -> torch.Tensor:  # fmt: skip
    from_name, to_name = _names(x, to, from_)
    if scales is not None and scale != 1:
        raise CastError("scale= is a number or a tensor, not both")
    return cast(x, from_name, to_name, scale if scales is None else scales, of_schema(options), tables=tables, pairs=not from_)


_LIBRARY.impl("cast_on_device", _cast, "CompositeExplicitAutograd")


def _shape_only(
    x: torch.Tensor, to: str, scales: torch.Tensor | None = None, *, from_: str = "", **options: Any
) -> torch.Tensor:
    _, to_name = _names(x, to, from_)
    return _empty(x, result_type(to_name, x.device, pairs=not from_))


_PYTORCH.library.register_fake("tensorcast::cast_on_device", _shape_only, lib=_LIBRARY)


def _batched(
    info: Any, in_dims: Any, x: torch.Tensor, to: str, scales: torch.Tensor | None = None, **options: Any
) -> tuple[torch.Tensor, int]:
    rank = x.dim() - (in_dims[0] is not None)
    x = x.expand(info.batch_size, *x.shape) if in_dims[0] is None else x.movedim(in_dims[0], 0)
    if scales is not None and len(in_dims) > 2 and in_dims[2] is not None:
        scales = scales.movedim(in_dims[2], 0)
        scales = scales.reshape(scales.shape[0], *[1] * (rank - scales.dim() + 1), *scales.shape[1:])
    return torch.ops.tensorcast.cast_on_device(x, to, scales, **options), 0


_PYTORCH.library.register_vmap("tensorcast::cast_on_device", _batched, lib=_LIBRARY)


def _with_derivatives(
    keys: Any, x: torch.Tensor, to: str, scales: torch.Tensor | None = None, **options: Any
) -> torch.Tensor:
    if scales is not None and scales.requires_grad:
        raise CastError("scale= gets no gradient here; pass scale.detach()")
    return with_derivatives(OPERATOR, keys, x, to, (scales,), options)


_LIBRARY.impl("cast_on_device", _with_derivatives, "Autograd", with_keyset=True)


def decomposed(
    x: torch.Tensor, to: str, scales: torch.Tensor | None = None, *, from_: str = "", **options: Any
) -> torch.Tensor:
    """The operator as operations that a compiler fuses; ``NotImplemented`` for what must look at the elements."""
    undone: torch.Tensor = NotImplemented
    if "error" in (options.get("out_of_range"), options.get("invalid"), options.get("inexact")):
        return undone
    if options.get("rounding") == "stochastic":  # inductor writes each of Philox's words out anew where it is used: 4**10 times
        return undone
    made = result_type(_names(x, to, from_)[1], x.device, pairs=not from_)
    # Inductor of PyTorch 2.13 has no C++ for these; of pairs it knows some views.
    if _PYTORCH.float8_e8m0fnu in (x.dtype, made) or is_pairs(x.dtype) or is_pairs(made):
        return undone
    return _cast(x, to, scales, tables=False, from_=from_, **options)


def decomposed_off_the_cpu(x: torch.Tensor, to: str, *scale: torch.Tensor, **options: Any) -> torch.Tensor:
    """``torch.ops.tensorcast.cast`` and ``cast_scaled`` in the same way; the CPU has the engine."""
    return NotImplemented if x.device.type == "cpu" else decomposed(x, to, *scale, **options)


@functools.lru_cache(maxsize=256)
def fused(source: torch.dtype, to: str, from_: str, options: tuple[tuple[str, Any], ...]) -> Any:
    """The operator, compiled for the device: one kernel. Each pair of types and options compiles once."""
    known: dict[str, Any] = {**dict(options), "from_": from_}

    def run(x: torch.Tensor, scales: torch.Tensor | None) -> Any:
        return OPERATOR(x, to, scales, **known)

    # PyTorch compiles one code object at most eight times, and then runs it as it is.
    run.__code__ = run.__code__.replace()
    return _PYTORCH.compile(run, dynamic=True)
