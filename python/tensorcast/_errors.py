"""The one exception of the package."""

from __future__ import annotations


class CastError(ValueError):
    """A conversion that was refused or failed.

    Attributes:
        code: ``"invalid_argument"``, ``"unsupported"``, ``"out_of_range"``, ``"parse"``, ``"io"`` or ``"internal"``.
        index: position of the element at fault in C order, or ``None``.
        tensor: name of the tensor at fault in a file, or ``None``.
    """

    __module__ = "tensorcast"

    code: str = "invalid_argument"
    index: int | None = None
    tensor: str | None = None
