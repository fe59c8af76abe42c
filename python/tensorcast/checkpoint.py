# SPDX-License-Identifier: Apache-2.0
"""The steps of :func:`tensorcast.convert` for folders, which may run on different machines; and what reads its results.

>>> from tensorcast import checkpoint
>>> plan = checkpoint.plan("model", "model-bf16", "bfloat16")  # once: writes model-bf16/.tcast/plan.json
>>> for machine in range(2):  # each of 2 machines that see both folders makes one of the calls
...     done = checkpoint.run_shard("model-bf16", shard_of=(machine, 2))
>>> done = checkpoint.finish("model-bf16")  # once
>>> checkpoint.verify("model-bf16", against="model").tensors
3

``docs/checkpoints.md`` says what the folder has in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _core, _requests
from ._files import _progress, _remote
from ._arguments import plain_errors
from ._convert_options import (
    FILTER_OPTIONS,
    PLAN_OPTIONS,
    REQUEST_DEFAULTS,
    FilterOptions,
    PlanOptions,
    VerifyOptions,
)
from ._errors import CastError, unknown_option
from ._option_list import DEFAULTS
from ._options import DTypeLike, shows
from ._files._progress import Progress
from ._request_types import Patterns
from ._requests import Path
from ._results import ConvertResult, TensorDifference, VerifyResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["diff", "finish", "plan", "run_shard", "status", "verify"]


@shows(PlanOptions, {**{name: REQUEST_DEFAULTS[name] for name in PLAN_OPTIONS}, **DEFAULTS})
@plain_errors
def plan(
    src: Path,
    dst: Path,
    to: DTypeLike | None = None,
    *,
    strict_loss: bool = False,
    **options: Unpack[PlanOptions],
) -> ConvertResult:
    """Plans the conversion of a folder or an index, and writes ``dst/.tcast/plan.json``.

    The arguments are those of :func:`tensorcast.convert`. The result has the plan's shards and tensors.

    Raises:
        CastError: as :func:`tensorcast.convert`; nothing is written then.

    Examples:
        >>> plan = tc.checkpoint.plan("model", "model-bf16", "bfloat16")
        >>> [(shard.file, shard.sha256) for shard in plan.shards]
        [('model-00001-of-00002.safetensors', ''), ('model-00002-of-00002.safetensors', '')]
    """
    of_cast: dict[str, Any] = {**options}
    request = _requests.fields(of_cast, PLAN_OPTIONS) | {
        "to": to,
        "input": _remote.path_of(src),
        "output": _remote.path_of(dst),
        "strict_loss": strict_loss,
    }
    return _requests.convert_result(_core.plan_checkpoint(request, of_cast), 3)


@plain_errors
def run_shard(
    output: Path,
    shards: int | Iterable[int] | None = None,
    *,
    shard_of: tuple[int, int] = (0, 1),
    threads: int = 0,
    progress: Progress = None,
) -> ConvertResult:
    """Converts shards of a plan; those that are done are left alone, so that doing it twice does no harm.

    Args:
        output: the folder that :func:`plan` was given as ``dst``, or its ``plan.json``.
        shards: the index of a shard, from 0, or several; ``None``: all.
        shard_of: ``(i, n)``: only every n-th of ``shards``, from the i-th on, i from 0.
        threads: 0 for all cores.
        progress: as in :func:`tensorcast.convert`; after it cancels, complete shards are kept.

    Returns:
        The shards that were chosen, ``.sha256`` and all, and their tensors.

    Raises:
        CastError: a shard that the plan does not have; losses with ``strict_loss``. FileError: also a source that has
        changed since it was planned. Cancelled.

    Examples:
        >>> plan = tc.checkpoint.plan("model", "model-bf16", "bfloat16")
        >>> done = tc.checkpoint.run_shard("model-bf16", 0)
        >>> len(done.shards[0].sha256)
        64
    """
    chosen = [shards] if isinstance(shards, int) else None if shards is None else [int(shard) for shard in shards]
    first, step = shard_of
    if any(number < 0 for number in (first, step, *(chosen or []))):
        raise CastError(f"shards and parts are counted from 0: shards={shards!r}, shard_of={shard_of!r}")
    if chosen == []:
        raise CastError("shards=[] chooses no shard; leave it out for all")
    with _progress.shown(progress) as tell:
        done = _core.convert_shards(_remote.path_of(output), chosen or [], first, step, threads, tell)
    return _requests.convert_result(done, 3)


@plain_errors
def status(output: Path) -> ConvertResult:
    """Tells how far a planned conversion is: a shard that is done has its ``.sha256`` and ``.done_before``.

    Raises:
        CastError: there is no plan, as after :func:`finish`.

    Examples:
        >>> plan = tc.checkpoint.plan("model", "model-bf16", "bfloat16")
        >>> done = tc.checkpoint.run_shard("model-bf16", 0)
        >>> [shard.done_before for shard in tc.checkpoint.status("model-bf16").shards]
        [True, False]
    """
    return _requests.convert_result(_core.planned_checkpoint(_remote.path_of(output)), 3)


@plain_errors
def finish(output: Path) -> ConvertResult:
    """Makes a planned folder whose shards are converted a checkpoint: indexes, configs, ``SHA256SUMS``, other files.

    May run again after a crash.

    Raises:
        CastError: naming the shards that are not converted.

    Examples:
        >>> plan = tc.checkpoint.plan("model", "model-bf16", "bfloat16")
        >>> done = tc.checkpoint.run_shard("model-bf16")
        >>> tc.checkpoint.finish("model-bf16").rewritten_files
        ('config.json', 'model.safetensors.index.json')
    """
    return _requests.convert_result(_core.finish_checkpoint(_remote.path_of(output)), 3)


@shows(VerifyOptions, {**{name: REQUEST_DEFAULTS[name] for name in FILTER_OPTIONS}, **DEFAULTS})
@plain_errors
def verify(
    path: Path,
    *,
    against: Path | None = None,
    importance: Path | None = None,
    progress: Progress = None,
    **options: Unpack[VerifyOptions],
) -> VerifyResult:
    """Reads a checkpoint again and compares it with its ``SHA256SUMS``, and with its source.

    Args:
        path: the converted folder, an index, a safetensors file or, with ``against``, a GGUF file.
        against: what it was converted from: every tensor is converted again and compared.
        importance: the file of importance that weights were quantized with.
        progress: as in :func:`tensorcast.convert`.
        **options: those of the conversion.

    Raises:
        CastError: with ``.file`` and ``.tensor``: the first that differs; or there is nothing to compare with.

    Examples:
        >>> done = tc.convert("model", "model-bf16", "bfloat16")
        >>> tc.checkpoint.verify("model-bf16", against="model").tensors
        3
    """
    source = "" if against is None else _remote.path_of(against)
    weighed_by = "" if importance is None else os.fspath(importance)
    of_cast: dict[str, Any] = {**options}
    chosen = _requests.fields(of_cast, FILTER_OPTIONS)
    with _progress.shown(progress) as tell:
        return VerifyResult(**_core.verify_checkpoint(_remote.path_of(path), source, weighed_by, chosen, tell, of_cast))


@shows(FilterOptions, {name: REQUEST_DEFAULTS[name] for name in FILTER_OPTIONS})
@plain_errors
def diff(
    a: Path,
    b: Path,
    *,
    headers_only: bool = False,
    include: Patterns = (),
    progress: Progress = None,
    **options: Unpack[FilterOptions],
) -> tuple[TensorDifference, ...]:
    """Compares the tensors of two checkpoints by name: all of ``a`` in its order, then those that only ``b`` has.

    Args:
        a, b: folders, indexes or safetensors files.
        headers_only: compare types and shapes only.
        include: regular expressions of names.
        progress: as in :func:`tensorcast.convert`.
        **options: those of a conversion from ``a`` to ``b``; ``a`` is compared as it would be written.

    Examples:
        >>> done = tc.convert("model", "model-bf16", "bfloat16")
        >>> [row.name for row in tc.checkpoint.diff("model", "model-bf16") if not row.in_b or row.snr_db < 30]
        []
    """
    given: dict[str, Any] = {**options}
    chosen = _requests.fields(given, FILTER_OPTIONS)
    if given:
        raise unknown_option(next(iter(given)), FILTER_OPTIONS)
    with _progress.shown(progress) as tell:
        rows: list[dict[str, Any]] = _core.diff_checkpoints(
            _remote.path_of(a), _remote.path_of(b), headers_only, _requests.patterns(include), chosen, tell
        )
    return tuple(TensorDifference(**row) for row in rows)
