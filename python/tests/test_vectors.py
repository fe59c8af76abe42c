# SPDX-License-Identifier: Apache-2.0
"""The corpus of docs/vectors.md: a part of it is made anew, and is the one in tests/vectors/sample."""

import pathlib
import subprocess
import sys

import pytest

VECTORS = pathlib.Path(__file__).parents[2] / "tests" / "vectors"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    subprocess.run([sys.executable, VECTORS / "make_vectors.py", "--sample", folder], check=True)
    return folder


def test_the_sample_is_made_with_its_digest(made):
    # Byte for byte; the list of sums alone is the digest of all files.
    assert (made / "SHA256SUMS").read_text() == (VECTORS / "sample" / "SHA256SUMS").read_text(), (
        "other vectors: if that is meant, raise VERSION of make_vectors.py and run scripts/vectors --record"
    )


def test_every_type_rounding_and_saturation_is_in_the_sample(made):
    lines = [line.split("\t") for path in (made / "casts").iterdir() for line in path.read_text().splitlines()[2:]]
    options = {word for line in lines for word in line[3].split(",")}
    words = ["nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd", "stochastic"]
    assert options >= {"-", "saturate=false", *(f"rounding={word}" for word in words)}
    types = {path.stem for path in (made / "casts").iterdir()}
    assert len(types) == 32 and {line[2] for line in lines} == types and types - {line[0] for line in lines} <= {"bool"}
    tags = {word for line in lines for word in line[5].split(",")}
    assert tags >= {"tie", "subnormal", "overflow", "underflow", "nan", "infinity", "double-rounding-float32", "exact", "inexact"}
