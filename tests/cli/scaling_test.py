#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ten times the tensors take about ten times the processor's work in every command; a quadratic step takes a hundred."""

import io
import json
import os
import pathlib
import resource
import struct
import subprocess
import tempfile
import unittest
import zipfile

import fixtures
import running

FEW, MANY = 1_000, 10_000
MOST = 35  # times the work for ten times the tensors; caches and the allocator take more than ten


class ScalingTest(unittest.TestCase):
    def setUp(self):
        # Without syncing, which takes most of the time on a disk and is not the command's work.
        memory = pathlib.Path("/dev/shm")
        temporary = tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def seconds(self, *arguments):
        """The smallest processor time of three runs."""
        def once():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([running.TCAST, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        first = once()
        return first if first > 1 else min(first, once(), once())

    def expect_linear(self, make, *arguments):
        taken = []
        for count in (FEW, MANY):
            make(count)
            taken.append(self.seconds(*arguments))
        # Starting the program takes too little time to hide a quadratic step, which would take seconds.
        self.assertLess(taken[1], MOST * max(taken[0], 0.01), f"{' '.join(arguments)}: {taken} seconds")

    def make_safetensors(self, count):
        tensors = [("layer." * 20 + f"{i}.weight", "F32", [2], fixtures.float32(1, i)) for i in range(count)]
        (self.folder / "in.safetensors").write_bytes(self.safetensors(tensors))

    def safetensors(self, tensors):
        header = {name: {"dtype": dtype, "shape": shape, "data_offsets": [8 * i, 8 * i + 8]}
                  for i, (name, dtype, shape, _) in enumerate(tensors)}
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in tensors)

    def make_npz(self, count):
        array = fixtures.npy("<f4", (2,), fixtures.float32(1, 2))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for i in range(count):
                archive.writestr(zipfile.ZipInfo("layer." * 20 + f"{i}.npy"), array,
                                 zipfile.ZIP_DEFLATED if i % 2 else zipfile.ZIP_STORED)
        (self.folder / "in.npz").write_bytes(buffer.getvalue())

    def make_pt(self, pickled):
        with zipfile.ZipFile(self.folder / "in.pt", "w") as archive:
            archive.writestr("archive/data.pkl", b"\x80\x02" + pickled + b".")
            archive.writestr("archive/version", b"3\n")

    def make_dictionaries(self, count):
        """Dictionaries that share their attributes, of which there are as many."""
        attributes = b"}q\0(" + b"".join(b"X" + struct.pack("<I", 5) + b"%05d" % i + b"N" for i in range(count)) + b"u0"
        self.make_pt(attributes + b"](" + b"}h\0b" * count + b"e")

    def make_model(self, count):
        """Names of outputs share their first 100 characters."""
        names = ["output" * 20 + str(i) for i in range(count)]
        nodes = [fixtures.onnx_node("Identity", ["x"], name, "") for name in names]
        (self.folder / "m.onnx").write_bytes(fixtures.onnx_model(nodes, {"x": 1}, {name: 1 for name in names}))
        (self.folder / "x.npy").write_bytes(fixtures.npy("<f4", (1,), fixtures.float32(1)))

    def test_inspect(self):
        for name, make in (("in.safetensors", self.make_safetensors), ("in.npz", self.make_npz)):
            self.expect_linear(make, "inspect", name)
            self.expect_linear(make, "inspect", name, "--stats", "--threads", "1", "--candidates", "float16")

    def test_dictionaries_that_share_attributes(self):
        self.expect_linear(self.make_dictionaries, "inspect", "in.pt")

    def test_long_integers(self):
        """They take about the work of as many digits; digit by digit they took a thousand times that."""
        count, content = 3000, b"\xa5" * 1024
        digits = b"%d" % int.from_bytes(content, "little", signed=True)
        self.make_pt(b"](" + (b"L" + digits + b"L\n") * count + b"e")
        text = self.seconds("inspect", "in.pt")
        self.make_pt(b"](" + (b"\x8b" + struct.pack("<I", len(content)) + content) * count + b"e")
        self.assertLess(self.seconds("inspect", "in.pt"), MOST * max(text, 0.03))

    def test_convert(self):
        for name, make in (("in.safetensors", self.make_safetensors), ("in.npz", self.make_npz)):
            self.expect_linear(make, "convert", name, "-o", "out" + name[2:], "--to", "float16", "--verify", "--force",
                               "--threads", "1", "--rule", "[02468].weight$|[02468]$=bfloat16", "--report", "r.json")

    def test_run(self):
        self.expect_linear(self.make_model, "run", "m.onnx", "-i", "x=x.npy", "-d", "out", "--force", "--threads", "1")

    def test_add_cast(self):
        self.expect_linear(self.make_model, "onnx", "add-cast", "m.onnx", "--tensor", "x", "--to", "float16", "-o",
                           "n.onnx", "--force")


if __name__ == "__main__":
    running.main(__doc__)
