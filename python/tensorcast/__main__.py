"""``python -m tensorcast`` is the ``tcast`` command."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Becomes the command: the same process, so that its exit status and what signals do are the command's own."""
    program = pathlib.Path(__file__).with_name("bin") / "tcast"
    sys.stdout.flush()
    try:
        os.execv(program, ["tcast", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"tensorcast: cannot start {program}: {error.strerror}; install the package again")


if __name__ == "__main__":
    main()
