# SPDX-License-Identifier: Apache-2.0
"""The graphs of a model: its own, and the bodies of nodes such as If and Loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def bodies_of(node: Any) -> list[Any]:
    bodies: list[Any] = []
    for attribute in node.attribute:
        bodies += [attribute.g] if attribute.HasField("g") else attribute.graphs
    return bodies


def graphs_of(*roots: Any) -> Iterator[Any]:
    """Graphs or functions, each followed by the bodies of its nodes, at any depth, in the order of the nodes."""
    left = list(reversed(roots))
    while left:
        graph = left.pop()
        yield graph
        left += [body for node in reversed(graph.node) for body in reversed(bodies_of(node))]


def tensors_of(graph: Any) -> list[Any]:
    """Initializers and tensors in attributes, without those of bodies."""
    tensors = list(getattr(graph, "initializer", ()))  # a function has none
    for sparse in getattr(graph, "sparse_initializer", ()):
        tensors += (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            tensors += [attribute.t] if attribute.HasField("t") else attribute.tensors
    return tensors
