# SPDX-License-Identifier: Apache-2.0
"""What the converters to float16 of onnxconverter-common and onnxruntime have in common here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._convert import convert
from ._graphs import graphs_of

if TYPE_CHECKING:
    from ..graph import ModelProto


def refuse_bfloat16(wanted: bool) -> None:
    if wanted:
        raise ValueError(
            "use_bfloat16_as_blocked_nodes_dtype=True is not offered: blocked nodes keep the type they had"
        )


def convert_model(
    model: ModelProto | str | os.PathLike[str],
    min_positive: float,
    max_finite: float,
    keep_io_types: bool | Sequence[str],
    op_block_list: Iterable[str] | None,
    node_block_list: Iterable[str] | None,
) -> Any:
    """Returns a new ModelProto, and warns of numbers that the limits change."""
    import onnx

    proto: Any = onnx.load(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else model
    if not isinstance(proto, onnx.ModelProto):
        raise ValueError(f"Expected model type is an ONNX ModelProto but got {type(model)}")
    operators, names = _present(proto)
    result = convert(
        proto,
        to="float16",
        from_="float32",
        keep_io_types=keep_io_types if isinstance(keep_io_types, bool) else list(keep_io_types),
        keep_ops=[op for op in dict.fromkeys(op_block_list or ()) if op in operators],
        keep_nodes=[name for name in dict.fromkeys(node_block_list or ()) if name in names],
        min_positive=min_positive,
        max_finite=max_finite,
    )
    _warn(proto, {change.name for change in result.initializers}, min_positive, max_finite)
    return result.model


def _warn(model: Any, changed: set[str], min_positive: float, max_finite: float) -> None:
    """Says which tensors the limits change, which may be all that a user hears of it."""
    from onnx import TensorProto, numpy_helper

    lowered = raised = 0
    examples: list[str] = []
    for name, tensor in _tensors(model):
        if tensor.data_type != TensorProto.FLOAT or name not in changed:
            continue
        size = np.abs(numpy_helper.to_array(tensor).astype(np.float64))
        beyond = int(((size > max_finite) & np.isfinite(size)).sum()) if max_finite else 0
        below = int(((size < min_positive) & (size > 0)).sum()) if min_positive else 0
        lowered, raised = lowered + beyond, raised + below
        if beyond + below:
            examples.append(name)
    if examples:
        more = "" if len(examples) == 1 else f" and {len(examples) - 1} others"
        warnings.warn(
            f"{lowered} numbers of initializers beyond {max_finite:g} become that, and {raised} below {min_positive:g} "
            f"become that: of {examples[0]!r}{more}; min_positive_val and max_finite_val set these limits",
            stacklevel=4,
        )


def _tensors(model: Any) -> Iterable[tuple[str, Any]]:
    for graph in graphs_of(model.graph, *model.functions):
        for tensor in getattr(graph, "initializer", ()):
            yield tensor.name, tensor
        for node in graph.node:
            if node.op_type == "Constant":
                yield from ((node.output[0], attribute.t) for attribute in node.attribute if attribute.HasField("t"))


def _present(model: Any) -> tuple[set[str], set[str]]:
    """Operators and names of the nodes of a model, in subgraphs and functions, too."""
    nodes = [node for graph in graphs_of(model.graph, *model.functions) for node in graph.node]
    return {node.op_type for node in nodes}, {node.name for node in nodes} - {""}
