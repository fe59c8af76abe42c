#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Disasters that other converters of quantized checkpoints had, configurations that lie, and conversions that die."""

import json
import math
import random
import resource
import struct
import subprocess
import time

import checkpoints
import running
from quantized_models import MODELS, Model, floats


def brain(tensor):
    """The numbers of a bfloat16 tensor."""
    dtype, _, content = tensor
    assert dtype == "BF16", dtype
    words = struct.unpack(f"<{len(content) // 2}H", content)
    return [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]


class DisastersTest(running.CommandTest):
    def decoded(self, name, model, tensor):
        model.write(self.folder / name, shards=2)
        out = self.folder / f"{name}-out"
        self.done("convert", name, "-o", out, "--to", "bfloat16")
        tensors = {}
        for path in out.glob("*.safetensors"):
            tensors.update(checkpoints.read(path)[0])
        return brain(tensors[tensor]), set(tensors)

    def test_the_scale_of_deepseek_v4_is_no_weight(self):
        """Left beside codes that were cast as numbers, weights were 3361 times too large."""
        config = {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128],
                                          "scale_fmt": "ue8m0"}}
        model = Model(1, config)
        model.tensors["w.weight"] = ("F8_E4M3", [2, 2], bytes([0x38] * 4))  # 1
        model.tensors["w.scale"] = ("F8_E8M0", [1, 1], bytes([127 - 12]))
        numbers, names = self.decoded("v4", model, "w.weight")
        self.assertEqual(numbers, [2.0**-12] * 4)
        self.assertNotIn("w.scale", names)

    def test_the_high_nibble_is_first_in_comfyui_alone(self):
        for name, pair in (("comfyui-nvfp4", [1.0, 0.5]), ("modelopt-nvfp4", [0.5, 1.0]), ("ct-nvfp4", [0.5, 1.0])):
            model = MODELS[name][0]()
            codes = "a.weight_packed" if name == "ct-nvfp4" else "a.weight"
            dtype, shape, content = model.tensors[codes]
            model.tensors[codes] = (dtype, shape, bytes([0x21] * len(content)))  # 1 is high, 0.5 is low
            scales = model.tensors["a.weight_scale"]
            model.tensors["a.weight_scale"] = (*scales[:2], bytes([0x38] * len(scales[2])))  # 1
            second = "a.weight_global_scale" if name == "ct-nvfp4" else "a.weight_scale_2"
            model.tensors[second] = (*model.tensors[second][:2], floats([1.0]))
            self.assertEqual(self.decoded(name, model, "a.weight")[0][:2], pair, name)

    def test_the_global_scale_of_compressed_tensors_divides(self):
        for name, second, number in (("ct-nvfp4", "a.weight_global_scale", 0.25), ("modelopt-nvfp4", "a.weight_scale_2", 4.0)):
            model = MODELS[name][0]()
            codes = "a.weight_packed" if name == "ct-nvfp4" else "a.weight"
            dtype, shape, content = model.tensors[codes]
            model.tensors[codes] = (dtype, shape, bytes([0x22] * len(content)))  # 1
            scales = model.tensors["a.weight_scale"]
            model.tensors["a.weight_scale"] = (*scales[:2], bytes([0x38] * len(scales[2])))  # 1
            model.tensors[second] = (*model.tensors[second][:2], floats([4.0]))
            self.assertEqual(set(self.decoded(name, model, "a.weight")[0]), {number}, name)


# Descriptions that contradict names, shapes or types: a model, the key of its config or of one of its texts, and lies.
SIZES_THAT_LIE = (0, -1, 24, 2**31, 2**63, 1.5, "32", [32], {})
WEIGHTS = ("quantization_config", "config_groups", "group_0", "weights")
CONTRADICTIONS = [
    ("ct-fp8-block", (*WEIGHTS, "block_structure"), ([0, 128], [128], [2**40, 128], "128x128", None, [64, 64])),
    ("ct-fp8-channel", (*WEIGHTS, "strategy"), ("tensor", "block", "rows", 7)),
    ("ct-fp8-channel", (*WEIGHTS, "num_bits"), (4, 0, -8, 2**40, "8")),
    ("ct-int4", (*WEIGHTS, "group_size"), (*SIZES_THAT_LIE, 64, 16)),
    ("ct-int4", (*WEIGHTS, "num_bits"), (8, 0, -4, 9, 2**40, "4", None)),
    ("ct-int4", (*WEIGHTS, "symmetric"), (False,)),
    ("ct-mxfp4", (*WEIGHTS, "group_size"), (*SIZES_THAT_LIE, 16)),
    ("ct-nvfp4", (*WEIGHTS, "group_size"), (*SIZES_THAT_LIE, 32)),
    ("ct-nvfp4", ("quantization_config", "format"), ("mxfp4-pack-quantized", "pack-quantized", "float-quantized", "x", 4)),
    ("ct-nvfp4", ("quantization_config", "config_groups"), ({}, None, [], {"g": {}}, {"g": {"targets": ["Conv2d"]}})),
    ("ct-nvfp4", (*WEIGHTS[:3], "targets"), (["re:^b"], [], 4)),
    ("gptq", ("quantization_config", "bits"), (8, 2, 0, -4, 5, 2**40, "4", None)),
    ("gptq", ("quantization_config", "group_size"), (*SIZES_THAT_LIE, 64, 16)),
    ("awq", ("quantization_config", "bits"), (8, 0, 2**40, "4")),
    ("awq", ("quantization_config", "group_size"), (*SIZES_THAT_LIE, 64, 16)),
    ("awq", ("quantization_config", "version"), ("gemv", "marlin")),
    ("mxfp8", ("quantization_config", "weight_block_size"), ([1, 0], [1, 64], [32, 32], [1], "1x32", [1, 2**63])),
    ("mlx", ("quantization", "group_size"), (*SIZES_THAT_LIE, 64, 16)),
    ("mlx", ("quantization", "bits"), (8, 2, 0, -4, 7, 2**40, "4")),
    ("mlx-mxfp4", ("quantization", "mode"), ("affine", "nvfp4", "mxfp8", "x", 4)),
    ("modelopt-fp8", ("quantization_config", "quant_algo"), ("NVFP4", "W4A16_AWQ", "x")),
]

# What no layer of the models is decoded without.
NEEDED = (".weight_scale_inv", ".weight_scale", "_scales", ".scales", ".weight_global_scale", ".weight_scale_2", ".absmax",
          ".qzeros", ".weight_zero_point", ".scale", ".SCB", ".scale_weight", ".biases")


class LiesTest(running.CommandTest):
    def refuses(self, name, model, words, shards=1):
        """Is refused in time and memory that the size of the folder allows, and writes nothing."""
        model.write(self.folder / name, shards=shards)
        begin = time.process_time()
        limit = 2 << 30
        out = f"{name}-lie"
        done = subprocess.run([running.TCAST, "convert", name, "-o", out, "--to", "bfloat16"], cwd=self.folder, text=True,
                              capture_output=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(words, done.stderr)
        self.assertFalse((self.folder / out).exists())
        return time.process_time() - begin

    def test_needed_tensors_that_are_missing_or_something_else(self):
        for spelling in MODELS:
            for tensor in MODELS[spelling][0]().tensors:
                if not tensor.endswith(NEEDED):
                    continue
                dtype, shape, content = MODELS[spelling][0]().tensors[tensor]
                count = max(1, math.prod(shape))
                more = [shape[0] + 1, *shape[1:]] if shape else [2]
                grown = content * 2 if not shape else content + content[:len(content) // shape[0]]
                for i, lie in enumerate((None, (dtype, more, grown), ("I64", shape, bytes(8 * count)), (dtype, [0], b""))):
                    with self.subTest(f"{spelling}: {tensor} is {lie and lie[:2]}"):
                        model = MODELS[spelling][0]()
                        del model.tensors[tensor]
                        if lie is not None:
                            model.tensors[tensor] = lie
                        self.refuses(f"{spelling}-{tensor}-{i}", model, 'tensor "', shards=1 + i % 2)

    def test_descriptions_that_contradict_the_tensors(self):
        for spelling, keys, lies in CONTRADICTIONS:
            for i, lie in enumerate(lies):
                with self.subTest(f"{spelling}: {'.'.join(keys)} is {lie}"):
                    model = MODELS[spelling][0]()
                    section = model.config
                    for key in keys[:-1]:
                        section = section[key]
                    section[keys[-1]] = lie
                    self.refuses(f"{spelling}-{keys[-1]}-{i}", model, 'tensor "')

    def test_quant_states_that_lie(self):
        for key, lies in {"blocksize": (*SIZES_THAT_LIE, 128), "shape": ([7, 191], [2**40, 2**40], [], "7", [-7, -192], None),
                          "quant_type": ("int4", 4, None), "nested_blocksize": (0, -1, 2**63, "256", 16),
                          "nested_offset": ("x", None, [0])}.items():
            for i, lie in enumerate(lies):
                with self.subTest(f"{key} is {lie}"):
                    model = MODELS["nf4"][0]()
                    name = "a.weight.quant_state.bitsandbytes__nf4"
                    text = json.dumps({**json.loads(model.tensors[name][2]), key: lie}).encode()
                    model.tensors[name] = ("U8", [len(text)], text)
                    self.refuses(f"{key}-{i}", model, 'tensor "')

    def test_an_order_of_groups_that_is_not_there(self):
        model = MODELS["gptq-order"][0]()
        model.config["quantization_config"]["desc_act"] = True
        del model.tensors["a.g_idx"]
        self.refuses("gptq-order", model, "config.json names desc_act, groups in an order that g_idx tells, which is missing")

    def test_two_scales_of_a_weight(self):
        model = MODELS["comfyui-old-fp8"][0]()
        model.tensors["a.weight_scale"] = ("F32", [], floats([3.0]))
        self.refuses("comfyui", model, 'tensor "a.weight_scale": it has a scale_weight, too')

    def test_scales_whose_codes_are_not_there(self):
        for name, codes, decoder in (("ct-int4-asymmetric", "a.weight_packed", "a.weight_scale"),
                                     ("gptq", "a.qweight", "a.scales")):
            model = MODELS[name][0]()
            del model.tensors[codes]
            model.write(self.folder / name)
            error = self.refused("convert", name, "-o", f"{name}-out", "--to", "float32")
            self.assertIn(f'tensor "{decoder}": it decodes the codes of quantized weights, and rounding', error)
            self.done("convert", name, "-o", f"{name}-left", "--to", "float32", "--exclude", "^a\\.")
            kept = checkpoints.read(self.folder / f"{name}-left/model.safetensors")[0][decoder]
            self.assertEqual(kept, model.tensors[decoder])

    def test_scales_of_a_shard_that_is_not_there(self):
        model = MODELS["deepseek"][0]()
        model.write(self.folder / "cut", shards=3)
        (self.folder / "cut" / "model-00003-of-00003.safetensors").unlink()
        self.assertIn("model-00003-of-00003.safetensors",
                      self.refused("convert", "cut", "-o", self.out, "--to", "bfloat16"))
        self.assertFalse(self.out.exists())

    def test_weight_shape(self):
        for shape in ((16, 65), (17, 64), (1 << 40, 1 << 40), (-16, -64), (16, 0), (2**62, 4)):
            model = MODELS["ct-int4"][0]()
            model.tensors["a.weight_shape"] = ("I64", [2], struct.pack("<2q", *shape))
            self.refuses(f"shape{shape[0]}x{shape[1]}", model, 'tensor "a.weight')

    def test_a_description_that_changed_since_it_was_planned(self):
        for name, file, old, new in (("gptq", "config.json", '"gptq"\n', '"gptq_v2"\n'),
                                     ("modelopt-nvfp4", "hf_quant_config.json", '"lm_head"', '"other"')):
            MODELS[name][0]().write(self.folder / name)
            self.done("plan", name, "-o", f"{name}-out", "--to", "float32", "-q")
            self.done("run-shard", f"{name}-out", "0")
            path = self.folder / name / file
            before = path.read_text()
            self.assertIn(old, before)
            path.write_text(before.replace(old, new))
            self.assertIn(f"{file}: ", self.refused("finish", f"{name}-out"))
            path.write_text(before)
            self.done("finish", f"{name}-out")

    def test_block_sizes(self):
        for size in (0, -128, 2**40, 2**63, 1.5, "128", None, [128]):
            model = MODELS["deepseek"][0]()
            model.config["quantization_config"]["weight_block_size"] = [size, 128]
            self.refuses(f"block{size}", model, "weight_scale_inv")

    def test_configurations_that_are_deep_or_large(self):
        for name, text in (("deep", '{"quantization_config": ' + '{"a": [' * 100000 + "]}" * 100000 + "}"),
                           ("large", '{"quantization_config": {"quant_method": "fp8", "a": "' + "x" * (5 << 20) + '"}}')):
            model = MODELS["deepseek"][0]()
            model.write(self.folder / name)
            (self.folder / name / "config.json").write_text(text)
            done = self.tcast("convert", name, "-o", "lie", "--to", "bfloat16")
            self.assertIn(done.returncode, (0, 1), done.stderr)  # and no signal
            self.assertNotEqual(done.returncode, 0, "codes were converted as numbers")


class KillTest(running.CommandTest):
    def contents(self, folder):
        """Of what a loader reads."""
        names = [path for path in (self.folder / folder).iterdir() if path.suffix in (".safetensors", ".json")]
        return {path.name: path.read_bytes() for path in names if not path.name.startswith((".", "tensorcast"))}

    def test_the_same_command_goes_on(self):
        model = Model(1, {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})
        for layer in range(3):
            model.tensors[f"l{layer}.weight"] = ("F8_E4M3", [512, 512], bytes([0x38 + layer]) * (1 << 18))
            model.tensors[f"l{layer}.weight_scale_inv"] = ("F32", [4, 4], floats([0.37 + layer] * 16))
        model.write(self.folder / "in", shards=2)
        self.done("convert", "in", "-o", "whole", "--to", "bfloat16")
        wanted = self.contents("whole")
        source = random.Random(7)
        for _ in range(3):
            process = subprocess.Popen([running.TCAST, "convert", "in", "-o", "killed", "--to", "bfloat16"], cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(source.uniform(0, 0.03))
            process.kill()
            process.wait()
            self.done("convert", "in", "-o", "killed", "--to", "bfloat16", "--force")
            self.assertTrue(self.contents("killed") == wanted)
            subprocess.run(["rm", "-r", self.folder / "killed"], check=True)


if __name__ == "__main__":
    running.main(__doc__)
