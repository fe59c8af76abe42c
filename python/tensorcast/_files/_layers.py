# SPDX-License-Identifier: Apache-2.0
"""Quantized weights of open files: codes and scales as they are stored, or the numbers that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from .._cast import _tensors
from .._errors import UnsupportedError
from .._options import DTypeLike
from .._results import TensorInfo


class QuantizedLayer:
    """A quantized weight of an open file or folder: ``file.layers["model.layers.0.mlp.up_proj.weight"]``.

    Its arrays are read when they are asked for, as they are stored, also after the file was closed; ``None``: the layer
    has none. They are NumPy's, or PyTorch's with ``framework="pt"``.

    Attributes:
        name: of the weight.
        spelling: who names and packs tensors so, such as ``"compressed-tensors"``.
        scheme: such as ``"nvfp4"``.
        shape: of the weight.
        block: rows and columns that share a scale; 0: all.
        problem: why it cannot be decoded, or ``""``.
        tensors: the names of its stored tensors, the codes first.

    Examples:
        >>> with tc.open("quantized.safetensors") as file:
        ...     layer = file.layers["layers.0.mlp.up_proj.weight"]
        >>> layer.scheme, layer.codes.shape, layer.scales.shape
        ('nvfp4', (64, 128), (64, 16))
    """

    __module__ = "tensorcast"

    def __init__(self, core: _core.QuantizedFile, index: int, row: dict[str, Any], as_torch: bool) -> None:
        self._core, self._index, self._as_torch = core, index, as_torch
        self.name: str = row["name"]
        self.spelling: str = row["spelling"]
        self.scheme: str = row["scheme"]
        self.shape: tuple[int, ...] = row["shape"]
        self.block: tuple[int, int] = row["block"]
        self.problem: str = row["problem"]
        self._roles: tuple[str, ...] = tuple(role for role, _ in row["parts"])
        self.tensors: tuple[str, ...] = tuple(name for _, name in row["parts"])

    def _part(self, role: str) -> Any:
        if role not in self._roles:
            return None
        return _tensors.from_core(self._core.read_part(self._index, self._roles.index(role)), self._as_torch)

    @property
    def codes(self) -> Any:
        """Packed as they are stored; blocks of GGUF as rows of bytes."""
        return self._part("codes")

    @property
    def scales(self) -> Any:
        return self._part("scales")

    @property
    def global_scale(self) -> Any:
        """Of the whole tensor: a factor, in compressed-tensors a divisor."""
        return self._part("global_scale")

    @property
    def zero_points(self) -> Any:
        return self._part("zero_points")

    @property
    def biases(self) -> Any:
        return self._part("biases")

    @property
    def group_index(self) -> Any:
        """GPTQ's ``g_idx``."""
        return self._part("group_index")

    @property
    def table(self) -> Any:
        """bitsandbytes' ``quant_map``."""
        return self._part("table")

    def dequantize(self, dtype: DTypeLike = "float32") -> Any:
        """The weight: the operations of the tool that wrote it in float32, rounded once to ``dtype``.

        Raises:
            UnsupportedError: the layer has a problem.

        Examples:
            >>> with tc.open("quantized.safetensors") as file:
            ...     file["layers.0.mlp.up_proj.weight"].dequantize("bfloat16").shape
            (64, 256)
        """
        return _tensors.from_core(self._core.dequantize(self._index, dtype), self._as_torch)

    def __repr__(self) -> str:
        problem = ", not decoded" if self.problem else ""
        return f"QuantizedLayer({self.name!r}, {self.spelling} {self.scheme}, shape={self.shape}{problem})"


class Decoded:
    """Reads the weights of layers as a TensorFile of the core reads tensors."""

    def __init__(self, core: _core.QuantizedFile, dtype: DTypeLike) -> None:
        self.core, self._dtype = core, dtype

    def read(self, index: int) -> _core.Tensor:
        return self.core.dequantize(index, self._dtype)

    def read_slice(self, index: int, slice: Sequence[tuple[int, int]]) -> _core.Tensor:
        return self.core.dequantize_slice(index, self._dtype, slice)


class Layers:
    """The layers of a file, and what of its tensors they stand for once they are decoded."""

    def __init__(self, path: str, as_torch: bool, prefix: str = "") -> None:
        self.core = _core.QuantizedFile(path)
        self.of_name: dict[str, QuantizedLayer] = {}
        self.places: dict[str, int] = {}
        for index, row in enumerate(self.core.layers()):
            row["name"] = row["name"].removeprefix(prefix)
            row["parts"] = [(role, name.removeprefix(prefix)) for role, name in row["parts"]]
            self.of_name[row["name"]] = QuantizedLayer(self.core, index, row, as_torch)
            self.places[row["name"]] = index

    def names_in(self, stored: list[str]) -> list[str]:
        """The names of a file whose layers are decoded: those of weights in the place of their codes."""
        codes = {layer.tensors[0]: layer.name for layer in self.of_name.values()}
        others = {name for layer in self.of_name.values() for name in layer.tensors[1:]}
        return [codes.get(name, name) for name in stored if name not in others]

    def row(self, name: str, dtype: DTypeLike) -> TensorInfo:
        """What a decoded weight is."""
        layer = self.of_name[name]
        known = _core.dtype_name(dtype)
        count = 1
        for size in layer.shape:
            count *= size
        return TensorInfo(name=name, dtype=known, shape=layer.shape, bytes=count * _core.bit_width(known) // 8)


class HasLayers:
    """What files and folders have in common: their quantized weights, which are looked for when they are first needed."""

    _path: str
    _dtype: str | None = None  # that layers are decoded to
    _layers: Layers | None = None  # once they have been looked for
    _looked = False
    _weights: dict[str, None] | None = None  # the names, if layers are decoded

    def _find_layers(self) -> Layers | None:
        raise NotImplementedError

    def _stored_names(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def _names(self) -> Mapping[str, Any]:
        return self._stored_names() if self._weights is None else self._weights

    def _decode(self, dtype: DTypeLike) -> None:
        self._dtype = _core.dtype_name(dtype)
        layers = self._known_layers()
        if layers is None:
            return
        if layers.core.refusal:
            raise UnsupportedError(f"{self._path}: {layers.core.refusal}")
        self._weights = dict.fromkeys(layers.names_in(list(self._stored_names())))

    def _known_layers(self) -> Layers | None:
        if self._layers is None and not self._looked:
            self._layers = self._find_layers()
            self._looked = True
        return self._layers

    @property
    def layers(self) -> Mapping[str, QuantizedLayer]:
        """The quantized weights, by their names."""
        known = self._known_layers()
        return {} if known is None else known.of_name

    def _decodes(self, name: str) -> bool:
        return self._dtype is not None and name in self.layers
