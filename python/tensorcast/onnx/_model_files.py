# SPDX-License-Identifier: Apache-2.0
"""Models that are files, bytes or protos, as files."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from .._errors import CastError
from ._graphs import graphs_of, tensors_of

if TYPE_CHECKING:
    from ..graph import ModelProto

Path: TypeAlias = "str | os.PathLike[str]"

MAX_MESSAGE_BYTES = 2**31 - 1
_SMALL_COUNT = 1 << 12


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


def _external_tensors(model: Any) -> Iterator[Any]:
    """All tensors of a model whose elements are in other files."""
    from onnx.external_data_helper import uses_external_data

    graphs = graphs_of(model.graph, *model.functions)
    return (tensor for graph in graphs for tensor in tensors_of(graph) if uses_external_data(tensor))


def external_files(model: Any) -> list[str]:
    """The files of external data, from the model's folder, sorted."""
    entries = [entry for tensor in _external_tensors(model) for entry in tensor.external_data]
    return sorted({entry.value for entry in entries if entry.key == "location"})


def link_external_data(model: Any, path: str, folder: str) -> None:
    """Gives ``folder`` the external data of the model at ``path``, for a model that is written there."""
    base = os.path.dirname(os.path.abspath(path))
    for place in external_files(model):
        if os.path.isabs(place) or ".." in place.split("/"):
            raise CastError(f"{path}: its external data {place!r} is not below its folder", code="parse")
        link = os.path.join(folder, place)
        if os.path.exists(link):  # the model is in this folder
            continue
        os.makedirs(os.path.dirname(link), exist_ok=True)
        try:  # the readers of external data follow no symbolic links
            os.link(os.path.join(base, place), link)
        except OSError:
            shutil.copyfile(os.path.join(base, place), link)


def load_small_external_data(model: Any, path: str) -> None:
    """Puts into the model what is so small that a node's meaning may depend on it, such as axes and scales."""
    from onnx.external_data_helper import load_external_data_for_tensor

    for tensor in _external_tensors(model):
        if math.prod(tensor.dims) <= _SMALL_COUNT:
            load_external_data_for_tensor(tensor, os.path.dirname(os.path.abspath(path)))
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")


def external_tensors(model: Any) -> set[bytes]:
    """The records of tensors that are in other files."""
    return {tensor.SerializeToString(deterministic=True) for tensor in _external_tensors(model)}


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
