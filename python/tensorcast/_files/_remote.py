# SPDX-License-Identifier: Apache-2.0
"""Checkpoints behind URLs: what the library asks of a store, by fsspec."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from .. import _core
from .._errors import CastError, UnsupportedError, make_error
from .._requests import loss_may_raise

_TRIES = 4
_WAIT_SECONDS = 0.2  # before the second try; doubled with each
_BLOCK_BYTES = 16 << 20  # of a multipart upload

_T = TypeVar("_T")
_storage_options: dict[str, dict[str, Any]] = {}


def is_url(path: str) -> bool:
    protocol, found, _ = path.partition("://")
    return bool(found) and bool(protocol) and "/" not in protocol


def _beside(folder: str, name: str) -> str:
    """The URL of a file in a folder, which may be the root of its protocol, such as ``memory://``."""
    protocol, _, path = folder.partition("://")
    path = path.rstrip("/")
    return f"{protocol}://{path}/{name}" if path else f"{protocol}://{name}"


def _folder_of(url: str) -> str:
    return url[: url.rindex("/") + 1]


def _again(work: Callable[[], _T]) -> _T:
    """Does work that may fail in the middle: errors of the network are tried again, a missing file is not."""
    for tried in range(_TRIES):
        try:
            return work()
        except (FileNotFoundError, PermissionError, IsADirectoryError, NotImplementedError, CastError):
            raise
        except Exception:  # each store has errors of its own
            if tried + 1 == _TRIES:
                raise
            time.sleep(_WAIT_SECONDS * 2**tried)
    raise AssertionError


def _as_ours(work: Callable[..., _T]) -> Callable[..., _T]:
    """Errors of fsspec and of its stores as those of this package."""

    @functools.wraps(work)
    def checked(*args: Any, **options: Any) -> _T:
        try:
            return work(*args, **options)
        except (CastError, MemoryError):
            raise
        except ImportError as error:  # the package of a protocol
            raise UnsupportedError(f"{_url_among(args)}: {error}") from error
        except Exception as error:  # each store has errors of its own
            number = getattr(error, "errno", None) or (errno.ENOENT if isinstance(error, FileNotFoundError) else 0)
            url = _url_among(args)
            raise make_error(f"{url}: {error or type(error).__name__}", "io", "", url, "", None, number) from error

    return checked


def _url_among(args: tuple[Any, ...]) -> str:
    for each in args:
        first = each[0] if isinstance(each, (list, tuple)) and each else each
        if isinstance(first, str) and is_url(first):
            return first
    return "the store"


class _Writer:
    """A file that appears under its name on commit. Where a store empties an old file first, it is written beside it."""

    def __init__(self, system: Any, path: str) -> None:
        self._system, self._path = system, path
        folder, slash, name = path.rpartition("/")
        self._beside = f"{folder}{slash}.tensorcast-{uuid.uuid4().hex}-{name}"
        self._file = self._opened(self._beside)
        self._moves = bool(getattr(self._file, "autocommit", True))
        if not self._moves:  # the store keeps what is not complete from view
            self._drop()
            self._file = self._opened(path)

    def _opened(self, path: str) -> Any:
        return _again(lambda: self._system.open(path, "wb", block_size=_BLOCK_BYTES, autocommit=False))

    def append(self, data: memoryview) -> None:
        self._file.write(bytes(data))

    def commit(self) -> None:
        try:
            self._file.close()
            if not self._moves:
                _again(self._file.commit)
                return
            _again(lambda: self._system.mv(self._beside, self._path))
        except BaseException:
            self.discard()
            raise

    def _drop(self) -> None:
        with contextlib.suppress(Exception):  # the store forgets what is not complete
            self._file.closed = True
        with contextlib.suppress(Exception):
            self._file.discard()

    def discard(self) -> None:
        self._drop()
        if self._moves:
            with contextlib.suppress(Exception):
                self._system.rm_file(self._beside)


class Store:
    """Files by URL. Each protocol has one file system, with its cache of listings off."""

    def __init__(self) -> None:
        self._systems: dict[str, Any] = {}
        self._lock = threading.Lock()

    def _of(self, url: str) -> tuple[Any, str]:
        protocol = url.partition("://")[0]
        with self._lock:
            if protocol not in self._systems:
                try:
                    fsspec = importlib.import_module("fsspec")
                except ImportError:
                    raise UnsupportedError(f"{url}: URLs need fsspec; pip install 'tensorcast[fsspec]'") from None
                options = {"use_listings_cache": False, "skip_instance_cache": True, **_storage_options.get(protocol, {})}
                try:
                    self._systems[protocol] = fsspec.filesystem(protocol, **options)
                except ValueError as error:
                    raise UnsupportedError(f"{url}: fsspec has no {protocol}://: {error}") from error
            system = self._systems[protocol]
        return system, system._strip_protocol(url)

    @staticmethod
    def _row(url: str, info: dict[str, Any]) -> tuple[str, int, str]:
        if info.get("size") is None:
            raise UnsupportedError("the server does not tell the size of the file; download it, and name the copy")
        keys = ("ETag", "etag", "mtime", "LastModified", "Last-Modified", "Content-MD5", "Digest", "created", "blob_id")
        stamp = next((info[key] for key in keys if info.get(key)), "")
        return url, int(info["size"]), str(stamp)

    @_as_ours
    def find(self, url: str) -> tuple[str, int, str] | None:
        system, path = self._of(url)
        try:
            info = _again(lambda: system.info(path))
        except FileNotFoundError:
            return None
        return self._row(url, info) if info["type"] == "file" else None

    @_as_ours
    def list(self, folder: str) -> list[tuple[str, int, str]]:
        system, path = self._of(folder)
        found = _again(lambda: system.find(path, detail=True))
        prefix = path.rstrip("/") + "/"
        return [
            self._row(_beside(folder, name[len(prefix) :]), info)
            for name, info in found.items()
            if name.startswith(prefix) and info["type"] == "file"
        ]

    @_as_ours
    def is_folder(self, url: str) -> bool:
        system, path = self._of(url)
        return bool(_again(lambda: system.isdir(path)))

    @_as_ours
    def read(self, url: str, offset: int, out: memoryview) -> None:
        system, path = self._of(url)

        def read() -> None:
            data = system.cat_file(path, start=offset, end=offset + len(out))
            if len(data) > len(out):
                raise UnsupportedError("the server sends the whole file for a part of it; download it, and name the copy")
            if len(data) != len(out):  # the connection ended in the middle
                raise OSError(f"{len(data)} of {len(out)} bytes came")
            out[:] = data

        _again(read)

    @_as_ours
    def create(self, url: str) -> _Writer:
        return _Writer(*self._of(url))

    @_as_ours
    def download(self, url: str, path: str) -> None:
        if (found := self.find(url)) is None:
            raise make_error(f"{url}: there is no such file", "io", "", url, "", None, errno.ENOENT)
        buffer = memoryview(bytearray(min(found[1], _BLOCK_BYTES)))
        with open(path, "wb") as file:
            for offset in range(0, found[1], _BLOCK_BYTES):
                part = buffer[: min(_BLOCK_BYTES, found[1] - offset)]
                self.read(url, offset, part)
                file.write(part)
        if self.find(url) != found:
            raise make_error(f"{url}: the file was written again while it was read", "io", "", url, "", None, 0)

    @_as_ours
    def upload(self, path: str, url: str) -> None:
        writer = self.create(url)
        try:
            with open(path, "rb") as file:
                while data := file.read(_BLOCK_BYTES):
                    writer.append(memoryview(data))
        except BaseException:
            writer.discard()
            raise
        writer.commit()

    @_as_ours
    def move(self, source: str, target: str) -> None:
        system, path = self._of(source)
        to = self._of(target)[1]

        def copy() -> None:
            system.copy(path, to)

        def remove() -> None:
            with contextlib.suppress(FileNotFoundError):
                system.rm_file(path)

        _again(copy)
        _again(remove)

    @_as_ours
    def remove(self, urls: Sequence[str]) -> None:
        system = self._of(urls[0])[0]
        paths = [self._of(url)[1] for url in urls]

        def remove() -> None:
            with contextlib.suppress(FileNotFoundError):
                system.rm(paths)

        _again(remove)


@functools.cache
def _set_store() -> None:
    _core.set_remote_store(Store())


def path_of(path: str | os.PathLike[str]) -> str:
    """The path as a text. The first URL sets the library's store."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"a path is a text or a pathlib.Path, not {path!r}; open(), load() and inspect() take bytes and open files")
    name = os.fsdecode(path)
    if is_url(name):
        _set_store()
    return name


@contextlib.contextmanager
def named(urls: dict[str, str]) -> Iterator[None]:
    """Errors name URLs, not the copies that stand for them on this machine."""
    try:
        yield
    except CastError as error:
        for copy, url in urls.items():
            error.args = tuple(arg.replace(copy, url) if isinstance(arg, str) else arg for arg in error.args)
            if error.file == copy:
                error.file = url
            if isinstance(error, OSError) and error.filename == copy:
                error.filename = url
        raise


@contextlib.contextmanager
def copy_of(path: str) -> Iterator[str]:
    """The path itself, or that of a copy of the file behind a URL, which is removed afterwards."""
    if not is_url(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="tensorcast-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        Store().download(path, copy)
        with named({copy: path}):
            yield copy


@contextlib.contextmanager
def written_to(file: Any) -> Iterator[str]:
    """The path of a file whose bytes an open file gets afterwards; nothing is written after an error."""
    if not hasattr(file, "write"):
        raise TypeError(f"tensors are saved to a path, or to a file open in binary mode, not to {file!r}")
    with tempfile.TemporaryDirectory(prefix="tensorcast-") as folder:
        made = os.path.join(folder, "content")
        with named({made: "<content>"}):
            yield made
        with open(made, "rb") as content:
            while block := content.read(_BLOCK_BYTES):
                left = memoryview(block)
                try:
                    while len(left) > 0:
                        taken = file.write(left)  # a file without a buffer may take a part
                        if taken == 0:
                            raise OSError("the file takes no bytes")
                        left = left[len(left) if taken is None else taken :]
                except TypeError:
                    raise TypeError("the file is open as text; open it in binary mode, as by open(path, 'wb')") from None


@contextlib.contextmanager
def content_in_file(given: Any) -> Iterator[str]:
    """The path of a file with the bytes of an object, or with what an open file has left; it is removed afterwards."""
    content = given.read() if hasattr(given, "read") else given
    if isinstance(content, str):
        raise TypeError("the file is open as text; open it in binary mode, as by open(path, 'rb')")
    try:
        content = memoryview(content)
    except TypeError:
        raise TypeError(f"a file of tensors is a path, its bytes or a file open in binary mode, not {given!r}") from None
    with tempfile.TemporaryDirectory(prefix="tensorcast-") as folder:
        copy = os.path.join(folder, "content")
        with open(copy, "wb") as file:
            file.write(content)
        with named({copy: "<content>"}):
            yield copy


@contextlib.contextmanager
def written(path: Any, overwrite: bool) -> Iterator[str]:
    """The path itself, or one on this machine whose file goes to the URL afterwards, and those beside it before it; or to
    an open file."""
    if not isinstance(path, (str, os.PathLike)):
        with written_to(path) as made:
            yield made
        return
    path = path_of(path)
    if not is_url(path):
        yield path
        return
    store = Store()
    if not overwrite and store.find(path) is not None:
        raise _exists(path)
    with tempfile.TemporaryDirectory(prefix="tensorcast-") as folder:
        made = os.path.join(folder, os.path.basename(path))
        with named({made: path}):
            yield made
        for name in sorted(os.listdir(folder), key=lambda name: name == os.path.basename(path)):
            store.upload(os.path.join(folder, name), _beside(_folder_of(path), name))


@contextlib.contextmanager
def files_here(request: dict[str, Any]) -> Iterator[None]:
    """Copies single files behind URLs to this machine and back; folders are converted where they are."""
    if _core.is_checkpoint(request["input"]):
        yield
        return
    with copy_of(request["input"]) as source, written(request["output"], request["overwrite"]) as target:
        request["input"], request["output"] = source, target
        yield


@contextlib.contextmanager
def staged(request: dict[str, Any]) -> Iterator[None]:
    """Where a LossWarning is an error, it comes before the output: a file is first written beside its place.

    A folder is then converted as with ``strict_loss``.
    """
    output, of_folder = request["output"], _core.is_checkpoint(request["input"])
    may_raise = not request["dry_run"] and loss_may_raise()
    if may_raise and of_folder:
        request["strict_loss"] = True
    if not may_raise or of_folder:
        yield
        return
    parent = os.path.dirname(os.path.abspath(output))
    if request["parents"]:
        os.makedirs(parent, exist_ok=True)
    taken = os.path.lexists(output) and not (request["overwrite"] and os.path.isfile(output))
    if taken or os.path.islink(output) or not os.path.isdir(parent):
        yield  # an error, or a place that only the library writes to with care
        return
    with tempfile.TemporaryDirectory(prefix=".tensorcast-", dir=parent) as folder:
        request["output"] = os.path.join(folder, os.path.basename(output))
        with named({request["output"]: output}):
            yield
        for name in sorted(os.listdir(folder), key=lambda name: name == os.path.basename(output)):
            _put(os.path.join(folder, name), os.path.join(parent, name), request["overwrite"])
        _sync_names(parent)


def _put(made: str, place: str, overwrite: bool) -> None:
    """Gives a complete, synced file its name. A file that has it meanwhile stays, unless it may be overwritten."""
    if overwrite and not os.path.islink(place):
        os.replace(made, place)
        return
    try:
        os.link(made, place, follow_symlinks=False)
    except OSError:  # it exists, or the file system has no links
        if os.path.lexists(place):
            raise _exists(place) from None
        os.rename(made, place)


def _exists(path: str) -> CastError:
    return make_error(f"{path}: the output exists already; `overwrite` replaces it", "io", "", path, "", None, errno.EEXIST)


def _sync_names(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_storage_options(protocol: str, **options: Any) -> None:
    """Sets the arguments of fsspec's file system of a protocol, for all URLs that follow.

    Examples:
        >>> tc.set_storage_options("s3", endpoint_url="http://localhost:9000", anon=False)
    """
    if not protocol or "://" in protocol:
        raise CastError(f'{protocol!r} is not a protocol; write "s3", not "s3://"')
    _storage_options[protocol] = options
    _set_store.cache_clear()
    _set_store()
