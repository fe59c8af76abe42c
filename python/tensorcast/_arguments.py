# SPDX-License-Identifier: Apache-2.0
"""Says which argument of a call has a wrong type, where the extension module would list its own signatures."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ._errors import CastError

_F = TypeVar("_F", bound=Callable[..., Any])


def _is_int(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def _all(x: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes)) and all(map(fits, x))


def is_utf8(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _is_text(x: Any) -> bool:
    return isinstance(x, str) and is_utf8(x)


# How annotations read in messages, and what fits them; any object fits other annotations.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "None": ("None", lambda x: x is None),
    "str": ("a text", _is_text),
    "bool": ("True or False", lambda x: isinstance(x, bool)),
    "int": ("a whole number", _is_int),
    "float": ("a number", lambda x: isinstance(x, (int, float))),
    "Path": ("a path", lambda x: isinstance(x, (str, os.PathLike))),
    "FileFormat": ("a text", _is_text),
    "PromoteRules": ("a text", _is_text),
    "SchemeName": ("a text", _is_text),
    "BlockSchemeName": ("a text", _is_text),
    "SpellingName": ("a text", _is_text),
    "Sequence[int]": ("whole numbers", lambda x: _all(x, _is_int)),
    "Sequence[str]": ("texts", lambda x: _all(x, _is_text)),
    "tuple[int, ...]": ("a shape", lambda x: _all(x, _is_int)),
    "_Shape": ("a shape", lambda x: _all(x, lambda length: length is None or _is_int(length))),
    "tuple[str, str]": ("two texts", lambda x: _all(x, _is_text) and len(x) == 2),
    "tuple[int, int]": ("two whole numbers", lambda x: _all(x, _is_int) and len(x) == 2),
    "tuple[DTypeLike, Sequence[int]]": (
        "a type and a shape, such as ('float32', (2, 3))",
        lambda x: isinstance(x, (tuple, list)) and len(x) == 2 and _all(x[1], _is_int),
    ),
    "Mapping[str, str]": (
        "a mapping of texts to texts",
        lambda x: isinstance(x, Mapping) and all(_is_text(part) for item in x.items() for part in item),
    ),
}


def _alternatives(annotation: str) -> Iterator[str]:
    depth, first = 0, 0
    for place, character in enumerate(annotation + "|"):
        depth += (character == "[") - (character == "]")
        if character == "|" and depth == 0:
            yield annotation[first:place].strip()
            first = place + 1


def _mistake(annotation: str, value: Any) -> str | None:
    kinds = []
    for each in _alternatives(annotation):
        if each.startswith("Literal["):
            each = "str"
        if each not in _KINDS:
            return None
        words, fits = _KINDS[each]
        if fits(value):
            return None
        kinds.append(words)
    return " or ".join(word for word in dict.fromkeys(kinds) if word != "None" or len(kinds) == 1)


def _name(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__") + "()"


def _mistaken(function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
    for parameter, value in inspect.signature(function).bind(*args, **keywords).arguments.items():
        text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else ""
        if isinstance(text, str) and not is_utf8(text):
            return CastError(f"{_name(function)}: {parameter} is not UTF-8, as texts and names of files must be: {text!r}")
        needed = _mistake(str(function.__annotations__.get(parameter, "")), value)
        if needed is not None:
            return TypeError(f"{_name(function)}: {parameter} must be {needed}, not {value!r}")
    return None


def _meant(function: Callable[..., Any], words: str) -> TypeError | None:
    """For a misspelled argument of the function, which words about the options of casts do not know."""
    found = re.match(r"got an unexpected keyword argument '(\w+)';", words)
    near = difflib.get_close_matches(found[1], inspect.signature(function).parameters, 1) if found else []
    return TypeError(f"{words.partition(';')[0]}. Did you mean '{near[0]}'?") if near else None


def plain_errors(function: _F) -> _F:
    """Makes a function name the argument of a wrong type, where the extension module or Python says less.

    Calls that succeed cost nothing.
    """

    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except CastError:
            raise
        except (TypeError, RuntimeError, ValueError, AttributeError, KeyError) as error:
            of_module = "incompatible function arguments" in str(error) or str(error) == "std::bad_cast"
            mistake = _mistaken(function, args, keywords) if of_module or not isinstance(error, TypeError) else None
            mistake = mistake or _meant(called, str(error))
            if mistake is None and not of_module:
                raise
        words = f"{_name(function)} got an argument of a type that it cannot take; help() describes them"
        raise mistake or TypeError(words)

    return called  # type: ignore[return-value]
