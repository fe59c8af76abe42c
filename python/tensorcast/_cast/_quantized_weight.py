# SPDX-License-Identifier: Apache-2.0
"""A weight in blocks that share scales, made by the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._options import DTypeLike
from . import _tensors


class QuantizedWeight:
    """A weight in blocks that share scales, which :func:`quantize` makes.

    Arrays are NumPy's, or PyTorch's if the weight was.

    Attributes:
        scheme: such as ``"nvfp4"``.
        recipe: the tool whose way was taken.
        shape: of the weight.
        block: rows and columns that share a scale; 0: all.
        codes: packed as they are stored.
        scales: a number for each block: uint8 codes of E8M0 and E4M3, else float32; ``None``: inside the codes.
        global_scale: of the whole tensor, as the recipe's tool stores it, or ``None``.
        zero_points: int8, one for each scale, or ``None``.

    Examples:
        >>> q = tc.quantize(weight, "mxfp4")
        >>> q.recipe, q.codes.shape, q.scales.shape
        ('rceil', (64, 128), (64, 8))
    """

    def __init__(self, core: _core.Quantized, shape: tuple[int, ...], as_torch: bool, weights: DTypeLike | None) -> None:
        self._core, self._as_torch, self._weights = core, as_torch, weights
        self.scheme: str = core.scheme
        self.recipe: str = core.recipe
        self.shape = shape
        self.block: tuple[int, int] = core.block
        self.codes = self._array(core.codes())
        self.scales = self._array(core.scales())
        self.global_scale: float | None = core.global_scale
        self.zero_points = self._array(core.zero_points())

    def __reduce__(self) -> tuple[Any, ...]:
        return QuantizedWeight, (self._core, self.shape, self._as_torch, self._weights)

    def _array(self, tensor: _core.Tensor | None) -> Any:
        return None if tensor is None else _tensors.from_core(tensor, self._as_torch)

    def element_codes(self) -> Any:
        """The codes one a byte, uint8 in the weight's shape: of numbers, or integers in two's complement in the low bits.

        Examples:
            >>> tc.quantize(weight, "mxfp4").element_codes().shape
            (64, 256)
        """
        return self._array(self._core.element_codes())

    def dequantize(self, dtype: DTypeLike = "float32") -> Any:
        """The numbers that codes and scales mean, rounded once to ``dtype``; as :func:`tensorcast.dequantize`.

        Examples:
            >>> tc.quantize(weight, "mxfp8").dequantize("bfloat16").dtype.name
            'bfloat16'
        """
        return self._array(self._core.dequantize(dtype))

    def spelled(self, spelling: str | None = None) -> dict[str, Any]:
        """The tensors of a checkpoint that hold the weight, by their suffixes, such as ``"weight_packed"``.

        ``spelling`` is ``"deepseek"``, ``"transformers-mxfp8"``, ``"compressed-tensors"``, ``"modelopt"``, ``"gpt-oss"``,
        ``"comfyui"``, ``"quark"``, ``"gptq"``, ``"gptq-v2"``, ``"awq"``, ``"auto-round"``, ``"auto-round-awq"`` or
        ``"gguf"``; default: as files of the scheme have it. A tensor scale becomes its reciprocal, rounded to float32,
        where the spelling stores the other one. ``"compressed-tensors"`` has scales in the type that the recipe
        computed in, if it rounded them to it.

        Examples:
            >>> {suffix: x.shape for suffix, x in tc.quantize(weight, "nvfp4").spelled("modelopt").items()}
            {'weight': (64, 128), 'weight_scale': (64, 16), 'weight_scale_2': ()}
        """
        return {suffix: self._array(tensor) for suffix, tensor in self._core.spelled(spelling or "", self._weights)}

    def __repr__(self) -> str:
        return f"QuantizedWeight({self.scheme!r}, recipe={self.recipe!r}, shape={self.shape})"


def quantized(x: Any, scheme: str, given: dict[str, Any]) -> QuantizedWeight:
    given = {**given, "importance": numbers_of_importance(given.get("importance"))}
    weight = _tensors.to_core(x)
    core = _core.quantize(weight, scheme, False, given)
    return QuantizedWeight(core, tuple(weight.shape), _tensors.is_torch(x), given.get("compute_dtype") or weight.dtype)


def numbers_of_importance(given: Any) -> list[float]:
    if given is None:
        return []
    numbers = np.asarray(given, np.float64) if isinstance(given, (list, tuple)) else given
    if not hasattr(numbers, "reshape") or isinstance(numbers, type):
        raise TypeError(f"importance= is an array of numbers, one for each column, not {given!r}")
    return [float(number) for number in numbers.reshape(-1)]
