from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

__version__: str

class CastReport:
    def __init__(self) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def overflowed(self) -> int: ...
    @property
    def saturated(self) -> int: ...
    @property
    def underflowed_to_zero(self) -> int: ...
    @property
    def inexact(self) -> int: ...
    @property
    def nan_made(self) -> int: ...
    @property
    def nan_lost(self) -> int: ...
    @property
    def wrapped(self) -> int: ...
    @property
    def max_abs_error(self) -> float: ...
    @property
    def max_rel_error(self) -> float: ...
    @property
    def signal_power(self) -> float: ...
    @property
    def noise_power(self) -> float: ...
    @property
    def snr_db(self) -> float: ...
    def merge(self, other: CastReport) -> None: ...
    def _repr_html_(self) -> str: ...

# An array or tensor of the kind of `x`; with report=True a pair of it and a CastReport.
def cast(
    x: Any,
    dtype: Any,
    *,
    out: Any = None,
    copy: bool = True,
    order: Literal["C", "K"] = "C",
    packed: bool = False,
    source: Any = None,
    report: bool = False,
    opset: int = 0,
    saturate: bool = True,
    round_mode: Literal["up", "down", "nearest"] = "up",
    out_of_range: Literal["auto", "wrap", "saturate", "error"] = "auto",
    int_rounding: Literal["trunc", "nearest_even"] = "trunc",
    invalid: Literal["default", "error"] = "default",
    fnuz_inf: Literal["spec", "flt_max"] = "spec",
    float_string: Literal["plain", "shortest", "g8"] = "plain",
    threads: int = 0,
    scale: float = 1.0,
) -> Any: ...
def set_general_cast(function: Callable[..., Any]) -> None: ...
def dtype_name(dtype: Any) -> str: ...
def bit_width(dtype: Any) -> int: ...
def cast_codes(
    src: np.ndarray,
    from_: Any,
    src_one_per_byte: bool,
    dst: np.ndarray,
    to: Any,
    dst_one_per_byte: bool,
    report: bool,
    options: dict[str, Any],
) -> CastReport | None: ...
def cast_packed(
    src: np.ndarray, from_: Any, dst: np.ndarray, to: Any, count: int, report: bool, options: dict[str, Any]
) -> CastReport | None: ...
def cast_texts(texts: list[str], dst: np.ndarray, to: Any, options: dict[str, Any]) -> None: ...
def texts_of(src: np.ndarray, from_: Any, count: int, options: dict[str, Any]) -> list[str]: ...
def from_dlpack(capsule: object) -> tuple[np.ndarray, str, tuple[int, ...]]: ...
def to_dlpack(array: np.ndarray, versioned: bool) -> object: ...
def promote_types(
    a: Any,
    b: Any,
    a_is_scalar: bool,
    b_is_scalar: bool,
    promote_unsafe: bool,
    pytorch_scalar_promotion: bool,
    u64_integer_promotion_target: Any,
    rules: str,
) -> str: ...
def convert(
    src: str,
    dst: str,
    to: Any,
    rules: Sequence[tuple[str, Any]],
    include: Sequence[str],
    exclude: Sequence[str],
    from_: Any,
    force: bool,
    dry_run: bool,
    report: bool,
    verify: bool,
    progress: Callable[[int, int, str], Any] | None,
    options: dict[str, Any],
) -> dict[str, Any]: ...
def inspect(path: str, from_: Any) -> dict[str, Any]: ...
def explain(literal: str, from_: Any, to: Any, options: dict[str, Any]) -> dict[str, Any]: ...
def dtypes() -> list[dict[str, Any]]: ...
def target() -> str: ...
