#!/usr/bin/env python3
"""Quantized checkpoints: what inspect says of each spelling."""

import json

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
        self.assertIn('warning: "p_proj.weight_scale" has scales that are negative', text)
        self.assertNotIn("attn", text)

    def test_global_scales_that_are_zero(self):
        model = MODELS["ct-nvfp4"][0]()
        model.tensors["a.weight_global_scale"] = ("F32", [1], bytes(4))
        model.write(self.folder / "zero")
        self.assertIn('warning: "a.weight_global_scale" has a scale of the whole tensor that is zero or infinite',
                      self.done("inspect", "zero"))

    def test_the_config_says_ue5m3(self):
        model = MODELS["modelopt-nvfp4"][0]()
        model.files["hf_quant_config.json"] = model.files["hf_quant_config.json"].replace(
            '"group_size": 16', '"group_size": 16, "scale_format": "UE5M3"')
        model.write(self.folder / "ue5m3")
        self.assertIn("UE5M3 bytes", self.done("inspect", "ue5m3"))

    def test_contradictions_are_named(self):
        model = MODELS["deepseek"][0]()
        name = "model.layers.0.kv_a_proj.weight_scale_inv"
        model.tensors[name] = ("F32", [3, 2], bytes(24))
        model.write(self.folder / "wrong")
        self.assertIn(f"not decoded: {name}: config.json names blocks of 128 x 128, so a weight of [192, 200] has scales "
                      "of [2, 2], and these are of [3, 2]", self.done("inspect", "wrong"))

    def test_methods_that_are_not_decoded(self):
        model = quantized_models.Model(1, {"quantization_config": {"quant_method": "aqlm"}})
        model.write(self.folder / "aqlm")
        self.assertIn('warning: config.json names the quantization "aqlm", which is not decoded',
                      self.done("inspect", "aqlm"))


if __name__ == "__main__":
    running.main(__doc__)
