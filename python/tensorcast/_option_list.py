"""The options of conversions. Printed by print_python_options from src/options/cast_options.hpp."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

RoundMode: TypeAlias = Literal["up", "down", "nearest"]
OutOfRange: TypeAlias = Literal["auto", "wrap", "saturate", "error"]
Rounding: TypeAlias = Literal["auto", "nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd", "stochastic"]
Invalid: TypeAlias = Literal["default", "error"]
FnuzInf: TypeAlias = Literal["spec", "flt_max"]
FloatString: TypeAlias = Literal["plain", "shortest", "g8"]
Inexact: TypeAlias = Literal["auto", "error"]
PromoteRules: TypeAlias = Literal["openvino", "numpy", "torch", "jax", "jax_strict", "tensorflow"]


class CommonOptions(TypedDict, total=False):
    opset: int
    saturate: bool
    round_mode: RoundMode
    out_of_range: OutOfRange
    rounding: Rounding
    invalid: Invalid
    fnuz_inf: FnuzInf
    float_string: FloatString
    seed: int
    inexact: Inexact
    threads: int


class CastOptions(CommonOptions, total=False):
    """The options of every conversion. :func:`tensorcast.cast` describes them.

    For a function of your own that hands them on: ``def f(x, **options: Unpack[tensorcast.CastOptions])``.

    Examples:
        >>> options: tc.CastOptions = {"rounding": "nearest_even", "out_of_range": "saturate"}
        >>> tc.cast(np.float32([2.7, 300]), "uint8", **options)
        array([  3, 255], dtype=uint8)
    """

    scale: float


DEFAULTS: dict[str, Any] = {
    "opset": 0,
    "saturate": True,
    "round_mode": "up",
    "out_of_range": "auto",
    "rounding": "auto",
    "invalid": "default",
    "fnuz_inf": "spec",
    "float_string": "plain",
    "scale": 1.0,
    "seed": 0,
    "inexact": "auto",
    "threads": 0,
}
ONNX_ATTRIBUTES = ("saturate", "round_mode")
STRING_OPTIONS = ("float_string",)
SYNONYMS: dict[str, dict[str, str]] = {
    "rounding": {
        "nearest-even": "nearest_even",
        "nearest-away": "nearest_away",
        "towards-zero": "toward_zero",
        "trunc": "toward_zero",
        "towards-positive": "toward_positive",
        "up": "toward_positive",
        "towards-negative": "toward_negative",
        "down": "toward_negative",
    },
}
