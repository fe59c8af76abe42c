#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes schema_table.cpp: the types that every version of every operator takes and gives, from the package onnx, and
those of the operators into which ONNX Runtime fuses transformers, from the package onnxruntime.

    generate_schema_table.py > schema_table.cpp

The packages must have the versions that the table names, or be newer. schema.hpp explains the notation.
"""

import re
import string
import textwrap

import onnx
import onnx.defs
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
MICROSOFT = "com.microsoft"
# ONNX Runtime's, by domain. Versions that ONNX has, too, are ONNX's.
FUSED = {
    "": ("LayerNormalization", "SimplifiedLayerNormalization"),
    MICROSOFT: ("Attention", "BiasGelu", "EmbedLayerNormalization", "FastGelu", "FusedMatMul", "Gelu",
                "GroupQueryAttention", "MultiHeadAttention", "QuickGelu", "RotaryEmbedding", "SkipLayerNormalization",
                "SkipSimplifiedLayerNormalization"),
}
ELEMENTS = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
    "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26, "float6e2m3": 27, "float6e3m2": 28,
}
SHAPES = (("t", r"tensor\((\w+)\)"), ("s", r"seq\(tensor\((\w+)\)\)"), ("o", r"optional\(tensor\((\w+)\)\)"),
          ("q", r"optional\(seq\(tensor\((\w+)\)\)\)"))


def type_set(types):
    """`t` and the mask of tensors' element types in hexadecimal; `s`, `o`, `q` for sequences and optionals."""
    masks = {}
    for word in types:
        for letter, pattern in SHAPES:
            if match := re.fullmatch(pattern, word):
                masks[letter] = masks.get(letter, 0) | 1 << ELEMENTS[match[1]]
                break
        else:
            masks["x"] = 0  # maps, sparse tensors
    return "".join(letter + (f"{mask:x}" if mask else "") for letter, mask in sorted(masks.items()))


def type_variable(parameter):
    return parameter.typeStr if hasattr(parameter, "typeStr") else parameter.type_str  # onnxruntime's; onnx's


def signature(schema, previous, sets):
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    letters = {}

    def parameters(formal):
        text = ""
        for parameter in formal:
            word = type_variable(parameter)
            known = word in letters
            letter = letters.setdefault(word, string.ascii_letters[len(letters)])
            text += letter
            if not known:
                text += str(sets.setdefault(type_set(allowed.get(word, [word])), len(sets)))
            option = parameter.option.name  # two classes: onnx's and onnxruntime's
            if option == "Optional":
                text += "?"
            elif option == "Variadic":
                text += "*" if parameter.is_homogeneous else "#"
        return text

    kept = "+" if previous is not None and keeps_meaning(previous, schema) else ""
    inputs = parameters(schema.inputs)
    text = f"{schema.since_version}{kept}:{inputs}>{parameters(schema.outputs)}"
    return f"{schema.since_version}:!" if schema.deprecated else text


# Versions whose schema only adds to the one before, although a node of that one means something else, or is no longer
# valid: RoiAlign moves its samples by half a pixel unless told otherwise, Split without sizes needs their number.
CHANGED_MEANING = {("RoiAlign", 16), ("Split", 18)}


def keeps_meaning(old, new):
    """Whether every node of the version before is valid and means the same: the new schema only adds to the old one."""
    if old.deprecated or new.deprecated or (new.name, new.since_version) in CHANGED_MEANING:
        return False

    def types(schema, parameter):
        allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
        return allowed.get(type_variable(parameter), {type_variable(parameter)})

    for formal in ("inputs", "outputs"):
        before, after = getattr(old, formal), getattr(new, formal)
        if len(before) > len(after) or any(extra.option.name == "Single" for extra in after[len(before):]):
            return False
        for a, b in zip(before, after):
            relaxed = (a.option.name, b.option.name) == ("Single", "Optional")
            if (a.option.name != b.option.name and not relaxed) or not types(old, a) <= types(new, b):
                return False
    for name, attribute in new.attributes.items():
        if attribute.required and name not in old.attributes:
            return False
    for name, attribute in old.attributes.items():
        other = new.attributes.get(name)
        if other is None or other.type != attribute.type or (other.required and not attribute.required):
            return False
        if not attribute.required and other.default_value != attribute.default_value:
            return False
    return True


def literals(text):
    lines = textwrap.wrap(text, 112, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f'    "{line} "' for line in lines)


def main():
    schemas = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        assert schema.domain in DOMAINS, schema.domain
        schemas.setdefault((schema.domain, schema.name), []).append(schema)
    for schema in onnxruntime_pybind11_state.get_all_operator_schema():
        known = schemas.setdefault((schema.domain, schema.name), [])
        is_new = all(schema.since_version < other.since_version for other in known)
        if is_new and schema.name in FUSED.get(schema.domain, ()):
            known.append(schema)
    assert all(schemas[domain, name] for domain in FUSED for name in FUSED[domain])
    sets = {}
    table = ""
    for domain in (*DOMAINS, MICROSOFT):
        names = sorted(name for (where, name), versions in schemas.items() if where == domain and versions)
        if domain:
            table += f"@{domain} "
        for name in names:
            versions = sorted(schemas[domain, name], key=lambda schema: schema.since_version)
            pairs = zip([None, *versions], versions)
            table += f"{name} {' '.join(signature(schema, previous, sets) for previous, schema in pairs)} "
    newest = onnx.defs.onnx_opset_version()
    print(f"""// Generated by generate_schema_table.py from onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}; do not edit.
#include "models/onnx/ir/schema.hpp"

namespace tensorcast::models::onnx {{
// clang-format off

const std::string_view schema_table_version = "{onnx.__version__}";
const int schema_table_opset = {newest};

const std::string_view schema_type_sets =
{literals(" ".join(sets))};

const std::string_view schema_signatures =
{literals(table)};

// clang-format on
}}  // namespace tensorcast::models::onnx""")


if __name__ == "__main__":
    main()
