# SPDX-License-Identifier: Apache-2.0
"""Tells PyTorch's compiler what the operators are made of, so that it fuses them. Imports the compiler: see
_interop/_torch_hooks.py."""

from __future__ import annotations

from typing import Any

import torch._inductor.decomposition as inductor
import torch._inductor.lowering as lowering

from .._interop._torch_operator import OPERATOR as CAST
from .._interop._torch_operator import SCALED
from ._operator import OPERATOR, decomposed, decomposed_off_the_cpu

_INDUCTOR: Any = inductor
_INDUCTOR.decompositions[OPERATOR] = decomposed
_INDUCTOR.decompositions[CAST] = _INDUCTOR.decompositions[SCALED] = decomposed_off_the_cpu
if hasattr(_INDUCTOR.fast_random_decomps, "cache_clear"):  # a copy of the table
    _INDUCTOR.fast_random_decomps.cache_clear()

# A decomposition may leave the operator as it is, on the CPU for one: then it is called.
_LOWERING: Any = lowering
for _operator in (OPERATOR, CAST, SCALED):
    _LOWERING.make_fallback(_operator, _LOWERING.constrain_to_fx_strides, warn=False, override_decomp=True)
