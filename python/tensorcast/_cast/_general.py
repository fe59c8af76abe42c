# SPDX-License-Identifier: Apache-2.0
"""The general form of ``tensorcast.cast``: checks the words, and hands arrays and tensors to those who know them."""

from __future__ import annotations

import math
import re
import sys
import weakref
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arguments import plain_errors
from .._errors import CastError, UnsupportedError
from .._interop import _exchange, _foreign
from . import _numpy_types
from ._arrays import cast_array, scale_is_one

_NUMPY_TEXT = re.compile(r"[<=|]?U\d+")  # texts of at most so many characters, as U12


@plain_errors
def cast(
    x: Any,
    to: Any,
    /,
    *,
    out: Any = None,
    copy: bool = True,
    order: Literal["C", "K"] | None = None,
    packed: bool = False,
    from_: Any = None,
    shape: Any = None,
    report: bool = False,
    **options: Any,
) -> Any:
    """The general form of ``tensorcast.cast``; the package's front page documents it."""
    done = _cast(x, to, out, copy, order, packed, from_, shape, report, options)
    if report and not packed:
        _remember(done[1], x, done[0], options.get("scale", 1.0))
    return done


def _remember(report: Any, source: Any, result: Any, scale: Any) -> None:
    """Weak references to the compared arrays, for plot_report."""
    try:
        report._compared = (weakref.ref(source), weakref.ref(result), scale)
    except TypeError:  # a NumPy scalar, for one
        pass


def _cast(
    x: Any,
    to: Any,
    out: Any,
    copy: bool,
    order: Literal["C", "K"] | None,
    packed: bool,
    from_: Any,
    shape: Any,
    report: bool,
    options: dict[str, Any],
) -> Any:
    if isinstance(to, str) and (to.startswith(">") or _NUMPY_TEXT.fullmatch(to)):
        to = np.dtype(to)
    name = _core.dtype_name(to)
    if name == "uint1":
        raise UnsupportedError("uint1 can be promoted but not cast")
    swapped = isinstance(to, np.dtype) and not to.isnative
    scale = options.get("scale", 1.0)
    options = {option: value for option, value in options.items() if option != "scale"}
    _core.check_options(options)  # even where there is nothing to do
    if np.ndim(scale) == 0 and not isinstance(scale, str) and not hasattr(scale, "detach"):
        scale = scale if isinstance(scale, (int, float)) else _number(scale)
        options["scale"] = scale
    if order not in ("C", "K", None):
        raise CastError(f"order must be 'C', 'K' or None, not {order!r}")
    if from_ is not None and not packed:
        raise CastError("from_= says what packed bytes are; it needs packed=True")
    if shape is not None and from_ is None:
        raise CastError("shape= says how the packed elements of from_= are arranged; pass both, with packed=True")
    if packed and (out is not None or not copy):
        raise CastError("packed=True makes a new array; leave out= and copy= away")
    if not isinstance(x, (np.ndarray, np.generic)) and _exchange.is_tensor(x) and not _foreign.is_foreign(x):
        if packed or swapped:
            raise CastError("packed= and other byte orders are for NumPy arrays")
        return _cast_tensor(x, name, out, copy, order, report, scale, options)
    return cast_array(
        x, to, name, out=out, copy=copy, order=order, packed=packed, from_=from_, shape=shape, report=report,
        scale=scale, options=options,
    )  # fmt: skip


def _number(scale: Any) -> float:
    try:
        return float(scale)
    except (TypeError, ValueError):
        raise TypeError(f"scale must be a real number or an array of them, not {scale!r}") from None


def _cast_tensor(
    x: Any,
    name: str,
    out: Any,
    copy: bool,
    order: Literal["C", "K"] | None,
    report: bool,
    scale: Any,
    options: dict[str, Any],
) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        from .._interop import _torch_cast  # here: PyTorch may not be installed

        return _torch_cast.cast_tensor(x, name, out, copy, order, report, scale, options)
    if _exchange.is_jax(x):
        _check_jax_holds(name)
    if out is not None:
        raise TypeError(f"out= is for NumPy arrays and torch tensors, not for {type(x).__name__}")
    if _exchange.is_narrow_jax(x):
        if not copy and name == _core.dtype_name(x.dtype) and scale_is_one(scale) and not report:
            return x
        done = cast_array(np.asarray(x), name, name, order=order, report=report, scale=scale, options=options)
        return (_exchange.as_in_library_of(x, done[0]), done[1]) if report else _exchange.as_in_library_of(x, done)
    codes, from_name, shape = _core.from_dlpack(_exchange.capsule_of(x))
    if not copy and name == from_name and scale_is_one(scale) and not report:
        return x
    if _core.dtype_name(codes.dtype) != from_name:
        if not isinstance(scale, (int, float)):
            codes = _numpy_types.unpack(codes, from_name, shape)
        else:
            done = _cast_packed(codes, from_name, shape, name, report, options)
            return (_exchange.as_in_library_of(x, done[0]), done[1]) if report else _exchange.as_in_library_of(x, done)
    done = cast_array(codes, name, name, order=order, report=report, scale=scale, options=options)
    return (_exchange.as_in_library_of(x, done[0]), done[1]) if report else _exchange.as_in_library_of(x, done)


def _cast_packed(
    codes: npt.NDArray[Any], from_name: str, shape: tuple[int, ...], name: str, report: bool, options: dict[str, Any]
) -> Any:
    count = math.prod(shape)
    if name == "string":
        raise TypeError(f"packed {from_name} becomes text in two steps; cast it to another type first")
    if _numpy_types.is_packable(name):
        storage = np.empty(_numpy_types.packed_bytes(count, name), np.uint8)
    else:
        storage = np.empty(shape, _numpy_types.numpy_type(name))
    done = _core.cast_packed(codes, from_name, storage, name, count, report, options)
    result = _numpy_types.unpack(storage, name, shape) if _numpy_types.is_packable(name) else storage
    return (result, done) if report else result


def _check_jax_holds(name: str) -> None:
    """JAX makes 64-bit types 32 bits wide unless told otherwise, which would cut values off after the cast."""
    jax = sys.modules.get("jax")
    if jax is not None and name in ("float64", "int64", "uint64") and not jax.config.jax_enable_x64:
        raise CastError(
            f'JAX holds no {name} unless jax.config.update("jax_enable_x64", True) is called first; '
            "pass numpy.asarray(x) for a NumPy result"
        )
