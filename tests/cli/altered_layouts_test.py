#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of quantized weights in which one thing is not as its tool writes it: one key, word, type or tensor.

What such a folder means is known, or it is refused by the name of what is odd; it never decodes to other numbers.
`--all` alters every key and tensor of every model; without it, a sample.
"""

import copy
import json
import random
import struct

import checkpoints
import running
from quantized_models import FP4, MODELS, Model, f32, floats, halves


def section(model):
    for key in ("quantization_config", "quantization", "compression_config"):
        if key in (model.config or {}):
            return model.config[key]
    return None


def weights_of(model):
    """The arguments of the only group of compressed-tensors."""
    return section(model)["config_groups"]["group_0"]["weights"]


def comfy(text):
    """A model of ComfyUI's int8 with another description."""
    model = MODELS["comfyui-int8"][0]()
    content = json.dumps(text).encode()
    model.tensors["a.comfy_quant"] = ("U8", [len(content)], content)
    return model


def numbers(tensor):
    dtype, _, content = tensor
    assert dtype == "F32", dtype
    return list(struct.unpack(f"<{len(content) // 4}f", content))


def same(one, two):
    return len(one) == len(two) and all(a == b or (a != a and b != b) for a, b in zip(one, two))


# What is odd: a model, how it is altered, and a part of the error; None: the numbers are right.
def named(name, **keys):
    def alter():
        model = MODELS[name][0]()
        section(model).update(keys)
        return model
    return alter


def with_tensor(name, tensor, value):
    def alter():
        model = MODELS[name][0]()
        model.tensors[tensor] = value
        return model
    return alter


def of_group(name, **arguments):
    def alter():
        model = MODELS[name][0]()
        weights_of(model).update(arguments)
        return model
    return alter


def with_groups(*groups):
    """The asymmetric model whose groups are (targets, symmetric)."""
    def alter():
        model = MODELS["ct-int4-asymmetric"][0]()
        weights = weights_of(model)
        section(model)["config_groups"] = {
            f"group_{i}": {"targets": targets, "weights": {**weights, "symmetric": symmetric}}
            for i, (targets, symmetric) in enumerate(groups)}
        return model
    return alter


def moved(name, key, file, text):
    """A key that another file says alone."""
    def alter():
        model = MODELS[name][0]()
        section(model).pop(key, None)
        model.files[file] = json.dumps(text)
        return model
    return alter


def renamed_key(name, old, new):
    def alter():
        model = MODELS[name][0]()
        section(model)[new] = section(model).pop(old)
        return model
    return alter


def weight_format(value):
    return with_tensor("bnb-int8", "a.weight_format", ("U8", [], bytes([value])))


def nf4_stored_as(dtype, size):
    def alter():
        model = MODELS["nf4"][0]()
        _, _, content = model.tensors["a.weight"]
        content += bytes(-len(content) % size)
        model.tensors["a.weight"] = (dtype, [len(content) // size, 1], content)
        return model
    return alter


def mlx_own(key, value):
    def alter():
        model = MODELS["mlx"][0]()
        model.config["quantization"][key] = value
        return model
    return alter


def mlx_affine_beside_mx():
    """As mlx-lm writes sensitive layers of models in other modes: their settings name no mode, and mean affine."""
    model, affine = MODELS["mlx-mxfp4"][0](), MODELS["mlx"][0]()
    for word in ("weight", "scales", "biases"):
        model.tensors[f"b.{word}"] = affine.tensors[f"a.{word}"]
    model.weights["b.weight"] = affine.weights["a.weight"]
    model.config["quantization"]["b"] = {"group_size": 32, "bits": 4}
    return model


def modelopt_in_metadata():
    model = MODELS["modelopt-nvfp4"][0]()
    description = {"quant_method": "modelopt", "quant_algo": "NVFP4", "producer": {"name": "modelopt", "version": "0.47.0"}}
    model.metadata = {"format": "pt", "quantization_config": json.dumps(description)}
    return model


def quark(**keys):
    """Keys of the model's description; `weight`: of what it says of weights."""
    def alter():
        model = MODELS["quark"][0]()
        section(model)["global_quant_config"]["weight"].update(keys.pop("weight", {}))
        section(model).update(keys)
        return model
    return alter


def comfy_types(name, codes, marker="F8_E4M3"):
    def alter():
        model = MODELS[name][0]()
        for tensor, dtype in (("a.weight", codes), ("scaled_fp8", marker)):
            if tensor in model.tensors:
                model.tensors[tensor] = (dtype, *model.tensors[tensor][1:])
        return model
    return alter


def modelopt_group(**weights):
    return named("modelopt-fp8", config_groups={"group_0": {"targets": ["Linear"], "weights": weights}})


def transposed_zeros():
    model = MODELS["torchao-integers"][0]()
    dtype, shape, content = model.tensors["a._weight_zero_point"]
    model.tensors["a._weight_zero_point"] = (dtype, shape[::-1], content)
    return model


ONE = floats([3.0])
CASES = {
    "ComfyUI names another float8": (comfy_types("comfyui-fp8", "F8_E5M2"), "are float8_e4m3fn"),
    "ComfyUI's marker names another float8": (comfy_types("comfyui-old-fp8", "F8_E5M2"), "those of \"a.weight\" are"),
    "Quark's classes": (quark(layer_type_quant_config={"nn.Linear": {"weight": {"dtype": "fp4"}}}), "another scheme"),
    "Quark's other classes": (quark(layer_type_quant_config={"nn.Embedding": {"weight": {"dtype": "fp4"}}}), None),
    "Quark's unknown classes": (quark(layer_type_quant_config={"Experts": {"weight": {"dtype": "fp4"}}}), "may be its own"),
    "Quark's blocks along outputs": (quark(weight={"ch_axis": 0}), "\"ch_axis\": 0"),
    "Quark's scales of scales": (quark(weight={"is_scale_quant": True}), "is_scale_quant"),
    "Quark's rotations": (quark(algo_config=[{"name": "rotation", "online_r1_rotation": True}]), "rotates weights"),
    "Quark's other files": (quark(export={"weight_format": "fake_quantized"}), "weight_format"),
    "Quark's other keys of files": (quark(export={"nibbles": "high"}), "\"nibbles\""),
    "AWQ in another order": (named("awq", pack_method="order"), "pack_method"),
    "AWQ in its order": (named("awq", pack_method="reorder"), None),
    "AWQ of other codes": (named("awq", data_type="nf4"), "codes of nf4"),
    "AWQ with act order": (named("awq", desc_act=True), "desc_act"),
    "ModelOpt's group of integers": (modelopt_group(num_bits=8, type="int"), "type \"int\""),
    "ModelOpt's group of other codes": (modelopt_group(num_bits=4, type="float"), "4 bits"),
    "ModelOpt's group with another key": (modelopt_group(num_bits=8, type="float", offset=1), "\"offset\""),
    "ModelOpt's group": (modelopt_group(num_bits=8, type="float", dynamic=False), None),
    "weights that are quantized at run time": (of_group("ct-int8", dynamic=True), "\"dynamic\": true"),
    "a format with other arguments": (of_group("ct-mxfp4", num_bits=8), "8 bits"),
    "a format of other numbers": (of_group("ct-nvfp4", type="int"), "type \"int\""),
    "scales of another float8": (named("deepseek", scale_fmt="ue4m3"), "scale_fmt"),
    "experts of another type": (named("deepseek", expert_dtype="int4"), "expert_dtype"),
    "torchao's zero points in another order": (transposed_zeros, "zero points of scales of [40, 3]"),
    "a bias of scales": (with_tensor("gptq", "a.scale_bias", ("F32", [1], ONE)), "accept scale_bias"),
    "a bias of a router": (with_tensor("gptq", "a.e_score_correction_bias", ("F32", [1], ONE)), None),
    "a scale in a module inside": (with_tensor("gptq", "a.quantizer.scale", ("F32", [1], ONE)), "accept quantizer.scale"),
    "an adapter inside": (with_tensor("gptq", "a.lora_A.weight", ("F16", [1, 96], halves([1.0] * 96))), None),
    "tile of a tensor core": (weight_format(2), "tiles of a tensor core"),
    "rows are said": (weight_format(0), None),
    "symmetric with zero points": (of_group("ct-int4-asymmetric", symmetric=True), "no zero points"),
    "symmetric as text": (of_group("ct-int4-asymmetric", symmetric="false"), "must be true or false"),
    "symmetric as number": (of_group("ct-int4-asymmetric", symmetric=0), "must be true or false"),
    "symmetric not said": (of_group("ct-int4-asymmetric", symmetric=None), "no zero points"),
    "embeddings have another group": (with_groups((["Embedding"], True), (["Linear"], False)), None),
    "only embeddings have a group": (with_groups((["Embedding"], False)), "no group of config_groups"),
    "a name beats a pattern": (with_groups((["re:.*"], True), (["a"], False)), None),
    "patterns in the order of their text": (with_groups((["re:b.*|a"], True), (["re:a"], False)), None),
    "a pattern that RE2 has not": (with_groups((["re:^(?!lm_head).*"], False), (["Linear"], True)), "RE2 cannot match"),
    "groups that contradict": (with_groups((["Linear"], True), (["Linear"], False)), "two groups"),
    "an unknown argument": (of_group("ct-int4", scale_offset=1), "\"scale_offset\""),
    "act order without index": (of_group("ct-int4", actorder="group"), "actorder"),
    "act order of weights": (of_group("ct-int4", actorder="weight"), None),
    "two scales of DeepSeek": (with_tensor("deepseek", "model.layers.0.kv_a_proj.weight_scale", ("F32", [], ONE)),
                               "stands beside the codes"),
    "fp8 with a second scale": (with_tensor("modelopt-fp8", "a.weight_scale_2", ("F32", [], ONE)), "weight_scale_2"),
    "a scale of AWQ": (with_tensor("modelopt-fp8", "a.awq_scale", ("F32", [], ONE)), "accept awq_scale"),
    "a scale of inputs": (with_tensor("modelopt-fp8", "a.input_quantizer._pre_quant_scale", ("F32", [], ONE)),
                          "_pre_quant_scale"),
    "a scale of activations": (with_tensor("modelopt-fp8", "a.input_scale", ("F32", [], ONE)), None),
    "a bias": (with_tensor("gptq", "a.bias", ("F16", [32], halves([1.0] * 32))), None),
    "nf4 with SCB": (with_tensor("nf4", "a.SCB", ("F32", [1], ONE)), "a.SCB"),
    "GPTQ's key format": (renamed_key("gptq-v2", "checkpoint_format", "format"), None),
    "GPTQ in capitals": (named("gptq-v2", checkpoint_format="GPTQ_V2"), None),
    "GPTQ's two names": (named("gptq-v2", format="gptq"), "checkpoint_format"),
    "GPTQ's second file": (moved("gptq-v2", "checkpoint_format", "quantize_config.json",
                                 {"bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"}), None),
    "GPTQ's second file contradicts": (moved("gptq-v2", "", "quantize_config.json", {"bits": 8}), "bits"),
    "act order as number": (named("gptq", desc_act=1), "must be true or false"),
    "marlin": (named("gptq", is_marlin_format=True), "marlin"),
    "symmetric zeros of GPTQ": (named("gptq", sym=True), "zero points of 7"),
    "a module that is not quantized": (named("gptq", dynamic={"-:a": {}}), "not quantized"),
    "settings of all modules": (named("gptq", bits=8, dynamic={"+:a": {"bits": 4}}), None),
    "settings without a sign": (named("gptq", bits=8, dynamic={"a": {"bits": 4}}), None),
    "a pattern of GPTQ that RE2 has not": (named("gptq", dynamic={"+:(?!b).*": {"bits": 8}}), "RE2 cannot match"),
    "GEMV in another file": (moved("awq", "version", "quant_config.json",
                                   {"w_bit": 4, "q_group_size": 32, "version": "GEMV"}), "gemv"),
    "AWQ without zero points": (named("awq", zero_point=False), "zero points of 8"),
    "AWQ's other size": (renamed_key("awq", "group_size", "q_group_size"), None),
    "nf4 in bfloat16": (nf4_stored_as("BF16", 2), None),
    "nf4 in float16": (nf4_stored_as("F16", 2), None),
    "nf4 in float32": (nf4_stored_as("F32", 4), None),
    "nf4 with the table of fp4": (with_tensor("nf4", "a.weight.quant_map", ("F32", [16], floats(FP4))), "code 0 means"),
    "act order not said, and no index": (lambda: without("gptq-order", "a.g_idx"), "desc_act is false"),
    "MLX without bits": (lambda: without_key("mlx-3bit", "bits"), "not whole groups"),
    "MLX with another prefix": (mlx_own("model.a", {"bits": 8, "group_size": 32}), "may be meant for it"),
    "MLX says it is not quantized": (mlx_own("a", False), "not quantized"),
    "MLX's own settings without sizes": (mlx_own("a", {"mode": "affine"}), "blocks of 1 x 64"),
    "MLX's own settings": (mlx_own("a", {"group_size": 32, "bits": 4}), None),
    "MLX's own settings without a mode": (mlx_affine_beside_mx, None),
    "ModelOpt's description in the file, too": (modelopt_in_metadata, "tiles of a GPU"),
    "MLX's two descriptions": (lambda: altered_config("mlx", quantization_config={"group_size": 32, "bits": 8}), "bits"),
    "MLX's second biases": (lambda: copied_tensor("mlx", "a.biases", "a.qbiases"), "qbiases"),
    "ConvRot as number": (lambda: comfy({"format": "int8_tensorwise", "convrot": 1}), "must be true or false"),
    "ConvRot as text": (lambda: comfy({"format": "int8_tensorwise", "convrot": "true"}), "must be true or false"),
    "an unknown key of ComfyUI": (lambda: comfy({"format": "int8_tensorwise", "transposed": True}), "\"transposed\""),
    "SVDQuant": (lambda: with_text("modelopt-nvfp4", "NVFP4_SVD"), "NVFP4_SVD"),
    "another name of ModelOpt": (lambda: with_text("modelopt-nvfp4", "nvfp4"), None),
}


def without(name, tensor):
    model = MODELS[name][0]()
    del model.tensors[tensor]
    return model


def without_key(name, key):
    model = MODELS[name][0]()
    del section(model)[key]
    return model


def altered_config(name, **keys):
    model = MODELS[name][0]()
    model.config.update(keys)
    return model


def copied_tensor(name, old, new):
    model = MODELS[name][0]()
    model.tensors[new] = model.tensors[old]
    return model


def with_text(name, algorithm):
    """ModelOpt's name of the method, in all files."""
    model = MODELS[name][0]()
    for file, text in model.files.items():
        model.files[file] = text.replace('"NVFP4"', f'"{algorithm}"')
    if section(model):
        section(model)["quant_algo"] = algorithm
    return model


class AlteredTest(running.CommandTest):
    def decode(self, model, *options, to="float32"):
        """The decoded tensors, or the error."""
        self.count = getattr(self, "count", 0) + 1
        folder, out = self.folder / f"in{self.count}", self.folder / f"out{self.count}"
        model.write(folder)
        run = self.tcast("convert", folder, "-o", out, "--to", to, "--allow-loss", "-q", *options)
        if run.returncode != 0:
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("tcast: error: ", run.stderr)
            self.assertFalse(out.exists(), "an output that is not complete")
            return None, run.stderr
        tensors = {}
        for path in out.glob("*.safetensors"):
            tensors.update(checkpoints.read(path)[0])
        return tensors, run.stderr

    def check(self, model, label):
        """Returns the error; the numbers are right if there is none."""
        tensors, error = self.decode(model)
        if tensors is None:
            return error
        for name, (shape, wanted) in model.weights.items():
            self.assertIn(name, tensors, label)
            self.assertEqual(tensors[name][1], shape, label)
            self.assertTrue(same(numbers(tensors[name]), wanted), f"{label}: {name} has other numbers")
        return ""

    def check_unharmed(self, model, label):
        """The numbers are right, or all tensors of weights are as they were even if plain ones are rounded, or an error."""
        tensors, _ = self.decode(model)
        if tensors is None:
            return
        right = lambda name, wanted: name in tensors and tensors[name][0] == "F32" and same(
            numbers(tensors[name]), wanted[:len(numbers(tensors[name]))])
        others = [name for name, (_, wanted) in model.weights.items() if not right(name, wanted)]
        tensors, _ = self.decode(model, to="bfloat16") if others else (None, "")
        if tensors is None:
            return
        modules = tuple(f"{name.removesuffix('.weight')}." for name in others)
        for name, tensor in model.tensors.items():
            if name.startswith(modules):
                self.assertEqual(tensors.get(name), tensor, f"{label}: {name} is damaged")

    def test_named_oddities(self):
        for label, (alter, message) in CASES.items():
            with self.subTest(label):
                error = self.check(alter(), label)
                if message is None:
                    self.assertEqual(error, "", label)
                else:
                    self.assertIn(message, error, label)

    def test_accept_takes_one_word(self):
        model = CASES["a scale of AWQ"][0]()
        tensors, error = self.decode(model, "--accept", "awq_scale")
        self.assertIsNotNone(tensors, error)
        self.assertTrue(same(numbers(tensors["a.weight"]), model.weights["a.weight"][1]))
        self.assertIn("a.awq_scale", tensors)
        tensors, error = self.decode(CASES["an unknown argument"][0](), "--accept", "scale_offset")
        self.assertIsNotNone(tensors, error)
        self.done("plan", "in1", "-o", "planned", "--to", "bfloat16", "--accept", "awq_scale", "--accept", "more")
        plan = json.loads((self.folder / "planned/.tcast/plan.json").read_text())
        self.assertEqual(plan["accepted"], ["awq_scale", "more"])
        self.done("run-shard", "planned")
        self.done("finish", "planned")

    def test_zero_points_of_gptq_borrow_in_their_words(self):
        """GPTQModel subtracts 1 from packed words: a zero point of 0 borrows from the next field."""
        model = MODELS["gptq"][0]()
        rng = random.Random(6)
        rows, columns, group = 32, 96, 32
        codes = [[rng.randrange(16) for _ in range(columns)] for _ in range(rows)]
        zeros = [[rng.randrange(16) if n % 5 else 0 for _ in range(columns // group)] for n in range(rows)]
        scales = [[f32(rng.randint(1, 64) / 64) for _ in range(columns // group)] for _ in range(rows)]
        down = [[sum(codes[n][8 * k + i] << 4 * i for i in range(8)) for n in range(rows)] for k in range(columns // 8)]
        packed = [[(sum(zeros[8 * n + i][g] << 4 * i for i in range(8)) - 0x11111111) & 0xFFFFFFFF
                   for n in range(rows // 8)] for g in range(columns // group)]
        unsigned = lambda rows_of_words: b"".join(struct.pack(f"<{len(row)}I", *row) for row in rows_of_words)
        model.tensors["a.qweight"] = ("I32", [columns // 8, rows], unsigned(down))
        model.tensors["a.qzeros"] = ("I32", [columns // group, rows // 8], unsigned(packed))
        model.tensors["a.scales"] = ("F16", [columns // group, rows],
                                     halves([scales[n][g] for g in range(columns // group) for n in range(rows)]))
        model.weights["a.weight"] = ([rows, columns], [f32((codes[n][k] - zeros[n][k // group]) * scales[n][k // group])
                                                       for n in range(rows) for k in range(columns)])
        self.assertEqual(self.check(model, "borrow"), "")

    def test_float8_beside_what_looks_like_scales(self):
        """No table has these names, and nothing describes the codes: rounding the scales would damage them."""
        for word in ("qscale_weight", "w_scale", "weight_s", "wscale", "weight_max", "fp8_scale", "weight_dequant_scale",
                     "mul", "weight_scaling_factor_2", "weight._scale"):
            for shape in ([], [1], [16, 1], [2, 2]):
                model = Model(1, None)
                count = 1
                for size in shape:
                    count *= size
                model.tensors["l.a.weight"] = ("F8_E4M3", [16, 32], bytes([0x38]) * 512)
                model.tensors[f"l.a.{word}"] = ("F32", shape, floats([0.5] * count))
                tensors, error = self.decode(model, to="bfloat16")
                self.assertIsNone(tensors, f"{word} {shape}")
                self.assertIn(f"l.a.{word}", error)
                self.assertIn("l.a.weight", error)
        for dtype, shape, name in (("I8", [16, 32], "l.a.weight._data"), ("U8", [16, 16], "l.a._weight_qdata"),
                                   ("I32", [2, 64], "l.a.q_weight"), ("I16", [2, 4, 64], "l.a.trellis")):
            model = Model(1, None)
            size = {"I8": 1, "U8": 1, "I16": 2, "I32": 4}[dtype]
            count = 1
            for one in shape:
                count *= one
            model.tensors[name] = (dtype, shape, bytes(count * size))
            model.tensors[name.rsplit(".", 1)[0] + ".own_factor"] = ("F32", [1], floats([0.5]))
            tensors, error = self.decode(model, to="bfloat16")
            self.assertIsNone(tensors, name)
            self.assertIn("own_factor", error)

    def test_plain_float8_stays_convertible(self):
        model = Model(1, None)
        model.tensors["l.a.weight"] = ("F8_E4M3", [2, 4], bytes([0x38]) * 8)
        model.tensors["l.a.bias"] = ("F32", [2], floats([0.5] * 2))
        tensors, error = self.decode(model)
        self.assertIsNotNone(tensors, error)
        self.assertEqual(numbers(tensors["l.a.weight"]), [1.0] * 8)

    def test_mistral_folders(self):
        one = ("F32", [], floats([1.0]))
        model = Model(1, {"quantization_config": {"quant_method": "fp8", "activation_scheme": "static",
                                                  "weight_block_size": None}},
                      files={"params.json": json.dumps({"quantization": {"qformat_weight": "fp8_e4m3",
                                                                         "qscheme_act": "TENSOR"}})})
        codes = bytes(range(100))
        scale = ("F32", [], floats([0.125]))
        model.tensors["k.weight"] = ("F8_E4M3", [10, 10], codes)
        model.tensors["k.weight_scale_inv"] = scale
        model.tensors["k.activation_scale"] = one
        own = Model(1, None)
        own.tensors = {"wk.weight": ("F8_E4M3", [10, 10], codes), "wk.qscale_weight": scale, "wk.qscale_act": one}
        folder = self.folder / "mistral"
        model.write(folder)
        own.write(self.folder / "own")
        (self.folder / "own/model.safetensors").rename(folder / "consolidated.safetensors")
        self.done("convert", folder, "-o", "mistral-out", "--to", "float32", "-q")
        hugging = checkpoints.read(self.folder / "mistral-out/model.safetensors")[0]
        mistral = checkpoints.read(self.folder / "mistral-out/consolidated.safetensors")[0]
        self.assertEqual(hugging["k.weight"][2], mistral["wk.weight"][2])
        self.assertNotIn("wk.qscale_weight", mistral)
        self.assertNotIn("quantization", json.loads((self.folder / "mistral-out/params.json").read_text()))
        # Mistral Large 4 has Mistral's names beside Hugging Face's description.
        both = Model(1, model.config)
        both.tensors = own.tensors
        tensors, error = self.decode(both)
        self.assertIsNotNone(tensors, error)
        self.assertEqual(numbers(tensors["wk.weight"]), numbers(hugging["k.weight"]))
        self.assertNotIn("wk.qscale_act", tensors)

    def test_one_thing_altered_at_a_time(self):
        """Each key and each tensor: left out, of another type, under another name, doubled."""
        rng = random.Random(51)
        for name in MODELS:
            altered = list(alterations(name))
            for label, model in altered if running.given.all else rng.sample(altered, min(6, len(altered))):
                if any(part in label for part in CANNOT_BE_KNOWN):
                    continue
                with self.subTest(label):
                    self.check_unharmed(model, label)


# What no reader can know, as another folder would say the same: GPTQ's version, and settings that are the tool's default.
CANNOT_BE_KNOWN = ("gptq-v2: checkpoint_format", "gptq-v2: /checkpoint_format")


def paths_of(value, path=()):
    """All keys below an object."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield (*path, key)
            yield from paths_of(member, (*path, key))


def member_at(value, path):
    for key in path:
        value = value[key]
    return value


def alterations(name):
    def fresh():
        model = MODELS[name][0]()
        return model, model.config

    _, config = fresh()
    for path in paths_of(config or {}):
        at = f"{name}: /{path[-1]}"
        for what in ("left out", "null", "text", "list", "renamed", "doubled", "inverted", "more"):
            model, config = fresh()
            config = model.config = copy.deepcopy(config)
            owner, key = member_at(config, path[:-1]), path[-1]
            value = owner[key]
            if what == "left out":
                del owner[key]
            elif what == "null":
                owner[key] = None
            elif what == "text":
                owner[key] = str(value)
            elif what == "list":
                owner[key] = [value]
            elif what == "renamed":
                owner[f"{key}_new"] = owner.pop(key)
            elif what == "doubled" and isinstance(value, int) and not isinstance(value, bool):
                owner[key] = value * 2
            elif what == "inverted" and isinstance(value, bool):
                owner[key] = not value
            elif what == "more":
                owner["offset_of_codes"] = 1
            else:
                continue
            yield f"{at} {what}", model
    tensors = [tensor for tensor in fresh()[0].tensors if tensor != "model.norm.weight"]
    for tensor in tensors:
        for what in ("left out", "renamed", "doubled", "flat", "halved"):
            model, _ = fresh()
            dtype, shape, content = model.tensors[tensor]
            if what == "left out":
                del model.tensors[tensor]
            elif what == "renamed":
                model.tensors[f"{tensor}_new"] = model.tensors.pop(tensor)
            elif what == "doubled":
                model.tensors[f"{tensor}_2"] = model.tensors[tensor]
            elif what == "flat" and len(shape) > 1:
                model.tensors[tensor] = (dtype, [len(content) // max(1, len(content) // max(1, prod(shape)))], content)
            elif what == "halved" and len(content) > 16:
                model.tensors[tensor] = (dtype, [shape[0] // 2, *shape[1:]], content[:len(content) // shape[0] * (shape[0] // 2)])
            else:
                continue
            yield f"{name}: {tensor} {what}", model


def prod(shape):
    result = 1
    for size in shape:
        result *= size
    return result


if __name__ == "__main__":
    running.main(__doc__, [("--all", {"action": "store_true", "help": "alter every key and tensor of every model"})])
