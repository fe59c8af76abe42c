# SPDX-License-Identifier: Apache-2.0
"""Quantized weights of open files: as objects with codes and scales, and decoded."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc

CODES = np.arange(8, dtype=np.uint8).reshape(2, 4) + 0x38
SCALES = np.array([[2, 3]], np.float32)


@pytest.fixture
def folder(tmp_path):
    """Float8 in blocks of 2 x 2, whose codes and scales are in different shards."""
    tc.save(tmp_path / "a.safetensors", {"m.weight": CODES.view(ml_dtypes.float8_e4m3fn), "norm": np.ones(2, np.float32)})
    tc.save(tmp_path / "b.safetensors", {"m.weight_scale_inv": SCALES})
    names = {"m.weight": "a.safetensors", "norm": "a.safetensors", "m.weight_scale_inv": "b.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 2]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def weight():
    return CODES.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * np.repeat(SCALES, 2, axis=1)


def test_a_layer_is_its_codes_and_scales(folder):
    with tc.open(folder) as file:
        layer = file["m.weight"]
        assert isinstance(layer, tc.QuantizedLayer) and layer is file.layers["m.weight"]
        assert list(file.layers) == ["m.weight"]
        assert file["norm"].tolist() == [1, 1]
        np.testing.assert_array_equal(file.get_tensor("m.weight").view(np.uint8), CODES)
        np.testing.assert_array_equal(file.get_slice("m.weight")[1].view(np.uint8), CODES[1])
        assert set(file) == {"m.weight", "m.weight_scale_inv", "norm"}
    with pytest.raises(tc.CastError, match="is closed"):
        file["m.weight"]
    assert (layer.spelling, layer.scheme, layer.shape, layer.block) == ("deepseek", "fp8-block", (2, 4), (2, 2))
    assert layer.tensors == ("m.weight", "m.weight_scale_inv") and layer.problem == ""
    np.testing.assert_array_equal(layer.codes.view(np.uint8), CODES)
    np.testing.assert_array_equal(layer.scales, SCALES)
    assert layer.global_scale is None and layer.zero_points is None
    np.testing.assert_array_equal(layer.dequantize(), weight())
    decoded = tc.dequantize(layer.codes, layer.scales, layer.scheme, block=layer.block)
    np.testing.assert_array_equal(decoded, weight())
    assert repr(layer) == "QuantizedLayer('m.weight', deepseek fp8-block, shape=(2, 4))"


def test_decoded_weights(folder):
    wanted = weight().astype(ml_dtypes.bfloat16)
    with tc.open(folder, dequantize="bfloat16") as file:
        array = file["m.weight"]
        assert array.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(array, wanted)
        assert set(file) == {"m.weight", "norm"} and len(file) == 2
        assert file["norm"].dtype == np.float32
        part = file.get_slice("m.weight")
        assert (part.dtype, part.shape) == ("bfloat16", (2, 4))
        np.testing.assert_array_equal(part[1, 1:], wanted[1, 1:])
        with pytest.raises(KeyError):
            file["none"]
    with pytest.raises(tc.CastError, match="is closed"):
        file["m.weight"]
    loaded = tc.load(folder, dequantize="float32")
    assert set(loaded) == {"m.weight", "norm"}
    np.testing.assert_array_equal(loaded["m.weight"], weight())


def test_loading_gives_what_is_stored(folder):
    loaded = tc.load(folder)
    np.testing.assert_array_equal(loaded["m.weight"].view(np.uint8), CODES)
    assert set(loaded) == {"m.weight", "m.weight_scale_inv", "norm"}


def test_one_file_with_the_config_beside_it(folder):
    (folder / "model.safetensors.index.json").unlink()
    (folder / "b.safetensors").unlink()
    tc.save(folder / "a.safetensors", {"m.weight": CODES.view(ml_dtypes.float8_e4m3fn), "m.weight_scale_inv": SCALES}, overwrite=True)
    with tc.open(folder / "a.safetensors", dequantize="float32") as file:
        np.testing.assert_array_equal(file["m.weight"], weight())
    assert tc.open(folder / "a.safetensors")["m.weight"].scheme == "fp8-block"


def test_torch(folder):
    torch = pytest.importorskip("torch")
    with tc.open(folder, framework="pt", dequantize="bfloat16") as file:
        assert torch.equal(file["m.weight"], torch.from_numpy(weight()).to(torch.bfloat16))
    assert torch.equal(tc.open(folder, framework="pt")["m.weight"].scales, torch.from_numpy(SCALES))


def test_gguf(tmp_path):
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"w", 1, 32, 8, 0)
    block = np.float16(0.5).tobytes() + bytes(range(32))
    (tmp_path / "x.gguf").write_bytes(header.ljust(64, b"\0") + block)
    assert tc.open(tmp_path / "x.gguf", dequantize="float32")["w"].tolist() == [code / 2 for code in range(32)]
    layer = tc.open(tmp_path / "x.gguf")["w"]
    assert (layer.scheme, layer.codes.tobytes(), layer.scales) == ("q8_0", block, None)


def test_what_is_not_decoded_is_an_error(folder):
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 2]}}')
    with tc.open(folder, dequantize="bfloat16") as file, pytest.raises(tc.UnsupportedError, match="blocks of 1 x 2"):
        file["m.weight"]
    assert "[1, 2]" in tc.open(folder)["m.weight"].problem
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "aqlm"}}')
    with pytest.raises(tc.UnsupportedError, match='"aqlm", which is not decoded'):
        tc.open(folder, dequantize="bfloat16")


def test_files_without_layers(tmp_path):
    tc.save(tmp_path / "x.npy", {"x": np.ones(2, np.float32)})
    tc.save(tmp_path / "x.safetensors", {"x": np.ones(2, np.float32)})
    for name, tensor in (("x.npy", ""), ("x.safetensors", "x")):
        with tc.open(tmp_path / name, dequantize="bfloat16") as file:
            assert file[tensor].tolist() == [1, 1] and file.layers == {}


def test_inspect_lists_layers(folder):
    found = tc.inspect(folder)
    layer = tc.LayerInfo("m.weight", "deepseek", "fp8-block", (2, 4), (2, 2), ("m.weight", "m.weight_scale_inv"))
    assert found.layers == (layer,) and found.warnings == ()
    assert found.layer_kinds == {("deepseek", "fp8-block", (2, 2)): 1}
    with tc.open(folder) as file:
        assert file.layers["m.weight"].block == found.layers[0].block
    assert tc.inspect(folder / "b.safetensors").layers == ()
    assert json.loads(json.dumps(found.as_dict()))["layers"][0]["scheme"] == "fp8-block"


def test_inspect_names_contradictions(folder):
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 2]}}')
    (layer,) = tc.inspect(folder).layers
    assert layer.problem_tensor == "m.weight_scale_inv" and "blocks of 1 x 2" in layer.problem
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "aqlm"}}')
    found = tc.inspect(folder)
    assert found.layers == () and '"aqlm", which is not decoded' in found.warnings[0]


def test_inspect_and_verify_warn_of_scales(folder, tmp_path):
    tc.save(folder / "b.safetensors", {"m.weight_scale_inv": np.float32([[2, np.nan]])}, overwrite=True)
    words = '"m.weight_scale_inv" has scales that are NaN'
    assert any(words in warning for warning in tc.inspect(folder).warnings)
    out = tmp_path.parent / (tmp_path.name + "-out")
    tc.convert(folder, out, only=".", max_shard_size="1MB")
    assert any(words in warning for warning in tc.checkpoint.verify(out).warnings)


def test_inspect_of_one_file(tmp_path):
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"w", 1, 32, 8, 0)
    (tmp_path / "x.gguf").write_bytes(header.ljust(64, b"\0") + bytes(34))
    (layer,) = tc.inspect(tmp_path / "x.gguf").layers
    assert (layer.name, layer.spelling, layer.scheme, layer.shape) == ("w", "gguf", "q8_0", (32,))
