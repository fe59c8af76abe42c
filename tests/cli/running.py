# SPDX-License-Identifier: Apache-2.0
"""The command under test, run in a folder of its own."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TCAST = ""
given = argparse.Namespace()  # the options of the test's own command line


class CommandTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.out = self.folder / "out"

    def tcast(self, *arguments, **options):
        words = [word if isinstance(word, bytes) else str(word) for word in arguments]
        options = {"text": True, "timeout": 120, **options}
        return subprocess.run([TCAST, *words], cwd=self.folder, capture_output=True, **options)

    def exits(self, status, *arguments, **options):
        done = self.tcast(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def done(self, *arguments, **options):
        return self.exits(0, *arguments, **options).stdout

    def refused(self, *arguments, **options):
        return self.exits(1, *arguments, **options).stderr


def main(description, options=()):
    """Runs the tests of the program that calls it. `options`: more of them, as (name, arguments of add_argument)."""
    global TCAST
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tcast", required=True)
    for name, arguments in options:
        parser.add_argument(name, **arguments)
    _, rest = parser.parse_known_args(namespace=given)
    TCAST = os.path.abspath(given.tcast)
    unittest.main(argv=[sys.argv[0], *rest])
