# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX models that only convert, such as those of Cast, CastLike and If, as an ``onnx.backend.base.Backend``.

>>> import onnx
>>> from tensorcast import onnx_backend
>>> (half,) = onnx_backend.run_model(onnx.load("cast.onnx"), [np.float32([0.1])])
>>> half.dtype
dtype('float16')

It is a shell over :func:`tensorcast.load_model`, for programs that know ONNX's interface. Needs the package ``onnx``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from . import _core
from ._cast import _tensors
from ._interop import _onnx_arrays
from ._errors import CastError, UnsupportedError
from .graph import Program, load_model

__all__ = [
    "TensorcastBackend",
    "TensorcastRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


class TensorcastRep(BackendRep):
    """A prepared model.

    Examples:
        >>> import onnx
        >>> rep = tc.onnx_backend.prepare(onnx.load("cast.onnx"))
        >>> rep.run([np.float32([0.1])]).y
        array([0.1], dtype=float16)
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._program: Program = load_model(model)
        self._inputs = [value.name for value in self._program.inputs if not value.optional]
        self._types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        self._result = namedtupledict("Outputs", [value.name for value in self._program.outputs])

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model once.

        Args:
            inputs: arrays in the order of the graph's inputs, a dictionary of them by name, or a single one.

        Returns:
            A named tuple of the graph's outputs, of the types that ``onnx.numpy_helper`` has for them. Texts are arrays
            of objects.

        Raises:
            CastError: with ``.index``; the message names the node that failed.

        Examples:
            >>> import onnx
            >>> rep = tc.onnx_backend.prepare(onnx.load("cast.onnx"))
            >>> rep.run({"x": np.float32([1.5])})[0]
            array([1.5], dtype=float16)
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
        values = self._program.run(given)
        return self._result(*(_onnx_arrays.foreign(value) for value in values.values()))


class TensorcastBackend(Backend):
    """The class that ``onnx.backend.test.BackendTest`` takes.

    Examples:
        >>> import onnx
        >>> from tensorcast.onnx_backend import TensorcastBackend
        >>> TensorcastBackend.run_model(onnx.load("cast.onnx"), [np.float32([0.1])])[0]
        array([0.1], dtype=float16)
    """

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Reports whether :meth:`prepare` accepts the model: whether its nodes are all conversions.

        Examples:
            >>> import onnx
            >>> [tc.onnx_backend.is_compatible(onnx.load(path)) for path in ("cast.onnx", "model.onnx")]
            [True, False]
        """
        if not cls.supports_device(device):
            return False
        try:
            load_model(model)
        except CastError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TensorcastRep:
        """Checks and prepares a model, which can then run many times.

        Raises:
            UnsupportedError: nodes that are not conversions, another device than the CPU.

        Examples:
            >>> import onnx
            >>> rep = tc.onnx_backend.prepare(onnx.load("cast.onnx"))
            >>> rep.run(np.float32([2.5]))[0]
            array([2.5], dtype=float16)
        """
        super().prepare(model, device, **kwargs)
        if not cls.supports_device(device):
            raise UnsupportedError(f"device {device} is not supported; the only one is CPU")
        return TensorcastRep(model)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Runs one node. ``opset_version`` is the version of ONNX's operators, default the newest that is known.

        Examples:
            >>> import onnx
            >>> node = onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.INT8)
            >>> tc.onnx_backend.run_node(node, [np.float32([1.5])])[0]
            array([1], dtype=int8)
        """
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        newest = min(onnx.defs.onnx_opset_version(), _core.newest_opset)
        given = [inputs] if isinstance(inputs, np.ndarray) else inputs
        arrays = [_onnx_arrays.native(value) for value in given]
        rep = TensorcastRep(_model_of(node, arrays, kwargs.get("opset_version", newest)))
        return tuple(rep.run(dict(zip(node.input, given))))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only ``"CPU"``.

        Examples:
            >>> tc.onnx_backend.supports_device("CUDA")
            False
        """
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except AttributeError:
            return False


def _model_of(node: onnx.NodeProto, inputs: Sequence[Any], opset: int) -> onnx.ModelProto:
    """A model of one node, whose inputs have the types of these arrays."""
    number = {row["name"]: row["onnx"] for row in _core.dtypes()}
    values = []
    for name, array in dict(zip(node.input, inputs)).items():
        dtype = _tensors.to_core(array).dtype
        values.append(helper.make_tensor_value_info(name, number[dtype or ""], None))
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "node", values, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


is_compatible = TensorcastBackend.is_compatible
prepare = TensorcastBackend.prepare
run_model = TensorcastBackend.run_model
run_node = TensorcastBackend.run_node
supports_device = TensorcastBackend.supports_device
