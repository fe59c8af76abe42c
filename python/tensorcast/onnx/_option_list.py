"""The options of a model's conversion. Printed by print_python_options from src/models/onnx/model_options.hpp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict

from .._options import DTypeLike

Opset: TypeAlias = int | Literal["keep", "auto"]
Runtime: TypeAlias = Literal["onnxruntime_cpu", "onnxruntime_cuda", "tensorrt", "openvino", "any"]
OnOverflow: TypeAlias = Literal["keep_high", "clamp", "inf", "error"]
Masks: TypeAlias = Literal["finite", "inf", "as_others"]
Clamp: TypeAlias = Literal["none", "finite", "onnxconverter_common", "onnxruntime"]
SharedInit: TypeAlias = Literal["dup", "cast"]
Functions: TypeAlias = Literal["copy", "inline"]
ExternalData: TypeAlias = Literal["as_is", "one", "per_tensor", "inline"]


class SearchOptions(TypedDict, total=False):
    """Those of :func:`tensorcast.onnx.search`; :class:`ConvertOptions` describes them."""

    from_: DTypeLike | Iterable[DTypeLike]
    keep_io_types: bool | str | Iterable[str] | Mapping[str, DTypeLike | None]
    keep_ops: str | Iterable[str]
    keep_nodes: str | Iterable[str]
    keep: str | Iterable[str]
    only: str | Iterable[str]
    op_types: str | Iterable[str]
    weights_only: bool | str
    group_size: int
    symmetric: bool
    allow_loss: bool
    opset: Opset
    runtime: Runtime
    on_overflow: OnOverflow
    masks: Masks
    clamp: Clamp
    min_positive: float
    max_finite: float
    shared_init: SharedInit
    functions: Functions
    external_data: ExternalData
    external_threshold: int
    external_alignment: int
    allow_lossy_cast_elision: bool


class ConvertOptions(SearchOptions, total=False):
    """The options of :func:`tensorcast.onnx.convert`.

    Examples:
        >>> options: tc.onnx.ConvertOptions = {"keep_io_types": True, "dry_run": True}
        >>> tc.onnx.convert("model.onnx", to="float16", **options).casts_added
        2

    Args:
        from_: only values of these types become the new one (default: all floating-point types).
        keep_io_types: all inputs and outputs of the model keep their types, or only those in NAMES; x=float32 gives
            one a type. A mapping gives types in Python: ``{"x": "float32", "y": None}``; ``None`` keeps one.
        keep_ops: nodes of this operator stay as they are.
        keep_nodes: the node of this name stays as it is.
        keep: nodes that stay as they are, such as glob:/head/*. Selectors are ``op:TYPE``, ``name:NAME``,
            ``glob:PATTERN``, ``re:REGEX``, ``domain:DOMAIN``, ``graph:PATTERN``, ``tensor:NAME``,
            ``consumer-of:TENSOR`` and ``producer-of:TENSOR``; one that selects nothing is an error.
        only: the only nodes that change.
        op_types: types of an operator without a schema: own::Op:in=float16,out=float16.
        weights_only: only initializers change, and a Cast gives back the old type; with SCHEME (nvfp4, mxfp4,
            int4-group, int8, float8, or one and a recipe: mxfp4:even) a DequantizeLinear with scales. ``to`` may be a
            float8 type, too, with opset 19 or later; a scheme needs no ``to``, and takes matrices alone unless
            ``only`` selects other operators.
        group_size: int4-group: inputs that share a scale: 32, 64 or 128 (default).
        symmetric: int4-group: no zero points (default true).
        allow_loss: with a scheme: convert also weights that are destroyed, as more than half of their nonzero numbers
            become zero (default: an error).
        opset: keep, auto (raise it if the type needs it) or a number (default keep). In Python, where nodes would
            change their meaning, ``onnx.version_converter`` rewrites them.
        runtime: where the model must run: a node that it has no kernel for keeps its type (default onnxruntime_cpu;
            any: by ONNX's schemas alone).
        on_overflow: initializers out of the range (default keep_high: they and their nodes keep the type).
        masks: constants such as -1e9 and -3.4e38 (default finite: the lowest number; as_others: as on_overflow says).
        clamp: limit numbers of initializers (finite: to the type's range; the others: as these tools do).
        min_positive: smaller numbers other than 0 become it (default: no limit).
        max_finite: larger finite numbers become it (default: no limit).
        shared_init: initializers that both types need (default dup: stored twice; cast: once, and a Cast).
        functions: functions of the model (default copy: one for each set of types that calls have; inline: their
            nodes replace each call).
        external_data: where initializers go: one file OUT.data, a file each, the model (default as_is: a new file for
            each old one).
        external_threshold: bytes from which on initializers go outside (default 1024).
        external_alignment: of tensors outside that are not smaller, a power of two; 1 packs them (default 4096).
        allow_lossy_cast_elision: also remove Casts to a narrower type and back whose types change, which changes
            values.
        explain: say what becomes of this node and why.
        dry_run: report what would happen, and write nothing.
    """

    explain: str | Iterable[str]
    dry_run: bool


ConvertOptions.__module__ = "tensorcast.onnx"

DEFAULTS: dict[str, Any] = {
    "from_": (),
    "keep_io_types": False,
    "keep_ops": (),
    "keep_nodes": (),
    "keep": (),
    "only": (),
    "op_types": (),
    "weights_only": False,
    "group_size": 0,
    "symmetric": True,
    "allow_loss": False,
    "opset": "keep",
    "runtime": "onnxruntime_cpu",
    "on_overflow": "keep_high",
    "masks": "finite",
    "clamp": "none",
    "min_positive": 0.0,
    "max_finite": 0.0,
    "shared_init": "dup",
    "functions": "copy",
    "external_data": "as_is",
    "external_threshold": 1024,
    "external_alignment": 4096,
    "allow_lossy_cast_elision": False,
    "explain": (),
    "dry_run": False,
}
OF_ONE_RUN = ("explain", "dry_run")
# Keyword, flag, kind, name of the value, words, help.
ROWS: tuple[tuple[str, str, str, str, tuple[str, ...], str], ...] = (
    ("from_", "--from", "types", "DTYPE,...|all", (),
     "only values of these types become the new one (default: all floating-point types)"),
    ("keep_io_types", "--keep-io-types", "io_types", "[NAMES]", (),
     "all inputs and outputs of the model keep their types, or only those in NAMES; x=float32 gives one a type"),
    ("keep_ops", "--keep-op", "texts", "TYPE", (),
     "nodes of this operator stay as they are"),
    ("keep_nodes", "--keep-node", "texts", "NAME", (),
     "the node of this name stays as it is"),
    ("keep", "--keep", "texts", "SELECTOR", (),
     "nodes that stay as they are, such as glob:/head/*"),
    ("only", "--only", "texts", "SELECTOR", (),
     "the only nodes that change"),
    ("op_types", "--op-types", "texts", "TYPES", (),
     "types of an operator without a schema: own::Op:in=float16,out=float16"),
    ("weights_only", "--weights-only", "flag_or_text", "[SCHEME]", (),
     "only initializers change, and a Cast gives back the old type; with SCHEME (nvfp4, mxfp4, int4-group, int8, float8, or one and a recipe: mxfp4:even) a DequantizeLinear with scales"),
    ("group_size", "--group-size", "count", "INPUTS", (),
     "int4-group: inputs that share a scale: 32, 64 or 128 (default)"),
    ("symmetric", "--symmetric", "flag", "", (),
     "int4-group: no zero points (default true)"),
    ("allow_loss", "--allow-loss", "flag", "", (),
     "with a scheme: convert also weights that are destroyed, as more than half of their nonzero numbers become zero (default: an error)"),
    ("opset", "--opset", "opset", "OPSET", (),
     "keep, auto (raise it if the type needs it) or a number (default keep)"),
    ("runtime", "--runtime", "choice", "", ("onnxruntime_cpu", "onnxruntime_cuda", "tensorrt", "openvino", "any"),
     "where the model must run: a node that it has no kernel for keeps its type (default onnxruntime_cpu; any: by ONNX's schemas alone)"),
    ("on_overflow", "--on-overflow", "choice", "", ("keep_high", "clamp", "inf", "error"),
     "initializers out of the range (default keep_high: they and their nodes keep the type)"),
    ("masks", "--masks", "choice", "", ("finite", "inf", "as_others"),
     "constants such as -1e9 and -3.4e38 (default finite: the lowest number; as_others: as on_overflow says)"),
    ("clamp", "--clamp", "choice", "", ("none", "finite", "onnxconverter_common", "onnxruntime"),
     "limit numbers of initializers (finite: to the type's range; the others: as these tools do)"),
    ("min_positive", "--min-positive", "number", "NUMBER", (),
     "smaller numbers other than 0 become it (default: no limit)"),
    ("max_finite", "--max-finite", "number", "NUMBER", (),
     "larger finite numbers become it (default: no limit)"),
    ("shared_init", "--shared-init", "choice", "", ("dup", "cast"),
     "initializers that both types need (default dup: stored twice; cast: once, and a Cast)"),
    ("functions", "--functions", "choice", "", ("copy", "inline"),
     "functions of the model (default copy: one for each set of types that calls have; inline: their nodes replace each call)"),
    ("external_data", "--external-data", "choice", "", ("as_is", "one", "per_tensor", "inline"),
     "where initializers go: one file OUT.data, a file each, the model (default as_is: a new file for each old one)"),
    ("external_threshold", "--external-threshold", "count", "BYTES", (),
     "bytes from which on initializers go outside (default 1024)"),
    ("external_alignment", "--external-alignment", "count", "BYTES", (),
     "of tensors outside that are not smaller, a power of two; 1 packs them (default 4096)"),
    ("allow_lossy_cast_elision", "--allow-lossy-cast-elision", "flag", "", (),
     "also remove Casts to a narrower type and back whose types change, which changes values"),
    ("explain", "--explain", "texts", "NODE", (),
     "say what becomes of this node and why"),
    ("dry_run", "--dry-run", "flag", "", (),
     "report what would happen, and write nothing"),
)  # fmt: skip
