#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast do the tools themselves quantize and decode on a CPU, and are their bytes ours?

    bench/blocks/tools.py [TOOL...] [--rows 2048] [--columns 4096] [--ggml GGML_QUANTS.so]

One thread, one tensor, in turns with tensorcast and with a copy of half the bytes read and written; the least processor
time of --rounds counts. Tools and tensorcast return new memory; the copy has its own. Needs the Python package and
tests/blocks/requirements.txt. What is not installed is left out, and said. scripts/checks/blocks compiles the library of ggml.
"""

import argparse
import os
import sys
import time

import numpy as np
import torch
from tool_cases import TOOLS, all_cases

import tensorcast as tc


def seconds_of(run):
    begin = time.process_time()
    run()
    return time.process_time() - begin


def size_of(parts):
    return sum(part.nbytes if isinstance(part, np.ndarray) else part.numel() * part.element_size() for part in parts)


def measure(work, rounds):
    """Least seconds of the tool, of tensorcast and of the copy; and how many bytes of the results differ."""
    theirs, ours = work.tool(), work.ours()
    copied = (size_of(work.sources) + size_of(work.parts_of_ours(ours))) // 2
    source, target = np.ones(copied, np.uint8), np.zeros(copied, np.uint8)
    differing = sum(differing_bytes(a, b) for a, b in zip(work.parts_of_tool(theirs), work.parts_of_ours(ours)))
    del theirs, ours
    runs = (work.tool, work.ours, lambda: np.copyto(target, source))
    least = [seconds_of(run) for run in runs]
    for _ in range(rounds - 1):
        least = [min(before, seconds_of(run)) for before, run in zip(least, runs)]
    return least, differing


def bytes_of(part):
    if not isinstance(part, np.ndarray):
        part = part.detach().contiguous().view(torch.uint8).numpy()
    return np.ascontiguousarray(part).reshape(-1).view(np.uint8)


def differing_bytes(theirs, ours):
    theirs, ours = bytes_of(theirs), bytes_of(ours)
    if theirs.size != ours.size:
        raise ValueError(f"{theirs.size} bytes of the tool, {ours.size} of tensorcast")
    return int(np.count_nonzero(theirs != ours))


def row_of(work, rounds):
    (tool, ours, copy), differing = measure(work, rounds)
    same = "yes" if differing == 0 else f"{differing} bytes not"
    if work.note:
        same += f"; {work.note}"
    return (
        f"| {work.what} | {work.name} | {tool * 1e3:.1f} | {ours * 1e3:.1f} | {tool / ours:.1f} | {tool / copy:.1f} | "
        f"{ours / copy:.1f} | {same} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=f"of {', '.join(TOOLS)}; default: all")
    parser.add_argument("--rows", type=int, default=2048, help="of the weight, a multiple of 128")
    parser.add_argument("--columns", type=int, default=4096, help="a multiple of 256")
    parser.add_argument("--ggml", help="the library with ggml's quantize_row_* functions")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if unknown := set(given.tools) - set(TOOLS):
        parser.error(f"no tool {', '.join(sorted(unknown))}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one thread, of whichever pool
    torch.set_num_threads(1)
    missing = []
    print(f"tensorcast {tc.__version__}, {given.rows} x {given.columns}, milliseconds\n")
    print("| work | tool | its time | ours | ratio | over a copy | ours | the same bytes |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for work in all_cases(given.tools or TOOLS, given.rows, given.columns, given.ggml, missing):
        try:
            print(row_of(work, given.rounds), flush=True)
        except Exception as error:  # of whatever tool
            missing.append(f"{work.what} by {work.name}: {type(error).__name__}: {error}")
    for line in missing:
        print(f"not measured: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
