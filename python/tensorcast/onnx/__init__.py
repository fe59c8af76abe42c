"""Changes the precision of ONNX models: any operators, subgraphs, functions, external data.

>>> tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True, validate=True)
>>> half = tc.onnx.convert(onnx.load("model.onnx"), to="float16").model

``tensorcast.onnx.float16`` and ``tensorcast.onnx.auto_mixed_precision`` have the functions of onnxconverter-common and
of onnxruntime.transformers under their names, so that a program changes one import.
"""

from ._convert import convert
from ._results import ConvertResult, KeptNode, OutputDifference, SearchResult, Validation
from ._search import search
from ._validate import ValidationError

__all__ = [
    "ConvertResult",
    "KeptNode",
    "OutputDifference",
    "SearchResult",
    "Validation",
    "ValidationError",
    "convert",
    "search",
]
