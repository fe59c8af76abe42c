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
# Of conversions of files.
REQUEST_DEFAULTS: dict[str, Any] = {
    "rules": (),
    "include": (),
    "exclude": (),
    "only": (),
    "drop": (),
    "rename": (),
    "skip_files": (),
    "keep_rank": (),
    "keep_smaller": 0,
    "preset": None,
    "max_shard_size": None,
    "single_file": False,
    "dry_run": False,
    "zero_limit": 0.01,
    "report": False,
    "verify": False,
    "allow_odd": False,
    "raw_codes": False,
    "budget": None,
    "candidates": (),
    "recipe": None,
    "spelling": None,
    "compute_dtype": None,
    "group_size": 0,
    "symmetric": True,
    "power_of_two_scales": False,
    "fuse": None,
    "nonfinite": None,
    "clip": None,
    "convrot": 0,
    "importance": None,
    "respell": None,
    "exact": False,
    "overwrite": False,
    "parents": False,
}
# How their values are read.
REQUEST_KINDS: dict[str, str] = {
    "rules": "rules",
    "include": "pattern",
    "exclude": "pattern",
    "only": "pattern",
    "drop": "pattern",
    "rename": "renames",
    "skip_files": "glob",
    "keep_rank": "ranks",
    "keep_smaller": "count",
    "preset": "preset",
    "max_shard_size": "size",
    "single_file": "flag",
    "dry_run": "flag",
    "zero_limit": "share",
    "report": "flag",
    "verify": "flag",
    "allow_odd": "flag",
    "raw_codes": "flag",
    "budget": "bits",
    "candidates": "list",
    "recipe": "text",
    "spelling": "text",
    "compute_dtype": "type",
    "group_size": "count",
    "symmetric": "flag",
    "power_of_two_scales": "flag",
    "fuse": "choice",
    "nonfinite": "choice",
    "clip": "choice",
    "convrot": "count",
    "importance": "file",
    "respell": "text",
    "exact": "flag",
    "overwrite": "flag",
    "parents": "flag",
}
PLAN_OPTIONS = ("rules", "include", "exclude", "only", "drop", "rename", "skip_files", "keep_rank", "keep_smaller", "preset", "max_shard_size", "single_file", "zero_limit", "report", "verify", "allow_odd", "raw_codes", "budget", "candidates", "recipe", "spelling", "compute_dtype", "group_size", "symmetric", "power_of_two_scales", "fuse", "nonfinite", "clip", "convrot", "importance", "respell", "exact", "overwrite", "parents")
FILTER_OPTIONS = ("only", "drop", "rename", "skip_files")
OF_MAPPINGS = ("rules", "include", "exclude", "keep_rank", "keep_smaller", "preset", "raw_codes")
