# SPDX-License-Identifier: Apache-2.0
"""Casts inside OpenVINO models: a pass that puts tensorcast's conversions in the place of OpenVINO's.

>>> import openvino
>>> from tensorcast.openvino import extension_path, use_tensorcast
>>> core = openvino.Core()
>>> model = core.read_model("cast.onnx")
>>> use_tensorcast(model)
1
>>> compiled = core.compile_model(model, "CPU")
>>> openvino.save_model(model, "with_tensorcast.xml")
>>> core.add_extension(str(extension_path()))  # to read that file
"""

from __future__ import annotations

import functools
import importlib
import pathlib
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import openvino  # type: ignore[import-untyped,unused-ignore]

from . import _core
from ._errors import CastError, UnsupportedError
from ._option_list import DEFAULTS, STRING_OPTIONS
from ._interop._libraries import find_library
from ._cast._promote import promote_types

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CastOptions

__all__ = ["Convert", "extension_path", "use_tensorcast"]

# By OpenVINO's name. Its u1, u2, u3, u6 and nf4 are stored otherwise than ONNX's types, or are not among them.
_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "i4": "int4", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "u4": "uint4", "boolean": "bool",
}  # fmt: skip
_PACKED = {"int4", "uint4", "float4_e2m1fn"}
# Exact in every implementation. The CPU plugin computes in float32, so it converts the input of an operation that is not
# its own before it calls that, which would then only copy: 4.1 ms for 4 Mi elements, where its own takes 3.1 ms.
_WIDENING = {("f16", "f32"), ("bf16", "f32")}
# What the CPU plugin changes throughout a model before it runs it: 64 bits and u32 to i32 (4294967295 is then -1), f64 to
# f32. An operation that is not its own would get the numbers that are left, where its Convert gets them all.
_CUT_INPUTS = {"f64", "i64", "u64", "u32"}
# It does so with these, too, but not with the results of operations that are not its own: others that read them, and the
# changed constants, would have two types, and the model would not compile. Outputs of the model keep their type.
_CHANGED_RESULTS = {"f64", "f16", "i64", "i16", "i4", "u64", "u32", "u16", "u4", "boolean"}


def _name(dtype: Any) -> str | None:
    return _NAMES.get(dtype.to_string())


def extension_path() -> pathlib.Path:
    """The library of the operations ``Convert`` and ``ConvertPromoteTypes``, for ``Core.add_extension``.

    Models that were saved after :func:`use_tensorcast` need it, in every language.

    Raises:
        CastError: this build of the package lacks it.

    Examples:
        >>> import openvino
        >>> from tensorcast.openvino import extension_path
        >>> openvino.Core().add_extension(str(extension_path()))
    """
    return find_library("libtensorcast_openvino.so")


@functools.cache
def _factory() -> Any:
    """What makes the operations of the library; ``None`` if this build, or this OpenVINO, has no library that fits."""
    try:
        module: Any = importlib.import_module("openvino.utils.node_factory")
    except ImportError:  # before 2025.0
        module = importlib.import_module("openvino.runtime.utils.node_factory")
    factory = module.NodeFactory()
    try:
        factory.add_extension(str(extension_path()))
    except (CastError, RuntimeError):
        return None
    return factory


def _array(tensor: Any, name: str) -> Any:
    """The elements in a type that tensorcast knows. OpenVINO shows bfloat16 and float8 as other types of their width."""
    scalar = getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else np.dtype(name)
    return tensor.data.view(scalar)


# Operations in Python came with 2025.0.
_Op: Any = openvino.Op if hasattr(openvino, "DiscreteTypeInfo") else object


class Convert(_Op):  # type: ignore[misc,unused-ignore]
    """OpenVINO's Convert, done by tensorcast: ``Convert([node.output(0)], openvino.Type.f16, saturate=False)``.

    An operation in Python, for builds of the package without the library. It is saved as that of the library, which reads
    it; ``core.add_extension(Convert)`` reads it in Python.

    Examples:
        >>> import openvino
        >>> from openvino import opset14
        >>> from tensorcast.openvino import Convert
        >>> x = opset14.parameter([2], openvino.Type.f32)
        >>> y = Convert([x.output(0)], openvino.Type.f8e4m3, saturate=False)
        >>> y.get_output_element_type(0)
        <Type: 'f8e4m3'>
    """

    class_type_info = openvino.DiscreteTypeInfo("Convert", "tensorcast") if _Op is not object else None

    def __init__(
        self, inputs: Any = None, destination_type: Any = openvino.Type.dynamic, **options: Unpack[CastOptions]
    ) -> None:
        if _Op is object:
            raise UnsupportedError(f"operations in Python need OpenVINO 2025.0, and this is {openvino.__version__}")
        super().__init__(self, None)
        _core.check_options({**options})
        self._destination = destination_type
        self._options: CastOptions = options
        self._options.pop("float_string", None)  # of no meaning here
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self._destination, self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, inputs: Any) -> Convert:
        return Convert(inputs, self._destination, **self._options)

    def visit_attributes(self, visitor: Any) -> bool:
        # As the library's operation; a reader sets them. OpenVINO merges operations of the same input and attributes.
        usual = {name: value for name, value in DEFAULTS.items() if name not in STRING_OPTIONS}
        attributes: dict[str, Any] = {"destination_type": self._destination.to_string(), **usual, **self._options}
        attributes["scale"] = float(attributes["scale"])
        visitor.on_attributes(attributes)
        self._destination = getattr(openvino.Type, attributes["destination_type"])
        given = {name: attributes[name] for name in usual if attributes[name] != usual[name]}
        _core.check_options(given)
        self._options = given  # type: ignore[assignment]
        return True

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
        model: changed in place. Conversions of types that tensorcast does not have stay. So do, without ``scale``, those
            of float16 or bfloat16 to float32, which are exact and faster in OpenVINO, and those of types that OpenVINO's
            CPU plugin replaces: from float64, int64, uint64 and uint32, and to a type that it does not compute in, such as
            float16, unless the result is an output of the model. Promotions whose types are not known yet stay promotions.
        by_text: refuse a ConvertPromoteTypes that its text forbids, although OpenVINO accepts it (``docs/promotion.md``
            lists the pairs).
        constants: also replace the Convert of a constant. OpenVINO computes these when it compiles the model, or merges
            them with the operation that reads the constant, such as MatMul of compressed weights.
        **options: those of :func:`tensorcast.cast`.

    Returns:
        The number of operations that were replaced.

    Raises:
        CastError: ``by_text``, and the text forbids a promotion. The model is then unchanged.

    Examples:
        >>> import openvino
        >>> from openvino import opset14
        >>> from tensorcast.openvino import use_tensorcast
        >>> x = opset14.parameter([2], openvino.Type.f32)
        >>> model = openvino.Model([opset14.convert(x, "i8")], [x])
        >>> use_tensorcast(model)
        1
    """
    _core.check_options({**options})
    factory = _factory()
    attributes = {name: value for name, value in options.items() if name != "float_string"}
    scaled = options.get("scale", 1) != 1
    found = [node for node in _conversions(model, constants)
             if (factory is not None or not _is_open(node)) and (scaled or not _is_widening(node))]  # fmt: skip
    if not scaled:
        found = _without_left(found, model)
    if by_text:
        for node in found:
            if node.get_type_name() == "ConvertPromoteTypes" and not _is_open(node):
                _check_promotion(node)
    for node in found:
        if _is_open(node) and factory is not None:
            own = {name: _plain(value) for name, value in node.get_attributes().items()}
            made = factory.create(
                "ConvertPromoteTypes", node.input_values(), {**own, "by_text": by_text, **attributes}
            )
            _replace(node, made.outputs())
            made.set_friendly_name(node.get_friendly_name())
            continue
        converted = []
        for index, output in enumerate(node.outputs()):
            source = node.input_value(index)
            if node.get_type_name() == "Convert" or source.get_element_type() != output.get_element_type():
                if factory is None:
                    made = Convert([source], output.get_element_type(), **options)
                else:
                    to = {"destination_type": output.get_element_type().to_string()}
                    made = factory.create("Convert", [source], {**to, **attributes})
                made.set_friendly_name(node.get_friendly_name() + (f".{index}" if index else ""))
                source = made.output(0)
                source.get_tensor().set_names(output.get_names())
            converted.append(source)
        _replace(node, converted)
    model.validate_nodes_and_infer_types()
    return len(found)


def _replace(node: Any, outputs: Any) -> None:
    for old, new in zip(node.outputs(), outputs, strict=True):
        for reader in old.get_target_inputs():
            reader.replace_source_output(new)


def _plain(value: Any) -> Any:
    """An attribute as the factory takes it."""
    return value if isinstance(value, (bool, int, float, str)) else value.to_string()


def _is_open(node: Any) -> bool:
    """Whether the types of a promotion are not known yet."""
    return node.get_type_name() == "ConvertPromoteTypes" and any(output.get_element_type().is_dynamic()
                                                                 for output in node.outputs())  # fmt: skip


def _is_widening(node: Any) -> bool:
    types = [value.get_element_type().to_string() for value in (*node.input_values(), *node.outputs())]
    return node.get_type_name() == "Convert" and tuple(types) in _WIDENING


def _without_left(found: list[Any], model: Any) -> list[Any]:
    """Those whose numbers OpenVINO does not change before or after them, except by another one of them."""
    outputs = {result.get_name() for result in model.get_results()}
    while True:
        ours = {node.get_name() for node in found}
        kept = [node for node in found if not _is_cut(node, ours) and not _is_changed(node, ours | outputs)]
        if len(kept) == len(found):
            return found
        found = kept


def _is_cut(node: Any, ours: set[str]) -> bool:
    def is_ours(made_by: Any) -> bool:
        return made_by.get_name() in ours or made_by.get_type_info().version_id == "tensorcast"

    return any(value.get_element_type().to_string() in _CUT_INPUTS and not is_ours(value.get_node())
               for value in node.input_values())  # fmt: skip


def _is_changed(node: Any, readers: set[str]) -> bool:
    return any(reader.get_node().get_name() not in readers and reader.get_node().get_type_name() != "Convert"
               for value in node.outputs() if value.get_element_type().to_string() in _CHANGED_RESULTS
               for reader in value.get_target_inputs())  # fmt: skip


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
        known = all(_name(dtype) or (kind != "Convert" and dtype.is_dynamic()) for dtype in types)
        if known and (constants or not constant):
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
