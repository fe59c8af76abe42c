# SPDX-License-Identifier: Apache-2.0
"""Models that are files, bytes or protos, as files."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from .._errors import CastError

if TYPE_CHECKING:
    from ..graph import ModelProto

Path: TypeAlias = "str | os.PathLike[str]"

MAX_MESSAGE_BYTES = 2**31 - 1


def write_model(model: bytes | ModelProto, path: str) -> None:
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


def read_model(model: bytes | ModelProto, path: str) -> Any:
    if isinstance(model, (bytes, bytearray, memoryview)):
        folder, name = os.path.split(path)
        if any(each.startswith(name + ".") for each in os.listdir(folder)):
            raise CastError("the new model has external data, which bytes cannot hold; name a file with output=")
        return pathlib.Path(path).read_bytes()
    import onnx

    return onnx.load(path)


@contextlib.contextmanager
def unnamed(folder: str) -> Iterator[None]:
    """Errors do not name the files of a folder that is gone when they are read."""
    try:
        yield
    except CastError as error:
        said = re.compile(re.escape(folder) + r"[\w./-]*?(?=$|[^\w./-]|[:.,;](?:\s|$))")
        error.args = tuple(said.sub("the model", arg) if isinstance(arg, str) else arg for arg in error.args)
        if error.file is not None and error.file.startswith(folder):
            error.file = None
        if isinstance(error, OSError) and str(error.filename).startswith(folder):
            error.filename = None
        raise


@contextlib.contextmanager
def as_file(model: Path | bytes | ModelProto) -> Iterator[str]:
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as folder:
        path = os.path.join(folder, "model.onnx")
        write_model(model, path)
        with unnamed(folder):
            yield path
