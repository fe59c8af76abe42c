#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantized checkpoints: what inspect says of each spelling, and their weights decoded."""

import json
import math
import struct
import subprocess

import checkpoints
import fixtures
import quantized_models
import running
from quantized_models import MODELS


class QuantizedTest(running.CommandTest):
    def model(self, name, **options):
        model = MODELS[name][0]()
        model.write(self.folder / name, **options)
        return model


class InspectTest(QuantizedTest):
    def test_every_spelling_is_named(self):
        for name, (_, spelling, scheme) in MODELS.items():
            with self.subTest(name):
                model = self.model(name, shards=3)
                found = json.loads(self.done("inspect", name, "--json"))
                layers = {layer["name"]: layer for layer in found["layers"]}
                self.assertEqual(set(layers), set(model.weights))
                for layer, (shape, _) in model.weights.items():
                    self.assertEqual(layers[layer]["spelling"], spelling)
                    self.assertEqual(layers[layer]["shape"], shape)
                    self.assertNotIn("problem", layers[layer])
                self.assertIn(scheme, {layer["scheme"] for layer in layers.values()})
                text = self.done("inspect", name)
                self.assertIn(spelling, text)
                self.assertIn(scheme, text)

    def test_one_file_is_described_by_the_config_beside_it(self):
        self.model("deepseek")
        self.assertIn("deepseek  fp8-block  128 x 128", self.done("inspect", "deepseek/model.safetensors"))

    def test_scales_that_loaders_stumble_over(self):
        config = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}
        model = quantized_models.Model(1, config)
        for name, scale in (("mlp.gate_proj", 1.5), ("mlp.up_proj", 2.5), ("attn.q_proj", 1.0), ("attn.k_proj", 1.0),
                            ("o_proj", float("nan")), ("p_proj", -1.0)):
            model.tensors[name + ".weight"] = ("F8_E4M3", [2, 2], bytes(4))
            model.tensors[name + ".weight_scale"] = ("F32", [], quantized_models.floats([scale]))
        model.write(self.folder / "odd")
        text = self.done("inspect", "odd")
        self.assertIn('warning: "mlp.gate_proj.weight" has another tensor scale than the layers that loaders join', text)
        self.assertIn('warning: "o_proj.weight_scale" has scales that are NaN', text)
        self.assertIn('note: "p_proj.weight_scale" has scales that are negative', text)
        self.assertNotIn("attn", text)
        self.done("convert", "odd", "-o", self.out, "--max-shard-size", "1MB")
        self.assertIn('warning: "o_proj.weight_scale" has scales that are NaN', self.exits(0, "verify", self.out).stderr)

    def assert_warned(self, name, words):
        """inspect says so, and so does verify of a copy."""
        self.assertIn(words, self.done("inspect", name))
        self.done("convert", name, "-o", f"{name}-copy", "--max-shard-size", "1MB")
        self.assertIn(f"warning: {words}", self.exits(0, "verify", f"{name}-copy").stderr)
        self.assertIn(words, json.loads(self.done("verify", f"{name}-copy", "--json"))["warnings"][0])

    def test_global_scales_that_are_zero(self):
        for name, scale in (("zero", 0.0), ("infinite", math.inf)):
            model = MODELS["ct-nvfp4"][0]()
            model.tensors["a.weight_global_scale"] = ("F32", [1], quantized_models.floats([scale]))
            model.write(self.folder / name)
            self.assert_warned(name, '"a.weight_global_scale" has a scale of the whole tensor that is zero or infinite')

    def test_global_scales_that_are_missing(self):
        for spelling, scale in (("ct-nvfp4", "a.weight_global_scale"), ("modelopt-nvfp4", "a.weight_scale_2")):
            model = MODELS[spelling][0]()
            del model.tensors[scale]
            model.write(self.folder / spelling)
            self.assert_warned(spelling, "not decoded: a.weight")
            self.assertIn(f'"{scale}"', self.done("inspect", spelling))

    def test_joined_layers_of_different_tensor_scales(self):
        for names in (("mlp.gate_proj", "mlp.up_proj"), ("attn.q_proj", "attn.k_proj", "attn.v_proj")):
            config = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}
            model = quantized_models.Model(1, config)
            for i, name in enumerate(names):
                model.tensors[name + ".weight"] = ("F8_E4M3", [2, 2], bytes(4))
                model.tensors[name + ".weight_scale"] = ("F32", [], quantized_models.floats([1.5 + (i == len(names) - 1)]))
            model.write(self.folder / names[0])
            self.assert_warned(names[0], f'"{names[0]}.weight" has another tensor scale than the layers that loaders join')

    def test_nvfp4_layers_of_different_global_scales(self):
        model = MODELS["modelopt-nvfp4"][0]()
        for name in ("mlp.gate_proj", "mlp.up_proj"):
            for tensor in [tensor for tensor in model.tensors if tensor.startswith("a.")]:
                model.tensors[name + tensor[1:]] = model.tensors[tensor]
        model.tensors["mlp.up_proj.weight_scale_2"] = ("F32", [], quantized_models.floats([0.25]))
        model.write(self.folder / "pair")
        self.assert_warned("pair", '"mlp.gate_proj.weight" has another tensor scale than the layers that loaders join')

    def test_scales_that_are_nan(self):
        for spelling, scale in (("modelopt-nvfp4", "a.weight_scale"), ("ct-mxfp4", "a.weight_scale"),
                                ("comfyui-nvfp4", None), ("mxfp8", None)):
            model = MODELS[spelling][0]()
            name = scale or next(name for name in model.tensors if name.endswith(("weight_scale", "weight_scale_inv")))
            dtype, shape, content = model.tensors[name]
            nan = b"\x7f" if spelling.endswith("nvfp4") else b"\xff"
            model.tensors[name] = (dtype, shape, nan + content[1:])
            model.write(self.folder / spelling)
            self.assert_warned(spelling, f'"{name}" has scales that are NaN')

    def test_the_config_says_ue5m3(self):
        model = MODELS["modelopt-nvfp4"][0]()
        model.files["hf_quant_config.json"] = model.files["hf_quant_config.json"].replace(
            '"group_size": 16', '"group_size": 16, "scale_format": "UE5M3"')
        model.write(self.folder / "ue5m3")
        self.assert_warned("ue5m3", "not decoded: a.weight")
        self.assertIn("UE5M3 bytes", self.done("inspect", "ue5m3"))

    def test_contradictions_are_named(self):
        model = MODELS["deepseek"][0]()
        name = "model.layers.0.kv_a_proj.weight_scale_inv"
        model.tensors[name] = ("F32", [3, 2], bytes(24))
        model.write(self.folder / "wrong")
        self.assertIn(f"not decoded: {name}: config.json names blocks of 128 x 128, so a weight of [192, 200] has scales "
                      "of [2, 2], and these are of [3, 2]", self.done("inspect", "wrong"))

    def test_spellings_that_are_not_decoded(self):
        for suffix in ("scale_inv", "descale", "weight_scaling_factor", "weight_amax"):
            model = quantized_models.Model(1, {"quantization_config": {"quant_method": "fp8"}})
            for name in ("a", "b"):
                model.tensors[name + ".weight"] = ("F8_E4M3", [4, 4], bytes([0x38]) * 16)
                model.tensors[f"{name}.{suffix}"] = ("F32", [1], quantized_models.floats([2.0]))
            model.write(self.folder / suffix)
            self.assert_warned(suffix, f'"a.weight" and 1 more have codes that "a.{suffix}" scales, in a spelling that is')
            self.assertIn(f'"a.{suffix}" scales', self.refused("convert", suffix, "-o", self.out, "--to", "bfloat16"))

    def test_methods_that_are_not_decoded(self):
        model = quantized_models.Model(1, {"quantization_config": {"quant_method": "aqlm"}})
        model.write(self.folder / "aqlm")
        self.assertIn('warning: config.json names the quantization "aqlm", which is not decoded',
                      self.done("inspect", "aqlm"))


class RecipesTest(QuantizedTest):
    """inspect --against: the recipes that can have made the bytes of a weight."""

    def setUp(self):
        super().setUp()
        weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True,
                   "dynamic": False}
        config = {"quantization_config": {
            "quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}}
        made = quantized_models.Model(1, config)
        original = quantized_models.Model(1)
        # One number, 7, in blocks of zeros: floor and ggml write 6 of scale 1, rounding up gives 4 of scale 2.
        for name, code, scale in (("a", 7, 127), ("b", 6, 128), ("c", 1, 127)):
            made.tensors[f"{name}.weight_packed"] = ("U8", [1, 16], bytes([code]) + bytes(15))
            made.tensors[f"{name}.weight_scale"] = ("U8", [1, 1], bytes([scale]))
            original.tensors[f"{name}.weight"] = ("F32", [1, 32], quantized_models.floats([7.0] + [0.0] * 31))
        made.write(self.folder / "made")
        original.write(self.folder / "original")

    def test_names_that_no_byte_excludes(self):
        found = json.loads(self.done("inspect", "made", "--against", "original", "--json"))
        layers = {layer["name"]: layer for layer in found["layers"]}
        self.assertEqual(layers["a.weight"]["recipes"], ["floor", "ggml"])
        # 3.5 is 4 by ties to even; ties towards zero make it 3, and ModelOpt's zeros are -0.
        self.assertEqual(layers["b.weight"]["recipes"],
                         ["rceil", "rceil-torchao", "ceil", "even", "quark", "compressed-tensors"])
        self.assertEqual(layers["c.weight"]["recipes"], [])
        self.assertEqual((layers["a.weight"]["blocks"], layers["a.weight"]["deciding_blocks"]), (1, 1))
        tensors = {tensor["name"]: tensor for tensor in found["tensors"]}
        self.assertEqual(tensors["a.weight_packed"]["recipes"], ["floor", "ggml"])
        self.assertEqual(tensors["a.weight_scale"]["recipes"], ["floor", "ggml"])
        self.assertNotIn("recipes", tensors["model.norm.weight"])
        self.assertEqual(found["recipes"], {"mxfp4": []})
        floor = [trial for trial in layers["b.weight"]["trials"] if trial["recipe"] == "floor"]
        self.assertTrue(floor and all(trial["differing_blocks"] == 1 and not trial["fits"] for trial in floor))

    def test_text_names_them_and_the_nearest(self):
        text = self.done("inspect", "made", "--against", "original", "--tensors")
        self.assertIn("floor, ggml", text)
        self.assertIn("none; nearest is ", text)
        self.assertIn("no recipe made all layers of mxfp4", text)
        self.assertIn("floor, ggml", self.done("inspect", "made/model.safetensors", "--against", "original"))
        error = self.exits(1, "inspect", "original", "--against", "original").stderr
        self.assertIn("there are no quantized layers whose recipe could be found", error)


class RankTest(QuantizedTest):
    """inspect --stats --candidates with schemes."""

    def setUp(self):
        super().setUp()
        model = quantized_models.Model(1)
        # Two blocks of MXFP4: exact, and with errors.
        model.tensors["a.weight"] = ("F32", [1, 32], quantized_models.floats([6.0, 3.0, -1.5] + [0.0] * 29))
        model.tensors["b.weight"] = ("F32", [1, 32], quantized_models.floats([6.0, 2.6, 0.1] + [0.0] * 29))
        model.write(self.folder / "plain")

    def test_candidates_of_each_tensor(self):
        found = json.loads(self.done("inspect", "plain", "--stats", "--candidates", "mxfp4,mxfp4:floor,q4_0,int8",
                                     "--json"))
        tensors = {tensor["name"]: tensor for tensor in found["tensors"]}
        self.assertEqual([(row["scheme"], row["recipe"]) for row in tensors["a.weight"]["candidates"]],
                         [("mxfp4", "rceil"), ("mxfp4", "floor"), ("q4_0", "ggml"), ("int8", None)])
        exact, noisy = tensors["a.weight"]["candidates"][0], tensors["b.weight"]["candidates"][0]
        self.assertEqual((exact["snr_db"], exact["exact"], exact["bits"]), (None, True, 4.25))
        # 2.6 becomes 3 and 0.1 zero, of scale 1.
        errors = [quantized_models.f32(2.6) - 3, quantized_models.f32(0.1)]
        signal = 36 + quantized_models.f32(2.6) ** 2 + quantized_models.f32(0.1) ** 2
        self.assertAlmostEqual(noisy["snr_db"], 10 * math.log10(signal / sum(error**2 for error in errors)), places=9)
        self.assertEqual(noisy["became_zero"], 1 / 32)
        self.assertEqual(sorted(row["rank"] for row in tensors["b.weight"]["candidates"]), [1, 2, 3, 4])
        self.assertEqual(exact["rank"], 1)
        self.assertEqual(tensors["model.norm.weight"]["candidates"][0]["scheme"], "mxfp4")

    def test_text_has_the_worst_first(self):
        text = self.done("inspect", "plain", "--stats", "--candidates", "mxfp4,nvfp4")
        table = text[text.index("quantized to"):]
        self.assertLess(table.index("b.weight"), table.index("a.weight"))
        self.assertIn("mxfp4:rceil", table)
        error = self.exits(2, "inspect", "plain", "--stats", "--candidates", "mxfp4:evn").stderr
        self.assertIn('mxfp4 has no recipe "evn"; write one of rceil', error)

    def test_a_budget_is_kept(self):
        random = quantized_models.random.Random(1)
        model = quantized_models.Model(1)
        shapes = {"self_attn.q_proj": 64, "self_attn.k_proj": 32, "self_attn.v_proj": 32, "self_attn.o_proj": 64,
                  "mlp.gate_proj": 96, "mlp.up_proj": 96, "mlp.down_proj": 64}
        for layer in range(3):
            for name, rows in shapes.items():
                numbers = [random.gauss(0, 2.0 ** random.randint(-7, -5)) for _ in range(rows * 64)]
                model.tensors[f"model.layers.{layer}.{name}.weight"] = ("F32", [rows, 64], quantized_models.floats(numbers))
        model.tensors["model.embed_tokens.weight"] = ("F32", [4, 64], bytes(4 * 4 * 64))
        model.write(self.folder / "model")
        arguments = ["inspect", "model", "--stats", "--candidates", "nvfp4,mxfp4,mxfp6,mxfp8", "--json"]
        one = self.done(*arguments, "--budget", "5.5bits", "--plan", "plan.yaml", "--threads", "1")
        self.assertEqual(self.done(*arguments, "--budget", "5.5", "--threads", "4"), one)
        found = json.loads(one)
        chosen = {tensor["name"]: tensor["chosen"] for tensor in found["tensors"] if "chosen" in tensor}
        self.assertEqual(len(chosen), 21)
        counts = {tensor["name"]: tensor["stats"]["count"] for tensor in found["tensors"]}
        average = sum(row["bits"] * counts[name] for name, row in chosen.items()) / sum(counts[name] for name in chosen)
        self.assertAlmostEqual(average, found["budget"]["average_bits"], places=12)
        self.assertLessEqual(average, 5.5)
        self.assertGreater(average, 5.2)
        self.assertGreater(len({row["scheme"] for row in chosen.values()}), 1)
        for layer in range(3):
            for joined in (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), ("mlp.gate_proj", "mlp.up_proj")):
                self.assertEqual(len({chosen[f"model.layers.{layer}.{name}.weight"]["scheme"] for name in joined}), 1)
        plan = (self.folder / "plan.yaml").read_text()
        for name, row in chosen.items():
            self.assertIn("'^" + name.replace(".", "\\.") + f"$', to: {row['scheme']}}}", plan)
        error = self.exits(1, *arguments, "--budget", "4bits").stderr
        self.assertIn("the smallest candidates need 4.25 bits on average, and the budget is 4", error)

    def test_the_page_holds_the_numbers(self):
        self.done("inspect", "plain", "--stats", "--html", "page.html", "--threads", "1")
        page = (self.folder / "page.html").read_text()
        data = json.loads(page[page.index('id="data">') + 10:page.index("</script>")])
        self.assertEqual([row["scheme"] for row in data["tensors"][0]["candidates"]],
                         ["nvfp4", "mxfp4", "int4-group", "mxfp6", "mxfp8", "fp8-channel"])
        self.assertEqual({sum(tensor["exponents"]) for tensor in data["tensors"]}, {8, 32})
        self.assertNotIn("src=", page)
        self.assertIn("--force", self.exits(1, "inspect", "plain", "--stats", "--html", "page.html").stderr)
        self.done("inspect", "plain", "--stats", "--html", "page.html", "--threads", "4", "--force")
        self.assertEqual((self.folder / "page.html").read_text(), page)


class DecodeTest(QuantizedTest):
    def read(self, folder):
        """{name: (dtype, shape, bytes)} of all shards."""
        tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors.update(checkpoints.read(path)[0])
        return tensors

    def check(self, name, model, dtype="float32"):
        """The output has exactly the weights, once rounded, and what else the model had."""
        out = self.folder / f"{name}-out"
        self.done("convert", name, "-o", out, "--to", dtype, "--verify")
        tensors = self.read(out)
        kept = {tensor for tensor in model.tensors if tensor in ("model.norm.weight", "a.k_scale", "scaled_fp8")}
        self.assertEqual(set(tensors), set(model.weights) | kept)
        for weight, (shape, numbers) in model.weights.items():
            stored, found_shape, content = tensors[weight]
            self.assertEqual(found_shape, shape)
            self.assertEqual(stored, {"float32": "F32", "bfloat16": "BF16"}[dtype])
            size = 4 if dtype == "float32" else 2
            words = struct.unpack(f"<{len(numbers)}{'I' if size == 4 else 'H'}", content)
            for i, (word, number) in enumerate(zip(words, numbers)):
                found = struct.unpack("<f", struct.pack("<I", word if size == 4 else word << 16))[0]
                wanted = number if size == 4 else quantized_models.bfloat16(number)
                same = math.isnan(found) if math.isnan(wanted) else struct.pack("<f", found) == struct.pack("<f", wanted)
                self.assertTrue(same, f"{weight}[{i}]: {found} instead of {wanted}")
        config = json.loads((out / "config.json").read_text())
        for section in ("quantization_config", "quantization"):
            self.assertNotIn(section, config)
        self.assertFalse((out / "hf_quant_config.json").exists())
        for path in out.glob("*.safetensors"):
            self.assertNotIn("_quantization_metadata", checkpoints.read(path)[1])
        return out

    def test_every_spelling_to_float32(self):
        for name in MODELS:
            with self.subTest(name):
                self.check(name, self.model(name))

    def test_codes_and_scales_in_different_shards_to_bfloat16(self):
        for name in MODELS:
            with self.subTest(name):
                out = self.check(name, self.model(name, shards=3), "bfloat16")
                self.done("verify", out, "--against", name)
                self.done("verify", out)
                index = json.loads((out / "model.safetensors.index.json").read_text())
                tensors = self.read(out)
                self.assertEqual(set(index["weight_map"]), set(tensors))
                self.assertEqual(index["metadata"]["total_size"], sum(len(content) for _, _, content in tensors.values()))
                self.assertNotIn("spelling", self.done("inspect", out))

    def config(self, folder):
        return json.loads((self.folder / folder / "config.json").read_text())

    def two_layers(self, name="deepseek"):
        model = MODELS[name][0]()
        for weight, tensor in list(model.tensors.items()):
            if weight != "model.norm.weight":
                model.tensors["lm_head." + weight] = tensor
        model.write(self.folder / "in", shards=2)
        return model

    def test_a_layer_that_is_excluded_keeps_its_bytes_and_the_config_its_list(self):
        model = self.two_layers()
        name = "model.layers.0.kv_a_proj.weight"
        for pattern in ("^lm_head", "^lm_head.*_scale_inv$"):  # the weight's name, or that of any of its tensors
            self.done("convert", "in", "-o", self.out, "--to", "bfloat16", "--exclude", pattern, "--force")
            tensors = self.read(self.out)
            self.assertEqual(tensors["lm_head." + name], model.tensors["lm_head." + name])
            scales = "lm_head." + name + "_scale_inv"
            self.assertEqual(tensors[scales], model.tensors[scales])
            self.assertEqual(tensors[name][0], "BF16")
            self.assertNotIn(name + "_scale_inv", tensors)
            section = self.config("out")["quantization_config"]
            self.assertEqual(section["modules_to_not_convert"], ["model.layers.0.kv_a_proj"])
            self.done("verify", self.out, "--against", "in")

    def test_lists_of_modules_are_extended(self):
        self.two_layers("ct-nvfp4")
        self.done("convert", "in", "-o", self.out, "--to", "bfloat16", "--exclude", "^lm_head")
        self.assertEqual(self.config("out")["quantization_config"]["ignore"], ["a", "lm_head"])

    def test_configs_without_a_list_are_all_or_nothing(self):
        self.two_layers("mlx")
        error = self.refused("convert", "in", "-o", self.out, "--to", "bfloat16", "--exclude", "^lm_head")
        self.assertIn("some layers would be decoded and some not", error)
        self.assertFalse(self.out.exists())

    def test_files_whose_metadata_describe_their_layers_are_all_or_nothing(self):
        model = quantized_models.comfyui_float8(old=False)
        for name, tensor in list(model.tensors.items()):
            model.tensors["b" + name[1:]] = tensor
        layers = {name: {"format": "float8_e4m3fn"} for name in "ab"}
        model.metadata = {"_quantization_metadata": json.dumps({"layers": layers})}
        model.write(self.folder / "in", shards=1)
        [path] = (self.folder / "in").glob("*.safetensors")
        for source, out in ((path, self.folder / "out.safetensors"), ("in", self.out)):
            error = self.refused("convert", source, "-o", out, "--to", "bfloat16", "--exclude", "^b")
            self.assertIn("some layers would be decoded and some not", error)
            self.assertFalse(out.exists())
            self.done("convert", source, "-o", out, "--to", "bfloat16")

    def test_raw_codes_leave_scales_and_config(self):
        model = self.model("modelopt-fp8")
        done = self.exits(0, "convert", "modelopt-fp8", "-o", self.out, "--to", "bfloat16", "--raw-codes")
        self.assertIn("a loader that applies it gets wrong weights", done.stdout + done.stderr)
        tensors = self.read(self.out)
        for name in ("a.weight_scale", "a.k_scale"):
            self.assertEqual(tensors[name], model.tensors[name])
        codes = [quantized_models.to_bfloat16(quantized_models.e4m3(code)) for code in model.tensors["a.weight"][2]]
        found = struct.unpack(f"<{len(codes)}H", tensors["a.weight"][2])
        self.assertEqual([code & 0x7FFF if code & 0x7FFF > 0x7F80 else code for code in found], codes)
        self.assertEqual(self.config("out")["quantization_config"], self.config("modelopt-fp8")["quantization_config"])

    def test_scales_of_a_cache_stay_and_it_is_said(self):
        self.model("modelopt-fp8")
        done = self.exits(0, "convert", "modelopt-fp8", "-o", self.out, "--to", "bfloat16")
        self.assertIn('"a.k_scale" stay as they are', done.stdout + done.stderr)

    def test_contradictions_are_errors_before_anything_is_written(self):
        scales = "model.layers.0.kv_a_proj.weight_scale_inv"
        for wrong in (("F32", [3, 2], bytes(24)), ("I32", [2, 2], bytes(16)), None):
            model = MODELS["deepseek"][0]()
            model.tensors.pop(scales)
            if wrong:
                model.tensors[scales] = wrong
            else:  # beside another layer that is complete
                model.tensors.update({"b." + name: tensor for name, tensor in MODELS["deepseek"][0]().tensors.items()})
            folder = self.folder / f"wrong-{wrong and wrong[0]}"
            model.write(folder)
            error = self.refused("convert", folder, "-o", self.out, "--to", "bfloat16")
            self.assertIn(scales if wrong else "scales is missing", error)
            self.assertFalse(self.out.exists())
            self.done("convert", folder, "-o", self.out, "--to", "bfloat16", "--exclude", "kv_a_proj")
            subprocess.run(["rm", "-r", self.out], check=True)

    def test_a_group_that_does_not_exist(self):
        model = MODELS["gptq"][0]()
        dtype, shape, content = model.tensors["a.g_idx"]
        for lie in (7, -1, 2**31 - 1):
            model.tensors["a.g_idx"] = (dtype, shape, content[:-4] + struct.pack("<i", lie))
            model.write(self.folder / f"lie{lie}")
            error = self.refused("convert", f"lie{lie}", "-o", self.out, "--to", "bfloat16", "--force")
            self.assertIn('tensor "a.g_idx": element 95: there is no group', error)

    def test_methods_that_are_not_known_leave_what_is_not_quantized(self):
        model = quantized_models.Model(1, {"quantization_config": {"quant_method": "new"}})
        model.tensors["a.weight"] = ("I8", [2, 2], bytes(4))
        model.tensors["a.scales"] = ("F32", [2], bytes(8))
        model.write(self.folder / "new")
        error = self.refused("convert", "new", "-o", self.out, "--to", "float16")
        self.assertIn('names the quantization "new", which is not known', error)
        self.done("convert", "new", "-o", self.out, "--to", "float16", "--exclude", "^a\\.")

    def test_changes_of_the_basis_are_refused_by_name(self):
        model = MODELS["modelopt-nvfp4"][0]()
        model.tensors["a.pre_quant_scale"] = ("BF16", [96], bytes(192))
        model.write(self.folder / "turned")
        error = self.refused("convert", "turned", "-o", self.out, "--to", "bfloat16")
        self.assertIn('"pre_quant_scale" changes the weight beside its codes', error)

    def test_rename_drop_and_shards(self):
        self.two_layers()
        self.done("convert", "in", "-o", self.out, "--to", "bfloat16", "--drop", "^lm_head", "--rename", "kv_a_proj=proj",
                  "--output-layout", "single")
        self.assertEqual(set(self.read(self.out)), {"model.norm.weight", "model.layers.0.proj.weight"})
        self.done("verify", self.out, "--against", "in", "--drop", "^lm_head", "--rename", "kv_a_proj=proj")

    def test_diff_compares_weights_that_one_side_has_decoded(self):
        for name in ("deepseek", "ct-nvfp4", "gpt-oss", "mlx"):
            with self.subTest(name):
                self.model(name, shards=2)
                out = self.folder / f"{name}-out"
                self.done("convert", name, "-o", out, "--to", "float32")
                for pair in ((name, out), (out, name)):
                    found = json.loads(self.tcast("diff", *pair, "--json").stdout)
                    self.assertEqual(found["only_a"] if "only_a" in found else [], [])
                    self.assertTrue(all(tensor["in_a"] and tensor["in_b"] if "in_a" in tensor else True
                                        for tensor in found["tensors"]))
                self.done("diff", name, name)

    def test_a_configuration_beside_a_folder_is_not_its_own(self):
        (self.folder / "config.json").write_text('{"quantization_config": {"quant_method": "fp8"}}')
        model = quantized_models.Model(1, {})
        model.tensors["a.weight"] = ("I8", [32, 32], bytes(1024))
        model.tensors["b.weight"] = ("F32", [32, 32], bytes(4096))
        model.write(self.folder / "in")
        self.done("convert", "in", "-o", "one.safetensors", "--output-layout", "single", "--to", "bf16")
        self.assertEqual(checkpoints.read(self.folder / "one.safetensors")[0]["b.weight"][0], "BF16")

    def test_diff_of_single_files(self):
        for name in ("deepseek", "modelopt-nvfp4", "nf4", "comfyui-fp8"):
            with self.subTest(name):
                self.model(name)
                one, out = f"{name}/model.safetensors", f"{name}.safetensors"
                self.done("convert", one, "-o", out, "--to", "float32")
                for pair in ((one, out), (out, one)):
                    self.assertNotIn("only in", self.tcast("diff", *pair).stdout)
                    worst = json.loads(self.tcast("diff", *pair, "--json").stdout)["tensors"]
                    layers = [tensor for tensor in worst if tensor["name"] in MODELS[name][0]().weights]
                    self.assertTrue(layers)
                    self.assertTrue(all(tensor["different"] == 0 for tensor in layers), layers)
                self.assertIn("equal", self.done("diff", one, one))

    def test_diff_of_gguf(self):
        codes = b"".join(struct.pack("<e", 0.5) + bytes(self.bytes_of(32, seed)) for seed in range(8))
        plain = struct.pack("<4f", 1, 2, 3, 4)
        (self.folder / "in.gguf").write_bytes(
            fixtures.gguf([("blk.0.weight", [64, 4], 8, codes), ("output_norm.weight", [4], 0, plain)]))
        self.done("convert", "in.gguf", "-o", "wide.gguf", "--to", "float32")
        self.done("convert", "in.gguf", "-o", "small.gguf", "--to", "q4_0", "--quiet")
        self.assertIn("equal", self.done("diff", "in.gguf", "in.gguf"))
        for pair, same in ((("in.gguf", "wide.gguf"), True), (("wide.gguf", "in.gguf"), True),
                           (("in.gguf", "small.gguf"), False)):
            found = json.loads(self.tcast("diff", *pair, "--json").stdout)["tensors"]
            weight, = (tensor for tensor in found if tensor["name"] == "blk.0.weight")
            self.assertEqual((weight["count"], weight["different"] == 0), (256, same), weight)
            self.assertEqual(len(found), 2)
        changed = bytearray((self.folder / "in.gguf").read_bytes())
        changed[changed.index(codes) + 7] ^= 1
        (self.folder / "changed.gguf").write_bytes(changed)
        self.exits(1, "diff", "in.gguf", "changed.gguf")

    def test_losses_of_decoded_layers_are_measured_where_they_are_asked_for(self):
        self.model("deepseek", shards=2)
        plain = self.done("convert", "deepseek", "-o", "plain", "--to", "bfloat16")
        self.done("convert", "deepseek", "-o", "measured", "--to", "bfloat16", "--report", "r.json")
        reports = json.loads((self.folder / "r.json").read_text())["tensors"]
        layer = next(tensor for tensor in reports if tensor.get("scheme"))
        self.assertEqual(layer["report"]["count"], math.prod(layer["shape"]))
        self.assertEqual(self.read(self.folder / "plain"), self.read(self.folder / "measured"))
        self.assertNotIn("inexact", plain)
        # Whoever asks for a report goes on with the plan of somebody who did not.
        self.done("plan", "deepseek", "-o", "steps", "--to", "bfloat16")
        self.done("run-shard", "steps", "0")
        self.done("convert", "deepseek", "-o", "steps", "--to", "bfloat16", "--report", "s.json")
        self.assertEqual(self.read(self.folder / "plain"), self.read(self.folder / "steps"))

    def test_decoded_weights_that_become_zero_are_refused(self):
        model = MODELS["deepseek"][0]()
        name = next(name for name in model.tensors if name.endswith("weight_scale_inv"))
        _, shape, content = model.tensors[name]
        model.tensors[name] = ("F32", shape, quantized_models.floats([1e-45] * (len(content) // 4)))
        model.write(self.folder / "tiny")
        error = self.refused("convert", "tiny", "-o", self.out, "--to", "bfloat16")
        self.assertIn("nonzero elements became zero", error)
        warned = self.exits(0, "convert", "tiny", "-o", self.out, "--to", "bfloat16", "--allow-loss", "--force").stderr
        self.assertIn("became zero", warned)
        self.done("convert", "tiny", "-o", "wide", "--to", "float32")

    def test_gguf_to_other_formats(self):
        scales = [0.5, -3.0]
        codes = [self.bytes_of(32, 3), self.bytes_of(32, 4)]
        content = b"".join(struct.pack("<e", scale) + bytes(row) for scale, row in zip(scales, codes))
        (self.folder / "in.gguf").write_bytes(fixtures.gguf([("blk.0.weight", [64], 8, content)]))
        numbers = [quantized_models.mul(float(code - 256 if code > 127 else code), scale)
                   for scale, row in zip(scales, codes) for code in row]
        for out in ("out.safetensors", "out.gguf", "out.npz"):
            self.done("convert", "in.gguf", "-o", out, "--to", "float32", "--verify")
        self.assertEqual(checkpoints.read(self.folder / "out.safetensors")[0],
                         {"blk.0.weight": ("F32", [64], quantized_models.floats(numbers))})
        self.assertIn("gguf      q8_0    row", self.done("inspect", "in.gguf").replace("1 x 32", "row"))

    @staticmethod
    def bytes_of(count, seed):
        return quantized_models.Model(seed).bytes(count)

    def test_one_file(self):
        model = self.model("deepseek")
        self.done("convert", "deepseek/model.safetensors", "-o", "one.safetensors", "--to", "bfloat16", "--verify")
        tensors = checkpoints.read(self.folder / "one.safetensors")[0]
        self.assertEqual(set(tensors), {"model.norm.weight", *model.weights})

    def test_the_plan_says_what_is_decoded_and_runs_in_steps(self):
        model = self.model("ct-nvfp4", shards=2)
        text = self.done("convert", "ct-nvfp4", "-o", self.out, "--to", "bfloat16", "--dry-run")
        self.assertIn("compressed-tensors nvfp4", text)
        self.done("plan", "ct-nvfp4", "-o", self.out, "--to", "bfloat16")
        plan = json.loads((self.out / ".tcast" / "plan.json").read_text())
        layer, = plan["layers"]
        self.assertEqual(layer["weight"], "a.weight")
        self.assertEqual({part["name"] for part in plan["rules"][layer["rule"]]["parts"]},
                         {"weight_packed", "weight_scale", "weight_global_scale"})
        self.assertEqual({part[0] for part in layer["parts"]}, {0, 1})
        self.assertEqual([tensor for shard in plan["shards"] for tensor in shard["tensors"] if "layer" in tensor],
                         [{"layer": 0}])
        self.done("run-shard", self.out, "0")
        self.done("run-shard", self.out)
        self.done("finish", self.out)
        self.assertEqual(set(self.read(self.out)), {"model.norm.weight", *model.weights})

    def test_plans_that_lie_are_refused(self):
        self.model("ct-int4-asymmetric")
        self.done("plan", "ct-int4-asymmetric", "-o", self.out, "--to", "bfloat16")
        path = self.out / ".tcast" / "plan.json"
        plan = path.read_text()
        for old, new in (('"bits":4', '"bits":9'), ('"packing":0', '"packing":99'),
                         ('"element":"uint8"', '"element":"float32"'),
                         ('"block_columns":32', '"block_columns":-32'), ('"role":1', '"role":77')):
            self.assertIn(old, plan)
            path.write_text(plan.replace(old, new))
            self.assertIn("the plan is damaged", self.refused("run-shard", self.out))


if __name__ == "__main__":
    running.main(__doc__)
