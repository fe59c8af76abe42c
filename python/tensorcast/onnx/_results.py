"""What the functions of tensorcast.onnx take and return: frozen dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .._results import Result


@dataclasses.dataclass(frozen=True)
class KeptNode(Result):
    """A node that keeps its type, and why."""

    __module__ = "tensorcast.onnx"

    name: str  # or that of its first output
    op_type: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Validation:
    """How :func:`tensorcast.onnx.convert` compares the new model with the old one in ONNX Runtime.

    An output passes if every number is within ``atol + rtol * |expected|`` or, in relation to the largest number of the
    output, within ``rtol``; and if the cosine of the angle between both outputs is at least ``cosine``.
    """

    __module__ = "tensorcast.onnx"

    inputs: Mapping[str, Any] | None = None  # arrays by name, in the old model's types; None: random ones
    rtol: float | None = None  # None: by the type, 2e-2 for float16, 0.12 for bfloat16, 1e-4 for others
    atol: float | None = None  # None: as rtol
    cosine: float = 0.99
    dims: Mapping[str, int] = dataclasses.field(default_factory=dict)  # lengths of symbolic dimensions; default 2
    seed: int = 0  # of random inputs
    run: bool = True  # False: only ONNX's checker and strict type inference


@dataclasses.dataclass(frozen=True)
class OutputDifference(Result):
    """How an output of the new model differs from that of the old one."""

    __module__ = "tensorcast.onnx"

    name: str
    max_abs_error: float
    max_rel_error: float  # in relation to the largest number of the output
    cosine: float
    passed: bool


@dataclasses.dataclass(frozen=True)
class ConvertResult(Result):
    """What :func:`tensorcast.onnx.convert` did."""

    __module__ = "tensorcast.onnx"

    nodes: int
    nodes_converted: int
    values_changed: int  # inputs, outputs, initializers and values between nodes with another type now
    casts_before: int
    casts_added: int
    casts_removed: int  # that the conversion made superfluous
    initializers_converted: int
    initializer_bytes_before: int  # of those converted
    initializer_bytes_after: int
    kept: tuple[KeptNode, ...]
    outputs: tuple[OutputDifference, ...] = ()  # with validate=
    path: str | None = None  # of the new model, if it went to a file
    model: Any = dataclasses.field(default=None, repr=False)  # the new model if none: a ModelProto, or bytes for bytes

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON has them, without the model."""
        fields = super().as_dict() if self.model is None else dataclasses.replace(self, model=None).as_dict()
        fields.pop("model", None)
        return fields


@dataclasses.dataclass(frozen=True)
class SearchResult(Result):
    """What :func:`tensorcast.onnx.search` found."""

    __module__ = "tensorcast.onnx"

    kept: tuple[str, ...]  # nodes that must stay as they are
    converted: tuple[str, ...]  # nodes that need not
    attempts: int  # conversions that were run
    resumed: int  # conversions whose outcome the state file knew
    result: ConvertResult  # of the last conversion
