# SPDX-License-Identifier: Apache-2.0
"""tc.onnx.convert(weights_only="nvfp4"): DequantizeLinear gives the numbers of quantize() and dequantize(), bit for bit."""

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest
from onnx import helper, numpy_helper

import tensorcast as tc

OPSETS = {"nvfp4": 23, "mxfp4": 24, "int4-group": 21, "int8": 21, "float8": 21}
SCHEMES = {"int8": "int8-channel", "float8": "fp8-channel"}
TYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def model_of(w, opset):
    kind = {np.dtype(np.float32): "float", np.dtype(np.float16): "float16"}.get(w.dtype, "bfloat16")
    text = f"({kind}[2,{w.shape[0]}] x) => ({kind}[2,{w.shape[1]}] y) {{ y = MatMul(x, w) }}"
    ir = 13 if opset > 23 else 10
    made = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]>\ng {text}')
    made.graph.initializer.append(numpy_helper.from_array(w, "w"))
    return made


def converted(w, scheme):
    opset = OPSETS[scheme.split(":")[0]]
    result = tc.onnx.convert(model_of(w, opset), weights_only=scheme, runtime="any")  # warns of nothing
    onnx.checker.check_model(result.model, full_check=True)
    return result


def dequantized(model, w):
    name = f"w_{w.dtype.name}"
    made = onnx.ModelProto.FromString(model.SerializeToString())
    nodes = [node for node in made.graph.node if node.op_type != "MatMul"]
    for field in ("input", "output", "node", "value_info"):
        made.graph.ClearField(field)
    made.graph.node.extend(nodes)
    made.graph.output.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(w.dtype), w.shape))
    return onnx.reference.ReferenceEvaluator(made).run(None, {})[0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scheme", [*OPSETS, "nvfp4:torchao", "mxfp4:even", "mxfp4:modelopt", "nvfp4:ggml", "float8:modelopt"])
def test_bits_of_quantize(scheme, dtype):
    w = (np.random.default_rng(5).normal(size=(192, 24)) * 0.04).astype(TYPES[dtype])
    word, _, recipe = scheme.partition(":")
    result = converted(w, scheme)
    q = tc.quantize(np.ascontiguousarray(w.T), SCHEMES.get(word, word), recipe=recipe or None)
    expected = q.dequantize(dtype).T
    found = dequantized(result.model, w)
    assert found.dtype == w.dtype
    if not recipe.startswith(("modelopt", "ggml")) or word == "float8":
        assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()
    else:  # zeros of both signs
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    (change,) = result.initializers
    assert (change.scheme, change.recipe) == (q.scheme, q.recipe) and result.to == change.to


def test_it_warns_before_it_writes(tmp_path):
    w = np.ones((32, 16), np.float32)
    onnx.save(model_of(w, 24), tmp_path / "m.onnx")
    with pytest.warns(UserWarning, match="no kernel for DequantizeLinear of float4_e2m1fn on a CPU") as seen:
        tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "o.onnx", weights_only="nvfp4")
    assert [each.filename for each in seen] == [__file__] and (tmp_path / "o.onnx").exists()


def test_the_opset_rises_with_onnxs_converter():
    w = np.ones((32, 16), np.float32)
    old = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 11]>\n'
                                  "g (float[2,32] x) => (float[2,16] y) { a = MatMul(x, w)  y = Softmax(a) }")  # fmt: skip
    old.graph.initializer.append(numpy_helper.from_array(w, "w"))
    result = tc.onnx.convert(old, weights_only="float8", opset="auto")
    assert result.rewritten_by_onnx and result.opset_after == 19


@pytest.mark.parametrize("options, complaint", [
    ({"weights_only": "nvfp5"}, "weights of a model cannot become"),
    ({"weights_only": True}, "there is no type to convert to"),
    ({"weights_only": "int8", "to": "float16"}, "int8 stores int8, not float16"),
    ({"weights_only": 3, "to": "float16"}, "weights_only"),
])  # fmt: skip
def test_what_is_refused(options, complaint):
    with pytest.raises((tc.CastError, TypeError), match=complaint):
        tc.onnx.convert(model_of(np.ones((32, 16), np.float32), 24), **options)


def test_respell(tmp_path):
    weight = np.random.default_rng(3).normal(size=(64, 32)).astype(np.float32)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "product")],
        "g",
        [value("x", 1, [2, 64])],
        [value("y", 1, [2, 32])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    plain = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    codes = tc.onnx.convert(plain, weights_only="int4-group", group_size=32).model
    done = tc.onnx.respell(codes, to="matmulnbits")
    assert (done.respelled, done.left, done.opset_after, done.path) == (1, (), 21, None)
    assert [node.op_type for node in done.model.graph.node] == ["MatMulNBits"]
    back = tc.onnx.respell(done.model, to="qdq").model
    assert [node.op_type for node in back.graph.node] == ["DequantizeLinear", "MatMul"]
    onnx.save(back, tmp_path / "m.onnx")
    assert tc.onnx.respell(tmp_path / "m.onnx", tmp_path / "o.onnx", to="matmulnbits").path == str(tmp_path / "o.onnx")
    with pytest.raises(FileExistsError):
        tc.onnx.respell(tmp_path / "m.onnx", tmp_path / "o.onnx", to="matmulnbits")
    with pytest.raises(tc.CastError, match="matmulnbits or qdq"):
        tc.onnx.respell(codes, to="nbits")
    with pytest.raises(tc.CastError, match="name it with output="):
        tc.onnx.respell(tmp_path / "m.onnx", to="qdq")


def with_body(opset=24):
    """Weights of a graph, of a Constant and of a body, and what each is named in diff()."""
    w, c, b = (np.random.default_rng(seed).normal(size=(64, 32)).astype(np.float32) for seed in range(3))
    text = f"""<ir_version: 11, opset_import: ["" : {opset}]>
        g (float[N,64] x, bool c) => (float[N,32] p, float[N,32] q, float[N,32] r) {{
            p = MatMul(x, w)
            k = Constant <value = float[1] {{0}}> ()
            q = MatMul(x, k)
            r = If(c) <then_branch: graph = t () => (float[N,32] s) {{ s = MatMul(x, b) }},
                       else_branch: graph = e () => (float[N,32] u) {{ u = MatMul(x, w) }}> }}"""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.append(numpy_helper.from_array(w, "w"))
    made.graph.node[1].attribute[0].t.CopyFrom(numpy_helper.from_array(c))
    made.graph.node[3].attribute[0].g.initializer.append(numpy_helper.from_array(b, "b"))
    return made, {"w": w, "k": c, "If#0.then_branch/b": b}


@pytest.mark.parametrize("scheme", ["int8", "float8", "int4-group", "nvfp4", "mxfp4"])
def test_diff_decodes_codes(scheme):
    """One scale a channel, scales of blocks, scales of scales, scales behind a Cast, and zero points."""
    model, weights = with_body()
    groups = {"group_size": 32} if scheme == "int4-group" else {}
    for symmetric in [True, False] if groups else [True]:
        options = {**groups, "symmetric": False} if not symmetric else groups
        made = tc.onnx.convert(model, weights_only=scheme, runtime="any", **options).model
        found = tc.onnx.diff(model, made)
        rows = {row.name: row for row in found.initializers if row.in_a}
        assert rows.keys() == weights.keys() and all(row.decoded and row.compared for row in rows.values())
        for name, w in weights.items():
            kept = {} if symmetric else {"group_size": 32, "symmetric": False}
            q = tc.quantize(np.ascontiguousarray(w.T), SCHEMES.get(scheme, scheme), **{**groups, **kept})
            wrong = np.abs(q.dequantize("float32").T.astype(float) - w)
            assert rows[name].max_abs_error == wrong.max() and rows[name].different == np.count_nonzero(wrong)
        same = tc.onnx.diff(made, made)
        assert same.equal and any(row.decoded for row in same.initializers)


def qdq(node, codes, scale, zero, extra=""):
    text = f"""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (float[2] x, float s) => (float[N,M] y) {{ {extra} y = {node} }}"""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(
        numpy_helper.from_array(a, n) for n, a in {"w": codes, "scale": scale, "zero": zero}.items() if a is not None
    )
    return made


def test_diff_decodes_by_tensor_axis_and_block():
    codes = np.arange(-12, 12, dtype=np.int8).reshape(4, 6)
    scale, rows = np.float32(0.5), np.float32([1, 2, 4, 8])
    blocks = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])
    zero = np.int8([3, -3, 5, 0])
    for node, scales, zeros, expected in [
        ("DequantizeLinear(w, scale)", scale, None, codes * 0.5),
        ("DequantizeLinear <axis = 0> (w, scale)", rows, None, codes * rows[:, None]),
        ("DequantizeLinear <axis = -2> (w, scale, zero)", rows, zero, (codes - zero[:, None].astype(float)) * rows[:, None]),
        ("DequantizeLinear <axis = 1, block_size = 3> (w, scale)", blocks, None, codes * blocks.repeat(3, axis=1)),
        ("DequantizeLinear <axis = 1, block_size = 4> (w, scale)", blocks, None, codes * blocks.repeat(4, axis=1)[:, :6]),
        ("com.microsoft.DequantizeLinear <axis = 0> (w, scale)", rows, None, codes * rows[:, None]),
    ]:
        plain = qdq("Identity(w)", expected.astype(np.float32), scales, zeros)
        coded = qdq(node, codes, scales, zeros)
        for a, b in [(plain, coded), (coded, plain)]:
            row = tc.onnx.diff(a, b).initializers[0]
            assert (row.decoded, row.compared, row.different, row.equal) == (True, True, 0, False), node


def test_diff_of_codes_and_scales():
    codes, other = np.int8([[1, 2], [3, 4]]), np.int8([[2, 4], [6, 8]])
    one, half = np.float32(1), np.float32(0.5)
    a, b = (qdq("DequantizeLinear(w, scale)", *each, None) for each in [(codes, one), (other, half)])
    row = tc.onnx.diff(a, b).initializers[0]
    assert (row.decoded, row.different, row.equal) == (True, 0, False)  # equal weights, other codes
    row = tc.onnx.diff(a, qdq("DequantizeLinear(w, scale)", codes, half, None)).initializers[0]
    assert (row.decoded, row.different, row.max_abs_error) == (True, 4, 2)  # equal codes, other weights


def test_diff_says_what_it_cannot_decode():
    codes, one = np.int8([[1, 2], [3, 4]]), np.float32(1)
    plain = qdq("Identity(w)", codes.astype(np.float32), one, None)
    for node, extra in [
        ("DequantizeLinear(w, s)", ""),  # an input of the model
        ("DequantizeLinear(w, scale)", "z = DequantizeLinear(w, s)"),  # two decode it, not alike
        ("DequantizeLinear(t, scale)", "t = Transpose(w)"),
        ("MatMulInteger(w, w)", ""),
    ]:
        coded = qdq(node, codes, one, None, extra)
        row = tc.onnx.diff(plain, coded).initializers[0]
        assert (row.decoded, row.undecodable, row.compared, row.equal) == (False, True, False, False), node
        assert tc.onnx.diff(coded, coded).equal  # the codes are
    row = tc.onnx.diff(plain, qdq("Cast <to = 1> (w)", codes, one, None)).initializers[0]
    assert (row.undecodable, row.compared, row.different) == (False, True, 0)  # integers as numbers


def test_opset_stays_where_nothing_converts():
    """Weights with fewer inputs than a group stay, so --opset auto has nothing to raise the opset for."""
    small = model_of(np.ones((16, 4), np.float32), 13)
    done = tc.onnx.convert(small, weights_only="int4-group", opset="auto")
    assert (done.opset_before, done.opset_after) == (13, 13)
    assert done.model == small
    large = model_of(np.random.default_rng(1).normal(size=(256, 32)).astype(np.float32), 13)
    done = tc.onnx.convert(large, weights_only="int4-group", opset="auto")
    assert (done.opset_before, done.opset_after) == (13, 21)
