# SPDX-License-Identifier: Apache-2.0
"""tensorcast.cast() of a mapping of names to tensors, such as a state_dict."""

from __future__ import annotations

import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import _core
from .._interop import _foreign
from . import _arrays, _general, _numpy_types, _tensors
from .._convert_options import OF_MAPPINGS, REQUEST_DEFAULTS
from .._errors import CastError, LossWarning, callers_level, in_python, of_tensor

_PER_TENSOR = ("copy", "order", "report")


_MISSING = object()


def cast(x: Any = _MISSING, /, to: Any = _MISSING, **keywords: Any) -> Any:
    """The general form of ``tensorcast.cast``: arrays, tensors, texts, and mappings of them."""
    if x is _MISSING:
        raise TypeError("cast() takes the array first, without a keyword: tensorcast.cast(x, 'float16')")
    if to is _MISSING:
        raise TypeError("cast() needs a type to convert to, such as tensorcast.cast(x, 'float16')")
    if isinstance(x, Mapping):
        return _cast_mapping(x, to, keywords)
    for name in OF_MAPPINGS:
        if name in keywords:
            given = keywords.pop(name)
            default = REQUEST_DEFAULTS[name]
            if given is not default and given != default:
                raise TypeError(f"{name}= chooses tensors of a mapping, such as a state_dict; x is {type(x).__name__}")
    return _general.cast(x, to, **keywords)


def _is_tensor(value: Any) -> bool:
    if _tensors.is_torch(value):  # a nested one has no shape to ask for
        return True
    return (hasattr(value, "dtype") and hasattr(value, "shape")) or _foreign.is_foreign(value)


def _items(x: Any) -> Iterator[tuple[Any, Any]] | None:
    """What a container holds, by key or index; None for anything else."""
    if isinstance(x, Mapping):
        return iter(x.items())
    return enumerate(x) if type(x) in (list, tuple) or hasattr(x, "_fields") else None


def _leaves(x: Any, prefix: str = "") -> Iterator[tuple[Any, Any]]:
    """The tensors of a container and of those inside it: ``"a.0.b"`` is in ``x["a"][0]["b"]``."""
    for key, value in _items(x) or ():
        if _is_tensor(value):
            yield f"{prefix}{key}" if prefix else key, value
        elif _items(value) is not None:
            yield from _leaves(value, f"{prefix}{key}.")


def _rebuilt(x: Any, tensors: Iterator[Any]) -> Any:
    """The container with other tensors; what holds none is the same object."""
    found = [
        (key, next(tensors) if _is_tensor(value) else value if _items(value) is None else _rebuilt(value, tensors))
        for key, value in _items(x) or ()
    ]
    if isinstance(x, OrderedDict):
        made = OrderedDict(found)
        vars(made).update(vars(x))  # _metadata of PyTorch's state_dict
        return made
    if isinstance(x, Mapping):
        return dict(found)
    values = [value for _, value in found]
    return type(x)(*values) if hasattr(x, "_fields") else type(x)(values)


def _dtype_of(value: Any) -> str:
    """The type's name; that of another library for a type that no cast knows."""
    if isinstance(value, np.ndarray) or _foreign.is_foreign(value):
        value = _arrays.as_plain_array(value)
    try:
        if isinstance(value, (np.ndarray, np.generic)):
            return _numpy_types.name_of(np.asarray(value))
        return _core.dtype_name(value.dtype)
    except (TypeError, CastError):
        return f"{value.dtype} of {type(value).__module__.partition('.')[0]}"


def _named_type(name: Any, value: Any) -> str:
    with of_tensor(name):  # what cast() of the tensor alone refuses, too
        return _dtype_of(value)


def _memory_of(value: Any) -> object:
    """Equal for tied tensors: those with the same elements of the same memory."""
    if _tensors.is_torch(value) and value.device.type == "cpu":
        from .._interop._torch_memory import memory_of

        return memory_of(value)
    if isinstance(value, np.ndarray) and value.size:
        return value.ctypes.data, value.shape, value.strides, value.dtype
    return id(value)


def _kept(value: Any, copy: bool) -> Any:
    if not copy:
        return value
    return value.clone() if _tensors.is_torch(value) else value.copy() if hasattr(value, "copy") else value


def _cast_mapping(x: Mapping[Any, Any], to: Any, keywords: dict[str, Any]) -> Any:
    from .. import _requests  # with the results of files, which take longer to import than the first cast of an array

    request = {"to": to, **_requests.fields(keywords, OF_MAPPINGS)}
    per_tensor = {name: keywords.pop(name) for name in _PER_TENSOR if name in keywords}
    for name, default in (("out", None), ("packed", False), ("from_", None), ("shape", None)):
        if keywords.pop(name, default) is not default:
            raise TypeError(f"{name}= is for one array, not for a mapping")
    _core.check_options({name: value for name, value in keywords.items() if name != "scale"})
    scale = keywords.get("scale", 1.0)
    if not isinstance(scale, (int, float)):
        raise TypeError("scale= of a mapping is one number")
    leaves = list(_leaves(x))
    rows = [(str(name), _named_type(name, value), _shape_of(value)) for name, value in leaves]
    if to is None and not request["rules"]:
        raise CastError("there is no type to convert to; name it as the second argument, or types with rules=")
    planned = _core.plan_tensors(rows, request, keywords)
    _tell_what_is_left(planned)
    plan = iter(planned)
    report = bool(per_tensor.pop("report", False))
    copy = bool(per_tensor.get("copy", True))
    results: list[Any] = []
    reports: dict[Any, _core.CastReport] = {}
    made: dict[object, Any] = {}
    for name, value in leaves:
        row = next(plan)
        key = (_memory_of(value), row["to"], row["scale"])
        if key not in made:
            options = {**with_seed_of(name, keywords), "scale": row["scale"]}
            made[key] = _converted(name, value, row, per_tensor, options, copy, report)
        done, of_this = made[key]
        results.append(done)
        if report and of_this is not None:
            reports[name] = of_this
    result = _rebuilt(x, iter(results))
    return (result, reports) if report else result


def with_seed_of(name: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a tensor, whose random bits depend on its name, as in a file: rule D16."""
    if options.get("rounding") != "stochastic":
        return options
    digest = hashlib.sha256(str(name).encode()).digest()
    return {**options, "seed": int(options.get("seed", 0)) ^ int.from_bytes(digest[:8], "big")}


def _shape_of(value: Any) -> tuple[int, ...]:
    if type(value).__name__ == "TensorProto":
        return tuple(value.dims)
    if getattr(value, "is_nested", False):  # a length for each part
        return (value.size(0),)
    return tuple(value.shape) if hasattr(value, "shape") else (len(value),)  # of pyarrow


def _tell_what_is_left(planned: list[dict[str, Any]]) -> None:
    """Warns of tensors that keep their type for their names alone."""
    left = [row["name"] for row in planned if row["left"] and row["why"] == "optimizer_state"]
    if left:
        others = f" and {len(left) - 1} more" if len(left) > 1 else ""
        warnings.warn(
            f"tensor {left[0]!r}{others} would be an optimizer's state by the name, which stays as it is; "
            "a rule of rules= converts it",
            stacklevel=callers_level(),
        )


def _converted(
    name: Any,
    value: Any,
    row: dict[str, Any],
    per_tensor: dict[str, Any],
    options: dict[str, Any],
    copy: bool,
    report: bool,
) -> tuple[Any, _core.CastReport | None]:
    """The tensor, and its report if it was converted with one. Warns as convert() does if it is destroyed."""
    from_, to = row["from_"], row["to"]
    if from_ == to and row["scale"] == 1:
        return _kept(value, copy), None
    # bfloat16 has the range of float32, and measuring takes as long as the conversion.
    has_range = from_ == "float32" and to == "bfloat16" and row["scale"] == 1
    judged = _has_elements(value) and not has_range and _core.may_lose(from_, to, options)
    with of_tensor(name):
        done = _general.cast(value, to, **per_tensor, **options, report=report or judged)
    if not (report or judged):
        return done, None
    if judged:
        _tell_damage(name, value, done[1], from_, to)
    return done[0], done[1] if report else None


def _has_elements(value: Any) -> bool:
    return str(getattr(value, "device", "")) != "meta"


def _tell_damage(name: Any, value: Any, report: _core.CastReport, from_: str, to: str) -> None:
    nonzero = report.count
    if report.underflowed_to_zero:
        nonzero = int(_general.cast(value, "bool").sum())
    damage = _core.damage_of(report, nonzero, from_, to)
    if damage is not None:
        what, remedy = (in_python(words) for words in damage)
        warnings.warn(f"tensor {name!r} ({from_} to {to}): {what}; {remedy}", LossWarning, stacklevel=callers_level())
