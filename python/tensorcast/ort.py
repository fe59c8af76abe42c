"""Casts inside ONNX Runtime: operators of tensorcast for its sessions.

>>> import onnxruntime
>>> from tensorcast import ort
>>> options = onnxruntime.SessionOptions()
>>> ort.register(options, override=True)
>>> session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])

The library adds the operators ``Cast`` and ``CastLike`` of the domain ``ai.tensorcast``. With ``override`` it also does
the work of ONNX's own ``Cast``, including the ones that the runtime inserts into float16 models. ``docs/runtimes.md``
says what changes then.
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from ._errors import CastError
from ._libraries import find_library

if TYPE_CHECKING:
    import onnxruntime  # type: ignore[import-untyped,unused-ignore]

__all__ = ["library_path", "register"]

_OVERRIDE_KEY = "ai.tensorcast.override"


def library_path() -> pathlib.Path:
    """The library of operators, for ``SessionOptions.register_custom_ops_library`` and other languages' counterparts.

    Raises:
        CastError: this build of the package lacks it.
    """
    return find_library("libtensorcast_onnxruntime.so")


def register(session_options: onnxruntime.SessionOptions, override: bool = False) -> None:
    """Adds tensorcast's operators to the sessions that are made with ``session_options``.

    Args:
        session_options: changed in place.
        override: replace the ``Cast`` of ONNX, too. Conversions that tensorcast leaves to others, such as those of
            strings, are still done by the runtime. Needs ONNX Runtime 1.22.

    Raises:
        CastError: the runtime is older than that, or than 1.21.
    """
    import onnxruntime

    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    oldest = (1, 22) if override else (1, 21)
    if version < oldest:
        needs = "override=True needs" if override else "tensorcast needs"
        raise CastError(f"{needs} ONNX Runtime {oldest[0]}.{oldest[1]} or newer, and this is {onnxruntime.__version__}")
    if override:
        session_options.add_session_config_entry(_OVERRIDE_KEY, "1")
    session_options.register_custom_ops_library(str(library_path()))
