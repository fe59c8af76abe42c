# SPDX-License-Identifier: Apache-2.0
"""What folders and files behind URLs have, and where their shards are."""

from __future__ import annotations

import dataclasses
import os

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


def name_in(shard: str, name: str) -> str:
    return name or os.path.splitext(os.path.basename(shard))[0]  # one that is alone in a file is named for it
