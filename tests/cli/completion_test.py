#!/usr/bin/env python3
"""What the Tab key offers in bash."""

import argparse
import os
import pathlib
import shutil
import subprocess
import unittest

TCAST = ""
SCRIPT = pathlib.Path(__file__).parents[2] / "tools/tcast/completion.bash"


def completions(line):
    words = [TCAST, *line.split(" ")[1:]]
    program = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tcast; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", program, SCRIPT, *words], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


@unittest.skipUnless(shutil.which("bash"), "needs bash")
class CompletionTest(unittest.TestCase):
    def test_commands(self):
        self.assertIn("convert", completions("tcast "))
        self.assertEqual(completions("tcast in"), ["inspect", "info"])
        self.assertEqual(completions("tcast graph "), ["add-cast"])
        self.assertEqual(completions("tcast onnx add"), ["add-cast"])

    def test_options(self):
        self.assertEqual(completions("tcast convert x --rep"), ["--report"])
        self.assertEqual(completions("tcast --v"), ["--version"])
        self.assertIn("--output", completions("tcast convert --"))
        self.assertEqual(completions("tcast onnx add-cast m.onnx --out"), ["--output-name", "--output"])

    def test_values(self):
        self.assertEqual(completions("tcast convert x --to float8_e4"), ["float8_e4m3fn", "float8_e4m3fnuz"])
        self.assertEqual(len(completions("tcast convert x --to ")), 26)
        self.assertEqual(completions("tcast convert x --invalid "), ["default", "error"])
        self.assertEqual(completions("tcast inspect x --sort "), ["file", "bytes", "name", "snr"])

    def test_files_are_left_to_bash(self):
        self.assertEqual(completions("tcast convert "), [])
        self.assertEqual(completions("tcast convert x -o "), [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcast", required=True)
    known, rest = parser.parse_known_args()
    TCAST = os.path.abspath(known.tcast)
    unittest.main(argv=[__file__, *rest])
