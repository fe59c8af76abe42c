#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tcast convert --to SCHEME: weights that a scheme cannot hold or would destroy, and what loaders want: lists, joined scales,
activations."""

import json
import struct

import quantize_test
import running
from quantize_test import HIDDEN, bf16


class QuantizeLimitsTest(running.CommandTest):
    def setUp(self):
        super().setUp()
        self.write_tensors("in", quantize_test.model())

    read = quantize_test.QuantizeTest.read
    write_tensors = quantize_test.QuantizeTest.write_tensors
    section = quantize_test.QuantizeTest.section

    def test_weights_that_a_scheme_cannot_hold_are_left_and_listed(self):
        ragged = {"model.layers.0.mlp.up_proj.weight": bf16(HIDDEN, HIDDEN, 1), "model.layers.0.mixer.dt_proj.weight": bf16(HIDDEN, 8, 2),
                  "model.layers.0.mixer.x_proj.weight": bf16(8, 250, 3), "down.attn.to_q.weight": ("BF16", [8, 8, 1, 1], bytes(128))}
        self.write_tensors("ragged", ragged)
        (self.folder / "ragged/config.json").write_text("{}")
        for scheme, size in (("nvfp4", 16), ("mxfp4", 32), ("int4-group", 128)):
            with self.subTest(scheme):
                out = f"out-{scheme}"
                words = ("convert", "ragged", "-o", out, "--to", scheme, "--spelling", "compressed-tensors")
                said = self.done(*words, "--dry-run")
                self.assertIn(f"cannot be {scheme}: 8 inputs are not whole groups of {size}", said)
                self.assertRegex(said, r"convolution +bfloat16  \(copied\)")
                error = self.refused(*words, "--strict-schemes")
                self.assertIn('"model.layers.0.mixer.dt_proj.weight" cannot be', error)
                self.assertIn('"model.layers.0.mixer.x_proj.weight" cannot be', error)
                self.assertIn("without --strict-schemes", error)
                self.assertFalse((self.folder / out).exists())
                done = self.exits(0, *words)
                self.assertIn("see --strict-schemes", done.stdout)
                self.assertIn('2 weights stay as they are: "model.layers.0.mixer.', done.stderr)
                same = self.read(out)
                for name in ragged.keys() - {"model.layers.0.mlp.up_proj.weight"}:
                    self.assertEqual(same[name], ragged[name])
                ignored = json.loads((self.folder / out / "config.json").read_text())["quantization_config"]["ignore"]
                self.assertEqual({"model.layers.0.mixer.dt_proj", "model.layers.0.mixer.x_proj"} - set(ignored), set())
                self.done("convert", out, "-o", f"back-{scheme}", "--to", "bfloat16")
        error = self.refused("convert", "ragged", "-o", "no", "--rule", "mixer=nvfp4")
        self.assertIn("8 inputs are not whole groups of 16; 1 other weight cannot have the scheme either", error)

    def test_what_loaders_join_is_quantized_or_left_as_a_whole(self):
        weights = {f"model.layers.0.self_attn.{name}_proj.weight": bf16(HIDDEN, HIDDEN, 1) for name in "qkvo"}
        weights["model.layers.0.self_attn.k_proj.weight"] = bf16(HIDDEN, 8, 2)
        self.write_tensors("joined", weights)
        said = self.done("convert", "joined", "-o", "out", "--to", "mxfp4", "--dry-run")
        self.assertIn('loaders join it with "model.layers.0.self_attn.k_proj.weight"', said)
        self.assertIn("1 weight quantized", said)

    def test_modules_of_newer_models_share_a_tensor_scale(self):
        weights = {}
        for i, names in enumerate(("in_proj_qkv in_proj_z", "in_proj_b in_proj_a", "wq_a wkv", "query key value", "q_proj g_proj")):
            for k, name in enumerate(names.split()):
                dtype, shape, content = bf16(HIDDEN, HIDDEN, 10 * i + k)
                words = [word + (k << 7) for word in struct.unpack(f"<{HIDDEN * HIDDEN}H", content)]  # times 2^k
                weights[f"model.layers.{i}.mixer.{name}.weight"] = dtype, shape, struct.pack(f"<{len(words)}H", *words)
        self.write_tensors("newer", weights)
        for spelling, word in (("modelopt", "weight_scale_2"), ("compressed-tensors", "weight_global_scale")):
            self.done("convert", "newer", "-o", spelling, "--to", "nvfp4", "--spelling", spelling)
            scales = {name: content for name, (_, _, content) in self.read(spelling).items() if name.endswith(word)}
            self.assertEqual(len(scales), len(weights))
            self.assertEqual(len(set(scales.values())), 5)
            for i in range(5):
                self.assertEqual(len({value for name, value in scales.items() if f"layers.{i}." in name}), 1, i)

    def unlisted(self, folder, module, weight, source):
        """Without the module in its list, the folder is refused."""
        path = self.folder / folder / "config.json"
        path.write_text(path.read_text().replace(module, "other"))
        (self.folder / folder / "SHA256SUMS").unlink()
        self.assertIn(f'"{weight}": config.json names this weight\'s module as quantized, and it has no codes',
                      self.refused("verify", folder, "--against", source))

    def test_linear_layers_named_after_embeddings_and_norms_are_listed(self):
        linear = ["model.embed_vision.embedding_projection", "vision_model.patch_embedding.linear", "blocks.0.norm1.linear",
                  "vision.embeddings.patch_embedding"]
        others = ["model.embed_tokens", "vision.embeddings.position_embedding", "model.layers.0.q_norm", "wte"]
        q_proj = "model.layers.0.self_attn.q_proj"
        self.write_tensors("multi", {f"{name}.weight": bf16(HIDDEN, HIDDEN, i) for i, name in enumerate([q_proj, *linear, *others])})
        for scheme, key in (("fp8-block", "modules_to_not_convert"), ("nvfp4", "ignore"), ("fp8-channel", "ignore")):
            self.done("convert", "multi", "-o", scheme, "--to", scheme)
            listed = self.section(scheme)[key]
            self.assertEqual(set(linear) - set(listed), set())
            self.assertEqual({name for name in listed if name in others}, set())
            self.assertIn("as converted", self.done("verify", scheme, "--against", "multi"))
        self.unlisted("fp8-block", linear[0], f"{linear[0]}.weight", "multi")

    def test_experts_that_stay_are_listed_by_the_name_of_their_module(self):
        q_proj = "model.layers.{}.self_attn.q_proj.weight"
        fused = {q_proj.format(0): bf16(HIDDEN, HIDDEN, 1)}
        for name in ("gate_up_proj", "down_proj"):
            fused[f"model.layers.0.mlp.experts.{name}"] = "BF16", [2, 32, 32], bf16(HIDDEN, 32, 2)[2]
        single = {q_proj.format(i): bf16(HIDDEN, HIDDEN, 3 + i) for i in range(2)}
        for i in range(4):
            for name in ("gate_proj", "up_proj", "down_proj"):
                single[f"model.layers.{i // 2}.mlp.experts.{i % 2}.{name}.weight"] = bf16(HIDDEN, HIDDEN, 5 + i)
        self.write_tensors("fused", fused)
        self.write_tensors("single", single)
        experts = "model.layers.0.mlp.experts"
        for scheme, key in (("fp8-block", "modules_to_not_convert"), ("nvfp4", "ignore"), ("fp8-channel", "ignore")):
            for source in ("fused", "single"):
                out = f"{source}-{scheme}"
                self.done("convert", source, "-o", out, "--to", scheme, "--exclude", r"layers\.0\.mlp\.experts")
                self.assertIn(experts, self.section(out)[key])
                self.assertNotIn("model.layers.1.mlp.experts", self.section(out)[key])
                self.done("verify", out, "--against", source)
        self.assertIn(r"re:.*layers\.0\.mlp\.experts\..*", self.section("fused-fp8-channel")["ignore"])
        # Not one of which some are codes.
        self.done("convert", "single", "-o", "one", "--to", "fp8-block", "--exclude", r"layers\.0\.mlp\.experts\.1")
        self.assertNotIn(experts, self.section("one")["modules_to_not_convert"])
        # A list without it is a contradiction, and decoding extends it.
        self.unlisted("fused-fp8-block", experts, f"{experts}.gate_up_proj", "fused")
        self.done("convert", "single", "-o", "codes", "--to", "fp8-block")
        self.done("convert", "codes", "-o", "half", "--to", "bfloat16", "--include", r"layers\.0\.mlp\.experts")
        self.assertIn(experts, self.section("half")["modules_to_not_convert"])
        self.done("convert", "codes", "-o", "less", "--to", "bfloat16", "--include", r"layers\.0\.mlp\.experts\.0")
        self.assertNotIn(experts, self.section("less")["modules_to_not_convert"])

    def test_adapters_stay_plain(self):
        base = "base_model.model.model.layers.0.self_attn.q_proj"
        self.write_tensors("lora", {f"{base}.lora_A.weight": bf16(16, HIDDEN, 1), f"{base}.lora_B.weight": bf16(HIDDEN, 16, 2)})
        said = self.refused("convert", "lora", "-o", "out", "--to", "fp8-channel")
        self.assertIn("loaders of adapters take their weights as numbers", said)
        self.done("convert", "lora", "-o", "out", "--to", "fp8-channel", "--force-layout")
        self.done("convert", "lora", "-o", "half", "--to", "float16")

    def test_a_quantized_head_is_a_target_beside_linear_layers(self):
        self.done("convert", "in", "-o", "head", "--to", "fp8-channel", "--rule", "lm_head=fp8-channel")
        self.assertEqual([group["targets"] for group in self.section("head")["config_groups"].values()], [["Linear", "lm_head"]])
        self.assertIn("5 weights are fp8-channel", self.done("verify", "head", "--against", "in"))

    def test_what_transformers_would_guess_is_written(self):
        self.done("convert", "in", "-o", "tensor", "--to", "fp8-tensor", "--spelling", "deepseek")
        self.assertIsNone(self.section("tensor")["weight_block_size"])
        self.done("convert", "in", "-o", "mx", "--to", "mxfp8")
        self.assertEqual(self.section("mx")["scale_fmt"], "ue8m0")
        for folder in ("tensor", "mx"):
            self.assertIn("4 weights are", self.done("verify", folder, "--against", "in"))

    def test_activations_of_a_loader(self):
        def inputs(out, *words):
            self.done("convert", "in", "-o", out, *words)
            return json.loads((self.folder / out / "config.json").read_text())["quantization_config"]

        # As presets of compressed-tensors 0.20.1 dump themselves: FP8_DYNAMIC, FP8_BLOCK, INT8, MXFP8, MXFP4XFP8.
        token = {"num_bits": 8, "type": "float", "symmetric": True, "group_size": None, "strategy": "token", "dynamic": True}
        group = {**token, "strategy": "group"}
        expected = {"fp8-channel": token, "fp8-block": {**group, "group_size": 128}, "int8-channel": {**token, "type": "int"},
                    "mxfp8": {**group, "group_size": 32, "scale_dtype": "torch.uint8"}, "mxfp4": {**group, "group_size": 128}}
        for scheme, activations in expected.items():
            words = ("--to", scheme, "--spelling", "compressed-tensors")
            group_0 = inputs(scheme, *words, "--activations", "dynamic")["config_groups"]["group_0"]
            self.assertEqual(group_0["input_activations"], activations, scheme)
            self.assertEqual(set(group_0["weights"]) - {"block_structure", "scale_dtype"},
                             {"num_bits", "type", "symmetric", "group_size", "strategy", "dynamic", "observer"})
            self.assertIsNone(inputs(f"{scheme}-none", *words)["config_groups"]["group_0"]["input_activations"])
            self.assertIn("dynamic activations", self.done("convert", "in", "-o", "no", *words, "--activations", "dynamic", "--dry-run"))
        tools = ("--to", "fp8-channel", "--recipe", "compressed-tensors", "--spelling", "compressed-tensors")
        self.assertEqual(inputs("tool", *tools)["config_groups"]["group_0"]["input_activations"], token)
        self.assertIsNone(inputs("none", *tools, "--activations", "none")["config_groups"]["group_0"]["input_activations"])
        self.assertIn("nvfp4 as modelopt has no activations", self.refused("convert", "in", "-o", "no", "--to", "nvfp4", "--activations",
                                                                           "dynamic"))
        self.assertIn("loaders of fp8-block as deepseek quantize activations", self.refused(
            "convert", "in", "-o", "no", "--to", "fp8-block", "--spelling", "deepseek", "--activations", "none"))

    def test_modelopt_has_no_static_activations_without_a_scale(self):
        error = self.refused("convert", "in", "-o", "no", "--to", "fp8-tensor", "--spelling", "modelopt")
        self.assertIn("modelopt has fp8-tensor only with a calibrated scale of activations", error)
        self.done("convert", "in", "-o", "plain", "--to", "fp8-tensor", "--spelling", "compressed-tensors")
        self.assertIn("fp8-channel needs none", self.refused("convert", "plain", "-o", "no", "--respell", "modelopt"))
        self.done("convert", "plain", "-o", "deepseek", "--respell", "deepseek")
        config = json.loads((self.folder / "deepseek/config.json").read_text())["quantization_config"]
        self.assertEqual(config["activation_scheme"], "dynamic")

    def test_a_scheme_that_destroys_a_weight_is_an_error(self):
        name = "model.layers.0.mlp.up_proj.weight"
        dtype, shape, content = bf16(HIDDEN, HIDDEN, 1)
        largest = b"\x80\x4e"  # 2^30, beside which all others are zero
        self.write_tensors("outlier", {name: (dtype, shape, content[:100] + largest + content[102:])})
        for quiet in ((), ("--quiet",)):
            error = self.refused("convert", "outlier", "-o", "out", "--to", "fp8-tensor", *quiet)
            self.assertRegex(error, rf'tensor "{name}": \d+ of 40\d\d nonzero elements became zero\ntcast: hint: .*; --allow-loss converts')
        # Nothing of the failed conversion is in the way of another.
        self.done("convert", "outlier", "-o", "out", "--to", "fp8-channel")
        said = self.exits(0, "convert", "outlier", "-o", "lost", "--to", "fp8-tensor", "--allow-loss").stderr
        self.assertIn("nonzero elements became zero", said)


if __name__ == "__main__":
    running.main(__doc__)
