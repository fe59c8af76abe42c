# SPDX-License-Identifier: Apache-2.0
"""The memory of freed results, which the next results use: python/src/result_pool.hpp."""

from __future__ import annotations

import operator
import os

from .. import _core
from .._errors import CastError

_VARIABLE = "TENSORCAST_RESULT_POOL"


def set_result_pool(bytes: int, /) -> None:
    """Sets how much memory of freed results is kept for the next results; 0 keeps none. Usually 512 MiB.

    A new array's pages come from the system one by one, which takes two to three times as long as the conversion that
    fills them. So when an array of 4 MiB or more that :func:`tensorcast.cast` made is freed, its memory waits for the
    next result of at most its size. The system may take the pages at any time (``MADV_FREE``), but tools that show
    memory (RSS) count them until it does. After about 3 seconds without a large result, all of it is given back.

    The environment variable ``TENSORCAST_RESULT_POOL`` sets the bytes at the start of the process.

    Args:
        bytes: the most that waits in total; in addition, at most four times the size of the last result.

    Examples:
        >>> tc.set_result_pool(0)
    """
    try:
        most = operator.index(bytes)
    except TypeError:
        raise TypeError(f"set_result_pool(): bytes must be a whole number, not {bytes!r}") from None
    if not 0 <= most < 2**63:
        raise CastError(f"the result pool's bytes must be 0 or more, not {most}")
    _core.set_result_pool(most)


def read_environment() -> None:
    text = os.environ.get(_VARIABLE, "")
    if not text:
        return
    if not text.isdecimal() or int(text) >= 2**63:
        raise ImportError(f"the environment variable {_VARIABLE} is a number of bytes such as 0, not {text!r}")
    _core.set_result_pool(int(text))
