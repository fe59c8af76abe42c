"""Casts inside ONNX Runtime: operators of tensorcast for its sessions.

>>> import onnxruntime
>>> from tensorcast import ort
>>> options = onnxruntime.SessionOptions()
>>> ort.register(options, override=True)
>>> session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])

The library adds the operators ``Cast`` and ``CastLike`` of the domain ``ai.tensorcast``. With ``override`` it also does
the work of ONNX's own ``Cast``, including the ones that the runtime inserts into float16 models. With ``provider``, an
execution provider does the work of those that are in the model. ``docs/runtimes.md`` says what changes then.
"""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import CastError, UnsupportedError
from ._libraries import find_library

if TYPE_CHECKING:
    import onnx
    import onnxruntime  # type: ignore[import-untyped,unused-ignore]

__all__ = ["library_path", "provider_library_path", "provider_name", "register", "use_tensorcast"]

_DOMAIN = "ai.tensorcast"
_OVERRIDE_KEY = "ai.tensorcast.override"
_registering = threading.Lock()


def library_path() -> pathlib.Path:
    """The library of operators, for ``SessionOptions.register_custom_ops_library`` and other languages' counterparts.

    Raises:
        CastError: this build of the package lacks it.
    """
    return find_library("libtensorcast_onnxruntime.so")


def provider_library_path() -> pathlib.Path:
    """The library of the execution provider, for ``onnxruntime.register_execution_provider_library`` and other languages'
    counterparts.

    Raises:
        CastError: this build of the package lacks it.
    """
    return find_library("libtensorcast_onnxruntime_provider.so")


def provider_name() -> str:
    """The name of the execution provider, as ``InferenceSession.get_providers`` and ``OrtEpDevice.ep_name`` give it."""
    return "TensorcastExecutionProvider"


def register(session_options: onnxruntime.SessionOptions, override: bool = False, *, provider: bool = False) -> None:
    """Adds tensorcast's operators to the sessions that are made with ``session_options``.

    Args:
        session_options: changed in place.
        override: replace the ``Cast`` of ONNX, too. Conversions that tensorcast leaves to others, such as those of
            strings, are still done by the runtime. Needs ONNX Runtime 1.22.
        provider: add tensorcast's execution provider, which does the ``Cast`` nodes of the model. Make the session without
            ``providers=``, which would replace it. Needs ONNX Runtime 1.24.

    Raises:
        CastError: the runtime is older than that, or than 1.21; or both ``override`` and ``provider`` are set.
    """
    import onnxruntime

    if override and provider:
        raise CastError("override and provider exclude each other: override leaves no Cast to the provider")
    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    oldest = (1, 24) if provider else (1, 22) if override else (1, 21)
    if version < oldest:
        needs = "provider=True needs" if provider else "override=True needs" if override else "tensorcast needs"
        raise CastError(f"{needs} ONNX Runtime {oldest[0]}.{oldest[1]} or newer, and this is {onnxruntime.__version__}")
    if override:
        session_options.add_session_config_entry(_OVERRIDE_KEY, "1")
    session_options.register_custom_ops_library(str(library_path()))
    if provider:
        session_options.add_provider_for_devices(_provider_devices(), {})


def _provider_devices() -> list[Any]:
    """The devices of the provider, whose library the process registers once."""
    import onnxruntime

    def found() -> list[Any]:
        return [device for device in onnxruntime.get_ep_devices() if device.ep_name == provider_name()]

    with _registering:
        if not found():
            onnxruntime.register_execution_provider_library(provider_name(), str(provider_library_path()))
        return found()


def use_tensorcast(model: onnx.ModelProto) -> int:
    """Rewrites every ``Cast`` of the model into ``ai.tensorcast::Cast``, also in subgraphs and functions.

    The model gets a function of that name whose body is ONNX's Cast. So it runs with the library and without it.

    Args:
        model: changed in place. Opset 13 or newer, and a file format of version 8 or newer, which has functions.

    Returns:
        The number of nodes that were rewritten.

    Raises:
        UnsupportedError: the model is older. It is then unchanged.
    """
    from onnx import AttributeProto, helper

    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0)
    if opset < 13 or model.ir_version < 8:
        raise UnsupportedError(
            f"the model has opset {opset} and file format {model.ir_version}, and functions need 13 and 8; "
            "convert it with onnx.version_converter first"
        )
    defaults: dict[str, int | str] = {}
    if opset >= 19:
        defaults["saturate"] = 1
    if opset >= 24:
        defaults["round_mode"] = "up"
    nodes = list(_casts(model.graph.node))
    inside = [function for function in model.functions if (function.domain, function.name) != (_DOMAIN, "Cast")]
    changed = []
    for function in inside:
        versions = [entry.version for entry in function.opset_import if entry.domain in ("", "ai.onnx")]
        found = list(_casts(function.node)) if versions == [opset] else []
        if found:
            changed.append(function)
            nodes += found
    if not nodes:
        return 0
    for node in nodes:
        node.domain = _DOMAIN
        given = {attribute.name for attribute in node.attribute}
        node.attribute.extend(helper.make_attribute(name, text) for name, text in defaults.items() if name not in given)
    for owner in (model, *changed):
        if all(entry.domain != _DOMAIN for entry in owner.opset_import):
            owner.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    if len(inside) == len(model.functions):
        body = helper.make_node("Cast", ["input"], ["output"])
        types = {"to": AttributeProto.INT, "saturate": AttributeProto.INT, "round_mode": AttributeProto.STRING}
        for name in ("to", *defaults):
            attribute = body.attribute.add()
            attribute.name, attribute.ref_attr_name, attribute.type = name, name, types[name]
        model.functions.append(
            helper.make_function(
                _DOMAIN, "Cast", ["input"], ["output"], [body], [helper.make_opsetid("", opset)], ["to", *defaults]
            )
        )
    return len(nodes)


def _casts(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        if node.op_type == "Cast" and node.domain in ("", "ai.onnx"):
            yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _casts(attribute.g.node)
            for graph in attribute.graphs:
                yield from _casts(graph.node)
