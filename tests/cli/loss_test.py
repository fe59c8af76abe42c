#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must not be lost in silence: quantized tensors, numbers that overflow, optimizers' state; and what diff says."""

import json
import re
import struct

import checkpoints
import fixtures
import running
from fixtures import float32

INFINITY, NAN = float("inf"), float("nan")
SIZES = {"F32": 4, "BF16": 2, "F16": 2, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E8M0": 1, "I32": 4, "U32": 4, "I64": 8}


def some(name, dtype, *shape):
    """A tensor of small numbers."""
    count = 1
    for size in shape:
        count *= size
    if dtype == "F32":
        return name, dtype, list(shape), float32(*[1 + i / 1000 for i in range(count)])
    if dtype == "BF16":
        return name, dtype, list(shape), fixtures.bfloat16(*[1.0] * count)
    if dtype == "F16":
        return name, dtype, list(shape), fixtures.float16(*[1.0009765625] * count)
    return name, dtype, list(shape), bytes(1 + i % 50 for i in range(count * SIZES[dtype]))


class LossTest(running.CommandTest):
    def setUp(self):
        super().setUp()
        self.count = 0

    def done(self, *arguments):
        return self.exits(0, *arguments)

    def new(self, suffix=""):
        self.count += 1
        return self.folder / f"{self.count}{suffix}"

    def file(self, *tensors):
        path = self.new(".safetensors")
        path.write_bytes(fixtures.safetensors(tensors))
        return path

    def numbers(self, *values):
        return self.file(("w", "F32", [len(values)], float32(*values)))

    def tensors(self, path):
        files = [path] if path.is_file() else sorted(path.glob("*.safetensors"))
        return {name: entry for file in files for name, entry in checkpoints.read(file)[0].items()}


UP = "model.layers.0.mlp.up_proj."
PLAIN = [some("model.embed_tokens.weight", "BF16", 8, 4), some("model.norm.weight", "BF16", 4), some(UP + "bias", "BF16", 4)]
QUANTIZED = {
    "DeepSeek": [some(UP + "weight", "F8_E4M3", 4, 4), some(UP + "weight_scale_inv", "F32", 1, 1)],
    "DeepSeek-V4": [some(UP + "weight", "F8_E4M3", 4, 4), some(UP + "scale", "F8_E8M0", 1, 1)],
    "ModelOpt": [some(UP + "weight", "U8", 4, 8), some(UP + "weight_scale", "F8_E4M3", 4, 1),
                 some(UP + "weight_scale_2", "F32"), some(UP + "input_scale", "F32")],
    "compressed-tensors": [some(UP + "weight_packed", "U8", 4, 8), some(UP + "weight_scale", "F8_E4M3", 4, 1),
                           some(UP + "weight_global_scale", "F32", 1)],
    "bitsandbytes": [some(UP + "weight", "U8", 32, 1), some(UP + "weight.absmax", "F32", 1),
                     some(UP + "weight.quant_map", "F32", 16), some(UP + "weight.quant_state.bitsandbytes__nf4", "U8", 5)],
    "GPTQ": [some(UP + "qweight", "I32", 1, 8), some(UP + "qzeros", "I32", 1, 1), some(UP + "scales", "F16", 1, 8),
             some(UP + "g_idx", "I32", 8)],
    "int8": [some(UP + "weight", "I8", 4, 4), some(UP + "weight_scale", "BF16", 4, 1)],
}
QUANTIZED.update({name: [some(UP + "weight", "F8_E4M3", 4, 4), some(UP + name, "F32", 1)]
                  for name in ("scale_inv", "weight_scale_2", "weight_amax", "descale", "scaling_factor")})


class QuantizedTest(LossTest):
    def sharded(self, tensors, config=None):
        path = checkpoints.write_sharded(self.new(), {"model-00001-of-00002.safetensors": PLAIN + tensors[:1],
                                                      "model-00002-of-00002.safetensors": tensors[1:]})
        if config:
            (path / "config.json").write_text(json.dumps(config))
        return path

    def expect_refused_and_a_hint_that_works(self, source, quantized, to="float8_e5m2"):
        out = self.new(source.suffix)
        message = self.refused("convert", source, "-o", out, "--to", to)
        self.assertFalse(out.exists())
        pattern = re.search(r"--exclude '([^']+)'", message)
        self.assertTrue(pattern, message)
        self.done("convert", source, "-o", out, "--to", "float32", "--exclude", pattern[1])
        before, after = self.tensors(source), self.tensors(out)
        self.assertEqual({name: after[name] for name, *_ in quantized}, {name: before[name] for name, *_ in quantized})
        self.assertEqual(after["model.norm.weight"][0], "F32")
        return out

    def test_quantized_tensors_are_left_alone_or_nothing_is_done(self):
        for name, tensors in QUANTIZED.items():
            with self.subTest(name):
                self.expect_refused_and_a_hint_that_works(self.file(*PLAIN, *tensors), tensors)
                self.expect_refused_and_a_hint_that_works(self.sharded(tensors), tensors)
                config = {"text_config": {"quantization_config": {"quant_method": "x"}}, "dtype": "bfloat16"}
                out = self.expect_refused_and_a_hint_that_works(self.sharded(tensors, config), tensors)
                self.assertEqual(json.loads((out / "config.json").read_text()), {**config, "dtype": "float32"})

    def test_codes_without_their_scales_left_alone(self):
        source = self.file(*PLAIN, *QUANTIZED["DeepSeek"])
        message = self.refused("convert", source, "-o", self.new(".safetensors"), "--to", "bf16", "--exclude",
                               "up_proj.weight$")
        self.assertIn("weight_scale_inv", message)

    def test_raw_codes_leave_scales(self):
        source, out = self.file(*PLAIN, *QUANTIZED["DeepSeek"]), self.new(".safetensors")
        self.done("convert", source, "-o", out, "--to", "f16", "--raw-codes")
        before, after = self.tensors(source), self.tensors(out)
        self.assertEqual(after[UP + "weight"][0], "F16")
        self.assertEqual(after[UP + "weight_scale_inv"], before[UP + "weight_scale_inv"])
        named = self.refused("convert", source, "-o", self.new(".safetensors"), "--rule", "scale=f16", "--raw-codes")
        self.assertIn("weight_scale_inv", named)

    def test_raw_codes_make_a_configuration_wrong_which_is_said(self):
        source = self.sharded(QUANTIZED["DeepSeek"], {"quantization_config": {"quant_method": "fp8"}})
        done = self.exits(0, "convert", source, "-o", self.new(), "--to", "f16", "--raw-codes")
        self.assertIn("a loader that applies it gets wrong weights", done.stderr)

    def test_a_configuration_beside_a_shard(self):
        source = self.sharded([some(UP + "strange", "F32", 4), some(UP + "codes", "I8", 4)],
                              {"quantization_config": {"quant_method": "x"}})
        self.refused("convert", source / "model-00002-of-00002.safetensors", "-o",
                     self.new(".safetensors"), "--rule", "codes=f32")

    def test_a_configuration_whose_quantized_tensors_are_unknown(self):
        source = checkpoints.write_sharded(self.new())
        (source / "config.json").write_text('{"quantization_config": {"quant_method": "x"}}')
        message = self.refused("convert", source, "-o", self.new(), "--to", "bf16")
        self.assertIn('names the quantization "x"', message)
        self.done("convert", source, "-o", self.new(), "--max-shard-size", "100MB")

    def test_ordinary_models_with_scales(self):
        source, out = self.file(some("logit_scale", "F32"), some("a.layer_scale", "F32", 4), some("a.scale", "F32", 4),
                                some("a.weight", "F32", 4), some("a.weight_scale", "F32", 1)), self.new(".safetensors")
        self.done("convert", source, "-o", out, "--to", "bf16")
        self.assertEqual({entry[0] for entry in self.tensors(out).values()}, {"BF16"})


class StrictTest(LossTest):
    def strict(self, source, *arguments):
        return self.refused("convert", source, "-o", self.new(".safetensors"), "--strict-loss", *arguments)

    def test_overflow_is_said_and_strict_refuses_it(self):
        source = self.numbers(*[1.0] * 9910, *[1e6] * 90)
        out = self.new(".safetensors")
        said = self.done("convert", source, "-o", out, "--to", "f16").stderr
        self.assertIn("90 of 10000 elements are out of range", said)
        self.assertIn("90 of 10000", self.strict(source, "--to", "f16"))

    def test_what_strict_refuses(self):
        few = [1.0] * 1000
        self.assertIn("out of range", self.strict(self.numbers(*few, INFINITY), "--to", "e4m3fn"))
        self.assertIn("out of range", self.strict(self.numbers(*few, 1000.0), "--to", "e4m3fn"))
        self.assertIn("NaN", self.strict(self.numbers(*few, NAN), "--to", "uint8", "--out-of-range", "saturate"))
        self.assertIn("NaN", self.strict(self.numbers(*few, 1.0, NAN), "--to", "e2m1"))
        self.assertIn("out of range",
                      self.strict(self.numbers(*few, -5.0), "--to", "uint8", "--out-of-range", "saturate"))
        self.assertIn("20 of 1020", self.strict(self.numbers(*few, *[1e-30] * 20), "--to", "f16"))

    def test_what_strict_allows(self):
        tiny = self.numbers(*[1.0] * 1000, *[1e-30] * 20, *[0.0] * 5000)
        self.done("convert", tiny, "-o", self.new(".safetensors"), "--to", "f16", "--strict-loss", "--zero-limit", "0.02")
        self.assertIn("--zero-limit", self.strict(tiny, "--to", "f16"))
        special = self.numbers(*[1.0] * 1000, INFINITY, NAN, 1e-30)
        self.done("convert", special, "-o", self.new(".safetensors"), "--to", "f16", "--strict-loss")

    def test_a_tensor_of_zeros_is_an_error(self):
        source = self.numbers(*[i / 100 for i in range(30)])
        for arguments in ((), ("--quiet",)):
            message = self.refused("convert", source, "-o", self.new(".safetensors"), "--to", "int8", *arguments)
            self.assertIn("29 of 29 nonzero elements became zero", message)
            self.assertIn("--allow-loss", message)
        done = self.done("convert", source, "-o", self.new(".safetensors"), "--to", "int8", "--allow-loss")
        self.assertIn("29 of 29", done.stderr)
        folder = checkpoints.write_sharded(self.new())
        self.refused("convert", folder, "-o", self.new(), "--to", "int8")
        self.done("convert", folder, "-o", self.new(), "--to", "int8", "--allow-loss")

    def test_a_scale_is_recorded(self):
        source = self.file(("w", "F32", [2], float32(0.25, 0.5)), ("ids", "I64", [1], bytes(8)))
        out, report = self.new(".safetensors"), self.new(".json")
        self.done("convert", source, "-o", out, "--to", "uint8", "--scale", "100", "--report", report)
        record = json.loads(checkpoints.read(out)[1]["tensorcast.scale"])
        self.assertEqual(record, [{"scale": 100, "tensors": ["w"]}])
        tensors = {entry["name"]: entry for entry in json.loads(report.read_text())["tensors"]}
        self.assertEqual((tensors["w"]["scale"], "scale" in tensors["ids"]), (100, False))
        again = self.new(".safetensors")
        self.done("convert", out, "-o", again, "--rule", ".=f32", "--scale", "0.01")
        record.append({"scale": 0.01})
        self.assertEqual(json.loads(checkpoints.read(again)[1]["tensorcast.scale"]), record)
        self.done("convert", source, "-o", again, "--to", "f16", "--force")
        self.assertEqual(checkpoints.read(again)[1], {})
        folder, out = checkpoints.write_sharded(self.new()), self.new()
        self.done("convert", folder, "-o", out, "--to", "f16", "--scale", "2")
        for shard in out.glob("*.safetensors"):
            self.assertIn('"scale": 2', checkpoints.read(shard)[1]["tensorcast.scale"])

    def test_verify_takes_the_scale_that_each_tensor_got(self):
        folder, scaled, copied, twice, ruled = checkpoints.write_sharded(self.new()), *(self.new() for _ in range(4))
        self.done("convert", folder, "-o", scaled, "--to", "f16", "--scale", "4", "--exclude", "norm")
        self.done("verify", scaled, "--against", folder)
        self.done("convert", scaled, "-o", copied, "--to", "f16", "--exclude", "norm")
        self.assertIn('"scale": 4', checkpoints.read(next(copied.glob("*.safetensors")))[1]["tensorcast.scale"])
        self.done("verify", copied, "--against", scaled)
        self.done("convert", scaled, "-o", twice, "--to", "f32", "--scale", "4")
        self.done("verify", twice, "--against", scaled)
        rules = self.new(".yaml")
        rules.write_text("- {match: embed, to: float16, scale: 8}\n- {match: mlp, to: float16, scale: 1}\n")
        self.done("convert", folder, "-o", ruled, "--to", "f32", "--scale", "2", "--rules", rules)
        self.done("verify", ruled, "--against", folder)
        other = self.new()
        self.done("convert", folder, "-o", other, "--to", "f16", "--scale", "4")
        shard = next(other.glob("*.safetensors"))
        content = shard.read_bytes()
        shard.write_bytes(content.replace(b'"scale\\": 4', b'"scale\\": 2'))
        (other / "SHA256SUMS").unlink()
        self.assertIn("the output has code", self.refused("verify", other, "--against", folder))

    def test_a_rule_has_a_scale_of_its_own(self):
        tensors = [("a", "F32", [2], float32(0.25, 0.5)), ("b", "F32", [2], float32(0.25, 0.5)),
                   ("c", "F32", [2], float32(0.25, 0.5))]
        rules = self.new(".yaml")
        rules.write_text("- {match: ^a, to: uint8, scale: 100}\n- {match: ^b, to: float16, scale: 1}\n")
        source, out = self.file(*tensors), self.new(".safetensors")
        options = ["--rules", rules, "--to", "f16", "--scale", "2", "--verify"]
        self.done("convert", source, "-o", out, *options)
        after, metadata = checkpoints.read(out)
        wanted = {"a": ("U8", [2], bytes([25, 50])), "b": ("F16", [2], fixtures.float16(0.25, 0.5)),
                  "c": ("F16", [2], fixtures.float16(0.5, 1))}
        self.assertEqual(after, wanted)
        self.assertEqual(json.loads(metadata["tensorcast.scale"]),
                         [{"scale": 100, "tensors": ["a"]}, {"scale": 2, "tensors": ["c"]}])
        folder, out = checkpoints.write_sharded(self.new(), {"model-00001-of-00001.safetensors": tensors}), self.new()
        self.done("plan", folder, "-o", out, *options)
        self.done("run-shard", out)
        self.done("finish", out)
        self.assertEqual(self.tensors(out), wanted)

    def test_a_scale_that_a_rule_cannot_have(self):
        source, rules = self.numbers(1), self.new(".yaml")
        for rule, said in (("{match: w, keep: true, scale: 2}", "no use for scale"),
                           ("{match: w, to: f16, scale: big}", "not a finite number"),
                           ("{match: w, to: f16, scale: inf}", "not a finite number")):
            rules.write_text(f"- {rule}\n")
            self.assertIn(said, self.refused("convert", source, "-o", self.new(".safetensors"), "--rules", rules))


class OptimizerTest(LossTest):
    def test_state_stays_unless_a_rule_names_it(self):
        state = [("optimizer.state.0.step", "F32", [], float32(1001.0)), some("optimizer.state.0.exp_avg", "F32", 4),
                 some("optimizer.state.0.exp_avg_sq", "F32", 4)]
        source = self.file(some("model.w", "F32", 4), some("model.logit_scale", "F32"), *state)
        out = self.new(".safetensors")
        said = self.done("convert", source, "-o", out, "--to", "bf16").stdout
        self.assertIn("3 left: optimizer state, see --rule", said)
        after = self.tensors(out)
        self.assertEqual({name: after[name] for name, *_ in state}, {entry[0]: entry[1:] for entry in map(tuple, state)})
        self.assertEqual((after["model.w"][0], after["model.logit_scale"][0]), ("BF16", "BF16"))
        self.done("convert", source, "-o", out, "--to", "bf16", "--rule", "exp_avg$=bf16", "--force")
        self.assertEqual(self.tensors(out)["optimizer.state.0.exp_avg"][0], "BF16")

    def test_weights_only(self):
        kept = ["model.layers.0.mlp.gate.weight", "model.layers.0.block_sparse_moe.gate.weight",
                "model.layers.0.mlp.router.weight", "backbone.layers.0.mixer.A_log", "backbone.layers.0.mixer.conv1d.weight"]
        changed = ["model.layers.0.mlp.gate_proj.weight", "backbone.layers.0.mixer.in_proj.weight"]
        source = self.file(*[some(name, "F32", 4, 4) for name in kept + changed])
        out = self.new(".safetensors")
        self.done("convert", source, "-o", out, "--to", "bf16", "--preset", "weights-only")
        types = {name: entry[0] for name, entry in self.tensors(out).items()}
        self.assertEqual(types, {**{name: "F32" for name in kept}, **{name: "BF16" for name in changed}})

    def test_vectors_of_gguf_stay_float32(self):
        source, out = self.new(".gguf"), self.new(".gguf")
        source.write_bytes(fixtures.gguf([("blk.0.attn_norm.weight", [4], 0, float32(1, 2, 3, 4)),
                                          ("blk.0.attn_q.weight", [4, 4], 0, float32(*range(16)))], file_type=0))
        for to, number in (("float16", 1), ("bfloat16", 32), ("float32", 0)):
            self.done("convert", source, "-o", out, "--to", to, "--force")
            listed = json.loads(self.done("inspect", out, "--json").stdout)
            types = {tensor["name"]: tensor["dtype"] for tensor in listed["tensors"]}
            self.assertEqual(types, {"blk.0.attn_norm.weight": "float32", "blk.0.attn_q.weight": to})
            self.assertEqual(listed["metadata"]["general.file_type"], str(number))
        halves = self.new(".gguf")
        self.done("convert", self.file(some("norm", "BF16", 4), some("w", "BF16", 4, 4)), "-o", halves, "--to", "f16")
        listed = json.loads(self.done("inspect", halves, "--json").stdout)["tensors"]
        self.assertEqual({tensor["name"]: tensor["dtype"] for tensor in listed}, {"norm": "float32", "w": "float16"})


class DiffTest(LossTest):
    def status(self, *arguments):
        return self.tcast("diff", *arguments).returncode

    def test_exit_status(self):
        a, b = self.numbers(1.0, 2.0), self.numbers(1.0, 2.5)
        self.assertEqual([self.status(a, a), self.status(a, b), self.status(a, self.folder / "no")], [0, 1, 2])
        half = self.file(("w", "F16", [2], fixtures.float16(1.0, 2.0)))
        self.assertEqual(self.status(a, half), 1, "equal values of another type")
        self.assertEqual(self.status(a, self.file(some("v", "F32", 2))), 1)
        quiet = self.tcast("diff", a, b, "-q")
        self.assertEqual((quiet.returncode, quiet.stdout, quiet.stderr), (1, "", ""))
        damaged = self.new(".safetensors")
        damaged.write_bytes(b"\xff" * 40)
        self.assertEqual(self.status(a, damaged), 2)

    def test_all_formats(self):
        source = self.numbers(1.0, 2.0, 3.0)
        for suffix in (".npz", ".gguf", ".npy", ".pb"):
            with self.subTest(suffix):
                other = self.new(suffix)
                self.done("convert", source, "-o", other, "--to", "float32")
                self.assertEqual(self.status(source, other), 0)
                self.assertEqual(self.status(other, source), 0)
                self.assertEqual(self.status(other, self.numbers(1.0, 2.0, 3.5)), 1)
        pickled, copy = self.new(".pt"), self.new(".safetensors")
        pickled.write_bytes(fixtures.checkpoint(b"}(X\x01\x00\x00\x00w" + fixtures.TENSOR_PICKLE + b"u"))
        self.done("convert", pickled, "-o", copy, "--to", "float32")
        self.assertEqual(self.status(pickled, copy), 0)
        strings = self.new(".npy")
        strings.write_bytes(fixtures.npy("<U1", (2,), struct.pack("<2I", 65, 66)))
        others = self.new(".npy")
        others.write_bytes(fixtures.npy("<U1", (2,), struct.pack("<2I", 65, 67)))
        self.assertEqual([self.status(strings, strings), self.status(strings, others)], [0, 1])

    def test_infinities_and_nan_are_counted_and_first(self):
        worse = [("quiet", "F32", [2], float32(1.0, -1.0))]
        a = self.file(("norm", "F32", [4], float32(1.0, INFINITY, NAN, 2.0)), ("big", "F32", [3], float32(1.0, 1e6, 1e6)),
                      *worse)
        b = self.file(("norm", "F32", [4], float32(1.0, 448.0, 0.0, NAN)),
                      ("big", "F32", [3], float32(1.0, INFINITY, INFINITY)), ("quiet", "F32", [2], float32(-1.0, 1.0)))
        done = self.tcast("diff", a, b)
        rows = [line for line in done.stdout.splitlines() if line.startswith(("norm", "big", "quiet"))]
        self.assertEqual([row.split()[0] for row in rows], ["norm", "big", "quiet"])
        self.assertIn("1 Inf lost, 1 NaN made, 1 NaN lost", rows[0])
        self.assertIn("2 Inf made", rows[1])
        self.assertNotIn("exact", "".join(rows))
        entries = {entry["name"]: entry for entry in json.loads(self.tcast("diff", a, b, "--json").stdout)["tensors"]}
        self.assertEqual((entries["big"]["infinities_made"], entries["norm"]["nan_lost"]), (2, 1))

    def test_inspect_puts_infinities_first(self):
        path = self.file(("coarse", "F32", [3], float32(1.1, 1.3, 0.7)), ("norm", "F32", [2], float32(1.0, INFINITY)),
                         ("big", "F32", [3], float32(1.0, 1e9, 1e9)))
        text = self.done("inspect", path, "--stats", "--candidates", "float8_e5m2,f16", "--sort", "snr").stdout
        table = text[text.index("SNR"):]
        self.assertLess(table.index("big"), table.index("norm"))
        self.assertLess(table.index("norm"), table.index("coarse"))
        self.assertIn("2 Inf made", table)
        self.assertIn("1 Inf lost", table)


if __name__ == "__main__":
    running.main(__doc__)
