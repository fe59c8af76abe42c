# SPDX-License-Identifier: Apache-2.0
"""Arrays as the installed ``onnx`` has them. Since 1.19 narrow types are ml_dtypes'. Before, they were dtypes of onnx's
own (an integer with a name on it), or float32 in 1.16; and bfloat16 was uint16, which its node tests demand."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .. import _core
from .._cast import _numpy_types
from .._core import cast

_OWN_NAMES = {
    "bfloat16": "bfloat16",
    "e4m3fn": "float8_e4m3fn",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2": "float8_e5m2",
    "e5m2fnuz": "float8_e5m2fnuz",
    "uint4": "uint4",
    "int4": "int4",
    "float4e2m1": "float4_e2m1fn",
}


def native(x: Any, elem_type: int = 0) -> Any:
    """Returns the array in its real type: NumPy's or ml_dtypes'. ``elem_type`` is the type in the model."""
    if not isinstance(x, np.ndarray):
        return x
    own = _OWN_NAMES.get((x.dtype.names or ("",))[0])
    if own is not None:
        codes = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
        if _numpy_types.is_packable(own):
            codes = codes & np.uint8((1 << _core.bit_width(own)) - 1)
        return codes.view(_numpy_types.numpy_type(own)).reshape(x.shape)
    if x.dtype == np.uint16 and elem_type == TensorProto.BFLOAT16:
        return x.view(_numpy_types.numpy_type("bfloat16"))
    if x.dtype == np.float32 and elem_type > TensorProto.COMPLEX128:  # one of the narrow types
        return cast(x, elem_type, saturate=False)
    return x


@functools.cache
def _own_type(name: str) -> np.dtype[Any] | None:
    """onnx's type for a narrow type of ours; None if it is the same."""
    number = next(row["onnx"] for row in _core.dtypes() if row["name"] == name)
    if number <= TensorProto.COMPLEX128 or number not in helper.get_all_tensor_dtypes():
        return None
    probe = numpy_helper.to_array(helper.make_tensor("probe", number, [1], [1.0]))
    if probe.dtype == _numpy_types.numpy_type(name):
        return None
    return np.dtype(np.uint16) if name == "bfloat16" else probe.dtype


def foreign(x: Any) -> Any:
    """Returns the array as onnx would read it from a TensorProto."""
    if not isinstance(x, np.ndarray) or x.dtype.kind in "OUT":
        return x
    own = _own_type(_numpy_types.name_of(x))
    if own is None:
        return x
    if own == np.float32:
        return cast(x, "float32")
    if own.kind == "i":  # int4 in int8: with its sign
        return cast(x, "int8").view(own)
    return np.ascontiguousarray(x).view(own).reshape(x.shape)
