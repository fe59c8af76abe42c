# SPDX-License-Identifier: Apache-2.0
"""Numbers in blocks that share scales."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from .. import _core
from .._arguments import plain_errors
from .._interop import _exchange
from . import _tensors
from .._names import BlockSchemeName, SpellingName
from .._options import DTypeLike
from ._quantized_weight import QuantizedWeight


@overload
def dequantize(codes: QuantizedWeight, *, dtype: DTypeLike = "float32") -> Any: ...


@overload
def dequantize(
    codes: Any,
    scales: Any,
    scheme: BlockSchemeName | str,
    *,
    global_scale: Any = None,
    zero_points: Any = None,
    biases: Any = None,
    group_index: Any = None,
    table: Any = None,
    block: int | tuple[int, int] | None = None,
    shape: tuple[int, ...] | None = None,
    spelling: SpellingName | str | None = None,
    dtype: DTypeLike = "float32",
) -> Any: ...


@plain_errors
def dequantize(
    codes: Any,
    scales: Any = None,
    scheme: BlockSchemeName | str | None = None,
    *,
    global_scale: Any = None,
    zero_points: Any = None,
    biases: Any = None,
    group_index: Any = None,
    table: Any = None,
    block: int | tuple[int, int] | None = None,
    shape: tuple[int, ...] | None = None,
    spelling: SpellingName | str | None = None,
    dtype: DTypeLike = "float32",
) -> Any:
    """The numbers of a weight whose codes share scales, exactly as the tool that wrote them computes them.

    Each step is one float32 operation in that tool's order, then comes one rounding to ``dtype``.

    Args:
        codes: a weight that :func:`quantize` made, of which nothing else is given but ``dtype``; or codes as they are
            stored, packed: an array, a PyTorch tensor or one of DLPack, as all the others may be. GGUF:
            rows of bytes. A tensor on a device stays there, for float8, MX, NVFP4 and int8 in plain layouts. gpt-oss: (experts, N, K / 32, 16), or (experts, N, K / 2).
        scales: a number for each block, in the type that is stored (E8M0 and E4M3 also as uint8); ``None`` for GGUF.
        scheme: such as ``"fp8-block"``, ``"mxfp4"``, ``"nvfp4"``, ``"int4-group"``, ``"gptq-4"``, ``"nf4"``, ``"q4_k"``;
            :func:`block_formats` lists them.
        global_scale: one number, or one for each matrix, of any type: a factor, with the spelling
            ``"compressed-tensors"`` a divisor.
        zero_points: numbers of the integers' range, such as -8 to 7, or packed as the spelling has them.
        biases: MLX: added to the products.
        group_index: GPTQ's ``g_idx``: the group of each input.
        table: the numbers of 4-bit codes (bitsandbytes' ``quant_map``); default: those of NF4 and FP4.
        block: inputs that share a scale, or (rows, inputs) of a block; 0: all of them. Default: the scheme's usual ones.
        shape: of the weight, for codes that do not tell it: NF4 and FP4, and rows with padding.
        spelling: whose layout; default: that of the scheme's first row in :func:`block_formats`.
        dtype: a floating-point type of 8 bits or more.

    Returns:
        The weight, of shape (..., outputs, inputs), of the library that ``codes`` are of: an array, or a tensor.

    Raises:
        CastError: shapes, types or sizes that contradict each other; an argument that the format does not have; an
            unknown scheme or spelling.
        TypeError: a weight of :func:`quantize` with arguments that it has itself; no scheme.

    Examples:
        >>> q = tc.quantize(weight, "nvfp4")
        >>> back = tc.dequantize(q.codes, q.scales, "nvfp4", global_scale=q.global_scale, dtype="bfloat16")
        >>> back.shape, back.dtype.name
        ((64, 256), 'bfloat16')
        >>> tc.dequantize(q).shape
        (64, 256)

    Formulas and sources: docs/blocks.md.
    """
    if isinstance(codes, QuantizedWeight):
        parts = (scales, scheme, global_scale, zero_points, biases, group_index, table, block, shape, spelling)
        if any(part is not None for part in parts):
            raise TypeError("a weight that quantize() made has its own scales and scheme; give dtype= alone")
        return codes.dequantize(dtype)
    if scheme is None:
        raise TypeError("dequantize() needs the scheme of the codes, such as dequantize(codes, scales, \"mxfp4\")")
    if _tensors.is_on_a_device(codes):
        from .._device import _blocks as on_device

        return on_device.checked_dequantize(
            codes, scales, scheme, global_scale, (zero_points, biases, group_index, table), block, shape, spelling, dtype
        )
    spelled = spelling or ("gguf" if scales is None else "")
    made = _core.dequantize(
        _tensors.to_core(codes), _core_of(scales), scheme, spelled, _core_of(global_scale), _core_of(zero_points),
        _core_of(biases), _core_of(group_index), _core_of(table), _block(block, scheme, spelled), shape, dtype
    )  # fmt: skip
    weight = _tensors.from_core(made, _tensors.is_torch(codes))
    if _tensors.is_torch(codes) or isinstance(codes, np.ndarray) or not _exchange.is_tensor(codes):
        return weight
    return _exchange.as_in_library_of(codes, weight)


def _core_of(x: Any) -> _core.Tensor | None:
    """Numbers of Python, and lists of them, as float32; arrays and tensors as they are."""
    if x is None:
        return None
    if not isinstance(x, (int, float, list, tuple)):
        return _tensors.to_core(x)
    try:
        return _tensors.to_core(np.asarray(x, np.float32))
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected numbers of float32, or rows of them of one length, not {x!r}") from None


def _block(block: int | tuple[int, int] | None, scheme: str, spelling: str) -> tuple[int, int] | None:
    """Rows and columns of a block of the codes, which GPTQ and AWQ store with the inputs as rows."""
    if block is None or isinstance(block, tuple):
        return block
    return (block, 1) if str(scheme).lower().startswith(("gptq", "awq")) else (1, block)


def block_formats() -> list[dict[str, Any]]:
    """The block formats that :func:`dequantize` reads: scheme, spelling, element, bits, block and order of operations.

    Examples:
        >>> sorted({row["spelling"] for row in tc.block_formats() if row["scheme"] == "nvfp4"})
        ['comfyui', 'compressed-tensors', 'gguf', 'modelopt']
    """
    return _core.block_formats()
