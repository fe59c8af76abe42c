# SPDX-License-Identifier: Apache-2.0
"""``torch.ops.tensorcast.cast``: the cast as PyTorch's tracers, transforms and exporters see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from .. import _core
from .._device import _tensors as on_device
from .._errors import CastError
from .._option_list import DEFAULTS, ONNX_ATTRIBUTES, STRING_OPTIONS
from ._torch import _NAME, _PAIRS, _PYTORCH, _TORCH_TYPE, cast_elements, may_have_tangents, type_name


def torch_type(to: str) -> torch.dtype:
    name = _core.dtype_name(to)
    if name == _PAIRS and hasattr(torch, "float4_e2m1fn_x2"):
        return torch.float4_e2m1fn_x2
    if name not in _TORCH_TYPE:
        raise TypeError(f"PyTorch has no {name}; pass NumPy arrays to tensorcast.cast()")
    dtype: torch.dtype = _TORCH_TYPE[name]
    return dtype


def _empty(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The tensor that the operator returns for ``x``, without its elements."""
    pairs_in, pairs_out = type_name(x.dtype) == _PAIRS, _NAME.get(dtype) == _PAIRS
    if pairs_in == pairs_out:
        return torch.empty_like(x, dtype=dtype, requires_grad=False)
    shape = list(x.shape)
    if not shape or (pairs_out and shape[-1] % 2):
        raise CastError("float4_e2m1fn_x2 holds pairs: the last dimension must be even")
    shape[-1] = shape[-1] * 2 if pairs_in else shape[-1] // 2
    return torch.empty(shape, dtype=dtype, device=x.device)


OPTIONS = {name: default for name, default in DEFAULTS.items() if name not in STRING_OPTIONS}
_SCHEMA_DEFAULTS = ", ".join(
    f"{'str' if isinstance(default, str) else type(default).__name__} {name}=" + (f'"{default}"' if isinstance(default, str) else str(default))
    for name, default in OPTIONS.items()
)
_SCHEMA = f"(Tensor x, str to, *, {_SCHEMA_DEFAULTS}) -> Tensor"
_LIBRARY: Any = _PYTORCH.library.Library("tensorcast", "DEF")
_LIBRARY.define("cast" + _SCHEMA, tags=torch.Tag.pt2_compliant_tag)
# A scale that compiled code reads when it runs, and does not compile again for; or one for each row.
_SCALED_SCHEMA = _SCHEMA.replace(", float scale=1.0", "").replace("str to,", "str to, Tensor scale,")
_LIBRARY.define("cast_scaled" + _SCALED_SCHEMA, tags=torch.Tag.pt2_compliant_tag)
OPERATOR = torch.ops.tensorcast.cast.default
SCALED = torch.ops.tensorcast.cast_scaled.default


_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def for_schema(options: dict[str, Any]) -> dict[str, Any]:
    """The options, checked before the dispatcher takes 1.5 for True, as an operator takes them: its schema has integers
    with a sign, so seeds from 2**63 on are negative."""
    seed = options.get("seed", 0)
    if isinstance(seed, _SYMBOLS):
        return options
    if not torch.compiler.is_compiling() or seed < 0 or seed >= 2**64:
        _core.check_options({name: value for name, value in options.items() if name != "scale" and not isinstance(value, _SYMBOLS)})
    return {**options, "seed": int(seed) - 2**64} if seed >= 2**63 else options


def of_schema(options: dict[str, Any]) -> dict[str, Any]:
    """The options that an operator was given."""
    seed = options.get("seed", 0)
    return {**options, "seed": seed + 2**64} if isinstance(seed, int) and seed < 0 else options


def _cast(x: torch.Tensor, to: str, **options: Any) -> torch.Tensor:
    """The operator on the CPU."""
    name = _NAME[torch_type(to)]
    return cast_elements(x.detach(), type_name(x.dtype), name, None, None, False, 1.0, of_schema(options))[0]


def _cast_scaled(x: torch.Tensor, to: str, scale: torch.Tensor, **options: Any) -> torch.Tensor:
    if scale.dim() == 0:
        return _cast(x, to, **options, scale=float(scale))
    name = _NAME[torch_type(to)]
    return cast_elements(x.detach(), type_name(x.dtype), name, None, None, False, scale, of_schema(options))[0]


_LIBRARY.impl("cast", _cast, "CPU")
_LIBRARY.impl("cast_scaled", _cast_scaled, "CPU")


def _cast_on_device(x: torch.Tensor, to: str, scale: float | torch.Tensor = 1.0, **options: Any) -> torch.Tensor:
    """The operators on other devices."""
    from_name = type_name(x.dtype)
    on_device.check_source(x, from_name, False)
    return on_device.cast(x, from_name, _NAME[torch_type(to)], scale, of_schema(options))


_LIBRARY.impl("cast", _cast_on_device, "CompositeExplicitAutograd")
_LIBRARY.impl("cast_scaled", _cast_on_device, "CompositeExplicitAutograd")


def _shape_only(x: torch.Tensor, to: str, **options: Any) -> torch.Tensor:
    dtype = torch_type(to)
    name = _NAME[dtype]
    if x.device.type not in ("cpu", "meta") and name != _PAIRS:
        dtype = on_device.result_type(name, x.device, pairs=True)
    result = _empty(x, dtype)
    # A cast of no elements refuses what a run refuses. A number that the tracer does not know yet is not of the types.
    known = {option: value for option, value in of_schema(options).items() if isinstance(value, (bool, int, float, str))}
    nothing = np.empty(0, np.uint8)
    _core.cast_packed(nothing, type_name(x.dtype), nothing, name, 0, False, known)
    return result


def _shape_only_scaled(x: torch.Tensor, to: str, scale: torch.Tensor, **options: Any) -> torch.Tensor:
    return _shape_only(x, to, **options)


_PYTORCH.library.register_fake("tensorcast::cast", _shape_only, lib=_LIBRARY)
_PYTORCH.library.register_fake("tensorcast::cast_scaled", _shape_only_scaled, lib=_LIBRARY)


def _batched(info: Any, in_dims: Any, x: torch.Tensor, to: str, **options: Any) -> tuple[torch.Tensor, int]:
    x = x.movedim(in_dims[0], 0)
    if x.dim() == 1:
        _empty(x[0], torch_type(to))  # a scalar has no pair: an error, as without a batch
    return torch.ops.tensorcast.cast(x, to, **options), 0


def _batched_scaled(
    info: Any, in_dims: Any, x: torch.Tensor, to: str, scale: torch.Tensor, **options: Any
) -> tuple[torch.Tensor, int]:
    x = x.expand(info.batch_size, *x.shape) if in_dims[0] is None else x.movedim(in_dims[0], 0)
    if x.dim() == 1:
        _empty(x[0], torch_type(to))
    if in_dims[2] is not None:
        scale = scale.movedim(in_dims[2], 0)
        scale = scale.reshape(len(scale), *[1] * (x.dim() - scale.dim()), *scale.shape[1:])
    return SCALED(x, to, scale, **options), 0


_PYTORCH.library.register_vmap("tensorcast::cast", _batched, lib=_LIBRARY)
_PYTORCH.library.register_vmap("tensorcast::cast_scaled", _batched_scaled, lib=_LIBRARY)


class _StraightThrough(torch.autograd.Function):
    """The derivative of an operator, backward and forward: that of ``x * scale``."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, to: str, keys: Any, operator: Any, scales: tuple[Any, ...], options: dict[str, Any]
    ) -> torch.Tensor:
        ctx.from_, ctx.to, ctx.operator, ctx.scales = _NAME[x.dtype], to, operator, scales
        ctx.options = {name: options[name] for name in ("saturate", "round_mode", "threads", "scale") if name in options}
        # A transform further out, as in jvp(grad(f)), has derivatives of its own to compute.
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return _below_autograd(operator, keys, x, to, scales, options)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None, None]:
        result: torch.Tensor = ctx.operator(grads[0], ctx.from_, *ctx.scales, **ctx.options)
        return result, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor:
        tangent: torch.Tensor = ctx.operator(tangents[0], ctx.to, *ctx.scales, **ctx.options)
        return tangent


def _below_autograd(
    operator: Any, keys: Any, x: torch.Tensor, to: str, scales: tuple[Any, ...], options: dict[str, Any]
) -> torch.Tensor:
    with torch._C._AutoDispatchBelowAutograd():
        result: torch.Tensor = operator.redispatch(keys & torch._C._after_autograd_keyset, x, to, *scales, **options)
    return result


def _carries_gradient(x: torch.Tensor, to: str) -> bool:
    name = _core.dtype_name(to)
    floats = x.is_floating_point() and name in _TORCH_TYPE and _TORCH_TYPE[name].is_floating_point
    return floats and _PAIRS not in (_NAME.get(x.dtype), name)


def with_derivatives(
    operator: Any, keys: Any, x: torch.Tensor, to: str, scales: tuple[Any, ...], options: dict[str, Any]
) -> torch.Tensor:
    """Casts with derivatives where both types are floating point; elsewhere the result has none.

    Args:
        operator: an overload that takes the tensor, the type, ``scales`` and the options.
    """
    if ((torch.is_grad_enabled() and x.requires_grad) or may_have_tangents()) and _carries_gradient(x, to):
        # Not Function.apply: the dispatcher has chosen the level of torch.func's transforms already.
        with enable_single_level_autograd_function():
            single_level: Any = super(torch.autograd.Function, _StraightThrough)
            result: torch.Tensor = single_level.apply(x, to, keys, operator, scales, options)
        return result
    return _below_autograd(operator, keys, x, to, scales, options)


def _with_derivatives(keys: Any, x: torch.Tensor, to: str, **options: Any) -> torch.Tensor:
    return with_derivatives(OPERATOR, keys, x, to, (), options)


def _scaled_with_derivatives(keys: Any, x: torch.Tensor, to: str, scale: torch.Tensor, **options: Any) -> torch.Tensor:
    if scale.requires_grad and torch.is_grad_enabled():
        raise CastError("scale= gets no gradient here; pass scale.detach()")
    return with_derivatives(SCALED, keys, x, to, (scale,), options)


_LIBRARY.impl("cast", _with_derivatives, "Autograd", with_keyset=True)
_LIBRARY.impl("cast_scaled", _scaled_with_derivatives, "Autograd", with_keyset=True)

# The dispatcher calls two functions in Python, 13 us for 100 elements; only transforms and tracers need it.
_PACKET: Any = torch.ops.tensorcast.cast
for _callable in (_PACKET, OPERATOR):
    if hasattr(_callable, "_op"):
        _callable._op = _core.make_torch_operator(_callable._op)


# torch.jit.script finds operators by the function behind them.
_PYTORCH.jit._builtins._register_builtin(_PACKET.op, "tensorcast::cast")


def called(x: torch.Tensor, to: str, *, scale: Any = 1.0, **options: Any) -> torch.Tensor:
    """Calls the operator for a tensor of any class."""
    options = for_schema(options)
    try:
        if isinstance(scale, torch.Tensor):
            scaled: torch.Tensor = SCALED(x, to, scale, **options)
            return scaled
        result: torch.Tensor = torch.ops.tensorcast.cast(x, to, scale=scale, **options)
    except (NotImplementedError, TypeError) as error:
        if type(x) in (torch.Tensor, torch.nn.Parameter) and not x.is_nested:
            raise
        raise TypeError(f"{type(x).__name__} does not take operators of others; cast the tensors that it is made of, "
                        "such as those of x.unbind(), or x.dequantize()") from error  # fmt: skip
    return result


# ONNX's Cast has these attributes; what another option changes, a model cannot say.
_IN_CAST = (*ONNX_ATTRIBUTES, "threads")


_NO_SCALE = "ONNX's Cast has no scale; leave it away, or run the cast outside of the model"


def onnx_attributes(to: str, **options: Any) -> dict[str, int | str]:
    """The attributes of the Cast that an exported model gets. CastError for options that Cast does not have."""
    lost = [name for name, value in options.items() if name not in _IN_CAST and value != DEFAULTS[name]]
    if lost:
        raise CastError(f"ONNX's Cast has no {lost[0]}; leave it away, or run the cast outside of the model")
    name = _core.dtype_name(to)
    attributes: dict[str, int | str] = {"to": next(row["onnx"] for row in _core.dtypes() if row["name"] == name)}
    if name.startswith("float8") and not options.get("saturate", True):
        attributes["saturate"] = 0
    if name == "float8_e8m0fnu" and options.get("round_mode", "up") != "up":
        attributes["round_mode"] = options["round_mode"]
    return attributes


def _since_opset(name: str) -> int:
    return next(row["since_opset"] for row in _core.dtypes() if row["name"] == _core.dtype_name(name)) or 0


def _symbolic(graph: Any, x: Any, to: Any, *given: Any) -> Any:
    """The node for the older exporter, torch.onnx.export(dynamo=False)."""
    constant = _PYTORCH.onnx.symbolic_helper._maybe_get_const
    kinds = {bool: "b", int: "i", float: "f", str: "s"}
    options = {name: constant(value, kinds[type(default)]) for (name, default), value in zip(OPTIONS.items(), given)}
    name = constant(to, "s")
    attributes = onnx_attributes(name, **options)
    source = x.type().dtype() if isinstance(x.type(), torch._C.TensorType) else None
    for each in (name, *([type_name(source)] if source is not None else [])):
        if (oldest := _since_opset(each)) > graph.opset:
            raise CastError(f"ONNX's Cast has {each} since opset {oldest}; export with opset_version={oldest} or newer")
    suffixed = {f"{name}_{'s' if isinstance(value, str) else 'i'}": value for name, value in attributes.items()}
    return graph.op("Cast", x, **suffixed)


def _no_symbolic(graph: Any, *_: Any) -> Any:
    raise CastError(_NO_SCALE)


_PYTORCH.onnx.register_custom_op_symbolic("tensorcast::cast", _symbolic, 9)
_PYTORCH.onnx.register_custom_op_symbolic("tensorcast::cast_scaled", _no_symbolic, 9)
