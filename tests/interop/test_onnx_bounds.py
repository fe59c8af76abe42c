# SPDX-License-Identifier: Apache-2.0
"""Bounds such as 1 - 1e-6, which float16 makes 1: Atanh and Log behind them keep their type."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

X = np.float32([[-1, 0, 0.25, 1]])
BOUNDS = {"low": np.float32(1e-6), "high": np.float32(1 - 1e-6), "minus": np.float32(-1 + 1e-6), "one": np.float32(1)}
LOGIT = "s = Sub(one, c) d = Div(c, s) y = Log(d) }"
CASES = {
    "logit": ("{ c = Clip(x, low, high) " + LOGIT, 13, ""),
    "Min and Max": ("{ m = Min(x, high) c = Max(m, low) " + LOGIT, 13, ""),
    "Where": ("{ a = Greater(high, x) b = Where(a, x, high) d = Less(b, low) c = Where(d, low, b) "
              "s = Sub(one, c) q = Div(c, s) y = Log(q) }", 13, ""),  # as PyTorch exports logit(x, eps)
    "Clip 6": ("{ c = Clip<min = 1e-6, max = 0.999999>(x) " + LOGIT, 10, ""),
    "Constants": ("{ low = Constant<value_float = 1e-6>() high = Constant<value_float = 0.999999>() c = Clip(x, low, high) " + LOGIT, 13, ""),
    "Atanh": ("{ c = Clip(x, minus, high) y = Atanh(c) }", 13, ""),
    "behind a Reshape": ("{ c = Clip(x, minus, high) t = Transpose(c) u = Transpose(t) y = Atanh(u) }", 13, ""),
    "a call": ("{ c = Clip(x, minus, high) y = own.Far(c) }", 13, "Far (a) => (b) { b = Atanh(a) }"),
}  # fmt: skip


def model_of(text, opset, function=""):
    imports = f'opset_import: ["" : {opset}, "own" : 1]>\n'
    functions = f'\n<domain: "own", {imports}{function}' if function else ""
    model = onnx.parser.parse_model(f"<ir_version: 8, {imports}g (float[1,4] x) => (float[1,4] y) {text}{functions}")
    used = {name for node in model.graph.node for name in node.input} - {name for node in model.graph.node for name in node.output}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in BOUNDS.items() if name in used)
    return model


def run(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = X.astype(np.float16 if session.get_inputs()[0].type == "tensor(float16)" else np.float32)
    return np.asarray(session.run(None, {"x": x})[0], np.float64)


def convert(run_tcast, tmp_path, model, *more):
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--json", *more)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    return [node["name"] for node in json.loads(done.stdout)["kept"] if "just below 1" in node["reason"]]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("more", [[], ["--keep-io-types"]], ids=["", "keep-io-types"])
def test_outputs_are_right_in_float16(run_tcast, tmp_path, case, more):
    kept = convert(run_tcast, tmp_path, model_of(*CASES[case]), *more)
    wanted, found = run(tmp_path / "m.onnx"), run(tmp_path / "o.onnx")
    assert np.isfinite(found).all() and np.abs(found - wanted).max() <= 0.003 * np.abs(wanted).max()
    assert kept


@pytest.mark.parametrize("text", [
    "{ c = Clip(x, minus, high) d = Sub(one, c) y = Mul(d, d) }",  # the distance is no result of a Log
    "{ c = Clip(x, low, one) s = Add(one, c) y = Log(s) }",
])  # fmt: skip
def test_other_bounds_change(run_tcast, tmp_path, text):
    assert not convert(run_tcast, tmp_path, model_of(text, 13))
