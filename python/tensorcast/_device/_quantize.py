# SPDX-License-Identifier: Apache-2.0
"""Weights to blocks that share scales, on a device, by the default recipes: the bytes are the CPU's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from .._errors import UnsupportedError
from ._blocks import packed, spread
from ._convert import options_key, plan_of
from ._float_steps import as_float32, check_arithmetic, constant, converted, product, rounded
from ._numbers import decoded, normalized
from ._encode import to_float

_WEIGHTS = (torch.float32, torch.bfloat16, torch.float16)


class Recipe(NamedTuple):
    name: str
    element: str
    bits: int
    block: tuple[int, int]
    make: Callable[..., Any]


class Parts(NamedTuple):
    """What a device made; ``None`` for a weight that the engine must see, as one with NaN."""

    codes: torch.Tensor
    scales: torch.Tensor
    global_scale: torch.Tensor | None


def recipe_for(scheme: str, options: dict[str, Any], device: torch.device) -> Recipe:
    """Raises UnsupportedError for what a device lacks."""
    found = _RECIPES.get(scheme.lower())
    name = options.get("recipe")
    known = {"recipe", "power_of_two_scales", "maximum", "nonfinite"} if found is not None else set()
    others = [key for key, value in options.items() if value not in (None, "none", "error", True) and key not in known]
    if found is None or (name is not None and str(name).lower() != found.name) or others:
        which = f"{scheme} of {name}" if name else f"{scheme} with {others[0]}=" if others else scheme
        have = ", ".join(f"{key} of {each.name}" for key, each in _RECIPES.items())
        raise UnsupportedError(f"{which} is not made on a device ({device}), where there are {have}; "
                               "move the weight to the host, e.g. with .cpu()")  # fmt: skip
    return found


def quantize(x: torch.Tensor, recipe: Recipe, options: dict[str, Any]) -> Parts | None:
    """Codes and scales, on the device of ``x``. Waits for it once."""
    if x.dtype not in _WEIGHTS:
        raise UnsupportedError(f"weights of type {x.dtype} are not quantized on a device; cast them to float32")
    check_arithmetic(x.device)
    x = x.detach()
    numbers = x if x.dtype == torch.float32 else as_float32(x, {torch.bfloat16: "bfloat16", torch.float16: "float16"}[x.dtype])
    rows = numbers.reshape(-1, numbers.shape[-1]) if numbers.dim() < 2 else numbers
    magnitudes = rows.view(torch.int32) & 0x7FFFFFFF
    largest = _largest(magnitudes, recipe.block)
    whole = largest.amax() if largest.numel() else torch.zeros((), dtype=torch.int32, device=x.device)
    # Zeros and the smallest numbers make scales that are 0, or subnormal: tools differ there, and the engine knows how.
    least = 1 if recipe.name == "rceil" else 0x1A000000
    zeros_are_odd = recipe.name == "torchao" and options.get("recipe") is not None
    odd = (whole >= 0x7F800000) | (whole == 0) | ((largest < least) & ((largest > 0) | zeros_are_odd)).any()
    if bool(odd):
        return None
    made: Parts = recipe.make(rows, largest.view(torch.float32), whole.view(torch.float32), x.dtype, recipe, options)
    scales = made.scales if x.dim() > 1 else made.scales[0]
    return Parts(packed(made.codes.reshape(x.shape), recipe.bits), scales, made.global_scale)


def _largest(magnitudes: torch.Tensor, block: tuple[int, int]) -> torch.Tensor:
    """The bits of the largest magnitude of each block: (..., rows of blocks, columns of blocks)."""
    rows, columns = magnitudes.shape[-2:]
    high, wide = block[0] or max(rows, 1), block[1] or max(columns, 1)
    # Any: unflatten is not annotated.
    padded: Any = torch.nn.functional.pad(magnitudes, (0, -columns % wide, 0, -rows % high))
    largest: torch.Tensor = padded.unflatten(-2, (-1, high)).unflatten(-1, (-1, wide)).amax((-3, -1))
    return largest


def _spread(scales: torch.Tensor, numbers: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    return spread(scales, recipe.block, *numbers.shape[-2:])


def _rceil(numbers: torch.Tensor, largest: torch.Tensor, whole: Any, dtype: Any, recipe: Recipe, options: Any) -> Parts:
    """Powers of two change the exponent alone, so that no device can round."""
    inverse = float(np.float32(1) / np.float32(_LARGEST[recipe.element]))
    scale = converted(product(largest, constant(inverse, largest)), "float8_e8m0fnu")
    plan = plan_of("float32", recipe.element, options_key({}), False)
    number = normalized(decoded(numbers.view(torch.int32), plan.from_))
    number.exponent = number.exponent + (127 - _spread(scale.to(torch.int32), numbers, recipe))
    assert plan.limits is not None
    return Parts(to_float(number, plan.to, plan.rounding, plan.limits, False)[0].to(torch.uint8), scale, None)


def _quotients(numbers: torch.Tensor, scale: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    return numbers / _spread(scale, numbers, recipe)


def _torchao(numbers: torch.Tensor, largest: torch.Tensor, whole: Any, dtype: Any, recipe: Recipe, options: Any) -> Parts:
    scale = rounded(largest / constant(448.0, largest), dtype)
    scale = torch.where(largest == 0, torch.ones_like(scale), scale)
    return Parts(converted(_quotients(numbers, scale, recipe), "float8_e4m3fn"), scale, None)


@functools.cache
def _log2_steps(device: torch.device) -> torch.Tensor:
    """How many steps of 2**-23 above a power of two its logarithm still rounds to the exponent in float32."""
    steps = []
    for exponent in range(-150, 129):
        size = abs(exponent)
        near = math.log(2) * (1 << size.bit_length() - 1) / 2 if size else 0.0
        steps.append(int(near / 2 if exponent < 0 and size & (size - 1) == 0 else near))
    return torch.tensor(steps, dtype=torch.int32, device=device)


def _deepseek(numbers: torch.Tensor, largest: torch.Tensor, whole: Any, dtype: Any, recipe: Recipe, options: Any) -> Parts:
    scale = torch.maximum(largest, constant(1e-4, largest)) / constant(448.0, largest)
    if options.get("power_of_two_scales"):
        bits = scale.view(torch.int32)
        exponent, mantissa = (bits >> 23) - 127, bits & 0x7FFFFF
        up = (mantissa > _log2_steps(scale.device)[exponent + 150]).to(torch.int32)
        scale = (exponent + up + 127 << 23).view(torch.float32)
    return Parts(converted(_quotients(numbers, scale, recipe), "float8_e4m3fn"), scale, None)


def _modelopt(numbers: torch.Tensor, largest: torch.Tensor, whole: torch.Tensor, dtype: Any, recipe: Recipe, options: Any) -> Parts:
    if options.get("maximum") is not None:
        whole = constant(float(options["maximum"]), whole)
    of_tensor = whole / constant(2688.0, whole)
    of_tensor = torch.where(whole == 0, torch.ones_like(whole), of_tensor)
    spread_out = of_tensor.expand(largest.shape)
    scale = largest / product(constant(6.0, largest), spread_out)
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    low, high = constant(2.0**-9, scale), constant(448.0, scale)
    code = converted(torch.minimum(torch.maximum(scale, low), high), "float8_e4m3fn")
    quotient = _quotients(numbers, product(as_float32(code, "float8_e4m3fn"), spread_out), recipe)
    made = converted(quotient, "float4_e2m1fn")
    return Parts(torch.where(quotient == 0, torch.zeros_like(made), made), code, of_tensor)


_LARGEST = {"float8_e4m3fn": 448.0, "float4_e2m1fn": 6.0, "float8_e5m2": 57344.0, "float6_e2m3fn": 7.5, "float6_e3m2fn": 28.0}
_RECIPES = {
    "mxfp8": Recipe("rceil", "float8_e4m3fn", 8, (1, 32), _rceil),
    "mxfp8-e5m2": Recipe("rceil", "float8_e5m2", 8, (1, 32), _rceil),
    "mxfp6": Recipe("rceil", "float6_e2m3fn", 6, (1, 32), _rceil),
    "mxfp6-e3m2": Recipe("rceil", "float6_e3m2fn", 6, (1, 32), _rceil),
    "mxfp4": Recipe("rceil", "float4_e2m1fn", 4, (1, 32), _rceil),
    "nvfp4": Recipe("modelopt", "float4_e2m1fn", 4, (1, 16), _modelopt),
    "fp8-channel": Recipe("torchao", "float8_e4m3fn", 8, (1, 0), _torchao),
    "fp8-block": Recipe("deepseek", "float8_e4m3fn", 8, (128, 128), _deepseek),
}
