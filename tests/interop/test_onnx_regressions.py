# SPDX-License-Identifier: Apache-2.0
"""Models that other converters break, by the issue that reports it. None of them may break here."""

import numpy as np
import onnx
import onnx.parser
import onnx_node_models
import pytest
from onnx import TensorProto, helper, numpy_helper

F32, F16, BF16, F64, I64 = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE,
                            TensorProto.INT64)
X = np.array([[0.1, -1.7, 3.3]], np.float32)
IMAGE = np.linspace(-2, 2, 48, dtype=np.float32).reshape(1, 3, 4, 4)
RNG = np.random.default_rng(7)
SQUARE = RNG.normal(size=(3, 3)).astype(np.float32)


def parse(text, initializers=(), ir_version=10, opset=21, more=""):
    model = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}{more}]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers)
    return model


def casts(graph):
    """(input, output, to) of each Cast."""
    return [(node.input[0], node.output[0], next(each.i for each in node.attribute if each.name == "to"))
            for node in graph.node if node.op_type == "Cast"]


def operators(graph):
    return [node.op_type for node in graph.node]


def element_types(values):
    return [value.type.tensor_type.elem_type for value in values]


@pytest.fixture
def convert(tcast, tmp_path):
    """convert(model, "float16") gives the new model; the old one is kept as model.onnx, the new one as new.onnx."""

    def converted(model, to, *arguments):
        if isinstance(model, onnx.ModelProto):
            onnx.save(model, tmp_path / "model.onnx")
        complaint = onnx_node_models.convert(tcast, tmp_path / "model.onnx", tmp_path / "new.onnx", "--to", to, *arguments)
        assert not complaint
        return onnx.load(tmp_path / "new.onnx")

    return converted


def shuffled_cast(source, target, to):
    """A Cast whose `to` is not its first attribute."""
    node = helper.make_node("Cast", [source], [target], to=to, saturate=1)
    attributes = sorted(node.attribute, key=lambda each: each.name)
    del node.attribute[:]
    node.attribute.extend(attributes)
    return node


def cast_to_the_old_type():
    model = parse("g (int64[1,3] i, float[1,3] x) => (float[1,3] y) { f = Identity(i)  y = Add(g, x) }")
    model.graph.node.insert(1, shuffled_cast("f", "g", F32))
    model.graph.value_info.append(helper.make_tensor_value_info("g", F32, [1, 3]))
    return model, {"i": np.int64([[1, 2, 3]]), "x": X}


def unnamed_resizes():
    model = parse("""g (float[1,3,4,4] x) => (float[1,3,N,M] y) {
        a = Resize<mode = "nearest">(x, s)  b = Resize<mode = "nearest">(a, s)  y = Resize<mode = "nearest">(b, s) }""",
                  [("s", np.float32([1, 1, 2, 2]))], opset=10, ir_version=6)
    return model, {"x": IMAGE}


def resize_with_empty_inputs():
    model = parse("""g (float[1,3,4,4] x) => (float[1,3,N,M] y) {
        a = Resize<coordinate_transformation_mode = "asymmetric", mode = "nearest">(x, roi, none, sizes)  y = Relu(a) }""",
                  [("roi", np.zeros(0, np.float32)), ("none", np.zeros(0, np.float32)), ("sizes", np.int64([1, 3, 8, 8]))],
                  opset=11, ir_version=6)
    return model, {"x": IMAGE}


MODELS = {
    # A Cast to float32 stayed while its output was declared float16.
    "onnxconverter-common#320": cast_to_the_old_type,
    "onnxconverter-common#331": lambda: (parse("""g (int64[1,3] i, float[1,3] x) => (float[1,3] y, float[1,3] z) {
        f = Cast<to = 1>(i)  s = Sin(f)  y = Mul(s, x)  z = Cast<to = 1>(i) }"""), {"i": np.int64([[1, 2, 3]]), "x": X}),
    # A blocked node got float32 although it takes float64.
    "onnxconverter-common#326": lambda: (parse("""g (float[1,3] x) => (float[1,3] y) {
        d = Cast<to = 11>(x)  e = CumSum(d, axis)  f = Cast<to = 1>(e)  y = Mul(f, x) }""", [("axis", np.int64(1))]), {"x": X}),
    # Casts of inputs stood behind the nodes that take them.
    "onnxconverter-common#208": lambda: (parse("""g (float[1,3,4,4] x) => (float[1,3,N,M] y) {
        a = Relu(x)  y = Resize<mode = "linear">(a, , scales) }""", [("scales", np.float32([1, 1, 2, 2]))]), {"x": IMAGE}),
    "onnxconverter-common#240": lambda: (parse("""g (float[1,3] x) => (float[1,2] v, float[1,2] t) {
        a = Relu(x)  v, i = TopK(a, k)  f = Cast<to = 1>(i)  t = Mul(f, v) }""", [("k", np.int64([2]))]), {"x": X}),
    "onnxconverter-common#256": lambda: (parse("""g (float[1,4,4,3] x) => (float[1,2,2,2] y) {
        t = Transpose<perm = [0, 3, 1, 2]>(x)  c = Conv(t, w, b)  y = Relu(c) }""",
        [("w", RNG.normal(size=(2, 3, 3, 3)).astype(np.float32)), ("b", np.float32([0.1, -0.1]))]),
        {"x": IMAGE.reshape(1, 4, 4, 3)}),
    "onnxconverter-common#272": resize_with_empty_inputs,
    # Pairs of Casts were removed, or chains of them made.
    "onnxconverter-common#271": lambda: (parse("""g (float[1,3] x) => (float[1,3] y, float[1,3] z) {
        h = Cast<to = 10>(x)  f = Cast<to = 1>(h)  y = Mul(f, x)  z = Sub(f, x) }"""), {"x": X}),
    "onnxconverter-common#307": lambda: (parse("""g (float[1,3] x) => (float[1,3] y, float16[1,3] h) {
        h = Cast<to = 10>(x)  unused = Cast<to = 1>(h)  f = Cast<to = 1>(h)  y = Sin(f) }"""), {"x": X}),
    # Attributes that name a type.
    "onnxconverter-common#238": lambda: (parse("""g (float[1,3] x) => (float[1,3] y) {
        r = RandomNormalLike<dtype = 1, seed = 1.0>(x)  z = Sub(r, r)  y = Add(x, z) }"""), {"x": X}),
    "onnxruntime#20570": lambda: (parse("""g (float[1,3] x) => (float[1,3] y) {
        r = RandomNormalLike(x)  z = Sub(r, r)  y = Add(x, z) }"""), {"x": X}),
    "onnxruntime#17321": lambda: (parse("""g (float[1,3] x) => (float[1,3] y) {
        s = Shape(x)  z = ConstantOfShape(s)  o = ConstantOfShape<value = float[1] {0.5}>(s)  a = Add(z, o)  y = Mul(a, x) }"""),
        {"x": X}),
    "onnxruntime#6501": lambda: (parse("""g (float[1,3] x, float n) => (float[N] r, float[1,3] y) {
        zero = Constant<value_float = 0.0>()  one = Constant<value_float = 1.0>()
        r = Range(zero, n, one)  y = Mul(x, one) }"""), {"x": X, "n": np.array(5, np.float32)}),
    "onnxruntime#16846": lambda: (parse("""g (float[1,3] x, int64 i) => (float[1,3] y) {
        e = SequenceEmpty<dtype = 1>()  s = SequenceInsert(e, x)  y = SequenceAt(s, i) }"""), {"x": X, "i": np.array(0)}),
    # An initializer that two precisions need.
    "onnxconverter-common#329": lambda: (parse("""g (float[1,3] x, int64[1] n) => (float[1,3] y, float[N] z) {
        a = Mul(x, w)  f = Cast<to = 1>(n)  p = Mul(f, w)  i = Cast<to = 7>(p)  z = ConstantOfShape(i)  y = Add(a, w) }""",
        [("w", np.float32([2]))]), {"x": X, "n": np.int64([3])}),
    # Unnamed nodes, whose Casts had one name.
    "onnxruntime#14827": unnamed_resizes,
    # A value that a Loop carries, with an initial value of another precision.
    "onnxruntime#1212": lambda: (parse("""g (float[1,3] x, int64 n) => (float[1,3] y, float[N,1,3] all) {
        start = ConstantOfShape(shape)  yes = Constant<value = bool {1}>()
        y, all = Loop (n, yes, start) <body = b (int64 i, bool d, float[1,3] s) => (bool e, float[1,3] t, float[1,3] u) {
          e = Identity(d)  h = Add(s, x)  t = Mul(h, half)  u = Identity(t) }> }""",
        [("shape", np.int64([1, 3])), ("half", np.float32(0.5))]), {"x": X, "n": np.array(3)}),
    # Casts for a branch went to the main graph, or stood behind the node that holds the branch.
    "onnxconverter-common#260": lambda: (parse("""g (bool c, float[1,3] x) => (float[1,3] y) {
        a = Sin(x)
        y = If (c) <then_branch = t () => (float[1,3] p) { q = Cast<to = 7>(a)  f = Cast<to = 1>(q)  p = Add(f, a) },
                    else_branch = e () => (float[1,3] q) { q = Identity(a) }> }"""), {"c": np.array(False), "x": X}),
    "onnxconverter-common#291": lambda: (parse("""g (bool c, float[1,3] x) => (float[1,3] y) {
        late = Cos(x)
        y = If (c) <then_branch = t () => (float[1,3] p) {
            p = If (c) <then_branch = u () => (float[1,3] r) { r = Add(late, x) },
                        else_branch = v () => (float[1,3] r) { r = Sub(late, x) }> },
                    else_branch = e () => (float[1,3] q) { q = Mul(late, late) }> }"""), {"c": np.array(True), "x": X}),
    # A Gemm in a branch with weights of its own and an activation from outside; Resize's scales in a branch.
    "ModelOpt#659": lambda: (parse("""g (bool c, float[1,3] x) => (float[1,3] y) {
        a = Relu(x)
        y = If (c) <then_branch = t () => (float[1,3] p) <float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> { p = Gemm(a, w) },
                    else_branch = e () => (float[1,3] q) { q = Neg(a) }> }"""), {"c": np.array(True), "x": X}),
    "ModelOpt#1628": lambda: (parse("""g (bool c, float[1,3,4,4] x) => (float[1,3,N,M] y) {
        y = If (c) <then_branch = t () => (float[1,3,8,8] p) <float[4] scales = {1, 1, 2, 2}> {
                        p = Resize<mode = "nearest">(x, , scales) },
                    else_branch = e () => (float[1,3,4,4] q) { q = Identity(x) }> }"""),
        {"c": np.array(True), "x": IMAGE}),
    # Casts that make an output of the model.
    "ModelOpt#1943": lambda: (parse("""g (float[1,3] x) => (float[1,3] y, float16[1,3] h, double[1,3] d) {
        a = Sin(x)  h = Cast<to = 10>(a)  y = Cast<to = 1>(h)  d = Cast<to = 11>(y) }"""), {"x": X}),
    # A model that is half in float16 already.
    "ModelOpt#1946": lambda: (parse("""g (float[1,3] x) => (float[1,3] y) {
        h = Cast<to = 10>(x)  m = MatMul(h, w)  f = Cast<to = 1>(m)  y = Add(f, x) }""",
        [("w", SQUARE.astype(np.float16))]), {"x": X}),
    # An output that is an input or an initializer, an output twice used, a node that nothing uses.
    "ModelOpt#127": lambda: (parse("""g (float[1,3] x) => (float[1,3] y, float[1,3] w) {
        y = Add(x, w)  unused = Sin(y)  used = Cos(y) }""", [("w", np.float32([[1, 2, 3]]))]), {"x": X}),
    "ModelOpt-empty-tensors": lambda: (parse("g (float[0,3] x) => (float[0,3] y, float[1,3] s) { y = Relu(x)  s = ReduceSum(x, a) }",
        [("a", np.int64([0]))]), {"x": np.zeros((0, 3), np.float32)}),
    # Lengths that are computed in float.
    "vernacula#175": lambda: (parse("""g (float[1,3] x, int64[1] frames) => (float[N] y, int64[1] count) {
        f = Cast<to = 1>(frames)  a = Add(f, one)  b = Div(a, two)  c = Floor(b)  count = Cast<to = 7>(c)
        z = ConstantOfShape(count)  s = ReduceMax<keepdims = 0>(x)  y = Add(z, s) }""",
        [("one", np.float32(1)), ("two", np.float32(2))]), {"x": X, "frames": np.int64([4099])}),
}

WAYS = [(to, arguments) for to in ("float16", "bfloat16", "float64") for arguments in ((), ("--keep-io-types",))]


@pytest.mark.parametrize("to, arguments", WAYS, ids=[" ".join([to, *more]) for to, more in WAYS])
@pytest.mark.parametrize("issue", MODELS)
def test_a_model_that_others_break(tcast, tmp_path, issue, to, arguments):
    """It is valid, loads, runs, gives nearly the same, and a second conversion changes nothing; also back again."""
    model, values = MODELS[issue]()
    if to == "bfloat16" and onnx_node_models.lacks_bfloat16(model):
        pytest.skip("the opset has no bfloat16")
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    onnx.checker.check_model(str(path), full_check=True)
    outputs = onnx_node_models.run(path, values)
    # What a model rounds to float16 on purpose is float64, too, after --to float64.
    tolerance = 5e-3 if to == "float64" else None
    found = onnx_node_models.judge(tcast, path, model, values, outputs, to, tmp_path, arguments, tolerance)
    assert found is None
    if not arguments:
        back = onnx_node_models.judge_back(tcast, path, model, values, outputs, to, tmp_path, tolerance)
        assert back is None


def test_casts_of_the_old_type_become_the_new_one(convert):
    new = convert(cast_to_the_old_type()[0], "float16")
    assert [to for _, _, to in casts(new.graph)] == [F16]
    assert element_types(new.graph.value_info) == [F16]


def test_a_blocked_node_keeps_the_type_that_it_had(convert):
    """onnxconverter-common#326: not float32, whatever it took before."""
    model = parse("g (double[1,3] d, int64[1,3] i) => (double[1,3] y, int64[1,3] j) { y = Mul(d, d)  j = Mul(i, i) }")
    new = convert(model, "float16", "--keep-op", "Mul", "--keep-io-types")
    assert new == model


def test_a_pair_of_casts_that_rounds_stays(convert):
    """onnxconverter-common#271, onnxruntime#19437: what rounds and goes back changes numbers, and is not ours to remove."""
    model = parse("""g (float[1,3] x) => (float[1,3] y) { h = Cast<to = 10>(x)  f = Cast<to = 1>(h)  y = Sub(x, f) }""")
    new = convert(model, "float16", "--keep-io-types", "--keep-op", "Sub", "--from", "float32")
    assert [(source, to) for source, _, to in casts(new.graph)] == [("x", F16), ("h", F32)]


def test_no_new_pair_of_casts(convert):
    """onnxconverter-common#271: between two nodes of one type there is no Cast, and no Cast takes what a new one gives."""
    names = "abcdefgh"
    steps = [f"{new} = {'Sin' if i % 3 else 'Erf'}({old})" for i, (old, new) in enumerate(zip(names, names[1:]))]
    model = parse(f"g (float[1,3] a) => (float[1,3] h) {{ {'  '.join(steps)} }}")
    new = convert(model, "float16", "--keep-op", "Erf", "--keep-io-types")
    made = {target for _, target, _ in casts(new.graph)}
    assert not any(source in made for source, _, _ in casts(new.graph))
    assert operators(new.graph) == ["Erf", "Cast", "Sin", "Sin", "Cast", "Erf", "Cast", "Sin", "Sin", "Cast", "Erf"]


def test_a_shared_initializer_keeps_its_bits_for_the_old_type(convert):
    """onnxconverter-common#329."""
    weights = np.float32([[0.1, 0.2, 0.3]])
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Erf(w)  b = Mul(x, w)  y = Add(a, b) }", [("w", weights)])
    new = convert(model, "float16", "--keep-op", "Erf")
    stored = {each.name: numpy_helper.to_array(each) for each in new.graph.initializer}
    np.testing.assert_array_equal(stored["w"], weights)
    np.testing.assert_array_equal(stored["w_float16"], weights.astype(np.float16))


def test_small_numbers_do_not_grow(convert):
    """Others make 1e-7 of every smaller number, and 1e4 of every larger one."""
    weights = np.float32([[1e-12, -1e-9, 3e-8, 2e4, -6e4, 0.0] * 4])
    model = parse("g (float[1,24] x) => (float[1,24] y) { y = Mul(x, w) }", [("w", weights)])
    (tensor,) = convert(model, "float16").graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(tensor), weights.astype(np.float16))


def test_lists_of_the_user_extend_the_rules(convert):
    """Others forget their own list as soon as the user has one."""
    model = parse("g (float[1,1,2,2] x) => (float[1,1,N,M] y) { a = Sin(x)  y = Resize(a, , s) }",
                  [("s", np.float32([1, 1, 2, 2]))])
    new = convert(model, "float16", "--keep-op", "Sin")
    assert [each.data_type for each in new.graph.initializer] == [F32]


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_external_data_of_initializers_and_constants(convert, tmp_path, to):
    """onnxconverter-common#308: a Constant's tensor may be external, too."""
    weights = RNG.normal(size=(64, 16)).astype(np.float32)
    model = parse("g (float[1,64] x) => (float[1,16] y) { m = MatMul(x, w)  y = Add(m, c) }", [("w", weights)])
    model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(weights[:1], "c")))
    (tmp_path / "inside").mkdir()
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0,
              convert_attribute=True)
    values = {"x": np.ones((1, 64), np.float32)}
    expected = weights.sum(0) + weights[0]
    convert(None, to)
    onnx.checker.check_model(str(tmp_path / "new.onnx"), full_check=True)
    (got,) = onnx_node_models.run(tmp_path / "new.onnx", values)
    np.testing.assert_allclose(got.astype(np.float32)[0], expected, atol=0.05 if to == "float16" else 0.4)
    onnx.load(tmp_path / "new.onnx")  # with all its external data


def test_float32_again(convert, tmp_path):
    """onnxruntime#16778, #25824: a float16 model with Casts to its own type becomes one without float16."""
    model = parse("""g (float16[1,3] x, int64[1,3] i) => (float16[1,3] y) {
        c = Cast<to = 10>(x)  f = Cast<to = 10>(i)  m = MatMul(c, w)  s = Add(m, f)  y = Mul(s, k) }""",
                  [("w", SQUARE.astype(np.float16)), ("k", np.float16([2.5]))])
    new = convert(model, "float32")
    assert element_types([*new.graph.input, *new.graph.output]) == [F32, I64, F32]
    assert {each.data_type for each in new.graph.initializer} == {F32}
    assert {to for _, _, to in casts(new.graph)} == {F32}
    values = {"x": X, "i": np.int64([[1, 2, 3]])}
    expected = onnx_node_models.run(tmp_path / "model.onnx", values)
    assert not onnx_node_models.close(expected, onnx_node_models.run(tmp_path / "new.onnx", values), 1e-2)


def test_a_model_whose_shape_inference_fails(convert):
    """onnxruntime#20189: types need no shapes. Here a declared shape contradicts the inferred one."""
    model = parse("""g (float[2,3] x) => (float[N,M] y) { a = MatMul(x, w)  b = Reshape(a, s)  y = Relu(b) }""",
                  [("w", SQUARE), ("s", np.int64([3, 2]))])
    model.graph.value_info.append(helper.make_tensor_value_info("b", F32, [7]))
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    new = convert(model, "float16")
    assert operators(new.graph) == operators(model.graph)
    assert element_types([*new.graph.input, *new.graph.value_info, *new.graph.output]) == [F16] * 3


def test_every_node_blocked_changes_nothing(convert):
    """onnxruntime#21345: NaN although every node was blocked."""
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Mul(x, big)  y = Sub(a, big) }", [("big", np.float32([[1e30, 2, 3]]))])
    assert convert(model, "float16", "--keep-op", "Mul", "--keep-op", "Sub", "--keep-io-types") == model


def test_inputs_outputs_and_names_of_a_loop_keep_one_type(convert):
    """ModelOpt knows no loop-carried floats. Here one of them cannot be float16."""
    model = parse("""g (float[1,3] x, int64 n, bool c) => (float[1,3] y, float[1,3] z) {
        y, z = Loop (n, c, x, x) <body = b (int64 i, bool d, float[1,3] s, float[1,3] t) => (bool e, float[1,3] u, float[1,3] v) {
          e = Identity(d)  u = Erf(s)  v = Sin(t) }> }""")
    new = convert(model, "float16", "--keep-op", "Erf")
    onnx.checker.check_model(new, full_check=True)
    (body,) = (attribute.g for node in new.graph.node for attribute in node.attribute if node.op_type == "Loop")
    inner, outer = element_types(body.input)[2:], element_types(body.output)[1:]
    assert inner == outer


def test_many_nodes_take_little_time(convert):
    """Others sort nodes in quadratic time: 20,000 nodes take them hours."""
    nodes = [helper.make_node("Add", [f"v{i}", f"v{max(0, i - 7)}"], [f"v{i + 1}"]) for i in range(20000)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("v0", F32, [1])],
                              [helper.make_tensor_value_info("v20000", F32, [1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert operators(convert(model, "float16").graph) == ["Add"] * 20000
