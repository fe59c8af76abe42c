# SPDX-License-Identifier: Apache-2.0
"""Casts inside PyTorch programs: an operator for ``torch.compile``, ``torch.export`` and autograd.

>>> import torch, tensorcast.torch
>>> torch.ops.tensorcast.cast(torch.tensor([0.1, 465.0]), "float8_e4m3fn", saturate=False)
tensor([0.1016,    nan], dtype=torch.float8_e4m3fn)

The operator has the options of :func:`tensorcast.cast`. It always returns a new tensor, which has the layout of its
input (``channels_last`` stays). ``torch.ops.tensorcast.cast_scaled(x, to, scale)`` takes the scale as a tensor, which
compiled code reads when it runs. Its gradient is straight-through, as that of :class:`tensorcast.CastNode`: ``cast(scale *
grad_output, input's type)``; there is none from or to types that are not floating point.

:class:`QuantizedReader` decodes quantized checkpoints while ``torch.distributed.checkpoint`` loads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from . import _core, _requests
from ._cast._arrays import scale_is_one
from ._cast._mappings import with_seed_of
from ._device import _entry, _operator
from ._device._tensors import check_number
from ._interop import _torch_operator
from ._errors import CastError
from ._interop._torch import _NAME, type_name
from ._interop._torch_memory import memory_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._interop._torch_checkpoint import QuantizedReader

    from ._options import CastOptions, DTypeLike
    from ._request_types import Rule, Rules

__all__ = ["QuantizedReader", "cast", "cast_on_device", "convert_module"]

_Module = TypeVar("_Module", bound=nn.Module)


def cast(x: torch.Tensor, to: DTypeLike, **options: Unpack[CastOptions]) -> torch.Tensor:
    """Calls ``torch.ops.tensorcast.cast``; ``to`` may be any spelling of a type, also ``torch.bfloat16``.

    Args:
        x: a dense tensor on any device.
        to: a type that PyTorch has.
        **options: those of :func:`tensorcast.cast`, but ``float_string``; ``scale`` is a number or a tensor.

    Raises:
        CastError: as :func:`tensorcast.cast`.
        TypeError: PyTorch or the operator lacks the type, or the tensor's class takes no operators of others.

    Examples:
        >>> import torch, tensorcast.torch
        >>> tensorcast.torch.cast(torch.tensor([0.1, 465.0]), torch.float8_e4m3fn, saturate=False)
        tensor([0.1016,    nan], dtype=torch.float8_e4m3fn)
    """
    if not isinstance(options.get("saturate", True), (bool, int)):  # PyTorch takes None for the default
        raise CastError(f"saturate must be True or False, not {options.get('saturate')!r}")
    return _torch_operator.called(x, type_name(to), **options)


def cast_on_device(
    x: torch.Tensor, to: DTypeLike, *, from_: DTypeLike | None = None, fused: bool = False, **options: Any
) -> torch.Tensor:
    """Casts by integer operations and lookups of PyTorch, on the device of ``x``: the bits are the CPU's everywhere.

    :func:`tensorcast.cast` and the operator do this for tensors that are not on the CPU. This function does it for
    tensors on the CPU, too, and takes and makes codes of types that PyTorch or the device lacks.

    Args:
        x: a dense tensor.
        to: any type but strings. The result is of PyTorch's type, or, if PyTorch or the device lacks it, integers that
            hold its codes: uint8 for 8 bits and fewer, one element a byte.
        from_: the type of the codes that ``x``, a tensor of integers of that width, holds.
        fused: compile the operations to one kernel by ``torch.compile``. The first call of each pair of types and options
            takes seconds, with a scale up to half a minute; another scale compiles nothing. Stochastic rounding, and
            options that are ``"error"``, run operation by operation.
        **options: those of :func:`tensorcast.cast`, but ``float_string``; ``scale`` may be a tensor that broadcasts to
            ``x``, of float64, float32, float16 or bfloat16.

    Nothing waits for the device, unless ``out_of_range``, ``invalid`` or ``inexact`` is ``"error"``: then the call waits once.

    Raises:
        CastError: as :func:`tensorcast.cast`.

    Examples:
        >>> import torch, tensorcast.torch
        >>> tensorcast.torch.cast_on_device(torch.tensor([0.1, 465.0]), "float6_e3m2fn")
        tensor([ 2, 31], dtype=torch.uint8)
    """
    scale = options.pop("scale", 1.0)
    scales = _entry.given_scales(scale, x.device)
    if scales is None and not scale_is_one(scale):
        options["scale"] = float(scale)
        if fused:  # a number would be compiled in, and another one anew
            check_number(options["scale"])
            scales = _entry.given_scales(np.asarray(options.pop("scale")), x.device)
    source = "" if from_ is None else type_name(from_)
    name = type_name(to)
    options = _torch_operator.for_schema(options)
    result: torch.Tensor
    if fused:
        result = _operator.fused(x.dtype, name, source, tuple(sorted(options.items())))(x, scales)
        return result
    result = _operator.OPERATOR(x, name, scales, from_=source, **options)
    return result


def __getattr__(name: str) -> Any:
    if name == "QuantizedReader":  # importing torch.distributed.checkpoint takes long, and not every PyTorch has it
        from ._interop._torch_checkpoint import QuantizedReader

        return QuantizedReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _CastWhenRead(nn.Module):
    """A parametrization: the stored tensor, cast to the type that the module computes in."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self.to_type = to

    def forward(self, stored: torch.Tensor) -> torch.Tensor:
        if _NAME[stored.dtype] == self.to_type:
            return stored
        result: torch.Tensor = torch.ops.tensorcast.cast(stored, self.to_type)
        return result

    def extra_repr(self) -> str:
        return self.to_type


class _CastBuffer(_CastWhenRead):
    """The same for a buffer, which modules update in place: all reads give one tensor, until it is written back."""

    def __init__(self, to: str, stored_type: str) -> None:
        super().__init__(to)
        self.stored_type = stored_type
        self._given: tuple[torch.Tensor, torch.Tensor, Any] | None = None  # what was read, of what, and its versions

    def _versions(self, given: torch.Tensor, stored: torch.Tensor) -> tuple[int, int] | None:
        return None if torch.compiler.is_compiling() else (given._version, stored._version)

    def forward(self, stored: torch.Tensor) -> torch.Tensor:
        if _NAME[stored.dtype] == self.to_type:
            return stored
        if self._given is not None and self._is_current(stored):
            return self._given[0]
        given = super().forward(stored)
        self._given = (given, stored, self._versions(given, stored))
        return given

    def right_inverse(self, value: torch.Tensor) -> torch.Tensor:
        """What an assignment to the buffer stores."""
        self._given = None
        return value if _NAME[value.dtype] == self.stored_type else cast(value.detach(), self.stored_type)

    def _is_current(self, stored: torch.Tensor) -> bool:
        """Reports whether what was read is still that of `stored`, which loading and moving a module change."""
        assert self._given is not None
        _, source, versions = self._given
        return source is stored and (versions is None or versions[1] == stored._version)

    def write_back(self, stored: torch.Tensor, training: bool) -> None:
        """Stores the elements that somebody changed in the tensor that was read."""
        if self._given is None:
            return
        (given, _, versions), current = self._given, self._is_current(stored)
        self._given = None
        # Batch norm updates its statistics without counting a version; it does so in training alone.
        if not current or (not training and versions is not None and given._version == versions[0]):
            return
        with torch.no_grad():
            changed = cast(given.detach(), self.stored_type)
            if changed.shape == given.shape:  # not pairs of float4, which come back as they were
                changed = torch.where(given == cast(stored, self.to_type), stored, changed)
            stored.copy_(changed)


def _stored_key(prefix: str, name: str) -> str:
    return f"{prefix}parametrizations.{name}.original"


def _cast_steps(module: nn.Module) -> dict[str, _CastWhenRead]:
    """The tensors of a module that are cast when they are read, and what does it."""
    lists: Any = getattr(module, "parametrizations", {})
    return {name: step for name, steps in lists.items() for step in steps if isinstance(step, _CastWhenRead)}


def _write_back(module: nn.Module, *_: Any) -> None:
    for name, step in _cast_steps(module).items():
        if isinstance(step, _CastBuffer):
            step.write_back(module.parametrizations[name].original, module.training)  # type: ignore[index, union-attr]


def _save_under_old_names(module: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    for name in _cast_steps(module):
        if _stored_key(prefix, name) in state:
            state[prefix + name] = state.pop(_stored_key(prefix, name))


def _load_from_old_names(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in _cast_steps(module):
        if prefix + name in state:
            state[_stored_key(prefix, name)] = state.pop(prefix + name)


def _cast_when_read(module: nn.Module, name: str, to: str) -> None:
    """Lets the module see its tensor `name` in the type `to`."""
    stored: torch.Tensor = getattr(module, name)
    if not _cast_steps(module):
        module._register_state_dict_hook(_save_under_old_names)  # type: ignore[no-untyped-call]
        module._register_load_state_dict_pre_hook(_load_from_old_names, with_module=True)  # type: ignore[no-untyped-call]
        module.register_state_dict_pre_hook(_write_back)  # type: ignore[no-untyped-call]
        module.register_forward_hook(_write_back)
    is_buffer, is_saved = name in module._buffers, name not in module._non_persistent_buffers_set
    step = _CastBuffer(to, _NAME[stored.dtype]) if is_buffer else _CastWhenRead(to)
    parametrize.register_parametrization(module, name, step, unsafe=True)
    if not is_saved:
        module.parametrizations[name]._non_persistent_buffers_set.add("original")  # type: ignore[index, union-attr]


class _Place(NamedTuple):
    """A tensor of a module, by one of its names."""

    name: str  # as of state_dict()
    module: nn.Module
    key: str
    tensor: torch.Tensor
    step: _CastWhenRead | None  # casts it already when it is read


def _places(model: nn.Module) -> list[_Place]:
    """All parameters and buffers of the model, by all their names."""
    found = []
    cast_before: dict[str, tuple[str, _CastWhenRead]] = {}  # by the name of the module that holds the stored tensor
    for prefix, module in model.named_modules(remove_duplicate=False):
        dotted = f"{prefix}." if prefix else ""
        for name, step in _cast_steps(module).items():
            cast_before[f"{dotted}parametrizations.{name}"] = (dotted + name, step)
        for key, tensor in [*module._parameters.items(), *module._buffers.items()]:
            if tensor is not None:
                name, step_before = cast_before.get(prefix, (dotted + key, None))
                found.append(_Place(name, module, key, tensor, step_before))
    return found


class _ModuleRule:
    """A rule, with its expression compiled."""

    def __init__(self, rule: Rule) -> None:
        if rule.kind:
            raise CastError("kind= of a rule is for files and folders; name the tensors of a module")
        self.rule, self.used = rule, False
        try:
            self.expression = re.compile(rule.match)
        except re.error as cause:
            raise CastError(f"the regular expression {rule.match!r} is wrong: {cause}") from cause
        self.to = None if rule.to is None else type_name(rule.to)

    def matches(self, place: _Place) -> bool:
        ranks = (self.rule.rank,) if isinstance(self.rule.rank, int) else self.rule.rank
        fits = (not ranks or place.tensor.dim() in ranks) and (not self.rule.smaller or place.tensor.numel() < self.rule.smaller)
        found = fits and self.expression.search(place.name) is not None
        self.used = self.used or found
        return found


def _check_module(model: Any, compute: str | None) -> None:
    """Raises an error for what cannot be converted in place."""
    if not isinstance(model, nn.Module):
        way = "tensorcast.cast() takes mappings of tensors" if isinstance(model, Mapping) else "tensorcast.cast() takes tensors"
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}; {way}")
    for name, module in model.named_modules():
        called = f"module {name!r}" if name else "the model"
        if compute is not None and isinstance(module, torch.jit.ScriptModule):
            raise CastError(f"{called} is a ScriptModule, which cannot cast tensors that are read; leave compute_dtype out, "
                            "or convert the module before it is traced")  # fmt: skip
        if getattr(module, "has_uninitialized_params", bool)():
            raise CastError(f"{called} has parameters without a shape yet; call the model once before it is converted")


def _targets(places: list[_Place], rules: list[_ModuleRule], options: dict[str, Any]) -> dict[Any, tuple[str, dict[str, Any]]]:
    """The type of each tensor that a rule matches by one of its names, and the options of its cast."""
    decided: dict[Any, tuple[str, _ModuleRule]] = {}
    for place in places:
        matches = [rule for rule in rules if rule.matches(place)]
        if not matches:
            continue
        other, rule = decided.setdefault(memory_of(place.tensor), (place.name, matches[0]))
        if rule.to != matches[0].to:
            raise CastError(f"{other} and {place.name} are one tensor, and get two types: {rule.to} and {matches[0].to}")
    if unused := sorted(str(rule.rule.match) for rule in rules if not rule.used):
        raise CastError(f"no tensor of the model matches {', '.join(map(repr, unused))}")
    targets = {}
    for memory, (name, rule) in decided.items():
        if rule.to is not None:
            scale = {} if rule.rule.scale is None else {"scale": rule.rule.scale}
            targets[memory] = (rule.to, {**with_seed_of(name, options), **scale})
    return targets


def convert_module(
    model: _Module,
    rules: Rules,
    *,
    compute_dtype: DTypeLike | None = None,
    **options: Unpack[CastOptions],
) -> _Module:
    """Casts parameters and buffers of ``model`` in place, by rules on their names. After an error nothing has changed.

    Args:
        model: tensors that it shares stay shared: a rule for one of the names is one for all, and two names may not get
            two types.
        rules: ``{regular expression: dtype}``; the first that matches anywhere in a tensor's name, as of
            ``state_dict()``, decides. Or pairs of them, or :class:`tensorcast.Rule`, whose ``to=None`` keeps a tensor.
            Others stay as they are.
        compute_dtype: the type in which the model sees the tensors; they are cast to it whenever they are read, so that
            layers can compute on float8 weights. ``state_dict()`` keeps its keys and has the stored tensors. ``None``: it
            sees them as they are stored. A buffer that the module changes, such as a mean of batch norm, is stored again,
            and rounded, at the end of the module's ``forward`` and by ``state_dict()``. PyTorch cannot add float8
            gradients, as training a float8 tensor that the model reads twice would need.
        **options: those of :func:`tensorcast.cast`, but ``float_string``. Stochastic rounding gives each tensor random bits
            by its name, as :func:`tensorcast.cast` of ``model.state_dict()``.

    Returns:
        ``model``. ``requires_grad`` stays, but integers and bools have none.

    Raises:
        CastError: a rule matches nothing, a shared tensor would get two types, the model has lazy modules or scripted ones
            that cannot compute in another type, or as :func:`tensorcast.cast`.

    Examples:
        >>> import torch, tensorcast.torch
        >>> rules = {"bias": "float32", "weight": "float8_e4m3fn"}  # {"": "bfloat16"} would match all tensors
        >>> model = tensorcast.torch.convert_module(torch.nn.Linear(4, 2), rules, compute_dtype="bfloat16")
        >>> model(torch.ones(4, dtype=torch.bfloat16)).dtype
        torch.bfloat16
    """
    if isinstance(rules, str):
        raise TypeError(f"rules is a mapping of regular expressions to dtypes, such as {{'': {rules!r}}} for all tensors, not a string")
    chosen_by = [_ModuleRule(rule) for rule in _requests.listed_rules(rules)]
    compute = None if compute_dtype is None else type_name(compute_dtype)
    _core.check_options({name: value for name, value in options.items() if name != "scale"})
    _check_module(model, compute)
    places = _places(model)
    targets = _targets(places, chosen_by, dict(options))
    for module in model.modules():
        _write_back(module)
    made: dict[Any, torch.Tensor] = {}  # by memory
    converted: dict[int, torch.Tensor] = {}  # by tensor
    chosen = [place for place in places if memory_of(place.tensor) in targets]
    for place in chosen:
        tensor, memory = place.tensor, memory_of(place.tensor)
        if memory not in made:
            to, of_tensor = targets[memory]
            made[memory] = cast(tensor.detach(), to, **of_tensor)
        if id(tensor) not in converted:
            result = made[memory].detach()
            if isinstance(tensor, nn.Parameter):
                result = nn.Parameter(result, tensor.requires_grad and result.is_floating_point())
            converted[id(tensor)] = result
    for place in {(id(place.module), place.key): place for place in chosen}.values():  # shared modules have two names
        result = converted[id(place.tensor)]
        held: Any = place.module._parameters if isinstance(result, nn.Parameter) else place.module._buffers
        held[place.key] = result
        stored_type = _NAME[result.dtype]
        if place.step is not None:
            place.step.to_type = compute or stored_type
            if isinstance(place.step, _CastBuffer):
                place.step.stored_type = stored_type
        elif compute is not None and stored_type != compute:
            _cast_when_read(place.module, place.key, compute)
    return model
