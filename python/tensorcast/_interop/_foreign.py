# SPDX-License-Identifier: Apache-2.0
"""Arrays of libraries that have no DLPack or buffers for all of theirs: Series, pyarrow, tensors of OpenVINO, TensorProtos."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .._cast import _numpy_types

if TYPE_CHECKING:
    import numpy.typing as npt


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def is_foreign(x: Any) -> bool:
    kind, library = type(x).__name__, _library(x)
    return (
        (kind in ("Series", "Index", "RangeIndex") and library in ("pandas", "polars"))
        or (kind == "Tensor" and library == "openvino")
        or (kind.endswith("Array") and library == "pyarrow")
        or (kind == "TensorProto" and hasattr(x, "SerializeToString"))
    )


def array_of(x: Any) -> npt.NDArray[Any]:
    """The elements as a NumPy array; those of OpenVINO, and of most Series, are not copied.

    Raises:
        TypeError: missing values, or a type that no cast knows.
    """
    if type(x).__name__ == "TensorProto":
        return _of_proto(x)
    if _library(x) == "openvino":
        return _of_openvino(x)
    if _library(x) == "pyarrow":
        return _of_pyarrow(x)
    if _library(x) == "polars" and x.null_count():
        raise TypeError(f"the Series has {x.null_count()} missing values; pass x.fill_null(value)")
    array: npt.NDArray[Any] = x.to_numpy()
    # NumPy's own floats have NaN, which is a number here; those of pandas' Float32 and the like are missing.
    is_missing = _library(x) == "pandas" and not (isinstance(x.dtype, np.dtype) and x.dtype.kind == "f")
    if is_missing and x.isna().any():
        raise TypeError(f"the {type(x).__name__} has {int(x.isna().sum())} missing values; pass x.fillna(value)")
    return array


def _of_pyarrow(x: Any) -> npt.NDArray[Any]:
    kind = type(x).__name__
    if x.null_count:
        raise TypeError(f"the {kind} has {x.null_count} missing values; pass x.fill_null(value)")
    if str(x.type).startswith("struct"):
        raise TypeError(f"a pyarrow {kind} of {x.type} has an array for each field; pass x.field(name)")
    if getattr(x.type, "num_fields", 0):
        raise TypeError(f"a pyarrow {kind} of {x.type} is not an array of numbers; pass numpy.stack(x.to_numpy(zero_copy_only=False)) "
                        "for rows of one length, or x.flatten()")  # fmt: skip
    # Bools have a bit each, and chunks are apart: only these are copied.
    array: npt.NDArray[Any] = x.to_numpy() if kind == "ChunkedArray" else x.to_numpy(zero_copy_only=False)
    return array


def _of_openvino(x: Any) -> npt.NDArray[Any]:
    ours: Any = importlib.import_module("tensorcast.openvino")
    name = ours._name(x.element_type)
    if name is None:
        raise TypeError(f"no cast knows OpenVINO's {x.element_type.to_string()}")
    if name in ours._PACKED:
        return _numpy_types.unpack(x.data.view(np.uint8).reshape(-1), name, tuple(x.shape))
    array: npt.NDArray[Any] = ours._array(x, name)
    return array


def _of_proto(x: Any) -> npt.NDArray[Any]:
    from onnx import TensorProto, numpy_helper

    from . import _onnx_arrays

    if x.data_location == TensorProto.EXTERNAL:
        raise TypeError("the TensorProto has its elements in a file; onnx.load_external_data_for_model() reads them")
    array: npt.NDArray[Any] = _onnx_arrays.native(numpy_helper.to_array(x), x.data_type)
    return array
