# SPDX-License-Identifier: Apache-2.0
"""ONNX's Cast for the operator in torch.onnx.export. Imports onnxscript: see _torch_hooks.py."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import onnxscript  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]
from torch.onnx._internal.exporter._torchlib._torchlib_registry import onnx_impl

from .. import _core
from .._errors import CastError
from ._torch_operator import _NO_SCALE, OPERATOR, OPTIONS, SCALED, onnx_attributes


def cast(x: Any, to: str, **options: Any) -> Any:
    """The node of the operator."""
    attributes = onnx_attributes(to, **options)
    opsets: Any = onnxscript.onnx_opset
    source = getattr(getattr(x, "dtype", None), "value", None)  # ONNX's number
    rows = {row["name"]: row for row in _core.dtypes() if row["name"] == to or row["onnx"] == source}
    since = max(row["since_opset"] for row in rows.values())
    needed = max(since, 24 if "round_mode" in attributes else 19 if "saturate" in attributes else 13)
    evaluator: Any = importlib.import_module("onnxscript.evaluator")
    exported = getattr(getattr(evaluator.default(), "opset", None), "version", None)
    if exported is not None and exported < needed:
        which = f"to {to}" if rows[to]["since_opset"] == since else "from " + next(name for name in rows if name != to)
        raise CastError(f"Cast {which} needs opset {needed}, and this export has {exported}: pass opset_version={needed}")
    version = opsets.opset24 if "round_mode" in attributes else opsets.opset19 if "saturate" in attributes else opsets.opset18
    return version.Cast(x, **attributes)


# The exporter reads the options in the signature.
_TYPES = {"x": Any, "to": str, **{name: type(default) for name, default in OPTIONS.items()}}
cast.__annotations__ = {**_TYPES, "return": Any}
setattr(cast, "__signature__", inspect.Signature([
    inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=OPTIONS.get(name, inspect.Parameter.empty), annotation=kind)
    for name, kind in _TYPES.items()
]))  # fmt: skip
onnx_impl(OPERATOR, trace_only=True)(cast)


def scaled(x: Any, to: str, scale: Any, **_: Any) -> Any:
    """There is no node for a scale."""
    raise CastError(_NO_SCALE)


_SCALED_TYPES = {"x": Any, "to": str, "scale": Any}
scaled.__annotations__ = {**_SCALED_TYPES, "return": Any}
setattr(scaled, "__signature__", inspect.Signature([
    inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in _SCALED_TYPES.items()
]))  # fmt: skip
onnx_impl(SCALED, trace_only=True)(scaled)
