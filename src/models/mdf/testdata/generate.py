#!/usr/bin/env python3
"""Writes valid/ and invalid/: a model of two Casts and what can be wrong with it. The files are kept in git."""

import copy
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def cast(source, to):
    return {"to": {"value": to}, "onnx_Cast_1": {"function": "onnx::Cast", "args": {"input": source}}}


def node(port, to):
    return {"input_ports": {port: {"type": "int64"}}, "parameters": cast(port, to), "output_ports": {"y": {"value": "onnx_Cast_1"}}}


GOOD = {"m": {"format": "ModECI MDF v0.4", "onnx_opset_version": 9, "graphs": {"g": {
    "nodes": {"a": node("x", 7), "b": node("z", 1)},
    "edges": {"e": {"sender": "a", "receiver": "b", "sender_port": "y", "receiver_port": "z"}}}}}}


def put(name, content):
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    if not isinstance(content, str):
        content = json.dumps(content, indent=1) + "\n"
    path.write_text(content)


def changed(path, value):
    """GOOD with another value at graph/nodes/...; None takes it away."""
    model = copy.deepcopy(GOOD)
    place = model["m"] if path.startswith("/") else model["m"]["graphs"]["g"]
    *way, last = path.strip("/").split("/")
    for key in way:
        place = place.setdefault(key, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return model


put("valid/two-casts.json", GOOD)
put("valid/without-its-id.json", GOOD["m"])
put("valid/several-edges-into-one-port.json", changed("edges/f", {"sender": "a", "receiver": "b", "sender_port": "y", "receiver_port": "z"}))
put("valid/graph-within-a-node.json", changed("nodes/a", {"input_ports": {"x": {}}, "nodes": {"b": node("x", 7)}}))
put("valid/two-graphs.json", changed("/graphs/other", {"nodes": {"n": {"functions": {"f": {"function": "linear"}}}}}))
put("valid/aliases.yaml", """m:
    format: ModECI MDF v0.4
    graphs:
        functionGraph:
            nodes:
                Cast_10:
                    input_ports: {_9: &port {type: Tensor}}
                    parameters: &cast
                        to: {value: 9}
                        onnx::Cast_1: {function: onnx::Cast, args: {input: _9}}
                    output_ports: {_10: {value: "onnx::Cast_1"}}
                Cast_11:
                    input_ports: {_9: *port}
                    parameters: *cast
                    output_ports: {_11: {value: "onnx::Cast_1"}}
""")

put("invalid/parse--empty.json", "")
put("invalid/parse--empty.yaml", "")
put("invalid/parse--cut-off.json", json.dumps(GOOD)[:200])
put("invalid/parse--list.json", [1])
put("invalid/parse--no-graphs.json", {"m": {"format": "ModECI MDF v0.4"}})
put("invalid/parse--graphs-empty.json", changed("/graphs", {}))
put("invalid/parse--graphs-a-list.json", changed("/graphs", [1]))
put("invalid/parse--key-twice.json", '{"m": {"graphs": {}, "graphs": {}}}')
put("invalid/parse--nested-deeply.json", "[" * 5000)
put("invalid/parse--nested-deeply.yaml", "[" * 5000)
put("invalid/parse--nested-deeply-in-blocks.yaml", "- " * 5000 + "1\n")
put("invalid/parse--integer-of-many-digits.json", '{"m": {"graphs": ' + "9" * 400 + "}}")
put("invalid/parse--tab.yaml", "m:\n\tgraphs: {}\n")
put("invalid/parse--two-documents.yaml", "m: {graphs: {}}\n---\nm: {graphs: {}}\n")
put("invalid/parse--number-in-octal.yaml", "m: {graphs: {g: {nodes: {n: {parameters: {to: {value: 010}}}}}}}\n")
put("invalid/parse--alias-of-itself.yaml", "m: &m {graphs: *m}\n")
put("invalid/parse--alias-unknown.yaml", "m: {graphs: *g}\n")
put("invalid/unsupported--tag.yaml", "m: !!python/object/apply:os.system [ls]\n")
put("invalid/unsupported--merge-key.yaml", "a: &a {b: 1}\nm: {<<: *a}\n")
put("invalid/unsupported--aliases-explode.yaml",
    "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)))
put("invalid/unsupported--opset-99.json", changed("/onnx_opset_version", 99))
put("invalid/parse--opset-a-word.json", changed("/onnx_opset_version", "newest"))
put("invalid/unsupported--field-unknown.json", changed("nodes/a/colour", "red"))
put("invalid/parse--graph-within-a-node-empty.json", changed("nodes/a/nodes", {}))
put("invalid/parse--graph-within-a-node-cycle.json", changed("nodes/a", {"input_ports": {"x": {}}, "nodes": {"b": node("x", 7), "c": node("z", 7)},
    "edges": {"e": {"sender": "b", "receiver": "c", "sender_port": "y", "receiver_port": "z"},
              "f": {"sender": "c", "receiver": "b", "sender_port": "y", "receiver_port": "x"}}}))
put("invalid/parse--graph-within-a-node-and-its-name-twice.json", changed("nodes", {"a": {"nodes": {"b": node("x", 7)}}, "a.b": node("x", 7), "b": node("z", 1)}))
put("invalid/unsupported--graph-within-a-node-on-a-condition.json", changed("nodes/a", {"nodes": {"b": node("x", 7)}, "conditions": {"termination": {}}}))
put("invalid/unsupported--condition-of-a-node.json", changed("conditions", {"node_specific": {"b": {"type": "EveryNCalls"}}}))
put("invalid/unsupported--condition-of-the-end.json", changed("conditions", {"termination": {"x": {"type": "AfterNPasses"}}}))
put("invalid/unsupported--state.json", changed("nodes/a/parameters/s", {"value": "s"}))
put("invalid/unsupported--initial-value.json", changed("nodes/a/parameters/s", {"default_initial_value": 1}))
put("invalid/unsupported--condition-of-a-parameter.json", changed("nodes/a/parameters/to/conditions", [{"id": "c", "test": "x > 1", "value": 1}]))
put("invalid/unsupported--function.json", changed("nodes/a/parameters/onnx_Cast_1/function", "onnx::Conv"))
put("invalid/unsupported--function-case.json", changed("nodes/a/parameters/onnx_Cast_1/function", "onnx::cast"))
put("invalid/unsupported--function-a-map.json", changed("nodes/a/parameters/onnx_Cast_1/function", {"linear": {}}))
put("invalid/unsupported--expression.json", changed("nodes/a/output_ports/y/value", "onnx_Cast_1 + 1"))
put("invalid/unsupported--to-is-a-tensor.json", changed("nodes/a/parameters/to/value", "x"))
put("invalid/unsupported--to-is-complex.json", changed("nodes/a/parameters/to/value", 14))
put("invalid/unsupported--type-newer-than-the-opset.json", changed("nodes/a/parameters/to/value", 16))
put("invalid/parse--to-missing.json", changed("nodes/a/parameters/to", None))
put("invalid/parse--to-not-whole.json", changed("nodes/a/parameters/to/value", 7.5))
put("invalid/parse--to-several.json", changed("nodes/a/parameters/to/value", [1, 7]))
put("invalid/parse--input-missing.json", changed("nodes/a/parameters/onnx_Cast_1/args", {}))
put("invalid/parse--argument-unknown.json", changed("nodes/a/parameters/onnx_Cast_1/args/colour", 1))
put("invalid/unsupported--saturate-before-opset-19.json", changed("nodes/a/parameters/onnx_Cast_1/args/saturate", 1))
put("invalid/parse--identifier-unknown.json", changed("nodes/a/parameters/onnx_Cast_1/args/input", "w"))
put("invalid/parse--output-unknown.json", changed("nodes/a/output_ports/y/value", "w"))
put("invalid/parse--output-without-value.json", changed("nodes/a/output_ports/y", {"type": "int64"}))
put("invalid/parse--parameter-empty.json", changed("nodes/a/parameters/s", {}))
put("invalid/parse--parameter-a-number.json", changed("nodes/a/parameters/to", 7))
put("invalid/parse--value-and-function.json", changed("nodes/a/parameters/to/function", "onnx::Cast"))
put("invalid/parse--parameters-cycle.json", changed("nodes/a/parameters", cast("x", 7) | {"p": {"value": "q"}, "q": {"value": "p"}}))
put("invalid/parse--id-twice-in-a-node.json", changed("nodes/a/parameters/x", {"value": 1}))
put("invalid/parse--list-ragged.json", changed("nodes/a/parameters/p", {"value": [[1], [2, 3]]}))
put("invalid/parse--reduce-unknown.json", changed("nodes/a/input_ports/x/reduce", "most"))
put("invalid/parse--default-of-another-shape.json", changed("nodes/a/input_ports/x", {"shape": [3], "default_value": [1, 2]}))
put("invalid/parse--edge-from-nowhere.json", changed("edges/e/sender", "c"))
put("invalid/parse--edge-to-nowhere.json", changed("edges/e/receiver", "c"))
put("invalid/parse--edge-from-missing-port.json", changed("edges/e/sender_port", "w"))
put("invalid/parse--edge-to-missing-port.json", changed("edges/e/receiver_port", "w"))
put("invalid/parse--edge-without-port.json", changed("edges/e/receiver_port", None))
put("invalid/parse--edge-cycle.json", changed("edges/f", {"sender": "b", "receiver": "a", "sender_port": "y", "receiver_port": "x"}))
twice = changed("edges/f", {"sender": "a", "receiver": "b", "sender_port": "y", "receiver_port": "z"})
twice["m"]["graphs"]["g"]["nodes"]["b"]["input_ports"]["z"]["reduce"] = "add"
put("invalid/unsupported--edges-into-one-port-added.json", twice)
put("invalid/unsupported--edge-parameter.json", changed("edges/e/parameters", {"delay": 1}))
put("invalid/unsupported--weight-a-list.json", changed("edges/e/parameters", {"weight": [1, 2]}))
put("invalid/unsupported--weight-a-name.json", changed("edges/e/parameters", {"weight": "w"}))
put("invalid/unsupported--weight-beyond-2-53.json", changed("edges/e/parameters", {"weight": 2**60 + 1}))
put("invalid/parse--weight-changes-the-type.json", changed("edges/e/parameters", {"weight": 0.5}))
put("invalid/parse--port-of-another-type.json", changed("nodes/b/input_ports/z/type", "float32"))
