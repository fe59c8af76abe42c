# SPDX-License-Identifier: Apache-2.0
"""Times tensorcast beside other converters on the same memory, one thread each, and compares their results.

usage: peers.py LIBRARY --json FILE [--pairs REGEX] [--mib N] [--rounds N]

All are timed in turns with memcpy of as many bytes, each as often, so that a row's ratios belong together. Results are
compared on 65,536 codes: all of them where the source has 16 bits or fewer, else random ones.
"""

import argparse
import ctypes
import json
import re
import statistics
import sys
import time

import numpy

import converters
from library import Library

COMPARED = 1 << 16
USUAL = (
    r"^(float32->(float16|bfloat16|float8_(e4m3fn(uz)?|e5m2(fnuz)?|e8m0fnu)|float4_e2m1fn|int8|uint8|int4|int32|bool|float64)|"
    r"(float16|bfloat16|float8_e4m3fn|float8_e5m2|int4|int8|uint8|int32|int64|float64)->float32|"
    r"(float8_e4m3fn|int4|int8|bfloat16)->float16|float8_e4m3fn->bfloat16|float16->(bfloat16|float8_e4m3fn|int8|uint8)|int64->int32|int32->int64)$"
)


def seconds(run):
    """Processor time of all threads: what others do on the machine meanwhile does not count, and a second thread does."""
    start = time.process_time()
    run()
    return time.process_time() - start


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


def differs(library, peer, source, target):
    """Whether any of the results is another one."""
    src = codes(library, source).copy()
    ours = numpy.zeros(library.storage_bytes(target, COMPARED), numpy.uint8)
    theirs = numpy.zeros_like(ours)
    library.cast(src, source, ours, target, COMPARED)
    conversion = peer.prepare(source, target, src, theirs, COMPARED)
    conversion.run()
    if conversion.result is not None:
        theirs = conversion.result()
    return not numpy.array_equal(ours, theirs[: ours.size])


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
    row = {"from": source, "to": target, "bytes": src.nbytes + dst.nbytes, "peers": {}}
    conversions = []  # keeps memory alive that a peer only points to
    for peer in peers:
        try:
            entry = {"differs": differs(library, peer, source, target)}
            conversions.append(peer.prepare(source, target, src, dst, count))
            conversions[-1].run()
        except Exception as error:
            print(f"  {peer.name} cannot: {type(error).__name__}: {str(error)[:100]!r}")
            continue
        row["peers"][peer.name] = entry
        contestants[peer.name] = conversions[-1].run
    times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            times[name].append(seconds(run))
    for name, measured in times.items():
        ratios = [time / copy for time, copy in zip(measured, times["memcpy"])]
        spread = {"median": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
        row["peers"].setdefault(name, {}).update(spread, gigabytes_per_second=row["bytes"] / statistics.median(measured) / 1e9)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--json", required=True)
    parser.add_argument("--pairs", default=USUAL, help="regular expression, searched in 'float32->int8'")
    parser.add_argument("--mib", type=int, default=128, help="of source and target together")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    library = Library(arguments.library)
    peers = []
    for peer in converters.ALL:
        try:
            peers.append(peer())
        except ImportError as error:
            print(f"{peer.name}: {error}", file=sys.stderr)
    chosen = [(a, b) for a in library.code for b in library.code if a != b and re.search(arguments.pairs, f"{a}->{b}")]
    rows = []
    for source, target in chosen:
        row = measure(library, peers, source, target, arguments.mib << 20, arguments.rounds)
        rows.append(row)
        cells = "  ".join(
            f"{name} {entry['median']:.2f}" + ("*" if entry.get("differs") else "") for name, entry in row["peers"].items()
        )
        print(f"{len(rows)}/{len(chosen)} {source} -> {target}: {cells}", flush=True)
    document = {"versions": {peer.name: peer.version for peer in peers}, "mib": arguments.mib, "rounds": arguments.rounds, "rows": rows}
    with open(arguments.json, "w") as out:
        json.dump(document, out)


if __name__ == "__main__":
    main()
