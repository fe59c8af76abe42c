#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of conversions on 64-bit ARM in an emulator, estimates their cycles on three cores, and
writes docs/benchmarks/neon.md.

usage: neon.py [--llvm FOLDER] [--pairs REGEX] [--out FILE]

Needs what `scripts/bootstrap --arm` installs, and llvm-mc and llvm-mca of LLVM 17 or newer, which know the cores: of
Debian's llvm-19, whose programs are in /usr/lib/llvm-19/bin (--llvm FOLDER). qemu writes down each block of instructions
that it runs. The difference of two runs with 2 and 6 calls has no start-up in it.
"""

import argparse
import collections
import datetime
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/neon"
CORES = ("apple-m1", "neoverse-n1", "neoverse-v1")
COUNT, FEW, MANY = 16384, 2, 6
LEAST_SHARE = 0.01  # blocks with less of all instructions are not estimated
TO = "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int32 int64 bool"
FROM = "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int32 int64"
PAIRS = [("float32", to) for to in TO.split()] + [(source, "float32") for source in FROM.split()]
for one, other in (("float16", "bfloat16"), ("int64", "int32"), ("float8_e4m3fn", "bfloat16")):
    PAIRS += [(one, other), (other, one)]
BITS = {"bool": 8} | {name: int(re.search(r"\d+", name).group()) for pair in PAIRS for name in pair if name != "bool"}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, capture_output=True, **options).stdout


def build():
    off = ["-DTENSORCAST_BUILD_TESTS=OFF", "-DTENSORCAST_WITH_TBB=OFF"]
    run("cmake", "--preset", "arm", "-B", BUILD, *off, cwd=ROOT)
    run("cmake", "--build", BUILD, "--target", "tensorcast-core")
    program = BUILD / "tensorcast_instructions"
    source, library = ROOT / "bench/instructions/main.cpp", BUILD / "src/libtensorcast-core.a"
    run("aarch64-linux-gnu-g++", "-std=c++20", "-O2", "-static", "-I", ROOT / "include", source, library, "-o", program)
    return program


def blocks_run(program, pair, calls):
    """How often each block ran, by its address, and the codes of its instructions."""
    with tempfile.NamedTemporaryFile() as log:
        run("qemu-aarch64-static", "-d", "exec,nochain,in_asm", "-D", log.name, program, *pair, COUNT, calls)
        runs, codes, current = collections.Counter(), {}, None
        for line in open(log.name):
            if line.startswith("Trace"):
                runs[int(line.split("/")[1], 16)] += 1
            elif line.startswith("IN:"):
                current = []
            elif current is not None and (found := re.match(r"0x([0-9a-f]+):\s+([0-9a-f]{8})\s", line)):
                if not current:
                    codes[int(found[1], 16)] = current
                current.append(found[2])
            else:
                current = None
        return runs, codes


def cycles(llvm, codes, core):
    """Of one run of a block, if it runs again and again."""
    little_endian = " ".join("0x" + code[i : i + 2] for code in codes for i in (6, 4, 2, 0))
    text = run(llvm / "llvm-mc", "--disassemble", "-triple=aarch64", "-mattr=+all", input=little_endian)
    report = run(llvm / "llvm-mca", "-mtriple=aarch64", f"-mcpu={core}", "-iterations=100", input=text)
    return int(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / 100


def measure(program, llvm, pair):
    few, _ = blocks_run(program, pair, FEW)
    many, codes = blocks_run(program, pair, MANY)
    elements = COUNT * (MANY - FEW)
    blocks = [(codes[at], many[at] - few[at]) for at in many if many[at] > few[at]]
    instructions = sum(len(code) * times for code, times in blocks)
    hot = [(code, times) for code, times in blocks if len(code) * times >= LEAST_SHARE * instructions]
    estimates = [sum(cycles(llvm, code, core) * times for code, times in hot) / elements for core in CORES]
    return instructions / elements, estimates


def page(rows, version):
    lines = [
        "# 64-bit ARM, counted",
        "",
        f"Written by `bench/instructions/neon.py` on {datetime.date.today().isoformat()}; no such CPU was at hand to measure with.",
        f"Instructions for an element are counted in an emulator (GCC 12, calls of {COUNT} elements in the cache, NEON). Cycles",
        f"are {version}'s estimates from the blocks that ran, as if each ran again and again, with all data in the",
        "first-level cache and as many instructions fetched as the core can execute. In brackets: bytes read and written in a",
        "cycle.",
        "",
        "Sources of 8 bits are looked up in tables by four instructions (TBL, TBX) for 16 codes and byte of a result. NaN are",
        "made quiet, which is most of what bfloat16 takes.",
        "",
        "| from | to | instructions | " + " | ".join(f"cycles, {core}" for core in CORES) + " |",
        "|" + " --- |" * (3 + len(CORES)),
    ]
    for (source, target), instructions, estimates in rows:
        size = (BITS[source] + BITS[target]) / 8
        cells = " | ".join(f"{estimate:.2f} ({size / estimate:.0f})" for estimate in estimates)
        lines.append(f"| {source} | {target} | {instructions:.2f} | {cells} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llvm", type=pathlib.Path, default="/usr/lib/llvm-19/bin")
    parser.add_argument("--pairs", default="", help="regular expression, searched in 'float32->int8'")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks/neon.md")
    arguments = parser.parse_args()
    program, rows = build(), []
    for pair in PAIRS:
        if re.search(arguments.pairs, "->".join(pair)):
            rows.append((pair, *measure(program, arguments.llvm, pair)))
            print(*pair, f"{rows[-1][1]:.3f}", *(f"{estimate:.3f}" for estimate in rows[-1][2]), flush=True)
    version = re.search(r"LLVM version \d+", run(arguments.llvm / "llvm-mca", "--version"))[0]
    arguments.out.write_text(page(rows, version.replace("LLVM version", "llvm-mca of LLVM")))


if __name__ == "__main__":
    main()
