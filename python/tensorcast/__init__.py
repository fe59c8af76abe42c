"""Converts tensors between every number format that machine learning uses, bit-exactly, at the speed of memory.

>>> import numpy as np, tensorcast as tc
>>> tc.cast(np.float32([0.1, 448, 1e9]), "float8_e4m3fn")
array([0.101562, 448, 448], dtype=float8_e4m3fn)

Every conversion is the one that ONNX ``Cast`` defines: one rounding from the exact value, the same bits on every CPU.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _arrays, _core, graph
from ._core import CastReport, __version__, cast
from ._errors import CastError, LossWarning, in_python
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
    "LossWarning",
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
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    from_: Any = None,
    raw: tuple[Any, Sequence[int]] | None = None,
    overwrite: bool = False,
    parents: bool = False,
    dry_run: bool = False,
    report: bool = False,
    verify: bool = False,
    strict_loss: bool = False,
    allow_odd: bool = False,
    raw_codes: bool = False,
    force: bool = False,
    progress: Callable[[int, int, str], Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Converts every tensor of a file. ``dst`` is complete or absent, also after an error.

    Args:
        src, dst: ``.npy``, ``.npz``, ``.safetensors``, ``.pb``.
        to: type of the floating-point tensors that no rule names.
        rules: ``{regular expression: dtype}``; the first that matches a tensor's name decides.
        include, exclude: regular expressions (RE2) of names to convert or to leave alone; a string is one. With a ``dst`` of
            one array, such as ``.npy``, the tensor that ``include`` matches is all that is written.
        from_: the ml_dtypes type of opaque npy descriptors; ``{tensor: dtype}`` names it for single arrays of an npz.
        raw: type and shape of a ``src`` of raw elements.
        overwrite: replace an existing ``dst`` (``force`` is the old name).
        parents: create the folders of ``dst`` that do not exist.
        dry_run: plan only.
        report: measure what the conversion did to each tensor.
        verify: read the result back and compare it with the reference.
        strict_loss: fail if the conversion destroys a tensor; else it is a :class:`LossWarning`. That is: more than half
            of the nonzero elements become zero, the signal to noise ratio is under 3 dB, an element wraps around, or
            more than 1 % of the elements are out of range.
        allow_odd: convert also tensors that PyTorch could not load from safetensors, as their last dimension would end
            within a byte; else they are left as they are.
        raw_codes: convert weights of 8 bits although a tensor beside them has their scales.
        progress: called with bytes done, bytes in all, tensor name; returning ``False`` cancels.
        **options: those of :func:`cast`.

    Returns:
        The plan and its result: ``tensors`` is a list of dictionaries with name, from, to, shape (in elements),
        bytes_in, bytes_out, reason, left, damage, remedy and report; ``input_format``, ``output_format``, ``bytes_read``, ``bytes_written``,
        ``verified``, ``cancelled``.

    Raises:
        CastError: with ``.tensor`` and ``.index`` where they apply; nothing is then left on disk. An error
            of the file system is an ``OSError`` too, such as ``FileNotFoundError`` and ``FileExistsError``.
        KeyboardInterrupt: the same holds for Ctrl-C.
    """
    if isinstance(rules, str):
        raise TypeError("rules is a mapping of regular expressions to dtypes, not a string")
    pairs = list(rules.items()) if isinstance(rules, Mapping) else [tuple(rule) for rule in rules]
    if to is None and not pairs and not include:
        raise CastError("there is no type to convert to; name it with to=, or types for tensors with rules=")
    flags = {
        "overwrite": overwrite or force,
        "parents": parents,
        "dry_run": dry_run,
        "report": report,
        "verify": verify,
        "strict_loss": strict_loss,
        "allow_odd": allow_odd,
        "raw_codes": raw_codes,
    }
    done = _core.convert(
        os.fspath(src), os.fspath(dst), to, pairs, _patterns(include), _patterns(exclude), from_, raw, flags, progress,
        options,
    )  # fmt: skip
    for tensor in done["tensors"]:
        if tensor["damage"]:
            tensor["remedy"] = in_python(tensor["remedy"])
            warnings.warn(
                f"tensor {tensor['name']!r} ({tensor['from']} to {tensor['to']}): {tensor['damage']}; "
                + tensor["remedy"],
                LossWarning,
                stacklevel=2,
            )
    return done


def _patterns(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def inspect(
    path: str | os.PathLike[str],
    *,
    stats: bool = False,
    candidates: Iterable[Any] | None = None,
    from_: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """Lists the contents of a file; with ``stats``, also the losses of each tensor as other types.

    Args:
        path: ``.npy``, ``.npz``, ``.safetensors``, ``.pb``.
        stats: read the data too, in blocks; without it only the header is read.
        candidates: with ``stats``, the types to try; ``None``: float16, bfloat16, float8_e4m3fn and float8_e5m2 on
            floating-point tensors.
        from_: as in :func:`convert`.
        **options: with ``stats``, those of :func:`cast`; the candidates are tried under them.

    Returns:
        ``format``, ``metadata``, and ``tensors``, a list in the file's order. Each tensor has name, dtype, shape (in
        elements) and bytes; if the type is not one of ours, ``foreign_dtype``, the file's name of it, and ``problem``,
        why its elements cannot be read, or ``""``. With ``stats`` also ``stats``: the counts ``count``, ``nan``, ``infinite``, ``zero``, ``negative``; ``min``, ``max`` and
        ``smallest_nonzero_magnitude`` of the finite elements; and ``candidates``, a :class:`CastReport` for each type.
        ``None`` for tensors without numbers.

    Raises:
        CastError: a file that cannot be read or breaks its format.
    """
    tried = None if candidates is None else list(candidates)
    return _core.inspect(os.fspath(path), from_, stats, tried, {"threads": 0, **options})


def dtypes() -> list[dict[str, Any]]:
    """All types, one dictionary each.

    Returns:
        ``name``, ``onnx`` (its number in TensorProto), ``bits``, ``exponent_bits``, ``mantissa_bits``, ``bias``,
        ``has_infinity``, ``has_nan``, ``lowest``, ``largest``, ``smallest_positive``, ``since_opset`` (of Cast),
        ``special_codes`` and ``spellings``, which the functions of this package take in any case.

    Source: ONNX ``TensorProto.DataType`` and its texts on float8, float6, float4, int4 and int2; ``docs/types.md``.
    """
    return _core.dtypes()
