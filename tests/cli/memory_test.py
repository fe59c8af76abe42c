#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files that would like to be large in memory: every reader keeps to ten times the file and 128 MiB. Large models keep
to 200 MB."""

import io
import json
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import fixtures
import running

MIB = 1 << 20


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def onnx_model(graph=b"", rest=b""):
    node = field(1, fixtures.message((1, "x"), (2, "y"), (4, "Identity")))
    float_type = fixtures.message((1, fixtures.message((1, 1))))
    x, y = (field(number, fixtures.message((1, name), (2, float_type))) for number, name in ((11, "x"), (12, "y")))
    return bytes([8, 10]) + field(7, node + graph + x + y) + field(8, fixtures.message((2, 21))) + rest


def deflated(header, zeros):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("a.npy", "w") as entry:
            entry.write(header)
            for _ in range(zeros // MIB):
                entry.write(bytes(MIB))
    return buffer.getvalue()


def safetensors_header(text):
    return struct.pack("<Q", len(text)) + text


def node(*parts):
    return field(1, fixtures.message((1, "x"), (2, "y"), (4, "Identity")) + b"".join(parts))


def amplifying_files():
    many = MIB
    some_keys = [b"%x" % i for i in range(300_000)]
    yield "alias.yaml", b'a: &a "' + b"x" * 500_000 + b'"\nb: [' + b"*a, " * 4000 + b"*a]\n"
    yield "nested.yaml", b"a: " + b"[" * many
    yield "nested_maps.yaml", b"a: " + b"{" * many
    yield "tags.yaml", b"a: [" + b"!a " * many
    yield "anchors.yaml", b"&a " * many
    yield "list.yaml", b"a: [" + b"0," * many + b"0]"
    yield "list.json", b'{"a":[' + b"0," * 2 * many + b"0]}"
    yield "lists.json", b'{"a":[' + b"[]," * many + b"0]}"
    yield "texts.json", b'{"a":[' + b'"",' * many + b"0]}"
    yield "keys.json", b'{"a":{' + b",".join(b'"%s":0' % key for key in some_keys) + b"}}"
    yield "nodes.onnx", onnx_model(field(1, fixtures.message((4, "A"))) * many)
    yield "chain.onnx", onnx_model(b"".join(field(1, fixtures.message((1, b"%x" % i), (2, b"%x" % (i + 1)), (4, "Identity")))
                                            for i in range(150_000)))
    yield "attributes.onnx", onnx_model(node(field(5, b"") * 2 * many))
    yield "inputs.onnx", onnx_model(node(field(1, b"x") * 2 * many))
    yield "integers.onnx", onnx_model(node(field(5, fixtures.message((1, "a"), (20, 7)) + field(8, bytes(4 * many)))))
    yield "initializers.onnx", onnx_model(field(5, b"") * 2 * many)
    yield "metadata.onnx", onnx_model(rest=field(14, b"") * 2 * many)
    yield "opsets.onnx", onnx_model(rest=field(8, b"") * 2 * many)
    yield "elements.xml", b'<net version="11"><layers>' + b"<a/>" * many + b"</layers></net>"
    yield "attributes.xml", (b'<net version="11"><layers><layer id="0" type="a">'
                             b"<a " + b" ".join(b'a%s=""' % key for key in some_keys) + b"/></layer></layers></net>")
    yield "layers.xml", b'<net version="11"><layers>' + b'<layer id="0" type="a"/>' * 100_000 + b"</layers></net>"
    yield "metadata.pb", bytes([16, 1, 8, 0]) + field(16, b"") * 2 * many
    yield "dims.pb", bytes([16, 1]) + field(1, b"\1" * 4 * many)
    yield "strings.pb", bytes([16, 8, 8]) + varint(2 * many) + field(6, b"") * 2 * many
    yield "metadata.safetensors", safetensors_header(b'{"__metadata__":{' + b",".join(b'"%s":""' % key for key in some_keys) + b"}}")
    yield "shape.safetensors", safetensors_header(b'{"a":{"dtype":"U8","shape":[' + b"1," * many + b'1],"data_offsets":[0,1]}}') + b"x"
    yield "many_strings.npz", deflated(fixtures.npy("|S1", (1 << 26,), b""), 1 << 26)
    yield "long_string.npz", deflated(fixtures.npy(f"<U{1 << 26}", (1,), b""), 1 << 28)
    yield "many_arrays.npz", many_arrays()


def many_arrays():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for i in range(5000):
            archive.writestr(f"{i}", fixtures.npy("|u1", (), b"x"))
    return buffer.getvalue()


class MemoryTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def limited(self, bytes_of_files, *arguments):
        limit = 10 * bytes_of_files + 128 * MIB
        return subprocess.run([running.TCAST, *arguments], cwd=self.folder, capture_output=True, timeout=300,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    def expect_bounded(self, done):
        """The command succeeds or fails, but never runs out of memory."""
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertNotIn(b"out of memory", done.stderr)

    def test_every_reader(self):
        (self.folder / "x.npy").write_bytes(fixtures.npy("<f4", (1,), fixtures.float32(1)))
        for name, content in amplifying_files():
            with self.subTest(name):
                (self.folder / name).write_bytes(content)
                if name.endswith(("onnx", "xml", "yaml", "json")):
                    done = self.limited(len(content), "run", name, "-i", "x=x.npy", "-d", "out")
                else:
                    self.expect_bounded(self.limited(len(content), "inspect", name, "--quiet"))
                    done = self.limited(len(content), "convert", name, "-o", "out.npz", "--to", "float32", "--force",
                                        "--threads", "1")
                self.expect_bounded(done)
                (self.folder / name).unlink()

    def test_strings_are_streamed(self):
        """128 MiB of texts are converted in 128 MiB, program included, whatever they take in the file."""
        count, chunk_count = 1 << 20, 1 << 13
        chunk = b"".join(b"%0128d" % (i % 1000) for i in range(chunk_count))
        header = fixtures.npy("|S128", (count,), b"")
        with open(self.folder / "in.npy", "wb") as file, \
             zipfile.ZipFile(self.folder / "in.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, \
             archive.open("a.npy", "w") as entry:
            for out in (file, entry):
                out.write(header)
                for _ in range(count // chunk_count):
                    out.write(chunk)
        for source, target, dtype in (("in.npy", "numbers.npy", "float32"), ("in.npz", "numbers.npz", "int16"),
                                      ("in.npy", "strings.pb", "string"), ("strings.pb", "again.npy", "float32"),
                                      ("numbers.npy", "strings.npy", "string"), ("strings.npy", "last.npy", "float32")):
            with self.subTest(f"{source} to {target} as {dtype}"):
                done = self.limited(0, "convert", source, "-o", target, "--rule", f".*={dtype}", "--threads", "1",
                                    *(["--verify"] if dtype == "string" else []))
                self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("again.npy", "last.npy"):
            self.assertEqual((self.folder / name).read_bytes(), (self.folder / "numbers.npy").read_bytes())
        self.assertEqual(self.limited(0, "inspect", "in.npz").returncode, 0)

    def test_edits_of_a_model(self):
        """Each of many inputs is renamed."""
        model = onnx_model(node(field(1, b"x") * 4 * MIB))
        (self.folder / "m.onnx").write_bytes(model)
        self.expect_bounded(self.limited(len(model), "onnx", "add-cast", "m.onnx", "--tensor", "x", "--to", "float16",
                                         "-o", "n.onnx"))

    def test_one_external_file_under_many_spellings(self):
        """40 tensors of 8 MiB, all of them the same file."""
        size = 8 * MIB
        (self.folder / "w.bin").write_bytes(bytes(size))
        tensors = b""
        for i in range(40):
            location = "./" * i + "w.bin"
            entry = fixtures.message((1, "location"), (2, location))
            offset = fixtures.message((1, "offset"), (2, str(i)))
            content = field(1, varint(size - 64)) + bytes([16, 3]) + field(8, b"t%d" % i) + bytes([112, 1])
            length = fixtures.message((1, "length"), (2, str(size - 64)))
            tensors += field(5, content + field(13, entry) + field(13, offset) + field(13, length))
        model = onnx_model(tensors)
        (self.folder / "m.onnx").write_bytes(model)
        (self.folder / "x.npy").write_bytes(fixtures.npy("<f4", (1,), fixtures.float32(1)))
        done = self.limited(size + len(model), "run", "m.onnx", "-i", "x=x.npy", "-d", "out")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"tensors overlap in this file", done.stderr)


class ManyWeightsTest(running.CommandTest):
    """As many experts as the largest models have: what is planned, and each shard, keep to 200 MB."""

    weights, shards, limit = 50_000, 5, 200_000_000

    def setUp(self):
        super().setUp()
        (self.folder / "in").mkdir()
        weight_map = {}
        for shard in range(self.shards):
            file = f"model-{shard + 1:05}-of-{self.shards:05}.safetensors"
            names = [f"model.layers.{i // 768}.mlp.experts.{i % 768 // 3}.{('gate', 'up', 'down')[i % 3]}_proj.weight"
                     for i in range(shard, self.weights, self.shards)]
            weight_map |= dict.fromkeys(names, file)
            one = struct.pack("<512H", *range(0x3C00, 0x3E00))
            (self.folder / "in" / file).write_bytes(
                fixtures.safetensors([(name, "BF16", [16, 32], one) for name in names]))
        (self.folder / "in" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        (self.folder / "in" / "config.json").write_text("{}")

    def peak(self, *arguments):
        """In bytes, of a run that succeeds. A parent's memory counts until the child is another program."""
        run = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]).returncode; " \
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done)"
        done = subprocess.run([sys.executable, "-c", run, running.TCAST, *arguments], cwd=self.folder, capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout.split()[-1]) * 1024

    def test_plan_run_and_finish(self):
        self.assertLess(self.peak("plan", "in", "-o", "out", "--to", "nvfp4", "-q"), self.limit)
        self.assertLess((self.folder / "out" / ".tcast" / "plan.json").stat().st_size, 300 * self.weights)
        self.assertLess(self.peak("run-shard", "out", "0", "-q"), self.limit)
        self.tcast("run-shard", "out", "1", "2", "3", "4", "-q", check=True)
        self.assertLess(self.peak("finish", "out", "-q"), self.limit)


if __name__ == "__main__":
    running.main(__doc__)
