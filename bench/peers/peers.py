"""Times tensorcast beside other converters on the same memory, one thread each, and compares their results.

usage: peers.py LIBRARY --json FILE [--pairs REGEX] [--quick]

Every pair is timed in turns with memcpy of as many bytes, so that a row's ratios belong together. Results are compared
on 65,536 codes: all of them where the source has 16 bits or fewer, else random ones.
"""

import argparse
import ctypes
import json
import os
import re
import statistics
import sys
import time

import numpy

import converters
from library import NAMES, Library

COMPARED = 1 << 16
USUAL = re.compile(
    r"^(float32->(float16|bfloat16|float8_.*|float4_e2m1fn|int8|uint8|int4|int32|bool|float64)|"
    r"(float16|bfloat16|float8_e4m3fn|float8_e5m2|int4|int8|uint8|int32|int64|float64)->float32|"
    r"(float8_e4m3fn|int4|int8|bfloat16)->float16|float16->(bfloat16|float8_e4m3fn|int8|uint8)|int64->int32|int32->int64)$"
)


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def codes(library, dtype):
    """65,536 elements, packed: every code of a small type, random ones of a large type."""
    bits = library.bits(dtype)
    size = library.storage_bytes(dtype, COMPARED)
    if dtype == "bool":
        return numpy.arange(COMPARED).astype(numpy.uint8) & 1
    if bits == 16:
        return numpy.arange(COMPARED, dtype=numpy.uint16).view(numpy.uint8)
    if bits <= 8:
        return numpy.resize(numpy.arange(256, dtype=numpy.uint8), size)
    random = numpy.random.default_rng(2)
    data = random.integers(0, 256, size, numpy.uint8)
    half = size // 2  # half of them are ordinary numbers
    data[:half] = library.numbers(dtype, COMPARED)[:half]
    return data


def difference(library, source, target, src, ours, theirs):
    """None where all codes are equal, else how many are not, and the first of them."""
    def elements(packed, dtype):
        bits = library.bits(dtype)
        if bits >= 8:
            return packed.view(f"u{bits // 8}")
        per_byte = 8 // bits
        return (packed[:, None] >> (numpy.arange(per_byte, dtype=numpy.uint8) * bits) & ((1 << bits) - 1)).reshape(-1)

    mine, other = elements(ours, target)[:COMPARED], elements(theirs, target)[:COMPARED]
    wrong = numpy.flatnonzero(mine != other)
    if wrong.size == 0:
        return None
    digits = lambda dtype: max(1, library.bits(dtype) // 4)  # noqa: E731
    first = wrong[0]
    return {
        "codes": int(wrong.size),
        "input": f"{elements(src, source)[first]:#0{digits(source) + 2}x}",
        "ours": f"{mine[first]:#0{digits(target) + 2}x}",
        "theirs": f"{other[first]:#0{digits(target) + 2}x}",
    }


def compare(library, peer, source, target):
    src = codes(library, source)
    src = src.copy()
    ours = numpy.zeros(library.storage_bytes(target, COMPARED), numpy.uint8)
    theirs = numpy.zeros_like(ours)
    library.cast(src, source, ours, target, COMPARED)
    conversion = peer.prepare(source, target, src, theirs, COMPARED)
    conversion.run()
    if conversion.result is not None:
        theirs = conversion.result()
    return difference(library, source, target, src, ours, theirs)


def measure(library, peers, source, target, bytes_in_all, rounds):
    bits = library.bits(source) + library.bits(target)
    count = bytes_in_all * 8 // bits // 65536 * 65536
    src = library.numbers(source, count)
    dst = numpy.ones(library.storage_bytes(target, count), numpy.uint8)
    half = (src.nbytes + dst.nbytes) // 2
    copy_from, copy_to = numpy.ones(half, numpy.uint8), numpy.ones(half, numpy.uint8)
    contestants = {
        "memcpy": lambda: ctypes.memmove(copy_to.ctypes.data, copy_from.ctypes.data, half),
        "tensorcast": lambda: library.cast(src, source, dst, target, count),
    }
    usual = USUAL.search(f"{source}->{target}") is not None
    row = {"from": source, "to": target, "usual": usual, "count": count, "bytes": src.nbytes + dst.nbytes, "peers": {}}
    conversions = []  # keeps memory alive that a peer only points to
    for peer in peers:
        entry = row["peers"][peer.name] = {}
        try:
            entry["differs"] = compare(library, peer, source, target)
            conversions.append(peer.prepare(source, target, src, dst, count))
            conversions[-1].run()
            contestants[peer.name] = conversions[-1].run
        except Exception as error:
            entry.clear()
            entry["cannot"] = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
    times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            if len(times[name]) < 2 or sum(times[name]) < 1.0:
                times[name].append(seconds(run))
    copy = statistics.median(times["memcpy"])
    for name, measured in times.items():
        ratio = {"ms": round(min(measured) * 1e3, 3), "times_memcpy": round(statistics.median(measured) / copy, 3)}
        row["peers"].setdefault(name, {}).update(ratio)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--json", required=True)
    parser.add_argument("--pairs", default=None, help="regular expression; without it, all pairs, or with --quick the usual")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    pairs = re.compile(arguments.pairs or (USUAL if arguments.quick else ""))

    library = Library(arguments.library)
    peers = []
    for peer in converters.ALL:
        try:
            peers.append(peer())
        except ImportError as error:
            print(f"{peer.name}: {error}", file=sys.stderr)
    versions = {peer.name: peer.version for peer in peers}
    rows = []
    chosen = [(a, b) for a in NAMES for b in NAMES if a != b and pairs.search(f"{a}->{b}")]
    for done, (source, target) in enumerate(chosen):
        row = measure(library, peers, source, target, (32 if arguments.quick else 64) << 20, 3 if arguments.quick else 5)
        rows.append(row)
        cells = "  ".join(
            f"{name} {entry['times_memcpy']:.2f}" + ("*" if entry.get("differs") else "")
            for name, entry in row["peers"].items()
            if "times_memcpy" in entry and name != "memcpy"
        )
        print(f"{done + 1}/{len(chosen)} {source} -> {target}: {cells}", flush=True)
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read()) if os.path.exists("/proc/cpuinfo") else None
    document = {
        "version": library.lib.tc_version().decode(),
        "cpu": model.group(1) if model else "unknown",
        "cores": os.cpu_count(),
        "peers": versions,
        "rows": rows,
    }
    with open(arguments.json, "w") as out:
        json.dump(document, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
