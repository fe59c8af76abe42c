#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tcast convert --attest and tcast verify --attestation: statements that say the truth, others that do not."""

import hashlib
import json
import os
import random

import checkpoints
import quantized_models
import quantize_test
import running

STATEMENT = "out/attestation.intoto.json"
WEIGHT = "model.layers.0.mlp.down_proj.weight"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class AttestTest(running.CommandTest):
    def setUp(self):
        super().setUp()
        written = quantized_models.Model(1, {})
        written.tensors.update(quantize_test.model())
        written.write(self.folder / "in", shards=2)
        (self.folder / "in/README.md").write_text("words")

    def attest(self, *options, out="out", statement=STATEMENT):
        self.done("convert", "in", "-o", out, "--attest", statement, *options)
        return json.loads((self.folder / statement).read_text())

    def verified(self, out="out", statement=STATEMENT, **options):
        said = self.done("verify", out, "--attestation", statement, "--against", "in", **options)
        self.assertIn("every byte as converted from", said)
        return said

    def test_a_statement_has_every_file_of_both_sides_and_how_they_were_made(self):
        made = self.attest("--to", "nvfp4", "--spelling", "compressed-tensors")
        self.assertEqual((made["_type"], made["predicateType"]),
                         ("https://in-toto.io/Statement/v1", "urn:tensorcast:attestation:conversion:v1"))
        sums = dict(reversed(line.split("  ")) for line in (self.folder / "out/SHA256SUMS").read_text().splitlines())
        self.assertEqual({file["name"]: file["digest"]["sha256"] for file in made["subject"]}, sums)
        predicate = made["predicate"]
        self.assertEqual({file["name"]: file["digest"]["sha256"] for file in predicate["resolvedDependencies"]},
                         {path.name: sha256(path) for path in (self.folder / "in").iterdir()})
        self.assertEqual(predicate["options"], {"scheme": "nvfp4", "spelling": "compressed-tensors"})
        self.assertEqual([(recipe["name"], recipe["equals"]) for recipe in predicate["recipes"]],
                         [("nvfp4:modelopt", "modelopt")])
        self.verified()
        said = self.done("verify", "out", "--attestation", STATEMENT)
        self.assertIn("nothing was derived again: --against IN does", said)
        self.done("verify", "out", "--against", "in")  # and as without a statement
        self.assertTrue(json.loads(self.done("verify", "out", "--attestation", STATEMENT, "--against", "in", "--json"))["rederived"])

    def test_what_is_stated_holds_for_other_threads_and_instruction_sets(self):
        self.attest("--to", "mxfp4", "--clip", "mse")
        self.verified(env={**os.environ, "TENSORCAST_TARGET": "portable"})
        for threads in ("1", "3"):
            self.done("verify", "out", "--attestation", STATEMENT, "--against", "in", "--threads", threads)
        other = self.attest("--to", "mxfp4", "--clip", "mse", "--threads", "1", out="again", statement="again/attestation.intoto.json")
        self.assertEqual(other, json.loads((self.folder / STATEMENT).read_text()))

    def test_other_options(self):
        cases = [("--to", "bfloat16", "--rule", "norm=float32", "--output-layout", "single"),
                 ("--to", "float8_e4m3fn", "--rounding", "stochastic", "--seed", "7", "--max-shard-size", "20KB"),
                 ("--budget", "5bits", "--candidates", "nvfp4,mxfp8"),
                 ("--to", "float16", "--drop", "vision", "--rename", "^model[.]=m.", "--scale", "0.5")]
        for i, options in enumerate(cases):
            with self.subTest(options):
                statement = f"s{i}.json"
                made = self.attest(*options, out=f"o{i}", statement=statement)
                self.assertEqual(made["predicate"].get("seed"), 7 if "--seed" in options else None)
                self.verified(out=f"o{i}", statement=statement)

    def test_a_file(self):
        name = sorted((self.folder / "in").glob("*.safetensors"))[0].name
        for out, to in (("one.safetensors", "nvfp4"), ("q.gguf", "q8_0"), ("one.npz", "float16")):
            with self.subTest(out):
                source = f"in/{name}"
                self.done("convert", source, "-o", out, "--to", to, "--attest", "s.json", "--force")
                self.done("verify", out, "--attestation", "s.json", "--against", source)
                (self.folder / out).rename(self.folder / f"renamed-{out}")
                self.done("verify", f"renamed-{out}", "--attestation", "s.json")
                path = self.folder / f"renamed-{out}"
                content = bytearray(path.read_bytes())
                content[len(content) // 2] ^= 4
                path.write_bytes(content)
                error = self.refused("verify", path.name, "--attestation", "s.json", "--against", source)
                self.assertIn(path.name, error)
                if to != "float16":
                    self.assertIn('tensor "model', error)

    def test_every_flipped_bit_is_found_with_its_place(self):
        self.attest("--to", "nvfp4", "--spelling", "compressed-tensors")
        paths = [path for path in sorted((self.folder / "out").iterdir()) if path.name not in ("SHA256SUMS", "attestation.intoto.json")
                 and not path.name.startswith(".")]
        numbers = random.Random(59)
        for _ in range(60):
            path = numbers.choice(paths)
            content = path.read_bytes()
            flipped = bytearray(content)
            at = numbers.randrange(len(content))
            flipped[at] ^= 1 << numbers.randrange(8)
            path.write_bytes(flipped)
            done = self.tcast("verify", "out", "--attestation", STATEMENT, "--against", "in")
            self.assertEqual(done.returncode, 1, (path.name, at))
            self.assertIn(path.name, done.stderr)
            path.write_bytes(content)
        self.verified()

    def flip(self, tensor, at):
        for path in (self.folder / "out").glob("*.safetensors"):
            tensors, _ = checkpoints.read(path)
            if tensor in tensors:
                content = path.read_bytes()
                place = content.index(tensors[tensor][2]) + at
                path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1:])
                return path.name
        raise AssertionError(tensor)

    def test_the_block_is_named(self):
        self.attest("--to", "nvfp4", "--spelling", "compressed-tensors")
        module = WEIGHT.removesuffix(".weight")
        # Row 3 has 32 bytes of codes for 64 inputs, 8 bytes a block of 16; and 4 scales.
        name = self.flip(f"{module}.weight_packed", 3 * 32 + 17)
        error = self.refused("verify", "out", "--attestation", STATEMENT, "--against", "in")
        self.assertIn(f'out/{name}: tensor "{module}.weight_packed": its bytes from 113 on are not those that the conversion makes, '
                      "in block 2 of row 3 of blocks", error)
        self.flip(f"{module}.weight_packed", 3 * 32 + 17)
        self.flip(f"{module}.weight_scale", 3 * 4 + 1)
        error = self.refused("verify", "out", "--attestation", STATEMENT, "--against", "in")
        self.assertIn("in block 1 of row 3 of blocks", error)

    def test_other_sources_files_and_options_are_refused(self):
        made = self.attest("--to", "float16")

        def refused(change, *words):
            changed = json.loads(json.dumps(made))
            change(changed)
            (self.folder / "s.json").write_text(json.dumps(changed))
            error = self.refused("verify", "out", "--attestation", "s.json", "--against", "in")
            for word in words:
                self.assertIn(word, error)

        refused(lambda s: s["predicate"]["options"].update(to="bfloat16"), ".safetensors", "differ")
        refused(lambda s: s["predicate"]["resolvedDependencies"][0]["digest"].update(sha256="0" * 64), "in/README.md", "SHA-256")
        refused(lambda s: s["subject"].pop(), "the statement does not name this file of the output")
        refused(lambda s: s["subject"].append({"name": "x", "digest": {"sha256": "0" * 64}}), '"x" of the output, which is not there')
        (self.folder / "in/more.txt").write_text("more")
        refused(lambda s: None, "in/more.txt", "the statement does not name this file of the input")
        (self.folder / "in/more.txt").unlink()
        (self.folder / "out/more.txt").write_text("more")
        error = self.refused("verify", "out", "--attestation", "s.json")
        self.assertIn("out/more.txt: the statement does not name this file of the output", error)

    def test_malicious_statements(self):
        made = self.attest("--to", "float16")
        text = json.dumps(made)
        cases = {"": "not JSON", "{": "not JSON", "[]": "not an object", "{}": '"_type"', "[" * 5000: "nested too deeply",
                 text.replace('"sha256"', '"sha512"', 1): '"sha256"', text.replace('"_type"', '"subject": [], "_type"', 1): "twice",
                 text.replace("README.md", "../README.md"): "", text.replace("README.md", "/etc/passwd"): "",
                 text.replace("README.md", "config.json"): "twice", text.replace('"to"', '"too"'): '"too"',
                 text.replace('"float16"', '"float17"'): '"to"', text.replace('"tensorcast"', '"other"'): "another tool",
                 text.replace('"float16"', '"' + "x" * 70000 + '"'): "too long", text.replace("conversion:v1", "conversion:v2"): "predicate",
                 json.dumps({"payloadType": "application/vnd.in-toto+json", "payload": "", "signatures": []}): "signed"}
        for i, (content, words) in enumerate(cases.items()):
            with self.subTest(i):
                (self.folder / "s.json").write_text(content)
                error = self.refused("verify", "out", "--attestation", "s.json")
                self.assertIn("s.json", error)
                self.assertIn("not a statement about a conversion", error)
                self.assertIn(words, error)

    def test_places(self):
        self.assertIn("statement", self.refused("convert", "in", "-o", "out", "--to", "float16", "--attest", "in/s.json"))
        error = self.refused("convert", "in", "-o", "out", "--to", "float16", "--attest", "out/s.json")
        self.assertIn("in the output folder, its name is attestation.intoto.json", error)
        self.attest("--to", "float16")
        # A statement about the input is none about the output.
        self.done("convert", "out", "-o", "next", "--to", "float32")
        self.assertFalse((self.folder / "next/attestation.intoto.json").exists())
        self.done("verify", "next")
        # Another conversion in its place.
        self.done("convert", "in", "-o", "out", "--to", "bfloat16", "--force")
        self.assertFalse((self.folder / STATEMENT).exists())
        (self.folder / STATEMENT).write_text("mine")
        self.assertIn("not ours", self.refused("convert", "in", "-o", "out", "--to", "float16", "--force", "--attest", STATEMENT))
        self.assertEqual((self.folder / STATEMENT).read_text(), "mine")


if __name__ == "__main__":
    running.main(__doc__)
