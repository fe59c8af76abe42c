# SPDX-License-Identifier: Apache-2.0
"""Single float32 operations on a device, as the engine computes them: one rounding each, subnormal numbers kept."""

from __future__ import annotations

import functools

import torch

from .._errors import UnsupportedError
from ._convert import CARRIER, cast_codes, options_key, plan_of

_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float64: "float64"}


@functools.cache
def check_arithmetic(device: torch.device) -> None:
    """Multiplies and divides a few numbers, once for each device, and refuses one that rounds or flushes otherwise."""
    a = torch.tensor([3.0, 1e-20, 1.0000001, 7.0, 448.0, 1e-40], dtype=torch.float32)
    b = torch.tensor([7.0, 1e-20, 1.0000001, 448.0, 2688.0, 0.1], dtype=torch.float32)
    there = a.to(device), b.to(device)
    for here, made in ((a * b, there[0] * there[1]), (a / b, there[0] / there[1])):
        if not torch.equal(here.view(torch.int32), made.cpu().view(torch.int32)):
            raise UnsupportedError(
                f"float32 of {device} does not round as IEEE 754 says; move the tensors to the host, e.g. with .cpu()"
            )


def constant(number: float, like: torch.Tensor) -> torch.Tensor:
    """A tensor of float32: PyTorch divides by a Python number as a product with its inverse on some devices."""
    return torch.full((), number, dtype=torch.float32, device=like.device).expand(like.shape)


def converted(x: torch.Tensor, to: str, from_: str | None = None) -> torch.Tensor:
    """Codes of another type. ``from_``: the type of codes in integers."""
    plan = plan_of(from_ or _NAMES[x.dtype], to, options_key({}), False)
    return cast_codes(x, plan, None, True)[0]


def as_float32(codes: torch.Tensor, from_: str) -> torch.Tensor:
    """The numbers of a type whose numbers are all float32's."""
    return converted(codes, "float32", from_).view(torch.float32)


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """float32 numbers rounded to a type and back."""
    return x if dtype == torch.float32 else as_float32(converted(x, _NAMES[dtype]), _NAMES[dtype])


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a * b``, whose NaNs are those of x86: the first operand's, made quiet; a made one is negative."""
    made = a * b
    if a.device.type == "cpu":
        return made
    bits = torch.full_like(made, float("nan")).view(torch.int32) | torch.iinfo(torch.int32).min
    for operand in (b, a):
        bits = torch.where(operand.isnan(), operand.view(torch.int32) | 0x400000, bits)
    return torch.where(made.isnan(), bits, made.view(torch.int32)).view(torch.float32)


def codes_in(x: torch.Tensor, bits: int) -> torch.Tensor:
    """A tensor as the integers that hold its codes."""
    carrier = CARRIER[bits]
    return x if x.dtype == carrier else x.view(carrier)
