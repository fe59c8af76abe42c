# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries that other runtimes load."""

from __future__ import annotations

import pathlib

from .._errors import CastError


def find_library(name: str) -> pathlib.Path:
    path = pathlib.Path(__file__).parents[1] / "lib" / name
    if not path.exists():
        package = "tensorcast-openvino" if "openvino" in name else "a wheel made by scripts/wheel"
        raise CastError(f"this build of tensorcast lacks {name}; install {package}")
    return path
