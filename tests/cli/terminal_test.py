#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What only a terminal shows: the progress bar, colours, and that Ctrl-C leaves nothing behind."""

import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import tempfile
import termios
import unittest

import running

COLUMNS = 100
# Holes read as zeros and take no space. Long enough that the bar appears on any machine.
HUGE_BYTES = 16 << 30


class Terminal:
    """A program whose stdout and stderr are a terminal."""

    def __init__(self, arguments, folder, columns=COLUMNS, **environment):
        self.reading_end, child_end = pty.openpty()
        fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        variables.update({"TERM": "xterm", **environment})
        self.process = subprocess.Popen([running.TCAST, *arguments], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                                        stdout=child_end, stderr=child_end)
        os.close(child_end)
        self.text = ""

    def read_until(self, condition):
        """Reads on until `condition(text)` holds or the program has ended."""
        while not condition(self.text):
            select.select([self.reading_end], [], [], 60)
            try:
                piece = os.read(self.reading_end, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            self.text += piece.decode("utf-8", "replace")
        return self.text

    def finish(self):
        self.read_until(lambda text: False)
        os.close(self.reading_end)
        return self.process.wait(60)


class TerminalTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def start_long_conversion(self):
        with open(self.folder / "huge.bin", "wb") as file:
            file.truncate(HUGE_BYTES)
        (self.folder / "out.bin").write_bytes(b"the old file")
        return Terminal(["convert", "huge.bin", "-o", "out.bin", "--force", "--raw", "--from", "float32", "--shape",
                         str(HUGE_BYTES // 4), "--rule", ".*=uint2"], self.folder)

    def interrupt_with(self, number):
        terminal = self.start_long_conversion()
        bar = terminal.read_until(lambda text: "left" in text)
        self.assertIn("B/s", bar, "the work ended before the progress bar appeared")
        terminal.process.send_signal(number)
        self.assertEqual(terminal.finish(), 128 + number, terminal.text)
        self.assertIn("tcast: interrupted; nothing was written", terminal.text)
        self.assertEqual(sorted(os.listdir(self.folder)), ["huge.bin", "out.bin"])
        self.assertEqual((self.folder / "out.bin").read_bytes(), b"the old file")
        return bar

    def test_ctrl_c_leaves_the_old_file(self):
        bar = self.interrupt_with(signal.SIGINT)
        self.assertIn("%", bar)
        for line in bar.replace("\x1b[K", "").split("\r"):
            self.assertLess(len(line), COLUMNS)

    def test_termination_leaves_the_old_file(self):
        self.interrupt_with(signal.SIGTERM)

    def test_hanging_up_leaves_the_old_file(self):
        self.interrupt_with(signal.SIGHUP)

    def test_colors_only_when_wanted(self):
        def shown(*arguments, **environment):
            terminal = Terminal(["explain", "0.1", *arguments], self.folder, **environment)
            self.assertEqual(terminal.finish(), 0)
            return terminal.text

        self.assertIn("\x1b[", shown())
        self.assertNotIn("\x1b[", shown(NO_COLOR="1"))
        self.assertNotIn("\x1b[", shown("--color", "never"))
        self.assertNotIn("\x1b[", shown(TERM="dumb"))
        self.assertIn("\x1b[", shown("--color", "always", NO_COLOR="1"))

    def test_what_was_destroyed_is_red(self):
        (self.folder / "big.bin").write_bytes(b"\xff\xff\x7f\x7f" * 8)  # float32's largest number

        def shown(**environment):
            terminal = Terminal(["convert", "big.bin", "-o", "out.bin", "--force", "--raw", "--from", "float32", "--shape",
                                 "8", "--to", "float16"], self.folder, **environment)
            self.assertEqual(terminal.finish(), 0, terminal.text)
            return terminal.text

        self.assertIn("warning: \x1b[31mfloat32 to float16: 8 of 8 elements", shown())
        self.assertNotIn("\x1b[31m", shown(NO_COLOR="1"))
        self.assertNotIn("\x1b[31m", shown(TERM="dumb"))

    def test_manual_pages_are_roff(self):
        pages = self.folder / "man"
        subprocess.run([running.TCAST, "__man", pages], check=True)
        names = {page.name for page in pages.iterdir()}
        self.assertLessEqual({"tcast.1", "tcast-convert.1", "tcast-onnx.1", "tcast-onnx-convert.1"}, names)
        text = (pages / "tcast-convert.1").read_text(encoding="utf-8")
        self.assertTrue(text.startswith(".TH tcast\\-convert 1 "))
        for part in (".SH ARGUMENTS\n", ".SH WHAT IS WRITTEN\n", "\\fB\\-\\-strict\\-loss\\fR", ".SH EXAMPLES\n"):
            self.assertIn(part, text)
        known = (".TH ", ".SH ", ".TP", ".B ", ".nf", ".fi", ".br")
        self.assertEqual([line for line in text.splitlines() if line.startswith((".", "'")) and not line.startswith(known)], [])

    def test_table_fits_the_terminal(self):
        terminal = Terminal(["explain", "0.1", "--color", "never"], self.folder, columns=110)
        self.assertEqual(terminal.finish(), 0)
        self.assertLessEqual(max(len(line) for line in terminal.text.splitlines()), 110)


if __name__ == "__main__":
    running.main(__doc__)
