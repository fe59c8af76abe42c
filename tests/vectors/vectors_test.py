# SPDX-License-Identifier: Apache-2.0
"""The sample of the corpus, and the runners of examples/vectors on it."""

import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
RUNNERS = HERE.parents[1] / "examples" / "vectors"
CASTS = sorted((HERE / "sample" / "casts").glob("*.tsv"))
TOTALS = re.compile(r"(\d+) passed, (\d+) failed, (\d+) without such a conversion\n\Z")


def total(output):
    return [int(count) for count in TOTALS.search(output).groups()]


def run(command):
    return subprocess.run([*command, *CASTS], capture_output=True, text=True)


def altered(tmp_path, expected):
    """A file with a case whose expected code is wrong."""
    path = tmp_path / "altered.tsv"
    path.write_text(f"# one case\n#fields\nfloat64\t0x3ff0000000000000\tfloat32\t-\t{expected}\texact\n")
    return path


def compiled(tmp_path, name):
    program = tmp_path / "run"
    if name.endswith(".c"):
        compiler = [os.environ.get("CC", "cc"), "-std=c99", "-Wall", "-Wextra", "-Werror"]
    else:
        compiler = ["rustc", "--edition", "2021", "-D", "warnings"]
    if not shutil.which(compiler[0]):
        pytest.skip(f"no {compiler[0]}")
    subprocess.run([*compiler, RUNNERS / name, "-o", program], check=True)
    return program


def test_the_sample_has_the_sums_of_its_list():
    lines = (HERE / "sample" / "SHA256SUMS").read_text().splitlines()
    names = [line.split("  ")[1] for line in lines]
    assert names == sorted(names, key=names.index) and len(CASTS) == 32 == sum(name.startswith("casts/") for name in names)
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((HERE / "sample" / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("name", ["run_vectors.c", "run_vectors.rs"])
def test_compiled_runners(tmp_path, name):
    program = compiled(tmp_path, name)
    result = run([program])
    passed, failed, absent = total(result.stdout)
    assert result.returncode == 0 and passed > 20 and failed == 0 and absent > 1000
    result = subprocess.run([program, altered(tmp_path, "0x3f800001")], capture_output=True, text=True)
    assert result.returncode == 1 and "0x3f800000" in result.stdout and total(result.stdout) == [0, 1, 0]


def test_runner_of_python(tmp_path):
    if not importlib.util.find_spec("ml_dtypes"):
        pytest.skip("no ml_dtypes")
    runner = [sys.executable, RUNNERS / "run_vectors.py"]
    passed, failed, absent = total(run(runner).stdout)
    # NumPy with ml_dtypes has another NaN here and there; the scoreboard says which.
    assert passed > 150 and failed < 10 and absent > 1000
    for expected, counts in (("0x3f800000", [1, 0, 0]), ("0x3f800001", [0, 1, 0])):
        result = subprocess.run([*runner, altered(tmp_path, expected)], capture_output=True, text=True)
        assert total(result.stdout) == counts and result.returncode == counts[1]
