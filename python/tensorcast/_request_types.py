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
SourceTypes: TypeAlias = "DTypeLike | Mapping[str, DTypeLike] | None"


@dataclasses.dataclass(frozen=True)
class Rule:
    """One of ``rules=`` with conditions beside the name.

    The first rule that applies decides; tensors that none applies to are kept.

    Examples:
        >>> rules = [tc.Rule(rank=1), tc.Rule("embed", "bfloat16"), tc.Rule("", "float16", smaller=4096)]
        >>> done = tc.convert("model.safetensors", "new.safetensors", rules=rules)
        >>> [(row.name, row.to) for row in done.tensors]
        [('embed.weight', 'bfloat16'), ('layers.0.mlp.up_proj.weight', 'float32'), ('norm.weight', 'float32')]
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
