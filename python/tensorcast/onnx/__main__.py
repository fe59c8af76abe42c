# SPDX-License-Identifier: Apache-2.0
"""``python -m tensorcast.onnx convert``, ``search`` and ``validate``: what `tcast onnx convert` does, and what needs ONNX Runtime."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._errors import CastError
from . import ConvertResult, OutputDifference, Validation, convert, search, validate
from ._option_table import add_options, given_options


def _dims(text: str) -> dict[str, int]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if not all(name and length.isdigit() for name, _, length in pairs):
        raise argparse.ArgumentTypeError(f'"{text}" is no list of lengths, such as batch=1,sequence=16')
    return {name: int(length) for name, _, length in pairs}


def _file(text: str) -> str:
    """The name of a file, as `tcast` takes it: there is no standard stream here that ``-`` would be."""
    if text in ("", "-"):
        raise argparse.ArgumentTypeError(f'"{text}" is not the name of a file' + ("; ./- is the file of that name" if text else ""))
    return text


def _type(text: str) -> str:
    try:
        return _core.dtype_name(text)
    except CastError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_checks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--inputs",
        action="append",
        type=_file,
        metavar="NPZ",
        help="an npz file with an array for each input; may be given several times (default: random, masks 1)",
    )
    parser.add_argument(
        "--dims", type=_dims, default={}, metavar="LENGTHS", help="lengths of symbolic dimensions: batch=1,sequence=16"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="NUMBER", help="of random inputs")
    parser.add_argument("--rtol", type=float, metavar="NUMBER", help="relative error that passes (default by the type)")
    parser.add_argument("--atol", type=float, metavar="NUMBER", help="absolute error that passes (default as --rtol)")
    parser.add_argument(
        "--cosine", type=float, default=0.99, metavar="NUMBER", help="the least cosine between both outputs"
    )
    parser.add_argument("--json", action="store_true")


_VALIDATE = """\
Checks NEW with ONNX's checker and strict type inference, and runs OLD and NEW in ONNX Runtime on the same inputs.

An output passes if every number is within atol + rtol * |expected|, or within rtol of the output's largest number, and
if the cosine of the angle between both outputs is large enough. Status 1: NEW does not pass, and the reason."""
_EXAMPLES = """\
examples:
  python -m tensorcast.onnx validate model.onnx model-f16.onnx --to float16
  python -m tensorcast.onnx validate model.onnx model-f16.onnx --to float16 --dims batch=1,sequence=128 --seed 7
  python -m tensorcast.onnx validate model.onnx model-bf16.onnx --to bfloat16 --inputs samples.npz --rtol 0.05 --json

`tcast onnx convert --validate` does this before it writes the new model."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tensorcast.onnx", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help in (
        ("convert", "change the precision of a model, and validate it"),
        ("search", "convert as many nodes as the accuracy allows"),
    ):
        command = commands.add_parser(name, help=help, description=help)
        command.add_argument("model", type=_file, metavar="MODEL")
        command.add_argument("-o", "--output", type=_file, required=name == "search", metavar="OUT")
        default = "" if name == "convert" else "the type (default float16, or that of --weights-only)"
        command.add_argument("--to", type=_type, metavar="TYPE", help=default or "the type")
        add_options(command, of_one_run=name == "convert")
        command.add_argument("-f", "--force", action="store_true", help="overwrite OUT")
        _add_checks(command)
        if name == "convert":
            command.add_argument(
                "--validate", action="store_true", help="check the new model, and run it beside the old one"
            )
        else:
            command.add_argument(
                "--state", type=_file, metavar="FILE", help="outcomes so far: a search that was interrupted goes on"
            )
            command.add_argument(
                "--metric",
                metavar="COMMAND",
                help="gets two npz files, of the old and the new outputs; status 0 accepts",
            )
            command.add_argument("-q", "--quiet", action="store_true")
    command = commands.add_parser(
        "validate",
        help="compare a converted model with the one it was made from",
        description=_VALIDATE,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", type=_file, metavar="OLD", help="the model before")
    command.add_argument("new", type=_file, metavar="NEW", help="the converted model")
    command.add_argument(
        "--to", type=_type, required=True, metavar="TYPE", help="the type of NEW, from which tolerances follow"
    )
    _add_checks(command)
    return parser


def _metric(command: str) -> Callable[[Sequence[Any], Sequence[Any]], bool]:
    words = tuple(shlex.split(command))

    def accept(expected: Sequence[Any], got: Sequence[Any]) -> bool:
        with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as folder:
            paths = []
            for name, outputs in (("expected.npz", expected), ("got.npz", got)):
                paths.append(os.path.join(folder, name))
                np.savez(paths[-1], *[np.asarray(each) for each in outputs])
            return subprocess.run([*words, *paths], stdin=subprocess.DEVNULL, check=False).returncode == 0

    return accept


def _run(given: argparse.Namespace) -> Any:
    checks = Validation(
        inputs=given.inputs, rtol=given.rtol, atol=given.atol, cosine=given.cosine, dims=given.dims, seed=given.seed
    )
    if given.command == "validate":
        return validate(given.model, given.new, given.to, checks)
    options = given_options(given)
    if given.command == "convert":
        return convert(
            given.model,
            given.output,
            given.to,
            validate=checks if given.validate else False,
            overwrite=given.force,
            **options,
        )
    quiet = given.quiet or given.json
    return search(
        given.model,
        given.output,
        given.to,
        checks=checks,
        metric=_metric(given.metric) if given.metric else None,
        state=given.state,
        progress=None if quiet else lambda line: print(line, flush=True),
        overwrite=given.force,
        **options,
    )


def _refused(given: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """What is wrong with the options whatever the model is; "" if nothing."""
    if given.command == "convert":
        refused = _incomplete(given, parser.parse_args(["convert", given.model]))
        if refused:
            return refused
    if given.command != "validate":
        has_scheme = isinstance(given.weights_only, str)
        try:
            _core.onnx_needs(given.to or (None if has_scheme else "float16"), given_options(given))
        except (CastError, ValueError) as problem:
            return str(problem)
    return ""


def _incomplete(given: argparse.Namespace, default: argparse.Namespace) -> str:
    """What ``convert`` lacks; "" if nothing."""
    if given.to is None and not isinstance(given.weights_only, str):
        return "there is no type to convert to: give --to TYPE, or --weights-only SCHEME"
    if not given.output and not given.dry_run:
        return "there is no place for the new model: give -o OUT"
    for name in () if given.validate else ("inputs", "dims", "seed", "rtol", "atol", "cosine"):
        if getattr(given, name) != getattr(default, name):
            return f"--{name} requires --validate"
    return ""


def _print_outputs(outputs: Sequence[OutputDifference]) -> None:
    for output in outputs:
        print(
            f"  {output.name}: error {output.max_abs_error:.3g}, relative {output.max_rel_error:.3g}, "
            f"cosine {output.cosine:.6f}"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print_conversion(name: str, done: ConvertResult, has_scheme: bool) -> None:
    weights = [change for change in done.initializers if change.scheme]
    if weights:
        print(f"{name}: {_count(len(weights), 'weight')} in {done.to}, {_count(done.casts_added, 'node')} added")
        print(f"  weights: {done.initializer_bytes_before:,} bytes -> {done.initializer_bytes_after:,} bytes")
        if done.to == "int8" and done.opset_after < 13:
            print(f"  each has one scale, as the model has opset {done.opset_after}; --opset 13 gives one for each channel")
        worst = sorted((change.snr_db, change.name) for change in weights if change.snr_db is not None)
        for snr_db, weight in worst[:5]:
            print(f"  {weight}: {snr_db:.1f} dB")
    elif has_scheme:
        print(f"{name}: 0 weights in {done.to}")
        if not done.kept_weights:
            print("  no product takes a constant matrix of float32, float16 or bfloat16")
    else:
        print(
            f"{name}: {done.nodes_converted} of {_count(done.nodes, 'node')} converted, "
            f"{_count(done.casts_added, 'Cast')} added"
        )
    if done.opset_after != done.opset_before:
        print(f"  opset: {done.opset_before} -> {done.opset_after}")
    for reason in dict.fromkeys(weight.reason for weight in done.kept_weights):
        names = [weight.name for weight in done.kept_weights if weight.reason == reason]
        print(f"  {_count(len(names), 'weight')} stay{'s' if len(names) == 1 else ''}, such as {names[0]!r}: {reason}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    refused = _refused(given, parser)
    if refused:
        print(f"tensorcast: error: {refused}", file=sys.stderr)
        return 2
    try:
        done = _run(given)
    except (CastError, OSError, ValueError) as problem:
        text = str(problem).replace("overwrite=True", "--force").replace('opset="auto"', "--opset auto")
        print(f"tensorcast: error: {text}", file=sys.stderr)
        return 1
    except ImportError as problem:
        print(f"tensorcast: error: {problem}; pip install tensorcast[validate]", file=sys.stderr)
        return 1
    has_scheme = isinstance(getattr(given, "weights_only", None), str)
    if given.command == "validate":
        if given.json:
            print(json.dumps({"validated": True, "outputs": [output.as_dict() for output in done]}, indent=2))
        else:
            _print_outputs(done)
    elif given.json:
        print(done.to_json(indent=2))
    elif given.command == "convert":
        _print_conversion(given.output or given.model, done, has_scheme)
        _print_outputs(done.outputs)
        for node in done.explained:
            print(f"{node.op_type} {node.name!r}{' in ' + node.scope if node.scope else ''}")
            for value in node.values:
                words = f"  {'takes' if value.is_input else 'gives'} {value.value!r}: {value.from_ or '?'}"
                words += f" -> {value.to or '?'}" if value.to != value.from_ else ""
                print(words + (", behind a Cast" if value.cast else "") + (f": {value.reason}" if value.reason else ""))
    else:
        _print_conversion(given.output, done.result, has_scheme)
        kept = f": {', '.join(done.kept)}" if done.kept else ""
        print(f"  {_count(done.attempts, 'attempt')}, {_count(len(done.kept), 'node')} kept{kept}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
