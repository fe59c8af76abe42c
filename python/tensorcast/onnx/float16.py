"""``convert_float_to_float16`` of onnxconverter-common and onnxruntime, done by :func:`tensorcast.onnx.convert`.

from onnxconverter_common import float16          # before
from onnxruntime.transformers import float16      # or before
from tensorcast.onnx import float16               # now
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._convert import convert

if TYPE_CHECKING:
    from ..graph import ModelProto

__all__ = ["DEFAULT_OP_BLOCK_LIST", "convert_float_to_float16", "convert_float_to_float16_model_path"]

# The others' lists of operators that their converters break. Schemas decide here, so that none is needed.
DEFAULT_OP_BLOCK_LIST: list[str] = []


def convert_float_to_float16(
    model: ModelProto | str | os.PathLike[str],
    min_positive_val: float = 1e-7,
    max_finite_val: float = 1e4,
    keep_io_types: bool | Sequence[str] = False,
    disable_shape_infer: bool = False,
    op_block_list: Iterable[str] | None = None,
    node_block_list: Iterable[str] | None = None,
    check_fp16_ready: bool = True,
    *,
    force_fp16_initializers: bool = False,
    force_fp16_inputs: Mapping[str, Sequence[int]] | None = None,
    use_bfloat16_as_blocked_nodes_dtype: bool = False,
) -> Any:
    """Returns a new ``onnx.ModelProto`` with float32 converted to float16. ``model`` is not changed.

    The signature is that of onnxconverter-common; onnxruntime's arguments are keywords. What differs from theirs:
    block lists add to the rules instead of replacing them, and may name what the model lacks; types are inferred
    without shapes; a model may be converted twice. ``tensorcast.onnx.convert`` limits no numbers by default.

    Args:
        model: a ModelProto, or the path of a model.
        min_positive_val, max_finite_val: absolute values of initializers and constants below the first, other than 0,
            become it; finite ones beyond the second become that. 0 is no limit. onnxruntime's defaults are 5.96e-08 and
            65504.
        keep_io_types: inputs and outputs keep their types: all of them, or those of these names.
        op_block_list, node_block_list: operators and names of nodes that stay float32.
        disable_shape_infer, check_fp16_ready, force_fp16_initializers, force_fp16_inputs: not needed, ignored.
        use_bfloat16_as_blocked_nodes_dtype: not offered: blocked nodes keep the type that they had.
    """
    if use_bfloat16_as_blocked_nodes_dtype:
        raise ValueError(
            "use_bfloat16_as_blocked_nodes_dtype=True is not offered: blocked nodes keep the type they had"
        )
    import onnx

    proto: Any = onnx.load(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else model
    if not isinstance(proto, onnx.ModelProto):
        raise ValueError(f"Expected model type is an ONNX ModelProto but got {type(model)}")
    operators, names = _present(proto)
    return convert(
        proto,
        to="float16",
        from_="float32",
        keep_io_types=keep_io_types if isinstance(keep_io_types, bool) else list(keep_io_types),
        keep_ops=[op for op in dict.fromkeys(op_block_list or ()) if op in operators],
        keep_nodes=[name for name in dict.fromkeys(node_block_list or ()) if name in names],
        min_positive=min_positive_val,
        max_finite=max_finite_val,
    ).model


def convert_float_to_float16_model_path(
    model_path: str | os.PathLike[str],
    min_positive_val: float = 1e-7,
    max_finite_val: float = 1e4,
    keep_io_types: bool | Sequence[str] = False,
) -> Any:
    """:func:`convert_float_to_float16` of a file, of any size."""
    return convert_float_to_float16(os.fspath(model_path), min_positive_val, max_finite_val, keep_io_types)


def _present(model: Any) -> tuple[set[str], set[str]]:
    """Operators and names of the nodes of a model, in subgraphs and functions, too."""
    operators: set[str] = set()
    names: set[str] = set()
    left = [model.graph, *model.functions]
    while left:
        for node in left.pop().node:
            operators.add(node.op_type)
            names.add(node.name)
            for attribute in node.attribute:
                left.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)
    return operators, names - {""}
