# SPDX-License-Identifier: Apache-2.0
"""Raises the opset of a model by onnx's own converter, and mends or refuses what that one changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._errors import CastError
from ._graphs import graphs_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def upgrade(model: ModelProto, wanted: int) -> ModelProto:
    """A model of the opset ``wanted`` that computes what ``model`` does."""
    import onnx.inliner
    import onnx.version_converter

    here = opset_of(model)
    if wanted < here:
        raise CastError(f"the model has opset {here}, which is newer than {wanted}; models are only upgraded")
    try:
        if model.functions:  # onnx's converter drops them
            model = onnx.inliner.inline_local_functions(model)
        if model.ir_version < 4:  # whose initializers are inputs, too; many are not, and runtimes take them
            own = type(model)()
            own.CopyFrom(model)
            model, own.ir_version = own, 4
        for graph, node in _nodes(model.graph):
            change = _change(graph, node, here, wanted)
            if change:
                name = node.name or node.output[0]
                raise CastError(f'onnx cannot upgrade {node.op_type} "{name}" from opset {here} to {wanted}: {change}')
        upgraded = onnx.version_converter.convert_version(model, wanted)
    except CastError:
        raise
    except Exception as problem:
        raise CastError(f"onnx cannot upgrade the model from opset {here} to {wanted}: {problem}") from problem
    if here < 11 <= wanted:
        for _, node in _nodes(upgraded.graph):
            if node.op_type == "Resize" and not node.domain:
                _resize_as_before(node)
    _restore(model, upgraded)
    return upgraded


def opset_of(model: ModelProto) -> int:
    """The version of ONNX's own operators; 0 if the model imports none."""
    return max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)


def _nodes(root: GraphProto) -> Iterator[tuple[GraphProto, NodeProto]]:
    return ((graph, node) for graph in graphs_of(root) for node in graph.node)


def _attribute(node: NodeProto, name: str, absent: Any) -> Any:
    from onnx.helper import get_attribute_value

    return next((get_attribute_value(each) for each in node.attribute if each.name == name), absent)


def _change(graph: GraphProto, node: NodeProto, here: int, wanted: int) -> str:
    """What onnx's converter would change in the meaning of a node; "" if nothing."""
    if node.domain not in ("", "ai.onnx"):
        return ""
    if node.op_type == "Hardmax" and here < 13 <= wanted and _attribute(node, "axis", 1) != -1:
        return "it would take the largest number of one axis, and no longer of all that follow"
    if node.op_type == "Scan" and here < 9 <= wanted:
        return "it has a batch, which later ones do not have"
    if node.op_type == "GroupNormalization" and here < 21 <= wanted:
        return "it has scales for groups, and later ones for channels"
    if node.op_type == "Resize" and here == 10 and wanted > 10 and _attribute(node, "mode", b"nearest") == b"nearest":
        scales = _constant(graph, node.input[1])
        if scales is None or min(scales, default=1.0) < 1.0:
            return "its scales are below 1 or not constant, and later ones take other elements"
    return ""


def _constant(graph: GraphProto, name: str) -> list[float] | None:
    from onnx.numpy_helper import to_array

    inputs = {each.name for each in graph.input}
    for tensor in graph.initializer:
        if tensor.name == name and name not in inputs:
            return [float(number) for number in to_array(tensor).ravel()]
    for node in graph.node:
        if node.op_type == "Constant" and name in node.output:
            value = _attribute(node, "value", None)
            return None if value is None else [float(number) for number in to_array(value).ravel()]
    return None


def _resize_as_before(node: NodeProto) -> None:
    """Resize 10 and Upsample begin at the first element, and onnx's converter does not say so to the new Resize."""
    from onnx.helper import make_attribute

    if _attribute(node, "coordinate_transformation_mode", None) is None:
        node.attribute.append(make_attribute("coordinate_transformation_mode", "asymmetric"))
        if _attribute(node, "mode", b"nearest") == b"nearest":
            node.attribute.append(make_attribute("nearest_mode", "floor"))


def _restore(model: ModelProto, upgraded: ModelProto) -> None:
    """Gives back what onnx's converter leaves out."""
    upgraded.training_info.extend(model.training_info)
    upgraded.graph.quantization_annotation.extend(model.graph.quantization_annotation)
    upgraded.graph.metadata_props.extend(model.graph.metadata_props)
    old = {node.output[0]: node for _, node in _nodes(model.graph) if node.output}
    for _, node in _nodes(upgraded.graph):
        before = old.get(node.output[0]) if node.output else None
        if before is not None and before.op_type == node.op_type and not node.metadata_props:
            node.metadata_props.extend(before.metadata_props)
