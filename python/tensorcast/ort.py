# SPDX-License-Identifier: Apache-2.0
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

import os
import pathlib
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import CastError
from ._interop._libraries import find_library
from .onnx._model_files import read_model, unnamed, write_model

if TYPE_CHECKING:
    import onnx
    import onnxruntime  # type: ignore[import-untyped,unused-ignore]

__all__ = ["library_path", "provider_library_path", "provider_name", "register", "use_tensorcast"]

_OVERRIDE_KEY = "ai.tensorcast.override"
_REGISTERED_KEY = "ai.tensorcast.registered"
_PROVIDER_KEY = "ai.tensorcast.provider"
_registering = threading.Lock()


def library_path() -> pathlib.Path:
    """The library of operators, for ``SessionOptions.register_custom_ops_library`` and other languages' counterparts.

    Raises:
        CastError: this build of the package lacks it.

    Examples:
        >>> import onnxruntime
        >>> from tensorcast import ort
        >>> options = onnxruntime.SessionOptions()
        >>> options.register_custom_ops_library(str(ort.library_path()))
    """
    return find_library("libtensorcast_onnxruntime.so")


def provider_library_path() -> pathlib.Path:
    """The library of the execution provider, for ``onnxruntime.register_execution_provider_library`` and other languages'
    counterparts.

    Raises:
        CastError: this build of the package lacks it.

    Examples:
        >>> from tensorcast import ort
        >>> ort.provider_library_path().name
        'libtensorcast_onnxruntime_provider.so'
    """
    return find_library("libtensorcast_onnxruntime_provider.so")


def provider_name() -> str:
    """The name of the execution provider, as ``InferenceSession.get_providers`` and ``OrtEpDevice.ep_name`` give it.

    Examples:
        >>> from tensorcast import ort
        >>> ort.provider_name()
        'TensorcastExecutionProvider'
    """
    return "TensorcastExecutionProvider"


def register(session_options: onnxruntime.SessionOptions, override: bool = False, *, provider: bool = False) -> None:
    """Adds tensorcast's operators to the sessions that are made with ``session_options``.

    An attribute of an operator that has a wrong kind or value is an error when the session is made; ``provider`` also
    refuses names that the operators do not have.

    Args:
        session_options: changed in place. What it has already is not added again.
        override: replace the ``Cast`` of ONNX, too. Conversions that tensorcast leaves to others, such as those of
            strings, are still done by the runtime. Needs ONNX Runtime 1.22.
        provider: add tensorcast's execution provider, which does the ``Cast`` nodes of the model. Make the session without
            ``providers=``, which would replace it. Needs ONNX Runtime 1.24.

    Raises:
        CastError: the runtime is older than that, or than 1.21; both ``override`` and ``provider`` are set; or the options
            have the operators already, and ``override`` comes too late.

    Examples:
        >>> import onnxruntime
        >>> from tensorcast import ort
        >>> options = onnxruntime.SessionOptions()
        >>> ort.register(options, override=True)
        >>> session = onnxruntime.InferenceSession("cast.onnx", options, providers=["CPUExecutionProvider"])
        >>> session.run(None, {"x": np.float32([0.1])})[0]
        array([0.1], dtype=float16)
    """
    import onnxruntime

    if override and provider:
        raise CastError("override and provider exclude each other: override leaves no Cast to the provider")
    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    oldest = (1, 24) if provider else (1, 22) if override else (1, 21)
    if version < oldest:
        needs = "provider=True needs" if provider else "override=True needs" if override else "tensorcast needs"
        raise CastError(f"{needs} ONNX Runtime {oldest[0]}.{oldest[1]} or newer, and this is {onnxruntime.__version__}")
    known = _entry(session_options, _REGISTERED_KEY)
    if known and override and known != "override":
        raise CastError("these SessionOptions have the operators already; override=True needs new ones")
    if provider and known == "override":
        raise CastError("override and provider exclude each other: override leaves no Cast to the provider")
    if not known:
        if override:
            session_options.add_session_config_entry(_OVERRIDE_KEY, "1")
        session_options.register_custom_ops_library(str(library_path()))
        session_options.add_session_config_entry(_REGISTERED_KEY, "override" if override else "operators")
    if provider and not _entry(session_options, _PROVIDER_KEY):
        session_options.add_provider_for_devices(_provider_devices(), {})
        session_options.add_session_config_entry(_PROVIDER_KEY, "1")


def _entry(session_options: Any, key: str) -> str:
    """A configuration entry; empty: there is none."""
    try:
        return str(session_options.get_session_config_entry(key))
    except RuntimeError:
        return ""


def _provider_devices() -> list[Any]:
    """The devices of the provider, whose library the process registers once."""
    import onnxruntime

    def found() -> list[Any]:
        return [device for device in onnxruntime.get_ep_devices() if device.ep_name == provider_name()]

    with _registering:
        if not found():
            onnxruntime.register_execution_provider_library(provider_name(), str(provider_library_path()))
        return found()[:1]  # others have registered the library under another name


def use_tensorcast(
    model: onnx.ModelProto | str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> int:
    """Rewrites every ``Cast`` of the model into ``ai.tensorcast::Cast``, also in subgraphs and functions.

    The model gets a function of that name whose body is ONNX's Cast. So it runs with the library and without it. The
    command ``tcast onnx use-tensorcast`` does the same.

    Args:
        model: an ``onnx.ModelProto``, which is changed in place, or a path. Opset 13 or newer, and a file format of
            version 8 or newer, which has functions.
        output: with a path, where the new model goes; may be ``model`` with ``overwrite``. External data stays where it
            is, or its files are copied if ``output`` is in another folder.
        overwrite: replace an existing ``output``.

    Returns:
        The number of nodes that were rewritten.

    Raises:
        UnsupportedError: the model is older. It is then unchanged.
        CastError: a path without ``output``. FileError: as ``builtins.open``.

    Examples:
        >>> from tensorcast import ort
        >>> ort.use_tensorcast("cast.onnx", "new.onnx")
        1
    """
    if isinstance(model, (str, os.PathLike)):
        if output is None:
            raise CastError("there is no place for the new model; name it with output=")
        return _rewritten(os.fspath(model), os.fspath(output), overwrite)
    if output is not None:
        raise TypeError("output= is for models that are files; a ModelProto is changed in place")
    with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as folder:
        source, made = os.path.join(folder, "model.onnx"), os.path.join(folder, "new.onnx")
        write_model(model, source)
        with unnamed(folder):
            rewritten = _rewritten(source, made, False)
        if rewritten and len(os.listdir(folder)) > 2:  # the model is too large for one message
            model.CopyFrom(read_model(model, made))
        elif rewritten:
            model.ParseFromString(pathlib.Path(made).read_bytes())
    return rewritten


def _rewritten(source: str, target: str, overwrite: bool) -> int:
    rewritten: int = _core.onnx_use_tensorcast(source, target, overwrite)["rewritten"]
    return rewritten
