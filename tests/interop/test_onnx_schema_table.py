# SPDX-License-Identifier: Apache-2.0
"""The table of operator schemas is what its generator makes of the packages onnx and onnxruntime."""

import collections
import importlib.util
import re
import subprocess
import sys

import onnx
import onnx.version_converter
import onnxruntime
import pytest
from onnx import TensorProto, helper


def version(text):
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def test_the_table_is_that_of_its_package(source_dir):
    folder = source_dir / "src/models/onnx/ir"
    table = (folder / "schema_table.cpp").read_text()
    (made_from,) = re.findall(r"from onnx ([\d.]+), onnxruntime ([\d.]+);", table)
    here = onnx.__version__, onnxruntime.__version__
    if [*map(version, here)] != [*map(version, made_from)]:
        pytest.skip(f"the table is of onnx and onnxruntime {made_from}, these are {here}")
    generated = subprocess.run([sys.executable, folder / "generate_schema_table.py"], capture_output=True, text=True, check=True)
    assert generated.stdout == table


def a_type(schema, parameter):
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}.get(parameter.type_str, [])
    for word, element in (("float", TensorProto.FLOAT), ("int64", TensorProto.INT64), ("uint8", TensorProto.UINT8),
                          ("string", TensorProto.STRING)):
        if f"tensor({word})" in allowed:
            return element
    return TensorProto.BOOL


def node_of(schema, optional):
    option = onnx.defs.OpSchema.FormalParameterOption
    formal = [p for p in schema.inputs if optional or p.option != option.Optional]
    attributes = {}
    for name, attribute in schema.attributes.items():
        if attribute.required:
            kind = str(attribute.type).split(".")[-1]
            if kind not in ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS"):
                return None
            one = {"F": 1.0, "I": 1, "S": "x"}[kind[0]]
            attributes[name] = [one] if kind.endswith("S") else one
    node = helper.make_node(schema.name, [f"i{k}" for k in range(len(formal))], [p.name for p in schema.outputs], **attributes)
    inputs = [helper.make_tensor_value_info(name, a_type(schema, p), [1, 1, 4, 4]) for name, p in zip(node.input, formal)]
    outputs = [helper.make_tensor_value_info(p.name, a_type(schema, p), None) for p in schema.outputs]
    return helper.make_graph([node], "g", inputs, outputs)


def test_versions_that_keep_the_meaning_are_those_that_the_official_converter_leaves_alone(source_dir):
    path = source_dir / "src/models/onnx/ir/generate_schema_table.py"
    spec = importlib.util.spec_from_file_location("generator", path)
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name].append(schema)
    tried = 0
    for name, schemas in sorted(versions.items()):
        schemas.sort(key=lambda schema: schema.since_version)
        for old, new in zip(schemas, schemas[1:]):
            graphs = [node_of(old, optional) for optional in (False, True)]
            for graph in graphs:
                if graph is None or not generator.keeps_meaning(old, new):
                    continue
                model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", new.since_version - 1)])
                try:
                    upgraded = onnx.version_converter.convert_version(model, new.since_version)
                except Exception as problem:  # its shape inference fails for some inputs of this kind
                    assert "Adapter" not in str(problem), (name, new.since_version)
                    continue
                tried += 1
                (node,) = upgraded.graph.node
                for attribute in list(node.attribute):  # defaults, written out
                    if new.attributes[attribute.name].default_value == attribute:
                        node.attribute.remove(attribute)
                assert node == graph.node[0], (name, new.since_version)
    assert tried > 300
