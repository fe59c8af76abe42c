#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the command does to files when names, limits and signals get in its way."""

import json
import os
import signal
import struct
import subprocess

import fixtures
import running


class FilesTest(running.CommandTest):
    def setUp(self):
        super().setUp()
        (self.folder / "in.npy").write_bytes(fixtures.npy("<f4", (2,), fixtures.float32(1.5, 2.5)))

    def tcast(self, *arguments, **options):
        return super().tcast(*arguments, text=False, **options)

    def refused(self, *arguments, **options):
        return super().refused(*arguments, **options).decode()

    def names(self):
        return sorted(os.listdir(self.folder))


class ReportTest(FilesTest):
    """A report never takes the place of a file that the conversion reads or writes."""

    def convert(self, report, *more):
        return self.refused("convert", "in.npy", "-o", "out.npy", "--to", "float16", "--report", report, *more)

    def test_other_spellings_of_the_output(self):
        (self.folder / "sub").mkdir()
        for report in ("out.npy", "./out.npy", "sub/../out.npy", self.folder / "out.npy"):
            for force in ([], ["--force"]):
                self.assertIn("the report would overwrite", self.convert(report, *force))
        self.assertEqual(self.names(), ["in.npy", "sub"])

    def test_links_to_the_output(self):
        (self.folder / "r.json").symlink_to("out.npy")
        self.assertIn("leads nowhere", self.convert("r.json", "--force"))
        (self.folder / "out.npy").write_bytes(b"old")
        self.assertIn("the report would overwrite", self.convert("r.json", "--force"))
        os.link(self.folder / "out.npy", self.folder / "hard.json")
        self.assertIn("the report would overwrite", self.convert("hard.json", "--force"))
        self.assertEqual((self.folder / "out.npy").read_bytes(), b"old")

    def test_the_input_and_the_rules(self):
        (self.folder / "rules.txt").write_text(".*=float16\n")
        for report in ("./in.npy", "./rules.txt"):
            self.assertIn("the report would overwrite", self.convert(report, "--rules", "rules.txt", "--force"))

    def test_pipes_and_devices_do_not_hang(self):
        os.mkfifo(self.folder / "pipe")
        for path in ("pipe", "/dev/null"):
            self.assertIn("regular file", self.convert(path, "--force"))
            self.assertIn("regular file", self.refused("convert", "in.npy", "-o", "out.npy", "--rules", path))
        self.assertEqual(self.names(), ["in.npy", "pipe"])

    def test_a_report_that_fails_leaves_the_old_one(self):
        """Long names make a report that the limit cuts off; the output has them too, but little else."""
        tensors = [(f"{i:04}" + "n" * 1000, "F32", [1], fixtures.float32(1.0)) for i in range(1000)]
        (self.folder / "in.safetensors").write_bytes(fixtures.safetensors(tensors))
        (self.folder / "r.json").write_text("old")
        limit = 1_400_000 // 512  # sh counts blocks of 512 bytes
        done = subprocess.run(["/bin/sh", "-c", f"ulimit -f {limit}; trap '' XFSZ; exec \"$0\" convert in.safetensors"
                               " -o out.safetensors --to float16 --report r.json --force", running.TCAST],
                              cwd=self.folder, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"r.json: cannot write: File too large", done.stderr)
        self.assertEqual((self.folder / "r.json").read_text(), "old")
        self.assertEqual(self.names(), ["in.npy", "in.safetensors", "out.safetensors", "r.json"])


class RunTest(FilesTest):
    def test_an_output_is_not_written_over_what_is_read(self):
        (self.folder / "m.onnx").write_bytes(fixtures.onnx_model(
            [fixtures.onnx_node("Identity", ["x"], "in", "")], {"x": fixtures.FLOAT}, {"in": fixtures.FLOAT}))
        (self.folder / "link").symlink_to(".")
        content = (self.folder / "in.npy").read_bytes()
        for folder in (".", "link"):
            message = self.refused("run", "m.onnx", "-i", "in.npy", "-d", folder, "--force")
            self.assertIn("would overwrite the input", message)
            message = self.refused("run", "m.onnx", "-i", "x=in.npy", "-d", folder, "--force")
            self.assertIn("would overwrite the input", message)
        self.assertEqual((self.folder / "in.npy").read_bytes(), content)


class InterruptTest(FilesTest):
    """Signals and limits leave no temporary, not even where files need names from the start."""

    def setUp(self):
        super().setUp()
        names = [f"out{i}" for i in range(3)]
        (self.folder / "m.onnx").write_bytes(fixtures.onnx_model(
            [fixtures.onnx_node("Identity", ["x"], name, "") for name in names], {"x": fixtures.FLOAT},
            {name: fixtures.FLOAT for name in names}))
        self.before = self.names()

    def interrupted(self, number, *arguments, moment="SYNC"):
        environment = {**os.environ, "LD_PRELOAD": running.given.shim, f"SIGNAL_AT_{moment}": str(int(number))}
        return self.tcast(*arguments, env=environment)

    def expect_nothing_left(self, *arguments):
        for moment in ("CREATE", "WRITE", "SYNC"):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                done = self.interrupted(number, *arguments, moment=moment)
                self.assertEqual(done.returncode, 128 + number, (moment, done.stderr))
                self.assertIn(b"interrupted; nothing was written", done.stderr)
                self.assertEqual(self.names(), self.before, moment)

    def test_convert(self):
        (self.folder / "many.npy").write_bytes(fixtures.npy("<f4", (1 << 20,), bytes(4 << 20)))
        self.before = self.names()
        for name in ("in.npy", "many.npy"):
            for more in ([], ["--verify"]):
                self.expect_nothing_left("convert", name, "-o", "out.npy", "--to", "float16", *more)

    def test_run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            done = self.interrupted(number, "run", "m.onnx", "-i", "in.npy", "-d", "new", "--force")
            self.assertEqual(done.returncode, 128 + number, done.stderr)
            self.assertIn(b"interrupted; 1 of 3 outputs were written", done.stderr)
            self.assertEqual(sorted(os.listdir(self.folder / "new")), ["out0.npy"])

    def test_add_cast(self):
        self.expect_nothing_left("onnx", "add-cast", "m.onnx", "--tensor", "x", "--to", "float16", "-o", "n.onnx")

    def test_onnx_convert(self):
        self.expect_nothing_left("onnx", "convert", "m.onnx", "--to", "float16", "-o", "n.onnx")

    def test_limits(self):
        """Each ends in success or an error in words; nothing incomplete is left, nor a temporary."""
        (self.folder / "big.npy").write_bytes(fixtures.npy("<f4", (1 << 20,), bytes(4 << 20)))
        before = self.names()
        commands = (("convert big.npy -o out.npy --to float64", ["out.npy"]),
                    ("convert big.npy -o out.npz --to string --verify", ["out.npz"]),
                    ("inspect big.npy --stats", []),
                    ("onnx add-cast m.onnx --tensor x --to float16 -o n.onnx", ["n.onnx"]),
                    ("run m.onnx -i in.npy -d new", ["new"]))
        # Files in blocks of 512 bytes, descriptors, KiB of address space: from what the program hardly starts with to
        # what it needs.
        limits = [f"-f {blocks}" for blocks in (0, 1, 100, 9000)] + [f"-n {count}" for count in range(3, 12)]
        limits += [f"-v {mib << 10}" for mib in (20, 40, 60, 80, 100, 120, 160, 240)]
        failed = succeeded = 0
        for command, outputs in commands:
            for limit in limits:
                done = subprocess.run(["/bin/sh", "-c", f"ulimit {limit}; exec $0 {command} --quiet", running.TCAST], cwd=self.folder,
                                      capture_output=True, timeout=60)
                if done.returncode == 127:
                    continue  # of the loader: the limit is below what the program itself takes
                self.assertIn(done.returncode, (0, 1), (limit, command, done.stderr))
                if done.returncode == 0:
                    succeeded += 1
                    self.assertEqual(self.names(), sorted(before + outputs), (limit, command))
                else:
                    failed += 1
                    self.assertRegex(done.stderr.decode(), "File too large|Too many open files|memory|"
                                     "Resource temporarily unavailable", limit)  # the latter: no more threads
                    self.assertEqual(self.names(), before, (limit, command, done.stderr))
                for name in outputs:
                    subprocess.run(["rm", "-rf", self.folder / name], check=True)
        self.assertGreater(failed, 20)
        self.assertGreater(succeeded, 20)

    def test_a_failed_run_leaves_no_folder(self):
        self.refused("run", "m.onnx", "-i", "missing.npy", "-d", "new/deeper")
        (self.folder / "bad.npy").write_bytes(fixtures.npy("<f8", (1,), bytes(8)))
        self.refused("run", "m.onnx", "-i", "bad.npy", "-d", "new/deeper")
        self.assertEqual(self.names(), sorted([*self.before, "bad.npy"]))


class StandardStreamsTest(FilesTest):
    def piped(self, name, *arguments):
        with subprocess.Popen(["cat", name], cwd=self.folder, stdout=subprocess.PIPE) as cat:
            return self.tcast(*arguments, stdin=cat.stdout)

    def test_npy_through_pipes(self):
        wanted = fixtures.npy("<f2", (2,), fixtures.float16(1.5, 2.5))
        done = self.piped("in.npy", "convert", "-", "-o", "-", "--to", "float16", "--verify")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, wanted, b""))
        with open(self.folder / "in.npy", "rb") as file:
            self.assertEqual(self.tcast("convert", "-", "-o", "-", "--to", "float16", stdin=file).stdout, wanted)
        self.assertEqual(self.names(), ["in.npy"])

    def test_safetensors_from_a_pipe_into_a_file(self):
        (self.folder / "in.safetensors").write_bytes(fixtures.safetensors(fixtures.MODEL))
        self.tcast("convert", "in.safetensors", "-o", "direct.safetensors", "--to", "bfloat16")
        done = self.piped("in.safetensors", "convert", "-", "-o", "out.safetensors", "--to", "bfloat16")
        self.assertEqual(done.returncode, 0, done.stderr)
        out, direct = ((self.folder / name).read_bytes() for name in ("out.safetensors", "direct.safetensors"))
        self.assertEqual(out, direct)
        self.assertIn(b"6 tensors", self.piped("in.safetensors", "inspect", "-").stdout)

    def test_what_does_not_work_has_a_reason(self):
        (self.folder / "in.npz").write_bytes(b"PK\3\4" + bytes(30))
        done = self.piped("in.npz", "convert", "-", "-o", "out.npy", "--to", "float16")
        self.assertIn(b"its directory is at its end", done.stderr)
        done = self.piped("in.npy", "convert", "-", "-o", "-", "--output-format", "npz", "--to", "float16")
        self.assertIn(b"only npy is written to standard output", done.stderr)
        (self.folder / "bad.npy").write_bytes(b"\x93NUMPY nonsense")
        done = self.piped("bad.npy", "convert", "-", "-o", "-", "--to", "float16")
        self.assertTrue(done.stderr.startswith(b"tcast: error: -: "), done.stderr)

    def test_version(self):
        self.assertEqual(self.tcast("-V").stdout, self.tcast("--version").stdout)


class NamesTest(FilesTest):
    def test_deceptive_characters_do_not_reach_the_terminal(self):
        for character in "\u00ad\u061c\u200b\u200e\u200f\u2028\u202a\u202e\u2060\u2066\u2069\ufeff\U000e0041":
            (self.folder / "in.safetensors").write_bytes(
                fixtures.safetensors([(f"a{character}b", "F32", [1], fixtures.float32(1.0))]))
            shown = self.tcast("inspect", "in.safetensors").stdout.decode()
            self.assertNotIn(character, shown)
            self.assertIn("a\\x", shown)
            shown = self.tcast("inspect", "in.safetensors", "--json").stdout.decode()
            self.assertNotIn(character, shown)
            self.assertEqual(json.loads(shown)["tensors"][0]["name"], f"a{character}b")

    def test_names_that_are_no_text(self):
        """Overlong, half a pair, beyond the last character; and a long one, of which the message shows both ends."""
        for name in (b"a\xe0\x81\xb0", b"a\xed\xa0\x80", b"a\xf4\x90\x80\x80", b"a" + b"\xff" * 5000 + b"b"):
            (self.folder / "in.gguf").write_bytes(fixtures.gguf([(name, [4], 99, bytes(16))]))
            shown = self.tcast("convert", "in.gguf", "-o", "out.npz", "--to", "float16").stderr.decode()
            self.assertIn('tensor "a\\x', shown)
            self.assertLess(len(shown), 500)


class GgufTest(FilesTest):
    F32, Q8_0, Q2_0 = 0, 8, 42

    def tensors(self, name):
        return {tensor["name"]: tensor
                for tensor in json.loads(self.tcast("inspect", name, "--json", check=True).stdout)["tensors"]}

    def test_a_type_of_a_later_ggml_is_copied(self):
        first = bytes(range(64))
        (self.folder / "in.gguf").write_bytes(
            fixtures.gguf([("a", [128], self.Q2_0, first), ("b", [8], self.F32, fixtures.float32(*range(8)))]))
        self.tcast("convert", "in.gguf", "-o", "out.gguf", "--to", "float16", "--rule", "b=float16", check=True)
        (self.folder / "want.gguf").write_bytes(
            fixtures.gguf([("a", [128], self.Q2_0, first), ("b", [8], 1, struct.pack("<8e", *range(8)))]))
        self.assertEqual((self.folder / "out.gguf").read_bytes(), (self.folder / "want.gguf").read_bytes())
        self.assertEqual(self.tensors("in.gguf")["a"]["dtype"], "type 42")
        self.assertIn("safetensors cannot hold type 42",
                      self.refused("convert", "in.gguf", "-o", "out.safetensors", "--to", "float16"))

    def test_original_shapes(self):
        """ComfyUI's loader gives weights these shapes; q8_0 of ones has the scale 1 and codes of 1."""
        block = struct.pack("<e32b", 1.0, *[1] * 32)
        shapes = {"conv": [2, 4, 2, 2, 2], "plain": [2, 3, 1, 1, 1]}
        (self.folder / "in.gguf").write_bytes(fixtures.gguf(
            [("conv", [32, 2], self.Q8_0, 2 * block), ("plain", [6], self.F32, fixtures.float32(*range(6)))],
            original_shapes=shapes))
        self.assertEqual(self.tensors("in.gguf")["conv"]["shape"], shapes["conv"])
        self.tcast("convert", "in.gguf", "-o", "out.safetensors", "--to", "float16", check=True)
        converted = self.tensors("out.safetensors")
        self.assertEqual({name: converted[name]["shape"] for name in shapes}, shapes)
        self.assertNotIn(b"orig_shape", (self.folder / "out.safetensors").read_bytes())
        self.tcast("convert", "in.gguf", "-o", "copy.gguf", "--to", "float16", "--exclude", ".", check=True)
        self.assertEqual((self.folder / "copy.gguf").read_bytes(), (self.folder / "in.gguf").read_bytes())
        # Under a new name, the key would be that of no tensor.
        self.assertIn("GGUF holds at most 4 dimensions, not 5",
                      self.refused("convert", "in.gguf", "-o", "new.gguf", "--to", "float16", "--exclude", ".", "--rename", "plain=simple"))

    def test_an_original_shape_that_cannot_be(self):
        (self.folder / "in.gguf").write_bytes(fixtures.gguf(
            [("a", [6], self.F32, fixtures.float32(*range(6)))], original_shapes={"a": [7]}))
        self.assertIn("comfy.gguf.orig_shape.a is [7], which is no shape of its 6 elements",
                      self.refused("convert", "in.gguf", "-o", "out.safetensors", "--to", "float16"))


if __name__ == "__main__":
    running.main(__doc__, [("--shim", {"required": True, "help": "the built without_unnamed_files.c", "type": os.path.abspath})])
