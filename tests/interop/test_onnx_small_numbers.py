# SPDX-License-Identifier: Apache-2.0
"""Constants that a narrow type would make zero, subnormal or NaN: the nodes that need them keep their type."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

F32, F16 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
X4 = np.float32([0, 1, 2, 3])
RNG = np.random.default_rng(5)


def parse(text, initializers=(), opset=19):
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]>\ng {text}')
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in dict(initializers).items())
    return model


def run(model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    types = {each.name: np.float16 if each.type == "tensor(float16)" else None for each in session.get_inputs()}
    given = {name: array.astype(types[name] or array.dtype) for name, array in inputs.items()}
    return [np.asarray(array, np.float64) for array in session.run(None, given)]


@pytest.fixture
def convert(run_tcast, tmp_path):
    def converted(model, *arguments):
        onnx.save(model, tmp_path / "m.onnx")
        done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "-f", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
        return onnx.load(tmp_path / "o.onnx"), json.loads(done.stdout)

    return converted


def qdq(**scale):
    """A Conv between quantized tensors; the scale of its bias is that of the input times those of the weights."""
    weights = np.float32([1e-4, 2e-4, 3e-4, 4e-4])
    axis = "<axis = 0>" if np.ndim(scale["bs"]) else ""
    zeros = "zeros" if np.ndim(scale["bs"]) else "zero"
    return parse(
        f"""(float[1,3,2,2] x) => (float[1,4,2,2] y) {{
            xq = QuantizeLinear(x, xs, xz)  xd = DequantizeLinear(xq, xs, xz)
            wd = DequantizeLinear<axis = 0>(w, ws, wz)  bd = DequantizeLinear{axis}(b, bs, {zeros})
            y = Conv(xd, wd, bd) }}""",
        {"xs": np.float32(2e-4), "xz": np.uint8(128), "ws": weights, "wz": np.zeros(4, np.int8), "zeros": np.zeros(4, np.int32),
         "zero": np.int32(0), "w": np.random.default_rng(1).integers(-127, 128, (4, 3, 1, 1)).astype(np.int8),
         "b": np.int32([9_000_000, -7_000_000, 5_000_000, 3_000_000]), **scale},
    )  # fmt: skip


ROOT = "(float[4] x) => (float[4] y) { v = Mul(x, x) e = Add(v, eps) s = Sqrt(e) y = Div(x, s) }"
UNIT = """(float[2,4] x) => (float[2,4] y) { n = ReduceL2<axes = [1], keepdims = 1>(x)
          shape = Shape(x) c = Clip(n, eps) e = Expand(c, shape) y = Div(x, e) }"""
CASES = {
    "eps of many elements": (parse(ROOT, {"eps": np.full(4, 1e-8, np.float32)}), X4),
    "eps of one element": (parse(ROOT, {"eps": np.float32(1e-8)}), X4),
    "value_float": (parse(ROOT.replace("{", "{ eps = Constant<value_float = 1e-9>()", 1)), X4),
    "value_floats": (parse(ROOT.replace("{", "{ eps = Constant<value_floats = [1e-9, 1e-9, 1e-9, 1e-9]>()", 1)), X4),
    "a norm that is not zero": (parse(UNIT, {"eps": np.float32(1e-12)}, opset=13), np.float32([[0, 0, 0, 0], [1, 2, 3, 4]])),
    "the reciprocal of a root": (parse(ROOT.replace("y = Div(x, s)", "r = Reciprocal(s) y = Mul(x, r)"), {"eps": np.float32(1e-9)}), X4),
    "a variance": (parse("(float[1,4,2] x) => (float[1,4,2] y) { y = BatchNormalization<epsilon = 1e-20>(x, g, b, b, v) }",
                         {"g": np.ones(4, np.float32), "b": np.zeros(4, np.float32), "v": np.full(4, 1e-9, np.float32)}),
                   np.float32(RNG.normal(size=(1, 4, 2)) * 3e-4)),
    "some of the variances": (parse("(float[1,4,2] x) => (float[1,4,2] y) { y = BatchNormalization<epsilon = 1e-12>(x, g, b, b, v) }",
                                    {"g": np.float32([.01] * 4), "b": np.zeros(4, np.float32), "v": np.float32([3e-5, 1e-6, 2e-7, 1])}),
                              np.float32(RNG.normal(size=(1, 4, 2)))),
    "a logarithm": (parse("(float[4] x) => (float[4] y) { l = Log(d) y = Add(x, l) }", {"d": np.float32([4e-9, 1e-7, 1, 2])}), X4),
    "an inverse that is a factor": (parse("(float[4] x) => (float[4] y) { r = Reciprocal(d) y = Mul(x, r) }",
                                          {"d": np.float32([2e-6, 1e-7, 1, 2])}), X4 * 1e-4),
    "a factor and its inverse": (parse("(float[4] x) => (float[4] y) { t = Mul(x, a) y = Mul(t, b) }",
                                       {"a": np.full(4, 1e-9, np.float32), "b": np.full(4, 6e4, np.float32)}), X4 * 1000),
    "weights": (parse("(float[1,64] x) => (float[1,64] y) { t = MatMul(x, w) y = Div(t, d) }",
                      {"w": np.float32(RNG.normal(size=(64, 64)) * 1e-9), "d": np.float32(1e-6)}),
                np.float32(RNG.normal(size=(1, 64)))),
    "a subnormal divisor": (parse("(float[4] x) => (float[4] y) { y = Div(x, d) }", {"d": np.float32([4e-8, 1e-7, 1, 2])}), X4 * 1e-4),
    "a divisor behind a Reshape": (parse("(float[1,4] x) => (float[1,4] y) { r = Reshape(d, s) y = Div(x, r) }",
                                         {"d": np.float32([4e-8, 1e-7, 1, 2]), "s": np.int64([1, 4])}), X4[None] * 1e-4),
    "a subnormal factor": (parse("(float[4] x) => (float[4] y) { y = Mul(x, d) }", {"d": np.float32(4e-8)}), X4 * 10_000),
    "scales by axis": (qdq(bs=np.float32([2e-8, 4e-8, 6e-8, 8e-8])), np.float32(RNG.normal(size=(1, 3, 2, 2)) * 0.01)),
    "one scale": (qdq(bs=np.float32(2e-8)), np.float32(RNG.normal(size=(1, 3, 2, 2)) * 0.01)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("more", [[], ["--keep-io-types"]], ids=["", "keep-io-types"])
def test_outputs_are_right_in_float16(convert, name, more):
    model, x = CASES[name]
    made, said = convert(model, "--to", "float16", *more)
    (wanted,), (found,) = run(model, {"x": x}), run(made, {"x": x})
    assert np.isfinite(found).all() and np.abs(found - wanted).max() <= 0.003 * np.abs(wanted).max()
    assert any("zero" in node["reason"] for node in said["kept"])


@pytest.mark.parametrize("name", [name for name in CASES if name != "one scale"])
def test_it_may_be_an_error(run_tcast, tmp_path, name):
    onnx.save(CASES[name][0], tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--on-overflow", "error")
    assert done.returncode == 1 and "nonzero numbers become zero in float16" in done.stderr
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("to, scale", [("float16", 1e-9), ("float8_e4m3fn", 1e-5), ("float8_e5m2", 1e-7), ("float8_e8m0fnu", 1)])
def test_weights_that_a_type_does_not_hold_keep_theirs(convert, tmp_path, to, scale):
    w = np.float32(RNG.normal(size=(64, 64)) * scale)
    model = parse("(float[1,64] x) => (float[1,64] y) { y = MatMul(x, w) }", {"w": w}, opset=24)
    made, said = convert(model, "--to", to, "--weights-only")
    assert made.SerializeToString() == model.SerializeToString() and said["initializers"] == []


def test_numbers_that_become_zero_are_counted_in_all_constants(convert):
    model = parse("""(float[4] x) => (float[4] y) { c = Constant<value_floats = [1.0, 1e-9, 2.0, 3.0]>()
                     a = Add(x, c) y = Add(a, w) }""", {"w": np.float32([1e-9, 5, 6, 7])})  # fmt: skip
    _, said = convert(model, "--to", "float16")
    assert {each["name"]: each["underflowed"] for each in said["initializers"]} == {"w": 1, "c": 1} and not said["kept"]


@pytest.mark.parametrize("magnitude", [1e-3, 1e-5, 1e-6, 3e-7])
@pytest.mark.parametrize("scheme, bound", [("int8", 0.005), ("int4-group", 0.08), ("float8", 0.04)])
def test_scales_of_small_float16_weights(convert, scheme, bound, magnitude):
    w = (RNG.normal(size=(256, 8)) * magnitude).astype(np.float16)
    w[:, 3] = 0
    model = parse("(float16[256,256] x) => (float16[256,8] y) { y = MatMul(x, w) }", {"w": w}, opset=21)
    made, _ = convert(model, "--weights-only", scheme)
    (found,) = run(made, {"x": np.eye(256, dtype=np.float16)})
    error = np.abs(found - w.astype(np.float64)).max() / np.abs(w.astype(np.float64)).max()
    assert error <= bound + 2**-24 / magnitude  # the weights themselves are multiples of 2^-24
    assert (found[:, 3] == 0).all()


def named(tensor_type, *names):
    return [onnx.helper.make_tensor_value_info(name, tensor_type, [4]) for name in names]


def root_of(eps, nodes=(), initializers=(), functions=()):
    """x² + eps, its root, and x divided by that: NaN at 0 if eps is 0."""
    node = onnx.helper.make_node
    nodes = [*nodes, node("Mul", ["x", "x"], ["v"]), node("Add", ["v", eps], ["e"]), node("Sqrt", ["e"], ["s"]), node("Div", ["x", "s"], ["y"])]
    arrays = [numpy_helper.from_array(np.asarray(array), name) for name, array in dict(initializers).items()]
    graph = onnx.helper.make_graph(nodes, "g", named(F32, "x"), named(F32, "y"), arrays)
    opsets = [onnx.helper.make_opsetid("", 19), onnx.helper.make_opsetid("own", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)


def around(kind):
    """The same, where the constant and its use are not in one graph."""
    node, small = onnx.helper.make_node, np.full(4, 1e-9, np.float32)
    opset = [onnx.helper.make_opsetid("", 19)]
    body = [node("Mul", ["x", "x"], ["v"]), node("Add", ["v", "eps"], ["e"]), node("Sqrt", ["e"], ["s"]), node("Div", ["x", "s"], ["y"])]
    if kind == "a branch of an If":
        branches = {f"{which}_branch": onnx.helper.make_graph([node("Constant", [], [which], value_floats=[1e-9] * 4)], which, [], named(F32, which))
                    for which in ("then", "else")}  # fmt: skip
        return root_of("eps", [node("If", ["c"], ["eps"], **branches)], {"c": np.array(True)})
    if kind == "carried by a Loop":
        edges = [onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []), onnx.helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])]
        ends = [onnx.helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, [])]
        steps = [*body, node("Identity", ["c"], ["go"]), node("Identity", ["eps"], ["same"])]
        loop = onnx.helper.make_graph(steps, "b", edges + named(F32, "x", "eps"), ends + named(F32, "y", "same"))
        graph = onnx.helper.make_graph([node("Loop", ["n", "", "input", "small"], ["output", "last"], body=loop)], "g", named(F32, "input"), named(F32, "output"),
                                       [numpy_helper.from_array(np.int64(1), "n"), numpy_helper.from_array(small, "small")])  # fmt: skip
        model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
        model.graph.input[0].name = model.graph.node[0].input[2] = "x"
        model.graph.output[0].name = model.graph.node[0].output[0] = "y"
        return model
    call = node("Root", ["x", "small"] if kind == "an argument" else ["x"], ["y"], domain="own")
    attributes, defaults = [], []
    constant = node("Constant", [], ["eps"])
    refers = onnx.AttributeProto(name="value_float", ref_attr_name="small", type=onnx.AttributeProto.FLOAT)
    if kind == "an attribute":
        constant.attribute.append(refers)
        call.attribute.append(onnx.helper.make_attribute("small", 1e-9))
        attributes = ["small"]
    elif kind == "a default":
        constant.attribute.append(refers)
        defaults = [onnx.helper.make_attribute("small", 1e-9)]
    elif kind == "a CastLike":
        constant = node("Constant", [], ["given"], value_float=1e-9)
        body.insert(0, node("CastLike", ["given", "x"], ["eps"]))
    if kind != "an argument":
        body.insert(0, constant)
    function = onnx.helper.make_function("own", "Root", ["x", "eps"] if kind == "an argument" else ["x"], ["y"], body, opset, attributes, defaults)
    graph = onnx.helper.make_graph([call], "g", named(F32, "x"), named(F32, "y"), [numpy_helper.from_array(small, "small")] if kind == "an argument" else [])
    return onnx.helper.make_model(graph, opset_imports=[*opset, onnx.helper.make_opsetid("own", 1)], ir_version=9, functions=[function])


@pytest.mark.parametrize("kind", ["a branch of an If", "carried by a Loop", "an argument", "an attribute", "a default", "a CastLike"])
def test_constants_of_other_graphs(convert, kind):
    model = around(kind)
    made, _ = convert(model, "--to", "float16")
    (wanted,), (found,) = run(model, {"x": X4}), run(made, {"x": X4})
    assert np.isfinite(found).all() and np.abs(found - wanted).max() <= 0.003 * np.abs(wanted).max()


def test_a_scale_of_codes_that_a_product_makes(convert):
    model = parse("(float[2,4] x) => (float[2,3] y) { s = Mul(a, b) d = DequantizeLinear<axis = 1>(w, s) p = MatMul(x, d) y = Div(p, b) }",
                  {"w": RNG.integers(-127, 128, (4, 3)).astype(np.int8), "a": np.float32([2, 5, 8]), "b": np.float32(1e-8)})  # fmt: skip
    made, _ = convert(model, "--to", "float16")
    x = np.float32(RNG.normal(size=(2, 4)).astype(np.float16))
    (wanted,), (found,) = run(model, {"x": x}), run(made, {"x": x})
    assert np.abs(found - wanted).max() <= 0.01 * np.abs(wanted).max()
