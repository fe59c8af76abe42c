# SPDX-License-Identifier: Apache-2.0
"""Converts tensors between every number format that machine learning uses, bit-exactly, at the speed of memory.

>>> import numpy as np, tensorcast as tc
>>> tc.cast(np.float32([0.1, 448, 1e9]), "float8_e4m3fn")
array([0.101562, 448, 448], dtype=float8_e4m3fn)

Every conversion is the one that ONNX ``Cast`` defines: one rounding from the exact value, the same bits on every CPU.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import _core, _mappings, checkpoint, graph, onnx
from ._blocks import block_formats, dequantize
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
from ._exchange import DLPackArray, dlpack, from_dlpack
from ._explain import explain
from ._files import TensorFile, TensorFolder, convert, dtypes, inspect, load, save
from ._files import open as open  # not of __all__: `import *` leaves Python's own alone
from ._nodes import CastLikeNode, CastNode
from ._options import CastOptions
from ._pool import read_environment as _read_environment
from ._pool import set_result_pool
from ._promote import promote, promote_types
from ._reports import plot_report
from ._remote import set_storage_options
from ._requests import Rule
from ._results import (
    AddCastResult,
    CheckpointFile,
    CheckpointInfo,
    CheckpointTensor,
    ConvertedShard,
    ConvertedTensor,
    ConvertResult,
    DTypeInfo,
    Explained,
    Explanation,
    FileInfo,
    Requirements,
    TensorDifference,
    TensorInfo,
    TensorStats,
    VerifyResult,
)
from ._scales import absmax_scale
from ._slices import TensorSlice
from ._torch_hooks import register_with_torch as _register_with_torch
from .graph import add_cast, load_model

if TYPE_CHECKING:
    from . import mdf, onnx_backend, openvino, ort, ray, torch

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
    "ConvertResult",
    "ConvertedShard",
    "ConvertedTensor",
    "DLPackArray",
    "DTypeInfo",
    "Explained",
    "Explanation",
    "FileError",
    "FileInfo",
    "LossWarning",
    "OutOfRangeError",
    "ParseError",
    "Requirements",
    "Rule",
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
    "graph",
    "inspect",
    "load",
    "load_model",
    "onnx",
    "plot_report",
    "promote",
    "promote_types",
    "save",
    "set_result_pool",
    "set_storage_options",
]

_core.set_general_cast(_mappings.cast)
_read_environment()
_register_with_torch()


# Modules that import a library of their own, each when it is first named.
_LAZY = ("mdf", "onnx_backend", "openvino", "ort", "ray", "torch")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tensorcast' has no attribute {name!r}")
    return importlib.import_module("tensorcast." + name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "open", "__doc__", "__file__", "__name__", "__path__"})
