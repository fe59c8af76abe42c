#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny random models that compressed-tensors quantized give the logits of our bfloat16 folder, bit for bit.

Those that tcast quantized are in tests/checkpoints/loads_test.py."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import make_fixtures
import torch
import transformers
from safetensors.torch import load_file, save_file

TCAST = os.environ["TCAST"]
SCHEMES = ("ct-fp8-channel", "ct-mxfp8", "ct-mxfp4", "ct-nvfp4", "ct-int8-channel", "ct-int4-group")


def tiny_model(folder):
    torch.manual_seed(3)
    config = transformers.LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)


def quantize(source, folder, name):
    """Every linear weight but the head, in the form of a fixture of compressed-tensors."""
    folder.mkdir()
    config = json.loads((source / "config.json").read_text())
    tensors = {}
    for tensor, content in load_file(source / "model.safetensors").items():
        if "_proj" not in tensor:
            tensors[tensor] = content
            continue
        make_fixtures.weight = lambda *_, content=content, **__: content
        fixture = make_fixtures.FIXTURES[name]()
        module = tensor.removesuffix("weight")
        tensors.update({module + part.removeprefix("a."): value for part, value in fixture.tensors.items()})
    config.update(fixture.config)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))


def logits(folder, **options):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, **options).eval()
    with torch.no_grad():
        return model(torch.arange(32)[None] % 64).logits


class LoadTest(unittest.TestCase):
    def test_logits_are_those_of_the_decoded_folder(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            tiny_model(folder / "plain")
            for name in SCHEMES:
                with self.subTest(name):
                    quantize(folder / "plain", folder / name, name)
                    out = folder / f"{name}-bf16"
                    subprocess.run([TCAST, "convert", folder / name, "-o", out, "--to", "bfloat16"], check=True,
                                   capture_output=True)
                    dequantized = transformers.CompressedTensorsConfig(run_compressed=False)
                    loaded = logits(folder / name, quantization_config=dequantized)
                    self.assertTrue(torch.equal(loaded, logits(out)), name)

    def test_respelled_folders_load(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            tiny_model(folder / "plain")
            for name, spelling in (("ct-mxfp8", "transformers-mxfp8"), ("ct-fp8-block", "deepseek")):
                with self.subTest(spelling):
                    quantize(folder / "plain", folder / name, name)
                    out, plain = folder / spelling, folder / f"{spelling}-bf16"
                    for more in (["-o", out, "--respell", spelling], ["-o", plain, "--to", "bfloat16"]):
                        subprocess.run([TCAST, "convert", folder / name, *more], check=True, capture_output=True)
                    dequantized = transformers.FineGrainedFP8Config(dequantize=True)
                    loaded = logits(out, quantization_config=dequantized)
                    self.assertTrue(torch.equal(loaded, logits(plain)), spelling)


if __name__ == "__main__":
    unittest.main()
