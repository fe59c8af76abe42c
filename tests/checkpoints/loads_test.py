# SPDX-License-Identifier: Apache-2.0
"""Folders and files that tcast quantized, loaded by those who read them: the numbers of our own decoding, bit for bit.

transformers loads every spelling that it reads on a CPU, and gives the same logits. Where it reads none, the tool that
defines the spelling decodes it: the gguf package, ModelOpt, and comfy-kitchen, which has the kernels of ComfyUI.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import comfy_kitchen
import gguf
import numpy as np
import torch
import transformers
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors import safe_open
from safetensors.torch import load_file, save_file

TCAST = os.environ["TCAST"]
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

COMPRESSED = transformers.CompressedTensorsConfig(run_compressed=False)
FLOAT8 = transformers.FineGrainedFP8Config(dequantize=True)
# Scheme, spelling, options; what transformers is told, if it is not the folder's own configuration.
FOLDERS = [
    *((scheme, "compressed-tensors", [], COMPRESSED) for scheme in
      ("fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "int8-channel")),
    *(("int4-group", "compressed-tensors", ["--group-size", size], COMPRESSED) for size in ("32", "64", "128")),
    ("int4-group", "compressed-tensors", ["--group-size", "64", "--no-symmetric"], COMPRESSED),
    # Decompressed, transformers takes the whole model for one format.
    ("nvfp4", "compressed-tensors", ["--rule", "self_attn=fp8-channel"], None),
    ("fp8-block", "deepseek", [], FLOAT8),
    ("fp8-block", "deepseek", ["--power-of-two-scales"], FLOAT8),
    ("mxfp8", "transformers-mxfp8", [], FLOAT8),
]
GGUF_SCHEMES = ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q6_k", "mxfp4")


def llama(folder):
    torch.manual_seed(3)
    config = transformers.LlamaConfig(vocab_size=64, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def gpt_oss(folder):
    torch.manual_seed(4)
    config = transformers.GptOssConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
                                       num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_local_experts=4,
                                       num_experts_per_tok=2)
    transformers.GptOssForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def llama_gguf(path):
    """The tensors and the metadata of a model of llama.cpp, with a vocabulary that transformers takes."""
    width, inner, layers, words = 256, 512, 2, 64
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_rope_dimension_count(width // 4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(words)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    random = np.random.default_rng(5)

    def add(name, *shape):
        writer.add_tensor(name, random.standard_normal(shape, dtype=np.float32) * np.float32(0.05))

    add("token_embd.weight", words, width)
    add("output.weight", words, width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for i in range(layers):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{norm}.weight", np.ones(width, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{i}.{name}.weight", width, width)
        add(f"blk.{i}.ffn_gate.weight", inner, width)
        add(f"blk.{i}.ffn_up.weight", inner, width)
        add(f"blk.{i}.ffn_down.weight", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits(folder, dtype=torch.bfloat16, **options):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **options).eval()
    with torch.no_grad():
        return model(torch.arange(32)[None] % 64).logits


def gguf_numbers(path):
    return {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in gguf.GGUFReader(path).tensors}


class LoadsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def convert(self, *arguments):
        done = subprocess.run([TCAST, "convert", *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def quantized(self, source, scheme, spelling, *options):
        """The folder, and the same decoded."""
        name = f"{scheme}-{spelling}{''.join(options)}".replace("/", "-")
        out, plain = self.folder / name, self.folder / f"{name}-bfloat16"
        self.convert(source, "-o", out, "--to", scheme, "--spelling", spelling, *options)
        self.convert(out, "-o", plain, "--to", "bfloat16")
        return out, plain

    def test_transformers_loads_every_spelling(self):
        source = self.folder / "plain"
        llama(source)
        for scheme, spelling, more, configuration in FOLDERS:
            with self.subTest(f"{scheme} as {spelling} {more}"):
                out, plain = self.quantized(source, scheme, spelling, *more)
                options = {} if configuration is None else {"quantization_config": configuration}
                self.assertTrue(torch.equal(logits(out, **options), logits(plain)))
                self.assertFalse(torch.equal(logits(plain), logits(source)), "nothing was quantized")

    def test_transformers_loads_gpt_oss(self):
        source = self.folder / "plain"
        gpt_oss(source)
        out, plain = self.quantized(source, "mxfp4", "gpt-oss")
        loaded = logits(out, quantization_config=transformers.Mxfp4Config(dequantize=True))
        self.assertTrue(torch.equal(loaded, logits(plain)))
        self.assertFalse(torch.equal(loaded, logits(source)), "nothing was quantized")

    def test_transformers_and_the_gguf_package_load_gguf(self):
        source = self.folder / "plain.gguf"
        llama_gguf(source)
        for scheme in GGUF_SCHEMES:
            with self.subTest(scheme):
                out, plain = self.folder / f"{scheme}.gguf", self.folder / f"{scheme}-float32.gguf"
                self.convert(source, "-o", out, "--to", scheme)
                self.convert(out, "-o", plain, "--to", "float32")
                loaded, decoded = gguf_numbers(out), gguf_numbers(plain)
                self.assertEqual(loaded.keys(), decoded.keys())
                for name, numbers in loaded.items():
                    np.testing.assert_array_equal(numbers, decoded[name], name)
                by_name = {"dtype": torch.float32}
                found = logits(self.folder, gguf_file=out.name, **by_name)
                self.assertTrue(torch.equal(found, logits(self.folder, gguf_file=plain.name, **by_name)))
                self.assertFalse(torch.equal(found, logits(self.folder, gguf_file=source.name, **by_name)))

    def test_modelopt_decodes_its_spelling(self):
        source = self.folder / "plain"
        llama(source)
        out, plain = self.quantized(source, "nvfp4", "modelopt")
        section = json.loads((out / "hf_quant_config.json").read_text())["quantization"]
        self.assertEqual(section["quant_algo"], "W4A16_NVFP4")
        quantized, decoded = load_file(out / "model.safetensors"), load_file(plain / "model.safetensors")
        found = 0
        for name, codes in quantized.items():
            if codes.dtype != torch.uint8:
                continue
            weight = NVFP4QTensor(decoded[name].shape, torch.bfloat16, codes)
            numbers = weight.dequantize(torch.bfloat16, scale=quantized[f"{name}_scale"],
                                        double_scale=quantized[f"{name}_scale_2"], block_sizes={-1: 16})
            self.assertTrue(torch.equal(numbers, decoded[name]), name)
            found += 1
        self.assertEqual(found, 14)

    def test_comfyui_decodes_its_spelling(self):
        """In float32, as comfy-kitchen rounds more than once in bfloat16."""
        source = self.folder / "plain.safetensors"
        torch.manual_seed(6)
        save_file({"a.weight": torch.randn(130, 96)}, source)
        decoders = {
            "fp8-tensor": lambda t: comfy_kitchen.dequantize_per_tensor_fp8(t["a.weight"], t["a.weight_scale"],
                                                                            torch.float32),
            "mxfp8": lambda t: comfy_kitchen.dequantize_mxfp8(t["a.weight"], t["a.weight_scale"], torch.float32),
            "nvfp4": lambda t: comfy_kitchen.dequantize_nvfp4(t["a.weight"], t["a.weight_scale_2"], t["a.weight_scale"],
                                                              torch.float32),
            "int8-channel": lambda t: comfy_kitchen.dequantize_int8_simple(t["a.weight"], t["a.weight_scale"]),
        }
        for scheme, decode in decoders.items():
            with self.subTest(scheme):
                out, plain = self.folder / f"{scheme}.safetensors", self.folder / f"{scheme}-float32.safetensors"
                self.convert(source, "-o", out, "--to", scheme, "--spelling", "comfyui")
                self.convert(out, "-o", plain, "--to", "float32")
                with safe_open(out, "pt") as file:
                    self.assertIn("a", json.loads(file.metadata()["_quantization_metadata"])["layers"])
                numbers, ours = decode(load_file(out)), load_file(plain)["a.weight"]
                self.assertTrue(torch.equal(numbers[:130, :96], ours))


if __name__ == "__main__":
    unittest.main()
