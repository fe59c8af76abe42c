"""tensorcast.cast() of a mapping of names to tensors, such as a state_dict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _arrays, _core, _requests, _tensors
from ._errors import CastError

_SELECTION: dict[str, Any] = {
    "rules": (),
    "include": (),
    "exclude": (),
    "keep_rank": (),
    "keep_smaller": 0,
    "preset": None,
    "raw_codes": False,
}
_PER_TENSOR = ("copy", "order", "report")


def cast(x: Any, to: Any, /, **keywords: Any) -> Any:
    """The general form of ``tensorcast.cast``: arrays, tensors, texts, and mappings of them."""
    if isinstance(x, Mapping):
        return _cast_mapping(x, to, keywords)
    for name, default in _SELECTION.items():
        if name in keywords:
            given = keywords.pop(name)
            if given is not default and given != default:
                raise TypeError(f"{name}= chooses tensors of a mapping, such as a state_dict; x is {type(x).__name__}")
    return _arrays.cast(x, to, **keywords)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _dtype_of(value: Any) -> str:
    """The type's name; that of another library for a type that no cast knows."""
    try:
        if isinstance(value, (np.ndarray, np.generic)):
            return _arrays.name_of(_arrays.as_plain_array(value))
        return _core.dtype_name(value.dtype)
    except (TypeError, CastError):
        return f"{value.dtype} of {type(value).__module__.partition('.')[0]}"


def _memory_of(value: Any) -> object:
    """Equal for tied tensors: those with the same elements of the same memory."""
    if _tensors.is_torch(value) and value.device.type == "cpu" and value.numel():
        return value.data_ptr(), value.shape, value.stride(), value.dtype
    if isinstance(value, np.ndarray) and value.size:
        return value.ctypes.data, value.shape, value.strides, value.dtype.str
    return id(value)


def _kept(value: Any, copy: bool) -> Any:
    if not copy:
        return value
    return value.clone() if _tensors.is_torch(value) else value.copy() if hasattr(value, "copy") else value


def _cast_mapping(x: Mapping[Any, Any], to: Any, keywords: dict[str, Any]) -> Any:
    chosen = {name: keywords.pop(name, default) for name, default in _SELECTION.items()}
    per_tensor = {name: keywords.pop(name) for name in _PER_TENSOR if name in keywords}
    for name, default in (("out", None), ("packed", False), ("from_", None)):
        if keywords.pop(name, default) is not default:
            raise TypeError(f"{name}= is for one array, not for a mapping")
    _core.check_options({name: value for name, value in keywords.items() if name != "scale"})
    scale = keywords.get("scale", 1.0)
    if not isinstance(scale, (int, float)):
        raise TypeError("scale= of a mapping is one number")
    rows = []
    for name, value in x.items():
        if isinstance(value, Mapping):
            raise TypeError(f"x[{name!r}] is a mapping itself; cast the mapping that has the tensors")
        if _is_tensor(value):
            rows.append((str(name), _dtype_of(value), tuple(value.shape)))
    request = _requests.selection(to, **chosen)
    if to is None and not request["rules"]:
        raise CastError("there is no type to convert to; name it as the second argument, or types with rules=")
    plan = iter(_core.plan_tensors(rows, request, keywords))
    report = bool(per_tensor.get("report", False))
    copy = bool(per_tensor.get("copy", True))
    result: dict[Any, Any] = OrderedDict() if isinstance(x, OrderedDict) else {}
    reports: dict[Any, _core.CastReport] = {}
    made: dict[object, Any] = {}
    for name, value in x.items():
        if not _is_tensor(value):
            result[name] = value
            continue
        row = next(plan)
        key = (_memory_of(value), row["to"])
        if key not in made:
            made[key] = _converted(name, value, row, scale, per_tensor, keywords, copy)
        result[name], of_this = made[key]
        if report and of_this is not None:
            reports[name] = of_this
    if isinstance(x, OrderedDict) and isinstance(result, OrderedDict):
        vars(result).update(vars(x))  # _metadata of PyTorch's state_dict
    return (result, reports) if report else result


def _converted(
    name: Any,
    value: Any,
    row: dict[str, Any],
    scale: float,
    per_tensor: dict[str, Any],
    options: dict[str, Any],
    copy: bool,
) -> tuple[Any, _core.CastReport | None]:
    """The tensor, and its report if it was converted with one."""
    converts = row["to"] != row["from_"] or (scale != 1 and row["reason"].startswith(("--to", "rule ")))
    if not converts:
        return _kept(value, copy), None
    try:
        done = _arrays.cast(value, row["to"], **per_tensor, **options)
    except CastError as error:
        error.tensor = str(name)
        error.args = (f"tensor {name!r}: {error}",)
        raise
    return done if per_tensor.get("report") else (done, None)
