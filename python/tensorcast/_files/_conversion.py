# SPDX-License-Identifier: Apache-2.0
"""Converts files and folders of tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core, _requests
from .._arguments import plain_errors
from .._convert_options import REQUEST_DEFAULTS, ConvertOptions
from .._errors import CastError
from .._option_list import DEFAULTS
from .._options import DTypeLike, shows
from .._request_types import SourceTypes
from .._requests import Path
from .._results import ConvertResult
from . import _progress, _remote
from ._progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack


@shows(ConvertOptions, {**REQUEST_DEFAULTS, **DEFAULTS})
@plain_errors
def convert(
    src: Path,
    dst: Path,
    to: DTypeLike | None = None,
    *,
    from_: SourceTypes = None,
    raw: tuple[DTypeLike, Sequence[int]] | None = None,
    strict_loss: bool = False,
    progress: Progress = None,
    **options: Unpack[ConvertOptions],
) -> ConvertResult:
    """Converts every tensor of a file, or of a checkpoint: a folder, or the index of one.

    A file ``dst`` is complete or absent, also after an error. A folder ``dst`` has a hidden folder ``.tcast`` until it is
    complete; the same call then goes on where the last one stopped (``docs/checkpoints.md``).

    Args:
        src, dst: ``.npy``, ``.npz``, ``.safetensors``, ``.gguf``, ``.pb``; ``src`` also checkpoints of PyTorch. A
            folder, or ``NAME.safetensors.index.json``, is converted to a folder. Both may be URLs of fsspec, such as
            ``s3://bucket/model`` and ``hf://org/model``; see :func:`set_storage_options`.
        to: type of floating-point tensors that no rule names; or a scheme of :func:`recipes`, for matrices of layers.
        from_: the ml_dtypes type of opaque npy descriptors; ``{tensor: dtype}`` names it for single arrays of an npz.
        raw: type and shape of a ``src`` of raw elements.
        strict_loss: fail if an element overflows, is clamped, wraps around, or loses a NaN or an infinity, or if more
            than ``zero_limit`` of a tensor's nonzero elements become zero. Else a tensor that is destroyed is a
            :class:`LossWarning`: more than half of its nonzero elements become zero, the signal to noise ratio is under
            3 dB, an element overflows to infinity or wraps around, or more than 1 % are out of range.
            Where a filter makes a LossWarning an error, it comes before the output; a folder is then converted with
            ``strict_loss``.
        progress: ``True`` for a line on standard error; or a function, called with bytes done, bytes in all, tensor
            name, which cancels by returning ``False``.
        **options: those of :class:`ConvertOptions`, which has those of :func:`cast`; ``scale`` is one number.

    Raises:
        CastError: with ``.tensor`` and ``.index`` where they apply; nothing is then left on disk, of a folder nothing
            but what the next call goes on with.
        FileError: it is also the ``OSError`` that one expects, such as ``FileNotFoundError`` and ``FileExistsError``.
        Cancelled: ``progress`` returned ``False``. The same holds for it, and for ``KeyboardInterrupt`` after Ctrl-C.

    Examples:
        >>> done = tc.convert("model.safetensors", "half.safetensors", "float16", rules={"norm": "float32"})
        >>> [(row.name, row.to) for row in done.tensors]
        [('embed.weight', 'float16'), ('layers.0.mlp.up_proj.weight', 'float16'), ('norm.weight', 'float32')]
    """
    of_cast: dict[str, Any] = {**options}
    request = _requests.fields(of_cast) | {
        "to": to,
        "input": _remote.path_of(src),
        "output": _remote.path_of(dst),
        "from_": from_,
        "raw": raw,
        "strict_loss": strict_loss,
    }
    cuts = request["single_file"] or "max_shard_size" in request
    if cuts and not _core.is_checkpoint(request["input"]):
        raise CastError("max_shard_size= and single_file= are for folders and indexes; a file is written as one file")
    asking = ("budget", "rules", "include", "drop", "only", "rename", "respell", "mix")
    asks = to is not None or cuts or any(request.get(name) for name in asking)
    same_format = os.path.splitext(request["input"])[1] == os.path.splitext(request["output"])[1]
    if not asks and (same_format or _core.is_checkpoint(request["input"])):
        raise CastError("there is no type to convert to; name it with to=, or types for tensors with rules=")
    with _progress.shown(progress) as tell, _remote.files_here(request), _remote.staged(request):
        done = _core.convert(request, tell, of_cast)
        if done["other_data"]:  # beside `dst`, also where that is written elsewhere first
            done["other_data"] = os.path.join(os.path.dirname(dst), os.path.basename(done["other_data"]))
        return _requests.convert_result(done, 3)
