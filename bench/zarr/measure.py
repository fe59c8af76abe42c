#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is ``tensorcast.zarr.cast_array`` beside that of cast_value_rs, on the cases of the latter's benchmark?

The cases are those of ``tests/benchmark/test_cast_perf.py`` in the source package of cast-value 0.2.1. Both convert the
same array in turns, and the least time of each counts. ``TENSORCAST_TARGET`` chooses our instruction set.

    pip install tensorcast cast-value-rs==0.5.1
    bench/zarr/measure.py
"""

import argparse
import math
import time

import numpy as np
from cast_value_rs import cast_array as theirs

from tensorcast.zarr import cast_array as ours

SIZES = (100, 10_000, 1_000_000)
MAPPED = [[float("nan"), 0], [float("inf"), 1], [float("-inf"), 2]]


def cases(size):
    """Name, source, target and options."""
    random = np.random.default_rng(42)
    small = random.uniform(-100, 100, size)
    special = random.uniform(3, 1000, size)
    special[::10], special[1::20], special[3::20] = np.nan, np.inf, -np.inf
    return [
        ("int32 to int8, clamp", random.integers(-200, 300, size, np.int32), "int8", {"out_of_range_mode": "clamp"}),
        ("float64 to int32", random.uniform(-1000, 1000, size), "int32", {}),
        ("float64 to float32", small, "float32", {}),
        ("float64 to float32, towards-zero", small, "float32", {"rounding_mode": "towards-zero"}),
        ("int16 to float64", random.integers(-1000, 1000, size, np.int16), "float64", {}),
        ("float64 to uint8, clamp", random.uniform(-50, 300, size), "uint8", {"out_of_range_mode": "clamp"}),
        ("float64 to int32, clamp", random.uniform(-3e9, 3e9, size), "int32", {"out_of_range_mode": "clamp"}),
        ("float64 to int32, scalar_map", special, "int32", {"scalar_map_entries": MAPPED}),
    ]


def least_times(functions, seconds):
    """The least time of one call of each, measured in turns."""
    calls = 1
    for function in functions:
        function()
    started = time.perf_counter()
    functions[0]()
    calls = max(1, round(1e-4 / (time.perf_counter() - started + 1e-9)))
    best = [math.inf] * len(functions)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, function in enumerate(functions):
            started = time.perf_counter()
            for _ in range(calls):
                function()
            best[i] = min(best[i], (time.perf_counter() - started) / calls)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case and size (default %(default)s)")
    seconds = parser.parse_args().seconds
    print("Microseconds of tensorcast and cast_value_rs, and their ratio\n")
    print("| | " + " | ".join(f"{size} numbers" for size in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    ratios, rows = [], {}
    for size in SIZES:
        for name, source, to, options in cases(size):
            options = {"rounding_mode": "nearest-even", **options}
            work = [lambda f=f: f(source, target_dtype=to, **options) for f in (ours, theirs)]
            assert np.array_equal(work[0](), work[1]()), name
            mine, other = least_times(work, seconds)
            ratios.append(other / mine)
            rows.setdefault(name, []).append(f"{1e6 * mine:.2f}, {1e6 * other:.2f}: {other / mine:.2f}")
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")
    for i, size in enumerate(SIZES):
        part = ratios[i * len(rows) : (i + 1) * len(rows)]
        print(f"\n{size} numbers: geometric mean {math.prod(part) ** (1 / len(part)):.2f}")
    print(f"\nall: geometric mean {math.prod(ratios) ** (1 / len(ratios)):.2f}")


if __name__ == "__main__":
    main()
