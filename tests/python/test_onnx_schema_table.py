"""The table of operator schemas is what its generator makes of the package onnx."""

import re
import subprocess
import sys

import onnx
import pytest


def version(text):
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def test_the_table_is_that_of_its_package(source_dir):
    folder = source_dir / "src/models/onnx/precision"
    table = (folder / "schema_table.cpp").read_text()
    (made_from,) = re.findall(r"from onnx ([\d.]+);", table)
    if version(onnx.__version__) != version(made_from):
        pytest.skip(f"the table is of onnx {made_from}, this is {onnx.__version__}")
    generated = subprocess.run([sys.executable, folder / "generate_schema_table.py"], capture_output=True, text=True, check=True)
    assert generated.stdout == table
