# SPDX-License-Identifier: Apache-2.0
"""Converts each row of a matrix to int8 with a scale of its own, and back: one rounding each way.

    python quantize_rows.py
"""

import numpy as np
import numpy.typing as npt

import tensorcast as tc


def quantize(x: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
    """The codes, and the scale of each row by which they are to be multiplied."""
    largest = np.abs(x).max(axis=1, keepdims=True).astype(np.float64)
    scales = np.where(largest > 0, largest / 127, 1.0)
    return tc.cast(x, np.int8, scale=1 / scales, rounding="nearest_even", out_of_range="saturate"), scales


def dequantize(codes: npt.NDArray[np.int8], scales: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    return tc.cast(codes, np.float32, scale=scales)


def main() -> None:
    weights = np.random.default_rng(0).normal(0, [[0.01], [1.0], [100.0]], (3, 1000)).astype(np.float32)
    codes, scales = quantize(weights)
    back = dequantize(codes, scales)
    for row, (before, after) in enumerate(zip(weights, back)):
        print(f"row {row}: largest error {np.abs(before - after).max() / np.abs(before).max():.4f} of the largest weight")


if __name__ == "__main__":
    main()
