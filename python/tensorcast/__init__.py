# SPDX-License-Identifier: Apache-2.0
"""Converts tensors between every number format that machine learning uses, bit-exactly, at the speed of memory.

>>> import numpy as np, tensorcast as tc
>>> tc.cast(np.float32([0.1, 448, 1e9]), "float8_e4m3fn")
array([0.101562, 448, 448], dtype=float8_e4m3fn)

Every conversion is the one that ONNX ``Cast`` defines: one rounding from the exact value, the same bits on every CPU.

The examples of functions and classes use these names, ``weight``, a float32 array of 64 rows and 256 columns, and small
files: ``model.safetensors``, a folder ``model`` of two such files, ``quantized.safetensors``, ``model.onnx`` and
``cast.onnx``.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from . import _core  # noqa: F401
from ._cast import _report_text  # noqa: F401
from ._core import CastReport, __version__, cast
from ._errors import (
    Cancelled,
    CastError,
    FileError,
    LossWarning,
    OutOfRangeError,
    ParseError,
    UnsupportedError,
)
from ._cast._pool import read_environment as _read_environment
from ._cast._pool import set_result_pool
from ._interop._torch_hooks import register_with_torch as _register_with_torch

# All else is imported when it is first named (_DEFINED_IN), so that importing the package takes a few milliseconds.
if TYPE_CHECKING:
    from . import checkpoint, graph, mdf, onnx, onnx_backend, openvino, ort, ray, torch
    from ._cast._blocks import block_formats, dequantize
    from ._convert_options import ConvertOptions
    from ._interop._exchange import DLPackArray, dlpack, from_dlpack
    from ._cast._explain import explain
    from ._explained import Explained, Explanation
    from ._files._conversion import convert
    from ._files._files import TensorFile, TensorFolder, dtypes, inspect, load
    from ._files._files import open as open  # not of __all__: `import *` leaves Python's own alone
    from ._files._save import save
    from ._files._layers import QuantizedLayer
    from ._cast._nodes import CastLikeNode, CastNode
    from ._options import CastOptions
    from ._cast._promote import promote, promote_types
    from ._cast._quantize import gguf_quantize, quantize, recipes, schemes
    from ._cast._quantized_weight import QuantizedWeight
    from ._quantize_options import QuantizeOptions
    from ._cast._reports import plot_report
    from ._files._remote import set_storage_options
    from ._request_types import Rule
    from ._results import (
        AddCastResult,
        CheckpointFile,
        CheckpointInfo,
        CheckpointTensor,
        ConvertedShard,
        ConvertedTensor,
        ConvertResult,
        DTypeInfo,
        FileInfo,
        LayerInfo,
        Requirements,
        SchemeFit,
        TensorDifference,
        TensorInfo,
        TensorStats,
        VerifyResult,
    )
    from ._cast._scales import absmax_scale
    from ._files._slices import TensorSlice
    from .graph import add_cast, load_model

__all__ = [
    "AddCastResult",
    "Cancelled",
    "CastError",
    "CastLikeNode",
    "CastNode",
    "CastOptions",
    "CastReport",
    "CheckpointFile",
    "CheckpointInfo",
    "CheckpointTensor",
    "ConvertOptions",
    "ConvertResult",
    "ConvertedShard",
    "ConvertedTensor",
    "DLPackArray",
    "DTypeInfo",
    "Explained",
    "Explanation",
    "FileError",
    "FileInfo",
    "LayerInfo",
    "LossWarning",
    "OutOfRangeError",
    "ParseError",
    "QuantizeOptions",
    "QuantizedLayer",
    "QuantizedWeight",
    "Requirements",
    "Rule",
    "SchemeFit",
    "TensorDifference",
    "TensorFile",
    "TensorFolder",
    "TensorInfo",
    "TensorSlice",
    "TensorStats",
    "UnsupportedError",
    "VerifyResult",
    "__version__",
    "absmax_scale",
    "add_cast",
    "block_formats",
    "cast",
    "checkpoint",
    "convert",
    "dequantize",
    "dlpack",
    "dtypes",
    "explain",
    "from_dlpack",
    "gguf_quantize",
    "graph",
    "inspect",
    "load",
    "load_model",
    "onnx",
    "plot_report",
    "promote",
    "promote_types",
    "quantize",
    "recipes",
    "save",
    "schemes",
    "set_result_pool",
    "set_storage_options",
]

_DEFINED_IN = {
    "_cast._blocks": ("block_formats", "dequantize"),
    "_convert_options": ("ConvertOptions",),
    "_interop._exchange": ("DLPackArray", "dlpack", "from_dlpack"),
    "_cast._explain": ("explain",),
    "_explained": ("Explained", "Explanation"),
    "_files._conversion": ("convert",),
    "_files._files": ("TensorFile", "TensorFolder", "dtypes", "inspect", "load", "open"),
    "_files._save": ("save",),
    "_files._layers": ("QuantizedLayer",),
    "_cast._nodes": ("CastLikeNode", "CastNode"),
    "_options": ("CastOptions",),
    "_cast._promote": ("promote", "promote_types"),
    "_cast._quantize": ("gguf_quantize", "quantize", "recipes", "schemes"),
    "_cast._quantized_weight": ("QuantizedWeight",),
    "_quantize_options": ("QuantizeOptions",),
    "_cast._reports": ("plot_report",),
    "_files._remote": ("set_storage_options",),
    "_request_types": ("Rule",),
    "_results": (
        "AddCastResult",
        "CheckpointFile",
        "CheckpointInfo",
        "CheckpointTensor",
        "ConvertedShard",
        "ConvertedTensor",
        "ConvertResult",
        "DTypeInfo",
        "FileInfo",
        "LayerInfo",
        "Requirements",
        "SchemeFit",
        "TensorDifference",
        "TensorInfo",
        "TensorStats",
        "VerifyResult",
    ),
    "_cast._scales": ("absmax_scale",),
    "_files._slices": ("TensorSlice",),
    "graph": ("add_cast", "load_model"),
}
_HOMES = {name: module for module, names in _DEFINED_IN.items() for name in names}
_MODULES = ("checkpoint", "graph", "mdf", "onnx", "onnx_backend", "openvino", "ort", "ray", "torch")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module("tensorcast." + name)
    if name not in _HOMES:
        raise AttributeError(f"module 'tensorcast' has no attribute {name!r}")
    value = getattr(importlib.import_module("tensorcast." + _HOMES[name]), name)
    globals()[name] = value  # found there the next time
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "open", "__doc__", "__file__", "__name__", "__path__"})


def _general_cast(*args: Any, **options: Any) -> Any:
    """Casts what ``_core.cast`` leaves to Python, such as mappings of arrays."""
    torch = sys.modules.get("torch")
    with_tensors = "tensorcast._interop._torch"  # from its import on, the core takes tensors
    if torch is not None and args and isinstance(args[0], torch.Tensor) and with_tensors not in sys.modules:
        importlib.import_module(with_tensors)
        return _core.cast(*args, **options)
    from ._cast import _mappings

    _core.set_general_cast(_mappings.cast)
    return _mappings.cast(*args, **options)


_core.set_general_cast(_general_cast)
_read_environment()
_register_with_torch()
