# SPDX-License-Identifier: Apache-2.0
"""Arrays to convert: every code of the small types, and what is hard in the large ones."""

import ml_dtypes
import numpy as np

import tensorcast as tc

NAMES = [row.name for row in tc.dtypes() if row.name != "string"]
BITS = {row.name: row.bits for row in tc.dtypes()}


def numpy_type(name):
    return np.dtype(name) if hasattr(np, name) else np.dtype(getattr(ml_dtypes, name))


NUMPY_TYPES = [name for name in NAMES if hasattr(np, name) or hasattr(ml_dtypes, name)]
ONNX_TYPES = [row.name for row in tc.dtypes() if row.name in NUMPY_TYPES and row.onnx]
SUB_BYTE = [name for name in NUMPY_TYPES if BITS[name] < 8]


def codes(array):
    """The bits of an array as unsigned integers; types under 8 bits without what lies above them."""
    name = array.dtype.name
    bits = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
    bits = bits.reshape(-1).view(f"u{array.itemsize}").reshape(array.shape)
    return bits & ((1 << BITS[name]) - 1) if BITS.get(name, 8) < 8 else bits


def samples(name):
    """A flat array of a type: all its codes up to 16 bits, else random bits among boundary values."""
    dtype = numpy_type(name)
    if name == "bool":
        return np.array([False, True])
    if BITS[name] < 8:
        return np.arange(1 << BITS[name], dtype=np.uint8).view(dtype)
    if BITS[name] <= 16:
        return np.arange(1 << BITS[name], dtype=f"u{dtype.itemsize}").view(dtype)
    random = np.random.default_rng(20).integers(0, 1 << BITS[name], 4000, dtype=f"u{dtype.itemsize}", endpoint=False)
    near = np.arange(-300, 300)
    if dtype.kind == "f":
        special = [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            448,
            464,
            480,
            57344,
            61440,
            65504,
            65520,
            2.0**-149,
            2.0**31,
            2.0**63,
        ]
        return np.concatenate(
            [random.view(dtype), near.astype(dtype), (near / 64).astype(dtype), np.array(special, dtype)]
        )
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, info.max - 1, info.max], dtype)
    return np.concatenate([random.view(dtype), near.astype(dtype), ends])


def packed(array):
    """The storage of an array's elements, by Python's integers: slow and plain."""
    bits = BITS[array.dtype.name]
    if bits >= 8:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    number = sum(int(code) << (bits * i) for i, code in enumerate(codes(array).ravel()))
    return np.frombuffer(number.to_bytes((array.size * bits + 7) // 8, "little"), np.uint8)
