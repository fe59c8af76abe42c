"""Converts models that are files, bytes or protos."""

from __future__ import annotations

import dataclasses
import errno
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .. import _core
from .._errors import CastError, make_error
from ._results import ConvertResult, KeptNode, OutputDifference, Validation
from ._validate import check_model, validate_model

if TYPE_CHECKING:
    from .._options import DTypeLike
    from ..graph import ModelProto

Path: TypeAlias = "str | os.PathLike[str]"
Runtime: TypeAlias = Literal["onnxruntime_cpu", "any"]
OnOverflow: TypeAlias = Literal["keep_high", "clamp", "inf", "error"]
Masks: TypeAlias = Literal["finite", "inf", "as_others"]
Opset: TypeAlias = "int | Literal['keep', 'auto']"

MAX_MESSAGE_BYTES = 2**31 - 1


def convert(
    model: Path | bytes | ModelProto,
    output: Path | None = None,
    to: DTypeLike | None = None,
    *,
    from_: DTypeLike | Iterable[DTypeLike] = (),
    keep_io_types: bool | str | Iterable[str] = False,
    keep_ops: str | Iterable[str] = (),
    keep_nodes: str | Iterable[str] = (),
    weights_only: bool = False,
    runtime: Runtime = "onnxruntime_cpu",
    on_overflow: OnOverflow = "keep_high",
    masks: Masks = "finite",
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
        to: float16, bfloat16, float32 or float64; with ``weights_only`` also float8 types.
        from_: only values of these types become ``to``. Default: all that can.
        keep_io_types: inputs and outputs of the model keep their types: all of them, or those of these names.
        keep_ops: nodes of these operators stay as they are.
        keep_nodes: nodes of these names stay as they are.
        weights_only: only initializers change, and a Cast behind each gives back the old type.
        runtime: where the model must run; ``"any"`` decides by ONNX's schemas alone.
        on_overflow: what becomes of initializers beyond the range: they and their nodes keep the type, or ...
        masks: what becomes of constants such as -1e9 and -3.4e38: the lowest number, infinity, or ``on_overflow``.
        opset: ``"auto"`` upgrades a model whose opset lacks the type, with ``onnx.version_converter``; a number
            upgrades to that opset.
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
    names = _listed(keep_io_types) if not isinstance(keep_io_types, bool) else []
    options: dict[str, Any] = {
        "from_": [from_] if isinstance(from_, str) or not isinstance(from_, Iterable) else list(from_),
        "keep_io_types": keep_io_types is True,
        "keep_io_names": names,
        "keep_ops": _listed(keep_ops),
        "keep_nodes": _listed(keep_nodes),
        "weights_only": weights_only,
        "runtime": runtime,
        "on_overflow": on_overflow,
        "masks": masks,
        "overwrite": overwrite,
    }
    checks = Validation() if validate is True else validate or None
    if isinstance(model, (str, os.PathLike)):
        if output is None:
            raise CastError("there is no place for the new model; name it with output=")
        return _convert_file(os.fspath(model), os.fspath(output), to, options, opset, checks)
    with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as folder:
        source = os.path.join(folder, "model.onnx")
        _write(model, source)
        if output is not None:
            return _convert_file(source, os.fspath(output), to, options, opset, checks)
        made = _convert_file(source, os.path.join(folder, "new.onnx"), to, options, opset, checks)
        return dataclasses.replace(made, path=None, model=_read(model, os.path.join(folder, "new.onnx")))


def _listed(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _write(model: bytes | ModelProto, path: str) -> None:
    if isinstance(model, (bytes, bytearray, memoryview)):
        pathlib.Path(path).write_bytes(model)
        return
    if not hasattr(model, "SerializeToString"):
        raise TypeError(f"model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    import onnx

    proto: Any = model
    if proto.ByteSize() <= MAX_MESSAGE_BYTES:
        pathlib.Path(path).write_bytes(proto.SerializeToString())
        return
    # onnx can only write such a model by taking its tensors out, so that they are put back.
    onnx.save_model(proto, path, save_as_external_data=True, location="model.onnx.data")
    onnx.load_external_data_for_model(proto, os.path.dirname(path))


def _read(model: bytes | ModelProto, path: str) -> Any:
    if isinstance(model, (bytes, bytearray, memoryview)):
        if os.path.exists(path + ".data"):
            raise CastError("the new model has external data, which bytes cannot hold; name a file with output=")
        return pathlib.Path(path).read_bytes()
    import onnx

    return onnx.load(path)


def _convert_file(
    source: str, target: str, to: Any, options: dict[str, Any], opset: Opset, checks: Validation | None
) -> ConvertResult:
    if checks is None and opset == "keep":
        return _result(_core.onnx_convert(source, target, to, options), target)
    if os.path.lexists(target) and not options["overwrite"]:
        hint = "overwrite=True replaces it"
        raise make_error(f"{target}: it exists; {hint}", "io", hint, target, "", None, errno.EEXIST)
    # A folder beside the target: what is validated there is renamed into place.
    parent = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(parent):
        raise make_error(f"{parent}: there is no such folder", "io", "", parent, "", None, errno.ENOENT)
    folder = tempfile.mkdtemp(prefix=".tensorcast-", dir=parent)
    try:
        made = os.path.join(folder, os.path.basename(target))
        if opset != "keep":
            source = _upgraded(source, opset, to, folder)
        result = _result(_core.onnx_convert(source, made, to, options), target)
        if checks is not None:
            outputs: tuple[OutputDifference, ...] = ()
            check_model(source, made)
            if checks.run:
                outputs = validate_model(source, made, _core.dtype_name(to), checks)
            result = dataclasses.replace(result, outputs=outputs)
        if os.path.exists(made + ".data"):
            os.replace(made + ".data", target + ".data")
        os.replace(made, target)
        return result
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# The first opset whose Cast has the type.
_SINCE = {"bfloat16": 13, "float8_e4m3fn": 19, "float8_e4m3fnuz": 19, "float8_e5m2": 19, "float8_e5m2fnuz": 19}


def _upgraded(source: str, opset: Opset, to: Any, folder: str) -> str:
    import onnx
    import onnx.version_converter

    model = onnx.load(source)
    here = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)
    wanted = _SINCE.get(_core.dtype_name(to), 0) if opset == "auto" else int(opset)
    if opset == "auto" and here >= wanted:
        return source
    if wanted < here:
        raise CastError(f"the model has opset {here}, which is newer than {wanted}; models are only upgraded")
    try:
        upgraded = onnx.version_converter.convert_version(model, wanted)
    except Exception as problem:
        raise CastError(f"onnx cannot upgrade the model from opset {here} to {wanted}: {problem}") from problem
    path = os.path.join(folder, "upgraded.onnx")
    _write(upgraded, path)
    return path


def _result(row: dict[str, Any], path: str) -> ConvertResult:
    kept = tuple(KeptNode(**node) for node in row.pop("kept"))
    return ConvertResult(kept=kept, path=path, **row)
