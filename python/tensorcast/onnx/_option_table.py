# SPDX-License-Identifier: Apache-2.0
"""The options of ``tensorcast.onnx.convert`` in one table: for ``search``, and for the command line of both."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from .. import _core
from .._errors import unknown_option
from ._option_list import DEFAULTS, OF_ONE_RUN, ROWS


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


_READERS = {"number": float, "count": int, "opset": opset, "io_types": io_types}


def add_options(parser: argparse.ArgumentParser, of_one_run: bool) -> None:
    """Adds the options of the list; those of one run only if this is one."""
    for keyword, flag, kind, metavar, words, help in ROWS:
        if keyword in OF_ONE_RUN and not of_one_run:
            continue
        given: dict[str, Any] = {"dest": keyword, "help": help}
        if kind == "choice":
            given.update(type=_word, choices=words)
        elif kind == "flag":
            given.update(action=argparse.BooleanOptionalAction, default=None)
        elif kind in ("texts", "types"):
            given.update(action="append", metavar=metavar)
        elif kind == "flag_or_text":
            given.update(nargs="?", const=True, metavar=metavar.strip("[]"))
        else:
            given.update(type=_READERS[kind], metavar=metavar.strip("[]"))
            if kind == "io_types":
                given.update(nargs="?", const=True)
        parser.add_argument(flag, **given)


def given_options(given: argparse.Namespace) -> dict[str, Any]:
    """The keywords of the options that the command line has."""
    found = {keyword: getattr(given, keyword, None) for keyword in DEFAULTS}
    return {keyword: value for keyword, value in found.items() if value is not None}


def settled(options: Mapping[str, Any], function: str) -> dict[str, Any]:
    """Options that are used more than once: iterators become lists. TypeError for a keyword that is no option."""
    known = [name for name in DEFAULTS if function == "convert" or name not in OF_ONE_RUN]
    for name in options:
        if name not in known:
            raise unknown_option(name, known)
    return {
        name: dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, Iterator) else value
        for name, value in options.items()
    }
