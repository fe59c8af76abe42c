#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of a checkpoint or a file is written: tensors by name, under other names, to one file; other files and modes."""

import json

import checkpoints
import fixtures
import running

INDEX = "model.safetensors.index.json"
FIRST, SECOND = checkpoints.SHARDS


class SelectTest(running.CommandTest):
    def done(self, *arguments):
        done = self.exits(0, *arguments)
        return done.stdout + done.stderr

    def refused(self, *arguments, status=1):
        done = self.exits(status, *arguments)
        self.assertFalse(self.out.exists(), "something was written")
        return done.stderr

    def source(self, shards=None):
        return checkpoints.write_sharded(self.folder / "in", shards)

    def tensors(self, folder):
        return {name: entry for path in sorted(folder.rglob("*.safetensors"))
                for name, entry in checkpoints.read(path)[0].items()}

    def files(self, folder):
        """All files but the record of what a run wrote, which has times."""
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                      if path.is_file() and path.name != checkpoints.RECORD)

    def file(self, name, *tensors, metadata=None):
        path = self.folder / name
        path.write_bytes(fixtures.safetensors(tensors, metadata))
        return path


ALL = [entry[0] for tensors in checkpoints.SHARDS.values() for entry in tensors]


class FilterTest(SelectTest):
    def test_drop(self):
        source = self.source()
        self.done("convert", source, "-o", self.out, "--drop", "bias|norm", "--to", "bfloat16")
        self.assertEqual(sorted(self.tensors(self.out)), sorted(n for n in ALL if "bias" not in n and "norm" not in n))
        index = json.loads((self.out / INDEX).read_text())
        self.assertEqual(sorted(index["weight_map"]), sorted(self.tensors(self.out)))
        self.assertEqual(index["metadata"]["total_size"], sum(len(e[2]) for e in self.tensors(self.out).values()))
        for name, file in index["weight_map"].items():
            self.assertIn(name, checkpoints.read(self.out / file)[0])

    def test_shards_without_tensors_vanish(self):
        source = self.source()
        self.done("convert", source, "-o", self.out, "--only", "layers.0|embed")
        self.assertEqual(self.files(self.out), ["SHA256SUMS", "config.json", "model.safetensors", "sub/README.md",
                                                "tokenizer.json"])
        before = self.tensors(source)
        self.assertEqual(self.tensors(self.out), {n: before[n] for n in ALL if "layers.0" in n or "embed" in n})
        self.done("verify", self.out, "--against", source, "--only", "layers.0|embed")

    def test_rename_verify_and_diff(self):
        source = self.source()
        choice = ["--rename", r"^model\.", "--drop", "positions", "--rename", r"layers\.(\d+)=h.\1"]
        choice[1] += "="
        self.done("convert", source, "-o", self.out, "--to", "bfloat16", *choice)
        names = {"h.0.self_attn.q_proj.weight", "h.0.input_layernorm.weight", "h.1.mlp.up_proj.weight",
                 "h.1.mlp.up_proj.bias", "norm.weight", "embed_tokens.weight"}
        self.assertEqual(set(self.tensors(self.out)), names)
        self.assertEqual(set(json.loads((self.out / INDEX).read_text())["weight_map"]), names)
        self.done("verify", self.out, "--against", source, *choice)
        self.assertEqual(self.tcast("verify", self.out, "--against", source).returncode, 1)
        rows = json.loads(self.tcast("diff", source, self.out, "--json", *choice).stdout)["tensors"]
        self.assertEqual({row["name"] for row in rows if row["in_a"] and row["in_b"]}, names)
        self.assertEqual([row for row in rows if not row["in_a"] or not row["in_b"]], [])

    def test_rules_and_messages_have_the_names_of_the_source(self):
        source = self.source()
        report = self.folder / "report.json"
        self.done("convert", source, "-o", self.out, "--rename", "^model=m", "--rule", "^model.norm=float16",
                  "--report", report)
        rows = {row["name"]: row for row in json.loads(report.read_text())["tensors"]}
        self.assertEqual(rows["model.norm.weight"]["output_name"], "m.norm.weight")
        self.assertEqual(self.tensors(self.out)["m.norm.weight"][0], "F16")

    def test_steps_and_going_on(self):
        source = self.source()
        choice = ["--to", "bfloat16", "--rename", "^model=m", "--drop", "bias"]
        self.done("convert", source, "-o", self.out, *choice)
        steps = self.folder / "steps"
        self.done("plan", source, "-o", steps, *choice)
        self.done("run-shard", steps, "0")
        self.assertIn("1 of 2 shards had been converted", self.done("convert", source, "-o", steps, *choice))
        self.assertEqual(self.files(steps), self.files(self.out))
        for name in self.files(self.out):
            self.assertEqual((steps / name).read_bytes(), (self.out / name).read_bytes(), name)

    def test_wrong_choices(self):
        source = self.source()
        self.assertIn('would both be named "w"', self.refused("convert", source, "-o", self.out, "--rename", ".*=w"))
        self.assertIn("leaves nothing", self.refused("convert", source, "-o", self.out, "--rename", ".*="))
        for option in ("--drop", "--only"):
            self.assertIn('("nothing") matches no tensor', self.refused("convert", source, "-o", self.out, option, "nothing"))
        self.assertIn("rename 1", self.refused("convert", source, "-o", self.out, "--rename", "nothing=x"))
        self.assertIn("no tensor is left", self.refused("convert", source, "-o", self.out, "--drop", "."))
        self.assertIn(r"\2", self.refused("convert", source, "-o", self.out, "--rename", r"(a)=\2", status=2))
        self.assertIn("REGEX=NEW", self.refused("convert", source, "-o", self.out, "--rename", "abc", status=2))

    def test_one_file(self):
        path = self.file("x.safetensors", checkpoints.tensor("a.w", [2], 1), checkpoints.tensor("a.b", [3], 2),
                         metadata={"a.tied": "a.w", "a.gone": "a.b", "format": "pt"})
        self.done("convert", path, "-o", "y.safetensors", "--drop", "b$", "--rename", "^a.=")
        tensors, metadata = checkpoints.read(self.folder / "y.safetensors")
        self.assertEqual([*tensors], ["w"])
        self.assertEqual(metadata, {"tied": "w", "format": "pt"})

    def test_a_rules_file(self):
        rules = self.folder / "rules.yaml"
        rules.write_text("only: [embed, norm]\nrename: ['^model=m']\nskip-files: tokenizer.json\n")
        self.done("convert", self.source(), "-o", self.out, "--rules", rules)
        self.assertIn("m.norm.weight", self.tensors(self.out))
        self.assertNotIn("tokenizer.json", self.files(self.out))

    def test_skip_files(self):
        source = self.source()
        (source / "pytorch_model.bin").write_bytes(b"x" * 10)
        (source / "model.fp16.safetensors").write_bytes(b"damaged")
        (source / "original").mkdir()
        (source / "original/model.safetensors").write_bytes(b"damaged")
        text = self.done("convert", source, "-o", self.out, "--to", "bfloat16", "--skip-files", "*.bin", "--skip-files",
                         "original", "--skip-files", "*.fp16.safetensors")
        self.assertIn("left out: ", text)
        self.assertIn("pytorch_model.bin (10 bytes)", text)
        self.assertEqual(self.files(self.out), sorted(["SHA256SUMS", INDEX, "config.json", "sub/README.md",
                                                       "tokenizer.json", FIRST, SECOND]))
        self.out = self.folder / "other"
        self.assertIn("matches no file", self.refused("convert", source, "-o", self.out, "--to", "bfloat16", "--skip-files", "*.gguf"))
        self.assertIn("leaves out", self.refused("convert", source, "-o", self.out, "--to", "bfloat16", "--skip-files", FIRST))


class OneFileTest(SelectTest):
    def test_one_tensor(self):
        source = self.source()
        for option in ("--only", "--include"):
            self.done("convert", source, "-o", "norm.npy", option, "^model.norm.weight$", "--force")
            content = (self.folder / "norm.npy").read_bytes()
            self.assertTrue(content.endswith(self.tensors(source)["model.norm.weight"][2]))
        self.done("convert", source / INDEX, "-o", "half.npy", "--only", "up_proj.weight", "--to", "float16", "--verify")
        self.assertIn("float16", self.done("inspect", "half.npy"))

    def test_one_safetensors(self):
        source = self.source()
        self.done("convert", source, "-o", "all.safetensors", "--to", "bfloat16", "--output-layout", "single")
        tensors, metadata = checkpoints.read(self.folder / "all.safetensors")
        self.assertEqual(sorted(tensors), sorted(ALL))
        self.assertEqual(metadata, {"format": "pt"})

    def test_the_file_is_not_one_of_the_input_and_not_in_its_folder(self):
        source = self.source()
        before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
        (self.folder / "link").symlink_to("in")
        for given in ("in", f"in/{INDEX}", "link"):
            for output in (f"in/{FIRST}", f"link/{FIRST}", "in/new.safetensors", "in/sub/new.npy", f"in/{INDEX}"):
                message = self.refused("convert", given, "-o", output, "--only", "^model.norm.weight$", "--force",
                                       "--output-layout", "single", "--output-format", "safetensors")
                self.assertRegex(message, "inside the folder of the input")
        self.assertEqual(before, {path: path.read_bytes() for path in source.rglob("*") if path.is_file()})

    def test_names_of_files_do_not_become_folders(self):
        source = self.source()
        for name, option, message in (("out.gguf", [], "written as safetensors, not as gguf"),
                                      ("out.safetensors", [], "--output-layout single"),
                                      ("out.npy", [], "exactly one array"),
                                      ("out.npy", ["--only", "norm"], "holds exactly one array"),
                                      ("out.safetensors", ["--max-shard-size", "1GB"], "no shards")):
            self.out = self.folder / name
            self.assertIn(message, self.refused("convert", source, "-o", self.out, "--to", "bfloat16", *option))
        self.assertIn("name of a file", self.refused("plan", source, "-o", self.out, "--to", "bfloat16"))
        self.done("convert", source, "-o", "folder.gguf/", "--to", "bfloat16")
        self.assertTrue((self.folder / "folder.gguf").is_dir())

    def test_one_model_of_several(self):
        source = checkpoints.write_diffusers(self.folder / "in")
        self.done("convert", source, "-o", "conv.npy", "--only", "^conv.weight$")
        self.out = self.folder / "out.safetensors"
        self.assertIn("holds one model", self.refused("convert", source, "-o", self.out, "--to", "bfloat16",
                                                      "--output-layout", "single"))


class FormatTest(SelectTest):
    def test_a_change_of_format_alone(self):
        path = self.file("x.safetensors", checkpoints.tensor("a", [2], 1))
        self.done("convert", path, "-o", "x.npz")
        self.done("convert", "x.npz", "-o", "y.safetensors")
        self.assertEqual((self.folder / "y.safetensors").read_bytes(), path.read_bytes())
        self.assertIn("--to", self.refused("convert", path, "-o", "z.safetensors", status=2))

    def test_folders_need_a_reason(self):
        self.assertIn("--to", self.refused("convert", self.source(), "-o", self.out, status=2))


class OtherFilesTest(SelectTest):
    def test_dot_folders_and_empty_folders(self):
        source = self.source()
        for name in (".hidden/deep/a.txt", ".git/objects/x", "sub/.cache/y", ".hidden/model.safetensors"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text("12345")
        (source / "empty/inside").mkdir(parents=True)
        (source / ".gitattributes").write_text("text")
        text = self.done("convert", source, "-o", self.out, "--to", "bfloat16")
        self.assertIn(".git/ (5 bytes)", text)
        self.assertIn("sub/.cache/ (5 bytes)", text)
        files = self.files(self.out)
        self.assertTrue({".hidden/deep/a.txt", ".gitattributes", ".hidden/model.safetensors"} <= set(files), files)
        self.assertEqual((self.out / ".hidden/model.safetensors").read_text(), "12345")
        self.assertFalse((self.out / ".git").exists() or (self.out / "sub/.cache").exists())
        self.assertTrue((self.out / "empty/inside").is_dir())
        self.done("verify", self.out, "--against", source)

    def test_modes(self):
        source = self.source()
        modes = {FIRST: 0o600, SECOND: 0o640, INDEX: 0o444, "config.json": 0o604, "tokenizer.json": 0o755}
        for name, mode in modes.items():
            (source / name).chmod(mode)
        self.done("convert", source, "-o", self.out, "--to", "bfloat16")
        for name, mode in modes.items():
            self.assertEqual((self.out / name).stat().st_mode & 0o777, mode, name)
        merged = self.folder / "merged"
        self.done("convert", source, "-o", merged, "--to", "bfloat16", "--output-layout", "single")
        self.assertEqual((merged / "model.safetensors").stat().st_mode & 0o777, 0o600)
        self.done("convert", source / FIRST, "-o", "one.safetensors", "--to", "bfloat16")
        self.assertEqual((self.folder / "one.safetensors").stat().st_mode & 0o777, 0o600)

    def cache(self, *revisions):
        root = self.folder / "models--org--name"
        (root / "blobs").mkdir(parents=True)
        (root / "blobs/abc").write_bytes(fixtures.safetensors([checkpoints.tensor("a", [2], 1)]))
        for revision in revisions:
            (root / "snapshots" / revision).mkdir(parents=True)
            (root / "snapshots" / revision / "model.safetensors").symlink_to("../../blobs/abc")
        return root

    def test_the_root_of_a_model_in_the_hub_cache(self):
        root = self.cache("1111", "2222")
        message = self.refused("convert", root, "-o", self.out, "--to", "bfloat16")
        self.assertIn("2 snapshots: 1111, 2222", message)
        (root / "refs").mkdir()
        (root / "refs/main").write_text("2222")
        self.done("convert", root, "-o", self.out, "--to", "bfloat16")
        self.assertEqual(self.files(self.out), ["SHA256SUMS", "model.safetensors"])
        self.done("verify", self.out, "--against", root)
        self.assertIn("snapshots/2222/model.safetensors", self.done("inspect", root, "--json"))

    def test_the_cache_itself_is_no_model(self):
        cache = self.folder / "hub/models--org--name"
        (cache / "snapshots/r1").mkdir(parents=True)
        (cache / "blobs").mkdir()
        (cache / "blobs/old").write_text("old weights")
        checkpoints.write_sharded(cache / "snapshots/r1")
        message = self.refused("convert", "hub", "-o", "out", "--to", "bf16")
        self.assertIn('cache, which has the model "models--org--name"', message)
        self.assertFalse(self.out.exists())

    def test_a_folder_in_a_snapshot(self):
        snapshot = self.cache("1111") / "snapshots/1111"
        (snapshot / "unet").mkdir()
        (snapshot / "unet/model.safetensors").symlink_to("../../../blobs/abc")
        self.done("convert", snapshot / "unet", "-o", self.out, "--to", "bfloat16")
        self.assertEqual(self.files(self.out), ["SHA256SUMS", "model.safetensors"])
        (snapshot / "unet/other.safetensors").symlink_to("/etc/hostname")
        self.assertIn("leads out of the checkpoint's folder", self.exits(1, "inspect", snapshot / "unet").stderr)

    def test_the_only_snapshot(self):
        self.done("convert", self.cache("1111"), "-o", self.out, "--to", "bfloat16")
        self.assertEqual(self.files(self.out), ["SHA256SUMS", "model.safetensors"])


class OtherToolsTest(SelectTest):
    """Files of other tools in a checkpoint's folder: copied, or refused by name."""

    def model(self, folder="in"):
        source = self.folder / folder
        source.mkdir(parents=True, exist_ok=True)
        (source / "model.safetensors").write_bytes(fixtures.safetensors([checkpoints.tensor("a.weight", [64, 64], 1)]))
        return source

    def test_weights_of_other_tools_beside_a_checkpoint_are_copied(self):
        source = self.model()
        for name in ("openvino/openvino_model.bin", "metal/model.bin"):
            (source / name).parent.mkdir()
            (source / name).write_bytes(bytes(100))
        self.done("convert", source, "-o", self.out, "--to", "bfloat16")
        self.assertEqual((self.out / "metal/model.bin").read_bytes(), bytes(100))
        self.done("verify", self.out, "--against", source)
        (source / "metal/model.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0")
        self.assertIn("Git LFS", self.exits(1, "convert", source, "-o", "out2", "--to", "bfloat16").stderr)
        # Alone, a file of this name is meant.
        (self.folder / "alone").mkdir()
        (self.folder / "alone/model.bin").write_bytes(bytes(100))
        self.assertIn("neither a zip archive nor a pickle", self.exits(1, "inspect", "alone").stderr)

    def test_parts_of_tensors_are_refused(self):
        source = self.model()
        for name, offsets, refused in (("whole", [0, 0], False), ("part", [0, 3], True)):
            info = json.dumps({"a.weight": {"saved_offsets": offsets}})
            (source / "model.safetensors").write_bytes(fixtures.safetensors([checkpoints.tensor("a.weight", [4, 3], 1)],
                                                                            {"DCP_SHARDING_INFO": info}))
            words = ("convert", source, "-o", name, "--to", "bfloat16")
            if refused:
                self.assertIn("the part of it at [0, 3]", self.refused(*words))
            else:
                self.done(*words)

    def test_metadata_of_each_rank_are_refused_by_name(self):
        (self.folder / "in").mkdir()
        (self.folder / "in/__0_0.distcp").write_bytes(b"x")
        (self.folder / "in/__0.metadata").write_bytes(b"x")
        self.assertIn("use_collectives=False", self.refused("inspect", "in"))

    def test_a_file_has_no_shards(self):
        source = self.model() / "model.safetensors"
        self.assertIn("--max-shard-size is for checkpoints",
                      self.refused("convert", source, "-o", "out/", "--to", "bfloat16", "--max-shard-size", "5KB"))

    def test_models_whose_one_configuration_would_say_two_things(self):
        source = self.model()
        (source / "config.json").write_text("{}")
        names = ["layers.0.q_proj.weight", "layers.1.q_proj.weight"]
        for file, name in (("mtp", "mtp.0.q_proj.weight"), ("second", names[1])):
            (source / "model.safetensors").write_bytes(fixtures.safetensors([checkpoints.tensor(names[0], [64, 64], 1)]))
            (source / f"{file}.safetensors").write_bytes(fixtures.safetensors([checkpoints.tensor(name, [64, 64], 2)]))
            self.done("convert", source, "-o", f"same-{file}", "--to", "fp8-channel")
            self.done("verify", f"same-{file}", "--against", source)
            said = self.refused("convert", source, "-o", "not", "--to", "fp8-channel", "--rule", f"{name}=int8-channel")
            self.assertIn("several models and one configuration", said)
            self.assertIn("--skip-files", said)
            (source / f"{file}.safetensors").unlink()


class CommandTest(SelectTest):
    COMMANDS = ("", "convert", "plan", "run-shard", "finish", "verify", "diff", "inspect", "explain", "promote", "run",
                "bench", "types", "schemes", "recipes", "info", "completion", "onnx", "onnx convert", "onnx casts",
                "onnx clean", "onnx diff", "onnx add-cast", "onnx use-tensorcast")

    def test_shards_are_numbered_by_their_names(self):
        source = self.source()
        index = json.loads((source / INDEX).read_text())
        index["weight_map"] = dict(reversed(index["weight_map"].items()))
        (source / INDEX).write_text(json.dumps(index))
        self.done("plan", source, "-o", self.out, "--to", "bfloat16")
        self.assertIn(FIRST, self.done("run-shard", self.out, "0"))

    def test_help_fits_80_columns(self):
        for command in self.COMMANDS:
            for line in self.done(*command.split(), "--help").splitlines():
                self.assertLessEqual(len(line), 80, f"tcast {command} --help: {line}")
            self.assertEqual(self.done("help", *command.split()), self.done(*command.split(), "--help"))

    def test_plan_has_no_options_of_files(self):
        text = self.done("plan", "--help")
        for option in ("--raw", "--shape", "--from", "--input-format", "--output-format", "--dry-run"):
            self.assertNotIn(option + " ", text)

    def test_words_that_are_no_commands(self):
        for words in (["foo", "convert"], ["help", "foo"], ["onnx", "foo", "convert", "--to", "f16"]):
            self.assertIn('"foo" is not a command', self.refused(*words, status=2))

    def test_a_plan_of_nothing(self):
        self.assertIn("nonexist: cannot open", self.refused("plan", "nonexist", "-o", self.out, "--to", "bfloat16"))

    def test_what_other_words_of_types_mean(self):
        for words in (["convert", "x", "-o", "y", "--to", "nf4"], ["explain", "1", "--to", "q4_k"],
                      ["explain", "1", "--to", "mxfp4"], ["explain", "1", "--to", "nvfp4"]):
            message = self.refused(*words, status=2)
            self.assertIn("share a scale", message)
            self.assertNotIn("did you mean", message)

    def test_a_long_name_pads_no_other_row(self):
        path = self.file("x.safetensors", checkpoints.tensor("short", [2], 1), checkpoints.tensor("n" * 3000, [2], 2))
        rows = [line for line in self.done("inspect", path).splitlines() if line.startswith("short")]
        self.assertLess(len(rows[0]), 200)

    def test_components_of_diffusers_are_named(self):
        source = self.folder / "in"
        for part in ("unet", "vae"):
            (source / part).mkdir(parents=True)
            (source / part / "model.safetensors").write_bytes(fixtures.safetensors([checkpoints.tensor("w", [9], 3)]))
        self.assertIn("unet/w", self.done("convert", source, "-o", self.out, "--to", "bfloat16"))

    def test_float4_of_an_empty_tensor_and_float6(self):
        path = self.file("x.safetensors", ("odd", "F32", [0, 3], b""), ("even", "F32", [2, 4], fixtures.float32(*[1] * 8)))
        self.done("convert", path, "-o", "y.safetensors", "--to", "float4_e2m1fn")
        self.assertEqual(checkpoints.read(self.folder / "y.safetensors")[0]["odd"][0], "F32")
        self.assertIn("cannot load into PyTorch",
                      self.done("convert", path, "-o", "z.safetensors", "--to", "float6_e2m3fn"))


if __name__ == "__main__":
    running.main(__doc__)
