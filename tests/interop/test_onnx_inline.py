# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx convert --functions inline`: calls become the nodes of their functions."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

X = np.array([[0.1, -1.7, 3.3]], np.float32)
EDGES = "g (float[1,3] x) => (float[1,3] y)"
SCALE = """
<domain: "mine", opset_import: ["" : 21]> scale <factor: float = 0.5, unused: int> (a) => (b) {
    s = Constant<value_float: float = @factor>()  b = Mul(a, s) }"""
NEGATE = '\n<domain: "mine", opset_import: ["" : 21]> negate (a) => (b) { [turn] c = Neg(a)  b = Identity(c) }'
BOTH = """
<domain: "mine", opset_import: ["" : 21, "mine" : 1]> both <by: float = 3.0> (a) => (d, a) {
    b = mine.scale<factor: float = @by>(a)  c = mine.scale(b)  d = mine.negate(c) }"""
BRANCHES = """
<domain: "mine", opset_import: ["" : 21]> branches <slope: float> (c, a) => (r) {
    t = Abs(a)
    r = If(c) <then_branch = then () => (o) { u = LeakyRelu<alpha: float = @slope>(a)  o = Add(u, t) },
               else_branch = other () => (o) <float w = {2}> { o = Mul(t, w) }> }"""


def parse(text, opsets='"" : 21, "mine" : 1'):
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{opsets}]>\n{text}")


def run(model, **feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


@pytest.fixture
def inline(run_tcast, tmp_path):
    """inline(model, to) gives the new model, which is valid and which a second conversion leaves as it is."""

    def inlined(model, to="float64", *options):
        (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
        for source, target in (("model.onnx", "out.onnx"), ("out.onnx", "again.onnx")):
            done = run_tcast("onnx", "convert", source, "-o", target, "--to", to, "--functions", "inline", "--keep-io-types",
                             "--force", *options)
            assert done.returncode == 0, done.stderr
        assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "out.onnx").read_bytes()
        onnx.checker.check_model(str(tmp_path / "out.onnx"), full_check=True)
        return onnx.load(tmp_path / "out.onnx")

    return inlined


def operators(graph):
    return [node.op_type for node in graph.node]


# Models, and what they compute. ONNX Runtime refuses functions that give back an input.
CASES = {
    "one call": (f"{EDGES} {{ y = mine.negate(x) }}" + NEGATE, lambda x: -x),
    "attributes and defaults": (
        f"{EDGES} {{ a = mine.scale(x)  y = mine.scale<factor: float = -7.0>(a) }}" + SCALE, lambda x: x * 0.5 * -7),
    "functions in functions": (
        f"{EDGES} {{ y, z = mine.both<by: float = 4.0>(x) }}" + SCALE + NEGATE + BOTH, lambda x: -(x * 4 * 0.5)),
    "an output that is an input": (
        f"{EDGES} {{ p, q = mine.both(x)  y = Add(p, q) }}" + SCALE + NEGATE + BOTH, lambda x: -(x * 3 * 0.5) + x),
    "names that are taken": (
        f"{EDGES} {{ [turn] c = Abs(x)  [n] d = mine.negate(c)  [n2] e = mine.negate(d)  y = Add(c, e) }}" + NEGATE,
        lambda x: 2 * abs(x)),
    "calls in subgraphs": (
        "g (float[1,3] x, bool c) => (float[1,3] y) { y = If(c) <then_branch = then () => (float[1,3] o) { o = mine.negate(x) },"
        " else_branch = other () => (float[1,3] o) { p = mine.negate(x)  o = mine.negate(p) }> }" + NEGATE,
        lambda x, c: -x if c else x),
    "subgraphs of functions": (
        "g (float[1,3] x, bool c) => (float[1,3] y) { a = mine.branches<slope: float = 0.1>(c, x)"
        " n = Not(c)  y = mine.branches<slope: float = 0.2>(n, a) }" + BRANCHES,
        lambda x, c: (lambda a: branches(not c, a, 0.2))(branches(c, x, 0.1))),
}


def branches(c, a, slope):
    return np.where(a < 0, a * slope, a) + abs(a) if c else abs(a) * 2


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("to", ["float64", "float16"])
def test_models_compute_what_they_did(inline, case, to):
    text, expected = CASES[case]
    model = parse(text)
    new = inline(model, to)
    assert not new.functions and all(node.domain == "" for node in new.graph.node)
    for flag in (True, False):
        feeds = {"x": X} | ({"c": np.array(flag)} if len(model.graph.input) == 2 else {})
        wanted = expected(X, *([flag] if "c" in feeds else []))
        np.testing.assert_allclose(run(new, **feeds)[0], wanted, rtol=1e-2 if to == "float16" else 1e-6)


def test_calls_with_several_types(inline):
    text = """g (float[1,3] x, int64[1,3] i) => (float[1,3] y, int64[1,3] j) { y = mine.double(x)  j = mine.double(i) }
        <domain: "mine", opset_import: ["" : 21]> double (a) => (b) { b = Add(a, a) }"""
    new = inline(parse(text), "float16")
    assert operators(new.graph) == ["Cast", "Add", "Cast", "Add"]
    y, j = run(new, x=X, i=np.int64([[1, 2, 3]]))
    np.testing.assert_allclose(y, X * 2, rtol=1e-3)
    assert j.tolist() == [[2, 4, 6]]


def test_names_begin_with_the_call(inline):
    new = inline(parse(f"{EDGES} {{ [first] a = mine.negate(x)  y = mine.negate(a) }}" + NEGATE), "bfloat16", "--keep-op", "Neg")
    nodes = [(node.name, *node.input, *node.output) for node in new.graph.node if node.op_type == "Neg"]
    assert nodes == [("first/turn", "x", "first/c"), ("y/turn", "a", "y/c")]


def test_selectors_see_the_new_nodes(inline, run_tcast, tmp_path):
    model = parse(f"{EDGES} {{ [first] a = mine.negate(x)  y = mine.negate(a) }}" + NEGATE)
    new = inline(model, "float16", "--keep", "glob:first/*")
    assert [node.op_type for node in new.graph.node] == ["Neg", "Cast", "Identity", "Neg", "Identity", "Cast"] or \
        TensorProto.FLOAT16 in [value.type.tensor_type.elem_type for value in onnx.shape_inference.infer_shapes(new).graph.value_info]
    done = run_tcast("onnx", "convert", "model.onnx", "--to", "float16", "--functions", "inline", "--keep", "op:negate", "--dry-run")
    assert done.returncode != 0 and "op:negate" in done.stderr


def test_the_report_counts_calls(run_tcast, tmp_path):
    onnx.save(parse(CASES["functions in functions"][0]), tmp_path / "model.onnx")
    done = run_tcast("onnx", "convert", "model.onnx", "--to", "float32", "--functions", "inline", "--dry-run", "--json")
    assert json.loads(done.stdout)["calls_inlined"] == 4
    done = run_tcast("onnx", "convert", "model.onnx", "-o", "new.onnx", "--to", "float32", "--functions", "inline")
    assert done.returncode == 0 and "4 calls of functions inlined" in done.stdout


def test_functions_of_another_opset_stay(inline):
    other = """
        <domain: "mine", opset_import: ["" : 13]> old (a) => (b) { b = Neg(a) }
        <domain: "mine", opset_import: ["" : 21, "mine" : 1]> outer (a) => (b) { c = mine.old(a)  b = Neg(c) }"""
    model = parse(f"{EDGES} {{ a = mine.outer(x)  b = mine.old(a)  y = mine.negate(b) }}" + NEGATE + other)
    onnx.checker.check_model(model)
    new = inline(model, "float32")
    assert [function.name for function in new.functions] == ["old"]
    assert operators(new.graph) == ["old", "Neg", "old", "Neg", "Identity"]
    np.testing.assert_array_equal(run(new, x=X)[0], run(model, x=X)[0])


def test_functions_that_a_function_of_another_opset_calls_stay(inline):
    other = """
        <domain: "mine", opset_import: ["" : 21]> inner (a) => (b) { b = Neg(a) }
        <domain: "mine", opset_import: ["" : 13, "mine" : 1]> outer (a) => (b) { b = mine.inner(a) }"""
    model = parse(f"{EDGES} {{ a = mine.outer(x)  y = mine.inner(a) }}" + other)
    new = inline(model, "float32")
    assert [function.name for function in new.functions] == ["inner", "outer"]
    assert operators(new.graph) == ["outer", "Neg"]


def test_domains_of_functions_are_imported(inline):
    functions = """
        <domain: "mine", opset_import: ["ai.onnx.ml" : 3]> scaled (a) => (b) {
            b = ai.onnx.ml.Scaler<offset: floats = [0.5], scale: floats = [2.0]>(a) }"""
    new = inline(parse(f"{EDGES} {{ y = mine.scaled(x) }}" + functions), "float32")
    assert {each.domain: each.version for each in new.opset_import}["ai.onnx.ml"] == 3
    np.testing.assert_allclose(run(new, x=X)[0], (X - 0.5) * 2)


def test_overloads(inline):
    functions = [helper.make_function("mine", "f", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"])],
                                      [helper.make_opsetid("", 21)], overload=op) for op in ("Neg", "Abs")]
    nodes = [helper.make_node("f", ["x"], ["t"], domain="mine", overload="Abs"),
             helper.make_node("f", ["t"], ["y"], domain="mine", overload="Neg")]
    edges = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", edges[:1], edges[1:]), functions=functions, ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)])
    assert operators(inline(model, "float32").graph) == ["Abs", "Neg"]


def test_omitted_inputs_and_outputs(inline):
    functions = """
        <domain: "mine", opset_import: ["" : 21]> bounded (a, low, high) => (b, c) { b = Clip(a, low, high)  c = Neg(b) }"""
    model = parse(f"{EDGES} <float low = {{-1}}> {{ y, z = mine.bounded(x, low) }}" + functions)
    model.graph.node[0].output[1] = ""
    del model.graph.node[0].output[1:]
    new = inline(model, "float32")
    assert list(new.graph.node[0].input) in (["x", "low", ""], ["x", "low"])
    np.testing.assert_array_equal(run(new, x=X)[0], np.maximum(X, -1))


def test_types_of_values_in_a_function_that_is_called_once(inline):
    info = helper.make_tensor_value_info("c", TensorProto.FLOAT, [1, 3])
    once = parse(f"{EDGES} {{ y = mine.negate(x) }}" + NEGATE)
    once.functions[0].value_info.append(info)
    assert [value.name for value in inline(once, "float32").graph.value_info] == ["y/c"]
    twice = parse(f"{EDGES} {{ a = mine.negate(x)  y = mine.negate(a) }}" + NEGATE)
    twice.functions[0].value_info.append(info)
    assert not inline(twice, "float32").graph.value_info


def test_initializers_are_copied_byte_for_byte(inline, run_tcast, tmp_path):
    model = parse(f"{EDGES} {{ a = mine.negate(x)  y = Add(a, w) }}" + NEGATE)
    model.graph.initializer.append(numpy_helper.from_array(np.arange(300000, dtype=np.int64), "unused"))
    model.graph.initializer.append(numpy_helper.from_array(X, "w"))
    stored = list(model.graph.initializer)
    onnx.save(onnx.ModelProto.FromString(model.SerializeToString()), tmp_path / "outside.onnx", save_as_external_data=True, location="outside.data", size_threshold=0)
    new = inline(onnx.load(tmp_path / "outside.onnx"), "float32")
    assert [numpy_helper.to_array(each).tobytes() for each in new.graph.initializer] == [each.raw_data for each in stored]
    done = run_tcast("onnx", "convert", "outside.onnx", "-o", "moved.onnx", "--to", "float16", "--functions", "inline")
    assert done.returncode == 0, done.stderr
    moved = onnx.load(tmp_path / "moved.onnx")
    np.testing.assert_array_equal(numpy_helper.to_array(moved.graph.initializer[0]), np.arange(300000))
    np.testing.assert_allclose(run(moved, x=X.astype(np.float16))[0], X - X, atol=1e-2)
