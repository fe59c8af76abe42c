#!/usr/bin/env python3
"""What the command does to files when names, limits and signals get in its way."""

import argparse
import os
import pathlib
import subprocess
import tempfile
import unittest

import fixtures

TCAST = ""


class FilesTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "in.npy").write_bytes(fixtures.npy("<f4", (2,), fixtures.float32(1.5, 2.5)))

    def tcast(self, *arguments, **options):
        return subprocess.run([TCAST, *map(str, arguments)], cwd=self.folder, capture_output=True, timeout=60, **options)

    def refused(self, *arguments, **options):
        done = self.tcast(*arguments, **options)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr.decode()

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
                               " -o out.safetensors --to float16 --report r.json --force", TCAST],
                              cwd=self.folder, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"r.json: cannot write: File too large", done.stderr)
        self.assertEqual((self.folder / "r.json").read_text(), "old")
        self.assertEqual(self.names(), ["in.npy", "in.safetensors", "out.safetensors", "r.json"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcast", required=True)
    known, rest = parser.parse_known_args()
    TCAST = os.path.abspath(known.tcast)
    unittest.main(argv=[__file__, *rest])
