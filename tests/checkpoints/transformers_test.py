# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that transformers wrote: converted by tcast, loaded by transformers, same logits within tolerance."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
import transformers
from safetensors import safe_open
from transformers import (BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, T5Config,
                          T5ForConditionalGeneration)

TCAST = os.environ["TCAST"]
transformers.logging.set_verbosity_error()

SMALL = {"vocab_size": 128, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {
    "llama": (LlamaForCausalLM, LlamaConfig(**SMALL, num_key_value_heads=2)),
    "mixtral": (MixtralForCausalLM, MixtralConfig(**SMALL, num_key_value_heads=2, num_local_experts=4)),
    "t5": (T5ForConditionalGeneration, T5Config(vocab_size=128, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                                                decoder_start_token_id=0, tie_word_embeddings=True)),
    "bert": (BertModel, BertConfig(**SMALL)),
}


def outputs(model):
    tokens = torch.arange(1, 17).reshape(2, 8)
    inputs = {"input_ids": tokens}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens
    with torch.no_grad():
        result = model(**inputs)
    return (result.logits if hasattr(result, "logits") else result.last_hidden_state).float()


def tensors(folder):
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            assert file.metadata()["format"] == "pt"
            found.update({name: file.get_tensor(name) for name in file.keys()})
    return found


class TransformersTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def tcast(self, *arguments):
        done = subprocess.run([TCAST, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def check(self, name, shard_size, *options):
        model_class, config = MODELS[name]
        torch.manual_seed(1)
        model = model_class(config).eval()
        source, out = self.folder / f"{name}-{shard_size}", self.folder / f"{name}-{shard_size}-out"
        model.save_pretrained(source, max_shard_size=shard_size)
        self.tcast("convert", source, "-o", out, "--to", "bfloat16", *options)
        self.tcast("verify", out, "--against", source)
        before, after = tensors(source), tensors(out)
        self.assertEqual(before.keys(), after.keys())
        for key, tensor in before.items():
            self.assertTrue(torch.equal(tensor.to(torch.bfloat16), after[key]), key)
        config_before = json.loads((source / "config.json").read_text())
        config_after = json.loads((out / "config.json").read_text())
        for key in ("torch_dtype", "dtype"):
            if key in config_before:
                self.assertEqual(config_after.pop(key), "bfloat16")
                config_before.pop(key)
        self.assertEqual(config_before, config_after)
        loaded = model_class.from_pretrained(out, dtype="auto").eval()
        self.assertEqual(next(loaded.parameters()).dtype, torch.bfloat16)
        # The reference is PyTorch's own rounding of the same weights, loaded the same way.
        expected = model_class.from_pretrained(source, dtype=torch.bfloat16).eval()
        self.assertTrue(torch.equal(outputs(loaded), outputs(expected)))
        wide, narrow = outputs(model), outputs(loaded)
        self.assertLess((wide - narrow).norm() / wide.norm(), 0.05)

    def test_one_file(self):
        for name in MODELS:
            with self.subTest(name):
                self.check(name, "1GB")

    def test_shards(self):
        for name in MODELS:
            with self.subTest(name):
                self.check(name, "20KB")

    def test_shards_cut_anew(self):
        for name in MODELS:
            with self.subTest(name):
                self.check(name, "30KB", "--max-shard-size", "15KB")


if __name__ == "__main__":
    unittest.main()
