"""Runs ONNX models that only convert: Cast, CastLike, Identity and Constant, as an ``onnx.backend.base.Backend``.

>>> from tensorcast import onnx_backend
>>> (half,) = onnx_backend.run_model(onnx.load("to_float16.onnx"), [numpy.float32([0.1])])

Every Cast follows the text of the version that the model imports (``docs/semantics.md``). Needs the package ``onnx``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from onnx import helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from . import _arrays, _onnx_arrays
from ._core import cast, newest_opset
from ._errors import CastError

_DOMAINS = ("", "ai.onnx")
_NEWEST_CAST_LIKE = 25  # in which CastLike has no type of opset 28


def _cast(x: np.ndarray, to: Any, attributes: Mapping[str, Any], opset: int) -> np.ndarray:
    options: dict[str, Any] = {"opset": min(opset, newest_opset)}
    if "saturate" in attributes:
        options["saturate"] = attributes["saturate"] != 0
    if "round_mode" in attributes:
        options["round_mode"] = attributes["round_mode"].decode()
    return cast(x, to, **options)


def _run_cast(attributes: Mapping[str, Any], opset: int, x: np.ndarray) -> np.ndarray:
    to = attributes["to"]  # a name before version 6
    return _cast(x, to.decode() if isinstance(to, bytes) else to, attributes, opset)


def _run_cast_like(attributes: Mapping[str, Any], opset: int, x: np.ndarray, target: np.ndarray) -> np.ndarray:
    return _cast(x, _arrays.name_of(target), attributes, min(opset, _NEWEST_CAST_LIKE))


def _run_identity(attributes: Mapping[str, Any], opset: int, x: Any) -> Any:
    return x


_CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "value": _onnx_arrays.array_of,
    "value_float": np.float32,
    "value_floats": lambda value: np.array(value, np.float32),
    "value_int": np.int64,
    "value_ints": lambda value: np.array(value, np.int64),
    "value_string": lambda value: np.array(value.decode(), object),
    "value_strings": lambda value: np.array([text.decode() for text in value], object),
}


def _run_constant(attributes: Mapping[str, Any], opset: int) -> np.ndarray:
    ((name, value),) = attributes.items()
    if name not in _CONSTANTS:
        raise CastError(f"a Constant with {name} is not supported; give it a value")
    return np.asarray(_CONSTANTS[name](value))


_OPERATORS: dict[str, Callable[..., Any]] = {
    "Cast": _run_cast,
    "CastLike": _run_cast_like,
    "Identity": _run_identity,
    "Constant": _run_constant,
}


def _is_known(node: onnx.NodeProto) -> bool:
    return node.domain in _DOMAINS and node.op_type in _OPERATORS


def _require_known(node: onnx.NodeProto) -> None:
    if not _is_known(node):
        error = CastError(f"operator {node.domain or 'ai.onnx'}.{node.op_type} is not one of {', '.join(_OPERATORS)}")
        error.code = "unsupported"
        raise error


def _run(node: onnx.NodeProto, inputs: Sequence[Any], opset: int) -> Any:
    _require_known(node)
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    try:
        return _OPERATORS[node.op_type](attributes, opset, *inputs)
    except CastError as error:
        error.tensor = error.tensor or node.output[0]
        raise


def _opset_of(model: onnx.ModelProto) -> int:
    versions = [entry.version for entry in model.opset_import if entry.domain in _DOMAINS]
    return versions[0] if versions else 1


class TensorcastRep(BackendRep):
    """A prepared model: its constants are read, its local functions inlined."""

    def __init__(self, model: onnx.ModelProto) -> None:
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        graph = model.graph
        self._opset = _opset_of(model)
        self._nodes = list(graph.node)
        for node in self._nodes:
            _require_known(node)
        self._constants = {tensor.name: _onnx_arrays.array_of(tensor) for tensor in graph.initializer}
        self._inputs = [value.name for value in graph.input if value.name not in self._constants]
        self._types = {value.name: value.type.tensor_type.elem_type for value in graph.input}
        self._outputs = [value.name for value in graph.output]
        self._result = namedtupledict("Outputs", self._outputs)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model once.

        Args:
            inputs: arrays in the order of the graph's inputs, a dictionary of them by name, or a single one.

        Returns:
            A named tuple of the graph's outputs, of the types that ``onnx.numpy_helper`` has for them. Texts are arrays
            of objects.

        Raises:
            CastError: with ``.tensor``, the output of the node that refused, and ``.index``.
        """
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, Mapping):
            if len(inputs) != len(self._inputs):
                raise ValueError(
                    f"the model has {len(self._inputs)} inputs ({', '.join(self._inputs)}), not {len(inputs)}"
                )
            inputs = dict(zip(self._inputs, inputs))
        missing = [name for name in self._inputs if name not in inputs]
        if missing:
            raise ValueError(f"no value for the model's input {missing[0]}")
        given = {name: _onnx_arrays.native(value, self._types.get(name, 0)) for name, value in inputs.items()}
        values = {**self._constants, **given}
        for node in self._nodes:
            values[node.output[0]] = _run(node, [values[name] for name in node.input], self._opset)
        return self._result(*(_onnx_arrays.foreign(values[name]) for name in self._outputs))


class TensorcastBackend(Backend):
    """The class that ``onnx.backend.test.BackendTest`` takes."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Reports whether all nodes of the model are conversions."""
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        return cls.supports_device(device) and all(_is_known(node) for node in model.graph.node)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TensorcastRep:
        """Checks and prepares a model, which can then run many times. CastError for nodes that are not conversions."""
        super().prepare(model, device, **kwargs)
        if not cls.supports_device(device):
            raise CastError(f"device {device} is not supported; the only one is CPU")
        return TensorcastRep(model)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Runs one node. ``opset_version`` is the version of ONNX's operators, default the newest that onnx knows."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        given = [inputs] if isinstance(inputs, np.ndarray) else inputs
        return (_onnx_arrays.foreign(_run(node, [_onnx_arrays.native(value) for value in given], opset)),)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only ``"CPU"``."""
        try:
            return Device(device).type == DeviceType.CPU
        except AttributeError:
            return False


is_compatible = TensorcastBackend.is_compatible
prepare = TensorcastBackend.prepare
run_model = TensorcastBackend.run_model
run_node = TensorcastBackend.run_node
supports_device = TensorcastBackend.supports_device
