# SPDX-License-Identifier: Apache-2.0
"""Weights to blocks that share scales, by the recipes of the tools that quantize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from . import _tensors
from .._errors import unknown_option
from .._names import SchemeName
from .._options import DTypeLike, shows
from .._quantize_options import DEFAULTS, QuantizeOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        ``"comfyui"``, ``"quark"`` or ``"gguf"``; default: as files of the scheme have it. A tensor scale becomes its reciprocal,
        rounded to float32, where the spelling stores the other one. ``"compressed-tensors"`` has scales in the type that the
        recipe computed in, if it rounded them to it.

        Examples:
            >>> {suffix: x.shape for suffix, x in tc.quantize(weight, "nvfp4").spelled("modelopt").items()}
            {'weight': (64, 128), 'weight_scale': (64, 16), 'weight_scale_2': ()}
        """
        return {suffix: self._array(tensor) for suffix, tensor in self._core.spelled(spelling or "", self._weights)}

    def __repr__(self) -> str:
        return f"QuantizedWeight({self.scheme!r}, recipe={self.recipe!r}, shape={self.shape})"


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
        CastError: a recipe, option or type that the scheme does not have.
        ValueError: no such scheme.

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
    return _quantized(x, scheme, given)


def _quantized(x: Any, scheme: str, given: dict[str, Any]) -> QuantizedWeight:
    given = {**given, "importance": _importance(given.get("importance"))}
    weight = _tensors.to_core(x)
    core = _core.quantize(weight, scheme, False, given)
    return QuantizedWeight(core, tuple(x.shape), _tensors.is_torch(x), given.get("compute_dtype") or weight.dtype)


def _importance(given: Any) -> list[float]:
    return [] if given is None else [float(number) for number in given.reshape(-1)]


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
    core = _core.quantize(_tensors.to_core(x), type, True, {"importance": _importance(importance)})
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
