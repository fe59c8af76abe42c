# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, CapsuleType, Unpack

from ._options import ArrayCastOptions, CastOptions, DTypeLike
from ._requests import Patterns, Preset, Rules

__version__: str
newest_opset: int

@final
class CastReport:
    """What a conversion did to the numbers. Errors are measured against source * scale."""

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
    def as_dict(self) -> dict[str, float]: ...
    @staticmethod
    def from_dict(fields: dict[str, float]) -> CastReport: ...
    def to_json(self, *, indent: int | None = None) -> str: ...
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __getstate__(self) -> dict[str, float]: ...
    def __setstate__(self, state: dict[str, float]) -> None: ...

class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> Any: ...

class _HasToNumPy(Protocol):  # Series
    def to_numpy(self) -> npt.NDArray[Any]: ...

class _HasElementType(Protocol):  # tensors of OpenVINO
    @property
    def element_type(self) -> Any: ...
    @property
    def data(self) -> npt.NDArray[Any]: ...

class _HasDataType(Protocol):  # TensorProtos
    data_type: int
    def SerializeToString(self) -> bytes: ...

_Foreign = _HasToNumPy | _HasElementType | _HasDataType
_Scalar = TypeVar("_Scalar", bound=np.generic)
_Shape = TypeVar("_Shape", bound=tuple[int, ...])
_Out = TypeVar("_Out")
_Tensor = TypeVar("_Tensor", bound=_SupportsDLPack)
_Order = Literal["C", "K"] | None

# Mappings, such as a state_dict.
@overload
def cast(
    x: Mapping[str, Any],
    /,
    to: DTypeLike | None,
    *,
    rules: Rules = (),
    include: Patterns = (),
    exclude: Patterns = (),
    keep_rank: int | Iterable[int] = (),
    keep_smaller: int = 0,
    preset: Preset | None = None,
    raw_codes: bool = False,
    copy: bool = True,
    order: _Order = None,
    report: Literal[False] = False,
    **options: Unpack[CastOptions],
) -> dict[str, Any]: ...
@overload
def cast(
    x: Mapping[str, Any],
    /,
    to: DTypeLike | None,
    *,
    rules: Rules = (),
    include: Patterns = (),
    exclude: Patterns = (),
    keep_rank: int | Iterable[int] = (),
    keep_smaller: int = 0,
    preset: Preset | None = None,
    raw_codes: bool = False,
    copy: bool = True,
    order: _Order = None,
    report: Literal[True],
    **options: Unpack[CastOptions],
) -> tuple[dict[str, Any], dict[str, CastReport]]: ...

# Packed bytes.
@overload
def cast(
    x: npt.NDArray[Any] | np.generic | Buffer,
    /,
    to: DTypeLike,
    *,
    packed: Literal[True],
    from_: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    order: _Order = None,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> npt.NDArray[Any]: ...
@overload
def cast(
    x: npt.NDArray[Any] | np.generic | Buffer,
    /,
    to: DTypeLike,
    *,
    packed: Literal[True],
    from_: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    order: _Order = None,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[npt.NDArray[Any], CastReport]: ...

# Into an array or tensor of the caller.
@overload
def cast(
    x: object,
    /,
    to: DTypeLike,
    *,
    out: _Out,
    copy: bool = True,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> _Out: ...
@overload
def cast(
    x: object,
    /,
    to: DTypeLike,
    *,
    out: _Out,
    copy: bool = True,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[_Out, CastReport]: ...

# Arrays: a NumPy type gives an array of it.
@overload
def cast(
    x: np.ndarray[_Shape, Any],
    /,
    to: type[_Scalar] | np.dtype[_Scalar],
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> np.ndarray[_Shape, np.dtype[_Scalar]]: ...
@overload
def cast(
    x: np.ndarray[_Shape, Any],
    /,
    to: type[_Scalar] | np.dtype[_Scalar],
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[np.ndarray[_Shape, np.dtype[_Scalar]], CastReport]: ...
@overload
def cast(
    x: np.ndarray[_Shape, Any],
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> np.ndarray[_Shape, np.dtype[Any]]: ...
@overload
def cast(
    x: np.ndarray[_Shape, Any],
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[np.ndarray[_Shape, np.dtype[Any]], CastReport]: ...

# Tensors of other libraries.
@overload
def cast(
    x: _Tensor,
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> _Tensor: ...
@overload
def cast(
    x: _Tensor,
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[_Tensor, CastReport]: ...

# Scalars and buffers.
@overload
def cast(
    x: np.generic | Buffer,
    /,
    to: type[_Scalar] | np.dtype[_Scalar],
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> npt.NDArray[_Scalar]: ...
@overload
def cast(
    x: np.generic | Buffer,
    /,
    to: type[_Scalar] | np.dtype[_Scalar],
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[npt.NDArray[_Scalar], CastReport]: ...
@overload
def cast(
    x: np.generic | Buffer,
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> npt.NDArray[Any]: ...
@overload
def cast(
    x: np.generic | Buffer,
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: Literal[False] = False,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[npt.NDArray[Any], CastReport]: ...

# report= that is only known at run time.
@overload
def cast(
    x: Mapping[str, Any],
    /,
    to: DTypeLike | None,
    *,
    rules: Rules = (),
    include: Patterns = (),
    exclude: Patterns = (),
    keep_rank: int | Iterable[int] = (),
    keep_smaller: int = 0,
    preset: Preset | None = None,
    raw_codes: bool = False,
    copy: bool = True,
    order: _Order = None,
    report: bool,
    **options: Unpack[CastOptions],
) -> dict[str, Any] | tuple[dict[str, Any], dict[str, CastReport]]: ...
@overload
def cast(
    x: npt.NDArray[Any] | np.generic | Buffer,
    /,
    to: DTypeLike,
    *,
    copy: bool = True,
    order: _Order = None,
    packed: bool = False,
    from_: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    report: bool,
    **options: Unpack[ArrayCastOptions],
) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], CastReport]: ...
@overload
def cast(
    x: _Tensor,
    /,
    to: DTypeLike,
    *,
    copy: bool = True,
    order: _Order = None,
    report: bool,
    **options: Unpack[ArrayCastOptions],
) -> _Tensor | tuple[_Tensor, CastReport]: ...

# Series, tensors of OpenVINO, TensorProtos.
@overload
def cast(
    x: _Foreign,
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: bool = False,
    report: Literal[False] = False,
    **options: Unpack[ArrayCastOptions],
) -> npt.NDArray[Any]: ...
@overload
def cast(
    x: _Foreign,
    /,
    to: DTypeLike,
    *,
    out: None = None,
    copy: bool = True,
    order: _Order = None,
    packed: bool = False,
    report: Literal[True],
    **options: Unpack[ArrayCastOptions],
) -> tuple[npt.NDArray[Any], CastReport]: ...
def set_general_cast(function: Callable[..., Any]) -> None: ...
def load_torch(parts: dict[str, Any]) -> None: ...
def make_torch_operator(dispatched: Callable[..., Any]) -> Callable[..., Any]: ...
def set_result_pool(bytes: int) -> None: ...
def result_pool_use() -> tuple[int, int, int]: ...
def dtype_name(dtype: Any) -> str: ...
def check_options(options: dict[str, Any]) -> None: ...
def bit_width(dtype: Any) -> int: ...
def cast_codes(
    src: npt.NDArray[Any],
    from_: Any,
    src_one_per_byte: bool,
    dst: npt.NDArray[Any],
    to: Any,
    dst_one_per_byte: bool,
    report: bool,
    options: dict[str, Any],
) -> CastReport | None: ...
def cast_scaled(
    src: npt.NDArray[Any],
    from_: Any,
    src_one_per_byte: bool,
    dst: npt.NDArray[Any],
    to: Any,
    dst_one_per_byte: bool,
    scales: npt.NDArray[np.float64],
    report: bool,
    options: dict[str, Any],
) -> CastReport | None: ...
def cast_packed(
    src: npt.NDArray[Any], from_: Any, dst: npt.NDArray[Any], to: Any, count: int, report: bool, options: dict[str, Any]
) -> CastReport | None: ...
def cast_texts(texts: list[str], dst: npt.NDArray[Any], to: Any, first: int, options: dict[str, Any]) -> None: ...
def texts_of(src: npt.NDArray[Any], from_: Any, count: int, options: dict[str, Any]) -> list[str]: ...
def from_dlpack(capsule: object) -> tuple[npt.NDArray[Any], str, tuple[int, ...]]: ...
def to_dlpack(array: npt.NDArray[Any], versioned: bool, copied: bool) -> CapsuleType: ...
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
    request: dict[str, Any], progress: Callable[[int, int, str], object] | None, options: dict[str, Any]
) -> dict[str, Any]: ...
def set_remote_store(store: object) -> None: ...
def is_checkpoint(path: str) -> bool: ...
def plan_tensors(
    tensors: Sequence[tuple[str, str, Sequence[int]]], request: dict[str, Any], options: dict[str, Any]
) -> list[dict[str, Any]]: ...
def plan_checkpoint(request: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]: ...
def convert_shards(
    output: str,
    shards: Sequence[int],
    first: int,
    step: int,
    threads: int,
    progress: Callable[[int, int, str], object] | None,
) -> dict[str, Any]: ...
def planned_checkpoint(output: str) -> dict[str, Any]: ...
def finish_checkpoint(output: str) -> dict[str, Any]: ...
def verify_checkpoint(
    checkpoint: str,
    against: str,
    importance: str,
    filter: dict[str, Any],
    progress: Callable[[int, int, str], object] | None,
    options: dict[str, Any],
) -> dict[str, Any]: ...
def diff_checkpoints(
    a: str,
    b: str,
    headers_only: bool,
    include: Sequence[str],
    filter: dict[str, Any],
    progress: Callable[[int, int, str], object] | None,
) -> list[dict[str, Any]]: ...
def inspect_checkpoint(path: str) -> dict[str, Any]: ...
def inspect(
    path: str, from_: Any, stats: bool, candidates: Sequence[Any] | None, importance: str, options: dict[str, Any]
) -> dict[str, Any]: ...
def save(
    path: str,
    tensors: Sequence[tuple[str, Tensor]],
    metadata: Sequence[tuple[str, str]],
    format: str,
    overwrite: bool,
    parents: bool,
) -> None: ...
def dequantize(
    codes: Tensor,
    scales: Tensor | None,
    scheme: str,
    spelling: str,
    global_scale: Tensor | None,
    zero_points: Tensor | None,
    biases: Tensor | None,
    group_index: Tensor | None,
    table: Tensor | None,
    block: tuple[int, int] | None,
    shape: tuple[int, ...] | None,
    dtype: Any,
) -> Tensor: ...
def block_formats() -> list[dict[str, Any]]: ...
def quantize(
    weight: Tensor,
    scheme: str,
    is_gguf: bool,
    recipe: str,
    group_size: int,
    symmetric: bool,
    power_of_two_scales: bool,
    compute_dtype: Any,
    keeps_nonfinite: bool,
    maximum: float | None,
    clips: bool,
    importance: list[float],
) -> Quantized: ...
def recipes() -> list[dict[str, Any]]: ...
def explain(literal: str, from_: Any, to: Any, options: dict[str, Any]) -> dict[str, Any]: ...
def dtypes() -> list[dict[str, Any]]: ...
def target() -> str: ...
def onnx_convert(
    src: str, dst: str, to: Any, overwrite: bool, options: dict[str, Any], check: Callable[[str], None] | None
) -> dict[str, Any]: ...
def onnx_needs(to: Any, options: dict[str, Any]) -> tuple[int, str, str]: ...
def onnx_casts(model: str) -> list[dict[str, Any]]: ...
def onnx_clean(
    src: str, dst: str, allow_lossy_cast_elision: bool, dry_run: bool, overwrite: bool
) -> dict[str, Any]: ...
def onnx_diff(a: str, b: str, headers_only: bool) -> dict[str, Any]: ...
def onnx_use_tensorcast(src: str, dst: str, overwrite: bool) -> dict[str, Any]: ...
def onnx_initializers(model: str) -> list[dict[str, Any]]: ...
def load_model(
    path: str | None, content: bytes | None, format: str, mdf_reference: bool, input_types: dict[str, Any]
) -> tuple[str, Graph, Program]: ...
def add_cast(
    src: str,
    dst: str,
    tensor: str,
    to: Any,
    saturate: bool,
    node_name: str,
    output_name: str,
    overwrite: bool,
) -> dict[str, Any]: ...

class TensorFile:
    def __init__(self, path: str, format: str, from_: Any, raw: tuple[Any, Sequence[int]] | None) -> None: ...
    def summary(self) -> dict[str, Any]: ...
    def read(self, index: int) -> Tensor: ...
    def read_range(self, index: int, first: int, count: int) -> Tensor: ...

class QuantizedFile:
    def __init__(self, path: str) -> None: ...
    def layers(self) -> list[dict[str, Any]]: ...
    @property
    def refusal(self) -> str: ...
    def read_part(self, layer: int, part: int) -> Tensor: ...
    def dequantize(self, layer: int, dtype: Any) -> Tensor: ...
    def dequantize_range(self, layer: int, dtype: Any, first: int, count: int) -> Tensor: ...

class Quantized:
    @property
    def scheme(self) -> str: ...
    @property
    def recipe(self) -> str: ...
    @property
    def block(self) -> tuple[int, int]: ...
    @property
    def global_scale(self) -> float | None: ...
    def element_codes(self) -> Tensor: ...
    def codes(self) -> Tensor: ...
    def scales(self) -> Tensor | None: ...
    def zero_points(self) -> Tensor | None: ...
    def spelled(self, spelling: str) -> list[tuple[str, Tensor]]: ...
    def dequantize(self, dtype: Any) -> Tensor: ...

class Tensor:
    def __init__(self, storage: npt.NDArray[Any], dtype: Any, shape: Sequence[int]) -> None: ...
    @staticmethod
    def of_texts(texts: list[str], shape: Sequence[int]) -> Tensor: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def storage(self) -> npt.NDArray[Any]: ...
    def texts(self) -> list[str]: ...
    def shares_with(self, other: Tensor) -> bool: ...

_Row = tuple[str, str | None, tuple[int | None, ...] | None, bool]

class Program:
    def inputs(self) -> list[_Row]: ...
    def outputs(self) -> list[_Row]: ...
    def run(self, inputs: Sequence[tuple[str, Tensor]], threads: int) -> list[tuple[str, Tensor]]: ...

class Graph:
    def __init__(self, name: str) -> None: ...
    def add_input(self, name: str, dtype: Any, shape: Sequence[int] | None, default: Tensor | None) -> None: ...
    def add_output(self, name: str, dtype: Any, shape: Sequence[int] | None) -> None: ...
    def add_constant(self, name: str, value: Tensor, output: str) -> None: ...
    def add_cast(self, name: str, input: str, to: Any, output: str, options: dict[str, Any]) -> None: ...
    def add_cast_like(self, name: str, input: str, target_type: str, output: str, options: dict[str, Any]) -> None: ...
    def add_convert_promote_types(
        self,
        name: str,
        inputs: tuple[str, str],
        outputs: tuple[str, str],
        promote_unsafe: bool,
        pytorch_scalar_promotion: bool,
        u64_integer_promotion_target: Any,
        options: dict[str, Any],
    ) -> None: ...
    def add_identity(self, name: str, input: str, output: str) -> None: ...
    def add_bit_cast(self, name: str, input: str, to: Any, output: str) -> None: ...
    def add_quantize_linear(
        self,
        name: str,
        inputs: Sequence[str],
        output: str,
        opset: int,
        axis: int,
        block_size: int,
        saturate: bool,
        output_dtype: Any,
        precision: Any,
    ) -> None: ...
    def add_dequantize_linear(
        self,
        name: str,
        inputs: Sequence[str],
        output: str,
        opset: int,
        axis: int,
        block_size: int,
        output_dtype: Any,
    ) -> None: ...
    def add_dynamic_quantize_linear(self, name: str, input: str, outputs: Sequence[str]) -> None: ...
    def add_if(
        self, name: str, condition: str, outputs: Sequence[str], then_branch: Graph, else_branch: Graph
    ) -> None: ...
    @property
    def name(self) -> str: ...
    def steps(self) -> list[tuple[str, tuple[Any, ...]]]: ...
    def compile(self) -> Program: ...

class CastNode:
    def __init__(
        self,
        to: Any,
        name: str,
        specified_outputs_name: Sequence[str],
        training: bool,
        lda_coeff: float,
        zero_saturated_gradient: bool,
        options: dict[str, Any],
    ) -> None: ...
    def forward(self, input: Tensor) -> list[tuple[str, Tensor]]: ...
    def backward(self, grad_output: Tensor) -> Tensor: ...
    @property
    def output_name(self) -> str: ...
    @property
    def saved_bytes(self) -> int: ...

class CastLikeNode:
    def __init__(
        self,
        name: str,
        specified_outputs_name: Sequence[str],
        training: bool,
        lda_coeff: float,
        zero_saturated_gradient: bool,
        options: dict[str, Any],
    ) -> None: ...
    def forward(self, input: Tensor, target_type: Tensor) -> list[tuple[str, Tensor]]: ...
    def backward(self, grad_output: Tensor) -> Tensor: ...
    @property
    def output_name(self) -> str: ...
    @property
    def saved_bytes(self) -> int: ...
