# SPDX-License-Identifier: Apache-2.0
"""MDF models run by tcast beside modeci_mdf's own engine: every quirk of it under --semantics mdf_reference."""

import json

import numpy as np
import pytest

execution_engine = pytest.importorskip("modeci_mdf.execution_engine")
from modeci_mdf.utils import load_mdf  # noqa: E402


def cast(source, to):
    return {"to": {"value": to}, "onnx_Cast_1": {"function": "onnx::Cast", "args": {"input": source}}}


def node(ports, terms, outputs, **more):
    return {"input_ports": ports, "parameters": terms, "output_ports": outputs} | more


def model(nodes, edges=None, **more):
    return {"m": {"format": "ModECI MDF v0.4", "graphs": {"g": {"nodes": nodes, "edges": edges or {}}}} | more}


def edge(sender, sender_port, receiver, receiver_port, **parameters):
    fields = {"sender": sender, "sender_port": sender_port, "receiver": receiver, "receiver_port": receiver_port}
    return {f"{sender}_{receiver}_{receiver_port}": fields | ({"parameters": parameters} if parameters else {})}


@pytest.fixture
def both(run_tcast, tmp_path, capsys):
    """both(model, inputs) gives what the engine and what tcast make of the one output of the model."""

    def run(tree, inputs=(), semantics="mdf_reference", syntax="json"):
        path = tmp_path / f"model.{syntax}"
        if syntax == "json":
            path.write_text(json.dumps(tree))
        else:
            import yaml

            path.write_text(yaml.safe_dump(tree, sort_keys=False))
        inputs = dict(inputs)
        graph = execution_engine.EvaluableGraph(load_mdf(str(path)).graphs[0])
        graph.evaluate(initializer=inputs)
        (theirs,) = [out.curr_value for end in graph.output_enodes for out in end.evaluable_outputs.values()]

        options = []
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            options += ["--input", f"{name}={name}.npy"]
        result = run_tcast("run", path.name, *options, "--output-dir", "out", "--semantics", semantics, "--force")
        assert result.returncode == 0, result.stderr
        (output,) = (tmp_path / "out").glob("*.npy")
        ours = np.load(output)
        output.unlink()
        return np.asarray(theirs), ours

    return run


def same(theirs, ours):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert ours.tobytes() == theirs.tobytes()


X = {"float32": [1.5, -2.5, 0, 100.25], "float64": [1.5, 16777217.0, -0.1, 0], "int32": [1, -2, 70000, 0],
     "int64": [1, -2, 70000, 0], "int8": [1, -2, 127, 0], "uint8": [1, 2, 255, 0], "bool": [1, 0, 1, 1],
     "float16": [1.5, -2.5, 0, 100.25], "uint16": [1, 2, 65535, 0]}


@pytest.mark.parametrize("syntax", ["json", "yaml"])
@pytest.mark.parametrize("to", [1, 2, 3, 6, 7, 9, 11])
@pytest.mark.parametrize("source", X)
def test_cast_of_every_type(both, source, to, syntax):
    x = np.array(X[source]).astype(source).reshape(2, 2)
    tree = model({"n": node({"x": {"type": source, "shape": [2, 2]}}, cast("x", to), {"y": {"value": "onnx_Cast_1"}})})
    same(*both(tree, {"x": x}, syntax=syntax))


@pytest.mark.parametrize("value", [3, -2.5, [1, 2], [1.5, 2], [[1], [0]], [True, False], ["1.5", "2"], []], ids=repr)
@pytest.mark.parametrize("to", [1, 11])
def test_cast_of_a_parameter(both, value, to):
    tree = model({"n": node({}, cast("p", to) | {"p": {"value": value}}, {"y": {"value": "onnx_Cast_1"}})})
    same(*both(tree))


@pytest.mark.parametrize("to", ["7", 7.0, "onnx"], ids=repr)
def test_where_the_attribute_comes_from(both, to):
    terms = cast("x", to) if to != "onnx" else {"kind": {"value": 7}} | cast("x", "kind")
    tree = model({"n": node({"x": {"type": "float32"}}, terms, {"y": {"value": "onnx_Cast_1"}})})
    same(*both(tree, {"x": np.float32([1.5, -2.5])}))


@pytest.mark.parametrize("weight", [1, 2, -3, 0, 0.5, 0.1, 1.0, -1.7])
@pytest.mark.parametrize("to", [1, 3, 7, 9, 11])
def test_weights_of_edges(both, to, weight):
    tree = model(
        {"b": node({"x": {}}, {}, {"z": {"value": "x"}}),
         "a": node({"x": {"type": "float32"}}, cast("x", to), {"y": {"value": "onnx_Cast_1"}})},
        edge("a", "y", "b", "x", weight=weight))
    same(*both(tree, {"x": np.float32([1.5, -2.5, 0, 100])}))


@pytest.mark.parametrize("source", ["float32", "float16", "int64"])
def test_weights_of_inputs_passed_on(both, source):
    tree = model(
        {"a": node({"x": {"type": source}}, {}, {"y": {"value": "x"}}),
         "b": node({"x": {}}, {}, {"z": {"value": "x"}})},
        edge("a", "y", "b", "x", weight=0.1))
    same(*both(tree, {"x": np.array([1.5, -2.5, 0, 30000]).astype(source)}))


@pytest.mark.parametrize("weight", [2, 0.5])
@pytest.mark.parametrize("value", [3, 1.5])
def test_weights_of_numbers(both, value, weight):
    tree = model({"a": node({}, {"p": {"value": value}}, {"y": {"value": "p"}}),
                  "b": node({"x": {}}, cast("x", 11), {"z": {"value": "onnx_Cast_1"}})},
                 edge("a", "y", "b", "x", weight=weight))
    same(*both(tree))


def test_one_input_for_ports_of_several_nodes(both):
    tree = model(
        {"a": node({"x": {"type": "float32"}}, cast("x", 7), {"y": {"value": "onnx_Cast_1"}}),
         "b": node({"x": {"type": "float32"}, "like": {}},
                   {"c": {"function": "onnx::CastLike", "args": {"input": "x", "target_type": "like"}}},
                   {"z": {"value": "c"}})},
        edge("a", "y", "b", "like"))
    same(*both(tree, {"x": np.float32([1.5, -2.5])}))


@pytest.mark.parametrize("port", [{"default_value": [1.5, 2]}, {"default_value": 1.5},
                                  {"shape": [2], "type": "float32"}], ids=repr)
def test_ports_that_nobody_feeds(both, port):
    tree = model({"n": node({"x": port}, cast("x", 7), {"y": {"value": "onnx_Cast_1"}})})
    same(*both(tree))


def test_functions_of_nodes_and_other_spellings(both):
    x = np.float32([1.5, -2.5])
    function = {"f": {"function": "onnx::Cast", "args": {"input": "x", "to": 7}}}
    same(*both(model({"n": node({"x": {"type": "float32"}}, {}, {"y": {"value": "f"}}, functions=function)}), {"x": x}))
    spelled = {"to": {"value": 7}, "k": {"function": "onnx_ops.cast(input, to)", "args": {"input": "x"}}}
    same(*both(model({"n": node({"x": {"type": "float32"}}, spelled, {"y": {"value": "k"}})}), {"x": x}))
    by_name = {"to": {"value": 7}, "k": {"function": "onnx::Cast", "args": {}}}
    same(*both(model({"n": node({"input": {"type": "float32"}}, by_name, {"y": {"value": "k"}})}), {"input": x}))
    identity = {"k": {"function": "onnx::Identity", "args": {"input": "x"}}}
    same(*both(model({"n": node({"x": {"type": "float64"}}, identity, {"y": {"value": "k"}})}), {"x": np.array([0.1])}))
    constant = {"value": {"value": [2.5, 1]}, "k": {"function": "onnx::Constant", "args": {}}}
    same(*both(model({"n": node({}, constant, {"y": {"value": "k"}})})))


def test_a_chain_like_that_of_real_models(both):
    """Cast after Cast of int64, as exporters write them for shapes."""
    nodes, edges = {}, {}
    for i in range(32):
        nodes[f"Cast_{i}"] = node({f"_{i}": {"type": "int64"}}, cast(f"_{i}", 7), {f"_{i + 1}": {"value": "onnx_Cast_1"}})
        if i:
            edges |= edge(f"Cast_{i - 1}", f"_{i}", f"Cast_{i}", f"_{i}")
    tree = model(nodes, edges, onnx_opset_version=9)
    x = {"_0": np.int64([3, -1])}
    for semantics in ("mdf_reference", "onnx"):
        same(*both(tree, x, semantics))


def test_the_exact_semantics_keep_what_the_engine_loses(both):
    tree = model({"n": node({"x": {"type": "float64"}}, cast("x", 7), {"y": {"value": "onnx_Cast_1"}})})
    theirs, ours = both(tree, {"x": np.array([16777217.0])}, "onnx")
    assert theirs.tolist() == [16777216] and ours.tolist() == [16777217]
