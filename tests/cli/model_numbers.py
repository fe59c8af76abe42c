# SPDX-License-Identifier: Apache-2.0
"""Numbers and bytes of small checkpoints: the types of codes and scales, packing, and safetensors files."""

import json
import math
import struct

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U8": 1, "I8": 1, "I16": 2, "I32": 4, "U32": 4, "I64": 8}


def f32(number):
    """Rounds once to float32; sums and products of float32 are exact enough in a double for that."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def mul(a, b):
    return f32(a * b)


def e4m3(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 0x7F == 0x7F:
        return math.nan
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10))


def e8m0(code):
    return math.nan if code == 255 else 2.0 ** (code - 127)


E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
NF4 = [f32(x) for x in (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)]
FP4 = [f32(x / 12) for x in (0, 0.0625, 8, 12, 4, 6, 2, 3, 0.0, -0.0625, -8, -12, -4, -6, -2, -3)]


def e2m3(code):
    sign = -1.0 if code & 32 else 1.0
    exponent, mantissa = code >> 3 & 3, code & 7
    return sign * (mantissa / 8 if exponent == 0 else (8 + mantissa) / 8 * 2.0 ** (exponent - 1))


def to_bfloat16(number):
    if math.isnan(number):
        return 0x7FC0
    word = struct.unpack("<I", struct.pack("<f", number))[0]
    return (word + 0x7FFF + (word >> 16 & 1)) >> 16


def bfloat16(number):
    """A number as bfloat16 holds it."""
    return struct.unpack("<f", struct.pack("<I", to_bfloat16(number) << 16))[0]


def floats(numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def halves(numbers):
    return struct.pack(f"<{len(numbers)}e", *numbers)


def brains(numbers):
    return struct.pack(f"<{len(numbers)}H", *map(to_bfloat16, numbers))


def words(numbers):
    return struct.pack(f"<{len(numbers)}I", *(number & 0xFFFFFFFF for number in numbers))


def stream(codes, bits, width=32):
    """A dense stream of bits, lowest first, in whole words."""
    whole = sum((code & (1 << bits) - 1) << i * bits for i, code in enumerate(codes))
    count = -(-len(codes) * bits // width)
    return [whole >> i * width & (1 << width) - 1 for i in range(count)]


def safetensors(tensors, metadata=None):
    """The bytes of a file; `tensors` is {name: (dtype, shape, bytes)}."""
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (dtype, shape, content) in tensors.items():
        assert len(content) == math.prod(shape) * SIZES[dtype], (name, dtype, shape, len(content))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
