# SPDX-License-Identifier: Apache-2.0
"""Zarr's codec ``cast_value``, and its conversion of arrays with the signature of the package ``cast_value_rs``.

Installing tensorcast is enough for zarr-python 3 to find the codec:

>>> import zarr, tensorcast.zarr
>>> codec = tensorcast.zarr.CastValue(data_type="int16", rounding="nearest-even")
>>> array = zarr.create_array({}, shape=(64, 256), dtype="float32", filters=[codec])

Where the package ``cast-value`` is installed, too, zarr's configuration chooses:
``zarr.config.set({"codecs.cast_value": "tensorcast.zarr.CastValue"})``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._interop._cast_value import cast_array, cast_array_into

if TYPE_CHECKING:
    from ._interop._zarr import CastValue

__all__ = ["CastValue", "cast_array", "cast_array_into"]


def __getattr__(name: str) -> Any:
    if name != "CastValue":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._interop._zarr import CastValue  # here: arrays are converted without zarr, too

    return CastValue
