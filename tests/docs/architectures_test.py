# SPDX-License-Identifier: Apache-2.0
"""The table of architectures is what transformers says, where it is installed."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-blocks/bin/python"  # of scripts/checks/blocks


@pytest.mark.skipif(not PYTHON.exists(), reason="scripts/checks/blocks has not installed transformers")
def test_the_table_is_what_transformers_says():
    done = subprocess.run([PYTHON, ROOT / "scripts/make/architectures", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_says_how_it_is_made():
    table = (ROOT / "src/quantized/names/architecture_table.cpp").read_text()
    assert "scripts/make/architectures" in table
    assert table.count(".model_type = ") > 100
