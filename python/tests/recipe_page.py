# SPDX-License-Identifier: Apache-2.0
"""Writes docs/recipes.md from the table of recipes; test_quantize.py compares the page.

    python recipe_page.py > docs/recipes.md
"""

import block_samples as samples
import numpy as np

import tensorcast as tc

HEAD = """# Recipes

Written by `python/tests/recipe_page.py` from the table itself (`tc.recipes()`). [blocks.md](blocks.md#quantizing) says how
recipes are used and checked.

`x` is a weight, `s` the scale of its block, `g` that of the tensor, `b` an E8M0 byte; `amax` is the largest magnitude of what
shares a scale, `bmax` that of a block where `amax` is the tensor's. `max` is the largest number of the element's type and
`emax` its exponent. **`w(...)` rounds to the weights' type**; every other step is rounded to float32. `1 / t * n` is two
roundings. The first recipe of a scheme is its default. `source`: read in code for GPUs and compared with NumPy; the others
were compared with the tool on a CPU, byte for byte; of `quark`, without the signs of zeros in float4 and float6, and
of NVFP4's `te`, with its reference in PyTorch, but for -0.
"""

TAIL = """
## Where they contradict themselves, or each other

| recipe | input | what it writes |
|---|---|---|
| `floor`, `ceil`, `even` | a block whose largest number is 2^-125, in float4 | byte 0 means 2^-127, but numbers were divided by 2^-126: they come back halved |
| `quark` | the same | byte 1 means 2^-126, but numbers were divided by 2^-127: they come back doubled |
| `quark` | largest number 1.76 * 2^127, in float4 | byte 254; below 1.75 * 2^127 it is 252, as the limit 127 comes after infinity less 2 |
| `quark` | -0; in float4 and float6 of scale 1 also -0.01 | float4: 0, but -0 by its own kernels for GPUs (fake.cu, Triton); float6: 0; float8: -0. Here -0 in all |
| `te` | NVFP4, -0 | 0 by its reference in PyTorch, which has -0 for -0.01; its kernels for GPUs convert by PTX's `cvt`, which keeps the sign. Here -0 |
| `rceil-torchao` | largest number 0x42c00001 (96.00001), in float4 | 131; the GPU, and `rceil`, write 132 |
| `rceil-torchao` | largest number so small that the byte is 0 | numbers are multiplied by 1: zeros |
| `compressed-tensors` | largest number 480, in MXFP8 | 128; `even` writes 127, which is 448 at most |
| `compressed-tensors` | MXFP4 and MXFP8, largest number 1.75 * 2^127 or more; MXFP6, 1.9375 * 2^127 or more | byte 127 and zeros: the logarithm of infinity |
| `compressed-tensors` | MXFP4 and MXFP8 of float16, largest number 0, below 0.75 * 2^-14, or 57344 and more; MXFP6, below 0.9375 * 2^-14, or 63488 and more | byte 127 and zeros: the same |
| `comfy` | MXFP8, largest number 2^-120 | byte 0, by whose value 0 numbers were divided: the block saturates |
| `mlx`, `ggml` | MXFP4, largest number 1e-40 or 2^-127 | bytes 248 and 254: the exponent wraps |
| `mlx`, `ggml` | NVFP4, a number 2^25 times its scale | 0: in float32, all distances are equal |
| `modelopt` | MXFP4, 0 | -0 (code 8) |
| `deepgemm` | a block below 1e-4 | the scale of 1e-4: digits are lost |
| `torchao`, `modelopt`, `comfy` | float8 of a row or tensor of zeros, NVFP4 of zeros | NaN; without a named recipe, scale 1 and zeros |

0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0 and -0.1 in MXFP4 of scale 1 are the codes 0 2 2 4 4 6 6 8 8 of `rceil` and torchao's
modes, 0 2 2 4 4 6 6 0 8 of `compressed-tensors`, 0 1 2 3 4 5 6 8 8 of `modelopt`, 0 1 2 3 4 5 6 0 0 of `deepgemm`, `mlx` and
`ggml`.
"""

SAME = """
## Recipes that no byte tells apart

Computed by the same script: recipes of a scheme that make the same codes and scales of the same weights, joined by `=`. So
`tcast inspect QUANTIZED --against ORIGINAL` names them together. The inputs are samples of `python/tests/block_samples.py`,
32 768 to 65 536 numbers each: **normal** numbers; **weights** with rows of different sizes and outliers; **zeros**: blocks and
rows of zeros of both signs among normal numbers; **powers**: largest numbers at and beside powers of two, 1.5 and 1.75 times
them. Tensor scales are compared as factors. Schemes that are not listed have one recipe.
"""
INPUTS = ["normal", "weights", "zeros", "powers"]


def _made(x, row):
    q = tc.quantize(x, row["scheme"], recipe=row["recipe"])
    factor = np.float32(1 if q.global_scale is None else q.global_scale)
    if row["recipe"] == "compressed-tensors" and q.global_scale is not None:
        factor = np.float32(1) / factor  # stored as a divisor
    return q.element_codes().tobytes() + q.scales.tobytes() + factor.tobytes()


def same(scheme):
    """The lines of a table of recipes with equal bytes."""
    lines = [f"### {scheme}", "", "| weights | the same bytes |", "|---|---|"]
    rows = [row for row in tc.recipes() if row["scheme"] == scheme]
    for dtype in ("bfloat16", "float32"):
        for name in INPUTS:
            x = samples.sample(name, dtype)
            groups = {}
            for row in rows:
                groups.setdefault(_made(x, row), []).append(f"`{row['recipe']}`")
            shown = [" = ".join(group) for group in groups.values() if len(group) > 1]
            lines.append(f"| {name}, {dtype} | {'; '.join(shown) or 'all differ'} |")
    return [*lines, ""]


def page():
    lines = [HEAD]
    for scheme in tc.schemes():
        lines += [f"## {scheme}", "", "| recipe | scale | code | compared with |", "|---|---|---|---|"]
        for row in tc.recipes():
            if row["scheme"] == scheme:
                lines.append(f"| `{row['recipe']}` | {row['scale']} | {row['element']} | {row['compared_with']} |")
        lines.append("")
    tables = [SAME]
    for scheme in tc.schemes():
        if sum(row["scheme"] == scheme for row in tc.recipes()) > 1:
            tables += same(scheme)
    return "\n".join(lines[:-1]) + "\n" + TAIL + "\n".join(tables[:-1]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
