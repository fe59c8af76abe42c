#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tcast commands and compares what they print with what the case files say.

A case file is a session in a fresh folder that holds the files of fixtures.py:

    # A comment.
    $ tcast promote int8 uint8
    ! tcast: error: ...      a line of stderr
    ? 1                      the exit status, when it is not 0
    $ tcast promote int8 int4
    | int8                   a line of stdout

`run_cases.py --tcast PROGRAM --update [CASE...]` rewrites the expectations; read the difference before you commit it.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import fixtures

CASES = pathlib.Path(__file__).resolve().parent / "cases"

# What differs from run to run and from machine to machine.
VARIABLE = [
    (re.compile(r" in [0-9.]+ (s|min [0-9]+ s), [0-9.]+ [MG]B/s"), " in TIME, RATE"),
    (re.compile(r'"seconds": [0-9.e+-]+'), '"seconds": TIME'),
]


def steady(text):
    for pattern, replacement in VARIABLE:
        text = pattern.sub(replacement, text)
    return text


def marked(marker, text):
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += " (no newline at the end)"
    return [f"{marker} {line}".rstrip() for line in lines]


class Crash(Exception):
    """The program died of a signal: never an expectation."""


def run(command, folder, environment):
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True, timeout=120)
    if done.returncode < 0 or done.returncode > 130:
        raise Crash(f"$ {command}\n{done.stderr.decode('utf-8', 'backslashreplace')}status {done.returncode}")
    lines = marked("|", steady(done.stdout.decode("utf-8", "backslashreplace"))) if done.stdout else []
    lines += marked("!", steady(done.stderr.decode("utf-8", "backslashreplace"))) if done.stderr else []
    if done.returncode != 0:
        lines.append(f"? {done.returncode}")
    return lines


def actual_session(case, environment):
    """The case file's lines with today's output."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        fixtures.write_all(pathlib.Path(folder))
        for line in case.read_text(encoding="utf-8").splitlines():
            if line[:1] in ("|", "!", "?"):
                continue
            lines.append(line)
            if line.startswith("$ "):
                lines += run(line[2:], folder, environment)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcast", required=True, type=pathlib.Path, help="the program under test")
    parser.add_argument("--update", action="store_true", help="rewrite the expectations")
    parser.add_argument("cases", nargs="*", type=pathlib.Path, help="case files (default: all)")
    arguments = parser.parse_args()

    if not arguments.tcast.is_file():
        parser.error(f"{arguments.tcast} does not exist")

    environment = {name: value for name, value in os.environ.items()
                   if name not in ("NO_COLOR", "TENSORCAST_TARGET", "TERM")}
    environment["PATH"] = f"{arguments.tcast.resolve().parent}{os.pathsep}{environment.get('PATH', '')}"
    environment["LC_ALL"] = "C"

    failed = 0
    for case in arguments.cases or sorted(CASES.glob("*.case")):
        expected = case.read_text(encoding="utf-8").splitlines()
        try:
            actual = actual_session(case, environment)
        except Crash as crash:
            failed += 1
            print(f"{case.name}: crashed\n{crash}")
            continue
        if actual == expected:
            continue
        if arguments.update:
            case.write_text("\n".join(actual) + "\n", encoding="utf-8")
            print(f"updated {case.name}")
            continue
        failed += 1
        print("\n".join(difflib.unified_diff(expected, actual, f"{case.name} expected", f"{case.name} actual",
                                             lineterm="")))
        print(f"replay: {sys.argv[0]} --tcast {arguments.tcast} {case}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
