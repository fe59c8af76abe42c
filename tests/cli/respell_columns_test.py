#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Integers that change hands: compressed-tensors, GPTQ of both versions, AWQ and auto-round have the same codes.

What is in each layout is read by the formulas of its tool, one code at a time.
"""

import json
import struct

import checkpoints
import running
from quantized_models import MODELS, compressed_int4, gptq, words

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
LAYOUTS = ("compressed-tensors", "gptq", "gptq-v2", "awq", "auto-round", "auto-round-awq")


def integers(tensor):
    _, shape, content = tensor
    numbers = struct.unpack(f"<{len(content) // 4}I", content)
    return [numbers[i : i + shape[1]] for i in range(0, len(numbers), shape[1])]


def take(line, place, bits):
    """A code of a dense stream of words."""
    return sum(word << 32 * i for i, word in enumerate(line)) >> place * bits & (1 << bits) - 1


def transposed(rows):
    return [list(row) for row in zip(*rows)]


def rows_of(tensor):
    """Scales of 16 bits, as they are stored."""
    _, shape, content = tensor
    numbers = struct.unpack(f"<{len(content) // 2}H", content)
    return [list(numbers[i : i + shape[1]]) for i in range(0, len(numbers), shape[1])]


def codes_of(layout, tensors, bits):
    """(codes [outputs][inputs], zero points [outputs][groups], scales), unsigned; symmetric: the middle."""
    if layout == "compressed-tensors":
        outputs, inputs = struct.unpack("<2q", tensors["a.weight_shape"][2])
        codes = [[take(line, k, bits) for k in range(inputs)] for line in integers(tensors["a.weight_packed"])]
        scales = rows_of(tensors["a.weight_scale"])
        if "a.weight_zero_point" not in tensors:
            return codes, [[1 << bits - 1] * len(row) for row in scales], scales
        down = transposed(integers(tensors["a.weight_zero_point"]))
        return codes, transposed([[take(line, n, bits) for n in range(outputs)] for line in down]), scales
    scales, lines, zeros = rows_of(tensors["a.scales"]), integers(tensors["a.qweight"]), integers(tensors["a.qzeros"])
    outputs = len(scales[0])
    if layout.endswith("awq"):
        def column(line, n):
            return line[n // 8] >> 4 * AWQ_ORDER.index(n % 8) & 15

        codes = [[column(line, n) for n in range(outputs)] for line in lines]
        zeros = [[column(line, n) for n in range(outputs)] for line in zeros]
        return transposed(codes), transposed(zeros), transposed(scales)
    inputs = len(lines) * 32 // bits
    codes = [[take(line, k, bits) for k in range(inputs)] for line in transposed(lines)]
    added = 0 if layout == "gptq-v2" else 1
    zeros = [[take(line, n, bits) + added for n in range(outputs)] for line in zeros]
    return codes, transposed(zeros), transposed(scales)


def with_zero_points(model, layout, bits=4):
    """The model without the zero point 0, which version 1 of GPTQ does not hold."""
    name = "a.weight_zero_point" if layout == "compressed-tensors" else "a.qzeros"
    dtype, shape, content = model.tensors[name]
    mask = (1 << bits) - 1
    forbidden = mask if layout == "gptq" else 0
    changed = []
    for word in struct.unpack(f"<{len(content) // 4}I", content):
        for i in range(0, 32, bits):
            if word >> i & mask == forbidden:
                word ^= 1 << i
        changed.append(word)
    model.tensors[name] = (dtype, shape, words(changed))
    return model


class ColumnsTest(running.CommandTest):
    def read(self, folder):
        tensors = {}
        for path in sorted((self.folder / folder).glob("*.safetensors")):
            tensors.update(checkpoints.read(path)[0])
        return tensors

    def section(self, folder):
        return json.loads((self.folder / folder / "config.json").read_text())["quantization_config"]

    def respell(self, source, out, layout):
        self.assertIn("verified", self.done("convert", source, "-o", out, "--respell", layout, "--verify"))
        self.done("verify", out, "--against", source)
        self.done("verify", out)
        found = json.loads(self.done("inspect", out, "--json"))["layers"]
        self.assertEqual([layer["spelling"] for layer in found], [layout])
        self.assertNotIn("problem", found[0])

    def numbers(self, folder):
        self.done("convert", folder, "-o", f"{folder}-numbers", "--to", "float32")
        return self.read(f"{folder}-numbers")["a.weight"]

    def check(self, model, own, bits, layouts):
        """There, with the codes that are here, and back."""
        model.write(self.folder / own)
        wanted, numbers = codes_of(own, model.tensors, bits), self.numbers(own)
        for layout in layouts:
            if layout != own:
                with self.subTest(f"{own} to {layout}, {bits} bits"):
                    there, back = f"{own}-{layout}", f"{own}-{layout}-back"
                    self.respell(own, there, layout)
                    self.assertEqual(codes_of(layout, self.read(there), bits), wanted)
                    self.assertEqual(self.numbers(there), numbers)
                    self.respell(there, back, own)
                    self.assertEqual(self.read(back), self.read(own))

    def test_int4_changes_hands(self):
        self.check(with_zero_points(compressed_int4(symmetric=False), "compressed-tensors"), "compressed-tensors", 4, LAYOUTS)

    def test_symmetric_int4_stays_symmetric(self):
        self.check(compressed_int4(), "compressed-tensors", 4, LAYOUTS)
        self.assertEqual(self.section("compressed-tensors-gptq")["sym"], True)
        self.assertEqual(set(integers(self.read("compressed-tensors-gptq")["a.qzeros"])[0]), {0x77777777})

    def test_gptq_changes_hands(self):
        self.check(with_zero_points(gptq(), "gptq"), "gptq", 4, LAYOUTS)

    def test_awq_changes_hands(self):
        self.check(with_zero_points(MODELS["awq"][0](), "awq"), "awq", 4, LAYOUTS)

    def test_other_widths(self):
        for bits in (2, 3, 8):
            with self.subTest(bits):
                model = gptq(bits=bits, version=2)
                model.write(self.folder / f"in{bits}")
                wanted = codes_of("gptq-v2", model.tensors, bits)
                self.respell(f"in{bits}", f"ct{bits}", "compressed-tensors")
                self.assertEqual(codes_of("compressed-tensors", self.read(f"ct{bits}"), bits), wanted)
                self.assertEqual(self.numbers(f"ct{bits}"), self.numbers(f"in{bits}"))
                self.respell(f"ct{bits}", f"back{bits}", "gptq-v2")
                self.assertEqual(self.read(f"back{bits}"), self.read(f"in{bits}"))
                refused = self.refused("convert", f"in{bits}", "-o", "no", "--respell", "awq")
                self.assertIn("only integers of 4 bits", refused)
                self.assertFalse((self.folder / "no").exists())

    def test_what_is_written_for_loaders(self):
        model = with_zero_points(compressed_int4(symmetric=False), "compressed-tensors")
        model.tensors["lm_head.weight"] = ("BF16", [16, 64], bytes(16 * 64 * 2))
        model.tensors["model.layers.0.mlp.gate.weight"] = ("BF16", [4, 64], bytes(4 * 64 * 2))
        model.config["quantization_config"]["ignore"] = ["lm_head", "re:.*gate$"]
        model.write(self.folder / "in")
        for layout in LAYOUTS[1:]:
            self.respell("in", layout, layout)
        self.assertEqual(self.section("gptq"), {
            "quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False, "desc_act": False, "lm_head": False,
            "checkpoint_format": "gptq", "pack_dtype": "int32", "dynamic": {r"-:^model\.layers\.0\.mlp\.gate$": {}}})
        self.assertEqual(self.section("gptq-v2")["checkpoint_format"], "gptq_v2")
        self.assertEqual(self.section("awq"), {
            "quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm",
            "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate"]})
        self.assertEqual(self.section("auto-round"), {
            "quant_method": "auto-round", "bits": 4, "group_size": 32, "sym": False, "data_type": "int",
            "packing_format": "auto_round:auto_gptq",
            "extra_config": {name: {"bits": 16, "data_type": "float"} for name in ("lm_head", "model.layers.0.mlp.gate")}})
        self.assertEqual(self.section("auto-round-awq")["packing_format"], "auto_round:auto_awq")
        index = integers((None, [1, 64], self.read("gptq")["a.g_idx"][2]))[0]
        self.assertEqual(list(index), [k // 32 for k in range(64)])

    def test_zero_points_that_version_1_does_not_hold(self):
        model = with_zero_points(compressed_int4(symmetric=False), "compressed-tensors")
        dtype, shape, content = model.tensors["a.weight_zero_point"]
        changed = list(struct.unpack(f"<{len(content) // 4}I", content))
        changed[3] &= ~(15 << 8)  # outputs 8 to 15 of group 1
        model.tensors["a.weight_zero_point"] = (dtype, shape, words(changed))
        model.write(self.folder / "in")
        numbers = self.numbers("in")
        for layout in ("gptq", "auto-round"):
            error = self.refused("convert", "in", "-o", "out", "--respell", layout)
            self.assertIn(f'"a.weight_zero_point": the zero point of output 10 in group 1 is 0, and {layout} stores one less',
                          error)
            self.assertIn("gptq-v2", error)
            self.assertFalse(self.out.exists())
        for layout in ("gptq-v2", "awq", "auto-round-awq"):
            self.respell("in", layout, layout)
            self.assertEqual(self.numbers(layout), numbers)

    def test_refusals_name_the_tensor_and_the_reason(self):
        def refuses(model, layout, *said):
            model.write(self.folder / f"in{len(list(self.folder.iterdir()))}")
            error = self.refused("convert", max(self.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns), "-o",
                                 "out", "--respell", layout)
            for words_said in said:
                self.assertIn(words_said, error)
            self.assertFalse(self.out.exists())

        refuses(gptq(ordered=False), "compressed-tensors", '"a.g_idx": element ', "groups in act order have no other spelling")
        refuses(MODELS["ct-int4-odd"][0](), "gptq-v2", '"a.weight"', "61 inputs are not whole groups of 32")
        refuses(MODELS["ct-int3"][0](), "awq", "awq has no int3-group, only integers of 4 bits")
        refuses(MODELS["ct-nvfp4"][0](), "gptq", "gptq has no nvfp4, only integers of 2, 3, 4 and 8 bits")
        refuses(MODELS["mlx"][0](), "gptq", '"a.weight": its codes (mlx int4-affine) are')
        refuses(MODELS["nf4"][0](), "awq", "in blocks over the whole tensor")
        refuses(gptq(), "gptq", "it has this spelling already")
        two = compressed_int4()
        for name, tensor in compressed_int4(columns=128).tensors.items():
            two.tensors[name.replace("a.", "b.", 1)] = tensor
        two.config["quantization_config"]["config_groups"]["group_0"]["targets"] = ["a"]
        one = json.loads(json.dumps(two.config["quantization_config"]["config_groups"]["group_0"]))
        one["targets"], one["weights"]["group_size"] = ["b"], 64
        two.config["quantization_config"]["config_groups"]["group_1"] = one
        dtype, shape, content = two.tensors["b.weight_scale"]
        two.tensors["b.weight_scale"] = (dtype, [shape[0], 2], content[: len(content) // 2])
        refuses(two, "awq", '.weight": awq has one size of groups for all layers')
        two.write(self.folder / "two")
        self.done("convert", "two", "-o", "two-gptq", "--respell", "gptq", "--verify")
        self.assertEqual(len(self.section("two-gptq")["dynamic"]), 1)
        self.done("convert", "two-gptq", "-o", "two-back", "--respell", "compressed-tensors", "--verify")
        self.assertEqual(self.read("two-back"), self.read("two"))

    def test_a_plan_and_its_shards(self):
        with_zero_points(compressed_int4(symmetric=False), "compressed-tensors").write(self.folder / "in", shards=2)
        self.done("convert", "in", "-o", "whole", "--respell", "gptq")
        self.assertIn("compressed-tensors int4-group", self.done("plan", "in", "-o", "out", "--respell", "gptq"))
        self.done("run-shard", "out", "1")
        self.done("run-shard", "out", "0")
        self.done("finish", "out")
        self.assertEqual(self.read("out"), self.read("whole"))
        path = self.out / "config.json"
        self.assertEqual(path.read_bytes(), (self.folder / "whole/config.json").read_bytes())

    def test_a_single_file(self):
        compressed_int4().write(self.folder / "in")
        (self.folder / "in/config.json").rename(self.folder / "config.json")
        self.refused("convert", "in/model.safetensors", "-o", "one.safetensors", "--respell", "gptq")
        (self.folder / "config.json").rename(self.folder / "in/config.json")
        self.done("convert", "in", "-o", "there", "--respell", "awq")
        self.done("convert", "there/model.safetensors", "-o", "one.safetensors", "--respell", "gptq-v2")
        tensors, metadata = checkpoints.read(self.folder / "one.safetensors")
        self.assertIn("a.qweight", tensors)
        self.assertEqual(json.loads(metadata["quantization_config"])["checkpoint_format"], "gptq_v2")

    def test_numbers_are_quantized_into_these_layouts(self):
        model = MODELS["awq"][0]()
        model.write(self.folder / "awq")
        self.done("convert", "awq", "-o", "plain", "--to", "bfloat16")
        self.done("convert", "plain", "-o", "ct", "--to", "int4-group", "--group-size", "32")
        for layout in LAYOUTS[1:]:
            self.done("convert", "plain", "-o", f"new-{layout}", "--to", "int4-group", "--spelling", layout,
                      "--group-size", "32", "--verify")
            self.respell("ct", f"old-{layout}", layout)
            self.assertEqual(self.read(f"new-{layout}"), self.read(f"old-{layout}"))
            self.assertEqual(self.section(f"new-{layout}"), self.section(f"old-{layout}"))
            self.done("verify", f"new-{layout}", "--against", "plain")


if __name__ == "__main__":
    running.main(__doc__)
