#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes llm_compressor.json: what llm-compressor says in `quantization_config` of a small Llama, by preset.

By hand, with llmcompressor 0.14.0.1, whose pins of transformers and compressed-tensors are older than what it was run with:
  pip install --no-deps llmcompressor==0.14.0.1 datasets auto-round nvidia-ml-py
  tests/blocks/llm_compressor.py
python/tests/test_loaders.py compares it with what tcast writes.
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import transformers
from llmcompressor import oneshot
from llmcompressor.modifiers.quantization import QuantizationModifier

# What tcast is asked for, by the preset that llm-compressor has for it.
PRESETS = {
    "FP8_DYNAMIC": {"to": "fp8-channel", "activations": "dynamic"},
    "FP8_BLOCK": {"to": "fp8-block", "activations": "dynamic"},
    "W8A8": {"to": "int8-channel", "activations": "dynamic"},
    "MXFP8": {"to": "mxfp8", "activations": "dynamic"},
    "MXFP8A16": {"to": "mxfp8"},
    "MXFP6A8": {"to": "mxfp6", "activations": "dynamic"},
    "MXFP6A16": {"to": "mxfp6"},
    "MXFP4XFP8": {"to": "mxfp4", "activations": "dynamic"},
    "MXFP4A16": {"to": "mxfp4"},
    "NVFP4A16": {"to": "nvfp4"},
    "W4A16": {"to": "int4-group"},
    "W4A16_ASYM": {"to": "int4-group", "symmetric": False},
}


def section_of(preset: str, folder: pathlib.Path) -> dict[str, object]:
    config = transformers.LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=1, num_attention_heads=4,
                                      vocab_size=1024, tie_word_embeddings=False)  # fmt: skip
    source = folder / "source"  # oneshot() wants a model that has one
    transformers.AutoModelForCausalLM.from_config(config, dtype="bfloat16").save_pretrained(source)
    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype="bfloat16")
    oneshot(model=model, recipe=QuantizationModifier(targets="Linear", scheme=preset, ignore=["lm_head"]))
    model.save_pretrained(folder, save_compressed=True)
    section = json.loads((folder / "config.json").read_text())["quantization_config"]
    del section["version"]
    return section


def main() -> None:
    sections = {}
    for preset, options in PRESETS.items():
        with tempfile.TemporaryDirectory() as folder:
            sections[preset] = {"options": options, "section": section_of(preset, pathlib.Path(folder))}
    page = pathlib.Path(__file__).with_suffix(".json")
    page.write_text(json.dumps(sections, indent=1) + "\n")


if __name__ == "__main__":
    main()
