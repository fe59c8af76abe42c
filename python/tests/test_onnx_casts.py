# SPDX-License-Identifier: Apache-2.0
"""tensorcast.onnx: selectors, limits, places of initializers and reports of convert(); casts(), clean(), diff()."""

import dataclasses
import json

import numpy as np
import pytest

import tensorcast as tc

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from tensorcast.onnx import float16  # noqa: E402

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16
WEIGHTS = np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)


def parse(text, **initializers):
    imports = '"" : 21, "own" : 1'
    model = onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]>\n{text}")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers.items())
    return model


def layers():
    model = parse(
        "g (float[N,8] x) => (float[N,8] y) { m = MatMul(x, w)  r = Relu(m)  s = MatMul(r, w)  y = Softmax(s) }",
        w=WEIGHTS,
    )
    for node, name in zip(model.graph.node, ["/body/first", "/body/relu", "/head/second", "/head/soft"]):
        node.name = name
    return model


def redundant():
    return parse(
        """g (float[N] x) => (float[N] y) {
            a = Cast<to = 1>(x)  b = Cast<to = 10>(a)  c = Cast<to = 1>(b)  d = Relu(c)  unused = Cast<to = 10>(d)
            y = Neg(d) }"""
    )


def operators(model):
    return [node.op_type for node in model.graph.node]


def stored(model):
    return {each.name: each for each in model.graph.initializer}


def edges(model):
    return [value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)]


def kept(**options):
    return [node.name for node in tc.onnx.convert(layers(), to="float16", **options).kept]


def test_selectors():
    assert kept(keep="glob:/head/*") == ["/head/second", "/head/soft"]
    assert kept(keep=["op:Softmax", "re:^/body/r"]) == ["/body/relu", "/head/soft"]
    assert kept(only="glob:/head/*") == ["/body/first", "/body/relu"]
    assert kept(only=["consumer-of:x", "producer-of:y"], keep=["name:/head/soft"]) == kept(only="name:/body/first")
    with pytest.raises(tc.CastError, match="op:Conv"):
        kept(keep="op:Conv")
    with pytest.raises(tc.CastError):
        kept(only="such")


def test_types_of_inputs_and_outputs():
    made = tc.onnx.convert(layers(), to="float16", keep_io_types={"x": np.float32, "y": "float64"}).model
    assert edges(made) == [F32, TensorProto.DOUBLE]
    assert edges(tc.onnx.convert(layers(), to="float16", keep_io_types={"x": None}).model) == [F32, F16]
    with pytest.raises(tc.CastError, match="no input or output|z"):
        tc.onnx.convert(layers(), to="float16", keep_io_types={"z": "float32"})
    with pytest.raises(tc.CastError, match="float33"):
        tc.onnx.convert(layers(), to="float16", keep_io_types={"x": "float33"})


def test_types_of_operators():
    model = parse("g (float[8] x) => (float[8] y) <float[8] o> { o = own.Op(x)  y = Relu(o) }")
    assert [node.op_type for node in tc.onnx.convert(model, to="float16").kept] == ["Op"]
    assert tc.onnx.convert(model, to="float16", op_types="own::Op:in=float16,out=float16").kept == ()


def test_limits_of_numbers():
    model = parse(
        "g (float[1,4] x) => (float[1,4] y) { y = Mul(x, w) }", w=np.float32([[1e-9, 2e4, -2e6, np.inf]])
    )  # fmt: skip

    def numbers(**options):
        return numpy_helper.to_array(tc.onnx.convert(model, to="float16", **options).model.graph.initializer[0])

    least = np.float16(1e-7)
    assert numbers().dtype == np.float32
    assert numbers(clamp="finite").tolist() == [[0, 20000, -65504, np.inf]]
    assert numbers(clamp="onnxconverter_common").tolist() == [[least, 10000, -10000, np.inf]]
    assert numbers(clamp="onnxruntime").tolist() == [[np.float16(5.96e-8), 20000, -65504, np.inf]]
    assert numbers(clamp="onnxruntime", max_finite=100).tolist() == [[np.float16(5.96e-8), 100, -100, np.inf]]
    assert numbers(min_positive=0.5, max_finite=64).tolist() == [[0.5, 64, -64, np.inf]]
    made = float16.convert_float_to_float16(model)
    assert numpy_helper.to_array(made.graph.initializer[0]).tolist() == [[least, 10000, -10000, np.inf]]
    made = float16.convert_float_to_float16(model, min_positive_val=0.25, max_finite_val=32)
    assert numpy_helper.to_array(made.graph.initializer[0]).tolist() == [[0.25, 32, -32, np.inf]]
    assert float16.convert_float_to_float16(made) == made
    with pytest.raises(ValueError, match="clamp must be one of 'none', 'finite', 'onnxconverter_common', 'onnxruntime', not 'all'"):
        numbers(clamp="all")
    for wrong in ({"min_positive": -1}, {"max_finite": np.nan}, {"external_threshold": -1}):
        with pytest.raises(tc.CastError, match="0 or more|from 0 on"):
            numbers(**wrong)


def test_shared_initializers():
    once = tc.onnx.convert(layers(), to="float16", keep="name:/head/second", shared_init="cast")
    assert [each.name for each in once.model.graph.initializer] == ["w"]
    twice = tc.onnx.convert(layers(), to="float16", keep="name:/head/second").model
    assert sorted(each.data_type for each in twice.graph.initializer) == [F32, F16]
    with pytest.raises(ValueError, match="shared_init must be one of 'dup', 'cast'"):
        kept(shared_init="both")


@pytest.mark.parametrize("opset", ["keep", 22])
def test_places_of_initializers(tmp_path, opset):
    onnx.save(parse("g (float[8,8] x) => (float[8,8] y) { a = MatMul(x, w)  y = Add(a, v) }", w=WEIGHTS, v=WEIGHTS),
              tmp_path / "m.onnx")  # fmt: skip

    def files(name, **options):
        tc.onnx.convert(tmp_path / "m.onnx", tmp_path / name / "o.onnx", "float16", opset=opset, **options)
        made = onnx.load(tmp_path / name / "o.onnx")
        assert numpy_helper.to_array(stored(made)["v"]).tolist() == WEIGHTS.astype(np.float16).tolist()
        return sorted(path.name for path in (tmp_path / name).iterdir())

    for name in ("one", "each", "none", "few"):
        (tmp_path / name).mkdir()
    assert files("one", external_data="one", external_threshold=0) == ["o.onnx", "o.onnx.data"]
    assert files("each", external_data="per_tensor", external_threshold=128) == ["o.onnx", "o.onnx.v.data", "o.onnx.w.data"]
    assert files("few", external_data="one") == ["o.onnx"]
    outside = tmp_path / "one/o.onnx"
    back = tc.onnx.convert(outside, tmp_path / "none/o.onnx", "float32", external_data="inline")
    assert back.initializers_converted == 2 and [path.name for path in (tmp_path / "none").iterdir()] == ["o.onnx"]


def test_external_data_in_memory():
    made = tc.onnx.convert(layers(), to="float16", external_data="one", external_threshold=0).model
    assert numpy_helper.to_array(made.graph.initializer[0]).tolist() == WEIGHTS.astype(np.float16).tolist()
    for place in ("one", "per_tensor"):
        with pytest.raises(tc.CastError, match="bytes cannot hold"):
            tc.onnx.convert(layers().SerializeToString(), to="float16", external_data=place, external_threshold=0)


def test_int8_weights():
    result = tc.onnx.convert(layers(), to="int8", weights_only=True)
    assert result.initializers[0].to == "int8" and "DequantizeLinear" in operators(result.model)
    assert edges(result.model) == [F32, F32]


def test_the_report():
    model = parse("g (float[1,4] x) => (float[1,4] y) { y = Mul(x, w) }", w=np.float32([[1e-9, 1e6, 1, 0]]))
    result = tc.onnx.convert(model, to="float16", clamp="finite")
    assert result.initializers == (
        tc.onnx.InitializerChange("w", "float32", "float16", count=4, overflowed=1, underflowed=1, clamped=True),
    )
    result = tc.onnx.convert(layers(), to="float16", keep_ops="Softmax", keep_io_types=True, explain="/head/soft")
    assert result.nodes_by_type == {"float32": 1, "float16": 3}
    assert result.casts_after == result.casts_before + result.casts_added - result.casts_removed == 2
    (node,) = result.explained
    assert (node.name, node.op_type, node.scope) == ("/head/soft", "Softmax", "")
    taken, given = node.values
    assert taken.is_input and taken.cast and taken.reason == "the request keeps it" and taken.to == "float32"
    assert (given.value, given.is_input, given.from_, given.to) == ("y", False, "float32", "float32")
    said = json.loads(result.to_json())
    assert said["explained"][0]["values"][0]["from"] == "float32" and said["nodes_by_type"]["float16"] == 3
    with pytest.raises(tc.CastError, match="absent"):
        tc.onnx.convert(layers(), to="float16", explain="absent")


def test_dry_runs(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(layers(), path)
    made = tc.onnx.convert(layers(), to="float16")
    for model in (path, layers(), path.read_bytes()):
        tried = tc.onnx.convert(model, to="float16", dry_run=True)
        assert (tried.path, tried.model) == (None, None) and tried == dataclasses.replace(made, model=None)
    assert tc.onnx.convert(path, tmp_path / "o.onnx", "float16", dry_run=True, opset=22).path is None
    assert tc.onnx.clean(path, dry_run=True).path is None
    assert [each.name for each in tmp_path.iterdir()] == ["m.onnx"]


def test_dry_runs_with_validation(tmp_path):
    pytest.importorskip("onnxruntime")
    onnx.save(layers(), tmp_path / "m.onnx")
    tried = tc.onnx.convert(tmp_path / "m.onnx", to="float16", dry_run=True, validate=True)
    assert tried.path is None and tried.outputs[0].passed
    assert [each.name for each in tmp_path.iterdir()] == ["m.onnx"]


def test_casts(tmp_path):
    model = redundant()
    onnx.save(model, tmp_path / "m.onnx")
    found = tc.onnx.casts(tmp_path / "m.onnx")
    assert found == tc.onnx.casts(model) == tc.onnx.casts(model.SerializeToString())
    assert [(each.output, each.from_, each.to, each.role, each.removable) for each in found] == [
        ("a", "float32", "float32", "same_type", True),
        ("b", "float32", "float16", found[1].role, False),
        ("c", "float16", "float32", "rounding", False),
        ("unused", "float32", "float16", "unused", True),
    ]
    assert found[0].op_type == "Cast" and found[0].consumers == 1 and found[0].reason and found[0].scope == ""
    assert found[0].as_dict()["from"] == "float32"
    assert tc.onnx.casts(layers()) == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found[0].name = ""
    with pytest.raises(FileNotFoundError):
        tc.onnx.casts(tmp_path / "none.onnx")
    with pytest.raises(tc.ParseError):
        tc.onnx.casts(b"not a model")


def test_clean(tmp_path):
    model = redundant()
    before = model.SerializeToString()
    result = tc.onnx.clean(model)
    assert operators(result.model) == ["Cast", "Cast", "Relu", "Neg"] and model.SerializeToString() == before
    assert (result.nodes, result.nodes_removed, result.casts_before, result.casts_after) == (6, 2, 4, 2)
    assert [(node.name, node.op_type) for node in result.removed] == [("a", "Cast"), ("unused", "Cast")]
    assert all(node.reason for node in result.removed) and "model" not in result.as_dict()
    lossy = tc.onnx.clean(before, allow_lossy_cast_elision=True)
    assert operators(onnx.load_from_string(lossy.model)) == ["Relu", "Neg"]
    assert tc.onnx.clean(result.model).model == result.model

    path, output = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(model, path)
    assert tc.onnx.clean(path, output).path == str(output) and onnx.load(output) == result.model
    with pytest.raises(FileExistsError):
        tc.onnx.clean(path, output)
    with pytest.raises(tc.CastError, match="name it with output="):
        tc.onnx.clean(path)
    assert tc.onnx.clean(path, path, overwrite=True).model is None and onnx.load(path) == result.model
    assert tc.onnx.clean(before, output, overwrite=True).model is None


def test_clean_leaves_external_data(tmp_path):
    model = redundant()
    model.graph.node.append(onnx.helper.make_node("Add", ["d", "w"], ["z"]))
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS[0], "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    tc.onnx.clean(tmp_path / "m.onnx", tmp_path / "o.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "o.onnx", "w.bin"]
    assert numpy_helper.to_array(onnx.load(tmp_path / "o.onnx").graph.initializer[0]).tolist() == WEIGHTS[0].tolist()


def test_diff(tmp_path):
    model = layers()
    onnx.save(model, tmp_path / "m.onnx")
    same = tc.onnx.diff(tmp_path / "m.onnx", model)
    assert same.equal and same.values == same.opsets == same.operators == () and len(same.initializers) == 1
    half = tc.onnx.convert(model, to="float16", keep_io_types=["y"]).model
    half.opset_import[1].version = 2
    found = tc.onnx.diff(model, half.SerializeToString())
    assert not found.equal and (found.ir_version_a, found.ir_version_b) == (10, 10)
    assert found.opsets == (tc.onnx.OpsetDifference("own", 1, 2),)
    assert found.operators == (tc.onnx.OperatorDifference("Cast", 0, 1),)
    assert ("x", "float32", "float16") in [(each.name, each.a, each.b) for each in found.values]
    assert any(each.a is None for each in found.values)
    assert found.casts_only_a == () and [each.to for each in found.casts_only_b] == ["float32"]
    (weights,) = found.initializers
    assert isinstance(weights, tc.TensorDifference) and weights.compared and 60 < weights.snr_db < 90
    assert (weights.from_, weights.to, weights.count) == ("float32", "float16", 64)
    assert tc.onnx.diff(model, half, headers_only=True).initializers[0].compared is False
    assert json.loads(found.to_json())["initializers"][0]["from"] == "float32"
    with pytest.raises(tc.ParseError):
        tc.onnx.diff(model, b"not a model")


def test_initializers(tmp_path):
    then = "a = Add(x, inner)"
    model = parse(
        f"""g (float[N,8] x, bool c) => (float[N,8] y) {{
            m = MatMul(x, w)
            [if_1] y = If(c) <then_branch: graph = t () => (float[N,8] a) <float[1] inner = {{1}}> {{ {then} }},
                              else_branch: graph = e () => (float[N,8] b) {{ b = Neg(m) }}> }}""",
        w=WEIGHTS, h=np.float16([1, 2]),
    )  # fmt: skip
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=64)
    found = tc.onnx.initializers(tmp_path / "m.onnx")
    assert [(each.name, each.dtype, each.shape, each.bytes) for each in found] == [
        ("w", "float32", (8, 8), 256), ("h", "float16", (2,), 4), ("if_1.then_branch/inner", "float32", (1,), 4)
    ]  # fmt: skip
    assert all(each.problem == "" and each.stats is None for each in found)
    (tmp_path / "w.bin").unlink()
    assert [each.problem != "" for each in tc.onnx.initializers(tmp_path / "m.onnx")] == [True, False, False]
    assert tc.onnx.initializers(layers()) == tc.onnx.initializers(layers().SerializeToString())
    with pytest.raises(tc.ParseError):
        tc.onnx.initializers(b"no model")
    with pytest.raises(FileNotFoundError):
        tc.onnx.initializers(tmp_path / "missing.onnx")


def quantized_pair(scale, zero, behind=None, zero_behind=None, per_axis=False):
    """Codes to numbers, to codes again, and to numbers."""
    axis = "<axis = 1>" if per_axis else ""
    kind = {"int8": "int8", "uint8": "uint8", "int16": "int16"}[zero.dtype.name]
    model = parse(
        f"""g ({kind}[N,4] q) => (float[N,4] y) {{
            a = DequantizeLinear{axis}(q, s, z)  b = Identity(a)  c = QuantizeLinear{axis}(b, t, u)
            y = DequantizeLinear{axis}(c, s, z) }}""",
        s=scale, z=zero, t=scale if behind is None else behind, u=zero if zero_behind is None else zero_behind,
    )  # fmt: skip
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_pairs_that_give_back_every_code_go(dtype):
    zero = np.array(3, dtype)
    model = quantized_pair(np.float32(0.1), zero)
    cleaned = tc.onnx.clean(model)
    assert operators(cleaned.model) == ["DequantizeLinear"]
    assert {row.op_type for row in cleaned.removed} == {"Identity", "QuantizeLinear", "DequantizeLinear"}
    assert ["every code" in row.reason for row in cleaned.removed if row.op_type == "QuantizeLinear"] == [True]
    codes = np.arange(12, dtype=dtype).reshape(3, 4)
    reference = pytest.importorskip("onnx.reference")
    runs = [reference.ReferenceEvaluator(m).run(None, {"q": codes})[0] for m in (model, cleaned.model)]
    np.testing.assert_array_equal(*runs)
    assert tc.onnx.clean(cleaned.model).removed == ()
    del model.graph.node[1]
    model.graph.node[1].input[0] = "a"
    assert [(cast.op_type, cast.removable) for cast in tc.onnx.casts(model)] == [("QuantizeLinear", True)]


def test_pairs_by_axis_and_those_that_change_codes():
    scales = np.array([0.1, 1e-3, 3.0, 7e20], np.float32)
    zeros = np.array([0, 5, -128, 127], np.int8)
    assert operators(tc.onnx.clean(quantized_pair(scales, zeros, per_axis=True)).model) == ["DequantizeLinear"]
    stays = ["DequantizeLinear", "QuantizeLinear", "DequantizeLinear"]
    one, zero = np.float32(0.1), np.array(3, np.int8)
    # Another scale, another zero point, products that become infinite, a scale of zero: codes change.
    for model in (
        quantized_pair(one, zero, behind=np.float32(0.2)),
        quantized_pair(one, zero, zero_behind=np.array(4, np.int8)),
        quantized_pair(np.float32(1e38), zero),
        quantized_pair(np.float32(0), zero),
    ):
        assert operators(tc.onnx.clean(model).model) == stays, model


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_angles_of_whole_numbers_keep_their_type(to):
    """As exports of transformers make them of position_ids; float16 has no 4097, and few digits of 4095 / 3."""
    model = parse(
        """g (int64[N,T] position, float[N,T,8] x) => (float[N,T,8] y) {
            cast = Cast <to = 1> (position)
            axis = Constant <value = int64[1] {1}> ()
            rows = Unsqueeze(cast, axis)
            angles = MatMul(inverse, rows)
            turned = Transpose <perm = [0, 2, 1]> (angles)
            both = Concat <axis = -1> (turned, turned)
            cos = Cos(both)
            sin = Sin(both)
            a = Mul(x, cos)
            b = Mul(a, sin)
            y = Identity(b) }""",
        inverse=np.float32([1, 0.1, 0.01, 0.001]).reshape(4, 1),
    )
    done = tc.onnx.convert(model, to=to, keep_io_types=True, runtime="any")
    onnx.checker.check_model(done.model, full_check=True)
    kept = {node.name for node in done.kept if "angles of whole numbers" in node.reason}
    assert {"cast", "rows", "angles", "turned", "both"} <= kept and "a" not in kept
    assert to == "bfloat16" or {"cos", "sin"} <= kept  # which have no bfloat16 before opset 22
    given = {"position": np.arange(4090, 4100).reshape(1, 10), "x": np.ones((1, 10, 8), np.float32)}
    before, after = (ReferenceEvaluator(each).run(None, given)[0] for each in (model, done.model))
    assert np.abs(before - after).max() < (0.001 if to == "float16" else 0.01)


def test_other_angles_become_narrow():
    model = parse("g (float[N] x) => (float[N] y) { a = Mul(x, x)\n y = Sin(a) }")
    assert tc.onnx.convert(model, to="float16").nodes_converted == 2
