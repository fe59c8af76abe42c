# SPDX-License-Identifier: Apache-2.0
"""Converts models that are files, bytes or protos."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .. import _core
from .._arguments import plain_errors
from .._errors import CastError, UnsupportedError
from ._model_files import Path, read_model, unnamed, write_model
from ._results import (
    ConvertResult,
    InitializerChange,
    KeptNode,
    NodeDecision,
    OutputDifference,
    Validation,
    ValueDecision,
)
from ._validate import compare_models

if TYPE_CHECKING:
    from .._options import DTypeLike
    from ..graph import ModelProto

Runtime: TypeAlias = Literal["onnxruntime_cpu", "onnxruntime_cuda", "tensorrt", "openvino", "any"]
OnOverflow: TypeAlias = Literal["keep_high", "clamp", "inf", "error"]
Masks: TypeAlias = Literal["finite", "inf", "as_others"]
Clamp: TypeAlias = Literal["none", "finite", "onnxconverter_common", "onnxruntime"]
SharedInit: TypeAlias = Literal["dup", "cast"]
Functions: TypeAlias = Literal["copy", "inline"]
ExternalData: TypeAlias = Literal["as_is", "one", "per_tensor", "inline"]
Opset: TypeAlias = "int | Literal['keep', 'auto']"
Check: TypeAlias = "Callable[[str], None]"

# The smallest positive and largest finite number of other converters, by default.
_LIMITS = {
    "none": (0.0, 0.0),
    "finite": (0.0, 0.0),
    "onnxconverter_common": (1e-7, 1e4),
    "onnxruntime": (5.96e-8, 65504.0),
}


@plain_errors
def convert(
    model: Path | bytes | ModelProto,
    output: Path | None = None,
    to: DTypeLike | None = None,
    *,
    from_: DTypeLike | Iterable[DTypeLike] = (),
    keep_io_types: bool | str | Iterable[str] | Mapping[str, DTypeLike | None] = False,
    keep_ops: str | Iterable[str] = (),
    keep_nodes: str | Iterable[str] = (),
    keep: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    op_types: str | Iterable[str] = (),
    weights_only: bool = False,
    runtime: Runtime = "onnxruntime_cpu",
    on_overflow: OnOverflow = "keep_high",
    masks: Masks = "finite",
    clamp: Clamp = "none",
    min_positive: float = 0.0,
    max_finite: float = 0.0,
    shared_init: SharedInit = "dup",
    functions: Functions = "copy",
    external_data: ExternalData = "as_is",
    external_threshold: int = 1024,
    external_alignment: int = 4096,
    allow_lossy_cast_elision: bool = False,
    explain: str | Iterable[str] = (),
    dry_run: bool = False,
    opset: Opset = "keep",
    validate: bool | Validation = False,
    overwrite: bool = False,
) -> ConvertResult:
    """Changes the floating types of an ONNX model. ``output`` is complete or absent, also after an error.

    Each value gets one type, by the schemas of the model's own opset; a Cast stands exactly where two types meet.
    Converting the result again changes nothing. ``docs/onnx.md`` has the rules.

    Args:
        model: a path, the bytes of a model, or an ``onnx.ModelProto``, which is not changed.
        output: where the new model goes; external data goes beside it, into ``output`` with ``.data`` at the end.
            May be left out for bytes and protos: the result has the new model as ``model``.
        to: float16, bfloat16, float32 or float64; with ``weights_only`` also float8 types and int8.
        from_: only values of these types become ``to``. Default: all that can.
        keep_io_types: inputs and outputs of the model keep their types: all of them, or those of these names. A
            mapping gives them types: ``{"x": "float32", "y": None}``; ``None`` keeps one.
        keep_ops: nodes of these operators stay as they are.
        keep_nodes: nodes of these names stay as they are.
        keep: nodes that stay as they are, by selectors: ``"op:TYPE"``, ``"name:NAME"``, ``"glob:PATTERN"``,
            ``"re:REGEX"``, ``"domain:DOMAIN"``, ``"graph:PATTERN"``, ``"tensor:NAME"``, ``"consumer-of:TENSOR"``,
            ``"producer-of:TENSOR"``. One that selects nothing is an error.
        only: the only nodes that change, by selectors.
        op_types: types of operators that have no schema: ``"own::Op:in=float16,out=float16"``.
        weights_only: only initializers change, and a Cast behind each gives back the old type; with int8 a
            DequantizeLinear with a scale for each output channel.
        runtime: where the model must run: nodes that it has no kernel for keep their type. ``"any"`` decides by ONNX's
            schemas alone.
        on_overflow: what becomes of initializers beyond the range: they and their nodes keep the type, or ...
        masks: what becomes of constants such as -1e9 and -3.4e38: the lowest number, infinity, or ``on_overflow``.
        clamp: limits numbers of initializers: ``"finite"`` to the type's range (as ``on_overflow="clamp"``), the others
            as these tools do by default.
        min_positive, max_finite: smaller numbers other than 0, and larger finite ones, become these; 0: no limit.
        shared_init: an initializer that both types need is stored twice, or once with a Cast behind it.
        functions: one that is called with several types gets a copy for each; ``"inline"`` puts the nodes of all in the
            place of their calls.
        external_data: where initializers of ``external_threshold`` bytes or more go: ``"one"`` file, a file each, or
            ``"inline"`` into the model; ``"as_is"``: a new file for each old one.
        external_alignment: of tensors there that are not smaller, a power of two; 1 packs them.
        allow_lossy_cast_elision: also removes Casts to a narrower type and back whose types change.
        explain: names of nodes that ``explained`` of the result describes.
        dry_run: writes nothing; ``output`` is not needed.
        opset: ``"auto"`` upgrades a model whose opset lacks the type; a number upgrades to that opset. Where nodes would
            change their meaning, ``onnx.version_converter`` rewrites them.
        validate: check the new model with ONNX's checker and strict type inference, and compare it with the old one in
            ONNX Runtime, on random or given inputs. Needs the packages onnx and onnxruntime.
        overwrite: replace an existing ``output``.

    Raises:
        CastError: a name that the model does not have, a type that is no target. UnsupportedError: the opset lacks the
            type. ParseError: a file that is no model. FileError: as ``builtins.open``.
        ValidationError: the new model is invalid or differs too much. Nothing is left on disk.
    """
    if to is None:
        raise CastError("there is no type to convert to; name it with to=, such as to='float16'")
    if clamp not in _LIMITS:
        raise CastError(f"clamp= is one of {', '.join(_LIMITS)}, not {clamp!r}")
    if not isinstance(opset, int) and opset not in _OPSETS:
        raise CastError(f"opset= is a number, {' or '.join(_OPSETS)}, not {opset!r}")
    for name, number in {"min_positive": min_positive, "max_finite": max_finite, "external_threshold": external_threshold,
                         "external_alignment": external_alignment}.items():  # fmt: skip
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise TypeError(f"{name}= must be a number, not {number!r}")
    if not (min_positive >= 0 and max_finite >= 0 and external_threshold >= 0 and external_alignment >= 0):
        raise CastError("min_positive=, max_finite=, external_threshold= and external_alignment= are 0 or more")
    names: list[str] = []
    types: dict[str, Any] = {}
    if isinstance(keep_io_types, Mapping):
        names = [name for name, dtype in keep_io_types.items() if dtype is None]
        types = {name: dtype for name, dtype in keep_io_types.items() if dtype is not None}
    elif not isinstance(keep_io_types, bool):
        names = _listed(keep_io_types)
    options: dict[str, Any] = {
        "opset": opset if isinstance(opset, int) else _OPSETS[opset],
        "from_": [from_] if isinstance(from_, str) or not isinstance(from_, Iterable) else list(from_),
        "keep_io_types": keep_io_types is True,
        "keep_io_names": names,
        "io_types": list(types.items()),
        "keep_ops": _listed(keep_ops),
        "keep_nodes": _listed(keep_nodes),
        "keep": _listed(keep),
        "only": _listed(only),
        "op_types": _listed(op_types),
        "weights_only": weights_only,
        "runtime": runtime,
        "on_overflow": "clamp" if clamp == "finite" else on_overflow,
        "masks": masks,
        "min_positive": min_positive or _LIMITS[clamp][0],
        "max_finite": max_finite or _LIMITS[clamp][1],
        "shared_init": shared_init,
        "functions": functions,
        "external_data": external_data,
        "external_threshold": external_threshold,
        "external_alignment": external_alignment,
        "allow_lossy_cast_elision": allow_lossy_cast_elision,
        "explain": _listed(explain),
        "dry_run": dry_run,
        "overwrite": overwrite,
    }
    checks = Validation() if validate is True else validate or None
    if isinstance(model, (str, os.PathLike)):
        if output is None and not dry_run:
            raise CastError("there is no place for the new model; name it with output=")
        return _convert_file(os.fspath(model), os.fspath(output or ""), to, options, opset, checks)
    with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as folder:
        source = os.path.join(folder, "model.onnx")
        write_model(model, source)
        made = os.path.join(folder, "new.onnx") if output is None else os.fspath(output)
        with unnamed(folder):
            result = _convert_file(source, made, to, options, opset, checks)
        if dry_run or output is not None:
            return result
        return dataclasses.replace(result, path=None, model=read_model(model, made))


def _listed(names: str | Iterable[str]) -> list[str]:
    listed = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"a name or selector is a text, not {name!r}")
    return listed


def _attempt(
    source: str, target: str, to: Any, options: dict[str, Any], opset: Opset, check: Check | None
) -> dict[str, Any] | None:
    """What the conversion says; None if it is refused in an opset that onnx's own converter may raise."""
    try:
        return _core.onnx_convert(source, target, to, options, check)
    except UnsupportedError:
        if opset == "keep":
            raise
        return None


def _convert_file(
    source: str, target: str, to: Any, options: dict[str, Any], opset: Opset, checks: Validation | None
) -> ConvertResult:
    outputs: tuple[OutputDifference, ...] = ()

    def check(made: str) -> None:  # before the new model is in its place
        nonlocal outputs
        assert checks is not None
        outputs = compare_models(source, made, _core.dtype_name(to), checks)

    wanted = None if checks is None else check
    rows = _attempt(source, target, to, options, opset, wanted)
    if rows is None:
        beside = None if options["dry_run"] else os.path.dirname(os.path.abspath(target))
        with tempfile.TemporaryDirectory(prefix=".tensorcast-", dir=beside) as folder:
            upgraded, here = _upgraded(source, opset, to, folder)
            with unnamed(folder):
                rows = _core.onnx_convert(upgraded, target, to, {**options, "opset": 0}, wanted)
            rows.update(opset_before=here, rewritten_by_onnx=True)
    path = None if options["dry_run"] else target
    return dataclasses.replace(_result(rows, path), validated=checks is not None, outputs=outputs)


_OPSETS = {"keep": 0, "auto": -1}
# The first opset whose Cast has the type.
_SINCE = {"bfloat16": 13, "float8_e4m3fn": 19, "float8_e4m3fnuz": 19, "float8_e5m2": 19, "float8_e5m2fnuz": 19}


def _upgraded(source: str, opset: Opset, to: Any, folder: str) -> tuple[str, int]:
    """The model with nodes that onnx's own converter has rewritten, and the opset that it had."""
    import onnx
    import onnx.version_converter

    model = onnx.load(source)
    here = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)
    wanted = _SINCE.get(_core.dtype_name(to), 0) if opset == "auto" else int(opset)
    if opset == "auto" and here >= wanted:
        return source, here
    if wanted < here:
        raise CastError(f"the model has opset {here}, which is newer than {wanted}; models are only upgraded")
    try:
        upgraded = onnx.version_converter.convert_version(model, wanted)
    except Exception as problem:
        raise CastError(f"onnx cannot upgrade the model from opset {here} to {wanted}: {problem}") from problem
    path = os.path.join(folder, "upgraded.onnx")
    write_model(upgraded, path)
    return path, here


def _result(row: dict[str, Any], path: str | None) -> ConvertResult:
    kept = tuple(KeptNode(**node) for node in row.pop("kept"))
    initializers = tuple(InitializerChange(**change) for change in row.pop("initializers"))
    explained = tuple(
        NodeDecision(**{**node, "values": tuple(ValueDecision(**value) for value in node["values"])})
        for node in row.pop("explained")
    )
    return ConvertResult(kept=kept, initializers=initializers, explained=explained, path=path, **row)
