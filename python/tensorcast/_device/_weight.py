# SPDX-License-Identifier: Apache-2.0
"""What ``tensorcast.quantize`` returns for a weight on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .. import _core
from .._cast._quantized_weight import QuantizedWeight, quantized
from .._errors import UnsupportedError
from . import _blocks, _quantize


class DeviceWeight(QuantizedWeight):
    """As :class:`tensorcast.QuantizedWeight`, with all parts on the device. ``global_scale`` is a tensor."""

    def __init__(self, scheme: str, recipe: _quantize.Recipe, shape: tuple[int, ...], parts: _quantize.Parts) -> None:
        self.scheme, self.recipe, self.shape, self.block = scheme, recipe.name, shape, recipe.block
        self._element, self._bits = recipe.element, recipe.bits
        is_stored = recipe.bits == 8
        self.codes: torch.Tensor = parts.codes.view(getattr(torch, recipe.element)) if is_stored else parts.codes
        self.scales: torch.Tensor = parts.scales
        self.global_scale: Any = parts.global_scale
        self.zero_points = None

    def element_codes(self) -> torch.Tensor:
        return _blocks.element_codes(self.codes, self._bits, self.shape[-1])

    def dequantize(self, dtype: Any = "float32") -> torch.Tensor:
        return _blocks.dequantize(self.codes, self.scales, self.scheme, self.global_scale, self.block, self.shape,
                                  None, _core.dtype_name(dtype))  # fmt: skip

    def spelled(self, spelling: str | None = None) -> dict[str, Any]:
        raise UnsupportedError(f"spelled() of a weight on {self.codes.device} is not available; quantize x.cpu()")


def quantize(x: torch.Tensor, scheme: str, options: dict[str, Any]) -> QuantizedWeight:
    """As :func:`tensorcast.quantize`; the engine quantizes weights with NaN, infinity or the smallest numbers on the host."""
    recipe = _quantize.recipe_for(scheme, options, x.device)
    quantized(np.zeros((1, 32), np.float32), scheme, options)  # refuses options that the scheme does not have
    name = scheme.lower()
    parts = _quantize.quantize(x, recipe, options)
    if parts is None:
        core = quantized(x.detach().cpu(), scheme, options)
        codes, scales = core.codes.to(x.device), core.scales.to(x.device)
        whole = None if core.global_scale is None else torch.tensor(core.global_scale, dtype=torch.float32, device=x.device)
        parts = _quantize.Parts(codes, scales, whole)
    return DeviceWeight(name, recipe, tuple(x.shape), parts)
