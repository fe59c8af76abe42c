# SPDX-License-Identifier: Apache-2.0
"""What tcast quantizes is loaded by transformers, which gives the logits of our own decoding; what tcast refuses fails.

A sample: a head that is tied and has no tensor, experts, and Conv1D. `scripts/checks/loaders` tries 21 architectures.
"""

import os
import pathlib
import subprocess
import sys

import pytest

LOADERS = pathlib.Path(__file__).parents[2] / "tests/blocks/loaders.py"


@pytest.mark.parametrize("architecture", ["whisper", "mixtral", "gpt2"])
def test_what_tcast_writes_loads(architecture):
    tcast = pathlib.Path(sys.executable).with_name("tcast")
    done = subprocess.run(
        [sys.executable, LOADERS, "--only", architecture],
        env={**os.environ, "TCAST": str(tcast)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 12
