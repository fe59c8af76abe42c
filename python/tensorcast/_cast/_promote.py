# SPDX-License-Identifier: Apache-2.0
"""Promotion: the common type of two types, and two arrays in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._interop import _exchange
from . import _arrays, _numpy_types
from .._arguments import plain_errors
from .._core import cast
from .._errors import CastError
from .._options import CastOptions, DTypeLike, PromoteRules, shows_options

if TYPE_CHECKING:
    from typing_extensions import Unpack


@plain_errors
def promote_types(
    a: DTypeLike,
    b: DTypeLike,
    *,
    a_is_scalar: bool = False,
    b_is_scalar: bool = False,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: DTypeLike = "float32",
    rules: PromoteRules = "openvino",
) -> str:
    """The common type of two types by OpenVINO's ConvertPromoteTypes-14, or by the rules of another system.

    Args:
        a, b: types as in :func:`cast`; OpenVINO's ``"uint1"`` is known here too.
        a_is_scalar, b_is_scalar: whether the operand has rank 0 (``openvino`` and ``torch``).
        promote_unsafe: allow what may lose values or add bits (``openvino``; the mode "all" of ``tensorflow``).
        pytorch_scalar_promotion: a scalar takes the type of the tensor beside it (``openvino``).
        u64_integer_promotion_target: the common type of uint64 and a signed integer (``openvino``).
        rules: ``openvino``, ``numpy`` (NumPy 2 with ml_dtypes), ``torch``, ``jax``, ``jax_strict`` or ``tensorflow``.

    Returns:
        The canonical name.

    Raises:
        CastError: a refused promotion, with the reason.

    Examples:
        >>> tc.promote_types("int8", "float16")
        'float16'
        >>> tc.promote_types("bfloat16", "float16", rules="torch")
        'float32'

    Source: OpenVINO operation set 14, ConvertPromoteTypes; ``docs/promotion.md`` for the others.
    """
    return _core.promote_types(
        a, b, a_is_scalar, b_is_scalar, promote_unsafe, pytorch_scalar_promotion, u64_integer_promotion_target, rules
    )


@plain_errors
@shows_options
def promote(
    a: Any,
    b: Any,
    *,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: DTypeLike = "float32",
    rules: PromoteRules = "openvino",
    **options: Unpack[CastOptions],
) -> tuple[Any, Any]:
    """Both arrays in their common type: the operation ConvertPromoteTypes.

    Args:
        a, b: arrays or tensors as in :func:`cast`, of any shapes; an array of rank 0 is the scalar of the rules.
        promote_unsafe, pytorch_scalar_promotion, u64_integer_promotion_target, rules: as in :func:`promote_types`.
        **options: conversion options of :func:`cast`, but ``rounding`` and ``seed``.

    Returns:
        Two arrays, each of the kind and shape that went in. What has the common type already is the same object.

    Raises:
        CastError: a refused promotion, with the reason; or as :func:`cast`.

    Examples:
        >>> x, y = tc.promote(np.int8([1, 2]), np.float16([0.5]))
        >>> x, y
        (array([1., 2.], dtype=float16), array([0.5], dtype=float16))

    Source: OpenVINO operation set 14, ConvertPromoteTypes.
    """
    for name in ("out", "packed", "from_", "copy", "order", "report"):
        if name in options:
            raise TypeError(f"promote() does not accept {name}=")
    _core.check_options({**options})  # also if the promotion is refused
    if options.get("rounding", "auto") != "auto":
        raise CastError("promotions have no rounding; cast both to the common type that promote_types() names")
    common = promote_types(
        _type_of(a),
        _type_of(b),
        a_is_scalar=_rank(a) == 0,
        b_is_scalar=_rank(b) == 0,
        promote_unsafe=promote_unsafe,
        pytorch_scalar_promotion=pytorch_scalar_promotion,
        u64_integer_promotion_target=u64_integer_promotion_target,
        rules=rules,
    )
    return _in_type(a, common, {**options}), _in_type(b, common, {**options})


def _in_type(x: Any, common: str, options: dict[str, Any]) -> Any:
    if isinstance(x, np.generic) and not options and _numpy_types.numpy_type(common) == x.dtype:
        return x
    return cast(x, common, copy=False, **options)


def _type_of(x: Any) -> str:
    if isinstance(x, (np.ndarray, np.generic)) or not _exchange.is_tensor(x):
        return _numpy_types.name_of(_arrays.as_plain_array(x))
    return _core.dtype_name(x.dtype) if hasattr(x, "dtype") else _core.from_dlpack(_exchange.capsule_of(x))[1]


def _rank(x: Any) -> int:
    shape = getattr(x, "shape", None)
    return np.ndim(x) if shape is None else len(shape)
