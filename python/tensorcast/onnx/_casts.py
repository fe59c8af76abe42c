# SPDX-License-Identifier: Apache-2.0
"""Lists Casts and initializers of ONNX models, removes Casts, respells 4-bit products, and compares models."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._arguments import plain_errors
from .._errors import CastError
from .._results import TensorInfo
from ._model_files import Path, as_file, read_model
from ._results import CastInfo, CleanResult, DiffResult, RespellResult

if TYPE_CHECKING:
    from ..graph import ModelProto


@plain_errors
def casts(model: Path | bytes | ModelProto) -> tuple[CastInfo, ...]:
    """Lists the Casts and CastLikes of a model in the order of the file, and says why each is there.

    Args:
        model: a path, the bytes of a model, or an ``onnx.ModelProto``.

    Raises:
        FileError: as ``builtins.open``. ParseError: a file that is no model.

    Examples:
        >>> [(cast.name, cast.role) for cast in tc.onnx.casts("cast.onnx") if not cast.removable]
        [('y', 'model_input')]
    """
    with as_file(model) as path:
        return tuple(CastInfo(**row) for row in _core.onnx_casts(path))


@plain_errors
def initializers(model: Path | bytes | ModelProto) -> tuple[TensorInfo, ...]:
    """Lists the initializers of a model in the order of the file, without reading their elements.

    Args:
        model: a path, the bytes of a model, or an ``onnx.ModelProto``. Names of initializers in subgraphs have the
            scope, as in :class:`CastInfo`, and a slash before them. ``problem`` says which are sparse, or have external
            data that is missing.

    Raises:
        FileError: as ``builtins.open``. ParseError: a file that is no model.

    Examples:
        >>> sum(tensor.bytes for tensor in tc.onnx.initializers("model.onnx"))
        65536
    """
    with as_file(model) as path:
        return tuple(TensorInfo(**row) for row in _core.onnx_initializers(path))


def _edited(
    model: Path | bytes | ModelProto,
    output: Path | None,
    edit: Callable[[str, str], dict[str, Any]],
    *,
    dry_run: bool = False,
) -> dict[str, Any]:
    """What ``edit(source, made)`` told, and the new model: its path, or itself if there is no ``output``."""
    in_file = isinstance(model, (str, os.PathLike))
    if output is None and in_file and not dry_run:
        raise CastError("there is no place for the new model; name it with output=")
    with as_file(model) as source:
        made = os.path.join(os.path.dirname(source), "new.onnx") if output is None else os.fspath(output)
        row = edit(source, made)
        if dry_run:
            return row
        if output is None and not isinstance(model, (str, os.PathLike)):
            return {**row, "model": read_model(model, made)}
        return {**row, "path": made}


@plain_errors
def clean(
    model: Path | bytes | ModelProto,
    output: Path | None = None,
    *,
    allow_lossy_cast_elision: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
) -> CleanResult:
    """Removes Casts and Identities that change no value. ``output`` is complete or absent, also after an error.

    Those go that give the type that they take, pairs to a type that has all values of the first and back, second Casts
    of a value to a type, and those whose result nothing takes. A DequantizeLinear and a QuantizeLinear behind it go if
    every code of the type comes back, which is tried. Inputs and outputs keep their names and types.
    Everything else is copied byte for byte. Cleaning the result again changes nothing.

    Args:
        model: a path, the bytes of a model, or an ``onnx.ModelProto``, which is not changed.
        output: where the new model goes; may be ``model`` with ``overwrite``. May be left out for bytes and protos: the
            result has the new model as ``model``.
        allow_lossy_cast_elision: also remove Casts to a narrower type and back, which changes values.
        dry_run: only tell what would go; ``output`` is not needed.
        overwrite: replace an existing ``output``.

    Raises:
        CastError: there is no ``output``. FileError: as ``builtins.open``. ParseError: a file that is no model.

    Examples:
        >>> tc.onnx.clean("model.onnx", "clean.onnx").nodes_removed
        0
    """

    def edit(source: str, made: str) -> dict[str, Any]:
        return _core.onnx_clean(source, made, allow_lossy_cast_elision, dry_run, overwrite)

    return CleanResult._of(_edited(model, output, edit, dry_run=dry_run))


@plain_errors
def respell(
    model: Path | bytes | ModelProto,
    output: Path | None = None,
    *,
    to: Literal["matmulnbits", "qdq"],
    overwrite: bool = False,
) -> RespellResult:
    """Writes products with 4-bit codes as ONNX Runtime's MatMulNBits, or as MatMul behind DequantizeLinear.

    Codes, scales and zero points stay the same numbers. What the other spelling cannot hold stays, and ``left`` says
    why. ``output`` is complete or absent, also after an error.

    Args:
        model: a path, the bytes of a model, or an ``onnx.ModelProto``, which is not changed.
        output: where the new model goes; may be ``model`` with ``overwrite``. May be left out for bytes and protos: the
            result has the new model as ``model``.
        to: ``"matmulnbits"``, or ``"qdq"``, which raises an older opset to 21 where no other node changes by that.
        overwrite: replace an existing ``output``.

    Raises:
        CastError: there is no ``output``, or no such spelling. UnsupportedError: the opset cannot rise. FileError: as
        ``builtins.open``. ParseError: a file that is no model.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "int4.onnx", weights_only="int4-group", group_size=32)
        >>> tc.onnx.respell("int4.onnx", "nbits.onnx", to="matmulnbits").respelled
        1
    """
    spelling = str(to).lower()  # as operators are spelled, MatMulNBits
    if spelling not in ("matmulnbits", "qdq"):
        raise CastError(f"there is no spelling {to!r} of products; to= is matmulnbits or qdq")

    def edit(source: str, made: str) -> dict[str, Any]:
        return _core.onnx_respell(source, made, spelling == "qdq", overwrite)

    return RespellResult._of(_edited(model, output, edit))


@plain_errors
def diff(
    a: Path | bytes | ModelProto,
    b: Path | bytes | ModelProto,
    *,
    headers_only: bool = False,
) -> DiffResult:
    """Compares opsets, types of values, Casts, operators and initializers of two models, by the names of values.

    Args:
        a, b: paths, bytes of models, or ``onnx.ModelProto``.
        headers_only: elements of initializers are not compared.

    Raises:
        FileError: as ``builtins.open``. ParseError: a file that is no model.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16")
        >>> worst = min(tc.onnx.diff("model.onnx", "model-f16.onnx").initializers, key=lambda row: row.snr_db)
        >>> worst.name, worst.from_, worst.to
        ('w', 'float32', 'float16')
    """
    with as_file(a) as path_a, as_file(b) as path_b:
        row: dict[str, Any] = _core.onnx_diff(path_a, path_b, headers_only)
    return DiffResult._of(row)
