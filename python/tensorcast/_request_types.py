# SPDX-License-Identifier: Apache-2.0
"""What requests name tensors by: patterns, rules, new names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from ._options import DTypeLike

Pattern: TypeAlias = "str | re.Pattern[str]"
Patterns: TypeAlias = "Pattern | Iterable[Pattern]"
Preset: TypeAlias = Literal["weights-only"]


@dataclasses.dataclass(frozen=True)
class Rule:
    """One of ``rules=`` with conditions beside the name.

    >>> rules = [tc.Rule("lm_head", "float16"), tc.Rule(rank=1), tc.Rule("norm", smaller=4096)]  # the others are kept
    """

    __module__ = "tensorcast"

    match: Pattern = ""  # a regular expression (RE2) that any part of the name may match; "": all names
    to: DTypeLike | str | None = None  # a type, or a scheme such as "nvfp4"; None: the tensors stay as they are
    rank: int | tuple[int, ...] = ()  # only tensors with one of these numbers of dimensions; (): any
    smaller: int = 0  # only tensors with fewer elements; 0: any
    scale: float | None = None  # in the place of that of the call; None: that
    kind: str | tuple[str, ...] = ()  # only tensors of one of these kinds, such as "attention"; (): any


Renames: TypeAlias = "Mapping[str, str] | Mapping[re.Pattern[str], str] | Iterable[tuple[Pattern, str]]"
_To: TypeAlias = "DTypeLike | None"
_ByPattern: TypeAlias = "Mapping[str, _To] | Mapping[re.Pattern[str], _To] | Mapping[Pattern, _To]"
Rules: TypeAlias = "_ByPattern | Iterable[Rule | tuple[Pattern, _To]]"
