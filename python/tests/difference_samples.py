# SPDX-License-Identifier: Apache-2.0
"""Inputs of the differential tests: every code of the types of 16 bits or fewer, what is hard in the larger ones."""

import functools

import numpy as np
from peers import BITS, NAMES, bits_of, code_type, codes_of, numpy_type

RANDOM_CODES = {False: 2000, True: 1_000_000}  # short form, long form


@functools.cache
def codes_for(name, thorough=False):
    if name == "bool":
        return np.array([0, 1], np.uint8)
    if bits_of(name) <= 16:
        return np.arange(1 << bits_of(name), dtype=np.uint32).astype(code_type(name))
    random = np.random.default_rng(bits_of(name)).integers(
        0, 1 << bits_of(name), RANDOM_CODES[thorough], dtype=code_type(name), endpoint=False
    )
    if name.startswith("float"):
        return np.unique(np.concatenate([_near_thresholds(name, thorough), random]))
    # Integers of every length, so that not all are as large as random codes are.
    shifts = np.arange(random.size) % bits_of(name)
    signed = random.view(numpy_type(name)) >> shifts.astype(numpy_type(name))
    return np.unique(np.concatenate([_near_powers(name), codes_of(signed, name), random]))


def _near_thresholds(name, thorough):
    """Values and midpoints of the narrower floats, powers of two, integers and halves; each with its neighbours."""
    wide = numpy_type(name)
    centers = [np.arange(-600, 601) / 2.0, 2.0 ** np.arange(-149, 128)]
    centers += [sign * 2.0**power + np.arange(-4, 5) / 4 for power in (15, 16, 31, 32, 63, 64) for sign in (1, -1)]
    for small in NAMES:
        if small.startswith(("float", "bfloat")) and bits_of(small) <= 16:
            step = 1 if bits_of(small) <= 8 or thorough else 61
            values = codes_for(small).view(numpy_type(small)).astype(np.float64)
            values = np.sort(values[np.isfinite(values)])
            middles = (values[1:] + values[:-1]) / 2
            centers += [values[::step], middles[::step], middles[-3:], values[-1:] + (values[-1] - values[-2]) / 2]
    if name == "float64":
        random = np.random.default_rng(64).integers(0, 1 << 32, 2000, dtype=np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            following = np.nextafter(random, np.float32(np.inf)).astype(np.float64)
            centers += [(random.astype(np.float64) + following) / 2, 2.0 ** np.arange(-1070, 1024, 7)]
    with np.errstate(all="ignore"):
        codes = np.concatenate(centers).astype(wide).view(code_type(name))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], wide).view(code_type(name))
    signalling = special[2:4] + code_type(name).type(1)
    all_ones = special[2:4] | code_type(name).type((1 << (52 if name == "float64" else 23)) - 1)
    near = [codes + code_type(name).type(step) for step in (0, 1, 2)] + [codes - code_type(name).type(1)]
    return np.concatenate([*near, special, signalling, all_ones])


def _near_powers(name):
    info = np.iinfo(numpy_type(name))
    numbers = set(range(-300, 301))
    for power in range(1, bits_of(name) + 1):
        for kept in range(12):  # power of two plus half of what its 1 to 12 leading bits leave
            middle = (1 << power) + (1 << max(power - 1 - kept, 0))
            numbers.update(sign * middle + step for sign in (1, -1) for step in (-1, 0, 1))
        numbers.update(sign * (1 << power) + step for sign in (1, -1) for step in (-2, -1, 0, 1, 2))
    inside = [number for number in sorted(numbers) if info.min <= number <= info.max]
    return codes_of(np.array(inside + [info.min, info.max], numpy_type(name)), name)


TEXTS = [
    "0", "-0", "1", "+1", "5.0", "-2.5", ".5", "5.", "0.1", "1e3", "1E+3", "-1e-3", "1e400", "-1e400", "1e-310",
    "1e-400", "100.5", "-1", "300", "65504", "65520", "3.4028236e38", "0.2961402", "16777217", "9007199254740993", "9.99", "448",
    "464", "465", "nan", "NaN", "-nan", "inf", "INF", "-inf", "Infinity", "+infinity", " 1.5", "1.5 ", "\t2\n",
    "", " ", "abc", "12abc", "0x1p3", "0x10", "1_000", "1,5", "1e", "e5", "--1", "1 2", "true", "True", "FALSE", "0.5",
    "1.5f", "1d", "nan(1)", "infin", "٣",
]  # fmt: skip

assert BITS.keys() <= set(NAMES)
