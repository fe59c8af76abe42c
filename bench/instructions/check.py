#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of conversions under valgrind and compares them with golden.json.

usage: check.py PROGRAM [--short] [--update]

Clocks differ from machine to machine and minute to minute; instruction counts do not. valgrind knows no AVX-512, so the
targets here are avx2 and portable; what is shared by all targets (dispatch, blocks, tails, small calls) is in them too.
A count more than 10 % above the golden one fails; one that is 10 % below asks to be written down with --update.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).parent / "golden.json"
TOLERANCE = 0.10
LARGE, SMALL = 16384, 16
PAIRS = (
    "float32 float16|float32 bfloat16|float32 float8_e4m3fn|float32 float8_e5m2|float32 float4_e2m1fn|float32 int8|"
    "float16 float32|float16 float8_e4m3fn|bfloat16 float32|float8_e4m3fn float32|float8_e4m3fn bfloat16|"
    "int4 float16|int8 float32|int64 int32|int64 float32|float64 float32"
).split("|")
SHORT = ["float32 bfloat16", "float32 float8_e4m3fn", "int4 float16"]


def instructions(program, target, pair, count, calls):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), *pair.split()]
    environment = dict(os.environ, TENSORCAST_TARGET=target)
    done = subprocess.run([*command, str(count), str(calls)], capture_output=True, text=True, env=environment)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"check.py: {' '.join(command)} failed:\n{done.stderr}")
    return int(found.group(1))


def measure(program, pairs):
    rows = {}
    for target in ("avx2", "portable"):
        for pair in pairs:
            name = f"{target}: {pair.replace(' ', ' -> ')}"
            few, many = (instructions(program, target, pair, LARGE, calls) for calls in (2, 6))
            rows[name + ", per element"] = round((many - few) / (4 * LARGE), 4)
            few, many = (instructions(program, target, pair, SMALL, calls) for calls in (100, 300))
            rows[name + f", a call of {SMALL}"] = round((many - few) / 200, 1)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="three pairs only")
    parser.add_argument("--update", action="store_true", help="write golden.json")
    arguments = parser.parse_args()
    rows = measure(arguments.program, SHORT if arguments.short else PAIRS)
    if arguments.update:
        GOLDEN.write_text(json.dumps(rows, indent=1) + "\n")
        print(f"{len(rows)} counts written")
        return
    golden = json.loads(GOLDEN.read_text())
    worse = 0
    for name, count in rows.items():
        change = count / golden[name] - 1
        if change > TOLERANCE:
            worse += 1
        note = "MORE" if change > TOLERANCE else "fewer: --update" if change < -TOLERANCE else ""
        print(f"{name:<55} {count:>10.3f}  golden {golden[name]:>10.3f}  {change:+7.1%}  {note}")
    print(f"{len(rows)} counts, {worse} above what they were")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
