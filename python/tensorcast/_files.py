"""Files of tensors: converts, lists, reads and writes them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy.typing as npt

from . import _core, _tensors
from ._errors import CastError, LossWarning, in_python
from ._options import CastOptions, DTypeLike, shows_options
from ._results import ConvertedTensor, ConvertResult, DTypeInfo, FileInfo, TensorInfo, TensorStats

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

Path: TypeAlias = "str | os.PathLike[str]"
SourceTypes: TypeAlias = "DTypeLike | Mapping[str, DTypeLike] | None"
FileFormat: TypeAlias = Literal["npy", "npz", "safetensors", "gguf", "pytorch", "tensor_proto", "raw"]


@shows_options
def convert(
    src: Path,
    dst: Path,
    to: DTypeLike | None = None,
    *,
    rules: Mapping[str, DTypeLike] | Iterable[tuple[str, DTypeLike]] = (),
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    overwrite: bool = False,
    parents: bool = False,
    dry_run: bool = False,
    report: bool = False,
    verify: bool = False,
    strict_loss: bool = False,
    allow_odd: bool = False,
    raw_codes: bool = False,
    progress: Callable[[int, int, str], object] | None = None,
    **options: Unpack[CastOptions],
) -> ConvertResult:
    """Converts every tensor of a file. ``dst`` is complete or absent, also after an error.

    Args:
        src, dst: ``.npy``, ``.npz``, ``.safetensors``, ``.pb``.
        to: type of the floating-point tensors that no rule names.
        rules: ``{regular expression: dtype}``; the first that matches a tensor's name decides.
        include, exclude: regular expressions (RE2) of names to convert or to leave alone; a string is one. With a
            ``dst`` of one array, such as ``.npy``, the tensor that ``include`` matches is all that is written.
        from_: the ml_dtypes type of opaque npy descriptors; ``{tensor: dtype}`` names it for single arrays of an npz.
        raw: type and shape of a ``src`` of raw elements.
        overwrite: replace an existing ``dst``.
        parents: create the folders of ``dst`` that do not exist.
        dry_run: plan only.
        report: measure what the conversion did to each tensor.
        verify: read the result back and compare it with the reference.
        strict_loss: fail if the conversion destroys a tensor; else it is a :class:`LossWarning`. That is: more than half
            of the nonzero elements become zero, the signal to noise ratio is under 3 dB, an element wraps around, or
            more than 1 % of the elements are out of range.
        allow_odd: convert also tensors that PyTorch could not load from safetensors, as their last dimension would end
            within a byte; else they are left as they are.
        raw_codes: convert weights of 8 bits although a tensor beside them has their scales.
        progress: called with bytes done, bytes in all, tensor name; returning ``False`` cancels.
        **options: those of :func:`cast`; ``scale`` is one number.

    Raises:
        CastError: with ``.tensor`` and ``.index`` where they apply; nothing is then left on disk.
        FileError: it is also the ``OSError`` that one expects, such as ``FileNotFoundError`` and ``FileExistsError``.
        Cancelled: ``progress`` returned ``False``. The same holds for it, and for ``KeyboardInterrupt`` after Ctrl-C.
    """
    if isinstance(rules, str):
        raise TypeError("rules= is a mapping of regular expressions to dtypes, not a string")
    pairs: list[Any] = list(rules.items()) if isinstance(rules, Mapping) else list(rules)
    if to is None and not pairs and not include:
        raise CastError("there is no type to convert to; name it with to=, or types for tensors with rules=")
    flags = {
        "overwrite": overwrite,
        "parents": parents,
        "dry_run": dry_run,
        "report": report,
        "verify": verify,
        "strict_loss": strict_loss,
        "allow_odd": allow_odd,
        "raw_codes": raw_codes,
    }
    done = _core.convert(
        os.fspath(src), os.fspath(dst), to, pairs, _patterns(include), _patterns(exclude), from_, raw, flags, progress,
        {**options},
    )  # fmt: skip
    tensors = []
    for row in done.pop("tensors"):
        row.update({name: in_python(row[name]) for name in ("reason", "damage", "remedy")})
        tensors.append(ConvertedTensor(**row))
    for tensor in tensors:
        if tensor.damage:
            warnings.warn(
                f"tensor {tensor.name!r} ({tensor.from_} to {tensor.to}): {tensor.damage}; {tensor.remedy}",
                LossWarning,
                stacklevel=2,
            )
    return ConvertResult(tensors=tuple(tensors), **done)


def _patterns(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


@shows_options
def inspect(
    path: Path,
    *,
    stats: bool = False,
    candidates: Iterable[DTypeLike] | None = None,
    from_: SourceTypes = None,
    **options: Unpack[CastOptions],
) -> FileInfo:
    """Lists the contents of a file; with ``stats``, also the losses of each tensor as other types.

    Args:
        path: ``.npy``, ``.npz``, ``.safetensors``, ``.pb``.
        stats: read the data too, in blocks; without it only the header is read.
        candidates: with ``stats``, the types to try; ``None``: float16, bfloat16, float8_e4m3fn and float8_e5m2 on
            floating-point tensors.
        from_: as in :func:`convert`.
        **options: with ``stats``, those of :func:`cast`; the candidates are tried under them.

    Raises:
        CastError: a file that cannot be read or breaks its format.
    """
    tried = None if candidates is None else list(candidates)
    found = _core.inspect(os.fspath(path), from_, stats, tried, {**options})
    return _file_info(found)


def _file_info(found: dict[str, Any]) -> FileInfo:
    tensors = []
    for row in found["tensors"]:
        numbers = row.pop("stats", None)
        tensors.append(TensorInfo(**row, stats=None if numbers is None else TensorStats(**numbers)))
    return FileInfo(format=found["format"], tensors=tuple(tensors), metadata=found["metadata"])


def dtypes() -> tuple[DTypeInfo, ...]:
    """All types that a cast knows.

    Source: ONNX ``TensorProto.DataType`` and its texts on float8, float6, float4, int4 and int2; ``docs/types.md``.
    """
    return tuple(DTypeInfo(**row) for row in _core.dtypes())


class TensorFile(Mapping[str, npt.NDArray[Any]]):
    """A file of tensors that :func:`tensorcast.open` opened: a mapping of names to arrays, each read when asked for.

    ``len``, ``in`` and iteration read no elements. Arrays stay valid after :meth:`close`. Any number of threads may
    read at once.
    """

    __module__ = "tensorcast"

    def __init__(self, core: _core.TensorFile, path: str) -> None:
        self._core: _core.TensorFile | None = core
        self._path = path
        self._info = _file_info(core.summary())
        self._index = {tensor.name: index for index, tensor in enumerate(self._info.tensors)}

    @property
    def info(self) -> FileInfo:
        """Format, metadata and tensors, as :func:`tensorcast.inspect` gives them."""
        return self._info

    @property
    def metadata(self) -> Mapping[str, str]:
        """Of safetensors: the texts under ``__metadata__``."""
        return self._info.metadata

    @property
    def path(self) -> str:
        return self._path

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Reads a tensor: a new array, whose narrow types are ml_dtypes', one element per byte.

        Raises:
            KeyError: the file has no such tensor.
            CastError: a type that no cast knows, or contents that contradict the header.
        """
        return self.read(name)

    def read(self, name: str, *, packed: bool = False) -> npt.NDArray[Any]:
        """Reads a tensor as ``file[name]`` does; with ``packed``, types under 8 bits as flat uint8 storage."""
        if self._core is None:
            raise ValueError(f"{self._path} is closed; read its tensors before, or open it again")
        if name not in self._index:
            raise KeyError(name)
        tensor = self._core.read(self._index[name])
        if packed and tensor.dtype != "string" and _core.bit_width(tensor.dtype) < 8:
            return tensor.storage()
        array: npt.NDArray[Any] = _tensors.from_core(tensor, False)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def close(self) -> None:
        """Closes the file. Harmless if it is closed."""
        self._core = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed, " if self._core is None else ""
        return f"<TensorFile {self._path!r}: {state}{self._info.format}, {len(self)} tensors>"


def open(
    path: Path,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
) -> TensorFile:
    """Opens a file of tensors: a mapping of names to arrays, which are read when asked for.

    >>> with tc.open("model.safetensors") as file:
    ...     embedding = file["embed"]

    Args:
        path: ``.npy``, ``.npz``, ``.safetensors``, ``.pb``. The array of an npy file is named ``""``.
        from_: the ml_dtypes type of opaque npy descriptors; ``{tensor: dtype}`` names it for single arrays of an npz.
        raw: type and shape of a file of raw elements.
        format: where extension and content do not tell.

    Raises:
        CastError: a file that cannot be read or breaks its format. FileError: as ``builtins.open``.
    """
    name = os.fspath(path)
    return TensorFile(_core.TensorFile(name, format or "", from_, raw), name)


def load(
    path: Path,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Reads all tensors of a file: ``dict(tensorcast.open(path))``.

    >>> (array,) = tc.load("one.npy").values()
    """
    with open(path, from_=from_, raw=raw, format=format) as file:
        return {name: file[name] for name in file}


def save(
    path: Path,
    tensors: Mapping[str, Any],
    *,
    metadata: Mapping[str, str] | None = None,
    format: FileFormat | None = None,
    overwrite: bool = False,
    parents: bool = False,
) -> None:
    """Writes tensors to a file, which is complete or absent, also after an error.

    Args:
        path: ``.npy``, ``.npz``, ``.safetensors``, ``.pb``; npy and pb hold one tensor.
        tensors: arrays or tensors as in :func:`cast`, by name. Types under 8 bits are stored packed.
        metadata: texts for the header of safetensors; other formats have no place for them.
        format: where the extension does not tell.
        overwrite: replace an existing file.
        parents: create the folders of ``path`` that do not exist.

    Raises:
        UnsupportedError: a type, or a number of tensors, that the format cannot hold.
        FileError: as ``builtins.open``; ``FileExistsError`` without ``overwrite``.
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors is a mapping of names to arrays, such as {{'weight': x}}, not {type(tensors).__name__}")
    named = []
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a tensor is a string, not {name!r}")
        named.append((name, _tensors.to_core(tensor)))
    _core.save(os.fspath(path), named, list((metadata or {}).items()), format or "", overwrite, parents)
