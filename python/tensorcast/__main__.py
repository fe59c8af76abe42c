# SPDX-License-Identifier: Apache-2.0
"""``python -m tensorcast`` is the ``tcast`` command."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Replaces this process by the command, so that the exit status and the reaction to signals are the command's."""
    os.environ.setdefault("TCAST_PYTHON", sys.executable)  # that of `tcast onnx convert --validate`
    program = pathlib.Path(__file__).with_name("bin") / "tcast"
    sys.stdout.flush()
    try:
        os.execv(program, ["tcast", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"tensorcast: cannot start {program}: {error.strerror}; install the package again")


if __name__ == "__main__":
    main()
