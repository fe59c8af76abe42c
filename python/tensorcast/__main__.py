"""``python -m tensorcast`` is the ``tcast`` command."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).with_name("bin") / "tcast"
    os.execv(program, ["tcast", *sys.argv[1:]])


if __name__ == "__main__":
    main()
