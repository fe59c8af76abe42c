"""Casts inside OpenVINO models: a pass that puts tensorcast's conversions in the place of OpenVINO's.

>>> import openvino
>>> from tensorcast.openvino import use_tensorcast
>>> model = openvino.Core().read_model("model.xml")
>>> use_tensorcast(model)
3
>>> compiled = openvino.Core().compile_model(model, "CPU")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import openvino  # type: ignore[import-untyped,unused-ignore]

from . import _core
from ._errors import CastError, UnsupportedError
from ._promote import promote_types

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CastOptions

__all__ = ["Convert", "use_tensorcast"]

if not hasattr(openvino, "Op"):
    raise UnsupportedError(f"operations in Python need OpenVINO 2025.1 or newer, and this is {openvino.__version__}")

# By OpenVINO's name. Its u1, u2, u3, u6 and nf4 are stored otherwise than ONNX's types, or are not among them.
_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "i4": "int4", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "u4": "uint4", "boolean": "bool",
}  # fmt: skip
_PACKED = {"int4", "uint4", "float4_e2m1fn"}


def _name(dtype: Any) -> str | None:
    return _NAMES.get(dtype.to_string())


def _array(tensor: Any, name: str) -> Any:
    """The elements in a type that tensorcast knows. OpenVINO shows bfloat16 and float8 as other types of their width."""
    scalar = getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else np.dtype(name)
    return tensor.data.view(scalar)


class Convert(openvino.Op):  # type: ignore[misc,unused-ignore]
    """OpenVINO's Convert, done by tensorcast: ``Convert([node.output(0)], openvino.Type.f16, saturate=False)``."""

    class_type_info = openvino.DiscreteTypeInfo("Convert", "tensorcast")

    def __init__(
        self, inputs: Any = None, destination_type: Any = openvino.Type.dynamic, **options: Unpack[CastOptions]
    ) -> None:
        super().__init__(self, None)
        self._destination = destination_type
        self._options = options
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self._destination, self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, inputs: Any) -> Convert:
        return Convert(inputs, self._destination, **self._options)

    def get_type_info(self) -> Any:
        return Convert.class_type_info

    def has_evaluate(self) -> bool:
        return _name(self.get_input_element_type(0)) is not None and _name(self._destination) is not None

    def evaluate(self, outputs: Any, inputs: Any) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        src, dst = inputs[0], outputs[0]
        from_name, to_name = _name(src.element_type), _name(dst.element_type)
        if from_name is None or to_name is None:
            return False
        if src.size == 0:
            return True
        if from_name in _PACKED or to_name in _PACKED:
            dst.data.view(np.uint8).reshape(-1)[...] = _cast_packed(src, from_name, to_name, self._options)
        else:
            _core.cast(_array(src, from_name), to_name, out=_array(dst, to_name), **self._options)
        return True


def _cast_packed(src: Any, from_name: str, to_name: str, options: CastOptions) -> Any:
    """The bytes of the result of a conversion from or to a type of 4 bits."""
    elements = _unpacked(src, from_name) if from_name in _PACKED else _array(src, from_name)
    if to_name in _PACKED:
        return _core.cast(elements, to_name, packed=True, **options)
    return _core.cast(elements, to_name, **options).view(np.uint8).reshape(-1)


def _unpacked(src: Any, name: str) -> Any:
    codes = src.data.view(np.uint8).reshape(-1)
    both = np.stack([codes & 15, codes >> 4], axis=1).reshape(-1)[: src.size]
    return both.view(getattr(ml_dtypes, name))


def use_tensorcast(
    model: openvino.Model, *, by_text: bool = False, constants: bool = False, **options: Unpack[CastOptions]
) -> int:
    """Replaces the ``Convert`` and ``ConvertPromoteTypes`` of ``model``, also in the bodies of If, Loop, TensorIterator.

    Args:
        model: changed in place. Conversions of types that tensorcast does not have stay, and ConvertPromoteTypes of
            types that are known only when the model runs.
        by_text: refuse a ConvertPromoteTypes that its text forbids, although OpenVINO accepts it (``docs/promotion.md``
            lists the pairs).
        constants: also replace the Convert of a constant. OpenVINO computes these when it compiles the model, or merges
            them with the operation that reads the constant, such as MatMul of compressed weights.
        **options: those of :func:`tensorcast.cast`.

    Returns:
        The number of operations that were replaced.

    Raises:
        CastError: ``by_text``, and the text forbids a promotion. The model is then unchanged.
    """
    found = list(_conversions(model, constants))
    if by_text:
        for node in found:
            if node.get_type_name() == "ConvertPromoteTypes":
                _check_promotion(node)
    for node in found:
        for index, output in enumerate(node.outputs()):
            source = node.input_value(index)
            readers = output.get_target_inputs()
            converted = source
            if node.get_type_name() == "Convert" or source.get_element_type() != output.get_element_type():
                made = Convert([source], output.get_element_type(), **options)
                made.set_friendly_name(node.get_friendly_name() + (f".{index}" if index else ""))
                converted = made.output(0)
                converted.get_tensor().set_names(output.get_names())
            for reader in readers:
                reader.replace_source_output(converted)
        model.validate_nodes_and_infer_types()
    return len(found)


def _conversions(model: Any, constants: bool) -> Any:
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if kind == "If":
            yield from _conversions(node.get_function(0), constants)
            yield from _conversions(node.get_function(1), constants)
        elif kind in ("Loop", "TensorIterator"):
            yield from _conversions(node.get_function(), constants)
        if kind not in ("Convert", "ConvertPromoteTypes") or node.get_type_info().version_id == "tensorcast":
            continue
        types = [value.get_element_type() for value in (*node.input_values(), *node.outputs())]
        constant = kind == "Convert" and node.input_value(0).get_node().get_type_name() == "Constant"
        if all(_name(dtype) for dtype in types) and (constants or not constant):
            yield node


def _check_promotion(node: Any) -> None:
    attributes = node.get_attributes()
    values = node.input_values()
    names = [_NAMES[value.get_element_type().to_string()] for value in values]
    scalars = [value.get_partial_shape().rank == openvino.Dimension(0) for value in values]
    try:
        promote_types(
            names[0], names[1], a_is_scalar=scalars[0], b_is_scalar=scalars[1],
            promote_unsafe=attributes["promote_unsafe"], pytorch_scalar_promotion=attributes["pytorch_scalar_promotion"],
            u64_integer_promotion_target=str(attributes["u64_integer_promotion_target"]),
        )  # fmt: skip
    except CastError as error:
        raise CastError(f"{node.get_friendly_name()}: {error}") from error
