# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus of docs/vectors.md: python make_vectors.py FOLDER, or --sample FOLDER for the part of it that is in the repository.

Needs the package tensorcast, whose codes the corpus has; tests/oracle/vectors_main.cpp computes all of them again.
"""

import argparse
import collections
import hashlib
import pathlib
import sys

import blocks
import casts
import ml_dtypes
import numpy as np
import texts
from number_types import TYPES

import tensorcast as tc

VERSION = 2
SAMPLE = 40  # one line of these, of one pair of types in PAIRS, is in the repository
PAIRS = 8
LIMIT = 50_000_000  # bytes
COLUMNS = ["source", "code", "target", "options", "expected", "tags"]

Case = collections.namedtuple("Case", "source code target options expected tags")


def pack(codes, name):
    bits = TYPES[name].bits
    number = bytearray()
    if bits % 8 == 0:
        for code in codes:
            number += code.to_bytes(bits // 8, "little")
        return np.frombuffer(bytes(number), np.uint8)
    whole = int("".join(f"{code:0{bits}b}" for code in reversed(codes)), 2)
    return np.frombuffer(whole.to_bytes((bits * len(codes) + 7) // 8, "little"), np.uint8)


def unpack(array, name, count):
    storage, bits = np.ascontiguousarray(array).tobytes(), TYPES[name].bits
    if bits % 8 == 0:
        size = bits // 8
        return [int.from_bytes(storage[i * size : (i + 1) * size], "little") for i in range(count)]
    digits = f"{int.from_bytes(storage, 'little'):0{bits * count}b}"
    return [int(digits[len(digits) - bits * (i + 1) : len(digits) - bits * i], 2) for i in range(count)]


def cast(codes, source, target, options):
    return unpack(cast_array(codes, source, target, options), target, len(codes))


def cast_array(codes, source, target, options):
    options = {"packed": True, "threads": 1, **options}
    owner = np if hasattr(np, source) else ml_dtypes
    if TYPES[source].bits < 8 or not hasattr(owner, source):
        return tc.cast(pack(codes, source), target, from_=source, shape=(len(codes),), **options)
    return tc.cast(pack(codes, source).view(getattr(owner, source)), target, **options)


def hexadecimal(code, name):
    return f"0x{code:0{(TYPES[name].bits + 3) // 4}x}"


def words(options):
    spelled = [f"{name}={str(value).lower()}" for name, value in options.items()]
    return ",".join(spelled) or "-"


def casts_of(source, target):
    """All cases of a pair, in the order of options and codes."""
    def case(code, options, expected):
        expected = expected if isinstance(expected, str) else hexadecimal(expected, target)
        tags = ",".join(casts.tags(source, code, target))
        return Case(source, hexadecimal(code, source), target, words(options), expected, tags)

    for options, few in casts.option_sets(source, target):
        codes = casts.sources(source, target, few)
        for code, made in zip(codes, cast(codes, source, target, options)):
            yield case(code, options, made)
    few = casts.sources(source, target, True)
    for options in casts.refusals(source, target):
        for code in few[:: max(len(few) // 8, 1)]:
            try:
                (made,) = cast([code], source, target, options)
            except tc.CastError:
                made = "error"
            yield case(code, options, made)
    if source != target and target != "bool":
        codes = [code for code in few if casts.in_range_of_stochastic(source, code, target)]
        for seed in casts.STOCHASTIC_SEEDS if codes else []:
            options = {"rounding": "stochastic", "seed": seed}
            for index, (code, made) in enumerate(zip(codes, cast(codes, source, target, options))):
                yield case(code, {**options, "index": index}, made)


def is_sampled(line):
    return int.from_bytes(hashlib.sha256(line.encode()).digest()[:4], "little") % SAMPLE == 0


def write(path, columns, lines, sample):
    kept = [line for line in lines if not sample or is_sampled(line)]
    path.parent.mkdir(parents=True, exist_ok=True)
    heading = f"# tensorcast number vectors, version {VERSION}\n#" + "\t".join(columns) + "\n"
    path.write_text(heading + "".join(line + "\n" for line in kept), encoding="ascii", newline="\n")
    return len(kept)


def all_files(sample):
    """(name, columns, lines) of each file of the corpus.."""
    for target in TYPES:
        pairs = [(source, target) for source in TYPES]
        if sample:
            pairs = [pair for pair in pairs if int(hashlib.sha256(" ".join(pair).encode()).hexdigest(), 16) % PAIRS == 0]
        yield f"casts/{target}.tsv", COLUMNS, ["\t".join(case) for pair in pairs for case in casts_of(*pair)]
    yield "casts/string.tsv", COLUMNS, list(texts.lines(cast_array, hexadecimal))
    yield from blocks.all_files()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true")
    arguments = parser.parse_args()
    if arguments.folder.exists() and any(arguments.folder.iterdir()):
        sys.exit(f"{arguments.folder} is not empty")
    sums, count, size = [], 0, 0
    for name, columns, lines in all_files(arguments.sample):
        path = arguments.folder / name
        count += write(path, columns, lines, arguments.sample)
        content = path.read_bytes()
        size += len(content)
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    listing = "".join(sums)
    (arguments.folder / "SHA256SUMS").write_text(listing, newline="\n")
    if size > LIMIT:
        sys.exit(f"{size} bytes are more than {LIMIT}")
    print(f"{count} cases, {size} bytes, version {VERSION}, digest {hashlib.sha256(listing.encode()).hexdigest()}")


if __name__ == "__main__":
    main()
