"""Converts tensors between every number format that machine learning uses, bit-exactly, at the speed of memory.

>>> import numpy as np, tensorcast as tc
>>> tc.cast(np.float32([0.1, 448, 1e9]), "float8_e4m3fn")
array([0.101562, 448, 448], dtype=float8_e4m3fn)

Every conversion is the one that ONNX ``Cast`` defines: one rounding from the exact value, the same bits on every CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _arrays, _core, graph
from ._core import CastReport, __version__, cast
from ._errors import CastError
from ._explain import Explained, explain
from ._nodes import CastLikeNode, CastNode
from ._promote import promote, promote_types
from ._reports import plot_report
from .graph import load_model

__all__ = [
    "CastError",
    "CastLikeNode",
    "CastNode",
    "CastReport",
    "Explained",
    "__version__",
    "cast",
    "convert",
    "dtypes",
    "explain",
    "graph",
    "inspect",
    "load_model",
    "plot_report",
    "promote",
    "promote_types",
]

_core.set_general_cast(_arrays.cast)


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    to: Any = None,
    *,
    rules: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    from_: Any = None,
    force: bool = False,
    dry_run: bool = False,
    report: bool = False,
    verify: bool = False,
    progress: Callable[[int, int, str], Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Converts every tensor of a file. ``dst`` is complete or absent, whatever happens.

    Args:
        src, dst: ``.npy``, ``.npz``, ``.safetensors``, ``.pb``.
        to: type of the floating-point tensors that no rule names.
        rules: ``{regular expression: dtype}``; the first that matches a tensor's name decides.
        include, exclude: regular expressions of names to convert or to leave alone.
        from_: the ml_dtypes type behind an opaque npy descriptor.
        force: replace an existing ``dst``.
        dry_run: plan only.
        report: measure what the conversion did to each tensor.
        verify: read the result back and compare it with the reference.
        progress: called with bytes done, bytes in all, tensor name; returning ``False`` cancels.
        **options: those of :func:`cast`.

    Returns:
        The plan and what came of it: ``tensors`` is a list with name, from, to, shape, bytes, reason and report.

    Raises:
        CastError: with ``.tensor`` and ``.index`` where they apply; nothing is then left on disk.
    """
    pairs = list(rules.items()) if isinstance(rules, Mapping) else [tuple(rule) for rule in rules]
    return _core.convert(
        os.fspath(src),
        os.fspath(dst),
        to,
        pairs,
        list(include),
        list(exclude),
        from_,
        force,
        dry_run,
        report,
        verify,
        progress,
        options,
    )


def inspect(path: str | os.PathLike[str], *, from_: Any = None) -> dict[str, Any]:
    """What is inside a file, without reading its data: ``format``, ``tensors`` and ``metadata``.

    Each tensor has name, dtype, shape, bytes; and where its type is none of ours, ``foreign_dtype``, the file's word.
    """
    return _core.inspect(os.fspath(path), from_)


def dtypes() -> list[dict[str, Any]]:
    """The 24 types: bits, fields, range, special codes, opset and spellings."""
    return _core.dtypes()
