"""One number in every type, for reading."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from . import _core

_COLUMNS = ("dtype", "bits", "code", "value", "error", "what happened")


class Explained(list):
    """A list of dictionaries, one per type, that prints as a table and shows as one in notebooks."""

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for entry in self:
            if entry["error"]:
                rows.append((entry["dtype"], "", "", "", "", entry["error"]))
                continue
            bits = " ".join(
                part for part in (entry["sign_bits"], entry["exponent_bits"], entry["mantissa_bits"]) if part
            )
            digits = (len(bits.replace(" ", "")) + 3) // 4
            error = f"{entry['relative_error']:.3g}" if entry["relative_error"] else "0"
            rows.append(
                (
                    entry["dtype"],
                    bits,
                    f"0x{entry['code']:0{digits}X}",
                    entry["shortest_value"],
                    error,
                    ", ".join(entry["events"]),
                )
            )
        return rows

    def __repr__(self) -> str:
        rows = [_COLUMNS, *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td><code>{html.escape(cell)}</code></td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def explain(value: Any, *, from_: Any = None, to: Any = None, **options: Any) -> Explained:
    """Converts one value to every type (or to ``to``) and describes each result: bits, exact value, error, events.

    Args:
        value: a number, or a literal such as ``"0.1"``, ``"-inf"`` or a code ``"0x7E"`` of ``from_``.
        from_: the type of the value; ``None``: the literal's exact value.
        to: one type; ``None``: all numeric types.
        **options: those of :func:`tensorcast.cast`.

    Returns:
        A list that prints as a table. Each row is a dictionary: dtype; ``error``, why there is no result, or ``""``;
        code, sign_bits, exponent_bits, mantissa_bits; exact_value and exact_error as exact decimals, shortest_value
        as a cast to string prints it, relative_error; events such as ``"rounded"`` and ``"saturated"``.

    Raises:
        CastError: a literal that is not a number, or a code that ``from_`` does not have.

    Source: ONNX operator ``Cast``, versions 1 to 28; ``docs/semantics.md``.
    """
    if isinstance(value, np.generic):
        from ._arrays import name_of

        from_ = name_of(np.asarray(value)) if from_ is None else from_
        value = value.item() if isinstance(value, (np.integer, np.bool_)) else float(value)
    if isinstance(value, bool):
        value = int(value)
    literal = value if isinstance(value, str) else repr(value)
    names = (
        [_core.dtype_name(to)] if to is not None else [row["name"] for row in _core.dtypes() if row["name"] != "string"]
    )
    return Explained(_core.explain(literal, from_, name, options) for name in names)
