# SPDX-License-Identifier: Apache-2.0
"""Converts a planned checkpoint on a Ray cluster: one task for each shard. ``pip install tensorcast[ray]``.

>>> import tensorcast.ray
>>> tc.checkpoint.plan("/shared/model", "/shared/model-bf16", "bfloat16")
>>> tensorcast.ray.convert("/shared/model-bf16", address="auto")

``python -m tensorcast.ray /shared/model-bf16 --address auto`` does the same. Every node needs the package, and
must see both folders under the names that the plan has.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from . import checkpoint
from ._files import _remote
from ._errors import Cancelled, CastError
from ._results import ConvertResult

if TYPE_CHECKING:
    from ._requests import Path

__all__ = ["convert"]

_POLL_SECONDS = 0.5


class _StopMark:
    """A file beside the plan, by which a driver that ends early stops its tasks.

    Not ``ray.cancel``: the reply of a cancelled task may arrive while the driver ends, whose core then aborts
    (ray-project/ray#54846).
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._next = 0.0
        self._seen = False

    @classmethod
    def beside(cls, output: str) -> _StopMark:
        folder = output.removesuffix("plan.json").rstrip("/").removesuffix("/.tcast")
        return cls(f"{folder}/.tcast/stop-{uuid.uuid4().hex}")

    def is_set(self) -> bool:
        """Looks at most twice a second."""
        now = time.monotonic()
        if not self._seen and now >= self._next:
            self._next = now + _POLL_SECONDS
            remote = _remote.is_url(self.path)
            self._seen = _remote.Store().find(self.path) is not None if remote else os.path.exists(self.path)
        return self._seen

    def set(self) -> None:
        """Errors are of no use to a driver that ends: tasks that miss the mark end with their cluster's job."""
        with contextlib.suppress(Exception):
            if not _remote.is_url(self.path):
                with open(self.path, "x"):
                    return
            with tempfile.NamedTemporaryFile() as empty:
                _remote.Store().upload(empty.name, self.path)


def _run(output: str, shard: int, threads: int, stop: str) -> dict[str, Any]:
    """The task of a shard: paths in, a small dictionary out. The bytes stay in the file system.

    Ray sends this function by value when this module is the program, so it imports all that it uses.
    """
    from tensorcast import Cancelled, checkpoint
    from tensorcast import ray as here

    mark = here._StopMark(stop)
    if mark.is_set():
        raise Cancelled("the driver of this task ended")
    done = checkpoint.run_shard(output, shard, threads=threads, progress=lambda *_: not mark.is_set())
    return done.shards[0].as_dict()


def convert(
    output: Path,
    *,
    address: str | None = None,
    num_cpus: float = 1,
    retries: int = 3,
    finish: bool = True,
    progress: Callable[[int, int, str], object] | None = None,
) -> ConvertResult:
    """Converts all shards of a plan on a Ray cluster, and completes the folder.

    Shards that are done are left alone, so after a crash, an error or Ctrl-C the same call goes on. A shard is tried
    again on errors of files, and when its worker or node is lost. When the call ends early, a file in the folder stops
    the tasks that still run.

    Args:
        output: the folder that was planned, or its ``plan.json``.
        address: of the cluster: ``"auto"``, ``"HOST:PORT"``; ``None``: the connection that the process has, the cluster
            of ``RAY_ADDRESS``, or else a new one on this machine.
        num_cpus: that a task reserves, and the number of its threads, at least one.
        retries: of each shard.
        finish: ``False`` leaves the last step to :func:`tensorcast.checkpoint.finish`.
        progress: called with bytes done, bytes in all and the file of the newest shard; returning ``False`` cancels.

    Returns:
        The result of :func:`tensorcast.checkpoint.finish`, or of :func:`tensorcast.checkpoint.status`.

    Raises:
        CastError: the first error of a shard that trying again did not mend. Other shards stay converted.
        Cancelled, KeyboardInterrupt: the same.

    Examples:
        >>> import tensorcast.ray
        >>> plan = tc.checkpoint.plan("model", "model-bf16", "bfloat16")
        >>> done = tensorcast.ray.convert("model-bf16")
    """
    ray: Any = importlib.import_module("ray")
    name = os.fspath(output)
    folder = name if _remote.is_url(name) else os.path.abspath(name)
    state = checkpoint.status(folder)
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    task = ray.remote(_run).options(
        num_cpus=num_cpus,
        max_retries=retries,
        retry_exceptions=[OSError],
        scheduling_strategy="SPREAD",
        name="tensorcast.run_shard",
    )
    bytes_of = [shard.bytes_in + shard.bytes_out for shard in state.shards]
    threads = max(1, int(num_cpus))
    stop = _StopMark.beside(folder)
    _running.append(stop)
    pending: dict[Any, int] = {}
    left = [index for index, shard in enumerate(state.shards) if not shard.done_before]
    done = sum(bytes_of) - sum(bytes_of[index] for index in left)
    newest = ""
    try:
        pending.update((task.remote(folder, index, threads, stop.path), index) for index in left)
        while pending:
            if progress is not None and progress(done, sum(bytes_of), newest) is False:
                raise Cancelled("cancelled by progress=; the converted shards are kept, and the same call goes on")
            ready, _ = ray.wait(list(pending), num_returns=1, timeout=_POLL_SECONDS)
            for reference in ready:
                index = pending.pop(reference)
                newest = ray.get(reference)["file"]
                done += bytes_of[index]
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, CastError) else error) from None
    finally:
        if pending:
            stop.set()
        _running.remove(stop)
    if progress is not None:
        progress(done, sum(bytes_of), newest)
    return checkpoint.finish(folder) if finish else checkpoint.status(folder)


class _ProgressLine:
    """A line on a terminal's standard error, or one line for each tenth elsewhere."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._at_start: int | None = None
        self._tenth = -1

    def __call__(self, done: int, total: int, file: str) -> None:
        if self._at_start is None:
            self._at_start = done
        seconds = time.monotonic() - self._start
        rate = (done - self._at_start) / seconds if seconds else 0.0
        left = f", {(total - done) / rate:.0f} s left" if rate and done < total else ""
        line = f"{done / 1e9:.2f} of {total / 1e9:.2f} GB, {rate / 1e9:.2f} GB/s{left}  {file}"
        if sys.stderr.isatty():
            print(f"\r{line[:100]:<100}", end="" if done < total else "\n", file=sys.stderr, flush=True)
        elif (tenth := 10 * done // max(total, 1)) != self._tenth:
            self._tenth = tenth
            print(line, file=sys.stderr, flush=True)


_running: list[_StopMark] = []  # of the calls that have tasks


def _end_at_once(*_: object) -> NoReturn:
    """Ends as a driver that is killed does: what Ray does at exit may take minutes, or abort, while tasks run."""
    for mark in _running:
        mark.set()
    start = "\n" if sys.stderr.isatty() else ""
    os.write(2, f"{start}interrupted; the converted shards are kept, and the same command goes on\n".encode())
    os._exit(130)


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tensorcast.ray", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("plan", help="the folder that `tcast plan` made, or its plan.json")
    parser.add_argument("--address", help="of the Ray cluster: auto, HOST:PORT (default: RAY_ADDRESS, or a new one here)")
    parser.add_argument("--num-cpus", type=float, default=1, metavar="N", help="CPUs and threads of a shard (default 1)")
    parser.add_argument("--retries", type=int, default=3, metavar="N", help="of each shard (default 3)")
    parser.add_argument("--no-finish", action="store_true", help="leave the last step to `tcast finish`")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, _end_at_once)
    try:
        done = convert(
            given.plan,
            address=given.address,
            num_cpus=given.num_cpus,
            retries=given.retries,
            finish=not given.no_finish,
            progress=None if given.quiet else _ProgressLine(),
        )
    except CastError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{given.plan}: {len(done.shards)} shards converted{'' if given.no_finish else '; the checkpoint is complete'}")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
