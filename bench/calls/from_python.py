# SPDX-License-Identifier: Apache-2.0
"""Times what Python programs feel besides large casts: small calls, arrays of scales, transposes, PyTorch's results and
the first cast of a process, each beside NumPy's or PyTorch's way to the same result.

usage: from_python.py [--rounds N] [--only WORD...]     in an environment with the tensorcast package and PyTorch

WORDs are calls, scales, transposes, torch and first. Contestants take turns. A figure is the median of the ratios of
neighbouring turns; times are the lowest, as other programs only add to them. What runs on one thread is timed by its
processor time, the rest by the wall clock.
"""

import argparse
import functools
import os
import statistics
import subprocess
import sys
import time

import ml_dtypes
import numpy

import tensorcast as tc

NARROW = {"int8": numpy.int8, "float16": numpy.float16, "bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}


def timed(call, calls, clock):
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def in_turns(ours, theirs, rounds, calls=1, threads=1):
    """The lowest time of each, and the median ratio."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    ours(), theirs()
    turns = [(timed(ours, calls, clock), timed(theirs, calls, clock)) for _ in range(rounds)]
    return min(a for a, _ in turns), min(b for _, b in turns), statistics.median(a / b for a, b in turns)


def show(what, ours, theirs, ratio, unit):
    factor = {"us": 1e6, "ms": 1e3}[unit]
    print(f"| {what} | {ours * factor:.2f} {unit} | {theirs * factor:.2f} {unit} | {ratio:.2f} |", flush=True)


def table(title, peer):
    print(f"\n| {title} | tensorcast | {peer} | ratio |\n| --- | --- | --- | --- |")


def small_calls(rounds):
    x = numpy.random.default_rng(1).standard_normal(16).astype(numpy.float32)
    out, scale = numpy.empty(16, numpy.float16), numpy.full(16, 0.5, numpy.float32)
    table("16 elements, float32 to float16", "NumPy")
    cases = {
        "a new array": (lambda: tc.cast(x, "float16"), lambda: x.astype(numpy.float16)),
        "`out=`": (lambda: tc.cast(x, "float16", out=out), lambda: numpy.copyto(out, x, casting="unsafe")),
        "`report=True`": (lambda: tc.cast(x, "float16", report=True), lambda: x.astype(numpy.float16)),
        "`scale=` of an array": (lambda: tc.cast(x, "float16", scale=scale), lambda: (x * scale).astype(numpy.float16)),
    }
    for what, (ours, theirs) in cases.items():
        show(what, *in_turns(ours, theirs, rounds * 5, 1000), "us")


def full_scales(rounds):
    rng = numpy.random.default_rng(2)
    x = rng.standard_normal((2048, 2048)).astype(numpy.float32)
    scale = rng.uniform(0.5, 2, x.shape).astype(numpy.float32)
    for threads in (1, 0):
        table(f"a scale for each of 4 Mi elements, {'1 thread' if threads else 'all threads'}", "`(x * scale).astype()`")
        for to, dtype in NARROW.items():
            out = numpy.empty(x.shape, dtype)
            ours = functools.partial(tc.cast, x, to, scale=scale, threads=threads)
            show(f"float32 to {to}", *in_turns(ours, lambda dtype=dtype: (x * scale).astype(dtype), rounds, threads=threads), "ms")
            into = functools.partial(tc.cast, x, to, scale=scale, threads=threads, out=out)
            product = numpy.empty_like(x)

            def theirs(out=out, product=product):
                numpy.multiply(x, scale, out=product)
                numpy.copyto(out, product, casting="unsafe")

            show("the same with `out=`", *in_turns(into, theirs, rounds, threads=threads), "ms")


def transposes(rounds):
    x = numpy.random.default_rng(3).standard_normal((4096, 4096)).astype(numpy.float32)
    cube = x.reshape(64, 64, 4096)
    for threads in (1, 0):
        table(f"16 Mi elements in another order, to C order, {'1 thread' if threads else 'all threads'}", "a dense cast")
        for to in ("bfloat16", "int8", "float32"):
            source = x if to != "float32" else x.astype(numpy.float16)
            dense = functools.partial(tc.cast, source, to, threads=threads)
            turned = functools.partial(tc.cast, source.T, to, threads=threads)
            show(f"{source.dtype} transposed to {to}", *in_turns(turned, dense, rounds, threads=threads), "ms")
        moved = functools.partial(tc.cast, cube.transpose(2, 0, 1), "bfloat16", threads=threads)
        show("64 x 64 x 4096 float32, last axis first, to bfloat16",
             *in_turns(moved, functools.partial(tc.cast, cube, "bfloat16", threads=threads), rounds, threads=threads), "ms")  # fmt: skip


def of_pytorch(rounds):
    import torch

    torch.manual_seed(1)
    table("16 Mi elements of a tensor, all threads", "the same of an array")
    array = numpy.random.default_rng(4).standard_normal(16 << 20).astype(numpy.float32)
    tensor = torch.from_numpy(array)
    for to in ("bfloat16", "float16", "float8_e4m3fn", "int8", "bool", "float64"):
        ours, arrays = functools.partial(tc.cast, tensor, to), functools.partial(tc.cast, array, to)
        show(f"float32 to {to}", *in_turns(ours, arrays, rounds, threads=0), "ms")
    table("16 Mi elements of a tensor, all threads", "`Tensor.to`")
    for to in ("bfloat16", "int8", "bool"):
        theirs = functools.partial(tensor.to, getattr(torch, to))
        show(f"float32 to {to}", *in_turns(functools.partial(tc.cast, tensor, to), theirs, rounds, threads=0), "ms")


FIRST = """
import time, torch, tensorcast as tc
torch.set_num_threads(1)
x = torch.randn({count})
(x + 1).sum()
start = time.thread_time()
y = {call}
print(time.thread_time() - start)
"""


def first_casts(rounds):
    table("the first cast of a tensor in a process, 1 thread, float32 to bfloat16", "`Tensor.to`")
    for count in (1 << 10, 1 << 20, 16 << 20):
        times = {call: [] for call in ("tc.cast(x, 'bfloat16', threads=1)", "x.to(torch.bfloat16)")}
        for _ in range(max(rounds, 20)):
            for call, seconds in times.items():
                code = FIRST.format(count=count, call=call)
                seconds.append(float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
        ours, theirs = times.values()
        show(f"{count} elements", min(ours), min(theirs), statistics.median(ours) / statistics.median(theirs), "ms")


PARTS = {"calls": small_calls, "scales": full_scales, "transposes": transposes, "torch": of_pytorch, "first": first_casts}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    versions = f"NumPy {numpy.__version__}, ml_dtypes {ml_dtypes.__version__}"
    print(f"{os.cpu_count()} cores, {tc._core.target()}, tensorcast {tc.__version__}, {versions}")
    for part in arguments.only:
        PARTS[part](arguments.rounds)


if __name__ == "__main__":
    main()
