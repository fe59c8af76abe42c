# SPDX-License-Identifier: Apache-2.0
"""Casts inside PyTorch programs: an operator for ``torch.compile``, ``torch.export`` and autograd.

>>> import torch, tensorcast.torch
>>> torch.ops.tensorcast.cast(torch.tensor([0.1, 465.0]), "float8_e4m3fn", saturate=False)
tensor([0.1016,    nan], dtype=torch.float8_e4m3fn)

The operator has the options of :func:`tensorcast.cast`. It always returns a new tensor, which has the layout of its
input (``channels_last`` stays). Its gradient is straight-through, as that of :class:`tensorcast.CastNode`: ``cast(scale *
grad_output, input's type)``; there is none from or to types that are not floating point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn
from torch.nn.utils import parametrize

from ._cast._arrays import scale_is_one
from ._device import _entry, _operator
from ._interop import _torch_operator  # noqa: F401: the operator
from ._errors import CastError
from ._interop._torch import _NAME, type_name

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CastOptions, DTypeLike

__all__ = ["cast", "cast_on_device", "convert_module"]

_Module = TypeVar("_Module", bound=nn.Module)


def cast(x: torch.Tensor, to: DTypeLike, **options: Unpack[CastOptions]) -> torch.Tensor:
    """Calls ``torch.ops.tensorcast.cast``; ``to`` may be any spelling of a type, also ``torch.bfloat16``.

    Args:
        x: a dense tensor on any device.
        to: a type that PyTorch has.
        **options: those of :func:`tensorcast.cast`, but ``float_string``; ``scale`` is a number.

    Raises:
        CastError: as :func:`tensorcast.cast`.
        TypeError: PyTorch or the operator lacks the type.
    """
    if not isinstance(options.get("saturate", True), (bool, int)):  # PyTorch takes None for the default
        raise CastError(f"saturate must be True or False, not {options.get('saturate')!r}")
    result: torch.Tensor = torch.ops.tensorcast.cast(x, type_name(to), **options)
    return result


def cast_on_device(
    x: torch.Tensor, to: DTypeLike, *, from_: DTypeLike | None = None, fused: bool = False, **options: Any
) -> torch.Tensor:
    """Casts by integer operations and lookups of PyTorch, on the device of ``x``: the bits are the CPU's everywhere.

    :func:`tensorcast.cast` and the operator do this for tensors that are not on the CPU. This function does it for
    tensors on the CPU, too, and takes and makes codes of types that PyTorch or the device lacks.

    >>> codes = tensorcast.torch.cast_on_device(weight, "float6_e3m2fn", scale=scale[:, None])

    Args:
        x: a dense tensor.
        to: any type but strings. The result is of PyTorch's type, or, if PyTorch or the device lacks it, integers that
            hold its codes: uint8 for 8 bits and fewer, one element a byte.
        from_: the type of the codes that ``x``, a tensor of integers of that width, holds.
        fused: compile the operations to one kernel by ``torch.compile``. The first call of each pair of types and options
            takes seconds.
        **options: those of :func:`tensorcast.cast`, but ``float_string``; ``scale`` may be a tensor that broadcasts to
            ``x``, of float64, float32, float16 or bfloat16.

    Nothing waits for the device, unless ``out_of_range="error"`` or ``invalid="error"``: then the call waits once.

    Raises:
        CastError: as :func:`tensorcast.cast`.
    """
    scale = options.pop("scale", 1.0)
    scales = _entry.given_scales(scale, x.device)
    if scales is None and not scale_is_one(scale):
        options["scale"] = float(scale)
    source = "" if from_ is None else type_name(from_)
    name = type_name(to)
    if fused:
        return _operator.fused(name, source, tuple(sorted(options.items())))(x, scales)
    result: torch.Tensor = _operator.OPERATOR(x, name, scales, from_=source, **options)
    return result


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


def _stored_key(prefix: str, name: str) -> str:
    return f"{prefix}parametrizations.{name}.original"


def _cast_names(module: nn.Module) -> list[str]:
    """The tensors of a module that are cast when they are read."""
    lists: Any = getattr(module, "parametrizations", {})
    return [name for name, steps in lists.items() if any(isinstance(step, _CastWhenRead) for step in steps)]


def _save_under_old_names(module: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    for name in _cast_names(module):
        if _stored_key(prefix, name) in state:
            state[prefix + name] = state.pop(_stored_key(prefix, name))


def _load_from_old_names(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in _cast_names(module):
        if prefix + name in state:
            state[_stored_key(prefix, name)] = state.pop(prefix + name)


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
            layers can compute on float8 weights. ``state_dict()`` keeps its keys and has the stored tensors. ``None``: it
            sees them as they are stored. PyTorch cannot add float8 gradients, as training a float8 tensor that the model
            reads twice would need.
        **options: those of :func:`tensorcast.cast`, but ``float_string``.

    Returns:
        ``model``. ``requires_grad`` stays, but integers and bools have none.

    Raises:
        CastError: a rule matches nothing, a shared tensor would get two types, or as :func:`tensorcast.cast`.
    """
    if isinstance(rules, str):
        raise TypeError("rules is a mapping of regular expressions to dtypes, not a string")
    listed: Any = rules.items() if isinstance(rules, Mapping) else rules
    pairs: list[tuple[str, re.Pattern[str], str]] = [(text, re.compile(text), type_name(to)) for text, to in listed]
    compute = None if compute_dtype is None else type_name(compute_dtype)
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
            if not _cast_names(module):
                module._register_state_dict_hook(_save_under_old_names)  # type: ignore[no-untyped-call]
                module._register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
                    _load_from_old_names, with_module=True
                )
            parametrize.register_parametrization(module, name, _CastWhenRead(compute), unsafe=True)
    return model
