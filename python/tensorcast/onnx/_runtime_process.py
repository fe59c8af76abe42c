# SPDX-License-Identifier: Apache-2.0
"""Runs models in ONNX Runtime in another process: a model that crashes it is an error, and not the end of the program."""

from __future__ import annotations

import multiprocessing.spawn
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._errors import CastError
from ._runtime_worker import FLOATS, NUMPY, element


class RuntimeProblem(Exception):
    """ONNX Runtime refused a model or its inputs, or crashed."""


class Edge(NamedTuple):
    """An input or output of a model, as ONNX Runtime describes it."""

    name: str
    type: str  # "tensor(float)"
    shape: tuple[Any, ...]


class RuntimeProcess:
    """Starts when it is first used, and again after a crash. One model is loaded at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.inputs: tuple[Edge, ...] = ()
        self.outputs: tuple[Edge, ...] = ()

    def __enter__(self) -> RuntimeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # bytes that a crashed process did not take
                    pass
        process.wait()

    def load(self, path: str, exposed: Sequence[str] = ()) -> None:
        """Loads a model; `exposed` are values that become outputs, too, which nothing is optimized for."""
        inputs, outputs = self._ask("while it loaded the model", "load", os.path.abspath(path), list(exposed))
        self.inputs = tuple(Edge(*each) for each in inputs)
        self.outputs = tuple(Edge(*each) for each in outputs)

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs of the loaded model."""
        outputs: list[Any] = self._ask("while it ran the model", "run", self._known(inputs))
        return outputs

    def floats(self, inputs: Mapping[str, Any], only: str = "all") -> dict[str, Any]:
        """Floating-point outputs by name: all, or those of float16 that have "nonfinite" numbers."""
        found: dict[str, Any] = self._ask("while it ran the model", "floats", self._known(inputs), only)
        return found

    def _known(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        names = [value.name for value in self.inputs]
        unknown = sorted(set(inputs) - set(names))
        if unknown:
            raise CastError(f"the model has no input {unknown[0]!r}; it has {', '.join(map(repr, names))}")
        missing = [
            value.name for value in self.inputs if value.name not in inputs and not value.type.startswith("optional")
        ]
        if missing:
            raise CastError(f"no array is given for the input {missing[0]!r}; the model takes {', '.join(map(repr, names))}")
        given = {name: _plain(value) for name, value in inputs.items()}
        for value in self.inputs:
            if value.name in given:
                _check_type(value, given[value.name])
        return given

    def _ask(self, doing: str, *request: Any) -> Any:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = _started()
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(request, process.stdin, protocol=5)
            process.stdin.flush()
            done, answer = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            status = process.wait()
            self.close()
            raise RuntimeProblem(f"ONNX Runtime {_ending(status)} {doing}") from None
        except BaseException:  # an interruption: the answer would be that of the next request
            self.close()
            raise
        if not done:
            raise RuntimeProblem(answer)
        return answer


def _check_type(wanted: Edge, given: Any) -> None:
    """ONNX Runtime does not name the input whose type is wrong. Floats become what the model takes."""
    kind = NUMPY.get(element(wanted.type))
    if not wanted.type.startswith("tensor(") or kind is None or not isinstance(given, np.ndarray):
        return
    is_float = given.dtype.kind == "f" or given.dtype == NUMPY["bfloat16"]
    if given.dtype != kind and not (is_float and element(wanted.type) in FLOATS):
        raise CastError(f"the input {wanted.name!r} is {given.dtype}, and the model takes {np.dtype(kind)}")


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else np.asarray(value)


# With the parent's path alone: `-c` would look into the current folder, too.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from tensorcast.onnx._runtime_worker import main; main()"


def _started() -> subprocess.Popen[bytes]:
    program = os.fsdecode(multiprocessing.spawn.get_executable() or sys.executable)
    words = [program, "-c", _PROGRAM, *sys.path]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed ({signal.Signals(-status).name})"
    except ValueError:
        return f"crashed (signal {-status})"
