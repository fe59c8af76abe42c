"""The options of conversions. Printed by print_python_options from src/options/cast_options.hpp."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

RoundMode: TypeAlias = Literal["up", "down", "nearest"]
OutOfRange: TypeAlias = Literal["auto", "wrap", "saturate", "error"]
IntRounding: TypeAlias = Literal["trunc", "nearest_even"]
Invalid: TypeAlias = Literal["default", "error"]
FnuzInf: TypeAlias = Literal["spec", "flt_max"]
FloatString: TypeAlias = Literal["plain", "shortest", "g8"]
PromoteRules: TypeAlias = Literal["openvino", "numpy", "torch", "jax", "jax_strict", "tensorflow"]


class CommonOptions(TypedDict, total=False):
    opset: int
    saturate: bool
    round_mode: RoundMode
    out_of_range: OutOfRange
    int_rounding: IntRounding
    invalid: Invalid
    fnuz_inf: FnuzInf
    float_string: FloatString
    threads: int


class CastOptions(CommonOptions, total=False):
    """The options of every conversion. :func:`tensorcast.cast` describes them.

    For a function of your own that hands them on: ``def f(x, **options: Unpack[tensorcast.CastOptions])``.
    """

    scale: float


DEFAULTS: dict[str, Any] = {
    "opset": 0,
    "saturate": True,
    "round_mode": "up",
    "out_of_range": "auto",
    "int_rounding": "trunc",
    "invalid": "default",
    "fnuz_inf": "spec",
    "float_string": "plain",
    "scale": 1.0,
    "threads": 0,
}
ONNX_ATTRIBUTES = ("saturate", "round_mode")
STRING_OPTIONS = ("float_string",)
