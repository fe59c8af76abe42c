#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hints: every command and option that a text of the command or the library names exists, and following one helps."""

import pathlib
import re

import fixtures
import running

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*(?<!-)")
TEXT = re.compile(r'R"\((.*?)\)"|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)


def texts():
    """String literals of the command and the library, each with its file; neighbours are joined, as compilers join them."""
    for folder in ("tools/tcast", "src"):
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            if not path.stem.endswith("_test"):
                source = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
                for found in TEXT.finditer(re.sub(r'"\s*\n\s*"', "", source)):
                    yield path.relative_to(ROOT), (found[1] or found[2] or "").replace("\\n", "\n")


class NamesTest(running.CommandTest):
    def setUp(self):
        super().setUp()
        self.commands = {}
        self.add_commands()

    def add_commands(self, *above):
        said = self.done(*above, "--help")
        self.commands[" ".join(above)] = set(OPTION.findall(said)) | {f"--{no}{name}" for name in re.findall(r"--\[no-\]([a-z-]+)", said) for no in ("", "no-")}
        if rows := re.search(r"^Commands:\n(.*?)\n\n", said, re.MULTILINE | re.DOTALL):
            for name in re.findall(r"^  ([a-z][\w-]*)", rows[1], re.MULTILINE):
                self.add_commands(*above, name)

    def test_options_exist(self):
        known = set().union(*self.commands.values()) | {"--no"}  # the start of negated ones
        wrong = {f"{path}: {option}: {text}" for path, text in texts() for option in OPTION.findall(text) if option not in known}
        self.assertEqual(wrong, set())

    def test_options_belong_to_the_command_that_is_named_with_them(self):
        named, wrong = 0, []
        for path, text in texts():
            for words, after in re.findall(r"`?\btcast ((?:onnx )?[a-z][a-z-]+)\b([^`\n|;]*)", text):
                options = set(OPTION.findall(after))
                if words not in self.commands:
                    self.assertEqual(options, set(), f"{path}: {text}")
                    continue
                named += len(options)
                wrong += [f"{path}: {words} has no {option}: {text}" for option in options - self.commands[words]]
        self.assertEqual(wrong, [])
        self.assertGreater(named, 50)


class HintsTest(running.CommandTest):
    """Options of other commands are named with these, and words that are no options stay words."""

    def setUp(self):
        super().setUp()
        fixtures.write_all(self.folder)
        (self.folder / "empty").mkdir()

    def test_an_option_of_another_command(self):
        (self.folder / "unknown.bin").write_bytes(b"neither of them")
        self.assertIn("hint: --raw says it", self.refused("convert", "unknown.bin", "-o", "x.npy", "--to", "float16"))
        self.assertIn("hint: --raw of `tcast convert` says it", self.exits(2, "diff", "unknown.bin", "weights.npy").stderr)

    def test_a_folder_for_a_file(self):
        said = self.refused("onnx", "casts", "empty")
        self.assertIn("hint: `tcast convert`, `tcast inspect`, `tcast verify` and `tcast diff` read a checkpoint's folder", said)

    def test_urls(self):
        for words in (["inspect"], ["onnx", "casts"], ["finish"]):
            self.assertIn("copy it to this machine; in Python,", self.refused(*words, "s3://bucket/x.onnx"), words)

    def test_json_has_the_same_hint(self):
        self.assertIn('"hint": "`tcast convert`, `tcast inspect`,', self.exits(1, "onnx", "casts", "empty", "--json").stdout)

    def test_force_replaces(self):
        """Each command that writes says --force of a file that exists, and writes with it."""
        for words in (
            ["convert", "weights.npy", "-o", "taken", "--output-format", "npy", "--to", "float16"],
            ["onnx", "clean", "cast.onnx", "-o", "taken"],
            ["onnx", "convert", "cast.onnx", "-o", "taken", "--to", "float16"],
            ["onnx", "use-tensorcast", "cast.onnx", "-o", "taken"],
            ["onnx", "add-cast", "relu.onnx", "--tensor", "x", "--to", "float16", "-o", "taken"],
        ):
            (self.folder / "taken").write_bytes(b"old")
            self.assertIn("hint: --force replaces it", self.refused(*words), words)
            self.done(*words, "--force")
            self.assertNotEqual((self.folder / "taken").read_bytes(), b"old", words)


if __name__ == "__main__":
    running.main(__doc__)
