# SPDX-License-Identifier: Apache-2.0
"""Constants beyond the range of a narrow type: whatever takes their elements keeps its type, under whatever name."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

X = np.float32([[1e-4, -2e-4, 3e-4, 2e-5], [5e-5, 1e-4, -1e-4, 1e-4]])
W = np.float32(np.random.default_rng(3).normal(size=(4, 4)) * 1e6)
ROW = W[0]
HEAD = '<ir_version: 9, opset_import: ["" : 19, "own" : 1]>\n'
# The body of the graph, its initializers, and functions
CASES = {
    "Transpose": ("{ t = Transpose(b) y = MatMul(x, t) }", {"b": W}),
    "Identity": ("{ t = Identity(b) y = MatMul(x, t) }", {"b": W}),
    "Reshape": ("{ t = Reshape(b, s) y = MatMul(x, t) }", {"b": W.ravel(), "s": np.int64([4, 4])}),
    "Concat": ("{ t = Concat<axis = 0>(b, c) y = MatMul(x, t) }", {"b": W[:1], "c": W[1:] * np.float32(1e-6)}),
    "Gather": ("{ t = Gather(b, i) y = MatMul(x, t) }", {"b": W, "i": np.int64([3, 2, 1, 0])}),
    "Where": ("{ t = Where(c, b, d) y = Mul(x, t) }", {"b": np.float32(1e6), "c": np.bool_([1, 0, 1, 0]), "d": np.float32(2)}),
    "Split": ("{ t, u = Split<num_outputs = 2>(b) v = Mul(x, t) w = Mul(x, u) y = Add(v, w) }", {"b": W}),
    "Unsqueeze of a Constant": ("""{ c = Constant<value_floats = [1e6, 2e6, 3e5, 1e5]>() t = Unsqueeze(c, axis) y = Mul(x, t) }""",
                                {"axis": np.int64([0])}),
    "If": ("""{ t = If (c) <then_branch = a () => (float[4] p) { p = Identity(b) },
               else_branch = e () => (float[4] q) { q = Neg(b) }> y = Mul(x, t) }""", {"b": ROW, "c": np.bool_(True)}),
    "Scan": ("{ n, t = Scan<num_scan_inputs = 1, body = step (float[4] s, float[4] e) => (float[4] m, float[4] o) "
             "{ m = Add(s, e) o = Identity(e) }>(zero, b) y = Mul(x, t) }", {"b": W[:2], "zero": np.zeros(4, np.float32)}),
    "a call": ("{ y = own.Product(x, b) }", {"b": W}, "Product (p, q) => (r) { r = MatMul(p, q) }"),
    "a call in a call": ("{ y = own.Outer(x, b) }", {"b": W}, "Outer (p, q) => (r) { i = Identity(q) r = own.Product(p, i) }",
                         "Product (p, q) => (r) { r = MatMul(p, q) }"),
    "the result of a function": ("{ t = own.Big() y = Mul(x, t) }", {},
                                 "Big () => (r) { r = Constant<value_floats = [1e6, 2e6, 3e5, 1e5]>() }"),
    "float64": ("{ t = Cast<to = 1>(b) y = Mul(x, t) }", {"b": np.float64(1e6)}),
    "int64": ("{ u = Unsqueeze(b, axis) t = Cast<to = 1>(u) y = Mul(x, t) }", {"b": np.int64([1_000_000, 2, 70_000, 5]), "axis": np.int64([0])}),
    "CastLike in a function": ("{ y = own.Scaled(x) }", {},
                               "Scaled (a) => (r) { c = Constant<value_float = 1e6>() s = CastLike(c, a) r = Mul(a, s) }"),
    "CastLike of an integer": ("{ y = own.Scaled(x) }", {},
                               "Scaled (a) => (r) { c = Constant<value_int = 1000000>() s = CastLike(c, a) r = Mul(a, s) }"),
    "value_int": ("{ b = Constant<value_int = 1000000>() t = Cast<to = 1>(b) y = Mul(x, t) }", {}),
    "value_ints": ("{ b = Constant<value_ints = [1000000, 2, 70000, 5]>() t = Cast<to = 1>(b) y = Mul(x, t) }", {}),
}  # fmt: skip


def model_of(case):
    body, initializers, *functions = CASES[case]
    imports = '<domain: "own", opset_import: ["" : 19, "own" : 1]>\n'
    text = "\n".join([HEAD + "g (float[2,4] x) => (float[2,4] y) " + body, *(imports + each for each in functions)])
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in initializers.items())
    return model


def run(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = X.astype(np.float16 if session.get_inputs()[0].type == "tensor(float16)" else np.float32)
    return np.asarray(session.run(None, {"x": x})[0], np.float64)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("more", [[], ["--keep-io-types"], ["--functions", "inline"]], ids=["", "keep-io-types", "inline"])
def test_outputs_are_right_in_float16(run_tcast, tmp_path, case, more):
    onnx.save(model_of(case), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--json", *more)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    wanted, found = run(tmp_path / "m.onnx"), run(tmp_path / "o.onnx")
    assert np.abs(found - wanted).max() <= 0.003 * np.abs(wanted).max()
    assert any("beyond the type's range" in node["reason"] for node in json.loads(done.stdout)["kept"])


@pytest.mark.parametrize("case", ["int64", "value_int", "float64", "the result of a function"])
def test_it_may_be_an_error(run_tcast, tmp_path, case):
    onnx.save(model_of(case), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--on-overflow", "error")
    assert done.returncode == 1 and "beyond the range of float16" in done.stderr
    assert not (tmp_path / "o.onnx").exists()


def test_a_comparison_ends_what_elements_reach(run_tcast, tmp_path):
    """A Where takes the truth of a comparison with a large number, not the number."""
    model = onnx.parser.parse_model(HEAD + """g (float[2,4] x) => (float[2,4] y)
        <float b = {1e6}> { m = Cast<to = 9>(b) w = Where(m, x, x) y = Mul(w, w) }""")
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--json")
    assert done.returncode == 0 and {each["name"] for each in json.loads(done.stdout)["kept"]} == {"m"}
