# SPDX-License-Identifier: Apache-2.0
"""Lengths and positions that become floats: float16 ends at 65504, and is inexact from 2049 on."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

CONSTANTS = {"one": np.int64(1), "zero": np.int64(0), "slow": np.float32(1e-4), "large": np.float32(3e4),
             "table": np.float32(np.random.default_rng(1).normal(size=(8, 4))), "axes": np.int64([0])}  # fmt: skip
LENGTH = "s = Shape(x) n = Gather(s, one)"
CASES = {
    "a mean": f"{{ {LENGTH} f = Cast<to = 1>(n) m = ReduceMean(x) l = Mul(m, large) y = Div(l, f) }}",
    "Size": "{ n = Size(x) f = Cast<to = 1>(n) y = Div(x, f) }",
    "a root": f"{{ {LENGTH} f = Cast<to = 1>(n) r = Sqrt(f) y = Div(x, r) }}",
    "positions": f"{{ {LENGTH} p = Range(zero, n, one) f = Cast<to = 1>(p) a = Mul(f, slow) c = Sin(a) y = Mul(x, c) }}",
    "positions of a row": f"{{ {LENGTH} p = Range(zero, n, one) f = Cast<to = 1>(p) u = Unsqueeze(f, axes) a = Mul(u, slow) "
                          "c = Cos(a) y = Mul(x, c) }",
}  # fmt: skip


def model_of(text):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\ng (float[a,b] x) => (float[c,d] y) {text}')
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in CONSTANTS.items() if name in used)
    return model


def run(path, x):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = x.astype(np.float16 if session.get_inputs()[0].type == "tensor(float16)" else np.float32)
    return np.asarray(session.run(None, {"x": x})[0], np.float64)


def convert(run_tcast, tmp_path, model, to="float16"):
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", to, "--json")
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    return {node["name"] for node in json.loads(done.stdout)["kept"] if "lengths" in node["reason"]}


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_right_in_float16(run_tcast, tmp_path, case):
    x = np.full((1, 100_000), 0.5, np.float32)
    assert convert(run_tcast, tmp_path, model_of(CASES[case]))
    wanted, found = run(tmp_path / "m.onnx", x), run(tmp_path / "o.onnx", x)
    assert np.abs(found - wanted).max() <= 0.003 * np.abs(wanted).max()


def test_what_is_looked_up_by_a_position_changes(run_tcast, tmp_path):
    text = f"{{ {LENGTH} p = Range(zero, n, one) e = Gather(table, p) y = Mul(e, e) }}"
    assert not convert(run_tcast, tmp_path, model_of(text))
    made = onnx.load(tmp_path / "o.onnx")
    assert "Cast" not in [node.op_type for node in made.graph.node]
