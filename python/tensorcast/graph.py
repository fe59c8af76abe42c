# SPDX-License-Identifier: Apache-2.0
"""Graphs of conversions: build or load, compile once, run often.

>>> graph = tc.graph.Graph()
>>> x = graph.input("x", "float32")
>>> graph.output(graph.cast(x, "float8_e4m3fn", output="y"))
'y'
>>> program = graph.compile()
>>> program.run({"x": np.float32([0.1, 1000])})
{'y': array([0.101562, 448], dtype=float8_e4m3fn)}
"""

from __future__ import annotations

import copyreg
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from . import _core
from ._cast import _tensors
from ._arguments import plain_errors
from ._errors import CastError
from ._options import CastOptions, DTypeLike, shows_options
from ._results import AddCastResult, cut, html_table

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Graph", "Program", "ValueInfo", "add_cast", "load_model"]

_Shape: TypeAlias = "Sequence[int | None]"


class ModelProto(Protocol):
    """An ``onnx.ModelProto``, without importing onnx."""

    def SerializeToString(self) -> bytes: ...


class ValueInfo(NamedTuple):
    """An input or output of a :class:`Program`, as far as it is known before a run.

    Examples:
        >>> tc.load_model("cast.onnx").inputs
        [ValueInfo(name='x', dtype='float32', shape=(None,), optional=False)]
    """

    name: str
    dtype: str | None
    shape: tuple[int | None, ...] | None
    optional: bool  # an input with a default value


class Program:
    """A graph that was checked and put in order. Any number of threads may run it at once.

    Examples:
        >>> program = tc.load_model("cast.onnx")
        >>> program
        Program(inputs=['x'], outputs=['y'])
    """

    def __init__(self, core: _core.Program, graph: _core.Graph, format: str | None = None) -> None:
        self._core, self._graph = core, graph
        self.format = format  # of the file it was loaded from
        self.name = graph.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled, (self._graph, self.format)

    @property
    def inputs(self) -> list[ValueInfo]:
        return [ValueInfo(*row) for row in self._core.inputs()]

    @property
    def outputs(self) -> list[ValueInfo]:
        return [ValueInfo(*row) for row in self._core.outputs()]

    @plain_errors
    def run(self, inputs: Mapping[str, Any] | None = None, *, threads: int = 0) -> dict[str, Any]:
        """Values of the outputs, by name and in order.

        Args:
            inputs: arrays or tensors as in :func:`tensorcast.cast`, by name; not copied where they are contiguous.
            threads: 0 for all cores. The GIL is released.

        Returns:
            NumPy arrays; torch tensors when all inputs are, which carry no gradient. An output that is an input unchanged
            is that very array; one that is a constant's memory is read-only.

        Raises:
            CastError: an input that is missing, unknown, or not of its type or shape; or as :func:`tensorcast.cast`.
                The message names the node.

        Examples:
            >>> tc.load_model("cast.onnx").run({"x": np.float32([0.1, 1e9])})
            {'y': array([0.1, inf], dtype=float16)}
        """
        given = dict(inputs or {})
        tensors = {name: _tensors.to_core(array) for name, array in given.items()}
        done = self._core.run(list(tensors.items()), threads)
        as_torch = bool(given) and all(_tensors.is_torch(array) for array in given.values())
        pairs = [(tensors[name], given[name]) for name in given]
        return {name: _tensors.result(tensor, pairs, as_torch and tensor.dtype != "string") for name, tensor in done}

    def __repr__(self) -> str:
        given, made = (cut(repr([value.name for value in values]), 400) for values in (self.inputs, self.outputs))
        return f"Program(inputs={given}, outputs={made})"

    def _repr_html_(self) -> str:
        rows = [["input", *value[:3]] for value in self.inputs] + [["output", *value[:3]] for value in self.outputs]
        return html_table(cut(f"Program {self.name!r}", 80), ["", "name", "dtype", "shape"], rows)


def _compiled(graph: _core.Graph, format: str | None) -> Program:
    return Program(graph.compile(), graph, format)


class Graph:
    """A graph to build. Values are named by strings: methods take such names and return those that they make.

    Nodes may be added in any order, and may name values that are defined later.

    Examples:
        >>> graph = tc.graph.Graph()
        >>> x = graph.input("x", "float32")
        >>> y = graph.output(graph.cast(x, "int8", output="y"))
        >>> graph.compile().run({"x": np.float32([1.5, -2.5])})
        {'y': array([ 1, -2], dtype=int8)}
    """

    @plain_errors
    def __init__(self, name: str = "") -> None:
        self._core = _core.Graph(name)
        self._taken: set[str] = set()

    def _name(self, wanted: str | None, stem: str) -> str:
        name, number = stem if wanted is None else wanted, 0
        while wanted is None and name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    @plain_errors
    def input(
        self, name: str, dtype: DTypeLike | None = None, shape: _Shape | None = None, *, default: Any = None
    ) -> str:
        """Adds an input. Without ``dtype`` it has any type, without ``shape`` any shape; unknown lengths are ``None``.

        ``default`` is used by runs that do not give the input.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> graph.input("x", "float32", (None, 256))
            'x'
        """
        value = None if default is None else _tensors.to_core(default)
        self._core.add_input(self._name(name, name), dtype, _lengths(shape), value)
        return name

    @plain_errors
    def constant(self, value: Any, *, name: str = "", output: str | None = None) -> str:
        """Adds a constant. The array is not copied and must not be changed.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> graph.output(graph.constant(np.float32([0.5]), output="half"))
            'half'
            >>> graph.compile().run()
            {'half': array([0.5], dtype=float32)}
        """
        made = self._name(output, name or "constant")
        self._core.add_constant(name, _tensors.to_core(value), made)
        return made

    @shows_options
    @plain_errors
    def cast(
        self, x: str, to: DTypeLike, *, name: str = "", output: str | None = None, **options: Unpack[CastOptions]
    ) -> str:
        """ONNX Cast, OpenVINO Convert. Options as in :func:`tensorcast.cast`.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> graph.output(graph.cast(graph.input("x"), "float8_e4m3fn", saturate=False))
            'cast'
            >>> graph.compile().run({"x": np.float32([1000])})
            {'cast': array([nan], dtype='float8_e4m3fn')}
        """
        made = self._name(output, name or "cast")
        self._core.add_cast(name, x, to, made, {**options})
        return made

    @shows_options
    @plain_errors
    def cast_like(
        self, x: str, target_type: str, *, name: str = "", output: str | None = None, **options: Unpack[CastOptions]
    ) -> str:
        """ONNX CastLike, OpenVINO ConvertLike: casts ``x`` to the type of ``target_type``.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> like = graph.constant(np.float16([0]))
            >>> graph.output(graph.cast_like(graph.input("x"), like))
            'cast_like'
            >>> graph.compile().run({"x": np.float32([0.1])})
            {'cast_like': array([0.1], dtype=float16)}
        """
        made = self._name(output, name or "cast_like")
        self._core.add_cast_like(name, x, target_type, made, {**options})
        return made

    @shows_options
    @plain_errors
    def convert_promote_types(
        self,
        a: str,
        b: str,
        *,
        promote_unsafe: bool = False,
        pytorch_scalar_promotion: bool = False,
        u64_integer_promotion_target: DTypeLike = "float32",
        name: str = "",
        outputs: tuple[str, str] | None = None,
        **options: Unpack[CastOptions],
    ) -> tuple[str, str]:
        """OpenVINO's ConvertPromoteTypes-14: both values in their common type.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> x, y = graph.input("x", "int8"), graph.input("y", "float16")
            >>> [graph.output(value) for value in graph.convert_promote_types(x, y)]
            ['promoted_a', 'promoted_b']
            >>> graph.compile().run({"x": np.int8([1]), "y": np.float16([0.5])})
            {'promoted_a': array([1.], dtype=float16), 'promoted_b': array([0.5], dtype=float16)}
        """
        first, second = outputs or (None, None)
        stem = name or "promoted"
        made = (self._name(first, f"{stem}_a"), self._name(second, f"{stem}_b"))
        self._core.add_convert_promote_types(
            name, (a, b), made, promote_unsafe, pytorch_scalar_promotion, u64_integer_promotion_target, {**options}
        )
        return made

    @plain_errors
    def bit_cast(self, x: str, to: DTypeLike, *, name: str = "", output: str | None = None) -> str:
        """ONNX BitCast: the same bits as another type of the same width; nothing is copied.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> graph.output(graph.bit_cast(graph.input("x", "float32"), "uint32"))
            'bit_cast'
            >>> graph.compile().run({"x": np.float32([1])})
            {'bit_cast': array([1065353216], dtype=uint32)}
        """
        made = self._name(output, name or "bit_cast")
        self._core.add_bit_cast(name, x, to, made)
        return made

    @plain_errors
    def quantize_linear(
        self,
        x: str,
        scale: str,
        zero_point: str | None = None,
        *,
        axis: int = 1,
        block_size: int = 0,
        saturate: bool = True,
        output_dtype: DTypeLike | None = None,
        precision: DTypeLike | None = None,
        opset: int = 0,
        name: str = "",
        output: str | None = None,
    ) -> str:
        """ONNX QuantizeLinear, by the rules of ``opset`` (0 for the newest).

        Examples:
            >>> graph = tc.graph.Graph()
            >>> scale = graph.constant(np.float32(0.5))
            >>> graph.output(graph.quantize_linear(graph.input("x", "float32"), scale, output_dtype="int8"))
            'quantize_linear'
            >>> graph.compile().run({"x": np.float32([1, 2.1])})
            {'quantize_linear': array([2, 4], dtype=int8)}
        """
        made = self._name(output, name or "quantize_linear")
        inputs = [x, scale] if zero_point is None else [x, scale, zero_point]
        self._core.add_quantize_linear(name, inputs, made, opset, axis, block_size, saturate, output_dtype, precision)
        return made

    @plain_errors
    def dequantize_linear(
        self,
        x: str,
        scale: str,
        zero_point: str | None = None,
        *,
        axis: int = 1,
        block_size: int = 0,
        output_dtype: DTypeLike | None = None,
        opset: int = 0,
        name: str = "",
        output: str | None = None,
    ) -> str:
        """ONNX DequantizeLinear, by the rules of ``opset`` (0 for the newest).

        Examples:
            >>> graph = tc.graph.Graph()
            >>> scale = graph.constant(np.float32(0.5))
            >>> graph.output(graph.dequantize_linear(graph.input("x", "int8"), scale))
            'dequantize_linear'
            >>> graph.compile().run({"x": np.int8([2, 4])})
            {'dequantize_linear': array([1., 2.], dtype=float32)}
        """
        made = self._name(output, name or "dequantize_linear")
        inputs = [x, scale] if zero_point is None else [x, scale, zero_point]
        self._core.add_dequantize_linear(name, inputs, made, opset, axis, block_size, output_dtype)
        return made

    @plain_errors
    def dynamic_quantize_linear(
        self, x: str, *, name: str = "", outputs: tuple[str, str, str] | None = None
    ) -> tuple[str, str, str]:
        """ONNX DynamicQuantizeLinear: uint8 numbers, their scale and their zero point.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> y, scale, zero = graph.dynamic_quantize_linear(graph.input("x", "float32"))
            >>> [graph.output(value) for value in (y, zero)]
            ['dynamic_y', 'dynamic_zero']
            >>> graph.compile().run({"x": np.float32([0, 1, 255])})
            {'dynamic_y': array([  0,   1, 255], dtype=uint8), 'dynamic_zero': array(0, dtype=uint8)}
        """
        first, second, third = outputs or (None, None, None)
        stem = name or "dynamic"
        made = (self._name(first, f"{stem}_y"), self._name(second, f"{stem}_scale"), self._name(third, f"{stem}_zero"))
        self._core.add_dynamic_quantize_linear(name, x, made)
        return made

    @plain_errors
    def identity(self, x: str, *, name: str = "", output: str | None = None) -> str:
        """The same value under another name; nothing is copied.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> graph.output(graph.identity(graph.input("x"), output="y"))
            'y'
            >>> graph.compile().run({"x": np.int8([1])})
            {'y': array([1], dtype=int8)}
        """
        made = self._name(output, name or "identity")
        self._core.add_identity(name, x, made)
        return made

    @plain_errors
    def output(self, value: str, dtype: DTypeLike | None = None, shape: _Shape | None = None) -> str:
        """Makes a value an output; ``dtype`` and ``shape``, if given, are checked against it.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> graph.output(graph.cast(graph.input("x"), "int8", output="y"), "int8")
            'y'
        """
        self._core.add_output(value, dtype, _lengths(shape))
        return value

    def compile(self) -> Program:
        """Checks the graph and puts it in order.

        Raises:
            CastError: cycles, values that are used but not defined or defined twice, types and shapes that disagree,
                types that an operation or its opset does not have. The message names the node.

        Examples:
            >>> graph = tc.graph.Graph()
            >>> graph.output(graph.cast(graph.input("x", "float32"), "int8", output="y"))
            'y'
            >>> graph.compile()
            Program(inputs=['x'], outputs=['y'])
        """
        return Program(self._core.compile(), _built(self._core.name, self._core.steps()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _graph, (_built(self._core.name, self._core.steps()), set(self._taken))

    def __repr__(self) -> str:
        kinds: dict[str, list[str]] = {"add_input": [], "add_output": []}
        nodes = 0
        for kind, arguments in self._core.steps():
            if kind in kinds:
                kinds[kind].append(arguments[0])
            else:
                nodes += 1
        given, made = (cut(repr(names), 400) for names in kinds.values())
        return f"<Graph {cut(repr(self._core.name), 80)}: inputs={given}, outputs={made}, {nodes} nodes>"


def _graph(core: _core.Graph, taken: set[str]) -> Graph:
    graph = Graph()
    graph._core, graph._taken = core, taken
    return graph


def _built(name: str, steps: list[tuple[str, tuple[Any, ...]]]) -> _core.Graph:
    graph = _core.Graph(name)
    for method, arguments in steps:
        getattr(graph, method)(*arguments)
    return graph


def _parts_of(graph: _core.Graph) -> tuple[Any, ...]:
    return _built, (graph.name, graph.steps())


def _tensor_of_texts(texts: list[str], shape: tuple[int, ...]) -> _core.Tensor:
    return _core.Tensor.of_texts(texts, shape)


def _parts_of_tensor(tensor: _core.Tensor) -> tuple[Any, ...]:
    if tensor.dtype == "string":
        return _tensor_of_texts, (tensor.texts(), tensor.shape)
    return _core.Tensor, (tensor.storage(), tensor.dtype, tensor.shape)


# Graphs, programs and their constants are pickled and copied by these.
copyreg.pickle(_core.Graph, _parts_of)
copyreg.pickle(_core.Tensor, _parts_of_tensor)


def _lengths(shape: _Shape | None) -> list[int] | None:
    return None if shape is None else [-1 if length is None else length for length in shape]


@plain_errors
def load_model(
    model: str | os.PathLike[str] | bytes | ModelProto,
    *,
    semantics: Literal["onnx", "mdf_reference", "mdf-reference"] = "onnx",
    format: Literal["onnx", "openvino_ir", "mdf"] | None = None,
    input_types: Mapping[str, DTypeLike] | None = None,
) -> Program:
    """An ONNX, OpenVINO IR or MDF model of conversions, ready to run.

    Args:
        model: path of an ``.onnx``; an ``.xml`` with its ``.bin``; a ``.json`` or ``.yaml``. Or the bytes of an ONNX
            model, or an ``onnx.ModelProto``.
        semantics: of MDF models: as the operators' texts say, or with what the reference engine does around them.
        format: where extension and content do not tell.
        input_types: types of inputs of MDF models that leave them open, which weights and the reference engine need.

    Returns:
        A :class:`Program`; its ``format`` says what the model was.

    Raises:
        CastError: a model that cannot be read or breaks its format (ParseError), a node that is not a conversion
            (UnsupportedError), and what :meth:`Graph.compile` refuses. The message names file and node.

    Examples:
        >>> program = tc.load_model("cast.onnx")
        >>> program.run({"x": np.float32([0.1, 1e9])})
        {'y': array([0.1, inf], dtype=float16)}
    """
    if semantics not in ("onnx", "mdf_reference", "mdf-reference"):
        raise CastError(f"semantics must be 'onnx' or 'mdf_reference', not {semantics!r}")
    path = content = None
    if isinstance(model, (bytes, bytearray, memoryview)):
        content = bytes(model)
    elif isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
    elif hasattr(model, "SerializeToString"):
        content = model.SerializeToString()
        format = format or "onnx"
    else:
        raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    found, graph, core = _core.load_model(
        path, content, format or "", semantics != "onnx", dict(input_types or {})
    )
    return Program(core, graph, found)


@plain_errors
def add_cast(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    tensor: str,
    to: DTypeLike,
    *,
    saturate: bool = True,
    node_name: str = "",
    output_name: str = "",
    overwrite: bool = False,
) -> AddCastResult:
    """Adds a Cast of a value to any ONNX model, and connects all consumers of the value to the Cast's output.

    All other bytes of the model stay as they are. Whether the consumers accept the new type is not checked. If the
    value is an output of the model, the Cast's output replaces it, under its own name and type.

    Args:
        src, dst: paths; equal ones are safe, with ``overwrite``.
        tensor: name of the value to convert.
        to: as in :func:`cast`.
        saturate: the attribute of the Cast, for float8.
        node_name, output_name: of the Cast; ``""``: made from the name of the tensor.
        overwrite: replace an existing ``dst``.

    Raises:
        CastError: no such tensor, a name that is taken, a value without consumers. UnsupportedError: a type that the
            model's opset does not have. FileError, ParseError: a model that cannot be read.

    Examples:
        >>> added = tc.add_cast("model.onnx", "new.onnx", "r", "float16")
        >>> added.rewired, added.output_name
        (1, 'r_float16')
    """
    done = _core.add_cast(os.fspath(src), os.fspath(dst), tensor, to, saturate, node_name, output_name, overwrite)
    return AddCastResult(**done)
