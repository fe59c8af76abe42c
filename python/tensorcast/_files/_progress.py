# SPDX-License-Identifier: Apache-2.0
"""``progress=True``: a line on standard error that says how far a conversion is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from .._errors import CastError

Progress: TypeAlias = "bool | Callable[[int, int, str], object] | None"

_INTERVAL_SECONDS = 0.1


class _Line:
    def __init__(self) -> None:
        self._began = self._shown = time.monotonic()
        self._width = 0

    def __call__(self, done: int, total: int, tensor: str) -> None:
        now = time.monotonic()
        if self._width and now - self._shown < _INTERVAL_SECONDS and done < total:
            return
        self._shown = now
        share = 100 * done // total if total else 100
        rate = done / max(now - self._began, 1e-3) / 1e6
        line = f"{share:3d} %  {done / 1e6:,.0f} of {total / 1e6:,.0f} MB  {rate:,.0f} MB/s  {tensor}"[:100]
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def end(self) -> None:
        if self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()


@contextmanager
def shown(progress: Any) -> Iterator[Any]:
    """The function that the library calls: the caller's, or the line's for ``True``."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        line = _Line()
        try:
            yield line
        finally:
            line.end()
    elif callable(progress):
        yield progress
    else:
        raise CastError(f"progress= is True or a function of bytes done, bytes in all and a tensor's name, not {progress!r}")
