# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx convert --weights-only SCHEME`: what DequantizeLinear gives is the weight that NumPy quantizes, bit for bit."""

import json
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnxruntime
import pytest
from onnx import helper, numpy_helper

FP4, FP8 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn
FIRST = {"nvfp4": 23, "mxfp4": 24, "int4-group": 21, "int8": 13, "float8": 19}
BLOCK = {"nvfp4": 16, "mxfp4": 32, "int4-group": 128}
CODES = {"nvfp4": "FLOAT4E2M1", "mxfp4": "FLOAT4E2M1", "int4-group": "INT4", "int8": "INT8", "float8": "FLOAT8E4M3FN"}
# The graph, the shape of its weight, the axis of its channels, that of its inputs.
NODES = [
    ("(float[2,160] x) => (float[2,8] y) { y = MatMul(x, w) }", (160, 8), 1, 0),
    ("(float[2,160] x) => (float[2,8] y) { y = Gemm<transB = 1>(x, w) }", (8, 160), 0, 1),
    ("(float[3,2,160] x) => (float[3,2,5] y) { y = MatMul(x, w) }", (3, 160, 5), 2, 1),
    ("(float[1,160,8,8] x) => (float[1,6,6,7] y) { y = Conv(x, w) }", (6, 160, 3, 2), 0, 1),
    ("(int64[2] x) => (float[2,144] y) { y = Gather(w, x) }", (40, 144), 0, 1),
    ("(float[2,160] x) => (float[2,9] y) { t = Transpose<perm = [1, 0]>(w) y = MatMul(x, t) }", (9, 160), 0, 1),
]
# With transBatchB the first axis is the rows.
FUSED = [
    ("", (160, 8), 1, 0), ("transB = 1", (8, 160), 0, 1), ("transBatchB = 1", (160, 3, 5), 2, 0),
    ("transB = 1, transBatchB = 1", (5, 3, 160), 0, 2),
]
MATMUL = "(float[2,32] x) => (float[2,8] y) { y = MatMul(x, w) }"


def f32(x):
    return np.asarray(x, np.float32)


def rows_of(scheme, rows):
    """The rows' dequantized numbers, by the default recipes of docs/recipes.md."""
    block = BLOCK.get(scheme, rows.shape[1])
    made = np.empty_like(rows)
    g = np.abs(rows).max() / f32(2688)
    for start in range(0, rows.shape[1], block):
        x = rows[:, start : start + block]
        largest = np.abs(x).max(axis=1, keepdims=True)
        if scheme == "nvfp4":
            s = np.clip(f32(largest / (f32(6) * g)), f32(2**-9), f32(448))
            s = f32(np.where(largest == 0, 1, s).astype(FP8)) * g
            y = f32(f32(x / s).astype(FP4)) * s + f32(0)  # ModelOpt has no -0
        elif scheme == "mxfp4":
            s = np.exp2(np.ceil(np.log2(largest.astype(np.float64) / 6)))
            y = f32(f32(np.clip(x / s, -6, 6)).astype(FP4)) * f32(s)
        elif scheme == "float8":
            s = largest / f32(448)
            y = f32((x / s).astype(FP8)) * s
        else:
            top = f32(8 if scheme == "int4-group" else 128)
            s = largest / (top - f32(0.5))
            y = f32(np.clip(np.rint(x / s), -top, top - 1).astype(np.int32)) * s
        made[:, start : start + block] = y
    return made


def expected(scheme, w, channel, inputs):
    axis = inputs if scheme in BLOCK else channel
    if scheme in BLOCK:
        moved = np.moveaxis(w, axis, -1)
        return np.moveaxis(rows_of(scheme, moved.reshape(-1, w.shape[axis])).reshape(moved.shape), -1, axis)
    moved = np.moveaxis(w, axis, 0)
    return np.moveaxis(rows_of(scheme, moved.reshape(w.shape[axis], -1)).reshape(moved.shape), 0, axis)


def weight(shape, seed=3):
    return f32(np.random.default_rng(seed).normal(size=shape) * 0.05)


def model_of(graph, w, opset):
    ir = 13 if opset > 23 else 10
    made = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]>\ng {graph}')
    made.graph.initializer.append(numpy_helper.from_array(w, "w"))
    return made


def dequantized(path, engine, name="w_float32"):
    """The value that takes the weight's place."""
    made = onnx.load(path)
    made.graph.ClearField("output")
    made.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    of_weights = [n for n in made.graph.node if n.op_type in ("DequantizeLinear", "Cast")]
    made.graph.ClearField("node")
    made.graph.node.extend(of_weights)
    made.graph.ClearField("input")
    if engine == "onnx":
        return onnx.reference.ReferenceEvaluator(made).run(None, {})[0]
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {})[0]


@pytest.fixture
def convert(run_tcast, tmp_path):
    def converted(model, scheme, *arguments):
        onnx.save(model, tmp_path / "model.onnx")
        done = run_tcast("onnx", "convert", "model.onnx", "-o", "out.onnx", "-f", "--weights-only", scheme, *arguments)
        assert done.returncode == 0, done.stderr
        assert ("no kernel for DequantizeLinear of float4_e2m1fn on a CPU" in done.stderr) == (scheme[2:4] == "fp")
        onnx.checker.check_model(str(tmp_path / "out.onnx"), full_check=True)
        again = run_tcast("onnx", "convert", "out.onnx", "-o", "again.onnx", "-f", "--weights-only", scheme, *arguments)
        assert again.stdout.splitlines()[0] == "again.onnx: 0 changes", again.stderr
        return onnx.load(tmp_path / "out.onnx")

    return converted


@pytest.mark.parametrize("graph, shape, channel, inputs", NODES)
@pytest.mark.parametrize("scheme", FIRST)
def test_weights_are_what_numpy_makes_of_them(convert, tmp_path, scheme, graph, shape, channel, inputs):
    w = weight(shape)
    w.reshape(-1)[:5] = [0, -0.0, 1e-6, -0.3, 0.3]
    opset = 24 if scheme == "mxfp4" else 23 if scheme == "nvfp4" else 21
    operator = next((each for each in ("Conv", "Gather") if each in graph), "")  # weights that stay unless selected
    made = convert(model_of(graph, w, opset), scheme, *(["--only", f"op:{operator}"] if operator else []))
    stored = {each.name: each for each in made.graph.initializer}
    assert stored["w"].data_type == getattr(onnx.TensorProto, CODES[scheme]) and list(stored["w"].dims) == list(shape)
    node = next(n for n in made.graph.node if n.op_type == "DequantizeLinear" and n.input[0] == "w")
    attributes = {a.name: a.i for a in node.attribute}
    assert attributes == ({"axis": inputs, "block_size": BLOCK[scheme]} if scheme in BLOCK else {"axis": channel})
    scales = list(shape)
    if scheme in BLOCK:
        scales[inputs] = -(-shape[inputs] // BLOCK[scheme])
        assert list(stored["w_scale"].dims) == scales
    else:
        assert list(stored["w_scale"].dims) == [shape[channel]]
    wanted = expected(scheme, w, channel, inputs)
    for engine in ("onnx", "ort") if scheme[2:4] != "fp" else ("onnx",):
        found = dequantized(tmp_path / "out.onnx", engine)
        np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32), err_msg=engine)


@pytest.mark.parametrize("attributes, shape, channel, inputs", FUSED)
@pytest.mark.parametrize("scheme", ["int8", "int4-group"])
def test_axes_of_fused_products(run_tcast, tmp_path, scheme, attributes, shape, channel, inputs):
    x = "float[2,160] x" if len(shape) == 2 else "float[3,2,160] x"
    graph = f"({x}) => (float y) {{ y = com.microsoft.FusedMatMul<{attributes}>(x, w) }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>\ng {graph.replace("<>", "")}')
    w = weight(shape)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "model.onnx")
    done = run_tcast("onnx", "convert", "model.onnx", "-o", "out.onnx", "--weights-only", scheme)
    assert done.returncode == 0, done.stderr
    made = onnx.load(tmp_path / "out.onnx")
    node = next(n for n in made.graph.node if n.op_type == "DequantizeLinear")
    assert {a.name: a.i for a in node.attribute}["axis"] == (inputs if scheme in BLOCK else channel)
    found = dequantized(tmp_path / "out.onnx", "ort")
    np.testing.assert_array_equal(found.view(np.uint32), expected(scheme, w, channel, inputs).view(np.uint32))
    values = {"x": f32(np.random.default_rng(1).normal(size=(3, 2, 160) if len(shape) == 3 else (2, 160)))}
    old, new = outputs_of(model, values)[0], outputs_of(made, values)[0]
    assert old.shape[-1] == shape[channel] and np.abs(old - new).max() <= 0.3 * np.abs(old).max()


def test_the_hint_of_a_weight_that_is_lost_names_an_option_of_the_command(run_tcast, tmp_path):
    w = np.zeros((256, 8), np.float32)
    w[:, :] = 1e-4
    w[0] = 1
    onnx.save(model_of("(float[2,256] x) => (float[2,8] y) { y = MatMul(x, w) }", w, 21), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", "int8")
    assert done.returncode != 0 and "another scheme or --keep would help" in done.stderr, done.stderr


@pytest.mark.parametrize("scheme", FIRST)
def test_the_opset_that_a_scheme_needs(run_tcast, tmp_path, scheme):
    onnx.save(model_of(MATMUL, weight((128, 8)), FIRST[scheme] - 1 if scheme != "int8" else 9), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", scheme)
    first = FIRST[scheme] if scheme != "int8" else 10
    assert done.returncode == 1 and not (tmp_path / "o.onnx").exists()
    assert f"DequantizeLinear for {scheme} came with opset {first}, but the model has opset" in done.stderr
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", scheme, "--opset", "auto", "--json")
    assert json.loads(done.stdout)["opset_after"] == first


def test_one_scale_before_opset_13(convert, tmp_path):
    w = weight((32, 8))
    made = convert(model_of(MATMUL, w, 11), "int8")
    assert [list(each.dims) for each in made.graph.initializer] == [[32, 8], []]
    found = dequantized(tmp_path / "out.onnx", "ort")
    np.testing.assert_array_equal(found, rows_of("int8", w.reshape(1, -1)).reshape(w.shape))


@pytest.mark.parametrize("scheme", ["nvfp4", "int4-group", "int8"])
@pytest.mark.parametrize("place", [["--external-data", "one", "--external-threshold", "0"], ["--external-data", "per-tensor"],
                                   ["--external-data", "inline"], []])
def test_external_data(run_tcast, tmp_path, scheme, place):
    w = weight((256, 160))
    model = model_of("(float[2,256] x) => (float[2,256] z) { y = MatMul(x, w) z = MatMul(y, v) }", w, 23)
    model.graph.initializer.append(numpy_helper.from_array(weight((160, 256), 4), "v"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", scheme, *place)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    for name, array, axis in (("w_float32", w, 0), ("v_float32", weight((160, 256), 4), 0)):
        np.testing.assert_array_equal(dequantized(tmp_path / "o.onnx", "onnx", name), expected(scheme, array, 1, axis))
    files = {path.name for path in tmp_path.iterdir()} - {"m.onnx", "m.bin", "o.onnx"}
    if "inline" in place:
        assert not files
    elif "per-tensor" in place:
        assert "o.onnx.w.data" in files and "o.onnx.v.data" in files
    else:
        assert files == {"o.onnx.data"}


def test_what_keeps_its_type(run_tcast, tmp_path):
    w = weight((32, 8))
    bad = w.copy()
    bad[3, 3] = np.inf
    model = model_of("(float[2,32] x) => (float[2,2] y) { a = MatMul(x, w) c = Transpose(a) d = MatMul(x, bad) b = MatMul(d, c) y = Mul(b, vector) }",
                     w, 21)
    model.graph.initializer.extend([numpy_helper.from_array(bad, "bad"), numpy_helper.from_array(weight((2,)), "vector")])
    onnx.save(model, tmp_path / "m.onnx")
    said = json.loads(run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", "int8", "--json").stdout)
    assert said["to"] == "int8"
    assert said["initializers"][0].pop("snr_db") > 35
    assert said["initializers"] == [{"name": "w", "from": "float32", "to": "int8", "count": 256, "overflowed": 0, "underflowed": 0,
                                     "clamped": False, "scheme": "int8-channel", "recipe": "compressed-tensors"}]
    assert said["kept_weights"] == [{"name": "bad", "reason": "it has an infinity or NaN"}]
    assert said["initializer_bytes_after"] == 256 + 8 * 4


def test_recipes(run_tcast, tmp_path):
    w = weight((32, 80))
    onnx.save(model_of(MATMUL.replace("2,8]", "2,80]"), w, 24), tmp_path / "m.onnx")

    def made(scheme):
        done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "-f", "--weights-only", scheme)
        assert done.returncode == 0, done.stderr
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dequantized(tmp_path / "o.onnx", "onnx")

    def error(found):
        return float(((found - w) ** 2).sum())

    default, even, floor = made("mxfp4"), made("mxfp4:even"), made("mxfp4:floor")
    assert error(even) < error(default) and not np.array_equal(even, floor)
    np.testing.assert_array_equal(made("mxfp4:rceil"), default)
    assert error(made("nvfp4:torchao-one-level")) < 2 * error(made("nvfp4"))


@pytest.mark.parametrize("arguments, complaint", [
    (["--weights-only", "nvfp5"], 'weights of a model cannot become "nvfp5"'),
    (["--weights-only", "bfloat16"], "--to bfloat16 and --weights-only without a scheme store them in that type"),
    (["--weights-only", "q4_k"], "schemes are nvfp4, mxfp4, int4-group, int8 (int8-channel), float8 (fp8-channel)"),
    (["--weights-only", "mxfp4:best"], 'no recipe "best" for mxfp4'),
    (["--weights-only", "nvfp4:compressed-tensors"], "divides by the tensor's scale, and DequantizeLinear multiplies"),
    (["--weights-only", "int8", "--to", "float16"], "int8 stores int8, not float16"),
    (["--weights-only", "int8", "--from", "float64"], "float64 weights get no scales"),
    (["--weights-only", "int8", "--max-finite", "3"], "weights that get scales have no limits"),
    (["--weights-only", "int8", "--group-size", "32"], "int8-channel has no groups"),
    (["--weights-only", "int8", "--no-symmetric"], "int8-channel has no zero points"),
    (["--weights-only", "int4-group", "--group-size", "48"], "48"),
    (["--to", "float16", "--group-size", "32"], "only weights in int4 have groups"),
    (["--weights-only"], "--to is required"),
])  # fmt: skip
def test_requests_that_are_refused(run_tcast, tmp_path, arguments, complaint):
    onnx.save(model_of(MATMUL, weight((32, 8)), 24), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", *arguments)
    assert done.returncode == 2 and complaint in done.stderr, done.stderr
    assert not (tmp_path / "o.onnx").exists()


def test_a_bare_option_before_the_model(run_tcast, tmp_path):
    onnx.save(model_of(MATMUL, weight((32, 8)), 21), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "--to", "bfloat16", "--weights-only", "m.onnx", "-o", "o.onnx")
    assert done.returncode == 0, done.stderr
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == ["Cast", "MatMul"]


def outputs_of(model, inputs):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)


@pytest.mark.parametrize("symmetric, bound", [(True, 0.15), (False, 0.12)])
def test_groups_of_32_and_zero_points(convert, tmp_path, symmetric, bound):
    w = weight((256, 24)) + f32(0.02)
    more = ["--group-size", "32"] + ([] if symmetric else ["--no-symmetric"])
    made = convert(model_of("(float[2,256] x) => (float[2,24] y) { y = MatMul(x, w) }", w, 21), "int4-group", *more)
    stored = {each.name: each for each in made.graph.initializer}
    assert list(stored["w_scale"].dims) == [8, 24] and ("w_zero_point" in stored) == (not symmetric)
    for engine in ("onnx", "ort"):
        found = dequantized(tmp_path / "out.onnx", engine)
        assert np.linalg.norm(found - w) <= bound * np.linalg.norm(w), engine
        if not symmetric:  # a step of a group is its range / 15, and half of it is the largest error
            groups = w.reshape(8, 32, 24)
            step = (np.maximum(groups.max(1), 0) - np.minimum(groups.min(1), 0)) / 15
            assert (np.abs(found - w).reshape(8, 32, 24) <= 0.51 * step[:, None] + 1e-6).all()


def test_weights_that_stay_and_why(run_tcast, tmp_path):
    model = model_of("""(int64[2] i, float[1,3,8,8] image, float[3,1,64] s) => (float[2,64] e, float[1,4,6,6] c, float[2,3,1,64] h, float[2,8] y) {
        e = Gather(embedding, i) c = Conv(image, kernel) h, last = LSTM<direction = "bidirectional", hidden_size = 64>(s, W, R, B)
        y = MatMul(e, w) }""".replace("h, last", "h0, h"), weight((64, 8)), 21)
    arrays = {"embedding": weight((16, 64)), "kernel": weight((4, 3, 3, 3)), "W": weight((2, 256, 64)), "R": weight((2, 256, 64)),
              "B": weight((2, 512))}
    model.graph.output[2].type.tensor_type.shape.CopyFrom(helper.make_tensor_value_info("h", 1, [2, 1, 64]).type.tensor_type.shape)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", "int8")
    assert done.returncode == 0, done.stderr
    made = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(made, full_check=True)
    kinds = {each.name: each.data_type for each in made.graph.initializer}
    assert {name for name, kind in kinds.items() if kind == onnx.TensorProto.INT8} == {"W", "R", "w"}
    axes = {node.input[0]: node.attribute[0].i for node in made.graph.node if node.op_type == "DequantizeLinear"}
    assert axes == {"W": 1, "R": 1, "w": 1}
    assert "3 weights in int8, 3 nodes added" in done.stdout and "Cast" not in done.stdout
    assert "weights: 264.2 kB -> 68.1 kB" in done.stdout and "worst weights" in done.stdout
    assert '  3 weights stay, such as "embedding": it is no matrix of a product; --only op:TYPE selects it' in done.stdout
    rng = np.random.default_rng(0)
    inputs = {"i": np.int64([1, 5]), "image": f32(rng.normal(size=(1, 3, 8, 8))), "s": f32(rng.normal(size=(3, 1, 64)))}
    for old, new in zip(outputs_of(model, inputs), outputs_of(made, inputs)):
        assert np.abs(old - new).max() <= 0.02 * np.abs(old).max()


def test_inputs_fewer_than_a_group_and_no_matrix(run_tcast, tmp_path):
    onnx.save(model_of(MATMUL, weight((32, 8)), 21), tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", "int4-group")
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "o.onnx: 0 changes"
    assert "it has fewer inputs than share a scale" in done.stdout
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "p.onnx", "--weights-only", "int4-group", "--group-size", "32")
    assert "1 weight in int4" in done.stdout
    onnx.save(model_of(MATMUL, weight((32, 8)), 11), tmp_path / "old.onnx")
    done = run_tcast("onnx", "convert", "old.onnx", "-o", "q.onnx", "--weights-only", "int8")
    assert "each has one scale, as the model has opset 11; --opset 13 gives one for each channel" in done.stdout


@pytest.mark.parametrize("scheme", ["int8", "int4-group", "float8"])
def test_constants_initializers_of_bodies_and_inputs_with_defaults(convert, scheme):
    w, v, u = weight((256, 8)), weight((256, 8), 4), weight((256, 8), 5)
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(w))
    branch = [helper.make_graph([helper.make_node("MatMul", ["x", name], [f"out_{name}"])], name, [],
                                [helper.make_tensor_value_info(f"out_{name}", 1, [2, 8])]) for name in ("v", "w")]  # fmt: skip
    nodes = [constant, helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1]),
             helper.make_node("MatMul", ["x", "u"], ["z"])]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("x", 1, [2, 256]), info("c", 9, []), info("u", 1, [256, 8])],
                              [info("y", 1, [2, 8]), info("z", 1, [2, 8])],
                              [numpy_helper.from_array(v, "v"), numpy_helper.from_array(u, "u")])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made = convert(model, scheme)
    assert sum(node.op_type == "DequantizeLinear" for node in made.graph.node) == 3
    x = f32(np.random.default_rng(0).normal(size=(2, 256)))
    for c in (True, False):
        inputs = {"x": x, "c": np.array(c)}
        for old, new in zip(outputs_of(model, inputs), outputs_of(made, inputs)):
            assert np.linalg.norm(old - new) <= (0.2 if scheme == "int4-group" else 0.05) * np.linalg.norm(old)


def test_weights_behind_identity_and_in_calls(convert):
    w, v = weight((64, 8)), weight((64, 8), 4)
    info, node, opset = helper.make_tensor_value_info, helper.make_node, [helper.make_opsetid("", 21)]
    linear = helper.make_function("own", "Linear", ["a", "b"], ["c"], [node("MatMul", ["a", "b"], ["c"])], opset)
    nodes = [node("Identity", ["w"], ["w2"]), node("MatMul", ["x", "w2"], ["y"]), node("Linear", ["x", "v"], ["z"], domain="own")]
    graph = helper.make_graph(nodes, "g", [info("x", 1, [2, 64])], [info("y", 1, [2, 8]), info("z", 1, [2, 8])],
                              [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[*opset, helper.make_opsetid("own", 1)], ir_version=10, functions=[linear])
    made = convert(model, "int8")
    assert sum(node.op_type == "DequantizeLinear" for node in made.graph.node) == 2
    x = {"x": f32(np.random.default_rng(0).normal(size=(2, 64)))}
    for old, new in zip(outputs_of(model, x), outputs_of(made, x)):
        assert np.abs(old - new).max() <= 0.02 * np.abs(old).max()


def test_weights_that_no_consumer_explains(run_tcast, tmp_path):
    double = model_of(MATMUL.replace("float[", "double["), weight((32, 8)).astype(np.float64), 21)
    output = model_of(MATMUL, weight((32, 8)), 21)
    output.graph.output.append(helper.make_tensor_value_info("w", 1, [32, 8]))
    flat = model_of(MATMUL.replace("{", "{ s = Constant<value_ints = [32, 32]>() w = Reshape(flat, s)").replace(",8]", ",32]"), weight((1,)), 21)
    flat.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight((32, 32)).reshape(-1), "flat"))
    sparse = model_of(MATMUL, weight((1,)), 21)
    sparse.graph.ClearField("initializer")
    places = numpy_helper.from_array(np.int64([3, 70]), "places")
    stored = helper.make_sparse_tensor(numpy_helper.from_array(np.float32([1, 2]), "w"), places, [32, 8])
    sparse.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=stored))
    reasons = [(sparse, "it is sparse"), (double, "float64 weights get no scales"), (output, "it is an output"), (flat, "a Reshape gives it its rows")]
    for model, reason in reasons:
        onnx.save(model, tmp_path / "m.onnx")
        done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "-f", "--weights-only", "int8")
        assert done.returncode == 0 and "0 changes" in done.stdout and reason in done.stdout, done.stdout + done.stderr


def test_initializers_of_ir_version_3(run_tcast, tmp_path):
    model = model_of(MATMUL, weight((32, 8)), 10)
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info("w", 1, [32, 8]))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--weights-only", "int8")
    assert "1 weight in int8" in done.stdout, done.stderr
    made = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(made, full_check=True)
    x = {"x": f32(np.random.default_rng(0).normal(size=(2, 32)))}
    old, new = outputs_of(model, x)[0], outputs_of(made, x)[0]
    assert np.abs(old - new).max() <= 0.03 * np.abs(old).max()


def test_constants_are_stored_in_a_narrow_type(run_tcast, tmp_path):
    model = model_of(MATMUL.replace("{", "{ w = Constant<value = float[1] {0}>()"), weight((1,)), 21)
    model.graph.ClearField("initializer")
    model.graph.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(weight((32, 8))))
    onnx.save(model, tmp_path / "m.onnx")
    done = run_tcast("onnx", "convert", "m.onnx", "-o", "o.onnx", "--to", "bfloat16", "--weights-only")
    assert done.returncode == 0, done.stderr
    made = onnx.load(tmp_path / "o.onnx")
    assert [n.op_type for n in made.graph.node] == ["Constant", "Cast", "MatMul"]
    assert made.graph.node[0].attribute[0].t.data_type == onnx.TensorProto.BFLOAT16
