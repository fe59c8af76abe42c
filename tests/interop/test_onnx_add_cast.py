# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx add-cast`: the new models pass ONNX's checker, load in ONNX Runtime, and differ in nothing else."""

import json
import resource
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from array_files import assert_same
from onnx import TensorProto, helper, numpy_helper

F32, F16, I8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8
NUMPY = {F32: np.float32, F16: np.float16, I8: np.int8, TensorProto.INT64: np.int64, TensorProto.DOUBLE: np.float64}


def value(name, dtype, shape=(None,)):
    return helper.make_tensor_value_info(name, dtype, shape)


def make_model(nodes, inputs, outputs, opset=21, initializers=(), **graph_parts):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializer=list(initializers), **graph_parts)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.fixture
def add_cast(run_tcast, tmp_path):
    """add_cast(model, tensor, to) gives the new model, which is valid, and what the command said of it."""

    def run(model, tensor, to, *arguments, check=True, full_check=True):
        onnx.save(model, tmp_path / "model.onnx")
        done = run_tcast("onnx", "add-cast", "model.onnx", "--tensor", tensor, "--to", to, "-o", "out.onnx", "--force",
                         "--json", *arguments)
        assert done.returncode == 0, done.stderr
        if check:
            onnx.checker.check_model(str(tmp_path / "out.onnx"), full_check=full_check)
        return onnx.load(tmp_path / "out.onnx"), json.loads(done.stdout)

    return run


@pytest.fixture
def refuse(run_tcast, tmp_path):
    def run(model, *arguments, output="out.onnx"):
        if model is not None:
            onnx.save(model, tmp_path / "model.onnx")
        (tmp_path / output).unlink(missing_ok=True)
        done = run_tcast("onnx", "add-cast", "model.onnx", *arguments, "-o", output)
        assert done.returncode == 1, done.stdout
        assert not (tmp_path / output).exists()
        assert done.stderr.startswith("tcast: error: model.onnx: ")
        return done.stderr

    return run


def run_session(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    path = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


X = np.array([0.1, -1.7, 3.3], np.float32)


def test_behind_an_input(add_cast):
    # All consumers of x take its type for what they give back, so that the whole model becomes float16.
    model = make_model([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Shape", ["x"], ["y"])],
                       [value("x", F32)], [value("y", TensorProto.INT64, [1])])
    changed, said = add_cast(model, "x", "float16")
    assert said == {"input": "model.onnx", "output": "out.onnx", "tensor": "x", "to": "float16", "node_name": "Cast_x_float16",
                    "output_name": "x_float16", "rewired": 2, "graph_output_renamed": False}
    assert [node.op_type for node in changed.graph.node] == ["Cast", "Relu", "Shape"]
    assert changed.graph.input == model.graph.input
    assert changed.graph.node[1].input == ["x_float16"]
    assert run_session(changed, {"x": X})[0].tolist() == [3]


def test_behind_an_initializer(add_cast):
    weight = np.array([0.1, 2, 1000], np.float32)
    model = make_model([helper.make_node("Cast", ["x"], ["low"], to=F16), helper.make_node("Identity", ["w"], ["i"]),
                        helper.make_node("CastLike", ["w", "low"], ["c"]),
                        helper.make_node("Cast", ["i"], ["y"], to=F32), helper.make_node("Cast", ["c"], ["z"], to=F32)],
                       [value("x", F32)], [value("y", F32), value("z", F32)],
                       initializers=[numpy_helper.from_array(weight, "w")])
    changed, said = add_cast(model, "w", "float16", "--name", "to half", "--output-name", "w/16")
    assert (said["node_name"], said["output_name"], said["rewired"]) == ("to half", "w/16", 2)
    assert changed.graph.initializer == model.graph.initializer
    outputs = run_session(changed, {"x": X})
    for output in outputs:
        assert_same(output, weight.astype(np.float16).astype(np.float32))


def test_behind_the_output_of_a_node_in_the_middle(add_cast):
    model = make_model([helper.make_node("Relu", ["x"], ["a"], name="first"), helper.make_node("Size", ["a"], ["b"]),
                        helper.make_node("Shape", ["a"], ["c"]), helper.make_node("Neg", ["x"], ["d"])],
                       [value("x", F32)], [value("b", TensorProto.INT64, []), value("c", TensorProto.INT64, [1]), value("d", F32)])
    changed, said = add_cast(model, "a", "int8")
    assert [node.op_type for node in changed.graph.node] == ["Relu", "Cast", "Size", "Shape", "Neg"]
    assert said["rewired"] == 2
    assert changed.graph.output == model.graph.output
    run_session(changed, {"x": X})


@pytest.mark.parametrize("to, dtype", [("float16", F16), ("int8", I8), ("float64", TensorProto.DOUBLE)])
def test_behind_an_output_of_the_model(add_cast, to, dtype):
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", F32)], [value("y", F32, [None])])
    changed, said = add_cast(model, "y", to)
    assert said["graph_output_renamed"] and said["rewired"] == 0
    assert changed.graph.output == [value("y_" + to, dtype, [None])]
    assert_same(run_session(changed, {"x": X})[0], (-X).astype(NUMPY[dtype]))


def test_output_and_consumers_at_once_and_a_second_cast_behind_the_first(add_cast):
    model = make_model([helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Size", ["y"], ["z"])], [value("x", F32)],
                       [value("y", F32), value("z", TensorProto.INT64, [])])
    changed, said = add_cast(model, "y", "float16")
    assert said["graph_output_renamed"] and said["rewired"] == 1
    again, said = add_cast(changed, "y_float16", "float32", "--output-name", "y_again")
    assert [node.op_type for node in again.graph.node] == ["Neg", "Cast", "Cast", "Size"]
    assert [output.name for output in again.graph.output] == ["y_again", "z"]
    assert_same(run_session(again, {"x": X})[0], (-X).astype(np.float16).astype(np.float32))


def branches(then_nodes, else_nodes, name="r", dtype=TensorProto.INT64, shape=(1,)):
    return {f"{kind}_branch": helper.make_graph(nodes, kind, [], [value(f"{kind}_{name}", dtype, shape)])
            for kind, nodes in [("then", then_nodes), ("else", else_nodes)]}


def test_subgraphs_that_capture_the_value(add_cast):
    inner = branches([helper.make_node("Shape", ["a"], ["then_i"])], [helper.make_node("Shape", ["x"], ["else_i"])], "i")
    outer = branches([helper.make_node("Shape", ["a"], ["then_r"])],
                     [helper.make_node("If", ["c"], ["else_r"], **inner)])
    model = make_model([helper.make_node("Neg", ["x"], ["a"]), helper.make_node("If", ["c"], ["y"], **outer)],
                       [value("x", F32), value("c", TensorProto.BOOL, [])], [value("y", TensorProto.INT64, [1])])
    changed, said = add_cast(model, "a", "bfloat16")
    assert said["rewired"] == 2
    assert [node.op_type for node in changed.graph.node] == ["Neg", "Cast", "If"]
    for condition in [True, False]:
        assert run_session(changed, {"x": X, "c": np.array(condition)})[0].tolist() == [3]


def test_a_value_inside_a_subgraph(add_cast):
    parts = branches([helper.make_node("Neg", ["x"], ["deep"]), helper.make_node("Shape", ["deep"], ["then_r"])],
                     [helper.make_node("Shape", ["x"], ["else_r"])])
    model = make_model([helper.make_node("If", ["c"], ["y"], **parts)], [value("x", F32), value("c", TensorProto.BOOL, [])],
                       [value("y", TensorProto.INT64, [1])])
    changed, _ = add_cast(model, "deep", "float16")
    assert [node.op_type for node in changed.graph.node] == ["If"]
    then_branch = next(item.g for item in changed.graph.node[0].attribute if item.name == "then_branch")
    assert [node.op_type for node in then_branch.node] == ["Neg", "Cast", "Shape"]
    assert run_session(changed, {"x": X, "c": np.array(True)})[0].tolist() == [3]


def test_a_subgraph_that_hides_the_value_is_left_alone(add_cast):
    body = helper.make_graph([helper.make_node("Identity", ["keep"], ["more"]), helper.make_node("Neg", ["s"], ["s_out"])],
                             "body", [value("i", TensorProto.INT64, []), value("keep", TensorProto.BOOL, []), value("s", F32, [3])],
                             [value("more", TensorProto.BOOL, []), value("s_out", F32, [3])])
    model = make_model([helper.make_node("Shape", ["s"], ["n"]),
                        helper.make_node("Loop", ["", "c", "x"], ["y"], body=body)],
                       [value("x", F32, [3]), value("c", TensorProto.BOOL, []), value("s", F32, [3])],
                       [value("n", TensorProto.INT64, [1])])
    # ONNX forbids names that hide others, but such models exist.
    changed, said = add_cast(model, "s", "float16", check=False)
    assert said["rewired"] == 1
    assert changed.graph.node[-1].attribute[0].g == body


def test_functions_are_not_touched(add_cast):
    function = helper.make_function("my", "F", ["x"], ["y"], [helper.make_node("Shape", ["x"], ["y"])],
                                    [helper.make_opsetid("", 21)])
    model = make_model([helper.make_node("F", ["x"], ["y"], domain="my")], [value("x", F32)],
                       [value("y", TensorProto.INT64, [1])])
    model.opset_import.append(helper.make_opsetid("my", 1))
    model.functions.append(function)
    changed, said = add_cast(model, "x", "float16")
    assert said["rewired"] == 1
    assert changed.functions == model.functions
    assert run_session(changed, {"x": X})[0].tolist() == [3]


@pytest.mark.parametrize("length", [100, 127, 128, 16_000, 70_000])
def test_everything_else_is_the_same_byte_for_byte(add_cast, tmp_path, length):
    """Removing what was added gives the old file back, whatever the sizes of the lengths that changed."""
    weight = numpy_helper.from_array(np.zeros(length, np.uint8), "w")
    model = make_model([helper.make_node("Neg", ["x"], ["a"], doc_string="d" * 90), helper.make_node("Size", ["a"], ["y"]),
                        helper.make_node("Size", ["w"], ["z"])], [value("x", F32)],
                       [value("y", TensorProto.INT64, []), value("z", TensorProto.INT64, [])], initializers=[weight],
                       value_info=[value("a", F32)])
    model.metadata_props.add(key="key", value="text")
    text = model.SerializeToString()
    unknown = b"\xfa\x3f\x03abc" + b"\xf8\x3f\x05"  # fields of a version to come
    model = onnx.load_from_string(text + unknown)
    changed, _ = add_cast(model, "a", "float16")
    assert (tmp_path / "out.onnx").read_bytes().endswith(unknown)
    assert changed.graph.node[1].op_type == "Cast"
    del changed.graph.node[1]
    changed.graph.node[1].input[0] = "a"
    assert changed.SerializeToString() == model.SerializeToString()
    assert (tmp_path / "model.onnx").read_bytes() == text + unknown


def test_external_data_stays_where_it_is(run_tcast, tmp_path):
    weight = np.arange(1000, dtype=np.float32)
    model = make_model([helper.make_node("Neg", ["w"], ["y"])], [], [value("y", F32)],
                       initializers=[numpy_helper.from_array(weight, "w")])
    (tmp_path / "model").mkdir()
    onnx.save(model, tmp_path / "model/m.onnx", save_as_external_data=True, location="w.bin", size_threshold=100)
    data = (tmp_path / "model/w.bin").read_bytes()

    done = run_tcast("onnx", "add-cast", "model/m.onnx", "--tensor", "y", "--to", "f16", "-o", "elsewhere.onnx")
    assert done.returncode == 1
    assert "external data" in done.stderr and "hint: write the new model into model" in done.stderr
    assert not (tmp_path / "elsewhere.onnx").exists()

    done = run_tcast("onnx", "add-cast", "model/m.onnx", "--tensor", "y", "--to", "f16", "-o", "model/new.onnx")
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(tmp_path / "model/new.onnx"), full_check=True)
    assert_same(run_session(str(tmp_path / "model/new.onnx"), {})[0], (-weight).astype(np.float16))
    assert (tmp_path / "model/w.bin").read_bytes() == data


def test_in_place(run_tcast, tmp_path):
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", F32)], [value("y", F32)])
    onnx.save(model, tmp_path / "m.onnx")
    before = (tmp_path / "m.onnx").read_bytes()
    command = ["onnx", "add-cast", "m.onnx", "--tensor", "y", "--to", "f16", "-o", "m.onnx"]
    done = run_tcast(*command)
    assert done.returncode == 1 and (tmp_path / "m.onnx").read_bytes() == before
    done = run_tcast(*command, "--force")
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    # A failing edit leaves the model as it was.
    after = (tmp_path / "m.onnx").read_bytes()
    assert run_tcast(*command[:4], "nothing", *command[5:], "--force").returncode == 1
    assert (tmp_path / "m.onnx").read_bytes() == after


def test_made_names_avoid_those_that_are_taken(add_cast):
    model = make_model([helper.make_node("Neg", ["x"], ["x_float16"], name="Cast_x_float16"),
                        helper.make_node("Size", ["x"], ["x_float16_2"], name="Cast_x_float16_2"),
                        helper.make_node("Size", ["x_float16"], ["y"])],
                       [value("x", F32)], [value("x_float16_2", TensorProto.INT64, []), value("y", TensorProto.INT64, [])])
    _, said = add_cast(model, "x", "float16")
    assert (said["node_name"], said["output_name"]) == ("Cast_x_float16_3", "x_float16_3")


def test_opset_rules(add_cast, refuse):
    def model(opset, dtype=F32):
        return make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", F32)], [value("y", dtype)], opset=opset)

    assert "came with opset 13, but the model has opset 12" in refuse(model(12), "--tensor", "y", "--to", "bfloat16")
    add_cast(model(13), "y", "bfloat16")
    assert "opset 19" in refuse(model(18), "--tensor", "y", "--to", "e4m3fn")
    changed, _ = add_cast(model(19), "y", "e4m3fn", "--no-saturate")
    assert {item.name: item.i for item in changed.graph.node[1].attribute} == {"to": TensorProto.FLOAT8E4M3FN, "saturate": 0}
    assert '"saturate"' in refuse(model(13), "--tensor", "y", "--to", "f16", "--no-saturate")
    changed, _ = add_cast(model(6), "y", "float16")
    assert changed.graph.node[1].attribute[0].i == F16
    changed, _ = add_cast(model(1), "y", "float64", full_check=False)
    assert changed.graph.node[1].attribute[0].s == b"DOUBLE"
    changed, _ = add_cast(model(21), "y", "string")
    assert changed.graph.output[0].type.tensor_type.elem_type == TensorProto.STRING


def test_refusals(refuse, run_tcast, tmp_path):
    parts = branches([helper.make_node("Identity", ["x"], ["then_r"])], [helper.make_node("Neg", ["x"], ["else_r"])],
                     dtype=F32, shape=(None,))
    model = make_model([helper.make_node("Neg", ["x"], ["a"], name="n"), helper.make_node("Neg", ["a"], ["b"]),
                        helper.make_node("If", ["c"], ["y"], **parts)], [value("x", F32), value("c", TensorProto.BOOL, [])],
                       [value("y", F32)])
    assert 'tensor "nothing": the model has no such tensor' in refuse(model, "--tensor", "nothing", "--to", "f16")
    assert "nothing takes the value" in refuse(model, "--tensor", "b", "--to", "f16")
    assert "output of a subgraph" in refuse(model, "--tensor", "then_r", "--to", "f16")
    assert 'has a value "b" already' in refuse(model, "--tensor", "a", "--to", "f16", "--output-name", "b")
    assert 'has a value "then_r" already' in refuse(model, "--tensor", "a", "--to", "f16", "--output-name", "then_r")
    assert 'has a node "n" already' in refuse(model, "--tensor", "a", "--to", "f16", "--name", "n")
    model.opset_import[0].domain = "com.acme"
    assert "no version of the standard operators" in refuse(model, "--tensor", "a", "--to", "f16")
    sequence = make_model([helper.make_node("SequenceLength", ["s"], ["y"])],
                          [helper.make_tensor_sequence_value_info("s", F32, None)], [value("y", TensorProto.INT64, [])])
    assert "not a tensor" in refuse(sequence, "--tensor", "s", "--to", "f16")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    assert "malformed protobuf" in refuse(None, "--tensor", "x", "--to", "f16")
    assert run_tcast("onnx", "add-cast", "model.onnx", "--tensor", "x", "--to", "float17", "-o", "o").returncode == 2


def test_a_large_model_takes_little_memory(run_tcast, tmp_path, tcast):
    """Weights inside the model are copied in blocks."""
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", F32)], [value("y", F32)])
    text = model.SerializeToString()
    size = 256 << 20
    # An unknown field of the model, which is as large as weights are.
    head, n = b"\xfa\x3f", size
    while n > 127:
        head += bytes([n & 127 | 128])
        n >>= 7
    with open(tmp_path / "m.onnx", "wb") as file:
        file.write(text + head + bytes([n]))
        file.truncate(len(text) + len(head) + 1 + size)

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (128 << 20, 128 << 20))

    done = subprocess.run([tcast, "onnx", "add-cast", "m.onnx", "--tensor", "y", "--to", "f16", "-o", "o.onnx"], cwd=tmp_path,
                          preexec_fn=limit, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o.onnx").stat().st_size > size
