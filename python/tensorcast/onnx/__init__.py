# SPDX-License-Identifier: Apache-2.0
"""Changes the precision of ONNX models: any operators, subgraphs, functions, external data.

>>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True, validate=True)
>>> import onnx
>>> half = tc.onnx.convert(onnx.load("model.onnx"), to="float16").model
>>> [cast.name for cast in tc.onnx.casts(half) if cast.removable]
[]

``tensorcast.onnx.float16`` and ``tensorcast.onnx.auto_mixed_precision`` have the functions of onnxconverter-common and
of onnxruntime.transformers under their names, so that a program changes one import.
"""

from ._casts import casts, clean, diff, initializers, respell
from ._convert import convert
from ._option_list import ConvertOptions
from ._results import (
    CastInfo,
    CleanResult,
    ConvertResult,
    DiffResult,
    InitializerChange,
    KeptNode,
    KeptWeight,
    NodeDecision,
    OperatorDifference,
    OpsetDifference,
    OutputDifference,
    RemovedNode,
    RespellResult,
    SearchResult,
    Validation,
    ValueDecision,
    ValueDifference,
)
from ._search import search
from ._validate import ValidationError, validate

__all__ = [
    "CastInfo",
    "CleanResult",
    "ConvertOptions",
    "ConvertResult",
    "DiffResult",
    "InitializerChange",
    "KeptNode",
    "KeptWeight",
    "NodeDecision",
    "OperatorDifference",
    "OpsetDifference",
    "OutputDifference",
    "RemovedNode",
    "RespellResult",
    "SearchResult",
    "Validation",
    "ValidationError",
    "ValueDecision",
    "ValueDifference",
    "casts",
    "clean",
    "convert",
    "diff",
    "initializers",
    "respell",
    "search",
    "validate",
]
