# SPDX-License-Identifier: Apache-2.0
"""Converts models that are files, bytes or protos."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _core
from .._arguments import plain_errors
from .._errors import CastError, UnsupportedError
from .._options import shows
from ._model_files import Path, external_tensors, link_external_data, load_small_external_data, read_model, unnamed, write_model
from ._option_list import DEFAULTS, ConvertOptions, Opset
from ._option_table import settled
from ._results import ConvertResult, OutputDifference, Validation
from ._upgrade import opset_of, upgrade
from ._validate import compare_models

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import DTypeLike
    from ..graph import ModelProto

Check: TypeAlias = "Callable[[str], None]"


@shows(ConvertOptions, DEFAULTS)
@plain_errors
def convert(
    model: Path | bytes | ModelProto,
    output: Path | None = None,
    to: DTypeLike | None = None,
    *,
    validate: bool | Validation = False,
    overwrite: bool = False,
    **options: Unpack[ConvertOptions],
) -> ConvertResult:
    """Changes the floating types of an ONNX model. ``output`` is complete or absent, also after an error.

    Each value gets one type, by the schemas of the model's own opset; a Cast stands exactly where two types meet.
    Converting the result again changes nothing. ``docs/onnx.md`` has the rules.

    Args:
        model: a path, the bytes of a model, or an ``onnx.ModelProto``, which is not changed.
        output: where the new model goes; external data goes beside it, into ``output`` with ``.data`` at the end.
            May be left out for bytes and protos: the result has the new model as ``model``.
        to: float16, bfloat16, float32 or float64; with ``weights_only`` also float8 types and int8. May be left out
            if ``weights_only`` is a scheme.
        validate: check the new model with ONNX's checker and strict type inference, and compare it with the old one in
            ONNX Runtime, on random or given inputs. Needs the packages onnx and onnxruntime.
        overwrite: replace an existing ``output``.
        **options: those of :class:`ConvertOptions`.

    Warns:
        UserWarning: before anything is written, if ``runtime`` is known to lack a kernel for a scheme of weights.

    Raises:
        CastError: a name that the model does not have, a type that is no target. UnsupportedError: the opset lacks the
            type. ParseError: a file that is no model. FileError: as ``builtins.open``.
        ValidationError: the new model is invalid or differs too much. Nothing is left on disk.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> done.nodes_converted, done.casts_added
        (3, 2)
    """
    if to is None and not isinstance(options.get("weights_only"), str):
        raise CastError("there is no type to convert to; name it with to=, such as to='float16'")
    asked = settled(options, "convert")
    _, _, missing = _core.onnx_needs(to, asked)
    if missing:
        warnings.warn(missing, stacklevel=3)
    dry_run = bool(asked.get("dry_run"))
    checks = Validation() if validate is True else validate or None
    if isinstance(model, (str, os.PathLike)):
        if output is None and not dry_run:
            raise CastError("there is no place for the new model; name it with output=")
        return _convert_file(os.fspath(model), os.fspath(output or ""), to, overwrite, asked, checks)
    with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as folder:
        source = os.path.join(folder, "model.onnx")
        write_model(model, source)
        made = os.path.join(folder, "new.onnx") if output is None else os.fspath(output)
        with unnamed(folder):
            result = _convert_file(source, made, to, overwrite, asked, checks)
        if dry_run or output is not None:
            return result
        return dataclasses.replace(result, path=None, model=read_model(model, made))


def _convert_file(
    source: str, target: str, to: Any, overwrite: bool, options: dict[str, Any], checks: Validation | None
) -> ConvertResult:
    outputs: tuple[OutputDifference, ...] = ()

    def check(made: str) -> None:  # before the new model is in its place
        nonlocal outputs
        assert checks is not None
        outputs = compare_models(source, made, _core.onnx_needs(to, options)[1], checks)

    wanted = None if checks is None else check
    opset = options.get("opset", "keep")
    dry_run = bool(options.get("dry_run"))
    rows: dict[str, Any] | None = None
    try:
        rows = _core.onnx_convert(source, target, to, overwrite, options, wanted)
    except UnsupportedError:
        if opset == "keep":
            raise
    if rows is None:  # onnx's own converter may raise the opset
        beside = None if dry_run else os.path.dirname(os.path.abspath(target))
        with tempfile.TemporaryDirectory(prefix=".tensorcast-", dir=beside) as folder:
            upgraded, here = _upgraded(source, opset, to, options, folder)
            with unnamed(folder):
                rows = _core.onnx_convert(upgraded, target, to, overwrite, {**options, "opset": "keep"}, wanted)
            rows.update(opset_before=here, rewritten_by_onnx=True)
    path = None if dry_run else target
    return ConvertResult._of(rows, path=path, validated=checks is not None, outputs=outputs)


def _upgraded(source: str, opset: Opset, to: Any, options: dict[str, Any], folder: str) -> tuple[str, int]:
    """The model with nodes that onnx's own converter has rewritten, and the opset that it had."""
    import onnx

    model = onnx.load(source, load_external_data=False)  # it may exceed what one message holds
    here = opset_of(model)
    wanted = _core.onnx_needs(to, options)[0] if opset == "auto" else int(opset)
    if opset == "auto" and here >= wanted:
        return source, here
    load_small_external_data(model, source)
    outside = external_tensors(model)
    upgraded = None
    try:
        upgraded = upgrade(model, wanted)
    except CastError:
        if not outside:
            raise
    if upgraded is None or not outside <= external_tensors(upgraded):  # an old onnx reads external data, or loses it
        upgraded = upgrade(onnx.load(source), wanted)
    path = os.path.join(folder, "upgraded.onnx")
    link_external_data(upgraded, source, folder)
    write_model(upgraded, path)
    return path, here
