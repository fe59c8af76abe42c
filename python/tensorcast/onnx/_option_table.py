# SPDX-License-Identifier: Apache-2.0
"""The options of ``tensorcast.onnx.convert`` in one table: for ``search``, and for the command line of both."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from .. import _core
from . import _convert
from ._convert import Clamp, ExternalData, Functions, Masks, OnOverflow, Runtime, SharedInit

if TYPE_CHECKING:
    from .._options import DTypeLike


class SearchOptions(TypedDict, total=False):
    """Options that :func:`tensorcast.onnx.search` hands on to :func:`tensorcast.onnx.convert`."""

    from_: DTypeLike | Iterable[DTypeLike]
    keep_io_types: bool | str | Iterable[str] | Mapping[str, DTypeLike | None]
    keep_ops: str | Iterable[str]
    keep: str | Iterable[str]
    only: str | Iterable[str]
    op_types: str | Iterable[str]
    weights_only: bool
    runtime: Runtime
    on_overflow: OnOverflow
    masks: Masks
    clamp: Clamp
    min_positive: float
    max_finite: float
    shared_init: SharedInit
    functions: Functions
    external_data: ExternalData
    external_threshold: int
    external_alignment: int
    allow_lossy_cast_elision: bool


def io_types(text: str) -> bool | dict[str, str | None]:
    """``--keep-io-types``: all, or ``x,y=float32``: names, of which some have a type."""
    found: dict[str, str | None] = {}
    for entry in filter(None, text.split(",")):
        name, equals, dtype = entry.rpartition("=")
        try:
            found[name if equals else entry] = _core.dtype_name(dtype) if equals else None
        except ValueError:  # an = of the name
            found[entry] = None
    return found or True


def opset(text: str) -> int | str:
    return text if text in ("keep", "auto") else int(text)


def _word(text: str) -> str:
    return text.replace("-", "_")


@dataclasses.dataclass(frozen=True)
class Row:
    """An option of the command line, and the keyword that it sets if it is given."""

    keyword: str
    help: str
    metavar: str = ""  # "": the words of `choices`, or a flag
    flag: str = ""  # "": made from the keyword
    repeated: bool = False
    optional: bool = False  # may stand without a value
    choices: tuple[str, ...] = ()
    type: Callable[[str], Any] = str
    only_convert: bool = False

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        flag = self.flag or "--" + self.keyword.replace("_", "-")
        if self.choices:
            parser.add_argument(flag, dest=self.keyword, type=_word, choices=self.choices, help=self.help)
        elif not self.metavar:
            parser.add_argument(flag, dest=self.keyword, action="store_true", default=None, help=self.help)
        elif self.repeated:
            parser.add_argument(flag, dest=self.keyword, action="append", metavar=self.metavar, help=self.help)
        elif self.optional:
            parser.add_argument(
                flag, dest=self.keyword, nargs="?", const=True, type=self.type, metavar=self.metavar, help=self.help
            )
        else:
            parser.add_argument(flag, dest=self.keyword, type=self.type, metavar=self.metavar, help=self.help)


ROWS = (
    Row("from_", "only values of this type; may be repeated", "TYPE", flag="--from", repeated=True),
    Row("keep_io_types", "all inputs and outputs keep their types, or these; x=float32 gives one a type", "NAMES",
        optional=True, type=io_types),
    Row("keep_ops", "nodes of this operator stay; may be repeated", "TYPE", flag="--keep-op", repeated=True),
    Row("keep_nodes", "the node of this name stays; may be repeated", "NAME", flag="--keep-node", repeated=True),
    Row("keep", "nodes that stay, such as 'glob:/head/*'; may be repeated", "SELECTOR", repeated=True),
    Row("only", "the only nodes that change; may be repeated", "SELECTOR", repeated=True),
    Row("op_types", "types of an operator without a schema: own::Op:in=float16,out=float16", "TYPES", repeated=True),
    Row("weights_only", "only initializers change"),
    Row("runtime", "where the model must run", choices=get_args(Runtime)),
    Row("on_overflow", "initializers beyond the range", choices=get_args(OnOverflow)),
    Row("masks", "constants such as -1e9 and -3.4e38", choices=get_args(Masks)),
    Row("clamp", "limit numbers of initializers", choices=get_args(Clamp)),
    Row("min_positive", "smaller numbers other than 0 become it", "NUMBER", type=float),
    Row("max_finite", "larger finite numbers become it", "NUMBER", type=float),
    Row("shared_init", "initializers that both types need", choices=get_args(SharedInit)),
    Row("functions", "functions of the model: a copy for each set of types, or their nodes in the place of calls",
        choices=get_args(Functions)),
    Row("external_data", "where initializers go", choices=get_args(ExternalData)),
    Row("external_threshold", "bytes from which on initializers go outside", "BYTES", type=int),
    Row("external_alignment", "of tensors outside that are not smaller, a power of two; 1 packs them", "BYTES", type=int),
    Row("allow_lossy_cast_elision", "also remove Casts to a narrower type and back whose types change"),
    Row("opset", "keep, auto (if the type needs it) or a number", "OPSET", type=opset),
    Row("explain", "say what becomes of this node and why; may be repeated", "NODE", repeated=True, only_convert=True),
    Row("dry_run", "report what would happen, and write nothing", only_convert=True),
)  # fmt: skip


def given_options(given: argparse.Namespace) -> dict[str, Any]:
    """The keywords of the options that the command line has."""
    found = {row.keyword: getattr(given, row.keyword, None) for row in ROWS}
    return {keyword: value for keyword, value in found.items() if value is not None}


def settled(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a search, which uses them more than once: iterables become lists."""
    unknown = sorted(set(options) - set(SearchOptions.__annotations__))
    if unknown:
        raise TypeError(f"search() has no option {unknown[0]!r}")
    names = {"from_", "keep_io_types", "keep_ops", "keep", "only", "op_types"}
    return {
        keyword: value
        if keyword not in names or isinstance(value, (bool, str, Mapping)) or not isinstance(value, Iterable)
        else _convert._listed(value)
        for keyword, value in options.items()
    }
