"""``python -m tensorcast.onnx convert`` and ``search``: what `tcast onnx convert` does, and what needs ONNX Runtime."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._errors import CastError
from . import Validation, convert, search


def _dims(text: str) -> dict[str, int]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if not all(name and length.isdigit() for name, _, length in pairs):
        raise argparse.ArgumentTypeError(f'"{text}" is no list of lengths, such as batch=1,sequence=16')
    return {name: int(length) for name, _, length in pairs}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tensorcast.onnx", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help in (
        ("convert", "change the precision of a model, and validate it"),
        ("search", "convert as many nodes as the accuracy allows"),
    ):
        command = commands.add_parser(name, help=help, description=help)
        command.add_argument("model", metavar="MODEL")
        command.add_argument("-o", "--output", required=True, metavar="OUT")
        command.add_argument("--to", required=name == "convert", default="float16", metavar="TYPE")
        command.add_argument(
            "--keep-io-types", nargs="?", const="", metavar="NAMES", help="all inputs and outputs, or these"
        )
        command.add_argument("--keep-op", action="append", default=[], metavar="TYPE")
        command.add_argument("--keep-node", action="append", default=[], metavar="NAME")
        command.add_argument("--runtime", choices=("onnxruntime_cpu", "any"), default="onnxruntime_cpu")
        command.add_argument("--on-overflow", choices=("keep_high", "clamp", "inf", "error"), default="keep_high")
        command.add_argument("--masks", choices=("finite", "inf", "as_others"), default="finite")
        command.add_argument("-f", "--force", action="store_true", help="overwrite OUT")
        command.add_argument(
            "--inputs", metavar="NPZ", help="an npz file with an array for each input (default: random)"
        )
        command.add_argument(
            "--dims", type=_dims, default={}, help="lengths of symbolic dimensions: batch=1,sequence=16"
        )
        command.add_argument("--seed", type=int, default=0, help="of random inputs")
        command.add_argument("--rtol", type=float)
        command.add_argument("--atol", type=float)
        command.add_argument("--cosine", type=float, default=0.99, help="the least cosine between both outputs")
        command.add_argument("--json", action="store_true")
        if name == "convert":
            command.add_argument(
                "--validate", action="store_true", help="check the new model, and run it beside the old one"
            )
            command.add_argument("--weights-only", action="store_true")
            command.add_argument("--opset", default="keep", help="keep, auto (if the type needs it) or a number")
        else:
            command.add_argument(
                "--state", metavar="FILE", help="outcomes so far: a search that was interrupted goes on"
            )
            command.add_argument(
                "--metric",
                metavar="COMMAND",
                help="gets two npz files, of the old and the new outputs; status 0 accepts",
            )
            command.add_argument("-q", "--quiet", action="store_true")
    return parser


def _metric(command: str) -> Callable[[Sequence[Any], Sequence[Any]], bool]:
    words = shlex.split(command)

    def accept(expected: Sequence[Any], got: Sequence[Any]) -> bool:
        with tempfile.TemporaryDirectory(prefix="tensorcast-onnx-") as folder:
            paths = []
            for name, outputs in (("expected.npz", expected), ("got.npz", got)):
                paths.append(os.path.join(folder, name))
                np.savez(paths[-1], *[np.asarray(each) for each in outputs])
            return subprocess.run([*words, *paths], stdin=subprocess.DEVNULL, check=False).returncode == 0

    return accept


def _run(given: argparse.Namespace) -> Any:
    inputs = None if given.inputs is None else dict(np.load(given.inputs, allow_pickle=False))
    checks = Validation(
        inputs=inputs, rtol=given.rtol, atol=given.atol, cosine=given.cosine, dims=given.dims, seed=given.seed
    )
    names = [name for name in (given.keep_io_types or "").split(",") if name]
    shared: dict[str, Any] = {
        "keep_io_types": names or given.keep_io_types is not None,
        "keep_ops": given.keep_op,
        "keep_nodes": given.keep_node,
        "runtime": given.runtime,
        "on_overflow": given.on_overflow,
        "masks": given.masks,
        "overwrite": given.force,
    }
    if given.command == "convert":
        opset = given.opset if given.opset in ("keep", "auto") else int(given.opset)
        return convert(
            given.model,
            given.output,
            given.to,
            weights_only=given.weights_only,
            opset=opset,
            validate=checks if given.validate else False,
            **shared,
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
        **shared,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        done = _run(given)
    except (CastError, OSError, ValueError) as problem:
        print(f"tensorcast: error: {problem}", file=sys.stderr)
        return 1
    except ImportError as problem:
        print(f"tensorcast: error: {problem}; pip install onnx onnxruntime", file=sys.stderr)
        return 1
    if given.json:
        print(done.to_json(indent=2))
    elif given.command == "convert":
        print(f"{given.output}: {done.nodes_converted} of {done.nodes} nodes converted, {done.casts_added} Casts added")
        for output in done.outputs:
            print(
                f"  {output.name}: error {output.max_abs_error:.3g}, relative {output.max_rel_error:.3g}, "
                f"cosine {output.cosine:.6f}"
            )
    else:
        kept = f"; kept: {', '.join(done.kept)}" if done.kept else ""
        print(
            f"{given.output}: {len(done.converted)} nodes converted, {len(done.kept)} kept, "
            f"{done.attempts} attempts{kept}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
