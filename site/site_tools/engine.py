# SPDX-License-Identifier: Apache-2.0
"""Asks the tcast command, so that the pages' facts are the engine's."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program() -> pathlib.Path:
    """The command: TCAST, or that of the release build."""
    path = pathlib.Path(os.environ.get("TCAST") or ROOT / "build/release/tools/tcast/tcast")
    if not path.is_file():
        raise SystemExit(f"docs: no {path}; build it, or set TCAST")
    return path


def run(*arguments: str) -> str:
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"tcast {' '.join(arguments)[:200]}: {done.stderr}")
    return done.stdout


@functools.cache
def types() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(run("types", "--json"))}


@functools.cache
def _explained(values: tuple[str, ...], to: str, options: tuple[str, ...]) -> list[dict[str, Any]]:
    # "--" so that negative numbers are not taken for flags.
    found: list[dict[str, Any]] = json.loads(run("explain", "--to", to, "--json", "--full", *options, "--", *values))
    return found


def explain(values: Sequence[str], to: str, *options: str) -> list[dict[str, Any]]:
    """The results of casting each of `values` to `to`: code, exact_value, events ..."""
    return [row["results"][0] for row in _explained(tuple(values), to, options)]


def decode(codes: Sequence[int], dtype: str) -> list[dict[str, Any]]:
    """What each code of the type means."""
    digits = (types()[dtype]["bits"] + 3) // 4
    texts = tuple(f"0x{code:0{digits}X}" for code in codes)
    return [row["source"] for row in _explained(texts, dtype, ("--from", dtype))]


FILES = {".safetensors": "safetensors", ".npy": "NumPy", ".npz": "NumPy archive", ".gguf": "GGUF", ".pb": "ONNX TensorProto"}


@functools.cache
def files_that_hold(dtype: str) -> tuple[str, ...]:
    """The endings of files that take a tensor of the type: the command writes one of each."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "x.raw"
        source.write_bytes(struct.pack("<16f", *range(16)))
        endings = []
        for ending in FILES:
            asks = ["convert", str(source), "--raw", "--from", "float32", "--shape", "2,8", "--to", dtype, "--quiet"]
            asks += ["--out-of-range", "wrap", "--allow-loss", "-o", f"{folder}/y{ending}"]
            if subprocess.run([program(), *asks], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0:
                endings.append(ending)
        return tuple(endings)
