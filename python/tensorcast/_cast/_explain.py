# SPDX-License-Identifier: Apache-2.0
"""One number in every type, for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._arguments import plain_errors
from .._options import CastOptions, DTypeLike, shows_options
from .._explained import Explained, Explanation

if TYPE_CHECKING:
    from typing_extensions import Unpack


@plain_errors
@shows_options
def explain(
    value: float | str | np.generic,
    *,
    from_: DTypeLike | None = None,
    to: DTypeLike | None = None,
    **options: Unpack[CastOptions],
) -> Explained:
    """Converts one value to every type (or to ``to``) and describes each result: bits, exact value, error, events.

    Args:
        value: a number, or a literal such as ``"0.1"``, ``"-inf"`` or a code ``"0x7E"`` of ``from_``.
        from_: the type of the value; ``None``: the literal's exact value.
        to: one type; ``None``: all numeric types.
        **options: those of :func:`tensorcast.cast`.

    Returns:
        A sequence of :class:`Explanation` that prints as a table.

    Raises:
        CastError: a literal that is not a number, or a code that ``from_`` does not have.

    Examples:
        >>> tc.explain(0.1, to="float8_e4m3fn")
        dtype          bits        code  value      error   what happened
        float8_e4m3fn  0 0011 101  0x1D  0.1015625  0.0156  rounded
        >>> tc.explain("0x7E", from_="float8_e4m3fn", to="float32")[0].exact_value
        '448'

    Source: ONNX operator ``Cast``, versions 1 to 28; ``docs/semantics.md``.
    """
    if isinstance(value, np.generic):
        from ._numpy_types import name_of

        from_ = name_of(np.asarray(value)) if from_ is None else from_
        value = value.item() if isinstance(value, (np.integer, np.bool_)) else float(value)
    if isinstance(value, bool):
        value = int(value)
    literal = value if isinstance(value, str) else repr(value)
    names = (
        [_core.dtype_name(to)] if to is not None else [row["name"] for row in _core.dtypes() if row["name"] != "string"]
    )
    return Explained(tuple(Explanation(**_core.explain(literal, from_, name, {**options})) for name in names))
