# SPDX-License-Identifier: Apache-2.0
"""What conversions of files, folders and mappings are asked for, as the library takes it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex, TypeAlias

from ._convert_options import REQUEST_DEFAULTS, REQUEST_KINDS
from ._errors import CastError, LossWarning, UnsupportedError, callers_level, in_python
from ._request_types import Patterns, Preset, Renames, Rule, Rules
from ._results import CheckpointInfo, ConvertedTensor, ConvertResult, FileInfo

Path: TypeAlias = "str | os.PathLike[str]"
Progress: TypeAlias = "Callable[[int, int, str], object]"

_LETTERS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}


def _renames(rename: Renames, keyword: str) -> list[tuple[str, str]]:
    if isinstance(rename, str):
        raise TypeError("rename= is a mapping of regular expressions to what replaces them, not a string")
    pairs: Any = rename.items() if isinstance(rename, Mapping) else rename
    listed = list(pairs) if isinstance(pairs, Iterable) else None
    if listed is None or not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in listed):
        raise TypeError(f"{keyword}= is a mapping of regular expressions to what replaces them, or pairs, not {rename!r}")
    return [(pattern_text(pattern, keyword), str(replacement)) for pattern, replacement in listed]


def _globs(given: Patterns, keyword: str) -> list[str]:
    globs = [given] if isinstance(given, (str, re.Pattern)) or not isinstance(given, Iterable) else list(given)
    for glob in globs:
        if not isinstance(glob, str):
            raise TypeError(f"{keyword}= takes globs such as '*.bin', not {glob!r}")
    return [str(glob) for glob in globs]


def pattern_text(given: Any, keyword: str) -> str:
    """The regular expression as RE2 reads it; the flags of a compiled one stand before it."""
    if isinstance(given, str):
        return given
    if not isinstance(given, re.Pattern) or not isinstance(given.pattern, str):
        raise TypeError(f"{keyword}= takes regular expressions, as texts or compiled, not {given!r}")
    if given.flags & re.VERBOSE:
        raise CastError(f"{keyword}=: RE2 has no re.VERBOSE; write {given.pattern!r} without spaces and comments")
    letters = "".join(letter for flag, letter in _LETTERS.items() if given.flags & flag)
    return f"(?{letters}){given.pattern}" if letters else given.pattern


def patterns(given: Patterns, keyword: str = "include") -> list[str]:
    listed = [given] if isinstance(given, (str, re.Pattern)) or not isinstance(given, Iterable) else given
    return [pattern_text(each, keyword) for each in listed]


def _ranks(given: int | Iterable[int], keyword: str = "keep_rank") -> list[int]:
    listed: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in listed):
        raise TypeError(f"{keyword}= is a number of dimensions, or several, not {given!r}")
    return listed


def _elements(given: SupportsIndex, keyword: str) -> int:
    if not hasattr(given, "__index__") or isinstance(given, bool):
        raise TypeError(f"{keyword}= is a number of elements, not {given!r}")
    if (count := given.__index__()) < 0:
        raise CastError(f"{keyword}= is a number of elements from 0 on, not {given}")
    return count


def _count(given: SupportsIndex | None, keyword: str) -> int | None:
    return None if given is None else _elements(given, keyword)


def _share(given: float, keyword: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{keyword}= is a share from 0 to 1, not {given!r}")
    return given


def _rule(given: Any) -> Rule:
    if isinstance(given, Rule):
        return given
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return Rule(*given)
    raise TypeError(f"one of rules= is a Rule or a pair of regular expression and dtype, not {given!r}")


def listed_rules(rules: Rules) -> list[Rule]:
    if isinstance(rules, (str, re.Pattern)) or not isinstance(rules, Iterable):
        raise TypeError(f"rules= is a mapping of regular expressions to dtypes, not {rules!r}")
    listed: Any = rules.items() if isinstance(rules, Mapping) else rules
    found = [_rule(rule) for rule in listed]
    for rule in found:
        if rule.scale is not None and (isinstance(rule.scale, bool) or not isinstance(rule.scale, (int, float))):
            raise TypeError(f"the scale of a rule is a number, not {rule.scale!r}")
        if rule.scale is not None and rule.to is None:
            raise CastError(f"the rule {rule.match!r} keeps its tensors, and so has no use for scale={rule.scale}")
    return found


def _rule_rows(rules: Rules, keyword: str) -> list[tuple[str, Any, list[int], int, float | None, list[str]]]:
    return [
        (
            pattern_text(rule.match, keyword),
            rule.to,
            _ranks(rule.rank, "rank"),
            _elements(rule.smaller, "smaller"),
            rule.scale,
            [rule.kind] if isinstance(rule.kind, str) else list(rule.kind),
        )
        for rule in listed_rules(rules)
    ]


def _preset(preset: Preset | None, keyword: str) -> str:
    if preset not in (None, "weights-only"):
        raise CastError(f'{keyword}={preset!r} is not a preset; the only one is "weights-only"')
    return "none" if preset is None else "weights_only"


def _text(given: str | None, keyword: str) -> str:
    return given or ""


def _path(given: Any, keyword: str) -> str | None:
    if given is not None and not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"{keyword}= is a path, not {given!r}")
    return None if given is None else os.fspath(given)


def weighed_by(importance: Any, candidates: Any) -> str:
    if importance is not None and candidates is None:
        raise CastError("importance= weighs the errors of candidates=; pass both")
    return _path(importance, "importance") or ""


def refuse_distributed(info: Any) -> None:
    if any(os.path.basename(shard.name) == ".metadata" for shard in info.shards):
        raise UnsupportedError("of a distributed checkpoint, elements are only read by convert(), which makes safetensors")


# By the kinds of options; the library takes the values of others as they are.
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "rules": _rule_rows,
    "pattern": patterns,
    "renames": _renames,
    "glob": _globs,
    "ranks": _ranks,
    "count": _count,
    "preset": _preset,
    "share": _share,
    "text": _text,
    "file": _path,
}


def _read(name: str, value: Any) -> Any:
    reader = _READERS.get(REQUEST_KINDS[name])
    return value if reader is None else reader(value, name)


def fields(options: dict[str, Any], names: Iterable[str] = tuple(REQUEST_DEFAULTS)) -> dict[str, Any]:
    """The fields ``names`` of a request: takes them out of ``options``, which leaves those of casts. None: the default."""
    given = {name: options.pop(name, None) for name in names}
    taken = {name: REQUEST_DEFAULTS[name] if value is None else value for name, value in given.items()}
    read = {name: _read(name, value) for name, value in taken.items()}
    return {name: value for name, value in read.items() if value is not None}  # None: the library's default


def loss_may_raise() -> bool:
    """Reports whether a filter may turn a LossWarning into an error."""
    return any(issubclass(LossWarning, each[2]) and each[0] == "error" for each in warnings.filters)


def warn_of_left_out(info: FileInfo | CheckpointInfo) -> None:
    """Warns of what is in a file and no tensor. Folders have tensors alone, and warnings of scales."""
    for words in info.warnings if isinstance(info, FileInfo) else ():
        warnings.warn(in_python(words), UserWarning, stacklevel=callers_level())


def convert_result(done: dict[str, Any], stacklevel: int) -> ConvertResult:
    """The library's outcome as a result; warns of tensors that were destroyed."""
    tensors = []
    for row in done.pop("tensors"):
        row.update({name: in_python(row[name]) for name in ("reason", "damage", "remedy")})
        tensors.append(ConvertedTensor(**row))
    for tensor in tensors:
        if tensor.damage:
            warnings.warn(
                f"tensor {tensor.name!r} ({tensor.from_} to {tensor.to}): {tensor.damage}; {tensor.remedy}",
                LossWarning,
                stacklevel=stacklevel + 1,
            )
    for words in done["warnings"]:
        warnings.warn(in_python(words), UserWarning, stacklevel=stacklevel + 1)
    return ConvertResult._of(done, tensors=tensors)
