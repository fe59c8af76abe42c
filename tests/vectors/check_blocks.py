# SPDX-License-Identifier: Apache-2.0
"""Runs the tools themselves on the corpus's blocks: python check_blocks.py GGML_QUANTS.so TRANSFORMER_ENGINE.whl FILE...

Needs the tools of python/tests/block_tools.py, which says of what versions. What tools do not define is not compared, as there.
"""

import collections
import ctypes
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python" / "tests"))
import block_samples
import block_tools

BLOCK = 128  # rows and columns that tools want of fp8-block


def numbers(text, dtype):
    return np.frombuffer(bytes.fromhex(text), np.dtype(dtype).newbyteorder(">")).astype(dtype)


def weight_of(row):
    codes = numbers(row["input"], "u4" if row["source"] == "float32" else "u2")
    weight = codes.view(block_samples.DTYPES[row["source"]])[None]
    if row["scheme"] != "fp8-block":
        return weight
    padded = np.zeros((BLOCK, BLOCK), weight.dtype)
    padded[:1, : weight.shape[1]] = weight
    return padded


def parts_of(row):
    """What the corpus says, as the tools' functions give it."""
    if row["recipe"] == "ggml" and row["scheme"].startswith(("q", "iq")):
        return {"codes_of_gguf": numbers(row["codes"], "u1")[None]}
    codes = numbers(row["codes"], "u1")
    scales = numbers(row["scales"], "u1" if row["scheme"].startswith(("mx", "nv")) else "u4")
    parts = {"codes": codes[None], "scales": scales.view(np.float32) if scales.dtype == np.uint32 else scales}
    return parts


def theirs_of(row, made):
    """The tool's parts without the padding, and of those that the corpus has."""
    made = {name: np.asarray(part) for name, part in made.items() if part is not None}
    if row["scheme"] == "fp8-block":
        width = len(row["input"]) // (8 if row["source"] == "float32" else 4)
        made["codes"] = made["codes"].reshape(BLOCK, BLOCK)[:1, :width]
    return made


def is_same(case, row, made):
    ours = block_samples.canonical(case, parts_of(row))
    theirs = block_samples.canonical(case, theirs_of(row, made))
    for name, part in ours.items():
        a, b = np.ascontiguousarray(part).reshape(-1), np.ascontiguousarray(theirs[name]).reshape(-1)
        if a.view(np.uint8).tobytes() != b.view(np.uint8).tobytes():
            return False
    return True


def rows_of(paths):
    for path in paths:
        lines = pathlib.Path(path).read_text().splitlines()
        names = lines[1].removeprefix("#").split("\t")
        yield from (dict(zip(names, line.split("\t"))) for line in lines[2:])


def main():
    library, wheel, *paths = sys.argv[1:]
    tools = block_tools.all_tools(ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL | os.RTLD_LAZY), wheel)
    counts = collections.Counter()
    for row in rows_of(paths):
        options = row["options"].replace(",", " ") if row["options"] != "-" else ""
        if row["scheme"] == "int4-group" and "symmetric" not in options:
            options += " symmetric=true"
        case = f"{row['scheme']} {row['recipe']} {options}".strip()
        if case not in tools or row["codes"] == "error":
            counts[f"no tool: {case}"] += 1
            continue
        with np.errstate(all="ignore"):
            same = is_same(case, row, tools[case](weight_of(row)))
        counts["same" if same else "different"] += 1
        if not same:
            print(f"{case} {row['source']} {row['tags']}: {row['input']}")
    for name, count in sorted(counts.items()):
        print(name, count)
    return 1 if counts["different"] or not counts["same"] else 0


if __name__ == "__main__":
    sys.exit(main())
