# SPDX-License-Identifier: Apache-2.0
"""``auto_convert_mixed_precision`` of onnxconverter-common, done by :func:`tensorcast.onnx.search`, on a CPU.

from onnxconverter_common import auto_mixed_precision     # before
from tensorcast.onnx import auto_mixed_precision          # now
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._results import Validation
from ._search import search

if TYPE_CHECKING:
    from ..graph import ModelProto

__all__ = ["auto_convert_mixed_precision"]


def auto_convert_mixed_precision(
    model: ModelProto,
    feed_dict: Mapping[str, Any],
    validate_fn: Callable[[Sequence[Any], Sequence[Any]], bool] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    keep_io_types: bool = False,
) -> Any:
    """Returns a new ``onnx.ModelProto``, in float16 as far as the outputs stay close.

    Args:
        model: a ModelProto, which is not changed.
        feed_dict: the inputs, as the old model takes them.
        validate_fn: called with the outputs of the old and of the new model; ``True`` accepts the new one.
        rtol, atol: as in ``numpy.allclose``; alone, or besides ``validate_fn``. At least one of the three is needed.
        keep_io_types: inputs and outputs keep their types.

    Examples:
        >>> import onnx
        >>> from tensorcast.onnx import auto_mixed_precision
        >>> x = {"x": np.ones((2, 64), np.float32)}
        >>> model = auto_mixed_precision.auto_convert_mixed_precision(onnx.load("model.onnx"), x, rtol=0.01)
        attempt 1: 0 of 3 nodes kept: passes
        >>> model.graph.initializer[0].data_type
        10
    """
    if rtol is None and atol is None and validate_fn is None:
        raise ValueError("Argument `validate_fn` and `rtol` cannot both be `None`.")

    def accept(expected: Sequence[Any], got: Sequence[Any]) -> bool:
        if validate_fn is not None and not validate_fn(expected, got):
            return False
        if rtol is None and atol is None:
            return True
        relative = 1e-5 if rtol is None else rtol
        absolute = 1e-8 if atol is None else atol
        return all(np.allclose(old, new, relative, absolute) for old, new in zip(expected, got))

    found = search(
        model,
        to="float16",
        checks=Validation(inputs=feed_dict),
        metric=accept,
        keep_io_types=keep_io_types,
    )
    return found.result.model
