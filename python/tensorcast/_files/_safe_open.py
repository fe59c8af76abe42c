# SPDX-License-Identifier: Apache-2.0
"""What ``safetensors.safe_open`` has, for files that :func:`tensorcast.open` opened."""

from __future__ import annotations

from collections.abc import KeysView
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from .._errors import CastError

if TYPE_CHECKING:
    import torch

Device: TypeAlias = "str | int | torch.device | None"

DTYPE_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float6_e2m3fn": "F6_E2M3", "float6_e3m2fn": "F6_E3M2", "float4_e2m1fn": "F4", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip


class Metadata(dict[str, str]):
    """The texts of a file's header. It may be called, as the method of ``safe_open``; that gives ``None`` if there are none."""

    __module__ = "tensorcast"

    def __call__(self) -> Metadata | None:
        return self or None


class Names(KeysView[str]):
    """The names of a file's tensors, in its order."""

    __module__ = "tensorcast"

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return list(self)[index]


def device_of(given: Device, as_torch: bool) -> Any:
    """The device of PyTorch; ``None`` for the host."""
    if given is None or str(given) == "cpu":
        return None
    if not as_torch:
        raise CastError(f"device={given!r} is for tensors of PyTorch; pass framework='pt', too")
    import torch

    try:
        return torch.device(given)
    except (RuntimeError, TypeError) as error:
        raise CastError(f"device={given!r} is no device of PyTorch: {error}") from None


def is_torch(framework: str) -> bool:
    if framework not in ("np", "numpy", "pt", "torch"):
        raise CastError(f"framework= is 'np' for NumPy or 'pt' for PyTorch, not {framework!r}")
    return framework in ("pt", "torch")
