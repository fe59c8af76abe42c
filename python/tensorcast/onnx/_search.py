# SPDX-License-Identifier: Apache-2.0
"""Finds the nodes that must keep their type for a model to stay accurate: bisection over nodes, costly ones first."""

from __future__ import annotations

import dataclasses
import errno
import functools
import hashlib
import inspect
import json
import os
import shutil
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _core
from .._errors import CastError, make_error
from ._convert import _upgraded, convert
from ._graphs import graphs_of
from ._model_files import Path, external_files, link_external_data, read_model, unnamed, write_model
from ._option_list import Opset, SearchOptions
from ._option_table import settled
from ._results import SearchResult, Validation
from ._ranges import find_overflow
from ._runtime_process import RuntimeProblem, RuntimeProcess
from ._validate import Reference, ValidationError, reference_run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import DTypeLike
    from ..graph import ModelProto

Metric: TypeAlias = "Callable[[Sequence[Any], Sequence[Any]], bool]"

_CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")
_COSTLY = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Attention", "LSTM", "GRU", "RNN", "Einsum")


def search(
    model: Path | bytes | ModelProto,
    output: Path | None = None,
    to: DTypeLike | None = None,
    *,
    checks: Validation | None = None,
    metric: Metric | None = None,
    state: Path | None = None,
    progress: Callable[[str], object] | None = print,
    overwrite: bool = False,
    **options: Unpack[SearchOptions],
) -> SearchResult:
    """Converts as many nodes as the accuracy allows, on a CPU.

    First all nodes, then halves, quarters ... of a list that has the nodes with the most weights first; what passes
    stays converted, and a single node that fails keeps its type. The old model runs once.

    Args:
        model, output, overwrite: as :func:`convert`. Nodes without names get some.
        to: as for :func:`convert`; float16 if it is left out, or the type of ``weights_only`` if that is a scheme.
        checks: inputs and tolerances.
        metric: decides instead of tolerances: called with the outputs of the old and of the new model for each set of
            inputs, all of which it must accept.
        state: a JSON file of outcomes so far. A search that was interrupted goes on with it. It belongs to one model with
            its external data, one version of tensorcast, one set of options, inputs and tolerances, and one metric,
            which is known by its name, its code and the plain values that it uses.
        progress: called with a line of text after each attempt; ``None`` is silent.
        **options: those of :func:`convert`, but ``explain`` and ``dry_run``.

    Raises:
        ValidationError: even with all nodes kept the metric is not satisfied.
        CastError: the model has no nodes, or the state file is of another search.

    Examples:
        >>> found = tc.onnx.search("model.onnx", "model-f16.onnx", "float16", progress=None)
        >>> found.kept, len(found.converted)
        ((), 3)
    """
    checks = checks or Validation()
    if to is None:
        to = "float16" if not isinstance(options.get("weights_only"), str) else _core.onnx_needs(None, {**options})[1]
    with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as scratch, RuntimeProcess() as runtime:
        if isinstance(model, (str, os.PathLike)):
            if output is None:
                raise CastError("there is no place for the new model; name it with output=")
            given = os.fspath(model)
            _check_place(os.fspath(output), overwrite)
        else:
            given = os.path.join(scratch, "model.onnx")
            write_model(model, given)
        folder = tempfile.mkdtemp(prefix=".tensorcast-", dir=scratch)
        handed_on = settled(options, "search")
        always = _listed(handed_on.pop("keep_nodes", ()))
        opset: Opset = handed_on.pop("opset", "keep")
        upgraded: dict[str, Any] = {}
        if opset != "keep" and convert(given, to=to, opset=opset, dry_run=True, **handed_on).rewritten_by_onnx:
            given, here = _upgraded(given, opset, to, handed_on, folder)  # once for all attempts
            upgraded = {"opset_before": here, "rewritten_by_onnx": True}
            opset = "keep"
        handed_on["opset"] = opset
        named, nodes = _named_copy(given, folder)
        target = os.path.join(scratch, "found.onnx") if output is None else os.fspath(output)
        _check_names(always, nodes)
        nodes = [name for name in nodes if name not in always]
        with unnamed(folder):
            reference = reference_run(runtime, named, checks)
        found = _Search(
            named, nodes, always, folder, to, handed_on, checks, metric, runtime, reference, state, progress
        )
        kept = found.run()
        result = convert(
            named, target, to, keep_nodes=[*always, *kept], overwrite=overwrite or output is None, **handed_on
        )
        result = dataclasses.replace(result, **upgraded)
        if output is None:
            assert not isinstance(model, (str, os.PathLike))
            result = dataclasses.replace(result, path=None, model=read_model(model, target))
        shutil.rmtree(folder, ignore_errors=True)
    converted = tuple(name for name in nodes if name not in set(kept))
    return SearchResult(
        kept=(*always, *kept), converted=converted, attempts=found.attempts, resumed=found.resumed, result=result
    )


def _check_place(output: str, overwrite: bool) -> None:
    """Before the attempts, not behind the last."""
    if os.path.lexists(output) and not overwrite:
        raise make_error(f"{output}: the file exists already; `overwrite` replaces it", "io", "", output, "", None, errno.EEXIST)
    if not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise make_error(f"{output}: the folder does not exist", "io", "", output, "", None, errno.ENOENT)


def _listed(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _check_names(names: Sequence[str], known: Sequence[str]) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise CastError(f"the model has no node {unknown[0]!r}", code="invalid_argument")


def _named_copy(path: str, folder: str) -> tuple[str, list[str]]:
    """A copy whose nodes all have names, with links to its external data; the names, costly nodes first."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    graphs = list(graphs_of(model.graph))
    taken = {node.name for graph in graphs for node in graph.node}
    costs: dict[str, float] = {}
    for graph in graphs:
        weights = {each.name: _count(each.dims) for each in graph.initializer}
        for index, node in enumerate(graph.node):
            if not node.name:
                name, number = f"{node.op_type}_{graph.name}_{index}", 2
                while name in taken:
                    name, number = f"{node.op_type}_{graph.name}_{index}_{number}", number + 1
                node.name = name
                taken.add(name)
            if node.op_type not in _CONTROL_FLOW and node.op_type != "Constant":
                cost = sum(weights.get(name, 0) for name in node.input) + (0.5 if node.op_type in _COSTLY else 0)
                costs[node.name] = costs.get(node.name, 0) + cost
    if not costs:
        raise CastError("the model has no nodes to search")
    link_external_data(model, path, folder)
    copy = os.path.join(folder, "model.onnx")
    onnx.save(model, copy)
    return copy, sorted(costs, key=lambda name: -costs[name])  # stable: the model's order among equals


def _count(dims: Iterable[int]) -> int:
    product = 1
    for length in dims:
        product *= length
    return product


def _described(value: Any, seen: dict[int, Any] | None = None) -> str:
    """A text that is the same in another process: functions are their names, their code and the plain values they use."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    seen = {} if seen is None else seen

    def inner(values: Iterable[Any]) -> list[str]:
        return [_described(each, seen) for each in values]

    if isinstance(value, (list, tuple)):
        return repr(inner(value))
    if isinstance(value, frozenset):
        return repr(sorted(inner(value)))
    if isinstance(value, types.CodeType):
        return repr((value.co_name, value.co_names, value.co_code, inner(value.co_consts)))
    if isinstance(value, types.MethodType):
        return repr(inner([value.__func__, value.__self__]))
    if isinstance(value, functools.partial):
        return repr(inner([value.func, value.args, *sorted(value.keywords.items())]))
    kind = f"{type(value).__module__}.{type(value).__qualname__} {getattr(value, '__name__', '')}"
    if id(value) in seen:  # a function that calls itself
        return kind
    seen[id(value)] = value
    if isinstance(value, types.FunctionType):
        return repr((value.__module__, value.__qualname__, inner([value.__code__, *_used(value)])))
    called = inspect.getattr_static(type(value), "__call__", None)
    if not isinstance(called, types.FunctionType):
        return kind
    fields = [each for each in sorted(getattr(value, "__dict__", {}).items()) if not isinstance(each[1], list)]
    return repr((kind, inner([called, *fields])))


def _used(function: types.FunctionType) -> Iterator[Any]:
    """The values that a function finds outside: defaults, those of functions around it, and those of its module.

    Lists are left out, because a function may add to them, and so are functions of other modules.
    """
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    names: list[str] = []
    codes = [function.__code__]
    for code in codes:  # which grows: comprehensions and inner functions have code of their own
        names += code.co_names
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in [*defaults, *cells, *(function.__globals__.get(name) for name in names)]:
        is_other = isinstance(value, types.FunctionType) and value.__module__ != function.__module__
        if not is_other and not isinstance(value, list):
            yield value


class _Search:
    def __init__(
        self,
        model: str,
        nodes: list[str],
        always: list[str],
        folder: str,
        to: Any,
        options: dict[str, Any],
        checks: Validation,
        metric: Metric | None,
        runtime: RuntimeProcess,
        reference: Reference,
        state: Path | None,
        progress: Callable[[str], object] | None,
    ) -> None:
        self.model, self.nodes, self.always, self.to, self.options = model, nodes, always, to, options
        self.checks, self.metric, self.runtime, self.reference = checks, metric, runtime, reference
        self.trial = os.path.join(folder, "trial.onnx")
        self.progress = progress
        self.attempts = self.resumed = 0
        self.state = None if state is None else os.fspath(state)
        self.outcomes: dict[str, bool] = {}
        self.known: set[str] = set()  # of the state file
        self.identity = "" if self.state is None else self._identity()
        self._load()

    def _identity(self) -> str:
        import onnx

        tolerances = (self.checks.rtol, self.checks.atol, self.checks.cosine, self.checks.seed, self.checks.ranges)
        settings = (_core.__version__, _core.dtype_name(self.to), self.always, sorted(self.options.items()), tolerances)
        inputs = [[(name, _described(value)) for name, value in sorted(each.items())] for each in self.reference.inputs]
        digest = hashlib.sha256(repr((settings, _described(self.metric), inputs)).encode())
        data = external_files(onnx.load(self.model, load_external_data=False))
        for path in (self.model, *(os.path.join(os.path.dirname(self.model), name) for name in data)):
            digest.update(os.path.getsize(path).to_bytes(8, "little"))
            with open(path, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()

    def _load(self) -> None:
        if self.state is None or not os.path.exists(self.state):
            return
        try:
            with open(self.state, encoding="utf-8") as file:
                known = json.load(file)
            search, outcomes = known["search"], known["outcomes"]
        except (ValueError, KeyError, TypeError) as problem:
            raise CastError(f"{self.state}: it is no state of a search; remove it", code="parse") from problem
        if search != self.identity:
            raise CastError(
                f"{self.state}: it is of another search: another model, type, option, input, tolerance, metric or "
                "version of tensorcast; remove it"
            )
        self.outcomes = {str(key): outcome is True for key, outcome in outcomes.items()}
        self.known = set(self.outcomes)

    def _save(self) -> None:
        if self.state is None:
            return
        with open(self.state + ".tmp", "w", encoding="utf-8") as file:
            json.dump({"search": self.identity, "outcomes": self.outcomes}, file)
        os.replace(self.state + ".tmp", self.state)

    def _passes(self, kept: set[str]) -> bool:
        key = hashlib.sha256("\0".join(sorted(kept)).encode()).hexdigest()
        if key in self.outcomes:
            self.resumed += key in self.known
            self.known.discard(key)
            return self.outcomes[key]
        self.attempts += 1
        keep_nodes = [*self.always, *(name for name in self.nodes if name in kept)]
        convert(self.model, self.trial, self.to, keep_nodes=keep_nodes, overwrite=True, **self.options)
        try:
            self.runtime.load(self.trial)
            got = [self.runtime.run(inputs) for inputs in self.reference.inputs]
        except RuntimeProblem:
            passed = False  # it does not run
        else:
            passed = self._judge(got) and not self._overflows()
        self.outcomes[key] = passed
        self._save()
        if self.progress is not None:
            verdict = "passes" if passed else "fails"
            self.progress(f"attempt {self.attempts}: {len(kept)} of {len(self.nodes)} nodes kept: {verdict}")
        return passed

    def _overflows(self) -> bool:
        if not self.checks.ranges or _core.dtype_name(self.to) != "float16":
            return False
        return any(
            find_overflow(self.runtime, self.model, self.trial, inputs) is not None for inputs in self.reference.inputs
        )

    def _judge(self, got: list[list[Any]]) -> bool:
        if self.metric is not None:
            return all(self.metric(before, after) for before, after in zip(self.reference.expected, got))
        outputs = self.reference.compare(got, _core.dtype_name(self.to), self.checks)
        return all(each.passed for each in outputs)

    def run(self) -> list[str]:
        """The nodes that must be kept, in the order of cost."""
        if self._passes(set()):
            return []
        kept = set(self.nodes)
        if not self._passes(kept):
            advice = "" if self.options.get("keep_io_types") else "; keep_io_types leaves inputs and outputs as they are"
            raise ValidationError(
                f"the accuracy is not reached even with every node kept: inputs, outputs or tolerance do not allow it{advice}"
            )
        left = [self.nodes]
        while left:
            part = left.pop()
            if self._passes(kept - set(part)):
                kept -= set(part)
            elif len(part) > 1:
                middle = len(part) // 2
                left += [part[middle:], part[:middle]]  # the costly half first
        return [name for name in self.nodes if name in kept]
