# SPDX-License-Identifier: Apache-2.0
"""Lengths and positions that become floats: float16 ends at 65504, and is inexact from 2049 on."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

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


TABLE = np.arange(20_000, dtype=np.float32)[:, None] % 997
POSITIONS = "s = Shape(x) n = Gather(s, one) p = Range(zero, n, one)"
# Float columns of identifiers that are looked up, times, and positions: the graph, and its arguments.
WHOLE = {
    "a column": ("(float[b,3] x) => (float[b,4] y) { a, b1, c = Split<axis = 1, num_outputs = 3>(x) i = Cast<to = 7>(a) y = Gather(table, i) }", "ids"),
    "rows": ("(float[b,3] x) => (float[b,4] y) { r = Flatten(x) i = Cast<to = 7>(r) y = Gather(table, i) }", "ids"),
    "branches": ("(float[b,3] x) => (float[b,4] y) { a = Gather<axis = 1>(x, zero) c = Cast<to = 9>(one) s = If(c) <then_branch = t () => "
                 "(float[b] p) { p = Add(a, onef) }, else_branch = e () => (float[b] q) { q = Sub(a, onef) }> i = Cast<to = 7>(s) y = Gather(table, i) }", "ids"),
    "an identifier": ("(int64[b,3] x) => (float[b,3] y) { f = Cast<to = 1>(x) e = Equal(f, pad) y = Cast<to = 1>(e) }", "integers"),
    "the largest": ("(int64[b,3] x) => (float[b] y) { f = Cast<to = 1>(x) a = ArgMax<axis = 1, keepdims = 0>(f) y = Cast<to = 1>(a) }", "integers"),
    "buckets": ("(float[a,b] x) => (float[b] y) { " + POSITIONS + " d = Sub(p, n) e = Abs(d) f = Cast<to = 1>(e) q = Div(f, eight) l = Log(q) r = Div(l, log16) m = Mul(r, eight) "
                "i = Cast<to = 7>(m) k = Max(i, zero) y = Cast<to = 1>(k) }", "row"),
    "angles": ("(float[a,b] x) => (float[b,16] y) { " + POSITIONS + ' f = Cast<to = 1>(p) a1 = Einsum<equation = "i,j->ij">(f, speeds) y = Cos(a1) }', "row"),
    "a time": ("(float[b] x) => (float[b,16] y) { u = Unsqueeze(x, last) a = Mul(u, speeds) y = Sin(a) }", "times"),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE)
def test_whole_numbers_keep_their_digits(run_tcast, tmp_path, case):
    text, arguments = WHOLE[case]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\ng {text}')
    constants = CONSTANTS | {"table": TABLE, "onef": np.float32(1), "pad": np.float32(50_257), "eight": np.float32(8), "log16": np.float32(np.log(16)), "last": np.int64([1]),
                             "speeds": np.float32(1 / 10_000 ** (np.arange(16) / 16))}  # fmt: skip
    used = {name for node in model.graph.node for name in node.input} | {"onef"}
    model.graph.initializer.extend(numpy_helper.from_array(constants[name], name) for name in sorted(used & constants.keys()))
    onnx.save(model, tmp_path / "m.onnx")
    random = np.random.default_rng(0)
    x = {"ids": random.integers(1, 19_990, (200, 3)).astype(np.float32), "row": np.zeros((1, 400), np.float32),
         "integers": np.int64([[50_256, 50_257, 50_258], [49_406, 49_407, 320]]),
         "times": np.float32([999, 741.5, 0.3])}[arguments]  # fmt: skip
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--keep-io-types", "--runtime", "any")
    assert done.returncode == 0, done.stderr
    # ONNX Runtime computes float16 in float32 on a CPU.
    wanted, found = (ReferenceEvaluator(str(tmp_path / name)).run(None, {"x": x})[0] for name in ("m.onnx", "o.onnx"))
    assert np.abs(wanted - found).max() <= (0.5 if arguments == "ids" else 1e-3)
