"""The options of quantize(). Printed by print_python_options from src/options/quantize_options.hpp."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

from ._names import RecipeName
from ._options import DTypeLike

Nonfinite: TypeAlias = Literal["error", "tool"]
Clip: TypeAlias = Literal["none", "mse"]


class QuantizeOptions(TypedDict, total=False):
    """The options of :func:`tensorcast.quantize`.

    Examples:
        >>> options: tc.QuantizeOptions = {"recipe": "even"}
        >>> tc.quantize(weight, "mxfp4", **options).recipe
        'even'

    Args:
        recipe: the tool whose way is taken, or its mode; :func:`recipes` lists them. Default: the scheme's own, with
            one difference: a tensor of zeros has scale 1.
        group_size: ``int4-group``: how many inputs share a scale: 32, 64 or 128. Default: 128.
        symmetric: ``int4-group``: ``False`` adds zero points.
        power_of_two_scales: ``fp8-block``: scales are rounded up to powers of two.
        compute_dtype: the weight is rounded to this type first. Default: its own.
        nonfinite: NaN and infinity are an error, or quantized to whatever the tool makes of them, if that is defined.
        maximum: the largest magnitude that a scale of the whole tensor is made for, where several tensors share a
            scale.
        clip: ``"mse"`` searches the scale of each block, from the recipe's down to half, for the smallest sum of
            squared errors. Not with one scale for the whole tensor.
        importance: how much squared errors of each column count with ``clip``: an array of one number for each
            column, or for each column of each matrix.
    """

    recipe: RecipeName | str | None
    group_size: int | None
    symmetric: bool | None
    power_of_two_scales: bool | None
    compute_dtype: DTypeLike | None
    nonfinite: Nonfinite
    maximum: float | None
    clip: Clip
    importance: Any


QuantizeOptions.__module__ = "tensorcast"

DEFAULTS: dict[str, Any] = {
    "recipe": None,
    "group_size": None,
    "symmetric": None,
    "power_of_two_scales": None,
    "compute_dtype": None,
    "nonfinite": "error",
    "maximum": None,
    "clip": "none",
    "importance": None,
}
