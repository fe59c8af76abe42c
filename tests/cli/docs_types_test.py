#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/types.md is what `tcast types --markdown` prints; --update rewrites it."""

import argparse
import pathlib
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcast", required=True)
    parser.add_argument("--page", required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()

    generated = subprocess.run([arguments.tcast, "types", "--markdown"], check=True, capture_output=True).stdout
    if arguments.update:
        arguments.page.write_bytes(generated)
    if not arguments.page.exists() or arguments.page.read_bytes() != generated:
        print(f"{arguments.page} is out of date: tcast types --markdown > {arguments.page}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
