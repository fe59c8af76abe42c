# SPDX-License-Identifier: Apache-2.0
"""The cases of block recipes: rows of numbers, and the codes and scales that each tool makes of them."""

import numpy as np
from casts import drawn

import tensorcast as tc

COLUMNS = ["scheme", "recipe", "options", "source", "shape", "input", "codes", "scales", "global_scale", "zero_points", "tags"]
GGUF_SUPER_BLOCK, WIDTH = 256, 64


def float32(bits):
    return np.array(bits, np.uint32).view(np.float32)


def made(name, count, low, high):
    """float32 of both signs with exponents in a range."""
    bits = drawn(name, count, 40)
    return float32([(b & 1) << 31 | (127 + low + (b >> 1 & 0xFFFF) % (high - low + 1)) << 23 | b >> 17 for b in bits])


def rows(width):
    """(tag, a row of float32 of the width): what makes tools differ."""
    for i in range(4):
        yield "random", made(f"random {i}", width, -6, -2)
    for i in range(2):
        yield "wide", made(f"wide {i}", width, -20, 20)
    yield "small", made("small", width, -126, -110)
    yield "large", made("large", width, 100, 126)
    ties = np.resize(np.arange(-16, 17, dtype=np.float32) / 4, width)
    for top in (6, 7, 7.5, 28, 127, 127.5, 448, 480):
        row = ties.copy()
        row[width // 3] = top
        yield "tie", row
    for top in (1, 1.5, 1.75, np.nextafter(np.float32(1.75), np.float32(2)), np.nextafter(np.float32(1.75), np.float32(1)), 1.875):
        row = made("power", width, -9, -3)
        row[5] = top
        yield "power-of-two", row
    yield "zero", np.zeros(width, np.float32)
    signed = np.zeros(width, np.float32)
    signed[::2] = -0.0
    signed[7] = 1e-30
    yield "negative-zero", signed
    yield "subnormal", float32([b & 0x807FFFFF for b in drawn("subnormal", width, 32)])
    one = np.zeros(width, np.float32)
    one[3] = -3000
    yield "outlier", one


def variants(scheme):
    if scheme == "int4-group":
        return [{"group_size": 32}, {"group_size": 32, "symmetric": False}]
    return [{}, {"power_of_two_scales": True}] if scheme == "fp8-block" else [{}]


def hexadecimal(array):
    """Little-endian elements in order, two digits a byte of the element, the high digits first; of packed codes, the bytes."""
    if array is None:
        return "-"
    array = np.ascontiguousarray(array).reshape(-1)
    size = array.dtype.itemsize
    return "".join(f"{int.from_bytes(code.tobytes(), 'little'):0{2 * size}x}" for code in array)


def quantized(row, scheme, recipe, options):
    if scheme in tc_gguf():
        return [hexadecimal(tc.gguf_quantize(row, scheme)), "-", "-", "-"]
    q = tc.quantize(row, scheme, recipe=recipe, **options)
    shared = None if q.global_scale is None else np.float32(q.global_scale)
    return [hexadecimal(q.element_codes()), hexadecimal(q.scales), hexadecimal(shared), hexadecimal(q.zero_points)]


def tc_gguf():
    return {row["scheme"] for row in tc.recipes() if row["spelling"] == "gguf"}


def lines(scheme):
    width = GGUF_SUPER_BLOCK if scheme.endswith("_k") else WIDTH
    for recipe in (row["recipe"] for row in tc.recipes() if row["scheme"] == scheme):
        for options in variants(scheme):
            for source in ("float32", "bfloat16"):
                for tag, row in rows(width):
                    weight = row[None] if source == "float32" else tc.cast(row[None], "bfloat16")
                    try:
                        parts = quantized(weight, scheme, recipe, options)
                    except tc.CastError:  # an option that the recipe lacks
                        continue
                    words = ",".join(f"{name}={str(value).lower()}" for name, value in options.items()) or "-"
                    given = hexadecimal(weight)
                    yield "\t".join([scheme, recipe, words, source, f"1x{width}", given, *parts, tag])


def all_files():
    for scheme in dict.fromkeys(row["scheme"] for row in tc.recipes()):
        yield f"blocks/{scheme}.tsv", COLUMNS, list(lines(scheme))
