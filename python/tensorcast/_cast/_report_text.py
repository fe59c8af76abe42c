# SPDX-License-Identifier: Apache-2.0
"""How a CastReport reads and prints: methods that the class of the extension module gets when the package is imported."""

from __future__ import annotations

import math

from .._core import CastReport

_COUNTS = ("overflowed", "saturated", "underflowed_to_zero", "inexact", "nan_made", "nan_lost", "wrapped", "sign_lost")


def decibels(ratio: float) -> str:
    return f"{round(ratio, 1) + 0.0:.1f} dB"  # adding 0.0 makes -0.0 positive


def _lines(report: CastReport) -> list[tuple[str, str]]:
    count = report.count
    lines = [("elements", f"{count:,}")]
    for name in _COUNTS:
        value = getattr(report, name)
        if value:
            lines.append((name.replace("_", " "), f"{value:,} ({value / count:.3%})"))
    lines.append(("largest error", f"{report.max_abs_error:.6g} absolute, {report.max_rel_error:.6g} relative"))
    snr = report.snr_db
    lines.append(("signal to noise", "exact" if math.isinf(snr) and snr > 0 else decibels(snr)))
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


def _to_json(report: CastReport, *, indent: int | None = None) -> str:
    """The numbers as a JSON text; ``null`` for those that are not finite, such as ``snr_db`` without noise.

    Examples:
        >>> half, report = tc.cast(np.float32([0.5, 1e9]), "float16", report=True)
        >>> report.to_json()[:29]
        '{"count": 2, "overflowed": 1,'
    """
    import json  # here: importing the package does not wait for it

    finite = {name: value if math.isfinite(value) else None for name, value in report.as_dict().items()}
    return json.dumps(finite, indent=indent)


# A class of the extension module gets its representations here.
setattr(CastReport, "__repr__", _repr)
setattr(CastReport, "_repr_html_", _repr_html)
setattr(CastReport, "to_json", _to_json)
setattr(CastReport, "__module__", "tensorcast")
