# SPDX-License-Identifier: Apache-2.0
"""Files of the package gguf are read, and files of tcast are read by the package gguf."""

import gguf
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from array_files import assert_same, convert, load_safetensors, refuse, sample

TYPES = ["float64", "float32", "float16", "int8", "int16", "int32", "int64"]
BLOCK_TYPES = [kind for kind, (elements, _) in gguf.GGML_QUANT_SIZES.items() if elements > 1]


def write(path, tensors, blocks=(), **metadata):
    """`blocks` are (name, type, bytes of shape [rows, bytes of a row])."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_custom_alignment(metadata.pop("alignment", 32))
    writer.add_uint32("answer", 42)
    writer.add_float64("pi", 3.14159)
    writer.add_bool("yes", True)
    writer.add_array("tokens", ["<s>", "é", "\n"])
    writer.add_array("scores", [-0.5, 0.25])
    for name, array in tensors.items():
        kind = gguf.GGMLQuantizationType.BF16 if array.dtype == ml_dtypes.bfloat16 else None
        writer.add_tensor(name, array.view(np.uint8) if kind else array, raw_dtype=kind)
    for name, kind, data in blocks:
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def metadata_bytes(reader):
    return [[bytes(part) for part in field.parts] for key, field in reader.fields.items() if not key.startswith("GGUF.")]


def arrays_of(path):
    reader = gguf.GGUFReader(path)
    return {tensor.name: tensor for tensor in reader.tensors}, reader


@pytest.mark.parametrize("alignment", [32, 64])
def test_files_of_the_package_come_back_unchanged(run_tcast, tmp_path, alignment):
    arrays = {f"layers.{name}.weight": sample(name, (2, 3, 4)) for name in TYPES}
    arrays["bf16"] = sample("bfloat16", (4, 6))
    blocks = []
    for kind in BLOCK_TYPES:
        _, size = gguf.GGML_QUANT_SIZES[kind]
        blocks.append((f"block.{kind.name}", kind, sample("uint8", (2, 3 * size))))
    write(tmp_path / "in.gguf", arrays, blocks, alignment=alignment)
    convert(run_tcast, tmp_path / "in.gguf", tmp_path / "out.gguf", "--to", "float16", "--exclude", ".*", "--verify")
    assert (tmp_path / "out.gguf").read_bytes() == (tmp_path / "in.gguf").read_bytes()


def test_conversion_keeps_metadata_and_blocks(run_tcast, tmp_path):
    values = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
    q8 = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
    ids = np.arange(6, dtype=np.int32).reshape(3, 2)
    write(tmp_path / "in.gguf", {"w": values, "ids": ids}, [("q", gguf.GGMLQuantizationType.Q8_0, q8)], alignment=128)
    convert(run_tcast, tmp_path / "in.gguf", tmp_path / "out.gguf", "--to", "bfloat16", "--verify",
            "--exclude", "^q$")
    before, source = arrays_of(tmp_path / "in.gguf")
    after, target = arrays_of(tmp_path / "out.gguf")
    assert metadata_bytes(source) == metadata_bytes(target)
    assert target.alignment == 128
    assert list(after) == list(before)
    assert after["w"].tensor_type == gguf.GGMLQuantizationType.BF16
    assert list(after["w"].shape) == [32, 2]
    assert bytes(after["w"].data) == values.astype(ml_dtypes.bfloat16).tobytes()
    assert after["q"].tensor_type == gguf.GGMLQuantizationType.Q8_0
    assert bytes(after["q"].data) == q8.tobytes()
    assert_same(np.array(after["ids"].data), ids)
    assert all(tensor.data_offset % 128 == 0 for tensor in target.tensors)


def test_safetensors_and_back(run_tcast, tmp_path):
    arrays = {name: sample(name, (3, 8)) for name in TYPES + ["bfloat16"]}
    arrays["scalar"] = np.array(1.5, np.float32)
    safetensors.numpy.save_file(arrays, tmp_path / "in.safetensors", {"format": "pt"})
    none = ("--rule", "^float32$=float32")
    convert(run_tcast, tmp_path / "in.safetensors", tmp_path / "model.gguf", *none, "--verify")
    tensors, reader = arrays_of(tmp_path / "model.gguf")
    assert reader.fields["format"].contents() == "pt"
    for name in TYPES:
        assert_same(np.array(tensors[name].data), arrays[name])
    convert(run_tcast, tmp_path / "model.gguf", tmp_path / "back.safetensors", *none, "--verify")
    back = load_safetensors(tmp_path / "back.safetensors")
    for name, array in arrays.items():
        assert_same(back[name], array)
    with safetensors.safe_open(tmp_path / "back.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}


def test_metadata_go_to_safetensors_as_text(run_tcast, tmp_path):
    write(tmp_path / "in.gguf", {"w": sample("float32")})
    convert(run_tcast, tmp_path / "in.gguf", tmp_path / "out.safetensors", "--to", "float16")
    with safetensors.safe_open(tmp_path / "out.safetensors", "np") as file:
        assert file.metadata() == {"general.architecture": "llama", "general.alignment": "32", "answer": "42",
                                   "pi": "3.14159", "yes": "true", "tokens": '["<s>","é","\\n"]', "scores": "[-0.5,0.25]"}


def test_block_formats_are_named(run_tcast, tmp_path):
    blocks = sample("uint8", (2, gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q8_K][1]))
    write(tmp_path / "in.gguf", {"w": sample("float32")}, [("q", gguf.GGMLQuantizationType.Q8_K, blocks)])
    said = refuse(run_tcast, tmp_path / "in.gguf", tmp_path / "out.gguf", "--rule", "^q$=float32")
    assert '"q"' in said and "Q8_K is a block format" in said
    said = refuse(run_tcast, tmp_path / "in.gguf", tmp_path / "out.safetensors", "--to", "float16")
    assert "safetensors cannot hold Q8_K" in said
    convert(run_tcast, tmp_path / "in.gguf", tmp_path / "w.npy", "--include", "^w$")
    assert_same(np.load(tmp_path / "w.npy"), sample("float32"))


DECODED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"]


def test_blocks_are_decoded_as_the_package_does(run_tcast, tmp_path):
    source = np.random.default_rng(1)
    kinds = {name: getattr(gguf.GGMLQuantizationType, name) for name in DECODED}
    blocks = {name: source.integers(0, 256, (5, 3 * gguf.GGML_QUANT_SIZES[kind][1]), np.uint8)
              for name, kind in kinds.items()}
    write(tmp_path / "in.gguf", {"w": sample("float32")}, [(name, kinds[name], data) for name, data in blocks.items()])
    for name in ("out.safetensors", "out.npz", "out.gguf"):
        convert(run_tcast, tmp_path / "in.gguf", tmp_path / name, "--to", "float32", "--verify")
    found = load_safetensors(tmp_path / "out.safetensors")
    tensors, _ = arrays_of(tmp_path / "out.gguf")
    for name, data in blocks.items():
        with np.errstate(all="ignore"):
            wanted = gguf.quants.dequantize(data, kinds[name]).astype(np.float32)
        np.testing.assert_array_equal(found[name], wanted, err_msg=name)
        np.testing.assert_array_equal(np.array(tensors[name].data).reshape(wanted.shape), wanted, err_msg=name)


def test_types_that_gguf_lacks_are_named(run_tcast, tmp_path):
    np.savez(tmp_path / "in.npz", a=np.zeros(4, np.float32))
    said = refuse(run_tcast, tmp_path / "in.npz", tmp_path / "out.gguf", "--to", "float8_e4m3fn")
    assert "gguf cannot hold float8_e4m3fn" in said
