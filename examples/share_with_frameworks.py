# SPDX-License-Identifier: Apache-2.0
"""Reads float8 weights from a file and lends them to PyTorch without a copy.

    python share_with_frameworks.py model.safetensors TENSOR
"""

import sys

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

import tensorcast as tc


def lend(path: str, name: str) -> torch.Tensor:
    with tc.open(path) as file:  # reads the header
        weights = file[name]  # reads this tensor alone
    return from_dlpack(tc.dlpack(weights))


def main() -> int:
    try:
        tensor = lend(sys.argv[1], sys.argv[2])
    except KeyError as missing:
        print(f"there is no tensor {missing}; there are {', '.join(tc.open(sys.argv[1]))}", file=sys.stderr)
        return 1
    borrowed = tc.from_dlpack(tensor)  # and back, on the same memory
    print(tensor.dtype, tuple(tensor.shape), borrowed.ctypes.data == tensor.data_ptr())
    print("largest", float(np.abs(tc.cast(borrowed, np.float32)).max()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
