#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tcast convert --to SCHEME: what is chosen and said; python/tests/test_quantize_files.py compares the bytes."""

import json
import random
import struct

import checkpoints
import fixtures
import quantized_models
import running

HIDDEN = 64


def bf16(rows, columns, seed):
    numbers = random.Random(seed)
    words = [struct.unpack("<I", struct.pack("<f", numbers.gauss(0, 0.05)))[0] >> 16 for _ in range(rows * columns)]
    return "BF16", [rows, columns], struct.pack(f"<{len(words)}H", *words)


def model():
    tensors = {"model.embed_tokens.weight": bf16(8, HIDDEN, 1), "lm_head.weight": bf16(8, HIDDEN, 2),
               "model.norm.weight": ("BF16", [HIDDEN], b"\x80\x3f" * HIDDEN)}
    for i, name in enumerate(["self_attn.q_proj", "self_attn.k_proj", "mlp.gate_proj", "mlp.down_proj", "mlp.gate"]):
        tensors[f"model.layers.0.{name}.weight"] = bf16(HIDDEN, HIDDEN, 10 + i)
    tensors["model.vision_tower.layers.0.fc1.weight"] = bf16(HIDDEN, HIDDEN, 30)
    tensors["model.layers.0.attn.in_proj_weight"] = bf16(HIDDEN, HIDDEN, 31)
    return tensors


class QuantizeTest(running.CommandTest):
    def setUp(self):
        super().setUp()
        written = quantized_models.Model(1, {})
        written.tensors.update(model())
        written.write(self.folder / "in", shards=2)

    def read(self, folder):
        tensors = {}
        for path in sorted((self.folder / folder).glob("*.safetensors")):
            tensors.update(checkpoints.read(path)[0])
        return tensors

    def layers(self, folder):
        return json.loads(self.done("inspect", folder, "--json"))["layers"]

    def test_the_plan_says_what_stays_and_why(self):
        plan = self.done("convert", "in", "-o", "out", "--to", "nvfp4", "--dry-run")
        for words in ("nvfp4 by modelopt as modelopt", "embedding", "head", "router", "vision tower", "not a matrix", "no module's weight",
                      "4 weights quantized to", "4 weights are read twice, as one scale is for a whole tensor"):
            self.assertIn(words, plan)
        for scheme in ("mxfp4", "nvfp4:mlx"):
            self.assertNotIn("read twice", self.done("convert", "in", "-o", "out", "--to", scheme, "--dry-run"))
        self.assertFalse((self.folder / "out").exists())

    def test_verify_decodes_a_quantized_source_first(self):
        self.done("convert", "in", "-o", "fp8", "--to", "fp8-block")
        self.done("convert", "fp8", "-o", "bf16", "--to", "bfloat16")
        for spelling in ("modelopt", "compressed-tensors", "comfyui"):
            out = f"nv-{spelling}"
            self.done("convert", "fp8", "-o", out, "--to", "nvfp4", "--spelling", spelling)
            for against in ("bf16", "fp8"):
                self.assertIn("4 weights are nvfp4", self.done("verify", out, "--against", against))
        self.assertIn("no recipe of nvfp4", self.refused("verify", out, "--against", "in"))

    def record(self, path):
        return json.loads(checkpoints.read(path)[1]["tensorcast.conversion"])

    def test_the_metadata_say_what_was_asked_for(self):
        self.done("convert", "in", "-o", "out", "--to", "mxfp4", "--recipe", "even", "--spelling", "compressed-tensors", "--clip", "mse")
        for path in sorted((self.folder / "out").glob("*.safetensors")):
            record = self.record(path)
            self.assertRegex(record.pop("version"), r"^\d+\.\d+")
            self.assertEqual(record, {"recipes": ["mxfp4:even"], "layouts": ["compressed-tensors"],
                                      "options": {"scheme": "mxfp4", "recipe": "even", "spelling": "compressed-tensors",
                                                  "clip": "mse"}})
        self.assertIn("mxfp4 by even with clip mse", self.done("verify", "out", "--against", "in"))
        # Decoded, nothing of it is true any more.
        self.done("convert", "out", "-o", "decoded", "--to", "bfloat16")
        for path in (self.folder / "decoded").glob("*.safetensors"):
            self.assertNotIn("tensorcast.conversion", checkpoints.read(path)[1])

    def test_verify_makes_the_recorded_recipe_and_no_other(self):
        self.done("convert", "in", "-o", "out", "--to", "mxfp4:even")
        for path in (self.folder / "out").glob("*.safetensors"):
            path.write_bytes(path.read_bytes().replace(b"mxfp4:even", b"mxfp4:ceil").replace(b"\\\"even", b"\\\"ceil"))
        (self.folder / "out/SHA256SUMS").unlink()
        error = self.refused("verify", "out", "--against", "in")
        self.assertIn("no recipe of mxfp4 makes these bytes of the source's weight; ceil is nearest", error)

    def test_verify_takes_the_options_of_casts_from_the_metadata(self):
        self.done("convert", "in", "-o", "out", "--to", "float8_e4m3fn", "--rounding", "stochastic", "--seed", "7")
        path = next((self.folder / "out").glob("*.safetensors"))
        self.assertEqual(self.record(path)["options"], {"rounding": "stochastic", "seed": 7})
        self.done("verify", "out", "--against", "in")
        self.refused("verify", "out", "--against", "in", "--rounding", "stochastic", "--seed", "8")

    def test_verify_names_all_files_that_differ(self):
        self.done("convert", "in", "-o", "out", "--to", "float16")
        paths = sorted((self.folder / "out").glob("*.safetensors"))
        for path in paths:
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)
        first, second = (path.name for path in paths)
        error = self.refused("verify", "out")
        self.assertIn(f"{first}: the file's SHA-256 is not that of SHA256SUMS", error)
        self.assertIn(f"another file differs, too: {second}", error)
        (self.folder / "out/SHA256SUMS").unlink()
        error = self.refused("verify", "out", "--against", "in")
        self.assertIn(first + ': tensor "', error)
        self.assertIn(f"another file differs, too: {second}", error)

    def test_nan_as_the_tool_has_it(self):
        weight = "model.layers.0.mlp.up_proj.weight"
        for name, number in (("nan", b"\xc0\x7f"), ("infinity", b"\x80\x7f")):
            dtype, shape, content = bf16(HIDDEN, HIDDEN, 1)
            self.write_tensors(name, {weight: (dtype, shape, content[:100] + number + content[102:])})
        error = self.refused("convert", "nan", "-o", "no", "--to", "mxfp4")
        self.assertIn(f'tensor "{weight}": element 50: NaN has no block scale\ntcast: hint: set --nonfinite to tool', error)
        for recipe in ("ggml", "modelopt", "compressed-tensors", "rceil", "floor"):
            out = f"nan-{recipe}"
            self.done("convert", "nan", "-o", out, "--to", "mxfp4", "--recipe", recipe, "--nonfinite", "tool")
            self.assertIn(f"mxfp4 by {recipe}", self.done("verify", out, "--against", "nan"))
        for folder, recipe in (("nan", "mlx"), ("infinity", "ggml")):
            error = self.refused("convert", folder, "-o", f"no-{folder}-{recipe}", "--to", "mxfp4", "--recipe", recipe,
                                 "--nonfinite", "tool")
            number = "NaN" if folder == "nan" else "infinity"
            self.assertIn(f'element 50: {number} has no block scale, and what {recipe} makes of it is undefined', error)

    def test_steps_on_many_machines_make_the_same_files(self):
        for scheme, spelling in (("nvfp4", "compressed-tensors"), ("fp8-block", "deepseek"), ("int4-group", "compressed-tensors")):
            with self.subTest(scheme):
                said = self.done("convert", "in", "-o", f"a-{scheme}", "--to", scheme, "--spelling", spelling, "--verify")
                self.assertIn("verified", said)
                self.done("plan", "in", "-o", f"b-{scheme}", "--to", scheme, "--spelling", spelling)
                for part in ("0/2", "1/2"):
                    self.done("run-shard", f"b-{scheme}", "--shard-of", part)
                self.done("finish", f"b-{scheme}")
                self.assertEqual(self.read(f"a-{scheme}"), self.read(f"b-{scheme}"))
                self.assertEqual({layer["scheme"] for layer in self.layers(f"a-{scheme}")}, {scheme})
                self.assertEqual(len(self.layers(f"a-{scheme}")), 4)
                self.done("verify", f"a-{scheme}")

    def test_a_plan_that_lies_is_refused(self):
        self.done("plan", "in", "-o", "out", "--to", "mxfp8")
        path = self.folder / "out/.tcast/plan.json"
        text = path.read_text()
        for old, new in (('"scheme":"mxfp8","recipe"', '"scheme":"fp8-block","recipe"'),
                         ('"numbers":"bfloat16"', '"numbers":"float32"'), ('"is_plain":true', '"is_plain":false')):
            self.assertIn(old, text)
            path.write_text(text.replace(old, new))
            self.refused("run-shard", "out")
        path.write_text(text)
        self.done("run-shard", "out")

    def test_the_report_has_what_each_weight_lost(self):
        for scheme, bits in (("nvfp4", 4.5 + 32 / HIDDEN**2), ("mxfp4", 4.25), ("fp8-block", 8 + 32 / HIDDEN**2)):
            with self.subTest(scheme):
                said = self.done("convert", "in", "-o", f"lost-{scheme}", "--to", scheme, "--report", f"{scheme}.json", "--fuse",
                                 "never")
                report = json.loads((self.folder / f"{scheme}.json").read_text())
                weights = {tensor["name"]: tensor for tensor in report["tensors"] if "bits" in tensor}
                self.assertEqual(len(weights), 4)
                measured = json.loads(self.done("inspect", "in", "--stats", "--candidates", scheme, "--json"))["tensors"]
                for tensor in measured:
                    if tensor["name"] not in weights:
                        continue
                    weight, fit = weights[tensor["name"]], tensor["candidates"][0]
                    self.assertEqual((weight["scheme"], weight["recipe"], weight["bits"], weight["elements"]),
                                     (scheme, fit["recipe"], bits, HIDDEN**2))
                    lost = weight["report"]
                    self.assertAlmostEqual(lost["snr_db"], fit["snr_db"], places=4)
                    self.assertEqual(lost["saturated"] / lost["count"], fit["saturated"])
                    self.assertEqual(lost["underflowed_to_zero"] / lost["count"], fit["became_zero"])
                self.assertIn(f"{bits:.4g} bits, ", said)

    def test_a_weight_that_is_mostly_lost_is_refused(self):
        numbers = struct.pack("<4096f", *([1e4] + [1e-4] * 4095))
        (self.folder / "in.safetensors").write_bytes(fixtures.safetensors([("a.weight", "F32", [64, 64], numbers)]))
        more = ["in.safetensors", "-o", "out.safetensors", "--to", "fp8-tensor"]
        for flags in ((), ("--strict-loss",)):
            self.assertIn("4095 of 4096 nonzero elements became zero", self.refused("convert", *more, *flags))
            self.assertFalse((self.folder / "out.safetensors").exists())
        self.assertIn("4095 of 4096 nonzero elements became zero", self.exits(0, "convert", *more, "--allow-loss").stderr)

    def test_scales_that_are_powers_of_two(self):
        scale = "model.layers.0.mlp.down_proj.weight_scale_inv"
        for powers, more in ((False, []), (True, ["--power-of-two-scales"])):
            out = f"powers-{powers}"
            self.done("convert", "in", "-o", out, "--to", "fp8-block", *more)
            section = json.loads((self.folder / out / "config.json").read_text())["quantization_config"]
            self.assertEqual(section.get("scale_fmt"), "ue8m0" if powers else None)
            dtype, _, content = self.read(out)[scale]
            self.assertEqual(dtype, "F32")
            mantissas = [bits & 0x7fffff for bits in struct.unpack(f"<{len(content) // 4}I", content)]
            self.assertEqual(not any(mantissas), powers)
            self.assertIn("4 weights are fp8-block by", self.done("verify", out, "--against", "in"))
            self.done("plan", "in", "-o", f"planned-{out}", "--to", "fp8-block", *more)
            self.done("run-shard", f"planned-{out}")
            self.done("finish", f"planned-{out}")
            self.assertEqual(self.read(f"planned-{out}"), self.read(out))
        for status, more, words in (
            (2, ["--to", "mxfp8"], "--power-of-two-scales is of use with fp8-block only"),
            (2, ["--to", "bfloat16"], "--power-of-two-scales is of use with a scheme only"),
            (1, ["--to", "fp8-block", "--recipe", "modelopt"], "no scales that are powers of two"),
        ):
            self.assertIn(words, self.exits(status, "convert", "in", "-o", "out", "--power-of-two-scales", *more).stderr)

    def test_an_option_without_its_scheme_is_refused(self):
        for flag in (["--group-size", "32"], ["--no-symmetric"]):
            said = self.exits(2, "convert", "in", "-o", "out", "--to", "mxfp8", *flag).stderr
            self.assertIn("--group-size and --symmetric are of use with int4-group only", said)
            self.assertIn("--to int4-group has groups", said)
        for flag in ("recipe=rceil", "spelling=quark", "compute-dtype=float32", "group-size=32", "fuse=never",
                     "nonfinite=tool", "clip=mse", "convrot=16", "importance=imatrix.gguf"):
            said = self.exits(2, "convert", "in", "-o", "out", "--to", "bfloat16", f"--{flag}").stderr
            self.assertIn(f"--{flag.partition('=')[0]} is of use with a scheme only", said)

    def test_a_plan_names_a_recipe_as_the_table_does(self):
        self.done("plan", "in", "-o", "out", "--to", "mxfp4", "--recipe", "RCEIL")
        self.assertIn('"scheme":"mxfp4","recipe":"rceil"', (self.folder / "out/.tcast/plan.json").read_text())
        self.done("run-shard", "out")
        self.done("finish", "out")
        self.done("convert", "in", "-o", "same", "--to", "mxfp4", "--recipe", "rceil")
        self.assertEqual(self.read("out"), self.read("same"))

    def test_verify_against_the_source_finds_the_recipe(self):
        for more, recipe in ((["--to", "nvfp4"], "nvfp4 by modelopt"), (["--to", "mxfp4", "--recipe", "even"], "mxfp4 by even"),
                             (["--to", "int4-group", "--group-size", "32", "--no-symmetric"],
                              "int4-group by compressed-tensors"),
                             (["--to", "int8-channel", "--recipe", "comfy", "--spelling", "comfyui"],
                              "int8-channel by comfy"),
                             (["--to", "int8-channel", "--spelling", "comfyui", "--convrot", "16"],
                              "int8-channel by compressed-tensors")):
            with self.subTest(recipe):
                out = "verified-" + recipe.replace(" ", "-")
                self.done("convert", "in", "-o", out, *more)
                self.assertIn(f"4 weights are {recipe}", self.done("verify", out, "--against", "in"))
                path = next((self.folder / out).glob("*.safetensors"))
                content = bytearray(path.read_bytes())
                content[-1] ^= 1  # of a code or a scale
                (self.folder / out / "SHA256SUMS").unlink()
                path.write_bytes(content)
                self.assertRegex(self.refused("verify", out, "--against", "in"), f'{path.name}: tensor "[^"]*weight"')

    def test_each_row_has_a_scale_also_without_elements(self):
        written = quantized_models.Model(1, {})
        written.tensors = {"model.layers.0.mlp.up_proj.weight": ("BF16", [4, 0], b""),
                           "model.layers.0.mlp.down_proj.weight": bf16(4, HIDDEN, 1)}
        written.write(self.folder / "empty")
        for scheme, spelling in (("fp8-channel", "compressed-tensors"), ("fp8-channel", "modelopt"),
                                 ("int8-channel", "compressed-tensors"), ("int8-channel", "comfyui")):
            with self.subTest(f"{scheme} {spelling}"):
                out = f"{scheme}-{spelling}"
                self.done("convert", "empty", "-o", out, "--to", scheme, "--spelling", spelling)
                self.assertIn(self.read(out)["model.layers.0.mlp.up_proj.weight_scale"][1], ([4], [4, 1]))
                self.done("convert", out, "-o", f"back-{out}", "--to", "bfloat16")
                self.assertEqual(self.read(f"back-{out}")["model.layers.0.mlp.up_proj.weight"][1], [4, 0])
                self.assertIn(f"2 weights are {scheme}", self.done("verify", out, "--against", "empty"))

    def test_a_weight_without_a_name(self):
        self.write_tensors("nameless", {"": bf16(HIDDEN, HIDDEN, 1)})
        self.done("convert", "nameless", "-o", "out", "--rule", ".*=mxfp4")
        self.assertEqual(self.read("out")["weight_packed"][1], [HIDDEN, HIDDEN // 2])

    def test_a_file_that_was_skipped_is_no_original(self):
        written = quantized_models.Model(1, {})
        written.tensors.update(model())
        written.write(self.folder / "one")
        (self.folder / "one/extra.safetensors").write_bytes(b"none")
        self.done("convert", "one", "-o", "out", "--to", "mxfp4", "--skip-files", "extra.safetensors")
        said = self.done("verify", "out", "--against", "one", "--skip-files", "extra.safetensors")
        self.assertIn("4 weights are mxfp4 by rceil", said)

    def test_searched_scales_are_named(self):
        """Of clipping without an option, of importance with its file; without it that is said."""
        names = [name for name in self.read("in") if "self_attn" in name or "down_proj" in name]
        weights = struct.pack(f"<{HIDDEN}f", *(2.0 ** (i * 5 % 9) for i in range(HIDDEN)))
        (self.folder / "importance.safetensors").write_bytes(fixtures.safetensors([(name, "F32", [HIDDEN], weights) for name in names]))
        self.done("convert", "in", "-o", "clipped", "--to", "mxfp4", "--recipe", "even", "--clip", "mse")
        self.assertRegex(self.done("verify", "clipped", "--against", "in"), "4 weights are mxfp4 by .*even with clip mse")
        found = json.loads(self.done("inspect", "clipped", "--against", "in", "--json"))
        for layer in found["layers"]:
            self.assertIn("even", layer["recipes"])
            self.assertGreater(layer["deciding_blocks"], 0)
            self.assertEqual({trial["search"] for trial in layer["trials"] if trial["fits"]}, {"clip mse"})
        self.assertRegex(self.done("inspect", "clipped", "--against", "in"), "mxfp4: all layers can be by .*even with clip mse")
        self.done("convert", "in", "-o", "weighed", "--to", "int4-group", "--group-size", "32", "--clip", "mse", "--importance",
                  "importance.safetensors")
        said = self.refused("verify", "weighed", "--against", "in")
        self.assertIn("--importance FILE", said)
        listed = self.done("inspect", "weighed", "--against", "in")
        self.assertIn("known with it only: --importance FILE", listed)
        more = ["weighed", "--against", "in", "--importance", "importance.safetensors"]
        self.assertIn("compressed-tensors with clip mse, importance", self.done("verify", *more))
        self.assertIn("compressed-tensors with clip mse, importance", self.done("inspect", *more))
        self.assertIn("scheme among the candidates", self.exits(2, "inspect", "in", "--importance", "importance.safetensors").stderr)

    def test_a_budget_refuses_what_no_weight_can_be(self):
        for more, words in (
            (["--candidates", "q8_0,q4_0"], "q8_0 is a layout of GGUF"),
            (["--candidates", "mxfp8", "--spelling", "gpt-oss"], "gpt-oss has no mxfp8"),
            (["--rule", "q_proj=mxfp4", "--rule", "k_proj=mxfp8"], 'k_proj.weight": rules name several schemes'),
            (["--candidates", "mxfp8"], "the smallest candidates need 8.25 bits"),
        ):
            with self.subTest(more):
                self.assertIn(words, self.refused("convert", "in", "-o", "out", "--budget", "6bits", *more))
                self.assertFalse((self.folder / "out").exists())

    def test_rules_and_a_scheme_of_ones_own(self):
        (self.folder / "mine.yaml").write_text(
            "to: int4-group\ngroup-size: 32\nsymmetric: false\nrules:\n  - {match: down_proj, to: int8-channel}\n"
            "  - lm_head=float16\n")
        self.done("convert", "in", "-o", "out", "--rules", "mine.yaml")
        schemes = {layer["name"]: layer["scheme"] for layer in self.layers("out")}
        self.assertEqual(schemes["model.layers.0.mlp.down_proj.weight"], "int8-channel")
        self.assertEqual(schemes["model.layers.0.self_attn.q_proj.weight"], "int4-group")
        tensors = self.read("out")
        self.assertEqual(tensors["lm_head.weight"][0], "F16")
        self.assertIn("model.layers.0.self_attn.q_proj.weight_zero_point", tensors)

    def test_rules_by_kind(self):
        (self.folder / "mine.yaml").write_text(
            "to: mxfp4\nnonfinite: error\nfuse: auto\nclip: none\nrules:\n  - {match: k_proj, keep: true}\n"
            "  - {kind: [attention, router], to: fp8-channel}\n  - {kind: head, to: float16}\n")
        self.done("convert", "in", "-o", "out", "--rules", "mine.yaml")
        schemes = {layer["name"].split(".")[-2]: layer["scheme"] for layer in self.layers("out")}
        self.assertEqual(schemes, {"q_proj": "fp8-channel", "in_proj_weight": "fp8-channel", "gate": "fp8-channel",
                                   "gate_proj": "mxfp4", "down_proj": "mxfp4"})
        for text, words in (("to: mxfp4\nto: nvfp4", '"to" occurs twice'), ("- {kind: heads, to: mxfp4}", "embedding, attention"),
                            ("nonfinite: maybe", "there are error, tool"), ("- {to: mxfp4}", "no match, kind, rank or smaller"),
                            ("to: mxfp4\nrules: [{kind: convolution, to: nvfp4}]", "matches no tensor")):
            (self.folder / "wrong.yaml").write_text(text + "\n")
            self.assertIn(words, self.refused("convert", "in", "-o", "no", "--rules", "wrong.yaml"))

    def test_a_weight_of_the_root_has_the_names_that_loaders_look_for(self):
        self.write_tensors("root", {"weight": bf16(HIDDEN, HIDDEN, 1), "other.weight": bf16(HIDDEN, HIDDEN, 2)})
        names = {"mxfp4": {"weight_packed", "weight_scale"}, "nvfp4": {"weight", "weight_scale", "weight_scale_2"}}
        for scheme, root in names.items():
            self.done("convert", "root", "-o", scheme, "--to", scheme)
            self.assertEqual(set(self.read(scheme)) - {"model.norm.weight"}, root | {f"other.{name}" for name in root})
            self.done("convert", scheme, "-o", f"{scheme}-again", "--to", "bfloat16")
            self.assertEqual(set(self.read(f"{scheme}-again")), {"weight", "other.weight", "model.norm.weight"})
        self.done("convert", "root", "-o", "one", "--to", "nvfp4", "--exclude", "^weight$")  # "" is a part of every name
        self.assertEqual(json.loads((self.folder / "one/config.json").read_text())["quantization_config"]["ignore"], ["lm_head"])

    def test_float6_e3m2_is_spelled_as_quark_has_it(self):
        said = self.done("convert", "in", "-o", "out", "--to", "mxfp6-e3m2")
        self.assertIn("mxfp6-e3m2 by rceil as quark", said)
        section = self.section("out")
        spec = section["global_quant_config"]["weight"]
        self.assertEqual((section["quant_method"], spec["dtype"], spec["group_size"]), ("quark", "fp6_e3m2", 32))
        self.assertIn("lm_head", section["exclude"])
        self.assertEqual({(layer["spelling"], layer["scheme"]) for layer in self.layers("out")}, {("quark", "mxfp6-e3m2")})
        self.assertIn("4 weights are mxfp6-e3m2", self.done("verify", "out", "--against", "in"))
        self.done("convert", "out", "-o", "back", "--to", "bfloat16")
        self.assertEqual(set(self.read("back")), set(self.read("in")))
        self.assertIn("-", self.done("convert", "out", "-o", "again", "--to", "mxfp4"))
        # Other MX formats in this spelling, and back.
        self.done("convert", "in", "-o", "six", "--to", "mxfp6")
        self.done("convert", "six", "-o", "quark", "--respell", "quark")
        self.done("convert", "quark", "-o", "six-again", "--respell", "compressed-tensors")
        self.assertEqual(self.read("six-again"), self.read("six"))

    def test_a_layer_that_is_listed_as_not_quantized_is_said(self):
        self.done("convert", "in", "-o", "out", "--to", "nvfp4")
        path = self.folder / "out/config.json"
        path.write_text(path.read_text().replace('"ignore":[', '"ignore":["*.self_attn.*",'))
        self.assertIn('k_proj.weight" and 1 more have codes, but config.json lists such layers as not quantized', self.done("inspect", "out"))

    def test_mistakes_are_errors_that_help(self):
        for more, words in (
            (["--to", "nvfp4", "--recipe", "floor"], "there are modelopt"),
            (["--to", "q4_k"], "llama.cpp"),
            (["--to", "nvfp4", "--spelling", "gguf"], "GGUF"),
            (["--to", "nvfp4", "--exclude", "."], "no tensor"),
            (["--to", "mxfp6-e3m2", "--spelling", "compressed-tensors"], "`spelling` quark can".replace("`spelling`", "--spelling")),
            (["--to", "mxfp8-e5m2"], "no loader of files reads mxfp8-e5m2"),
            (["--to", "int4-group", "--spelling", "modelopt"], "--spelling compressed-tensors or gptq"),
            (["--to", "mxfp8", "--spelling", "gpt-oss"], "compressed-tensors or modelopt or comfyui can"),
            (["--to", "int8-channel", "--convrot", "16"], "--spelling comfyui can"),
            (["--to", "nvfp4", "--spelling", "comfyui", "--convrot", "16"], "the weight becomes nvfp4"),
            (["--to", "int8-channel", "--spelling", "comfyui", "--convrot", "32"], "not of 32"),
            (["--to", "int8-channel", "--spelling", "comfyui", "--convrot", "4096"], "a smaller group fits"),
            (["--to", "int8-channel", "--spelling", "comfyui", "--convrot", "16", "--compute-dtype", "float16"],
             "in their own type"),
        ):
            with self.subTest(more):
                self.assertIn(words, self.refused("convert", "in", "-o", "out", *more))
                self.assertFalse((self.folder / "out").exists())

        self.assertIn("--raw-codes", self.exits(2, "convert", "in", "-o", "out", "--to", "nvfp4", "--raw-codes").stderr)
        self.assertIn("schemes: nvfp4", self.exits(2, "convert", "in", "-o", "out", "--to", "nvfp5").stderr)
        for text, words in (("w4a16", "write int4-group"), ("FP8_DYNAMIC", "write fp8-channel"), ("W8A8", "write int8-channel"),
                            ("q4_k_m", "--mix"), ("nvfp4a16", "write nvfp4")):
            with self.subTest(text):
                self.assertIn(words, self.exits(2, "convert", "in", "-o", "out", "--to", text).stderr)
        self.assertNotIn("schemes:", self.exits(2, "convert", "in", "-o", "out", "--to", "infinite").stderr)

    def test_the_command_knows_its_words(self):
        listed = {row["scheme"]: row for row in json.loads(self.done("schemes", "--json"))}
        self.assertEqual(listed["nvfp4"]["default_recipe"], "modelopt")
        self.assertEqual(listed["nvfp4"]["layouts"][0]["layout"], "modelopt")
        self.assertEqual(listed["q4_k"]["layouts"], [{"layout": "gguf", "loaders": ["llama.cpp"]}])
        self.assertEqual((listed["q4_k"]["bits"], listed["nvfp4"]["bits"]), (4.5, 4.5))
        for row in listed.values():
            self.assertTrue(row["recipes"] and (row["layouts"] or row["scheme"] == "mxfp8-e5m2"), row)
        self.assertIn("vLLM", [name for row in listed["nvfp4"]["layouts"] for name in row["loaders"]])
        recipes = json.loads(self.done("recipes", "NVFP4", "--json"))["recipes"]
        self.assertEqual([row["recipe"] for row in recipes if row["default"]], ["modelopt"])
        self.assertIn("compressed-tensors", self.done("recipes", "nvfp4"))
        self.assertIn("write int4-group", self.exits(2, "recipes", "w4a16").stderr)
        for before, words in ((["convert", "--to"], {"nvfp4", "float16"}), (["convert", "--recipe"], {"modelopt"}),
                              (["convert", "--spelling"], {"compressed-tensors"}), (["convert", "--mix"], {"q4_k_m"}),
                              (["recipes"], {"q5_k"})):
            self.assertLessEqual(words, set(self.done("__complete", *before, "").split()), before)

    def test_layers_that_would_stay_in_another_spelling_are_refused(self):
        self.done("convert", "in", "-o", "fp8", "--to", "fp8-block")
        said = self.refused("convert", "fp8", "-o", "out", "--to", "nvfp4", "--exclude", "q_proj")
        self.assertIn("q_proj", said)
        self.done("convert", "fp8", "-o", "out", "--to", "nvfp4", "--rule", "q_proj=bfloat16")
        self.assertEqual(len(self.layers("out")), 3)
        self.assertEqual(self.read("out")["model.layers.0.self_attn.q_proj.weight"][0], "BF16")

    def test_gguf_to_gguf(self):
        numbers = random.Random(3)
        data = struct.pack("<512f", *(numbers.gauss(0, 1) for _ in range(512)))
        (self.folder / "in.gguf").write_bytes(fixtures.gguf(
            [("blk.0.attn_q.weight", [256, 2], 0, data), ("blk.0.attn_norm.weight", [256], 0, data[:1024])], file_type=0))
        self.done("convert", "in.gguf", "-o", "out.gguf", "--to", "q4_k")
        listed = json.loads(self.done("inspect", "out.gguf", "--json"))
        self.assertEqual(listed["metadata"]["general.file_type"], "14")
        self.assertEqual(listed["layers"][0]["scheme"], "q4_k")
        self.done("convert", "out.gguf", "-o", "again.gguf", "--to", "q8_0")
        listed = json.loads(self.done("inspect", "again.gguf", "--json"))
        self.assertEqual((listed["metadata"]["general.file_type"], listed["layers"][0]["scheme"]), ("7", "q8_0"))
        # ggml's number of its layouts is added to what is quantized where it is missing; blocks of another are not known.
        key = "general.quantization_version"
        self.assertEqual(listed["metadata"][key], "2")
        self.assertEqual((self.folder / "again.gguf").read_bytes().count(key.encode()), 1)
        words = key.encode() + struct.pack("<I", 4)
        other = (self.folder / "out.gguf").read_bytes().replace(words + struct.pack("<I", 2), words + struct.pack("<I", 1))
        (self.folder / "other.gguf").write_bytes(other)
        self.assertIn(f"blk.0.attn_q.weight\": {key} is 1", self.refused("convert", "other.gguf", "-o", "x.gguf", "--to", "q8_0"))
        (self.folder / "one.gguf").write_bytes(fixtures.gguf([("blk.0.attn_q.weight", [256, 2], 0, data)], numbers={key: 1}))
        self.assertIn(f"{key} is 1 in the input", self.refused("convert", "one.gguf", "-o", "x.gguf", "--to", "q4_k"))
        self.done("convert", "in.gguf", "-o", "half.gguf", "--to", "float16")
        self.assertNotIn(key, json.loads(self.done("inspect", "half.gguf", "--json"))["metadata"])
        self.assertIn("llama.cpp", self.refused("convert", "in", "-o", "x.gguf", "--to", "q4_k"))
        (self.folder / "odd.gguf").write_bytes(fixtures.gguf([("blk.0.attn_q.weight", [96, 2], 0, data[:768])], file_type=0))
        self.assertRegex(self.refused("convert", "odd.gguf", "-o", "x.gguf", "--to", "q4_k"),
                         "blk.0.attn_q.weight.*96 columns.*256\ntcast: hint: --exclude leaves the tensor")

    def test_mixtures_of_gguf(self):
        numbers = random.Random(3)
        data = struct.pack("<1024f", *(numbers.gauss(0, 1) for _ in range(1024)))
        tensors = [(f"blk.{i}.{name}.weight", [256, 2], 0, data[:2048]) for i in range(2) for name in ("attn_q", "attn_v")]
        tensors += [("blk.0.ffn_down.weight", [96, 2], 0, data[:768]), ("blk.1.ffn_up.weight", [50, 2], 0, data[:400]),
                    ("blk.0.attn_norm.weight", [256], 0, data[:1024]), ("token_embd.weight", [256, 4], 0, data)]
        sizes = {"llama.block_count": 2, "llama.attention.head_count": 4}
        (self.folder / "mixed.gguf").write_bytes(fixtures.gguf(tensors, file_type=0, numbers=sizes))
        self.done("convert", "mixed.gguf", "-o", "out.gguf", "--mix", "Q4_K_M", "--rule", "ffn_up=float16")
        listed = json.loads(self.done("inspect", "out.gguf", "--json"))
        self.assertEqual(listed["metadata"]["general.file_type"], "15")
        found = {tensor["name"]: tensor["dtype"].lower() for tensor in listed["tensors"]}
        self.assertEqual(found, {
            "blk.0.attn_q.weight": "q4_k", "blk.1.attn_q.weight": "q4_k", "blk.0.attn_v.weight": "q4_k",
            "blk.1.attn_v.weight": "q6_k", "blk.0.ffn_down.weight": "q5_0", "blk.1.ffn_up.weight": "float16",
            "blk.0.attn_norm.weight": "float32", "token_embd.weight": "q6_k"})
        for more, words in (
            (["mixed.gguf", "-o", "x.gguf", "--mix", "q4_k_x"], "q4_k_s, q4_k_m"),
            (["mixed.gguf", "-o", "x.safetensors", "--mix", "q4_k_m"], "from GGUF to GGUF"),
            (["mixed.gguf", "-o", "x.gguf", "--mix", "q4_k_m", "--to", "q8_0"], "chooses the type of each tensor"),
            (["in", "-o", "x", "--mix", "q4_k_m"], "the input is a checkpoint"),
        ):
            with self.subTest(more):
                self.assertIn(words, self.refused("convert", *more))
        (self.folder / "bare.gguf").write_bytes(fixtures.gguf(tensors, file_type=0))
        self.assertIn("how many layers", self.refused("convert", "bare.gguf", "-o", "x.gguf", "--mix", "q4_k_m"))

    def write_tensors(self, folder, tensors, config=None):
        written = quantized_models.Model(1, config or {})
        written.tensors.update(tensors)
        written.write(self.folder / folder)

    def section(self, folder):
        return json.loads((self.folder / folder / "config.json").read_text())["quantization_config"]

    def test_scales_have_the_type_of_the_weights(self):
        """Loaders of compressed-tensors cast scales to it, and so does the tool that makes them."""
        module = "model.layers.0.self_attn.q_proj.weight_scale"
        for scheme, more, expected in (("fp8-channel", [], "BF16"), ("int4-group", [], "BF16"), ("int8-channel", [], "BF16"),
                                       ("fp8-tensor", [], "BF16"), ("fp8-channel", ["--compute-dtype", "float16"], "F16"),
                                       ("fp8-channel", ["--compute-dtype", "float32"], "F32"),
                                       ("int8-channel", ["--recipe", "comfy"], "F32"),
                                       ("fp8-block", ["--recipe", "deepgemm"], "F32")):
            with self.subTest(scheme=scheme, more=more):
                self.done("convert", "in", "-o", "out", "--to", scheme, "--spelling", "compressed-tensors", *more, "--force")
                self.assertEqual(self.read("out")[module][0], expected)
                self.assertIn("4 weights are", self.done("verify", "out", "--against", "in"))

    def test_groups_are_whole(self):
        """Loaders of compressed-tensors take no shorter last group."""
        self.write_tensors("odd", {"model.layers.0.mlp.up_proj.weight": bf16(8, 96, 1),
                                   "model.layers.0.mlp.down_proj.weight": bf16(8, 128, 2)})
        self.done("convert", "odd", "-o", "out", "--to", "int4-group")
        sizes = {layer["name"]: layer["block"] for layer in self.layers("out")}
        self.assertEqual(sizes, {"model.layers.0.mlp.up_proj.weight": [1, 32], "model.layers.0.mlp.down_proj.weight": [1, 128]})
        self.assertIn("96 inputs are not whole groups of 64",
                      self.refused("convert", "odd", "-o", "not", "--to", "int4-group", "--group-size", "64", "--strict-schemes"))
        self.write_tensors("small", {"model.layers.0.mlp.up_proj.weight": bf16(8, 48, 1)})
        for scheme in ("mxfp4", "mxfp6", "int4-group"):
            self.assertIn("48 inputs are not whole groups",
                          self.refused("convert", "small", "-o", "not", "--to", scheme, "--spelling", "compressed-tensors"))

    def test_towers_are_ignored_wherever_loaders_have_them(self):
        q_proj, up_proj = (f"language_model.model.layers.0.{name}" for name in ("self_attn.q_proj", "mlp.up_proj"))
        self.write_tensors("llava", {f"{q_proj}.weight": bf16(32, 32, 1), f"{up_proj}.weight": bf16(32, 32, 2),
                                     "language_model.lm_head.weight": bf16(32, 32, 3),
                                     "vision_tower.vision_model.layers.0.fc1.weight": bf16(32, 32, 4),
                                     "audio_tower.layers.0.fc1.weight": bf16(32, 32, 6),
                                     "multi_modal_projector.linear_1.weight": bf16(32, 32, 5)})
        self.done("convert", "llava", "-o", "out", "--to", "mxfp4", "--exclude", "up_proj")
        self.assertEqual([layer["name"] for layer in self.layers("out")], [f"{q_proj}.weight"])
        ignore = self.section("out")["ignore"]
        for name in ("re:.*vision_tower.*", "re:.*audio_tower.*", "re:.*multi_modal_projector.*", "lm_head", up_proj,
                     "model.language_model.layers.0.mlp.up_proj"):
            self.assertIn(name, ignore)
        self.done("convert", "llava", "-o", "mixed", "--to", "mxfp4", "--rule", "up_proj=fp8-channel")
        groups = [group["targets"] for group in self.section("mixed")["config_groups"].values()]
        self.assertIn([up_proj, "model.language_model.layers.0.mlp.up_proj"], groups)
        # Of a tower with a quantized part, the others are named.
        self.done("convert", "llava", "-o", "tower", "--to", "mxfp4", "--rule", "vision_tower=mxfp4")
        self.assertNotIn("re:.*vision_tower.*", self.section("tower")["ignore"])

    def experts(self, inputs, outputs, turned):
        """The same numbers as [2, inputs, outputs], as transformers has gpt-oss, or as [2, outputs, inputs]."""
        _, _, content = bf16(2 * outputs, inputs, 7)
        if not turned:
            return "BF16", [2, outputs, inputs], content
        words = struct.unpack(f"<{2 * outputs * inputs}H", content)
        size = inputs * outputs
        moved = [words[e * size + n * inputs + k] for e in range(2) for k in range(inputs) for n in range(outputs)]
        return "BF16", [2, inputs, outputs], struct.pack(f"<{len(moved)}H", *moved)

    def test_experts_of_gpt_oss_are_turned(self):
        name = "model.layers.0.mlp.experts.down_proj"
        others = {"model.layers.0.self_attn.q_proj.weight": bf16(32, 32, 1)}
        bias = bf16(2, 96, 3)
        self.write_tensors("plain", {name: self.experts(64, 96, True), name + "_bias": bias, **others})
        self.done("convert", "plain", "-o", "out", "--to", "mxfp4", "--spelling", "gpt-oss")
        out = self.read("out")
        self.assertEqual(out[name + "_blocks"][:2], ("U8", [2, 96, 2, 16]))
        self.assertEqual(out[name + "_scales"][:2], ("U8", [2, 96, 2]))
        self.assertEqual(out[name + "_bias"], bias)
        self.assertEqual(out["model.layers.0.self_attn.q_proj.weight"], others["model.layers.0.self_attn.q_proj.weight"])
        self.write_tensors("upright", {name + ".weight": self.experts(64, 96, False)})
        self.done("convert", "upright", "-o", "codes", "--to", "mxfp4", "--spelling", "compressed-tensors")
        self.assertEqual(out[name + "_blocks"][2], self.read("codes")[name + ".weight_packed"][2])
        self.assertEqual(out[name + "_scales"][2], self.read("codes")[name + ".weight_scale"][2])
        self.assertIn("1 weight is mxfp4", self.done("verify", "out", "--against", "plain"))
        self.done("convert", "out", "-o", "decoded", "--to", "bfloat16")
        self.assertEqual(self.read("decoded")[name][:2], ("BF16", [2, 64, 96]))
        self.done("plan", "plain", "-o", "planned", "--to", "mxfp4", "--spelling", "gpt-oss")
        self.done("run-shard", "planned")
        self.done("finish", "planned")
        self.assertEqual(self.read("planned"), out)
        for folder in ("plain", "out"):
            said = self.refused("convert", folder, "-o", "not", "--to", "nvfp4")
            self.assertIn(f'tensor "{name}": its experts lie as [experts, inputs, outputs]', said)
        # The error names the element where it is in the file.
        dtype, shape, content = self.experts(64, 96, True)
        content = bytearray(content)
        content[2 * 6333:2 * 6333 + 2] = b"\xc0\x7f"  # NaN
        self.write_tensors("nan", {name: (dtype, shape, bytes(content)), name + "_bias": bias})
        self.assertIn("element 6333: NaN", self.refused("convert", "nan", "-o", "not", "--to", "mxfp4", "--spelling", "gpt-oss"))

    def test_experts_without_a_name_for_their_scales_are_refused(self):
        name = "model.layers.0.mlp.experts.gate_up_proj"
        self.write_tensors("experts", {name: self.experts(64, 96, False)})
        self.assertIn(f'tensor "{name}": its experts are in one tensor',
                      self.refused("convert", "experts", "-o", "out", "--to", "nvfp4"))

    def test_a_weight_that_lies_as_its_transpose_is_warned_of(self):
        name = "transformer.h.0.attn.c_attn"
        self.write_tensors("gpt2", {name + ".weight": bf16(32, 96, 1), name + ".bias": ("BF16", [96], bytes(192))})
        done = self.exits(0, "convert", "gpt2", "-o", "out", "--to", "int8-channel")
        self.assertIn(f'"{name}.weight" lies as [inputs, outputs]', done.stdout + done.stderr)
        done = self.exits(0, "convert", "in", "-o", "out2", "--to", "int8-channel")
        self.assertNotIn("lies as", done.stdout + done.stderr)


if __name__ == "__main__":
    running.main(__doc__)
