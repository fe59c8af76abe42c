# SPDX-License-Identifier: Apache-2.0
"""``convert_float_to_float16`` of onnxconverter-common, done by :func:`tensorcast.onnx.convert`.

from onnxconverter_common import float16          # before
from tensorcast.onnx import float16               # now

:mod:`tensorcast.onnx.transformers.float16` takes the place of onnxruntime's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._float16 import convert_model, refuse_bfloat16

if TYPE_CHECKING:
    from ..graph import ModelProto

__all__ = ["DEFAULT_OP_BLOCK_LIST", "convert_float_to_float16", "convert_float_to_float16_model_path"]

# The other's list of operators that its converter breaks. Schemas decide here, so that none is needed.
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

    Signature and defaults are those of onnxconverter-common; onnxruntime's arguments are keywords. What differs: block
    lists add to the rules instead of replacing them, and may name what the model lacks; types are inferred without
    shapes; a model may be converted twice. ``tensorcast.onnx.convert`` limits no numbers by default.

    Args:
        model: a ModelProto, or the path of a model.
        min_positive_val, max_finite_val: absolute values of initializers and constants below the first, other than 0,
            become it; finite ones beyond the second become that, with a warning. 0 is no limit. onnxruntime's
            limits, in ``tensorcast.onnx.transformers``, are 5.96e-08 and 65504.
        keep_io_types: inputs and outputs keep their types: all of them, or those of these names.
        op_block_list, node_block_list: operators and names of nodes that stay float32.
        disable_shape_infer, check_fp16_ready, force_fp16_initializers, force_fp16_inputs: not needed, ignored.
        use_bfloat16_as_blocked_nodes_dtype: not offered: blocked nodes keep the type that they had.

    Examples:
        >>> import onnx
        >>> from tensorcast.onnx import float16
        >>> half = float16.convert_float_to_float16(onnx.load("model.onnx"), keep_io_types=True)
        >>> [node.op_type for node in half.graph.node]
        ['Cast', 'MatMul', 'Relu', 'Softmax', 'Cast']
    """
    refuse_bfloat16(use_bfloat16_as_blocked_nodes_dtype)
    return convert_model(model, min_positive_val, max_finite_val, keep_io_types, op_block_list, node_block_list)


def convert_float_to_float16_model_path(
    model_path: str | os.PathLike[str],
    min_positive_val: float = 1e-7,
    max_finite_val: float = 1e4,
    keep_io_types: bool | Sequence[str] = False,
) -> Any:
    """:func:`convert_float_to_float16` of a file, of any size.

    Examples:
        >>> from tensorcast.onnx import float16
        >>> half = float16.convert_float_to_float16_model_path("model.onnx")
        >>> half.graph.initializer[0].data_type
        10
    """
    return convert_model(os.fspath(model_path), min_positive_val, max_finite_val, keep_io_types, None, None)
