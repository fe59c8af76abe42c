# SPDX-License-Identifier: Apache-2.0
"""Numbers in blocks that share scales, on a device."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import torch

from .. import _core
from .._errors import CastError, UnsupportedError
from .._interop._torch import type_name
from ._float_steps import as_float32, check_arithmetic, product
from ._formats import format_of
from ._tensors import cast

# The formats that a device has: dense codes, low bits first, and scales by rows.
_FORMATS = {
    ("fp8-tensor", "compressed-tensors"): "",
    ("fp8-channel", "compressed-tensors"): "",
    ("fp8-block", "deepseek"): "",
    ("mxfp8", "transformers-mxfp8"): "float8_e8m0fnu",
    ("mxfp8-e5m2", "ocp"): "float8_e8m0fnu",
    ("mxfp6", "compressed-tensors"): "float8_e8m0fnu",
    ("mxfp6-e3m2", "compressed-tensors"): "float8_e8m0fnu",
    ("mxfp4", "compressed-tensors"): "float8_e8m0fnu",
    ("nvfp4", "modelopt"): "float8_e4m3fn",
    ("nvfp4", "compressed-tensors"): "float8_e4m3fn",
    ("int8-tensor", "compressed-tensors"): "",
    ("int8-channel", "compressed-tensors"): "",
}


def format_row(scheme: str, spelling: str | None, device: torch.device) -> dict[str, Any]:
    """The row of ``block_formats()``. Raises UnsupportedError for formats that a device lacks."""
    rows = [row for row in _core.block_formats() if row["scheme"] == scheme.lower()]
    found = [row for row in rows if spelling is None or row["spelling"] == spelling.lower()]
    if not found:
        raise ValueError(f'no scheme "{scheme}" with the spelling "{spelling}"; see tensorcast.block_formats()')
    row: dict[str, Any] = found[0]
    if (row["scheme"], row["spelling"]) not in _FORMATS:
        known = ", ".join(dict.fromkeys(name for name, _ in _FORMATS))
        raise UnsupportedError(
            f"{row['scheme']} of {row['spelling']} is not decoded on a device ({device}), where there are {known}; "
            "move the tensors to the host, e.g. with .cpu()"
        )
    return row


def element_codes(codes: torch.Tensor, bits: int, columns: int) -> torch.Tensor:
    """One code a byte, from a dense stream of bits in each row, low bits first."""
    bytes_ = codes.view(torch.uint8) if codes.dtype != torch.uint8 else codes
    if bits == 8:
        return bytes_
    if bits == 4:
        return torch.stack((bytes_ & 15, bytes_ >> 4), -1).flatten(-2)[..., :columns]
    whole: Any = torch.nn.functional.pad(bytes_, (0, -bytes_.shape[-1] % 3))  # Any: unflatten is not annotated
    padded: torch.Tensor = whole.unflatten(-1, (-1, 3)).to(torch.int32)
    word = padded[..., 0] | padded[..., 1] << 8 | padded[..., 2] << 16  # four codes of six bits
    return torch.stack([word >> shift & 63 for shift in (0, 6, 12, 18)], -1).flatten(-2)[..., :columns].to(torch.uint8)


def packed(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """The dense stream of codes that are one a byte."""
    if bits == 8:
        return codes
    if bits == 4:
        even = torch.nn.functional.pad(codes, (0, codes.shape[-1] % 2)) if codes.shape[-1] % 2 else codes
        return even[..., ::2] | even[..., 1::2] << 4
    columns = codes.shape[-1]
    whole: Any = torch.nn.functional.pad(codes, (0, -columns % 4))  # Any: unflatten is not annotated
    four: torch.Tensor = whole.unflatten(-1, (-1, 4)).to(torch.int32)
    word = four[..., 0] | four[..., 1] << 6 | four[..., 2] << 12 | four[..., 3] << 18
    stream = torch.stack([(word >> shift & 255).to(torch.uint8) for shift in (0, 8, 16)], -1).flatten(-2)
    return stream[..., : (columns * 6 + 7) // 8]


def spread(scales: torch.Tensor, block: tuple[int, int], rows: int, columns: int) -> torch.Tensor:
    """A scale for each element: of shape (..., rows, columns)."""
    for dim, size, length in ((-2, block[0], rows), (-1, block[1], columns)):
        if size == 0 or scales.shape[dim] == 1:
            scales = scales.expand(*[length if i == scales.dim() + dim else n for i, n in enumerate(scales.shape)])
        elif size > 1:
            scales = scales.repeat_interleave(size, dim).narrow(dim, 0, length)
    return scales


def _number_of(scales: Any, stored: str, device: torch.device) -> torch.Tensor:
    """float32 numbers of scales in any type."""
    tensor = scales if isinstance(scales, torch.Tensor) else torch.as_tensor(scales, dtype=torch.float32, device=device)
    name = type_name(tensor.dtype)
    if stored and tensor.element_size() == 1 and name != stored:
        if name not in ("uint8", "int8"):
            raise CastError(f"scales of type {name}, expected {stored} or uint8")
        tensor, name = tensor.view(torch.uint8), stored
    if format_of(name).family != "float" or not 8 <= _core.bit_width(name) <= 32:
        raise CastError(f"scales of type {name}")
    if tensor.device != device:
        tensor = tensor.to(device)
    return tensor if tensor.dtype == torch.float32 else as_float32(tensor, name)


def dequantize(
    codes: torch.Tensor,
    scales: Any,
    scheme: str,
    global_scale: Any,
    block: tuple[int, int] | None,
    shape: tuple[int, ...] | None,
    spelling: str | None,
    dtype: str,
) -> torch.Tensor:
    """As :func:`tensorcast.dequantize`, by operations of PyTorch on the device of ``codes``."""
    row = format_row(scheme, spelling, codes.device)
    if format_of(dtype).family != "float" or _core.bit_width(dtype) < 8:
        raise CastError("the target is no floating-point type of 8 bits or more")
    check_arithmetic(codes.device)
    bits = int(row["bits"])
    given = type_name(codes.dtype)
    if given not in ("uint8", "int8", row["element"]):
        raise CastError(
            f"the codes have type {given}, expected uint8 or {row['element']}; where they are the right bits in another type, "
            "view them as uint8"
        )
    columns = shape[-1] if shape else codes.shape[-1] * codes.element_size() * 8 // bits
    elements = element_codes(codes, bits, columns)
    wanted = tuple(elements.shape) if shape is None else tuple(shape)
    if wanted != tuple(elements.shape):
        raise CastError(f"the codes are a weight of shape {tuple(elements.shape)}, not {wanted}")
    number = as_float32(elements, row["element"])
    if "-0 is 0" in row["order"]:
        number = torch.where(number == 0, torch.zeros_like(number), number)
    factors = _number_of(scales, _FORMATS[row["scheme"], row["spelling"]], codes.device)
    sizes = block if block is not None else row["block"]
    factors = _of_blocks(factors, sizes, wanted)
    if ("global" in row["order"]) != (global_scale is not None):
        missing = global_scale is None
        raise CastError(f"global_scale= is {'missing' if missing else 'given'}, which {scheme} {'needs' if missing else 'does not have'}")
    if global_scale is not None:
        factors = _with_global(factors, _number_of(global_scale, "", codes.device), "/ global" in row["order"])
    rows = wanted[-2] if len(wanted) > 1 else 1
    spread_out = spread(factors, sizes, rows, columns).reshape(number.shape)
    return cast(product(number, spread_out), "float32", dtype, 1.0, {})


def checked_dequantize(
    codes: torch.Tensor,
    scales: Any,
    scheme: str,
    global_scale: Any,
    others: tuple[Any, ...],
    block: int | tuple[int, int] | None,
    shape: tuple[int, ...] | None,
    spelling: str | None,
    dtype: Any,
) -> torch.Tensor:
    """The same for the arguments of :func:`tensorcast.dequantize`; ``others`` are those that no device has."""
    if any(each is not None for each in others) or scales is None:
        raise UnsupportedError(f"zero points, biases, indexes and tables are not available on a device ({codes.device})")
    name = _core.dtype_name(dtype)
    if block is not None and not isinstance(block, tuple):
        block = (1, block)
    return dequantize(codes, scales, scheme, global_scale, block, shape, spelling, name)


def _of_blocks(factors: torch.Tensor, block: tuple[int, int], shape: tuple[int, ...]) -> torch.Tensor:
    """The scales as (..., rows of blocks, columns of blocks)."""
    columns = shape[-1]
    rows = shape[-2] if len(shape) > 1 else 1
    grid = tuple(1 if size == 0 else -(-length // size) for size, length in zip(block, (rows, columns)))
    if factors.numel() == 1 and block == (0, 0):
        return factors.reshape(()).expand(*shape[:-2], 1, 1)
    outer = (*shape[:-2], *grid)
    given, wanted = _products(factors.shape), _products(outer)
    if factors.numel() != math.prod(outer) or not (given <= wanted or wanted <= given):
        raise CastError(f"the scales have shape {tuple(factors.shape)}, but there are {grid[0]} x {grid[1]} blocks")
    return factors.reshape(outer)


def _products(shape: tuple[int, ...]) -> set[int]:
    """Of the first dimensions. Joining dimensions leaves some out, splitting adds some; a transpose has others."""
    return {*itertools.accumulate((length for length in shape if length != 1), operator.mul)}


def _with_global(factors: torch.Tensor, numbers: torch.Tensor, divides: bool) -> torch.Tensor:
    matrices = math.prod(factors.shape[:-2])
    if numbers.numel() not in (1, matrices):
        raise CastError(f"the global scale is not 1 or {matrices} numbers")
    spread_out = numbers.reshape(() if numbers.numel() == 1 else (*factors.shape[:-2], 1, 1)).expand(factors.shape)
    return factors / spread_out if divides else product(factors, spread_out)
