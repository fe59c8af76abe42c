# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors of open files: the bytes of the same part of the whole, and no others are read."""

import math
import pathlib
import random
import struct
import sys

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "cli"))
from quantized_models import MODELS  # noqa: E402


def same(found, whole):
    assert found.dtype == whole.dtype and found.shape == whole.shape
    return np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(whole).tobytes()


def some_part(shape, chance):
    """Odd ranges, some of them empty, some whole, some a single index."""
    part = []
    for size in shape:
        begin = chance.randint(0, size)
        end = chance.randint(begin, size)
        part.append(chance.choice([slice(begin, end), slice(begin, end), slice(None), slice(-end, None), min(begin, size - 1) if size else slice(None)]))
    return tuple(part[: chance.choice([len(part), len(part), 1])])


@pytest.mark.parametrize("name", MODELS)
def test_parts_of_every_layout(name, tmp_path):
    MODELS[name][0]().write(tmp_path / "model", shards=3)
    chance = random.Random(name)
    for dtype in ("float32", "bfloat16", "float8_e5m2"):
        with tc.open(tmp_path / "model", dequantize=dtype) as file:
            assert file.layers
            for weight in file:
                whole, part = file[weight], file.slice(weight)
                assert same(part[...], whole) and part.shape == whole.shape
                for _ in range(25):
                    key = some_part(whole.shape, chance)
                    assert same(part[key], whole[key]), (weight, key)


def test_a_part_of_the_experts(tmp_path):
    MODELS["gpt-oss"][0]().write(tmp_path / "model")
    with tc.open(tmp_path / "model", dequantize="float32") as file:
        name = next(name for name in file.layers if len(file.layers[name].shape) == 3)
        whole, part = file[name], file.get_slice(name)
        assert same(part[1:, 3:40, 5:7], whole[1:, 3:40, 5:7]) and same(part[-1, ..., 2], whole[-1, ..., 2])


def test_gguf(tmp_path):
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQQIQ", 1, b"w", 2, 96, 5, 8, 0)
    blocks = b"".join(np.float16(i).tobytes() + bytes(range(32)) for i in range(15))
    (tmp_path / "x.gguf").write_bytes(header.ljust(96, b"\0") + blocks)
    with tc.open(tmp_path / "x.gguf", dequantize="float32") as file:
        whole, part = file["w"], file.slice("w")
        assert whole.shape == (5, 96)
        for key in ((slice(1, 4), slice(32, 64)), (slice(0, 5), slice(31, 65)), (2,), (slice(3, 3), slice(0, 9))):
            assert same(part[key], whole[key])


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4", "float4_e2m1fn", "float6_e2m3fn", "uint2", "int64", "bool"])
@pytest.mark.parametrize("shape", [(7,), (6, 9), (3, 5, 7)])
def test_parts_of_plain_tensors(name, shape, tmp_path):
    numbers = np.random.default_rng(1).integers(0, 2, shape).astype(np.float32)
    array = tc.cast(numbers, name)
    tc.save(tmp_path / "x.npz", {"a": array})
    chance = random.Random(f"{name} {shape}")
    with tc.open(tmp_path / "x.npz", from_=None if name in ("float32", "int64", "bool") else {"a": name}) as file:
        part = file.slice("a")
        for _ in range(25):
            key = some_part(shape, chance)
            assert same(part[key], file["a"][key]), key


def test_indices_are_those_of_numpy(tmp_path):
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    tc.save(tmp_path / "x.safetensors", {"a": array, "s": array[0, 0, 0]})
    with tc.open(tmp_path / "x.safetensors") as file:
        part = file.slice("a")
        for key in (
            ..., (..., 1), (1, ...), (0, ..., slice(1, 3)), (slice(None, None, -1), slice(3, None, -2)), (-1, slice(9)),
            ([0, 2], 1), (slice(1, 3), [0, 0]), (None, 1), (array > 7), (np.int64(1), slice(1, 3)), (), (slice(2, 1),),
        ):  # fmt: skip
            assert same(np.asarray(part[key]), np.asarray(array[key])), key
        assert file.slice("s")[...] == file.slice("s")[()] == 0
        for key in (3, -4, (0, 4), (0, 0, 0, 0), (0, 0, 5)):
            with pytest.raises(IndexError):
                part[key]


@pytest.mark.skipif(not pathlib.Path("/proc/self/io").exists(), reason="tells how much was read")
@pytest.mark.parametrize("rows, columns", [(slice(None), slice(256, 512)), (slice(100, 200), slice(None)), (5, slice(7))])
def test_only_the_part_is_read(rows, columns, tmp_path):
    size = 2048
    codes = np.arange(size * size, dtype=np.uint32).astype(np.uint8).reshape(size, size) & 0x3F
    scales = np.random.default_rng(1).uniform(1, 2, (size // 128, size // 128)).astype(np.float32)
    tensors = {"m.weight": codes.view(ml_dtypes.float8_e4m3fn), "m.weight_scale_inv": scales}
    tc.save(tmp_path / "model.safetensors", tensors)
    config = '{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}'
    (tmp_path / "config.json").write_text(config)

    def bytes_read():
        text = pathlib.Path("/proc/self/io").read_text()
        return int(text.split("rchar: ")[1].split()[0])

    with tc.open(tmp_path, dequantize="bfloat16") as file:
        whole, part = file["m.weight"], file.slice("m.weight")
        before = bytes_read()
        found = part[rows, columns]
        read = bytes_read() - before
    assert same(found, whole[rows, columns])
    needed = math.prod(codes[np.atleast_1d(np.arange(size)[rows])][:, columns].shape)
    assert needed <= read <= needed + 128 * 128 + 4096


def test_a_weight_of_several_pieces_is_rounded_as_the_whole(tmp_path):
    MODELS["deepseek"][0]().write(tmp_path / "model")
    with tc.open(tmp_path / "model") as file:
        layer = next(iter(file.layers.values()))
        assert same(layer.dequantize("bfloat16"), tc.cast(layer.dequantize(), "bfloat16"))
