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
from ._option_table import ROWS, given_options


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
        command.add_argument("-o", "--output", required=name == "search", metavar="OUT")
        command.add_argument("--to", required=name == "convert", default="float16", metavar="TYPE")
        for row in ROWS:
            if name == "convert" or not row.only_convert:
                row.add_to(command)
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
        print(f"{given.output or given.model}: {done.nodes_converted} of {done.nodes} nodes converted, {done.casts_added} Casts added")
        for output in done.outputs:
            print(
                f"  {output.name}: error {output.max_abs_error:.3g}, relative {output.max_rel_error:.3g}, "
                f"cosine {output.cosine:.6f}"
            )
        for node in done.explained:
            print(f"{node.op_type} {node.name!r}{' in ' + node.scope if node.scope else ''}")
            for value in node.values:
                words = f"  {'takes' if value.is_input else 'gives'} {value.value!r}: {value.from_ or '?'}"
                words += f" -> {value.to or '?'}" if value.to != value.from_ else ""
                print(words + (", behind a Cast" if value.cast else "") + (f": {value.reason}" if value.reason else ""))
    else:
        kept = f"; kept: {', '.join(done.kept)}" if done.kept else ""
        print(
            f"{given.output}: {len(done.converted)} nodes converted, {len(done.kept)} kept, "
            f"{done.attempts} attempts{kept}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
