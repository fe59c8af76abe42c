#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantized checkpoints in the names, packing and configuration of another tool, and back again."""

import json
import struct

import checkpoints
import fixtures
import quantized_models
import running
from quantized_models import MODELS, Model, e8m0, floats, groups

# Each model, the spellings that hold its layers without touching a code, and its own.
PAIRS = {
    "deepseek": ("deepseek", ["compressed-tensors", "modelopt"]),
    "deepseek-v4": ("deepseek", ["compressed-tensors"]),
    "mxfp8": ("transformers-mxfp8", ["compressed-tensors", "modelopt", "comfyui"]),
    "ct-fp8-tensor": ("compressed-tensors", ["comfyui", "deepseek"]),
    "ct-fp8-channel": ("compressed-tensors", ["modelopt"]),
    "ct-fp8-block": ("compressed-tensors", ["deepseek", "modelopt"]),
    "ct-int8": ("compressed-tensors", ["comfyui"]),
    "ct-mxfp4": ("compressed-tensors", ["gpt-oss", "deepseek"]),
    "modelopt-fp8": ("modelopt", ["compressed-tensors", "comfyui", "deepseek"]),
    "gpt-oss": ("gpt-oss", ["compressed-tensors", "deepseek"]),
    "comfyui-fp8": ("comfyui", ["compressed-tensors"]),
}


def power_of_two(spelling, factor=2.0**-7):
    """NVFP4 whose scale of the tensor has an exact reciprocal."""
    model = MODELS[{"compressed-tensors": "ct", "modelopt": "modelopt", "comfyui": "comfyui"}[spelling] + "-nvfp4"][0]()
    for name, (dtype, shape, _) in list(model.tensors.items()):
        if name.endswith("_global_scale"):
            model.tensors[name] = (dtype, shape, floats([1 / factor]))
        elif name.endswith("_scale_2"):
            model.tensors[name] = (dtype, shape, floats([factor]))
    return model


def mxfp4(scales, codes=None, name="a"):
    """compressed-tensors' MXFP4, with a row for each 4 scales."""
    model = Model(21, groups("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32))
    rows = len(scales) // 4
    model.tensors[name + ".weight_packed"] = ("U8", [rows, 64], bytes(codes or model.bytes(rows * 64)))
    model.tensors[name + ".weight_scale"] = ("U8", [rows, 4], bytes(scales))
    return model


class RespellTest(running.CommandTest):
    def read(self, folder):
        tensors = {}
        for path in sorted((self.folder / folder).glob("*.safetensors")):
            tensors.update(checkpoints.read(path)[0])
        return tensors

    def write(self, name, model, **options):
        model.write(self.folder / name, **options)
        return model

    def respell(self, source, out, spelling, *more):
        """Whatever loaders take: some rows are not whole blocks of 128."""
        return self.done("convert", source, "-o", out, "--respell", spelling, "--force-layout", *more)

    def numbers(self, folder):
        """{module: float32 bytes}, decoded; experts of gpt-oss are the transpose there, so they are turned back."""
        out = f"{folder}-numbers"
        spellings = {layer["name"]: layer["spelling"] for layer in
                     json.loads(self.done("inspect", folder, "--json"))["layers"]}
        self.done("convert", folder, "-o", out, "--to", "float32", "--force")
        numbers = {}
        for name, (_, shape, content) in self.read(out).items():
            if spellings.get(name) == "gpt-oss" and len(shape) == 3:
                words = struct.unpack(f"<{len(content) // 4}I", content)
                experts, columns, rows = shape
                content = struct.pack(f"<{len(words)}I", *(words[(e * columns + k) * rows + n] for e in range(experts)
                                                           for n in range(rows) for k in range(columns)))
            # ModelOpt has no -0.
            words = struct.unpack(f"<{len(content) // 4}I", content)
            numbers[name.removesuffix(".weight")] = [0 if word == 1 << 31 else word for word in words]
        return numbers

    def check(self, name, model, own, spelling):
        there, back = f"{name}-{spelling}", f"{name}-{spelling}-back"
        said = self.respell(name, there, spelling, "--verify")
        self.assertIn("verified", said)
        found = json.loads(self.done("inspect", there, "--json"))
        self.assertEqual({layer["spelling"] for layer in found["layers"]}, {spelling})
        self.assertEqual(len(found["layers"]), len(model.weights))
        for layer in found["layers"]:
            self.assertNotIn("problem", layer)
        self.assertEqual(self.numbers(there), self.numbers(name))
        self.done("verify", there, "--against", name)
        self.done("verify", there)
        self.respell(there, back, own)
        self.assertEqual(self.read(back), self.read(name))
        self.done("verify", back, "--against", there)

    def test_back_again_gives_the_same_bytes(self):
        for name, (own, spellings) in PAIRS.items():
            model = self.write(name, MODELS[name][0](), shards=2)
            for spelling in spellings:
                with self.subTest(f"{name} to {spelling}"):
                    self.check(name, model, own, spelling)

    def test_activations_that_only_deepseek_quantizes(self):
        self.write("in", MODELS["ct-fp8-block"][0]())
        words = "the configuration of deepseek has activations quantized while the model runs"
        self.assertIn(words, self.exits(0, "convert", "in", "-o", "there", "--respell", "deepseek").stderr)
        self.assertNotIn(words, self.exits(0, "convert", "there", "-o", "back", "--respell", "compressed-tensors").stderr)
        self.assertNotIn(words, self.exits(0, "convert", "back", "-o", "again", "--respell", "deepseek").stderr)

    def test_diff_compares_the_decoded_weights(self):
        self.write("in", MODELS["deepseek"][0]())
        self.respell("in", "out", "modelopt")
        self.assertIn("equal", self.done("diff", "in", "out"))

    def test_nvfp4_between_all_its_spellings(self):
        names = ["compressed-tensors", "modelopt", "comfyui"]
        for own in names:
            self.write(own, power_of_two(own))
            for spelling in names:
                if spelling != own:
                    with self.subTest(f"{own} to {spelling}"):
                        self.respell(own, f"{own}-{spelling}", spelling, "--exact")
                        self.assertEqual(self.numbers(f"{own}-{spelling}"), self.numbers(own))
                        self.done("verify", f"{own}-{spelling}", "--against", own)
                        self.respell(f"{own}-{spelling}", f"{own}-{spelling}-back", own, "--exact")
                        self.assertEqual(self.read(f"{own}-{spelling}-back"), self.read(own))

    def test_what_is_written_for_loaders(self):
        self.write("in", MODELS["modelopt-nvfp4"][0]())
        self.respell("in", "ct", "compressed-tensors")
        tensors = self.read("ct")
        self.assertEqual(tensors["a.weight_global_scale"], ("F32", [1], floats([1 / quantized_models.f32(0.0123)])))
        self.assertEqual(tensors["a.input_global_scale"], ("F32", [1], floats([2.0])))
        section = json.loads((self.folder / "ct/config.json").read_text())["quantization_config"]
        self.assertEqual(section["format"], "nvfp4-pack-quantized")
        group = section["config_groups"]["group_0"]
        self.assertEqual(group["targets"], ["Linear"])
        self.assertEqual((group["weights"]["strategy"], group["weights"]["group_size"]), ("tensor_group", 16))
        self.assertEqual(group["input_activations"]["dynamic"], "local")
        self.assertFalse((self.folder / "ct/hf_quant_config.json").exists())
        # Without a scale of activations, vLLM must know that only weights are quantized.
        self.write("comfy", MODELS["comfyui-nvfp4"][0]())
        self.respell("comfy", "modelopt", "modelopt")
        own = json.loads((self.folder / "modelopt/hf_quant_config.json").read_text())
        self.assertEqual(own["quantization"]["quant_algo"], "W4A16_NVFP4")
        self.assertEqual(own["quantization"]["exclude_modules"], ["lm_head"])
        config = json.loads((self.folder / "modelopt/config.json").read_text())
        self.assertEqual(config["quantization_config"]["quant_method"], "modelopt")
        self.assertEqual(config["torch_dtype"], "bfloat16")

    def test_integers_of_torchao(self):
        self.write("int4", quantized_models.torchao_integers())
        self.respell("int4", "packed", "compressed-tensors")
        self.assertEqual(self.numbers("packed"), self.numbers("int4"))
        self.assertIn("a.weight_zero_point", self.read("packed"))
        self.write("wide", quantized_models.torchao_integers(first_code=9))
        refused = self.refused("convert", "wide", "-o", "out", "--respell", "compressed-tensors")
        self.assertIn('"a._weight_qdata": element 0: 9 is no integer of 4 bits', refused)
        self.numbers("wide")  # torchao takes it for 9

    def test_a_scale_without_an_exact_reciprocal(self):
        model = power_of_two("modelopt", 0.0123)
        self.write("in", model)
        error = self.refused("convert", "in", "-o", "out", "--respell", "compressed-tensors", "--exact")
        self.assertIn("a.weight", error)
        self.assertIn("reciprocal", error)
        self.assertFalse(self.out.exists())
        done = self.exits(0, "convert", "in", "-o", "out", "--respell", "compressed-tensors")
        self.assertIn("the reciprocal of the tensor's scale is rounded", done.stderr)

    def test_scales_of_experts_that_no_calibration_reached(self):
        for factor in (0.0, float("inf")):
            self.write(f"in{factor}", power_of_two("modelopt"))
            path = self.folder / f"in{factor}/model.safetensors"
            tensors, metadata = checkpoints.read(path)
            tensors["a.weight_scale_2"] = ("F32", [], floats([factor]))
            path.write_bytes(quantized_models.safetensors(tensors, metadata))
            self.respell(f"in{factor}", f"out{factor}", "compressed-tensors")
            # Numbers that a factor of 0 makes zeros are divided by infinity.
            divisor = float("inf") if factor == 0.0 else 0.0
            self.assertEqual(self.read(f"out{factor}")["a.weight_global_scale"][2], floats([divisor]))
            if factor == 0.0:
                self.assertEqual(self.numbers("out0.0")["a"], self.numbers("in0.0")["a"])

    def test_mxfp4_becomes_nvfp4_if_its_scales_span_at_most_17(self):
        model = self.write("in", mxfp4([100 + i % 18 for i in range(72)] + [255] * 4))
        self.respell("in", "out", "modelopt")
        layer = json.loads(self.done("inspect", "out", "--json"))["layers"][0]
        self.assertEqual(layer["scheme"], "nvfp4")
        self.assertEqual(self.read("out")["a.weight_scale_2"][2], floats([e8m0(117 - 8)]))
        self.assertEqual(self.read("out")["a.weight"][2], model.tensors["a.weight_packed"][2])
        numbers, wanted = self.numbers("out")["a"], self.numbers("in")["a"]
        nan = 19 * 128 - 128  # the last row
        self.assertEqual(numbers[:nan], wanted[:nan])
        self.respell("out", "back", "gpt-oss")
        self.assertEqual(self.read("back")["a.weight.scales"][2], model.tensors["a.weight_scale"][2])
        self.assertEqual(self.read("back")["a.weight.blocks"][2], model.tensors["a.weight_packed"][2])
        self.write("wide", mxfp4([100, 118, 110, 110], name="b"))
        error = self.refused("convert", "wide", "-o", "no", "--respell", "comfyui")
        self.assertIn('"b.weight_scale": element 0: scales of blocks that are not zero go from 2^-27 to 2^-9', error)
        self.assertFalse((self.folder / "no").exists())
        # Blocks of zeros do not count.
        codes = bytes([0x88] * 16) + bytes(range(16, 64))
        self.write("zeros", mxfp4([100, 118, 110, 110], codes))
        self.respell("zeros", "zeros-out", "modelopt")
        self.assertEqual(self.numbers("zeros-out"), self.numbers("zeros"))

    def test_nvfp4_becomes_mxfp4_only_if_nothing_is_lost(self):
        self.write("in", power_of_two("modelopt"))
        error = self.refused("convert", "in", "-o", "out", "--respell", "gpt-oss")
        self.assertIn("two scales of NVFP4 that would be one of MXFP4 differ", error)
        model = power_of_two("modelopt")
        model.tensors["a.weight_scale_2"] = ("F32", [], floats([0.3]))
        self.write("other", model)
        self.assertIn("no power of two", self.refused("convert", "other", "-o", "out", "--respell", "deepseek"))

    def test_gguf_and_back(self):
        model = self.write("mx", MODELS["ct-mxfp4"][0]())
        self.done("convert", "mx", "-o", "mx.gguf", "--respell", "gguf", "--verify")
        self.assertIn("mxfp4", self.done("inspect", "mx.gguf"))
        self.done("convert", "mx.gguf", "-o", "mx.safetensors", "--respell", "compressed-tensors")
        tensors, metadata = checkpoints.read(self.folder / "mx.safetensors")
        for name in model.tensors:
            self.assertEqual(tensors[name], model.tensors[name])
        self.assertEqual(json.loads(metadata["quantization_config"])["quant_method"], "compressed-tensors")
        extra = [("b.weight", "F32", [2], floats([1, 2]))]
        (self.folder / "mx/extra.safetensors").write_bytes(fixtures.safetensors(extra))
        self.done("convert", "mx", "-o", "one.gguf", "--respell", "gguf", "--skip-files", "extra.safetensors")
        for choice in (["--skip-files", "extra.safetensors"], ["--drop", "^b[.]weight$"]):
            self.done("verify", "one.gguf", "--against", "mx", *choice)
        self.assertIn('has 2: "extra", "model"', self.refused("verify", "one.gguf", "--against", "mx"))
        nv = Model(22, None, None, {"hf_quant_config.json": MODELS["modelopt-nvfp4"][0]().files["hf_quant_config.json"]})
        nv.tensors["a.weight"] = ("U8", [6, 64], bytes(nv.bytes(6 * 64)))
        nv.tensors["a.weight_scale"] = ("F8_E4M3", [6, 8], bytes(range(48)))
        nv.tensors["a.weight_scale_2"] = ("F32", [], floats([0.75]))
        self.write("nv", nv)
        self.done("convert", "nv", "-o", "nv.gguf", "--respell", "gguf")
        self.done("convert", "nv.gguf", "-o", "nv.safetensors", "--respell", "modelopt")
        tensors, _ = checkpoints.read(self.folder / "nv.safetensors")
        for name in nv.tensors:
            self.assertEqual(tensors[name], nv.tensors[name])
        for byte, word in ((0x7F, "NaN"), (0x85, "negative")):
            nv.tensors["a.weight_scale"] = ("F8_E4M3", [6, 8], bytes([*range(9), byte, *range(38)]))
            self.write(f"nv{byte}", nv)
            error = self.refused("convert", f"nv{byte}", "-o", "no.gguf", "--respell", "gguf")
            self.assertIn(f"a.weight_scale: element 9: the scale is {word}, which GGUF has not", error.replace('"', ""))
            self.assertFalse((self.folder / "no.gguf").exists())

    def test_refusals_name_the_tensor_and_the_reason(self):
        self.write("nf4", MODELS["nf4"][0]())
        self.assertIn("in blocks over the whole tensor",
                      self.refused("convert", "nf4", "-o", "out", "--respell", "compressed-tensors"))
        self.write("six", MODELS["ct-mxfp6"][0]())
        self.assertIn("modelopt has no mxfp6", self.refused("convert", "six", "-o", "out", "--respell", "modelopt"))
        self.assertIn("it has this spelling already",
                      self.refused("convert", "six", "-o", "out", "--respell", "compressed-tensors"))
        self.assertIn('--respell: "acme" is not one of deepseek, ',
                      self.exits(2, "convert", "six", "-o", "out", "--respell", "acme").stderr)
        self.assertIn("changes no numbers",
                      self.exits(2, "convert", "six", "-o", "out", "--respell", "modelopt", "--to", "bf16").stderr)
        plain = self.write("plain", Model(1))
        self.assertIn("no layer is quantized", self.refused("convert", "plain", "-o", "out", "--respell", "modelopt"))
        self.assertTrue(plain.tensors)
        self.assertFalse(self.out.exists())

    def test_scales_of_activations_in_the_type_of_the_model(self):
        model = MODELS["ct-fp8-tensor"][0]()
        model.tensors["a.input_scale"] = ("BF16", [1], quantized_models.brains([0.5]))
        model.config["quantization_config"]["config_groups"]["group_0"]["input_activations"] = {
            "num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False}
        self.write("in", model)
        for spelling in ("modelopt", "deepseek", "comfyui"):
            self.respell("in", spelling, spelling)
            self.assertEqual(self.read(spelling)["a.input_scale"], ("F32", [], floats([0.5])))
        config = json.loads((self.folder / "deepseek/config.json").read_text())["quantization_config"]
        self.assertEqual(config["activation_scheme"], "static")

    def test_activations_that_the_other_tool_does_not_have(self):
        one = ("F32", [1], floats([0.5]))
        for value, words in ((3, 'tensor "a.input_zero_point": it is a zero point of activations'), (0, "")):
            model = MODELS["ct-int8"][0]()
            model.tensors |= {"a.input_scale": one, "a.input_zero_point": ("I8", [1], bytes([value]))}
            self.write(f"zero{value}", model)
            run = self.tcast("convert", f"zero{value}", "-o", f"out{value}", "--respell", "comfyui")
            self.assertEqual(run.returncode, 1 if words else 0, run.stderr)
            self.assertIn(words, run.stderr)
        said = self.exits(0, "convert", "zero0", "-o", "gptq", "--respell", "gptq", "--force-layout").stderr
        self.assertIn('left out: "a.input_scale"', said)
        model = power_of_two("modelopt")
        model.tensors["a.input_scale"] = ("F32", [2], floats([0.5, 1.0]))
        self.write("several", model)
        self.assertIn("it is a scale of activations, float32 [2]",
                      self.refused("convert", "several", "-o", "no", "--respell", "compressed-tensors"))

    def test_caches_of_keys_and_values(self):
        schemes = {"float8": ({"num_bits": 8, "type": "float", "strategy": "tensor"}, True),
                   "int8": ({"num_bits": 8, "type": "int", "strategy": "channel"}, False), "none": (None, None)}
        for name, (scheme, is_float8) in schemes.items():
            model = MODELS["ct-fp8-channel"][0]()
            model.config["quantization_config"]["kv_cache_scheme"] = scheme
            if name == "int8":
                model.tensors["a.k_scale"] = ("BF16", [4], quantized_models.brains([0.25] * 4))
            self.write(name, model)
            if is_float8 is False:
                self.assertIn("stores keys and values of the cache as",
                              self.refused("convert", name, "-o", f"{name}-out", "--respell", "modelopt"))
            more = ("--accept", "kv_cache_scheme") if name == "int8" else ()
            self.respell(name, f"{name}-out", "modelopt", *more)
            own = json.loads((self.folder / f"{name}-out/hf_quant_config.json").read_text())["quantization"]
            self.assertEqual(own["kv_cache_quant_algo"], "FP8" if is_float8 else None)

    def test_a_change_of_basis_is_carried_along(self):
        model = power_of_two("modelopt")
        model.tensors["a.pre_quant_scale"] = ("BF16", [96], bytes(range(192)))
        self.write("in", model)
        self.refused("convert", "in", "-o", "no", "--to", "bf16")
        self.respell("in", "out", "comfyui")
        self.assertEqual(self.read("out")["a.pre_quant_scale"], model.tensors["a.pre_quant_scale"])
        self.respell("out", "back", "modelopt")
        self.assertEqual(self.read("back"), self.read("in"))

    def test_shard_by_shard_and_again(self):
        # ComfyUI's description is in the files' metadata.
        for model, spelling, out in (("mxfp8", "comfyui", "comfyui"), ("gpt-oss", "compressed-tensors", "out")):
            self.write(model, MODELS[model][0](), shards=2)
            self.respell(model, model + "-whole", spelling)
            self.done("plan", model, "-o", out, "--respell", spelling, "--force-layout")
            self.done("run-shard", out, "1")
            self.done("run-shard", out, "0")
            self.done("finish", out)
            for path in (self.folder / (model + "-whole")).iterdir():
                if path.name != checkpoints.RECORD:
                    self.assertEqual(path.read_bytes(), (self.folder / out / path.name).read_bytes(), path.name)
        index = json.loads((self.out / "model.safetensors.index.json").read_text())
        self.assertEqual(set(index["weight_map"]), set(self.read("out")))

    def test_verify_converts_scales_to_the_type_that_the_output_has(self):
        self.write("in", MODELS["ct-fp8-block"][0]())
        self.respell("in", "out", "deepseek")
        other = Model(1, {})
        other.tensors = self.read("out")
        dtype, shape, content = other.tensors["a.weight_scale_inv"]
        self.assertEqual(dtype, "BF16")
        wide = b"".join(b"\0\0" + content[i:i + 2] for i in range(0, len(content), 2))
        for name, scales in (("right", wide), ("wrong", b"\1" + wide[1:])):
            other.tensors["a.weight_scale_inv"] = "F32", shape, scales
            other.write(self.folder / name)
            (self.folder / name / "config.json").write_bytes((self.out / "config.json").read_bytes())
        self.done("verify", "right", "--against", "in")
        self.assertIn("a.weight_scale_inv", self.refused("verify", "wrong", "--against", "in"))

    def test_a_plan_names_what_each_tensor_comes_from(self):
        for model, spelling, expected in (
                ("ct-int4", "gptq", {"a.qweight": "a.weight_packed", "a.scales": "a.weight_scale",
                                     "a.qzeros": "a.weight_packed", "a.g_idx": "a.weight_packed"}),
                ("modelopt-nvfp4", "compressed-tensors", {
                    "a.weight_packed": "a.weight", "a.weight_scale": "a.weight_scale",
                    "a.weight_global_scale": "a.weight_scale_2", "a.input_global_scale": "a.input_scale"})):
            self.write(model, MODELS[model][0]())
            out = f"{model}-out"
            plan = json.loads(self.done("plan", model, "-o", out, "--respell", spelling, "--force-layout", "--json"))
            names = {tensor.get("output_name", tensor["name"]): tensor["name"] for tensor in plan["tensors"]}
            del names["model.norm.weight"]
            self.assertEqual(names, expected)
            self.assertNotIn('"sources"', (self.folder / out / ".tcast/plan.json").read_text())

    def test_a_plan_that_lies(self):
        self.write("in", MODELS["ct-mxfp4"][0]())
        self.done("plan", "in", "-o", "out", "--respell", "deepseek")
        path = self.out / ".tcast/plan.json"
        text = path.read_text()
        for old, new in (('"change":0', '"change":1'), ('"zero_points":false', '"zero_points":1'), ('"bits":4', '"bits":0'),
                         ('"spelling":"deepseek"', '"spelling":"modelopt"'), ('"block_columns":32', '"block_columns":0')):
            self.assertIn(old, text)
            path.write_text(text.replace(old, new))
            self.assertIn("plan is damaged", self.refused("run-shard", "out"))


if __name__ == "__main__":
    running.main(__doc__)
