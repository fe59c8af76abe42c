# SPDX-License-Identifier: Apache-2.0
"""``cast`` of arrays that the hot path of ``_core`` does not handle: other layouts, byte orders, strings, ``out=``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from .. import _core
from .._interop import _exchange, _foreign
from .._errors import CastError, OutOfRangeError, ParseError
from ._numpy_types import (
    NAME_OF_TYPE,
    Array,
    has_codes_only,
    is_packable,
    name_of,
    numpy_type,
    pack,
    packed_bytes,
    packed_type,
    unpack,
)

_CHUNK = 1 << 16  # strings per call of the core


def as_plain_array(x: Any) -> Array:
    """The ndarray of an argument, without copying. TypeError with advice if the argument has none."""
    if type(x) is np.ndarray or isinstance(x, np.memmap):
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask; pass x.data, or x.filled(value)")
    if isinstance(x, np.ndarray):
        raise TypeError(f"{type(x).__name__} is a subclass of numpy.ndarray; pass numpy.asarray(x) for its numbers")
    if isinstance(x, np.generic):
        return np.asarray(x)
    if _foreign.is_foreign(x):
        return _foreign.array_of(x)
    if isinstance(x, (list, tuple)):
        kind = type(x).__name__
        if _is_ragged(x):
            raise TypeError(f"the rows of this {kind} have different lengths; cast them one by one, or pad them")
        raise TypeError(
            f"a {kind} has no dtype of its own; pass numpy.array(x, dtype=numpy.float32), or with the dtype that it has"
        )
    if isinstance(x, (bool, int, float)):
        raise TypeError(f"a number has no dtype of its own; pass numpy.float32({x!r}), or another NumPy scalar")
    if hasattr(x, "__cuda_array_interface__"):
        raise _exchange.on_a_device("CUDA")
    try:
        view = memoryview(x)
    except TypeError:
        if (advice := _advice_on(x)) is not None:
            raise TypeError(advice) from None
        raise TypeError(
            f"cannot cast an object of type {type(x).__name__}: expected a NumPy array, an object with __dlpack__ or "
            "with the buffer protocol; numpy.asarray(x) may make one"
        ) from None
    return np.asarray(view)


def _advice_on(x: Any) -> str | None:
    """What to write instead of an object that is not an array but has one."""
    library, kind = type(x).__module__.partition(".")[0], type(x).__name__
    if library == "pandas" and kind == "DataFrame":
        return "a pandas DataFrame has a dtype for each column; pass x.to_numpy(), or cast the columns one by one"
    if hasattr(x, "to_numpy"):
        return f"{library}'s {kind} is not an array; pass x.to_numpy()"
    if library in ("jax", "jaxlib") and "Tracer" in kind:
        return "a traced JAX array has no elements yet; cast outside of jit and grad, or through jax.pure_callback"
    return "a sparse matrix must be dense; pass x.toarray()" if hasattr(x, "toarray") else None


def _is_ragged(rows: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what NumPy 1.23 does about it
        try:
            np.shape(rows)
        except (ValueError, Warning):
            return True
    return False


def _new_array(array: Array, dtype: np.dtype[Any], order: Literal["C", "K"] = "C") -> Array:
    try:
        return np.empty_like(array, dtype, order=order, subok=False)
    except (MemoryError, ValueError) as cause:
        size = array.size * dtype.itemsize
        raise CastError(
            f"the result, {dtype.name} of shape {array.shape}, would take {size} bytes, which cannot be had; "
            "cast it slice by slice, or pass a numpy.memmap as out="
        ) from cause


def _texts(array: Array, first: int = 0) -> list[str]:
    """The strings of an array; the first is element ``first`` of the whole."""
    texts = []
    for index, item in enumerate(array.ravel().tolist(), first):
        if isinstance(item, bytes):
            item = item.decode("utf-8", "replace")
        if not isinstance(item, str):
            kind = type(item).__name__
            raise ParseError(f"element {index}: an array of objects must hold strings, not {kind}", index=index)
        texts.append(item)
    return texts


def _chunks(count: int) -> Iterator[slice]:
    """Slices of a long conversion of text, with checks for signals between them. At least one, which may be empty."""
    return (slice(first, min(first + _CHUNK, count)) for first in range(0, max(count, 1), _CHUNK))


def _storage_slice(name: str, elements: slice) -> slice:
    """Where a chunk's elements are in flat storage; chunks begin at whole bytes."""
    if not is_packable(name):
        return elements
    return slice(packed_bytes(elements.start, name), packed_bytes(elements.stop, name))


def _cast_from_text(array: Array, name: str, packed: bool, options: dict[str, Any]) -> Array:
    packable = is_packable(name)
    if packable:
        result = np.empty(packed_bytes(array.size, name), np.uint8)
    else:
        result = _new_array(array, packed_type(name) if packed else numpy_type(name))
    storage = result.reshape(-1)
    for chunk in _chunks(array.size):
        texts = _texts(array.flat[chunk], chunk.start)
        _core.cast_texts(texts, storage[_storage_slice(name, chunk)], name, chunk.start, options)
    return unpack(storage, name, array.shape) if packable and not packed else result


def _to_text(
    chunks: Iterable[list[str]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Joins chunks of strings into one array."""
    parts: list[Array] = []
    first = 0
    for texts in chunks:
        parts.append(_text_array(texts, dtype, first))
        first += len(texts)
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(shape)


def _text_of(array: Array, name: str, target: Any, options: dict[str, Any]) -> Array:
    """Converts numbers, or texts of another kind, to strings of the target's kind."""

    def texts(chunk: slice) -> list[str]:
        part = array.flat[chunk]
        if name == "string":
            return _texts(part, chunk.start)
        return _core.texts_of(_packed_storage(part, name), name, part.size, options)

    return _to_text(map(texts, _chunks(array.size)), array.shape, _text_type(target))


def _text_type(target: Any) -> np.dtype[Any]:
    """NumPy's type for a result of strings: the requested one, or Python objects if only the name was given."""
    if isinstance(target, type):
        dtype_class: Any = target
        return dtype_class() if issubclass(target, np.dtype) else np.dtype(target)
    return target if isinstance(target, np.dtype) else np.dtype(object)


def _text_array(texts: list[str], dtype: np.dtype[Any], first: int = 0) -> Array:
    if dtype.kind == "U" and dtype.itemsize:
        width = dtype.itemsize // np.dtype("U1").itemsize
        for index, text in enumerate(texts, first):
            if len(text) > width:
                raise OutOfRangeError(
                    f'element {index}: "{text}" does not fit {dtype}; ask for str, or for a wider type', index=index
                )
    return np.array(texts, dtype) if texts else np.empty(0, dtype)


def _packed_storage(array: Array, name: str) -> Array:
    """An array's elements as the core stores them: in C order, this machine's byte order, types under 8 bits packed."""
    if is_packable(name):
        return pack(array, name)
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(-1)


def _is_in_place(out: Array, array: Array, name: str, from_name: str) -> bool:
    """Reports whether both start at the same address and no element is written before it is read."""
    return (
        out.ctypes.data == array.ctypes.data
        and all(a.flags.c_contiguous and a.dtype.isnative for a in (out, array))
        and out.itemsize <= array.itemsize
        and not is_packable(name)
        and not is_packable(from_name)
    )


def _shares_memory(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=100_000)  # type: ignore[arg-type]  # any limit is valid
    except RuntimeError:  # too hard to tell: exotic strides in one range of addresses
        return True


def _check_out(out: Any, array: Array, name: str, from_name: str) -> None:
    if type(out) is not np.ndarray and not isinstance(out, np.memmap):
        raise TypeError(f"out must be a numpy.ndarray, not {type(out).__name__}")
    if out.shape != array.shape:
        raise CastError(f"out has shape {out.shape}, but the result has {array.shape}")
    if out.dtype.newbyteorder("=") != numpy_type(name):
        raise CastError(f"out has dtype {out.dtype}, but the result is {name}")
    if not out.flags.writeable:
        raise CastError("out is read-only; give it memory of its own")
    if _shares_memory(out, array) and not _is_in_place(out, array, name, from_name):
        raise CastError("out overlaps the input; give it memory of its own")


def _coded(x: Array, from_: Any, shape: Any) -> tuple[Array, str, tuple[int, ...]]:
    """Packed bytes, the type of their elements, and their shape, which is one dimension unless it is given.

    Codes of 8 bits keep the array's own shape.
    """
    name = _core.dtype_name(from_)
    if x.dtype != np.uint8 or not (is_packable(name) or has_codes_only(name)):
        raise CastError(
            f"from_= names the type under 8 bits, or one that NumPy lacks, in a uint8 array, not {name} in {x.dtype}"
        )
    dense = np.ascontiguousarray(x).reshape(-1)
    if shape is None and not is_packable(name):
        return dense, name, x.shape
    if shape is None:
        return dense, name, (dense.size * 8 // _core.bit_width(name),)
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(not isinstance(length, (int, np.integer)) or length < 0 for length in lengths):
        raise CastError(f"shape= is the shape in elements, of whole numbers from 0 on, not {shape!r}")
    count = math.prod(lengths)
    if packed_bytes(count, name) != dense.size:
        needs = packed_bytes(count, name)
        raise CastError(f"{count} elements of {name}, shape {lengths}, take {needs} bytes, but x has {dense.size}")
    return dense, name, lengths


def _cast_packed(
    x: Array, from_: Any, shape: Any, target: Any, name: str, report: bool, options: dict[str, Any]
) -> Any:
    """Types under 8 bits as packed bytes on either side; packed results are flat."""
    if from_ is None:
        from_name, count, shape = name_of(x), x.size, x.shape
        if from_name == "string":
            return _cast_from_text(x, name, True, options)
        dense = _packed_storage(x, from_name)
    else:
        dense, from_name, shape = _coded(x, from_, shape)
        count = math.prod(shape)
    if name == "string":

        def texts(chunk: slice) -> list[str]:
            return _core.texts_of(
                dense[_storage_slice(from_name, chunk)], from_name, chunk.stop - chunk.start, options
            )

        return _to_text(map(texts, _chunks(count)), shape, _text_type(target))
    if is_packable(name):
        result = np.empty(packed_bytes(count, name), np.uint8)
    else:
        result = np.empty(shape, packed_type(name))
    done = _core.cast_packed(dense, from_name, result, name, count, report, options)
    if isinstance(target, np.dtype) and not target.isnative:
        result = result.astype(target)
    return (result, done) if report else result


def cast_numbers(
    array: Array, from_name: str, result: Array, name: str, report: bool, options: dict[str, Any]
) -> _core.CastReport | None:
    """Any strides to any strides. Axes are walked in the order of the result's memory, if no number depends on it."""
    axes = list(range(result.ndim))
    if options.get("rounding") != "stochastic":  # whose random words are counted in C order
        axes.sort(key=lambda axis: -abs(result.strides[axis]))
    src, dst = array.transpose(axes), result.transpose(axes)
    try:
        return _core.cast_codes(src, from_name, is_packable(from_name), dst, name, is_packable(name), report, options)
    except CastError as error:
        if error.index is None or axes == sorted(axes):
            raise
        # The error counts elements in C order of the argument.
        return _core.cast_codes(
            array, from_name, is_packable(from_name), result, name, is_packable(name), report, options
        )


def scales_of(scale: Any, shape: tuple[int, ...]) -> Array | None:
    """An array of scales as float32 or float64, repeated to the shape of the elements; ``None`` for a single number."""
    if isinstance(scale, (int, float)):
        return None
    if hasattr(scale, "detach"):  # PyTorch
        if scale.requires_grad:
            raise CastError("scale= gets no gradient here; pass scale.detach()")
        scale = scale.detach().cpu()
        scale = (scale if str(scale.dtype) == "torch.float32" else scale.double()).numpy()
    given = np.asarray(scale)
    if (given.dtype.kind not in "iuf" and given.dtype not in NAME_OF_TYPE) or given.dtype.kind == "c":
        raise TypeError(f"scale must be a real number or an array of them, not {scale!r}")
    numbers = given if given.dtype == np.float32 and given.dtype.isnative else given.astype(np.float64)
    try:
        return np.broadcast_to(numbers, shape)
    except ValueError:
        advice = "; for one scale per row write scale[:, None]" if numbers.shape[:1] == shape[:1] else ""
        raise CastError(f"scale= has shape {numbers.shape}, which does not broadcast to {shape}{advice}") from None


def cast_scaled(
    src: Array, from_name: str, dst: Array, name: str, scales: Array, report: bool, options: dict[str, Any]
) -> _core.CastReport | None:
    """As :func:`cast_numbers`, with a scale for each element."""
    packable = is_packable(from_name), is_packable(name)
    return _core.cast_scaled(src, from_name, packable[0], dst, name, packable[1], scales, report, options)


def cast_array(
    x: Any,
    to: Any,
    name: str,
    *,
    out: Any = None,
    copy: bool = True,
    order: Literal["C", "K"] | None = None,
    packed: bool = False,
    from_: Any = None,
    shape: Any = None,
    report: bool = False,
    scale: Any = 1.0,
    options: dict[str, Any],
) -> Any:
    """``tensorcast.cast`` of an object that is an array or has one; :func:`_general.cast` has checked the words.

    Args:
        name: the canonical name of ``to``.
        options: those of the core, with ``scale`` if it is a number.
    """
    swapped = isinstance(to, np.dtype) and not to.isnative
    array = as_plain_array(x)
    if packed and isinstance(scale, (int, float)):
        return _cast_packed(array, from_, shape, to, name, report, options)
    from_name = None
    if from_ is not None:
        if shape is None:
            raise CastError("with packed bytes, scale= is one number; with shape=, it may be an array")
        dense, from_name, lengths = _coded(array, from_, shape)
        array = dense.reshape(lengths) if has_codes_only(from_name) else unpack(dense, from_name, lengths)

    from_name = from_name or name_of(array)
    if "string" in (from_name, name):
        if report or out is not None or not isinstance(scale, (int, float)):
            raise CastError("conversions of text have no report=, no out= and no array as scale=")
        if from_name == name:
            if isinstance(to, (type, np.dtype)) and _text_type(to) != array.dtype:
                return _text_of(array, from_name, to, options)
            return array.copy() if copy else array
        if from_name == "string":
            result = _cast_from_text(array, name, False, options)
            return result.astype(to) if swapped else result
        return _text_of(array, from_name, to, options)

    codes = packed and has_codes_only(name)
    dtype: np.dtype[Any] = np.dtype(to) if swapped else np.dtype(np.uint8) if codes else numpy_type(name)
    scales = scales_of(scale, array.shape)
    if out is not None:
        _check_out(out, array, name, from_name)
        if scales is not None and _shares_memory(out, array):
            raise CastError("out overlaps the input, which one scale alone allows; give it memory of its own")
        result = out
    elif not copy and array.dtype == dtype and scale_is_one(scale) and not report:
        return array
    else:
        result = _new_array(array, dtype, order or "C")
    if scales is None:
        done = cast_numbers(array, from_name, result, name, report, options)
    else:
        done = cast_scaled(array, from_name, result, name, scales, report, options)
    if packed:
        result = pack(result, name) if is_packable(name) else result
    return (result, done) if report else result


def scale_is_one(scale: Any) -> bool:
    return isinstance(scale, (int, float)) and scale == 1
