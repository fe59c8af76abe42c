"""ONNX's Cast for the operator in torch.onnx.export. Imports onnxscript: see _torch_hooks.py."""

from __future__ import annotations

from typing import Any

import onnxscript  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]
from torch.onnx._internal.exporter._torchlib._torchlib_registry import onnx_impl

from ._torch_operator import OPERATOR, onnx_attributes


@onnx_impl(OPERATOR, trace_only=True)
def cast(
    x: Any,
    to: str,
    opset: int = 0,
    saturate: bool = True,
    round_mode: str = "up",
    out_of_range: str = "auto",
    int_rounding: str = "trunc",
    invalid: str = "default",
    fnuz_inf: str = "spec",
    threads: int = 0,
    scale: float = 1.0,
) -> Any:
    """The node of the operator."""
    attributes = onnx_attributes(
        to, opset=opset, saturate=saturate, round_mode=round_mode, out_of_range=out_of_range,
        int_rounding=int_rounding, invalid=invalid, fnuz_inf=fnuz_inf, scale=scale,
    )  # fmt: skip
    opsets: Any = onnxscript.onnx_opset
    version = opsets.opset24 if "round_mode" in attributes else opsets.opset19 if "saturate" in attributes else opsets.opset18
    return version.Cast(x, **attributes)
