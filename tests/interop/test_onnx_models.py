# SPDX-License-Identifier: Apache-2.0
"""`tcast run` on ONNX models: equal to ONNX's own reference evaluator and to the node tests that the onnx wheel ships."""

import json
import pathlib

import numpy as np
import onnx
import pytest
from array_files import assert_same, dtype_of, load_pb, save_pb
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

NODE_TESTS = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
RUN = {"Cast", "CastLike", "BitCast", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Constant", "Identity", "If"}
SINCE = {name: 6 for name in ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32",
                              "uint16", "uint8", "bool"]}
SINCE |= {"bfloat16": 13, "float8_e4m3fn": 19, "float8_e4m3fnuz": 19, "float8_e5m2": 19, "float8_e5m2fnuz": 19, "int4": 21,
          "uint4": 21, "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "int2": 25, "uint2": 25}
if hasattr(TensorProto, "FLOAT6E2M3"):  # onnx 1.23
    SINCE |= {"float6_e2m3fn": 28, "float6_e3m2fn": 28}
NEWEST = min(28, onnx.defs.onnx_opset_version())


def code(name: str) -> int:
    """TensorProto.DataType of a type of NumPy or ml_dtypes."""
    return helper.np_dtype_to_tensor_dtype(dtype_of(name))


def value(name, dtype, shape=None):
    return helper.make_tensor_value_info(name, code(dtype) if isinstance(dtype, str) else dtype, shape)


def make_model(nodes, inputs, outputs, opset=25, *, functions=(), domains=(), initializers=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializer=list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


@pytest.fixture
def run_model(run_tcast, tmp_path):
    """run_model(model, {input: array}) gives {output: array}."""

    def run(model, inputs):
        path = tmp_path / "model.onnx"
        if not isinstance(model, pathlib.Path):
            onnx.save(model, path)
            model = path
        arguments = []
        for index, (name, array) in enumerate(inputs.items()):
            save_pb(tmp_path / f"input_{index}.pb", array)
            arguments += ["--input", f"{name}={tmp_path / f'input_{index}.pb'}"]
        done = run_tcast("run", model, *arguments, "--output-dir", tmp_path / "outputs", "--output-format", "pb", "--force",
                         "--json")
        assert done.returncode == 0, done.stderr
        return {output["name"]: load_pb(pathlib.Path(output["file"])) for output in json.loads(done.stdout)["outputs"]}

    return run


def assert_as_the_reference(model, inputs, outputs):
    expected = ReferenceEvaluator(model).run(None, inputs)
    assert list(outputs) == [output.name for output in model.graph.output]
    for actual, reference in zip(outputs.values(), expected):
        assert_same(actual, np.asarray(reference))


# Every type holds them, or rounds them as it should; what lies beyond a type's range is for the oracle's tests.
SMALL = [0, 1, 2, 3]


@pytest.mark.parametrize("opset", range(6, NEWEST + 1))
@pytest.mark.parametrize("source", ["float32", "float16", "int32", "uint8", "bool"])
def test_casts_to_every_type_equal_the_reference(run_model, opset, source):
    targets = [name for name, since in SINCE.items() if since <= opset]
    nodes = [helper.make_node("Cast", ["x"], [target], to=code(target)) for target in targets]
    model = make_model(nodes, [value("x", source, [None])], [value(target, target, [None]) for target in targets], opset)
    x = np.array(SMALL + ([0.1, 1.75, 2.6] if source.startswith("float") else []), dtype_of(source))
    # The reference does not round to exponents alone as the text says, so that only powers of two can be compared.
    if "float8_e8m0fnu" in targets:
        x = np.array([1, 2], dtype_of(source))
    assert_as_the_reference(model, {"x": x}, run_model(model, {"x": x}))


@pytest.mark.parametrize("opset", range(19, NEWEST + 1))
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_saturate_equals_the_reference(run_model, opset, saturate, target):
    model = make_model([helper.make_node("Cast", ["x"], ["y"], to=code(target), saturate=saturate)],
                       [value("x", "float32", [None])], [value("y", target, [None])], opset)
    x = np.array([1e6, -1e6, 0.1, np.nan, 300, -449], np.float32)
    assert_as_the_reference(model, {"x": x}, run_model(model, {"x": x}))


@pytest.mark.parametrize("opset", range(1, 6))
def test_before_opset_6_the_type_is_a_word(run_model, opset):
    words = {"FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "INT64": "int64", "INT8": "int8", "UINT16": "uint16",
             "BOOL": "bool"}
    nodes = [helper.make_node("Cast", ["x"], [word], to=word) for word in words]
    model = make_model(nodes, [value("x", "float32", [None])], [value(w, n, [None]) for w, n in words.items()], opset)
    x = np.array([0, 1.5, 2.6, 100], np.float32)
    for word, actual in run_model(model, {"x": x}).items():
        assert_same(actual, x.astype(words[word]))


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 28, reason="onnx 1.23 is the first with opset 28")
def test_opset_28_has_a_cast_of_its_own_and_no_castlike():
    since = {name: onnx.defs.get_schema(name, 28).since_version for name in ["Cast", "CastLike"]}
    assert since == {"Cast": 28, "CastLike": 25}
    types = {name: set(onnx.defs.get_schema(name, 28).type_constraints[1].allowed_type_strs) for name in since}
    assert types["Cast"] - types["CastLike"] == {"tensor(float6e2m3)", "tensor(float6e3m2)"}


@pytest.mark.skipif("float6_e2m3fn" not in SINCE, reason="onnx 1.23 is the first with float6")
@pytest.mark.parametrize("opset", [25, 26, 27, 28])
def test_float6_is_a_type_of_cast_since_opset_28_and_of_no_castlike(run_tcast, run_model, tmp_path, opset):
    x = np.array([0, -0.0, 0.3, 1.06, 7.75, -1e6, np.inf, np.nan], np.float32)
    for target in ["float6_e2m3fn", "float6_e3m2fn"]:
        model = make_model([helper.make_node("Cast", ["x"], ["y"], to=code(target))], [value("x", "float32", [None])],
                           [value("y", target, [None])], opset)
        if opset == 28:
            assert_same(run_model(model, {"x": x})["y"], x.astype(dtype_of(target)))
        else:
            onnx.save(model, tmp_path / "model.onnx")
            np.save(tmp_path / "x.npy", x)
            done = run_tcast("run", tmp_path / "model.onnx", "--input", tmp_path / "x.npy", "-d", tmp_path / "out")
            assert f"{target} is a type of Cast since opset 28; opset {opset} was asked for" in done.stderr
    like = make_model([helper.make_node("CastLike", ["x", "like"], ["y"])],
                      [value("x", "float32", [None]), value("like", "float6_e2m3fn", [])],
                      [value("y", "float6_e2m3fn", [None])], opset)
    onnx.save(like, tmp_path / "like.onnx")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "like.npy", np.zeros((), dtype_of("float6_e2m3fn")))
    done = run_tcast("run", tmp_path / "like.onnx", "--input", f"x={tmp_path / 'x.npy'}",
                     "--input", f"like={tmp_path / 'like.npy'}", "-d", tmp_path / "out")
    assert done.returncode != 0 and "opset 25 was asked for" in done.stderr


@pytest.mark.parametrize("opset", range(15, NEWEST + 1))
def test_castlike_equals_cast_to_the_type_of_its_second_input(run_model, opset):
    for target in ["float16", "int8", "float64", "bool"]:
        model = make_model([helper.make_node("CastLike", ["x", "like"], ["y"])],
                           [value("x", "float32", [None]), value("like", target, [])], [value("y", target, [None])], opset)
        inputs = {"x": np.array([0, -1.5, 100.7], np.float32), "like": np.zeros((), dtype_of(target))}
        assert_as_the_reference(model, inputs, run_model(model, inputs))


def runnable_node_tests():
    for folder in sorted(NODE_TESTS.glob("test_*")):
        model = onnx.load(folder / "model.onnx")
        if {node.op_type for node in model.graph.node} <= RUN and not model.functions:
            values = [*model.graph.input, *model.graph.output]
            if all(item.type.HasField("tensor_type") for item in values):
                yield folder


NODE_TEST_FOLDERS = list(runnable_node_tests())


def test_the_wheel_ships_node_tests():
    assert len(NODE_TEST_FOLDERS) >= 150
    assert {"test_identity", "test_constant", "test_if"} <= {folder.name for folder in NODE_TEST_FOLDERS}
    assert any(folder.name.endswith("_expanded") for folder in NODE_TEST_FOLDERS)


@pytest.mark.parametrize("folder", NODE_TEST_FOLDERS, ids=lambda folder: folder.name)
def test_node_tests_of_onnx(run_tcast, tmp_path, folder):
    model = onnx.load(folder / "model.onnx")
    onnx.save(model, tmp_path / "model.onnx")
    data = folder / "test_data_set_0"
    arguments = []
    for index, item in enumerate(model.graph.input):
        arguments += ["--input", f"{item.name}={data / f'input_{index}.pb'}"]
    done = run_tcast("run", tmp_path / "model.onnx", *arguments, "-d", tmp_path / "out", "--output-format", "pb", "--json")
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)["outputs"]
    assert len(outputs) == len(model.graph.output)
    for index, output in enumerate(outputs):
        expected = onnx.load_tensor(data / f"output_{index}.pb")
        actual = onnx.load_tensor(output["file"])
        assert actual.data_type == expected.data_type
        assert_same(numpy_helper.to_array(actual), numpy_helper.to_array(expected))


@pytest.mark.parametrize("condition", [True, False])
def test_branches_see_the_values_around_them(run_model, condition):
    inner_then = helper.make_graph([helper.make_node("Cast", ["half"], ["t2"], to=TensorProto.INT8)], "t2", [],
                                   [value("t2", "int8", None)])
    inner_else = helper.make_graph([helper.make_node("Cast", ["x"], ["e2"], to=TensorProto.INT8)], "e2", [],
                                   [value("e2", "int8", None)])
    then_branch = helper.make_graph([helper.make_node("Identity", ["x"], ["half"]),
                                     helper.make_node("If", ["other"], ["t"], then_branch=inner_then, else_branch=inner_else)],
                                    "then", [], [value("t", "int8", None)])
    else_branch = helper.make_graph([helper.make_node("Constant", [], ["k"], value_floats=[7.9, -8.9]),
                                     helper.make_node("Cast", ["k"], ["e"], to=TensorProto.INT8)], "else", [],
                                    [value("e", "int8", None)])
    model = make_model([helper.make_node("If", ["condition"], ["y"], then_branch=then_branch, else_branch=else_branch)],
                       [value("condition", "bool", []), value("other", "bool", []), value("x", "float32", [None])],
                       [value("y", "int8", [None])])
    for other in [True, False]:
        inputs = {"condition": np.array(condition), "other": np.array(other), "x": np.array([1.5, -2.5], np.float32)}
        assert_as_the_reference(model, inputs, run_model(model, inputs))


def referring(node, attribute, to, kind=onnx.AttributeProto.INT):
    node.attribute.append(onnx.AttributeProto(name=attribute, ref_attr_name=to, type=kind))
    return node


def test_functions_and_their_attributes(run_model):
    imports = [helper.make_opsetid("", 25), helper.make_opsetid("my", 1)]
    inner = helper.make_function(
        "my", "Squeeze", ["a"], ["b", "a"], [referring(helper.make_node("Cast", ["a"], ["low"]), "to", "low"),
                                             helper.make_node("CastLike", ["low", "a"], ["b"])], imports, ["low"])
    outer = helper.make_function(
        "my", "Twice", ["a"], ["c", "d"],
        [referring(helper.make_node("Squeeze", ["a"], ["b", ""], domain="my"), "low", "first"),
         referring(helper.make_node("Squeeze", ["b"], ["c", "d"], domain="my"), "low", "second")], imports, ["first"],
        [helper.make_attribute("second", TensorProto.INT8)])
    nodes = [helper.make_node("Twice", ["x"], ["y", "z"], domain="my", first=TensorProto.FLOAT16),
             helper.make_node("Twice", ["x"], ["u"], domain="my", first=TensorProto.BFLOAT16, second=TensorProto.FLOAT16)]
    model = make_model(nodes, [value("x", "float32", [None])], [value(name, "float32", [None]) for name in "yzu"],
                       functions=[inner, outer], domains=["my"])
    onnx.checker.check_model(model)
    x = np.array([0.1, 1.7, -2.4], np.float32)
    low, lower = x.astype(np.float16).astype(np.float32), x.astype(dtype_of("bfloat16")).astype(np.float32)
    outputs = run_model(model, {"x": x})
    assert_same(outputs["y"], low.astype(np.int8).astype(np.float32))
    assert_same(outputs["z"], low)
    assert_same(outputs["u"], lower.astype(np.float16).astype(np.float32))

    # The reference evaluator resolves no references in functions within functions.
    nodes = [helper.make_node("Squeeze", ["x"], ["y", "z"], domain="my", low=TensorProto.FLOAT16)]
    model = make_model(nodes, [value("x", "float32", [None])], [value(name, "float32", [None]) for name in "yz"],
                       functions=[inner], domains=["my"])
    assert_as_the_reference(model, {"x": x}, run_model(model, {"x": x}))


def test_external_data_and_defaults(run_model, run_tcast, tmp_path):
    weight = np.arange(1000, dtype=np.float32).reshape(10, 100)
    model = make_model([helper.make_node("Cast", ["weight"], ["y"], to=TensorProto.FLOAT16),
                        helper.make_node("Cast", ["x"], ["z"], to=TensorProto.INT8)],
                       [value("x", "float32", [None])], [value("y", "float16", [10, 100]), value("z", "int8", [None])],
                       initializers=[numpy_helper.from_array(weight, "weight"),
                                     numpy_helper.from_array(np.array([7.5], np.float32), "x")])
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=100)
    assert (folder / "weights.bin").stat().st_size >= weight.nbytes
    outputs = run_model(folder / "model.onnx", {})
    assert_same(outputs["y"], weight.astype(np.float16))
    assert_same(outputs["z"], np.array([7], np.int8))
    assert_same(run_model(folder / "model.onnx", {"x": np.array([1, 2], np.float32)})["z"], np.array([1, 2], np.int8))

    (tmp_path / "elsewhere.bin").write_bytes((folder / "weights.bin").read_bytes())
    for entry in onnx.load(folder / "model.onnx", load_external_data=False).graph.initializer:
        if entry.data_location == TensorProto.EXTERNAL:
            assert {item.key: item.value for item in entry.external_data}["location"] == "weights.bin"
    text = (folder / "model.onnx").read_bytes().replace(b"weights.bin", b"../else.bin")
    (folder / "hostile.onnx").write_bytes(text)
    (tmp_path / "else.bin").write_bytes((folder / "weights.bin").read_bytes())
    done = run_tcast("run", folder / "hostile.onnx", "-d", tmp_path / "no")
    assert done.returncode == 1
    assert 'hostile.onnx: tensor "weight": external data "../else.bin"' in done.stderr
    assert not (tmp_path / "no").exists()


def test_strings_and_inputs_of_either_format(run_tcast, tmp_path):
    model = make_model([helper.make_node("Cast", ["x"], ["text"], to=TensorProto.STRING),
                        helper.make_node("Cast", ["text"], ["number"], to=TensorProto.DOUBLE)],
                       [value("x", "bfloat16", [None])], [value("text", TensorProto.STRING, [None]), value("number", "float64", [None])])
    onnx.save(model, tmp_path / "model.onnx")
    x = np.array([0.5, -3, np.inf], dtype_of("bfloat16"))
    np.save(tmp_path / "x.npy", x)  # NumPy writes |V2, so the type comes from the model
    save_pb(tmp_path / "x.pb", x, "x")
    for source in ["x.npy", "x.pb"]:
        for extension in ["npy", "pb"]:
            done = run_tcast("run", "model.onnx", "--input", source, "-d", "out", "--output-format", extension, "--force")
            assert done.returncode == 0, done.stderr
        assert np.load(tmp_path / "out/text.npy").tolist() == ["0.5", "-3.0", "INF"]
        assert [text.decode() for text in onnx.load_tensor(tmp_path / "out/text.pb").string_data] == ["0.5", "-3.0", "INF"]
        assert onnx.load_tensor(tmp_path / "out/text.pb").name == "text"
        assert np.load(tmp_path / "out/number.npy").tolist() == [0.5, -3, np.inf]


def test_inputs_are_checked(run_tcast, tmp_path):
    model = make_model([helper.make_node("CastLike", ["x", "like"], ["y"])],
                       [value("x", "float32", [2]), value("like", "int8", None)], [value("y", "int8", [2])])
    onnx.save(model, tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.array([1, 2], np.float32))
    np.save(tmp_path / "like.npy", np.int8(0))
    np.save(tmp_path / "three.npy", np.array([1, 2, 3], np.float32))

    def refuse(*inputs):
        arguments = [part for item in inputs for part in ("--input", item)]
        done = run_tcast("run", "model.onnx", *arguments, "-d", "out")
        assert done.returncode == 1
        assert not list(tmp_path.glob("out/*"))
        return done.stderr

    assert 'input "like" of the model is missing' in refuse("x=x.npy")
    assert 'no input "z"' in refuse("x=x.npy", "like=like.npy", "z=z.npy")
    assert 'input "x" is given twice' in refuse("x=x.npy", "x=x.npy")
    assert "cannot tell which model input this file is for" in refuse("x.npy", "like.npy")
    assert '"x"' in refuse("x=three.npy", "like=like.npy")
    assert '"like"' in refuse("x=x.npy", "like=x.npy")
    assert "missing.npy: cannot open" in refuse("x=missing.npy", "like=like.npy")


def test_hostile_output_names_stay_in_the_folder(run_tcast, tmp_path):
    names = ["../up", "a/b", "A/B", "/abs", ".hidden", "-rf", "x" * 400, "ünï", "nul\x01", "a_b"]
    nodes = [helper.make_node("Identity", ["in"], [name]) for name in names]
    onnx.save(make_model(nodes, [value("in", "int8", [1])], [value(name, "int8", [1]) for name in names]),
              tmp_path / "model.onnx")
    np.save(tmp_path / "in.npy", np.array([5], np.int8))
    before = {path.name for path in tmp_path.iterdir()}
    done = run_tcast("run", "model.onnx", "--input", "in.npy", "-d", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before | {"out"}
    files = [pathlib.Path(output["file"]) for output in json.loads(done.stdout)["outputs"]]
    assert len({str(file).lower() for file in files}) == len(names)
    assert all(file.parent == pathlib.Path("out") and file.name[0] not in ".-" for file in files)
    assert all(np.load(tmp_path / file).tolist() == [5] for file in files)


def test_an_existing_output_is_kept_unless_forced(run_tcast, tmp_path):
    onnx.save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", "int8", [1])], [value("y", "int8", [1])]),
              tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.array([5], np.int8))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/y.npy").write_bytes(b"mine")
    done = run_tcast("run", "model.onnx", "-i", "x.npy", "-d", "out")
    assert done.returncode == 1 and "exists already" in done.stderr
    assert (tmp_path / "out/y.npy").read_bytes() == b"mine"
    assert run_tcast("run", "model.onnx", "-i", "x.npy", "-d", "out", "--force", "--quiet").stdout == ""
    assert np.load(tmp_path / "out/y.npy").tolist() == [5]


def test_a_model_is_known_by_its_content_too(run_tcast, tmp_path):
    onnx.save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", "int8", [1])], [value("y", "int8", [1])]),
              tmp_path / "model.onnx")
    (tmp_path / "model").write_bytes((tmp_path / "model.onnx").read_bytes())
    np.save(tmp_path / "x.npy", np.array([5], np.int8))
    assert run_tcast("run", "model", "-i", "x.npy", "-d", "out").returncode == 0
    (tmp_path / "model").write_bytes(b"something else")
    done = run_tcast("run", "model", "-i", "x.npy", "-d", "out")
    assert done.returncode == 1 and "not a model of a known format" in done.stderr
    done = run_tcast("run", "model", "-i", "x.npy", "-d", "out", "--format", "onnx")
    assert done.returncode == 1 and "malformed protobuf" in done.stderr


def test_an_unknown_node_is_named_with_operator_and_file(run_tcast, tmp_path):
    nodes = [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), helper.make_node("Relu", ["h"], ["y"], name="act_7")]
    onnx.save(make_model(nodes, [value("x", "float32", [1])], [value("y", "float16", [1])]), tmp_path / "model.onnx")
    done = run_tcast("run", "model.onnx", "-d", "out")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == 'tcast: error: model.onnx: node "act_7" (Relu): Relu is not an operator that is run here'


def test_models_of_2_gib_are_refused(run_tcast, tmp_path):
    with open(tmp_path / "huge.onnx", "wb") as file:
        file.write(b"\x08\x0a\x3a")
        file.truncate(1 << 31)  # a hole: no disk is used
    done = run_tcast("run", "huge.onnx", "-d", "out")
    assert done.returncode == 1 and "limit of 2 GiB" in done.stderr


FLOATS = ["float32", "float16", "bfloat16"]
QUANTIZED = {"int8": 10, "uint8": 10, "float8_e4m3fn": 19, "float8_e5m2": 19, "int16": 21, "uint16": 21, "int4": 21, "uint4": 21,
             "float4_e2m1fn": 23, "int2": 25, "uint2": 25}


@pytest.mark.parametrize("opset", [version for version in (10, 13, 19, 21, 23, 24, 25, 28) if version <= NEWEST])
@pytest.mark.parametrize("shape", ["tensor", "axis", "blocks"])
def test_quantization_equals_the_reference(run_model, opset, shape):
    """Numbers whose quotients and products need no rounding to float32, so that the order of roundings does not matter."""
    if (shape == "axis" and opset < 13) or (shape == "blocks" and opset < 21):
        return
    generator = np.random.default_rng(opset)
    x = (generator.integers(-4000, 4000, (3, 6, 2)) / 64).astype(np.float32)
    scale_shape = {"tensor": (), "axis": (6,), "blocks": (3, 3, 2)}[shape]
    scale = (2.0 ** generator.integers(-2, 3, scale_shape)).astype(np.float32)
    options = {"tensor": {}, "axis": {"axis": 1}, "blocks": {"axis": 1, "block_size": 2}}[shape]
    targets = [name for name, since in QUANTIZED.items() if since <= opset]
    nodes, outputs, inputs = [], [], {"x": x, "s": scale}
    for target in targets:
        zero = f"zero_{target}"
        inputs[zero] = np.full(scale_shape, 1 if "int" in target and "float" not in target else 0).astype(dtype_of(target))
        nodes.append(helper.make_node("QuantizeLinear", ["x", "s", zero], [f"q_{target}"], **options))
        nodes.append(helper.make_node("DequantizeLinear", [f"q_{target}", "s", zero], [f"d_{target}"], **options))
        outputs += [value(f"q_{target}", target), value(f"d_{target}", "float32")]
    given = [value(name, str(array.dtype), list(array.shape)) for name, array in inputs.items()]
    known = make_model(nodes, given, outputs, max(opset, 19))  # the reference has no older versions, which say the same
    assert_as_the_reference(known, inputs, run_model(make_model(nodes, given, outputs, opset), inputs))
