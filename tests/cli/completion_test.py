#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Tab key offers in bash, zsh and fish."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import running

SCRIPTS = pathlib.Path(__file__).parents[2] / "tools/tcast/commands"
SCRIPT = SCRIPTS / "completion.bash"


def completions(line):
    words = [running.TCAST, *line.split(" ")[1:]]
    program = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tcast; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", program, SCRIPT, *words], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


@unittest.skipUnless(shutil.which("bash"), "needs bash")
class CompletionTest(unittest.TestCase):
    def test_commands(self):
        self.assertIn("convert", completions("tcast "))
        self.assertEqual(completions("tcast in"), ["inspect", "info"])
        self.assertEqual(completions("tcast onnx add"), ["add-cast"])

    def test_options(self):
        self.assertEqual(completions("tcast convert x --rep"), ["--report"])
        self.assertEqual(completions("tcast --v"), ["--version"])
        self.assertIn("--output", completions("tcast convert --"))
        self.assertEqual(completions("tcast onnx add-cast m.onnx --out"), ["--output-name", "--output"])

    def test_values(self):
        self.assertEqual(completions("tcast convert x --to float8_e4m3f"), ["float8_e4m3fn", "float8_e4m3fnuz"])
        targets = completions("tcast convert x --to ")
        self.assertEqual(len(targets), len(set(targets)))
        self.assertLessEqual({"bfloat16", "string", "nvfp4", "q4_k", "int8-channel"}, set(targets))
        self.assertEqual(completions("tcast convert x --invalid "), ["default", "error"])
        self.assertEqual(completions("tcast inspect x --sort "), ["file", "bytes", "name", "snr"])

    def test_values_behind_an_equals_sign(self):
        self.assertEqual(completions("tcast convert x --invalid = d"), ["default"])

    def test_the_command_prints_the_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            done = subprocess.run([running.TCAST, "completion", shell], capture_output=True, text=True, check=True, timeout=60)
            self.assertEqual(done.stdout, (SCRIPTS / f"completion.{shell}").read_text())
        self.assertEqual(completions("tcast completion z"), ["zsh"])

    def test_files_are_left_to_bash(self):
        self.assertEqual(completions("tcast convert "), [])
        self.assertEqual(completions("tcast convert x -o "), [])


@unittest.skipUnless(shutil.which("zsh"), "needs zsh")
class ZshTest(unittest.TestCase):
    def offered(self, line):
        """What the function hands to zsh's own, which would filter and show it."""
        program = """
            compdef() { }
            _describe() { print -l -- "${(@P)2}" }
            _files() { print files }
            script=$1; shift
            source $script
            words=("$@"); CURRENT=$#
            _tcast
        """
        done = subprocess.run(["zsh", "-f", "-c", program, "zsh", SCRIPTS / "completion.zsh", running.TCAST, *line.split(" ")[1:]],
                              capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def test_offers(self):
        self.assertIn("convert:Convert the tensors of a file or a checkpoint to another type", self.offered("tcast "))
        self.assertIn("float8_e4m3fn", self.offered("tcast convert x --to "))
        self.assertIn("--to=bfloat16", self.offered("tcast convert x --to=b"))
        self.assertEqual(self.offered("tcast convert x --invalid "), ["default", "error"])
        self.assertTrue(any(line.startswith("--output:") for line in self.offered("tcast convert --")))
        self.assertEqual(self.offered("tcast convert "), ["files"])


@unittest.skipUnless(shutil.which("fish"), "needs fish")
class FishTest(unittest.TestCase):
    def offered(self, line):
        with tempfile.TemporaryDirectory() as home:
            (pathlib.Path(home) / "only-file").touch()
            done = subprocess.run(["fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]',
                                   SCRIPTS / "completion.fish", line], capture_output=True, text=True, check=True,
                                  cwd=home, timeout=60,
                                  env={**os.environ, "HOME": home, "PATH": f"{os.path.dirname(running.TCAST)}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def test_offers(self):
        self.assertIn("convert\tConvert the tensors of a file or a checkpoint to another type", self.offered("tcast "))
        self.assertEqual(self.offered("tcast convert x --to float8_e4m3f"), ["float8_e4m3fn", "float8_e4m3fnuz"])
        self.assertEqual(self.offered("tcast convert x --invalid "), ["default", "error"])
        self.assertEqual([line.split("\t")[0] for line in self.offered("tcast convert x --rep")], ["--report"])
        self.assertEqual(self.offered("tcast convert "), ["only-file"])


if __name__ == "__main__":
    running.main(__doc__)
