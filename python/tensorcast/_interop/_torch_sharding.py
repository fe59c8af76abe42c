# SPDX-License-Identifier: Apache-2.0
"""How DTensor, and with it FSDP2, casts: each device its own elements. See _torch_hooks.py."""

from __future__ import annotations

from typing import Any

from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

from ._torch import _NAME, _PAIRS
from ._torch_operator import OPERATOR, SCALED, torch_type


def placements(x: Any, to: str, *scale: Any, rounding: str = "auto", **_: Any) -> list[Any]:
    """The result is placed as the input. Partial sums are added before, as a cast of a sum is no sum of casts."""
    dims = len(x.shape)
    if _PAIRS in (_NAME.get(x.tensor_meta.dtype), _NAME[torch_type(to)]):
        dims -= 1  # a pair stays on one device
    if any(len(each.shape) > 0 for each in scale) or rounding == "stochastic":
        dims = 0  # the scales of rows are where the rows are; random bits go by an element's place in the whole tensor
    rest = [None, *(Replicate() for _ in scale)]
    return [([place], [place, *rest]) for place in (Replicate(), *(Shard(dim) for dim in range(dims)))]


register_sharding([OPERATOR, SCALED])(placements)
