#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversions of whole checkpoints: layouts, indexes, configs, and everything that is refused before a byte is written."""

import hashlib
import json
import os
import pathlib
import subprocess

import checkpoints
import fixtures
import running

INDEX = "model.safetensors.index.json"
FIRST, SECOND = checkpoints.SHARDS
RECORD = checkpoints.RECORD


class CheckpointTest(running.CommandTest):
    def differs(self, *arguments):
        return self.exits(1, "diff", *arguments).stdout

    def refused_before_writing(self, *arguments):
        message = self.refused(*arguments)
        self.assertFalse(self.out.exists(), "something was written")
        return message

    def source(self):
        return checkpoints.write_sharded(self.folder / "in")

    def files(self, folder):
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != RECORD)

    def tensors(self, folder):
        tensors = {}
        for path in sorted(folder.rglob("*.safetensors")):
            for name, entry in checkpoints.read(path)[0].items():
                self.assertNotIn(name, tensors)
                tensors[name] = entry
        return tensors

    def check_sums(self, folder):
        lines = (folder / "SHA256SUMS").read_text().splitlines()
        sums = {line[66:]: line[:64] for line in lines}
        self.assertEqual(sorted(sums), [name for name in self.files(folder) if name != "SHA256SUMS"])
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256((folder / name).read_bytes()).hexdigest(), digest, name)


class LayoutTest(CheckpointTest):
    def expect_bfloat16(self, kept=()):
        before, after = self.tensors(self.folder / "in"), self.tensors(self.out)
        self.assertEqual(sorted(before), sorted(after))
        for name, (dtype, shape, content) in before.items():
            if dtype == "I64" or name in kept:
                self.assertEqual(after[name], (dtype, shape, content))
            else:
                self.assertEqual(after[name], ("BF16", shape, checkpoints.to_bfloat16(content)), name)

    def test_shards_index_and_config(self):
        source = self.source()
        self.done("convert", source, "-o", self.out, "--to", "bfloat16")
        self.expect_bfloat16()
        self.assertEqual(self.files(self.out), sorted([*self.files(source), "SHA256SUMS"]))
        for file in checkpoints.SHARDS:
            self.assertEqual([*checkpoints.read(self.out / file)[0]], [*checkpoints.read(source / file)[0]])
            self.assertEqual(checkpoints.read(self.out / file)[1], {"format": "pt"})
        index = json.loads((self.out / INDEX).read_text())
        total = sum(len(entry[2]) for entry in self.tensors(self.out).values())
        self.assertEqual(index["metadata"], {"total_size": total, "total_parameters": 7})
        self.assertEqual(index["weight_map"], json.loads((source / INDEX).read_text())["weight_map"])
        self.assertEqual((self.out / "config.json").read_bytes(), checkpoints.CONFIG
                         .replace(b'"torch_dtype": "float32",', b'"torch_dtype": "bfloat16",')
                         .replace(b'"dtype" : "float32"', b'"dtype" : "bfloat16"'))
        self.assertEqual((self.out / "sub/README.md").read_text(), "read me\n")
        self.check_sums(self.out)
        self.assertIn("equal", self.done("diff", self.out, self.out))
        self.done("verify", self.out, "--against", source)

    def test_an_index_stands_for_its_model(self):
        self.done("convert", self.source() / INDEX, "-o", self.out, "--to", "bfloat16")
        self.expect_bfloat16()
        self.assertIn("config.json", self.files(self.out))

    def test_one_file_and_a_variant(self):
        for name in ("model.safetensors", "model.fp16.safetensors"):
            with self.subTest(name):
                source = self.folder / name.replace(".safetensors", "")
                source.mkdir()
                (source / name).write_bytes(fixtures.safetensors(checkpoints.SHARDS[FIRST], {"a": "b"}))
                out = self.folder / ("out-" + source.name)
                self.done("convert", source, "-o", out, "--to", "bfloat16")
                self.assertEqual(self.files(out), sorted(["SHA256SUMS", name]))
                self.assertEqual(checkpoints.read(out / name)[1], {"a": "b"})

    def test_a_variant_with_an_index(self):
        source = self.folder / "in"
        source.mkdir()
        shards = {name.replace("model", "model.fp16"): tensors for name, tensors in checkpoints.SHARDS.items()}
        for name, tensors in shards.items():
            (source / name).write_bytes(fixtures.safetensors(tensors))
        (source / "model.safetensors.index.fp16.json").write_text(checkpoints.index_of(shards))
        self.done("convert", source, "-o", self.out, "--to", "bfloat16", "--max-shard-size", "700B")
        self.expect_bfloat16()
        index = json.loads((self.out / "model.safetensors.index.fp16.json").read_text())
        self.assertTrue(all(file.startswith("model.fp16-0000") for file in index["weight_map"].values()))
        self.assertGreater(index["metadata"]["total_size"], 0)

    def test_diffusers(self):
        source = checkpoints.write_diffusers(self.folder / "in")
        self.done("convert", source, "-o", self.out, "--to", "bfloat16")
        self.assertEqual(self.files(self.out), sorted([*self.files(source), "SHA256SUMS"]))
        for file in self.files(source):
            if not file.endswith(".safetensors"):
                continue
            for name, (_, shape, content) in checkpoints.read(source / file)[0].items():
                after = checkpoints.read(self.out / file)[0][name]
                self.assertEqual(after, ("BF16", shape, checkpoints.to_bfloat16(content)))
        self.assertEqual((self.out / "unet/config.json").read_text(), '{"torch_dtype": "bfloat16"}')
        index = json.loads((self.out / "unet/diffusion_pytorch_model.safetensors.index.json").read_text())
        self.assertEqual(index["metadata"], {"total_size": 64})
        self.done("verify", self.out, "--against", source)

    def test_cut_anew(self):
        self.source()
        self.done("convert", "in", "-o", self.out, "--to", "bfloat16", "--max-shard-size", "400B")
        self.expect_bfloat16()
        shards = [name for name in self.files(self.out) if name.endswith(".safetensors")]
        self.assertEqual(shards, [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))])
        index = json.loads((self.out / INDEX).read_text())
        for file in shards:
            tensors = checkpoints.read(self.out / file)[0]
            self.assertTrue(len(tensors) == 1 or sum(len(entry[2]) for entry in tensors.values()) <= 400)
            for name in tensors:
                self.assertEqual(index["weight_map"][name], file)
        self.assertEqual(index["metadata"]["total_parameters"], 7)
        self.done("verify", self.out, "--against", "in")

    def test_single_file(self):
        self.source()
        self.done("convert", "in", "-o", self.out, "--to", "bfloat16", "--output-layout", "single")
        self.expect_bfloat16()
        self.assertIn("model.safetensors", self.files(self.out))
        self.assertNotIn(INDEX, self.files(self.out))

    def test_cut_without_a_type(self):
        source = self.source()
        self.done("convert", source, "-o", self.out, "--max-shard-size", "500B")
        self.assertEqual(self.tensors(source), self.tensors(self.out))
        self.assertEqual((self.out / "config.json").read_bytes(), checkpoints.CONFIG)

    def test_a_snapshot_of_the_hub_cache(self):
        source = checkpoints.write_sharded(self.folder / "models--a/snapshots/1234")
        blobs = self.folder / "models--a/blobs"
        blobs.mkdir()
        for number, file in enumerate([*checkpoints.SHARDS, INDEX, "config.json"]):
            (source / file).rename(blobs / str(number))
            (source / file).symlink_to(f"../../blobs/{number}")
        self.done("convert", source, "-o", self.out, "--to", "bfloat16")
        self.check_sums(self.out)
        self.assertFalse(any(path.is_symlink() for path in self.out.rglob("*")))

    def test_a_read_only_source_and_sums_of_its_own(self):
        source = self.source()
        self.done("convert", source, "-o", "first", "--to", "float16")
        for path in [*source.rglob("*"), source]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        self.done("convert", source, "-o", self.out, "--to", "float16")
        self.done("convert", self.out, "-o", "again", "--to", "float32")  # its SHA256SUMS is not copied
        self.check_sums(self.folder / "again")
        for path in [source, *source.rglob("*")]:
            path.chmod(0o755)


class SelectionTest(CheckpointTest):
    def types(self, *options):
        self.source()
        self.done("convert", "in", "-o", self.out, "--force", *options)
        return {name: entry[0] for name, entry in self.tensors(self.out).items() if entry[0] not in ("F32", "I64")}

    def test_by_rank_and_size(self):
        self.assertEqual(sorted(self.types("--to", "bf16", "--keep-rank", "0,1")), [
            "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.weight"])
        self.assertEqual(sorted(self.types("--to", "bf16", "--keep-smaller", "128")),
                         ["model.embed_tokens.weight", "model.layers.1.mlp.up_proj.weight"])

    def test_weights_only(self):
        self.assertEqual(sorted(self.types("--to", "e4m3fn", "--preset", "weights-only")),
                         ["model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.weight"])

    def test_a_rules_file(self):
        (self.folder / "rules.yaml").write_text("""
rules:
  - {match: 'q_proj', to: float16}
  - {match: 'layers', rank: [1], keep: true}
  - 'bias|layers=float8_e5m2'
to: bfloat16
keep_smaller: 9
""")
        self.assertEqual(self.types("--rules", "rules.yaml"), {
            "model.embed_tokens.weight": "BF16", "model.layers.0.self_attn.q_proj.weight": "F16",
            "model.layers.1.mlp.up_proj.weight": "F8_E5M2"})

    def test_options_of_conversions_in_a_rules_file(self):
        self.source()
        (self.folder / "rules.yaml").write_text("to: float8_e5m2\nrounding: towards-zero\nsaturate: false\nscale: 3\n")
        flags = ["--to", "float8_e5m2", "--no-saturate", "--scale", "3", "--rounding"]
        self.done("convert", "in", "-o", "by_rules", "--rules", "rules.yaml")
        self.done("convert", "in", "-o", "by_flags", *flags, "toward_zero")
        self.assertEqual(self.tensors(self.folder / "by_rules"), self.tensors(self.folder / "by_flags"))
        self.done("convert", "in", "-o", "first", "--rules", "rules.yaml", "--rounding", "up")  # the command line's
        self.done("convert", "in", "-o", "up", *flags, "up")
        self.assertEqual(self.tensors(self.folder / "first"), self.tensors(self.folder / "up"))
        self.assertNotEqual(self.tensors(self.folder / "up"), self.tensors(self.folder / "by_flags"))

    def test_wrong_rules_files(self):
        self.source()
        for text, message in (("- {match: q_proj, to: fp8}", "line 1"), ("- {to: f16}", "has no match"),
                              ("- {match: x, to: f16, keep: true}", "either to or keep"), ("{rules: [a]}", "line 1"),
                              ("\nwidth: 3", "line 2: \"width\""),
                              ("to: f16\nrounding: sideways", "line 2: \"sideways\" is not a rounding"),
                              ("to: f16\nopset: 5000000000", "too large for opset"), ("[", "line "),
                              ("- nothing=bf16", "matches no tensor")):
            (self.folder / "rules.yml").write_text(text)
            with self.subTest(text):
                self.assertIn(message, self.refused_before_writing("convert", "in", "-o", "out", "--rules", "rules.yml"))

    def test_patterns_that_match_nothing(self):
        self.source()
        for option in (["--rule", "nothing=f16"], ["--include", "nothing"], ["--exclude", "nothing"]):
            message = self.refused_before_writing("convert", "in", "-o", "out", "--to", "bf16", *option)
            self.assertIn("matches no tensor", message)

    def test_a_dry_run(self):
        self.source()
        text = self.done("convert", "in", "-o", "out", "--to", "bf16", "--keep-rank", "0,1", "--dry-run")
        for word in ("--to", "rank 1", "integer", "of memory", "of disk", "are free", "nothing was written"):
            self.assertIn(word, text)
        needs = json.loads(self.done("convert", "in", "-o", "out", "--to", "bf16", "--dry-run", "--json"))
        self.assertTrue(needs["requirements"]["disk_suffices"])
        self.assertLess(needs["requirements"]["memory_bytes"], 1 << 30)
        self.assertFalse(self.out.exists())
        self.done("convert", "in", "-o", "out", "--to", "bf16")
        written = sum((self.out / shard["file"]).stat().st_size for shard in needs["shards"])
        self.assertEqual(written, sum(shard["bytes_out"] for shard in needs["shards"]))

    def test_scales_in_another_shard(self):
        scaled = {FIRST: [("mlp.weight", "F8_E4M3", [2, 2], bytes(4))],
                  SECOND: [("mlp.weight_scale_inv", "F32", [1, 1], fixtures.float32(0.25))]}
        checkpoints.write_sharded(self.folder / "in", scaled)
        message = self.refused_before_writing("convert", "in", "-o", "out", "--to", "bf16")
        self.assertIn('"mlp.weight"', message)
        self.assertIn('"mlp.weight_scale_inv"', message)
        self.assertIn("--raw-codes", message)
        self.done("convert", "in", "-o", "out", "--to", "bf16", "--raw-codes")


class RefusalTest(CheckpointTest):
    def convert(self):
        return self.refused_before_writing("convert", "in", "-o", "out", "--to", "bfloat16")

    def test_a_missing_shard(self):
        (self.source() / SECOND).unlink()
        self.assertIn(f'the index names the file "{SECOND}", which is not there', self.convert())
        (self.folder / "in" / INDEX).unlink()
        self.assertIn("shard 2 of 2 is not there", self.convert())

    def test_a_missing_tensor(self):
        index = self.source() / INDEX
        index.write_text(index.read_text().replace("model.norm.weight", "model.other.weight"))
        self.assertIn('tensor "model.other.weight"', self.convert())

    def test_a_truncated_shard(self):
        shard = self.source() / SECOND
        shard.write_bytes(shard.read_bytes()[:-1])
        message = self.convert()
        self.assertIn(SECOND, message)
        self.assertIn("the file has only", message)

    def test_a_tensor_in_two_shards(self):
        twice = {FIRST: checkpoints.SHARDS[FIRST], SECOND: checkpoints.SHARDS[FIRST][:1]}
        checkpoints.write_sharded(self.folder / "in", twice)
        message = self.convert()
        self.assertIn("model.embed_tokens.weight", message)
        self.assertIn("is in two shards", message)

    def test_what_failed_downloads_leave(self):
        source = self.source()
        for content, kind in ((b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "Git LFS"),
                              (b"<!DOCTYPE html>\n<html></html>\n", "HTML page")):
            (source / FIRST).write_bytes(content)
            message = self.convert()
            self.assertIn(kind, message)
            self.assertIn(FIRST, message)
            self.assertIn("hint:", message)

    def test_names_that_lead_out(self):
        source = self.source()
        (self.folder / "secret.safetensors").write_bytes(fixtures.safetensors(checkpoints.SHARDS[SECOND]))
        index = source / INDEX
        original = index.read_text()
        for name in ("../secret.safetensors", str(self.folder / "secret.safetensors"), "a/../../secret.safetensors", ""):
            index.write_text(original.replace(SECOND, name))
            self.assertIn("file name", self.convert())
        index.write_text(original)
        (source / SECOND).unlink()
        (source / SECOND).symlink_to("../secret.safetensors")
        self.assertIn("symbolic link that leads out", self.convert())

    def test_names_that_are_not_utf8(self):
        source = self.source()
        name = os.fsencode(source) + b"/caf\xe9.txt"
        with open(name, "wb"):
            pass
        self.assertIn("is not UTF-8", self.convert())
        os.unlink(name)
        os.rename(source / SECOND, os.fsencode(source) + b"/caf\xe9.safetensors")
        (source / INDEX).unlink()
        self.assertIn("is not UTF-8", self.convert())

    def test_a_folder_without_checkpoint(self):
        (self.folder / "in").mkdir()
        self.assertIn("no .safetensors files", self.convert())

    def test_damaged_indexes(self):
        index = self.source() / INDEX
        for text in ("", "{", "[]", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": {"b": "c"}}}',
                     '{"weight_map": {"a": "x", "a": "y"}}', '{"weight_map": {}}', "[" * 200 + "]" * 200, '{"weight_map"\0: {}}'):
            index.write_text(text)
            self.assertIn(INDEX, self.convert(), text)

    def test_outputs_that_exist(self):
        source = self.source()
        self.out.mkdir()
        (self.out / "mine").write_text("old")
        self.assertRegex(self.refused("convert", source, "-o", "out", "--to", "bf16"), "exists already\n.*name another output")
        self.assertIn("the output would overwrite the input", self.refused("convert", source, "-o", source, "--to", "bf16", "--force"))
        self.assertIn("--parents", self.refused("convert", source, "-o", "a/b", "--to", "bf16"))
        self.assertEqual(self.files(self.out), ["mine"])
        self.done("convert", source, "-o", "out", "--to", "bf16", "--force")
        self.assertIn("mine", self.files(self.out))

    def test_a_refused_run_leaves_no_state(self):
        source = self.source()
        self.done("convert", source, "-o", "out", "--to", "bf16")
        complete = self.files(self.out)
        for state in ((), ("lock",)):  # of a run that began just before the other one was complete
            (self.out / ".tcast").mkdir()
            for name in state:
                (self.out / ".tcast" / name).touch()
            self.assertIn("exists already", self.refused("convert", source, "-o", "out", "--to", "bf16"))
            self.assertEqual(self.files(self.out), complete)
            self.assertFalse((self.out / ".tcast").exists())
        (self.out / ".tcast/shards").mkdir(parents=True)
        (self.out / ".tcast/shards/0123").touch()  # may be of use
        self.assertIn("exists already", self.refused("convert", source, "-o", "out", "--to", "bf16"))
        self.assertTrue((self.out / ".tcast/shards/0123").exists())

    def test_a_report_is_not_written_over_a_file_of_the_conversion(self):
        source = self.source()
        self.done("convert", source, "-o", "out", "--to", "bf16")
        (self.folder / "link").symlink_to("in")
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        for folder in ("in", "out", "link", "in/sub/..", "./out"):
            for name in (FIRST, INDEX, "config.json", "SHA256SUMS", "new.json", "sub/new.json"):
                for given in (source, source / INDEX):
                    message = self.refused("convert", given, "-o", "out", "--to", "bf16", "--force", "--report", f"{folder}/{name}")
                    self.assertIn("the report would be inside the folder of the", message)
        self.assertIn("would overwrite", self.refused("convert", source, "-o", "out", "--to", "bf16", "--force", "--report", "out"))
        self.assertEqual(before, {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()})

    def test_force_leaves_nothing_of_the_old_model(self):
        source = self.source()
        self.done("convert", source, "-o", "out", "--to", "bf16", "--max-shard-size", "100B")
        self.done("convert", source, "-o", "out", "--to", "bf16", "--force", "--output-layout", "single")
        weights = [name for name in self.files(self.out) if "model" in name]
        self.assertEqual(weights, ["model.safetensors"])


class PlaceTest(CheckpointTest):
    """Nothing is replaced or removed but what a former run wrote."""

    def tree(self):
        """All of the folder, links and times included."""
        tree = {}
        for path in sorted(self.folder.rglob("*")):
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            tree[os.fsencode(path)] = (content, path.lstat().st_mtime_ns, path.lstat().st_ino)
        return tree

    def refused_and_untouched(self, *arguments):
        before = self.tree()
        message = self.refused(*arguments)
        self.assertEqual(before, self.tree(), arguments)
        return message

    def test_the_input_is_never_the_output(self):
        models = self.folder / "m"
        source = checkpoints.write_sharded(models / "a")
        checkpoints.write_sharded(models / "b")
        (self.folder / "link").symlink_to("m")
        (self.folder / "deep").symlink_to("m/a")
        for given in ("m/a", "link/a", "deep", f"m/a/{INDEX}", f"link/a/{INDEX}"):
            for output in ("m", "link", ".", "m/a", "deep", "link/a/", "m/a/new", "link/a/sub", "deep/new/deeper", "m/b/../a"):
                for options in ([], ["--force"], ["--force", "--parents"], ["--dry-run"]):
                    for command in ("convert", "plan"):
                        if command == "plan" and "--dry-run" in options:
                            continue
                        message = self.refused_and_untouched(command, given, "-o", output, "--to", "bf16", *options)
                        self.assertRegex(message, "would overwrite the input|inside the folder of the (in|out)put")
        os.chdir(source)
        self.addCleanup(os.chdir, "/")
        self.assertIn("would overwrite the input", self.refused_and_untouched("convert", "m/a", "-o", source, "--to", "bf16"))
        self.done("convert", "m/a", "-o", "m/c", "--to", "bf16")

    def test_files_of_others_refuse_the_run(self):
        source = self.source()
        convert = ("convert", source, "-o", "out", "--to", "bf16", "--force")
        for name in (FIRST, INDEX, "config.json", "SHA256SUMS", "tokenizer.json", "sub/README.md", "model.safetensors", "sub/x.bin",
                     "pytorch_model.bin", "model.gguf", "consolidated.00.pth", "other.safetensors.index.json"):
            path = self.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("mine")
            for options in ([], ["--dry-run"]):
                self.assertIn(f'"{name}"', self.refused_and_untouched(*convert, *options))
            path.unlink()
            path.mkdir()  # a folder in the place of a file
            if name in (FIRST, INDEX, "config.json", "SHA256SUMS", "tokenizer.json", "sub/README.md"):
                self.assertIn(f'"{name}"', self.refused_and_untouched(*convert))
            path.rmdir()
            path.symlink_to("nowhere")
            self.assertIn(f'"{name}"', self.refused_and_untouched(*convert))
            path.unlink()
        (self.out / "sub").rmdir()
        (self.out / "sub").symlink_to("../in")
        self.assertIn('"sub"', self.refused_and_untouched(*convert))

    def test_anything_else_stays(self):
        source = self.source()
        self.done("convert", source, "-o", "out", "--to", "bf16")
        deep = self.out / "/".join(["d"] * 17)
        deep.mkdir(parents=True)
        (self.out / "other-model").mkdir()
        (self.out / "other-model/model.safetensors").write_text("mine")
        (self.out / ".git").mkdir()
        (self.out / ".git/x.safetensors").write_text("mine")
        (self.out / "dangling").symlink_to("nowhere")
        (self.out / "training_args.bin").write_text("mine")
        os.mkfifo(self.out / "pipe")
        with open(os.fsencode(self.out) + b"/caf\xe9.txt", "wb"):
            pass
        listed = set(self.files(self.out)) - {"other-model/model.safetensors"}
        kept = {path: path.lstat().st_ino for path in self.out.rglob("*") if path.name not in {pathlib.Path(n).name for n in listed}
                and path.name not in (RECORD, "sub")}
        self.done("convert", source, "-o", "out", "--to", "f16", "--force", "--output-layout", "single")
        for path, inode in kept.items():
            self.assertEqual(path.lstat().st_ino, inode, path)
        self.assertFalse((self.out / FIRST).exists())
        self.assertTrue((self.out / "model.safetensors").exists())

    def test_the_record_decides(self):
        source = self.source()
        convert = ("convert", source, "-o", "out", "--to", "f16", "--force")
        self.done(*convert)
        config = self.out / "config.json"
        content = config.read_bytes()
        config.write_bytes(content[:-1] + b" ")  # the same size
        self.assertIn('"config.json"', self.refused_and_untouched(*convert))
        config.write_bytes(content)  # another time, the same hash
        self.done(*convert)
        shard = self.out / SECOND
        shard.write_bytes(shard.read_bytes() + b"x")
        self.assertIn(f'"{SECOND}"', self.refused_and_untouched(*convert))
        # Without the record nothing is ours: anybody may have written SHA256SUMS.
        shard.write_bytes(shard.read_bytes()[:-1])
        self.done(*convert)
        (self.out / RECORD).unlink()
        self.assertIn(f'"{FIRST}"', self.refused_and_untouched(*convert))
        (self.out / RECORD).write_text("{}")
        self.assertIn(RECORD, self.refused_and_untouched(*convert))
        (self.out / RECORD).unlink()
        (self.out / RECORD).mkdir()
        self.assertIn("this name is kept for the record", self.refused_and_untouched(*convert))

    def test_found_before_the_work(self):
        """What finish will read or write is checked before a shard is converted, and by --dry-run."""
        source = self.source()
        spoilers = {"config.json": lambda path: path.write_text('{"torch_dtype": '),
                    "SHA256SUMS": lambda path: (path.mkdir(), (path / "x").write_text("")),
                    "sub/README.md": lambda path: path.symlink_to("/etc/hostname")}
        for name, spoil in spoilers.items():
            path = source / name
            content = path.read_bytes() if path.exists() else None
            path.unlink(missing_ok=True)
            spoil(path)
            for options in ([], ["--dry-run"]):
                message = self.refused_before_writing("convert", "in", "-o", "out", "--to", "bf16", *options)
                self.assertIn(name, message)
                self.assertNotIn(str(self.folder), message, "paths are as they were given")
            subprocess.run(["rm", "-r", path], check=True)
            if content is not None:
                path.write_bytes(content)

    def test_empty_folders_are_checked_too(self):
        source = self.source()
        (source / "SHA256SUMS").mkdir()
        for options in ([], ["--dry-run"]):
            self.assertIn('"SHA256SUMS" as a file and as a folder', self.refused_before_writing(
                "convert", "in", "-o", "out", "--to", "bf16", *options))
        (source / "SHA256SUMS").rmdir()
        (source / "logs/new").mkdir(parents=True)
        self.out.mkdir()
        (self.out / "logs").write_text("mine")
        for options in ([], ["--dry-run"]):
            self.assertIn('"logs" is in the way', self.refused_and_untouched(
                "convert", "in", "-o", "out", "--to", "bf16", "--force", *options))

    def test_few_files_are_open_at_a_time(self):
        source = checkpoints.write_many(self.folder / "in", shards=60, elements=100)
        for command in (["convert", source, "-o", "out", "--to", "bf16"], ["verify", "out", "--against", source],
                        ["diff", source, "out"], ["convert", source, "-o", "one", "--to", "bf16", "--output-layout", "single"],
                        ["convert", source, "-o", "cut", "--to", "bf16", "--max-shard-size", "1kB", "--verify"],
                        ["verify", "one", "--against", source]):
            done = subprocess.run(["bash", "-c", 'ulimit -n 32; exec "$0" "$@"', running.TCAST, *command], cwd=self.folder,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1 if command[0] == "diff" else 0, done.stderr)


class LookingTest(CheckpointTest):
    def test_inspect(self):
        source = self.source()
        text = self.done("inspect", source)
        for word in ("float32", "int64", "embedding", "attention", "feed-forward", "norm", "2 shards", "1 index"):
            self.assertIn(word, text)
        self.assertNotIn("q_proj", text)
        self.assertIn("q_proj", self.done("inspect", source, "--tensors"))
        listed = self.done("inspect", source, "--include", "layers", "--sort", "bytes")
        self.assertLess(listed.index("up_proj.weight"), listed.index("q_proj"))
        self.assertNotIn("embed_tokens", listed)
        self.assertIn("SNR", self.done("inspect", source, "--stats"))
        whole = json.loads(self.done("inspect", source, "--json"))
        self.assertEqual(len(whole["tensors"]), 7)
        self.assertEqual(whole["tensors"][0]["kind"], "embedding")

    def test_diff(self):
        self.source()
        self.done("convert", "in", "-o", "out", "--to", "bf16", "--keep-rank", "1")
        text = self.differs("in", "out")
        self.assertIn("float32 -> bfloat16", text)
        self.assertIn("7 tensors: 4 equal, 3 of another type", text)
        fewer = {FIRST: checkpoints.SHARDS[FIRST][:2], SECOND: checkpoints.SHARDS[SECOND]}
        checkpoints.write_sharded(self.folder / "fewer", fewer)
        self.assertIn("1 only in A", self.differs("in", "fewer"))
        differences = json.loads(self.differs("in", "out", "--json"))["tensors"]
        worst = next(entry for entry in differences if "q_proj" in entry["name"])
        before = checkpoints.read(self.folder / "in" / FIRST)[0][worst["name"]][2]
        after = checkpoints.read(self.out / FIRST)[0][worst["name"]][2]
        self.assertGreater(worst["different"], 0)
        self.assertLess(worst["max_rel_error"], 1 / 256)
        self.assertEqual(checkpoints.to_bfloat16(before), after)
        self.assertIn("equal headers", self.done("diff", "in", "in", "--headers-only"))

    def test_verify_finds_a_file_that_is_not_listed(self):
        self.done("convert", self.source(), "-o", "out", "--to", "bf16")
        (self.out / ".gitattributes").write_text("*.safetensors filter=lfs\n")
        self.done("verify", "out")
        self.assertIn("hint: name the folder: ", self.refused("verify", next(self.out.glob("*.safetensors"))))
        (self.out / "sub/modeling.py").write_text("import os\n")
        self.assertIn("modeling.py: SHA256SUMS does not have this file", self.refused("verify", "out"))

    def test_a_folder_whose_name_is_not_utf8(self):
        self.source().rename(os.fsdecode(os.fsencode(self.folder) + b"/in\xff"))
        message = self.refused_before_writing("convert", b"in\xff", "-o", "out", "--to", "bf16")
        self.assertIn("the path of the folder is not UTF-8", message)

    def test_verify_finds_a_changed_bit(self):
        source = self.source()
        self.done("convert", source, "-o", "out", "--to", "bf16")
        shard = self.out / SECOND
        content = bytearray(shard.read_bytes())
        content[-9] ^= 1
        shard.write_bytes(content)
        self.assertIn(SECOND, self.refused("verify", "out"))
        (self.out / "SHA256SUMS").unlink()
        self.assertIn('tensor "', self.refused("verify", "out", "--against", source))
        self.assertIn("--against", self.refused("verify", "out"))


if __name__ == "__main__":
    running.main(__doc__)
