#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The promotion matrices as tcast prints them, against the tables in promotion/.

`promotion_tables.py --tcast PROGRAM --update` writes the tables anew; read the difference before you commit it.
"""

import argparse
import difflib
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "promotion"
TABLES = {
    "openvino": ["--rules", "openvino"],
    "openvino_unsafe": ["--rules", "openvino", "--unsafe"],
    # A scalar (rows) with a tensor (columns).
    "openvino_scalar": ["--rules", "openvino", "--pytorch-scalar", "--scalar-a"],
    "openvino_scalar_unsafe": ["--rules", "openvino", "--pytorch-scalar", "--scalar-a", "--unsafe"],
    "numpy": ["--rules", "numpy"],
    "torch": ["--rules", "torch"],
    "torch_scalar": ["--rules", "torch", "--scalar-a"],
    "jax": ["--rules", "jax"],
    "jax_strict": ["--rules", "jax_strict"],
    "tensorflow": ["--rules", "tensorflow"],
    "tensorflow_unsafe": ["--rules", "tensorflow", "--unsafe"],
}


def printed(tcast, options):
    command = [tcast, "promote", "--table", *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True)
    return f"$ tcast promote --table {' '.join(options)}\n{done.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcast", required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    wrong = {path.name for path in FOLDER.iterdir()} - {f"{name}.txt" for name in TABLES}
    for name in sorted(wrong):
        print(f"{name} is not a table of TABLES")
    for name, options in TABLES.items():
        path = FOLDER / f"{name}.txt"
        table = printed(arguments.tcast, options)
        if arguments.update:
            path.write_text(table)
            continue
        golden = path.read_text() if path.exists() else ""
        if table != golden:
            wrong.add(name)
            sys.stdout.writelines(
                difflib.unified_diff(golden.splitlines(True), table.splitlines(True), f"golden {name}", "now")
            )
    print(f"{len(TABLES)} promotion tables, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
