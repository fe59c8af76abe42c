# SPDX-License-Identifier: Apache-2.0
"""One release of onnx: its node tests of casts and quantization on tensorcast.onnx_backend. Prints one line of JSON; for onnx_lines.py."""

import glob
import json
import re
import unittest

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests

import tensorcast as tc
from tensorcast import onnx_backend
from tensorcast._interop import _onnx_arrays

OPERATORS = re.compile(r"^test_(cast|castlike|bitcast|quantizelinear|dequantizelinear|dynamicquantizelinear(?!.*_expanded))(_|$)")
FNUZ = ("float8_e4m3fnuz", "float8_e5m2fnuz")


def native(arrays, values):
    """Arrays in the types that they stand for."""
    for array, value in zip(arrays, values):
        if isinstance(array, onnx.TensorProto):
            array = numpy_helper.to_array(array)
        yield _onnx_arrays.native(np.asarray(array), value.type.tensor_type.elem_type)


def tensors(pattern, values):
    for index, _ in enumerate(values):
        with open(pattern.format(index), "rb") as file:
            yield onnx.TensorProto.FromString(file.read())


def data_sets(case, graph):
    """Inputs and expected outputs; a release ships them as files, or makes them (1.23)."""
    if case.model_dir is None:
        pairs = case.data_sets
    else:
        folders = sorted(glob.glob(f"{case.model_dir}/test_data_set_*"))
        pairs = [
            (tensors(folder + "/input_{}.pb", graph.input), tensors(folder + "/output_{}.pb", graph.output))
            for folder in folders
        ]
    for inputs, outputs in pairs:
        yield list(native(inputs, graph.input)), list(native(outputs, graph.output))


def truncated_to_bfloat16(source):
    return float((np.float32([source]).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)[0])


def kind_of(source, expected, got, target, opset):
    if np.isnan(expected) and np.isnan(got):
        return "nan code"
    if np.isinf(source) and target in FNUZ and np.isnan(got) and not np.isnan(expected) and opset < 24:
        return "fnuz infinity"
    if target == "bfloat16" and expected == truncated_to_bfloat16(source) and opset < 24:
        return "bfloat16 truncated"
    return "other"


def differences(case):
    """Elements of a test's data that the backend does not meet bit for bit."""
    model = case.model if case.model_dir is None else onnx.load(f"{case.model_dir}/model.onnx")
    opset = max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    prepared = onnx_backend.prepare(model)
    found = []
    for inputs, outputs in data_sets(case, model.graph):
        for value, expected, got in zip(model.graph.output, outputs, prepared.run(inputs), strict=True):
            got = _onnx_arrays.native(got, value.type.tensor_type.elem_type)
            found += differences_of(inputs[0], expected, got, opset)
    return found


def differences_of(source, expected, got, opset):
    """Of one output."""
    if expected.dtype.kind in "OUS":
        rows = zip(source.ravel().tolist(), expected.ravel().tolist(), got.ravel().tolist())
        return [{"kind": "other", "source": str(a), "data": str(b), "gives": str(c)} for a, b, c in rows if b != c]
    if expected.dtype != got.dtype or expected.shape != got.shape:
        return [{"kind": "other", "data": str(expected.dtype), "gives": str(got.dtype)}]
    bits = f"u{got.itemsize}"
    same = np.ascontiguousarray(expected).view(bits) == np.ascontiguousarray(got).view(bits)
    wide, mine = tc.cast(expected, "float64"), tc.cast(got, "float64")
    if _onnx_arrays.foreign(got).dtype.names is None:  # else BackendTest compares codes
        same |= np.isnan(wide) & np.isnan(mine)
    target = got.dtype.name
    found = []
    for index in np.flatnonzero(~same.ravel()):
        number = float(tc.cast(source, "float64").ravel()[index]) if source.shape == got.shape else float("nan")
        a, b = float(wide.ravel()[index]), float(mine.ravel()[index])
        kind = kind_of(number, a, b, target, opset)
        found.append({"kind": kind, "source": str(number), "data": str(a), "gives": str(b), "to": target})
    return found


def main():
    tests = BackendTest(onnx_backend.TensorcastBackend, __name__).include(OPERATORS.pattern).test_cases
    suite = tests["OnnxBackendNodeModelTest"]
    names = sorted(name for name in vars(suite) if OPERATORS.match(name) and name.endswith("_cpu"))
    failed, skipped = {}, []
    for name in names:
        result = unittest.TestResult()
        suite(name).run(result)
        if result.skipped:
            skipped.append(name)
        elif not result.wasSuccessful():
            failed[name.removesuffix("_cpu")] = (result.errors + result.failures)[0][1].strip().splitlines()[-1][:300]
    found, errors = {}, {}
    cases = [case for case in load_model_tests(kind="node") if OPERATORS.match(case.name)]
    for case in cases:
        try:
            rows = differences(case)
        except Exception as error:  # says which test, and goes on with the others
            errors[case.name] = f"{type(error).__name__}: {error}"[:300]
            continue
        if rows:
            found[case.name] = rows
    if {case.name for case in cases} != {name.removesuffix("_cpu") for name in names}:
        errors["all"] = "BackendTest does not run every test that is shipped"
    print(
        json.dumps(
            {
                "onnx": onnx.__version__,
                "numpy": np.__version__,
                "ml_dtypes": ml_dtypes.__version__,
                "tests": len(names),
                "failed": failed,
                "skipped": skipped,
                "differences": found,
                "errors": errors,
            }
        )
    )


if __name__ == "__main__":
    main()
