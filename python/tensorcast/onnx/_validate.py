# SPDX-License-Identifier: Apache-2.0
"""Checks a new model: ONNX's checker, strict type inference, and a run beside the old one in ONNX Runtime."""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import CastError
from ._model_files import Path, as_file
from ._ranges import find_overflow, unseen_bodies
from ._results import OutputDifference, Validation
from ._runtime_process import RuntimeProblem, RuntimeProcess
from ._runtime_worker import FLOATS, NUMPY, element

if TYPE_CHECKING:
    from .._options import DTypeLike
    from ..graph import ModelProto

RTOL = {"float16": 2e-2, "bfloat16": 1.2e-1, "float32": 1e-4, "float64": 1e-4}


class ValidationError(CastError):
    """The new model is invalid, does not run, or differs too much from the old one. A conversion did not write it.

    Attributes:
        outputs: how each output differs, if the model ran.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> try:
        ...     tc.onnx.validate("model.onnx", "model-f16.onnx", "float16", tc.onnx.Validation(rtol=1e-9))
        ... except tc.onnx.ValidationError as error:
        ...     [output.name for output in error.outputs]
        ['y']
    """

    __module__ = "tensorcast.onnx"

    outputs: tuple[OutputDifference, ...] = ()


def validate(
    old: Path | bytes | ModelProto,
    new: Path | bytes | ModelProto,
    to: DTypeLike,
    checks: Validation | None = None,
) -> tuple[OutputDifference, ...]:
    """Checks a model with ONNX's checker and strict type inference, and compares it with the one it was made from in
    ONNX Runtime, as :func:`convert` does with ``validate=``.

    Args:
        old, new: paths, bytes or ``onnx.ModelProto``.
        to: the type that the new model has; tolerances follow from it unless given.
        checks: inputs and tolerances.

    Raises:
        ValidationError: the new model is invalid, does not run, or differs too much.
        CastError: the old model does not run, so that there is nothing to compare.

    Examples:
        >>> done = tc.onnx.convert("model.onnx", "model-f16.onnx", "float16", keep_io_types=True)
        >>> [output.passed for output in tc.onnx.validate("model.onnx", "model-f16.onnx", "float16")]
        [True]
    """
    with as_file(old) as source, as_file(new) as made:
        return compare_models(source, made, _core.dtype_name(to), checks or Validation())


def compare_models(source: str, made: str, to: str, checks: Validation) -> tuple[OutputDifference, ...]:
    check_model(source, made)
    return run_both(source, made, to, checks) if checks.run else ()


def check_model(source: str, made: str) -> None:
    """ONNX's full checker, which infers types strictly; only its plain checks for a model that failed before."""
    import onnx

    try:
        onnx.checker.check_model(source, full_check=True)
        full = True
    except Exception:
        full = False
    try:
        onnx.checker.check_model(made, full_check=full)
    except Exception as problem:
        if full:
            raise ValidationError(f"the new model is invalid: {problem}") from problem
        try:
            onnx.checker.check_model(source)
        except Exception:
            return  # the old one was just as invalid: an operator that ONNX does not know, for example
        raise ValidationError(f"the new model is invalid: {problem}") from problem


def random_inputs(opened: RuntimeProcess, seed: int, dims: Mapping[str, int], length: int) -> dict[str, Any]:
    """Normal numbers for floats, 0 and 1 for integers, 1 for masks, as 0 hides what the model computes; `length` for
    symbolic dimensions that `dims` does not have."""
    generator = np.random.default_rng(seed)
    made: dict[str, Any] = {}
    for value in opened.inputs:
        kind = element(value.type)
        if not value.type.startswith("tensor(") or kind not in NUMPY:
            raise CastError(
                f"there are no random values for the input {value.name!r} of type {value.type}; give inputs"
            )
        shape = [each if isinstance(each, int) else dims.get(each or "", length) for each in value.shape]
        if "mask" in value.name.lower():
            made[value.name] = np.ones(shape, NUMPY[kind])
        elif kind in FLOATS:
            made[value.name] = generator.normal(size=shape).astype(NUMPY[kind])
        else:
            made[value.name] = generator.integers(0, 2, size=shape).astype(NUMPY[kind])
    return made


def _arrays(value: Any) -> list[npt.NDArray[Any]]:
    if isinstance(value, (list, tuple)):
        return [array for each in value for array in _arrays(each)]
    return [] if value is None else [np.asarray(value)]


def compare(name: str, expected: Any, got: Any, rtol: float, atol: float, cosine: float) -> OutputDifference:
    """How an output differs. Numbers beyond the range of the new type are infinite there, and count as equal."""
    before, after = _arrays(expected), _arrays(got)
    worst = relative = 0.0
    similar, passed = 1.0, len(before) == len(after)
    for old, new in zip(before, after):
        is_number = old.dtype.kind in "fiub" or old.dtype == ml_dtypes.bfloat16
        if old.shape != new.shape or not is_number:
            passed = passed and old.shape == new.shape and bool(np.array_equal(old, new))
            continue
        a, b = old.astype(np.float64), new.astype(np.float64)
        if new.dtype in (np.float16, ml_dtypes.bfloat16):
            with np.errstate(over="ignore"):
                rounded = a.astype(new.dtype).astype(np.float64)
            a = np.where(np.isinf(rounded), rounded, a)
        finite = np.isfinite(a)
        same = np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(a[np.isinf(a)], b[np.isinf(a)])
        if not same or not np.isfinite(b[finite]).all():
            passed, worst, relative, similar = False, float("inf"), float("inf"), 0.0
            continue
        x, y = a[finite], b[finite]
        if x.size == 0:
            continue
        error = np.abs(x - y)
        largest = float(np.abs(x).max())
        worst = max(worst, float(error.max()))
        relative = max(relative, float(error.max()) / largest if largest else float(error.max()))
        lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
        angle = float(x.ravel() @ y.ravel()) / lengths if lengths else float(not x.any() and not y.any())
        close = (error <= np.maximum(atol + rtol * np.abs(x), rtol * largest)).all()
        similar = min(similar, angle)
        passed = passed and bool(close) and (angle >= cosine or largest <= atol)
    return OutputDifference(name=name, max_abs_error=worst, max_rel_error=relative, cosine=similar, passed=passed)


def _says_something(outputs: Sequence[Any]) -> bool:
    """Whether there is a number to compare: finite and not zero; or text."""
    for array in _arrays(list(outputs)):
        is_number = array.dtype.kind in "fiub" or array.dtype == ml_dtypes.bfloat16
        numbers = array.astype(np.float64) if is_number else np.ones(array.shape)
        if (np.isfinite(numbers) & (numbers != 0)).any():
            return True
    return False


class Reference:
    """What the old model gives for each set of inputs."""

    def __init__(self, names: list[str], inputs: list[dict[str, Any]], expected: list[list[Any]]) -> None:
        self.names, self.inputs, self.expected = names, inputs, expected

    def compare(self, got: Sequence[Sequence[Any]], to: str, checks: Validation) -> tuple[OutputDifference, ...]:
        """The worst difference of each output."""
        rtol, atol = tolerances(to, checks)
        worst: dict[str, OutputDifference] = {}
        for before, after in zip(self.expected, got, strict=True):
            for name, old, new in zip(self.names, before, after, strict=True):
                here = compare(name, old, new, rtol, atol, checks.cosine)
                known = worst.get(name, here)
                worst[name] = OutputDifference(
                    name=name,
                    max_abs_error=max(known.max_abs_error, here.max_abs_error),
                    max_rel_error=max(known.max_rel_error, here.max_rel_error),
                    cosine=min(known.cosine, here.cosine),
                    passed=known.passed and here.passed,
                )
        return tuple(worst.values())


def tolerances(to: str, checks: Validation) -> tuple[float, float]:
    """rtol and atol. Of weights in codes the cosine decides, and no number may differ by more than the largest."""
    has_codes = checks.rtol is None and to not in RTOL
    rtol = RTOL.get(to, 1.0) if checks.rtol is None else checks.rtol
    return rtol, (0.0 if has_codes else rtol) if checks.atol is None else checks.atol


def _arrays_of(given: Mapping[str, Any] | Path) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"a set of inputs is a mapping of names to arrays, or the path of an npz file, not {given!r}")
    try:
        file = np.load(given, allow_pickle=False)
        if isinstance(file, np.lib.npyio.NpzFile):
            with file:
                return dict(file)
        problem = ""
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        problem = f": {error}" if zipfile.is_zipfile(given) else ""
    raise CastError(f"{os.fspath(given)} is no npz file, which has an array for each input{problem}", code="parse")


def reference_run(runtime: RuntimeProcess, source: str, checks: Validation) -> Reference:
    """Runs the old model. Random inputs are tried with two lengths."""
    try:
        runtime.load(source)
    except RuntimeProblem as problem:
        raise CastError(
            f"ONNX Runtime does not load the old model, so that there is nothing to compare: {problem}"
        ) from problem
    names = [value.name for value in runtime.outputs]
    given = checks.inputs
    if given is not None:
        sets = [_arrays_of(each) for each in ([given] if isinstance(given, (Mapping, str, os.PathLike)) else given)]
        if not sets:
            raise CastError("there is no set of inputs")
        try:
            found = Reference(names, sets, [runtime.run(inputs) for inputs in sets])
        except RuntimeProblem as problem:
            raise CastError(f"the old model does not run: {problem}") from problem
    else:
        found = _random_run(runtime, names, checks)
    if not any(map(_says_something, found.expected)):
        kind = "these inputs" if given is not None else "random inputs"
        lengths = _or_lengths([] if given is not None else _symbolic(runtime))
        raise ValidationError(
            f"for {kind} all outputs of the old model are zero, infinite or NaN, so that nothing can be compared; "
            f"give inputs of real data with --inputs{lengths}"
        )
    return found


def _random_run(runtime: RuntimeProcess, names: list[str], checks: Validation) -> Reference:
    problems = []
    lengths = _symbolic(runtime)
    unknown = sorted(set(checks.dims) - set(lengths))
    if unknown:
        there = f", only {', '.join(map(repr, lengths))}" if lengths else "; none of its lengths has a name"
        raise CastError(f"no input of the model has the length {unknown[0]!r}{there}", code="invalid_argument")
    for length in (2, 1):
        inputs = random_inputs(runtime, checks.seed, checks.dims, length)
        try:
            return Reference(names, [inputs], [runtime.run(inputs)])
        except RuntimeProblem as problem:
            problems.append(problem)
    raise CastError(
        f"the old model does not run: {problems[0]}; give inputs with --inputs{_or_lengths(lengths)}"
    ) from problems[0]


def _symbolic(runtime: RuntimeProcess) -> list[str]:
    """The names of lengths of inputs."""
    return list(dict.fromkeys(each for value in runtime.inputs for each in value.shape if isinstance(each, str) and each))


def _or_lengths(names: list[str]) -> str:
    either = f", or the length of {', '.join(map(repr, names))} with --dims" if names else ""
    return either + f"; in Python inputs={', dims=' if names else ''}"


def run_both(source: str, made: str, to: str, checks: Validation) -> tuple[OutputDifference, ...]:
    with RuntimeProcess() as runtime:
        reference = reference_run(runtime, source, checks)
        try:
            runtime.load(made)
            got = [runtime.run(inputs) for inputs in reference.inputs]
        except RuntimeProblem as problem:
            raise ValidationError(f"the new model does not run: {problem}") from problem
        rtol, atol = tolerances(to, checks)
        outputs = reference.compare(got, to, checks)
        failed = [each for each in outputs if not each.passed]
        if failed:
            worst = failed[0]
            raise _failed(
                f"the output {worst.name!r} differs: by up to {worst.max_abs_error:.3g}, relative "
                f"{worst.max_rel_error:.3g}, cosine {worst.cosine:.5f}; allowed are rtol {rtol:g}, atol {atol:g}, "
                f"cosine {checks.cosine:g}",
                outputs,
            )
        for inputs in reference.inputs if checks.ranges and to == "float16" else ():
            overflow = find_overflow(runtime, source, made, inputs)
            if overflow is None:
                continue
            raise _failed(f"{overflow.describe()}; keep the type of the node, or of all with search", outputs)
        if checks.ranges and to == "float16" and (unseen := unseen_bodies(made)):
            warnings.warn(
                f"values in the bodies of {', '.join(unseen[:3])}{' and others' if len(unseen) > 3 else ''} were not "
                "compared with the range of float16; only what the nodes return was",
                UserWarning,
                stacklevel=2,
            )
    return outputs


def _failed(message: str, outputs: tuple[OutputDifference, ...]) -> ValidationError:
    error = ValidationError(message)
    error.outputs = outputs
    return error
