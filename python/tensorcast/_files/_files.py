# SPDX-License-Identifier: Apache-2.0
"""Files of tensors: converts, lists, reads and writes them."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, TypeVar, overload

import numpy.typing as npt

from .. import _core, _requests
from .._cast import _arrays, _numpy_types, _tensors
from . import _complex, _inspected, _remote
from .._arguments import plain_errors
from .._errors import CastError, UnsupportedError
from ._layers import Decoded, HasLayers, Layers
from .._options import CastOptions, DTypeLike, shows_options
from .._request_types import SourceTypes
from .._requests import Path
from .._results import (
    CheckpointInfo,
    CheckpointTensor,
    DTypeInfo,
    FileInfo,
    TensorInfo,
    TensorStats,
    cut,
    html_table,
)
from ._safe_open import Device, Metadata, Names, device_of, is_torch
from ._slices import TensorSlice

if TYPE_CHECKING:
    from types import TracebackType

    import torch
    from typing_extensions import Self, TypeVar as DefaultingTypeVar, Unpack

    _Kind = DefaultingTypeVar("_Kind", default=npt.NDArray[Any])
else:
    _Kind = TypeVar("_Kind")

NumPyName: TypeAlias = Literal["np", "numpy"]
TorchName: TypeAlias = Literal["pt", "torch"]
Source: TypeAlias = "Path | bytes | bytearray | memoryview | BinaryIO"
FileFormat: TypeAlias = Literal["npy", "npz", "safetensors", "gguf", "pytorch", "tensor_proto", "raw"]


@shows_options
@plain_errors
def inspect(
    path: Source,
    *,
    stats: bool = False,
    candidates: Iterable[DTypeLike] | None = None,
    importance: Path | None = None,
    from_: SourceTypes = None,
    **options: Unpack[CastOptions],
) -> FileInfo:
    """Lists a file or folder and its quantized layers; with ``stats``, also the losses of each tensor as other types.

    Args:
        path: ``.npy``, ``.npz``, ``.safetensors``, ``.gguf``, ``.pb``, or a checkpoint of PyTorch. A folder of
            safetensors files, or the index of one, gives a :class:`CheckpointInfo`. May be a URL of fsspec; other
            files than safetensors are then fetched whole. Also bytes, or an open file, as :func:`open` takes them.
        stats: read the data too, in blocks; without it only the header is read.
        candidates: types and schemes to try, such as ``"nvfp4"`` and ``"mxfp4:even"``, only with ``stats``; ``None``:
            float16, bfloat16, float8_e4m3fn and float8_e5m2 on floating-point tensors.
        importance: weighs squared errors of schemes among ``candidates``: as in :func:`convert`.
        from_: as in :func:`convert`.
        **options: only with ``stats``: those of :func:`cast`; the candidates are tried under them.

    Raises:
        CastError: a file that cannot be read or breaks its format.

    Examples:
        >>> for tensor in tc.inspect("model.safetensors").tensors:
        ...     print(tensor.name, tensor.dtype, tensor.shape)
        embed.weight float32 (64, 256)
        layers.0.mlp.up_proj.weight float32 (64, 256)
        norm.weight float32 (256,)
    """
    _core.check_options({**options})
    if options and not stats:
        raise CastError(f"{next(iter(options))}= is for casts to candidates, which only stats=True tries; pass both")
    if candidates is not None and not stats:
        raise CastError("candidates= are tried on the elements, which only stats=True reads; pass both")
    weighed_by = _requests.weighed_by(importance, candidates)
    if isinstance(candidates, str):
        raise TypeError(f"candidates= are types, such as [{candidates!r}], not a text")
    tried = None if candidates is None else list(candidates)
    if not isinstance(path, (str, os.PathLike)):
        with _remote.content_in_file(path) as here:
            return FileInfo._of(_core.inspect(here, from_, stats, tried, weighed_by, {**options}))
    name = _remote.path_of(path)
    if not _core.is_checkpoint(name):
        if _remote.is_url(name) and name.endswith(".safetensors") and not stats:
            return _inspected.remote_info(name)
        with _remote.copy_of(name) as here:
            return FileInfo._of(_core.inspect(here, from_, stats, tried, weighed_by, {**options}))
    info = _inspected.checkpoint_info(name)
    if not stats:
        return info
    if _remote.is_url(name):
        raise UnsupportedError(f"{name}: stats=True reads files of this machine; copy the folder first")
    _requests.refuse_distributed(info)
    numbers: dict[tuple[str, str], TensorStats | None] = {}
    for shard in info.shards:
        found = FileInfo._of(_core.inspect(_inspected.shard_path(name, shard.name), from_, stats, tried, weighed_by, {**options}))
        for tensor in found.tensors:
            numbers[shard.name, _inspected.name_in(shard.name, tensor.name, found.format)] = tensor.stats
    tensors = tuple(dataclasses.replace(row, stats=numbers[row.file, row.name]) for row in info.tensors)
    return dataclasses.replace(info, tensors=tensors)


def dtypes() -> tuple[DTypeInfo, ...]:
    """All types that a cast knows.

    Examples:
        >>> [row.name for row in tc.dtypes() if row.bits == 4]
        ['float4_e2m1fn', 'int4', 'uint4']

    Source: ONNX ``TensorProto.DataType`` and its texts on float8, float6, float4, int4 and int2; ``docs/types.md``.
    """
    return tuple(DTypeInfo(**row) for row in _core.dtypes())


class TensorFile(HasLayers, Mapping[str, _Kind]):
    """A file of tensors that :func:`tensorcast.open` opened: a mapping of names to arrays, each read when asked for.

    ``len``, ``in`` and iteration read no elements. Arrays stay valid after :meth:`close`. Any number of threads may
    read at once. With ``framework="pt"`` the values are tensors of PyTorch. ``get_tensor``, ``get_slice`` and
    ``metadata`` are those of ``safetensors.safe_open``.

    The name of a quantized weight stands for a :class:`QuantizedLayer`, which type checkers do not know; ``get_tensor``
    reads what is stored. With ``dequantize=``, decoded weights are in the place of the tensors of their layers.

    Examples:
        >>> with tc.open("model.safetensors") as file:
        ...     sorted(file), file["norm.weight"].shape
        (['embed.weight', 'layers.0.mlp.up_proj.weight', 'norm.weight'], (256,))
    """

    __module__ = "tensorcast"

    _as_torch = False
    _device: Any = None  # of PyTorch; None: the host

    def __init__(
        self,
        core: _core.TensorFile,
        path: str,
        as_torch: bool = False,
        dequantize: DTypeLike | None = None,
        here: str | None = None,
        device: Any = None,
    ) -> None:
        self._core: _core.TensorFile | None = core
        self._path, self._as_torch, self._device = path, as_torch, device
        self._info = FileInfo._of(core.summary())
        self._index = {tensor.name: index for index, tensor in enumerate(self._info.tensors)}
        self._here = here if self._info.format in ("safetensors", "gguf", "npz", "pytorch") else None
        if dequantize is not None:
            self._decode(dequantize)

    def _find_layers(self) -> Layers | None:
        return None if self._here is None else Layers(self._here, self._as_torch)

    @property
    def info(self) -> FileInfo:
        """Format, metadata and tensors, as :func:`tensorcast.inspect` gives them."""
        return self._info

    @property
    def metadata(self) -> Metadata:
        """Of safetensors: the texts under ``__metadata__``. ``file.metadata()`` is the same, as of ``safe_open``."""
        return Metadata(self.info.metadata)

    def keys(self) -> Names:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The names of the tensors: a view, which also has indices, as the list of ``safe_open``.

        Examples:
            >>> with tc.open("model.safetensors") as file:
            ...     file.keys()[0]
            'embed.weight'
        """
        return Names(self)

    @property
    def path(self) -> str:
        return self._path

    def __getitem__(self, name: str) -> _Kind:
        """Reads a tensor: a new array, whose narrow types are ml_dtypes', one element per byte; or PyTorch's tensor.

        The name of a quantized weight gives its :class:`QuantizedLayer`, or the decoded weight with ``dequantize=``.

        Raises:
            KeyError: the file has no such tensor.
            CastError: a type that no cast knows, or contents that contradict the header; a layer that cannot be decoded.
        """
        layer: Any = self.layers.get(name) if self._dtype is None else None
        if layer is not None:
            self._place(layer.tensors[0])  # an error once the file is closed
            return layer  # type: ignore[no-any-return]
        return self._made(self._core_tensor(name))

    def get_tensor(self, name: str) -> _Kind:
        """Reads the tensor that is stored under a name; with ``dequantize=`` also a decoded weight.

        Examples:
            >>> with tc.open("model.safetensors") as file:
            ...     file.get_tensor("norm.weight").dtype.name
            'float32'
        """
        return self._made(self._core_tensor(name))

    def read(self, name: str, *, packed: bool = False) -> _Kind:
        """Reads a tensor as ``get_tensor`` does; with ``packed``, types under 8 bits as flat uint8 storage.

        Examples:
            >>> tc.save("int4.npz", {"x": tc.cast(np.int8([1, 2, 3, 4]), "int4")})
            >>> with tc.open("int4.npz") as file:
            ...     file.read("x", packed=True).tolist()
            [33, 67]
        """
        tensor = self._core_tensor(name)
        if packed and not _complex.is_complex(tensor) and _numpy_types.is_packable(tensor.dtype):
            return self._as_kind(tensor.storage(), "uint8")
        return self._made(tensor)

    def get_slice(self, name: str) -> TensorSlice[_Kind]:
        """The tensor, to be read in parts: ``file.get_slice(name)[10:20, :64]``.

        Raises:
            KeyError: the file has no such tensor.

        Examples:
            >>> with tc.open("model.safetensors") as file:
            ...     file.get_slice("embed.weight")[10:20, :64].shape
            (10, 64)
        """
        return TensorSlice(self, name)

    def slice(self, name: str) -> TensorSlice[_Kind]:
        """The same; ``get_slice`` is the name that safetensors has for it.

        Examples:
            >>> with tc.open("model.safetensors") as file:
            ...     file.slice("embed.weight")[:2].shape
            (2, 256)
        """
        return TensorSlice(self, name)

    def _made(self, tensor: Any) -> _Kind:
        as_torch = self._as_torch and tensor.dtype != "string"
        made: Any = tensor.array(as_torch) if _complex.is_complex(tensor) else _tensors.from_core(tensor, as_torch)
        return made.to(self._device) if as_torch and self._device is not None else made  # type: ignore[no-any-return]

    def _as_kind(self, array: npt.NDArray[Any], name: str = "") -> _Kind:
        """The array, or PyTorch's tensor of its elements."""
        kind: Any = array
        if self._as_torch:
            from .._interop import _torch_memory

            name = name or _numpy_types.name_of(array)
            kind = _torch_memory.tensor_of(_arrays._packed_storage(array, name).view("uint8").reshape(-1), name, array.shape)
            kind = kind if self._device is None else kind.to(self._device)
        return kind  # type: ignore[no-any-return]

    def _row(self, name: str) -> TensorInfo:
        if self._decodes(name) and self._layers is not None and self._dtype is not None:
            return self._layers.row(name, self._dtype)
        return self._stored_row(name)

    def _stored_row(self, name: str) -> TensorInfo:
        if name not in self._index:
            raise KeyError(name)
        return self._info.tensors[self._index[name]]

    def _place(self, name: str) -> tuple[_core.TensorFile | Decoded, int]:
        """The file with the tensor, and the tensor's place in it."""
        if self._decodes(name) and self._layers is not None and self._dtype is not None:
            self._stored_place(self._layers.of_name[name].tensors[0])
            return Decoded(self._layers.core, self._dtype), self._layers.places[name]
        return self._stored_place(name)

    def _stored_place(self, name: str) -> tuple[_core.TensorFile, int]:
        if self._core is None:
            raise CastError(f"{self._path} is closed; read its tensors before, or open it again")
        if name not in self._index:
            raise KeyError(name)
        return self._core, self._index[name]

    def _stored_names(self) -> Mapping[str, Any]:
        return self._index

    def _core_tensor(self, name: str) -> Any:
        core, index = self._place(name)
        return _complex.read(core, index, self._row(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names() or name in self.layers

    def close(self) -> None:
        """Closes the file. Harmless if it is closed.

        Examples:
            >>> file = tc.open("model.safetensors")
            >>> file.close()
            >>> file
            <TensorFile 'model.safetensors': closed, safetensors, 3 tensors>
        """
        self._core = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed, " if self._core is None else ""
        return f"<TensorFile {cut(repr(self._path))}: {state}{self._info.format}, {len(self)} tensors>"

    def _repr_html_(self) -> str:
        rows = [(row.name, row.dtype, row.shape, f"{row.bytes:,}") for row in self.info.tensors]
        return html_table(repr(self), ["name", "dtype", "shape", "bytes"], rows)


class TensorFolder(TensorFile[_Kind]):
    """A checkpoint that :func:`tensorcast.open` opened: one mapping of the tensors of all shards.

    Shards are opened when a tensor of theirs is read; few are open at a time. The names are those of the shards; a
    folder of several models, such as diffusers has them, puts the folder and variant of the model before them, as in
    ``"unet/conv_in.weight"`` and ``"fp16:conv_in.weight"``.

    Examples:
        >>> with tc.open("model") as folder:
        ...     len(folder), folder["norm.weight"].shape
        (3, (256,))
    """

    __module__ = "tensorcast"

    _most_open = 8

    def __init__(
        self, path: str, as_torch: bool = False, dequantize: DTypeLike | None = None, device: Any = None
    ) -> None:
        if _remote.is_url(path):
            raise UnsupportedError(f"{path}: URLs are converted and inspected, not opened; copy the folder first")
        self._path, self._as_torch, self._device = path, as_torch, device
        self._checkpoint = _inspected.checkpoint_info(path)
        _requests.refuse_distributed(self._checkpoint)
        tensors = self._checkpoint.tensors
        plain = len({row.full_name[: len(row.full_name) - len(row.name)] for row in tensors}) < 2
        self._places: dict[str, tuple[str, str]] = {}  # shard, name in it
        self._rows: dict[str, CheckpointTensor] = {}
        for row in tensors:
            name = row.name if plain else row.full_name
            if name in self._places:
                raise CastError(
                    f"{path}: {self._places[name][0]} and {row.file} both have a tensor {name!r}; open one of the files",
                    file=path,
                    tensor=name,
                )
            self._places[name] = row.file, row.name
            self._rows[name] = row
        first = tensors[0] if tensors and plain else None
        self._prefix = "" if first is None else first.full_name[: len(first.full_name) - len(first.name)]
        self._open: OrderedDict[str, tuple[_core.TensorFile, dict[str, int]]] | None = OrderedDict()
        self._lock = threading.Lock()
        if dequantize is not None:
            self._decode(dequantize)

    def _find_layers(self) -> Layers | None:
        return Layers(self._path, self._as_torch, self._prefix)

    @property
    def info(self) -> CheckpointInfo:
        """Shards, other files and tensors, as :func:`tensorcast.inspect` gives them."""
        return self._checkpoint

    def _shard(self, shard: str) -> tuple[_core.TensorFile, dict[str, int]]:
        with self._lock:
            if self._open is None:
                raise CastError(f"{self._path} is closed; read its tensors before, or open it again")
            if shard not in self._open:
                core = _core.TensorFile(_inspected.shard_path(self._path, shard), "", None, None)
                self._open[shard] = core, _inspected.places_of(shard, core.summary())
            self._open.move_to_end(shard)
            if len(self._open) > self._most_open:
                self._open.popitem(last=False)
            return self._open[shard]

    def _stored_row(self, name: str) -> TensorInfo:
        return self._rows[name]

    def _stored_names(self) -> Mapping[str, Any]:
        return self._places

    def _stored_place(self, name: str) -> tuple[_core.TensorFile, int]:
        if name not in self._places and self._open is not None:
            raise KeyError(name)
        shard, tensor = self._places.get(name, ("", ""))
        core, names = self._shard(shard)
        if tensor not in names:
            raise CastError(f"{shard} has changed since it was opened: tensor {tensor!r} is gone", file=shard)
        return core, names[tensor]

    def close(self) -> None:
        """Closes all files. Harmless if they are closed.

        Examples:
            >>> folder = tc.open("model")
            >>> folder.close()
            >>> folder
            <TensorFolder 'model': closed, 2 shards, 3 tensors>
        """
        with self._lock:
            self._open = None

    def __repr__(self) -> str:
        state = "closed, " if self._open is None else ""
        return f"<TensorFolder {cut(repr(self._path))}: {state}{len(self._checkpoint.shards)} shards, {len(self)} tensors>"


@overload
def open(
    path: Source,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
    framework: NumPyName = "np",
    dequantize: DTypeLike | None = None,
    device: Device = None,
) -> TensorFile[npt.NDArray[Any]]: ...
@overload
def open(
    path: Source,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
    framework: TorchName,
    dequantize: DTypeLike | None = None,
    device: Device = None,
) -> TensorFile[torch.Tensor]: ...
@plain_errors
def open(
    path: Source,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
    framework: NumPyName | TorchName = "np",
    dequantize: DTypeLike | None = None,
    device: Device = None,
) -> TensorFile[Any]:
    """Opens a file or folder of tensors: a mapping of names to arrays, which are read when asked for.

    Args:
        path: ``.npy``, ``.npz``, ``.safetensors``, ``.gguf``, ``.pb``, or a checkpoint of PyTorch. The array of an npy
            file is named ``""``. A folder of safetensors files, or the index of one, is a :class:`TensorFolder`. A
            file behind a URL of fsspec, such as ``s3://bucket/x.npz``, is copied to a file without a name. Also the bytes
            of a file, or a file that Python opened in binary mode, which is read to its end; ``format`` says what they
            are if their beginning does not.
        from_: the ml_dtypes type of opaque npy descriptors; ``{tensor: dtype}`` names it for single arrays of an npz.
        raw: type and shape of a file of raw elements.
        format: where extension and content do not tell.
        framework: ``"np"`` for NumPy arrays, ``"pt"`` for tensors of PyTorch, as of ``safetensors.safe_open``.
        dequantize: the floating-point type to decode quantized weights to, with one rounding at the end. Without it,
            ``file["layer.weight"]`` is a :class:`QuantizedLayer`.
        device: with ``"pt"``, where each tensor goes when it is read, such as ``"cuda:0"``.

    Raises:
        CastError: a file that cannot be read or breaks its format. FileError: as ``builtins.open``.
        UnsupportedError: ``dequantize`` of a model whose method is not decoded.

    Examples:
        >>> with tc.open("model.safetensors") as file:
        ...     file["embed.weight"].shape
        (64, 256)
    """
    as_torch = is_torch(framework)
    where = device_of(device, as_torch)
    if not isinstance(path, (str, os.PathLike)):
        with _remote.content_in_file(path) as here:
            found = here if dequantize is not None else None
            return TensorFile(_core.TensorFile(here, format or "", from_, raw), "<content>", as_torch, dequantize, found, where)
    name = _remote.path_of(path)
    if format is None and _core.is_checkpoint(name):
        return TensorFolder(name, as_torch, dequantize, where)
    with _remote.copy_of(name) as here:  # whose memory an open file keeps
        plain = from_ is None and raw is None and format is None
        found = here if plain and (dequantize is not None or here == name) else None
        return TensorFile(_core.TensorFile(here, format or "", from_, raw), name, as_torch, dequantize, found, where)


@overload
def load(
    path: Source,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
    framework: NumPyName = "np",
    dequantize: DTypeLike | None = None,
    device: Device = None,
) -> dict[str, npt.NDArray[Any]]: ...
@overload
def load(
    path: Source,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
    framework: TorchName,
    dequantize: DTypeLike | None = None,
    device: Device = None,
) -> dict[str, torch.Tensor]: ...
def load(
    path: Source,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    format: FileFormat | None = None,
    framework: NumPyName | TorchName = "np",
    dequantize: DTypeLike | None = None,
    device: Device = None,
) -> dict[str, Any]:
    """Reads all tensors that a file stores, as :func:`open` does, whose arguments it has; warns of entries that are none.

    Examples:
        >>> sorted(tc.load("model.safetensors"))
        ['embed.weight', 'layers.0.mlp.up_proj.weight', 'norm.weight']
        >>> tc.save("one.npy", {"": weight})
        >>> (array,) = tc.load("one.npy").values()
        >>> tensors = tc.load("model.safetensors", framework="pt")  # tensors of PyTorch
    """
    whole: Any = framework
    with open(path, from_=from_, raw=raw, format=format, framework=whole, dequantize=dequantize, device=device) as file:
        _requests.warn_of_left_out(file.info)
        return {name: file.get_tensor(name) for name in file}
