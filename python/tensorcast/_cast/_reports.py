# SPDX-License-Identifier: Apache-2.0
"""Plots of a CastReport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import scales_of
from .._core import CastReport, cast
from .._errors import CastError
from .._options import Scale
from ._report_text import decibels
from ._tensors import is_torch

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _compared(report: CastReport) -> tuple[Any, Any, Any]:
    """The arrays that the report compared, if they still exist."""
    source, result, scale = getattr(report, "_compared", (lambda: None, lambda: None, 1.0))
    if (before := source()) is None or (after := result()) is None:
        raise CastError(
            "the arrays of this report are gone, or were never NumPy arrays or tensors; "
            "pass them: plot_report(report, source, result)"
        )
    return before, after, scale


def _values(x: Any) -> npt.NDArray[np.float64]:
    return np.asarray(cast(x if hasattr(x, "dtype") else np.asarray(x), "float64", copy=False)).ravel()


def _codes(x: Any) -> npt.NDArray[Any]:
    if is_torch(x):
        from .._interop import _torch

        return _torch._codes(x.contiguous()).ravel()
    array = np.ascontiguousarray(x)
    return array.view(f"u{array.dtype.itemsize}").ravel()


def plot_report(
    report: CastReport, source: Any = None, result: Any = None, *, scale: Scale | None = None
) -> Figure:
    """Plots the losses of one conversion: the histogram of relative errors, and how often each code is used.

    A report does not keep arrays alive: name those that it is about, as in ``result, report = tc.cast(x, "float16",
    report=True)``, or pass them.

    Args:
        report: of the conversion; its numbers become the title.
        source: the array or tensor before, of any shape; ``None``: the one that the report was made of.
        result: the one after, of the same shape; ``None`` likewise.
        scale: that of the conversion; ``None``: the report's, and 1 with arrays that are passed.

    Returns:
        A ``matplotlib.figure.Figure`` with two axes: errors relative to ``source * scale``, in powers of two; and codes
        as unsigned integers. Needs matplotlib.

    Raises:
        CastError: arrays that are gone, or of different shapes.

    Examples:
        >>> half, report = tc.cast(weight, "float16", report=True)
        >>> tc.plot_report(report).savefig("losses.png")
    """
    from matplotlib.figure import Figure

    if (source is None) != (result is None):
        raise CastError("pass both source and result, or neither")
    if source is None:
        source, result, of_report = _compared(report)
        scale = of_report if scale is None else scale
    before = _values(source)
    if scale is not None:
        factors = scales_of(scale, np.shape(source))
        before = before * (scale if factors is None else factors.ravel())
    after = _values(result)
    if before.shape != after.shape:
        raise CastError(f"source has {before.size} elements, but result {after.size}")
    usable = np.isfinite(before) & np.isfinite(after) & (before != 0)
    errors = np.abs(after[usable] - before[usable]) / np.abs(before[usable])
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    nonzero = errors[errors > 0]
    if nonzero.size:
        left.hist(np.log2(nonzero), bins=60)
    left.set(
        xlabel="log2 of relative error",
        ylabel="elements",
        title=f"{int(errors.size - nonzero.size):,} exact, {int(nonzero.size):,} changed",
    )
    used, counts = np.unique(_codes(result), return_counts=True)
    positions = used.astype(np.float64)
    right.bar(positions, counts, width=max(1.0, float(np.ptp(positions)) / 256 if used.size else 1.0))
    right.set(xlabel="code", ylabel="elements", title=f"{used.size:,} codes in use")
    figure.suptitle(f"signal to noise {decibels(report.snr_db)}, {report.inexact:,} of {report.count:,} inexact")
    return figure
