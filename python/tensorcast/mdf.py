# SPDX-License-Identifier: Apache-2.0
"""``Cast`` and ``CastLike`` for ModECI MDF: drop-in replacements of ``modeci_mdf.functions.onnx.cast`` and ``castlike``.

>>> from tensorcast import mdf
>>> mdf.install()  # from here on, modeci_mdf's own engine casts with tensorcast
>>> mdf.cast(np.float32([1.5, -2.5]), to=7)
array([ 1, -2])
>>> mdf.uninstall()

The originals build an ONNX model and a session of ONNX Runtime for every call; these do not, and give the same arrays.
What the originals do to their arguments is done here too: lists become arrays, a number becomes an array of one,
int32 becomes int64, and float64 becomes float32 before the conversion, which is that of opset 15. Where ONNX leaves the
result open, as for 1e20 to int32, it is the one of ``docs/semantics.md``. Of the types of opset 15, the originals refuse
some, such as float16; these know all. And ``castlike(x, target_type=y)`` casts x, where the original casts y.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._cast import _numpy_types
from ._core import cast as _cast
from ._errors import CastError
from ._options import FloatString

__all__ = ["cast", "castlike", "install", "uninstall"]

_OPSET = 15  # of the originals, whatever a model says
_INT32 = np.dtype(np.int32)
_FLOAT64 = np.dtype(np.float64)


def _as_input(value: Any) -> Any:
    """Converts an argument as the reference engine does before it calls an operator."""
    kind = type(value)
    if kind is list:
        value = np.array(value)
    elif kind is int or kind is float:
        value = np.array([value])
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
        if value.dtype == _INT32:
            return value.astype(np.int64)
        return value.astype(np.float32) if value.dtype == _FLOAT64 else value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    raise TypeError(f"a tensor is an array, a list or a number, not {kind.__name__}")


def _bind(
    operator_name: str, inputs: tuple[str, ...], attributes: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Arguments by name: inputs first, positional ones fill what is left in order, the rest are attributes."""
    rest = iter(args)
    bound = {}
    for name in inputs + attributes:
        if name in kwargs:
            bound[name] = kwargs[name]
        else:
            for value in rest:
                bound[name] = value
                break
    for name in kwargs:
        if name not in bound:
            raise ValueError(
                f"Passed unknown attribute ({name}) to ONNX op {operator_name}, "
                f"supported attributes: {list(attributes)}"
            )
    for name in inputs + attributes:
        if name not in bound:
            kind = "input" if name in inputs else "attribute"
            raise CastError(f"{operator_name} needs the {kind} {name!r}")
    return bound


def _convert(x: npt.NDArray[Any], to: Any) -> npt.NDArray[Any]:
    texts: FloatString = "g8" if x.dtype.kind == "f" and to == 8 else "plain"  # of ONNX Runtime
    result: npt.NDArray[Any] = _cast(x, to, opset=_OPSET, float_string=texts)
    if result.dtype.kind == "S":
        result = np.char.decode(result, "utf-8", "replace")
    return result.astype(object) if result.dtype.kind == "U" else result


def cast(*args: Any, **kwargs: Any) -> npt.NDArray[Any]:
    """ONNX ``Cast`` of opset 13 to 18, as ``modeci_mdf.functions.onnx.cast``.

    Args:
        input: array, list or number.
        to: number of an ONNX type, or a NumPy type.

    Returns:
        An array of the type, in C order, that shares no memory with the input. Texts are in an array of objects.

    Raises:
        CastError: a type that opset 15 does not have, a text that is not a number, a missing argument.
        ValueError: an argument that the operator does not have.
        TypeError: an input that is not a tensor.

    Examples:
        >>> from tensorcast import mdf
        >>> mdf.cast([1.5, -2.5], to=6)
        array([ 1, -2], dtype=int32)

    Source: ONNX Cast, version 13; modeci_mdf 0.4.15.
    """
    if len(args) == 1 and len(kwargs) == 1 and "to" in kwargs:
        x, to = args[0], kwargs["to"]
    elif not args and len(kwargs) == 2 and "input" in kwargs and "to" in kwargs:
        x, to = kwargs["input"], kwargs["to"]
    else:
        bound = _bind("Cast", ("input",), ("to",), args, kwargs)
        x, to = bound["input"], bound["to"]
    if type(to) is not int:
        try:
            to = operator.index(to)
        except TypeError:
            if not isinstance(to, type | np.dtype):
                raise CastError(f"to is the number of an ONNX type, not {to!r}") from None
    return _convert(_as_input(x), to)


def castlike(*args: Any, **kwargs: Any) -> npt.NDArray[Any]:
    """ONNX ``CastLike`` of opset 15, as ``modeci_mdf.functions.onnx.castlike``.

    Args:
        input: array, list or number.
        target_type: array, list or number whose type the result has; int32 counts as int64, float64 as float32.

    Returns:
        As :func:`cast`.

    Raises:
        As :func:`cast`.

    Examples:
        >>> from tensorcast import mdf
        >>> mdf.castlike([1.5, -2.5], np.int8([0]))
        array([ 1, -2], dtype=int8)

    Source: ONNX CastLike, version 15; modeci_mdf 0.4.15.
    """
    bound = _bind("CastLike", ("input", "target_type"), (), args, kwargs)
    target = _numpy_types.name_of(_as_input(bound["target_type"]))
    return _convert(_as_input(bound["input"]), 8 if target == "string" else target)


# The engine finds a function of the specification `onnx_ops.cast(input, to)` as an attribute of this module, at every
# call. The table of functions, modeci_mdf.functions.standard.mdf_functions, has these texts only, and the functions
# made of them are not called by anything.
_HOME = "modeci_mdf.functions.onnx"
_OURS: dict[str, Callable[..., Any]] = {"cast": cast, "castlike": castlike}
_originals: dict[str, Callable[..., Any]] = {}


def _replace(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Replaces the function in every module of the package, since some import it by name."""
    for name, module in list(sys.modules.items()):
        if module is not None and (name == "modeci_mdf" or name.startswith("modeci_mdf.")):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    setattr(module, attribute, new)


def install() -> None:
    """Puts :func:`cast` and :func:`castlike` into ``modeci_mdf``, for every model that its engine runs. Idempotent.

    Raises:
        ImportError: the package ``modeci_mdf`` is not installed.

    Examples:
        >>> import modeci_mdf.functions.onnx
        >>> from tensorcast import mdf
        >>> mdf.install()
        >>> modeci_mdf.functions.onnx.cast is mdf.cast
        True
        >>> mdf.uninstall()
    """
    if _originals:
        return
    try:
        home = __import__(_HOME, fromlist=["cast"])
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "modeci_mdf":
            raise ImportError("tensorcast.mdf.install() needs the package modeci_mdf: pip install modeci_mdf") from None
        raise
    found = {name: getattr(home, name) for name in _OURS}  # all or none
    for name, original in found.items():
        _originals[name] = original
        _replace(original, _OURS[name])


def uninstall() -> None:
    """Restores the original functions. Does nothing without an earlier install().

    Examples:
        >>> import modeci_mdf.functions.onnx
        >>> from tensorcast import mdf
        >>> mdf.install()
        >>> mdf.uninstall()
        >>> modeci_mdf.functions.onnx.cast is mdf.cast
        False
    """
    for name in list(_originals):
        _replace(_OURS[name], _originals.pop(name))
