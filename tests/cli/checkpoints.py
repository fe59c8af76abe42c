# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for the tests: Hugging Face's layouts, written byte by byte."""

import json
import random
import struct

import fixtures

RECORD = ".tcast-files.json"  # of what a run wrote; it has times


def values(seed, count):
    """Numbers that bfloat16 does not hold exactly."""
    source = random.Random(seed)
    return [source.uniform(-1, 1) for _ in range(count)]


def tensor(name, shape, seed, dtype="F32"):
    count = 1
    for size in shape:
        count *= size
    if dtype == "F32":
        return name, dtype, shape, fixtures.float32(*values(seed, count))
    return name, dtype, shape, struct.pack(f"<{count}q", *range(count))  # I64


def to_bfloat16(content):
    """Rounds float32 to nearest even, as the project's semantics says."""
    words = struct.unpack(f"<{len(content) // 4}I", content)
    return b"".join(struct.pack("<H", ((word + 0x7FFF + (word >> 16 & 1)) >> 16) & 0xFFFF) for word in words)


def read(path):
    """{name: (dtype, shape, bytes)} and the metadata of a safetensors file."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    metadata = header.pop("__metadata__", {})
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}, metadata


LAYERS = 2
SHARDS = {
    "model-00001-of-00002.safetensors": [
        tensor("model.embed_tokens.weight", [16, 8], 1),
        tensor("model.layers.0.self_attn.q_proj.weight", [8, 8], 2),
        tensor("model.layers.0.input_layernorm.weight", [8], 3),
    ],
    "model-00002-of-00002.safetensors": [
        tensor("model.layers.1.mlp.up_proj.weight", [32, 8], 4),
        tensor("model.layers.1.mlp.up_proj.bias", [32], 5),
        tensor("model.norm.weight", [8], 6),
        tensor("model.rotary.positions", [4], 7, "I64"),
    ],
}

CONFIG = b"""{
  "architectures": ["LlamaForCausalLM"],
  "torch_dtype": "float32",  "vocab_size":16,
  "text_config": {"dtype" : "float32", "hidden_act": "silu\\u00e9"},
  "quantization_config": {"torch_dtype": "float32"},
  "note": "dtype float32"
}"""


def index_of(shards, **metadata):
    return json.dumps({"metadata": metadata, "weight_map": {
        entry[0]: file for file, tensors in shards.items() for entry in tensors}}, indent=2) + "\n"


def write_sharded(folder, shards=None):
    shards = SHARDS if shards is None else shards
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for file, tensors in shards.items():
        (folder / file).write_bytes(fixtures.safetensors(tensors, {"format": "pt"}))
        total += sum(len(entry[3]) for entry in tensors)
    (folder / "model.safetensors.index.json").write_text(index_of(shards, total_size=total, total_parameters=7))
    (folder / "config.json").write_bytes(CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "sub/README.md").write_text("read me\n")
    return folder


def write_many(folder, shards=6, elements=20000):
    """A checkpoint that takes long enough to be interrupted."""
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    content = {name: [tensor(f"layers.{i}.weight", [elements // 100, 100], i)] for i, name in enumerate(names)}
    return write_sharded(folder, content)


def write_diffusers(folder):
    folder.mkdir()
    (folder / "model_index.json").write_text('{"_class_name": "Pipeline"}')
    for part, stem in (("unet", "diffusion_pytorch_model"), ("text_encoder", "model")):
        (folder / part).mkdir()
        (folder / part / "config.json").write_text('{"torch_dtype": "float32"}')
        names = [f"{stem}-0000{i}-of-00002.safetensors" for i in (1, 2)]
        shards = {name: [tensor(f"block.{i}.weight", [4, 4], i)] for i, name in enumerate(names)}
        for name, tensors in shards.items():
            (folder / part / name).write_bytes(fixtures.safetensors(tensors))
        (folder / part / f"{stem}.safetensors.index.json").write_text(index_of(shards))
    (folder / "vae").mkdir()
    (folder / "vae/diffusion_pytorch_model.fp16.safetensors").write_bytes(
        fixtures.safetensors([tensor("conv.weight", [2, 2, 3, 3], 9)]))
    return folder
