"""How a CastReport reads, prints and plots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._core import CastReport

_COUNTS = ("overflowed", "saturated", "underflowed_to_zero", "inexact", "nan_made", "nan_lost", "wrapped")


def _lines(report: CastReport) -> list[tuple[str, str]]:
    count = report.count
    lines = [("elements", f"{count:,}")]
    for name in _COUNTS:
        value = getattr(report, name)
        if value:
            lines.append((name.replace("_", " "), f"{value:,} ({value / count:.3%})"))
    lines.append(("largest error", f"{report.max_abs_error:.6g} absolute, {report.max_rel_error:.6g} relative"))
    snr = report.snr_db
    lines.append(("signal to noise", "exact" if math.isinf(snr) and snr > 0 else f"{snr:.1f} dB"))
    return lines


def _repr(report: CastReport) -> str:
    lines = _lines(report)
    width = max(len(label) for label, _ in lines)
    return "CastReport\n" + "\n".join(f"  {label.ljust(width)}  {text}" for label, text in lines)


def _repr_html(report: CastReport) -> str:
    body = "".join(
        f"<tr><th style='text-align:left'>{label}</th><td>{text}</td></tr>" for label, text in _lines(report)
    )
    return f"<table><caption>CastReport</caption>{body}</table>"


# A class of the extension module gets its representations here.
setattr(CastReport, "__repr__", _repr)
setattr(CastReport, "_repr_html_", _repr_html)


def plot_report(source: Any, result: Any, report: CastReport | None = None) -> Any:
    """Draws the histogram of relative errors and the codes in use of one conversion.

    Args:
        source: the array before.
        result: the array after, of the same shape.
        report: if given, its numbers become the title.

    Returns:
        A ``matplotlib.figure.Figure`` with two axes. Needs matplotlib.
    """
    from matplotlib.figure import Figure

    before = np.asarray(source, dtype=np.float64).ravel()
    after = np.asarray(result, dtype=np.float64).ravel()
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
    codes = np.ascontiguousarray(result).view(f"u{np.asarray(result).dtype.itemsize}").ravel()
    used, counts = np.unique(codes, return_counts=True)
    right.bar(
        used.astype(np.float64), counts, width=max(1.0, float(used.size and np.ptp(used.astype(np.float64))) / 256)
    )
    right.set(xlabel="code", ylabel="elements", title=f"{used.size:,} codes in use")
    if report is not None:
        figure.suptitle(f"signal to noise {report.snr_db:.1f} dB, {report.inexact:,} of {report.count:,} inexact")
    return figure
