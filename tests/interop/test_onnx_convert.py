# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx convert`: new models are valid, load in ONNX Runtime, give nearly the same, and stay as they are."""

import json

import numpy as np
import onnx
import onnx.parser
import onnx_node_models
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

F32, F16, BF16, F64, I64 = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE,
                            TensorProto.INT64)
X = np.array([[0.1, -1.7, 3.3]], np.float32)


def parse(text, initializers=(), ir_version=10, opset=21, more=""):
    model = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}{more}]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers)
    return model


def run(model, **feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    types = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}
    kinds = {each.name: each.type for each in session.get_inputs()}
    return session.run(None, {name: array.astype(types[kinds[name]]) if array.dtype.kind == "f" else array
                              for name, array in feeds.items()})


@pytest.fixture
def convert(run_tcast, tmp_path):
    """convert(model, "float16") gives the new model, which is valid and which a second conversion leaves as it is."""

    def converted(model, to, *arguments, check=True):
        if isinstance(model, onnx.ModelProto):
            onnx.save(model, tmp_path / "model.onnx")
        for source, target in (("model.onnx", "out.onnx"), ("out.onnx", "again.onnx")):
            done = run_tcast("onnx", "convert", source, "-o", target, "--to", to, "--force", *arguments)
            assert done.returncode == 0, done.stderr
        assert done.stdout == "again.onnx: 0 changes\n"
        new = (tmp_path / "out.onnx").read_bytes()
        if not (tmp_path / "out.onnx.data").exists():
            assert (tmp_path / "again.onnx").read_bytes() == new
        if check:
            onnx.checker.check_model(str(tmp_path / "out.onnx"), full_check=True)
        return onnx.load(tmp_path / "out.onnx")

    return converted


def operators(graph):
    return [node.op_type for node in graph.node]


def element_types(values):
    return [value.type.tensor_type.elem_type for value in values]


def initializer_types(graph):
    return {each.name: each.data_type for each in graph.initializer}


# All of them: tests/interop/onnx_node_models.py.
@pytest.mark.parametrize(("to", "arguments"), [("float16", []), ("bfloat16", []), ("float64", []), ("float16", ["--keep-io-types"]),
                                               ("float64", ["--keep-io-types"])])
def test_node_models_of_onnx(tcast, tmp_path, to, arguments):
    wrong, models = {}, 0
    for name, path, model, values, outputs in onnx_node_models.candidates(every=29):
        if to == "bfloat16" and onnx_node_models.lacks_bfloat16(model):
            continue
        models += 1
        if found := onnx_node_models.judge(tcast, path, model, values, outputs, to, tmp_path, arguments):
            wrong[name] = found
    assert not wrong
    assert models > 20


# All of them: tests/interop/onnx_node_models.py --openvino.
def test_node_models_of_onnx_in_openvino(tcast, tmp_path):
    pytest.importorskip("openvino")
    engine = onnx_node_models.run_in_openvino
    names = ["affine_grid_2d", "attention_4d", "conv_with_strides_padding", "dft", "gemm_default_no_bias", "isinf",
             "layer_normalization_2d_axis0", "lstm_defaults", "matmul_2d", "max_example", "softmax_example"]
    models = list(onnx_node_models.candidates(f"^test_({'|'.join(names)})$", engine=engine))
    assert len(models) == len(names)
    for name, path, model, values, outputs in models:
        for to in ("float16", "bfloat16"):
            found = onnx_node_models.judge(tcast, path, model, values, outputs, to, tmp_path, ["--runtime", "openvino"], engine=engine)
            assert found is None, (name, to)


def test_a_straight_graph(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { r = Relu(x)  y = Mul(r, w) }", [("w", np.float32([[2, 3, 4]]))])
    new = convert(model, "float16")
    assert operators(new.graph) == ["Relu", "Mul"]
    assert element_types(new.graph.input) == element_types(new.graph.output) == [F16]
    assert initializer_types(new.graph) == {"w": F16}
    np.testing.assert_allclose(run(new, x=X)[0], run(model, x=X)[0], rtol=2e-3)


def test_kept_inputs_and_outputs(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y, float[1,3] z) { y = Relu(x)  z = Add(y, x) }")
    new = convert(model, "float16", "--keep-io-types")
    assert element_types([*new.graph.input, *new.graph.output]) == [F32] * 3
    assert [each.name for each in new.graph.output] == ["y", "z"]
    assert sorted(operators(new.graph)) == ["Add", "Cast", "Cast", "Cast", "Relu"]
    np.testing.assert_allclose(run(new, x=X)[0], run(model, x=X)[0], rtol=2e-3)
    new = convert(model, "float16", "--keep-io-types", "z")
    assert element_types([*new.graph.input, *new.graph.output]) == [F16, F16, F32]


def test_one_cast_for_all_consumers(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Relu(x)  b = Sin(a)  c = Cos(a)  d = Tanh(a)  y = Sum(b, c, d) }")
    new = convert(model, "float16", "--keep-op", "Sin", "--keep-op", "Cos")
    casts = [node for node in new.graph.node if node.op_type == "Cast"]
    assert [node.input[0] for node in casts] == ["a", "b", "c"]
    assert operators(new.graph)[:2] == ["Relu", "Cast"]


def test_names_that_are_taken(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { x_float16 = Identity(x)  s = Sin(x_float16)  y = Add(s, x) }")
    new = convert(model, "float16", "--keep-io-types")
    assert len({name for node in new.graph.node for name in node.output}) == len(new.graph.node)
    assert new.graph.node[0].output == ["x_float16_2"]


def test_existing_casts_are_retargeted_only_if_all_consumers_agree(convert):
    model = parse("""g (int64[3] i, float[1,3] x) => (float[1,3] y, float[3] z) {
        f = Cast<to: int = 1>(i)  y = Add(f, x)  g = Cast<to: int = 1>(i)  s = Sin(g)  z = Mul(g, s) }""")
    new = convert(model, "float16", "--keep-op", "Sin")
    targets = {node.output[0]: node.attribute[0].i for node in new.graph.node if node.op_type == "Cast"}
    assert (targets["f"], targets["g"], targets["g_float16"]) == (F16, F32, F16)
    # `to` need not be the first attribute.
    cast = helper.make_node("Cast", ["i"], ["f"], saturate=1, to=F32)
    model = helper.make_model(helper.make_graph([cast], "g", [helper.make_tensor_value_info("i", I64, [3])],
                                                [helper.make_tensor_value_info("f", F32, [3])]),
                              opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    cast.attribute.reverse()
    assert element_types(convert(model, "float16").graph.output) == [F16]


def test_attributes_that_carry_a_type(convert):
    model = parse("""g (int64[1] n) => (float[N] y, float[2,2] r, float w, float[3] v, float[2] q) {
        y = ConstantOfShape<value: tensor = float[1] {0.5}>(n)
        r = RandomNormal<shape: ints = [2, 2]>()
        w = Constant<value_float: float = 0.25>()
        v = Constant<value_floats: floats = [1.0, 2.0, 3.0]>()
        q = Constant<value: tensor = float[2] {1.0, 2.0}>() }""")
    new = convert(model, "float16", "--runtime", "any")
    assert operators(new.graph) == operators(model.graph)
    assert element_types(new.graph.output) == [F16] * 5
    new = convert(model, "float16")  # RandomNormal has no kernel, so that a Cast stands behind it
    assert operators(new.graph).count("Cast") == 1
    assert element_types(new.graph.output) == [F16] * 5
    outputs = run(new, n=np.int64([3]))
    assert [each.dtype for each in outputs] == [np.float16] * 5
    assert outputs[0].tolist() == [0.5] * 3 and outputs[2] == 0.25 and outputs[3].tolist() == [1, 2, 3]


def test_resize_keeps_its_scales(convert):
    model = parse("g (float[1,1,2,2] x) => (float[1,1,N,M] y) { y = Resize(x, , s) }", [("s", np.float32([1, 1, 2, 2]))])
    new = convert(model, "float16")
    assert initializer_types(new.graph) == {"s": F32}
    assert list(new.graph.node[0].input) == ["x", "", "s"]


def test_a_shared_initializer_is_stored_twice(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Sin(w)  b = Mul(x, w)  y = Add(a, b) }",
                  [("w", np.float32([[0.1, 0.2, 0.3]]))])
    new = convert(model, "float16", "--keep-op", "Sin")
    assert initializer_types(new.graph) == {"w": F32, "w_float16": F16}


def test_overflow_keeps_a_consumer_high(convert, run_tcast):
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Mul(x, w)  y = Relu(a) }", [("w", np.float32([[1e5, 1, 1]]))])
    new = convert(model, "float16")
    assert initializer_types(new.graph) == {"w": F32}
    assert "Cast" in operators(new.graph)
    assert initializer_types(convert(model, "float16", "--on-overflow", "clamp").graph) == {"w": F16}
    assert numpy_helper.to_array(new.graph.initializer[0])[0, 0] == 1e5
    done = run_tcast("onnx", "convert", "model.onnx", "-o", "never.onnx", "--to", "float16", "--on-overflow", "error")
    assert done.returncode == 1 and "beyond the range of float16" in done.stderr


def test_masks_become_the_lowest_number(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { y = Add(x, m) }", [("m", np.float32([[0, -1e9, -3.4028235e38]]))])
    (mask,) = convert(model, "float16").graph.initializer
    assert numpy_helper.to_array(mask).tolist() == [[0, -65504, -65504]]
    (mask,) = convert(model, "float16", "--masks", "inf").graph.initializer
    assert numpy_helper.to_array(mask).tolist() == [[0, -np.inf, -np.inf]]


def test_sizes_that_are_computed_as_floats_stay(convert):
    model = parse("""g (float[1,3] x, int64[1] n) => (float[N] y) {
        f = Cast<to: int = 1>(n)  h = Mul(f, ratio)  c = Floor(h)  i = Cast<to: int = 7>(c)
        z = ConstantOfShape(i)  s = ReduceSum<keepdims: int = 0>(x)  y = Add(z, s) }""", [("ratio", np.float32(1.5))])
    new = convert(model, "float16")
    assert initializer_types(new.graph) == {"ratio": F32}
    assert run(new, x=X, n=np.int64([4097]))[0].shape == (6145,)


IF = """g (bool c, float[1,3] x) => (float[1,3] y) {
  y = If (c) <
    then_branch = t () => (float[1,3] p) { p = Sin(x) },
    else_branch = e () => (float[1,3] q) { q = Relu(x) }
  > }"""
LOOP = """g (int64 n, bool c, float[1,3] x) => (float[1,3] y, float[N,1,3] all) {
  y, all = Loop (n, c, x) <
    body = b (int64 i, bool d, float[1,3] s) => (bool e, float[1,3] t, float[1,3] u) {
      e = Identity(d)  h = Sin(s)  t = Add(h, x)  u = Relu(t) }
  > }"""
SCAN = """g (float[1,3] x, float[5,1,3] xs) => (float[1,3] y, float[5,1,3] all) {
  y, all = Scan <num_scan_inputs: int = 1, body = b (float[1,3] s, float[1,3] v) => (float[1,3] t, float[1,3] u) {
      t = Add(s, v)  u = Sin(t) }
  > (x, xs) }"""


@pytest.mark.parametrize("arguments", [(), ("--keep-io-types",), ("--keep-op", "Sin"), ("--keep-op", "Sin", "--keep-io-types")])
@pytest.mark.parametrize("to", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("text, feeds", [
    (IF, {"c": np.array(True)}), (IF, {"c": np.array(False)}),
    (LOOP, {"n": np.array(3), "c": np.array(True)}), (SCAN, {"xs": np.float32(np.arange(15).reshape(5, 1, 3) / 7)}),
], ids=["if-true", "if-false", "loop", "scan"])
def test_subgraphs(convert, text, feeds, to, arguments):
    model = parse(text)
    new = convert(model, to, *arguments)
    if BF16 in element_types([*new.graph.input, *new.graph.output]):
        return  # ONNX Runtime takes no bfloat16 from NumPy
    expected, got = run(model, x=X, **feeds), run(new, x=X, **feeds)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b, a, atol=6e-2 if to == "bfloat16" else 1e-2)


FUNCTION = """
<domain: "mine", opset_import: ["" : 21]> half_sum (a, b) => (c) {
  s = Add(a, b)  h = Constant<value_float: float = 0.5>()  c = Mul(s, h) }
"""


@pytest.mark.parametrize("arguments", [(), ("--keep-io-types",), ("--keep-op", "Mul"), ("--keep-op", "half_sum")])
def test_functions(convert, arguments):
    text = 'g (float[1,3] x) => (float[1,3] y) { r = Relu(x)  p = mine.half_sum(r, x)  y = mine.half_sum(p, x) }'
    model = parse(text + FUNCTION, more=', "mine" : 1')
    new = convert(model, "float16", *arguments)
    np.testing.assert_allclose(run(new, x=X)[0], run(model, x=X)[0], atol=1e-2)


DOUBLE = '\n<domain: "mine", opset_import: ["" : 21]> double (a) => (b) { b = Add(a, a) }'


def test_a_function_called_with_two_types_gets_a_copy_for_each(convert):
    text = """g (float[1,3] x, int64[1,3] i, double[1,3] d) => (float[1,3] y, int64[1,3] j, double[1,3] e) {
        y = mine.double(x)  j = mine.double(i)  e = mine.double(d) }"""
    model = parse(text + DOUBLE, more=', "mine" : 1')
    new = convert(model, "float16")
    assert [function.name for function in new.functions] == ["double", "double_2", "double_3"]
    assert operators(new.graph) == ["double", "double_2", "double_3"]
    values = run(new, x=X.astype(np.float16), i=np.int64([[1, 2, 3]]), d=X.astype(np.float16))
    assert [value.dtype for value in values] == [np.float16, np.int64, np.float16]
    assert values[1].tolist() == [[2, 4, 6]]


def test_functions_that_call_functions_with_several_types(convert):
    text = """g (float[1,3] x, int64[1,3] i) => (float[1,3] y, int64[1,3] j, float[1,3] z) {
        y = mine.four(x)  j = mine.four(i)  z = mine.double_2(x) }"""
    functions = DOUBLE + """
        <domain: "mine", opset_import: ["" : 21, "mine" : 1]> four (a) => (c) { b = mine.double(a) c = mine.double(b) }
        <domain: "mine", opset_import: ["" : 21]> double_2 (a) => (b) { b = Neg(a) }"""
    new = convert(parse(text + functions, more=', "mine" : 1'), "float16")
    assert [function.name for function in new.functions] == ["double", "double_3", "four", "four_2", "double_2"]
    called = {function.name: [node.op_type for node in function.node] for function in new.functions}
    assert called["four"] == ["double"] * 2 and called["four_2"] == ["double_3"] * 2
    y, j, z = run(new, x=X.astype(np.float16), i=np.int64([[1, 2, 3]]))
    assert y.dtype == z.dtype == np.float16 and j.tolist() == [[4, 8, 12]]
    np.testing.assert_array_equal(y, X.astype(np.float16) * 4)


def test_functions_called_with_types_that_stay_get_no_copies(convert):
    text = "g (int32[1,3] x, int64[1,3] i) => (int32[1,3] y, int64[1,3] j) { y = mine.double(x)  j = mine.double(i) }"
    model = parse(text + DOUBLE, more=', "mine" : 1')
    assert convert(model, "float16") == model


def test_keep_op_names_all_copies_of_a_function(convert):
    text = "g (float[1,3] x, int64[1,3] i) => (float[1,3] y, int64[1,3] j) { y = mine.double(x)  j = mine.double(i) }"
    new = convert(parse(text + DOUBLE, more=', "mine" : 1'), "float16", "--keep-op", "double", "--keep-io-types")
    assert "Cast" not in operators(new.graph)


def test_sequences_have_one_type(convert):
    model = parse("""g (float[1,3] x, int64 i) => (float[1,3] y) {
        s = SequenceConstruct(x, x)  t = SequenceInsert(s, x)  y = SequenceAt(t, i) }""")
    new = convert(model, "float16")
    assert run(new, x=X, i=np.array(0))[0].dtype == np.float16


def test_unknown_operators_keep_their_types(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Relu(x)  b = theirs.Thing(a)  y = Relu(b) }",
                  more=', "theirs" : 1')
    model.graph.value_info.append(helper.make_tensor_value_info("b", F32, [1, 3]))
    new = convert(model, "float16", check=False)
    assert operators(new.graph) == ["Relu", "Cast", "Thing", "Cast", "Relu"]


def test_external_data(convert, tmp_path):
    weights = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
    model = parse("g (float[1,64] x) => (float[1,64] y) { y = MatMul(x, w) }", [("w", weights)])
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    new = convert(None, "float16")
    assert (tmp_path / "out.onnx.data").stat().st_size == weights.size * 2
    np.testing.assert_array_equal(numpy_helper.to_array(new.graph.initializer[0]), weights.astype(np.float16))
    x = np.ones((1, 64), np.float32)
    np.testing.assert_allclose(run(str(tmp_path / "out.onnx"), x=x)[0], x @ weights, atol=0.05)


def test_what_is_unknown_survives(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { y = Mul(x, w) }", [("w", X)])
    model.metadata_props.add(key="k", value="v")
    model.graph.doc_string = "text"
    model.graph.node[0].doc_string = "node"
    unknown = b"\xc2\x3e\x03abc"  # field 1000
    model.MergeFromString(unknown)
    new = convert(model, "float16", "--keep-io-types")
    assert unknown in new.SerializeToString()
    assert (new.metadata_props[0].value, new.graph.doc_string) == ("v", "text")
    assert [node.doc_string for node in new.graph.node if node.op_type == "Mul"] == ["node"]


@pytest.mark.parametrize("field", ["raw", "typed"])
def test_a_sparse_initializer(convert, field):
    model = parse("g (float[1,3] x) => (float[1,3] y) { y = Mul(x, w) }")
    values = helper.make_tensor("w", F32, [1], np.float32([7]).tobytes() if field == "raw" else [7.0], raw=field == "raw")
    indices = helper.make_tensor("w_indices", I64, [1], [2])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1, 3]))
    new = convert(model, "float16", check=False)
    assert new.graph.sparse_initializer[0].values.data_type == F16
    np.testing.assert_allclose(run(new, x=X)[0], [[0, 0, 23.1]], rtol=1e-2)


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float8_e4m3fn"])
def test_weights_only(convert, to):
    weights = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
    model = parse("g (float[1,16] x) => (float[1,16] y) { a = MatMul(x, w)  y = Relu(a) }", [("w", weights)])
    new = convert(model, to, "--weights-only")
    assert operators(new.graph) == ["Cast", "MatMul", "Relu"]
    assert element_types([*new.graph.input, *new.graph.output]) == [F32, F32]
    x = np.ones((1, 16), np.float32)
    np.testing.assert_allclose(run(new, x=x)[0], run(model, x=x)[0], atol=0.5)


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_there_and_back(convert, to, tmp_path):
    model = parse("g (float[1,3] x) => (float[1,3] y) { r = Sin(x)  t = Softmax(r)  y = Mul(t, w) }", [("w", X)])
    onnx.save(convert(model, to), tmp_path / "model.onnx")
    new = convert(None, "float32")
    assert element_types([*new.graph.input, *new.graph.output]) == [F32, F32]
    assert set(initializer_types(new.graph).values()) == {F32}
    np.testing.assert_allclose(run(new, x=X)[0], run(model, x=X)[0], atol=2e-2)


def test_the_report(run_tcast, tmp_path):
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Relu(x)  y = Sin(a) }")
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--keep-op", "Sin", "--json")
    said = json.loads(done.stdout)
    assert said["kept"] == [{"name": "y", "op_type": "Sin", "reason": "the request keeps it"}]
    assert (said["nodes"], said["nodes_converted"], said["casts_added"]) == (2, 1, 1)


@pytest.mark.parametrize("arguments, complaint", [
    (("--to", "int8"), "a model cannot become int8"),
    (("--to", "float16", "--keep-op", "Conv"), 'the model has no operator "Conv"'),
    (("--to", "float16", "--keep-node", "n"), 'the model has no node "n"'),
    (("--to", "float16", "--keep-io-types", "z"), 'the model has no input or output "z"'),
    (("--to", "bfloat16"), "bfloat16 came with opset 13, but the model has opset 11"),
])
def test_requests_that_are_mistakes(run_tcast, tmp_path, arguments, complaint):
    model = parse("g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }", opset=11)
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", *arguments)
    assert done.returncode == (2 if "int8" in arguments else 1) and complaint in done.stderr, done.stderr
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("text, complaint", [
    ("g (float[1] x) => (float[1] y) { y = Relu(nothing) }", 'nothing defines the value "nothing"'),
    ("g (float[1] x) => (float[1] y) { y = Relu(x)  y = Sin(x) }", 'the value "y" is defined twice'),
    ("g (float[1] x) => (float[1] z) { y = Relu(x) }", 'nothing defines the output "z"'),
])
def test_models_that_are_broken(run_tcast, tmp_path, text, complaint):
    onnx.save(parse(text), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16")
    assert done.returncode == 1 and complaint in done.stderr, done.stderr
    assert not (tmp_path / "o.onnx").exists()


def test_a_kept_node_around_a_cast_stays_as_it_is(convert):
    """The Cast that a first conversion puts at the end of a kept branch is not retargeted by the second."""
    new = convert(parse(IF), "float16", "--keep-op", "If")
    (branch, _) = (attribute.g for attribute in new.graph.node[-1].attribute)
    assert element_types(branch.output) == [F32]


# ONNX's bodies of these functions and ONNX Runtime's kernels take one type, although the schemas have several.
@pytest.mark.parametrize("text", [
    "g (float[1,2,3,4] q, float[1,2,3,4] x) => (float[1,2,3,4] y) { r = Relu(x)  y = Attention(q, r, x) }",
    "g (float[2,4] x) => (float[2,4] y) <float[4] s = {1.0, 2.0, 1.0, 1.0}> { y = RMSNormalization(x, s) }",
    "g (float[1,1,4,4] x, float[1,2,2,2] p) => (float[1,1,2,2] y) { r = Relu(x)  y = GridSample(r, p) }",
    "g (float[1,2,3] x, float[2] s) => (float[1,2,3] y) { r = Relu(x)  y = BatchNormalization(r, s, s, s, s) }",
    "g (float[2,4] x) => (float[2,4] y) <float s = {0.1}> { q = QuantizeLinear(x, s)  y = DequantizeLinear(q, s) }"])
@pytest.mark.parametrize("to", ["float16", "float64", "bfloat16"])
def test_operators_whose_inputs_keep_one_type(convert, text, to):
    model = parse(text, opset=23)
    feeds = {each.name: np.linspace(0.1, 0.9, int(np.prod(shape)), dtype=np.float32).reshape(shape)
             for each in model.graph.input for shape in [[d.dim_value for d in each.type.tensor_type.shape.dim]]}
    new = convert(model, to, "--keep-io-types")
    np.testing.assert_allclose(run(new, **feeds)[0], run(model, **feeds)[0], rtol=2e-2, atol=1e-2)


def test_a_type_that_only_consumers_tell(convert):
    """A node of an unknown operator gives a value without value_info: those that take it say which type it has."""
    model = parse("""g (float[3] x, bool c) => (float[3] y, float[3] z, float[3] v, float[3] u) {
        none = Constant <value = int64[2] {0, 0}> ()
        f = com.microsoft.Pad(x, none)  s = Sin(f)  t = Cos(s)  y = Neg(t)
        g = com.microsoft.Pad(x, none)  z = Add(g, x)
        h = com.microsoft.Pad(x, none)
        v = If(c) <then_branch = a () => (float[3] p) { p = Sin(h) }, else_branch = b () => (float[3] q) { q = Cos(h) }>
        k = com.microsoft.Pad(x, none)  n = Constant <value = int64 {2}> ()
        u = Loop(n, , k) <body = l (int64 i, bool m, float[3] e) => (bool o, float[3] w) { o = Identity(m)  w = Sin(e) }>
        }""", more=', "com.microsoft" : 1')
    new = convert(model, "float16", check=False)
    types = {node.output[0]: node.op_type for node in new.graph.node}
    assert types["f_float16"] == types["g_float16"] == types["h_float16"] == types["k_float16"] == "Cast"
    feeds = {"x": X[0], "c": np.array(True)}
    for got, expected in zip(run(new, **feeds), run(model, **feeds)):
        np.testing.assert_allclose(got, expected, rtol=1e-2, atol=1e-2)


def test_a_dequantization_that_names_its_type(convert):
    """ONNX Runtime does not load it where it computes in another type than the attribute names."""
    model = parse("""g (float[2,4] x) => (float[2,4] y) <float s = {0.1}> {
        q = QuantizeLinear(x, s)  d = DequantizeLinear <output_dtype: int = 1> (q, s)  y = Sin(d) }""", opset=23)
    new = convert(model, "float16")
    assert new.graph.node[1].attribute[0].i == 0
    x = np.linspace(0, 2, 8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_allclose(run(new, x=x)[0], run(model, x=x)[0], atol=5e-3)


@pytest.mark.parametrize("text", [
    "g (float[1,3] x) => (int32[1,4] y) { y = Multinomial <sample_size: int = 4> (x) }",
    "g (float[1,3] x) => (int64[2,k] y) { y = NonZero(x) }"])
def test_operators_without_a_float64_kernel(convert, text):
    new = convert(parse(text), "float64")
    assert element_types(new.graph.input) == [F64] and operators(new.graph)[0] == "Cast"
    run(new, x=abs(X))


@pytest.mark.parametrize("weights", ["u = Transpose <perm = [1, 0]> (w)", "v = Identity(w)  u = Transpose(v)",
                                     "i = Constant <value = int64[2] {3, 2}> ()  u = Reshape(w, i)"])
def test_weights_that_the_runtime_computes_while_it_loads_are_constants(convert, weights):
    """ONNX Runtime 1.31.1 crashes on a float16 Transpose of this kind before MatMul, by a constant, folded or not: exports
    of an LSTM without constant folding, whose dimensions are symbolic, have a Transpose behind their weights."""
    text = f"g (float[a,b,3] x) => (float[b,a,2] y) {{ t = Transpose <perm = [1, 0, 2]> (x)  {weights}  y = MatMul(t, u) }}"
    model = parse(text, [("w", np.arange(6, dtype=np.float32).reshape(2, 3))])
    new = convert(model, "float16")
    made = {output: node for node in new.graph.node for output in node.output}
    rotation = next(node for node in new.graph.node if node.op_type == "Transpose" and node.attribute[0].ints == [1, 0, 2])
    assert made[rotation.input[0]].op_type == "Cast", "it stays in float32"
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    np.testing.assert_allclose(run(new, x=x)[0], run(model, x=x)[0])


@pytest.mark.parametrize("product", ["y = MatMul(t, w)", "i = Identity(t)  y = MatMul(i, w)"])
@pytest.mark.parametrize("has_kernel", [True, False])
def test_in_float64_a_product_has_the_type_of_the_transpose_before_it(convert, product, has_kernel):
    """ONNX Runtime 1.32 crashes on a Cast between them. A Transpose behind a node without a kernel stays float32."""
    before = "c = Relu(x)" if has_kernel else "c = AveragePool <kernel_shape = [1]> (x)"
    text = f"g (float[2,3,3] x) => (float[3,2,2] y) {{ {before}  t = Transpose <perm = [1, 0, 2]> (c)  {product} }}"
    model = parse(text, [("w", np.arange(6, dtype=np.float32).reshape(3, 2) / 7)])
    new = convert(model, "float64")
    made = {output: node for node in new.graph.node for output in node.output}
    assert "Cast" not in {made[name].op_type for node in new.graph.node if node.op_type == "MatMul" for name in node.input if name in made}
    types = {tensor.name: tensor.data_type for tensor in new.graph.initializer}
    assert list(types.values()) == [F64 if has_kernel else F32]
    x = np.arange(18, dtype=np.float32).reshape(2, 3, 3)
    np.testing.assert_allclose(run(new, x=x)[0], run(model, x=x)[0], rtol=1e-6)
