#!/usr/bin/env python3
"""Writes valid/, invalid/ and the seeds of fuzz/ beside this script. Run it after changing it; the files are checked in."""

import json
import pathlib

HERE = pathlib.Path(__file__).parent


def file(header, data=b"", length=None):
    """`header` is the JSON text, or what becomes it."""
    if isinstance(header, dict):
        header = json.dumps(header, separators=(",", ":"))
    if isinstance(header, str):
        header = header.encode()
    return (len(header) if length is None else length).to_bytes(8, "little") + header + data


def entry(dtype="U8", shape=(4,), begin=0, end=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def one(data=bytes(4), **fields):
    """A file of one tensor `a`, some fields replaced or, if None, left out."""
    a = entry() | fields
    return file({"a": {key: value for key, value in a.items() if value is not None}}, data)


def every_dtype():
    bits = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
            "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
            "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}
    header, begin = {}, 0
    for dtype, width in sorted(bits.items(), key=lambda item: -item[1]):
        end = begin + 4 * width // 8
        header["of " + dtype] = entry(dtype, (2, 2), begin, end)
        begin = end
    return file(header, bytes(i % 251 for i in range(begin)))


VALID = {
    "no-tensors": file("{}"),
    "scalar": file({"a": entry("F32", (), 0, 4)}, b"\0\0\x80\x3f"),
    "empty-tensors": file({"a": entry("F32", (0, 3), 0, 0), "b": entry(), "c": entry("F64", (2, 0), 4, 4)}, bytes(4)),
    "metadata": file({"__metadata__": {"format": "pt", "": "empty key", "é": "\n\"\\"}, "a": entry()}, b"abcd"),
    "metadata-only": file({"__metadata__": {}}),
    "header-order-is-not-data-order": file({"z": entry(begin=4, end=8), "a": entry()}, b"abcdefgh"),
    "padded-with-spaces": file(json.dumps({"a": entry()}) + " " * 13, b"abcd"),
    "escaped-name": file('{"a\\u00e9\\ud83d\\ude00\\"\\/":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', b"abcd"),
    "every-dtype": every_dtype(),
    "huge-dimensions-of-nothing": file({"a": entry("F64", (2**62, 0, 2**62), 0, 0)}),
    "not-aligned": file({"a": entry("U8", (1,), 0, 1), "b": entry("F32", (1,), 1, 5)}, b"\1\0\0\x80\x3f"),
}

INVALID = {
    "empty-file": b"",
    "shorter-than-the-length-field": b"\2\0\0\0",
    "header-beyond-end": file({"a": entry()}, length=1000),
    "header-length-of-all-ones": file("{}", length=2**64 - 1),
    "header-over-100-megabytes": file("{}", length=100_000_001),
    "header-of-no-bytes": file(""),
    "header-is-an-array": file("[]"),
    "header-begins-with-a-space": file(" {}"),
    "header-is-not-json": file("{tensors}"),
    "header-cut-off": file('{"a":{"dtype":"U8","shape":[4],"data_off'),
    "header-with-two-objects": file("{}{}"),
    "header-padded-with-zeros": file("{}\0\0\0\0\0\0"),
    "name-not-utf8": file(b'{"a\xff":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "name-overlong-utf8": file(b'{"a\xc0\xaf":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "name-of-half-a-surrogate": file('{"\\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "arrays-too-deep": file('{"a":' + "[" * 5000 + "]" * 5000 + "}"),
    "objects-too-deep": file('{"a":' * 2000 + "1" + "}" * 2000),
    "tensor-twice": file('{"a":%s,"b":%s,"a":%s}' % tuple(
        json.dumps(entry(begin=i, end=i + 4)) for i in (0, 4, 8)), bytes(12)),
    "tensor-twice-once-escaped": file('{"a":%s,"\\u0061":%s}' % tuple(
        json.dumps(entry(begin=i, end=i + 4)) for i in (0, 4)), bytes(8)),
    "field-twice": file('{"a":{"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]}}', bytes(4)),
    "metadata-twice": file('{"__metadata__":{},"__metadata__":{}}'),
    "metadata-key-twice": file('{"__metadata__":{"k":"1","k":"2"}}'),
    "metadata-of-a-number": file({"__metadata__": {"k": 1}}),
    "metadata-of-null": file({"__metadata__": {"k": None}}),
    "metadata-nested": file({"__metadata__": {"k": {"l": "m"}}}),
    "metadata-is-a-string": file({"__metadata__": "k"}),
    "tensor-is-a-number": file({"a": 1}),
    "tensor-is-an-array": file({"a": []}),
    "field-unknown": one(strides=[1]),
    "dtype-missing": one(dtype=None),
    "dtype-unknown": one(dtype="F7"),
    "dtype-is-a-number": one(dtype=1),
    "shape-missing": one(shape=None),
    "shape-is-a-number": one(shape=4),
    "shape-of-strings": one(shape=["4"]),
    "shape-of-arrays": one(shape=[[4]]),
    "shape-negative": one(shape=[-4]),
    "shape-not-whole": one(shape=[4.5]),
    "shape-beyond-int64": one(shape=[2**63]),
    "shape-beyond-uint64": one(shape=[2**64]),
    "shape-product-overflows": one(shape=[2**40, 2**40]),
    "shape-bytes-overflow": one(dtype="F64", shape=[2**61]),
    "shape-of-65-dimensions": one(shape=[1] * 64 + [4]),
    "offsets-missing": one(data_offsets=None),
    "offsets-is-a-string": one(data_offsets="0-4"),
    "offsets-of-one": one(data_offsets=[0]),
    "offsets-of-three": one(data_offsets=[0, 4, 8]),
    "offsets-negative": one(data_offsets=[-4, 0]),
    "offsets-huge": one(data_offsets=[0, 10**30]),
    "offsets-backwards": one(data_offsets=[4, 0]),
    "offsets-wrap-around": one(data_offsets=[2**64 - 4, 0]),
    "offsets-beyond-end": one(shape=[8], data_offsets=[0, 8]),
    "offsets-far-beyond-end": one(shape=[2**60], data_offsets=[0, 2**60]),
    "offsets-overlap": file({"a": entry(), "b": entry(begin=2, end=6)}, bytes(6)),
    "offsets-same": file({"a": entry(), "b": entry()}, bytes(4)),
    "offsets-leave-a-hole": file({"a": entry(), "b": entry(begin=5, end=9)}, bytes(9)),
    "offsets-leave-a-hole-at-the-start": one(data=bytes(6), data_offsets=[2, 6]),
    "data-after-the-last-tensor": one(data=bytes(5)),
    "data-without-tensors": file("{}", b"\0"),
    "data-cut-off": one(data=bytes(3)),
    "size-is-not-that-of-the-dtype": one(dtype="F32"),
    "float4-of-half-a-byte": one(data=bytes(2), dtype="F4", shape=[3], data_offsets=[0, 2]),
    "float6-of-broken-bytes": one(data=bytes(2), dtype="F6_E2M3", shape=[2], data_offsets=[0, 2]),
}


def fuzz_input(contents):
    """What safetensors_fuzz.cpp takes: the number of data bytes, and the header."""
    length = int.from_bytes(contents[:8], "little")
    return (len(contents) - 8 - length).to_bytes(2, "little") + contents[8:8 + length]


def write(folder, suffix, files):
    (HERE / folder).mkdir(exist_ok=True)
    for old in (HERE / folder).glob("*" + suffix):
        old.unlink()
    for name, contents in files.items():
        (HERE / folder / (name + suffix)).write_bytes(contents)


write("valid", ".safetensors", VALID)
write("invalid", ".safetensors", {"parse--" + name: contents for name, contents in INVALID.items()})
write("fuzz", ".seed", {name: fuzz_input(contents) for name, contents in VALID.items()})
