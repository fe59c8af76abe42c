"""Casts inside PyTorch programs: an operator for ``torch.compile``, ``torch.export`` and autograd.

>>> import torch, tensorcast.torch
>>> torch.ops.tensorcast.cast(torch.tensor([0.1, 465.0]), "float8_e4m3fn", saturate=False)
tensor([0.1016,    nan], dtype=torch.float8_e4m3fn)

The operator has the options of :func:`tensorcast.cast`. It always returns a new tensor, which has the layout of its input
(``channels_last`` stays). Its gradient is straight-through, as that of :class:`tensorcast.CastNode`: ``cast(scale *
grad_output, input's type)``; there is none from or to types that are not floating point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn
from torch.nn.utils import parametrize

from . import _core
from ._errors import CastError
from ._torch import _NAME, _PAIRS, _TORCH_TYPE

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CastOptions, DTypeLike

__all__ = ["cast", "convert_module"]

_Module = TypeVar("_Module", bound=nn.Module)


def cast(x: torch.Tensor, to: DTypeLike, **options: Unpack[CastOptions]) -> torch.Tensor:
    """Calls ``torch.ops.tensorcast.cast``; ``to`` may be any spelling of a type, also ``torch.bfloat16``.

    Args:
        x: a dense tensor on the CPU.
        to: a type that PyTorch has.
        **options: those of :func:`tensorcast.cast`, but ``float_string``; ``scale`` is a number.

    Raises:
        CastError: as :func:`tensorcast.cast`.
        TypeError: PyTorch or the operator lacks the type.
    """
    result: torch.Tensor = torch.ops.tensorcast.cast(x, _name(to), **options)
    return result


def _name(to: Any) -> str:
    if isinstance(to, torch.dtype):
        if to not in _NAME:
            raise TypeError(f"no cast knows {to}; see tensorcast.dtypes()")
        return _NAME[to]
    return _core.dtype_name(to)


def _target(to: str) -> torch.dtype:
    name = _core.dtype_name(to)
    if name == _PAIRS and hasattr(torch, "float4_e2m1fn_x2"):
        return torch.float4_e2m1fn_x2
    if name not in _TORCH_TYPE:
        raise TypeError(f"PyTorch has no {name}; pass NumPy arrays to tensorcast.cast()")
    dtype: torch.dtype = _TORCH_TYPE[name]
    return dtype


def _empty(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The tensor that the operator returns for ``x``, without its elements."""
    if x.dtype not in _NAME:
        raise TypeError(f"no cast knows {x.dtype}; see tensorcast.dtypes()")
    pairs_in, pairs_out = _NAME[x.dtype] == _PAIRS, _NAME[dtype] == _PAIRS
    if pairs_in == pairs_out:
        return torch.empty_like(x, dtype=dtype, requires_grad=False)
    shape = list(x.shape)
    if not shape or (pairs_out and shape[-1] % 2):
        raise CastError("float4_e2m1fn_x2 holds pairs: the last dimension must be even")
    shape[-1] = shape[-1] * 2 if pairs_in else shape[-1] // 2
    return torch.empty(shape, dtype=dtype, device=x.device)


@torch.library.custom_op("tensorcast::cast", mutates_args=(), device_types="cpu")
def _cast(
    x: torch.Tensor,
    to: str,
    *,
    opset: int = 0,
    saturate: bool = True,
    round_mode: str = "up",
    out_of_range: str = "auto",
    int_rounding: str = "trunc",
    invalid: str = "default",
    fnuz_inf: str = "spec",
    threads: int = 0,
    scale: float = 1.0,
) -> torch.Tensor:
    dtype = _target(to)
    options: dict[str, Any] = {
        "opset": opset, "saturate": saturate, "round_mode": round_mode, "out_of_range": out_of_range,
        "int_rounding": int_rounding, "invalid": invalid, "fnuz_inf": fnuz_inf, "threads": threads, "scale": scale,
    }  # fmt: skip
    x = x.detach()
    if _PAIRS in (_NAME.get(x.dtype), _NAME.get(dtype)):
        pairs: torch.Tensor = _core.cast(x.contiguous(), _NAME[dtype], **options)
        return pairs
    out = _empty(x, dtype)
    if x.stride() == out.stride() and not x.is_contiguous():
        # The same order in memory, without gaps: both as one dimension.
        _core.cast(_flat(x), _NAME[dtype], out=_flat(out), **options)
    else:
        _core.cast(x, _NAME[dtype], out=out, **options)
    return out


def _flat(x: torch.Tensor) -> torch.Tensor:
    return x.as_strided((x.numel(),), (1,))


@_cast.register_fake
def _(x: torch.Tensor, to: str, **options: Any) -> torch.Tensor:
    return _empty(x, _target(to))


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any) -> None:
    x, _ = inputs
    ctx.from_ = _NAME[x.dtype]
    ctx.straight = x.is_floating_point() and output.is_floating_point() and x.shape == output.shape
    ctx.options = {name: keyword_only_inputs[name] for name in ("saturate", "round_mode", "threads", "scale")}


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, None]:
    if not ctx.straight:
        return None, None
    return torch.ops.tensorcast.cast(grad, ctx.from_, **ctx.options), None


_cast.register_autograd(_backward, setup_context=_save_for_backward)


@_cast.register_vmap
def _(info: Any, in_dims: Any, x: torch.Tensor, to: str, **options: Any) -> tuple[torch.Tensor, int]:
    x = x.movedim(in_dims[0], 0)
    return torch.ops.tensorcast.cast(x, to, **options), 0


class _CastWhenRead(nn.Module):
    """A parametrization: the stored tensor, cast to the type that the module computes in."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self.to_type = to

    def forward(self, stored: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.ops.tensorcast.cast(stored, self.to_type)
        return result

    def extra_repr(self) -> str:
        return self.to_type


def convert_module(
    model: _Module,
    rules: Mapping[str, DTypeLike] | Iterable[tuple[str, DTypeLike]],
    *,
    compute_dtype: DTypeLike | None = None,
    **options: Unpack[CastOptions],
) -> _Module:
    """Casts parameters and buffers of ``model`` in place, by rules on their names. After an error nothing has changed.

    >>> convert_module(model, {"norm": "float32", r"\\.weight$": "float8_e4m3fn"}, compute_dtype="bfloat16")

    Args:
        model: tensors that it shares stay shared; each must get one type by all its names.
        rules: ``{regular expression: dtype}``; the first that matches anywhere in a tensor's name, as of
            ``state_dict()``, decides. Others stay as they are.
        compute_dtype: the type in which the model sees the tensors; they are cast to it whenever they are read, so that
            layers can compute on float8 weights. ``None``: it sees them as they are stored. PyTorch cannot add float8
            gradients, as training a float8 tensor that the model reads twice would need.
        **options: those of :func:`tensorcast.cast`, but ``float_string``.

    Returns:
        ``model``. ``requires_grad`` stays, but integers and bools have none.

    Raises:
        CastError: a rule matches nothing, a shared tensor would get two types, or as :func:`tensorcast.cast`.
    """
    if isinstance(rules, str):
        raise TypeError("rules is a mapping of regular expressions to dtypes, not a string")
    listed: Any = rules.items() if isinstance(rules, Mapping) else rules
    pairs: list[tuple[str, re.Pattern[str], str]] = [(text, re.compile(text), _name(to)) for text, to in listed]
    compute = None if compute_dtype is None else _name(compute_dtype)
    unused = {pattern for pattern, _, _ in pairs}
    targets: dict[int, str] = {}
    converted: dict[int, torch.Tensor] = {}
    places: list[tuple[nn.Module, str, torch.Tensor]] = []
    for prefix, module in model.named_modules():
        for name, tensor in [*module._parameters.items(), *module._buffers.items()]:
            full = f"{prefix}.{name}" if prefix else name
            if tensor is None:
                continue
            to = None
            for pattern, expression, target in pairs:
                if expression.search(full):
                    unused.discard(pattern)
                    to = to or target
            if to is None:
                continue
            if targets.setdefault(id(tensor), to) != to:
                raise CastError(f"{full} is shared, and its names get two types: {targets[id(tensor)]} and {to}")
            if id(tensor) not in converted:
                result = cast(tensor.detach(), to, **options)
                if isinstance(tensor, nn.Parameter):
                    result = nn.Parameter(result, tensor.requires_grad and result.is_floating_point())
                converted[id(tensor)] = result
            places.append((module, name, tensor))
    if unused:
        raise CastError(f"no tensor of the model matches {', '.join(map(repr, sorted(unused)))}")
    for module, name, tensor in places:
        result = converted[id(tensor)]
        if isinstance(result, nn.Parameter):
            module._parameters[name] = result
        else:
            module._buffers[name] = result
        if compute is not None and _NAME[result.dtype] != compute:
            parametrize.register_parametrization(module, name, _CastWhenRead(compute), unsafe=True)
    return model
