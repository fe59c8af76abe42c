# SPDX-License-Identifier: Apache-2.0
"""The page's readers of files, without a browser: damaged files are refused, as tcast refuses them."""

import pathlib
import random
import struct
import subprocess

import numpy as np

FUZZ = pathlib.Path(__file__).with_name("readers_fuzz.mjs")
NUMBERS = np.arange(64, dtype="<f4").tobytes()


def node(modules, *arguments):
    done = subprocess.run(["node", FUZZ, modules, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_damaged_is_refused_or_whole(modules):
    node(modules, 2000)


def safetensors(header, data=NUMBERS):
    words = header.encode()
    return struct.pack("<Q", len(words)) + words + data


def entry(dtype="F32", shape="[2]", offsets="[0,8]"):
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}'


def text(words):
    return struct.pack("<Q", len(words.encode())) + words.encode()


def gguf(metadata=(), tensors=(("a", [4], 0, 0),), data=NUMBERS):
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, kind, value in metadata:
        out += text(key) + struct.pack("<I", kind) + value
    for name, shape, kind, offset in tensors:
        out += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
    return out + b"\0" * (-len(out) % 32) + data


def npy(header, data=NUMBERS[:16]):
    words = header.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(words)) + words + data


ALIGNMENT = "general.alignment"
DICTIONARY = "{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}".format
DAMAGED = {
    "span.safetensors": safetensors(f'{{"a":{entry(shape="[4]")},"b":{entry(offsets="[8,16]")}}}', NUMBERS[:16]),
    "negative.safetensors": safetensors(f'{{"a":{entry(offsets="[-8,0]")},"b":{entry()}}}', NUMBERS[:8]),
    "overlap.safetensors": safetensors(f'{{"a":{entry()},"b":{entry()}}}', NUMBERS[:8]),
    "hole.safetensors": safetensors(f'{{"a":{entry(offsets="[8,16]")}}}', NUMBERS[:16]),
    "trailing.safetensors": safetensors(f'{{"a":{entry()}}}', NUMBERS[:9]),
    "twice.safetensors": safetensors(f'{{"a":{entry()},"a":{entry(offsets="[8,16]")}}}', NUMBERS[:16]),
    "type.safetensors": safetensors(f'{{"a":{entry("F99")}}}', NUMBERS[:8]),
    "constructor.safetensors": safetensors(f'{{"a":{entry("constructor")}}}', NUMBERS[:8]),
    "real.safetensors": safetensors(f'{{"a":{entry(shape="[2.0]")}}}', NUMBERS[:8]),
    "bom.safetensors": safetensors(f'\ufeff{{"a":{entry()}}}', NUMBERS[:8]),
    "odd.safetensors": safetensors(f'{{"a":{entry("F4", "[3]", "[0,2]")}}}', NUMBERS[:2]),
    "null.safetensors": safetensors("null", b""),
    "list.safetensors": safetensors("[1,2]", b""),
    "entry.safetensors": safetensors('{"a":null}', b""),
    "metadata.safetensors": safetensors(f'{{"__metadata__":{{"n":5}},"a":{entry()}}}', NUMBERS[:8]),
    "surrogate.safetensors": safetensors(f'{{"\\ud800":{entry()}}}', NUMBERS[:8]),
    "align0.gguf": gguf([(ALIGNMENT, 4, struct.pack("<I", 0))]),
    "align7.gguf": gguf([(ALIGNMENT, 4, struct.pack("<I", 7))]),
    "aligntext.gguf": gguf([(ALIGNMENT, 8, text("abc"))]),
    "alignminus.gguf": gguf([(ALIGNMENT, 5, struct.pack("<i", -32))]),
    "key.gguf": gguf([("k", 4, struct.pack("<I", 1)), ("k", 4, struct.pack("<I", 2))]),
    "twice.gguf": gguf(tensors=[("a", [4], 0, 0), ("a", [4], 0, 32)]),
    "overlap.gguf": gguf(tensors=[("a", [16], 0, 0), ("b", [4], 0, 32)]),
    "unaligned.gguf": gguf(tensors=[("a", [4], 0, 3)]),
    "rows.gguf": gguf(tensors=[("a", [33], 8, 0)]),
    "behind.gguf": gguf(tensors=[("a", [400], 0, 0)]),
    "shape.npy": npy(DICTIONARY("<f4", False, "(1 2,)")),
    "number.npy": npy(DICTIONARY("<f4", False, "(4)")),
    "large.npy": npy(DICTIONARY("<f4", False, "(0, 99999999999999999999999999,)")),
    "twice.npy": npy(DICTIONARY("<f4", False, "(4,), 'shape': (4,)")),
    "key.npy": npy(DICTIONARY("<f4", False, "(4,), 'x': (4,)")),
    "trailing.npy": npy(DICTIONARY("<f4", False, "(3,)")),
    "descr.npy": npy(DICTIONARY("<constructor", False, "(4,)")),
}


def inspected(tcast, path):
    return subprocess.run([tcast, "inspect", path], capture_output=True).returncode == 0


def test_both_refuse_the_same_files(modules, tcast, tmp_path):
    for name, content in DAMAGED.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in DAMAGED]
    for path, verdict in zip(paths, node(modules, 0, *paths), strict=True):
        assert not inspected(tcast, path), path
        assert verdict != "read" and not verdict.startswith("BROKEN"), (path, verdict)


def test_both_agree_on_random_damage(modules, tcast, tmp_path):
    rng = random.Random(3)
    seeds = {
        "m.safetensors": safetensors(f'{{"__metadata__":{{"10":"x","2":"y"}},"a":{entry()},"b":{entry("BF16", "[2,2]", "[8,16]")}}}', NUMBERS[:16]),
        "m.gguf": gguf([("general.name", 8, text("abc")), (ALIGNMENT, 4, struct.pack("<I", 32))], [("a", [4], 0, 0), ("b", [8, 2], 1, 32)]),
        "m.npy": npy(DICTIONARY("<f4", False, "(2, 2)")),
    }  # fmt: skip
    paths = []
    for name, seed in seeds.items():
        for i in range(60):
            damaged = bytearray(seed)
            for _ in range(rng.randrange(1, 3)):
                damaged[rng.randrange(min(len(seed), 200))] = rng.choice([rng.randrange(128), 0, 0x30 + rng.randrange(10), 0x2C])
            paths.append(tmp_path / f"{i}.{name}")
            paths[-1].write_bytes(damaged)
    verdicts = node(modules, 0, *paths)
    different = [(path.name, verdict) for path, verdict in zip(paths, verdicts, strict=True)
                 if (verdict == "read") != inspected(tcast, path)]  # fmt: skip
    assert different == []
