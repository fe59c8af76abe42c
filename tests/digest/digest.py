# SPDX-License-Identifier: Apache-2.0
"""Prints a digest of conversions by the installed package, the same on every machine: all codes of float16 and a million
of float32 to each numeric type, with saturate 1 and 0. scripts/wheel compares those of two wheels."""

import hashlib

import numpy as np

import tensorcast as tc

halves = np.arange(65536, dtype=np.uint16).view(np.float16)
floats = np.random.RandomState(7).bytes(4_000_000)  # which NumPy never changes
floats = np.frombuffer(floats, "<f4").copy()
digest = hashlib.sha256()
count = 0
for saturate in (True, False):
    for numbers in (floats, halves):
        for row in tc.dtypes():
            if row.name != "string":
                result = tc.cast(numbers, row.name, saturate=saturate, packed=row.bits <= 8)
                digest.update(np.ascontiguousarray(result).tobytes())
                count += numbers.size
print(count, digest.hexdigest())
