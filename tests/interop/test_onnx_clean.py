# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx casts`, `clean` and `diff`: which Casts a model has, which change nothing, and what two models differ in."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

X = np.float32([[1.5, -2.25, 1e-5]])
F16, F32 = TensorProto.FLOAT16, TensorProto.FLOAT


def parse(text, initializers=(), more=""):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n{text}\n{more}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers)
    return model


def run(model, **feeds):
    # Not ONNX Runtime, which itself removes Casts that round.
    return ReferenceEvaluator(model).run(None, feeds)


def operators(model):
    return [node.op_type for node in model.graph.node]


@pytest.fixture
def clean(run_tcast, tmp_path):
    """Cleans a model twice: the second time changes nothing."""
    def cleaned(model, *arguments):
        onnx.save(model, tmp_path / "in.onnx")
        done = run_tcast("onnx", "clean", "in.onnx", "-o", "out.onnx", "--force", *arguments)
        assert done.returncode == 0, done.stderr
        again = run_tcast("onnx", "clean", "out.onnx", "-o", "again.onnx", "--force", *arguments)
        assert again.stdout == "again.onnx: 0 changes\n"
        assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "again.onnx").read_bytes()
        new = onnx.load(tmp_path / "out.onnx")
        onnx.checker.check_model(new, full_check=True)
        assert new.graph.input == model.graph.input and new.graph.output == model.graph.output
        return new
    return cleaned


@pytest.mark.parametrize("text, left", [
    # to the same type; its source takes the name of the output
    ("{ a = Relu(x)  y = Cast<to = 1>(a) }", ["Relu"]),
    # up and down again, with more consumers
    ("{ h = Cast<to = 10>(x)  a = Cast<to = 1>(h)  b = Cast<to = 10>(a)  c = Neg(b)  d = Cast<to = 1>(c)  y = Add(d, a) }",
     ["Cast", "Cast", "Neg", "Cast", "Add"]),
    # the way up goes, too, if nothing else takes it
    ("{ h = Cast<to = 10>(x)  a = Cast<to = 1>(h)  b = Cast<to = 10>(a)  c = Neg(b)  y = Cast<to = 1>(c) }",
     ["Cast", "Neg", "Cast"]),
    # down and up again rounds
    ("{ h = Cast<to = 10>(x)  a = Cast<to = 1>(h)  y = Neg(a) }", ["Cast", "Cast", "Neg"]),
    # to bfloat16 and back loses bits of float16, to float16 and back the range of bfloat16
    ("{ h = Cast<to = 10>(x)  a = Cast<to = 16>(h)  b = Cast<to = 10>(a)  y = Cast<to = 1>(b) }", ["Cast"] * 4),
    # integers
    ("{ i = Cast<to = 3>(x)  f = Cast<to = 10>(i)  j = Cast<to = 3>(f)  y = Cast<to = 1>(j) }", ["Cast", "Cast"]),
    ("{ i = Cast<to = 7>(x)  f = Cast<to = 1>(i)  j = Cast<to = 7>(f)  y = Cast<to = 1>(j) }", ["Cast"] * 4),
    # twice the same
    ("{ h = Cast<to = 10>(x)  i = Cast<to = 10>(x)  s = Add(h, i)  y = Cast<to = 1>(s) }", ["Cast", "Add", "Cast"]),
    # nothing takes it
    ("{ h = Cast<to = 10>(x)  i = Cast<to = 11>(h)  y = Neg(x) }", ["Neg"]),
    # copies; an output of the model cannot be its input
    ("{ a = Identity(x)  b = Identity(a)  c = Neg(b)  y = Identity(c) }", ["Neg"]),
    ("{ y = Identity(x) }", ["Identity"]),
    ("{ y = Cast<to = 1>(x) }", ["Cast"]),
])
def test_what_goes_and_what_stays(clean, text, left):
    model = parse("g (float[1,3] x) => (float[1,3] y) " + text)
    new = clean(model)
    assert operators(new) == left
    np.testing.assert_array_equal(run(new, x=X)[0], run(model, x=X)[0])


def test_two_outputs_of_one_value_stay_two(clean):
    model = parse("g (float[1,3] x) => (float[1,3] y, float[1,3] z) { y = Relu(x)  z = Cast<to = 1>(y) }")
    assert operators(clean(model)) == ["Relu", "Cast"]


def test_a_saturating_cast_changes_infinity_of_e5m2(clean):
    text = "g (float[1,3] x) => (float[1,3] y) {{ e = Cast<to = 19{}>(x)  h = Cast<to = 10>(e)  f = Cast<to = 19{}>(h)  y = Cast<to = 1>(f) }}"
    assert operators(clean(parse(text.format("", "")))) == ["Cast"] * 4
    assert operators(clean(parse(text.format(", saturate = 0", ", saturate = 0")))) == ["Cast"] * 2


def test_lossy_pairs_go_on_demand_only(clean):
    model = parse("g (float[1,3] x) => (float[1,3] y) { h = Cast<to = 10>(x)  a = Cast<to = 1>(h)  y = Neg(a) }")
    new = clean(model, "--allow-lossy-cast-elision")
    assert operators(new) == ["Neg"]
    np.testing.assert_array_equal(run(new, x=X)[0], -X)


def test_subgraphs_and_functions(clean):
    model = parse("""g (float[1,3] x, bool b) => (float[1,3] y) {
        h = Cast<to = 10>(x)  w = Cast<to = 1>(h)
        r = If(b) <then_branch = t () => (float[1,3] p) { q = Cast<to = 10>(w)  p = Cast<to = 1>(q) },
                   else_branch = e () => (float[1,3] p) { p = Identity(x) }>
        y = own.f(r) }""", more='<domain: "own", opset_import: ["" : 21]> f (a) => (d) { b = Identity(a)  c = Neg(b)  d = Identity(c) }')
    new = clean(model)
    branches = {a.name: [node.op_type for node in a.g.node] for n in new.graph.node if n.op_type == "If" for a in n.attribute}
    # p stays a Cast of what is outside: a branch gives on no value of the outer graph
    assert branches == {"then_branch": ["Cast"], "else_branch": ["Identity"]}
    assert [node.op_type for node in new.functions[0].node] == ["Neg"]
    for b in (True, False):
        np.testing.assert_array_equal(run(new, x=X, b=np.array(b))[0], run(model, x=X, b=np.array(b))[0])


def test_annotated_values_and_types_of_values_that_go(clean):
    model = parse("g (float[1,3] x) => (float[1,3] y) <float[1,3] a, float[1,3] b, float[1,3] n> { a = Identity(x)  b = Identity(x)  n = Add(a, b)  y = Identity(n) }")
    model.graph.quantization_annotation.add(tensor_name="a")
    new = clean(model)
    assert operators(new) == ["Identity", "Add"]
    assert [info.name for info in new.graph.value_info] == ["a"]


def test_external_data_stays_or_moves_along(run_tcast, tmp_path):
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Identity(x)  y = Mul(a, w) }", [("w", X)])
    onnx.save(model, tmp_path / "in.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "other").mkdir()
    assert run_tcast("onnx", "clean", "in.onnx", "-o", "out.onnx").returncode == 0
    assert run_tcast("onnx", "clean", "in.onnx", "-o", "other/out.onnx").returncode == 0
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"in.onnx", "weights", "out.onnx", "out.onnx.data"}
    for path in ("out.onnx", "other/out.onnx"):
        assert operators(onnx.load(tmp_path / path)) == ["Mul"]
        session = onnxruntime.InferenceSession(tmp_path / path, providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * X)


def test_casts_says_why(run_tcast, tmp_path):
    model = parse("""g (float[1,3] x, float[1,3] z) => (float[1,3] y, float16[1,3] o) {
        h = Cast<to = 10>(x)  s = Add(h, k)  o = Cast<to = 10>(z)  u = Cast<to = 11>(z)
        f = Cast<to = 1>(s)  g16 = Cast<to = 10>(f)  m = Mul(g16, h)  y = Cast<to = 1>(m)
        i = Cast<to = 7>(y)  n = Cast<to = 1>(i)  w = Cast<to = 1>(n)  v = Neg(w) }""", [("k", X.astype(np.float16))])
    onnx.save(model, tmp_path / "m.onnx")
    said = json.loads(run_tcast("onnx", "casts", "m.onnx", "--json").stdout)
    roles = {cast["output"]: cast["role"] for cast in said["casts"]}
    assert roles == {"h": "model_input", "o": "model_input", "u": "unused", "f": "unused", "g16": "round_trip",
                     "y": "model_output", "i": "computation", "n": "computation", "w": "same_type"}
    h = next(cast for cast in said["casts"] if cast["output"] == "h")
    assert (h["from"], h["to"], h["consumers"], h["removable"]) == ("float32", "float16", 2, False)
    assert said["removable"] == 4
    assert "9 Casts, of which `tcast onnx clean` removes 4" in run_tcast("onnx", "casts", "m.onnx").stdout


def test_conversion_removes_pairs_that_it_makes(run_tcast, tmp_path):
    model = parse("""g (float16[1,3] x) => (float16[1,3] y) {
        a = Cast<to = 1>(x)  b = Softmax(a)  c = Cast<to = 10>(b)  d = Relu(c)  e = Cast<to = 1>(d)  f = Cast<to = 10>(e)  y = Neg(f) }""")
    onnx.save(model, tmp_path / "m.onnx")
    assert run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16").returncode == 0
    new = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(new, full_check=True)
    assert operators(new) == ["Softmax", "Relu", "Neg"]
    x = X.astype(np.float16)
    np.testing.assert_allclose(run(new, x=x)[0], run(model, x=x)[0], rtol=2e-3)


def test_diff(run_tcast, tmp_path):
    a = parse("g (float[1,3] x) => (float[1,3] y) { r = Relu(x)  y = Mul(r, w) }", [("w", X), ("old", X)])
    onnx.save(a, tmp_path / "a.onnx")
    assert run_tcast("onnx", "convert", "a.onnx", "-o", "b.onnx", "--to", "float16", "--keep-io-types").returncode == 0
    same = run_tcast("onnx", "diff", "a.onnx", "a.onnx")
    assert same.returncode == 0 and same.stdout.startswith("equal: ")
    done = run_tcast("onnx", "diff", "a.onnx", "b.onnx", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 1 and not said["equal"]
    assert {"scope": "", "name": "r", "a": "float32", "b": "float16"} in said["values"]
    assert [cast["input"] for cast in said["casts_only_b"]] == ["x", "y_float16"]
    w = next(tensor for tensor in said["initializers"] if tensor["name"] == "w")
    assert (w["from"], w["to"], w["different"]) == ("float32", "float16", 1)
    assert w["max_abs_error"] == abs(float(np.float32(1e-5)) - float(np.float16(1e-5)))
    assert "Casts only in B" in run_tcast("onnx", "diff", "a.onnx", "b.onnx").stdout
    missing = run_tcast("onnx", "diff", "a.onnx", "c.onnx")
    assert missing.returncode == 2 and "c.onnx: cannot open" in missing.stderr
