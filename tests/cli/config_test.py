#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What becomes of a model's configuration: every change of it is that of a tree, and it fits the tensors."""

import itertools
import json
import shutil

import checkpoints
import quantized_models
import running
from quantized_models import MODELS

SECTION = {"group_size": 32, "bits": 4}
LISTS = {"deepseek": "modules_to_not_convert", "mxfp8": "modules_to_not_convert", "ct-nvfp4": "ignore",
         "modelopt-fp8": "ignore", "nf4": "llm_int8_skip_modules", "awq": "modules_to_not_convert"}


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)


class ConfigTest(running.CommandTest):
    def config(self, folder="out"):
        return json.loads((self.folder / folder / "config.json").read_text())

    def section(self, folder="out"):
        return self.config(folder)["quantization_config"]

    def two_modules(self, name, first="a", second="b", section=None):
        """A model whose layer is there twice. Returns the first weight's module."""
        model = MODELS[name][0]()
        weight = next(iter(model.weights))
        module = weight.removesuffix(".weight")
        for tensor, content in list(model.tensors.items()):
            if tensor.startswith(module + "."):
                del model.tensors[tensor]
                for each in (first, second):
                    model.tensors[each + tensor.removeprefix(module)] = content
        if section is not None:
            model.config["quantization_config"].update(section)
        model.write(self.folder / "in")
        return model

    def convert(self, *arguments):
        remove(self.folder / "out")
        return self.done("convert", "in", "-o", "out", *arguments)


class SectionsTest(ConfigTest):
    def test_sections_side_by_side(self):
        model = MODELS["mlx"][0]()
        items = {"Q": ("quantization", SECTION), "C": ("quantization_config", SECTION), "A": ("a", "\"quantization\": {"),
                 "T": ("text_config", {"x": 1, "quantization": SECTION, "compression_config": SECTION})}
        for order in itertools.permutations("QCAT"):
            for keys in (order, order[:2]):
                if "Q" not in keys:
                    continue
                remove(self.folder / "in")
                model.config = None
                model.write(self.folder / "in")
                text = json.dumps(dict(items[key] for key in keys), indent=2 if "A" in keys else None)
                (self.folder / "in/config.json").write_text(text)
                self.convert("--to", "bfloat16")
                wanted = {items[key][0]: items[key][1] for key in keys if key in "AT"}
                if "T" in keys:
                    wanted["text_config"] = {"x": 1}
                self.assertEqual(self.config(), wanted)
                self.convert("--to", "fp8-channel", "--rule", ".=fp8-channel")
                self.assertEqual(list(self.config()), [*wanted, "quantization_config"])

    def test_lists_of_modules_that_are_null_or_empty(self):
        for name, key in LISTS.items():
            for value in (None, [], ["lm_head"]):
                with self.subTest(name, value=value):
                    remove(self.folder / "in")
                    self.two_modules(name, section={key: value})
                    self.convert("--to", "bfloat16", "--exclude", r"^b\.")
                    self.assertEqual(self.section()[key], ["a", *(value or [])])
                    self.assertEqual((self.folder / "out/config.json").read_text().count(f'"{key}"'), 1)
                    self.done("verify", "out", "--against", "in")

    def test_a_list_of_another_type_is_refused_by_name(self):
        for value in ("lm_head", {}, 5):
            remove(self.folder / "in")
            remove(self.folder / "out")
            self.two_modules("ct-nvfp4", section={"ignore": value})
            error = self.refused("convert", "in", "-o", "out", "--to", "bfloat16", "--exclude", r"^b\.")
            self.assertIn(f'"ignore" is {json.dumps(value)}, and must be a list of modules', error)
            self.assertIn("config.json", error)
            self.assertFalse((self.folder / "out").exists())
            self.convert("--to", "bfloat16")


class RenameTest(ConfigTest):
    def test_lists_follow(self):
        for name, key in LISTS.items():
            with self.subTest(name):
                remove(self.folder / "in")
                self.two_modules(name, "model.a", "model.b", {key: ["model.c", "re:model\\.[cd]$", "head"]})
                for tensor in ("model.c", "head"):
                    self.add_plain(f"{tensor}.weight")
                self.convert("--to", "bfloat16", "--exclude", r"^model\.b\.", "--rename", r"^model\.=m.")
                self.assertEqual(self.section()[key], ["m.a", "m.c", "m.c", "head"])
                self.done("verify", "out", "--against", "in", "--rename", r"^model\.=m.")
                names = {layer["name"] for layer in json.loads(self.done("inspect", "out", "--json"))["layers"]}
                self.assertEqual(names, {"m.b.weight"})

    def add_plain(self, name):
        """Adds a matrix of numbers to the model's file."""
        path = self.folder / "in/model.safetensors"
        tensors, metadata = checkpoints.read(path)
        tensors[name] = ("BF16", [2, 2], bytes(8))
        path.write_bytes(quantized_models.safetensors(tensors, metadata))

    def test_what_names_no_module_stays_byte_for_byte(self):
        self.two_modules("ct-nvfp4", section={"ignore": ["re:.*head", "x"]})
        before = (self.folder / "in/config.json").read_text()
        self.convert("--rename", "^=model.")
        self.assertEqual((self.folder / "out/config.json").read_text(), before)

    def test_layers_that_are_keys_follow(self):
        self.two_modules("mlx")
        config = self.config("in")
        config["quantization"] = {**config["quantization"], "a": dict(config["quantization"]), "x": False}
        (self.folder / "in/config.json").write_text(json.dumps(config))
        self.convert("--rename", "^a=c")
        self.assertIn("c", self.config()["quantization"])
        self.assertNotIn("a", self.config()["quantization"])
        self.done("convert", "out", "-o", "decoded", "--to", "float32")

    def test_layers_are_not_torn_apart(self):
        self.two_modules("deepseek")
        for old, words in (("a.weight$", "are no weight any more"), ("a.weight_scale_inv", "are no weight any more")):
            error = self.refused("convert", "in", "-o", "out", "--rename", f"^{old}=x")
            self.assertIn(words, error)
            self.assertIn('"a.weight"', error)

    def test_a_layer_that_a_key_or_a_pattern_no_longer_describes_is_refused(self):
        groups = {"group_0": {"targets": ["re:a$"], "weights": MODELS["ct-int4"][0]().config["quantization_config"][
            "config_groups"]["group_0"]["weights"]}}
        self.two_modules("ct-int4", section={"config_groups": groups, "ignore": ["b"]})
        self.convert("--rename", "^a=c")
        self.assertEqual(self.section()["config_groups"]["group_0"]["targets"], ["c"])
        names = {layer["name"] for layer in json.loads(self.done("inspect", "out", "--json"))["layers"]}
        self.assertIn("c.weight", names)

    def test_names_in_metadata_follow(self):
        model = MODELS["comfyui-fp8"][0]()
        module = next(iter(model.weights)).removesuffix(".weight")
        model.write(self.folder / "in")
        self.convert("--rename", f"^{module}=m")
        names = {layer["name"] for layer in json.loads(self.done("inspect", "out", "--json"))["layers"]}
        self.assertIn("m.weight", names)


class SingleFileTest(ConfigTest):
    def test_a_configuration_beside_the_output_is_not_contradicted(self):
        self.two_modules("ct-nvfp4")
        before = (self.folder / "in/config.json").read_text()
        for arguments in (["--to", "bfloat16"], ["--respell", "modelopt"], ["--drop", "^b", "--rule", "^a=fp8-channel"]):
            error = self.refused("convert", "in/model.safetensors", "-o", "in/new.safetensors", *arguments)
            self.assertIn('config.json names the quantization "compressed-tensors"', error)
            self.assertIn("another folder", error)
            self.assertFalse((self.folder / "in/new.safetensors").exists())
        self.done("convert", "in/model.safetensors", "-o", "new.safetensors", "--to", "bfloat16")
        self.done("convert", "in/model.safetensors", "-o", "in/copy.safetensors", "--drop", "^b")
        self.assertEqual((self.folder / "in/config.json").read_text(), before)

    def test_a_configuration_that_says_nothing_is_warned_of(self):
        model = quantized_models.Model(1, {})
        model.tensors["a.up_proj.weight"] = ("BF16", [32, 32], bytes(2048))
        model.write(self.folder / "in")
        done = self.exits(0, "convert", "in/model.safetensors", "-o", "in/new.safetensors", "--to", "fp8-channel")
        self.assertIn("config.json stays as it is, and only the output's metadata say that it is quantized",
                      done.stdout + done.stderr)


class VerifyTest(ConfigTest):
    def quantized(self):
        remove(self.folder / "in")
        model = quantized_models.Model(1, {})
        for name in ("model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj", "lm_head"):
            model.tensors[name + ".weight"] = ("BF16", [32, 32], quantized_models.brains([i / 512 for i in range(1024)]))
        model.write(self.folder / "in")
        self.convert("--to", "nvfp4", "--spelling", "compressed-tensors", "--exclude", "down_proj")
        self.done("verify", "out", "--against", "in")
        self.done("verify", "out")
        (self.folder / "out/SHA256SUMS").unlink()

    def edit(self, change):
        config = self.config()
        change(config["quantization_config"])
        (self.folder / "out/config.json").write_text(json.dumps(config))

    def refused_by(self, module, words):
        error = self.refused("verify", "out", "--against", "in")
        self.assertIn(words, error)
        self.assertIn("out/config.json", error)
        self.assertIn(f'"{module}.weight"', error)

    def test_a_module_that_is_listed_and_has_codes(self):
        self.quantized()
        self.edit(lambda section: section["ignore"].append("model.layers.0.mlp.up_proj"))
        self.refused_by("model.layers.0.mlp.up_proj", "as not quantized, and its codes are there")

    def test_a_module_that_is_not_listed_and_has_no_codes(self):
        for module in ("model.layers.0.mlp.down_proj", "lm_head"):
            self.quantized()
            self.edit(lambda section: section["ignore"].remove(module))
            self.refused_by(module, "as quantized, and it has no codes")

    def test_a_configuration_that_is_not_json(self):
        self.quantized()
        path = self.folder / "out/config.json"
        path.write_text(path.read_text().rstrip().removesuffix("}"))
        error = self.refused("verify", "out", "--against", "in")
        self.assertIn("out/config.json", error)
        self.assertIn("not valid JSON", error)

    def test_what_the_source_says_already_is_no_fault_of_the_conversion(self):
        self.two_modules("ct-nvfp4", section={"ignore": ["b"]})
        self.convert("--max-shard-size", "1MB")
        self.done("verify", "out", "--against", "in")


class EmptyWeightsTest(ConfigTest):
    def test_more_rows_without_elements_than_are_at_hand(self):
        header = json.dumps({"a.up_proj.weight": {"dtype": "BF16", "shape": [3000000, 0], "data_offsets": [0, 0]}}).encode()
        (self.folder / "in.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
        for scheme in ("fp8-channel", "int8-channel"):
            self.done("convert", "in.safetensors", "-o", f"{scheme}.safetensors", "--to", scheme)
            self.done("convert", f"{scheme}.safetensors", "-o", f"{scheme}-back.safetensors", "--to", "bfloat16")


if __name__ == "__main__":
    running.main(__doc__)
