# SPDX-License-Identifier: Apache-2.0
"""Runs an implementation on the number vectors of docs/vectors.md: python run_vectors.py FILE...

Replace ``convert`` by a call of your own implementation; here it is NumPy with ml_dtypes. Exit status 1: something failed.
"""

import collections
import sys

import ml_dtypes
import numpy as np

NARROW = {"int4": 4, "int2": 2, "uint4": 4, "uint2": 2, "float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}


def numpy_type(name):
    found = getattr(np, name, None) or getattr(ml_dtypes, name, None)
    return found and np.dtype(found)


def convert(source, codes, target, options):
    """The codes of the target, one for each code of the source; None: the implementation has no such conversion.

    ``options`` is a dictionary of words, such as {"rounding": "to_odd"}; empty: the defaults of docs/vectors.md.
    """
    # NumPy has one way alone: it never saturates, and what it makes of a float beyond an integer is undefined.
    no_saturation = {"saturate": "false"} if target.startswith("float8") else {}
    if options != no_saturation or target == "float8_e8m0fnu":
        return None
    given, made = numpy_type(source), numpy_type(target)
    if not given or not made or (made.kind in "iu" and given.kind not in "iub"):
        return None
    numbers = np.array(codes, f"u{given.itemsize}").view(given)
    try:
        with np.errstate(all="ignore"):
            result = numbers.astype(made).view(f"u{made.itemsize}").tolist()
    except TypeError:
        return None
    return [code & (1 << NARROW.get(target, 8 * made.itemsize)) - 1 for code in result]


def read_cases(path):
    """Rows of a file of casts, without strings and elements that are errors."""
    for line in open(path, encoding="ascii"):
        if line.startswith("#"):
            continue
        source, code, target, options, expected, tags = line.rstrip("\n").split("\t")
        if "string" not in (source, target) and expected != "error":
            yield source, target, options, int(code, 16), int(expected, 16), tags


def dictionary(options):
    return dict(word.split("=") for word in options.split(",")) if options != "-" else {}


def run(paths):
    """(passed, failed, without such a conversion), and prints the first failure of each pair of types."""
    groups = collections.defaultdict(list)
    for path in paths:
        for source, target, options, *case in read_cases(path):
            groups[source, target, options].append(case)
    passed = failed = absent = 0
    shown = set()
    for (source, target, options), cases in groups.items():
        results = convert(source, [code for code, _, _ in cases], target, dictionary(options))
        if results is None:
            absent += len(cases)
            continue
        for (code, expected, tags), result in zip(cases, results):
            passed += result == expected
            failed += result != expected
            if result != expected and (source, target) not in shown:
                shown.add((source, target))
                print(f"{source} {code:#x} to {target} ({options}): {result:#x}, not {expected:#x} [{tags}]")
    return passed, failed, absent


if __name__ == "__main__":
    counts = run(sys.argv[1:])
    print("{} passed, {} failed, {} without such a conversion".format(*counts))
    sys.exit(1 if counts[1] or not counts[0] else 0)
