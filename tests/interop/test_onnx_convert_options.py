# SPDX-License-Identifier: Apache-2.0
"""Options of `tcast onnx convert`: which nodes change, types of inputs and outputs, limits, where weights go, reports."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

F32, F16, BF16, F64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE
X = np.float32([[0.1, -1.7, 3.3]])
LINE = 'g (float[1,3] x) => (float[1,3] y) { [a] t = Sin(x)  [b] u = Softmax(t)  ["c/d"] y = Neg(u) }'


def parse(text, initializers=(), opset=21):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "own" : 1]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers)
    return model


def run(path, **feeds):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@pytest.fixture
def convert(run_tcast, tmp_path):
    """convert(model, "float16", ...) gives the new model, which is valid and which a second conversion leaves alone."""
    def converted(model, to, *arguments, check=True):
        onnx.save(model, tmp_path / "model.onnx")
        again = "consumer-of:t" not in arguments  # which names another node in the new model
        for source, target in (("model.onnx", "out.onnx"), ("out.onnx", "again.onnx"))[:1 + again]:
            done = run_tcast("onnx", "convert", source, "-o", target, "--to", to, "--force", *arguments)
            assert done.returncode == 0, done.stderr
        assert not again or done.stdout.startswith("again.onnx: 0 changes")
        if check:
            onnx.checker.check_model(str(tmp_path / "out.onnx"), full_check=True)
        return onnx.load(tmp_path / "out.onnx")
    return converted


def types_of(model):
    """The type of each value that a node makes, by type inference of ONNX."""
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    values = [*inferred.graph.value_info, *inferred.graph.output]
    return {value.name: value.type.tensor_type.elem_type for value in values}


@pytest.mark.parametrize("arguments, low", [
    (("--keep", "op:Softmax"), {"t", "y"}),
    (("--keep", "name:b"), {"t", "y"}),
    (("--keep", "glob:c/*"), {"t", "u"}),
    (("--keep", "re:^[ab]$"), {"y"}),
    (("--keep", "tensor:t"), {"y"}),
    (("--keep", "consumer-of:t"), {"t", "y"}),
    (("--keep", "producer-of:t"), {"u", "y"}),
    (("--keep", "domain:ai.onnx"), set()),
    (("--only", "op:Softmax"), {"u"}),
    (("--only", "name:a", "--only", "name:b", "--keep", "name:b"), {"t"}),
])
def test_selected_nodes(convert, arguments, low):
    types = types_of(convert(parse(LINE), "float16", "--keep-io-types", *arguments))
    made = {name.removesuffix("_float16") for name, element in types.items() if element == F16 and name != "x_float16"}
    assert made >= low
    # what is not low is made in float32, and cast at most
    assert {name for name in ("t", "u") if types[name] == F16} == low & {"t", "u"}


def test_a_graph_is_selected_by_its_path(convert):
    model = parse("""g (float[1,3] x, bool b) => (float[1,3] y) { [choice]
        y = If(b) <then_branch = t () => (float[1,3] p) { q = Sin(x)  p = Softmax(q) },
                   else_branch = e () => (float[1,3] p) { q = Sin(x)  p = Softmax(q) }> }""")
    new = convert(model, "float16", "--keep", "graph:choice.then*")
    branches = {a.name: a.g for node in new.graph.node if node.op_type == "If" for a in node.attribute}
    then, other = branches["then_branch"].node, branches["else_branch"].node
    assert [(node.op_type, *node.input) for node in then] == [("Sin", "x_float32"), ("Softmax", "q")]
    assert [(node.op_type, *node.input) for node in other] == [("Sin", "x"), ("Softmax", "q"), ("Cast", "p")]
    assert new.graph.input[0].type.tensor_type.elem_type == F16


@pytest.mark.parametrize("selector, complaint, status", [
    ("op:Conv", 'no node of the model matches "op:Conv"', 1),
    ("Softmax", '"Softmax" selects no nodes', 2),  # whatever the model
    ("re:(", "re", 2),
])
def test_a_selector_that_selects_nothing_is_a_mistake(run_tcast, tmp_path, selector, complaint, status):
    onnx.save(parse(LINE), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--keep", selector)
    assert done.returncode == status and complaint in done.stderr
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("io, expected", [
    ("x=float32,y=float16", (F32, F16)),
    ("x=float16,y=float32", (F16, F32)),
    ("x=float64,y=float64", (F64, F64)),
    ("x,y=float64", (F32, F64)),
])
def test_types_of_inputs_and_outputs(convert, io, expected):
    new = convert(parse(LINE), "float16", "--keep-io-types", io)
    assert (new.graph.input[0].name, new.graph.output[0].name) == ("x", "y")
    assert tuple(value.type.tensor_type.elem_type for value in (new.graph.input[0], new.graph.output[0])) == expected


def test_a_value_needed_in_three_types(convert, tmp_path):
    model = parse("g (float[1,3] x) => (float[1,3] y, float[1,3] z) { [a] y = Sin(x)  [b] z = Softmax(x) }")
    new = convert(model, "float16", "--keep-io-types", "x=float64,y=float32,z=float64", "--keep", "name:a")
    casts = [(node.input[0], node.output[0]) for node in new.graph.node if node.op_type == "Cast" and node.input[0] == "x"]
    assert sorted(casts) == [("x", "x_float16"), ("x", "x_float32")]
    new = run(str(tmp_path / "out.onnx"), x=X.astype(np.float64))
    np.testing.assert_allclose(new[0], np.sin(X), rtol=1e-6)
    assert new[1].dtype == np.float64


def test_types_of_operators(convert, run_tcast, tmp_path):
    model = parse("g (float[1,3] x) => (float[1,3] y) <float[1,3] b> { a = Sin(x)  b = own.Op(a, a)  y = Neg(b) }")
    types = [node.op_type for node in convert(model, "float16", check=False).graph.node]
    assert types == ["Sin", "Cast", "Op", "Cast", "Neg"]
    types = [node.op_type for node in convert(model, "float16", "--op-types", "own::Op:in=float16,out=float16", check=False).graph.node]
    assert types == ["Sin", "Op", "Neg"]
    new = convert(model, "float16", "--op-types", "own::Op:in1=f16,out=f16", check=False)
    assert next(node for node in new.graph.node if node.op_type == "Op").input == ["a_float32", "a"]
    for wrong in ("own::Op", "own::Op:in=int8", "own::Other:in=float16", "own::Op:at=float16"):
        done = run_tcast("onnx", "convert", "model.onnx", "-o", "no.onnx", "--to", "float16", "--op-types", wrong)
        assert done.returncode == (1 if "Other" in wrong else 2), wrong


@pytest.mark.parametrize("runtime, float16, bfloat16", [
    ("onnxruntime_cpu", "mgrc", ""),
    ("onnxruntime_cuda", "mrc", "m"),  # has GridSample in float32 only, and leaves CumProd to the CPU
    ("tensorrt", "mgr", "mr"),  # has no CumProd
    ("openvino", "mgrc", "mgrc"),
    ("any", "mgrc", "mgrc"),
])
def test_runtimes_have_other_kernels(convert, runtime, float16, bfloat16):
    model = parse("""g (float[1,1,4,4] x, float[1,4,4,2] s, int64 a) => (float[1,1,4,4] y) {
        m = MatMul(x, x)  g = GridSample(m, s)  r = Reciprocal(g)  c = CumProd(r, a)  y = Neg(c) }""", opset=26)
    for to, code, changed in (("float16", F16, float16), ("bfloat16", BF16, bfloat16)):
        types = types_of(convert(model, to, "--runtime", runtime, check=False))
        assert {name for name in "mgrc" if types[name] == code} == set(changed), to


def test_float64_where_there_is_none_and_unknown_runtimes_are_refused(convert, run_tcast):
    for runtime in ("tensorrt", "openvino"):
        convert(parse(LINE), "float16", "--runtime", runtime)
        done = run_tcast("onnx", "convert", "model.onnx", "-o", "no.onnx", "--to", "float64", "--runtime", runtime)
        assert done.returncode == 2 and "the runtime computes nothing in float64" in done.stderr
    done = run_tcast("onnx", "convert", "model.onnx", "-o", "no.onnx", "--to", "float16", "--runtime", "cuda")
    assert done.returncode == 2 and "onnxruntime_cuda" in done.stderr


@pytest.mark.parametrize("runtime", ["onnxruntime_cuda", "tensorrt", "openvino", "any"])
def test_operators_without_a_schema_keep_their_types(convert, runtime):
    model = parse("g (float[1,3] x) => (float[1,3] y) <float[1,3] b> { a = Neg(x)  b = com.microsoft.Inverse(a)  y = Neg(b) }")
    model.opset_import.add(domain="com.microsoft", version=1)
    new = convert(model, "float16", "--runtime", runtime, check=False)
    assert [node.op_type for node in new.graph.node] == ["Neg", "Cast", "Inverse", "Cast", "Neg"]


@pytest.mark.parametrize("arguments, expected", [
    ((), [1e5, 1e-9, -1e-9, 0, 2]),  # stays float32
    (("--clamp", "finite"), [65504, 0, 0, 0, 2]),
    (("--clamp", "onnxconverter-common"), [1e4, 1e-7, -1e-7, 0, 2]),
    (("--clamp", "onnxruntime"), [65504, 5.96e-8, -5.96e-8, 0, 2]),
    (("--min-positive", "0.001", "--max-finite", "1"), [1, 0.001, -0.001, 0, 1]),
])
def test_limits_of_numbers(convert, arguments, expected):
    model = parse("g (float[5] x) => (float[5] y) { y = Mul(x, w) }", [("w", np.float32([1e5, 1e-9, -1e-9, 0, 2]))])
    w = numpy_helper.to_array(convert(model, "float16", *arguments).graph.initializer[0])
    assert w.dtype == (np.float16 if arguments else np.float32)
    np.testing.assert_array_equal(w, np.array(expected, w.dtype))


def test_shared_initializers(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Mul(x, w)  [b] y = Add(a, w) }", [("w", X)])
    names = [each.name for each in convert(model, "float16", "--keep", "name:b").graph.initializer]
    assert sorted(names) == ["w", "w_float16"]
    new = convert(model, "float16", "--keep", "name:b", "--shared-init", "cast")
    assert [each.name for each in new.graph.initializer] == ["w"]
    assert ["w"] in [list(node.input) for node in new.graph.node if node.op_type == "Cast"]


@pytest.mark.parametrize("place, files", [
    ("one", ["out.onnx.data"]), ("per-tensor", ["out.onnx.v.data", "out.onnx.w_1.data"]), ("inline", []),
])
def test_where_initializers_go(convert, run_tcast, tmp_path, place, files):
    big = np.arange(4096, dtype=np.float32).reshape(1, 4096) / 4096
    model = parse("g (float[1,4096] x) => (float[1,4096] y) { a = Mul(x, v)  b = Add(a, k)  y = Mul(b, w_1) }",
                  [("v", big), ("w_1", big + 1), ("k", np.float32([2]))])
    onnx.save(model, tmp_path / "in.onnx", save_as_external_data=True, location="old", size_threshold=0)
    done = run_tcast("onnx", "convert", "in.onnx", "-o", "out.onnx", "--to", "float16", "--external-data", place)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("out.onnx.*")) == files
    new = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    outside = {each.name for each in new.graph.initializer if each.data_location == TensorProto.EXTERNAL}
    assert outside == ({"v", "w_1"} if files else set())
    x = np.ones((1, 4096), np.float16)
    np.testing.assert_allclose(run(tmp_path / "out.onnx", x=x)[0], (big + 2) * (big + 1), rtol=5e-3)


BIG = np.arange(2048, dtype=np.float32).reshape(1, 2048) / 4096
SCALED = "g (float[1,2048] x) => (float[1,2048] y) { a = Mul(x, u)  b = Mul(a, v)  c = Mul(b, w)  y = Add(c, k) }"


def save_outside(path, places):
    """Saves the model of SCALED with initializers outside, at (file, offset) by name."""
    arrays = {"u": BIG + 1, "v": BIG + 2, "w": BIG + 3, "k": BIG}
    model = parse(SCALED)
    for name, array in arrays.items():
        tensor = model.graph.initializer.add()
        if name not in places:
            tensor.CopyFrom(numpy_helper.from_array(array, name))
            continue
        file, offset = places[name]
        tensor.name, tensor.data_type, tensor.data_location = name, F32, TensorProto.EXTERNAL
        tensor.dims.extend(array.shape)
        for key, value in (("location", file), ("offset", str(offset)), ("length", str(array.nbytes))):
            tensor.external_data.add(key=key, value=value)
        place = path.parent / file
        place.parent.mkdir(exist_ok=True)
        with open(place, "r+b" if place.exists() else "wb") as data:
            data.seek(offset)
            data.write(array.tobytes())
    path.write_bytes(model.SerializeToString())


def expect_scaled(path):
    expected = (BIG + 1) * (BIG + 2) * (BIG + 3) + BIG
    np.testing.assert_allclose(run(path, x=np.ones((1, 2048), np.float16))[0], expected, rtol=5e-3)


def places_of(path):
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    return {each.name: {entry.key: entry.value for entry in each.external_data} for each in tensors}


def test_each_old_file_becomes_a_new_one(run_tcast, tmp_path):
    save_outside(tmp_path / "in.onnx", {"u": ("a/w.bin", 0), "v": ("b/w.bin", 64), "w": ("a/w.bin", 8192)})
    (tmp_path / "other").mkdir()
    for source, target in (("in.onnx", "out.onnx"), ("out.onnx", "other/out.onnx"), ("out.onnx", "out2.onnx")):
        done = run_tcast("onnx", "convert", source, "-o", target, "--to", "float16")
        assert done.returncode == 0, done.stderr
        expect_scaled(tmp_path / target)
    names = ["out.onnx.w.bin.data", "out.onnx.w.bin_2.data"]
    assert sorted(path.name for path in tmp_path.glob("out.onnx.*")) == names
    assert [places_of(tmp_path / "out.onnx")[name].get("location") for name in "uvwk"] == [names[0], names[1], names[0], None]
    for name in ["out.onnx", *names]:
        assert (tmp_path / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.glob("out2.onnx.*")) == ["out2.onnx.w.bin.data", "out2.onnx.w.bin_2.data"]


@pytest.mark.parametrize("files, arguments", [
    ({"u": "a", "v": "m.onnx.a.data", "w": "a"}, []),  # the new file for "a" has the name of the next old one
    ({"u": "m.onnx.u.data", "v": "m.onnx.u.data", "w": "m.onnx.w.data"}, ["--external-data", "per-tensor"]),
])
def test_a_model_whose_files_take_the_place_of_each_other(run_tcast, tmp_path, files, arguments):
    save_outside(tmp_path / "m.onnx", {name: (file, 8192 * i) for i, (name, file) in enumerate(files.items())})
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "m.onnx", "--to", "float16", "--force", *arguments)
    assert done.returncode == 0, done.stderr
    expect_scaled(tmp_path / "m.onnx")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("alignment", [1, 64, 2048, 4096, 8192, None])
def test_alignment(run_tcast, tmp_path, alignment):
    save_outside(tmp_path / "in.onnx", {})
    model = onnx.load(tmp_path / "in.onnx")
    model.graph.initializer.insert(3, numpy_helper.from_array(np.float32([1, 2, 3]), "small"))
    onnx.save(model, tmp_path / "in.onnx")
    option = [] if alignment is None else ["--external-alignment", alignment]
    done = run_tcast("onnx", "convert", "in.onnx", "-o", "out.onnx", "--to", "float16", "--external-data", "one",
                     "--external-threshold", "0", *option)
    assert done.returncode == 0, done.stderr
    end, alignment = 0, alignment or 4096
    for place in places_of(tmp_path / "out.onnx").values():
        offset, length = int(place["offset"]), int(place["length"])
        unit = alignment if length >= alignment else min(alignment, 64)
        assert offset == -(-end // unit) * unit
        end = offset + length
    assert (tmp_path / "out.onnx.data").stat().st_size == end
    expect_scaled(tmp_path / "out.onnx")


def test_alignments_that_are_none(run_tcast, tmp_path):
    onnx.save(parse(LINE), tmp_path / "in.onnx")
    for text in ("0", "3", str(1 << 31), "-1", "x"):
        done = run_tcast("onnx", "convert", "in.onnx", "-o", "out.onnx", "--to", "float16", "--external-alignment", text)
        assert done.returncode == 2 and "--external-alignment" in done.stderr, done.stderr
    assert not (tmp_path / "out.onnx").exists()


def test_casts_that_round(convert):
    """Down and up again: where the types change, where they do not, and where the request keeps them."""
    text = "g (float[1,3] x) => (float[1,3] y) { a = Sin(x)  b = Cast<to = 16>(a)  c = Cast<to = 1>(b)  y = Neg(c) }"
    casts = lambda *arguments: [  # noqa: E731
        node.op_type for node in convert(parse(text), *arguments).graph.node].count("Cast")
    assert casts("float16", "--from", "float32") == 2
    assert casts("float16", "--from", "float32", "--allow-lossy-cast-elision") == 0
    assert casts("float64", "--from", "float16", "--allow-lossy-cast-elision") == 2
    assert casts("float16", "--from", "float32", "--allow-lossy-cast-elision", "--keep", "op:Cast") == 4


@pytest.mark.parametrize("text, shape, axis", [
    ("y = MatMul(x, w)", (16, 8), 1), ("y = Gemm<transB = 1>(x, w)", (8, 16), 0),
    ("i = Constant<value = int64[2] {0, 3}>()  e = Gather(w, i)  y = MatMul(x, e)", (16, 16), 0),
])
def test_int8_weights(convert, tmp_path, text, shape, axis):
    w = np.random.default_rng(7).normal(size=shape).astype(np.float32) * np.float32(3)
    if "Gather" in text:
        text = "i = Constant<value = int64[16] {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}>()  e = Gather(w, i)  y = MatMul(x, e)"
    model = parse(f"g (float[2,16] x) => (float[2,N] y) {{ {text} }}", [("w", w), ("b", np.ones(32, np.float32))])
    new = convert(model, "int8", "--weights-only", *(["--only", "op:Gather"] if "Gather" in text else []))
    stored = {each.name: numpy_helper.to_array(each) for each in new.graph.initializer}
    assert stored["w"].dtype == np.int8 and stored["b"].dtype == np.float32
    scale = np.abs(w).max(axis=1 - axis) / np.float32(127.5)
    np.testing.assert_allclose(stored["w_scale"], scale, rtol=1e-6)
    restored = stored["w"] * np.expand_dims(stored["w_scale"], 1 - axis)
    assert np.all(np.abs(restored - w) <= np.expand_dims(scale, 1 - axis) * 0.5001)
    x = np.ones((2, 16), np.float32)
    np.testing.assert_allclose(run(tmp_path / "out.onnx", x=x)[0], run(tmp_path / "model.onnx", x=x)[0], atol=0.5)


def test_a_dry_run_explains_and_writes_nothing(run_tcast, tmp_path):
    w = np.float32([[1e5, 1e-9, 1]])
    onnx.save(parse("g (float[1,3] x) => (float[1,3] y) { [a] t = Sin(x)  [b] u = Mul(t, w)  [c] y = Mul(u, v) }",
                    [("w", w), ("v", w / 10)]), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "--to", "float16", "--dry-run", "--explain", "b", "--json")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    said = json.loads(done.stdout)
    assert said["nodes_by_type"] == {"float32": 1, "float16": 2}
    assert said["initializers"] == [{"name": "v", "from": "float32", "to": "float16", "count": 3, "overflowed": 0,
                                     "underflowed": 1, "clamped": False}]
    (b,) = said["explained"]
    assert [(v["value"], v["to"], v.get("cast")) for v in b["values"]] == [("t", "float32", True), ("w", "float32", False),
                                                                          ("u", "float32", None)]
    assert b["values"][1]["reason"] == "a number of it is beyond the type's range"
    text = run_tcast("onnx", "convert", "m.onnx", "--to", "float16", "--dry-run", "--explain", "b").stdout
    assert '  1 node stays, such as Mul "b": a number of it is beyond the type\'s range\n' in text
    assert '  takes "t": float32, behind a Cast: a number' in text
    assert "0 numbers beyond the range, 1 became zero" in text


def test_quantized_models(convert, tmp_path):
    """QDQ: scales follow the type that DequantizeLinear gives, where the opset has the type."""
    model = parse("""g (float[1,3] x) => (float[1,3] y) <float s = {0.05}, int8 z = {0}> {
        q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  y = Sin(d) }""")
    new = convert(model, "float16")
    assert {each.name: each.data_type for each in new.graph.initializer}["s"] == F16
    x = X.astype(np.float16)
    np.testing.assert_allclose(run(tmp_path / "out.onnx", x=x)[0], np.sin(X), atol=0.05)


OLD = "g (float[1,3] x) => (float[1,3] y) { t = Sin(x)  y = Neg(t) }"


@pytest.mark.parametrize("opset, given, found", [(11, "auto", 13), (11, "17", 17), (13, "auto", 13), (21, "auto", 21),
                                                 (21, "keep", 21), (21, "21", 21), (7, "28", 28)])
def test_the_opset_rises(convert, run_tcast, tmp_path, opset, given, found):
    new = convert(parse(OLD, opset=opset), "bfloat16", "--opset", given, check=found < 24)
    assert [(each.domain, each.version) for each in new.opset_import] == [("", found), ("own", 1)]
    said = json.loads(run_tcast("onnx", "convert", "model.onnx", "--to", "bfloat16", "--opset", given, "--dry-run", "--json").stdout)
    assert (said["opset_before"], said["opset_after"]) == (opset, found)


def test_the_opset_of_a_function_rises_with_it(convert):
    model = parse("g (float[1,3] x) => (float[1,3] y) { t = own.F(x)  y = Neg(t) }", opset=11)
    model.functions.append(onnx.parser.parse_function('<domain: "own", opset_import: ["" : 11]> F (a) => (b) { b = Sin(a) }'))
    new = convert(model, "bfloat16", "--opset", "auto")
    assert [each.version for each in new.functions[0].opset_import] == [13]


def test_a_model_without_floats_keeps_its_opset(convert):
    model = parse("g (int64[1,3] x) => (int64[1,3] y) { y = Identity(x) }", opset=11)
    assert convert(model, "bfloat16", "--opset", "auto") == model


@pytest.mark.parametrize("node, opset, complaint", [
    ("[a] y = Softmax(x)", "13", '1 of the model\'s nodes would mean something else in opset 13: Softmax "a"'),
    ("y = Hardmax(x)", "auto", 'would mean something else in opset 13: Hardmax "y"'),
    ("y = Neg(x)", "7", "the model has opset 11 and cannot get 7"),
    ("y = Neg(x)", "1000", "the model has opset 11 and cannot get 1000"),
    ("y = Neg(x)", "new", '"new" is neither keep nor auto nor an opset'),
    ("y = Neg(x)", "-3", '"-3" is neither keep nor auto nor an opset'),
])
def test_opsets_that_are_refused(run_tcast, tmp_path, node, opset, complaint):
    onnx.save(parse("g (float[1,3] x) => (float[1,3] y) { " + node + " }", opset=11), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "bfloat16", f"--opset={opset}")
    assert done.returncode in (1, 2) and complaint in done.stderr, done.stderr
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("nodes, opset, to, named", [
    ("[a] c = Cast<to = 22>(x)  y = Cast<to = 1>(c)", 21, 24, 'Cast "a"'),
    ("[a] c = Cast<to = 22>(x)  y = Cast<to = 1>(c)", 21, 23, ""),
    ("[a] c = Cast<to = 22>(x)  y = Cast<to = 1>(c)", 24, 25, ""),
    ("i = Cast<to = 3>(x)  [a] c = Cast<to = 22>(i)  y = Cast<to = 1>(c)", 21, 24, ""),
    ("[a] c = Cast<to = 18>(x)  y = Cast<to = 1>(c)", 19, 28, 'Cast "a"'),
    ("[a] c = Cast<to = 18, saturate = 0>(x)  y = Cast<to = 1>(c)", 19, 28, ""),
    ("[a] c = Cast<to = 17>(x)  y = Cast<to = 1>(c)", 19, 28, ""),
    ("[a] c = Cast<to = 23>(x)  y = Cast<to = 1>(c)", 23, 24, 'Cast "a"'),
    ("i = Cast<to = 21>(x)  [a] c = CastLike(x, i)  y = Cast<to = 1>(c)", 21, 24, 'Cast "i", CastLike "a"'),
    ('[a] y = Resize<mode = "nearest", coordinate_transformation_mode = "tf_half_pixel_for_nn">(x, r, s)', 11, 13, 'Resize "a"'),
    ('[a] y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric">(x, r, s)', 11, 13, ""),
])  # fmt: skip
def test_nodes_whose_values_another_opset_changes(run_tcast, tmp_path, nodes, opset, to, named):
    model = parse("g (float[1,3] x) => (float[1,3] y) <float[2] s = {1.0, 1.0}, float[2] r = {1.0, 1.0}> { " + nodes + " }", opset=opset)
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--keep-io-types", "--opset", to)
    assert (done.returncode != 0) == bool(named), done.stderr
    if named:
        assert f"would mean something else in opset {to}: {named}\n" in done.stderr and "other rules from opset 24 on" in done.stderr


@pytest.mark.parametrize("to, refused", [(1, False), (22, True)])
def test_a_call_that_names_the_type_of_a_cast(run_tcast, tmp_path, to, refused):
    model = parse(f"g (float[1,3] x) => (float[1,3] y) {{ t = own.F<type = {to}>(x)  y = Cast<to = 1>(t) }}", opset=21)
    model.functions.append(onnx.parser.parse_function('<domain: "own", opset_import: ["" : 21]> F <type> (a) => (b) { b = Cast<to : int = @type>(a) }'))
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "float16", "--keep-io-types", "--opset", 24)
    assert ("would mean something else in opset 24" in done.stderr) == refused and (done.returncode != 0) == refused, done.stderr


def test_a_node_without_a_name_has_that_of_its_first_output(run_tcast, tmp_path):
    onnx.save(parse("g (float[3] x) => (float[3] y) { a = Relu(x)  y = Sin(a) }"), tmp_path / "model.onnx")
    run = lambda *more: run_tcast("onnx", "convert", "model.onnx", "--to", "float16", "--dry-run", "--json", *more)  # noqa: E731
    found = json.loads(run("--keep", "name:y", "--explain", "y").stdout)
    assert [each["name"] for each in found["kept"]] == [each["name"] for each in found["explained"]] == ["y"]
    assert run("--explain", "x").returncode == run("--keep", "name:x").returncode == 1


@pytest.mark.parametrize(("option", "given"), [("--min-positive", "-1"), ("--min-positive", "nan"), ("--max-finite", "inf"),
                                               ("--max-finite", "much"), ("--external-threshold", "-1")])
def test_limits_that_are_no_numbers(run_tcast, option, given):
    done = run_tcast("onnx", "convert", "model.onnx", "-o", "out.onnx", "--to", "float16", option, given)
    assert done.returncode == 2
    wanted = "whole number from 0 to 18446744073709551615" if option == "--external-threshold" else "number of 0 or more"
    assert done.stderr.splitlines()[0] == f'tcast: error: {option}: "{given}" is not a {wanted}'


def test_limits_that_leave_no_number(run_tcast, tmp_path):
    onnx.save(parse("g (float[3] x) => (float[3] y) { y = Relu(x) }"), tmp_path / "model.onnx")
    done = run_tcast("onnx", "convert", "model.onnx", "-o", "out.onnx", "--to", "float16", "--min-positive", "10", "--max-finite", "1")
    assert done.returncode == 2 and "the smallest number, 10, is above the largest, 1" in done.stderr
    assert not (tmp_path / "out.onnx").exists()


def test_an_output_that_is_declared_twice_and_whose_node_stays(convert):
    """Real models have outputs in value_info, too."""
    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
        g (float[4] x) => (float[4] y, float[4] z) { y = Exp(x) z = Neg(y) }''')
    model.graph.value_info.extend(model.graph.output)
    made = convert(model, "bfloat16")
    assert {value.type.tensor_type.elem_type for value in [*made.graph.output, *made.graph.value_info]} == {onnx.TensorProto.BFLOAT16}
    onnx.checker.check_model(made, full_check=True)


def test_inputs_with_defaults_are_initializers(convert):
    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,4] x, float[4,4] w) => (float[2,4] y) { a = MatMul(x, w) y = Relu(a) }''')
    model.graph.initializer.append(numpy_helper.from_array(np.eye(4, dtype=np.float32), "w"))
    made = convert(model, "float16", "--keep-io-types")
    assert [value.type.tensor_type.elem_type for value in made.graph.input] == [onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16]
    assert [node.op_type for node in made.graph.node].count("Cast") == 2
    kept = convert(model, "float16", "--keep-io-types", "x,w,y")
    assert kept.graph.input[1].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


@pytest.mark.parametrize("arguments", [["int8", "--weights-only"], ["float16", "--weights-only"], ["float16", "--keep-io-types"]])
def test_an_input_with_a_default_that_is_an_output_keeps_its_type(convert, arguments):
    """Its codes without a scale would be no output."""
    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,4] x, float[4,4] w) => (float[2,4] y, float[4,4] w) { y = MatMul(x, w) }''')
    model.graph.initializer.append(numpy_helper.from_array(np.eye(4, dtype=np.float32) / 3, "w"))
    made = convert(model, *arguments)
    values = [*made.graph.input, *made.graph.output]
    assert {value.type.tensor_type.elem_type for value in values} == {onnx.TensorProto.FLOAT}
    assert made.graph.initializer[0] == model.graph.initializer[0]


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float64"])
def test_sums_of_products_of_integers_stay_float32(convert, to):
    """127 * 127 * 256 is beyond float16, and ONNX Runtime's MatMulIntegerToFloat has no float64."""
    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,256] x) => (float[2,8] y) {
            q, s, z = DynamicQuantizeLinear(x) a = MatMulInteger(q, w, z) f = Cast<to = 1>(a) t = Mul(s, ws) m = Mul(f, t) y = Relu(m) }''')
    w = np.random.default_rng(0).integers(100, 127, (256, 8)).astype(np.int8)
    model.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.float32(0.01), "ws")])
    x = np.float32(np.random.default_rng(1).uniform(0.5, 1, (2, 256)))
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    made = convert(model, to, "--keep-io-types")
    found = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    assert np.abs(found - expected).max() <= 0.02 * np.abs(expected).max()


def test_the_way_to_rewrite_nodes_is_named(run_tcast, tmp_path):
    text = '<ir_version: 7, opset_import: ["" : 11]> g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 1>(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    for opset in ("keep", "auto"):
        done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "bfloat16", "--opset", opset)
        assert done.returncode == 1 and "tensorcast.onnx" in done.stderr
