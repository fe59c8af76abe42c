# SPDX-License-Identifier: Apache-2.0
"""Weights to blocks that share scales, by the recipes of the tools that quantize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._arguments import plain_errors
from . import _tensors
from ._quantized_weight import QuantizedWeight, numbers_of_importance, quantized
from .._errors import unknown_option
from .._names import SchemeName
from .._options import shows
from .._quantize_options import DEFAULTS, QuantizeOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


@plain_errors
@shows(QuantizeOptions, DEFAULTS)
def quantize(x: Any, scheme: SchemeName | str, **options: Unpack[QuantizeOptions]) -> QuantizedWeight:
    """Quantizes a weight as a tool does, byte for byte, in blocks along the last axis.

    Args:
        x: float32, bfloat16 or float16: an array or PyTorch tensor. Its type matters: many tools compute in it. A tensor
            on a device stays there, for the default recipes of MX, ``"nvfp4"``, ``"fp8-channel"`` and ``"fp8-block"``.
        scheme: such as ``"fp8-block"``, ``"mxfp4"``, ``"nvfp4"``, ``"int4-group"``, ``"q4_k"``; :func:`schemes` lists them.
        **options: those of :class:`QuantizeOptions`.

    Raises:
        OutOfRangeError: NaN or infinity; the error names the element.
        CastError: no such scheme; a recipe, option or type that the scheme does not have.

    Examples:
        >>> q = tc.quantize(weight, "nvfp4", recipe="compressed-tensors")
        >>> q.codes.shape, q.scales.shape, q.global_scale is None
        ((64, 128), (64, 16), False)

    Formulas and tools: docs/blocks.md.
    """
    given: dict[str, Any] = {**options}
    for name in given:
        if name not in DEFAULTS:
            raise unknown_option(name, DEFAULTS)
    if _tensors.is_on_a_device(x):
        from .._device import _weight

        return _weight.quantize(x, scheme, given)
    return quantized(x, scheme, given)


@plain_errors
def gguf_quantize(x: Any, type: str, *, importance: Any = None) -> Any:
    """The blocks of a GGUF type, bit for bit those of ggml without fused multiply-add.

    Args:
        x: float32, bfloat16 or float16, whose last dimension is whole blocks: of 256 for ``q2_k`` to ``q6_k`` and
            ``iq4_xs``, 64 for ``nvfp4``, else 32.
        type: ``q8_0``, ``q4_0``, ``q4_1``, ``q5_0``, ``q5_1``, ``q2_k``, ``q3_k``, ``q4_k``, ``q5_k``, ``q6_k``,
            ``iq4_nl``, ``iq4_xs``, ``mxfp4`` or ``nvfp4``.
        importance: of ``q2_k`` to ``q6_k`` and ``iq4_*``: how much squared errors of each column count, as in an
            importance matrix. Other types ignore it.

    Returns:
        uint8, with a row of bytes for each row of the weight.

    Examples:
        >>> tc.gguf_quantize(weight, "q4_k").shape
        (64, 144)
    """
    core = _core.quantize(_tensors.to_core(x), type, True, {"importance": numbers_of_importance(importance)})
    return _tensors.from_core(core.codes(), _tensors.is_torch(x))


def recipes() -> list[dict[str, Any]]:
    """The recipes of :func:`quantize`: scheme, recipe, whether it is the default, and how scales and elements are made.

    ``w`` in the formulas rounds to the weights' type. ``compared_with`` is ``"source"`` for what only a GPU runs.

    Examples:
        >>> "mlx" in {row["recipe"] for row in tc.recipes() if row["scheme"] == "mxfp4"}
        True
    """
    return _core.recipes()


def schemes() -> list[str]:
    """The schemes of :func:`quantize`, in the order of :func:`recipes`.

    Examples:
        >>> "nvfp4" in tc.schemes()
        True
    """
    return list(dict.fromkeys(row["scheme"] for row in _core.recipes()))
