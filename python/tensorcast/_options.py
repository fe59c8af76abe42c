# SPDX-License-Identifier: Apache-2.0
"""The options of conversions, as type checkers and ``inspect.signature`` see them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from ._names import DTypeName as DTypeName
from ._option_list import DEFAULTS as DEFAULTS
from ._option_list import CastOptions as CastOptions
from ._option_list import CommonOptions
from ._option_list import FloatString as FloatString
from ._option_list import PromoteRules as PromoteRules


class TorchDType(Protocol):
    """A ``torch.dtype``, without importing PyTorch."""

    @property
    def is_complex(self) -> bool: ...
    @property
    def is_floating_point(self) -> bool: ...
    @property
    def itemsize(self) -> int: ...


DTypeLike: TypeAlias = "DTypeName | str | int | type[Any] | np.dtype[Any] | TorchDType"
"""A name such as ``"float8_e4m3fn"``, a NumPy, ml_dtypes or torch type, or an ONNX number."""

Scale: TypeAlias = "float | npt.NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]"


class ArrayCastOptions(CommonOptions, total=False):
    """Those of :func:`tensorcast.cast`, whose ``scale`` may also be an array."""

    scale: Scale


CastOptions.__module__ = "tensorcast"
_CAST_TYPES = get_type_hints(CastOptions)

_F = TypeVar("_F", bound=Callable[..., Any])


def shows(options: type, defaults: Mapping[str, Any]) -> Callable[[_F], _F]:
    """Makes ``inspect.signature`` and ``help`` list the options behind a function's ``**options``, which ``options``
    describes."""
    names = {name: getattr(each, "__forward_arg__", each) for name, each in options.__annotations__.items()}
    types = {name: _CAST_TYPES.get(name, each) for name, each in names.items()}
    lines = (options.__doc__ or "").partition("Args:\n")[2].rstrip()

    def shown(function: _F) -> _F:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
            for name, default in defaults.items()
        ]
        setattr(function, "__signature__", signature.replace(parameters=[*named, *added]))
        if lines and function.__doc__ is not None:
            function.__doc__ = re.sub(r" {8}\*\*options:.*(?:\n {12}.*)*", lambda _: lines, function.__doc__)
        return function

    return shown


shows_options = shows(CastOptions, DEFAULTS)
