# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime in the process that _runtime_process.py starts.

Requests and answers are pickled, on the standard input and output.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

NUMPY: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
    "bool": np.bool_,
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}
FLOATS = ("float16", "bfloat16", "float", "double")


def element(kind: str) -> str:
    found = re.search(r"tensor\((\w+)\)", kind)
    return found[1] if found else ""


def _session(path: str, exposed: Sequence[str]) -> Any:
    import onnxruntime  # type: ignore[import-untyped,unused-ignore]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    providers = ["CPUExecutionProvider"]
    if not exposed:
        return onnxruntime.InferenceSession(path, options, providers=providers)
    import onnx

    model = onnx.load(path, load_external_data=False)
    known = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in exposed if name not in known)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    folder = os.path.dirname(os.path.abspath(path))
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    os.chdir(folder)  # where releases before that entry look
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def _run(opened: Any, inputs: Mapping[str, Any]) -> list[Any]:
    """The outputs, in order; inputs of floats come in the model's types."""
    import onnxruntime

    kinds = {value.name: value.type for value in opened.get_inputs()}

    def array(value: Any, kind: str) -> Any:
        if isinstance(value, (list, tuple)):
            return [array(each, kind) for each in value]
        given = np.asarray(value)
        is_float = given.dtype.kind == "f" or given.dtype == ml_dtypes.bfloat16
        with np.errstate(over="ignore"):
            return given.astype(NUMPY[element(kind)]) if is_float and element(kind) in FLOATS else given

    feeds = {name: array(value, kinds[name]) for name, value in inputs.items()}
    edges = [*opened.get_inputs(), *opened.get_outputs()]
    if not any(element(value.type) == "bfloat16" for value in edges):
        return list(opened.run(None, feeds))
    if not all(value.type.startswith("tensor(") for value in edges):
        raise ValueError("ONNX Runtime passes no sequences of bfloat16 to Python; keep the types of inputs and outputs")
    values = {}
    for name, given in feeds.items():
        if given.dtype == ml_dtypes.bfloat16:
            given = np.ascontiguousarray(given).view(np.uint16)
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(given, 16)
        else:
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(given)
    return [_of_ort(value) for value in opened.run_with_ort_values(None, values)]


def _of_ort(value: Any) -> npt.NDArray[Any]:
    if value.element_type() != 16:
        array: npt.NDArray[Any] = value.numpy()
        return array
    count = int(np.prod(value.shape()))
    raw = ctypes.string_at(value.data_ptr(), count * 2) if count else b""
    return np.frombuffer(raw, ml_dtypes.bfloat16).reshape(value.shape())


def _chosen(opened: Any, outputs: Sequence[Any], only: str) -> dict[str, Any]:
    """Outputs of float16 that have numbers which are not finite, or all floats."""
    chosen = {}
    for value, array in zip(opened.get_outputs(), outputs):
        if not value.type.startswith("tensor(") or element(value.type) not in FLOATS:
            continue
        if only == "nonfinite" and (element(value.type) != "float16" or np.isfinite(array).all()):
            continue
        chosen[value.name] = array
    return chosen


def main() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # a crash leaves no file
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print
    opened: Any = None
    while True:
        try:
            order, *rest = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: Any
            if order == "load":
                opened = None  # and its weights
                opened = _session(*rest)
                answer = tuple(
                    [(value.name, value.type, tuple(value.shape)) for value in edges]
                    for edges in (opened.get_inputs(), opened.get_outputs())
                )
            elif order == "run":
                answer = _run(opened, *rest)
            else:
                inputs, only = rest
                answer = _chosen(opened, _run(opened, inputs), only)
            done = pickle.dumps((True, answer), protocol=5)
        except Exception as problem:
            done = pickle.dumps((False, str(problem) or type(problem).__name__))
        answers.write(done)
        answers.flush()
