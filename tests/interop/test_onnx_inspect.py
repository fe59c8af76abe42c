# SPDX-License-Identifier: Apache-2.0
"""`tcast inspect` of ONNX models: their initializers."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def graph(nodes, initializers, outputs, **more):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    return helper.make_graph(nodes, "g", [], values, initializers, **more)


def save(folder, initializers, sparse=(), **options):
    inner = graph([helper.make_node("Identity", ["w"], ["o"])], [numpy_helper.from_array(np.ones(3, np.float32), "w")], ["o"])
    other = graph([helper.make_node("Identity", ["first"], ["p"])], [], ["p"])
    branch = helper.make_node("If", ["which"], ["y"], "choose", then_branch=inner, else_branch=other)
    model = helper.make_model(graph([branch], initializers, ["y"], sparse_initializer=sparse))
    onnx.save(model, folder / "m.onnx", **options)


def inspected(run_tcast, *arguments):
    done = run_tcast("inspect", "m.onnx", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["format"] == "onnx model"
    return said["tensors"]


INITIALIZERS = [
    numpy_helper.from_array(np.zeros((64, 8), np.float32), "first"),
    numpy_helper.from_array(np.array(True), "which"),
    helper.make_tensor("half", TensorProto.FLOAT16, [2], [1.0, 2.0]),
    helper.make_tensor("nibbles", TensorProto.INT4, [3], [1, -2, 3]),
    numpy_helper.from_array(np.array(["a", "bcd"], object), "texts"),
    numpy_helper.from_array(np.zeros(2, np.complex64), "complex"),
]


def test_lists_initializers(run_tcast, tmp_path):
    values = numpy_helper.from_array(np.float32([1, 2]), "few")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.int64([3, 70])), [10, 20])
    save(tmp_path, INITIALIZERS, [sparse])
    assert inspected(run_tcast) == [
        {"name": "first", "dtype": "float32", "shape": [64, 8], "bytes": 2048},
        {"name": "which", "dtype": "bool", "shape": [], "bytes": 1},
        {"name": "half", "dtype": "float16", "shape": [2], "bytes": 4},
        {"name": "nibbles", "dtype": "int4", "shape": [3], "bytes": 2},
        {"name": "texts", "dtype": "string", "shape": [2], "bytes": 4},
        {"name": "complex", "dtype": "complex64", "shape": [2], "bytes": 16, "problem": "no type of tensorcast"},
        {"name": "few", "dtype": "float32", "shape": [10, 20], "bytes": 8, "problem": "sparse, 2 elements are stored"},
        {"name": "choose.then_branch/w", "dtype": "float32", "shape": [3], "bytes": 12},
    ]
    assert [tensor["name"] for tensor in inspected(run_tcast, "--include", "^h|/w$")] == ["half", "choose.then_branch/w"]
    assert "onnx model: 8 tensors, " in run_tcast("inspect", "m.onnx").stdout


def test_many_are_summed_up_by_type(run_tcast, tmp_path):
    many = [numpy_helper.from_array(np.float64([number]), f"n{number}") for number in range(50)]
    save(tmp_path, INITIALIZERS[:2] + many)
    rows = [line.split() for line in run_tcast("inspect", "m.onnx").stdout.splitlines()]
    assert ["float64", "50", "400"] in rows and ["float32", "2", "2,060"] in rows


def test_external_data(run_tcast, tmp_path):
    save(tmp_path, INITIALIZERS[:2], save_as_external_data=True, location="m.data", size_threshold=0)
    first = {"name": "first", "dtype": "float32", "shape": [64, 8], "bytes": 2048}
    assert inspected(run_tcast)[0] == first
    (tmp_path / "m.data").write_bytes(b"short")
    assert "the shape needs 2048" in inspected(run_tcast)[0]["problem"]
    (tmp_path / "m.data").unlink()
    listed = inspected(run_tcast)[0]
    assert "m.data" in listed.pop("problem") and listed == first


def test_refused(run_tcast, tmp_path):
    save(tmp_path, INITIALIZERS)
    converted = run_tcast("convert", "m.onnx", "-o", "o.npz", "--to", "float16")
    assert converted.returncode == 1 and "`tcast onnx convert`" in converted.stderr
    (tmp_path / "m.onnx").write_bytes((tmp_path / "m.onnx").read_bytes()[:-5])
    cut = run_tcast("inspect", "m.onnx")
    assert cut.returncode == 1 and cut.stderr.startswith("tcast: error: m.onnx: ") and cut.stdout == ""


def constants(scale=1.0, more=0, text="text"):
    """Constants of every kind, in the main graph and in a branch."""
    def constant(name, **value):
        return helper.make_node("Constant", [], [name], **value)

    values = numpy_helper.from_array(np.float32([1, 2]) * np.float32(scale), "")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.int64([3, 70])), [10, 20])
    numbers = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3) * np.float32(scale))
    inner = graph([constant("w", value=numbers), helper.make_node("Identity", ["w"], ["o"])], [], ["o"])
    other = graph([constant("p", value_float=0.5 * scale)], [], ["p"])
    branch = helper.make_node("If", ["which"], ["y"], "choose", then_branch=inner, else_branch=other)
    nodes = [constant("which", value=numpy_helper.from_array(np.array(True))), constant("a", value=numbers),
             constant("b", value_floats=[1.5 * scale, 2.5]), constant("c", value_ints=[*range(20), more]), constant("d", value_int=7),
             constant("e", sparse_value=sparse), constant("f", value_string=text), constant("g", value_strings=["", text]), branch]  # fmt: skip
    return helper.make_model(graph(nodes, [], ["y"]))


def test_lists_constants(run_tcast, tmp_path):
    onnx.save(constants(), tmp_path / "m.onnx")
    assert inspected(run_tcast) == [
        {"name": "which", "dtype": "bool", "shape": [], "bytes": 1},
        {"name": "a", "dtype": "float32", "shape": [2, 3], "bytes": 24},
        {"name": "b", "dtype": "float32", "shape": [2], "bytes": 8},
        {"name": "c", "dtype": "int64", "shape": [21], "bytes": 168},
        {"name": "d", "dtype": "int64", "shape": [], "bytes": 8},
        {"name": "e", "dtype": "float32", "shape": [10, 20], "bytes": 8, "problem": "sparse, 2 elements are stored"},
        {"name": "f", "dtype": "string", "shape": [], "bytes": 4},
        {"name": "g", "dtype": "string", "shape": [2], "bytes": 4},
        {"name": "choose.else_branch/p", "dtype": "float32", "shape": [], "bytes": 4},
        {"name": "choose.then_branch/w", "dtype": "float32", "shape": [2, 3], "bytes": 24},
    ]


def test_diff_compares_constants(run_tcast, tmp_path):
    onnx.save(constants(), tmp_path / "a.onnx")
    onnx.save(constants(), tmp_path / "same.onnx")
    onnx.save(constants(1.25, more=1, text="tex"), tmp_path / "b.onnx")
    assert run_tcast("onnx", "diff", "a.onnx", "same.onnx").returncode == 0
    done = run_tcast("onnx", "diff", "a.onnx", "b.onnx", "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    different = {each["name"] for each in said["initializers"] if not each["equal"]}
    assert different == {"a", "b", "c", "e", "f", "g", "choose.then_branch/w", "choose.else_branch/p"} and not said["equal"]


def test_diff_compares_text_and_sparse_tensors(run_tcast, tmp_path):
    def save(name, text="a", number=1.0, place=3):
        values = numpy_helper.from_array(np.float32([number, 2]), "e")
        places = numpy_helper.from_array(np.int64([place, 7]), "places")
        node = helper.make_node("Constant", [], ["y"], sparse_value=helper.make_sparse_tensor(values, places, [10]))
        graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", 1, [10])],
                                  [helper.make_tensor("text", onnx.TensorProto.STRING, [2], [text.encode(), b"b"])])  # fmt: skip
        onnx.save(helper.make_model(graph), tmp_path / name)

    save("a.onnx")
    for changed, name in [({}, None), ({"text": "c"}, "text"), ({"number": 1.5}, "y"), ({"place": 4}, "y")]:
        save("b.onnx", **changed)
        done = run_tcast("onnx", "diff", "a.onnx", "b.onnx", "--json")
        said = json.loads(done.stdout)
        assert [each["name"] for each in said["initializers"] if not each["equal"]] == ([name] if name else [])
        assert done.returncode == (1 if name else 0) and said["equal"] == (name is None)
