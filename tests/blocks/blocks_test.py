#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that quantizers wrote: each weight is decoded to the bytes that its tool decodes (make_fixtures.py)."""

import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

import checkpoints  # noqa: E402
import running  # noqa: E402

FIXTURES = sorted(path for path in (HERE / "fixtures").iterdir() if path.is_dir())


class ToolTest(running.CommandTest):
    def decoded(self, fixture, dtype):
        """{name: (type, shape, bytes)} of the weights."""
        out = self.folder / f"{fixture.name}-{dtype}"
        if (fixture / "model.gguf").exists():
            file = out.with_suffix(".safetensors")
            self.done("convert", fixture / "model.gguf", "-o", file, "--to", dtype)
            return checkpoints.read(file)[0]
        source = self.folder / f"{fixture.name}-{dtype}-in"
        source.mkdir()
        for path in fixture.iterdir():
            if path.name not in ("decoded.json", "weights.safetensors"):
                (source / path.name).write_bytes(path.read_bytes())
        self.done("convert", source, "-o", out, "--to", dtype)
        return checkpoints.read(out / "model.safetensors")[0]

    def test_every_weight_is_what_its_tool_decodes(self):
        self.assertGreaterEqual(len(FIXTURES), 53)
        for fixture in FIXTURES:
            wanted = json.loads((fixture / "decoded.json").read_text())
            for dtype in sorted({weight["dtype"] for weight in wanted.values()}):
                with self.subTest(f"{fixture.name} {dtype}"):
                    tensors = self.decoded(fixture, dtype)
                    for name, weight in wanted.items():
                        _, shape, content = tensors[name]
                        self.assertEqual(shape, weight["shape"])
                        self.assertEqual(hashlib.sha256(content).hexdigest(), weight["sha256"], name)

    def test_convrot_makes_the_codes_of_its_tool(self):
        """Of weights whose sums are exact in any order: comfy-kitchen's product of matrices has none that is fixed."""
        for size in (16, 64):
            fixture = HERE / f"fixtures/comfyui-convrot-{size}"
            out = self.folder / f"convrot-{size}.safetensors"
            self.done("convert", fixture / "weights.safetensors", "-o", out, "--to", "int8-channel", "--recipe", "comfy",
                      "--spelling", "comfyui", "--convrot", str(size))
            made, metadata = checkpoints.read(out)
            wanted, wanted_metadata = checkpoints.read(fixture / "model.safetensors")
            self.assertEqual(made["a.weight"], wanted["a.weight"])
            self.assertEqual(made["a.weight_scale"], wanted["a.weight_scale"])
            key = "_quantization_metadata"
            self.assertEqual(json.loads(metadata[key]), json.loads(wanted_metadata[key]))


if __name__ == "__main__":
    running.main(__doc__)
