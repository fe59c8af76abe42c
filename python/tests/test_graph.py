# SPDX-License-Identifier: Apache-2.0
"""Graphs built in Python, and models loaded from files."""

import ast
import gc
import json
import pathlib
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import onnx
import pytest
from arrays import BITS, ONNX_TYPES, codes, samples
from onnx import TensorProto, helper

import tensorcast as tc
from tensorcast import CastError, _core


def one_cast(to, dtype=None, **options):
    graph = tc.graph.Graph()
    graph.output(graph.cast(graph.input("x", dtype), to, output="y", **options))
    return graph.compile()


def test_the_example():
    graph = tc.graph.Graph("example")
    x = graph.input("x", "float32", [None, 2])
    graph.output(graph.cast(x, "float8_e4m3fn", output="y"))
    program = graph.compile()
    y = program.run({"x": np.float32([[0.1, 1000]])})["y"]
    assert y.dtype == ml_dtypes.float8_e4m3fn and y.tolist() == [[0.1015625, 448]]
    assert program.inputs == [("x", "float32", (None, 2), False)]
    assert program.outputs == [("y", "float8_e4m3fn", (None, 2), False)]
    assert repr(program) == "Program(inputs=['x'], outputs=['y'])"


@pytest.mark.parametrize("to", ONNX_TYPES)
@pytest.mark.parametrize("source", ONNX_TYPES)
def test_a_program_gives_what_cast_gives(source, to):
    array = samples(source)
    expected = tc.cast(array, to)
    result = one_cast(to).run({"x": array})["y"]
    assert result.dtype == expected.dtype and np.array_equal(codes(result), codes(expected))


def test_chains_of_casts_give_what_casts_give():
    """Fused or not: all pairs behind all types of 16 bits or fewer."""
    for source in ONNX_TYPES:
        if BITS[source] > 16:
            continue
        array = samples(source)
        graph = tc.graph.Graph()
        x = graph.input("x", source)
        for middle in ONNX_TYPES:
            for to in ONNX_TYPES:
                # Each chain has a middle of its own, which nobody else uses.
                graph.output(graph.cast(graph.cast(x, middle), to, output=f"{middle} {to}"))
        results = graph.compile().run({"x": array})
        middles = {middle: tc.cast(array, middle) for middle in ONNX_TYPES}
        for name, result in results.items():
            middle, to = name.split()
            expected = tc.cast(middles[middle], to)
            assert result.dtype == expected.dtype and np.array_equal(codes(result), codes(expected)), (source, name)


def test_nodes_may_stand_in_any_order():
    graph = tc.graph.Graph()
    graph.output("y")
    graph.cast("half", "string", output="y")
    graph.cast("x", "float16", output="half")
    graph.input("x", "float32")
    assert graph.compile().run({"x": np.float32([[1.5], [70000]])})["y"].tolist() == [["1.5"], ["INF"]]


def test_text_in_and_out():
    program = one_cast("float32")
    assert program.run({"x": np.array([["1e3", "nan"]], object)})["y"].shape == (1, 2)
    assert program.run({"x": np.array("2.5")})["y"].shape == ()
    with pytest.raises(CastError, match='element 1: node 0 \\(Cast of "y"\\): "x" is not a number') as failure:
        program.run({"x": np.array(["1", "x"])})
    assert failure.value.index == 1 and failure.value.code == "parse"


def test_like_promote_identity_and_constant():
    graph = tc.graph.Graph()
    x = graph.input("x", "float32")
    t = graph.constant(np.int8([]), name="type")
    like = graph.cast_like(x, t, out_of_range="saturate")
    a, b = graph.convert_promote_types(like, graph.constant(np.int16([7])), outputs=("a", "b"))
    assert (like, a, b) == ("cast_like", "a", "b")
    for value in (a, b, graph.identity(x), t):
        graph.output(value)
    results = graph.compile().run({"x": np.float32([1.9, 300])})
    assert list(results) == ["a", "b", "identity", "type"]
    assert results["a"].dtype == np.int16 and results["a"].tolist() == [1, 127]
    assert results["b"].dtype == np.int16 and results["b"].tolist() == [7]
    graph = tc.graph.Graph()
    graph.convert_promote_types(graph.input("i", "int64"), graph.input("h", "float16"), name="p")
    with pytest.raises(CastError, match='node "p" .*: float16 cannot hold int64 safely.*promote_unsafe'):
        graph.compile()


def test_what_does_not_change_is_not_copied():
    graph = tc.graph.Graph()
    x = graph.input("x")
    for name, value in (("same", graph.cast(x, "float32")), ("other", graph.identity(x)), ("x", x)):
        graph.output(value if name == "x" else graph.identity(value, output=name))
    array = np.float32([[1, 2], [3, 4]])
    results = graph.compile().run({"x": array})
    assert all(results[name] is array for name in ("same", "other", "x"))
    column = array[:, 0]  # not contiguous: what comes back is memory of its own
    assert graph.compile().run({"x": column})["same"].tolist() == [1, 3]


def test_constants_cannot_be_written_through_results():
    graph = tc.graph.Graph()
    value = np.float32([1, 2])
    graph.output(graph.constant(value, output="k"))
    program = graph.compile()
    result = program.run()["k"]
    assert np.shares_memory(result, value) and not result.flags.writeable
    assert one_cast("float16").run({"x": value})["y"].flags.writeable


def test_inputs_live_as_long_as_they_must():
    value = np.zeros(1000, np.float32)
    gone = weakref.ref(value)
    graph = tc.graph.Graph()
    graph.output(graph.constant(value, output="k"))
    program = graph.compile()
    result = program.run()["k"]
    del value, graph, program
    gc.collect()
    assert gone() is not None and result.sum() == 0
    del result
    gc.collect()
    assert gone() is None


def test_defaults():
    graph = tc.graph.Graph()
    graph.output(graph.cast(graph.input("x", "int4", default=np.array([1, -2, 3], ml_dtypes.int4)), "int8", output="y"))
    program = graph.compile()
    assert program.inputs[0].optional
    assert program.run()["y"].tolist() == [1, -2, 3]
    assert program.run({"x": np.array([5], ml_dtypes.int4)})["y"].tolist() == [5]


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    graph = tc.graph.Graph()
    x = graph.input("x")
    graph.output(graph.cast(x, "float8_e5m2", output="y"))
    graph.output(x)
    program = graph.compile()
    tensor = torch.tensor([[1.0, 1e9]], dtype=torch.bfloat16, requires_grad=True)
    results = program.run({"x": tensor})
    assert results["x"] is tensor
    assert results["y"].dtype == torch.float8_e5m2 and results["y"].float().tolist() == [[1, 57344]]
    assert one_cast("float32").run({"x": torch.ones(4, 3).T[::2]})["y"].shape == (2, 4)
    assert one_cast("bool").run({"x": torch.empty(0, 3)})["y"].shape == (0, 3)
    assert one_cast("float4_e2m1fn").run({"x": torch.tensor([0.5, 6.0])})["y"].dtype == torch.float4_e2m1fn_x2
    assert one_cast("string").run({"x": torch.ones(1)})["y"].tolist() == ["1.0"]
    with pytest.raises(TypeError, match="no int4"):
        one_cast("int4").run({"x": torch.ones(1)})
    with pytest.raises(TypeError, match="no cast knows torch.complex64"):
        one_cast("int8").run({"x": torch.ones(1, dtype=torch.complex64)})


def test_bad_graphs():
    graph = tc.graph.Graph()
    graph.output(graph.cast("nowhere", "int8", name="c"))
    with pytest.raises(CastError, match='node "c" \\(Cast\\): its input "nowhere" is neither'):
        graph.compile()
    graph = tc.graph.Graph()
    graph.identity("b", name="one", output="a")
    graph.output(graph.identity("a", name="two", output="b"))
    with pytest.raises(CastError, match="in a cycle"):
        graph.compile()
    graph = tc.graph.Graph()
    graph.input("x")
    graph.input("x")
    with pytest.raises(CastError, match='input "x": it is defined twice'):
        graph.compile()
    with pytest.raises(CastError, match="int2 is a type of Cast since opset 25; opset 21") as failure:
        one_cast("int2", opset=21)
    assert failure.value.code == "unsupported"
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        one_cast("int8", nonsense=1)
    graph = tc.graph.Graph()
    graph.output(graph.cast(graph.input("x", shape=[2]), "int8"), "int16")
    with pytest.raises(CastError, match="int8 \\[2\\] is not int16"):
        graph.compile()


def test_bad_runs():
    graph = tc.graph.Graph()
    graph.output(graph.cast(graph.input("x", "float32", [None, 2]), "int8", output="y"))
    program = graph.compile()
    good = np.zeros((3, 2), np.float32)
    for inputs, words in [
        ({}, 'input "x" is missing'),
        ({"x": good, "z": good}, 'the graph has no input "z"; its inputs are "x"'),
        ({"x": good[0]}, 'input "x": float32 \\[2\\] is not float32 \\[\\?, 2\\]'),
        ({"x": good.astype(np.float64)}, "float64 \\[3, 2\\] is not float32"),
    ]:
        with pytest.raises(CastError, match=words):
            program.run(inputs)
    with pytest.raises(TypeError, match="a list has no dtype"):
        program.run({"x": [1.0, 2.0]})
    with pytest.raises(CastError, match="threads"):
        program.run({"x": good}, threads=-1)
    with pytest.raises(TypeError, match="masked array"):
        program.run({"x": np.ma.masked_array(good)})


def test_threads_may_share_a_program():
    graph = tc.graph.Graph()
    half = graph.cast(graph.input("x", "float32"), "float16")
    graph.output(graph.cast(graph.cast(half, "int32"), "float64", output="y"))
    program = graph.compile()
    failures = []

    def work(start):
        for i in range(30):
            array = np.full(40000, (start + i) % 2000, np.float32)
            if not np.array_equal(program.run({"x": array}, threads=1 + i % 2)["y"], array):
                failures.append((start, i))

    threads = [threading.Thread(target=work, args=(100 * t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_gil_is_released():
    """While one thread converts, another goes on counting."""
    program = one_cast("string")
    array = np.random.default_rng(3).standard_normal(300_000).astype(np.float32)
    counted, done = 0, threading.Event()

    def run():
        program.run({"x": array})
        done.set()

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        while not done.is_set():
            counted += 1
        thread.join()
    finally:
        sys.setswitchinterval(old)
    assert counted > 100


def onnx_model(path, to, opset=21, shape=("n",)):
    node = helper.make_node("Cast", ["x"], ["y"], name="c", to=to)
    graph = helper.make_graph(
        [node],
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", to, shape)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    return path


def test_load_model(tmp_path):
    program = tc.load_model(onnx_model(tmp_path / "m.onnx", TensorProto.INT4))
    assert program.format == "onnx" and program.name == "model"
    assert program.inputs == [("x", "float32", (None,), False)]
    assert program.run({"x": np.float32([100, -3])})["y"].tolist() == [7, -3]  # opset 21 saturates
    assert tc.graph.load_model is tc.load_model


def test_load_model_of_openvino(tmp_path):
    (tmp_path / "m.xml").write_text(
        """<?xml version="1.0"?>
<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
<output><port id="0" precision="FP32" names="x"><dim>2</dim></port></output></layer>
<layer id="1" name="c" type="Convert" version="opset1"><data destination_type="i8"/>
<input><port id="0" precision="FP32"><dim>2</dim></port></input>
<output><port id="1" precision="I8" names="y"><dim>2</dim></port></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0" precision="I8"><dim>2</dim></port></input>
</layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""
    )
    program = tc.load_model(tmp_path / "m.xml")
    assert program.format == "openvino_ir"
    (result,) = program.run({program.inputs[0].name: np.float32([1.9, -3.9])}).values()
    assert result.dtype == np.int8 and result.tolist() == [1, -3]


def test_load_model_of_mdf(tmp_path):
    port = {"out": {"value": "cast_1"}}
    parameters = {"to": {"value": 1}, "cast_1": {"function": "onnx::Cast", "args": {"input": "in"}}}
    node = {"input_ports": {"in": {"type": "int64"}}, "parameters": parameters, "output_ports": port}
    graph = {"nodes": {"n": node}, "edges": {}}
    (tmp_path / "m.json").write_text(json.dumps({"m": {"format": "ModECI MDF v0.4", "graphs": {"g": graph}}}))
    dtypes = {}
    for semantics in ("onnx", "mdf_reference"):
        program = tc.load_model(tmp_path / "m.json", semantics=semantics)
        assert program.format == "mdf"
        (result,) = program.run({program.inputs[0].name: np.int64([1, 2])}).values()
        assert result.tolist() == [1, 2]
        dtypes[semantics] = result.dtype
    assert dtypes == {"onnx": np.float32, "mdf_reference": np.float64}  # the reference engine widens results

    del node["input_ports"]["in"]["type"]
    (tmp_path / "m.json").write_text(json.dumps({"m": {"format": "ModECI MDF v0.4", "graphs": {"g": graph}}}))
    with pytest.raises(CastError, match="type of the input"):
        tc.load_model(tmp_path / "m.json", semantics="mdf-reference")
    program = tc.load_model(tmp_path / "m.json", semantics="mdf_reference", input_types={"in": np.int32})
    assert program.inputs[0].dtype == "int32"
    assert program.run({"in": np.int32([1, 2])})["out"].dtype == np.float64


def test_models_that_cannot_be_loaded(tmp_path):
    with pytest.raises(CastError) as failure:
        tc.load_model(tmp_path / "absent.onnx")
    assert failure.value.code == "io" and "absent.onnx" in str(failure.value)
    with pytest.raises(CastError, match="m.onnx"):
        tc.load_model(onnx_model(tmp_path / "m.onnx", TensorProto.INT4, opset=19))
    (tmp_path / "x.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(CastError, match="x.onnx"):
        tc.load_model(tmp_path / "x.onnx")
    with pytest.raises(ValueError, match="semantics must be 'onnx' or 'mdf_reference'"):
        tc.load_model(tmp_path / "x.onnx", semantics="mdf")


STUB = ast.parse((pathlib.Path(tc.__file__).parent / "_core.pyi").read_text())


@pytest.mark.parametrize("name", ["Tensor", "Graph", "Program", "CastNode", "CastLikeNode"])
def test_the_stub_has_the_methods(name):
    (stub,) = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == name]
    written = {node.name: [a.arg for a in node.args.args] for node in stub.body}
    built = vars(getattr(_core, name))
    assert {key for key in built if not key.startswith("__")} == set(written) - {"__init__"}
    for key, parameters in written.items():
        if isinstance(built.get(key), property) or (key == "__init__" and "__init__" not in built):
            continue
        signature = (getattr(getattr(_core, name), key).__doc__ or "").splitlines()[0]
        (function,) = ast.parse(f"def {signature}: ...").body
        assert [a.arg for a in function.args.args] == parameters, key
