# SPDX-License-Identifier: Apache-2.0
"""What every Python test may use: the built command and the built library.

scripts/test sets TCAST and TENSORCAST_LIBRARY; without them the release builds in build/ are used.
"""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def built(variable: str, default: str) -> pathlib.Path:
    path = pathlib.Path(os.environ.get(variable) or ROOT / default).resolve()
    if not path.exists():
        pytest.fail(f"{path} is missing: set {variable}, or run scripts/test", pytrace=False)
    return path


@pytest.fixture(scope="session")
def source_dir() -> pathlib.Path:
    return ROOT


@pytest.fixture(scope="session")
def tcast() -> pathlib.Path:
    """The tcast command."""
    return built("TCAST", "build/release/tools/tcast/tcast")


@pytest.fixture(scope="session")
def tensorcast_library() -> pathlib.Path:
    """libtensorcast.so, for ctypes."""
    return built("TENSORCAST_LIBRARY", "build/shared/src/libtensorcast.so")


@pytest.fixture
def run_tcast(tcast, tmp_path):
    """run_tcast("explain", "0.1") runs the command in an empty folder; the result has returncode, stdout, stderr."""

    def run(*arguments, **options) -> subprocess.CompletedProcess:
        options.setdefault("cwd", tmp_path)
        options.setdefault("timeout", 120)
        command = [str(tcast), *map(str, arguments)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)

    return run
