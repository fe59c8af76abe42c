# SPDX-License-Identifier: Apache-2.0
"""tc.convert(to=SCHEME): the same bytes as tc.quantize() of each weight, whatever the file, shards and threads."""

import json
import pathlib

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import tensorcast as tc

HIDDEN, WIDE = 128, 320  # 320 is no whole block of 128
LAYERS = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (64, HIDDEN),
    "self_attn.v_proj": (64, HIDDEN),
    "mlp.gate_proj": (WIDE, HIDDEN),
    "mlp.up_proj": (WIDE, HIDDEN),
}
# Scheme, spelling, options of tc.quantize.
CASES = [
    ("fp8-tensor", "compressed-tensors", {}),
    ("fp8-channel", "compressed-tensors", {"recipe": "modelopt"}),
    ("fp8-block", "deepseek", {}),
    ("fp8-block", "deepseek", {"power_of_two_scales": True}),
    ("mxfp8", "transformers-mxfp8", {"recipe": "floor"}),
    ("mxfp6", "compressed-tensors", {}),
    ("mxfp4", "compressed-tensors", {"recipe": "even"}),
    ("nvfp4", "modelopt", {}),
    ("nvfp4", "compressed-tensors", {"recipe": "compressed-tensors"}),
    ("nvfp4", "comfyui", {"recipe": "comfy"}),
    ("int8-channel", "compressed-tensors", {}),
    ("int4-group", "compressed-tensors", {}),
    ("int4-group", "compressed-tensors", {"group_size": 32, "symmetric": False}),
]


def weights(dtype=ml_dtypes.bfloat16, seed=5):
    random = np.random.default_rng(seed)
    made = {
        "model.embed_tokens.weight": (random.standard_normal((32, HIDDEN)) * 0.1).astype(dtype),
        "model.norm.weight": np.ones(HIDDEN, dtype),
    }
    for layer in range(2):
        for name, shape in LAYERS.items():
            made[f"model.layers.{layer}.{name}.weight"] = (random.standard_normal(shape) * 0.02).astype(dtype)
    made["model.layers.1.self_attn.q_proj.weight"][:] = 0  # a tensor of zeros has scale 1
    return made


def write_folder(folder: pathlib.Path, tensors):
    folder.mkdir()
    names = list(tensors)
    files = {"model-00001-of-00002.safetensors": names[:7], "model-00002-of-00002.safetensors": names[7:]}
    for file, members in files.items():
        save_file({name: tensors[name] for name in members}, folder / file, metadata={"format": "pt"})
    weight_map = {name: file for file, members in files.items() for name in members}
    total = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps({"torch_dtype": "bfloat16"}))
    return folder


def read(path):
    """{name: bytes}, of a file or all files of a folder."""
    found = {}
    for file in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
        raw = file.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        for name, entry in json.loads(raw[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = raw[8 + size + begin : 8 + size + end]
    return found


def expected(tensors, scheme, spelling, options):
    made = {}
    for name, tensor in tensors.items():
        if "proj" not in name:
            made[name] = tensor.tobytes()
            continue
        parts = tc.quantize(tensor, scheme, **options).spelled(spelling)
        made.update({name.removesuffix("weight") + suffix: part.tobytes() for suffix, part in parts.items()})
    return made


@pytest.mark.parametrize(("scheme", "spelling", "options"), CASES)
def test_folders_have_the_bytes_of_quantize(tmp_path, scheme, spelling, options):
    tensors = weights()
    source = write_folder(tmp_path / "in", tensors)
    done = tc.convert(source, tmp_path / "out", scheme, spelling=spelling, fuse="never", **options)
    assert read(tmp_path / "out") == expected(tensors, scheme, spelling, options)
    assert {row.becomes for row in done.tensors if "proj" in row.name} == {f"{spelling} {scheme}"}
    info = tc.inspect(tmp_path / "out")
    assert json.loads((tmp_path / "out/model.safetensors.index.json").read_text())["weight_map"].keys() == {
        row.name for row in info.tensors
    }
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["torch_dtype"] == "bfloat16"
    assert "quantization_config" in config or spelling == "comfyui"  # whose tensors say all
    with tc.open(tmp_path / "out", dequantize="float32") as file:
        for name, tensor in tensors.items():
            if "proj" in name:
                wanted = tc.quantize(tensor, scheme, **options).dequantize("float32")
                np.testing.assert_array_equal(np.asarray(file[name], np.float32) + 0, wanted + 0)


def test_one_file_and_any_number_of_threads(tmp_path):
    tensors = weights(np.float32)
    save_file(tensors, tmp_path / "in.safetensors")
    for threads in (1, 3):
        out = tmp_path / f"out{threads}.safetensors"
        tc.convert(tmp_path / "in.safetensors", out, "nvfp4", spelling="comfyui", threads=threads, fuse="never", verify=True)
        assert read(out) == expected(tensors, "nvfp4", "comfyui", {})


def test_weights_that_loaders_join_share_a_tensor_scale(tmp_path):
    tensors = weights()
    source = write_folder(tmp_path / "in", tensors)
    tc.convert(source, tmp_path / "out", "nvfp4", spelling="compressed-tensors")
    out = read(tmp_path / "out")
    scales = {name: bytes_ for name, bytes_ in out.items() if name.endswith("weight_global_scale")}
    for layer in range(2):
        for group in (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")):
            shared = {scales[name] for name in scales if f".{layer}." in name and name.split(".")[-2] in group}
            assert len(shared) == 1
            largest = max(
                float(np.abs(tensor.astype(np.float32)).max())
                for name, tensor in tensors.items()
                if f".{layer}." in name and name.split(".")[-2] in group
            )
            alone = tc.quantize(np.full((1, 16), largest, np.float32), "nvfp4").spelled("compressed-tensors")
            assert shared == {alone["weight_global_scale"].tobytes()}


def test_from_one_scheme_to_another_as_in_two_steps(tmp_path):
    source = write_folder(tmp_path / "in", weights())
    tc.convert(source, tmp_path / "fp8", "fp8-block")
    tc.convert(tmp_path / "fp8", tmp_path / "direct", "nvfp4")
    tc.convert(tmp_path / "fp8", tmp_path / "wide", "bfloat16")
    tc.convert(tmp_path / "wide", tmp_path / "steps", "nvfp4")
    assert read(tmp_path / "direct") == read(tmp_path / "steps")
    assert (tmp_path / "direct/config.json").read_text().count("quantization_config") == 1
    with tc.open(tmp_path / "direct") as file:
        assert {layer.scheme for layer in file.layers.values()} == {"nvfp4"}


def test_rules_mix_schemes_and_types(tmp_path):
    tensors = weights()
    source = write_folder(tmp_path / "in", tensors)
    rules = {r"self_attn": "fp8-channel", r"up_proj": None, r"embed": "float32"}
    tc.convert(source, tmp_path / "out", "nvfp4", rules=rules, spelling="compressed-tensors")
    out = read(tmp_path / "out")
    assert out["model.embed_tokens.weight"] == tensors["model.embed_tokens.weight"].astype(np.float32).tobytes()
    name = "model.layers.0.mlp.up_proj.weight"
    assert out[name] == tensors[name].tobytes()
    name = "model.layers.0.self_attn.k_proj"
    parts = tc.quantize(tensors[name + ".weight"], "fp8-channel").spelled("compressed-tensors")
    assert out[name + ".weight_scale"] == parts["weight_scale"].tobytes()
    section = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]
    assert section["format"] == "mixed-precision"
    assert any("up_proj" in module for module in section["ignore"])


def test_nan_names_the_tensor_and_element(tmp_path):
    tensors = weights()
    tensors["model.layers.1.mlp.up_proj.weight"][7, 3] = np.nan
    source = write_folder(tmp_path / "in", tensors)
    with pytest.raises(tc.CastError) as error:
        tc.convert(source, tmp_path / "out", "mxfp4")
    assert error.value.tensor == "model.layers.1.mlp.up_proj.weight"
    assert error.value.index == 7 * HIDDEN + 3
    tc.convert(source, tmp_path / "out", "mxfp4", nonfinite="tool", overwrite=True)


@pytest.mark.parametrize(
    ("to", "options", "words"),
    [
        ("nvfp4", {"recipe": "floor"}, "there are modelopt"),
        ("nvfp4", {"spelling": "deepseek"}, "deepseek has no nvfp4"),
        ("q4_k", {}, "GGUF"),
        ("nvfp4", {"respell": "modelopt"}, "respell"),
        ("nvfp4", {"scale": 2.0}, "scale"),
        ("bfloat16", {"recipe": "modelopt"}, "scheme"),
        ("nvfp4", {"rename": {"model": "m"}}, "rename"),
        ("mxfp4", {"group_size": 64}, "groups"),
    ],
)
def test_what_contradicts_is_refused(tmp_path, to, options, words):
    source = write_folder(tmp_path / "in", weights())
    with pytest.raises(tc.CastError, match=words):
        tc.convert(source, tmp_path / "out", to, **options)
    assert not (tmp_path / "out").exists()


def test_gguf_to_gguf_is_ggml(tmp_path):
    gguf = pytest.importorskip("gguf")
    random = np.random.default_rng(2)
    tensors = {
        "token_embd.weight": (random.standard_normal((8, 256)) * 0.1).astype(np.float32),
        "blk.0.attn_q.weight": (random.standard_normal((64, 256)) * 0.1).astype(np.float32),
        "blk.0.ffn_gate.weight": (random.standard_normal((32, 256)) * 0.1).astype(np.float32),
        "blk.0.attn_norm.weight": np.ones(256, np.float32),
    }
    writer = gguf.GGUFWriter(tmp_path / "in.gguf", "llama")
    writer.add_file_type(0)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for scheme, number in (("q8_0", 7), ("q4_0", 2), ("q5_1", 9), ("q4_k", 14), ("q6_k", 18), ("mxfp4", 38), ("nvfp4", 39),
                           ("q2_k", 10), ("q3_k", 11), ("q5_k", 16), ("iq4_nl", 25), ("iq4_xs", 30)):
        out = tmp_path / f"{scheme}.gguf"
        tc.convert(tmp_path / "in.gguf", out, scheme)
        reader = gguf.GGUFReader(out)
        found = {tensor.name: tensor for tensor in reader.tensors}
        wanted = tc.gguf_quantize(tensors["blk.0.attn_q.weight"], scheme)
        assert found["blk.0.attn_q.weight"].data.tobytes() == wanted.tobytes()
        gate = tc.gguf_quantize(tensors["blk.0.ffn_gate.weight"], scheme)
        assert found["blk.0.ffn_gate.weight"].data.tobytes() == gate.tobytes()
        assert found["blk.0.attn_norm.weight"].data.tobytes() == tensors["blk.0.attn_norm.weight"].tobytes()
        assert found["token_embd.weight"].data.tobytes() == tensors["token_embd.weight"].tobytes()
        assert int(reader.fields["general.file_type"].parts[-1][0]) == number


def test_rules_by_kind(tmp_path):
    write_folder(tmp_path / "in", weights())
    rules = [tc.Rule("k_proj"), tc.Rule(to="mxfp8", kind="attention"), tc.Rule(to="float16", kind=("embedding", "norm"))]
    made = tc.convert(tmp_path / "in", tmp_path / "out", to="nvfp4", rules=rules, dry_run=True).tensors
    becomes = {tensor.name: tensor.becomes.split(" ")[-1] or tensor.to for tensor in made}
    assert becomes["model.layers.0.self_attn.q_proj.weight"] == "mxfp8"
    assert becomes["model.layers.0.self_attn.k_proj.weight"] == "bfloat16"
    assert becomes["model.layers.0.mlp.up_proj.weight"] == "nvfp4"
    assert becomes["model.embed_tokens.weight"] == becomes["model.norm.weight"] == "float16"
    assert {tensor.passes for tensor in made if tensor.becomes.endswith("nvfp4")} == {0, 2}
    with pytest.raises(tc.CastError, match='"attn" is not a kind of tensors; there are embedding, attention, '):
        tc.convert(tmp_path / "in", tmp_path / "out", to="nvfp4", rules=[tc.Rule(kind="attn")], dry_run=True)
