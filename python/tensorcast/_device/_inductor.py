# SPDX-License-Identifier: Apache-2.0
"""Tells PyTorch's compiler what the operators are made of, so that it fuses them. Imports the compiler: see
_interop/_torch_hooks.py."""

from __future__ import annotations

from typing import Any

import torch._inductor.decomposition as inductor

from .._interop._torch_operator import OPERATOR as CAST
from .._interop._torch_operator import SCALED
from ._operator import OPERATOR, decomposed, decomposed_off_the_cpu

_INDUCTOR: Any = inductor
_INDUCTOR.decompositions[OPERATOR] = decomposed
_INDUCTOR.decompositions[CAST] = _INDUCTOR.decompositions[SCALED] = decomposed_off_the_cpu
if hasattr(_INDUCTOR.fast_random_decomps, "cache_clear"):  # a copy of the table
    _INDUCTOR.fast_random_decomps.cache_clear()
