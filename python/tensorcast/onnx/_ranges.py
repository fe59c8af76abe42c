# SPDX-License-Identifier: Apache-2.0
"""Finds values inside a model that are beyond the range of float16, which a CPU does not show: it computes in float32."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ._graphs import bodies_of
from ._runtime_process import RuntimeProcess, RuntimeProblem

_AT_ONCE = 128  # values, all of which a run keeps in memory
# Masks are added to scores, or take their place, and -infinity is 0 after a Softmax.
_MASKING = frozenset(
    "Add Cast Concat Expand Gather Identity Max Min Reshape Slice Split Squeeze Tile Transpose Unsqueeze Where".split()
)
_SOFTMAX = frozenset(("Softmax", "LogSoftmax"))
_ATTENTION = frozenset(("Attention", "MultiHeadAttention", "GroupQueryAttention"))


@dataclasses.dataclass(frozen=True)
class Overflow:
    """A value that is finite in the old model, and has numbers beyond the range of its type in the new one."""

    value: str
    node: str  # that makes it, or "" if it has no name
    op_type: str
    count: int  # of such numbers
    size: int
    largest: float  # of the old model's, by magnitude

    def describe(self) -> str:
        maker = f"{self.op_type} {self.node!r}" if self.node else self.op_type
        return (
            f"the value {self.value!r}, which {maker} makes, is beyond the range of float16 in {self.count:,} of "
            f"{self.size:,} numbers, up to {self.largest:.4g}: a CPU computes in float32, other runtimes give infinity"
        )


class _Graph:
    """Which nodes of the main graph make and take a value."""

    def __init__(self, path: str) -> None:
        import onnx
        import onnx.inliner

        self.model: Any = onnx.load(path, load_external_data=False)
        self.inlined = bool(self.model.functions)
        if self.inlined:
            self.model = onnx.inliner.inline_local_functions(self.model)
        self.makers: dict[str, Any] = {}
        self.takers: dict[str, list[Any]] = {}
        for node in self.model.graph.node:
            self.makers.update({name: node for name in node.output if name})
            for name in node.input:
                self.takers.setdefault(name, []).append(node)
        self.outputs = {value.name for value in self.model.graph.output}

    def origins(self, known: Collection[str]) -> dict[str, str]:
        """The values that are no outputs, each with the one of `known` that it is, or is a Cast of."""
        found: dict[str, str] = {}
        for name, maker in self.makers.items():  # in order
            if name in known:
                found[name] = name
            elif maker.op_type == "Cast":
                source = str(maker.input[0])
                if source in known or source in found:
                    found[name] = found.get(source, source)
        return {name: origin for name, origin in found.items() if name not in self.outputs}

    def only_masks(self, name: str) -> bool:
        """Whether all that becomes of the value is a Softmax, or a mask of one."""
        left, seen = [name], {name}
        while left:
            value = left.pop()
            if value in self.outputs:
                return False
            for node in self.takers.get(value, ()):
                if node.op_type in _SOFTMAX or (node.op_type in _ATTENTION and node.input[0] != value):
                    continue
                if node.op_type not in _MASKING:
                    return False
                left += [each for each in node.output if each not in seen]
                seen.update(node.output)
        return True

    def has_softmax(self, name: str) -> bool:
        return any(node.op_type in _SOFTMAX for node in self.takers.get(name, ()))


def unseen_bodies(path: str) -> list[str]:
    """The nodes of the main graph with values of float16 in a body, which find_overflow() does not see."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    return [f"{node.op_type} {node.name!r}" if node.name else node.op_type for node in graph.node if _has_body(node)]


def _has_body(node: Any) -> bool:
    return any(body.node for body in bodies_of(node))


def find_overflow(runtime: RuntimeProcess, old: str, new: str, inputs: Mapping[str, Any]) -> Overflow | None:
    """The first value of the main graph that overflows with these inputs; functions are looked into, bodies of If, Loop
    and Scan are not. None, too, for models that cannot be run in this way."""
    try:
        before, after = _Graph(old), _Graph(new)
    except Exception:  # an operator that onnx does not inline
        return None
    origins = after.origins({*before.makers, *inputs})
    names = list(origins)
    with _runnable(before, old) as old_path, _runnable(after, new) as new_path:
        for first in range(0, len(names), _AT_ONCE):
            try:
                found = _nonfinite(runtime, new_path, names[first : first + _AT_ONCE], inputs)
                wanted = sorted({origins[name] for name in found} - set(inputs))
                expected = {**inputs, **(_values(runtime, old_path, wanted, inputs) if wanted else {})}
            except RuntimeProblem:
                continue
            for name, got in found.items():
                overflow = _judged(after, name, expected[origins[name]], got) if origins[name] in expected else None
                if overflow is not None:
                    return overflow
    return None


def _nonfinite(runtime: RuntimeProcess, path: str, names: Sequence[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    runtime.load(path, names)
    chosen = runtime.floats(inputs, "nonfinite")
    return {name: chosen[name] for name in names if name in chosen}


def _values(runtime: RuntimeProcess, path: str, names: Sequence[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    runtime.load(path, names)
    return runtime.floats(inputs)


def _judged(graph: _Graph, name: str, old: Any, new: Any) -> Overflow | None:
    expected, got = np.asarray(old, np.float64), np.asarray(new, np.float64)
    if expected.shape != got.shape:
        return None
    lost = np.isfinite(expected) & ~np.isfinite(got)
    if not lost.any():
        return None
    if (got[lost] == -np.inf).all() and graph.only_masks(name):
        empty = graph.has_softmax(name) and got.ndim > 0 and bool((got == -np.inf).all(axis=-1).any())
        if not empty:  # of a row of -infinity, Softmax makes NaN
            return None
    maker = graph.makers[name]
    return Overflow(
        value=name,
        node=maker.name,
        op_type=maker.op_type,
        count=int(lost.sum()),
        size=int(got.size),
        largest=float(np.abs(expected[lost]).max()),
    )


class _runnable:
    """The path of a model whose functions are inlined: its own, or that of a copy which finds no external data."""

    def __init__(self, graph: _Graph, path: str) -> None:
        self.graph, self.path = graph, path
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> str:
        if not self.graph.inlined:
            return self.path
        import onnx

        self.folder = tempfile.TemporaryDirectory(prefix="tensorcast-onnx-")
        copy = os.path.join(self.folder.name, "inlined.onnx")
        onnx.load_external_data_for_model(self.graph.model, os.path.dirname(os.path.abspath(self.path)))
        onnx.save(self.graph.model, copy)
        return copy

    def __exit__(self, *_: object) -> None:
        if self.folder is not None:
            self.folder.cleanup()

