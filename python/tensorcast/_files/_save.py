# SPDX-License-Identifier: Apache-2.0
"""Files of tensors that are in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from .. import _core
from .._cast import _tensors
from . import _remote
from .._arguments import is_utf8, plain_errors
from .._errors import CastError, of_tensor
from .._requests import Path
from ._files import FileFormat


@plain_errors
def save(
    path: Path | BinaryIO,
    tensors: Mapping[str, Any],
    *,
    metadata: Mapping[str, str] | None = None,
    format: FileFormat | None = None,
    overwrite: bool = False,
    parents: bool = False,
) -> None:
    """Writes tensors to a file, which is complete or absent, also after an error.

    Args:
        path: ``.npy``, ``.npz``, ``.safetensors``, ``.gguf``, ``.pb``; npy and pb hold one tensor. May be a URL of fsspec,
            or a file open in binary mode, such as ``io.BytesIO()``, with ``format``.
        tensors: arrays or tensors as in :func:`cast`, by name. Types under 8 bits are stored packed.
        metadata: texts for the header of safetensors; other formats have no place for them.
        format, overwrite: where the extension does not tell; replace an existing file.
        parents: create the folders of ``path`` that do not exist.

    Raises:
        UnsupportedError: a type, or a number of tensors, that the format cannot hold.
        FileError: as ``builtins.open``; ``FileExistsError`` without ``overwrite``.

    Examples:
        >>> tc.save("new.safetensors", {"x": tc.cast(weight, "bfloat16")}, metadata={"made_by": "me"})
        >>> tc.inspect("new.safetensors").metadata
        {'made_by': 'me'}
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors is a mapping of names to arrays, such as {{'weight': x}}, not {type(tensors).__name__}")
    named = []
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not is_utf8(name):
            raise TypeError(f"the name of a tensor is a string, in UTF-8, not {name!r}")
        with of_tensor(name):
            named.append((name, _tensors.to_core(tensor)))
    if format is None and not isinstance(path, (str, os.PathLike)):
        raise CastError("an open file has no extension; format= names what to write, such as 'safetensors'")
    with _remote.written(path, overwrite) as here:
        _core.save(here, named, list((metadata or {}).items()), format or "", overwrite, parents)
