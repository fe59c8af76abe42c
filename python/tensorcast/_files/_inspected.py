# SPDX-License-Identifier: Apache-2.0
"""What folders and files behind URLs have, and where their shards are."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from .. import _core
from .._results import CheckpointFile, CheckpointInfo, FileInfo, TensorInfo


def remote_info(url: str) -> FileInfo:
    """What a safetensors file behind a URL has; only its header is fetched."""
    found = checkpoint_info(url)
    names = [field.name for field in dataclasses.fields(TensorInfo)]
    rows = tuple(TensorInfo(**{name: getattr(row, name) for name in names}) for row in found.tensors)
    return FileInfo("safetensors", rows, found.metadata, found.layers, found.warnings, found.notes)


def checkpoint_info(path: str) -> CheckpointInfo:
    found = _core.inspect_checkpoint(path)
    shards = tuple(CheckpointFile(**row) for row in found["shards"])
    metadata = {key: text for shard in reversed(shards) for key, text in shard.metadata.items()}
    return CheckpointInfo._of(found, format="checkpoint", metadata=metadata, shards=shards)


def shard_path(checkpoint: str, shard: str) -> str:
    return os.path.join(checkpoint if os.path.isdir(checkpoint) else os.path.dirname(checkpoint), shard)


def places_of(shard: str, summary: Mapping[str, Any]) -> dict[str, int]:
    """Where the tensors of a shard are in it, by their names in the checkpoint."""
    return {name_in(shard, row["name"], summary["format"]): place for place, row in enumerate(summary["tensors"])}


def name_in(shard: str, name: str, format: str) -> str:
    """The name in a checkpoint of a tensor of a shard: one without a name, as PyTorch's files may have, has the file's."""
    return name if name or format == "safetensors" else os.path.splitext(os.path.basename(shard))[0]
