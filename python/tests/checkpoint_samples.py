# SPDX-License-Identifier: Apache-2.0
"""A small checkpoint as DeepSeek's are."""

import json

import ml_dtypes
import numpy as np

import tensorcast as tc


def write_deepseek(folder, shards=3):
    """Matrices in float8 with scales for blocks of 128 x 128, which lie in other files than their codes."""
    chance = np.random.default_rng(1)
    tensors = {}
    for layer in range(2):
        for name, shape in {"up_proj": (384, 256), "down_proj": (256, 384)}.items():
            module = f"model.layers.{layer}.{name}.weight"
            tensors[module] = chance.integers(0, 0x70, shape).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
            tensors[f"{module}_scale_inv"] = chance.uniform(1e-3, 1e-2, (shape[0] // 128, shape[1] // 128)).astype(np.float32)
        tensors[f"model.layers.{layer}.input_layernorm.weight"] = np.ones(256, ml_dtypes.bfloat16)
    tensors["model.embed_tokens.weight"] = chance.normal(0, 1, (96, 256)).astype(ml_dtypes.bfloat16)
    folder.mkdir(exist_ok=True)
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    for i, file in enumerate(names):
        tc.save(folder / file, {name: tensors[name] for name in list(tensors)[i::shards]})
    weight_map = {name: names[i % shards] for i, name in enumerate(tensors)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    config = {
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "vocab_size": 96, "hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 2, "tie_word_embeddings": True,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return folder
