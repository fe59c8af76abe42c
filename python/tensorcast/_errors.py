"""The exceptions and warnings of the package."""

from __future__ import annotations

import os
import re


class CastError(ValueError):
    """A conversion failed.

    Errors of files are also ``OSError``s: :class:`FileNotFoundError`, :class:`FileExistsError` and so on.

    Attributes:
        code: ``"invalid_argument"``, ``"unsupported"``, ``"out_of_range"``, ``"parse"``, ``"io"`` or ``"internal"``.
        index: position of the element at fault in C order, or ``None``.
        tensor: name of the tensor at fault in a file, or ``None``.
    """

    __module__ = "tensorcast"

    code: str = "invalid_argument"
    index: int | None = None
    tensor: str | None = None


class LossWarning(UserWarning):
    """A conversion of a file destroyed a tensor."""

    __module__ = "tensorcast"


class _FileError(CastError, OSError):
    def __str__(self) -> str:
        return str(self.args[0])


class _FileNotFound(_FileError, FileNotFoundError):
    pass


class _FileExists(_FileError, FileExistsError):
    pass


class _NoPermission(_FileError, PermissionError):
    pass


class _IsADirectory(_FileError, IsADirectoryError):
    pass


class _NotADirectory(_FileError, NotADirectoryError):
    pass


_OF_SYSTEM_ERROR = {
    base: made
    for made in (_FileNotFound, _FileExists, _NoPermission, _IsADirectory, _NotADirectory)
    for base in made.__bases__[1:]
}

_FLAGS = ("overwrite", "parents", "allow_odd", "raw_codes")


def _keyword(field: re.Match[str]) -> str:
    word = field[1]
    if word in _FLAGS:
        return f"{word}=True"
    return "from_=" if word == "from" else f"{word}="


def in_python(words: str) -> str:
    """Replaces the library's fields and the command in a text by keywords and functions of this package."""
    return re.sub("`([a-z_]+)`", _keyword, words.replace("`tcast inspect`", "tensorcast.inspect()"))


def make_error(words: str, code: str, index: int | None, tensor: str | None, file: str, system_error: int) -> CastError:
    """Makes the exception for an error of the library."""
    words = in_python(words)
    error: CastError
    if system_error:
        made = _OF_SYSTEM_ERROR.get(type(OSError(system_error, "")), _FileError)
        error = made(words)
        error.errno, error.strerror, error.filename = system_error, os.strerror(system_error), file
    else:
        error = CastError(words)
    error.code, error.index, error.tensor = code, index, tensor
    return error
