# SPDX-License-Identifier: Apache-2.0
"""Prints native_blocks.json: for each scheme and recipe the digest of what tc.quantize makes of a sample.

python web/tests/native_blocks.py > web/tests/native_blocks.json, with the Python package and its tests' requirements.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tests"))

import block_samples  # noqa: E402


def digest(codes, scales, global_scale, decoded):
    """Of bytes, but for the global scale: None or a number."""
    scale = b"" if global_scale is None else np.float32(global_scale).tobytes()
    return hashlib.sha256(b"|".join([codes, scales, scale, decoded])).hexdigest()[:16]


if __name__ == "__main__":
    import tensorcast as tc

    weights = block_samples.sample("weights", "float32")
    made = {}
    for row in tc.recipes():
        q = tc.quantize(weights, row["scheme"], recipe=row["recipe"])
        scales = b"" if q.scales is None else np.ascontiguousarray(q.scales).tobytes()
        decoded = np.ascontiguousarray(q.dequantize("float32")).tobytes()
        made[f"{row['scheme']} {row['recipe']}"] = digest(np.ascontiguousarray(q.codes).tobytes(), scales, q.global_scale, decoded)
    print(json.dumps(made, indent=1))
