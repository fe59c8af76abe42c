# SPDX-License-Identifier: Apache-2.0
"""What :func:`tensorcast.explain` returns."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Sequence
from typing import overload

from ._results import Result


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation(Result):
    """A number in one type.

    Examples:
        >>> row = tc.explain(0.1, to="float8_e4m3fn")[0]
        >>> row.code, row.exact_value, row.events
        (29, '0.1015625', ('rounded',))
    """

    __module__ = "tensorcast"

    dtype: str
    error: str  # why there is no result, or ""; the other fields are then empty
    code: int
    sign_bits: str
    exponent_bits: str
    mantissa_bits: str
    exact_value: str
    shortest_value: str  # as a cast to string prints it
    exact_error: str
    relative_error: float
    events: tuple[str, ...]  # such as "rounded" and "saturated"

    def _cells(self) -> tuple[str, ...]:
        if self.error:
            return self.dtype, "", "", "", "", self.error
        bits = " ".join(part for part in (self.sign_bits, self.exponent_bits, self.mantissa_bits) if part)
        digits = (len(bits.replace(" ", "")) + 3) // 4
        error = f"{self.relative_error:.3g}" if self.relative_error else "0"
        return self.dtype, bits, f"0x{self.code:0{digits}X}", self.shortest_value, error, ", ".join(self.events)


_COLUMNS = ("dtype", "bits", "code", "value", "error", "what happened")


@dataclasses.dataclass(frozen=True, repr=False)
class Explained(Result, Sequence[Explanation]):
    """A number in several types: a sequence of :class:`Explanation` that prints as a table.

    Examples:
        >>> tc.explain(0.1, to="float16")
        dtype    bits                code    value        error     what happened
        float16  0 01011 1001100110  0x2E66  0.099975586  0.000244  rounded
    """

    __module__ = "tensorcast"

    rows: tuple[Explanation, ...]

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> Explained: ...
    def __getitem__(self, index: int | slice) -> Explanation | Explained:
        """One row, or the table of some."""
        return Explained(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.rows)

    def __repr__(self) -> str:
        rows = [_COLUMNS, *(row._cells() for row in self.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td><code>{html.escape(cell)}</code></td>" for cell in row._cells()) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
