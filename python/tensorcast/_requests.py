"""What conversions of files, folders and mappings are asked for, as the library takes it."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

from ._errors import CastError, LossWarning, in_python
from ._options import DTypeLike
from ._results import ConvertedShard, ConvertedTensor, ConvertResult, Requirements

Path: TypeAlias = "str | os.PathLike[str]"
Patterns: TypeAlias = "str | Iterable[str]"
Progress: TypeAlias = "Callable[[int, int, str], object]"
Preset: TypeAlias = Literal["weights-only"]


@dataclasses.dataclass(frozen=True)
class Rule:
    """One of ``rules=`` with conditions beside the name.

    >>> rules = [tc.Rule("lm_head", "float16"), tc.Rule(rank=1), tc.Rule("norm", smaller=4096)]  # the others are kept
    """

    __module__ = "tensorcast"

    match: str = ""  # a regular expression (RE2) that any part of the name may match; "": all names
    to: DTypeLike | None = None  # None: the tensors stay as they are
    rank: int | tuple[int, ...] = ()  # only tensors with one of these numbers of dimensions; (): any
    smaller: int = 0  # only tensors with fewer elements; 0: any


Rules: TypeAlias = "Mapping[str, DTypeLike | None] | Iterable[Rule | tuple[str, DTypeLike | None]]"

_SHARD_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
                "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def patterns(given: Patterns) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _ranks(given: int | Iterable[int]) -> list[int]:
    return [given] if isinstance(given, int) else list(given)


def rule_rows(rules: Rules) -> list[tuple[str, Any, list[int], int]]:
    if isinstance(rules, str):
        raise TypeError("rules= is a mapping of regular expressions to dtypes, not a string")
    if isinstance(rules, Mapping):
        made = [Rule(match, to) for match, to in cast("Mapping[str, Any]", rules).items()]
    else:
        made = [rule if isinstance(rule, Rule) else Rule(*rule) for rule in rules]
    return [(rule.match, rule.to, _ranks(rule.rank), rule.smaller) for rule in made]


def shard_bytes(size: int | str | None) -> int:
    """A size such as ``"5GB"`` or ``"512MiB"`` as bytes; ``None`` is 0."""
    if size is None:
        return 0
    text = str(size).strip()
    digits = text.rstrip("BKMGTIbkmgti ")
    unit = text[len(digits) :].strip().upper()
    try:
        bytes_ = int(float(digits) * _SHARD_UNITS["" if unit == "B" else unit])
    except (ValueError, KeyError, OverflowError):
        bytes_ = 0
    if bytes_ <= 0:
        raise CastError(f'max_shard_size={size!r} is not a size; write "5GB", "512MiB" or a number of bytes')
    return bytes_


def selection(
    to: DTypeLike | None,
    rules: Rules,
    include: Patterns,
    exclude: Patterns,
    keep_rank: int | Iterable[int],
    keep_smaller: int,
    preset: Preset | None,
    raw_codes: bool,
) -> dict[str, Any]:
    """The fields of a request that choose tensors and types."""
    if preset not in (None, "weights-only"):
        raise CastError(f'preset={preset!r} is not a preset; the only one is "weights-only"')
    return {
        "to": to,
        "rules": rule_rows(rules),
        "include": patterns(include),
        "exclude": patterns(exclude),
        "keep_rank": _ranks(keep_rank),
        "keep_smaller": keep_smaller,
        "weights_only": preset is not None,
        "raw_codes": raw_codes,
    }


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
    shards = tuple(ConvertedShard(**row) for row in done.pop("shards"))
    needs = done.pop("requirements")
    requirements = None if needs is None else Requirements(**needs)
    return ConvertResult(tensors=tuple(tensors), shards=shards, requirements=requirements, **done)
