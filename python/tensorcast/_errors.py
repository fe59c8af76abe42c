# SPDX-License-Identifier: Apache-2.0
"""The exceptions and warnings of the package."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any


class CastError(ValueError):
    """A conversion failed. Its subclasses say why; an argument that is wrong in itself is a plain ``CastError``.

    Attributes:
        code: ``"invalid_argument"``, ``"unsupported"``, ``"out_of_range"``, ``"parse"``, ``"io"``, ``"internal"`` or
            ``"cancelled"``.
        hint: what to do about it, or ``None``. It is part of the message, too.
        file: path of the file at fault, or ``None``.
        tensor: name of the tensor at fault, or ``None``.
        index: position of the element at fault in C order, or ``None``.

    Examples:
        >>> try:
        ...     tc.cast(np.float32([1, 300]), "uint8", out_of_range="error")
        ... except tc.CastError as error:
        ...     error.code, error.index
        ('out_of_range', 1)
    """

    __module__ = "tensorcast"

    code: str = "invalid_argument"
    hint: str | None = None
    file: str | None = None
    tensor: str | None = None
    index: int | None = None

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        hint: str | None = None,
        file: str | None = None,
        tensor: str | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.hint, self.file, self.tensor, self.index = hint, file, tensor, index

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


class UnsupportedError(CastError):
    """The opset, the file format or the pair of types lacks what was asked for.

    Examples:
        >>> try:
        ...     tc.cast(np.float32([1]), "bfloat16", opset=9)
        ... except tc.UnsupportedError as error:
        ...     error.code
        'unsupported'
    """

    __module__ = "tensorcast"
    code = "unsupported"


class OutOfRangeError(CastError):
    """The target cannot hold an element, and the options demand an error.

    Examples:
        >>> try:
        ...     tc.cast(np.float32([1, 1e9]), "float16", out_of_range="error")
        ... except tc.OutOfRangeError as error:
        ...     error.index
        1
    """

    __module__ = "tensorcast"
    code = "out_of_range"


class ParseError(CastError):
    """A text is not a number, or the content of a file breaks its format.

    Examples:
        >>> try:
        ...     tc.cast(np.array(["1.5", "one"]), "float32")
        ... except tc.ParseError as error:
        ...     error.index
        1
    """

    __module__ = "tensorcast"
    code = "parse"


class Cancelled(CastError):
    """The work was ended by its ``progress`` function. Nothing is left on disk.

    Examples:
        >>> try:
        ...     tc.convert("model.safetensors", "half.safetensors", "float16", progress=lambda done, total, tensor: False)
        ... except tc.Cancelled as error:
        ...     error.code
        'cancelled'
    """

    __module__ = "tensorcast"
    code = "cancelled"


class FileError(CastError, OSError):
    """The operating system refused a file. ``errno``, ``strerror`` and ``filename`` are those of an ``OSError``.

    It is also the ``OSError`` of its ``errno``, such as ``FileNotFoundError``, ``FileExistsError``, ``PermissionError``
    and ``IsADirectoryError``.

    Examples:
        >>> try:
        ...     tc.load("absent.safetensors")
        ... except FileNotFoundError as error:
        ...     isinstance(error, tc.FileError), error.filename
        (True, 'absent.safetensors')
    """

    __module__ = "tensorcast"
    code = "io"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {**self.__dict__, "errno": self.errno, "strerror": self.strerror, "filename": self.filename}
        return _restored_file_error, (self.args, state)


class _FileNotFound(FileError, FileNotFoundError):
    pass


class _FileExists(FileError, FileExistsError):
    pass


class _NoPermission(FileError, PermissionError):
    pass


class _IsADirectory(FileError, IsADirectoryError):
    pass


class _NotADirectory(FileError, NotADirectoryError):
    pass


_OF_SYSTEM_ERROR: dict[type, type[FileError]] = {
    made.__bases__[1]: made for made in (_FileNotFound, _FileExists, _NoPermission, _IsADirectory, _NotADirectory)
}
for _made in _OF_SYSTEM_ERROR.values():  # a traceback says what `except` takes
    _made.__module__, _made.__name__, _made.__qualname__ = "tensorcast", "FileError", "FileError"


class LossWarning(UserWarning):
    """A conversion of a file destroyed a tensor.

    Examples:
        >>> import warnings
        >>> tc.save("large.npy", {"": np.float32([1e6, 2e6])})
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     done = tc.convert("large.npy", "half.npy", "float16")
        >>> caught[0].category is tc.LossWarning
        True
    """

    __module__ = "tensorcast"


_OF_CODE: dict[str, type[CastError]] = {
    made.code: made for made in (UnsupportedError, OutOfRangeError, ParseError, FileError, Cancelled)
}


def _restored(made: type[CastError], args: tuple[Any, ...], state: dict[str, Any]) -> CastError:
    error = made(*args)
    error.__dict__.update(state)
    return error


def _restored_file_error(args: tuple[Any, ...], state: dict[str, Any]) -> CastError:
    error = _file_class(state["errno"])(*args)
    for name, value in state.items():
        setattr(error, name, value)
    return error


def _file_class(errno: int | None) -> type[FileError]:
    return FileError if errno is None else _OF_SYSTEM_ERROR.get(type(OSError(errno, "")), FileError)


_FLAGS = (
    "overwrite", "parents", "allow_odd", "raw_codes", "exact", "single_file", "promote_unsafe", "pytorch_scalar_promotion",
    "weights_only", "allow_lossy_cast_elision", "strict_loss", "dry_run", "verify", "report",
    "force_layout", "strict_schemes", "allow_loss",
)  # fmt: skip
_PYTHON = {
    "`tcast onnx casts MODEL --picture model.dot` draws its nodes with their names": "onnx.load(model).graph.node lists them",
    "`tcast onnx convert`": "tensorcast.onnx.convert()",
    "`tcast inspect`": "tensorcast.inspect()",
    "`tcast plan`": "tensorcast.checkpoint.plan()",
    "`tcast run-shard`": "tensorcast.checkpoint.run_shard()",
    "`tcast finish`": "tensorcast.checkpoint.finish()",
    "the same command goes on": "the same call goes on",
    "repeat that command": "repeat that call",
    "pass promote_unsafe to allow it": "promote_unsafe=True allows it",
}
_RENAMED = {"from": "from_", "keep_op": "keep_ops", "keep_node": "keep_nodes", "rule": "rules"}


def _keyword(field: re.Match[str]) -> str:
    word = (field[1] or field[2]).replace("-", "_")
    return f"{word}=True" if word in _FLAGS else f"{_RENAMED.get(word, word)}="


def in_python(words: str) -> str:
    """Replaces the library's fields and the command in a text by keywords and functions of this package."""
    for theirs, ours in _PYTHON.items():
        words = words.replace(theirs, ours)
    words = re.sub("--(opset|functions) (auto|copy|inline|keep)\\b", r'\1="\2"', words)
    return re.sub("(?<![\\w-])--([a-z][a-z-]*[a-z])|`([a-z_]+)`", _keyword, words)


def make_error(
    words: str, code: str, hint: str, file: str, tensor: str, index: int | None, system_error: int
) -> CastError:
    """Makes the exception for an error of the library."""
    error: CastError
    if system_error:
        failed = _file_class(system_error)(in_python(words))
        failed.errno, failed.strerror, failed.filename = system_error, os.strerror(system_error), file
        error = failed
    else:
        error = _OF_CODE.get(code, CastError)(in_python(words))
    error.code = code
    error.hint, error.file, error.tensor = in_python(hint) or None, file or None, tensor or None
    error.index = index
    return error


@contextlib.contextmanager
def of_tensor(name: Any) -> Iterator[None]:
    """Names the tensor in errors of what is done with it."""
    try:
        yield
    except CastError as error:
        error.tensor = str(name)
        error.args = (f"tensor {name!r}: {error}",)
        raise
    except TypeError as error:
        raise TypeError(f"tensor {name!r}: {error}") from None


def callers_level() -> int:
    """The ``stacklevel`` with which the function that asks names the package's caller in a warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tensorcast":
        level, frame = level + 1, frame.f_back
    return level


def unknown_option(name: str, known: Iterable[str] = ()) -> TypeError:
    """Python's own words for a misspelled keyword; ``known``: other options than those of a cast."""
    from ._options import DEFAULTS

    options = tuple(known) or tuple(DEFAULTS)
    near = difflib.get_close_matches(name, options, 1)
    advice = f". Did you mean '{near[0]}'?" if near else f"; the options of conversions are {', '.join(options)}"
    return TypeError(f"got an unexpected keyword argument '{name}'{advice}")
