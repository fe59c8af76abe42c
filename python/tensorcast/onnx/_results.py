# SPDX-License-Identifier: Apache-2.0
"""What the functions of tensorcast.onnx take and return: frozen dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from .._requests import Path
from .._results import Result, TensorDifference


@dataclasses.dataclass(frozen=True, repr=False)
class KeptNode(Result):
    """A node that keeps its type, and why.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_ops="Softmax")
        >>> [(node.op_type, node.reason) for node in done.kept]
        [('Softmax', 'the request keeps it')]
    """

    __module__ = "tensorcast.onnx"

    name: str  # or that of its first output
    op_type: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Validation:
    """How :func:`tensorcast.onnx.convert` compares the new model with the old one in ONNX Runtime.

    An output passes if every number is within ``atol + rtol * |expected|`` or, in relation to the largest number of the
    output, within ``rtol``; and if the cosine of the angle between both outputs is at least ``cosine``.

    Examples:
        >>> checks = tc.onnx.Validation(inputs={"x": np.ones((2, 64), np.float32)}, rtol=0.01)
        >>> tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True, validate=checks).validated
        True
    """

    __module__ = "tensorcast.onnx"

    # Arrays by name, in the old model's types, or the path of an npz file, or several of these, which all must pass;
    # None: random ones, in which masks are 1.
    inputs: Mapping[str, Any] | Path | Sequence[Mapping[str, Any] | Path] | None = None
    # None: by the type, 2e-2 for float16, 0.12 for bfloat16, 1e-4 for float32 and float64; for weights in codes 1, so that
    # the cosine decides
    rtol: float | None = None
    atol: float | None = None  # None: as rtol; 0 for weights in codes
    cosine: float = 0.99
    dims: Mapping[str, int] = dataclasses.field(default_factory=dict)  # lengths of symbolic dimensions; default 2
    seed: int = 0  # of random inputs
    ranges: bool = True  # of float16 also hold the values inside the model, which a CPU computes in float32
    run: bool = True  # False: only ONNX's checker and strict type inference


@dataclasses.dataclass(frozen=True, repr=False)
class OutputDifference(Result):
    """How an output of the new model differs from that of the old one.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> (output,) = tc.onnx.validate("model.onnx", "model-f16.onnx", "float16")
        >>> output.name, output.passed
        ('y', True)
    """

    __module__ = "tensorcast.onnx"

    name: str
    max_abs_error: float
    max_rel_error: float  # in relation to the largest number of the output
    cosine: float
    passed: bool


@dataclasses.dataclass(frozen=True, repr=False)
class KeptWeight(Result):
    """An initializer or Constant of two or more dimensions that gets no scales although a scheme was asked for.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-i4.onnx", weights_only="int4-group", group_size=128)
        >>> [(weight.name, weight.reason) for weight in done.kept_weights]
        [('w', 'it has fewer inputs than share a scale')]
    """

    __module__ = "tensorcast.onnx"

    name: str
    reason: str


@dataclasses.dataclass(frozen=True, repr=False)
class InitializerChange(Result):
    """An initializer or constant that becomes another type.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> [(row.name, row.to, row.overflowed) for row in done.initializers]
        [('w', 'float16', 0)]
    """

    __module__ = "tensorcast.onnx"

    name: str
    from_: str | None
    to: str | None
    count: int
    overflowed: int  # elements beyond the new type's range
    underflowed: int  # elements that become zero
    clamped: bool  # those that overflowed are finite
    scheme: str = ""  # of tensorcast.quantize(), if it becomes codes with scales
    recipe: str = ""
    snr_db: float | None = None  # of codes with scales, if they were written


@dataclasses.dataclass(frozen=True, repr=False)
class ValueDecision(Result):
    """What becomes of one input or output of a node.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", to="float16", keep_io_types=True, explain="project", dry_run=True)
        >>> [(row.value, row.to, row.cast) for row in done.explained[0].values]
        [('x', 'float16', True), ('w', 'float16', False), ('m', 'float16', False)]
    """

    __module__ = "tensorcast.onnx"

    value: str
    is_input: bool
    from_: str | None  # None: unknown, or no type of tensorcast
    to: str | None
    cast: bool  # of an input: the value is made in another type
    reason: str  # why it keeps the type; "" if it changes, or is not of a type that changes


@dataclasses.dataclass(frozen=True, repr=False)
class NodeDecision(Result):
    """What becomes of a node that ``explain=`` names.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", to="float16", explain="project", dry_run=True)
        >>> [(node.name, node.op_type, len(node.values)) for node in done.explained]
        [('project', 'MatMul', 3)]
    """

    __module__ = "tensorcast.onnx"

    name: str
    op_type: str
    scope: str  # as CastInfo.scope
    values: tuple[ValueDecision, ...]


class _WithModel(Result):
    """A result that has the new model if it did not go to a file."""

    model: Any

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON has them, without the model.

        Examples:
            >>> sorted(tc.onnx.clean("model.onnx", dry_run=True).as_dict())
            ['casts_after', 'casts_before', 'nodes', 'nodes_removed', 'path', 'removed']
        """
        # Not dataclasses.asdict(), which copies the model.
        shown: Any = self
        fields = Result.as_dict(self if self.model is None else dataclasses.replace(shown, model=None))
        fields.pop("model", None)
        return fields


@dataclasses.dataclass(frozen=True, repr=False)
class ConvertResult(_WithModel):
    """What :func:`tensorcast.onnx.convert` did, or with ``dry_run`` would do.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> done.nodes_by_type, done.casts_added
        ({'float16': 3}, 2)
    """

    __module__ = "tensorcast.onnx"

    to: str  # what values became
    opset_before: int  # of the standard operators; 0: not imported
    opset_after: int
    nodes: int
    calls_inlined: int  # of functions of the model
    nodes_converted: int
    # Nodes by the type of their first floating output, or input if they have no such output.
    nodes_by_type: Mapping[str, int]
    values_changed: int  # inputs, outputs, initializers and values between nodes with another type now
    casts_before: int
    casts_added: int
    casts_removed: int  # that the conversion made superfluous
    casts_after: int
    initializers_converted: int
    initializer_bytes_before: int  # of those converted
    initializer_bytes_after: int
    initializers: tuple[InitializerChange, ...]  # in the order of the file
    kept: tuple[KeptNode, ...]
    kept_weights: tuple[KeptWeight, ...] = ()  # with a scheme of weights
    explained: tuple[NodeDecision, ...] = ()  # with explain=
    rewritten_by_onnx: bool = False  # with opset=: onnx.version_converter rewrote nodes
    validated: bool = False  # with validate=, as the next
    outputs: tuple[OutputDifference, ...] = ()
    path: str | None = None  # of the new model, if it went to a file
    model: Any = dataclasses.field(default=None, repr=False)  # the new model if none: a ModelProto, or bytes for bytes


@dataclasses.dataclass(frozen=True, repr=False)
class CastInfo(Result):
    """A Cast or CastLike of a model, as :func:`tensorcast.onnx.casts` lists them.

    Examples:
        >>> [(cast.from_, cast.to, cast.consumers) for cast in tc.onnx.casts("cast.onnx")]
        [('float32', 'float16', 1)]
    """

    __module__ = "tensorcast.onnx"

    name: str  # or that of its output
    op_type: str
    # The graph: "" for the main one, "NODE.ATTRIBUTE" in a subgraph, "DOMAIN::NAME" in a function.
    scope: str
    input: str
    output: str
    from_: str | None  # None: unknown, or no type of tensorcast
    to: str | None
    consumers: int  # inputs of nodes, and outputs of graphs, that take the result
    role: str  # such as "same_type", "round_trip", "computation", "storage", "model_input"
    reason: str  # one sentence
    removable: bool  # by tensorcast.onnx.clean


@dataclasses.dataclass(frozen=True, repr=False)
class RemovedNode(Result):
    """A node that :func:`tensorcast.onnx.clean` removes, and why.

    Examples:
        >>> import onnx
        >>> graph = "g (float[N] x) => (float[N] y) { c = Cast <to: int = 1> (x)  y = Relu(c) }"
        >>> model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> ' + graph)
        >>> done = tc.onnx.clean(model)
        >>> [(node.op_type, node.reason) for node in done.removed]
        [('Cast', 'its input has the type already')]
    """

    __module__ = "tensorcast.onnx"

    name: str  # or that of its output
    op_type: str
    scope: str  # as CastInfo.scope
    reason: str


@dataclasses.dataclass(frozen=True, repr=False)
class CleanResult(_WithModel):
    """What :func:`tensorcast.onnx.clean` did, or with ``dry_run`` would do.

    Examples:
        >>> done = tc.onnx.clean("model.onnx", dry_run=True)
        >>> done.nodes, done.nodes_removed
        (3, 0)
    """

    __module__ = "tensorcast.onnx"

    nodes: int  # before
    nodes_removed: int
    casts_before: int
    casts_after: int
    removed: tuple[RemovedNode, ...]
    path: str | None = None  # of the new model, if it went to a file
    model: Any = dataclasses.field(default=None, repr=False)  # the new model if none: a ModelProto, or bytes for bytes


@dataclasses.dataclass(frozen=True, repr=False)
class RespellResult(_WithModel):
    """What :func:`tensorcast.onnx.respell` did.

    Examples:
        >>> done = tc.onnx.respell("model.onnx", "same.onnx", to="matmulnbits")
        >>> done.respelled, done.left
        (0, ())
    """

    __module__ = "tensorcast.onnx"

    respelled: int  # nodes
    left: tuple[KeptWeight, ...]  # codes of 4 bits that stay as they are, and why
    opset_before: int
    opset_after: int
    path: str | None = None  # of the new model, if it went to a file
    model: Any = dataclasses.field(default=None, repr=False)  # the new model if none: a ModelProto, or bytes for bytes


@dataclasses.dataclass(frozen=True, repr=False)
class OpsetDifference(Result):
    """An opset that two models import in different versions.

    Examples:
        >>> import onnx
        >>> model = onnx.load("cast.onnx")
        >>> model.opset_import[0].version = 19
        >>> tc.onnx.diff("cast.onnx", model).opsets
        (OpsetDifference(domain='', a=21, b=19),)
    """

    __module__ = "tensorcast.onnx"

    domain: str  # "" for the standard operators
    a: int  # 0: not imported
    b: int


@dataclasses.dataclass(frozen=True, repr=False)
class OperatorDifference(Result):
    """An operator of which two models have different numbers of nodes.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> tc.onnx.diff("model.onnx", "model-f16.onnx").operators
        (OperatorDifference(op_type='Cast', a=0, b=2),)
    """

    __module__ = "tensorcast.onnx"

    op_type: str  # with its domain: "ai.onnx.ml::Scaler"
    a: int
    b: int


@dataclasses.dataclass(frozen=True, repr=False)
class ValueDifference(Result):
    """A value whose type differs, or that one of two models lacks.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> [(row.name, row.a, row.b) for row in tc.onnx.diff("model.onnx", "model-f16.onnx").values if row.a and row.b]
        [('m', 'float32', 'float16'), ('r', 'float32', 'float16'), ('w', 'float32', 'float16')]
    """

    __module__ = "tensorcast.onnx"

    scope: str  # as CastInfo.scope
    name: str
    a: str | None  # such as "float32" or "sequence of float32"; None: the model lacks the value
    b: str | None


@dataclasses.dataclass(frozen=True, repr=False)
class DiffResult(Result):
    """How two models differ, as :func:`tensorcast.onnx.diff` compares them.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> difference = tc.onnx.diff("model.onnx", "model-f16.onnx")
        >>> difference.equal, len(difference.casts_only_b)
        (False, 2)
    """

    __module__ = "tensorcast.onnx"

    equal: bool  # types, Casts, opsets, operators and initializers are the same
    ir_version_a: int
    ir_version_b: int
    opsets: tuple[OpsetDifference, ...]  # that differ
    operators: tuple[OperatorDifference, ...]  # whose number differs
    values: tuple[ValueDifference, ...]  # with another type, or missing in one model
    casts_only_a: tuple[CastInfo, ...]
    casts_only_b: tuple[CastInfo, ...]
    # All, those of a first; in subgraphs the scope, a slash and the name.
    initializers: tuple[TensorDifference, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class SearchResult(Result):
    """What :func:`tensorcast.onnx.search` found.

    Examples:
        >>> found = tc.onnx.search("model.onnx", "model-f16.onnx", "float16", progress=None)
        >>> found.kept, found.attempts
        ((), 1)
    """

    __module__ = "tensorcast.onnx"

    kept: tuple[str, ...]  # nodes that must stay as they are
    converted: tuple[str, ...]  # nodes that need not
    attempts: int  # conversions that were run
    resumed: int  # conversions whose outcome the state file knew
    result: ConvertResult  # of the last conversion
