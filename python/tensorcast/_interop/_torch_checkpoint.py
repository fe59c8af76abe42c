# SPDX-License-Identifier: Apache-2.0
"""Quantized checkpoints as torch.distributed.checkpoint reads them: decoded, and only what a rank needs."""

from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from .. import _core
from .._files import _files
from .._files._layers import Decoded
from ._torch import _TORCH_TYPE, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    Rename: TypeAlias = "Mapping[str, str | Iterable[str]] | Callable[[str], str | Iterable[str] | None]"


class QuantizedReader(StorageReader):
    """Reads a checkpoint of quantized weights for ``torch.distributed.checkpoint.load``, which then are decoded.

    State dicts may be plain, of FSDP2 or tensor-parallel: a rank reads and decodes the rows and columns that its shards
    have. All layouts that :func:`tensorcast.open` decodes are read, and tensors that are not quantized. A weight is
    decoded straight into a contiguous tensor of ``dtype`` on the CPU; another one gets it in one copy. What is missing,
    or has another shape, is as ``dcp`` reports it.

    Args:
        path: a folder, or a file, as of :func:`tensorcast.open`.
        dtype: what quantized weights are decoded to, rounded once; a tensor of another type is converted from that by
            PyTorch, as are tensors that are not quantized.
        rename: the state dict's name of a tensor of the checkpoint: a function of its name, or a mapping, in which names
            may be missing. Several names are one tensor under each of them, no name (``None``) leaves it out. If
            ``config.json`` says ``tie_word_embeddings``, embeddings and ``lm_head`` of which one is stored are both.
        threads: that decode a large tensor; 0: one for each core.

    Examples:
        >>> import torch, torch.distributed.checkpoint as dcp
        >>> from tensorcast.torch import QuantizedReader
        >>> state_dict = {"layers.0.mlp.up_proj.weight": torch.zeros(64, 256)}
        >>> dcp.load(state_dict, storage_reader=QuantizedReader("quantized.safetensors"), no_dist=True)
        >>> bool(state_dict["layers.0.mlp.up_proj.weight"].any())
        True
    """

    __module__ = "tensorcast.torch"

    def __init__(
        self, path: str | os.PathLike[str], dtype: torch.dtype = torch.bfloat16, *, rename: Rename | None = None, threads: int = 0
    ) -> None:
        name = type_name(dtype)
        if not dtype.is_floating_point or _core.bit_width(name) < 8:
            raise TypeError(f"weights are decoded to floating-point types of 8 bits or more, not {dtype}")
        self.dtype, self._dtype_name, self._rename, self._threads = dtype, name, rename, threads
        self.reset(path)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Reads another checkpoint from now on. Files are opened by ``read_metadata``.

        Examples:
            >>> from tensorcast.torch import QuantizedReader
            >>> reader = QuantizedReader("quantized.safetensors")
            >>> reader.reset("model")
            >>> reader.path
            'model'
        """
        if checkpoint_id is not None:
            self.path = os.fspath(checkpoint_id)
        self._file: Any = None
        self._stored: dict[str, str] = {}  # names of the checkpoint by those of the state dict
        self._order: dict[str, int] = {}  # of what is stored

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        self._file = _files.open(self.path, dequantize=self._dtype_name)
        self._order = {name: place for place, name in enumerate(self._file._stored_names())}
        self._stored = {}
        for name in self._file:
            for given in self._names_of(name):
                if given in self._stored:
                    raise ValueError(f"{self._stored[given]!r} and {name!r} are both {given!r} by rename=")
                self._stored[given] = name
        self._add_tied()
        found: dict[str, Any] = {}
        for name, stored in self._stored.items():
            row = self._file._row(stored)
            size = torch.Size(row.shape)
            found[name] = TensorStorageMetadata(
                properties=TensorProperties(dtype=_TORCH_TYPE.get(row.dtype, torch.uint8)),
                size=size,
                chunks=[ChunkStorageMetadata(offsets=torch.Size([0] * len(size)), sizes=size)],
            )
        return Metadata(state_dict_metadata=found, storage_meta=StorageMeta(load_id=self.path))

    def _names_of(self, name: str) -> list[str]:
        given: Any = name
        if callable(self._rename):
            given = self._rename(name)
        elif self._rename is not None:
            given = self._rename.get(name, name)
        if given is None:
            return []
        return [given] if isinstance(given, str) else list(given)

    def _add_tied(self) -> None:
        """Adds the one of embeddings and output that models with tied ones do not store."""
        config = pathlib.Path(self.path) / "config.json"
        try:
            said = json.loads(config.read_bytes())
        except (OSError, ValueError):
            return
        if not isinstance(said, dict) or said.get("tie_word_embeddings") is not True:
            return
        embeddings = [name for name in self._stored if name.split(".")[-2:] == ["embed_tokens", "weight"]]
        outputs = [name for name in self._stored if name.split(".")[-2:] == ["lm_head", "weight"]]
        if len(embeddings) == 1 and not outputs:
            self._stored["lm_head.weight"] = self._stored[embeddings[0]]
        elif len(outputs) == 1 and not embeddings:
            self._stored["model.embed_tokens.weight"] = self._stored[outputs[0]]

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if self._file is None:  # only one rank has read the metadata
            self.read_metadata()

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        for item in sorted(plan.items, key=self._place):
            if item.type == LoadItemType.BYTE_IO:
                raise ValueError(f"{item.storage_index.fqn!r} is not a tensor, and a checkpoint of safetensors has no others")
            target = planner.resolve_tensor(item).detach()
            self._read(item, target)
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _place(self, item: ReadItem) -> tuple[int, ...]:
        """So that each file is read from its beginning to its end."""
        name = self._stored[item.storage_index.fqn]
        codes = self._file.layers[name].tensors[0] if name in self._file.layers else name
        return (self._order[codes], *item.storage_offsets)

    def _read(self, item: ReadItem, target: torch.Tensor) -> None:
        name = self._stored[item.storage_index.fqn]
        ranges = [(first, first + size) for first, size in zip(item.storage_offsets, item.lengths)]
        if tuple(target.shape) != tuple(item.lengths):
            raise ValueError(f"{item.storage_index.fqn!r}: {tuple(item.lengths)} of it do not fit {tuple(target.shape)}")
        core, index = self._file._place(name)
        stored = self._file._row(name).dtype
        dtype = _TORCH_TYPE.get(stored)
        if dtype is None:
            raise TypeError(f"{name!r} has the type {stored}, which PyTorch does not have")
        direct = target.device.type == "cpu" and target.dtype == dtype and target.is_contiguous()
        part = target if direct else torch.empty(target.shape, dtype=dtype)
        if part.numel() != 0:
            memory = part.reshape(-1).view(torch.uint8).numpy()
            if isinstance(core, Decoded):
                core.core.dequantize_slice_into(index, stored, ranges, memory, self._threads)
            else:
                core.read_slice_into(index, ranges, stored, memory)
        if not direct:
            target.copy_(part)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return os.path.exists(checkpoint_id)
