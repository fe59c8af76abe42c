# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ run as their users would run them."""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from checkpoint_samples import write_deepseek

import tensorcast as tc

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def run(name, *arguments, status=0, launcher=("-W", "error")):
    command = [sys.executable, *launcher, EXAMPLES / name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 or not done.stderr else done.stderr


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    weights = np.random.default_rng(1).normal(0, 1, (32, 16)).astype(np.float32)
    tensors = {"layer": weights, "norm": np.ones(16, np.float32), "logits": np.float32([1e6, 2]), "steps": np.int64([7])}
    tc.save(path, tensors)
    return path


def test_every_program_is_run():
    text = pathlib.Path(__file__).read_text()
    assert all(f'run("{path.name}"' in text for path in EXAMPLES.glob("*.py"))
    assert len(list(EXAMPLES.glob("*.py"))) >= 5


def test_shrink_checkpoint(model, tmp_path):
    out = tmp_path / "small.safetensors"
    tc.save(model, {"layer": np.ones((4, 4), np.float32), "norm": np.ones(4, np.float32)}, overwrite=True)
    lines = run("shrink_checkpoint.py", model, out).splitlines()
    assert "layer: float32 -> float8_e4m3fn, inf dB" in lines and "norm: float32 -> bfloat16, inf dB" in lines
    assert lines[-1].endswith("verified: True") and tc.inspect(out).tensors[0].dtype in ("float8_e4m3fn", "bfloat16")
    assert "overwrite=True replaces it" in run("shrink_checkpoint.py", model, out, status=1)
    assert "no such file" in run("shrink_checkpoint.py", tmp_path / "absent.safetensors", out, status=1)
    assert "Converts the weights" in run("shrink_checkpoint.py", status=2)


def test_quantize_rows():
    lines = run("quantize_rows.py").splitlines()
    assert len(lines) == 3 and all(0 < float(line.split()[4]) <= 0.5 / 127 + 1e-4 for line in lines)


def test_train_through_float8():
    pytest.importorskip("torch")
    assert run("train_through_float8.py") == "slope 1.750 in float8, offset -0.500\n"


def test_find_lossy_tensors(model):
    text = run("find_lossy_tensors.py", model, status=1)
    assert text.startswith("logits: 1 overflow") and "layer" not in text and "steps" not in text
    (row,) = json.loads(run("find_lossy_tensors.py", model, "--json", status=1))
    assert row["name"] == "logits" and row["float16"]["overflowed"] == 1


def test_share_with_frameworks(model, tmp_path):
    pytest.importorskip("torch")
    tc.convert(model, tmp_path / "fp8.safetensors", "float8_e5m2", include="layer")
    text = run("share_with_frameworks.py", tmp_path / "fp8.safetensors", "layer")
    assert text.startswith("torch.float8_e5m2 (32, 16) True\nlargest ")
    assert "there is no tensor 'x'; there are" in run("share_with_frameworks.py", model, "x", status=1)


def test_sign_attestation(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    statement = tmp_path / "attestation.intoto.json"
    statement.write_text('{"_type": "https://in-toto.io/Statement/v1"}\n')
    for name in ("key", "other"):
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / f"{name}.pem"], check=True)
        key = ["openssl", "pkey", "-in", tmp_path / f"{name}.pem", "-pubout", "-out", tmp_path / f"{name}.pub"]
        subprocess.run(key, check=True)
    signed = tmp_path / "signed.json"
    signed.write_text(run("sign_attestation.py", "sign", statement, tmp_path / "key.pem"))
    assert run("sign_attestation.py", "check", signed, tmp_path / "key.pub") == statement.read_text()
    assert "not that of this key" in run("sign_attestation.py", "check", signed, tmp_path / "other.pub", status=1)
    envelope = json.loads(signed.read_text())
    envelope["payload"] = envelope["payload"].replace("I", "J", 1)
    signed.write_text(json.dumps(envelope))
    assert "not that of this key" in run("sign_attestation.py", "check", signed, tmp_path / "key.pub", status=1)
    assert "Signs a statement" in run("sign_attestation.py", status=1)


def test_load_sharded(tmp_path):
    pytest.importorskip("torch.distributed.fsdp")
    folder = write_deepseek(tmp_path / "m")
    text = run("load_sharded.py", folder, launcher=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"))
    assert sorted(text.splitlines()) == [f"rank {i} has 104576 of 418304 numbers, logits (4, 96)" for i in range(4)]
