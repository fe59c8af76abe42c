#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long one call of Cast takes: that of modeci_mdf, and tensorcast.mdf in its place.

    bench/mdf/compare.py            needs the packages tensorcast and modeci_mdf
"""

import platform
import statistics
import time

import modeci_mdf.functions.onnx as original
import numpy as np

from tensorcast import mdf


def microseconds(function, calls, repeats=5):
    """Of one call: the median of several rounds."""
    rounds = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        rounds.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(rounds)


def main():
    print(f"{platform.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}; microseconds per call")
    print(f"{'call':32} {'modeci_mdf':>12} {'tensorcast':>12} {'times':>8}")
    x = np.linspace(-100, 100, 64, dtype=np.float32)
    like = np.int64([0])
    for name, theirs, ours in [
        ("cast(float32[64], to=7)", lambda: original.cast(x, to=7), lambda: mdf.cast(x, to=7)),
        ("cast(input=float32[64], to=7)", lambda: original.cast(input=x, to=7), lambda: mdf.cast(input=x, to=7)),
        ("castlike(float32[64], int64)", lambda: original.castlike(x, like), lambda: mdf.castlike(x, like)),
    ]:
        before, after = microseconds(theirs, 100), microseconds(ours, 20000)
        print(f"{name:32} {before:12.1f} {after:12.2f} {before / after:8.0f}")


if __name__ == "__main__":
    main()
